"""Numbers agree with their nouns: every tool reads files that contain one of each thing."""

import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from rdb_text import HASH, LIST, SET, STRING, ZSET, Key, snapshot  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")

PAST, FUTURE = 1000, 4102444800000
LIBRARY = b"#!lua name=one\nredis.register_function('one', function() return 1 end)\n"

# "1 of 1 keys" and "1 and 1 keys" count all of them.
WRONG = re.compile(
    r"(?<![\w.,%])(?<!and )(?<!of )1 "
    r"(?:\w+ )?(?:keys|bytes|commands|records|files|elements|entries|fields|members|ranges|runs|"
    r"libraries|functions|scripts|opcodes|replicas|segments|times|errors|warnings|notes|findings|"
    r"databases|parts|sets|masters|snapshots|transactions|lines|prefixes|expiries|seconds|minutes|"
    r"values|inputs|digests|are|have|were|follow|expire)\b")


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def sized(n_keys, n_expires):
    return b"\xfb" + bytes([n_keys, n_expires])


class OneOfEach(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as f:
            f.write(content)
        return self.path(name)

    def run_tool(self, *args, status=None):
        run = subprocess.run([REDOUBT, *args], capture_output=True, timeout=600,
                             cwd=self.folder.name)
        text = (run.stdout + run.stderr).decode("utf-8", "surrogateescape")
        if status is not None:
            self.assertEqual(run.returncode, status, text)
        self.assertLess(run.returncode, 9, text)
        self.assertEqual(WRONG.findall(text), [], text)
        return text

    def snapshots(self):
        """Yields one file of each kind, sound or not."""
        one = Key(b"k", STRING, b"v")
        yield "string", snapshot([one])
        yield "list", snapshot([Key(b"k", LIST, [b"v"])])
        yield "set", snapshot([Key(b"k", SET, [b"v"])])
        yield "zset", snapshot([Key(b"k", ZSET, [(b"m", 1.0)])])
        yield "hash", snapshot([Key(b"k", HASH, [(b"f", b"v")])])
        yield "expires", snapshot([Key(b"k", STRING, b"v", expire_ms=FUTURE)])
        yield "expired", snapshot([Key(b"k", STRING, b"v", expire_ms=PAST)])
        yield "library", snapshot([one], functions=[LIBRARY])
        yield "only-library", snapshot([], functions=[LIBRARY])
        yield "script", snapshot([one], aux=[(b"lua", b"return 1")])
        yield "trailing", snapshot([one]) + b"x"
        yield "cut", snapshot([one, Key(b"l", STRING, b"w")])[:-10]
        yield "twice", snapshot([one, one])
        yield "announced", snapshot([one, Key(b"l", STRING, b"w")]).replace(
            b"\xfe\x00", b"\xfe\x00" + sized(1, 1), 1)
        yield "damaged", snapshot([one, Key(b"x", LIST, [b"v"]), Key(b"z", STRING, b"w")]).replace(
            b"\x01\x01x\x01\x01v", b"\x01\x01x\x01\xc3v", 1)
        yield "opcode", snapshot([one], tail=b"\xf7\x07" + b"\xff" + bytes(8))

    def test_snapshots_are_checked(self):
        for name, content in self.snapshots():
            with self.subTest(name):
                path = self.write(name + ".rdb", content)
                self.run_tool("check-rdb", "-v", path)
                self.run_tool("check-rdb", "--salvage", self.path("saved"), "--force", "-v", path)

    def test_snapshots_are_used(self):
        empty = self.write("empty.rdb", snapshot([]))
        for name, content in self.snapshots():
            if name not in ("hash", "expires", "expired", "library"):
                continue
            with self.subTest(name):
                path = self.write(name + ".rdb", content)
                self.run_tool("stat", path)
                self.run_tool("diff", path, empty)
                self.run_tool("merge", path, path, "-o", self.path("merged"), "--force")
                self.run_tool("merge", path, empty, "-v", "-o", self.path("merged"), "--force")
                self.run_tool("split", "--by", "db", path, "-o", self.path("parts"), "--force")
                self.run_tool("convert", "--to", "rdb", "--lossy", "--for", "redis-2.8", path,
                              "-o", self.path("converted"), "--force")
                self.run_tool("sum", "--crc64", path)

    def logs(self):
        one = command(b"SET", b"k", b"v")
        yield "command", one
        yield "torn", one + b"*"
        yield "torn-by-one", one + one[:-1]
        yield "unknown", one + command(b"WHATISIT", b"k")
        yield "open-transaction", one + command(b"MULTI") + one
        yield "failing", one + command(b"LPUSH", b"k", b"v")
        yield "zero", one + b"\0"
        yield "damaged", one + b"?" + one
        yield "damaged-inside", one + one.replace(b"$1", b"$x", 1) + one
        yield "annotated", b"#TS:1\r\n" + one
        yield "with-snapshot", snapshot([Key(b"s", STRING, b"v")]) + one

    def test_logs(self):
        for name, content in self.logs():
            with self.subTest(name):
                path = self.write(name + ".aof", content)
                self.run_tool("check-aof", "-v", path)
                self.run_tool("check-aof", "--salvage", self.path("saved.aof"), "--force", "-v",
                              path)
                self.run_tool("check-aof", "--fix", "--dry-run", path)
                self.run_tool("check-aof", "--fix", "--yes", "--force",
                              self.write("fixed.aof", content))
                self.run_tool("show", path)
                self.run_tool("show", "--stats", path)
                self.run_tool("show", "--count", path)
                self.run_tool("stat", "--from", "aof", path)
                self.run_tool("convert", "--to", "rdb", "--from", "aof", path,
                              "-o", self.path("converted"), "--force")

    def test_sums(self):
        path = self.write("one", b"x")
        line = self.run_tool("sum", path, status=0)
        self.write("list", line.encode() + b"malformed\n")
        self.run_tool("sum", "-c", self.path("list"))
        self.write("one", b"y")
        self.run_tool("sum", "-c", self.path("list"), status=1)
        os.remove(path)
        self.run_tool("sum", "-c", self.path("list"))

    def test_backups(self):
        path = self.write("one.rdb", snapshot([Key(b"k", STRING, b"v", expire_ms=FUTURE)]))
        os.mkdir(self.path("repository"), 0o700)
        config = self.write("redoubt.conf",
                            f"[one]\nsource = {path}\nrepository = {self.path('repository')}\n"
                            f"keep = count 1\nspool = {self.path('spool')}\n".encode())
        for args in (("backup",), ("list", "-v"), ("verify", "--level", "parse"), ("prune",),
                     ("restore", "--to", self.path("restored.rdb")), ("backup",), ("prune",),
                     ("prune", "--confirm"), ("list",)):
            self.run_tool(args[0], "--config", config, *args[1:], status=0)
        self.run_tool("doctor", self.folder.name)
        self.run_tool("doctor", self.write("no-folder", struct.pack("B", 1)))


if __name__ == "__main__":
    unittest.main()
