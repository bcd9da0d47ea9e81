"""redoubt check-aof, over the fixtures and over logs made here.

REDOUBT names the program, REDOUBT_FIXTURES the fixtures.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import manifest  # noqa: E402
import report_text  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
REDOUBT = os.path.abspath(REDOUBT) if os.sep in REDOUBT else REDOUBT
FIXTURES = os.path.abspath(os.environ.get("REDOUBT_FIXTURES", "fixtures"))


def fixture(*names):
    return os.path.join(FIXTURES, *names)


def command(*args):
    parts = [a.encode() if isinstance(a, str) else a for a in args]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


def rdb(ctime=None):
    """A snapshot without keys and checksum."""
    aux = b""
    if ctime is not None:
        text = str(ctime).encode()
        aux = b"\xfa\x05ctime" + bytes([len(text)]) + text
    return b"REDIS0010" + aux + b"\xff" + bytes(8)


SET = command("SET", "k", "v")
MULTI, EXEC = command("MULTI"), command("EXEC")


def at(second):
    return b"#TS:%d\r\n" % second


class CheckAofTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, data):
        with open(self.path(name), "wb") as out:
            out.write(data)
        return name

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def log(self, *incr, base=rdb(), more=""):
        """A log in the folder: returns its path."""
        lines = []
        if base is not None:
            self.write("a.aof.1.base.rdb" if base[:5] == b"REDIS" else "a.aof.1.base.aof", base)
            end = "rdb" if base[:5] == b"REDIS" else "aof"
            lines.append(f"file a.aof.1.base.{end} seq 1 type b\n")
        for i, data in enumerate(incr, 1):
            self.write(f"a.aof.{i}.incr.aof", data)
            lines.append(f"file a.aof.{i}.incr.aof seq {i} type i\n")
        self.write("a.aof.manifest", ("".join(lines) + more).encode())
        return self.folder

    def check(self, *args, data=b"", tool="check-aof"):
        done = subprocess.run([REDOUBT, tool, *args], cwd=self.folder, input=data,
                              capture_output=True, check=False)
        out = report_text.unwrapped(done.stdout.decode(errors="surrogateescape"))
        return done.returncode, out, done.stderr.decode()

    def json(self, *args, data=b""):
        status, out, err = self.check("--json", *args, data=data)
        report = json.loads(out)
        self.assertEqual((report["redoubt"], report["tool"]), (1, "check-aof"))
        self.assertEqual(report["exit_status"], status, err)
        return status, report

    def ids(self, report):
        """Without the one that the snapshots made here have."""
        return [f["id"] for f in report["findings"] if f["id"] != "checksum-disabled"]

    def verdict(self, *args, data=b""):
        status, report = self.json(*args, data=data)
        return status, report["verdict"], self.ids(report)

    def saved(self):
        return sorted(n for n in os.listdir(self.folder) if ".redoubt-save-" in n)


class Fixtures(CheckAofTest):
    def test_every_file_breaks_where_the_list_says(self):
        n = 0
        for row in manifest.read(FIXTURES).values():
            if row.kind != "aof":
                continue
            want = row.expected.split(" ")[0]
            status, report = self.json(fixture(row.path))
            file = report["files"][0]
            damage = file["damage"]
            if want.startswith("checksum@"):
                self.assertEqual(file["snapshot"]["checksum"], "bad", row.path)
                self.assertIn("checksum-mismatch", self.ids(report), row.path)
            elif want == "ok":
                self.assertIsNone(damage, row.path)
                self.assertEqual(file["ok_up_to"], file["size"], row.path)
            else:
                self.assertEqual("%s@%d" % (damage["code"], damage["offset"]), want, row.path)
                self.assertEqual(status, 1, row.path)
            n += 1
        self.assertGreater(n, 50)

    def test_logs_that_servers_wrote_are_sound(self):
        n = 0
        for row in manifest.read(FIXTURES).values():
            if row.kind != "manifest" or not row.path.startswith(("redis-", "valkey-")):
                continue
            status, report = self.json(fixture(os.path.dirname(row.path)))
            self.assertEqual((status, report["verdict"]), (0, "ok"), row.path)
            n += 1
        self.assertGreater(n, 5)

    DAMAGED = {
        "base-cut": ("damaged", "truncated"),
        "base-missing": ("missing", "file-missing"),
        "base-only": ("ok", None),
        "first-cut": ("damaged", "truncated"),
        "last-missing": ("missing", "file-missing"),
        "manifest-blank": ("bad-manifest", "manifest-line-blank"),
        "manifest-comments-only": ("warnings", "not-in-manifest"),
        "manifest-crlf": ("ok", None),
        "manifest-empty": ("bad-manifest", "manifest-empty"),
        "manifest-extra": ("ok", None),
        "manifest-long": ("bad-manifest", "manifest-line-long"),
        "manifest-nul": ("bad-manifest", "manifest-line-nul"),
        "manifest-odd": ("bad-manifest", "manifest-line-pairs"),
        "manifest-order": ("bad-manifest", "manifest-seq-order"),
        "manifest-path": ("bad-manifest", "manifest-bad-name"),
        "manifest-seq-zero": ("bad-manifest", "manifest-bad-seq"),
        "manifest-spaces": ("ok", None),
        "manifest-two-bases": ("bad-manifest", "manifest-two-bases"),
        "manifest-upper": ("ok", None),
        "whole": ("ok", None),
    }

    def test_damaged_folders_have_their_verdicts(self):
        for name, (verdict, word) in self.DAMAGED.items():
            path = fixture("damaged", f"aofdir-{name}", "appendonlydir")
            whole = os.path.exists(os.path.join(path, "appendonly.aof.3.incr.aof"))
            status, report = self.json(path)
            if whole or "missing" in name or name == "base-only":
                self.assertEqual(report["verdict"], verdict, name)
            self.assertEqual(status == 0, report["verdict"] == "ok", name)
            if word is not None:
                self.assertIn(word, self.ids(report), name)


class Verdicts(CheckAofTest):
    def one(self, data):
        return self.verdict(self.write("one.aof", data))

    def test_a_sound_file(self):
        self.assertEqual(self.one(SET + MULTI + SET + EXEC), (0, "ok", []))
        self.assertIn("one.aof: sound\n", self.check("one.aof")[1])

    def test_an_empty_file_is_only_noted(self):
        self.assertEqual(self.one(b""), (0, "ok", ["empty-file"]))

    def test_standard_input_and_compressed_files(self):
        self.assertEqual(self.verdict("-", data=SET), (0, "ok", []))
        self.assertEqual(self.one(gzip.compress(SET + SET)), (0, "ok", []))

    def test_a_torn_end_is_reported_from_damage_before_it(self):
        self.assertEqual(self.one(SET + SET[:-3]), (1, "torn", ["truncated"]))
        self.assertEqual(self.one(SET + b"garbage" + SET), (1, "damaged", ["corrupt"]))
        self.assertEqual(self.one(SET + b"garbage"), (1, "torn", ["corrupt"]))

    def test_a_length_that_swallows_the_rest_is_damage_before_the_end(self):
        broken = SET.replace(b"$1\r\nv", b"$900\r\nv")
        self.assertEqual(self.one(SET + broken + 5 * SET), (1, "damaged", ["truncated"]))

    def test_zeros_at_the_end_have_a_word_of_their_own(self):
        self.assertEqual(self.one(SET + bytes(700)), (1, "torn", ["zero-tail"]))
        self.assertEqual(self.one(SET + bytes(70) + SET), (1, "damaged", ["corrupt"]))
        inside = SET[:-3] + bytes(100000)
        self.assertEqual(self.one(SET + inside), (1, "torn", ["zero-tail"]))

    def test_transactions(self):
        self.assertEqual(self.one(SET + MULTI + SET), (1, "torn", ["multi-without-exec"]))
        _, report = self.json("one.aof")
        self.assertEqual(report["files"][0]["ok_up_to"], len(SET))
        self.assertEqual(report["files"][0]["ok_up_to_line"], SET.count(b"\n") + 1)
        self.assertEqual(self.one(SET + MULTI + MULTI + EXEC), (1, "damaged", ["multi-in-multi"]))
        self.assertEqual(self.one(SET + EXEC), (1, "torn", ["exec-without-multi"]))
        self.assertEqual(self.one(EXEC + SET), (1, "damaged", ["exec-without-multi"]))
        self.assertEqual(self.one(SET + command("multi") + SET + command("Discard") + SET),
                         (1, "damaged", ["discard-in-multi"]))
        _, report = self.json("one.aof")
        self.assertEqual(report["files"][0]["ok_up_to"], len(SET))

    def test_a_command_that_a_replay_cannot_run_is_named(self):
        """The log is sound: a server runs it."""
        log = self.write("one.aof", SET + 2 * command("JSON.SET", "a", "$", "1"))
        status, _, err = self.check(log)
        self.assertEqual(status, 0, err)
        self.assertIn('cannot run "JSON.SET"', err)
        self.assertIn("2 commands", err)
        self.assertEqual(self.check(self.write("two.aof", SET))[2], "")

    def test_names_that_are_not_known_are_counted_once(self):
        status, report = self.json(self.write("one.aof", SET + 3 * command("FOO.BAR", "x") + SET))
        self.assertEqual((status, report["verdict"], self.ids(report)),
                         (1, "warnings", ["unknown-command"]))
        found = report["findings"][0]
        self.assertEqual((found["offset"], found["command"]), (len(SET), 2))
        self.assertIn("3 times", found["text"])

    def test_a_clock_that_goes_back(self):
        self.assertEqual(self.one(at(20) + SET + at(10) + SET), (1, "warnings", ["time-goes-back"]))

    def test_lines_are_those_of_an_editor(self):
        first = command("SET", "k", "a\nb\nc")
        _, report = self.json(self.write("one.aof", first + b"!"))
        self.assertEqual(report["findings"][0]["line"], first.count(b"\n") + 1)


class Folders(CheckAofTest):
    def test_a_folder_its_manifest_and_the_folder_around_it(self):
        os.mkdir(self.path("appendonlydir"))
        inner = self.folder
        self.folder = self.path("appendonlydir")
        self.log(SET, SET)
        for path in (".", "a.aof.manifest", inner, inner + "/appendonlydir/"):
            self.assertEqual(self.verdict(path), (0, "ok", []), path)
        self.folder = inner

    def test_a_torn_file_that_is_not_the_last_is_damage(self):
        self.assertEqual(self.verdict(self.log(SET[:-1], SET)), (1, "damaged", ["truncated"]))
        self.assertEqual(self.verdict(self.log(SET, SET[:-1])), (1, "torn", ["truncated"]))

    def test_no_manifest_and_several(self):
        status, _, err = self.check(".")
        self.assertEqual(status, 1)
        self.assertIn("empty", err)
        self.write("a.aof.1.incr.aof", SET)
        self.assertIn("--fix-manifest", self.check(".")[2])
        self.log(SET)
        self.write("b.aof.manifest", b"")
        status, _, err = self.check(".")
        self.assertEqual(status, 2)
        self.assertIn('"a.aof.manifest", "b.aof.manifest"', err)

    def test_a_snapshot_in_an_incremental_file_is_not_sound(self):
        """Servers refuse the log if the snapshot has a key that exists."""
        for more in (b"", SET):
            log = self.log(SET, rdb() + more)
            status, verdict, ids = self.verdict(log)
            self.assertEqual((status, verdict, ids), (1, "damaged", ["snapshot-in-incr"]))
            self.assertEqual(self.check("--fix", "--yes", log)[0], 1)
            status, out, _ = self.check("--force", "--salvage", self.path("out"), log)
            self.assertEqual(status, 1)
            self.assertIn("NOT VERIFIED", out)

    def test_unrelated_files_in_the_folder(self):
        self.log(SET, more="file a.aof.0.incr.aof seq 7 type h\n")
        for name in ("a.aof.9.incr.aof", "temp-rewriteaof-bg-17.aof", "a.aof.0.incr.aof", "notes"):
            self.write(name, b"")
        status, verdict, ids = self.verdict(".")
        self.assertEqual((status, verdict), (1, "warnings"))
        self.assertEqual(sorted(ids), ["history-file", "leftover-file", "not-in-manifest"])

    def test_a_base_that_is_newer_than_what_is_applied_to_it(self):
        self.assertEqual(self.verdict(self.log(at(100) + SET, base=rdb(200))),
                         (1, "warnings", ["base-newer"]))
        self.assertEqual(self.verdict(self.log(at(300) + SET, base=rdb(200))), (0, "ok", []))
        os.unlink(self.path("a.aof.1.base.rdb"))
        self.assertEqual(self.verdict(self.log(at(100) + SET, base=at(200) + SET))[2],
                         ["time-goes-back", "base-newer"])

    def test_a_snapshot_is_checked_in_full(self):
        bad = rdb()[:-9] + b"\x00\x01k\xc9\xff"
        status, verdict, ids = self.verdict(self.log(SET, base=bad))
        self.assertEqual((status, verdict), (1, "damaged"))
        self.assertIn("corrupt", ids)

    def test_an_unknown_type_after_other_damage_is_a_part_of_it(self):
        for version, damage, want in (
                (b"0010", b"", (1, "damaged", ["corrupt"])),
                (b"0010", bytes(63), (1, "damaged", ["zeroed-range", "corrupt"])),
                (b"0017", b"", (4, "unsupported", ["unsupported"])),
                (b"0017", bytes(63), (4, "unsupported", ["zeroed-range", "unsupported"]))):
            with self.subTest(want):
                base = b"REDIS" + version + b"\xfe\x00" + damage + b"rest"
                self.assertEqual(self.verdict(self.log(SET, base=base)), want)

    def test_the_input_is_opened_for_reading_only(self):
        self.log(SET + b"torn")
        before = {n: os.stat(self.path(n)).st_mtime_ns for n in os.listdir(self.folder)}
        for n in before:
            os.chmod(self.path(n), 0o444)
        self.check(".")
        self.assertEqual(before, {n: os.stat(self.path(n)).st_mtime_ns for n in before})


class Fix(CheckAofTest):
    def test_yes_cuts_and_keeps_a_copy(self):
        self.log(SET, SET + MULTI + SET)
        status, report = self.json("--fix", "--yes", ".")
        self.assertEqual((status, report["verdict"]), (0, "ok"))
        self.assertEqual(report["change"]["done"], True)
        step = report["change"]["steps"][0]
        self.assertEqual((step["action"], step["file"], step["to"]),
                         ("cut", "a.aof.2.incr.aof", len(SET)))
        self.assertEqual(self.read("a.aof.2.incr.aof"), SET)
        self.assertEqual(self.saved(), [step["saved_as"]])
        self.assertEqual(self.read(step["saved_as"]), SET + MULTI + SET)

    def test_the_question_is_answered(self):
        for answer, status, size in ((b"n\n", 1, 30), (b"", 1, 30), (b"y\n", 0, len(SET))):
            self.write("one.aof", SET + b"x" * (30 - len(SET)))
            got, _, err = self.check("--fix", "one.aof", data=answer)
            self.assertEqual((got, len(self.read("one.aof"))), (status, size))
            self.assertIn("Continue? [y/N]: ", err)
        self.assertEqual(len(self.saved()), 1)

    def test_no_copy_and_dry_run(self):
        self.write("one.aof", SET + b"x")
        self.assertEqual(self.check("--fix", "--dry-run", "one.aof")[0], 1)
        self.assertEqual(self.read("one.aof"), SET + b"x")
        self.assertEqual(self.check("--fix", "--yes", "--no-copy", "one.aof")[0], 0)
        self.assertEqual((self.read("one.aof"), self.saved()), (SET, []))

    def test_what_a_cut_does_not_repair_is_refused(self):
        for log in ((SET[:-1], SET),):
            status, _, err = self.check("--fix", "--yes", self.log(*log))
            self.assertEqual((status, self.saved()), (1, []))
            self.assertIn("--salvage", err)
        self.log(SET, base=rdb()[:-3])
        self.assertEqual(self.check("--fix", "--yes", ".")[0], 1)

    def test_commands_after_damage_are_not_thrown_away_without_a_copy(self):
        self.write("one.aof", SET + b"!" + SET)
        self.assertEqual(self.check("--fix", "--yes", "--no-copy", "one.aof")[0], 2)
        self.assertEqual(self.check("--fix", "--yes", "one.aof")[0], 2)
        self.assertEqual(self.check("--fix", "--yes", "--force", "one.aof")[0], 0)
        self.assertEqual((self.read("one.aof"), len(self.saved())), (SET, 1))

    def test_a_file_that_is_being_written_is_locked(self):
        self.write("one.aof", SET + b"x")
        with open(self.path("one.aof"), "ab"):
            status, _, err = self.check("--fix", "--yes", "one.aof")
        self.assertEqual((status, self.read("one.aof")), (7, SET + b"x"))
        self.assertRegex(err, rf'for writing: "[^"]+", process {os.getpid()}\n')

    def test_compressed_files_and_standard_input_are_not_cut(self):
        data = gzip.compress(SET + b"x")
        self.write("one.aof", data)
        self.assertEqual(self.check("--fix", "--yes", "one.aof")[0], 2)
        self.assertEqual(self.read("one.aof"), data)
        self.assertEqual(self.check("--fix", "--yes", "-", data=SET + b"x")[0], 2)


class Truncate(CheckAofTest):
    ONE = at(10) + SET + at(11) + SET
    TWO = at(20) + SET + at(22) + SET + MULTI + SET + EXEC
    THREE = at(30) + SET

    def cut(self, time, *args):
        self.log(self.ONE, self.TWO, self.THREE, base=rdb(5))
        status, report = self.json("--truncate-to-timestamp", str(time), "--yes", ".", *args)
        return status, report

    def files(self):
        return [line.split()[1] for line in self.read("a.aof.manifest").decode().splitlines()]

    def test_a_time_in_any_file_or_between_them(self):
        base, one, two, three = "a.aof.1.base.rdb", *(f"a.aof.{i}.incr.aof" for i in (1, 2, 3))
        begin = len(at(20) + SET)
        for time, files, sizes in (
            (30, [base, one, two, three], [len(self.ONE), len(self.TWO), len(self.THREE)]),
            (29, [base, one, two], [len(self.ONE), len(self.TWO)]),
            (22, [base, one, two], [len(self.ONE), len(self.TWO)]),
            (21, [base, one, two], [len(self.ONE), begin]),
            (19, [base, one], [len(self.ONE)]),
            (10, [base, one], [len(at(10) + SET)]),
            (9, [base], []),
            (5, [base], []),
        ):
            status, report = self.cut(time)
            self.assertEqual((status, report.get("verdict", "ok")), (0, "ok"), time)
            self.assertEqual(self.files(), files, time)
            self.assertEqual([os.path.getsize(self.path(n)) for n in files[1:]], sizes, time)
            for name in (one, two, three):
                self.assertEqual(os.path.exists(self.path(name)), name in files, (time, name))
            for name in os.listdir(self.folder):
                os.unlink(self.path(name))

    def test_nothing_is_lost(self):
        self.cut(20)
        names = [n.split(".redoubt-save-")[0] for n in self.saved()]
        self.assertEqual(names, ["a.aof.2.incr.aof", "a.aof.3.incr.aof", "a.aof.manifest"])
        for name, data in zip(self.saved(), (self.TWO, self.THREE)):
            self.assertEqual(self.read(name), data)

    def test_a_base_that_is_newer_is_refused(self):
        status, report = self.cut(4)
        self.assertEqual((status, report["error"]["code"], self.saved()), (2, "usage", []))

    def test_a_log_without_times_is_refused(self):
        self.log(SET)
        self.assertEqual(self.check("--truncate-to-timestamp", "7", "--yes", ".")[0], 2)

    def test_a_transaction_that_ends_later_goes_whole(self):
        data = at(10) + SET + MULTI + SET
        self.write("one.aof", data + at(11) + SET + EXEC)
        self.assertEqual(self.check("--truncate-to-timestamp", "10", "-y", "one.aof")[0], 0)
        self.assertEqual(self.read("one.aof"), at(10) + SET)

    def test_all_forms_of_a_time(self):
        for form in ("10", "10000000000000", "1970-01-01T00:00:10Z"):
            self.write("one.aof", at(10) + SET + at(11) + SET)
            status, _, _ = self.check("--truncate-to-timestamp", form, "-y", "--no-copy", "one.aof")
            size = len(at(10) + SET) if form != "10000000000000" else 2 * len(at(10) + SET)
            self.assertEqual((status, len(self.read("one.aof"))), (0, size), form)

    def test_offsets(self):
        self.log(self.ONE, self.TWO, self.THREE)
        for where, status in (("1", 2), ("a.aof.2.incr.aof:1", 2), ("nothere:0", 2), ("x", 2)):
            got, _, err = self.check("--truncate-to-offset", where, "-y", ".")
            self.assertEqual(got, status, where)
        inside = len(self.TWO) - 3
        _, _, err = self.check("--truncate-to-offset", f"a.aof.2.incr.aof:{inside}", "-y", ".")
        before = len(self.TWO) - len(MULTI + SET + EXEC)
        self.assertIn(f"the nearest ends are {before} and {len(self.TWO)}", err)
        got = self.check("--truncate-to-offset", f"a.aof.2.incr.aof:{before}", "-y", ".")
        self.assertEqual(got[0], 0, got[2])
        self.assertEqual(self.read("a.aof.2.incr.aof"), self.TWO[:before])
        self.assertEqual(self.files()[-1], "a.aof.2.incr.aof")

    def test_an_offset_before_damage(self):
        self.write("one.aof", SET + SET + b"!" + SET)
        size = str(2 * len(SET))
        self.assertEqual(self.check("--truncate-to-offset", size, "-y", "one.aof")[0], 0)
        self.assertEqual(self.read("one.aof"), SET + SET)

    def test_only_one_change_at_a_time(self):
        self.write("one.aof", SET)
        self.assertEqual(self.check("--fix", "--truncate-to-offset", "0", "one.aof")[0], 2)
        self.assertEqual(self.check("--json", "--fix", "one.aof")[0], 2)


class Verbose(CheckAofTest):
    def test_commands_are_counted_by_name(self):
        self.log(SET * 3 + command("set", "k", "v") + MULTI + command("DEL", "k") + EXEC)
        _, out, _ = self.check("-v", self.folder)
        lines = [line.replace("commands", "").split() for line in out.splitlines()]
        for want in (["4", "SET"], ["1", "DEL"], ["1", "MULTI"], ["1", "EXEC"]):
            self.assertIn(want, lines)
        self.assertNotIn(["4", "SET"], [line.split() for line in self.check(".")[1].splitlines()])
        _, report = self.json("-v", self.folder)
        self.assertEqual(report["commands_by_name"], {"SET": 4, "DEL": 1, "EXEC": 1, "MULTI": 1})
        self.assertEqual(report["commands_of_other_names"], 0)

    def test_names_beyond_the_first_twenty_are_counted_together(self):
        data = b"".join(command("N%d" % i) * (1 + i % 2) for i in range(600))
        self.write("one.aof", data + command("x" * 100))
        _, report = self.json("-v", "one.aof")
        names = report["commands_by_name"]
        self.assertEqual((len(names), set(names.values())), (20, {2}))
        self.assertEqual(report["commands_of_other_names"], 901 - 40)

    def test_control_bytes_of_a_name_do_not_reach_the_terminal(self):
        self.write("one.aof", command("a\x1b[2J\x00"))
        self.write("t\x1bo.aof", command("b\x1b") + b"x")
        for name in ("one.aof", "t\x1bo.aof"):
            _, out, err = self.check("-v", name)
            self.assertNotIn("\x1b", out + err, name)


class Times(CheckAofTest):
    def test_a_time_that_no_calendar_has_is_a_number(self):
        last = 2**63 - 1
        self.write("one.aof", at(last) + SET)
        _, out, _ = self.check("one.aof")
        self.assertIn(f"@{last} to @{last}", out)
        latest = last // 1000000  # what show counts in microseconds
        self.assertTrue(self.check("one.aof", tool="show")[1].startswith(f"@{latest} one.aof:25 "))
        self.assertEqual(self.check("--from", "1", "-c", "one.aof", tool="show")[1], "1\n")
        _, report = self.json(self.log(at(5) + SET, base=rdb(-(2**63) + 1)))
        self.assertIsNone(report["files"][0]["snapshot"]["saved"])


class ManyFiles(CheckAofTest):
    def test_details_of_many_damaged_files_are_left_out_and_their_places_are_not(self):
        status, report = self.json(self.log(*[SET + b"x"] * 300))
        self.assertEqual((status, report["verdict"]), (1, "damaged"))
        damages = [f["damage"] for f in report["files"][1:]]
        self.assertTrue(all(d["code"] == "corrupt" and d["offset"] == len(SET) for d in damages))
        self.assertIn("text", damages[0])
        self.assertNotIn("text", damages[-2])
        self.assertIn("text", damages[-1])
        self.assertEqual(report["findings_by_id"]["corrupt"], 300)


class Pages(CheckAofTest):
    """docs/format describes every key that is printed."""

    def described(self, page):
        path = os.path.join(os.environ["REDOUBT_SOURCE"], "docs", "format", page)
        with open(path, encoding="utf-8") as f:
            return set(re.findall(r"`([^`\s]+)`", f.read()))

    def keys(self, value):
        """The keys of all nested objects, except names of findings and commands."""
        if isinstance(value, list):
            return set().union(*map(self.keys, value))
        if not isinstance(value, dict):
            return set()
        found = set(value)
        for key, inner in value.items():
            if key not in ("findings_by_id", "findings_total", "commands_by_name"):
                found |= self.keys(inner)
        return found

    def object(self, *args, tool="check-aof"):
        return json.loads(self.check("--json", *args, tool=tool)[1])

    def reports(self):
        yield self.object(self.log(at(9) + SET, SET + b"x" + at(9) + SET, more="x\n"))
        yield self.object("-v", self.log(SET + EXEC, base=rdb()[:-20] + b"\x01"))
        yield self.object("gone")
        yield self.object("--salvage", "out1", self.log(SET + b"x" + SET, MULTI + SET))
        bad = rdb(5)[:-9] + b"\xfe\x00\x00\x01k\x01v\x63\x01k\x01v" + b"\xff" + bytes(8)
        yield self.object(self.log(SET, base=bad))
        torn = at(5) + SET + b"x" + SET + at(6) + SET
        yield self.object("--salvage", "out2", self.log(torn, base=bad))
        self.log(at(5) + SET, at(8) + SET)
        yield self.object("--truncate-to-timestamp", "5", "--yes", "a.aof.manifest")
        self.write("a.aof.1.incr.aof", SET + b"*")
        yield self.object("--fix", "--yes", "a.aof.manifest")
        yield self.object("--fix-manifest", "--yes", "a.aof.manifest")
        for row in manifest.read(FIXTURES).values():
            if row.kind == "aof":
                yield self.object(fixture(row.path))

    def test_every_key_of_check_aof_has_its_place(self):
        known = self.described("check-aof-json.md") | {"redoubt", "tool"}
        met = set()
        for i, report in enumerate(self.reports()):
            met |= self.keys(report)
            self.assertEqual(self.keys(report) - known, set(), f"report {i}")
        some = {"change", "steps", "saved_as", "use", "losses", "time_after_s", "error", "errno",
                "key", "commands_by_name", "snapshot", "after", "doing"}
        self.assertEqual(some - met, set())

    def test_every_key_of_show_has_its_place(self):
        known = self.described("show-json.md") | self.described("check-aof-json.md")
        met = self.keys(self.object(self.log(at(5) + SET + MULTI + EXEC), tool="show"))
        self.assertEqual(met - known - {"redoubt", "tool"}, set())
        self.assertLessEqual({"time_s", "command", "snapshot", "keys", "entries"}, met)


if __name__ == "__main__":
    unittest.main()
