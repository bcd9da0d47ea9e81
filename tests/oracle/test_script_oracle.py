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
from server_under_test import pair  # noqa: E402

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

    def test_libraries_go_from_one_server_to_the_other(self):
        library = "#!lua name=l%d\nredis.register_function('f%d', function() return %d end)"
        with pair() as servers:
            clients = [server.client() for server in servers]
            for client in clients:
                for n in range(5):
                    client.command("FUNCTION", "LOAD", library % (n, n, n))
            dumps = [client.command("FUNCTION", "DUMP") for client in clients]
            for dump in dumps:
                for policy in ("APPEND", "REPLACE", "FLUSH"):
                    kinds = [c.ask("FUNCTION", "RESTORE", dump, policy)[0] for c in clients]
                    self.assertEqual(kinds, ["-" if policy == "APPEND" else "+"] * 2)
                self.assertEqual(self.ask_both(clients, "FCALL", "f3", "0"), (":", 3))


if __name__ == "__main__":
    unittest.main()
