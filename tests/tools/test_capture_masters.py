"""redoubt capture beside masters that are played: old ones, slow ones, and those that say no.

REDOUBT names the program.
"""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from capture_case import Running, encode, eventually  # noqa: E402
from captures import CaptureTest  # noqa: E402
from fake_server import FakeServer  # noqa: E402
from rdb_text import STRING, Key, snapshot  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
ID, OTHER = "a" * 40, "b" * 40
MARK = b"m" * 40
UNKNOWN = b"-ERR unknown command\r\n"
DATA = snapshot([Key(b"old", STRING, b"0")], version=6)
FULL = b"+FULLRESYNC %s 100\r\n" % ID.encode()
BY_LENGTH = b"$%d\r\n" % len(DATA) + DATA


class Master:
    """Answers to PSYNC, one after the other; the last one again and again. An answer is bytes, or a
    list of bytes and of seconds to wait; a None closes the connection."""

    def __init__(self, *answers, **others):
        self.answers = list(answers)
        self.others = {b"REPLCONF": b"+OK\r\n", b"PING": b"+PONG\r\n",
                       **{name.encode(): reply for name, reply in others.items()}}
        self.asked = []
        self.acks = []

    def __call__(self, args):
        if args[:2] == [b"REPLCONF", b"ACK"]:
            self.acks.append(int(args[2]))
            return b""
        if args[0] != b"PSYNC":
            return self.others.get(args[0], UNKNOWN)
        self.asked.append(tuple(args[1:]))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class MasterTest(CaptureTest):
    def start(self, server, *args):
        running = Running(f"redis://127.0.0.1:{server.port}", "-o", self.capture.path, "--json",
                          *args)
        self.addCleanup(running.kill)
        return running

    def capture_until(self, master, offset, *args, status=0):
        """The output of a capture that ends at an offset."""
        with FakeServer(master) as server:
            got, out, err = self.start(server, "--until-offset", str(offset), *args).end(None)
        self.assertEqual(got, status, (out, err))
        self.err = err
        return json.loads(out)

    def captured(self):
        """{(db, key): value}."""
        out, _ = self.run_tool("convert", "--to", "ndjson", self.capture.path)
        rows = [json.loads(line) for line in out.splitlines()]
        return {(row["db"], row["key"]): row["value"] for row in rows}

    def shown(self):
        out, _ = self.run_tool("show", "--ndjson", self.capture.path)
        rows = [json.loads(line) for line in out.splitlines()]
        return [row["command"] for row in rows if "command" in row]


SET_A, SET_B = encode("SET", "a", "1"), encode("SET", "b", "2")


class Old(MasterTest):
    """2.4 and 2.6: SYNC, SELECT and PING as lines of words, no ids, no offsets."""

    def master(self, *answers, **others):
        master = Master(UNKNOWN, **{"REPLCONF": UNKNOWN, **others})
        left = list(answers)
        master.others.pop(b"SYNC", None)

        def answer(args):
            if args[0] != b"SYNC":
                return master(args)
            return left.pop(0) if len(left) > 1 else left[0]
        return answer

    def test_snapshot_and_stream_of_a_master_that_knows_sync_alone(self):
        stream = SET_A + b"select 3\r\n" + SET_B + b"PING\r\n" + encode("SET", "c", "3")
        reported = self.capture_until(self.master(b"\n\n" + BY_LENGTH + stream), 118)
        self.assertEqual(self.captured(), {(0, "old"): "0", (0, "a"): "1", (3, "b"): "2",
                                           (3, "c"): "3"})
        self.assertEqual([c[0] for c in self.shown()], ["SET", "select", "SET", "PING", "SET"])
        target = reported["targets"][0]
        self.assertEqual((target["full_syncs"], target["commands"]), (1, 5))
        self.run_tool("show", "--stats", self.capture.path)

    def test_what_it_cannot_resume_begins_anew(self):
        again = b"$%d\r\n" % len(DATA) + DATA + b"select 2\r\n" + SET_B * 9
        reported = self.capture_until(self.master([BY_LENGTH + SET_A, None], again), 143)
        self.assertEqual([e["event"] for e in reported["events"]],
                         ["full", "snapshot", "lost", "full", "snapshot"])
        self.assertEqual(reported["targets"][0]["chapter"], 2)
        self.assertEqual(self.captured(), {(0, "old"): "0", (2, "b"): "2"})

    def test_the_password_is_asked_for_by_words_without_a_code(self):
        denied = b"-ERR operation not permitted\r\n"
        master = self.master(BY_LENGTH + SET_A * 5, PING=denied, AUTH=b"+OK\r\n")
        os.environ["REDISCLI_AUTH"] = "secret"
        self.addCleanup(os.environ.pop, "REDISCLI_AUTH")
        self.capture_until(master, 100)
        self.assertEqual(self.captured()[(0, "a")], "1")

    def test_the_snapshot_alone(self):
        path = os.path.join(self.folder, "x.rdb")
        with FakeServer(self.master(b"\n" + BY_LENGTH + b"PING\r\n")) as server:
            self.run_tool("capture", f"redis://127.0.0.1:{server.port}", "--rdb-only", path)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), DATA)


