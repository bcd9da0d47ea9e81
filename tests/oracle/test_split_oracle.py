"""split, merge and diff beside a real server: the parts of a snapshot, merged, load as the dataset
that it was, and diff finds what a single command changed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
WAYS = (["db"], ["slot-range", "--slots", "3"], ["prefix"], ["size", "--size", "20kb"])

# (what changes, command, type and part that differ)
CHANGES = (
    (("SET", "str:1", "other"), "string", None),
    (("LSET", "list:big", 500, "other"), "list", "element"),
    (("LSET", "list:small", 1, "other"), "list", "element"),
    (("SADD", "set:int", 77), "set", "member"),
    (("SREM", "set:big", "m7"), "set", "member"),
    (("ZADD", "zset:small", "2.5", "m2"), "zset", "member"),
    (("ZADD", "zset:big", "2.5", "m2"), "zset", "member"),
    (("HSET", "hash:small", "f1", "other"), "hash", "field"),
    (("HDEL", "hash:big", "f1"), "hash", "field"),
    (("XDEL", "stream:1", "3-0"), "stream", "entry"),
    (("XADD", "stream:1", "999-0", "a", "b"), "stream", "entry"),
    (("XACK", "stream:1", "group", "1-0"), "stream", "group"),
    (("XGROUP", "CREATE", "stream:1", "another", "0"), "stream", "group"),
)


def redoubt(*args):
    return subprocess.run([REDOUBT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600)


def fill(server):
    for db in (0, 9):
        server.command("SELECT", db)
        for i in range(100):
            server.command("SET", f"str:{i}", f"value {i}" * (i + 1))
        server.command("PEXPIREAT", "str:5", 4102444800123)
        for size, n in (("small", 5), ("big", 1000)):
            for i in range(n):
                server.command("RPUSH", f"list:{size}", f"element {i}")
                server.command("SADD", f"set:{size}", f"m{i}")
                server.command("ZADD", f"zset:{size}", i / 3, f"m{i}")
                server.command("HSET", f"hash:{size}", f"f{i}", f"v{i}")
        server.command("SADD", "set:int", *range(50))
        for i in range(1, 300):
            server.command("XADD", "stream:1", f"{i}-0", "field", f"v{i}")
        server.command("XGROUP", "CREATE", "stream:1", "group", "0")
        server.command("XREADGROUP", "GROUP", "group", "me", "COUNT", 5, "STREAMS", "stream:1", ">")
    server.command("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', "
                   "function() return 1 end)")
    server.command("SELECT", 0)


def save(server, path):
    server.command("SAVE")
    shutil.copyfile(server.rdb, path)


class Server(unittest.TestCase):
    def setUp(self):
        server = redis_server.RedisServer()
        self.server = server.__enter__()
        self.addCleanup(server.close)
        folder = tempfile.TemporaryDirectory(prefix="redoubt-oracle-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.before = self.path("before.rdb")
        fill(self.server)
        save(self.server, self.before)

    def path(self, name):
        return os.path.join(self.folder, name)

    def diff(self, a, b, status):
        run = redoubt("diff", "--json", "--values", a, b)
        self.assertEqual(run.returncode, status, (run.stdout[-500:], run.stderr))
        return json.loads(run.stdout)["differences"]

    def test_the_parts_merged_are_the_dataset(self):
        digest = self.server.command("DEBUG", "DIGEST")
        for how in WAYS:
            with self.subTest(how=how):
                out, whole = self.path("-".join(how)), self.path("-".join(how) + ".rdb")
                run = redoubt("split", "--by", *how, self.before, "-o", out)
                self.assertEqual(run.returncode, 0, run.stderr)
                with open(os.path.join(out, "index.json"), encoding="utf-8") as f:
                    parts = [os.path.join(out, p["file"]) for p in json.load(f)["parts"]]
                self.assertGreater(len(parts), 1)
                run = redoubt("merge", *parts, "-o", whole)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(self.diff(self.before, whole, 0), [])
                self.server.load(whole)
                self.assertEqual(self.server.command("DEBUG", "DIGEST"), digest)
                self.assertEqual(len(self.server.command("FUNCTION", "LIST")), 1)
                for part in parts:
                    self.server.load(part)

    def test_a_server_that_saves_what_it_loaded_changes_nothing(self):
        self.server.load(self.before)
        save(self.server, self.path("again.rdb"))
        self.assertEqual(self.diff(self.before, self.path("again.rdb"), 0), [])

    def test_other_encodings_are_the_same_data(self):
        for name in ("hash", "zset"):
            self.server.command("CONFIG", "SET", f"{name}-max-listpack-entries", 0)
        self.server.command("CONFIG", "SET", "set-max-intset-entries", 0)
        self.server.command("CONFIG", "SET", "list-max-listpack-size", 1)
        self.server.command("CONFIG", "SET", "rdbcompression", "no")
        digest = self.server.command("DEBUG", "DIGEST")
        self.server.load(self.before)
        # Loading goes by the limits; saving keeps what was made.
        self.assertEqual(self.server.command("OBJECT", "ENCODING", "hash:small"), b"hashtable")
        self.assertEqual(self.server.command("DEBUG", "DIGEST"), digest)
        save(self.server, self.path("tables.rdb"))
        self.assertEqual(self.diff(self.before, self.path("tables.rdb"), 0), [])

    def test_one_command_is_one_difference(self):
        after = self.path("after.rdb")
        for command, kind, part in CHANGES:
            with self.subTest(command=command):
                self.server.load(self.before)
                self.server.command("SELECT", 9)
                self.server.command(*command)
                save(self.server, after)
                found = self.diff(self.before, after, 1)
                key = command[2 if command[0] == "XGROUP" else 1]
                self.assertEqual([(x["db"], x["key"]) for x in found], [(9, key)])
                self.assertEqual(found[0]["type"], [kind, kind])
                self.assertEqual(found[0]["differs"], ["value"])
                if part is not None:
                    self.assertIn(part, [p["part"] for p in found[0]["value"]["first"]])


if __name__ == "__main__":
    unittest.main()
