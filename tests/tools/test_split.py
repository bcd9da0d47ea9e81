"""redoubt split: every key is in one part, every part is a snapshot, and all appear or none."""

import bisect
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from no_leaks import NO_LEAKS  # noqa: E402
from rdb_text import HASH, LIST, SET, STRING, ZSET, Key, snapshot  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
LATER = 4102444800000
LIBRARY = b"#!lua name=lib\nredis.register_function('f', function() return 1 end)"


def redoubt(*args, stdin=None, env=None):
    return subprocess.run([REDOUBT, *args], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600, env=env)


def lines(path, *args):
    """The keys of a snapshot as lines of JSON, sorted, without their positions."""
    with open(path, "rb") as f:
        return lines_of(f.read(), *args)


@functools.cache
def lines_of(data, *args):
    run = redoubt("convert", "--to", "ndjson", "--meta", *args, "-", stdin=data, env=NO_LEAKS)
    assert run.returncode == 0, run.stderr
    return sorted(run.stdout.splitlines())


def keys(path):
    return [line for line in lines(path) if b'"key":' in line]


def names(path):
    return [json.loads(line)["key"].encode("utf-8", "surrogateescape") for line in keys(path)]


def mixed():
    out = []
    for i in range(300):
        name = b"%s:%d:x" % ((b"user", b"page", b"a/b")[i % 3], i)
        db = (0, 3, 70000)[i // 100]
        out.append(Key(name, STRING, b"v%d" % i, db, LATER + i if i % 7 == 0 else None))
    out.append(Key(b"lonely", LIST, [b"a", b"b"], 70000))
    out.append(Key(b":", SET, [b"a"], 70000))
    out.append(Key(b"user:z", ZSET, [(b"m", 1.5)], 70000))
    out.append(Key(b"page:h\x00\xff", HASH, [(b"f", b"v" * 5000)], 70000))
    return out


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-split-")
        self.addCleanup(folder.cleanup)
        self.input = os.path.join(folder.name, "in.rdb")
        self.out = os.path.join(folder.name, "out")
        self.write(snapshot(mixed(), aux=[(b"redis-ver", b"7.0.15")], functions=[LIBRARY]))

    def write(self, data):
        with open(self.input, "wb") as f:
            f.write(data)

    def split(self, *args, status=0, source=None):
        run = redoubt("split", *args, source or self.input, "-o", self.out)
        self.assertEqual(run.returncode, status, run.stderr)
        return run

    def index(self):
        with open(os.path.join(self.out, "index.json"), encoding="utf-8") as f:
            return json.load(f)

    def part(self, name):
        return os.path.join(self.out, name)

    def parts(self):
        """Names in index.json, which are the files of the folder; each is sound and counted."""
        parts = self.index()["parts"]
        names = [part["file"] for part in parts]
        self.assertEqual(sorted(names + ["index.json"]), sorted(os.listdir(self.out)))
        for part in parts:
            path = self.part(part["file"])
            self.assertEqual(redoubt("check-rdb", path).returncode, 0)
            self.assertEqual(len(keys(path)), part["keys"])
            self.assertEqual(os.path.getsize(path), part["bytes"])
        return names

    def check_whole(self, source=None):
        names = self.parts()
        found = sorted(line for name in names for line in keys(self.part(name)))
        self.assertEqual(found, keys(source or self.input))
        self.assertEqual(self.index()["keys"], len(found))
        return names


class Ways(Case):
    def test_by_database(self):
        self.split("--by", "db")
        self.assertEqual(self.check_whole(), ["db-0.rdb", "db-3.rdb", "db-70000.rdb"])
        for db in (0, 3, 70000):
            for line in keys(self.part(f"db-{db}.rdb")):
                self.assertEqual(json.loads(line)["db"], db)

    def test_by_equal_ranges_of_slots_as_a_cluster_has_them(self):
        self.split("--by", "slot-range", "--slots", "3")
        names = ["slots-0-5460.rdb", "slots-5461-10922.rdb", "slots-10923-16383.rdb"]
        self.assertEqual(self.check_whole(), names)
        for name in names:
            first, last = name[6:-4].split("-")
            inside = redoubt("convert", "--to", "csv", "--slot", f"{first}-{last}", self.part(name))
            everything = redoubt("convert", "--to", "csv", self.part(name))
            self.assertEqual(inside.stdout, everything.stdout)

    def test_by_ranges_of_slots_with_a_rest(self):
        self.split("--by", "slot-range", "--slots", "0-99,100,8000-16383")
        names = self.check_whole()
        self.assertEqual(names, ["slots-0-99.rdb", "slots-100-100.rdb", "slots-8000-16383.rdb",
                                 "other.rdb"])

    def test_by_prefix(self):
        self.split("--by", "prefix")
        names = self.check_whole()
        self.assertEqual(sorted(names), ["other.rdb", "prefix-.rdb", "prefix-a%2Fb.rdb",
                                         "prefix-page.rdb", "prefix-user.rdb"])
        self.assertIn({"file": "prefix-a%2Fb.rdb", "prefix": "a/b", "keys": 100,
                       "bytes": os.path.getsize(self.part("prefix-a%2Fb.rdb"))},
                      self.index()["parts"])

    def test_by_prefix_of_two_parts(self):
        self.split("--by", "prefix", "--depth", "2", "--prefix", "user:")
        names = self.parts()
        self.assertIn("prefix-user%3A0.rdb", names)
        self.assertIn("prefix-user.rdb", names)  # user:z has one separator only
        self.assertEqual(len(names), 101)

    def test_by_prefix_with_another_separator(self):
        self.split("--by", "prefix", "--prefix-separator", "/b:")
        self.assertEqual(sorted(self.check_whole()), ["other.rdb", "prefix-a.rdb"])

    def test_further_prefixes_than_allowed_go_to_the_rest(self):
        run = self.split("--by", "prefix", "--max-open", "1")
        self.assertEqual(self.check_whole(), ["prefix-user.rdb", "other.rdb"])
        self.assertIn(b"more than 1 prefixes", run.stderr)

    def test_a_long_prefix_becomes_a_name_of_bounded_length(self):
        prefixes = [b"\xff" * 1000 + end for end in (b"a", b"b")]
        self.write(snapshot([Key(prefix + b":k", STRING, b"v") for prefix in prefixes]))
        self.split("--by", "prefix")
        names = self.check_whole()
        self.assertEqual(len(names), 2)
        self.assertLess(max(map(len, names)), 200)

    def test_by_the_remainder_of_crc32(self):
        self.split("--by", "crc32:3")
        self.assertEqual(self.check_whole(), ["crc32-0.rdb", "crc32-1.rdb", "crc32-2.rdb"])
        filled = 0
        for part in self.index()["parts"]:
            found = names(self.part(part["file"]))
            filled += bool(found)
            self.assertEqual({zlib.crc32(name) % 3 for name in found} - {part["remainder"]}, set())
        self.assertGreater(filled, 1)

    def test_by_a_ring_of_nodes(self):
        def owner(key, nodes):
            ring = sorted((zlib.crc32(b"%s:%d" % (node, i)), n) for n, node in enumerate(nodes)
                          for i in range(160))
            at = bisect.bisect_right(ring, (zlib.crc32(key), len(nodes)))
            return nodes[ring[at - 1][1]]

        where = {}
        for nodes in ((b"cache-1", b"cache-2"), (b"cache-1", b"cache-2", b"10.0.0.3:6379")):
            self.split("--force", "--by", "ring:" + ",".join(map(bytes.decode, nodes)))
            now = {}
            for part in self.index()["parts"]:
                for name in names(self.part(part["file"])):
                    now[name] = part["node"].encode()
                    self.assertEqual(now[name], owner(name, nodes))
            for name in where:  # a key moves to the new node or not at all
                self.assertIn(now[name], (where[name], b"10.0.0.3:6379"))
            self.assertGreater(len(set(now.values())), 1)
            where = now
        self.assertIn("node-10.0.0.3%3A6379.rdb", self.check_whole())

    def test_by_size(self):
        self.split("--by", "size", "--size", "1500")
        names = self.check_whole()
        self.assertGreater(len(names), 3)
        self.assertEqual(names[0], "part-0001.rdb")
        for part in self.index()["parts"][:-2]:
            self.assertGreaterEqual(part["bytes"], 1500)
            self.assertLess(part["bytes"], 1700)

    def test_too_many_parts_are_refused(self):
        self.write(snapshot([Key(b"k%d" % i, STRING, b"v" * 100) for i in range(1000)]))
        run = self.split("--by", "size", "--size", "100", status=5)
        self.assertIn(b"larger --size", run.stderr)
        self.assertFalse(os.path.exists(self.out))


class Content(Case):
    def test_functions_and_aux_fields_are_in_every_part(self):
        for how in (["db"], ["slot-range", "--slots", "2"], ["prefix"], ["size", "--size", "1kb"]):
            with self.subTest(how=how):
                self.split("--by", *how, "--force")
                for part in self.index()["parts"]:
                    meta = lines(self.part(part["file"]))
                    self.assertEqual(sum(b'"function":' in line for line in meta), 1)
                    self.assertIn(b'{"aux":{"redis-ver":"7.0.15"}}', meta)

    def test_values_are_the_bytes_that_they_were(self):
        for folder, _, names in sorted(os.walk(FIXTURES)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if not name.endswith(".rdb") or not os.path.exists(path[:-4] + ".json"):
                    continue
                with self.subTest(path):
                    run = redoubt("split", "--by", "db", path, "-o", self.out, "--force")
                    if run.returncode == 4:
                        continue  # a version that is not known
                    self.assertEqual(run.returncode, 0, run.stderr)
                    found = []
                    for part in self.index()["parts"]:
                        found += keys(self.part(part["file"]))
                    # With their encodings, but without the hints about slots.
                    want = sorted(re.sub(rb'"slot":[0-9]+,', b"", line) for line in keys(path))
                    self.assertEqual(sorted(found), want)

    def test_filters_choose(self):
        self.split("--by", "db", "--type", "zset", "--not", "--expired")
        self.assertEqual(self.parts(), ["db-70000.rdb"])
        self.assertEqual(self.index()["keys"], 1)

    def test_a_snapshot_without_keys_has_one_part(self):
        self.write(snapshot([], functions=[LIBRARY]))
        for how, name in ((["db"], "db-0.rdb"), (["prefix"], "other.rdb"),
                          (["size", "--size", "1"], "part-0001.rdb")):
            self.split("--by", *how, "--force")
            self.assertIn(name, [p["file"] for p in self.index()["parts"]])
            self.assertEqual(sum(b'"function":' in x for x in lines(self.part(name))), 1)

    def test_from_standard_input(self):
        with open(self.input, "rb") as f:
            data = f.read()
        run = redoubt("split", "--by", "db", "-", "-o", self.out, stdin=data)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.check_whole()

    def test_the_object_of_json_says_what_index_json_does(self):
        reported = json.loads(self.split("--by", "db", "--json").stdout)
        index = self.index()
        self.assertEqual({k: reported[k] for k in index}, index)


class Refusals(Case):
    def test_what_is_there_stays_without_force(self):
        os.mkdir(self.out)
        with open(self.part("db-3.rdb"), "w", encoding="ascii") as f:
            f.write("mine")
        run = self.split("--by", "db", status=2)
        self.assertIn(b"db-3.rdb", run.stderr)
        self.assertEqual(os.listdir(self.out), ["db-3.rdb"])
        with open(self.part("db-3.rdb"), encoding="ascii") as f:
            self.assertEqual(f.read(), "mine")
        self.split("--by", "db", "--force")
        self.check_whole()

    def test_a_damaged_input_leaves_nothing(self):
        with open(self.input, "rb") as f:
            data = f.read()
        for cut in range(30, len(data), len(data) // 20):
            self.write(data[:cut])
            self.split("--by", "db", status=1)
            self.assertFalse(os.path.exists(self.out), cut)

    def test_a_wrong_checksum_leaves_nothing(self):
        self.write(snapshot(mixed(), tail=b"\xff" + b"12345678"))
        self.split("--by", "prefix", status=1)
        self.assertFalse(os.path.exists(self.out))

    def test_a_signal_leaves_no_file(self):
        with subprocess.Popen([REDOUBT, "split", "--by", "db", "-", "-o", self.out],
                              stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdin.write(snapshot(mixed())[:-9])
            process.stdin.flush()
            for _ in range(1000):
                if os.path.isdir(self.out):
                    break
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            process.communicate()
            self.assertEqual(process.returncode, 143)
        self.assertEqual(os.listdir(self.out), [])

    def test_lines_and_logs_in_pipes_are_refused(self):
        for data in (b"*1\r\n$4\r\nPING\r\n", b'{"db":0}\n', b"file a.aof seq 1 type b\n"):
            run = redoubt("split", "--by", "db", "-", "-o", self.out, stdin=data)
            self.assertEqual(run.returncode, 4, run.stderr)
            self.assertIn(b"cannot split JSON lines, or a log from a pipe", run.stderr)
            self.assertFalse(os.path.exists(self.out))

    def test_options_that_do_not_fit(self):
        for args in ([], ["--by", "size"], ["--by", "db", "--size", "1"], ["--by", "slot-range"],
                     ["--by", "slot-range", "--slots", "0"],
                     ["--by", "slot-range", "--slots", "251"],
                     ["--by", "slot-range", "--slots", "5-1"],
                     ["--by", "slot-range", "--slots", "0-16384"],
                     ["--by", "slot-range", "--slots", "0-9,9-12"],
                     ["--by", "slot-range", "--slots", "0-9,"], ["--by", "db", "--depth", "2"],
                     ["--by", "prefix", "--prefix-separator", ""],
                     ["--by", "prefix", "--max-open", "250"], ["--by", "crc32"],
                     ["--by", "crc32:0"], ["--by", "crc32:251"], ["--by", "crc32:x"],
                     ["--by", "ring:"], ["--by", "ring:a,"], ["--by", "ring:a,b,a"],
                     ["--by", "ring:" + ",".join(map(str, range(251)))], ["--by", "nothing"]):
            with self.subTest(args=args):
                self.split(*args, status=2)
                self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    unittest.main()
