"""Scripts and functions that call random commands with random values, in both protocols.

Most scripts are one runner, which takes its commands as arguments and shows the replies as text,
because the order of tables in Lua is not defined. The rest are short scripts of their own, with
conversions, errors, and flags in their first line. Commands with chance in them are left out."""

UNORDERED = set()
RANDOM = set()
SESSIONS = 2

RUNNER = """
local function show(v, depth)
  if type(v) ~= 'table' then return type(v) .. ':' .. tostring(v) end
  if depth > 6 then return '...' end
  local keys, parts = {}, {}
  for k in pairs(v) do keys[#keys + 1] = k end
  table.sort(keys, function(a, b) return type(a) .. tostring(a) < type(b) .. tostring(b) end)
  for i, k in ipairs(keys) do parts[i] = show(k, depth + 1) .. '=' .. show(v[k], depth + 1) end
  return '{' .. table.concat(parts, ',') .. '}'
end
local function run(KEYS, ARGV)
  redis.setresp(tonumber(ARGV[1]))
  local how, out, at = ARGV[2], {}, 3
  while at <= #ARGV do
    local n = tonumber(ARGV[at])
    local call = how == 'call' and redis.call or redis.pcall
    out[#out + 1] = show(call(unpack(ARGV, at + 1, at + n)), 0)
    at = at + n + 1
  end
  return out
end
"""

SCRIPT = RUNNER + "return run(KEYS, ARGV)"
LIBRARY = ("#!lua name=%s\n" + RUNNER + "redis.register_function('%s', run)\n"
           "redis.register_function{function_name='%s', callback=run, flags={'no-writes'}}\n")

KEYS = ["s1", "s2", "l1", "h1", "set1", "z1", "x1", "n1"]

SHORT = (
    "return {KEYS, ARGV}", "return ARGV[1]", "return tonumber(ARGV[1])",
    "return {tonumber(ARGV[1])}",
    "return {err=ARGV[1]}", "return {ok=ARGV[1]}", "return {double=tonumber(ARGV[1])}",
    "return redis.error_reply(ARGV[1])", "return redis.status_reply(ARGV[1])", "error(ARGV[1])",
    "error({err=ARGV[1]})",
    "redis.setresp(3) return {true, false, {double=1.5}, {big_number='12'}}",
    "redis.setresp(3) return redis.call('get', KEYS[1])", "return redis.call('get', KEYS[1])",
    "redis.call('set', KEYS[1], ARGV[1]) return redis.call('incr', KEYS[1])",
    "redis.set_repl(redis.REPL_NONE) redis.call('set', KEYS[1], 1) redis.set_repl(redis.REPL_ALL)"
    " return redis.call('append', KEYS[1], 'x')",
    "redis.call('select', 3) return redis.call('append', KEYS[1], ARGV[1])",
    "for i = 1, 5 do redis.call('rpush', KEYS[1], i) end "
    "return redis.call('lrange', KEYS[1], 0, -1)",
    "return cjson.encode(ARGV)", "return cjson.encode(cjson.decode(ARGV[1]))",
    "return cmsgpack.pack(ARGV)", "return {cmsgpack.unpack(cmsgpack.pack(unpack(ARGV)))}",
    "return {cmsgpack.unpack(ARGV[1])}", "return {struct.unpack(ARGV[1], ARGV[2])}",
    "return struct.pack(ARGV[1], 1, 2, 3, 4)", "return redis.sha1hex(ARGV[1])",
    "return string.format('%q', ARGV[1])", "return {math.floor(ARGV[1]), math.ceil(ARGV[1])}",
    "return bit.tohex(ARGV[1])", "return loadstring(ARGV[1])()",
    "return {pcall(function() return redis.call('incr', KEYS[1]) end)}",
    "#!lua flags=no-writes\nreturn redis.call('set', KEYS[1], 1)",
    "#!lua\nreturn redis.call('get', KEYS[1])",
    "#!lua flags=" + "x" * 3 + "\nreturn 1", "return redis.call('object', 'encoding', KEYS[1])",
)

