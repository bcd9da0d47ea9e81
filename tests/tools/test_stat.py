"""redoubt stat: text, CSV, JSON, filters, limits.

REDOUBT names the program.
"""

import csv
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

REDOUBT = os.environ["REDOUBT"]
FIXTURES = os.environ["REDOUBT_FIXTURES"]
TINY = os.path.join(FIXTURES, "redis-7.0.15", "tiny.rdb")
NOW = 1700000000
COLUMNS = "database,type,key,size_in_bytes,encoding,num_elements,len_largest_element,expiry"
DAY_MS = 86400 * 1000


def string(data):
    return b"\x80" + struct.pack(">I", len(data)) + data


def listpack(*texts):
    """Of strings shorter than 64 bytes."""
    body = b"".join(bytes([0x80 | len(t)]) + t + bytes([len(t) + 1]) for t in texts)
    return struct.pack("<IH", len(body) + 7, len(texts)) + body + b"\xff"


def literal_lzf(data):
    """As LZF that compresses nothing."""
    out = b""
    for at in range(0, len(data), 32):
        piece = data[at:at + 32]
        out += bytes([len(piece) - 1]) + piece
    head = b"\x80" + struct.pack(">I", len(out)) + b"\x80" + struct.pack(">I", len(data))
    return b"\xc3" + head + out


class Writer:
    """A snapshot by hand: values are (type, bytes)."""

    def __init__(self):
        self.out = [b"REDIS0010"]

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


class StatTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-stat-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, writer, name="dump.rdb"):
        with open(self.path(name), "wb") as out:
            out.write(writer.bytes())
        return self.path(name)

    def stat(self, *args):
        done = subprocess.run([REDOUBT, "stat", "--at", str(NOW), *args], capture_output=True,
                              check=False, timeout=600)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def lines(self, *args):
        status, out, err = self.stat(*args)
        self.assertEqual((status, err), (0, ""))
        return out.splitlines()

    def json(self, *args):
        status, out, _ = self.stat("--json", *args)
        data = json.loads(out)
        self.assertEqual(status, data["exit_status"])
        return data

    def rows(self, *args):
        return list(csv.DictReader(self.lines("--csv", *args)))

    def mixed(self):
        w = Writer().db(0)
        for i in range(40):
            expire = NOW * 1000 + (i - 10) * DAY_MS if i % 2 else None
            w.key(b"user:%d:name" % i, string(b"n" * (10 * i)), expire_ms=expire)
            w.key(b"user:%d:age" % i, b"\xc0" + bytes([i]))
        w.key(b"list", b"\x03" + string(b"a") + string(b"bb") + string(b"c" * 500), kind=1)
        w.key(b"set", b"\x02" + string(b"x") + string(b"yyy"), kind=2)
        w.db(2)
        for i in range(30):
            w.key(b"h:%d" % i, string(listpack(b"field", b"value%d" % i)), kind=16)
        return self.write(w)


class Text(StatTest):
    def test_it_fits_a_terminal_of_80_columns(self):
        paths = [self.mixed(), TINY]
        paths += [os.path.join(FIXTURES, "redis-7.2.5", name)
                  for name in os.listdir(os.path.join(FIXTURES, "redis-7.2.5"))
                  if name.endswith(".rdb")]
        for path in paths:
            for line in self.lines(path):
                self.assertLessEqual(len(line), 80, line)
                self.assertTrue(line.isprintable(), line)

    def test_its_sections_are_there(self):
        text = "\n".join(self.lines(self.mixed()))
        for title in ("Types", "Encodings", "Databases", "Expiry", "Prefixes", "Biggest keys",
                      "Most elements", "Sizes"):
            self.assertIn("\n" + title, text)

    def test_no_control_byte_of_a_key_gets_out(self):
        path = self.write(Writer().db(0).key(b"a\x1b[31m\n:\xff" + b"z" * 300, string(b"v" * 99)))
        out = "\n".join(self.lines(path))
        self.assertIn("a\\x1b[31m\\n", out)
        self.assertIn("...zzzz", out)
        self.assertNotIn("\x1b", out)
        self.assertNotIn('"', out)

    def test_a_valkey_that_writes_the_version_of_redis_is_named(self):
        lines = self.lines(os.path.join(FIXTURES, "valkey-8.0.1", "tiny.rdb"))
        self.assertTrue(lines[2].startswith("  written   by Valkey 8.0.1 at "), lines[2])
        data = self.json(os.path.join(FIXTURES, "valkey-8.0.1", "tiny.rdb"))
        self.assertEqual((data["server"], data["written_by"]), ("valkey", "8.0.1"))

    def test_an_empty_snapshot_has_no_keys(self):
        self.assertIn("  keys      0, 0 with an expiry", self.lines(self.write(Writer())))


