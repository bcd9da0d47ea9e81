"""Scripts and functions: what they leave in the log, slow scripts, limits, statistics, attacks."""

import os
import socket
import struct
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from persistence import incr  # noqa: E402
from server_under_test import Redis, Redoubt, ReplyError, encode, pair, wait_for  # noqa: E402

LIBRARY = """#!lua name=lib
redis.register_function('put', function(keys, args) return redis.call('set', keys[1], args[1]) end)
redis.register_function{function_name='look', flags={'no-writes'},
                        callback=function(keys) return redis.call('get', keys[1]) end}
redis.register_function('spin', function() while true do end end)
"""


class Log(unittest.TestCase):
    SCRIPTS = (
        ("return redis.call('set', 'a', 1)", ()),
        ("redis.call('set', 'a', 1) redis.call('incr', 'b') return 1", ()),
        ("return redis.call('get', 'a')", ()),
        ("redis.call('select', 3) redis.call('set', 'a', 1)", ()),
        ("redis.call('set', KEYS[1], ARGV[1]) error('late')", ("1", "k", "v")),
        ("redis.call('sadd', 's', 'x') redis.call('spop', 's') redis.call('expire', 'a', 100)", ()),
        ("redis.set_repl(redis.REPL_NONE) redis.call('set', 'hidden', 1)", ()),
        ("redis.set_repl(redis.REPL_AOF) redis.call('set', 'x', 1) redis.set_repl(redis.REPL_ALL)"
         " redis.call('set', 'y', 1)", ()),
        ("redis.call('publish', 'ch', 'm') redis.call('set', 'p', 1)", ()),
    )

    def test_effects_are_those_of_redis_server(self):
        with pair({"appendonly": "yes"}) as servers:
            logs = []
            for server in servers:
                c = server.client()
                for script, rest in self.SCRIPTS:
                    c.ask("EVAL", script, *(rest or ("0",)))
                c.ask("MULTI")
                c.ask("EVAL", "redis.call('set', 'in', 'multi') redis.call('del', 'in')", "0")
                c.ask("SET", "q", "1")
                c.ask("EXEC")
                c.ask("FUNCTION", "LOAD", LIBRARY)
                c.ask("FCALL", "put", "1", "f", "v")
                c.ask("FUNCTION", "DELETE", "lib")
                c.ask("SET", "end", "1")

                def logged(server=server):
                    wait_for(lambda: "end" in str(self.commands(server)))
                    return self.commands(server)
                logs.append([self.without_times(words) for words in server.measured(logged)])
            self.assertEqual(self.comparable(logs[0]), self.comparable(logs[1]))
            self.assertNotIn("hidden", str(logs[0]))

    @staticmethod
    def commands(server):
        with open(incr(server), "rb") as f:
            parts = iter(f.read().split(b"\r\n"))
        found = []
        for head in parts:
            if head.startswith(b"*"):
                found.append([(next(parts), next(parts).decode())[1]
                              for _ in range(int(head[1:]))])
        return found

    @staticmethod
    def without_times(words):
        return words[:2] if words[0].upper() == "PEXPIREAT" else words

    @staticmethod
    def comparable(log):
        """MULTI before or after SELECT is the same."""
        return sorted(map(str, (words for words in log if words[0].upper() != "SELECT"))), \
            [words[0].upper() for words in log if words[0].upper() not in ("SELECT",)]

    def test_everything_comes_back_from_the_log_and_from_the_snapshot(self):
        for config in ({"appendonly": "yes"}, {"save": "1 1"}):
            with self.subTest(config), Redoubt(config) as server:
                c = server.client()
                c.command("EVAL", "for i = 1, 100 do redis.call('set', 'k' .. i, i) end", "0")
                c.command("FUNCTION", "LOAD", LIBRARY)
                c.command("FCALL", "put", "1", "f", "v")
                server.restart()
                c = server.client()
                self.assertEqual(c.command("DBSIZE"), 101)
                self.assertEqual(c.command("FCALL_RO", "look", "1", "f"), b"v")


    def test_a_log_that_is_loaded_again_replaces_the_functions(self):
        with Redoubt({"appendonly": "yes"}) as server:
            c = server.client()
            c.command("FUNCTION", "LOAD", LIBRARY)
            before = c.command("FUNCTION", "LIST")
            for _ in range(2):
                c.command("DEBUG", "LOADAOF")
                self.assertEqual(c.command("FUNCTION", "LIST"), before)
            c.command("FUNCTION", "DELETE", "lib")
            c.command("DEBUG", "LOADAOF")
            self.assertEqual(c.command("FUNCTION", "LIST"), [])
            self.assertNotIn("already exists", server.log)

    def test_a_replica_gets_scripts_and_functions(self):
        with Redoubt() as master, Redoubt() as replica:
            m, r = master.client(), replica.client()
            m.command("FUNCTION", "LOAD", LIBRARY)
            r.command("REPLICAOF", "127.0.0.1", master.port)
            wait_for(lambda: replica.info()["master_link_status"] == "up")
            m.command("FCALL", "put", "1", "a", "1")
            m.command("EVAL", "redis.call('set', 'b', 1) redis.set_repl(redis.REPL_AOF) "
                              "redis.call('set', 'here', 1)", "0")
            m.command("SET", "end", "1")
            wait_for(lambda: r.command("EXISTS", "end"))
            self.assertEqual(sorted(r.command("KEYS", "*")), [b"a", b"b", b"end"])
            self.assertEqual(r.command("FCALL_RO", "look", "1", "a"), b"1")
            self.assertEqual(r.ask("EVAL", "return redis.call('set', 'c', 1)", "0")[1][:8],
                             b"READONLY")


