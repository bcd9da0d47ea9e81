"""Scripts and functions beside redis-server 7.0.15, in RESP2 and RESP3: the globals, conversions,
errors word for word, the libraries cjson, cmsgpack, struct and bit, function libraries.

script_cases/eval.lua: scripts, with lines "---" between them. script_cases/functions.ndjson: one
command a line.
"""

import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "server"))
from fake_server import dump  # noqa: E402
from server_under_test import Redis, Redoubt, pair  # noqa: E402

CASES = os.path.join(HERE, "script_cases")

GLOBALS = """
local out, seen = {}, {}
local function walk(t, path)
  if seen[t] then return end
  seen[t] = true
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys)
  for _, k in ipairs(keys) do
    local v = t[k]
    local is_value = type(v) == 'string' or type(v) == 'number'
    out[#out + 1] = path .. k .. ' ' .. type(v) .. (is_value and ' ' .. tostring(v) or '')
    if type(v) == 'table' then walk(v, path .. k .. '.') end
  end
end
walk(_G, '')
return out
"""


def library(name, function):
    return (f"#!lua name={name}\nredis.register_function('{function}', "
            f"function() return '{name}' end)").encode()


def record(code):
    """A library as it is in a payload."""
    return b"\xf5" + (0x4000 | len(code)).to_bytes(2, "big") + code


