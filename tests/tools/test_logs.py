"""Logs where snapshots are taken: convert, stat, split, merge and diff replay them.

The expected data of a log is written by hand here; tests/oracle asks servers.
"""

import gzip
import json
import os
import shutil
import subprocess
import tempfile
import unittest

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
PREAMBLE = os.path.join(FIXTURES, "redis-6.2.16", "aof-preamble.aof.d", "appendonly.aof")
PREAMBLE_LEN = 11002  # bytes of the snapshot with which it begins


def command(*args):
    return b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a.encode()) for a in args)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-logs-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = self.path("appendonlydir")
        os.mkdir(self.log)
        self.out = self.path("out.rdb")
        first = (command("SELECT", "0"), command("SET", "a", "1"), command("RPUSH", "l", "x", "y"),
                 command("SELECT", "3"), command("SET", "b", "2"))
        second = (b"#TS:1700000000\r\n", command("SELECT", "0"), command("INCR", "a"),
                  b"#TS:1700000100\r\n", command("FLUSHALL"), command("SET", "late", "1"))
        self.first = self.write("a.1.incr.aof", first)
        self.second = self.write("a.2.incr.aof", second)
        self.flushall = len(b"".join(second[:4]))
        self.write("a.manifest", (b"file a.1.incr.aof seq 1 type i\n",
                                  b"file a.2.incr.aof seq 2 type i\n"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, pieces):
        path = os.path.join(self.log, name)
        with open(path, "wb") as f:
            f.write(b"".join(pieces))
        return path

    def run_tool(self, *args, status=0, stdin=None, env=None):
        run = subprocess.run([REDOUBT, *args], input=stdin, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, timeout=600,
                             env={**os.environ, **(env or {})})
        self.assertEqual(run.returncode, status, run.stderr)
        return run

    def data(self, *args, stdin=None):
        """{"DB KEY": value}."""
        out = self.run_tool("convert", "--to", "ndjson", *args, stdin=stdin).stdout
        lines = [json.loads(line) for line in out.splitlines()]
        return {f"{line['db']} {line['key']}": line["value"] for line in lines}


BEFORE = {"0 a": "2", "0 l": ["x", "y"], "3 b": "2"}
EARLY = {"0 a": "1", "0 l": ["x", "y"], "3 b": "2"}


class Convert(Case):
    def test_a_folder_a_manifest_and_a_file(self):
        self.assertEqual(self.data(self.log), {"0 late": "1"})
        self.assertEqual(self.data(os.path.join(self.log, "a.manifest")), {"0 late": "1"})
        self.assertEqual(self.data(self.first), EARLY)

    def test_to_a_snapshot_and_to_a_log(self):
        self.run_tool("convert", "--to", "rdb", self.first, "-o", self.out)
        self.run_tool("check-rdb", self.out)
        self.assertEqual(self.data(self.out), EARLY)
        self.run_tool("convert", "--to", "aof", self.first, "-o", self.path("new.aof"))
        self.assertEqual(self.data(self.path("new.aof")), EARLY)

    def test_to_a_snapshot_needs_no_temporary_file(self):
        env = {"TMPDIR": self.path("none")}
        self.run_tool("convert", "--to", "ndjson", self.first, status=3, env=env)
        report = self.run_tool("convert", "--json", "--to", "rdb", self.first, "-o", self.out,
                               env=env)
        self.assertEqual(json.loads(report.stdout)["keys"], 3)
        self.assertEqual(self.data(self.out), EARLY)

    def test_a_snapshot_saved_at_once_is_the_one_that_is_copied(self):
        self.run_tool("convert", "--to", "rdb", self.first, "-o", self.out)
        with open(self.out, "rb") as f:
            saved = f.read()
        self.assertEqual(self.run_tool("convert", "--to", "rdb", self.out).stdout, saved)
        self.assertEqual(self.run_tool("convert", "--to", "rdb", self.first).stdout[:9], saved[:9])

    def test_a_snapshot_of_a_log_is_as_private_as_the_log(self):
        os.chmod(self.first, 0o600)
        self.run_tool("convert", "--to", "rdb", self.first, "-o", self.out)
        self.assertEqual(os.stat(self.out).st_mode & 0o777, 0o600)

    def test_an_existing_output_is_kept_without_force_and_after_a_failure(self):
        with open(self.out, "wb") as f:
            f.write(b"old")
        torn = self.write("torn.aof", (command("SET", "a", "1"), b"*3\r\n"))
        self.run_tool("convert", "--to", "rdb", self.first, "-o", self.out, status=2)
        self.run_tool("convert", "--to", "rdb", "--force", torn, "-o", self.out, status=1)
        with open(self.out, "rb") as f:
            self.assertEqual(f.read(), b"old")
        self.run_tool("convert", "--to", "rdb", "--force", self.first, "-o", self.out)
        self.assertEqual(self.data(self.out), EARLY)

    def test_from_aof_is_needed_where_the_first_bytes_are_not_enough(self):
        with open(self.first, "rb") as f:
            log = f.read()
        self.assertEqual(self.data("--from", "aof", "-", stdin=log), EARLY)
        with open(self.path("log.gz"), "wb") as f:
            f.write(gzip.compress(log))
        self.assertEqual(self.data("--from", "aof", self.path("log.gz")), EARLY)
        self.assertEqual(self.data(self.path("log.gz")), EARLY)
        self.run_tool("convert", "--to", "rdb", self.first, "-o", self.out)
        with open(self.out, "ab") as f:
            f.write(command("SET", "after", "1"))
        self.assertEqual(self.data("--from", "aof", self.out), {**EARLY, "0 after": "1"})
        merged, parts = self.path("merged.rdb"), self.path("parts")
        reported = json.loads(self.run_tool("stat", "--json", "--from", "aof", self.out).stdout)
        self.assertEqual(reported["total"]["keys"], 4)
        self.run_tool("merge", "--from", "aof", self.out, "-o", merged)
        self.assertEqual(self.data(merged), {**EARLY, "0 after": "1"})
        self.run_tool("split", "--by", "db", "--from", "aof", self.out, "-o", parts)
        self.assertIn("0 after", self.data(os.path.join(parts, sorted(os.listdir(parts))[0])))
        self.run_tool("diff", "--from", "aof", self.out, merged)
        self.run_tool("diff", "--from", "aof", self.first, merged, status=1)
        self.run_tool("stat", "--from", "rdb", self.first, status=1)

    def test_a_snapshot_with_commands_after_it_is_not_taken_for_one(self):
        """Except with --from: the commands that follow would be lost silently."""
        self.run_tool("convert", "--to", "rdb", self.first, "-o", self.out)
        end = os.path.getsize(self.out)
        with open(self.out, "ab") as f:
            f.write(command("SET", "after", "1"))
        self.assertEqual(self.data("--from", "rdb", self.out), EARLY)
        other = self.path("other")
        for args in (("convert", "--to", "rdb", self.out, "-o", other), ("stat", self.out),
                     ("split", "--by", "db", self.out, "-o", other), ("diff", self.out, self.first),
                     ("merge", self.out, self.first, "-o", other)):
            run = self.run_tool(*args, status=2)
            self.assertIn(f"commands follow the snapshot, from byte {end}".encode(), run.stderr)
            self.assertIn(b"--input-format aof", run.stderr)
            self.assertFalse(os.path.isfile(other))
        with open(self.out, "r+b") as f:
            f.truncate(end)
            f.seek(end)
            f.write(b"\0" * 7)  # which servers pass over
        self.assertEqual(self.data(self.out), EARLY)

    def test_what_follows_a_snapshot_is_not_passed_over_silently(self):
        """Two snapshots in one file, and the rest of an older file."""
        self.run_tool("convert", "--to", "rdb", self.first, "-o", self.out)
        with open(self.out, "rb") as f:
            one = f.read()
        other = self.path("other")
        for rest in (one, b"the rest"):
            with open(self.out, "wb") as f:
                f.write(one + rest)
            for args in (("convert", "--to", "rdb", self.out, "-o", other), ("stat", self.out),
                         ("split", "--by", "db", self.out, "-o", other + ".d"),
                         ("diff", self.out, self.out), ("merge", self.out, "-o", other)):
                run = self.run_tool(*args, status=2 if rest == one else 0)
                said = "another snapshot follows" if rest == one else "the bytes after the snapshot"
                self.assertEqual(run.stderr.count(said.encode()), 1, args)
                self.assertIn(f"from byte {len(one)}".encode(), run.stderr)
                self.assertEqual(os.path.isfile(other), rest != one and other in args)
                if os.path.isfile(other):
                    os.unlink(other)
            self.assertEqual(self.data("--from", "rdb", self.out), EARLY)

    def test_a_log_that_says_that_it_begins_with_a_snapshot_is_one(self):
        run = self.run_tool("convert", "--to", "resp", "--from", "aof", PREAMBLE)
        reported = json.loads(self.run_tool("stat", "--json", PREAMBLE).stdout)
        snapshot = json.loads(self.run_tool("stat", "--json", "--from", "rdb", PREAMBLE).stdout)
        self.assertGreater(reported["total"]["keys"], snapshot["total"]["keys"])
        self.assertEqual(self.run_tool("convert", "--to", "resp", PREAMBLE).stdout, run.stdout)
        self.run_tool("diff", "--from", "aof", PREAMBLE, PREAMBLE)
        with open(PREAMBLE, "rb") as f:
            log = f.read()
        self.run_tool("stat", "-", stdin=log, status=2)
        base = self.path("base.rdb")
        with open(base, "wb") as f:
            f.write(log[:PREAMBLE_LEN])
        self.assertEqual(json.loads(self.run_tool("stat", "--json", base).stdout)["total"],
                         snapshot["total"])
        with open(base, "wb") as f:
            f.write(log[:PREAMBLE_LEN].replace(b"REDIS0009", b"REDIS0x09"))
        self.run_tool("stat", base, status=1)

    def test_until_an_offset(self):
        place = f"a.2.incr.aof:{self.flushall}"
        self.assertEqual(self.data("--until-offset", place, self.log), BEFORE)
        self.assertEqual(self.data("--until-offset", "a.2.incr.aof:0", self.log), EARLY)
        self.assertEqual(self.data("--until-offset", "0", self.log), {})
        self.run_tool("convert", "--to", "csv", "--until-offset", "none.aof:1", self.log, status=2)

    def test_until_a_time(self):
        for time, want in (("1700000000", BEFORE), ("1700000099", BEFORE),
                           ("2023-11-14T22:15:00Z", {"0 late": "1"})):
            self.assertEqual(self.data("--until-time", time, self.log), want)
        # What has no annotation before it may be later than that.
        self.run_tool("convert", "--to", "csv", "--until-time", "1699999999", self.log, status=2)

    def test_commands_are_left_out_by_number_and_by_place(self):
        want = {**BEFORE, "0 late": "1"}
        [line] = self.run_tool("show", "-v", "--command", "FLUSHALL", self.log).stdout.splitlines()
        number, _, place = line.decode().split(" ")[:3]
        self.assertEqual((number, place), ("8", f"a.2.incr.aof:{self.flushall}"))
        self.assertEqual(self.data("--skip-command", number, self.log), want)
        self.assertEqual(self.data("--skip-command", place, self.log), want)
        self.assertEqual(self.data("--skip-command", "7", "--skip-command", place, self.log),
                         {**want, "0 a": "1"})
        for nothing in ("0", "10", "a.2.incr.aof:1", "none.aof:1", "x"):
            self.run_tool("convert", "--to", "csv", "--skip-command", nothing, self.log, status=2)

    def test_filters_choose(self):
        self.assertEqual(self.data("--min-size", "3", self.first), {"0 l": ["x", "y"]})
        self.assertEqual(self.data("--db", "3", self.first), {"3 b": "2"})

    def test_of_several_files_the_one_that_stops_it_is_named(self):
        with open(self.second, "ab") as f:
            place = f.tell()
            f.write(command("CLUSTER", "RESET"))
        run = self.run_tool("convert", "--to", "csv", self.log, status=4)
        self.assertIn(f"a.2.incr.aof: unsupported at byte {place} ".encode(), run.stderr)
        run = self.run_tool("convert", "--json", "--to", "rdb", self.log, "-o", self.out, status=4)
        reported = json.loads(run.stdout)["error"]
        self.assertEqual((reported["origin"], reported["offset"]), ("a.2.incr.aof", place))
        self.assertEqual(self.data("--until-offset", f"a.2.incr.aof:{place}", self.log),
                         {"0 late": "1"})

    def test_what_cannot_be_replayed_is_refused(self):
        for words in (("NONSENSE", "k"), ("CLUSTER", "RESET")):
            log = self.write("a", [command("SET", "k", "v"), command(*words)])
            run = self.run_tool("convert", "--to", "rdb", log, "-o", self.out, status=4)
            self.assertIn(b"at byte 27", run.stderr)
            self.assertFalse(os.path.exists(self.out))
        self.assertEqual(self.data("--until-offset", "27", log), {"0 k": "v"})

    def test_errors_of_commands_are_counted(self):
        log = self.write("a", [command("SET", "k", "v"), command("LPUSH", "k", "x")])
        run = self.run_tool("convert", "--to", "ndjson", log, status=8)
        self.assertIn(b"at byte 27", run.stderr)
        self.assertIn(b"WRONGTYPE", run.stderr)

    def test_commands_of_a_cluster_change_no_data(self):
        log = self.write("a", [command("SET", "a", "1"), command("CLUSTER", "SLOTS"),
                               command("READONLY"), command("SET", "b", "2")])
        self.assertEqual(self.data(log), {"0 a": "1", "0 b": "2"})
        log = self.write("a", [command("SET", "a", "1"), command("CLUSTER", "RESET")])
        self.run_tool("convert", "--to", "ndjson", log, status=4)

    def test_a_torn_log_is_refused(self):
        log = self.write("a", [command("SET", "k", "v")[:-3]])
        self.run_tool("convert", "--to", "rdb", log, "-o", self.out, status=1)
        self.assertFalse(os.path.exists(self.out))


    def test_an_empty_base_that_must_be_a_snapshot_is_refused(self):
        self.write("b.base.rdb", ())
        self.write("a.manifest", (b"file b.base.rdb seq 1 type b\n",
                                  b"file a.1.incr.aof seq 1 type i\n"))
        for tool in (("convert", "--to", "rdb", "-o", self.out), ("stat",), ("show",)):
            run = self.run_tool(*tool, self.log, status=1)
            self.assertIn(b"b.base.rdb: ", run.stderr)
        self.assertFalse(os.path.exists(self.out))
        self.write("a.manifest", (b"file a.1.incr.aof seq 1 type i\n",))
        self.run_tool("convert", "--to", "rdb", self.log, "-o", self.out)


class Others(Case):
    def setUp(self):
        super().setUp()
        self.snapshot = self.path("first.rdb")
        self.run_tool("convert", "--to", "rdb", self.first, "-o", self.snapshot)

    def test_stat(self):
        reported = [json.loads(self.run_tool("stat", "--json", path).stdout)
                for path in (self.first, self.snapshot)]
        self.assertEqual(reported[0]["total"], reported[1]["total"])
        self.assertEqual(reported[0]["total"]["keys"], 3)

    def test_split(self):
        self.run_tool("split", "--by", "db", self.first, "-o", self.path("parts"))
        self.assertEqual(self.data(os.path.join(self.path("parts"), "db-3.rdb")), {"3 b": "2"})

    def test_merge(self):
        self.run_tool("merge", self.log, self.snapshot, "-o", self.out)
        self.assertEqual(self.data(self.out), {**EARLY, "0 late": "1"})

    def test_diff(self):
        self.run_tool("diff", self.first, self.snapshot)
        self.run_tool("diff", self.snapshot, self.first)
        out = self.run_tool("diff", self.log, self.snapshot, status=1).stdout
        self.assertIn(b"1 and 3 keys: 1 only in A, 3 only in B", out)


if __name__ == "__main__":
    unittest.main()
