"""redoubt show: what it prints of logs, what it leaves out, and how it follows.

REDOUBT names the program.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

REDOUBT = os.environ["REDOUBT"]
FIXTURES = os.environ["REDOUBT_FIXTURES"]
TIMED = os.path.join(FIXTURES, "redis-7.0.15", "aof-timestamps.aof.d", "appendonlydir")
PREAMBLE = os.path.join(FIXTURES, "redis-6.2.16", "aof-preamble.aof.d", "appendonly.aof")


def command(*args):
    args = [a if isinstance(a, bytes) else a.encode() for a in args]
    out = b"*%d\r\n" % len(args)
    return out + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in args)


class ShowTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as out:
            out.write(data)
        return self.path(name)

    def run_tool(self, *args, expect=0):
        done = subprocess.run([REDOUBT, *args], capture_output=True, check=False)
        self.assertEqual(done.returncode, expect, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def show(self, *args, expect=0):
        return self.run_tool("show", *args, expect=expect)[0].splitlines()

    def log(self):
        """A folder with an incremental file that has a FLUSHALL."""
        one = (b"#TS:1700000000\r\n" + command("SELECT", "0") + command("SET", "a", "1") +
               command("MULTI") + command("INCR", "n") + command("EXEC"))
        two = (command("SELECT", "3") + b"#TS:1700000100\r\n" +
               command("MSET", "x", "1", "y", "2") + command("FLUSHALL") +
               command("SET", "late", "1"))
        self.write("appendonly.aof.1.incr.aof", one)
        self.write("appendonly.aof.2.incr.aof", two)
        self.write("appendonly.aof.manifest",
                   b"file appendonly.aof.1.incr.aof seq 1 type i\n"
                   b"file appendonly.aof.2.incr.aof seq 2 type i\n")
        return self.folder


class Lines(ShowTest):
    def test_a_line_has_time_place_database_and_command(self):
        lines = self.show(self.log())
        self.assertEqual(lines[1], '2023-11-14T22:13:20Z appendonly.aof.1.incr.aof:39 [0] '
                                   '"SET" "a" "1"')
        self.assertIn(' [0 multi] "INCR" "n"', lines[3])
        self.assertIn(' [3] "SELECT" "3"', lines[5])
        self.assertEqual(len(lines), 9)

    def test_bytes_are_escaped_and_long_arguments_shortened(self):
        path = self.write("a", command("SET", b"\x1b[31m\x00\"\\\n", "v" * 500))
        [line] = self.show(path)
        self.assertTrue(line.startswith(r'- a:0 [0] "SET" "\x1b[31m\x00\"\\\n" "vvv'), line)
        self.assertTrue(line.endswith('vvv"...(500 bytes)'), line)
        self.assertLess(len(line), 150)
        [line] = self.show("--full", path)
        self.assertIn("v" * 500 + '"', line)

    def test_offsets_are_those_of_the_commands(self):
        folder = self.log()
        for line in self.show(folder):
            name, offset = re.search(r" (\S+):(\d+) \[", line).groups()
            with open(os.path.join(folder, name), "rb") as f:
                self.assertEqual(f.read()[int(offset)], ord("*"))

    def test_a_snapshot_is_one_line(self):
        lines = self.show(PREAMBLE)
        self.assertEqual(lines[0],
                         "# appendonly.aof: snapshot: 98 keys, written by Redis 6.2.16")
        self.assertEqual(sum(line.startswith("#") for line in lines), 1)

    def test_damage_is_reported_after_what_could_be_read(self):
        path = os.path.join(FIXTURES, "damaged", "aof-tail-2.aof")
        out, err = self.run_tool("show", path, expect=1)
        self.assertEqual(len(out.splitlines()), 193)
        self.assertIn("truncated", err)

    def test_what_is_not_there_is_an_io_error(self):
        self.run_tool("show", self.path("none"), expect=3)

    def test_v_puts_the_number_in_the_whole_log_in_front(self):
        plain = self.show(self.log())
        self.assertEqual(self.show("-v", self.log()),
                         [f"{i} {line}" for i, line in enumerate(plain, 1)])
        self.assertEqual(self.show("-v", "--command", "FLUSHALL", self.log()), [f"8 {plain[7]}"])
        self.assertEqual(self.show("-v", PREAMBLE)[0], self.show(PREAMBLE)[0])


class Json(ShowTest):
    def test_json_is_one_object(self):
        out, _ = self.run_tool("show", "--json", TIMED)
        entries = json.loads(out)["entries"]
        self.assertEqual(entries[0]["snapshot"]["keys"], 20)
        self.assertEqual(entries[1]["command"], ["SELECT", "0"])
        self.assertEqual(entries[1]["time_s"], 1795167018)
        self.assertEqual(json.loads(out)["commands"], len(entries) - 1)

    def test_ndjson_is_one_object_a_line(self):
        lines = [json.loads(line) for line in self.show("--ndjson", TIMED)]
        self.assertEqual(lines, json.loads(self.run_tool("show", "--json", TIMED)[0])["entries"])

    def test_the_number_in_the_whole_log_is_always_there(self):
        entries = [json.loads(line) for line in self.show("--ndjson", "--db", "3", self.log())]
        self.assertEqual([entry["number"] for entry in entries], [6, 7, 8, 9])

    def test_arguments_are_lossless(self):
        value = bytes(range(256))
        path = self.write("a", command("SET", "k", value))
        [entry] = [json.loads(line) for line in self.show("--ndjson", path)]
        self.assertEqual(entry["command"][2].encode("utf-8", "surrogateescape"), value)


class Filters(ShowTest):
    def commands(self, *args):
        return [json.loads(line)["command"] for line in self.show("--ndjson", *args, self.log())
                if "command" in json.loads(line)]

    def names(self, *args):
        return [c[0] for c in self.commands(*args)]

    def test_by_name(self):
        self.assertEqual(self.commands("--command", "set"),
                         [["SET", "a", "1"], ["SET", "late", "1"]])
        self.assertEqual(self.names("--command", "MULTI", "--command", "exec"), ["MULTI", "EXEC"])

    def test_by_key(self):
        self.assertEqual(self.names("--match", "y"), ["MSET"])  # the second one
        self.assertEqual(self.names("--prefix", "la"), ["SET"])
        self.assertEqual(self.names("--match-regex", "^[an]$"), ["SET", "INCR"])
        self.assertEqual(self.names("--not", "--match", "a"), ["INCR", "MSET", "SET"])

    def test_by_database(self):
        self.assertEqual(self.names("--db", "3"), ["SELECT", "MSET", "FLUSHALL", "SET"])
        self.assertEqual(self.names("--not", "--db", "3", "--command", "SET"), ["SET"])

    def test_by_time(self):
        self.assertEqual(self.names("--from", "1700000100"), ["MSET", "FLUSHALL", "SET"])
        self.assertEqual(len(self.names("--until", "1700000099")), 6)

    def test_a_log_without_times_prints_nothing_for_a_time(self):
        path = self.write("plain.aof", command("SELECT", "0") + command("SET", "a", "1"))
        self.write("appendonly.aof.manifest", b"file plain.aof seq 1 type i\n")
        for name in (path, self.folder):
            for option in ("--from", "--until"):
                out, err = self.run_tool("show", option, "1700000100", name, expect=2)
                self.assertEqual(out, "")
                self.assertIn("no time annotations", err)

    def test_by_offset(self):
        self.assertEqual(self.names("--from-offset", "appendonly.aof.2.incr.aof:39"),
                         ["MSET", "FLUSHALL", "SET"])
        self.assertEqual(self.names("--until-offset", "appendonly.aof.1.incr.aof:16"), ["SELECT"])

    def test_keys_of_commands_with_other_places(self):
        cases = [
            (["EVAL", "return 1", "2", "a", "KEY", "KEY"], 1),
            (["EVAL", "return 1", "1", "a", "KEY"], 0),
            (["RENAME", "a", "KEY"], 1),
            (["ZUNIONSTORE", "d", "2", "a", "KEY"], 1),
            (["BITOP", "AND", "d", "KEY"], 1),
            (["XGROUP", "CREATE", "KEY", "g", "0"], 1),
            (["XREADGROUP", "GROUP", "g", "c", "STREAMS", "KEY", ">"], 1),
            (["SORT", "a", "STORE", "KEY"], 1),
            (["SET", "a", "KEY"], 0),
            (["PUBLISH", "KEY", "m"], 0),
            (["DEL", "a", "b", "KEY"], 1),
            (["MSET", "a", "KEY"], 0),
        ]
        for args, n in cases:
            path = self.write("one", command(*args))
            found = self.show("--count", "--match", "KEY", path, expect=0 if n > 0 else 1)
            self.assertEqual(found, [str(n)], args)

    def test_any_of_many_keys_is_found(self):
        path = self.write("many", command("DEL", *(f"k{i}" for i in range(100))))
        for key, n in (("k0", 1), ("k99", 1), ("k100", 0)):
            found = self.show("--count", "--match", key, path, expect=0 if n > 0 else 1)
            self.assertEqual(found, [str(n)])

    def test_count_and_tail(self):
        self.assertEqual(self.show("--count", self.log()), ["9"])
        lines = self.show("--tail", "2", self.log())
        self.assertEqual(lines, self.show(self.log())[-2:])

    def test_bad_options_are_usage_errors(self):
        for args in (["--not"], ["--from-offset", "x"], ["--from-offset", ":1"],
                     ["--match-regex", "("]):
            self.run_tool("show", *args, self.log(), expect=2)


class Follow(ShowTest):
    def start(self, *args):
        process = subprocess.Popen([REDOUBT, "show", "--follow", *args], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, restore_signals=False)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(600), 130)

    def leave(self, process, path):
        """With SIGPIPE ignored, as here, the next write fails."""
        process.stdout.close()
        with open(path, "ab") as f:
            f.write(command("SET", "unread", "1"))
        self.assertEqual(process.wait(600), 3)
        self.assertEqual(process.stderr.read(), b"")

    def test_a_file_that_grows_and_a_rotation(self):
        process = self.start("-v", self.log())
        for _ in range(9):
            process.stdout.readline()
        with open(self.path("appendonly.aof.2.incr.aof"), "ab") as f:
            f.write(command("SET", "more", "1")[:10])
            f.flush()
            time.sleep(0.3)
            f.write(command("SET", "more", "1")[10:])
        self.assertIn(b'"SET" "more" "1"', process.stdout.readline())
        self.write("appendonly.aof.3.incr.aof", command("SELECT", "5") + command("SET", "new", "1"))
        self.write("next", b"file appendonly.aof.2.incr.aof seq 2 type i\n"
                           b"file appendonly.aof.3.incr.aof seq 3 type i\n")
        os.rename(self.path("next"), self.path("appendonly.aof.manifest"))
        line = process.stdout.readline()
        self.assertIn(b'appendonly.aof.3.incr.aof:0 [5] "SELECT"', line)
        self.assertTrue(line.startswith(b"11 "), line)
        self.assertIn(b'[5] "SET" "new" "1"', process.stdout.readline())
        self.leave(process, self.path("appendonly.aof.3.incr.aof"))

    def test_the_tail_of_one_file(self):
        path = self.write("a", command("SET", "a", "1") + command("SET", "b", "1"))
        process = self.start("--tail", "1", path)
        self.assertIn(b'"SET" "b"', process.stdout.readline())
        with open(path, "ab") as f:
            f.write(command("SET", "c", "1"))
        self.assertIn(b'"SET" "c"', process.stdout.readline())
        self.stop(process)

    def test_objects_without_a_recipient_end_it_too(self):
        path = self.write("a", command("SET", "a", "1"))
        process = self.start("--json", path)
        process.stdout.readline()
        self.leave(process, path)


class TypedByMistake(ShowTest):
    def test_the_place_of_a_flushall_is_where_check_aof_cuts(self):
        folder = self.log()
        [line] = self.show("--command", "FLUSHALL", folder)
        place = line.split(" ")[1]
        self.run_tool("check-aof", "--yes", "--truncate-to-offset", place, folder)
        self.assertEqual(self.show("--command", "FLUSHALL", folder, expect=1), [])
        self.assertEqual(self.show("--count", folder), ["7"])
        self.assertIn('"MSET" "x" "1" "y" "2"', self.show(folder)[-1])


if __name__ == "__main__":
    unittest.main()
