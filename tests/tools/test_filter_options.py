"""The options that choose keys: one spelling in every tool, and no success without a key."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from rdb_text import SET, STRING, Key, snapshot  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-filter-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.a, self.b = self.path("a.rdb"), self.path("b.rdb")
        for path in (self.a, self.b):
            with open(path, "wb") as f:
                f.write(snapshot([Key(b"user:1", STRING, b"v"), Key(b"set", SET, [b"x", b"y"])]))
        self.log = self.path("a.aof")
        with open(self.log, "wb") as f:
            f.write(b"*3\r\n$3\r\nSET\r\n$6\r\nuser:1\r\n$1\r\nv\r\n")

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *args, status):
        run = subprocess.run([REDOUBT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, timeout=600, check=False)
        self.assertEqual(run.returncode, status, (args, run.stdout, run.stderr))
        self.out = run.stdout
        return run.stderr.decode()

    def calls(self):
        """Each tool with its arguments, and the file or folder that it writes."""
        out = self.path("out")
        return (
            (["convert", "--to", "ndjson", self.a], None),
            (["convert", "--to", "rdb", self.a, "-o", out], out),
            (["convert", "--to", "rdb", self.a], None),
            (["convert", "--to", "csv", self.a], None),
            (["convert", "--to", "resp", self.a], None),
            (["convert", "--to", "ndjson", self.log], None),
            (["merge", self.a, "-o", out], out),
            (["split", "--by", "db", self.a, "-o", out], out),
            (["stat", self.a], None),
            (["stat", "--csv", self.a], None),
            (["stat", "--html", out, self.a], out),
            (["diff", self.a, self.b], None),
            (["diff", "--values", self.a, self.b], None),
            (["diff", "-q", self.a, self.b], None),
            (["show", self.log], None),
        )


class NothingMatches(Case):
    def test_it_is_reported_and_not_a_success(self):
        for args, out in self.calls():
            with self.subTest(args):
                reported = self.run_tool(*args, "--match", "nothing*", status=1)
                self.assertTrue("-q" in args or "match" in reported, reported)
                self.assertNotIn(b"0 different", self.out)
                self.assertEqual(self.out, b"")
                self.assertFalse(out is not None and os.path.exists(out))

    def test_an_output_that_is_there_is_left_alone(self):
        out = self.path("out")
        for args in (["convert", "--to", "rdb"], ["merge"], ["stat", "--html=" + out]):
            with open(out, "w", encoding="ascii") as f:
                f.write("before")
            more = [] if args[0] == "stat" else ["-o", out]
            self.run_tool(*args, self.a, *more, "--force", "--match", "nothing*", status=1)
            with open(out, encoding="ascii") as f:
                self.assertEqual(f.read(), "before")

    def test_json_has_it(self):
        for args in (["diff", self.a, self.b], ["stat", self.a],
                     ["convert", "--to", "rdb", self.a, "-o", self.path("out")]):
            self.run_tool(*args, "--json", "--match", "nothing*", status=1)
            reported = json.loads(self.out)
            self.assertIs(reported["nothing_matched"], True)
            self.assertEqual(reported["exit_status"], 1)

    def test_what_matches_is_a_success(self):
        for i, (args, out) in enumerate(self.calls()):
            if out is not None:
                args = [self.path(f"out{i}") if arg == out else arg for arg in args]
            with self.subTest(args):
                self.run_tool(*args, "--match", "user:*", status=0)

    def test_without_a_filter_an_empty_snapshot_is_a_success(self):
        with open(self.a, "wb") as f:
            f.write(snapshot([]))
        for i, (args, out) in enumerate(self.calls()):
            if self.log in args or args[0] == "diff":
                continue
            if out is not None:
                args = [self.path(f"out{i}") if arg == out else arg for arg in args]
            self.run_tool(*args, status=0)
        self.run_tool("diff", self.a, self.a, status=0)

    def test_one_side_that_matches_is_a_difference(self):
        with open(self.b, "wb") as f:
            f.write(snapshot([]))
        self.run_tool("diff", "--match", "user:*", self.a, self.b, status=1)
        self.assertIn(b"1 only in A", self.out)


class Spelling(Case):
    def test_an_expression_chooses_too(self):
        for args, out in self.calls():
            if out is None:
                with self.subTest(args):
                    self.run_tool(*args, "--match-regex", "^user:[0-9]$", status=0)

    def test_the_old_names_lead_to_the_new_ones(self):
        for args, _ in self.calls():
            for old, new in (("--key", "--match"), ("--key-regex", "--match-regex")):
                with self.subTest((args, old)):
                    reported = self.run_tool(*args, old, "user:*", status=2)
                    self.assertIn(new, reported)

    def test_a_private_key_is_of_no_use_without_tls(self):
        for args in (["diff", self.a, "redis://127.0.0.1:1"], ["diff", self.a, "-p", "1"]):
            reported = self.run_tool(*args, "--key", "user:*", status=2)
            self.assertIn("--match", reported)

    def test_a_private_key_needs_a_certificate(self):
        for option in ("--key", "--tls-key"):
            reported = self.run_tool("diff", self.a, "rediss://127.0.0.1:1", option, "x", status=2)
            self.assertIn("--cert", reported)

    def test_the_help_of_every_tool_names_them(self):
        for tool in ("convert", "merge", "split", "stat", "diff", "show", "check-rdb"):
            self.run_tool(tool, "--help", status=0)
            self.assertIn(b"--match=GLOB", self.out)
            self.assertIn(b"--match-regex=ERE", self.out)
        for tool in ("diff", "capture", "replay"):
            self.run_tool(tool, "--help", status=0)
            self.assertIn(b"--key=FILE", self.out)


if __name__ == "__main__":
    unittest.main()
