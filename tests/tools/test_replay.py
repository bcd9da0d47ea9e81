"""redoubt replay: captures into a real server, and into one that is played where that must be slow,
old, or refuse.

REDOUBT names the program.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
from captures import START, USUAL, Capture, CaptureTest, command, ends  # noqa: E402
from fake_server import FakeServer, bulk  # noqa: E402
from rdb_text import HASH, LIST, STRING, Key, snapshot  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
FIXTURES = os.environ["REDOUBT_FIXTURES"]
BASE = 1000


class ReplayTest(CaptureTest):
    def run_replay(self, port, *args, status=0):
        url = [f"redis://127.0.0.1:{port}"] if port is not None else []
        done = subprocess.run([REDOUBT, "replay", *args, self.capture.path, *url],
                              capture_output=True, check=False, timeout=600)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        self.err = done.stderr.decode()
        return done.stdout.decode()

    def reported(self, port, *args, status=0):
        return json.loads(self.run_replay(port, "--json", *args, status=status))


class Real(ReplayTest):
    @classmethod
    def setUpClass(cls):
        cls.server = redis_server.RedisServer({"databases": "64"}).__enter__()
        cls.addClassCleanup(cls.server.close)

    def setUp(self):
        super().setUp()
        self.server.command("FLUSHALL")
        self.server.command("FUNCTION", "FLUSH")
        self.server.command("SELECT", 0)

    def replay(self, *args, status=0):
        return self.reported(self.server.port, "--speed", "max", *args, status=status)

    def keys(self, db=0):
        self.server.command("SELECT", db)
        return sorted(self.server.command("KEYS", "*"))

    def get(self, key, db=0):
        self.server.command("SELECT", db)
        return self.server.command("GET", key)

    def usual(self):
        self.capture.begin(snapshot([Key(b"old", STRING, b"0"),
                                     Key(b"h", HASH, [(b"f", b"v")], db=7)]), b"".join(USUAL))
        return ends(USUAL, BASE)


class Whole(Real):
    def test_the_server_has_what_the_capture_amounts_to(self):
        at = self.usual()
        reported = self.replay("--verify")
        self.assertEqual(reported["errors"], 0)
        self.assertEqual(reported["keys"], 2)
        self.assertEqual(reported["commands"], 10)  # no PING, no REPLCONF
        self.assertEqual(reported["transactions"], 1)
        self.assertEqual(reported["to"], {"chapter": 1, "offset": at[12]})
        self.assertTrue(reported["verify"]["same"])
        self.assertEqual(self.keys(), [b"a", b"old"])
        self.assertEqual(self.keys(2), [b"a", b"b", b"c", b"d"])
        self.assertEqual(self.keys(7), [b"h"])

    def test_verify_reports_which_keys_differ(self):
        self.capture.begin(snapshot([]), command("SET", "a", "1") + command("SET", "b", "1") +
                           command("DEL", "a"), step_us=0)
        self.server.command("SET", "unknown", "1")
        out = self.run_replay(self.server.port, "--speed", "max", "--flush", "--verify")
        self.assertIn("has the same data as the capture", out)
        self.server.command("ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@all", "-del")
        reported = json.loads(subprocess.run(
            [REDOUBT, "replay", "--json", "--speed", "max", "--flush", "--verify",
             self.capture.path, f"redis://poor:pw@127.0.0.1:{self.server.port}"],
            capture_output=True, check=False).stdout)
        self.assertEqual(reported["exit_status"], 1)
        self.assertEqual(reported["errors"], 1)
        self.assertFalse(reported["verify"]["same"])
        self.assertEqual([d["key"] for d in reported["verify"]["differences"]], ["a"])

    def test_due_keys_are_not_differences(self):
        due = (START - 5) * 1000
        self.capture.begin(snapshot([Key(b"due", STRING, b"1", expire_ms=due),
                                     Key(b"later", STRING, b"1", expire_ms=due + 10 ** 9)]),
                           command("SET", "a", "1") +
                           command("SET", "soon", "1", "PXAT", str(due)))
        for more in ((), ("--no-expired",), ("--expiry", "recorded")):
            reported = self.replay("--verify", "--flush", *more)
            self.assertTrue(reported["verify"]["same"], (more, reported))
            self.assertGreater(reported["verify"]["due"], 0)
            self.assertEqual(reported["keys"], 1 if more == ("--no-expired",) else 2)
        reported = self.replay("--no-expired", "--dry-run")
        self.assertEqual(reported["keys"], 1)
        out = self.run_replay(self.server.port, "--speed", "max", "--flush", "--verify")
        self.assertIn("expired in the meantime", out)

    def test_a_key_that_is_not_due_is_a_difference_all_the_same(self):
        self.capture.begin(snapshot([Key(b"later", STRING, b"1", expire_ms=(START + 9999) * 1000)]),
                           command("SET", "a", "1"))
        self.server.command("ACL", "SETUSER", "few", "on", ">pw", "~a", "+@all")
        reported = json.loads(subprocess.run(
            [REDOUBT, "replay", "--json", "--speed", "max", "--flush", "--verify",
             self.capture.path, f"redis://few:pw@127.0.0.1:{self.server.port}"],
            capture_output=True, check=False).stdout)
        self.assertEqual((reported["exit_status"], reported["errors"]), (1, 1), reported)

    def digest(self):
        """The exclusive or of the SHA-1 of DB:KEY:DIGEST, as fixtures/README.md has it."""
        total = 0
        for db in self.server.databases():
            for key in self.keys(db):
                value = self.server.command("DEBUG", "DIGEST-VALUE", key)[0]
                raw = bytes.fromhex(value.decode())
                if self.server.command("TYPE", key) == b"zset":
                    raw = bytes(20)
                line = b"%d:%s:%s" % (db, key, raw)
                total ^= int.from_bytes(hashlib.sha1(line).digest(), "big")
        return f"{total:040x}"

    def test_what_real_masters_sent(self):
        """The dataset at the end, as the masters reported it. Times to live are moved: some of
        those that were recorded have passed."""
        with open(os.path.join(FIXTURES, "captures.tsv")) as f:
            names, *rows = [line.rstrip("\n").split("\t") for line in f]
        rows = [dict(zip(names, row)) for row in rows]
        rows = [row for row in rows if row["final"] != "-" and
                row["path"].split("/")[0] in ("redis-6.2.16", "redis-7.0.15", "valkey-8.0.1")]
        self.assertEqual(len(rows), 5)
        for i, row in enumerate(rows):
            with self.subTest(path=row["path"]):
                with open(os.path.join(FIXTURES, row["path"]), "rb") as f:
                    data = f.read()
                self.capture = Capture(os.path.join(self.folder, f"real{i}"))
                self.capture.begin(data[int(row["rdb"]):int(row["rdb_end"])],
                                   data[int(row["stream"]):], step_us=1000)
                reported = self.replay("--flush")
                self.assertEqual(reported["first_errors"], [])
                self.assertEqual(self.digest(), row["final"])

    def test_many_commands_are_sent_ahead(self):
        stream = command("SELECT", 0) + b"".join(command("INCR", f"n{i % 7}") for i in range(20000))
        self.capture.begin(snapshot([]), stream, step_us=0)
        for window in ("1", "3", "5000"):
            reported = self.replay("--flush", "--window", window)
            self.assertEqual(reported["commands"], 20001)
            self.assertEqual(sum(int(self.get(f"n{i}")) for i in range(7)), 20000)

    def test_values_longer_than_what_is_on_the_way(self):
        big = b"x" * (6 << 20)
        self.capture.begin(snapshot([Key(b"big", STRING, big)]),
                           command("SET", "other", big) + command("APPEND", "big", "y"))
        reported = self.replay("--verify")
        self.assertTrue(reported["verify"]["same"])
        self.assertEqual(self.server.command("STRLEN", "big"), len(big) + 1)


class Places(Real):
    def test_to_an_offset(self):
        at = self.usual()
        reported = self.replay("--verify", "--until-offset", str(at[5]))
        self.assertEqual(reported["to"]["offset"], at[5])
        self.assertTrue(reported["verify"]["same"])
        self.assertEqual(self.keys(2), [b"b"])

    def test_a_transaction_that_does_not_end_is_left_out(self):
        at = self.usual()
        reported = self.replay("--verify", "--until-offset", str(at[9]))
        self.assertEqual(reported["discarded"], 1)
        self.assertTrue(reported["verify"]["same"])
        self.assertEqual(self.keys(2), [b"a", b"b"])

    def test_to_a_time(self):
        self.usual()
        reported = self.replay("--verify", "--until", str(START + 4))
        self.assertTrue(reported["verify"]["same"])
        self.assertEqual(self.keys(2), [b"b"])

    def test_from_an_offset_everything_before_it_is_caught_up_with(self):
        at = self.usual()
        reported = self.replay("--verify", "--from-offset", str(at[4]))
        self.assertEqual(reported["caught_up"], 3)
        self.assertTrue(reported["verify"]["same"])

    def test_without_the_snapshot_the_stream_alone_comes_on_top(self):
        at = self.usual()
        self.server.command("SET", "mine", "1")
        reported = self.replay("--no-snapshot", "--from-offset", str(at[4]), "--until-offset",
                           str(at[5]))
        self.assertEqual(reported["commands"], 1)
        self.assertEqual(reported["from"]["offset"], at[4])
        self.assertEqual(self.keys(), [b"mine"])
        self.assertEqual(self.keys(2), [b"b"])

    def test_from_inside_of_a_transaction_it_begins_with_it(self):
        at = self.usual()
        reported = self.replay("--no-snapshot", "--from-offset", str(at[9]))
        self.assertEqual(reported["from"]["offset"], at[7])
        self.assertEqual(reported["transactions"], 1)
        self.assertEqual(self.keys(2), [b"c", b"d"])

    def test_from_a_time_without_the_snapshot(self):
        self.usual()
        reported = self.replay("--no-snapshot", "--from", str(START + 11))
        self.assertEqual(reported["commands"], 1)

    def test_another_data_set_needs_leave_to_flush(self):
        one = command("SET", "a", "1")
        self.capture.begin(snapshot([Key(b"one", STRING, b"1")]), one)
        self.capture.begin(snapshot([Key(b"two", STRING, b"2")]), command("SET", "b", "2"),
                           ident="c", offset=5000, at=START + 100)
        reported = self.replay("--verify")  # the last snapshot, and on
        self.assertEqual(self.keys(), [b"b", b"two"])
        reported = self.replay("--verify", "--flush", "--from-offset", "1:1000")
        self.assertEqual(reported["snapshots"], 2)
        self.assertEqual(self.keys(), [b"b", b"two"])
        reported = self.replay("--replace", "--from-offset", "1:1000", status=2)
        self.assertIn("chapter 2", reported["error"]["text"])
        self.replay("--verify", "--flush", "--until-offset", "1:1000")
        self.assertEqual(self.keys(), [b"one"])


class Arguments(CaptureTest):
    def test_a_snapshot_is_not_a_capture(self):
        path = os.path.join(FIXTURES, "redis-7.0.15", "tiny.rdb")
        done = subprocess.run([REDOUBT, "replay", path, "redis://127.0.0.1:1"],
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"tiny.rdb: this is a file, not the folder of a capture", done.stderr)
        self.assertIn(b"hint: to load a snapshot or a log: redoubt convert --to resp FILE | "
                      b"redis-cli --pipe", done.stderr)


class Room(Real):
    def test_a_server_with_data_is_refused(self):
        self.usual()
        self.server.command("SELECT", 5)
        self.server.command("SET", "mine", "1")
        self.replay(status=2)
        self.assertIn("--flush", self.err)
        self.assertEqual(self.keys(), [])
        self.replay("--flush")
        self.assertEqual(self.keys(5), [])

    def test_replace(self):
        self.usual()
        self.server.command("SET", "old", "other")
        self.server.command("SET", "mine", "1")
        reported = self.replay("--replace")
        self.assertEqual(reported["errors"], 0)
        self.assertEqual(self.get("old"), b"0")
        self.assertEqual(self.get("mine"), b"1")


class Errors(Real):
    def test_they_are_counted_and_the_first_are_reported_with_their_places(self):
        commands = [command("SET", "a", "x")] + [command("INCR", "a")] * 30
        self.capture.begin(snapshot([]), b"".join(commands))
        reported = self.replay(status=8)
        self.assertEqual(reported["errors"], 30)
        self.assertEqual(len(reported["first_errors"]), 10)
        first = reported["first_errors"][0]
        self.assertEqual((first["chapter"], first["offset"], first["command"]),
                         (1, BASE + len(commands[0]), "INCR"))
        self.assertIn("not an integer", first["error"])
        out = self.run_replay(self.server.port, "--speed", "max", "--flush", status=8)
        self.assertIn(f"  INCR at 1:{BASE + len(commands[0])}: ERR value is not", out)

    def test_inside_of_transactions_too(self):
        commands = [command("SET", "a", "x"), command("MULTI"), command("INCR", "a"),
                    command("SET", "b", "1"), command("EXEC")]
        self.capture.begin(snapshot([]), b"".join(commands))
        reported = self.replay(status=8)
        self.assertEqual(reported["errors"], 1)
        self.assertEqual(reported["first_errors"][0]["command"], "EXEC")
        self.assertEqual(self.get("b"), b"1")

    def test_of_the_snapshot_with_the_key(self):
        self.usual()
        self.server.command("ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@all", "-restore")
        run = subprocess.run([REDOUBT, "replay", "--speed", "max", self.capture.path,
                              f"redis://poor:pw@127.0.0.1:{self.server.port}"],
                             capture_output=True, check=False)
        self.assertEqual(run.returncode, 8)
        self.assertIn('  RESTORE "old" of the snapshot: NOPERM', run.stdout.decode())
        self.run_replay(self.server.port, "--speed", "max", "--flush", "--commands", "--verify")

    def test_no_server_listens(self):
        self.usual()
        self.reported(1, status=6)


class Expiry(Real):
    def ttl(self, key):
        return self.server.command("PTTL", key)

    def stream(self, at_ms):
        return b"".join([
            command("SELECT", 0), command("SET", "a", "1", "PXAT", at_ms),
            command("SET", "b", "1"), command("PEXPIREAT", "b", at_ms),
            command("SET", "c", "1", "exat", at_ms // 1000), command("SET", "d", "1"),
            command("GETEX", "d", "PXAT", at_ms),
            command("SET", "pxat", "PXAT"), command("SET", "g", "1"),
            command("EXPIREAT", "g", at_ms // 1000)])

    def test_relative_times_to_live_count_from_now(self):
        at_ms = (START + 60) * 1000
        self.capture.begin(snapshot([Key(b"s", STRING, b"1", expire_ms=at_ms)]),
                           self.stream(at_ms), step_us=0)
        reported = self.replay("--verify")
        self.assertTrue(reported["verify"]["same"])
        self.assertEqual(reported["errors"], 0)
        for key in "abcdgs":
            self.assertGreater(self.ttl(key), 30000, key)
            self.assertLessEqual(self.ttl(key), 61000, key)
        self.assertEqual(self.ttl("pxat"), -1)

    def test_times_to_live_that_were_recorded_as_such_count_from_now(self):
        self.capture.begin(snapshot([]), command("SET", "a", "1", "PX", "60000") +
                           command("PEXPIRE", "a", "50000"))
        for expiry in ("relative", "recorded"):
            self.replay("--flush", "--expiry", expiry)
            self.assertGreater(self.ttl("a"), 30000)

    def test_recorded_times_are_those_of_the_capture(self):
        later = 4102444800000
        self.capture.begin(snapshot([Key(b"s", STRING, b"1", expire_ms=later),
                                     Key(b"gone", STRING, b"1", expire_ms=START * 1000 + 5000)]),
                           self.stream(later), step_us=0)
        reported = self.replay("--verify", "--expiry", "recorded")
        self.assertTrue(reported["verify"]["same"], reported)
        for key in "abcdgs":
            self.assertEqual(self.server.command("PEXPIRETIME", key), later)
        self.assertEqual(self.get("gone"), None)


class Speed(Real):
    def timed(self, *args):
        began = time.monotonic()
        reported = self.reported(self.server.port, "--flush", *args)
        self.assertEqual(reported["errors"], 0)
        return time.monotonic() - began, reported

    def test_commands_come_when_they_came(self):
        self.capture.begin(snapshot([]), b"".join(command("SET", f"k{i}", i) for i in range(9)),
                           step_us=250000)
        took, reported = self.timed()
        self.assertGreaterEqual(took, 2.0)
        self.assertEqual(reported["recorded_ms"], 2000)
        self.assertGreaterEqual(reported["elapsed_ms"], 2000)
        took, _ = self.timed("--speed", "2")
        self.assertGreaterEqual(took, 1.0)

    def test_the_highest_speed_does_not_wait(self):
        self.capture.begin(snapshot([]), b"".join(command("SET", f"k{i}", i) for i in range(9)),
                           step_us=100000000)
        _, reported = self.timed("--speed", "max")
        self.assertEqual(reported["recorded_ms"], 800000)
        self.assertLess(reported["elapsed_ms"], 400000)

    def test_there_is_no_wait_before_the_starting_point(self):
        self.capture.begin(snapshot([]), b"".join(command("SET", f"k{i}", i) for i in range(9)),
                           step_us=100000000)
        _, reported = self.timed("--from", str(START + 800), "--verify")
        self.assertEqual(reported["caught_up"], 8)
        self.assertEqual(reported["recorded_ms"], 0)
        self.assertTrue(reported["verify"]["same"])


class Dry(ReplayTest):
    def test_nothing_is_sent_and_no_server_is_needed(self):
        stream = [command("SET", "a", "1"), command("MULTI"), command("SET", "b", "1"),
                  command("EXEC"), command("PING")]
        self.capture.begin(snapshot([Key(b"k", STRING, b"v")]), b"".join(stream))
        reported = self.reported(None, "--dry-run")
        self.assertTrue(reported["dry_run"])
        self.assertEqual((reported["keys"], reported["commands"], reported["transactions"]),
                         (1, 4, 1))
        self.assertEqual(reported["recorded_ms"], 3000)
        with FakeServer(lambda args: b"+OK\r\n") as server:
            self.assertIn("nothing was sent", self.run_replay(server.port, "--dry-run"))
            self.assertEqual(server.seen, [])

    def test_places_after_the_end_are_mistakes(self):
        self.capture.begin(snapshot([]), command("SET", "a", "1"))
        for args in (("--no-snapshot", "--from", str(START + 99)), ("--from", str(START + 99)),
                     ("--until-offset", "1:99999999"), ("--until", str(START + 99))):
            self.run_replay(None, "--dry-run", *args, status=2)
            self.assertIn("the capture ends", self.err)

    def test_what_an_older_version_did_not_record_is_not_known(self):
        stream = command("SET", "a", "1") + command("SET", "a", "2")
        self.capture.begin(snapshot([]), stream, run=("1",))
        self.run_replay(None, "--dry-run", "--until", str(START), status=0)
        self.assertIn("did not record when it was interrupted", self.err)
        self.run_replay(None, "--dry-run", status=0)
        self.assertNotIn("interrupted", self.err)

    def test_what_makes_no_sense(self):
        self.capture.begin(None, command("SET", "a", "1"))
        self.run_replay(None, status=2)
        self.run_replay(1, "--speed", "fast", status=2)
        self.run_replay(1, "--speed", "0", status=2)
        self.run_replay(1, "--verify", "--no-snapshot", status=2)
        self.run_replay(1, status=2)
        self.assertIn("--no-snapshot", self.err)


class Played(ReplayTest):
    """An old server: what it is sent."""

    def send(self, version, keys, *args, status=0):
        data = keys if isinstance(keys, bytes) else snapshot(keys, version=12)
        shutil.rmtree(self.capture.path, ignore_errors=True)
        self.capture.begin(data, command("SET", "z", "1"))

        def answer(words):
            if words[0] == b"INFO":
                return bulk(b"# Server\r\nredis_version:" + version + b"\r\n")
            return b"+OK\r\n"
        with FakeServer(answer) as server:
            self.reported(server.port, *args, status=status)
            return server.seen

    def test_nothing_is_sent_if_the_server_cannot_hold_a_key(self):
        with open(os.path.join(FIXTURES, "redis-8.0.6", "vectorset.rdb"), "rb") as f:
            data = f.read()
        for version, status in ((b"7.4.1", 4), (b"7.2.4\r\nvalkey_version:9.1.2", 4),
                                (b"8.0.6", 0), (b"8.6.3", 0)):
            seen = self.send(version, data, "--flush", status=status)
            words = [w[0] for w in seen]
            self.assertEqual(b"RESTORE" in words, status == 0, version)
            self.assertEqual(b"FLUSHALL" in words, status == 0, version)

    def test_payloads_have_the_version_of_the_server(self):
        for version, footer in ((b"5.0.14", 9), (b"6.2.1", 9), (b"7.0.15", 10), (b"7.2.0", 11),
                                (b"4.0.1", 8), (b"7.2.4\r\nvalkey_version:8.0.1", 11),
                                (b"7.2.4\r\nvalkey_version:9.0.0", 80),
                                (b"8.6.3", 13), (b"8.10.0", 15),
                                (b"7.2.4\r\nvalkey_version:10.1.0", 81)):
            keys = [Key(b"l", LIST, [b"a", b"b"])]
            shutil.rmtree(self.capture.path, ignore_errors=True)
            [restore] = [w for w in self.send(version, keys) if w[0] == b"RESTORE"]
            self.assertEqual(restore[1], b"l")
            self.assertEqual(int.from_bytes(restore[3][-10:-8], "little"), footer)

    def test_without_restore(self):
        seen = self.send(b"7.0.15", [Key(b"l", LIST, [b"a", b"b"])], "--commands")
        self.assertIn([b"RPUSH", b"l", b"a", b"b"], seen)
        self.assertEqual(seen[-1], [b"SET", b"z", b"1"])
        self.assertEqual(seen[-2], [b"SELECT", b"0"])

    def test_entries_of_producers_are_sent_as_clients_can(self):
        # The name of the entry "a" "c" is the one that Redis 8.6.3 gave it.
        name = bytes.fromhex("893fd0cf5414759ee1ddbfcd0814bd69")
        stream = (("XADD", "x", "IDMP", "p", "i", "1-1", "a", "b"),
                  ("xadd", "x", "NOMKSTREAM", "KEEPREF", "idmpauto", "p", "MAXLEN", "~", "5",
                   "LIMIT", "9", "2-1", "a", "c"),
                  ("XADD", "x", "MINID", "=", "0-1", "IDMP", "IDMP", "MAXLEN", "3-1", "IDMP", "p"),
                  ("XADD", "x", "IDMP", "p", "i", "*", "a", "b"),
                  ("XADD", "x", "MAXLEN", "=", "4", "IDMPAUTO", "p", "*", "a", "b"),
                  ("XADD", "x", "4-1", "IDMP", "p", "i", "5-1"))
        self.capture.begin(snapshot([]), b"".join(command(*words) for words in stream))

        def answer(words):
            return bulk(b"redis_version:8.6.3") if words[0] == b"INFO" else b"+OK\r\n"
        with FakeServer(answer) as server:
            self.reported(server.port)
            seen = [w for w in server.seen if w[0].upper() in (b"XADD", b"XIDMPRECORD")]
        self.assertEqual(seen, [
            [b"XADD", b"x", b"1-1", b"a", b"b"],
            [b"XIDMPRECORD", b"x", b"p", b"i", b"1-1"],
            [b"xadd", b"x", b"NOMKSTREAM", b"KEEPREF", b"MAXLEN", b"~", b"5", b"LIMIT", b"9",
             b"2-1", b"a", b"c"],
            [b"XIDMPRECORD", b"x", b"p", name, b"2-1"],
            [b"XADD", b"x", b"MINID", b"=", b"0-1", b"3-1", b"IDMP", b"p"],
            [b"XIDMPRECORD", b"x", b"IDMP", b"MAXLEN", b"3-1"],
            [b"XADD", b"x", b"4-1", b"IDMP", b"p", b"i", b"5-1"]])

    def test_a_connection_that_breaks_is_reported_with_the_place(self):
        self.capture.begin(snapshot([]), command("SET", "a", "1") * 100, step_us=0)
        count = []

        def answer(words):
            if words[0] != b"SET":
                return bulk(b"redis_version:7.0.15") if words[0] == b"INFO" else b"+OK\r\n"
            count.append(words)
            return b"+OK\r\n" if len(count) < 50 else (b"", None)
        with FakeServer(answer) as server:
            reported = self.reported(server.port, "--window", "4", status=6)
        self.assertIn("closed", reported["error"]["text"])
        self.assertIn("command after 1:", json.dumps(reported["error"]))


if __name__ == "__main__":
    unittest.main()
