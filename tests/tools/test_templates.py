"""Hashes that share their field names (Redis 8.10), through the tools.

The program is $REDOUBT. The files are made here, by docs/format/rdb.md.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from capture_case import encode  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
LP, LP_REF, ARRAY, ARRAY_REF = 29, 30, 31, 32


def length(n):
    return bytes([n]) if n < 64 else bytes([0x40 | n >> 8, n & 255])


def string(text):
    return length(len(text)) + text


def listpack(*items):
    body = b""
    for item in items:
        entry = bytes([item]) if isinstance(item, int) else bytes([0x80 | len(item)]) + item
        body += entry + bytes([len(entry)])
    size = 6 + len(body) + 1
    return size.to_bytes(4, "little") + len(items).to_bytes(2, "little") + body + b"\xff"


def template(number, *names):
    return b"\xf2" + length(number) + length(len(names)) + b"".join(map(string, names))


def names_of(*names):
    return b"\x01" + length(len(names)) + b"".join(map(string, names))


def packed(key, number, *values):
    return bytes([LP_REF]) + string(key) + string(listpack(number, *values))


def listed(key, number, *values):
    return bytes([ARRAY_REF]) + string(key) + length(number) + b"".join(map(string, values))


def plain(key, value):
    return b"\x00" + string(key) + string(value)


def snapshot(*records, version=15):
    return b"REDIS%04d" % version + b"".join(records) + b"\xff" + bytes(8)


DB = b"\xfe\x00"
TWO = (template(0, b"age", b"city", b"name"), template(1, b"x", b"yy"))
FILE = snapshot(*TWO, DB, packed(b"h1", 0, b"1", b"b", b"c"), listed(b"h2", 1, b"p", b"q"),
                plain(b"s", b"v"), packed(b"h3", 1, b"r", b"t"))
VALUES = {"h1": {"age": "1", "city": "b", "name": "c"}, "h2": {"x": "p", "yy": "q"}, "s": "v",
          "h3": {"x": "r", "yy": "t"}}
PAYLOAD = (b"\x1d\x00" + string(listpack(b"field1", b"field2")) + string(listpack(0, 1, 2))
           + b"\x0f\x00" + bytes(8))


class Templates(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name, data=None):
        path = os.path.join(self.folder, name)
        if data is not None:
            with open(path, "wb") as f:
                f.write(data)
        return path

    def run_tool(self, *args, expect=0):
        done = subprocess.run([REDOUBT, *args], capture_output=True, check=False)
        self.assertEqual(done.returncode, expect, (done.stdout[:500], done.stderr.decode()))
        return done.stdout, done.stderr.decode()

    def values(self, path):
        out, _ = self.run_tool("convert", "--to", "ndjson", path)
        return {line["key"]: line["value"] for line in map(json.loads, out.splitlines())}

    def converted(self, path, *options):
        out = self.path("out.rdb")
        self.run_tool("convert", "--force", "--to", "rdb", *options, path, "-o", out)
        self.run_tool("check-rdb", out)
        return out

    def test_a_check_counts_them(self):
        path = self.path("a.rdb", FILE)
        file = json.loads(self.run_tool("check-rdb", "--json", path)[0])["files"][0]
        self.assertEqual((file["verdict"], file["keys"], file["templates"]), ("ok", 4, 2))
        text, _ = self.run_tool("check-rdb", path)
        self.assertIn(b"2 lists of field names that hashes share", text)

    def test_hashes_have_their_fields(self):
        self.assertEqual(self.values(self.path("a.rdb", FILE)), VALUES)
        stat = json.loads(self.run_tool("stat", "--json", self.path("a.rdb"))[0])
        self.assertEqual([(kind["type"], kind["keys"], kind["elements"]) for kind in stat["types"]],
                         [("string", 1, 1), ("hash", 3, 7)])

    def test_parts_that_are_read_at_once_know_the_templates(self):
        records, want = [], {}
        for i in range(70000):
            text = b"%d" % i
            kind = i % 3
            records.append(plain(b"s" + text, text) if kind == 0
                           else packed(b"p" + text, 0, text, b"b", b"c") if kind == 1
                           else listed(b"l" + text, 1, text, b"q"))
            want["spl"[kind] + str(i)] = (
                str(i) if kind == 0 else {"age": str(i), "city": "b", "name": "c"} if kind == 1
                else {"x": str(i), "yy": "q"})
        data = snapshot(*TWO, DB, *records)
        self.assertGreater(len(data), 1 << 20)
        self.assertEqual(self.values(self.path("big.rdb", data)), want)

    def test_other_targets_get_plain_hashes(self):
        path = self.path("a.rdb", FILE)
        for target in ("redis-5.0", "redis-7.0", "redis-8.6", "redis-8.10", "valkey-8",
                       "valkey-9"):
            out = self.converted(path, "--for", target)
            self.assertEqual(self.values(out), VALUES)
            self.run_tool("diff", path, out)
            file = json.loads(self.run_tool("check-rdb", "--json", out)[0])["files"][0]
            self.assertEqual(file["templates"], 0)
        self.assertEqual(self.values(self.converted(path, "--rewrite")), VALUES)
        self.assertEqual(self.values(self.converted(path, "--match", "h*")),
                         {key: value for key, value in VALUES.items() if key != "s"})

    def test_payloads_for_the_server_that_has_them_contain_the_names(self):
        path = self.path("a.rdb", FILE)
        out, _ = self.run_tool("convert", "--to", "resp", "--restore", "--for", "redis-8.10", path)
        self.assertIn(b"\x1d" + names_of(b"age", b"city", b"name")
                      + string(listpack(0, b"1", b"b", b"c")) + b"\x0f\x00", out)
        self.assertIn(b"\x1f" + names_of(b"x", b"yy") + b"\x01p\x01q\x0f\x00", out)
        out, _ = self.run_tool("convert", "--to", "resp", "--restore", "--for", "redis-8.0", path)
        self.assertIn(b"\x10" + string(listpack(b"x", b"p", b"yy", b"q")) + b"\x0c\x00", out)

    def test_equal_bytes_of_other_templates_are_different(self):
        value = packed(b"h", 0, b"1", b"2")
        a = self.path("a.rdb", snapshot(template(0, b"a", b"b"), DB, value))
        b = self.path("b.rdb", snapshot(template(0, b"a", b"c"), DB, value))
        out, _ = self.run_tool("diff", a, b, expect=1)
        self.assertIn(b"different", out)
        c = self.path("c.rdb", snapshot(template(0, b"z"), template(1, b"a", b"b"), DB,
                                        packed(b"h", 1, b"1", b"2")))
        d = self.path("d.rdb", snapshot(DB, b"\x04\x01h\x02\x01b\x012\x01a\x011"))
        for other in (c, d):
            self.run_tool("diff", a, other)
            self.run_tool("diff", other, a)

    def test_parts_of_a_file_and_several_in_one_keep_the_names(self):
        a = self.path("a.rdb", FILE)
        self.run_tool("split", "--by", "slot-range", "--slots", "4", a, "-o", self.path("parts"))
        parts = [self.path(f"parts/{name}") for name in os.listdir(self.path("parts"))
                 if name.endswith(".rdb")]
        self.assertEqual(len(parts), 4)
        found = {}
        for part in parts:
            self.run_tool("check-rdb", part)
            found.update(self.values(part))
        self.assertEqual(found, VALUES)
        b = self.path("b.rdb", snapshot(template(0, b"other"), DB, listed(b"g", 0, b"w")))
        merged = self.path("m.rdb")
        self.run_tool("merge", a, b, "-o", merged)
        self.run_tool("check-rdb", merged)
        self.assertEqual(self.values(merged), {**VALUES, "g": {"other": "w"}})
        self.run_tool("merge", "--force", "--rdb-version", "11", a, b, "-o", merged)
        self.assertEqual(self.values(merged), {**VALUES, "g": {"other": "w"}})

    def test_a_log_can_begin_with_them_and_restore_them(self):
        folder = self.path("log")
        os.mkdir(folder)
        self.path("log/a.aof.1.base.rdb", FILE)
        self.path("log/a.aof.1.incr.aof", encode("SELECT", "0") + encode("HSET", "h2", "yy", "2")
                  + encode("RESTORE", "r", "0", PAYLOAD.decode("latin-1"))
                  .replace(PAYLOAD.decode("latin-1").encode(), PAYLOAD)
                  .replace(b"$%d\r\n" % len(PAYLOAD.decode("latin-1").encode()),
                           b"$%d\r\n" % len(PAYLOAD)))
        self.path("log/a.aof.manifest", b"file a.aof.1.base.rdb seq 1 type b\n"
                  b"file a.aof.1.incr.aof seq 1 type i\n")
        self.run_tool("check-aof", folder)
        self.assertEqual(self.values(folder), {**VALUES, "h2": {"x": "p", "yy": "2"},
                                               "r": {"field1": "1", "field2": "2"}})

    def test_salvage_saves_a_file_that_is_sound(self):
        keys = [packed(b"h%03d" % i, 0, b"%d" % i, b"b", b"c") for i in range(200)]
        data = snapshot(*TWO, DB + b"\xfb\x40\xc8\x00", *keys)
        broken = data.replace(b"h100", b"h100\xc9\xc9", 1)
        out = self.path("saved.rdb")
        self.run_tool("check-rdb", "--salvage", out, self.path("b.rdb", broken), expect=8)
        self.run_tool("check-rdb", out)
        saved = self.values(out)
        self.assertGreater(len(saved), 190)
        for key, value in saved.items():
            self.assertEqual(value, {"age": str(int(key[1:])), "city": "b", "name": "c"})

    def test_names_that_servers_refuse_can_still_be_read(self):
        path = self.path("u.rdb", snapshot(template(0, b"bb", b"a"), DB,
                                           listed(b"h", 0, b"1", b"2")))
        out, _ = self.run_tool("check-rdb", path, expect=1)
        self.assertIn(b"unsorted-template", out)
        self.assertEqual(self.values(path), {"h": {"bb": "1", "a": "2"}})


if __name__ == "__main__":
    unittest.main()
