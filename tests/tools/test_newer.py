"""Files of servers that are newer than those with which most tests were made: Redis 8 and Valkey 9.

The program is $REDOUBT, the files are under $REDOUBT_FIXTURES. Where no server is available,
the files are made here.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import report_text  # noqa: E402
import vectorset  # noqa: E402
from capture_case import encode  # noqa: E402
from fake_server import crc64  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")


def fixture(*names):
    return os.path.join(FIXTURES, *names)


class NewerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name, data=None):
        path = os.path.join(self.folder, name)
        if data is not None:
            with open(path, "wb") as f:
                f.write(data)
        return path

    def run_tool(self, *args, expect=0, stdin=b""):
        done = subprocess.run([REDOUBT, *args], capture_output=True, check=False, input=stdin)
        self.assertEqual(done.returncode, expect, (done.stdout[:500], done.stderr.decode()))
        return done.stdout, done.stderr.decode()

    def lines(self, *args):
        out, _ = self.run_tool("convert", "--to", "ndjson", *args)
        return [json.loads(line) for line in out.splitlines()]


def enveloped(data, codec):
    """As Valkey 9.2 compresses a whole file: 1 is LZ4, 2 is Zstandard."""
    program = {1: "lz4", 2: "zstd"}[codec]
    packed = subprocess.run([program, "-q", "-c"], input=data, capture_output=True, check=True)
    return b"VCS\x01" + bytes((codec, 0, 1)) + packed.stdout


class Envelopes(NewerTest):
    def setUp(self):
        super().setUp()
        with open(fixture("valkey-9.1.2", "hash-ttl.rdb"), "rb") as f:
            self.data = f.read()

    def test_a_snapshot_in_an_envelope_is_read_by_every_tool(self):
        plain = self.path("plain.rdb", self.data)
        want = self.lines(plain)
        for codec in (1, 2):
            path = self.path(f"{codec}.rdb", enveloped(self.data, codec))
            out, _ = self.run_tool("check-rdb", "--json", path)
            self.assertEqual(json.loads(out)["files"][0]["keys"], len(want))
            self.assertEqual(self.lines(path), want)
            self.run_tool("diff", path, plain)
            self.run_tool("stat", path)

    def test_a_damaged_one_is_damaged(self):
        whole = enveloped(self.data, 2)
        self.run_tool("check-rdb", self.path("cut.rdb", whole[:-100]), expect=1)

    def test_a_container_of_an_unknown_kind_is_not_supported(self):
        for head in (b"VCS\x02\x01\x00\x01", b"VCS\x01\x07\x00\x01", b"VCS\x01\x01\x00\x02"):
            path = self.path("other.rdb", head + b"\x04\x22\x4d\x18 and more")
            for tool in ("check-rdb", "stat", "convert"):
                args = ("--to", "ndjson") if tool == "convert" else ()
                self.run_tool(tool, *args, path, expect=4)

    def log(self, base):
        folder = self.path("log")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        self.path("log/appendonly.aof.1.base.rdb", base)
        self.path("log/appendonly.aof.1.incr.aof", encode("SELECT", "0") + encode("SET", "z", "1"))
        self.path("log/appendonly.aof.manifest",
                  b"file appendonly.aof.1.base.rdb seq 1 type b\n"
                  b"file appendonly.aof.1.incr.aof seq 1 type i\n")
        return folder

    def test_the_base_of_a_log_can_be_an_envelope(self):
        folder = self.log(enveloped(self.data, 1))
        self.run_tool("check-aof", folder)
        self.assertIn("z", [line["key"] for line in self.lines(folder)])
        _, err = self.run_tool("check-aof", "--salvage", self.path("out"), folder, expect=4)
        self.assertIn("a base in a compressed envelope cannot be salvaged", err)
        self.run_tool("check-aof", self.log(b"VCS\x02\x01\x00\x01more"), expect=4)


class Imports(NewerTest):
    def test_keys_that_are_being_imported_are_named(self):
        job = b"0123456789abcdef0123456789abcdef01234567"
        records = b"\xf3\x28" + job + b"\x02\x00\x00\x7f\xff\x7f\xff" + b"\xfe\x00"
        keys = b"".join(b"\x00\x03%s\x01v" % name for name in (b"q_1", b"abc", b"foo"))
        path = self.path("x.rdb", b"VALKEY080" + records + keys + b"\xff" + bytes(8))
        out, _ = self.run_tool("check-rdb", "--json", path)
        file = json.loads(out)["files"][0]
        self.assertEqual((file["keys"], file["slot_imports"], file["imported_keys"]), (3, 1, 0))
        records = records.replace(b"\x02\x00\x00", b"\x02\x00\x7f\xfe")
        path = self.path("y.rdb", b"VALKEY080" + records + keys + b"\xff" + bytes(8))
        out = report_text.unwrapped(self.run_tool("check-rdb", path)[0].decode())
        self.assertIn("slot-import", out)
        self.assertIn(job.decode(), out)
        self.assertIn("slots 0-16382, 16383-16383", out)
        self.assertIn("the 3 keys of these slots belong to another node", out)


class Header16(NewerTest):
    """Redis 8.12: read as far as the types are known."""

    def file(self, *records):
        return self.path("v16.rdb", b"REDIS0016\xfe\x00" + b"".join(records) + b"\xff" + bytes(8))

    def test_known_types_are_read_with_a_note(self):
        path = self.file(b"\x00\x01k\x01v")
        out, _ = self.run_tool("check-rdb", path)
        self.assertIn(b"partly-known-version", out)
        self.assertEqual([line["value"] for line in self.lines(path)], ["v"])

    def test_an_unknown_type_is_not_damage(self):
        path = self.file(b"\x00\x01k\x01v", b"\x22\x02bm\x00\x08" + bytes(8))
        _, err = self.run_tool("check-rdb", path, expect=4)
        self.assertIn("value type 34 is not known", err)
        self.run_tool("convert", "--to", "ndjson", path, expect=4)

    def test_the_version_tool_says_what_is_read(self):
        out, _ = self.run_tool("version", "--json")
        redis = json.loads(out)["features"]["rdb_versions"]["redis"]
        self.assertEqual((redis["max"], redis["whole"], redis["written"]), (16, 15, 15))

    def test_the_version_tool_lists_the_types_and_opcodes_that_the_reader_takes(self):
        out, _ = self.run_tool("version", "--json")
        for dialect, magic in (("redis", b"REDIS0016"), ("valkey", b"VALKEY081")):
            said = json.loads(out)["features"]["rdb_versions"][dialect]
            numbers = said["types"] + said["opcodes"]
            self.assertEqual(len(numbers), len(set(numbers)))
            for number in range(256):
                after = b"\x01k\x01vvvvvvvvv"
                if number in (107, 121): # of Redis Enterprise: another record follows
                    after = b"\x01\x00\x01k\x01v\xff" + bytes(8)
                path = self.path("one.rdb", magic + bytes((0xfe, 0, number)) + after)
                done = subprocess.run([REDOUBT, "check-rdb", path], capture_output=True,
                                      check=False)
                unknown = re.search(rf"(value type|opcode) {number} (is not known|does not exist)",
                                    done.stderr.decode())
                self.assertEqual(unknown is None, number in numbers, (dialect, number, done))

    def test_tools_warn_of_a_version_that_may_have_more_types(self):
        path = self.file(b"\x00\x01k\x01v")
        older = self.path("old.rdb", b"REDIS0015\xfe\x00\x00\x01k\x01v\xff" + bytes(8))
        newer = self.path("v81.rdb", b"VALKEY081\xfe\x00\x00\x01k\x01v\xff" + bytes(8))
        for tool in (("stat",), ("convert", "--to", "ndjson"), ("diff", older), ("diff", newer),
                     ("convert", "--to", "resp"), ("merge", "-o", self.path("m.rdb")),
                     ("split", "--by", "db", "-o", self.path("parts"))):
            _, err = self.run_tool(*tool, path)
            self.assertEqual(err.count("is read as far as its types are known"),
                             1 + (newer in tool), tool)
            self.assertIn("RDB version 16 (Redis 8.12)", err)
        _, err = self.run_tool("stat", older)
        self.assertEqual(err, "")


def bitmap(size, *bits):
    """Type 33: the bits below 65536 of a string of `size` bytes."""
    members = b"".join(struct.pack("<H", bit) for bit in bits)
    form = struct.pack("<QIIIHHI", 1, 0, 12346, 1, 0, len(bits) - 1, 16) + members
    length = bytes([size]) if size < 64 else b"\x81" + struct.pack(">Q", size)
    return length + bytes([len(form)]) + form


class Bitmaps(NewerTest):
    """Redis 8.12, by docs/format/rdb.md."""

    def file(self, name, *values):
        keys = b"".join(b"\x21\x02k%d" % i + value for i, value in enumerate(values))
        return self.path(name, b"REDIS0016\xfe\x00" + keys + b"\xff" + bytes(8))

    def setUp(self):
        super().setUp()
        self.two = self.file("two.rdb", bitmap(2, 1, 7, 9), bitmap(1, 7))

    def test_they_are_strings(self):
        lines = self.lines("--strings", "base64", self.two)
        self.assertEqual([(line["type"], line["encoding"], line["value"]) for line in lines],
                         [("string", "bitmap", "QUA="), ("string", "bitmap", "AQ==")])
        out, _ = self.run_tool("stat", "--json", self.two)
        (kind,) = json.loads(out)["types"]
        self.assertEqual((kind["type"], kind["keys"]), ("string", 2))
        out, _ = self.run_tool("convert", "--to", "resp", self.two)
        self.assertIn(b"SET\r\n$2\r\nk0\r\n$2\r\nA\x40\r\n", out)

    def test_other_versions_get_strings(self):
        for target in ("redis-2.8", "redis-7.2", "redis-8.10", "valkey-9.2"):
            out = self.path(target)
            self.run_tool("convert", "--to", "rdb", "--for", target, self.two, "-o", out)
            self.run_tool("diff", self.two, out)
            self.assertEqual([line["encoding"] for line in self.lines(out)], ["string"] * 2)

    def test_lines_are_read_back_as_strings(self):
        text, _ = self.run_tool("convert", "--to", "ndjson", self.two)
        lines, out = self.path("two.ndjson", text), self.path("back.rdb")
        self.run_tool("convert", "--to", "rdb", lines, "-o", out)
        self.run_tool("diff", self.two, out)

    def test_other_bits_are_a_difference(self):
        other = self.file("other.rdb", bitmap(2, 1, 7, 10), bitmap(1, 7))
        out, _ = self.run_tool("diff", self.two, other, expect=1)
        self.assertIn(b"k0", out)
        self.assertNotIn(b"k1", out)

    def test_the_same_version_gets_a_copy(self):
        out = self.path("out.rdb")
        self.run_tool("convert", "--to", "rdb", "--match", "k1", self.two, "-o", out)
        self.assertEqual([line["encoding"] for line in self.lines(out)], ["bitmap"])

    def test_a_payload_has_one(self):
        payload = b"\x21" + bitmap(2, 1, 7, 9) + b"\x10\x00" + bytes(8)
        command = b"*4\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n$%d\r\n" % len(payload)
        (line,) = self.lines("--strings", "base64",
                             self.path("x.aof", command + payload + b"\r\n"))
        self.assertEqual(line["value"], "QUA=")

    def test_one_that_no_string_holds_is_verified_and_copied(self):
        path = self.file("long.rdb", bitmap(1 << 40, 1), bitmap(1, 7))
        self.run_tool("check-rdb", path)
        out = self.path("out.rdb")
        self.run_tool("convert", "--to", "rdb", path, "-o", out)
        self.run_tool("check-rdb", out)
        for options in (("--to", "ndjson"), ("--to", "rdb", "--for", "redis-8.10")):
            _, err = self.run_tool("convert", *options, path, "-o", self.path("none"), expect=4)
            self.assertIn("longer than a string can be", err)


class PathHashes(NewerTest):
    """Valkey 9.2, by docs/format/rdb.md: a hash for each path."""

    def text(self, data):
        return bytes([len(data)]) + data

    def file(self, name, *keys, after=b""):
        body = b""
        for key, paths in keys:
            body += b"\x17" + self.text(key) + bytes([len(paths)])
            for path, fields in paths.items():
                body += self.text(path) + bytes([len(fields)])
                body += b"".join(self.text(x) for pair in fields.items() for x in pair)
        return self.path(name, b"VALKEY081\xfe\x00" + body + after + b"\xff" + bytes(8))

    def setUp(self):
        super().setUp()
        self.two = {b"/a": {b"f": b"v"}, b"/b": {b"f": b"w", b"g": b"x"}}
        self.one = self.file("one.rdb", (b"p", self.two), (b"q", {b"": {b"": b""}}),
                             after=b"\x00\x01s\x01v")

    def test_lines_have_an_object_for_each_path(self):
        lines = self.lines(self.one)
        self.assertEqual([(line["encoding"], line["value"]) for line in lines[:2]],
                         [("path_hash", {"/a": {"f": "v"}, "/b": {"f": "w", "g": "x"}}),
                          ("path_hash", {"": {"": ""}})])

    def test_lines_are_read_back(self):
        for form in ("utf8", "base64"):
            text, _ = self.run_tool("convert", "--to", "ndjson", "--meta", "--strings", form,
                                    self.one)
            lines, out = self.path("one.ndjson", text), self.path("back.rdb")
            self.run_tool("convert", "--to", "rdb", "--force", "--strings", form, lines, "-o", out)
            with open(self.one, "rb") as a, open(out, "rb") as b:
                self.assertEqual(a.read()[:-8], b.read()[:-8])
        _, err = self.run_tool("convert", "--to", "rdb", "--rdb-version", "12", lines,
                               "--strings", "base64", "-o", self.path("none"), expect=4)
        self.assertIn('"p"', err)
        for wrong in ('{"a":"b"}', '{"a":{}}', '{"a":{"f":1}}', '[]', '{"a":{"f":"v"}'):
            line = ('{"rdb":{"version":81,"dialect":"valkey"}}\n{"db":0,"key":"k","type":"hash",'
                    f'"encoding":"path_hash","value":{wrong}}}\n').encode()
            self.run_tool("convert", "--to", "rdb", "--input-format", "ndjson", "-", "-o",
                          self.path("none"), stdin=line, expect=1)

    def test_what_is_written_anew_is_the_same(self):
        many = {b"path %d" % i: {b"f%d" % j: b"v" for j in range(1 + i % 7)} for i in range(40)}
        path, out = self.file("many.rdb", (b"m", many)), self.path("out.rdb")
        self.run_tool("convert", "--to", "rdb", "--rewrite", path, "-o", out)
        self.run_tool("check-rdb", out)
        with open(path, "rb") as a, open(out, "rb") as b:
            self.assertEqual(a.read()[:-8], b.read()[:-8])

    def test_other_targets_refuse_them_by_name(self):
        for server in ("redis-8.10", "valkey-9", "redis-2.8"):
            _, err = self.run_tool("convert", "--to", "rdb", "--for", server, self.one, "-o",
                                   self.path("none"), expect=4)
            self.assertIn("path hash", err)
            self.assertIn('"p"', err)
        _, err = self.run_tool("convert", "--to", "resp", self.one, expect=4)
        self.assertIn("path hash", err)

    def test_a_difference_names_path_and_field(self):
        other = self.file("other.rdb",
                          (b"p", {b"/a": {b"f": b"w"}, b"/b": {b"f": b"w", b"h": b"x"}}),
                          (b"q", {b"": {b"": b""}}), after=b"\x00\x01s\x01v")
        self.run_tool("diff", self.one, self.one)
        out, _ = self.run_tool("diff", "--values", self.one, other, expect=1)
        text = out.decode()
        for words in ("1 different", 'field "/a f"', 'field "/b g" only in A',
                      'field "/b h" only in B'):
            self.assertIn(words, text)
        moved = self.file("moved.rdb",
                          (b"p", {b"/a": {b"f": b"w"}, b"/b": {b"f": b"v", b"g": b"x"}}),
                          (b"q", {b"": {b"": b""}}), after=b"\x00\x01s\x01v")
        self.run_tool("diff", self.one, moved, expect=1)

    def test_the_other_tools_read_them(self):
        out, _ = self.run_tool("stat", "--json", self.one)
        types = {row["type"]: row for row in json.loads(out)["types"]}
        self.assertEqual((types["hash"]["keys"], types["hash"]["elements"]), (2, 4))
        out, _ = self.run_tool("check-rdb", "--json", self.one)
        self.assertEqual(json.loads(out)["files"][0]["keys"], 3)
        out = self.path("out.rdb")
        self.run_tool("convert", "--to", "rdb", "--match", "q", self.one, "-o", out)
        self.assertEqual([line["key"] for line in self.lines(out)], ["q"])
        with open(self.one, "rb") as file:
            data = file.read()
        cut = self.path("cut.rdb", data[:data.index(b"\x00\x01s\x01v")] + b"\x63")
        self.run_tool("check-rdb", "--salvage", self.path("saved.rdb"), cut, expect=8)
        self.assertEqual(self.lines(self.path("saved.rdb")), self.lines(self.one)[:2])


class Updates(NewerTest):
    """Commands among the keys, in the snapshot of a replication stream of Valkey 9.2."""

    def snapshot(self, *commands, end=b"\xff" + bytes(8)):
        keys = b"\x00\x01k\x01v\x00\x01j\x01w"
        return (b"VALKEY081\xfe\x00\xfb\x01\x00" + keys +
                b"".join(b"\xf2" + encode(*words) for words in commands) +
                b"\x00\x01k\x01x\xfe\x03" + b"\xf2" + encode("SET", "m", "1") + end)

    def test_the_check_reads_them(self):
        path = self.path("x.rdb", self.snapshot(("APPEND", "k", "w"), ("DEL", "j")))
        out, _ = self.run_tool("check-rdb", path)
        self.assertIn(b"sound", out)
        data = self.snapshot(("SET", "k", "w"))
        for wrong in (data.replace(b"$3\r\nSET", b"$03\r\nSET", 1), data.replace(b"*3", b"*0", 1),
                      data.replace(b"\r\n$1\r\nk", b"..$1\r\nk", 1), data[:40]):
            self.run_tool("check-rdb", self.path("bad.rdb", wrong), expect=1)

    def test_keys_alone_are_not_the_data(self):
        path = self.path("x.rdb", self.snapshot(("SET", "k", "w")))
        for tool in (("convert", "--to", "ndjson"), ("stat",), ("diff", path),
                     ("convert", "--to", "rdb", "-o", self.path("none"))):
            _, err = self.run_tool(*tool, path, expect=4)
            self.assertIn("a command among the keys (UPDATE)", err)

    def test_a_replay_runs_them(self):
        folder = self.path("log")
        os.mkdir(folder)
        self.path("log/appendonly.aof.1.base.rdb",
                  self.snapshot(("APPEND", "k", "w"), ("DEL", "j"), ("ARSET", "a", "0", "v")))
        self.path("log/appendonly.aof.1.incr.aof", encode("SELECT", "0") + encode("SET", "z", "1"))
        self.path("log/appendonly.aof.manifest",
                  b"file appendonly.aof.1.base.rdb seq 1 type b\n"
                  b"file appendonly.aof.1.incr.aof seq 1 type i\n")
        out, err = self.run_tool("convert", "--to", "ndjson", folder, expect=8)
        self.assertIn('"a"', err)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual({(line["db"], line["key"]): line["value"] for line in lines},
                         {(0, "k"): "x", (0, "z"): "1", (3, "m"): "1"})


class Logs(NewerTest):
    def test_a_payload_without_a_checksum_is_replayed(self):
        payload = b"\x00\x05hello" + b"\x0d\x00" + bytes(8)
        command = b"*4\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n$%d\r\n" % len(payload)
        path = self.path("z.aof", encode("SELECT", "0") + command + payload + b"\r\n")
        self.assertEqual([line["value"] for line in self.lines(path)], ["hello"])

    def test_commands_of_newer_servers_are_run(self):
        path = self.path("n.aof", encode("INCREX", "n", "BYINT", "7", "UBOUND", "5", "SATURATE")
                         + encode("RPUSH", "l", "a", "b") + encode("ZADD", "z", "1", "m")
                         + encode("LMOVEM", "l", "to", "LEFT", "RIGHT", "COUNT", "2", "BULK")
                         + encode("ZMOVE", "z", "y", "MIN"))
        _, err = self.run_tool("check-aof", path)
        self.assertEqual(err, "")
        self.assertEqual({line["key"]: line["value"] for line in self.lines(path)},
                         {"n": "5", "to": ["a", "b"], "y": [["m", 1]]})

    def test_of_commands_that_are_not_run_the_keys_are_unknown(self):
        path = self.path("u.aof", encode("SET", "k", "1") + encode("ARSET", "a", "0", "v")
                         + encode("PHMSET", "p", "x", "FIELDS", "1", "f", "v")
                         + encode("SPEXPIREAT", "s", "1", "MEMBERS", "1", "m"))
        known = self.path("k.aof", encode("SET", "k", "1"))
        _, err = self.run_tool("check-aof", path)
        self.assertIn('cannot run "ARSET"', err)
        for tool, *args in (("convert", "--to", "ndjson", path), ("stat", path),
                            ("convert", "--to", "rdb", path, "-o", self.path("o.rdb")),
                            ("diff", path, known)):
            out, err = self.run_tool(tool, *args, expect=8)
            for key in "aps":
                self.assertIn(f'"{key}"', err)
            if args[:2] == ("--to", "ndjson"):
                self.assertEqual([json.loads(x)["key"] for x in out.splitlines()], ["k"])


class Kept(NewerTest):
    """Values that the dataset of a replay keeps as their bytes, because no command runs on them."""

    ARRAY = b"\x01\x00\x05\x00\x01v"  # one item, no insertion point, index 5: "v"
    PATHS = b"\x01\x02/a\x01\x01f\x01v"  # one path with one field

    def log(self, header, kind, value, *commands):
        folder = self.path("log")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        base = header + b"\xfe\x00" + kind + b"\x01a" + value + b"\x00\x01s\x01v\xff" + bytes(8)
        self.path("log/appendonly.aof.1.base.rdb", base)
        self.path("log/appendonly.aof.1.incr.aof",
                  b"".join(encode(*words) for words in commands))
        self.path("log/appendonly.aof.manifest",
                  b"file appendonly.aof.1.base.rdb seq 1 type b\n"
                  b"file appendonly.aof.1.incr.aof seq 1 type i\n")
        return folder

    def array_log(self, *commands):
        return self.log(b"REDIS0014", b"\x1c", self.ARRAY, *commands)

    def test_a_log_with_arrays_is_replayed(self):
        log = self.array_log(("SET", "s", "2"), ("COPY", "a", "b"), ("RENAME", "a", "c"),
                             ("PEXPIREAT", "c", "4102444800000"), ("COPY", "b", "d"),
                             ("DEL", "d"))
        self.run_tool("check-aof", log)
        items = [[5, "v"]]
        self.assertEqual({line["key"]: (line["type"], line["value"], line.get("expire_ms"))
                          for line in self.lines(log)},
                         {"s": ("string", "2", None), "b": ("array", items, None),
                          "c": ("array", items, 4102444800000)})
        out = self.path("out.rdb")
        self.run_tool("convert", "--to", "rdb", log, "-o", out)
        with open(out, "rb") as file:
            self.assertIn(b"\x1c\x01b" + self.ARRAY, file.read())
        self.run_tool("diff", log, out)
        self.run_tool("stat", log)

    def test_a_command_of_the_type_makes_the_key_unknown(self):
        log = self.array_log(("COPY", "a", "b"), ("ARSET", "a", "0", "x"))
        out, err = self.run_tool("convert", "--to", "ndjson", log, expect=8)
        self.assertIn('"a"', err)
        self.assertEqual([json.loads(line)["key"] for line in out.splitlines()], ["s", "b"])

    def test_a_target_without_the_type_refuses_it_by_name(self):
        for server in ("redis-7.2", "redis-8.6", "valkey-9.2"):
            _, err = self.run_tool("convert", "--to", "rdb", "--for", server, self.array_log(),
                                   "-o", self.path("none"), expect=4)
            self.assertIn('array "a"', err)

    def test_payloads_are_kept_with_their_dialect(self):
        for payload, head in ((b"\x1c" + self.ARRAY + b"\x0e\x00", b"REDIS0014"),
                              (b"\x17" + self.PATHS + b"\x51\x00", b"VALKEY081")):
            payload += struct.pack("<Q", crc64(payload))
            command = b"*4\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n$%d\r\n" % len(payload)
            log, out = self.path("x.aof", command + payload + b"\r\n"), self.path("x.rdb")
            self.run_tool("convert", "--to", "rdb", "--force", log, "-o", out)
            with open(out, "rb") as file:
                data = file.read()
            self.assertTrue(data.startswith(head), data)
            self.assertIn(payload[:1] + b"\x01k" + payload[1:-10], data)

    def test_a_log_with_path_hashes_is_replayed(self):
        log = self.log(b"VALKEY081", b"\x17", self.PATHS, ("COPY", "a", "b"), ("DEL", "s"))
        out = self.path("out.rdb")
        self.run_tool("convert", "--to", "rdb", log, "-o", out)
        with open(out, "rb") as file:
            data = file.read()
        self.assertIn(b"\x17\x01a" + self.PATHS, data)
        self.assertIn(b"\x17\x01b" + self.PATHS, data)
        self.assertTrue(data.startswith(b"VALKEY081"))


META = "f30109f5c42805086d6574612d6f6e650201030000c03f05c30f16043078612e61e00300043965702d3500"


class Written(NewerTest):
    """RDB 13 of Redis 8.6: metadata of keys, and streams with idempotent entries."""

    def setUp(self):
        super().setUp()
        self.km = fixture("redis-8.6.3", "km.rdb")

    def same(self, path, other):
        self.run_tool("diff", path, other)
        self.assertEqual([line.get("key_meta") for line in self.lines(path)],
                         [line.get("key_meta") for line in self.lines(other)])

    def test_what_is_written_anew_is_the_same(self):
        for name in ("km", "idmp13", "r13"):
            path, out = fixture("redis-8.6.3", f"{name}.rdb"), self.path(name)
            self.run_tool("convert", "--to", "rdb", "--rewrite", "--for", "redis-8.6", path, "-o",
                          out)
            self.run_tool("check-rdb", out)
            self.same(out, path)

    def test_lines_have_the_metadata_of_keys_and_are_read_back(self):
        self.assertEqual(self.lines(self.km)[1]["key_meta"], META)
        for name in ("km", "idmp13"):
            path, out = fixture("redis-8.6.3", f"{name}.rdb"), self.path(name)
            text, err = self.run_tool("convert", "--to", "ndjson", "--meta", path)
            self.assertEqual(err, "")
            self.run_tool("convert", "--input-format", "ndjson", "--to", "rdb", "-", "-o", out,
                          stdin=text)
            self.same(out, path)
        for wrong in ("f3", "f301", META[:-2], META + "00", "00" + META, "f30141424308"):
            line = {"db": 0, "key": "k", "type": "string", "key_meta": wrong, "value": "v"}
            self.run_tool("convert", "--input-format", "ndjson", "--to", "rdb", "-", "-o",
                          self.path("wrong"), stdin=json.dumps(line).encode(), expect=1)

    def test_metadata_stay_with_their_key(self):
        out = self.path("out.rdb")
        self.run_tool("convert", "--to", "rdb", "--match", "a", self.km, "-o", out)
        self.assertEqual([(x["key"], x["key_meta"]) for x in self.lines(out)], [("a", META)])
        self.run_tool("convert", "--to", "rdb", "--match", "s", "--force", self.km, "-o", out)
        self.assertEqual([(x["key"], x.get("key_meta")) for x in self.lines(out)], [("s", None)])
        self.run_tool("split", "--by", "db", self.km, "-o", self.path("parts"))
        self.run_tool("merge", self.path("parts/db-0.rdb"), "-o", out, "--force")
        self.same(out, self.km)

    def test_a_target_without_them_refuses_them_by_name(self):
        for server in ("redis-8.0", "valkey-9", "valkey-9.2"):
            _, err = self.run_tool("convert", "--to", "rdb", "--match", "a", "--for", server,
                                   self.km, "-o", self.path("x"), expect=4)
            self.assertIn("module metadata of a key", err)
        self.run_tool("convert", "--to", "rdb", "--dialect", "valkey", "-o", self.path("x"),
                      fixture("redis-8.0.6", "vectorset.rdb"), expect=4)

    def test_payloads_begin_with_the_metadata(self):
        out, _ = self.run_tool("convert", "--to", "resp", "--restore", "--for", "redis-8.6",
                               self.km)
        self.assertIn(bytes.fromhex(META) + b"\x00\x05hello\x0d\x00", out)


class VectorSets(NewerTest):
    """Redis 8.0.3 began to write nodes in another form, which 8.0.0 to 8.0.2 refuse."""

    def values(self, path, *options):
        out, _ = self.run_tool("convert", "--to", "resp", "--restore", *options, path)
        return vectorset.restored(out)

    def written(self, server, path):
        out = self.path("written.rdb")
        self.run_tool("convert", "--force", "--to", "rdb", "--for", server, path, "-o", out)
        self.run_tool("check-rdb", out)
        return self.values(out)

    def same(self, value, other):
        self.assertEqual((value.dim, value.config, value.projection, value.elements()),
                         (other.dim, other.config, other.projection, other.elements()))

    def test_each_server_gets_nodes_that_it_reads(self):
        for server, form in (("8.0.2", 0), ("8.0.6", 1), ("8.6.3", 1)):
            path = fixture(f"redis-{server}", "vectors.rdb")
            source = self.values(path)
            self.assertEqual(len(source), 5)
            self.assertEqual(set().union(*(v.versions() for v in source.values())), {form})
            for target, most in (("redis-8.0", 0), ("redis-8.0.2", 0), ("redis-8.0.6", 0),
                                 ("redis-8.6", form)):
                for made in (self.written(target, path), self.values(path, "--for", target)):
                    self.assertEqual(list(made), list(source))
                    for key, value in made.items():
                        self.same(value, source[key])
                        self.assertEqual(value.versions(), {most})

    def test_commands_make_them_with_payloads(self):
        for server, form in (("8.0.2", 0), ("8.0.6", 1), ("8.6.3", 1)):
            path = fixture(f"redis-{server}", "vectors.rdb")
            source = self.values(path)
            for more, most in (((), 0), (("--for", "redis-8.0.2"), 0),
                               (("--for", "redis-8.6"), form), (("--rdb-version", "12"), 0)):
                out, _ = self.run_tool("convert", "--to", "resp", *more, path)
                made = vectorset.restored(out)
                self.assertEqual(list(made), list(source))
                for key, value in made.items():
                    self.same(value, source[key])
                    self.assertEqual(value.versions(), {most})
            log = self.path("log.aof", self.run_tool("convert", "--to", "aof", path)[0])
            for key, value in self.values(log).items():
                self.same(value, source[key])
            for target in ("redis-7.4", "valkey-9", "valkey-8"):
                _, err = self.run_tool("convert", "--to", "resp", "--for", target, path, expect=4)
                self.assertRegex(err, 'while reading module "v:[a-zA-Z0-9]*" in db 0')
            self.run_tool("convert", "--to", "resp", "--rdb-version", "11", path, expect=4)

    def test_payloads_among_commands_keep_their_key(self):
        node = {"name": b"e", "attributes": b"", "vector": b"\x7f", "id": 1, "version": 1,
                "length": 2.0, "range": 1.0, "worst": [0], "layers": [(32, [])]}
        body = b"".join(
            b"\x00\x08%08d\xc0\x05" % i + b"\x07\x08v%07d" % i
            + vectorset.composed(vectorset.Value(1, 1 | 16 << 8, None, [dict(node, id=i + 1)]))
            for i in range(9000))
        expiry = b"\xfc" + struct.pack("<q", 4102444800000)
        last = expiry + b"\x07\x01l" + vectorset.composed(vectorset.Value(1, 4097, None, [node]))
        path = self.path("many.rdb", b"REDIS0012\xfe\x03" + body + last + b"\xff" + bytes(8))
        out, _ = self.run_tool("convert", "--to", "resp", "--replace", path)
        made = list(vectorset.commands(out))
        restored = [c for c in made if c[0] == b"RESTORE"]
        self.assertEqual([c[1] for c in restored], [b"v%07d" % i for i in range(9000)] + [b"l"])
        self.assertEqual([vectorset.of_payload(c[3]).nodes[0]["id"] for c in restored[:-1]],
                         list(range(1, 9001)))
        self.assertEqual(restored[0][2:3] + restored[0][4:], [b"0", b"REPLACE"])
        self.assertEqual(restored[-1][2:3] + restored[-1][4:],
                         [b"4102444800000", b"REPLACE", b"ABSTTL"])
        self.assertEqual({c[0] for c in made}, {b"RESTORE", b"SELECT", b"SET", b"DEL"})

    def test_long_strings_and_several_layers_keep_their_place(self):
        nodes = [{"name": name, "attributes": attributes, "vector": bytes([i]) * 4 * 20000,
                  "id": i + 1, "version": 1, "length": 1.5, "range": 0.0, "worst": [7, 0, 0],
                  "layers": [(32, [2 - i]), (16, [2 - i]), (16, [])]}
                 for i, (name, attributes) in enumerate(((b"n" * (1 << 20), b""),
                                                         (b"", b"a" * 300000)))]
        source = vectorset.Value(20000, 16 << 8, None, nodes)
        path = self.path("long.rdb", b"REDIS0012\xfe\x00\x07\x01k" + vectorset.composed(source) +
                         b"\xff" + bytes(8))
        made = self.written("redis-8.0", path)[b"k"]
        self.same(made, self.values(path)[b"k"])
        self.same(made, source)
        self.assertEqual(made.versions(), {0})

    def snapshot(self, name, value):
        return self.path(name, b"REDIS0012\xfe\x00\x07\x01k" + vectorset.composed(value) + b"\xff"
                         + bytes(8))

    def diff(self, a, b, expect):
        out, _ = self.run_tool("diff", "--values", a, b, expect=expect)
        return out.decode()

    def test_the_same_elements_are_equal_whatever_links_them(self):
        paths = [fixture(f"redis-{v}", "vectors.rdb") for v in ("8.0.2", "8.0.6", "8.6.3")]
        for a in paths:
            for b in paths:
                if a != b:
                    self.assertNotEqual(*(self.values(p)[b"v:Q8"].elements() for p in (a, b)))
                    self.assertIn("0 different", self.diff(a, b, 0))

    def test_other_elements_are_named(self):
        value = self.values(fixture("redis-8.0.6", "vectors.rdb"))[b"v:Q8"]
        a = self.snapshot("a.rdb", value)

        def changed(**members):
            nodes = [dict(n) for n in value.nodes]
            nodes[7].update(members)
            return self.snapshot("b.rdb", vectorset.Value(value.dim, value.config,
                                                          value.projection, nodes))
        name = value.nodes[7]["name"].decode()
        self.diff(a, changed(id=999999), 0)
        for members in ({"attributes": b"x"}, {"vector": bytes(5)}, {"length": 7.5},
                        {"range": 0.25}):
            text = self.diff(a, changed(**members), 1)
            self.assertIn("24 and 24 parts, 1 different, 0 only in A, 0 only in B", text)
            self.assertIn(f'member "{name}"\n', text)
        text = self.diff(a, changed(name=b"other"), 1)
        self.assertIn("0 different, 1 only in A, 1 only in B", text)
        self.assertIn(f'member "{name}" only in A\n', text)
        self.assertIn('member "other" only in B\n', text)
        fewer = vectorset.Value(value.dim, value.config, None, value.nodes[1:])
        self.assertIn("1 only in A, 0 only in B", self.diff(a, self.snapshot("b.rdb", fewer), 1))
        other = vectorset.Value(value.dim, value.config ^ 1 << 8, None, value.nodes)
        self.assertIn("    meta\n", self.diff(a, self.snapshot("b.rdb", other), 1))

    def test_only_bytes_have_a_range_and_attributes_can_be_empty(self):
        node = {"name": b"e", "attributes": b"", "vector": bytes(4), "id": 1, "version": 0,
                "length": 2.0, "range": 0.5, "worst": [], "layers": [(32, [])]}
        more = dict(node, name=b"f", id=2, attributes=b"y")
        for config, same in ((0, 0), (1, 1), (2, 0)):
            a = self.snapshot("a.rdb", vectorset.Value(1, config, None, [node]))
            b = self.snapshot("b.rdb", vectorset.Value(1, config, None, [dict(node, range=0.7)]))
            self.diff(a, b, same)
        a = self.snapshot("a.rdb", vectorset.Value(1, 0, None, [node]))
        b = self.snapshot("b.rdb", vectorset.Value(1, 0, None, [node, more]))
        self.assertIn("0 different, 0 only in A, 1 only in B", self.diff(a, b, 1))
        a = self.snapshot("a.rdb", vectorset.Value(1, 0, (3, b"m" * 12), [node]))
        b = self.snapshot("b.rdb", vectorset.Value(1, 0, (3, b"m" * 11 + b"n"), [node]))
        self.assertIn("    meta\n", self.diff(a, b, 1))

    def test_of_an_unknown_form_every_item_counts(self):
        node = {"name": b"e", "attributes": b"", "vector": bytes(4), "id": 1, "version": 2,
                "length": 2.0, "range": 0.5, "worst": [3], "layers": [(32, [])]}
        a = self.snapshot("a.rdb", vectorset.Value(1, 0, None, [node]))
        b = self.snapshot("b.rdb", vectorset.Value(1, 0, None, [dict(node, worst=[4])]))
        self.diff(a, a, 0)
        self.assertIn('member "e"', self.diff(a, b, 1))

    def test_an_unknown_form_is_refused_for_8_0_alone(self):
        with open(fixture("redis-8.0.6", "vectors.rdb"), "rb") as f:
            data = f.read()
        level = b"\x02\x80" + b"\x01\x00\x00\x00"
        path = self.path("x.rdb", data.replace(level, b"\x02\x80\x02\x00\x00\x00")[:-8] + bytes(8))
        for how in (("--to", "rdb", "-o", self.path("y.rdb")), ("--to", "resp", "--restore")):
            _, err = self.run_tool("convert", *how, "--for", "redis-8.0", path, expect=4)
            self.assertIn("vector set in a form that is not known", err)
            self.assertIn('"v:', err)
        self.run_tool("convert", "--to", "rdb", "--for", "redis-8.6", path, "-o",
                      self.path("z.rdb"))

    def test_what_is_made_from_commands_is_read_by_every_server(self):
        log = self.path("log.aof", b"".join(
            encode("VADD", "v", "VALUES", "2", str(i), str(i % 7 - 3), f"e{i}", *more)
            for i, more in enumerate([()] * 40 + [("SETATTR", "{}")])))
        out = self.path("out.rdb")
        self.run_tool("convert", "--to", "rdb", log, "-o", out)
        value = self.values(out)[b"v"]
        self.assertEqual(value.versions(), {0})
        self.assertEqual({n["name"] for n in value.nodes}, {b"e%d" % i for i in range(41)})
        self.assertEqual([n["attributes"] for n in value.nodes if n["attributes"]], [b"{}"])


if __name__ == "__main__":
    unittest.main()
