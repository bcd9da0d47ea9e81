"""A capture as the data set at an offset, or a time.

REDOUBT names the program.
"""

import json
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from captures import START, USUAL, CaptureTest, command, ends  # noqa: E402
from rdb_text import STRING, Key, snapshot  # noqa: E402

BASE = 1000


class ConvertTest(CaptureTest):
    def data(self, *args):
        """{(db, key): value} of the capture at a place."""
        path = os.path.join(self.folder, "out.rdb")
        self.run_tool("convert", "--force", "--to", "rdb", "-o", path, *args, self.capture.path)
        out, _ = self.run_tool("convert", "--to", "ndjson", path)
        rows = [json.loads(line) for line in out.splitlines()]
        return {(row["db"], row["key"]): row["value"] for row in rows}

    def fails(self, *args, expect=2):
        return self.run_tool("convert", "--to", "ndjson", *args, self.capture.path,
                             expect=expect)[1]

    def usual(self):
        """Offsets of the commands and the end."""
        self.capture.begin(snapshot([Key(b"old", STRING, b"0")]), b"".join(USUAL))
        return ends(USUAL, BASE)


class Places(ConvertTest):
    def test_without_a_place_it_is_the_end(self):
        self.usual()
        self.assertEqual(self.data(), {(0, "old"): "0", (0, "a"): "1", (2, "b"): "2",
                                       (2, "a"): "1", (2, "c"): "3", (2, "d"): "4"})

    def test_at_an_offset_all_that_is_whole_before_it_has_run(self):
        at = self.usual()
        self.assertEqual(self.data("--at-offset", str(BASE)), {(0, "old"): "0"})
        self.assertEqual(self.data("--at-offset", str(at[2] - 1)), {(0, "old"): "0"})
        self.assertEqual(self.data("--at-offset", str(at[2])), {(0, "old"): "0", (0, "a"): "1"})
        self.assertEqual(len(self.data("--at-offset", f"1:{at[7]}")), 4)
        self.assertEqual(len(self.data("--at-offset", str(at[12]))), 6)

    def test_a_transaction_is_whole_or_not_there(self):
        at = self.usual()
        for i in (8, 9, 10):
            self.assertEqual(len(self.data("--at-offset", str(at[i]))), 4)
        self.assertEqual(len(self.data("--at-offset", str(at[11]))), 6)

    def test_at_a_time(self):
        self.usual()
        self.assertEqual(self.data("--at-time", str(START)), {(0, "old"): "0"})
        self.assertEqual(self.data("--at-time", str(START + 1)), {(0, "old"): "0", (0, "a"): "1"})
        self.assertEqual(len(self.data("--at-time", str(START + 4))), 3)
        self.assertEqual(len(self.data("--at-time", str(START + 10))), 6)

    def test_a_time_that_the_capture_does_not_reach_is_refused(self):
        """Its last command is 11 s after the first: what came after that is not known."""
        self.usual()
        for option in ("--at-time", "--until"):
            for seconds in (11, 12, 1000):
                said = self.fails(option, str(START + seconds))
                self.assertIn("the capture ends before", said)
                self.assertIn("the last known moment is 2023-11-14T22:13:30.999Z", said)
        self.assertEqual(len(self.data("--at-time", "2023-11-14T22:13:30.999Z")), 6)

    def test_what_an_older_version_did_not_record_is_not_known(self):
        """A master sends a PING every ten seconds."""
        data = snapshot([Key(b"old", STRING, b"0")])
        stream = b"".join(command("SET", "k", i) for i in range(4))
        self.capture.begin(data, stream, step_us=10000000, run=("1",))
        path = os.path.join(self.folder, "out.rdb")
        _, said = self.run_tool("convert", "--to", "rdb", "-o", path, "--at", str(START + 5),
                                self.capture.path)
        self.assertIn("did not record when it was interrupted", said)
        self.assertNotIn("older version", self.run_tool("convert", "--to", "ndjson",
                                                        self.capture.path)[1])
        shutil.rmtree(self.capture.path)
        self.capture.begin(data, stream, step_us=12000000, run=("1",))
        self.assertIn("whether there was a connection was not recorded",
                      self.fails("--at", str(START + 5)))

    def test_a_command_can_be_left_out(self):
        at = self.usual()
        self.assertNotIn((2, "b"), self.data("--skip-command", str(at[4])))
        self.assertNotIn((2, "b"), self.data("--skip-command", f"1:{at[4]}"))
        self.assertIn("not found in the log", self.fails("--skip-command", str(at[4] + 1)))

    def test_segments_make_no_difference(self):
        commands = [command("SET", f"key:{i}", i) for i in range(300)]
        self.capture.begin(snapshot([]), b"".join(commands), segment=2000)
        self.assertGreater(len(os.listdir(self.capture.path)), 5)
        half = BASE + sum(map(len, commands[:150]))
        self.assertEqual(len(self.data("--at-offset", str(half))), 150)
        self.assertEqual(len(self.data("--at-time", str(START + 99))), 100)
        self.assertEqual(len(self.data()), 300)