class Scripts(unittest.TestCase):
    maxDiff = 4000

    def ask_both(self, clients, *words):
        ours, theirs = (c.ask(*words) for c in clients)
        self.assertEqual(ours, theirs, words)
        return ours

    def test_the_globals_are_those_of_redis_server(self):
        with pair() as servers:
            clients = [server.client() for server in servers]
            self.assertGreater(len(self.ask_both(clients, "EVAL", GLOBALS, "0")[1]), 150)
            library = ("#!lua name=walk\nredis.register_function('walk', function() " + GLOBALS +
                       " end)")
            for client in clients:
                client.command("FUNCTION", "LOAD", library)
            self.assertGreater(len(self.ask_both(clients, "FCALL", "walk", "0")[1]), 140)

    def test_scripts_have_equal_replies(self):
        with open(os.path.join(CASES, "eval.lua"), encoding="latin-1") as f:
            cases = f.read().split("\n---\n")
        for proto in (2, 3):
            with pair() as servers:
                clients = [server.client(proto) for server in servers]
                for case in cases:
                    with self.subTest(proto=proto, script=case):
                        self.ask_both(clients, "EVAL", case.encode("latin-1"), "2", "k1", "k2",
                                      "a1", "a2")

    def test_functions_have_equal_replies(self):
        with open(os.path.join(CASES, "functions.ndjson")) as f:
            cases = [json.loads(line) for line in f]
        for proto in (2, 3):
            with pair() as servers:
                clients = [server.client(proto) for server in servers]
                for case in cases:
                    with self.subTest(proto=proto, command=case):
                        self.ask_both(clients, *case)

    def libraries_of(self, source, servers):
        """Those of one of the servers go to both."""
        library = "#!lua name=l%d\nredis.register_function('f%d', function() return %d end)"
        clients = [server.client() for server in servers]
        for client in clients:
            for n in range(5):
                client.command("FUNCTION", "LOAD", library % (n, n, n))
        # The order of libraries is chance.
        dump = servers[source].first(lambda: clients[source].command("FUNCTION", "DUMP"))
        for policy in ("APPEND", "REPLACE", "FLUSH"):
            kinds = [c.ask("FUNCTION", "RESTORE", dump, policy)[0] for c in clients]
            self.assertEqual(kinds, ["-" if policy == "APPEND" else "+"] * 2)
        self.assertEqual(self.ask_both(clients, "FCALL", "f3", "0"), (":", 3))

    def test_libraries_go_from_one_server_to_the_other(self):
        with Redoubt() as ours, Redis() as theirs:
            self.libraries_of(0, (ours, theirs))
        with pair() as servers:
            self.libraries_of(1, servers)

    def test_what_is_wrong_in_a_first_line(self):
        lines = [b"#!lua", b"#!lua\n", b"#!lua\r\n", b"#!\n", b"#! lua\n", b"#!Lua\n",
                 b"#!js name=a\n", b"#!lua a\n", b"#!lua name=a\n", b"#!lua nAme=b\n",
                 b"#!lua \"\n",
                 b"#!lua name=\n", b"#!lua name=c name=d\n", b"#!lua name=e\r", b"#!lua 'name=f'\n",
                 b"#!\"lua\" name=g\n", b"#!lua name=\"h\"\n", b"#!lua name='h'i\n",
                 b"#!lua flags=\n", b"#!lua flags=,\n", b"#!lua flags=x\n",
                 b"#!lua 'flags=no-writes'\n", b"#!lua a\0b\n", b"#!lua\0 b\n",
                 b"#!lua name=j\0k\n", b"#!lua name=l\n\0", b"\0#!lua\n"]
        with pair() as servers:
            clients = [server.client() for server in servers]
            for n, line in enumerate(lines):
                with self.subTest(line=line):
                    self.ask_both(clients, "EVAL", line + b"return 1", "0")
                    self.ask_both(clients, "FUNCTION", "LOAD", line + (
                        b"redis.register_function('f%d', function() return 1 end)" % n))
            self.ask_both(clients, "DEBUG", "RELOAD")
            lists = [client.ask("FUNCTION", "LIST")[1] for client in clients]
            self.assertEqual(*(sorted(items, key=repr) for items in lists))

    def test_what_is_wrong_in_a_payload_of_functions(self):
        good = record(library("a", "a"))
        bodies = [b"", good, good + good, b"\xf5", b"\xf5\x80\xff\xff\xff\xff", b"\xff", b"\x00",
                  b"\xf7", good + b"\x00", good + b"\xff", good + b"\xfe\x00",
                  b"\xfa\x01a\x01b" + good, good + b"\xf5\xc3\x05\x05aaaaa",
                  record(library("b", "A")) + good,
                  *map(record, (b"", b"x", b"#!lua name=b\n", b"#!lua name=b\nsyntax",
                                b"#!js name=b\n", b"#!lua\nx", b"#!lua name=b x\n"))]
        payloads = [dump(body, 10) for body in bodies] + [dump(good, 0), dump(good, 9)]
        with pair() as servers:
            clients = [server.client() for server in servers]
            for each in payloads:
                with self.subTest(payload=each):
                    self.ask_both(clients, "FUNCTION", "RESTORE", each)
                    self.ask_both(clients, "FUNCTION", "LIST")
                    self.ask_both(clients, "FUNCTION", "FLUSH")

    def test_libraries_of_release_candidates_are_restored(self):
        def old(name, language, about, code):
            return (b"\xf6" + (name if name[:1] >= b"\x80" else text(name)) + text(language) +
                    (b"\x01" + text(about) if about else b"\x00") + text(code))

        def text(each):
            return bytes([0x40 | len(each) >> 8, len(each) & 255]) + each
        code = b"redis.register_function('f', function() return 1 end)"
        bodies = [old(b"l", b"lua", b"", code), old(b"l", b"LUA", b"about", code),
                  old(b"\xc0\x05", b"lua", b"", code), old(b"l", b"js", b"", code),
                  old(b"l", b"lua", b"", b"syntax error"), old(b"a b", b"lua", b"", code),
                  old(b"l", b"lua", b"", code) + record(library("m", "g")),
                  old(b"l", b"lua", b"", code) * 2, old(b"l\x00m", b"lua", b"", code + b"\x00(")]
        with pair() as servers:
            clients = [server.client() for server in servers]
            for each in bodies:
                with self.subTest(payload=each):
                    self.ask_both(clients, "FUNCTION", "RESTORE", dump(each, 10))
                    # In order of their hashes there.
                    lists = [c.ask("FUNCTION", "LIST", "WITHCODE")[1] for c in clients]
                    self.assertEqual(*(sorted(items, key=repr) for items in lists))
                    self.ask_both(clients, "FCALL", "f", "0")
                    self.ask_both(clients, "FUNCTION", "FLUSH")

    def test_a_restore_leaves_the_variables_of_other_libraries(self):
        counter = (b"#!lua name=c\nlocal n = 0 "
                   b"redis.register_function('c', function() n = n + 1 return n end)")
        swapped = dump(record(library("a", "b")) + record(library("b", "a")), 10)
        with pair() as servers:
            clients = [server.client() for server in servers]
            for command in (
                    ("FUNCTION", "LOAD", counter), ("FCALL", "c", 0),
                    ("FUNCTION", "RESTORE", dump(record(library("a", "a")), 10)), ("FCALL", "c", 0),
                    ("FUNCTION", "RESTORE", dump(record(library("b", "b")), 10)),
                    ("FUNCTION", "RESTORE", dump(b"\xff", 10)), ("FCALL", "c", 0),
                    ("FUNCTION", "RESTORE", swapped, "REPLACE"), ("FCALL", "c", 0),
                    ("FCALL", "a", 0), ("FCALL", "b", 0),
                    ("FUNCTION", "RESTORE", dump(record(library("d", "C")), 10), "REPLACE"),
                    ("FUNCTION", "RESTORE", dump(record(counter), 10), "FLUSH"),
                    ("FCALL", "c", 0), ("FCALL", "a", 0)):
                with self.subTest(command=command):
                    self.ask_both(clients, *command)


if __name__ == "__main__":
    unittest.main()
