"""redoubt diff: equal is what holds the same data; of all else, every single element is found."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from captures import command  # noqa: E402
from fake_server import crc64  # noqa: E402
from rdb_text import HASH, LIST, SET, STRING, ZSET, Key, snapshot  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
LATER = 4102444800000


def redoubt(*args, stdin=None):
    return subprocess.run([REDOUBT, *args], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600)


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-diff-")
        self.addCleanup(folder.cleanup)
        self.a = os.path.join(folder.name, "a.rdb")
        self.b = os.path.join(folder.name, "b.rdb")

    def write(self, a, b, **more):
        for path, keys in ((self.a, a), (self.b, b)):
            with open(path, "wb") as f:
                f.write(snapshot(keys, **more))

    def diff(self, *args, status=1, stdin=None):
        run = redoubt("diff", *args, self.a, self.b, stdin=stdin)
        self.assertEqual(run.returncode, status, (run.stdout, run.stderr))
        self.err = run.stderr.decode()
        if status <= 1 and stdin is None and self.seal():
            again = redoubt("diff", *args, self.a, self.b)
            self.assertEqual((again.returncode, again.stdout), (status, run.stdout))
        return run.stdout.decode()

    def seal(self):
        """Gives both files their checksums: then stored bytes are compared before contents."""
        files = []
        for path in (self.a, self.b):
            if not os.path.isfile(path):
                return False
            with open(path, "rb") as f:
                files.append(f.read())
        if not all(data.startswith((b"REDIS", b"VALKEY")) and data.endswith(b"\xff" + bytes(8))
                   for data in files):
            return False
        for path, data in zip((self.a, self.b), files):
            with open(path, "wb") as f:
                f.write(data[:-8] + crc64(data[:-8]).to_bytes(8, "little"))
        return True

    def one(self, a, b, *args):
        """The only difference between two values of a key."""
        self.write([Key(b"k", *a)], [Key(b"k", *b)])
        found = json.loads(self.diff("--json", "--values", *args))["differences"]
        self.assertEqual(len(found), 1)
        return found[0]


class Same(Case):
    def test_every_fixture_is_equal_to_its_rewrite_in_other_versions(self):
        """Each in two versions, which take turns."""
        n = n_files = 0
        for folder, _, names in sorted(os.walk(FIXTURES)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if not name.endswith(".rdb") or not os.path.exists(path[:-4] + ".json"):
                    continue
                versions = ("6", "9", "11", "12", "80")
                n_files += 1
                for version in versions[n_files % 5], versions[(n_files + 2) % 5]:
                    run = redoubt("convert", "--to", "rdb", "--rewrite", "--rdb-version", version,
                                  path, "-o", self.b, "--force")
                    if run.returncode != 0:
                        continue  # the version cannot hold it
                    with self.subTest(path, version=version):
                        run = redoubt("diff", "--values", path, self.b)
                        self.assertEqual(run.returncode, 0, run.stdout[-500:])
                        n += 1
        self.assertGreater(n, 40)

    def test_a_damaged_value_is_an_error_where_no_checksum_proves_that_it_was_written_so(self):
        with open(os.path.join(FIXTURES, "damaged", "flip-00.rdb"), "rb") as f:
            damaged = f.read()
        for path in (self.a, self.b):
            with open(path, "wb") as f:
                f.write(damaged[:-8] + bytes(8))
        run = redoubt("diff", self.a, self.b)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn(b"listpack entry with a wrong back length", run.stderr)

    def test_order_counts_where_the_type_has_one(self):
        pairs = [(b"a", b"1"), (b"b", b"2")]
        scores = [(b"a", 1.0), (b"b", 2.0)]
        for kind, items, status in ((SET, [b"a", b"b"], 0), (HASH, pairs, 0), (ZSET, scores, 0),
                                    (LIST, [b"a", b"b"], 1)):
            self.write([Key(b"k", kind, items)], [Key(b"k", kind, items[::-1])])
            self.diff(status=status)

    def test_keys_on_one_side_that_have_expired_are_named_as_such(self):
        old = [Key(b"old%d" % i, STRING, b"v", expire_ms=1745000700000) for i in range(3)]
        kept = Key(b"kept", STRING, b"v", expire_ms=LATER)
        self.write([*old, kept, Key(b"x", STRING, b"v")], [kept, old[0]])
        text = self.diff().splitlines()
        self.assertEqual(text[-2:], [
            "2 of the keys only in A have expired: servers drop such keys, and --no-expired leaves "
            "them out", "5 and 2 keys: 3 only in A, 0 only in B, 0 different"])
        self.assertIn('db 0, key "old2": only in A, string, expired', text)
        self.assertIn('db 0, key "x": only in A, string', text)
        self.assertEqual(json.loads(self.diff("--json"))["only_expired"], [2, 0])
        self.write([kept], [kept, old[0]])
        self.assertIn("1 of the keys only in B has expired", self.diff())
        self.diff("--no-expired", status=0)

    def test_order_of_keys_does_not_count(self):
        keys = [Key(b"k%d" % i, STRING, b"v", db=i % 3) for i in range(1000)]
        self.write(keys, keys[::-1])
        out = self.diff(status=0)
        self.assertEqual(out, "1,000 and 1,000 keys: 0 only in A, 0 only in B, 0 different\n")

    def test_strings_are_not_run_together(self):
        self.write([Key(b"k", HASH, [(b"ab", b"c")])], [Key(b"k", HASH, [(b"a", b"bc")])])
        self.diff()
        self.write([Key(b"k", LIST, [b"ab", b""])], [Key(b"k", LIST, [b"a", b"b"])])
        self.diff()


class Elements(Case):
    def test_a_string(self):
        found = self.one((STRING, b"hello world"), (STRING, b"hello there!"))
        self.assertEqual(found["value"], {"bytes": [11, 12], "first_byte": 6,
                                          "a": {"from": 0, "text": "hello world"},
                                          "b": {"from": 0, "text": "hello there!"}})
        big = bytes(range(256)) * 2000
        found = self.one((STRING, big), (STRING, big[:400000] + b"!" + big[400001:]))
        self.assertEqual(found["value"]["first_byte"], 400000)

    def test_one_element_of_a_list(self):
        items = [b"e%d" % i for i in range(1000)]
        found = self.one((LIST, items), (LIST, items[:700] + [b"x"] + items[701:]))
        self.assertEqual((found["value"]["differ"], found["value"]["only"]), (1, [0, 0]))
        self.assertEqual(found["value"]["first"], [
            {"part": "element", "index": 700, "in": "both", "a": {"text": "e700"},
             "b": {"text": "x"}}])

    def test_one_member_of_a_set(self):
        items = [b"e%d" % i for i in range(1000)]
        found = self.one((SET, items), (SET, items[1:] + [b"new"]))
        self.assertEqual([(p["name"], p["in"]) for p in found["value"]["first"]],
                         [("e0", "a"), ("new", "b")])

    def test_one_score_of_a_sorted_set(self):
        items = [(b"m%d" % i, i / 2) for i in range(1000)]
        found = self.one((ZSET, items), (ZSET, items[:-1] + [(b"m999", 1e300)]))
        self.assertEqual(found["value"]["first"], [
            {"part": "member", "name": "m999", "in": "both", "a": {"text": "499.5"},
             "b": {"text": "1e+300"}}])

    def test_one_field_of_a_hash(self):
        items = [(b"f%d" % i, b"v%d" % i) for i in range(1000)]
        found = self.one((HASH, items), (HASH, items[:5] + [(b"f5", b"other")] + items[6:]))
        self.assertEqual(found["value"]["first"], [
            {"part": "field", "name": "f5", "in": "both", "a": {"text": "v5"},
             "b": {"text": "other"}}])

    def test_no_more_elements_are_reported_than_asked_for(self):
        a, b = [b"a%d" % i for i in range(100)], [b"b%d" % i for i in range(100)]
        found = self.one((SET, a), (SET, b), "--max-elements", "3")
        self.assertEqual([p["name"] for p in found["value"]["first"]], ["a0", "a1", "a2"])
        self.assertEqual(found["value"]["only"], [100, 100])
        self.assertIn("and 197 more", self.diff("--values", "--max-elements", "3"))

    def test_long_elements_are_cut(self):
        found = self.one((HASH, [(b"f" * 999, b"a" * 999)]), (HASH, [(b"f" * 999, b"b" * 999)]))
        part = found["value"]["first"][0]
        self.assertTrue(part["name_cut"] and part["a"]["cut"] and part["b"]["cut"])
        self.assertEqual(len(part["name"]), 200)


class Lines(Case):
    """Snapshots made of lines of JSON, for what those of this test cannot hold."""

    def write_line(self, path, line):
        run = redoubt("convert", "--to", "rdb", "--force", "-", "-o", path,
                      stdin=json.dumps(line).encode() + b"\n")
        self.assertEqual(run.returncode, 0, run.stderr)


class Streams(Lines):
    def test_pending_entries_that_differ_are_named(self):
        """Equal counts: the entry, its delivery and its owner say what differs."""
        def line(*pending):
            consumers = [{"name": n, "seen_ms": 1, "active_ms": 1} for n in ("alice", "bob")]
            entries = [{"id": f"{i}-1", "fields": [["f", "v"]]} for i in (1, 2, 3)]
            return {"db": 0, "key": "s", "type": "stream", "value": {
                "entries": entries, "length": 3, "last_id": "3-1", "first_id": "1-1",
                "max_deleted_id": "0-0", "entries_added": 3, "groups": [
                    {"name": "g", "last_id": "3-1", "entries_read": 3, "consumers": consumers,
                     "pending": [{"id": i, "consumer": c, "delivery_ms": ms, "delivery_count": n}
                                 for i, c, ms, n in pending]}]}}

        first, third = ("1-1", "alice", 5, 1), ("3-1", "bob", 6, 1)
        cases = (
            (("2-1", "alice", 5, 1), ("2-1", "alice", 5, 9),
             "2-1 delivered at 5 ms, count 1", "2-1 delivered at 5 ms, count 9"),
            (("2-1", "alice", 5, 1), ("2-1", "alice", 7, 1),
             "2-1 delivered at 5 ms, count 1", "2-1 delivered at 7 ms, count 1"),
        )
        for a, b, in_a, in_b in cases:
            self.write_line(self.a, line(first, a, third))
            self.write_line(self.b, line(first, b, third))
            out = self.diff("--values")
            group = [text for text in out.splitlines() if 'group "g"' in text]
            self.assertEqual(len(group), 1, out)
            left, right = group[0].split('" and "')
            self.assertIn(in_a + "; last id", left)
            self.assertIn(in_b + "; last id", right)
        self.write_line(self.a, line(first, third))
        self.write_line(self.b, line(("2-1", "alice", 5, 1), third))
        out = self.diff("--values")
        self.assertIn("1-1 delivered at 5 ms, count 1; ", out)
        self.assertIn("1-1 not pending; ", out)
        self.write_line(self.a, line(first, third))
        self.write_line(self.b, line(("1-1", "bob", 5, 1), ("3-1", "alice", 6, 1)))
        out = self.diff("--values")
        self.assertIn("owns 1-1; ", out)
        self.assertIn("does not own 1-1; ", out)

    def test_counters_and_groups_are_reported_with_what_they_hold(self):
        entry = {"id": "2-1", "fields": [["a", "2"]]}
        pending = {"id": "2-1", "consumer": "alice", "delivery_ms": 5, "delivery_count": 1}
        group = {"name": "g", "last_id": "1-1", "entries_read": 1, "pending": [], "consumers": []}
        more = {"name": "g", "last_id": "2-1", "entries_read": 2, "pending": [pending],
                "consumers": [{"name": "alice", "seen_ms": 5}, {"name": "b\nb", "seen_ms": 5}]}
        for path, last, deleted, added, groups in (
                (self.a, "2-1", "0-0", 2, [group]),
                (self.b, "3-1", "1-1", 3, [more, {**group, "name": "h", "entries_read": None}])):
            self.write_line(path, {
                "db": 0, "key": "s", "type": "stream",
                "value": {"entries": [entry], "length": 1, "last_id": last, "first_id": "2-1",
                          "max_deleted_id": deleted, "entries_added": added, "groups": groups}})
        lines = self.diff("--values").splitlines()
        self.assertEqual(lines[1:-1], [
            '    meta: "last id 2-1, 2 added, deleted up to 0-0" and '
            '"last id 3-1, 3 added, deleted up to 1-1"',
            '    group "g": "last id 1-1, 1 read, 0 pending" and '
            '"last id 2-1, 2 read, 1 pending; alice 1; b\\nb 0"',
            '    group "h" only in B: "last id 1-1, 0 pending"'])
        reported = json.loads(self.diff("--values", "--json"))["differences"][0]["value"]["first"]
        self.assertEqual(reported[2], {"part": "group", "name": "h", "in": "b",
                                   "b": {"text": "last id 1-1, 0 pending"}})


class Expiries(Lines):
    """Fields of hashes that expire."""

    def setUp(self):
        super().setUp()
        for path, value in ((self.a, {"f": 4102444800000, "g": None}),
                            (self.b, {"f": 4102444800001, "n": 4102444800000})):
            self.write_line(path, {"db": 0, "key": "h", "type": "hash",
                                   "value": dict.fromkeys(value, "v"),
                                   "field_expire_ms": {f: at for f, at in value.items() if at}})

    def test_fields_are_reported_with_when_they_expire(self):
        lines = self.diff("--values").splitlines()
        self.assertIn('    field "f": expiry 2100-01-01T00:00:00Z and 2100-01-01T00:00:00.001Z',
                      lines)
        self.assertIn('    field "n" only in B: "v"', lines)
        reported = json.loads(self.diff("--values", "--json"))["differences"][0]["value"]["first"]
        self.assertIn({"part": "field", "name": "n", "in": "b",
                       "b": {"text": "v", "expire_ms": 4102444800000}}, reported)

    def test_a_tolerance_holds_for_fields_too(self):
        self.assertNotIn('field "f"', self.diff("--values", "--expire-tolerance", "1"))
        self.diff("--ignore-expire", "--not", "--match", "h", status=1)
        self.assertIn("nothing was compared", self.err)


class Keys(Case):
    def two(self):
        self.write([Key(b"same", STRING, b"v"), Key(b"a", LIST, [b"x"], db=2),
                    Key(b"t", STRING, b"v"), Key(b"e", STRING, b"v", 0, LATER),
                    Key(b"both", STRING, b"1", 0, LATER)],
                   [Key(b"both", STRING, b"2"), Key(b"e", STRING, b"v", 0, LATER + 1000),
                    Key(b"t", SET, [b"v"]), Key(b"same", STRING, b"v"),
                    Key(b"a\n", LIST, [b"x"], db=10)])

    def test_text_in_the_order_of_databases_and_names(self):
        self.two()
        self.assertEqual(self.diff().splitlines(), [
            'db 0, key "both": different expiry: 2100-01-01T00:00:00Z and none; '
            "value: 1 byte and 1 byte, different from byte 0",
            'db 0, key "e": different expiry: 2100-01-01T00:00:00Z and 2100-01-01T00:00:01Z',
            'db 0, key "t": different type: string and set',
            'db 2, key "a": only in A, list',
            'db 10, key "a\\n": only in B, list',
            "5 and 5 keys: 1 only in A, 1 only in B, 3 different (type 1, expiry 2, value 1)"])

    def test_fast_reports_names_and_counts(self):
        self.two()
        self.assertIn("none; value\n", self.diff("--fast"))

    def test_lines_of_json(self):
        self.two()
        lines = [json.loads(line) for line in self.diff("--ndjson").splitlines()]
        self.assertEqual([(x["db"], x["key"], x["in"]) for x in lines[:-1]],
                         [(0, "both", "both"), (0, "e", "both"), (0, "t", "both"), (2, "a", "a"),
                          (10, "a\n", "b")])
        self.assertEqual(lines[0]["expire_ms"], [LATER, None])
        self.assertEqual(lines[2]["type"], ["string", "set"])
        self.assertEqual(lines[-1]["summary"]["only"], [1, 1])
        reported = json.loads(self.diff("--json"))
        self.assertEqual(reported["differences"], lines[:-1])
        self.assertEqual({k: reported[k] for k in lines[-1]["summary"]}, lines[-1]["summary"])

    def test_expiry_with_tolerance_and_without_any(self):
        self.write([Key(b"e", STRING, b"v", 0, LATER)], [Key(b"e", STRING, b"v", 0, LATER + 1000)])
        self.diff()
        self.diff("--expire-tolerance", "999")
        self.diff("--expire-tolerance", "1000", status=0)
        self.diff("--ignore-expire", status=0)
        self.write([Key(b"e", STRING, b"v", 0, LATER)], [Key(b"e", STRING, b"v")])
        self.diff("--expire-tolerance", "1000")
        self.diff("--ignore-expire", status=0)

    def test_times_to_live_in_logs_count_from_one_moment(self):
        """Commands without a time run at the present, which is the same for both sides."""
        log = command("SELECT", "0") + command("SETEX", "s", "1000", "v")
        log += b"".join(command("SET", f"key:{i}", "v") for i in range(100000))
        for path in (self.a, self.b):
            with open(path, "wb") as f:
                f.write(log + command("SETEX", "last", "1000", "v"))
        self.assertIn("100,002 keys", self.diff(status=0))

    def test_values_shows_both_strings(self):
        self.write([Key(b"k", STRING, b"one\n")], [Key(b"k", STRING, b"other")])
        lines = self.diff("--values").splitlines()
        self.assertEqual(lines[1:3], ['    A: "one\\n"', '    B: "other"'])
        self.write([Key(b"k", STRING, b"x" * 5000 + b"a")],
                   [Key(b"k", STRING, b"x" * 5000 + b"b" * 5000)])
        lines = self.diff("--values").splitlines()
        self.assertEqual(lines[1], '    A: from byte 4980 "' + "x" * 20 + 'a"')
        self.assertEqual(lines[2], '    B: from byte 4980 "' + "x" * 20 + "b" * 180 + '"...')
        reported = json.loads(self.diff("--values", "--json"))["differences"][0]["value"]
        self.assertEqual(reported["a"], {"from": 4980, "text": "x" * 20 + "a"})
        self.assertEqual(reported["b"], {"from": 4980, "text": "x" * 20 + "b" * 180, "cut": True})
        self.write([Key(b"k", STRING, b"")], [Key(b"k", STRING, b"12")])
        reported = json.loads(self.diff("--values", "--json"))["differences"][0]["value"]
        self.assertEqual((reported["a"]["text"], reported["b"]["text"]), ("", "12"))

    def test_quiet_says_it_by_its_status(self):
        self.two()
        self.assertEqual(self.diff("-q"), "")

    def test_filters_choose(self):
        self.two()
        self.diff("--match", "same", status=0)
        self.assertIn("1 and 0 keys", self.diff("--db", "2"))

    def test_functions_are_data(self):
        self.write([], [])
        with open(self.b, "wb") as f:
            f.write(snapshot([], functions=[b"#!lua name=x\n"]))
        self.assertIn("functions differ: 0 and 1 libraries", self.diff())

    def test_long_names_are_reported_whole(self):
        name = b"n" * 5000
        self.write([Key(name + b"1", STRING, b"v")], [Key(name + b"2", STRING, b"v")])
        reported = json.loads(self.diff("--json"))["differences"]
        self.assertEqual(sorted(x["key"].encode() for x in reported), [name + b"1", name + b"2"])

    def test_many_keys_are_sorted_on_disk(self):
        n = 300000
        keys = [Key(b"k%d" % i, STRING, b"v") for i in range(n)]
        self.write(keys, keys[1:] + [Key(b"last", STRING, b"v")])
        lines = self.diff().splitlines()
        self.assertEqual(lines[:2], ['db 0, key "k0": only in A, string',
                                     'db 0, key "last": only in B, string'])
        self.assertEqual(len(lines), 3)


class Manners(Case):
    def test_from_standard_input_and_compressed(self):
        import gzip
        self.write([Key(b"k", LIST, [b"x"])], [Key(b"k", LIST, [b"y"])])
        with open(self.a, "rb") as f:
            data = f.read()
        with gzip.open(self.a, "wb") as f:
            f.write(data)
        self.assertIn("1 and 1 parts, 1 different", self.diff())
        run = redoubt("diff", "-", self.b, stdin=data)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn(b"1 and 1 parts, 1 different", run.stdout)

    def test_other_inputs_are_not_supported_yet(self):
        self.write([], [])
        lines = self.a + ".ndjson"
        with open(lines, "wb") as f:
            f.write(b'{"db":0}\n')
        run = redoubt("diff", self.a, lines)
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn(b"cannot be read here", run.stderr)

    def test_damage_is_not_a_difference(self):
        self.write([Key(b"k", STRING, b"v")], [Key(b"k", STRING, b"v")])
        with open(self.b, "rb") as f:
            data = f.read()
        with open(self.b, "wb") as f:
            f.write(data[:-12])
        run = redoubt("diff", self.a, self.b)
        self.assertEqual(run.returncode, 1)
        self.assertIn(b"truncated", run.stderr)
        self.assertEqual(run.stdout, b"")

    def test_options_that_do_not_fit(self):
        self.write([], [])
        for args in (["--fast", "--values"], ["--json", "--ndjson"], ["--max-elements", "1001"],
                     ["-h", "third"], ["-p", "1"], ["-n", "x"], ["-t", "-1"], ["-u", "http://h"]):
            self.diff(*args, status=2)
        for args in (["diff", self.a], ["diff", self.a, "redis://h:99999"],
                     ["diff", "--tls", self.a, "-s", "/socket"]):
            self.assertEqual(redoubt(*args).returncode, 2)

    def test_a_url_is_reported_without_its_password(self):
        url = "redis://me:secret@127.0.0.1:1"
        for args in (["diff", self.a, self.b, url], ["stat", url], ["merge", url, "-o", self.b],
                     ["diff", "--json", url, url], ["check-rdb", url], ["split", url, "-x"]):
            run = redoubt(*args)
            self.assertNotEqual(run.returncode, 0)
            self.assertNotIn(b"secret", run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
