"""redoubt stat: findings, patterns, two snapshots, and --for.

REDOUBT names the program.
"""

import itertools
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

REDOUBT = os.environ["REDOUBT"]
NOW = 1700000000
HASH, SET, ZSET = 4, 2, 3


def string(data):
    return b"\x80" + struct.pack(">I", len(data)) + data


def count(n):
    return b"\x80" + struct.pack(">I", n)


class Snapshot:
    def __init__(self, version=b"0010", written=NOW):
        self.out = [b"REDIS" + version]
        if written:
            self.out.append(b"\xfa" + string(b"ctime") + string(b"%d" % written))
        self.out.append(b"\xfe\x00")

    def db(self, number):
        self.out.append(b"\xfe" + bytes([number]))
        return self

    def key(self, name, value, kind=0, expire_ms=None):
        if expire_ms is not None:
            self.out.append(b"\xfc" + struct.pack("<q", expire_ms))
        self.out.append(bytes([kind]) + string(name) + value)
        return self

    def bytes(self):
        return b"".join(self.out) + b"\xff" + bytes(8)


def many(kind, elements):
    """A collection in a table: a list of strings, or of pairs for a hash."""
    n = len(elements) // 2 if kind == HASH else len(elements)
    return count(n) + b"".join(string(e) for e in elements)


class StatTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-stat-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, snapshot, name="dump.rdb"):
        with open(self.path(name), "wb") as out:
            out.write(snapshot.bytes())
        return self.path(name)

    def stat(self, *args, stdin=None):
        done = subprocess.run([REDOUBT, "stat", "--now", str(NOW), *args], capture_output=True,
                              check=False, timeout=600, stdin=stdin)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def text(self, *args):
        status, out, err = self.stat(*args)
        self.assertEqual((status, err), (0, ""))
        for line in out.splitlines():
            self.assertLessEqual(len(line), 80, line)
            self.assertTrue(line.isprintable(), line)
        return out

    def json(self, *args):
        status, out, _ = self.stat("--json", *args)
        data = json.loads(out)
        self.assertEqual(status, data["exit_status"])
        return data


