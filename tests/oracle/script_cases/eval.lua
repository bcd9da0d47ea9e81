return 1
---
return 1.5
---
return 'a'
---
return {1,2,'x',{3,'y'},nil,4}
---
return {err='MY err'}
---
return {err='x\ny'}
---
return {ok='fine'}
---
return redis.error_reply('abc')
---
return redis.error_reply('-ABC def')
---
return redis.error_reply('ABC def')
---
return redis.status_reply('abc')
---
return redis.error_reply(1)
---
return redis.status_reply(1,2)
---
return {KEYS,ARGV}
---
return true
---
return false
---
return nil
---
return redis.call('set',KEYS[1],1)
---
return redis.call('get',KEYS[1])
---
return redis.call('get','none')
---
return redis.call('incr',KEYS[1])
---
return redis.call('lpush',KEYS[1],1)
---
return redis.pcall('lpush',KEYS[1],1)
---
return redis.call('nocmd')
---
return redis.pcall('nocmd')
---
return redis.call('get')
---
return redis.call()
---
return redis.call({})
---
return redis.pcall(true)
---
return redis.call('blpop','x',0)
---
return redis.call('subscribe','x')
---
return redis.call('hgetall','x')
---
redis.call('hset','h','a',1,'b',2) redis.setresp(3) return redis.call('hgetall','h')
---
redis.setresp(3) return redis.call('hgetall','h')['map']['a']
---
redis.setresp(3) return redis.call('zadd','z',1.5,'a')
---
redis.setresp(3) return redis.call('zscore','z','a')
---
redis.setresp(3) return redis.call('zrange','z',0,-1,'withscores')
---
redis.setresp(3) return redis.call('sismember','s','a')
---
redis.call('sadd','s','a') redis.setresp(3) return redis.call('smembers','s')
---
redis.setresp(3) return redis.call('get','nokey')
---
redis.setresp(3) return redis.call('debug','protocol','verbatim')
---
redis.setresp(4)
---
redis.setresp()
---
redis.setresp('3') return true
---
redis.setresp(3) return {true,false,{map={a=1}},{set={a=true}},{double=1.25},{big_number='123'},{verbatim_string={format='txt',string='hi'}}}
---
return {true,false,{map={a=1}},{set={a=true}},{double=1.25},{big_number='1\n3'},{verbatim_string={format='tx',string='hi'}}}
---
return redis.sha1hex('')
---
return redis.sha1hex()
---
return redis.sha1hex(12)
---
redis.set_repl(5)
---
redis.set_repl()
---
redis.log(1)
---
redis.log('x','y')
---
redis.log(10,'y')
---
return redis.log(redis.LOG_WARNING,'y',1,{},2)
---
return redis.replicate_commands()
---
return redis.breakpoint()
---
return redis.debug('x')
---
return redis.acl_check_cmd('set','a','b')
---
return redis.acl_check_cmd('nonesuch')
---
return redis.acl_check_cmd()
---
return math.random()*1e9
---
return {math.random(5),math.random(1,9),math.random(100)}
---
math.randomseed(7) return {math.random(500),math.random(1,900),math.random(1000000)}
---
math.random(0)
---
math.random(1,2,3)
---
x=1
---
return x
---
return _G.x
---
_G.x=1
---
return rawget(_G,'x')
---
rawset(_G,'x',1)
---
local x=10 return x
---
function f() return 1 end return f()
---
local function f(n) return f(n) end return 1
---
local function f(n) if n==0 then error('deep') end return f(n-1) end f(5)
---
local function f(n) local x=f(n+1) return x end return f(1)
---
error('boom')
---
error({err='boom'})
---
error({err='boom',a=1})
---
error(nil)
---
error()
---
error(true)
---
error('x',0)
---
error('x',2)
---
local t=nil return t.x
---
return 'a'+1
---
return #5
---
return {pcall(error,'x')}
---
return {pcall(error,{err='x'})}
---
return {pcall(error,{a='x'})}
---
return {pcall(redis.call,'nocmd')}
---
return {pcall(redis.call,'incr','h')}
---
local ok,e=pcall(redis.call,'incr','h') return type(e)..' '..tostring(e)
---
return {xpcall(function() error('z') end, function(m) return 'H'..m end)}
---
local ok,e=pcall(function() redis.call('incr','h') end) error(e)
---
return string.format('%5.2f %d %s %q',1.234,5,'x','a\nb')
---
return string.rep('ab',3)
---
return string.rep('x',-1)
---
return table.concat({1,2,3},',')
---
local t={3,1,2} table.sort(t) return t
---
return {unpack({1,2,3})}
---
return {unpack({1,2,3},2)}
---
return unpack({},0,2147483647)
---
return unpack({},-2147483648,2147483647)
---
return {unpack({},1,8000)}
---
return loadstring('return 5')()
---
return {loadstring('return +')}
---
return {loadstring('\27Lua')}
---
return {pcall(load)}
---
return load(function() return nil end)
---
local n=0 return load(function() n=n+1 if n==1 then return 'return ' elseif n==2 then return '7' end end)()
---
local n=0 return {load(function() n=n+1 if n==2 then return end return 5.5 end)}
---
return {load(function() return {} end)}
---
return {pcall(string.dump,print)}
---
return print
---
return type(newproxy)
---
return {pcall(setmetatable,_G,{})}
---
return {pcall(setmetatable,string,{})}
---
return {pcall(setmetatable,1,{})}
---
return {pcall(setmetatable,{},1)}
---
return getmetatable({})
---
return type(getmetatable(''))
---
getmetatable('').__index='x'
---
return {pcall(rawset,getmetatable(''),'__index',1)}
---
table.insert(string,1)
---
return {pcall(table.insert,redis,1)}
---
return {pcall(table.insert,{},1,2,3)}
---
local t={} table.insert(t,2,5) table.insert(t,'x') return {#t,t[1],t[2]}
---
local n=0 table.foreach(math,function() n=n+1 end) return n
---
local n=0 for k in pairs(_G) do n=n+1 end return n
---
return #redis
---
return next(redis)~=nil
---
return next({})
---
return {pcall(next,1)}
---
return {pcall(pairs)}
---
return collectgarbage('count')>0
---
local c=coroutine.create(function(a) local b=coroutine.yield(a+1) return redis.call('get',KEYS[1]) end) return {coroutine.resume(c,1),coroutine.resume(c,5)}
---
return {coroutine.resume(coroutine.create(function() error({err='q'}) end))}
---
local c=coroutine.wrap(function() redis.call('nocmd') end) c()
---
return {bit.band(255,15),bit.tohex(255),bit.bnot(1),bit.lshift(1,31)}
---
return {bit.tobit(4294967295),bit.tobit(1e300),bit.bswap(305419896),bit.bor(1,2,4),bit.bxor(255,15,1)}
---
return {bit.rshift(-1,4),bit.arshift(-256,4),bit.rol(305419896,12),bit.ror(305419896,12),bit.rol(1,33)}
---
return {bit.lshift(1,-1),bit.rshift(1.5,0),bit.tobit('12'),bit.tohex('0x1f',-4)}
---
return bit.bor(1,{})
---
return bit.tobit('x')
---
return cjson.encode({1,2,3})
---
return cjson.encode({a=1})
---
return cjson.encode({})
---
return cjson.encode({[1]=1,[100]=2})
---
return cjson.encode({[1e10]=1})
---
return cjson.encode('a"b\\/\1\127é')
---
return cjson.encode(1.5)..cjson.encode(1e100)..cjson.encode(12345678901234567890)..cjson.encode(-0.0)..cjson.encode(100000000000000)..cjson.encode(99999999999999)
---
return cjson.encode(0/0)
---
return cjson.encode(math.huge)
---
return cjson.encode(print or type)
---
return cjson.encode({[true]=1})
---
return cjson.encode(cjson.null)
---
return cjson.encode(nil)
---
return cjson.encode()
---
return cjson.encode(1,2)
---
local t={} t.t=t return cjson.encode(t)
---
return cjson.decode('[1,2,{"a":[true,false,null]}]')
---
return cjson.decode('[1,2')
---
return cjson.decode('{"a":1,}')
---
return cjson.decode('[1,]')
---
return cjson.decode('{a:1}')
---
return cjson.decode('{"a" 1}')
---
return cjson.decode('"abc')
---
return cjson.decode('"a\\qc"')
---
return cjson.decode('"\\u00e9\\ud83d\\ude00\\u12"')
---
return cjson.decode('"\\u00e9\\ud83d\\ude00x"')
---
return cjson.decode('"\\ud83dx"')
---
return cjson.decode('"\\ude00"')
---
return cjson.decode('')
---
return cjson.decode(' ')
---
return cjson.decode('tru')
---
return cjson.decode('1 2')
---
return tostring(cjson.decode('1e5'))..tostring(cjson.decode('-0'))..tostring(cjson.decode('0.1'))..tostring(cjson.decode('123456789012345678'))..tostring(cjson.decode('01'))
---
return tostring(cjson.decode('0x10'))
---
return tostring(cjson.decode('nan'))..tostring(cjson.decode('-inf'))..tostring(cjson.decode('Infinity'))
---
return cjson.decode('+1')
---
return cjson.decode('-')
---
return cjson.decode('\0\0')
---
return cjson.decode('[1]\0x')
---
return cjson.decode(string.rep('[',1001))
---
return cjson.decode(string.rep('{"a":',1001))
---
return cjson.decode({})
---
return cjson.decode('{"a":1,"a":2}')
---
return cjson.decode('}')
---
return cjson.decode('[:]')
---
return {cjson.encode_sparse_array(),cjson.encode_max_depth(),cjson.decode_max_depth(),cjson.encode_number_precision(),cjson.encode_keep_buffer(),cjson.encode_invalid_numbers(),cjson.decode_invalid_numbers()}
---
local c=cjson.new() c.encode_sparse_array(true) return c.encode({[1]=1,[100]=2})
---
local c=cjson.new() c.encode_invalid_numbers('null') return c.encode({0/0,1/0})
---
local c=cjson.new() c.encode_invalid_numbers(true) return c.encode({0/0,1/0,-1/0})
---
local c=cjson.new() c.encode_number_precision(3) return c.encode({1234567,0.12345,123})
---
local c=cjson.new() c.encode_number_precision(15)
---
local c=cjson.new() c.decode_invalid_numbers(false) return {pcall(c.decode,'nan'),pcall(c.decode,'01'),pcall(c.decode,'[1,-inf]')}
---
local c=cjson.new() c.decode_max_depth(2) return {pcall(c.decode,'[[[1]]]'),pcall(c.decode,'[[1]]')}
---
cjson.encode_keep_buffer('x')
---
cjson.encode_max_depth(1,2)
---
return cmsgpack.pack(1,2.5,'a',true,false,nil,{1,2,3},{a=1},-1,-33,-200,-40000,-3e9,-1e15,200,40000,3e9,1e15,1e300,2^63,-2^63,0.1)
---
return cmsgpack.pack(string.rep('x',31),string.rep('x',32),string.rep('x',255),string.rep('x',256),string.rep('x',65536))
---
local t={} for i=1,20 do t[i]=i end return cmsgpack.pack(t,{[1]=1,[3]=3},{},{[1.5]=1})
---
local t={} local r=t for i=1,20 do t.a={} t=t.a end return cmsgpack.pack(r)
---
return cmsgpack.pack()
---
local a={} for i=1,3999 do a[i]=i end return #cmsgpack.pack(unpack(a))
---
local a={} for i=1,7000 do a[i]=i end return #cmsgpack.pack(unpack(a))
---
cjson.encode_max_depth(100000) local t={} t[1]=t local ok,e=pcall(cjson.encode,t) cjson.encode_max_depth(1000) return e
---
return cmsgpack.pack(print or type, cjson.null)
---
return {cmsgpack.unpack(cmsgpack.pack(1,2.5,'a',true,false,nil,{1,2,3},-1,-33,-200,-40000,-3e9,-1e15,200,40000,3e9,1e15,2^63))}
---
return {cmsgpack.unpack(cmsgpack.pack({a={1,2}}))}
---
return cmsgpack.unpack('\193')
---
return cmsgpack.unpack('\147\1')
---
return cmsgpack.unpack('\219\255\255\255\255a')
---
return cmsgpack.unpack('\221\255\255\255\255')
---
return cmsgpack.unpack('\223\255\255\255\255')
---
return cmsgpack.unpack('\129\192\1')
---
return {cmsgpack.unpack_one(cmsgpack.pack(1,2,3))}
---
return {cmsgpack.unpack_one(cmsgpack.pack(1,2,3),1)}
---
return {cmsgpack.unpack_one(cmsgpack.pack(1,2,3),5)}
---
return {cmsgpack.unpack_one('',0)}
---
return {cmsgpack.unpack_limit(cmsgpack.pack(1,2,3),2)}
---
return {cmsgpack.unpack_limit(cmsgpack.pack(1,2,3),-2)}
---
return {cmsgpack.unpack_limit(cmsgpack.pack(1,2,3))}
---
return {pcall(cmsgpack.unpack,string.rep('\145',100000))}
---
return {pcall(cmsgpack.unpack,string.rep('\1',100000))}
---
return cmsgpack.unpack(cmsgpack.pack('\202'))
---
return struct.pack('>bBhHlLTi3I5fdc3sx',-1,255,-2,65535,-3,4,5,6,7,1.5,2.25,'abcd','zz')
---
return {struct.unpack('>bBhHlLTi3I5',struct.pack('>bBhHlLTi3I5',-1,255,-2,65535,-3,4,5,-6,7))}
---
return {struct.unpack('<!8bid',struct.pack('<!8bid',1,2,3.5))}
---
return struct.pack('!4bi!8bd',1,2,3,4)
---
return struct.size('!8bidc10')
---
return struct.size('s')
---
return struct.size('c0')
---
return struct.size('z')
---
return struct.pack('z',1)
---
return struct.pack('!3i',1)
---
return struct.pack('i33',1)
---
return struct.pack('i99999999999',1)
---
return struct.pack('i16I20i0',-5,7,3)
---
return {struct.unpack('i16I20',struct.pack('i16I20',-5,7))}
---
return struct.pack('c5','abc')
---
return {struct.unpack('Bc0B',struct.pack('Bc0B',3,'abc',9))}
---
return struct.unpack('c0','abc')
---
return struct.unpack('s','abc')
---
return {struct.unpack('ss','abc\0de\0')}
---
return struct.unpack('i','abc')
---
return {struct.unpack('b','abc',3)}
---
return {struct.unpack('b','abc',4)}
---
return {struct.unpack('b','abc',0)}
---
return {struct.unpack('b','abc',-1)}
---
return {struct.unpack('bc0','\255abc')}
---
return struct.pack('L',2^64)..struct.pack('L',2^63)..struct.pack('l',-2^63)..struct.pack('l',-2^70)..struct.pack('l',0/0)
---
return struct.pack('i','x')
---
return struct.pack('>I2 <I2 >I2',1,2,3)
---
return struct.unpack('c2147483647','x')
---
return struct.pack(1)
---
redis.call('select',3) redis.call('set','x',1) return redis.call('dbsize')
---
return redis.call('dbsize')
---
return redis.call('ping')
---
return redis.call('echo',1e20)..redis.call('echo',0.1)..redis.call('echo',-0.0)..redis.call('echo',2^53)
---
return redis.call('info','server')~=nil
---
return redis.call('publish','x','y')
---
return redis.call('config','get','maxmemory')
---
return redis.call('multi')
---
return redis.call('eval','return 1',0)
---
return redis.call('object','encoding','nokey')
---
return redis.call('object','nosub')
---
return redis.call('lrange','nol',0,-1)
---
redis.call('rpush','ll','a','b') local r=redis.call('lrange','ll',0,-1) redis.call('del','ll') return r
---
return redis.call('type','h')
---
return redis.call('set','a','b','nx','xx')
---
if true then
---
return tostring(nil)..tostring(1e15)..tostring(2^53)..tostring(1e100)
---
return {1,2,[4]=4}
---
return 3.99
---
return -3.99
---
return 1e300
---
return 0/0
---
return {['err']=1}
---
return {['ok']=1}
---
local t = setmetatable({},{__index=function() return 'x' end}) return t
---
return string.gsub('hello','l','%0%0')
---
return {pcall(string.rep,'x',1e5)}
---
return {pcall(string.format,'%99999d',1)}
---
return {pcall(string.char,256)}
---
return select('#',1,2)
---
return tostring(1/0)
---
#!lua
return 1
---
#!lua flags=no-writes
return redis.call('set','a',1)
---
#!lua flags=bad
return 1
---
#!lua foo=1
return 1
---
#!js
return 1
---
#!lua
---
#!lua flags=allow-oom,allow-stale,no-cluster,allow-cross-slot-keys
return redis.call('set','a',1)
---
#!lua flags=
return 1
---
#!
return 1
---
return __redis__err__handler('x')
---
return redis.pcall('incr','h')['err']
---
redis.call('incr','h')
---

return redis.call('incr','h')
---
local t=redis.pcall('incr','h') return t
---
return tostring(redis.REDIS_VERSION)..redis.REDIS_VERSION_NUM
---
while
---
return 1 +
---
local r = {} for n = 0, 70 do local t = {} for i = 1, n do t[i] = i end local u = cmsgpack.unpack(cmsgpack.pack(t)) r[#r+1] = #u u[n+2] = 1 r[#r+1] = #u u[n+1] = 1 r[#r+1] = #u u[n] = nil r[#r+1] = #u end return r
---
local r = {} for n = 0, 70 do local t = {} for i = 1, n do t[i] = i end local u = cjson.decode(n == 0 and '[]' or cjson.encode(t)) r[#r+1] = #u u[n+2] = 1 r[#r+1] = #u u[n+1] = 1 r[#r+1] = #u u[n] = nil r[#r+1] = #u end return r
---
local r = {} for n = 2, 15 do for hole = 1, n do local p = string.char(0x90 + n) for i = 1, n do p = p .. (i == hole and '\192' or '\7') end local u = cmsgpack.unpack(p) r[#r+1] = #u u[n+1] = 1 r[#r+1] = #u end end return r
---
local r = {} for holes = 0, 255 do local p = '\152' for i = 0, 7 do p = p .. (bit.band(holes, 2^i) ~= 0 and '\192' or '\7') end local u = cmsgpack.unpack(p) r[#r+1] = #u for k in pairs(u) do r[#r+1] = k end end return r
---
local t = cmsgpack.unpack('\220\1\44' .. string.rep('\5', 300)) t[302] = 1 return {#t, #cmsgpack.pack(t)}
---
local t = cmsgpack.unpack('\220\1\44' .. string.rep('\5', 280) .. '\192' .. string.rep('\5', 19)) return #t
---
return cmsgpack.unpack('\220\1\44' .. string.rep('\5', 299))
---
local r = {} for n = 1, 40 do local t = {} for i = 1, n do t['k' .. i] = i end r[#r+1] = cmsgpack.pack(t) r[#r+1] = cjson.encode(cmsgpack.unpack(cmsgpack.pack(t))) end return r
---
local t = {} for i = 1, 70000 do t['k' .. i] = i end local p = cmsgpack.pack(t) return {#p, redis.sha1hex(p)}
---
return {cmsgpack.pack({[1]=1,[3]=3}), cmsgpack.pack({1,2,x=3}), cmsgpack.pack({x=1,2,3}), cmsgpack.pack({[1.5]=1}), cmsgpack.pack({[0]=1}), cmsgpack.pack({[-1]=1}), cmsgpack.pack({})}
---
return cjson.encode(cjson.decode('[[1,2,[3]],[[],{}],{"a":[1,"b",null,true,[4,5,{"c":[6]}],7]}]'))
---
return cjson.decode('[1,2,')
---
return cjson.decode('[1,2 3]')
---
return cjson.decode('[,]')
---
return cjson.decode('[1,]')
---
return cjson.encode({'a"b\\c/d\127\1', string.rep('"', 100), ['x/y'] = 'é'})
---
local deep = string.rep('[1,', 999) .. '2' .. string.rep(']', 999) return cjson.encode(cjson.decode(deep)) == deep
---
return #cjson.decode('[' .. string.rep('1,', 999) .. '1]')
---
local t = cjson.decode('[' .. string.rep('1,', 99) .. '{"a":[]}]') t[102] = 1 return {#t, cjson.encode(t[100])}