class Slow(unittest.TestCase):
    def begin(self, server, *words):
        c = server.client()
        c.send(*words)
        other = server.client()
        wait_for(lambda: other.ask("PING")[1].startswith(b"BUSY"))
        return c, other

    def test_others_get_busy_until_the_script_is_killed(self):
        with Redoubt({"busy-reply-threshold": "50"}) as server:
            c, other = self.begin(server, "EVAL", "while true do end", "0")
            self.assertEqual(other.ask("GET", "k"), (
                "-", b"BUSY Redis is busy running a script. You can only call SCRIPT KILL or "
                     b"SHUTDOWN NOSAVE."))
            self.assertEqual(other.ask("FUNCTION", "KILL")[1][:4], b"BUSY")
            self.assertEqual(other.ask("FUNCTION", "STATS")[1][:4], b"BUSY")
            self.assertEqual(other.ask("SHUTDOWN")[1][:4], b"BUSY")
            self.assertEqual(other.ask("SCRIPT", "KILL"), ("+", b"OK"))
            kind, text = c.read()
            self.assertEqual((kind, text[:29]), ("-", b"ERR Script killed by user wit"))
            self.assertEqual(other.ask("PING"), ("+", b"PONG"))
            self.assertEqual(other.ask("SCRIPT", "KILL")[1][:7], b"NOTBUSY")
            self.assertIn("Slow script detected", server.log)

    def test_others_get_loading_while_a_log_runs_a_script(self):
        with Redoubt({"appendonly": "yes", "busy-reply-threshold": "1"}) as server:
            c, other = server.client(), server.client()
            script = b"for i = 1, 3000000 do redis.call('ping') end redis.call('set', 'k', 'v')"
            with open(incr(server), "ab") as f:
                f.write(encode("SELECT", 0) + encode("EVAL", script, 0))
            c.send("DEBUG", "LOADAOF")
            wait_for(lambda: other.ask("PING")[1].startswith(b"LOADING"), step=0)
            self.assertEqual(c.read(), ("+", b"OK"))
            self.assertEqual(c.command("GET", "k"), b"v")

    def test_pcall_does_not_keep_a_script_alive(self):
        with Redoubt({"busy-reply-threshold": "50"}) as server:
            loop = "while true do pcall(function() while true do end end) end"
            c, other = self.begin(server, "EVAL", loop, "0")
            other.command("SCRIPT", "KILL")
            self.assertEqual(c.read()[0], "-")

    def test_a_function_is_shown_and_killed(self):
        with Redoubt({"busy-reply-threshold": "50"}) as server:
            server.client().command("FUNCTION", "LOAD", LIBRARY)
            c, other = self.begin(server, "FCALL", "spin", "0")
            running = other.command("FUNCTION", "STATS")[1]
            self.assertEqual(running[:4], [b"name", b"spin", b"command",
                                           [b"FCALL", b"spin", b"0"]])
            self.assertEqual(other.ask("SCRIPT", "KILL")[1][:4], b"BUSY")
            other.command("FUNCTION", "KILL")
            self.assertEqual(c.read()[0], "-")

    def test_a_script_that_wrote_is_not_killed(self):
        with Redoubt({"busy-reply-threshold": "50"}) as server:
            script = ("redis.call('set', 'a', 1) local n = 0 "
                      "while n < 3e8 do n = n + 1 end return n")
            c, other = self.begin(server, "EVAL", script, "0")
            self.assertEqual(other.ask("SCRIPT", "KILL")[1][:10], b"UNKILLABLE")
            c.socket.settimeout(None)  # how long it takes depends on the machine
            self.assertEqual(c.read(), (":", 300000000))

    def test_a_client_that_leaves_and_one_that_kills_it_do_no_harm(self):
        with Redoubt({"busy-reply-threshold": "50"}) as server:
            c, other = self.begin(server, "EVAL", "while true do end", "0")
            c.close()
            many = [server.client() for _ in range(20)]
            for one in many:
                one.send("PING")
            for one in many:
                self.assertEqual(one.read()[1][:4], b"BUSY")
                one.close()
            other.command("SCRIPT", "KILL")
            wait_for(lambda: other.ask("PING") == ("+", b"PONG"))

    def test_pipelines_and_new_clients_have_their_turn_meanwhile(self):
        n = 3000
        with Redoubt({"busy-reply-threshold": "50"}) as server:
            c = server.client()
            c.send_raw(encode("EVAL", "while true do end", "0") + encode("PING") * n)
            other = server.client()
            wait_for(lambda: other.ask("PING")[1].startswith(b"BUSY"))
            many = [server.client() for _ in range(30)]
            for one in many:
                one.send_raw(encode("PING") * n + encode("GET", "k")[:9])
            for one in many[::2]:
                one.close()
            for one in many[1::2]:
                replies = {one.read()[1][:4] for _ in range(n)}
                self.assertEqual(replies, {b"BUSY"})
            self.assertEqual(other.ask("SCRIPT", "KILL"), ("+", b"OK"))
            self.assertEqual(c.read()[0], "-")
            self.assertEqual({c.read() for _ in range(n)}, {("+", b"PONG")})
            for one in many[1::2]:
                one.send_raw(encode("GET", "k")[9:])
                self.assertEqual(one.read(), ("$", None))

    def test_a_script_of_a_client_that_was_blocked_can_be_killed(self):
        with Redoubt({"busy-reply-threshold": "50"}) as server:
            c, other = server.client(), server.client()
            c.send_raw(encode("BLPOP", "q", 0) + encode("MULTI") +
                       encode("EVAL", "while true do end", "0") + encode("EXEC"))
            wait_for(lambda: server.info()["blocked_clients"] == "1")
            other.command("RPUSH", "q", "a")
            self.assertEqual(c.read()[0], "*")
            wait_for(lambda: other.ask("PING")[1].startswith(b"BUSY"))
            self.assertEqual(other.ask("SCRIPT", "KILL"), ("+", b"OK"))
            self.assertEqual([c.read()[0] for _ in range(3)], ["+", "+", "*"])
            self.assertEqual(other.ask("PING"), ("+", b"PONG"))

    def test_the_connection_of_a_slow_script_can_be_reset(self):
        with Redoubt({"busy-reply-threshold": "50"}) as server:
            c, other = self.begin(server, "EVAL", "while true do end", "0")
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            c.close()
            self.assertEqual(other.ask("CLIENT", "KILL", "TYPE", "normal")[1][:4], b"BUSY")
            other.command("SCRIPT", "KILL")
            wait_for(lambda: other.ask("PING") == ("+", b"PONG"))
            wait_for(lambda: server.info()["connected_clients"] == "2")

    def test_shutdown_nosave_ends_the_server(self):
        with Redoubt({"busy-reply-threshold": "50"}) as server:
            _, other = self.begin(server, "EVAL", "while true do end", "0")
            other.send("SHUTDOWN", "NOSAVE")
            self.assertEqual(server.process.wait(600), 0)

    def test_a_library_may_not_load_forever(self):
        with Redoubt() as server:
            with self.assertRaisesRegex(ReplyError, "FUNCTION LOAD timeout"):
                server.client().command("FUNCTION", "LOAD", "#!lua name=x\nwhile true do end")

    def test_a_library_that_exists_is_refused_before_its_code_runs(self):
        for kind in (Redoubt, Redis):
            with kind() as server:
                c = server.client()
                first = "#!lua name=l\nredis.register_function('f', function() end)"
                self.assertEqual(c.command("FUNCTION", "LOAD", first), b"l")
                for code in ("error('x')", "x =", "while true do end", ""):
                    self.assertEqual(c.ask("FUNCTION", "LOAD", "#!lua name=l\n" + code),
                                     ("-", b"ERR Library 'l' already exists"))
                self.assertEqual(c.ask("FUNCTION", "LOAD", "REPLACE", "#!lua name=l\nx =")[1][:28],
                                 b"ERR Error compiling function")
                self.assertEqual(c.command("FCALL", "f", 0), None)


