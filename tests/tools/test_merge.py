"""redoubt merge: what is in several snapshots is in one, and keys that are in two are settled."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from rdb_text import LIST, STRING, Key, snapshot  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")


def redoubt(*args, stdin=None):
    return subprocess.run([REDOUBT, *args], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600)


def keys(path):
    """(db, key) -> line."""
    run = redoubt("convert", "--to", "ndjson", path)
    assert run.returncode == 0, run.stderr
    found = {}
    for text in run.stdout.splitlines():
        line = json.loads(text)
        assert (line["db"], line["key"]) not in found, line
        found[line["db"], line["key"]] = line
    return found


def library(name, body="1"):
    return b"#!lua name=%s\nredis.register_function('%s', function() return %s end)" % (
        name, name, body.encode())


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-merge-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = self.path("out.rdb")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, *args, **more):
        with open(self.path(name), "wb") as f:
            f.write(snapshot(*args, **more))
        return self.path(name)

    def merge(self, *args, status=0, stdin=None):
        run = redoubt("merge", *args, "-o", self.out, "--force", stdin=stdin)
        self.assertEqual(run.returncode, status, run.stderr)
        if status == 0:
            self.assertEqual(redoubt("check-rdb", self.out).returncode, 0)
        return run

    def two(self, n=50, shared=3):
        a = self.write("a.rdb", [Key(b"a%d" % i, STRING, b"a") for i in range(n)]
                       + [Key(b"both%d" % i, STRING, b"A") for i in range(shared)],
                       aux=[(b"redis-ver", b"1.1.1")])
        b = self.write("b.rdb", [Key(b"both%d" % i, LIST, [b"B"]) for i in range(shared)]
                       + [Key(b"b%d" % i, STRING, b"b", db=i % 3) for i in range(n)],
                       aux=[(b"redis-ver", b"2.2.2")])
        return a, b


class Keys(Case):
    def test_all_keys_of_all_inputs(self):
        a, b = self.two(shared=0)
        self.merge(a, b)
        self.assertEqual(keys(self.out), {**keys(a), **keys(b)})

    def test_one_input_is_copied(self):
        a, _ = self.two()
        self.merge(a)
        self.assertEqual(keys(self.out), keys(a))

    def test_conflicts_fail_and_the_first_are_named(self):
        a, b = self.two(shared=7)
        run = self.merge(a, b, status=1)
        self.assertFalse(os.path.exists(self.out))
        text = run.stderr.decode()
        for i in range(5):
            self.assertIn(f'db 0, key "both{i}": in {a} and in {b}', text)
        self.assertNotIn("both5", text)
        self.assertIn("7 keys in more than one input", text)

    def test_json_counts_conflicts(self):
        a, b = self.two(shared=7)
        reported = json.loads(self.merge("--json", a, b, status=1).stdout)
        self.assertEqual((reported["conflicts"], reported["keys"], reported["exit_status"]),
                         (7, 0, 1))
        self.assertFalse(os.path.exists(self.out))

    def test_the_first_wins(self):
        a, b = self.two()
        self.merge("--on-conflict", "first", a, b)
        self.assertEqual(keys(self.out), {**keys(b), **keys(a)})

    def test_the_last_wins(self):
        a, b = self.two()
        self.merge("--on-conflict", "last", a, b)
        self.assertEqual(keys(self.out), {**keys(a), **keys(b)})

    def test_a_key_in_three_inputs(self):
        paths = [self.write(f"{i}.rdb", [Key(b"k", STRING, b"%d" % i), Key(b"%d" % i, STRING, b"")])
                 for i in range(3)]
        for policy, value in (("first", "0"), ("last", "2")):
            reported = json.loads(self.merge("--json", "--on-conflict", policy, *paths).stdout)
            self.assertEqual((reported["conflicts"], reported["keys"]), (2, 4))
            self.assertEqual(keys(self.out)[0, "k"]["value"], value)

    def test_one_name_in_two_databases_is_not_a_conflict(self):
        a = self.write("a.rdb", [Key(b"k", STRING, b"0"), Key(b"k", STRING, b"1", db=1)])
        self.merge(a)
        self.assertEqual(len(keys(self.out)), 2)

    def test_databases_are_mapped(self):
        a = self.write("a.rdb", [Key(b"k", STRING, b"a"), Key(b"l", STRING, b"a", db=5)])
        b = self.write("b.rdb", [Key(b"k", STRING, b"b"), Key(b"l", STRING, b"b", db=5)])
        self.merge("--db-map", "2:0=1", "--db-map", "2:5=6", a, b)
        found = {place: line["value"] for place, line in keys(self.out).items()}
        self.assertEqual(found, {(0, "k"): "a", (5, "l"): "a", (1, "k"): "b", (6, "l"): "b"})
        self.merge("--db-map", "5=0", a)
        self.assertEqual(set(keys(self.out)), {(0, "k"), (0, "l")})
        self.merge("--db-map", "0=5", a, b, status=1)

    def test_filters_choose_before_conflicts_are_sought(self):
        a, b = self.two()
        self.merge("--not", "--prefix", "both", a, b)
        self.assertEqual(len(keys(self.out)), 100)

    def test_many_keys_are_sorted_on_disk(self):
        n = 400000
        a = self.write("a.rdb", [Key(b"k%d" % i, STRING, b"A") for i in range(n)])
        b = self.write("b.rdb", [Key(b"k%d" % i, STRING, b"B") for i in range(n - 10, 2 * n)])
        reported = json.loads(self.merge("--json", "--on-conflict", "last", a, b).stdout)
        self.assertEqual((reported["keys"], reported["conflicts"]), (2 * n, 10))
        self.assertEqual([i["taken"] for i in reported["inputs"]], [n - 10, n + 10])


class Records(Case):
    def functions(self):
        run = redoubt("convert", "--to", "ndjson", "--meta", self.out)
        return [json.loads(x)["function"] for x in run.stdout.splitlines() if b'"function":' in x]

    def test_aux_fields_are_those_of_the_first_input(self):
        a, b = self.two(shared=0)
        self.merge(a, b)
        run = redoubt("convert", "--to", "ndjson", "--meta", self.out)
        self.assertIn(b"1.1.1", run.stdout)
        self.assertNotIn(b"2.2.2", run.stdout)

    def test_records_of_modules_are_those_of_the_first_input(self):
        tiny, module = (os.path.join(FIXTURES, "redis-7.0.15", x) for x in ("tiny.rdb",
                                                                           "module.rdb"))
        for inputs, left_out in (((tiny, module), 2), ((module, tiny), 0)):
            reported = json.loads(self.merge("--json", *inputs).stdout)
            self.assertEqual((reported["left_out"], reported["keys"]), (left_out, 22), inputs)

    def test_a_library_that_is_the_same_is_there_once(self):
        a = self.write("a.rdb", [], functions=[library(b"one"), library(b"two")])
        b = self.write("b.rdb", [], functions=[library(b"two"), library(b"three")])
        self.merge(a, b)
        self.assertEqual(self.functions(),
                         [library(x).decode() for x in (b"one", b"two", b"three")])

    def test_libraries_of_one_name_are_in_conflict(self):
        a = self.write("a.rdb", [], functions=[library(b"one", "1")])
        b = self.write("b.rdb", [], functions=[library(b"one", "2")])
        run = self.merge(a, b, status=1)
        self.assertIn(b"1 function with the same name and different code", run.stderr)
        self.merge("--on-conflict", "first", a, b)
        self.assertEqual(self.functions(), [library(b"one", "1").decode()])
        self.merge("--on-conflict", "last", a, b)
        self.assertEqual(self.functions(), [library(b"one", "2").decode()])

    def test_the_name_of_a_library_is_what_a_server_reads(self):
        for line, conflict in ((b"#!lua 'name=one'", True), (b"#!LUA\tNAME=one", True),
                               (b'#!lua name="one"', True), (b"#!lua name=One", False)):
            one = library(b"one")
            other = line + one[one.index(b"\n"):] + b"\n-- another"
            a = self.write("a.rdb", [], functions=[one])
            b = self.write("b.rdb", [], functions=[other])
            run = self.merge(a, b, status=1 if conflict else 0)
            self.assertEqual(b"1 function with the same name" in run.stderr, conflict, line)
        name = b"n" * 200  # as long as one likes
        a = self.write("a.rdb", [], functions=[library(name + b"1")])
        b = self.write("b.rdb", [], functions=[library(name + b"2")])
        self.merge(a, b)
        self.assertEqual(len(self.functions()), 2)


class Versions(Case):
    def header(self):
        with open(self.out, "rb") as f:
            return f.read(9)

    def test_the_newest_version_by_default(self):
        a = self.write("a.rdb", [Key(b"a", STRING, b"1")], version=9)
        b = self.write("b.rdb", [Key(b"b", STRING, b"2")], version=11)
        self.merge(a, b)
        self.assertEqual(self.header(), b"REDIS0011")
        self.merge("--rdb-version", "80", a, b)
        self.assertEqual(self.header(), b"VALKEY080")
        self.merge("--rdb-version", "6", a, b)
        self.assertEqual(self.header(), b"REDIS0006")
        self.assertEqual(len(keys(self.out)), 2)

    def test_dialects_mixed_need_a_version(self):
        a = self.write("a.rdb", [Key(b"a", STRING, b"1")], version=12)
        b = self.write("b.rdb", [Key(b"b", STRING, b"2")], version=80, magic=b"VALKEY")
        self.merge(a, b, status=2)
        self.merge("--rdb-version", "80", a, b)
        self.assertEqual(len(keys(self.out)), 2)

    def test_snapshots_of_all_servers_in_one(self):
        """Each in databases of its own; what is merged is what was there."""
        paths = []
        for server in ("redis-2.8.24", "redis-3.2.13", "redis-5.0.14", "redis-7.0.15"):
            folder = os.path.join(FIXTURES, server)
            names = [n for n in sorted(os.listdir(folder)) if n.endswith(".rdb")]
            self.assertTrue(names)
            paths.append(os.path.join(folder, names[0]))
        reported = json.loads(self.merge("--json", "--on-conflict", "first", *paths).stdout)
        self.assertEqual(reported["version"], 10)
        want = {}
        for path in reversed(paths):
            want.update(keys(path))
        self.assertEqual({k: v["value"] for k, v in keys(self.out).items()
                          if v["type"] != "stream"},
                         {k: v["value"] for k, v in want.items() if v["type"] != "stream"})


class Manners(Case):
    def test_from_standard_input_and_compressed(self):
        import gzip
        a, b = self.two(shared=0)
        with open(a, "rb") as f, gzip.open(self.path("a.gz"), "wb") as to:
            to.write(f.read())
        with open(b, "rb") as f:
            self.merge(self.path("a.gz"), "-", stdin=f.read())
        self.assertEqual(keys(self.out), {**keys(a), **keys(b)})
        self.merge("-", "-", status=2)

    def test_lines_of_json_are_not_supported(self):
        a, _ = self.two()
        with open(self.path("lines"), "wb") as f:
            f.write(b'{"db":0}\n')
        run = self.merge(a, self.path("lines"), status=4)
        self.assertIn(b"JSON cannot be read here", run.stderr)
        self.assertFalse(os.path.exists(self.out))

    def test_a_damaged_input_leaves_nothing(self):
        a, b = self.two(shared=0)
        with open(b, "rb") as f:
            data = f.read()
        with open(b, "wb") as f:
            f.write(data[:-20])
        self.merge(a, b, status=1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.rdb", "b.rdb"])

    def test_options_that_make_no_sense(self):
        a, b = self.two()
        self.assertEqual(redoubt("merge", "--json", a, b).returncode, 2)
        self.merge("--rdb-version", "1000", a, b, status=2)
        self.merge("-", "-", status=2)

    def test_maps_that_make_no_sense(self):
        a, _ = self.two()
        for text in ("", "1", "1=", "=1", "0:1=2", "x:1=2", "1=2=3"):
            self.merge("--db-map", text, a, status=2)


if __name__ == "__main__":
    unittest.main()