class Csv(StatTest):
    def test_the_columns_are_those_of_redis_rdb_tools(self):
        lines = self.lines("--csv", self.mixed())
        self.assertEqual(lines[0], COLUMNS)
        self.assertEqual(len(lines), 1 + 80 + 2 + 30)

    def test_a_line_reports_all_of_its_key(self):
        rows = {row["key"]: row for row in self.rows(self.mixed())}
        self.assertEqual(rows["list"]["num_elements"], "3")
        self.assertEqual(rows["list"]["len_largest_element"], "500")
        self.assertEqual(rows["list"]["type"], "list")
        hash_row = rows["h:29"]
        self.assertEqual((hash_row["database"], hash_row["encoding"], hash_row["num_elements"],
                          hash_row["len_largest_element"]), ("2", "listpack", "1", "7"))
        self.assertEqual(rows["user:3:name"]["expiry"], "2023-11-07T22:13:20Z")
        self.assertEqual(rows["user:2:name"]["expiry"], "")
        # The object and a string of 390 bytes in a class of 448; the name in 16; the table's entry.
        self.assertEqual(rows["user:39:name"]["size_in_bytes"], str(16 + 448 + 16 + 32))

    def test_names_are_quoted_and_keep_every_byte(self):
        names = [b'a"b', b"back\\slash", b"new\nline", b"\xff,\xc3\xa9", b""]
        w = Writer().db(0)
        for name in names:
            w.key(name, string(b"v"))
        got = [row["key"] for row in self.rows(self.write(w))]
        self.assertEqual(got, ['a"b', "back\\\\slash", "new\\x0aline", "\\xff,\\xc3\\xa9", ""])


class Json(StatTest):
    def test_sums_agree_with_the_lines(self):
        path = self.mixed()
        rows, data = self.rows(path), self.json(path)
        memory = sum(int(row["size_in_bytes"]) for row in rows)
        self.assertEqual(data["total"]["memory"], memory)
        self.assertEqual(data["total"]["keys"], len(rows))
        self.assertEqual(data["total"]["expires"], 20)
        for part in ("types", "encodings", "databases", "expiry"):
            self.assertEqual(sum(row["memory"] for row in data[part]), memory, part)
            self.assertEqual(sum(row["keys"] for row in data[part]), len(rows), part)

    def test_expiry_is_counted_from_the_time_that_is_given(self):
        when = {row["when"]: row["keys"] for row in self.json(self.mixed())["expiry"]}
        self.assertEqual(when["expired"], 5)
        self.assertEqual(when["within 1 day"], 1)
        self.assertEqual(when["within 7 days"], 3)
        self.assertEqual(when["within 30 days"], 11)
        self.assertEqual(when["never"], 92)

    def test_the_biggest_come_first(self):
        data = self.json("--top", "3", self.mixed())
        rows = sorted(self.rows(self.mixed()), key=lambda r: (-int(r["size_in_bytes"]), r["key"]))
        self.assertEqual([k["memory"] for k in data["biggest"]],
                         [int(r["size_in_bytes"]) for r in rows[:3]])
        self.assertEqual(data["most_elements"][0]["key"], "list")

    def test_prefixes_by_separator_and_depth(self):
        path = self.mixed()
        found = {p["prefix"]: p for p in self.json("--top", "100", path)["prefixes"]}
        self.assertEqual((found["user:"]["keys"], found["user:"]["db"]), (80, 0))
        self.assertEqual(found["user:7:"]["keys"], 2)
        self.assertEqual(found["h:"]["keys"], 30)
        flat = [p["prefix"] for p in self.json("--top", "100", "--depth", "1", path)["prefixes"]]
        self.assertEqual(sorted(flat), ["h:", "user:"])
        other = self.json("--top", "9", "--separator", "er:", path)["prefixes"]
        self.assertEqual([p["prefix"] for p in other], ["user:"])
        self.assertEqual(self.json("--separator", "", path)["prefixes"], [])

    def test_it_says_so_when_it_fails(self):
        damaged = os.path.join(FIXTURES, "damaged", "cut-tiny-136.rdb")
        self.assertEqual(self.json(damaged)["error"]["code"], "truncated")
        status, out, err = self.stat(damaged)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("redoubt check-rdb", err)


class Filters(StatTest):
    def keys(self, *args):
        return [row["key"] for row in self.rows(*args, self.mixed())]

    def test_only_what_is_wanted_is_counted(self):
        self.assertEqual(self.keys("--type", "hash", "--match", "h:1"), ["h:1"])
        self.assertEqual(len(self.keys("--db", "2")), 30)
        self.assertEqual(len(self.keys("--expired")), 5)
        self.assertEqual(len(self.keys("--prefix", "user:", "--not", "--match", "*:age")), 40)

    def test_min_size_is_about_the_bytes_in_the_file(self):
        big = self.keys("--min-size", "350")
        self.assertEqual(big, ["user:35:name", "user:36:name", "user:37:name", "user:38:name",
                               "user:39:name", "list"])
        self.assertEqual(len(self.keys("--not", "--min-size", "350")), 112 - len(big))
        data = self.json("--min-size", "350", self.mixed())
        self.assertEqual(data["total"]["keys"], 6)
        strings = data["types"][0]["element_bytes"]
        self.assertEqual((strings["n"], strings["max"]), (5, 390))

    def test_a_size_that_is_none_is_refused(self):
        self.assertEqual(self.stat("--min-size", "many", TINY)[0], 2)