class Findings(StatTest):
    def found(self, snapshot, *args):
        path = self.write(snapshot)
        found = {f["code"]: f for f in self.json(*args, path)["findings"]}
        text = " ".join(self.text(*args, path).split())
        for finding in found.values():
            self.assertIn(finding["text"], text)
            self.assertIn(finding["advice"], text)
        return found

    def test_an_empty_snapshot_has_none(self):
        self.assertEqual(self.found(Snapshot()), {})

    def test_memory_that_never_expires_is_named_with_its_prefix(self):
        s = Snapshot()
        s.key(b"session:1", string(b"x" * 10), expire_ms=NOW * 1000 + 1)
        for i in range(10):
            s.key(b"cart:%d" % i, string(b"x" * 1000))
        text = self.found(s)["never-expires"]["text"]
        self.assertRegex(text, r'^99 % of the memory never expires: 10\.\d KiB in 10 keys, '
                               r'100 % of it under "cart:"\.$')

    def test_no_expiry_at_all_is_another_finding(self):
        s = Snapshot()
        for i in range(100):
            s.key(b"k%d" % i, string(b"v"))
        self.assertEqual(self.found(s)["no-expiry"]["text"], "No key expires.")

    def test_a_big_hash_is_named_with_its_fields(self):
        s = Snapshot().key(b"cart:1", many(HASH, [b"%d" % i for i in range(80000)]), HASH)
        found = self.found(s)["big-collection"]
        self.assertIn('hash "cart:1" has 40,000 fields', found["text"])
        self.assertIn("UNLINK", found["advice"])

    def test_a_big_sorted_set_is_called_so(self):
        members = b"".join(string(b"m%d" % i) + b"\x011" for i in range(10000))
        s = Snapshot().key(b"board", count(10000) + members, ZSET)
        self.assertIn('sorted set "board" has 10,000 members',
                      self.found(s)["big-collection"]["text"])

    def test_lasting_memory_is_named_with_its_database(self):
        s = Snapshot().key(b"session:1", string(b"x"), expire_ms=NOW * 1000 + 1)
        s.db(7).key(b"cart:1", string(b"x" * 1000))
        self.assertIn('under "cart:" in database 7.', self.found(s)["never-expires"]["text"])

    def test_more_big_keys_than_are_named_are_counted(self):
        s = Snapshot()
        for i in range(5):
            s.key(b"set:%d" % i, many(SET, [b"m%d" % k for k in range(10000 + i)]), SET)
        self.assertIn("2 more keys have at least 10,000 elements",
                      self.found(s)["big-collections"]["text"])

    def test_a_long_string_is_named(self):
        s = Snapshot().key(b"page", string(b"x" * 2000000))
        self.assertIn('string "page" takes', self.found(s)["big-value"]["text"])

    def test_small_sets_in_tables_are_counted_with_the_remedy_of_the_version(self):
        members = [b"admin", b"editor"]
        s = Snapshot()
        for i in range(300):
            s.key(b"roles:%d" % i, many(SET, members), SET)
        found = self.found(s)["unpacked"]
        self.assertEqual(found["text"], "300 sets of at most 2 members are stored as hash tables.")
        self.assertIn("Redis 7.2", found["advice"])
        s.out[0] = b"REDIS0011"
        self.assertIn("set-max-listpack-entries", self.found(s)["unpacked"]["advice"])

    def test_long_elements_get_the_setting_and_what_it_saves(self):
        s = Snapshot()
        for i in range(200):
            s.key(b"h:%d" % i, many(HASH, [b"field", b"v" * 100]), HASH)
        found = self.found(s)["long-elements"]
        self.assertIn("200 hashes of at most 1 fields are stored as hash tables", found["text"])
        self.assertIn("hash-max-listpack-value 128 packs them and saves about", found["advice"])
        s.out[0] = b"REDIS0009"
        self.assertIn("hash-max-ziplist-value 128", self.found(s)["long-elements"]["advice"])

    def test_expired_keys_that_were_kept_are_counted_from_the_time_of_the_file(self):
        s = Snapshot()
        for i in range(200):
            s.key(b"k%d" % i, string(b"v"), expire_ms=(NOW - 10) * 1000)
        self.assertIn("200 keys (100 %) had expired", self.found(s)["expired-kept"]["text"])
        s = Snapshot(written=NOW - 20)
        for i in range(200):
            s.key(b"k%d" % i, string(b"v"), expire_ms=(NOW - 10) * 1000)
        self.assertNotIn("expired-kept", self.found(s))

    def test_many_small_strings_and_long_names(self):
        s = Snapshot()
        for i in range(10000):
            s.key(b"a:very:long:name:of:a:key:that:repeats:for:each:%d" % i, string(b"1"))
        found = self.found(s)
        self.assertIn("10,000 strings of at most 32 bytes take", found["small-strings"]["text"])
        self.assertIn("of the memory", found["long-names"]["text"])

    def test_names_in_findings_are_harmless(self):
        evil = b"\x1b[31m</script>\xe2\x80\xae\xff" + b"z" * 300
        s = Snapshot().key(evil, string(b"x" * 2000000))
        text = self.found(s)["big-value"]["text"]
        self.assertTrue(text.isascii() and text.isprintable(), text)