class Memory(unittest.TestCase):
    def test_maxmemory_sees_the_interpreter(self):
        """Other servers do not count it."""
        with Redoubt() as server:
            c = server.client()
            c.command("SCRIPT", "LOAD", "return 1")
            before = int(server.info("memory")["used_memory"])
            c.command("CONFIG", "SET", "maxmemory", before + 2000000)
            c.command("SET", "k", "v")
            for i in range(20):
                words = ",".join(f"'word-{i}-{n}'" for n in range(5000))
                c.command("SCRIPT", "LOAD", f"return {{{words}}}")
            self.assertGreater(int(server.info("memory")["used_memory"]), before + 2000000)
            wait_for(lambda: c.ask("SET", "k", "v")[1][:3] == b"OOM")
            c.command("SCRIPT", "FLUSH")
            wait_for(lambda: c.ask("SET", "k", "v") == ("+", b"OK"))


class Replicas(unittest.TestCase):
    READ = "return redis.call('get', 'k')"
    WRITE = "#!lua\nreturn 1"
    NO_WRITES = "#!lua flags=no-writes\nreturn redis.call('get', 'k')"
    STALE = "#!lua flags=no-writes,allow-stale\nreturn 1"

    def test_a_replica_judges_scripts_like_redis_server(self):
        with pair() as servers:
            seen = []
            for server in servers:
                c, other = server.client(), server.client()
                replies = []
                for client in (c, other):
                    client.ask("MULTI")
                    client.ask("EVAL", self.WRITE if client is c else self.NO_WRITES, 0)
                c.ask("CONFIG", "SET", "slave-read-only", "yes")
                server.client().ask("REPLICAOF", "127.0.0.1", 1)
                replies += [c.ask("EXEC"), other.ask("EXEC")]
                for stale in ("yes", "no"):
                    c.ask("CONFIG", "SET", "replica-serve-stale-data", stale)
                    for script in (self.READ, self.WRITE, self.NO_WRITES, self.STALE):
                        replies.append(c.ask("EVAL", script, 0))
                seen.append(replies)
            self.assertEqual(*seen)

    def test_scripts_are_refused_like_on_redis_server(self):
        declared = "#!lua flags={}\nreturn redis.pcall('set', 'k', 'v')"
        scripts = [declared.format(flags)
                   for flags in ("", "no-writes", "allow-oom", "allow-stale")]
        scripts += ["return redis.pcall('set', 'k', 'v')", "return redis.pcall('get', 'k')"]
        states = (["min-replicas-to-write", "1"], ["min-replicas-to-write", "0"],
                  ["maxmemory", "1"], ["maxmemory", "0"], ["maxmemory", "1"],
                  ["min-replicas-to-write", "1"])
        library = "#!lua name=l\n" + "\n".join(
            f"redis.register_function{{function_name = 'f{i}', flags = {{{flags}}}, callback = "
            "function() return redis.pcall('set', 'k', 'v') end}"
            for i, flags in enumerate(("", "'no-writes'", "'allow-oom'", "'allow-stale'")))
        with pair() as servers:
            seen = []
            for server in servers:
                c, replies = server.client(), []
                c.command("FUNCTION", "LOAD", library)
                for state in states:
                    c.command("CONFIG", "SET", *state)
                    replies += [(state, script, c.ask(command, script, 0)) for script in scripts
                                for command in ("EVAL", "EVAL_RO")]
                    replies += [(state, i, c.ask("FCALL", f"f{i}", 0)) for i in range(4)]
                seen.append(replies)
            for ours, theirs in zip(*seen):
                self.assertEqual(ours, theirs)

    def test_sort_without_order_is_sorted_in_scripts(self):
        with Redoubt() as server:
            c = server.client()
            c.command("SADD", "s", *"qwertyuiopasdfghjklzxcvbnm", *range(50))
            got = c.command("EVAL", "return redis.call('sort', 's', 'by', '_')", 0)
            self.assertEqual(got, sorted(got))


