"""The debugger of scripts beside that of redis-server: each command of redis-cli --ldb, in forked
and in synchronous sessions."""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import Redoubt, ServerDied, encode, pair, wait_for  # noqa: E402

SCRIPT = b"""local a = 1
local b = {1, 2, {x = 'y'}}
redis.debug(a, b, 'text\\n')
local function f(n)
  local inner = n
  redis.call('set', KEYS[1], inner)
  return redis.call('get', KEYS[1])
end
local r = f(5)
redis.breakpoint()
local e = redis.pcall('incr', 'l')
redis.call('nosuch')
return r
"""

POINTER = re.compile("0x[0-9a-f]+")

PROTOCOL = ("string", "integer", "double", "bignum", "null", "array", "set", "map", "verbatim",
            "true", "false")

COMMANDS = (
    "s", "p", "p a", "p KEYS", "p ARGV", "p zz", "l", "l 3 1", "w", "b 6", "b", "b 99", "b -6",
    "b -7", "b x", "b 6", "m", "m 20", "p b", "m 0", "e 1+1", "e x =", "e return a", "e error('q')",
    "r ping", "r get", "r lpush l 1", "r lrange l 0 -1", "r hset h a b", "foo", "n", "p b", "c",
    "t", "p", "s", "s", "c", "t", "s", "s", "s")


