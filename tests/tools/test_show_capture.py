"""redoubt show: captures; and what of both captures and logs is summed up or shown beside a match.

REDOUBT names the program.
"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from captures import START, CaptureTest, command  # noqa: E402
from rdb_text import STRING, Key, snapshot  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
BASE = 1000


class ShowTest(CaptureTest):
    def show(self, *args, path=None, expect=0):
        out, _ = self.run_tool("show", *args, path or self.capture.path, expect=expect)
        return out.decode().split("\n")[:-1]

    def entries(self, *args):
        return [json.loads(line) for line in self.show("--ndjson", *args)]

    def usual(self):
        """Two chapters of five commands each, the second with another data set. Offsets."""
        one = [command("SELECT", 2), command("SET", "user:1", "v"), command("MULTI"),
               command("MSET", "user:2", "x" * 200, "other", "2"), command("EXEC")]
        two = [command("SET", f"k{i}", i) for i in range(5)]
        self.capture.begin(snapshot([Key(b"old", STRING, b"0")]), b"".join(one))
        self.capture.begin(snapshot([]), b"".join(two), ident="c", offset=50, at=START + 100)
        ends = [BASE]
        for c in one:
            ends.append(ends[-1] + len(c))
        return ends


class Files(ShowTest):
    def test_only_regular_files_of_a_capture_are_read(self):
        """Neither a link nor a pipe in the folder is opened; no tool waits or reads elsewhere."""
        self.usual()
        for name in os.listdir(self.capture.path):
            path = os.path.join(self.capture.path, name)
            os.rename(path, path + ".outside")
            for make in os.mkfifo, lambda p: os.symlink(p + ".outside", p):
                make(path)
                for tool in (["show"], ["convert", "--to", "resp"]):
                    run = subprocess.run([REDOUBT, *tool, self.capture.path], timeout=600,
                                         stdin=subprocess.DEVNULL, capture_output=True)
                    opens = name.endswith(".seg") or (name == "00000002-50.rdb" and
                                                      tool[0] == "convert")
                    self.assertEqual(run.returncode, 3 if opens else 0, (name, tool, run.stderr))
                os.unlink(path)
            os.rename(path + ".outside", path)


class Lines(ShowTest):
    def test_a_line_has_time_chapter_offset_database_and_command(self):
        at = self.usual()
        lines = self.show()
        self.assertEqual(len(lines), 12)
        self.assertRegex(lines[0], "^# chapter 1: history a{40} from offset 1000, "
                                   r"snapshot 00000001-1000.rdb \(\d+ bytes\)$")
        self.assertEqual(lines[1], f'2023-11-14T22:13:20.000000Z 1:{BASE} [2] "SELECT" "2"')
        self.assertEqual(lines[2], f'2023-11-14T22:13:21.000000Z 1:{at[1]} [2] '
                                   '"SET" "user:1" "v"')
        self.assertIn(f" 1:{at[3]} [2 multi] ", lines[4])
        self.assertTrue(lines[6].startswith("# chapter 2: history c"))
        self.assertEqual(lines[7], '2023-11-14T22:15:00.000000Z 2:50 [0] "SET" "k0" "0"')

    def test_microseconds_are_reported(self):
        self.capture.begin(None, command("SET", "a", "b") * 2, at=START + 0.25, step_us=1)
        lines = self.show()
        self.assertIn("without a snapshot", lines[0])
        self.assertIn("22:13:20.250001Z 1:1027 ", lines[2])

    def test_arguments_are_cut_where_it_is_said(self):
        self.usual()
        [line] = self.show("--command", "mset")
        self.assertIn('"' + "x" * 64 + '"...(200 bytes)', line)
        [line] = self.show("--command", "mset", "--cut", "3")
        self.assertIn('"use"...(6 bytes) "xxx"...(200 bytes) "oth"...(5 bytes) "2"', line)
        [line] = self.show("--command", "mset", "--full")
        self.assertIn('"' + "x" * 200 + '"', line)

    def test_an_entry_has_what_a_line_has(self):
        at = self.usual()
        entries = self.entries()
        self.assertEqual(entries[0], {"chapter": 1, "replid": "a" * 40, "offset": BASE,
                                      "continues": False,
                                      "snapshot": entries[0]["snapshot"]})
        self.assertEqual(entries[2], {"time_us": (START + 1) * 1000000, "chapter": 1,
                                      "offset": at[1], "length": at[2] - at[1], "db": 2,
                                      "multi": False, "command": ["SET", "user:1", "v"]})
        out = json.loads(self.run_tool("show", "--json", self.capture.path)[0])
        self.assertEqual(out["entries"], entries)
        self.assertEqual(out["commands"], 10)

    def test_a_folder_that_is_damaged_is_shown_up_to_there(self):
        self.usual()
        name = os.path.join(self.capture.path, "00000001-1000.seg")
        with open(name, "r+b") as f:
            data = f.read()
            f.seek(data.index(b"user:1"))
            f.write(b"USER")
        out, err = self.run_tool("show", self.capture.path, expect=1)
        out = out.decode()
        self.assertIn("00000001-1000.seg", err)
        self.assertIn("SELECT", out)
        self.assertNotIn("USER", out)
        lines = self.show("--until-offset", f"1:{BASE}")
        self.assertEqual([line.split(" ", 3)[3] for line in lines], ['"SELECT" "2"'])


class Filters(ShowTest):
    def names(self, *args):
        return [e["command"][0] for e in self.entries(*args)]

    def offsets(self, *args):
        return [(e["chapter"], e["offset"]) for e in self.entries(*args)]

    def test_by_offset(self):
        at = self.usual()
        two = self.offsets("--from-offset", f"1:{at[3]}", "--until-offset", f"1:{at[4]}")
        self.assertEqual(two, [(1, at[3]), (1, at[4])])
        self.assertEqual(len(self.offsets("--from-offset", f"1:{at[3]}")), 7)
        self.assertEqual(len(self.offsets("--from-offset", "50")), 5)  # the last that has it
        self.assertEqual(len(self.offsets("--until-offset", "2:50")), 6)
        self.run_tool("show", "--from-offset", "9:1", self.capture.path, expect=2)

    def test_by_time(self):
        self.usual()
        self.assertEqual(self.names("--from", str(START + 3), "--until", str(START + 99)),
                         ["MSET", "EXEC"])
        self.assertEqual(len(self.names("--from", str(START + 102))), 3)

    def test_times_beyond_all_clocks(self):
        self.usual()
        for late in ("9223372036854775807", "9223372036854776"):
            self.assertEqual(self.show("--from", late, expect=1), [])
            self.assertEqual(len(self.entries("--until", late)), 10)

    def test_by_key_command_and_size(self):
        self.usual()
        self.assertEqual(self.names("--match", "user:*"), ["SET", "MSET"])
        self.assertEqual(self.names("--command", "*SET", "--db", "2"), ["SET", "MSET"])
        self.assertEqual(self.names("--min-size", "200"), ["MSET"])
        self.assertEqual(self.names("--max-size", "15"), ["MULTI", "EXEC"])
        self.assertEqual(self.show("--count", "--prefix", "k"), ["5"])

    def test_the_last_ones(self):
        self.usual()
        self.assertEqual(len(self.show("-n", "2")), 2)
        self.assertIn('"k4"', self.show("-n", "1")[0])


class Beside(ShowTest):
    def keys(self, *args):
        return [line if line == "--" else line.split('"')[3] for line in self.show(*args)]

    def setUp(self):
        super().setUp()
        stream = b"".join(command("SET", f"k{i}", i) for i in range(20))
        self.capture.begin(None, stream)

    def test_before_and_after(self):
        self.assertEqual(self.keys("--match", "k5", "-B", "2"), ["k3", "k4", "k5"])
        self.assertEqual(self.keys("--match", "k5", "-A", "2"), ["k5", "k6", "k7"])
        self.assertEqual(self.keys("--match", "k1", "-B", "5", "-A", "1"), ["k0", "k1", "k2"])
        self.assertEqual(self.keys("--match", "k19", "-B", "1", "-A", "5"), ["k18", "k19"])

    def test_runs_that_touch_are_one_and_others_are_apart(self):
        self.assertEqual(self.keys("--match", "k[57]", "-B", "1", "-A", "1"),
                         ["k4", "k5", "k6", "k7", "k8"])
        self.assertEqual(self.keys("--match", "k[58]", "-B", "1", "-A", "1"),
                         ["k4", "k5", "k6", "k7", "k8", "k9"])
        self.assertEqual(self.keys("--match", "k[59]", "-B", "1", "-A", "1"),
                         ["k4", "k5", "k6", "--", "k8", "k9", "k10"])
        self.assertEqual(self.keys("--match", "k[57]", "-A", "0"), ["k5", "k7"])

    def test_after_the_last_offset_too(self):
        second = BASE + len(command("SET", "k0", "0"))
        self.assertEqual(self.keys("--until-offset", str(second), "-A", "2"),
                         ["k0", "k1", "k2", "k3"])

    def test_an_entry_says_that_it_is_kept_separately(self):
        entries = self.entries("--match", "k5", "-B", "1")
        reported = [("context" in e, e["command"][1]) for e in entries]
        self.assertEqual(reported, [(True, "k4"), (False, "k5")])

    def test_logs_too(self):
        path = os.path.join(self.folder, "log")
        with open(path, "wb") as f:
            f.write(b"".join(command("SET", f"k{i}", i) for i in range(20)))
        lines = self.show("--match", "k5", "-B", "1", "-A", "1", path=path)
        self.assertEqual([line.split('"')[3] for line in lines], ["k4", "k5", "k6"])


class Stats(ShowTest):
    def stats(self, *args):
        return json.loads(self.run_tool("show", "--stats", "--json", *args,
                                        self.capture.path)[0])["stats"]

    def test_sums_by_command_prefix_and_second(self):
        at = self.usual()
        stats = self.stats("--db", "2")
        self.assertEqual(stats["commands"], 5)
        self.assertEqual(stats["bytes"], at[5] - at[0])
        self.assertEqual(stats["keys"], 3)
        self.assertEqual(stats["different_keys"], 3)
        rows = {row["command"]: (row["commands"], row["keys"]) for row in stats["by_command"]}
        self.assertEqual(rows, {"SELECT": (1, 0), "SET": (1, 1), "MULTI": (1, 0), "MSET": (1, 2),
                                "EXEC": (1, 0)})
        rows = {row["prefix"]: (row["commands"], row["keys"]) for row in stats["by_prefix"]}
        self.assertEqual(rows, {"user:": (2, 2), "": (0, 1)})
        self.assertEqual(stats["span_s"], 1)
        self.assertEqual([span["commands"] for span in stats["spans"]], [1] * 5)
        self.assertEqual(stats["spans"][0]["time_s"], START)

    def test_spans_get_wider_and_nothing_is_lost(self):
        stream = b"".join(command("SET", f"key:{i}", i) for i in range(6000))
        self.capture.begin(None, stream, step_us=3000000)
        stats = self.stats()
        self.assertEqual(stats["span_s"], 8)
        self.assertEqual(sum(span["commands"] for span in stats["spans"]), 6000)
        self.assertAlmostEqual(stats["different_keys"], 6000, delta=200)

    def test_for_people(self):
        self.usual()
        lines = self.show("--stats", "--top", "1")
        self.assertRegex(lines[0], r"^10 commands, \d+ bytes, in 1 min 44 s: 0.1 commands and ")
        self.assertEqual(lines[1], "8 keys in these commands, about 8 distinct")
        self.assertRegex("\n".join(lines), r"\nSET +6 +60.0% ")
        self.assertRegex("\n".join(lines), r"\n\(all others\) +4 +40.0% ")

    def test_no_commands_are_shown_beside(self):
        self.usual()
        self.run_tool("show", "--stats", "--follow", self.capture.path, expect=2)


class Following(ShowTest):
    def test_what_is_captured_later_is_shown(self):
        self.capture.begin(snapshot([]), command("SET", "a", "1"))
        out = os.path.join(self.folder, "out")
        with open(out, "wb") as f:
            follower = subprocess.Popen([REDOUBT, "show", "-f", self.capture.path], stdout=f)
        try:
            self.wait_for(out, '"SET" "a" "1"')
            self.capture.go_on(command("SET", "b", "2"), at=START + 5)
            self.wait_for(out, '"SET" "b" "2"')
            self.capture.begin(snapshot([]), command("SET", "c", "3"), ident="d", offset=5)
            self.wait_for(out, '"SET" "c" "3"')
        finally:
            follower.send_signal(signal.SIGINT)
            self.assertEqual(follower.wait(timeout=600), 130)

    def wait_for(self, path, text):
        limit = time.monotonic() + 60
        while True:
            with open(path) as f:
                reported = f.read()
            if text in reported:
                return
            self.assertLess(time.monotonic(), limit, reported)
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