class Attacks(unittest.TestCase):
    """Each must end in an error or a value, and leave nothing for the next script."""

    ERRORS = (
        "redis = nil", "_G.redis = nil", "string.rep = nil", "rawset(_G, 'x', 1)",
        "rawset(string, 'rep', 1)", "table.insert(redis, 1)", "setmetatable(_G, nil)",
        "setmetatable(redis, {})", "getmetatable('').__index = nil",
        "rawset(getmetatable(''), '__index', {})", "getmetatable(_G).__index = print",
        "rawset(getmetatable(_G), '__index', 1)", "function f() end", "KEYS = {}",
        "return loadstring(string.dump(function() end))()",
        "return load(function() return '\\27L' end)()",
        "return require('os')", "return io.open('/etc/passwd')", "return os.execute('id')",
        "return package.loadlib", "return debug.getinfo(1)", "return dofile('/etc/passwd')",
        "return getfenv(0)", "return setfenv(1, {})", "return newproxy(true)", "print(1)",
        "return unpack({}, 0, 2147483647)", "return unpack({}, -2147483648, 2147483647)",
        "return cjson.decode(string.rep('[', 100000))",
        "return cjson.decode(string.rep('{\"a\":', 100000))",
        "local t = {} t[1] = t return cjson.encode(t)",
        "return cmsgpack.unpack(string.rep('\\145', 1000000))",
        "return cmsgpack.unpack(string.rep('\\129\\1', 1000000))",
        "return cmsgpack.unpack('\\221\\255\\255\\255\\255')",
        "return struct.unpack('c2147483647', 'x')", "return struct.pack('i99', 1)",
        "return struct.unpack('I33', string.rep('x', 64))",
        "return struct.pack('c2147483647', 'x')",
        "return struct.unpack('bc0', '\\127x')", "return struct.size('!7i')",
        "local function f() return f() + 1 end return f()",
        "local function f() return pcall(f) end local ok = f() error('end')",
        "return string.rep('x', 100, 'y'):find(string.rep('(', 40))",
        "return string.format('%1000d', 1)", "return ('x'):bad()",
        "return coroutine.wrap(function() error('x') end)()",
        "return redis.call('eval', 'return 1', 0)",
        "local t = setmetatable({}, {__tostring = function() error('t') end}) return tostring(t)",
        "return table.concat({{}})", "error(setmetatable({}, {__index = error}))",
        "error({})", "error({err = {}})", "error({err = 'x', source = {}, line = {}})", "error()",
        "return __redis__err__handler({err = {}})()", "__redis__err__handler = nil",
        "setmetatable(getmetatable(''), {})", "getmetatable('').__index.upper = nil",
        "redis.call = nil", "math.random = nil", "cjson.null = 1", "bit.tohex = nil",
        "for k in pairs(redis) do redis[k] = nil end", "_G._G = {}",
        "return loadstring('\\27Lua')()", "return loadfile('/etc/passwd')",
        "return redis.call('mget', unpack(setmetatable({}, {__index = error}), 1, 10))",
        "local t = {} for i = 1, 100000 do t[i] = 'a' end return redis.call('mget', unpack(t))",
        "return struct.pack('>I2147483648', '10')", "return struct.unpack('>I2147483648', 'x')",
        "return struct.unpack('c0c0', 'ab', -5)", "return struct.size('c999999999999')",
        "return cmsgpack.unpack_limit('a', -1, 0)", "return cmsgpack.unpack_one('a', 2)",
        "return {cmsgpack.unpack(string.rep('\\192', 100000))}",
        "cjson.decode_max_depth(2147483647) return cjson.decode(string.rep('[', 1000000))",
        "return string.byte(string.rep('a', 10000000), 1, -1)",
        "local f f = function() return coroutine.wrap(f)() end return f()",
        "return unpack({}, 2147483640, 2147483647), error()",
        "return string.find(('a'):rep(220000), ('.-'):rep(200000))",
        "return string.match(('a'):rep(220000), ('a?'):rep(200000))",
        "return string.gsub(('a'):rep(220000), ('a*'):rep(200000), '')",
        "for x in string.gmatch(('a'):rep(220000), ('a+'):rep(200000)) do end",
        "for x in string.gfind(('a'):rep(220000), ('a+'):rep(200000)) do end",
        # CVE-2022-24834: depths and lengths of cjson and cmsgpack
        "cjson.encode_max_depth(2147483647) local t = {} for i = 1, 100000 do t = {t} end "
        "return cjson.encode(t)",
        "cjson.encode_max_depth(2147483647) local t = {} t.t = t return cjson.encode(t)",
        "return cjson.encode({[2147483647] = 1})",
        "return cmsgpack.unpack('\\223\\255\\255\\255\\255')",
        "return cmsgpack.unpack('\\219\\255\\255\\255\\255x')",
        # CVE-2022-24735: the environment of the scripts of other users
        "_G.pcall = error", "setmetatable(string, {__index = error})", "string.format = nil",
        "rawset(table, 'insert', error)", "getmetatable(_G).__newindex = nil",
        # CVE-2024-46981: destructors and the garbage collector
        "local u = newproxy(true) getmetatable(u).__gc = error",
        "getmetatable(cjson.null).__gc = 1",
        # CVE-2025-46817: bounds of unpack()
        "return unpack({}, 1, 2147483647)", "return unpack({1, 2, 3}, -2, 2147483646)",
        "return unpack({}, -2147483648, 0)", "return unpack({}, -1, 2147483646)",
        # CVE-2025-46818: metatables of the other types
        "getmetatable(1).__index = 1", "getmetatable(true).__index = 1",
        "getmetatable(nil).__index = 1", "getmetatable(redis.call).__index = 1",
        "getmetatable(coroutine.create(function() end)).__index = 1",
        # CVE-2025-46819: long brackets
        "return loadstring('return [' .. ('='):rep(1000000) .. '[x')()",
        "return loadstring('return [==[x]=]')()", "return loadstring('--[==[')()",
        # what the parser counts
        "return loadstring(('('):rep(100000) .. '1' .. (')'):rep(100000))()",
        "return loadstring('return ' .. ('{'):rep(100000))()",
        "return loadstring(('do '):rep(100000))()",
        "return loadstring('return ' .. ('not '):rep(100000) .. '1')()",
        "return string.format('%99999999d', 1)", "return string.format('%.99999999f', 1)",
        "return ('x'):find(('%b()'):rep(6000))", "return ('x'):find(('(x)'):rep(5001))",
    )
    HARMLESS = (
        ("return bit.tohex(65535, -2147483648)", b"0000FFFF"),
        ("return bit.tohex(65535, 2147483647)", b"0000ffff"),
        ("return ('%s'):format(bit.tohex(1, 0))", b""),
        ("return #string.match(('a'):rep(3000), ('a?'):rep(2000) .. 'b?')", 2000),
        ("return string.find(('(*'):rep(9000), ('(*'):rep(4000), 1, true)", 1),
        ("local i = 0 return load(function() i = i + 1 collectgarbage() "
         "return i < 200 and 'local x' .. i .. ' = ' .. i .. ' ' or i == 200 and 'return 7' or nil "
         "end, 'chunk' .. math.random())()", 7),
        ("return loadstring('return 8', 'name' .. math.random() .. '\\0x')()", 8),
        ("local s = 'return function(' for i = 1, 150 do s = s .. 'a' .. i .. ',' end "
         "local f = loadstring(s .. '...) return select(\\'#\\', ...) end')() "
         "local function g(n) if n > 0 then f() return g(n - 1) + 0 end return 9 end "
         "return g(150)", 9),
        # CVE-2024-31228: patterns
        ("redis.call('set', ('a'):rep(1000), 1) return #redis.call('keys', ('*a'):rep(400) .. 'b')",
         0),
        ("return #redis.call('keys', ('*'):rep(1000000) .. 'b')", 0),
        ("return #redis.call('scan', 0, 'match', ('[*'):rep(1000000))", 2),
        ("return #redis.call('command', 'list', 'filterby', 'pattern', ('*?'):rep(100000))", 0),
        ("return loadstring('--[' .. ('='):rep(1000000) .. '[x')", None),
        ("return bit.tohex(-1, -2147483648)", b"FFFFFFFF"),
        ("return {pcall()}", [None, b"attempt to call a boolean value"]),
        ("return select(2, pcall(struct.pack, 'i4'))",
         b"bad argument #2 to '?' (number expected, got nil)"),
    )

    def test_they_end_in_errors_and_change_nothing(self):
        with Redoubt() as server:
            c = server.client()
            for script in self.ERRORS:
                with self.subTest(script):
                    self.assertEqual(c.ask("EVAL", script, "0")[0], "-")
                    check = ("return {type(redis.call), type(string.rep), "
                             "tostring(rawget(_G, 'x')), type(getmetatable('').__index), "
                             "type(KEYS), ('ab'):upper()}")
                    self.assertEqual(c.command("EVAL", check, "0"),
                                     [b"function", b"function", b"nil", b"table", b"table", b"AB"])

    def test_what_once_was_an_attack_has_its_value(self):
        with Redoubt() as server:
            c = server.client()
            for script, want in self.HARMLESS:
                self.assertEqual(c.command("EVAL", script, "0"), want, script)

    def test_patterns_of_any_length_come_to_an_end(self):
        """CVE-2024-31228, outside of scripts."""
        stars, text = "*a" * 400 + "b", "a" * 1000
        with Redoubt() as server:
            c = server.client()
            c.command("FUNCTION", "LOAD", LIBRARY)
            c.command("ACL", "SETUSER", "u", "on", "nopass", "+@all", "~" + stars, "&" + stars)
            self.assertEqual(c.command("FUNCTION", "LIST", "LIBRARYNAME", stars), [])
            self.assertEqual(c.command("CONFIG", "GET", "*" * 100000 + "!"), [])
            self.assertEqual(c.ask("ACL", "DRYRUN", "u", "GET", text)[0], "$")
            listener = server.client()
            listener.command("PSUBSCRIBE", stars, "*?" * 100000)
            self.assertEqual(c.command("PUBSUB", "CHANNELS", "*?" * 100000), [])
            self.assertEqual(c.command("PUBLISH", text, "x"), 0)

    def test_the_garbage_collector_is_as_before_for_the_next_script(self):
        settings = ("return {collectgarbage('setpause', 200), collectgarbage('setstepmul', 200)}")
        with Redoubt() as server:
            c = server.client()
            c.command("EVAL", "collectgarbage('stop') collectgarbage('setpause', 0) "
                              "collectgarbage('setstepmul', 100000)", "0")
            self.assertEqual(c.command("EVAL", settings, "0"), [200, 200])
            used = [c.command("EVAL", "for i = 1, 1000 do local x = ('x'):rep(100000 + i) end "
                                      "return collectgarbage('count')", "0") for _ in range(5)]
            self.assertLess(max(used), 50000)

    def test_flushing_scripts_does_not_use_freed_memory(self):
        with Redoubt() as server:
            c = server.client()
            for how in ("ASYNC", "SYNC"):
                c.ask("EVAL", "collectgarbage('stop') local c = cjson.new() for i = 1, 1000 do "
                              "local t = setmetatable({}, {__gc = error}) end "
                              "return redis.error_reply('x')", "0")
                self.assertEqual(c.command("SCRIPT", "FLUSH", how), b"OK")
                self.assertEqual(c.command("EVAL", "return 1", "0"), 1)

    def test_deep_values_come_to_an_end(self):
        with Redoubt() as server:
            c = server.client()
            deep = "local t = {} for i = 1, 200000 do t = {t} end return t"
            server.client().send("EVAL", deep, "0")
            self.assertEqual(c.command("PING"), b"PONG")
            c.command("EVAL", "local t = {} for i = 1, 100000 do t = {t} end "
                              "return cmsgpack.pack(t)", "0")
            self.assertEqual(c.command("PING"), b"PONG")