class Chapters(ConvertTest):
    def two(self):
        self.capture.begin(snapshot([Key(b"one", STRING, b"1")]), command("SET", "a", "1"))
        self.capture.begin(snapshot([Key(b"two", STRING, b"2")]), command("SET", "b", "2"),
                           ident="c", offset=5000, at=START + 100)

    def test_another_history_begins_with_its_own_snapshot(self):
        self.two()
        self.assertEqual(self.data(), {(0, "two"): "2", (0, "b"): "2"})
        self.assertEqual(self.data("--at-offset", "5000"), {(0, "two"): "2"})
        self.assertEqual(self.data("--at-time", str(START + 50)), {(0, "one"): "1", (0, "a"): "1"})
        self.assertEqual(self.data("--at-offset", "1:1000"), {(0, "one"): "1"})

    def test_a_history_with_another_name_goes_on(self):
        first = command("SET", "a", "1")
        self.capture.begin(snapshot([]), command("SELECT", 3) + first)
        self.capture.go_on(command("SET", "b", "2"), ident="b", at=START + 10)
        self.assertEqual(self.data(), {(3, "a"): "1", (3, "b"): "2"})

    def test_places_that_are_not_there_are_mistakes(self):
        self.two()
        self.assertIn("ends at offset", self.fails("--at-offset", "9000"))
        self.assertIn("ends at offset", self.fails("--at-offset", "1:4000"))
        self.assertIn("no chapter", self.fails("--at-offset", "3:5000"))
        self.assertIn("no chapter", self.fails("--at-offset", "999"))
        self.assertIn("is not a position", self.fails("--at-offset", "x"))
        self.assertIn("begins later", self.fails("--at-time", str(START - 1)))

    def test_a_gap_after_the_snapshot_is_reported(self):
        commands = [command("SET", f"key:{i}", i) for i in range(300)]
        self.capture.begin(snapshot([]), b"".join(commands), segment=2000)
        names = sorted(n for n in os.listdir(self.capture.path) if n.endswith(".seg"))
        os.unlink(os.path.join(self.capture.path, names[2]))
        first, last = (int(n[:-4].split("-")[1]) for n in names[2:4])
        for tool in (["convert", "--to", "ndjson"], ["replay", "--dry-run"]):
            _, err = self.run_tool(*tool, self.capture.path, expect=1)
            self.assertIn(f"a gap: offsets {first} to {last - 1} are missing (segment 3)", err)
        self.assertGreater(len(self.data("--at-offset", str(first))), 20)
        self.run_tool("replay", "--dry-run", "--until-offset", str(first), self.capture.path)
        os.unlink(os.path.join(self.capture.path, names[0]))
        os.unlink(os.path.join(self.capture.path, names[1]))
        self.assertIn("its oldest segments were deleted", self.fails())

    def test_without_a_snapshot_there_is_nothing_to_rest_on(self):
        self.capture.begin(None, command("SET", "a", "1"))
        self.assertIn("no snapshot", self.fails())

    def test_damage_is_reported_with_the_file(self):
        self.two()
        name = os.path.join(self.capture.path, "00000002-5000.seg")
        with open(name, "r+b") as f:
            f.seek(-12, os.SEEK_END)
            byte = f.read(1)
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte[0] ^ 1]))
        self.fails("--at-offset", "5030", expect=2)  # what is torn at the end is not there

    def test_diff_takes_captures_too(self):
        self.two()
        out, _ = self.run_tool("diff", self.capture.path, self.capture.path)
        self.assertIn("2 and 2 keys", out.decode())


if __name__ == "__main__":
    unittest.main()
