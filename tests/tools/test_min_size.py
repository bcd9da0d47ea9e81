"""--min-size of convert, split, merge and diff: what is left out is what the table says is smaller.

The sizes are those of `redoubt convert --to csv`, which come from a reader that read the values.
"""

import csv
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from rdb_text import HASH, LIST, SET, STRING, Key, snapshot  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
# A sanitizer takes address space of its own.
MEMORY = 32 << 20 if os.environ.get("REDOUBT_SANITIZE", "none") == "none" else None


def redoubt(*args, stdin=None, memory=None):
    def limit():
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    return subprocess.run([REDOUBT, *args], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600, preexec_fn=limit)


def table(path, *args):
    """(db, key) -> bytes of the value."""
    run = redoubt("convert", "--to", "csv", *args, path)
    if run.returncode == 1 and b"no key matches" in run.stderr:
        return {}
    assert run.returncode == 0, run.stderr
    rows = csv.DictReader(run.stdout.decode("utf-8", "surrogateescape").splitlines())
    return {(row["db"], row["key"]): int(row["bytes"]) for row in rows}


def described_snapshots():
    for folder, _, names in sorted(os.walk(FIXTURES)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(".rdb") and os.path.exists(path[:-4] + ".json"):
                yield path


def mixed():
    """Small and large values in turn, of all shapes; in two databases."""
    out = []
    for i in range(200):
        size = (3, 50, 700, 6000)[i % 4]
        out.append((Key(b"s%d" % i, STRING, b"v" * size, i // 100),
                    Key(b"l%d" % i, LIST, [b"e"] * size, i // 100),
                    Key(b"h%d" % i, HASH, [(b"f%d" % n, b"v") for n in range(size // 10 + 1)],
                        i // 100),
                    Key(b"t%d" % i, SET, [b"m%d" % n for n in range(size)],
                        i // 100))[i // 4 % 4])
    return out


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-min-size-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.input = self.write("in.rdb", snapshot(mixed()))
        self.out = self.path("out.rdb")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def data(self):
        with open(self.input, "rb") as f:
            return f.read()

    def run_tool(self, *args, status=0, **more):
        run = redoubt(*args, **more)
        self.assertEqual(run.returncode, status, run.stderr)
        return run

    def larger(self, size):
        found = {key: n for key, n in table(self.input).items() if n >= size}
        self.assertGreater(len(found), 20)
        self.assertLess(len(found), 190)
        return found


class Convert(Case):
    def test_every_fixture_loses_what_is_smaller(self):
        chosen = 0
        for path in described_snapshots():
            sizes = table(path)
            size = sorted(sizes.values())[len(sizes) // 2] if sizes else 1
            want = {key: n for key, n in sizes.items() if n >= size}
            with self.subTest(path, size=size):
                self.assertEqual(table(path, "--min-size", str(size)), want)
            chosen += 0 < len(want) < len(sizes)
        self.assertGreater(chosen, 20)

    def test_every_target_takes_the_same_keys(self):
        want = self.larger(500)
        lines = self.run_tool("convert", "--to", "ndjson", "--min-size", "500", self.input).stdout
        found = [json.loads(line) for line in lines.splitlines()]
        self.assertEqual({(str(x["db"]), x["key"]) for x in found}, set(want))
        for more in ((), ("--rewrite",), ("--rdb-version", "12")):
            self.run_tool("convert", "--to", "rdb", "--min-size", "500", *more, self.input, "-o",
                          self.out, "--force")
            self.run_tool("check-rdb", self.out)
            self.assertEqual(set(table(self.out)), set(want))
        for more in ((), ("--restore",)):
            out = self.run_tool("convert", "--to", "resp", "--min-size", "500", *more,
                                self.input).stdout
            for db, key in table(self.input):
                self.assertEqual(b"\r\n" + key.encode() + b"\r\n" in out, (db, key) in want, key)

    def test_a_value_goes_over_as_it_would_without_the_filter(self):
        everything = self.run_tool("convert", "--to", "ndjson", self.input).stdout.splitlines()
        some = self.run_tool("convert", "--to", "ndjson", "--min-size", "500", self.input).stdout
        want = self.larger(500)
        self.assertEqual(some.splitlines(),
                         [line for line in everything
                          if (str(json.loads(line)["db"]), json.loads(line)["key"]) in want])

    def test_pipes_files_on_standard_input_and_compressed_files(self):
        args = ("convert", "--to", "ndjson", "--min-size", "500")
        want = self.run_tool(*args, self.input).stdout
        self.assertEqual(self.run_tool(*args, "-", stdin=self.data()).stdout, want)
        packed = self.write("in.rdb.gz", gzip.compress(self.data()))
        self.assertEqual(self.run_tool(*args, packed).stdout, want)
        with open(self.input, "rb") as f:
            run = subprocess.run([REDOUBT, *args, "-"], stdin=f, stdout=subprocess.PIPE,
                                 timeout=600)
        self.assertEqual(run.stdout, want)
        os.mkfifo(self.path("fifo"))
        writer = subprocess.Popen(["cp", self.input, self.path("fifo")])
        self.addCleanup(writer.wait)
        self.assertEqual(self.run_tool(*args, self.path("fifo")).stdout, want)

    def test_it_is_one_condition_among_others(self):
        want = {key: n for key, n in self.larger(500).items() if key[0] == "1" and n < 2000}
        self.assertTrue(want)
        self.assertEqual(table(self.input, "--min-size", "500", "--not", "--min-size", "2000",
                               "--db", "1"), want)

    def test_of_lines_it_is_the_size_in_a_snapshot(self):
        lines = self.run_tool("convert", "--to", "ndjson", self.input).stdout
        path = self.write("in.ndjson", lines)
        sizes = table(path)
        for size in (3, 500, 5000):
            self.assertEqual(table(path, "--min-size", str(size)),
                             {key: n for key, n in sizes.items() if n >= size})
        self.run_tool("convert", "--to", "rdb", "--min-size", "500", path, "-o", self.out)
        self.assertEqual(set(table(self.out)), {key for key, n in sizes.items() if n >= 500})

    def test_damage_is_reported_as_without_the_filter(self):
        n = 0
        names = os.listdir(os.path.join(FIXTURES, "damaged"))
        for name in sorted(x for x in names if x.endswith(".rdb"))[::4]:
            path = os.path.join(FIXTURES, "damaged", name)
            plain = redoubt("convert", "--to", "rdb", path, "-o", self.out, "--force")
            run = redoubt("convert", "--to", "rdb", "--min-size", "0", path, "-o", self.out,
                          "--force")
            with self.subTest(name):
                self.assertEqual((run.returncode, run.stderr), (plain.returncode, plain.stderr))
            n += plain.returncode == 1
        self.assertGreater(n, 2)

    def test_the_checksum_still_counts(self):
        self.run_tool("convert", "--to", "rdb", self.input, "--rewrite", "-o", self.out)
        with open(self.out, "rb") as f:
            data = bytearray(f.read())
        data[data.index(b"\x02s0\x03vvv") + 4] = ord("w")
        path = self.write("flipped.rdb", bytes(data))
        run = self.run_tool("convert", "--to", "csv", "--min-size", "500", path, status=1)
        self.assertIn(b"checksum", run.stderr)

    def test_a_size_is_needed(self):
        self.run_tool("convert", "--to", "csv", "--min-size", "much", self.input, status=2)


class LargeValues(Case):
    """A value that is larger than the memory that is granted."""

    def setUp(self):
        super().setUp()
        big = b"".join(b"%07d " % i for i in range(5 << 20))
        many = [b"%05d" % i for i in range(100000)]
        self.keys = [Key(b"small", STRING, b"v"), Key(b"big", STRING, big),
                     Key(b"many", SET, many), Key(b"last", STRING, b"v")]
        self.write("in.rdb", snapshot(self.keys))

    def test_memory_does_not_grow_with_the_value(self):
        data = self.data()
        self.assertGreater(len(data), 40 << 20)
        for stdin, path in ((None, self.input), (data, "-")):
            run = self.run_tool("convert", "--to", "rdb", "--min-size", "256kb", path,
                                "-o", self.out,
                                "--force", stdin=stdin, memory=MEMORY)
            self.assertEqual(set(table(self.out)), {("0", "big"), ("0", "many")})
            run = self.run_tool("convert", "--to", "csv", "--not", "--min-size", "256kb", path,
                                stdin=stdin, memory=MEMORY)
            self.assertEqual(len(run.stdout.splitlines()), 3)


class Split(Case):
    def keys_of_parts(self, *args, stdin=None, source=None):
        folder = self.path("parts")
        self.run_tool("split", "--force", *args, source or self.input, "-o", folder, stdin=stdin)
        with open(os.path.join(folder, "index.json"), encoding="utf-8") as f:
            index = json.load(f)
        found = set()
        for part in index["parts"]:
            path = os.path.join(folder, part["file"])
            self.run_tool("check-rdb", path)
            keys = table(path)
            self.assertEqual(len(keys), part["keys"])
            found |= set(keys)
        self.assertEqual(index["keys"], len(found))
        return found

    def test_parts_have_no_smaller_ones(self):
        want = set(self.larger(500))
        for by in (("--by", "db"), ("--by", "slot-range", "--slots", "3"),
                   ("--by", "size", "--size", "20kb")):
            self.assertEqual(self.keys_of_parts("--min-size", "500", *by), want)
        self.assertEqual(self.keys_of_parts("--not", "--min-size", "500", "--by", "db"),
                         set(table(self.input)) - want)

    def test_of_a_pipe(self):
        self.assertEqual(self.keys_of_parts("--min-size", "500", "--by", "db", source="-",
                                            stdin=self.data()), set(self.larger(500)))


class Merge(Case):
    def merge(self, *args, status=0, stdin=None):
        return self.run_tool("merge", "--force", *args, "-o", self.out, status=status, stdin=stdin)

    def test_the_output_has_no_smaller_ones(self):
        other = self.write("b.rdb", snapshot([Key(b"b%d" % i, STRING, b"v" * i)
                                              for i in range(1000)]))
        want = set(self.larger(500)) | {("0", "b%d" % i) for i in range(498, 1000)}
        self.merge("--min-size", "500", self.input, other)
        self.assertEqual(set(table(self.out)), want)
        self.merge("--min-size", "500", "-", other, stdin=self.data())
        self.assertEqual(set(table(self.out)), want)
        self.merge("--min-size", "500", "--rdb-version", "12", self.input, other)
        self.assertEqual(set(table(self.out)), want)

    def test_a_key_that_is_left_out_is_in_no_conflict(self):
        a = self.write("a.rdb", snapshot([Key(b"k", STRING, b"a"), Key(b"a", STRING, b"a" * 99)]))
        b = self.write("b.rdb", snapshot([Key(b"k", STRING, b"b" * 99)]))
        self.merge(a, b, status=1)
        reported = json.loads(self.merge("--json", "--min-size", "50", a, b).stdout)
        self.assertEqual((reported["conflicts"], reported["keys"]), (0, 2))
        self.assertEqual([(x["keys"], x["taken"]) for x in reported["inputs"]], [(1, 1), (1, 1)])


class Diff(Case):
    def diff(self, a, b, *args, status=0, stdin=None):
        run = self.run_tool("diff", "--json", *args, a, b, status=status, stdin=stdin)
        return json.loads(run.stdout)

    def test_smaller_ones_are_not_compared(self):
        b = self.write("b.rdb", snapshot([k for k in mixed() if k.name != b"s48"]
                                         + [Key(b"new", STRING, b"xyz")]))
        want = len(self.larger(500))
        reported = self.diff(self.input, self.input, "--min-size", "500")
        self.assertEqual(reported["keys"], [want, want])
        for stdin, path in ((None, self.input), (self.data(), "-")):
            reported = self.diff(path, b, "--min-size", "5", stdin=stdin)
            self.assertEqual(reported["only"], [0, 0])
            reported = self.diff(path, b, "--not", "--min-size", "5", status=1, stdin=stdin)
            self.assertEqual({x["key"] for x in reported["differences"]}, {"s48", "new"})

    def test_a_value_may_be_large_enough_on_one_side_only(self):
        a = self.write("a.rdb", snapshot([Key(b"k", STRING, b"v" * 100)]))
        b = self.write("b.rdb", snapshot([Key(b"k", STRING, b"v" * 10)]))
        reported = self.diff(a, b, "--min-size", "50", status=1)
        self.assertEqual([(x["key"], x["in"]) for x in reported["differences"]], [("k", "a")])


if __name__ == "__main__":
    unittest.main()