class Patterns(StatTest):
    def test_each_key_counts_in_one_pattern(self):
        s = Snapshot()
        for i in range(500):
            s.key(b"user:%d:roles" % i, string(b"v"))
            s.key(b"tenant:%s:session:%08xaa" % (b"abcdefghijklmnop"[i % 13:i % 13 + 3] +
                                                bytes([97 + i // 26]), i), string(b"v"))
        path = self.write(s)
        data = self.json("--top", "1000", path)
        patterns = {p["pattern"]: p["keys"] for p in data["patterns"]}
        self.assertEqual(patterns["user:{n}:roles"], 500)
        self.assertEqual(patterns["tenant:*:session:{hex}"], 500)
        self.assertEqual(sum(p["memory"] for p in data["patterns"]), data["total"]["memory"])
        self.assertEqual(data["patterns_left_out"], 0)
        self.assertIn("tenant:*:session:{hex}", self.text(path))

    def test_the_separator_may_be_another_one_or_none(self):
        path = self.write(Snapshot().key(b"a/1/x", string(b"v")).key(b"a/2/x", string(b"v")))
        for separator, want in (("/", "a/{n}/x"), (":", "a/{n}/x"), ("", "a/{n}/x")):
            data = self.json("--separator", separator, path)
            self.assertEqual([p["pattern"] for p in data["patterns"]], [want])


class For(StatTest):
    def test_the_layout_of_any_server_may_be_chosen(self):
        s = Snapshot()
        for i in range(200):
            s.key(b"roles:%d" % i, many(SET, [b"admin", b"editor"]), SET)
        path = self.write(s)
        sizes = {}
        for server in ("redis-2.8", "redis-6.2", "redis-7.0", "redis-7.2", "redis-7.4",
                       "redis-8.0", "valkey-7.2", "valkey-8", "valkey-9"):
            data = self.json("--for", server, path)
            sizes[server] = data["total"]["memory"]
            family = server.split("-")[0].capitalize()
            self.assertTrue(data["memory_of"].startswith(family) or server == "valkey-7.2")
        self.assertLess(sizes["redis-7.2"], sizes["redis-7.0"])
        self.assertEqual(sizes["redis-7.2"], sizes["valkey-7.2"])
        self.assertIn("estimated for Valkey 8", self.text("--for", "valkey-8", path))

    def test_an_unknown_server_is_refused(self):
        self.assertEqual(self.stat("--for", "redis-1.0", self.path("x"))[0], 2)


class TwoSnapshots(StatTest):
    def pair(self):
        old, new = Snapshot(), Snapshot(written=NOW + 86400)
        for i in range(100):
            old.key(b"user:%d:name" % i, string(b"x" * 100))
            new.key(b"user:%d:name" % i, string(b"x" * 200))
            old.key(b"gone:%d" % i, string(b"x" * 50))
            new.key(b"new:%d" % i, many(SET, [b"m"]), SET)
            old.key(b"same:%d" % i, string(b"x"))
            new.key(b"same:%d" % i, string(b"x"))
        return self.write(old, "old.rdb"), self.write(new, "new.rdb")

    def test_json_has_both_and_what_changed(self):
        old, new = self.pair()
        alone_old, alone_new = self.json(old), self.json(new)
        data = self.json(old, new)
        self.assertEqual((data["file"], data["old"]["file"]), (new, old))
        self.assertEqual(data["total"], alone_new["total"])
        self.assertEqual(data["old"]["total"], alone_old["total"])
        self.assertEqual(data["old"]["databases"], alone_old["databases"])
        prefixes = {p["prefix"]: p for p in data["changes"]["prefixes"]}
        self.assertNotIn("same:", prefixes)
        was = {p["prefix"]: p["memory"] for p in alone_old["prefixes"]}
        now = {p["prefix"]: p["memory"] for p in alone_new["prefixes"]}
        for prefix in ("user:", "gone:", "new:"):
            self.assertEqual(prefixes[prefix]["memory_before"], was.get(prefix, 0))
            self.assertEqual(prefixes[prefix]["memory"], now.get(prefix, 0))
        self.assertEqual((prefixes["gone:"]["keys_before"], prefixes["gone:"]["keys"]), (100, 0))
        patterns = {p["pattern"]: p for p in data["changes"]["patterns"]}
        self.assertEqual(set(patterns), {"user:{n}:name", "gone:{n}", "new:{n}"})
        types = {t["type"]: t for t in data["changes"]["types"]}
        self.assertEqual((types["set"]["keys_before"], types["set"]["keys"]), (0, 100))
        changes = [abs(p["memory"] - p["memory_before"]) for p in data["changes"]["prefixes"]]
        self.assertEqual(changes, sorted(changes, reverse=True))

    def test_text_says_what_is_new_and_what_is_gone(self):
        out = self.text(*self.pair())
        self.assertRegex(out, r"gone: +-100 .* gone\n")
        self.assertRegex(out, r"new:\{n\} +\+100 .* new\n")
        self.assertRegex(out, r"user: +0 .* \+\d+ %\n")
        self.assertNotIn("same:", out)

    def test_the_same_snapshot_has_no_changes(self):
        old, _ = self.pair()
        self.assertIn("No prefix or pattern has other totals.", self.text(old, old))
        data = self.json(old, old)
        self.assertEqual((data["changes"]["prefixes"], data["changes"]["patterns"]), ([], []))

    def test_lists_end_at_top(self):
        data = self.json("--top", "1", *self.pair())
        self.assertEqual(len(data["changes"]["prefixes"]), 1)
        self.assertGreater(data["changes"]["prefixes_left_out"], 2)
        self.assertIn("with smaller changes", self.text("--top", "1", *self.pair()))

    def test_one_of_them_may_be_standard_input(self):
        old, new = self.pair()
        for args, file in (((old, "-"), new), (("-", new), old)):
            with open(file, "rb") as stdin:
                status, out, _ = self.stat("--json", *args, stdin=stdin)
            self.assertEqual(status, 0)
            self.assertEqual(len(json.loads(out)["changes"]["patterns"]), 3)
        self.assertEqual(self.stat("-", "-")[0], 2)

    def test_filters_apply_to_both(self):
        old, new = self.pair()
        data = self.json("--match", "user:*", old, new)
        self.assertEqual([p["pattern"] for p in data["changes"]["patterns"]], ["user:{n}:name"])
        data = self.json("--type", "set", old, new)
        self.assertEqual(data["old"]["total"]["keys"], 0)
        status, out, err = self.stat("--match", "nothing*", old, new)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("no key matches", err)

    def test_damage_in_either_is_an_error(self):
        old, new = self.pair()
        with open(self.path("cut.rdb"), "wb") as out, open(new, "rb") as whole:
            out.write(whole.read()[:-100])
        for args in ((old, self.path("cut.rdb")), (self.path("cut.rdb"), new)):
            status, out, err = self.stat(*args)
            self.assertEqual((status, out), (1, ""))
            self.assertIn("cut.rdb", err)


class Options(StatTest):
    """Every combination of the options that choose the output."""

    def test_outputs_and_inputs(self):
        snapshot = Snapshot().key(b"a:1", string(b"v" * 100)).db(2).key(b"b", string(b"w"))
        path = self.write(snapshot)
        page = self.path("page.html")
        for i, (html, csv, as_json, force, exists, n) in enumerate(itertools.product(
                (None, page, "-"), (False, True), (False, True), (False, True), (False, True),
                (1, 2))):
            stdin = i // 2 % 2 == 1
            with self.subTest(html=html, csv=csv, json=as_json, force=force, exists=exists, n=n,
                              stdin=stdin):
                if os.path.exists(page):
                    os.remove(page)
                if exists:
                    with open(page, "w", encoding="ascii") as out:
                        out.write("mine")
                args = (["--html", html] if html else []) + ["--csv"] * csv + ["--json"] * as_json
                args += ["--force"] * force + [path] * (n - 1) + ["-" if stdin else path]
                with open(path, "rb") as file:
                    status, out, err = self.stat(*args, stdin=file)
                refused = (html and csv) or (csv and n == 2) or (as_json and (csv or html == "-"))
                occupied = html == page and exists and not force
                self.assertEqual(status, 2 if refused or occupied else 0, err)
                if exists and (status != 0 or html != page):
                    with open(page, encoding="ascii") as file:
                        self.assertEqual(file.read(), "mine")
                elif html == page and status == 0:
                    with open(page, encoding="utf-8") as file:
                        self.assertTrue(file.read().endswith("</html>\n"))
                if status == 0 and as_json:
                    self.assertEqual("changes" in json.loads(out), n == 2)


if __name__ == "__main__":
    unittest.main()
