"""What is left out of an output is reported, and goes with what it belongs to.

Records of modules go with the values of modules that a filter excludes, so that a server without
the modules loads the output. The fields that KeyDB writes for one key go where that key goes.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import hexfile  # noqa: E402
import report_text  # noqa: E402
import vectorset  # noqa: E402
from fake_server import crc64  # noqa: E402
from rdb_text import HASH, LIST, SET, STRING, ZSET, Key, length, snapshot  # noqa: E402
from rdb_text import string, value  # noqa: E402
from redis_server import RedisServer  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
SOURCE = os.environ.get("REDOUBT_SOURCE", ".")
LATER = 4102444800000
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
LIBRARY = b"#!lua name=lib\nredis.register_function('f', function() return 1 end)\n"


def module_id(name, version=0):
    number = 0
    for letter in name:
        number = number << 6 | LETTERS.index(letter)
    return b"\x81" + struct.pack(">Q", number << 10 | version)


def module_aux(name, when):
    return b"\xf7" + module_id(name, 2) + b"\x02" + length(when) + b"\x05" + string(b"x") + b"\x00"


def module_key(name, module):
    return b"\x07" + string(name) + module_id(module) + b"\x02\x01\x00"


def key(k):
    expiry = b"" if k.expire_ms is None else b"\xfc" + struct.pack("<q", k.expire_ms)
    return expiry + bytes([k.type]) + string(k.name) + value(k)


def aux(name, text):
    return b"\xfa" + string(name) + string(text)


def keydb(keys):
    """As KeyDB writes it with active replication: a stamp between the expiry of a key and its type,
    and two fields after the value for each member that expires."""
    body = b"REDIS0009" + aux(b"redis-ver", b"6.3.4") + b"\xfe\x00"
    for n, (k, members) in enumerate(keys):
        if k.expire_ms is not None:
            body += b"\xfc" + struct.pack("<q", k.expire_ms)
        body += aux(b"mvcc-tstamp", b"%d" % (1795760530862 + n))
        body += bytes([k.type]) + string(k.name) + value(k)
        for member in members:
            body += aux(b"keydb-subexpire-key", member)
            body += aux(b"keydb-subexpire-when", b"%d" % LATER)
    return body + b"\xff" + bytes(8)


def fields(content):
    """The fields of keys of KeyDB in the order of a snapshot, with the names of its keys."""
    words = (b"mvcc-tstamp", b"keydb-subexpire-key", b"aa", b"bb", b"team")
    found = [(content.find(word, at), word) for word in words for at in range(len(content))
             if content.startswith(word, at)]
    return [word.decode() for _, word in sorted(found)]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-left-out-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as f:
            f.write(content)
        return self.path(name)

    def read(self, path):
        with open(path, "rb") as f:
            return f.read()

    def run_tool(self, *args, status=0):
        run = subprocess.run([REDOUBT, *args], capture_output=True, timeout=600)
        text = (run.stdout + run.stderr).decode("utf-8", "surrogateescape")
        self.assertEqual(run.returncode, status, text)
        return text

    def report(self, *args):
        """The object of --json."""
        run = subprocess.run([REDOUBT, args[0], "--json", *args[1:]], capture_output=True,
                             timeout=600)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)


class Modules(Case):
    SNAPSHOT = (b"REDIS0010" + module_aux("scdtype00", 1) + b"\xfe\x00"
                + module_key(b"m", "scdtype00") + key(Key(b"a", STRING, b"1"))
                + key(Key(b"b", SET, [b"x"])) + module_aux("ft_index0", 2) + b"\xff" + bytes(8))

    def outputs(self, *filters):
        """Each tool that writes a snapshot, with its output and its messages."""
        path = self.write("in.rdb", self.SNAPSHOT)
        for name, args, out in (
                ("convert", ("convert", "--to", "rdb", path, "-o", self.path("c.rdb")), "c.rdb"),
                ("lossy", ("convert", "--to", "rdb", "--lossy", path, "-o", self.path("l.rdb")),
                 "l.rdb"),
                ("for", ("convert", "--to", "rdb", "--for", "redis-7.0", path, "-o",
                         self.path("f.rdb")), "f.rdb"),
                ("version", ("convert", "--to", "rdb", "--rdb-version", "9", path, "-o",
                             self.path("v.rdb")), "v.rdb"),
                ("merge", ("merge", path, "-o", self.path("m.rdb")), "m.rdb"),
                ("split", ("split", "--by", "db", path, "-o", self.path("s")), "s/db-0.rdb"),
                ("salvage", ("check-rdb", "--salvage", self.path("r.rdb"), path), "r.rdb")):
            text = report_text.unwrapped(self.run_tool(*args, *filters))
            yield name, text, self.path(out)

    def test_a_server_without_the_modules_loads_what_excludes_them(self):
        with RedisServer() as server:
            for name, text, out in self.outputs("--not", "--type", "module"):
                with self.subTest(name):
                    server.load(out)
                    self.assertEqual(sorted(server.command("KEYS", "*")), [b"a", b"b"])
                    self.assertIn("2 records of module data excluded" if name == "salvage"
                                  else "omitted: 2 module records (values of modules are excluded)",
                                  text)

    def test_every_filter_that_no_module_passes_excludes_them(self):
        for args in (("--type", "string"), ("--type", "set", "--type", "string"),
                     ("--not", "--type", "module", "--prefix", "a")):
            for name, _, out in self.outputs(*args):
                with self.subTest(name, args=args):
                    self.assertNotIn(b"\xf7", self.read(out))
            for part in os.listdir(self.path("s")):
                os.unlink(os.path.join(self.path("s"), part))
            for made in "clfvmr":
                os.unlink(self.path(made + ".rdb"))

    def test_they_stay_where_values_of_modules_can_be(self):
        for name, text, out in self.outputs("--not", "--type", "set"):
            with self.subTest(name):
                self.assertEqual(self.read(out).count(module_id("scdtype00", 2)), 1)
                self.assertEqual(self.read(out).count(module_id("ft_index0", 2)), 1)
                self.assertNotIn("omitted", text)

    def test_targets_without_them_report_them_once_as_excluded(self):
        path = self.write("in.rdb", self.SNAPSHOT)
        for target in ("resp", "ndjson", "csv"):
            with self.subTest(target):
                report = self.report("convert", "--to", target, "--not", "--type", "module", path,
                                     "-o", self.path("out." + target))
                self.assertEqual(report["omitted_by_reason"], [
                    {"what": "module-data", "reason": "values of modules are excluded",
                     "count": 2}])

    def test_an_output_for_a_server_names_the_modules_it_needs(self):
        path = self.write("in.rdb", self.SNAPSHOT)
        text = self.run_tool("convert", "--to", "rdb", "--for", "redis-7.0", path, "-o",
                             self.path("out.rdb"))
        self.assertIn("the output needs the modules scdtype00, ft_index0", text)
        self.assertIn("--not --type module", text)
        plain = self.write("plain.rdb", snapshot([Key(b"a", STRING, b"1")]))
        self.assertEqual(self.run_tool("convert", "--to", "rdb", "--for", "redis-7.0", plain, "-o",
                                       self.path("plain.out")), "")

    def test_vector_sets_are_for_redis_8_only(self):
        node = {"name": b"e", "attributes": b"", "vector": b"\x7f", "id": 1, "version": 1,
                "length": 2.0, "range": 1.0, "worst": [0], "layers": [(32, [])]}
        vectors = vectorset.composed(vectorset.Value(1, 1 | 16 << 8, None, [node]))
        path = self.write("in.rdb", b"REDIS0012\xfe\x00\x07\x03vec" + vectors
                          + key(Key(b"a", STRING, b"1")) + b"\xff" + bytes(8))
        for how in (("rdb",), ("resp", "--restore")):
            for server in ("redis-7.4", "valkey-8", "valkey-9"):
                with self.subTest(server, how=how):
                    text = self.run_tool("convert", "--to", *how, "--for", server, path, "-o",
                                         self.path("no"), status=4)
                    self.assertIn('module "vec" in db 0', text)
                    self.assertFalse(os.path.exists(self.path("no")))
            out = self.path("yes-" + how[0])
            self.assertEqual(self.run_tool("convert", "--to", *how, "--for", "redis-8.0", path,
                                           "-o", out), "")
            self.assertIn(module_id("vectorset")[1:], self.read(out))


class KeyDb(Case):
    KEYS = ((Key(b"aa", STRING, b"1"), ()), (Key(b"bb", STRING, b"2", expire_ms=LATER), ()),
            (Key(b"team", SET, [b"ann", b"bob"]), (b"bob",)))
    COPIES = (("c", ("convert", "--to", "rdb")), ("m", ("merge",)),
              ("r", ("check-rdb", "--salvage")))

    def setUp(self):
        super().setUp()
        self.file = self.write("keydb.rdb", keydb(self.KEYS))

    def test_a_healthy_file_is_sound(self):
        text = self.run_tool("check-rdb", self.file)
        self.assertIn("1 key expires", text)
        self.assertNotIn("attributes-without-key", text)

    def test_an_expiry_before_another_field_is_still_reported(self):
        body = b"REDIS0009\xfe\x00\xfc" + struct.pack("<q", LATER) + aux(b"mvcc-other", b"1")
        path = self.write("other.rdb", body + key(Key(b"k", STRING, b"v")) + b"\xff" + bytes(8))
        self.assertIn("attributes-without-key", self.run_tool("check-rdb", path, status=1))

    def test_all_fields_stay_in_a_copy(self):
        for name, args in self.COPIES:
            out = self.path(name)
            last = (out, self.file) if name == "r" else (self.file, "-o", out)
            self.run_tool(*args, *last)
            with self.subTest(name):
                self.assertEqual(fields(self.read(out)),
                                 ["mvcc-tstamp", "aa", "mvcc-tstamp", "bb", "mvcc-tstamp", "team",
                                  "keydb-subexpire-key"])

    def test_fields_go_with_their_key(self):
        for name, args in self.COPIES:
            for key_name, kept in (("bb", ["mvcc-tstamp", "bb"]),
                                   ("team", ["mvcc-tstamp", "team", "keydb-subexpire-key"])):
                out = self.path(name + key_name)
                last = (out, self.file) if name == "r" else (self.file, "-o", out)
                self.run_tool(*args, *last, "--match", key_name)
                with self.subTest(name, key=key_name):
                    self.assertEqual(fields(self.read(out)), kept)

    def test_parts_have_the_fields_of_their_keys(self):
        self.run_tool("split", "--by", "size", "--size", "1", self.file, "-o", self.path("parts"))
        self.assertEqual([fields(self.read(self.path(f"parts/part-000{n}.rdb")))
                          for n in (1, 2, 3)],
                         [["mvcc-tstamp", "aa"], ["mvcc-tstamp", "bb"],
                          ["mvcc-tstamp", "team", "keydb-subexpire-key"]])

    def test_a_target_that_cannot_hold_member_expiries_refuses_or_names_them(self):
        for target in (("rdb", "--for", "redis-6.2"), ("rdb", "--rdb-version", "11"), ("resp",),
                       ("resp", "--restore"), ("aof",)):
            with self.subTest(target):
                out = self.path("-".join(target))
                text = self.run_tool("convert", "--to", *target, self.file, "-o", out, status=4)
                self.assertIn('set "team" in db 0', text)
                self.assertIn("expiry of a member", text)
                report = self.report("convert", "--lossy", "--to", *target, self.file, "-o", out)
                self.assertEqual([(o["what"], o["key"], o["element"]) for o in report["omitted"]],
                                 [("member-expiry", "team", "bob")])
                self.assertNotIn(b"keydb-subexpire", self.read(out))

    def test_lines_and_tables_name_member_expiries(self):
        for target, reported in ((("ndjson",), 1), (("csv",), 1), (("ndjson", "--meta"), 0)):
            with self.subTest(target):
                out = self.path("out." + "".join(target))
                report = self.report("convert", "--to", *target, self.file, "-o", out)
                self.assertEqual(report["left_out"], reported)
                self.assertEqual(b'"keydb-subexpire-key":"bob"' in self.read(out), reported == 0)

    def test_members_keep_their_key_in_parts_of_a_large_file(self):
        many = [(Key(b"k%d" % i, SET, [b"x" * 2000, b"y"]), (b"y",)) for i in range(1500)]
        path = self.write("many.rdb", keydb(many))
        report = self.report("convert", "--to", "ndjson", path, "-o", self.path("many.ndjson"))
        self.assertEqual([o["key"] for o in report["omitted"]],
                         [k.name.decode() for k, _ in many])


class OtherFiles(Case):
    """Files that look like snapshots and are not are named for what they are."""

    def payload(self, size):
        # As DUMP replies: type, value, version, and a CRC-64 of all before it.
        body = b"\x00" + string(b"v" * size) + struct.pack("<H", 11)
        return body + struct.pack("<Q", crc64(body))

    def tools(self, path):
        sound = self.write("sound.rdb", snapshot([Key(b"a", STRING, b"1")]))
        return (("convert", "--to", "ndjson", path), ("stat", path), ("show", path),
                ("diff", sound, path), ("check-rdb", path))

    def test_a_reply_to_dump(self):
        for size in (3, 5000):
            path = self.write("payload", self.payload(size))
            for args in self.tools(path):
                with self.subTest(args, size=size):
                    text = self.run_tool(*args, status=4 if args[0] == "check-rdb" else 1)
                    self.assertIn("it is the value of one key, as DUMP replies it", text)

    def test_a_file_of_dragonfly(self):
        path = self.write("dump.dfs", b"REDIS0009" + aux(b"redis-ver", b"df-v1.33.1")
                          + b"\xfe\x00\xc9\x01\x02")
        for args in self.tools(path):
            with self.subTest(args):
                text = self.run_tool(*args, status=4)
                self.assertIn("it is a snapshot of Dragonfly", text)
                self.assertIn("SAVE RDB", text)

    def test_restore_of_a_file_says_what_loads_it(self):
        path = self.write("dump.rdb", snapshot([Key(b"a", STRING, b"1")]))
        text = self.run_tool("restore", path, "--to", "redis://127.0.0.1:1", "--config",
                             self.path("none.conf"), status=2)
        self.assertIn("is a file: restore takes the name of a target", text)
        self.assertIn("redoubt convert --to resp --restore", text)
        self.assertNotIn("is a file", self.run_tool(
            "restore", "web", "--to", self.path("new"), "--config", self.path("none.conf"),
            status=3))


class EveryType(Case):
    """For each type and opcode, and each target: the data comes back, or it is refused, or what is
    missing is reported."""

    # The length of the first cannot be known without the module: readers refuse it. The others
    # refer to a template, and readers give them the types that contain the names.
    SKIPPED_TYPES = {"MODULE", "HASH_TMPL_LP_REF", "HASH_TMPL_ARRAY_REF"}

    def inputs(self):
        for folder in ("hand", "redis-2.4.18", "redis-2.6.17", "redis-3.2.13", "redis-4.0.14",
                       "redis-5.0.14", "redis-7.0-rc1", "redis-7.0.15", "redis-7.2.5",
                       "redis-7.4-rc1", "redis-unstable"):
            base = os.path.join(FIXTURES, folder)
            for name in sorted(os.listdir(base)):
                path = os.path.join(base, name)
                if name.endswith(".hex"):
                    yield f"{folder}/{name}", self.write(name + ".rdb", hexfile.load(path))
                elif name.endswith(".rdb") and os.path.getsize(path) < 100_000:
                    yield f"{folder}/{name}", path
        plain = [Key(b"l", LIST, [b"x"]), Key(b"z", ZSET, [(b"m", 1.5)]),
                 Key(b"h", HASH, [(b"f", b"v")])]
        yield "made", self.write("made.rdb", snapshot(plain))
        yield "made", self.write("old.rdb", b"REDIS0006\xfe\x00\x03\x01z\x01\x01m\x011\xff"
                                 + bytes(8))
        yield "keydb", self.write("keydb.rdb", keydb(KeyDb.KEYS))

    def targets(self):
        yield ("rdb",)
        for n in ("9", "80"):
            yield "rdb", "--rdb-version", n
        yield ("ndjson", "--meta")
        yield ("csv",)
        yield ("resp",)

    def back(self, target, out):
        """The output as a snapshot, or None where there is none to compare."""
        if target[0] == "rdb":
            return out
        made = self.path("back.rdb")
        if target == ("ndjson", "--meta"):
            args = ("--input-format", "ndjson", out)
        elif target[0] == "resp":
            args = ("--input-format", "aof", out)
        else:
            return None
        run = subprocess.run([REDOUBT, "convert", "--to", "rdb", *args, "-o", made, "--force"],
                             capture_output=True, timeout=600)
        return made if run.returncode == 0 else None

    def beside(self, path):
        """Whether the file has data that diff does not compare."""
        run = subprocess.run([REDOUBT, "convert", "--to", "csv", "--json", path, "-o",
                              self.path("beside.csv"), "--force"], capture_output=True, timeout=600)
        return {o["what"] for o in json.loads(run.stdout).get("omitted_by_reason", ())}

    def check(self, path, target, beside):
        out = self.path("out")
        lossy = ("--lossy",) if target[0] in ("rdb", "resp") else ()
        run = subprocess.run([REDOUBT, "convert", "--json", "--to", *target, path, "-o", out,
                              "--force"], capture_output=True, timeout=600)
        if run.returncode == 4:
            again = subprocess.run([REDOUBT, "convert", "--json", *lossy, "--to", *target, path,
                                    "-o", out, "--force"], capture_output=True, timeout=600)
            if again.returncode == 4:
                return "refused"
            self.assertGreater(json.loads(again.stdout)["left_out"], 0)
            return "lossy"
        self.assertEqual(run.returncode, 0, run.stderr)
        report = json.loads(run.stdout)
        if report["left_out"] > 0:
            self.assertIn(target[0], ("ndjson", "csv"))
            return "reported"
        if target[0] in ("ndjson", "csv"):
            kept = {"function", "member-expiry", "key-metadata"}
            self.assertLessEqual(beside, kept if "--meta" in target else set())
        elif target[0] == "resp":
            self.assertLessEqual(beside, {"function"})
        back = self.back(target, out)
        if back is None:
            return "not comparable"
        same = subprocess.run([REDOUBT, "diff", path, back], capture_output=True, timeout=600)
        if same.returncode == 4:  # of a type that can only be copied
            self.assertEqual(self.read(back), self.read(path))
            return "same"
        self.assertEqual(same.returncode, 0, same.stdout + same.stderr)
        return "same"

    def types_of(self, path):
        run = subprocess.run([REDOUBT, "convert", "--to", "csv", path], capture_output=True,
                             timeout=600)
        if run.returncode != 0:
            return None
        return {tuple(line.split(b",")[-5:-3]) for line in run.stdout.splitlines()[1:]}

    def test_what_does_not_come_back_is_reported(self):
        outcomes, seen, unread = {}, set(), []
        for name, path in self.inputs():
            types = self.types_of(path)
            if types is None:
                unread.append(name)
                continue
            if not name.startswith(("hand/", "keydb")) and types <= seen:
                continue
            beside = self.beside(path)
            seen |= types
            for target in self.targets():
                with self.subTest(name, target=target):
                    outcome = self.check(path, target, beside)
                    outcomes[outcome] = outcomes.get(outcome, 0) + 1
        print(f"# {outcomes}; not read: {unread}")
        self.assertEqual(unread, ["hand/module-1.hex", "hand/valkey-242-update.hex"])
        for outcome in ("same", "lossy", "reported"):
            self.assertGreater(outcomes.get(outcome, 0), 5, outcomes)
        with open(os.path.join(SOURCE, "rdb", "rdb.h")) as f:
            table = re.findall(r'^    X\((\w+), \d+, \d+, \w+, \d+, (\w+), "(\w+)"\)',
                               f.read(), re.M)
        self.assertGreater(len(table), 25)
        missing = [id for id, kind, encoding in table
                   if id not in self.SKIPPED_TYPES
                   and (kind.lower().encode(), encoding.encode()) not in seen]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