class Asked(MasterTest):
    def test_every_tool_announces_the_newest_version_that_is_read(self):
        path = os.path.join(self.folder, "x.rdb")
        for args in (("capture", "--rdb-only", path), ("check-rdb",), ("stat",)):
            with FakeServer(Master(FULL + BY_LENGTH)) as server:
                self.run_tool(args[0], f"redis://127.0.0.1:{server.port}", *args[1:])
                said = [a[2] for a in server.seen if a[:2] == [b"REPLCONF", b"version"]]
            self.assertEqual(said, [b"9.2.0"], args)

    def test_a_master_that_closes_instead_of_a_snapshot_has_a_reason_in_its_log(self):
        with FakeServer(Master([FULL, None])) as server:
            _, err = self.run_tool("check-rdb", f"redis://127.0.0.1:{server.port}", expect=6)
        self.assertIn("its log says whether the process that saves it failed", err)

    def test_the_version_that_is_reported(self):
        for reply in (b"+OK\r\n", b"-ERR Unrecognized REPLCONF option: version\r\n"):
            master = Master(FULL + BY_LENGTH + SET_A)
            reported = []

            def answer(args, master=master, reported=reported, reply=reply):
                if args[:2] != [b"REPLCONF", b"version"]:
                    return master(args)
                reported.append(args[2])
                return reply

            self.capture.path += "x"
            self.capture_until(answer, 101, "--replica-version", "7.2.0")
            self.assertEqual(reported, [b"7.2.0"])
            self.assertEqual(self.captured(), {(0, "old"): "0", (0, "a"): "1"})
        for text in ("", "7", "7.2", "7.2.0.1", "7.2.x", "7..0", "7.2.0 ", "7000.2.0"):
            self.run_tool("capture", "redis://127.0.0.1:1", "-o", self.capture.path + "y",
                          "--replica-version", text, expect=2)


class Slow(MasterTest):
    def test_empty_lines_keep_it_waiting(self):
        """-t 1 is a patience of two seconds."""
        lines = [b"\n", 0.4] * 6
        half = len(BY_LENGTH) // 2
        answer = [*lines, FULL, *lines, BY_LENGTH[:half], 1.2, BY_LENGTH[half:], 1.2, SET_A]
        reported = self.capture_until(Master(answer), 101, "-t", "1")
        self.assertEqual([e["event"] for e in reported["events"]], ["full", "snapshot"])
        self.assertEqual(self.captured(), {(0, "old"): "0", (0, "a"): "1"})

    def test_silence_is_a_loss(self):
        master = Master([FULL + BY_LENGTH + SET_A, 30], [b"+CONTINUE\r\n" + SET_B])
        reported = self.capture_until(master, 100 + 2 * len(SET_A), "-t", "1")
        self.assertEqual([e["event"] for e in reported["events"]],
                         ["full", "snapshot", "lost", "continue"])
        self.assertIn("no data from the master", reported["events"][2]["text"])
        self.assertEqual(master.asked[1], (ID.encode(), b"%d" % (101 + len(SET_A))))
        self.assertEqual(self.captured(), {(0, "old"): "0", (0, "a"): "1", (0, "b"): "2"})

    def test_a_mark_in_pieces_and_an_empty_line_between(self):
        body = b"$EOF:" + MARK + b"\r\n" + DATA + MARK
        answer = [FULL, b"\n"]
        for at in range(0, len(body), 7):
            answer += [body[at:at + 7], 0.001]
        self.capture_until(Master([*answer, SET_A]), 101)
        self.assertEqual(self.captured(), {(0, "old"): "0", (0, "a"): "1"})