class Figures(unittest.TestCase):
    def test_info_counts_scripts_and_functions(self):
        with Redoubt() as server:
            c = server.client()
            c.command("EVAL", "return 1", "0")
            c.command("SCRIPT", "LOAD", "return 2")
            c.command("FUNCTION", "LOAD", LIBRARY)
            info = server.info("memory")
            self.assertEqual(info["number_of_cached_scripts"], "2")
            self.assertEqual(info["number_of_functions"], "3")
            self.assertEqual(info["number_of_libraries"], "1")
            for name in ("used_memory_vm_eval", "used_memory_vm_functions",
                         "used_memory_scripts_eval", "used_memory_functions"):
                self.assertGreater(int(info[name]), 0, name)
            c.command("SCRIPT", "FLUSH")
            c.command("FUNCTION", "FLUSH")
            info = server.info("memory")
            self.assertEqual(info["number_of_cached_scripts"], "0")
            self.assertEqual(info["number_of_functions"], "0")

    def test_commands_of_scripts_are_counted_like_on_redis_server(self):
        scripts = ("redis.call('set', 'a', 1) return redis.call('get', 'a')",
                   "return redis.pcall('incr', 'l')", "return redis.call('incr', 'l')",
                   "return redis.call('nosuch')", "return redis.call('get')",
                   "return redis.call('blpop', 'l', 0)", "error('x')", "return {err='MINE x'}",
                   "return redis.error_reply('OWN y')")
        with pair() as servers:
            seen = []
            for server in servers:
                c = server.client()
                c.command("RPUSH", "l", "x")
                for script in scripts:
                    c.ask("EVAL", script, "0")
                c.ask("EVAL_RO", "return redis.call('set', 'a', 1)", "0")
                info = server.info("commandstats", "errorstats")
                seen.append({name: [part for part in value.split(",") if "usec" not in part]
                             for name, value in info.items() if name != "cmdstat_info" and
                             name != "cmdstat_ping"})
            self.assertEqual(seen[0], seen[1])

    def test_monitor_shows_a_script_before_its_commands(self):
        with pair() as servers:
            seen = []
            for server in servers:
                m = server.client()
                m.command("MONITOR")
                c = server.client()
                c.command("EVAL", "redis.call('select', 2) redis.call('set', 'a', 1)", "0")
                c.command("ECHO", "end")
                lines = []
                while not lines or "end" not in lines[-1]:
                    lines.append(m.read()[1].decode())
                seen.append([line.split(" ", 1)[1].replace(line.split()[2], "A")
                             if "lua" not in line else line.split(" ", 1)[1] for line in lines])
            self.assertEqual(seen[0], seen[1])

    def test_the_slow_log_shows_commands_of_scripts_without_address_and_name(self):
        with pair({"slowlog-log-slower-than": "0"}) as servers:
            seen = []
            for server in servers:
                c = server.client()
                c.command("CLIENT", "SETNAME", "me")
                c.command("EVAL", "redis.call('set', 'k', 'v')", "0")
                seen.append([(entry[3], entry[5], entry[4] == b"?:0")
                             for entry in c.command("SLOWLOG", "GET", "3")])
            self.assertEqual(seen[0], seen[1])
            self.assertEqual(seen[0][1], ([b"set", b"k", b"v"], b"", True))

    def test_memory_limits_hold_for_scripts(self):
        with pair({"maxmemory": "1"}) as servers:
            seen = []
            for server in servers:
                c = server.client()
                seen.append([c.ask("EVAL", script, "0") for script in (
                    "return redis.call('set', 'a', 1)", "return redis.call('get', 'a')",
                    "#!lua\nreturn 1", "#!lua flags=allow-oom\nreturn redis.call('set', 'a', 1)",
                    "#!lua flags=no-writes\nreturn redis.call('get', 'a')",
                    "redis.call('del', 'a') return redis.call('set', 'a', 1)")])
            self.assertEqual(seen[0], seen[1])


class Threads(unittest.TestCase):
    def test_many_clients_run_scripts_at_once(self):
        with Redoubt() as server:
            def work():
                c = server.client()
                for _ in range(200):
                    c.command("EVAL", "return redis.call('incr', KEYS[1])", "1", "n")
            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(server.client().command("GET", "n"), b"1600")


if __name__ == "__main__":
    unittest.main()