VALUES = ("1", "-1", "0", "1.5", "abc", "", "3e20", "[1,2,{\"a\":null}]", "{\"a\":[]}", "[", "nan",
          "<i4", ">I2b", "s", "c0", "\x92\x01\xa1a", "\xc1", "\x00\xff", "x y", "WRONG x", "-ERR a",
          "return 1", "return", "9007199254740993", "a\r\nb", "12345678901234567890")


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def key(self):
        return self.rng.choice(KEYS)

    def value(self):
        if self.rng.random() < 0.3:
            return str(self.rng.randrange(-100, 100))
        return self.rng.choice(VALUES).encode("latin-1")

    def inner(self):
        rng, key = self.rng, self.key()
        return rng.choice((
            ["SET", key, self.value()], ["GET", key], ["INCR", key], ["APPEND", key, self.value()],
            ["INCRBYFLOAT", key, self.value()], ["STRLEN", key], ["GETRANGE", key, "0", "3"],
            ["RPUSH", key, self.value(), self.value()], ["LRANGE", key, "0", "-1"], ["LPOP", key],
            ["LPOP", key, "2"], ["LLEN", key], ["HSET", key, "f", self.value()], ["HGETALL", key],
            ["HMGET", key, "f", "g"], ["HDEL", key, "f"], ["SADD", key, "1", "2", "3"],
            ["SISMEMBER", key, "2"], ["SMISMEMBER", key, "1", "9"], ["SCARD", key],
            ["ZADD", key, "1.5", "a", "2", "b"], ["ZRANGE", key, "0", "-1", "WITHSCORES"],
            ["ZSCORE", key, "a"], ["ZADD", key, "INCR", "0.25", "a"], ["ZPOPMIN", key],
            ["ZRANK", key, "b"], ["XADD", key, "5-*", "f", "v"], ["XLEN", key],
            ["XRANGE", key, "-", "+"], ["DEL", key], ["EXISTS", key], ["TYPE", key],
            ["EXPIRE", key, "100"], ["TTL", key], ["PERSIST", key], ["RENAME", key, self.key()],
            ["COPY", key, self.key(), "REPLACE"], ["SORT", key, "ALPHA"], ["SELECT", "2"],
            ["SELECT", "0"], ["DBSIZE"], ["PING"], ["ECHO", self.value()], ["NOSUCH", key], ["GET"],
            ["BLPOP", key, "0"], ["MULTI"], ["EVAL", "return 1", "0"], ["OBJECT", "ENCODING", key],
            ["OBJECT", "FOO", key], ["BITCOUNT", key], ["PFADD", key, "a"], ["PFCOUNT", key]))

    def commands(self):
        argv = [self.rng.choice("23"), self.rng.choice(("call", "pcall", "pcall", "pcall"))]
        for _ in range(self.rng.randrange(1, 8)):
            words = self.inner()
            argv += [str(len(words)), *words]
        return argv

    def function(self):
        rng = self.rng
        name = rng.choice("abc")
        p = rng.random()
        if p < 0.15:
            return ["FUNCTION", "LOAD", *(["REPLACE"] if p < 0.1 else []),
                    LIBRARY % ("lib" + name, "put" + name, "look" + name)]
        if p < 0.2:
            return ["FUNCTION", "DELETE", "lib" + name]
        if p < 0.22:
            return ["FUNCTION", rng.choice(("FLUSH", "STATS"))]
        if p < 0.26:
            return ["FUNCTION", "LOAD", rng.choice((
                "#!lua name=bad\nx = 1", "#!lua\n", "#!lua name=a b\n", "none",
                "#!lua name=liba\nredis.register_function('puta', function() end)",
                "#!lua name=libz\nredis.register_function('puta', function() end)"))]
        return [rng.choice(("FCALL", "FCALL", "FCALL_RO")),
                rng.choice(("put", "look", "PUT")) + name, "1", self.key(), *self.commands()]

    def command(self):
        rng = self.rng
        p = rng.random()
        if p < 0.45:
            return [rng.choice(("EVAL", "EVAL", "EVAL_RO")), SCRIPT, "1", self.key(),
                    *self.commands()]
        if p < 0.65:
            return self.function()
        if p < 0.9:
            return ["EVAL", rng.choice(SHORT), "1", self.key(), self.value(), self.value()]
        return rng.choice((
            self.inner_outside(), ["SCRIPT", "EXISTS", "0" * 40], ["EVALSHA", "0" * 40, "0"],
            ["EVAL", "return 1", self.value()], ["SCRIPT", "LOAD", rng.choice(SHORT)],
            ["SCRIPT", "FLUSH"], ["MULTI"], ["EXEC"], ["DISCARD"]))

    def inner_outside(self):
        return self.rng.choice((["GET", "s1"], ["LRANGE", "l1", "0", "-1"], ["TYPE", "x1"],
                                ["HGET", "h1", "f"], ["DEL", self.key()]))


def commands(rng):
    maker = Maker(rng)
    while True:
        yield maker.command()
