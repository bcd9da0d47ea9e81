"""redoubt check-rdb under the name redis-check-rdb, beside the program of that name of
Redis 7.0.15, or what it printed when that was recorded."""

import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
import recorded  # noqa: E402
from test_check_rdb import (CheckRdbTest, fixture, string, rdb, snapshots, REDOUBT)  # noqa: E402


def readable_by_7_0(data):
    return data[:5] == b"REDIS" and data[5:9].isdigit() and int(data[5:9]) <= 10


class Compatible(CheckRdbTest):
    @classmethod
    def setUpClass(cls):
        cls.answers = recorded.Answers("check-rdb")

    def theirs(self, *args):
        files = []
        for name in sorted(os.listdir(self.folder)):
            with open(os.path.join(self.folder, name), "rb") as f:
                files.append((name, recorded.digest(f.read())))
        return tuple(self.answers.get((files, args), lambda: list(
            self.run_program(["redis-check-rdb", *args])), stable=False))

    def ours(self, *args):
        return self.run_program(["redis-check-rdb", *args], program=os.path.abspath(REDOUBT))

    def test_sound_files_give_the_same_lines(self):
        n = 0
        for path, data, expected in snapshots():
            if readable_by_7_0(data) and path.startswith(("redis-", "valkey-")):
                name = self.write("dump.rdb", data)
                self.assertEqual(self.ours(name), self.theirs(name), path)
                n += 1
        self.assertGreater(n, 60)

    def shape(self, result):
        """Exit status and lines, without what is wrong inside values and where."""
        status, out, err = result
        lines = []
        for line in out.split("\n"):
            if " # " in line:
                continue
            if lines and "DETECTED" in lines[-1]:
                line = "error"
            lines.append(re.sub(r"[^ -~]|\\x..", "?", line).replace("?", ""))
        return status, lines, err

    def test_damaged_files_give_the_same_lines_up_to_the_words_of_the_error(self):
        n = 0
        for path, data, expected in snapshots():
            if path.startswith("damaged/") and (readable_by_7_0(data) or len(data) < 9):
                self.write("dump.rdb", data)
                self.assertEqual(self.shape(self.ours("dump.rdb")),
                                 self.shape(self.theirs("dump.rdb")), path)
                n += 1
        self.assertGreater(n, 90)

    def test_every_cut_is_reported_at_the_same_offset(self):
        with open(fixture("redis-2.8.24", "tiny.rdb"), "rb") as f:
            data = f.read()
        for size in range(len(data)):
            self.write("dump.rdb", data[:size])
            ours, theirs = self.ours("dump.rdb"), self.theirs("dump.rdb")
            self.assertEqual(self.shape(ours), self.shape(theirs), size)
            in_value = "Reading key" in ours[1] and "set-" in ours[1]
            if not in_value:
                self.assertEqual(ours, theirs, size)

    def test_usage_and_missing_file(self):
        self.write("x.rdb", rdb())
        for args in (), ("a", "b"), ("missing",), ("x.rdb", "-v"), ("-v", "x.rdb"):
            self.assertEqual(self.ours(*args), self.theirs(*args), args)
        for option in "-v", "--version":
            status, out, _ = self.ours(option)
            self.assertEqual(status, 0)
            self.assertRegex(out, r"^redis-check-rdb \d+\.\d+\.\d+\n$")

    def test_no_escape_sequence_reaches_the_output(self):
        evil = b"\x1b[31m\x07\x9b"
        name = self.write("f.rdb", rdb(b"\xfa" + string(evil) + string(evil), b"\x02" + string(evil)
                                       + b"\x00"))
        status, out, _ = self.ours(name)
        self.assertEqual(status, 1)
        for c in "\x1b", "\x07", "\udc9b":
            self.assertNotIn(c, out)


if __name__ == "__main__":
    unittest.main()
