"""redoubt check-rdb, over the fixtures, over damage made here, and beside redis-check-rdb.

REDOUBT names the program, REDOUBT_FIXTURES the fixtures. REDOUBT_SEED repeats a run.
"""

import gzip
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import hexfile  # noqa: E402
import manifest  # noqa: E402
import redis_server  # noqa: E402
import report_text  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
SEED = int(os.environ.get("REDOUBT_SEED", "20240501"))
VERDICTS = ("ok", "warnings", "checksum", "damaged", "truncated", "unsupported")


def fixture(*names):
    return os.path.join(FIXTURES, *names)


def string(data):
    assert len(data) < 64
    return bytes([len(data)]) + data


def rdb(*records, version=10):
    """A snapshot without checksum."""
    return b"REDIS%04d" % version + b"".join(records) + b"\xff" + bytes(8)


def crc64(data):
    """The checksum of snapshots, bit by bit."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95ac9329ac4bc9b5 if crc & 1 else 0)
    return crc


def summed(data):
    """The same snapshot with its checksum."""
    return data[:-8] + struct.pack("<Q", crc64(data[:-8]))


def pair(key, value=b"v"):
    return b"\0" + string(key) + string(value)


def snapshots():
    """Of every server and by hand: (path in the manifest, its bytes, what is expected)."""
    for row in manifest.read(FIXTURES).values():
        if row.kind == "rdb":
            with open(fixture(row.path), "rb") as f:
                yield row.path, f.read(), row.expected
        elif row.kind == "rdb-hex":
            yield row.path, hexfile.load(fixture(row.path)), row.expected


def not_correctable(checksum):
    """A wrong checksum that no single wrong byte explains."""
    return bytes(byte ^ 0x55 for byte in checksum)


def flipped_twice():
    """A snapshot with a flipped bit and a damaged checksum."""
    with open(fixture("damaged", "flip-00.rdb"), "rb") as f:
        return f.read()[:-8] + bytes(range(8))


class CheckRdbTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as out:
            out.write(data)
        return name

    def run_program(self, argv, data=b"", env=None, program=None):
        done = subprocess.run(argv, executable=program, cwd=self.folder, input=data,
                              capture_output=True, check=False, env={**os.environ, **(env or {})})
        return done.returncode, done.stdout.decode(errors="surrogateescape"), done.stderr.decode()

    def check(self, *args, data=b"", env=None):
        program = os.path.abspath(REDOUBT) if os.sep in REDOUBT else REDOUBT
        status, out, err = self.run_program([program, "check-rdb", *args], data, env)
        return status, report_text.unwrapped(out), err

    def json(self, *args, data=b""):
        status, out, err = self.check("--json", *args, data=data)
        report = json.loads(out)
        self.assertEqual((report["redoubt"], report["tool"]), (1, "check-rdb"))
        self.assertEqual(report["exit_status"], status)
        self.assertIn(status, (0, 1, 2, 3, 4, 8), err)
        return status, report

    def one(self, *args, data=b""):
        status, report = self.json(*args, data=data)
        self.assertEqual(len(report["files"]), 1)
        return status, report["files"][0]

    def ids(self, file, *severities):
        return {f["id"] for f in file["findings"] if f["severity"] in severities}


class Fixtures(CheckRdbTest):
    """The manifest says what the reader answers, which does not know whether a number is new. The
    check does: all numbers of these versions are known, and no checksum proves them."""
    UNKNOWN_IS_DAMAGE = {"broken/magic-mixed.hex", "broken/template-old.hex",
                         "broken/type-22-old.hex", "broken/type-8.hex",
                         "damaged/flip-22.rdb", "damaged/flip-27.rdb",
                         "damaged/hand-type-100.rdb", "damaged/hand-type-26.rdb",
                         "damaged/version-zero.rdb"}

    def expect(self, path, data, expected):
        status, file = self.one(self.write("in.rdb", data))
        code, *words = expected.split(" ")
        if path == "hand/valkey-242-update.hex":  # the check asks for commands among the keys
            code = {"unsupported@16": "ok"}[code]
        ids = self.ids(file, "error", "warning", "info")
        self.assertEqual(set(words) - set(ids), set(), path)
        if code == "ok":
            self.assertIsNone(file["damage"], path)
            self.assertIn(file["verdict"], ("ok", "warnings", "damaged"), path)
            self.assertEqual(file["trailing"] + file["end"], len(data), path)
        elif code.startswith("checksum@"):
            self.assertEqual(file["checksum"]["state"], "bad", path)
        else:
            damage = file["damage"]
            self.assertIsNotNone(damage, path)
            at = "%s@%s" % (damage["code"], damage.get("offset", "-"))
            at += "+%d" % damage["inner"] if "inner" in damage else ""
            if path in self.UNKNOWN_IS_DAMAGE:
                code = code.replace("unsupported", "corrupt")
            self.assertEqual(at, code, path)
            self.assertLessEqual(file["damage_offset"], damage["offset"], path)
        totals = file["findings_total"]
        clean = totals["error"] + totals["warning"] == 0
        self.assertEqual(clean, status == 0, path)
        self.assertEqual(clean, file["verdict"] == "ok", path)
        self.assertEqual(status == 4, file["verdict"] == "unsupported", path)

    def test_every_fixture_has_the_verdict_that_the_manifest_expects(self):
        n = 0
        for path, data, expected in snapshots():
            with self.subTest(path):
                self.expect(path, data, expected)
            n += 1
        self.assertGreater(n, 250)

    def test_files_that_servers_wrote_are_sound(self):
        names = sorted(row.path for row in manifest.read(FIXTURES).values()
                       if row.kind == "rdb" and row.path.startswith(("redis-", "valkey-")))
        status, report = self.json(*(os.path.abspath(fixture(name)) for name in names))
        self.assertEqual((status, len(report["files"])), (1, len(names)))
        for file in report["files"]:
            old = "redis-7.0-rc1/functions" in file["file"]  # in a form that no release reads
            self.assertEqual(file["verdict"], "warnings" if old else "ok", file["file"])
            self.assertEqual(sum(file["keys_by_type"].values()), file["keys"])

    def test_facts_are_those_that_the_servers_reported(self):
        n = 0
        for row in manifest.read(FIXTURES).values():
            facts = fixture(row.path[:-4] + ".json")
            if row.kind != "rdb" or not row.path.startswith(("redis-", "valkey-")):
                continue
            if not os.path.exists(facts):
                continue
            with open(facts) as f:
                reported = json.load(f)
            if "dbs" not in reported or reported["dataset"] in ("expires", "hash-ttl"):
                continue  # what the server had dropped is in the file
            _, file = self.one(os.path.abspath(fixture(row.path)))
            entries = [e for db in reported["dbs"].values() for e in db["entries"]]
            self.assertEqual(file["keys"], len(entries), row.path)
            self.assertEqual(file["databases"], len(reported["dbs"]), row.path)
            self.assertEqual(file["functions"], len(reported.get("functions", [])), row.path)
            n += 1
        self.assertGreater(n, 20)

    def test_a_changed_byte_is_not_reported_after_itself(self):
        with open(fixture("damaged", "rdb.json")) as f:
            cases = json.load(f)["cases"]
        n = 0
        for case in cases:
            at = re.match(r"byte at (\d+): 0x\w+ became", case["edit"])
            path = fixture("damaged", case["file"])
            if at is None or not os.path.exists(path):
                continue
            _, file = self.one(os.path.abspath(path))
            if file["damage"] is not None:
                self.assertLessEqual(file["damage_offset"], int(at.group(1)), path)
                n += 1
        self.assertGreater(n, 5)

    def test_what_servers_load_is_not_called_damaged(self):
        with open(fixture("damaged", "rdb.json")) as f:
            cases = json.load(f)["cases"]
        names = [case["file"] for case in cases if "(good" in case["edit"]]
        names += ["hand-lzf-longer.rdb", "hand-lzf-zero.rdb", "hand-listpack-good.rdb"]
        for name in names:
            _, file = self.one(os.path.abspath(fixture("damaged", name)))
            self.assertIn(file["verdict"], ("ok", "warnings"), name)


class Verdicts(CheckRdbTest):
    def tiny(self):
        with open(fixture("redis-7.0.15", "tiny.rdb"), "rb") as f:
            return f.read()

    def verdict(self, data, *args):
        status, out, _ = self.check(self.write("f.rdb", data), *args)
        return status, out.split("\n")[0]

    def test_sound(self):
        self.assertEqual(self.verdict(self.tiny()), (0, "f.rdb: sound"))

    def test_notes_alone_leave_it_sound(self):
        status, out, _ = self.check(self.write("f.rdb", rdb(b"\xfe\x00" + pair(b"k"))))
        self.assertEqual((status, out.split("\n")[0]), (0, "f.rdb: sound"))
        self.assertIn("info       checksum-disabled", out)

    def test_trailing_bytes_and_a_second_file_are_warnings(self):
        want = (1, "f.rdb: sound, but 1 warning")
        for tail in b"\n", bytes(10), self.tiny():
            self.assertEqual(self.verdict(self.tiny() + tail), want)
            _, file = self.one("f.rdb")
            self.assertEqual((file["trailing"], file["verdict"]), (len(tail), "warnings"))
            self.assertNotIn("commands", file["findings"][-1]["text"])

    def test_commands_after_the_end_are_known_as_such(self):
        self.verdict(self.tiny() + b"*1\r\n$4\r\nPING\r\n")
        self.assertIn("trailing-bytes at byte 272 (0x110): 14 bytes after the end of the snapshot"
                      ", which look like the commands of an append-only log",
                      self.check("f.rdb")[1])

    def test_checksum(self):
        data = bytearray(self.tiny())
        data[-2:] = b"\0\0"
        self.assertEqual(self.verdict(bytes(data)),
                         (1, "f.rdb: checksum mismatch, structure is sound; names and "
                             "values are not verified"))
        self.assertIn("mismatch: stored ", self.check("f.rdb")[1])
        self.assertIn("f.rdb: checksum at byte 263 (0x107):", self.check("-q", "f.rdb")[2])

    def test_every_cut_is_truncated(self):
        data = self.tiny()
        cuts = [self.write(f"{size}.rdb", data[:size]) for size in range(len(data))]
        status, report = self.json(*cuts)
        self.assertEqual((status, len(report["files"])), (1, len(cuts)))
        for size, file in enumerate(report["files"]):
            # Nine bytes before the end, there may seem to be an end mark.
            want = ("damaged", "truncated") if data[:size][-9:-8] == b"\xff" else ("truncated",)
            self.assertIn(file["verdict"], want, size)
            self.assertEqual(file["size"], size)
            self.assertEqual(file["damage"]["offset"], size)

    def test_opcodes_of_redis_enterprise_are_passed_over_and_reported(self):
        data = hexfile.load(fixture("hand", "enterprise-opcodes.hex"))
        status, file = self.one(self.write("f.rdb", data))
        self.assertEqual((status, file["verdict"], file["keys"], file["expires"]),
                         (1, "warnings", 4, 1))
        found = [f for f in file["findings"] if f["severity"] == "warning"]
        self.assertEqual([(f["id"], f["offset"]) for f in found], [("enterprise-opcodes", 9)])
        self.assertIn("6 opcodes of Redis Enterprise", found[0]["text"])

    def test_converting_leaves_out_opcodes_of_redis_enterprise(self):
        self.write("f.rdb", hexfile.load(fixture("hand", "enterprise-opcodes.hex")))
        convert = [os.path.abspath(REDOUBT), "convert"]
        status, _, err = self.run_program([*convert, "--to", "rdb", "-o", "out.rdb", "f.rdb"])
        self.assertEqual(status, 0, err)
        status, file = self.one("out.rdb")
        self.assertEqual((status, file["verdict"], file["keys"], file["expires"]), (0, "ok", 4, 1))
        lines = [self.run_program([*convert, "--to", "ndjson", name])[1]
                 for name in ("f.rdb", "out.rdb")]
        self.assertEqual(lines[0], lines[1])
        self.assertIn('"expire_ms":4102444800000', lines[0])

    def test_salvage_keeps_keys_with_opcodes_of_redis_enterprise(self):
        self.write("f.rdb", hexfile.load(fixture("hand", "enterprise-opcodes.hex")))
        status, file = self.one("--salvage", "out.rdb", "f.rdb")
        self.assertEqual((status, file["salvage"]["keys"], file["salvage"]["n_ranges"]), (0, 4, 0))

    def test_letters_of_names_are_not_taken_for_opcodes_of_redis_enterprise(self):
        head = b"REDIS0012\xfe\x00"
        for byte in b"ky":
            data = head + bytes([byte]) + b"ey:1" + b"\xff" + bytes(8)
            status, file = self.one(self.write("f.rdb", data))
            self.assertEqual((status, file["damage"]["offset"]), (1, len(head)))
            self.assertNotIn("enterprise-opcodes", self.ids(file, "warning"))
            # Not in versions that have no access times, and not in files of Valkey.
            for old in b"REDIS0008", b"VALKEY080":
                data = old + b"\xfe\x00" + bytes([byte, 5]) + pair(b"a") + b"\xff" + bytes(8)
                status, file = self.one(self.write("f.rdb", data))
                self.assertEqual((status, file["damage"]["offset"]), (1, 11))

    def test_duplicate_key_is_an_error(self):
        status, out, _ = self.check(self.write("f.rdb", rdb(b"\xfe\x00", pair(b"k"), pair(b"k"))))
        self.assertEqual(status, 1)
        self.assertIn('error      duplicate-key at byte 16 (0x10), string "k" in db 0:', out)

    def test_field_expiries_that_are_not_in_order_are_an_error(self):
        """Servers with sanitize-dump-payload load only what is in order."""
        def hash_of(*expiries):
            pairs = b"".join(b"\x81%c\x02\x81v\x02%c\x01" % (97 + i, expiry)
                             for i, expiry in enumerate(expiries))
            body = struct.pack("<IH", 7 + len(pairs), 3 * len(expiries)) + pairs + b"\xff"
            return rdb(b"\xfe\x00\x17\x01k" + string(body), version=12)

        wrong = {"field-ttl-order"}
        for expiries, found in (((5, 6, 0), set()), ((5, 5, 0, 0), set()), ((6, 5), wrong),
                                ((5, 0, 6), wrong)):
            status, file = self.one(self.write("hash.rdb", hash_of(*expiries)))
            self.assertEqual((status, self.ids(file, "error")), (len(found), found))

    def test_error_is_reported_on_stderr_with_its_context_and_a_hint(self):
        path = self.path(self.write("in.rdb", flipped_twice()))
        _, _, err = self.check(path)
        self.assertEqual(err.split("\n")[0], "redoubt check-rdb: %s: corrupt at byte 593 (0x251) "
                         "+ 321: listpack entry with a wrong back length" % path)
        self.assertIn('\n  while reading element 4 of stream "stream:india:2" in db 0\n', err)
        self.assertIn("\n  hint: --salvage OUT can save 20 keys\n", err)

    def test_damage_that_showed_later_is_reported_where_it_begins(self):
        values = [pair(b"key:%d" % i, b"value:%d" % i) for i in range(40)]
        data = bytearray(rdb(b"\xfe\x00", *values))
        at = data.index(b"key:5") + 5
        data[at] = 0x40 | 1  # the value now swallows 260 bytes, and then some
        _, file = self.one(self.write("f.rdb", bytes(data)))
        self.assertEqual(file["verdict"], "damaged")
        self.assertLessEqual(file["damage_offset"], at)
        self.assertGreater(file["salvage"]["keys"], 30)

    def damaged_pairs(self, change, sizes=b"\xfb\x14\x00", summed=summed, name=b"key:%02d"):
        """Twenty string keys, the fifth of them changed by change(record). Where it begins; what
        check-rdb reports about the file, and its first line for people."""
        records = [pair(name % i, b"value-%02d" % i) for i in range(20)]
        sound = summed(rdb(b"\xfe\x00" + sizes, *records))
        self.assertEqual(self.one(self.write("f.rdb", sound))[1]["verdict"], "ok")
        start = sound.index(records[5])
        damaged = bytearray(sound)
        damaged[start:start + len(records[5])] = change(bytearray(records[5]))
        if any(damaged[-8:]):
            damaged[-8:] = not_correctable(damaged[-8:])
        self.assertEqual(len(damaged), len(sound))
        status, line = self.verdict(bytes(damaged))
        self.assertIn(status, (1, 4))
        return start, self.one("f.rdb")[1], line

    @staticmethod
    def longer(by):
        def change(record):
            record[8] += by  # the length of the value, after the type and "key:05" with its own
            return record
        return change

    def test_length_that_swallows_two_records_exactly_is_in_the_database_with_a_wrong_size(self):
        start, file, line = self.damaged_pairs(self.longer(34))
        self.assertEqual(file["verdict"], "checksum")
        self.assertIn("db-size", file["findings_by_id"])
        self.assertEqual(file["damage_offset"], 11)  # where the size is announced
        self.assertLess(file["damage_offset"], start)
        self.assertIsNone(file["breaks_at"])
        self.assertIsNone(file["broken_record"])
        self.assertEqual(line, "f.rdb: checksum mismatch, structure is sound; names and "
                               "values are not verified; the damage begins at or after byte 11 "
                               "(0xb)")

    def test_where_only_the_checksum_reports_the_damage_may_be_anywhere(self):
        _, file, line = self.damaged_pairs(self.longer(34), sizes=b"")
        self.assertEqual((file["verdict"], file["damage_offset"]), ("checksum", 0))
        self.assertEqual(line, "f.rdb: checksum mismatch, structure is sound; names and "
                               "values are not verified")

    def test_size_that_does_not_hold_places_damage_also_without_a_checksum(self):
        _, file, _ = self.damaged_pairs(self.longer(34), summed=lambda data: data)
        self.assertEqual((file["verdict"], file["damage_offset"]), ("warnings", 11))

    def test_length_that_swallows_into_a_record_is_before_the_break(self):
        for by in range(1, 40):
            start, file, line = self.damaged_pairs(self.longer(by))
            if file["damage"] is None:
                continue
            self.assertEqual(file["damage_offset"], start, by)
            self.assertGreater(file["broken_record"], start)
            self.assertGreaterEqual(file["breaks_at"], file["broken_record"])
            self.assertEqual(file["breaks_at"], file["damage"]["offset"])
            self.assertIn("damaged at or after byte %d (0x%x): the structure breaks at byte %d "
                          % (start, start, file["breaks_at"]), line)

    def test_length_of_a_name_that_changed_is_before_the_break(self):
        n = 0
        for length in range(64):
            def change(record, length=length):
                record[1] = length
                return record
            if length == 6:
                continue
            start, file, _ = self.damaged_pairs(change)
            self.assertLessEqual(file["damage_offset"], start, length)
            self.assertGreaterEqual(file["damage_offset"], start - 34 if file["damage"] else 0)
            n += file["damage"] is not None
        self.assertGreater(n, 40)

    def test_names_that_prove_nothing_make_the_place_earlier(self):
        start, file, line = self.damaged_pairs(lambda record: b"\x3d" + record[1:],
                                               name=b"%02d")
        self.assertEqual(file["broken_record"], start)
        self.assertEqual(file["damage_offset"], start - 3 * (1 + 3 + 9))
        self.assertIn(" at or after byte %d " % file["damage_offset"], line)

    def test_standard_input_is_not_searched_and_the_place_is_the_start_of_the_database(self):
        start, _, _ = self.damaged_pairs(self.longer(20))
        with open(self.path("f.rdb"), "rb") as f:
            _, file = self.one("-", data=f.read())
        self.assertIsNone(file["salvage"])
        self.assertEqual(file["damage_offset"], 9)
        self.assertGreater(file["broken_record"], start)

    def test_quick_does_not_look_into_values(self):
        name = self.write("f.rdb", rdb(b"\xfe\x00", b"\x02" + string(b"s") + b"\x02\x01a\x01a"))
        self.assertEqual(self.check(name)[0], 1)
        self.assertEqual(self.check("--quick", name)[0], 0)

    def test_many_findings_are_counted_and_a_hundred_of_them_shown(self):
        name = self.write("f.rdb", rdb(b"\xfe\x00", pair(b"k") * 251))
        _, out, _ = self.check(name)
        self.assertEqual(out.count(" duplicate-key at byte "), 100)
        self.assertIn("  error      duplicate-key: … and 150 more\n", out)
        _, file = self.one(name)
        self.assertEqual(file["findings_by_id"]["duplicate-key"], 250)
        self.assertEqual(file["findings_total"]["error"], 250)
        self.assertEqual(len([f for f in file["findings"] if f["id"] == "duplicate-key"]), 100)

    def test_no_escape_sequence_reaches_the_output(self):
        evil = b"\x1b[31mred\x07\r\n\xc2\x9b1m\x9b"
        record = b"\xfa" + string(evil) + string(evil) + b"\xfe\x00" + pair(evil) * 2
        name = self.write("f.rdb", rdb(record))
        cut = self.write("evil\x1b[31m.rdb", rdb(record)[:-12] + b"\x02" + string(evil) + b"\x01")
        for args in ((name,), ("-v", name), ("--json", name), (cut,), ("-v", cut), ("-q", name)):
            status, out, err = self.check(*args)
            self.assertEqual(status, 1)
            for c in "\x1b", "\x07", "\r", "\udc9b", "\x9b":
                self.assertNotIn(c, out + err, args)
        self.assertIn("\\x1b[31mred", self.check(name)[1])

    def test_verbose_reports_every_key(self):
        _, out, _ = self.check("-v", os.path.abspath(fixture("redis-7.0.15", "tiny.rdb")))
        self.assertEqual(len(re.findall(r"^  \d+ \(0x[0-9a-f]+\) +key +db 0 ", out, re.M)), 9)
        self.assertIn('db 0 string/string "e" expires 2', out)

    def test_slots_and_records_of_modules_are_reported(self):
        _, out, _ = self.check("-v", os.path.abspath(fixture("damaged", "hand-slot-info.rdb")))
        self.assertRegex(out, r"\(0xb\) +slot +5: 1 key, 0 with an expiry\n")
        self.assertIn("  slots      1 announced\n", out)
        _, out, _ = self.check("-v", os.path.abspath(fixture("redis-7.0.15", "module.rdb")))
        self.assertRegex(out, r"\(0x50\) +module +test__rdb\n")
        self.assertIn("  modules    2 records of module data\n", out)

    def test_quiet_prints_errors_only(self):
        good = os.path.abspath(fixture("redis-7.0.15", "tiny.rdb"))
        self.assertEqual(self.check("-q", good), (0, "", ""))
        status, out, err = self.check("-q", os.path.abspath(fixture("damaged", "hand-key-dup.rdb")))
        self.assertEqual((status, out), (1, ""))
        self.assertIn('while reading string "k" in db 0', err)


class Input(CheckRdbTest):
    def setUp(self):
        super().setUp()
        self.good = os.path.abspath(fixture("redis-7.0.15", "tiny.rdb"))
        with open(self.good, "rb") as f:
            self.good_bytes = f.read()
        self.bad_bytes = flipped_twice()
        self.bad = os.path.join(self.folder, "bad.rdb")
        with open(self.bad, "wb") as f:
            f.write(self.bad_bytes)

    def test_status_of_several_files_is_the_gravest(self):
        new = self.write("new.rdb", b"REDIS0099" + bytes(20))
        for names, want in (((self.good, self.good), 0), ((self.good, self.bad), 1),
                            ((self.good, new), 4), ((new, self.bad), 1),
                            ((new, "missing", self.bad), 3), ((self.good, "missing"), 3)):
            status, report = self.json(*names)
            self.assertEqual((status, len(report["files"])), (want, len(names)))

    def test_missing_file_is_an_error_in_json_too(self):
        status, file = self.one("missing")
        self.assertEqual((status, file["verdict"]), (3, "unreadable"))
        self.assertEqual(file["error"]["code"], "io")
        self.assertNotIn("keys", file)

    def test_standard_input_is_checked_in_one_pass(self):
        self.assertEqual(self.check("-", data=self.good_bytes)[0], 0)
        status, file = self.one("-", data=self.bad_bytes)
        self.assertEqual((status, file["verdict"], file["salvage"]), (1, "damaged", None))
        _, _, err = self.check("-", data=self.bad_bytes)
        self.assertIn("was not searched", err)

    def test_a_pipe_with_a_name_is_read_once(self):
        os.mkfifo(self.path("pipe"))
        for args, keys in ((["--salvage", "piped.rdb"], 20), ([], None)):
            with subprocess.Popen(["cp", self.bad, self.path("pipe")]) as writer:
                status, file = self.one("pipe", *args)
                self.assertEqual((writer.wait(), status, file["breaks_at"]),
                                 (0, 8 if args else 1, 593))
            found = file["salvage"]
            self.assertEqual(found["out"]["keys"] if args else found, keys)
        with subprocess.Popen(["cp", self.bad, self.path("pipe")]):
            self.assertIn("not searched: use a file, or --salvage OUT", self.check("pipe")[2])

    def test_standard_input_can_be_salvaged(self):
        status, file = self.one("-", "--salvage", "out.rdb", data=self.bad_bytes)
        self.assertEqual((status, file["salvage"]["out"]),
                         (8, {"file": "out.rdb", "keys": 20, "well_formed": True,
                              "verified": False, "sealed": False}))

    def test_compressed_file_is_read_as_it_is(self):
        self.write("good.gz", gzip.compress(self.good_bytes))
        self.write("bad.gz", gzip.compress(self.bad_bytes))
        self.assertEqual(self.one("good.gz")[1]["verdict"], "ok")
        status, file = self.one("bad.gz", "--salvage", "out.rdb")
        self.assertEqual((status, file["size"], file["salvage"]["out"]["keys"]), (8, 4999, 20))

    def test_lz4_file_is_read_as_it_is(self):
        self.write("bad", self.bad_bytes)
        subprocess.run(["lz4", "-q", "-f", self.path("bad"), self.path("bad.lz4")], check=True)
        _, file = self.one("bad.lz4")
        self.assertEqual((file["size"], file["salvage"]["keys"]), (4999, 20))

    def test_progress_is_reported_in_json_on_stderr(self):
        _, _, err = self.check("--progress=json", self.good)
        size = len(self.good_bytes)
        lines = [json.loads(line) for line in err.split("\n") if line]
        self.assertEqual([line["progress"] for line in lines],
                         [{"bytes": 0, "total": size}, {"bytes": size, "total": size}])

    def test_spool_leaves_nothing_after(self):
        spool = self.path("tmp")
        os.mkdir(spool)
        self.write("bad.gz", gzip.compress(self.bad_bytes))
        self.check("bad.gz", env={"TMPDIR": spool})
        self.assertEqual(os.listdir(spool), [])

    def test_folder_for_the_spool_that_is_missing_is_an_error_and_the_check_is_reported(self):
        self.write("bad.gz", gzip.compress(self.bad_bytes))
        status, out, err = self.check("bad.gz", env={"TMPDIR": self.path("none")})
        self.assertEqual(status, 3)
        self.assertRegex(out, r"bad.gz: damaged at or after byte \d+ \(0x[0-9a-f]+\):\s+"
                              r"the structure breaks at byte 593 \(0x251\)\n")
        self.assertIn("cannot create a temporary file", err)


class Salvage(CheckRdbTest):
    def salvage(self, data, *args):
        name = self.write("in.rdb", data)
        return self.one(name, "--force", "--salvage", "out.rdb", *args)

    def damages(self, rng, data, n):
        for _ in range(n):
            bad = bytearray(data)
            at = rng.randrange(9, len(bad))
            kind = rng.choice(("flip", "zeros", "cut", "gap", "noise"))
            length = rng.randrange(1, 200)
            if kind == "flip":
                bad[at] ^= 1 << rng.randrange(8)
            elif kind == "zeros":
                bad[at:at + length] = bytes(len(bad[at:at + length]))
            elif kind == "cut":
                del bad[at:]
            elif kind == "gap":
                del bad[at:at + length]
            else:
                bad[at:at + length] = rng.randbytes(len(bad[at:at + length]))
            yield kind, at, bytes(bad)

    def each_damage(self, names, n):
        print("# seed %d" % SEED)
        rng = random.Random(SEED)
        for name in names:
            with open(fixture(*name), "rb") as f:
                data = f.read()
            for kind, at, bad in self.damages(rng, data, n):
                yield "%s, %s at %d, seed %d" % (name, kind, at, SEED), bad

    def each_output(self, names, n, *args):
        """Saves what is left of damaged files: (what was done, the file, how many keys)."""
        for what, bad in self.each_damage(names, n):
            _, file = self.salvage(bad, *args)
            out = file["salvage"]["out"]
            if out is not None:
                yield what, out["well_formed"], out["keys"]

    def expect_sound(self, names, n, *args):
        saved = 0
        for what, well_formed, keys in self.each_output(names, n, *args):
            self.assertTrue(well_formed, what)
            status, again = self.one("out.rdb")
            self.assertEqual((status, again["verdict"], again["keys"]), (0, "ok", keys), what)
            saved += keys
        self.assertGreater(saved, 500)

    def test_output_of_damaged_files_is_sound(self):
        self.expect_sound((("redis-7.0.15", "mixed.rdb"), ("redis-2.4.18", "zipmap.rdb"),
                           ("redis-unstable", "hash-ttl.rdb"), ("redis-7.2.5", "streams.rdb")), 20)

    def test_output_with_parts_of_values_is_sound(self):
        self.expect_sound((("redis-7.0.15", "mixed.rdb"), ("redis-unstable", "hash-ttl.rdb"),
                           ("redis-7.2.5", "streams.rdb")), 20, "--partial")

    def test_filters_choose_what_is_saved(self):
        with open(fixture("redis-7.0.15", "mixed.rdb"), "rb") as f:
            data = f.read()
        self.write("whole.rdb", data)
        for filters in (("--type=hash",), ("--not", "--type=string"),
                        ("--match=*1*", "--db=0"), ("--type=list", "--type=set")):
            _, lines, _ = self.run_program([os.path.abspath(REDOUBT), "convert", "--to=ndjson",
                                            "whole.rdb", *filters])
            expect = lines.count("\n")
            _, file = self.salvage(data, *filters)
            salvage = file["salvage"]
            self.assertGreater(expect, 0, filters)
            self.assertEqual((salvage["keys"], salvage["out"]["keys"]), (expect, expect), filters)
            self.assertEqual(salvage["keys"] + salvage["keys_unwanted"], file["keys"], filters)

    def test_large_values_are_chosen(self):
        with open(fixture("redis-7.0.15", "mixed.rdb"), "rb") as f:
            data = f.read()
        _, file = self.salvage(data, "--min-size=20")
        self.assertEqual((file["salvage"]["keys"], file["salvage"]["keys_unwanted"]), (54, 8))

    def test_filters_go_with_salvage(self):
        self.write("in.rdb", b"REDIS0003\xff")
        self.assertEqual(self.check("--type=hash", "in.rdb")[0], 2)

    def test_output_loads(self):
        names = (("redis-7.0.15", "mixed.rdb"), ("redis-6.2.16", "streams.rdb"))
        with redis_server.RedisServer({"databases": "17000"}) as server:
            for args in (), ("--partial",):
                for what, _, keys in self.each_output(names, 15, *args):
                    try:
                        server.load(self.path("out.rdb"))
                    except (redis_server.ServerDied, redis_server.ReplyError) as e:
                        self.fail("%s %s: %s" % (what, args, e))
                    loaded = 0
                    for db in server.databases():
                        server.command("SELECT", db)
                        loaded += server.command("DBSIZE")
                    server.command("SELECT", 0)
                    self.assertLessEqual(loaded, keys, what)  # some have expired

    def test_sound_file_is_kept_whole(self):
        for name in ("redis-7.0.15", "mixed.rdb"), ("valkey-8.0.1", "functions.rdb"):
            with open(fixture(*name), "rb") as f:
                status, file = self.salvage(f.read())
            self.assertEqual((status, file["verdict"], file["salvage"]["bytes_lost"]),
                             (0, "ok", 0))
            self.assertEqual(file["salvage"]["out"]["keys"], file["keys"])

    def test_damaged_header_is_replaced(self):
        with open(fixture("damaged", "magic.rdb"), "rb") as f:
            data = f.read()
        status, file = self.salvage(data[:-8] + not_correctable(data[-8:]))
        self.assertEqual((status, file["format"], file["salvage"]["out"]["keys"]), (8, None, 9))
        self.assertTrue(file["salvage"]["guessed_version"])

    def test_input_that_is_not_a_snapshot_leaves_no_output(self):
        for data in b"", b"hello", bytes(5000), b"REDIS0010", random.Random(1).randbytes(3000):
            status, file = self.salvage(data)
            self.assertEqual((status, file["salvage"]["out"]), (1, None))
            self.assertEqual(os.listdir(self.folder), ["in.rdb"])
        self.assertIn("nothing could be saved", self.check("--salvage", "out.rdb", "in.rdb")[1])

    def test_refused_keys_are_left_out(self):
        status, file = self.salvage(rdb(b"\xfe\x00", pair(b"a"), pair(b"k"), pair(b"k")))
        self.assertEqual((status, file["salvage"]["keys_dropped"]), (8, 1))
        self.assertEqual(file["salvage"]["dropped"][0]["key"], "k")
        self.assertEqual(self.one("out.rdb")[1]["keys"], 2)

    def test_a_wrong_checksum_is_not_laundered(self):
        data = bytearray(rdb(b"\xfe\x00", pair(b"a"), pair(b"k")))
        data[-1] ^= 1
        status, file = self.salvage(bytes(data))
        self.assertEqual(status, 8)
        self.assertFalse(file["salvage"]["proved"])
        self.assertFalse(file["salvage"]["out"]["verified"])
        self.assertTrue(file["salvage"]["out"]["well_formed"])
        with open(self.path("out.rdb"), "rb") as f:
            self.assertEqual(f.read()[-8:], bytes(8))
        status, out, _ = self.check("--force", "--reseal", "--salvage", "out.rdb", "in.rdb")
        self.assertEqual(status, 8)
        self.assertTrue(out.endswith("out.rdb: 2 keys, well formed; contents not verified\n"), out)
        self.assertEqual(self.one("out.rdb")[1]["checksum"]["state"], "ok")

    def test_a_sound_file_is_saved_with_status_0_and_a_checksum(self):
        with open(fixture("redis-7.0.15", "tiny.rdb"), "rb") as f:
            status, file = self.salvage(f.read())
        self.assertEqual((status, file["salvage"]["proved"]), (0, True))
        self.assertTrue(file["salvage"]["out"]["verified"])
        self.assertEqual(self.one("out.rdb")[1]["checksum"]["state"], "ok")

    def test_a_key_whose_expiry_is_lost_is_marked_and_left_out_by_strict(self):
        keys = [pair(b"key:%d" % i) for i in range(40)]
        time = b"\xfc" + (1893456000000).to_bytes(8, "little")
        data = bytearray(rdb(b"\xfe\x00", *keys[:20], time, *keys[20:]))
        data[data.index(time)] = 0x7c
        status, file = self.salvage(bytes(data))
        self.assertEqual((status, file["salvage"]["keys"]), (8, 40))
        marks = {key["key"]: key["doubts"] for key in file["salvage"]["doubtful"]}
        self.assertIn("expiry-unknown", marks["key:20"])
        self.assertEqual(self.check("--force", "--strict", "--salvage", "out.rdb", "--doubtful",
                                    "doubtful.rdb", "in.rdb")[0], 8)
        kept = self.one("out.rdb")[1]["keys"]
        self.assertLess(kept, 40)
        self.assertEqual(kept + self.one("doubtful.rdb")[1]["keys"], 40)

    def test_a_malformed_size_of_a_slot_is_left_out(self):
        self.salvage(rdb(b"\xfe\x00", b"\xfa\x09slot-info\x03abc", pair(b"k")))
        with open(self.path("out.rdb"), "rb") as f:
            self.assertNotIn(b"slot-info", f.read())

    def test_existing_output_is_refused_without_force(self):
        self.write("out.rdb", b"precious")
        self.write("in.rdb", rdb(pair(b"k")))
        status, _, err = self.check("--salvage", "out.rdb", "in.rdb")
        self.assertEqual(status, 2)
        self.assertIn("--force", err)
        with open(self.path("out.rdb"), "rb") as f:
            self.assertEqual(f.read(), b"precious")
        self.assertEqual(self.check("--force", "--salvage", "out.rdb", "in.rdb")[0], 0)

    def test_input_is_not_replaced_even_by_force(self):
        data = rdb(pair(b"k"))[:-4]
        self.write("in.rdb", data)
        os.link(self.path("in.rdb"), self.path("link.rdb"))
        for out in "in.rdb", "link.rdb":
            status, _, err = self.check("--force", "--salvage", out, "in.rdb")
            self.assertEqual(status, 2)
            self.assertIn("the same file", err)
        with open(self.path("in.rdb"), "rb") as f:
            self.assertEqual(f.read(), data)

    def test_unreadable_input_leaves_no_output(self):
        self.assertEqual(self.check("--salvage", "out.rdb", "missing")[0], 3)
        self.assertEqual(os.listdir(self.folder), [])

    def test_output_to_a_pipe_leaves_the_report_on_stderr(self):
        path = self.path(self.write("in.rdb", flipped_twice()))
        done = subprocess.run([REDOUBT, "check-rdb", "--salvage", "-", path], capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 8)
        self.assertIn(b"standard output: 20 keys", done.stderr)
        self.write("out.rdb", done.stdout)
        self.assertEqual(self.one("out.rdb")[1]["keys"], 20)

    def test_options_that_do_not_fit_are_usage_errors(self):
        self.write("a", rdb())
        for args in (("--salvage", "o", "a", "a"), ("--partial", "a"), (), ("--salvage",),
                     ("--json", "--salvage", "-", "a"), ("--strict", "a"), ("--reseal", "a"),
                     ("--doubtful", "d", "a"), ("--salvage", "o", "--doubtful", "o", "a"),
                     ("--salvage", "o", "--doubtful", "-", "a")):
            self.assertEqual(self.check(*args)[0], 2, args)
        self.assertEqual(os.listdir(self.folder), ["a"])

    def test_report_names_ranges_and_how_they_end(self):
        name = self.write("in.rdb", flipped_twice())
        _, out, _ = self.check("-v", "--salvage", "out.rdb", name)
        self.assertIn("  saved      20 keys, 18 of them after the damage, 3 of them doubtful; "
                      "lost: 1 range of", out)
        self.assertRegex(out, r'  lost +\[557, 1675\) 1\.1 KiB, stream "stream:india:2" in db 0: '
                         r".* at byte 593 \(0x251\); then: ")
        self.assertIn("\nout.rdb: 20 keys (3 doubtful), well formed; contents not verified\n", out)
        _, out, _ = self.check("--salvage", "out.rdb", "--force", "--type=list", name)
        self.assertRegex(out, r"; \d+ keys excluded by filters\n")


if __name__ == "__main__":
    unittest.main()