class Bounds(StatTest):
    def test_more_prefixes_than_are_kept_are_reported_with_their_error(self):
        w = Writer().db(0)
        for i in range(30000):
            w.key(b"tenant:%d:k" % i, string(b"v" * 60))
        for i in range(500):
            w.key(b"heavy:%d" % i, string(b"v" * 4000))
        data = self.json(self.write(w))
        found = {p["prefix"]: p for p in data["prefixes"]}
        for prefix, keys in (("tenant:", 30000), ("heavy:", 500)):
            row = found[prefix]
            self.assertLessEqual(row["keys"], keys)
            self.assertGreater(row["memory"] + row["missed_at_most"], keys * 100)
        self.assertEqual(found["tenant:"]["keys"], 30000)
        self.assertGreater(data["unlisted_prefix_at_most"], 0)

    def many_hashes(self):
        w = Writer().db(0)
        for i in range(6000):
            fields = [b"f%d" % (j % 10) * (1 + j % 3) for j in range(2 * (1 + i % 5))]
            w.key(b"h:%d" % i, literal_lzf(listpack(*fields)), kind=16)
        w.key(b"last", literal_lzf(listpack(b"name", b"v" * 60)), kind=16)
        return self.write(w)

    def test_a_sample_counts_as_many_elements_and_bytes_as_all_do(self):
        path = self.many_hashes()
        sample, whole = self.json(path), self.json("--exact", path)
        few, all_ = sample["types"][0], whole["types"][0]
        self.assertGreater(few["keys_not_sampled"], 3000)
        self.assertEqual(all_["keys_not_sampled"], 0)
        for name in ("keys", "elements", "memory", "key_elements", "key_memory"):
            self.assertEqual(few[name], all_[name], name)
        self.assertEqual(sample["biggest"], whole["biggest"])
        self.assertAlmostEqual(few["element_bytes"]["n"] / all_["element_bytes"]["n"], 1, delta=0.1)
        self.assertEqual(few["element_bytes"]["p90"], all_["element_bytes"]["p90"])

    def test_lines_are_exact_without_being_asked(self):
        self.assertEqual({row["len_largest_element"] for row in self.rows(self.many_hashes())},
                         {"4", "6", "60"})

    def test_options_out_of_range_are_refused(self):
        for args in (["--top", "1001"], ["--depth", "0"], ["--depth", "17"], ["--csv", "--json"],
                     ["--csv", "--html", self.path("x.html")]):
            self.assertEqual(self.stat(*args, TINY)[0], 2, args)

    def test_a_page_is_not_replaced_unless_asked(self):
        out = self.path("page.html")
        self.assertEqual(self.stat("--html", out, TINY)[0], 0)
        self.assertEqual(self.stat("--html", out, TINY)[0], 2)
        self.assertEqual(self.stat("--force", "--html", out, TINY)[0], 0)


class Fixtures(StatTest):
    def test_keys_are_those_that_convert_finds(self):
        n = 0
        for folder, _, names in sorted(os.walk(FIXTURES)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if not name.endswith(".rdb") or "damaged" in path:
                    continue
                with self.subTest(os.path.relpath(path, FIXTURES)):
                    n += self.compare(path)
        self.assertGreater(n, 1000)

    def compare(self, path):
        done = subprocess.run([REDOUBT, "convert", "--to", "ndjson", path], capture_output=True,
                              check=False, timeout=600)
        if done.returncode != 0:
            self.assertEqual(self.stat(path)[0], done.returncode)
            return 0
        want = [json.loads(line) for line in done.stdout.splitlines()]
        got = self.rows(path)
        self.assertEqual([(str(w["db"]), w["type"]) for w in want],
                         [(g["database"], g["type"]) for g in got])
        for w, g in zip(want, got):
            if w["type"] in ("list", "set", "zset", "hash"):
                self.assertEqual(len(w["value"]), int(g["num_elements"]), g["key"])
            if w["type"] == "list":
                longest = max(len(v.encode("utf-8", "surrogateescape")) for v in w["value"])
                self.assertEqual(longest, int(g["len_largest_element"]), g["key"])
        total = self.json(path)["total"]
        self.assertEqual(total["memory"], sum(int(g["size_in_bytes"]) for g in got))
        return len(got)


if __name__ == "__main__":
    unittest.main()