class Sessions(unittest.TestCase):
    maxDiff = 4000

    def session(self, server, mode, commands):
        c = server.client()
        seen = [c.ask("SCRIPT", "DEBUG", mode)]
        c.send("EVAL", SCRIPT, "1", "k", "arg")
        seen.append(c.read())
        for command in commands:
            c.send(*command.split())
            seen.append((command, c.read()))
            if seen[-1][1][0] != "*":
                return seen
        return seen + [c.read()]

    def test_each_command_answers_like_redis_server(self):
        for mode in ("yes", "sync"):
            with pair() as servers:
                seen = []
                for server in servers:
                    seen.append(self.session(server, mode, COMMANDS))
                    other = server.client()
                    seen[-1].append(other.ask("GET", "k"))
                    seen[-1].append(other.ask("EXISTS", "l"))
                for ours, theirs in zip(*seen, strict=True):
                    self.assertEqual(ours, theirs)

    def test_errors_are_shown_wherever_they_are_made(self):
        script = (b"local a = redis.error_reply('MY own')\nlocal b = redis.error_reply('-X')\n"
                  b"a = redis.pcall()\na = redis.pcall({})\na = redis.pcall('nosuch')\n"
                  b"a = redis.error_reply(1)\npcall(redis.setresp, 4)\npcall(redis.log, 1)\n"
                  b"a = redis.pcall('incr', 'k', 'x')\npcall(redis.sha1hex)\n"
                  b"redis.call('set', 'k', 'v')\nredis.call('incr', 'k')\n")
        with pair() as servers:
            seen = []
            for server in servers:
                c = server.client()
                c.command("SCRIPT", "DEBUG", "sync")
                seen.append([c.ask("EVAL", script, "0")] + [c.ask("step") for _ in range(11)])
            self.assertEqual(*seen)

    def test_every_kind_of_value_is_shown(self):
        script = (b"local t = {true, false, print, coroutine.create(print), cjson.null}\n"
                  b"local deep = {} for i = 1, 20 do deep = {deep} end\nlocal s = '\\1\\255'\n"
                  b"redis.debug(nil, t, s, deep)\nredis.setresp(3)\n"
                  b"local long = ('x'):rep(3000)\nredis.log(redis.LOG_DEBUG, 'a')\n"
                  b"redis.log(redis.LOG_VERBOSE, long)\nreturn {s, long}\n")
        commands = ["p", "b", "p t", "p s", *(f"b {line % 9 + 1}" for line in range(70)), "b 0",
                    "b -5", "b", "b 0 0", "b 12345", *(["s"] * 6), "p deep", "p s", "p long",
                    "m 60", "p long", "e return t", "e return {err='x'}", "e return {ok='x'}",
                    "e \x1bLua", "e return nil", "e error('x')", "e return redis.pcall('nosuch')",
                    *(f"r debug protocol {kind}" for kind in PROTOCOL), "r hgetall none",
                    "r get none", "r lrange none 0 -1", "a b", "t t", "m x", "s", "w", "c", "c"]
        with pair() as servers:
            seen = []
            for server in servers:
                c = server.client()
                c.command("SCRIPT", "DEBUG", "sync")
                c.send("EVAL", script, "0")
                replies = [c.read()]
                for command in commands:
                    name, _, rest = command.partition(" ")
                    c.send(*([name, rest] if name == "e" else command.split()))
                    replies.append((command, c.read()))
                    if replies[-1][1][0] != "*":
                        break
                seen.append([POINTER.sub("PTR", repr(reply)) for reply in replies])
            for ours, theirs in zip(*seen, strict=True):
                self.assertEqual(ours, theirs)

    def in_turn(self, script, commands, mode="sync", config=None):
        """Compares each reply of a session with that of redis-server; commands are words, or
        bytes as they are sent."""
        with pair(config) as servers:
            clients = [server.client() for server in servers]
            for c in clients:
                c.command("SCRIPT", "DEBUG", mode)
                c.send("EVAL", script, "0")
            self.assertEqual(*(c.read() for c in clients))
            for command in commands:
                for c in clients:
                    if isinstance(command, bytes):
                        c.send_raw(command)
                    else:
                        c.send(*command.split())
                ours, theirs = (POINTER.sub("PTR", repr(c.read())) for c in clients)
                self.assertEqual(ours, theirs, command)
            self.assertEqual(*(c.read() for c in clients))
            self.assertTrue(all(c.closed() for c in clients))

    def test_replies_of_commands_are_shown_in_resp3(self):
        script = (b"redis.setresp(3)\nredis.call('hset', 'h', 'f', 'v')\n"
                  b"redis.call('zadd', 'z', 1.5, 'm')\nreturn 1\n")
        self.in_turn(script, [
            "s", "s", "s", "m 0", "r hgetall h", "r hgetall none", "r zrange z 0 -1 withscores",
            "r zscore z m", "r get none", "r smembers none", "r sadd s a", "r smembers s",
            "r lmpop 1 none left", "r incr h", "r type h", "r info keyspace", "r lolwut",
            "r memory doctor", "r mget a b c d e f g h i j k l", "r blpop none 1", "c"])

    def test_nulls_and_values_of_code_are_shown(self):
        self.in_turn(b"local x = 1\nreturn x", [
            "r lmpop 1 none left", "r geopos none a", "r xpending none g", "r", "e", "e return",
            "e return 1, 2", "e local a = 1", "e nil + 1", "e {1.5, 1e100, 1/0}", "p x y", "l -1",
            "l 1 -1", "l 1 0", "b 1 2 1 -1 -1 0", "b 2147483648", "w", "m -1", "m 1 2", "abort"])

    def test_values_of_every_type_are_shown(self):
        deep = "(function() local t = {} for i = 1, 20 do t = {t} end return t end)()"
        self.in_turn(b"local x = 1\nreturn x", [
            "e true", "e {false, 1}", "e nil", "e print", "e {coroutine.create(print), 1}",
            "e {newproxy}", "e cjson.null", "e '\\1\\255\\0\\r\\n\"'", "e {x = {1, 2}}",
            "e {[2] = 1}", encode("redis", "get", "a\r\nb"), "e " + deep, "e ('x'):rep(300)",
            "e ('y'):rep(300)", "p KEYS", "p ARGV", encode("e", "\x1bLua"), "c"])

    def test_the_help_names_the_commands_of_redis_server(self):
        command = re.compile(r"^\[\w\]\w+( -?[<\[]\w+[>\]])?")
        seen = []
        with pair() as servers:
            for server in servers:
                c = server.client()
                c.command("SCRIPT", "DEBUG", "sync")
                c.ask("EVAL", "return 1", "0")
                lines = [content.decode() for _, content in c.ask("help")[1]]
                self.assertEqual(c.ask("h")[1], [("+", line.encode()) for line in lines])
                seen.append({found.group(0).split()[0] for found in map(command.match, lines)
                             if found})
        self.assertEqual(*seen)

    def test_infinite_loops_are_interrupted(self):
        script = (b"for i = 1, 2 do\n redis.debug(i)\nend\nwhile true do end")
        for mode in ("yes", "sync"):
            self.in_turn(script, ["b 2", "c", "b -2", "c", "t", "c", "a"], mode,
                         {"busy-reply-threshold": "100"})

    def test_bad_requests_are_refused_like_on_redis_server(self):
        for bad in (b"*0\r\n", b"*1\r\n$0\r\n\r\n", b"*1\r\n$1\r\nlx\r\n",
                    b"*1\r\n$1025\r\n", b"*1025\r\n", b"*" + b"1" * (1 << 20) + b"1111"):
            self.in_turn(b"local x = 1\nreturn x", [bad])

    def test_abort_and_a_lost_client_end_the_script(self):
        for mode in ("yes", "sync"):
            with pair() as servers:
                seen = [self.session(server, mode, ["s", "s", "a"]) for server in servers]
                self.assertEqual(seen[0], seen[1])
            with Redoubt({"busy-reply-threshold": "50"}) as server:
                c = server.client()
                c.command("SCRIPT", "DEBUG", mode)
                c.send("EVAL", "while true do end", "0")
                c.read()
                c.close()
                wait_for(lambda s=server: s.client().ask("PING") == ("+", b"PONG"))

    def test_a_bad_request_ends_the_session(self):
        with Redoubt() as server:
            c = server.client()
            c.command("SCRIPT", "DEBUG", "sync")
            c.send("EVAL", SCRIPT, "1", "k")
            c.read()
            c.send_raw(b"nonsense\r\n")
            self.assertEqual([c.read()[0], c.read()[0]], ["*", "-"])
            with self.assertRaises(ServerDied):
                c.ask("PING")
            self.assertEqual(server.client().ask("PING"), ("+", b"PONG"))

    def test_modes(self):
        with pair() as servers:
            seen = []
            for server in servers:
                c = server.client()
                seen.append([c.ask("SCRIPT", "DEBUG", mode)
                             for mode in ("foo", "NO", "yes", "no")])
                seen[-1].append(c.ask("EVAL", "return {redis.breakpoint(), redis.debug(1)}", "0"))
                c.ask("SCRIPT", "DEBUG", "sync")
                seen[-1].append(c.ask("EVALSHA", "0" * 40, "0"))
            self.assertEqual(seen[0], seen[1])

    def test_the_sessions_of_redis_cli(self):
        with Redoubt() as server:
            path = server.path("script.lua")
            with open(path, "wb") as f:
                f.write(SCRIPT)
            for option in ("--ldb", "--ldb-sync-mode"):
                run = subprocess.run(
                    [shutil.which("redis-cli"), "-p", str(server.port), option, "--eval", path,
                     "k", ",", "arg"], input=b"s\np\nc\nc\n", stdout=subprocess.PIPE, timeout=600)
                self.assertIn(b"Stopped at 1, stop reason = step over", run.stdout)
                self.assertIn(b"redis.breakpoint() called", run.stdout)


if __name__ == "__main__":
    unittest.main()