class Refusals(MasterTest):
    def test_what_passes_is_waited_for(self):
        for line in (b"-LOADING Redis is loading the dataset in memory\r\n",
                     b"-NOMASTERLINK Can't SYNC while not connected with my master\r\n",
                     b"-ERR Can't SYNC while not connected with my master\r\n",
                     b"-BUSY Redis is busy running a script.\r\n",
                     b"-MASTERDOWN Link with MASTER is down\r\n"):
            with self.subTest(line=line):
                master = Master(line, FULL + BY_LENGTH + SET_A, SYNC=BY_LENGTH)
                reported = self.capture_until(master, 101)
                self.assertEqual([e["event"] for e in reported["events"]],
                                 ["lost", "full", "snapshot"])
                self.assertEqual(len(master.asked), 2)
                subprocess.run(["rm", "-r", self.capture.path], check=True)

    def test_what_does_not_pass_by_itself_ends_it_with_a_hint(self):
        for line in (b"-NOAUTH Authentication required.\r\n",
                     b"-NOPERM this user has no permissions to run the 'psync' command\r\n",
                     b"-DENIED Redis is running in protected mode\r\n"):
            with self.subTest(line=line):
                self.capture_until(Master(line), 101, status=6)
                self.assertIn("hint: ", self.err)

    def test_a_master_that_cannot_save_has_replicas_all_the_same(self):
        misconf = b"-MISCONF Errors writing to the AOF file: No space left on device\r\n"
        self.capture_until(Master(FULL + BY_LENGTH + SET_A, PING=misconf), 101)
        self.assertEqual(self.captured(), {(0, "old"): "0", (0, "a"): "1"})

    def test_a_second_channel_was_not_offered(self):
        """Only eof and psync2 are announced, so that no master replies with another one."""
        master = Master(b"+DUALCHANNELSYNC\r\n")
        with FakeServer(master) as server:
            status, _, err = self.start(server).end(None)
            self.assertEqual(status, 6, err)
            self.assertIn([b"REPLCONF", b"capa", b"eof", b"capa", b"psync2"], server.seen)
        self.assertIn("unexpected answer to PSYNC", err)


class Stream(MasterTest):
    def test_an_offset_that_is_asked_for_inside_of_a_transaction(self):
        multi, ask = encode("MULTI"), encode("REPLCONF", "GETACK", "*")
        stream = multi + SET_A + ask
        master = Master([FULL + BY_LENGTH + stream, 1.5, SET_B + encode("EXEC")])
        end = 100 + len(stream) + len(SET_B) + len(encode("EXEC"))
        self.capture_until(master, end)
        eventually("the end is acknowledged", lambda: end in master.acks)
        self.assertEqual(self.captured(), {(0, "old"): "0", (0, "a"): "1", (0, "b"): "2"})

    def test_a_history_that_changes_its_name_twice(self):
        at = [100 + n * len(SET_A) for n in range(4)]
        master = Master([FULL + BY_LENGTH + SET_A, None],
                        [b"+CONTINUE %s\r\n" % OTHER.encode() + SET_B, None],
                        [b"+CONTINUE %s\r\n" % (b"c" * 40) + encode("SET", "c", "3")])
        reported = self.capture_until(master, at[3])
        self.assertEqual(reported["targets"][0]["chapter"], 3)
        self.assertEqual(master.asked, [(b"?", b"-1"), (ID.encode(), b"%d" % (at[1] + 1)),
                                        (OTHER.encode(), b"%d" % (at[2] + 1))])
        self.assertEqual(len(self.captured()), 4)

    def test_forms_of_select(self):
        forms = b"".join((encode("select", "1"), encode("SELECT", "15"), encode("Select", "0")))
        self.capture_until(Master(FULL + BY_LENGTH + forms + SET_A), 101 + len(forms))
        self.assertEqual(self.captured(), {(0, "old"): "0", (0, "a"): "1"})

    def test_a_snapshot_that_is_damaged_ends_it_and_one_cut_off_does_not(self):
        cut = [FULL + BY_LENGTH[:-9], None]
        reported = self.capture_until(Master(cut, FULL + BY_LENGTH + SET_A), 101)
        self.assertEqual([e["event"] for e in reported["events"]],
                         ["full", "lost", "full", "snapshot"])
        self.assertEqual(sorted(n for n in os.listdir(self.capture.path) if "part" in n), [])
        bad = DATA[:9] + b"\x00\x01k\xc5" + DATA[9:]
        self.capture_until(Master(FULL + b"$%d\r\n" % len(bad) + bad), 10**6, status=1)


class Reading(MasterTest):
    def test_acknowledgements_say_what_the_option_names(self):
        for ack in ("received", "written", "synced"):
            with self.subTest(ack=ack):
                self.capture.path = os.path.join(self.folder, ack)
                master = Master(FULL + BY_LENGTH + SET_A)
                with FakeServer(master) as server:
                    running = self.start(server, "--ack", ack)
                    eventually("it is acknowledged", lambda: 100 + len(SET_A) in master.acks)
                    self.assertEqual(running.end()[0], 143)
                self.assertIn(100, master.acks)


if __name__ == "__main__":
    unittest.main()
