"""`redoubt history` and `redoubt blame`: of a capture of a real server, of logs, with and without
indexes.

REDOUBT names the program, REDOUBT_MAKE_CAPTURE the one that writes captures.
"""

import json
import os
import subprocess
import sys
import time
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
from captures import START, Capture, CaptureTest, command  # noqa: E402
from rdb_text import STRING, Key, snapshot  # noqa: E402

REDOUBT = os.environ["REDOUBT"]


class Recorded(CaptureTest):
    def setUp(self):
        super().setUp()
        os.environ["XDG_CACHE_HOME"] = os.path.join(self.folder, "cache")
        self.addCleanup(os.environ.pop, "XDG_CACHE_HOME")

    def lines(self, tool, *args, expect=0):
        out, _ = self.run_tool(tool, *args, "--json", expect=expect)
        return [json.loads(line) for line in out.splitlines()]

    def text(self, tool, *args, expect=0):
        return self.run_tool(tool, *args, expect=expect)[0].decode()

    def put(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as f:
            f.write(data)
        return os.path.join(self.folder, name)

    def log(self, *commands):
        return self.put("log.aof", b"".join(command(*c.split()) for c in commands))

    def events(self, key, *args, expect=0):
        return [v["event"] for v in self.lines("history", key, *args, expect=expect)]


class History(Recorded):
    def test_versions_of_a_capture(self):
        stream = [command("SELECT", 0), command("HSET", "k", "a", "1", "b", "2"),
                  command("SET", "other", "x"), command("HSET", "k", "a", "3"),
                  command("PEXPIREAT", "k", (START + 5) * 1000), command("PING"),
                  command("DEL", "k")]
        path = self.capture.begin(snapshot([]), b"".join(stream))
        out = self.text("history", "k", "--in", path, "--patch")
        self.assertEqual(out, """\
2023-11-14T22:13:21Z 1:1023 [0] "HSET" "k" "a" "1" "b" "2"
    created: hash of 2 fields
    + "a" "1"
    + "b" "2"
2023-11-14T22:13:23Z 1:1103 [0] "HSET" "k" "a" "3"
    changed: hash of 2 fields, 1 changed
    - "a" "1"
    + "a" "3"
2023-11-14T22:13:24Z 1:1138 [0] "PEXPIREAT" "k" "1700000005000"
    changed: hash of 2 fields, expires 2023-11-14T22:13:25Z
2023-11-14T22:13:26Z 1:1198 [0] "DEL" "k"
    removed because it had expired at 2023-11-14T22:13:25Z
    - "a" "3"
    - "b" "2"
""")

    def test_json_has_what_the_text_has(self):
        log = self.log("SELECT 3", "RPUSH k a b", "LPOP k", "DEL k")
        versions = self.lines("history", "k", "--in", log, "--patch", "--values")
        self.assertEqual([v["event"] for v in versions], ["created", "changed", "removed"])
        self.assertEqual(versions[1]["commands"], [["LPOP", "k"]])
        self.assertEqual(versions[1]["changes"], [{"op": "-", "index": 0, "value": "a"}])
        self.assertEqual(versions[1]["value"], [{"index": 0, "value": "b"}])
        self.assertEqual((versions[1]["db"], versions[1]["file"], versions[1]["offset"],
                          versions[1]["type"], versions[1]["length"]),
                         (3, "log.aof", 59, "list", 1))
        self.assertNotIn("time", versions[0])
        self.assertNotIn("type", versions[2])

    def test_a_transaction_is_one_version(self):
        log = self.log("MULTI", "SADD k a", "SADD k b", "EXEC", "MULTI", "SADD k c", "DISCARD")
        versions = self.lines("history", "k", "--in", log)
        self.assertEqual(len(versions), 1)
        self.assertEqual(versions[0]["commands"], [["SADD", "k", "a"], ["SADD", "k", "b"]])
        self.assertEqual((versions[0]["multi"], versions[0]["added"]), (0, 2))

    def test_a_transaction_without_its_end_did_not_run(self):
        log = self.log("SADD k a", "MULTI", "SADD k b")
        self.assertEqual(self.events("k", "--in", log), ["created"])

    def test_renames_are_followed(self):
        log = self.log("SET a 1", "RENAME a k", "SWAPDB 0 1", "SELECT 1", "MOVE k 2", "SELECT 2",
                       "RENAME k b")
        versions = self.lines("history", "k", "--in", log)
        self.assertEqual([(v["db"], v["event"]) for v in versions],
                         [(0, "moved_here"), (1, "moved_here"), (1, "moved_away"),
                          (2, "moved_here"), (2, "moved_away")])
        self.assertEqual(versions[0]["from_key"], "a")
        self.assertEqual(versions[4]["to_key"], "b")
        self.assertEqual(len(self.lines("history", "k", "--in", log, "--db", "1")), 2)

    def test_expiry_of_fields(self):
        log = self.log("HSET k a 1 b 2", "HPEXPIREAT k 4102444800000 FIELDS 1 a", "HSET k b 3",
                       "HPERSIST k FIELDS 1 a")
        versions = self.lines("history", "k", "--in", log, "--patch")
        self.assertEqual([v["expiries_changed"] for v in versions], [0, 1, 0, 1])
        self.assertEqual(versions[1]["changes"],
                         [{"op": "+", "field": "a", "field_expires_ms": 4102444800000}])
        self.assertIn('    + "a" expires 2100-01-01T00:00:00Z\n',
                      self.text("history", "k", "--in", log, "--patch"))
        parts = self.lines("blame", "k", "--in", self.log(
            "HSET k a 1", "HPEXPIREAT k 4102444800000 FIELDS 1 a"))
        self.assertEqual([p["command"] for p in parts], ["HSET", "HPEXPIREAT"])

    def test_flushall_removes(self):
        log = self.log("SET k 1", "SET other 2", "FLUSHALL", "SET k 2")
        self.assertEqual(self.events("k", "--in", log), ["created", "removed", "created"])

    def test_unknown_commands_harm_only_their_keys(self):
        log = self.log("SET k 1", "SET l 1", "JSON.SET k $ 2", "APPEND l 2", "SET k 3")
        self.assertEqual(self.events("k", "--in", log), ["created", "unknown", "created"])
        self.assertEqual(self.events("l", "--in", log), ["created", "changed"])
        log = self.log("SET k 1", "JSON.SET k $ 2")
        self.assertEqual(self.events("k", "--in", log, expect=8), ["created", "unknown"])

    def test_a_snapshot_is_the_first_version(self):
        path = self.capture.begin(snapshot([Key(b"k", STRING, b"v")]),
                                  command("SELECT", 0) + command("APPEND", "k", "w"))
        versions = self.lines("history", "k", "--in", path, "--values")
        self.assertEqual([v["event"] for v in versions], ["snapshot", "changed"])
        self.assertEqual(versions[1]["value"][0]["value"], "v")
        self.assertNotIn("offset", versions[0])

    def test_commands_after_a_preamble_are_read_whatever_they_end_with(self):
        log = self.put("log.aof", snapshot([Key(b"k", STRING, b"v")]) +
                       command("SET", "k", b"\xff123456"))
        self.assertEqual(self.events("k", "--in", log), ["snapshot", "changed"])

    def test_a_second_full_sync_shows_only_what_differs(self):
        path = self.capture.begin(snapshot([Key(b"k", STRING, b"v"), Key(b"l", STRING, b"v")]),
                                  command("SELECT", 0), ident="a")
        self.capture.begin(snapshot([Key(b"k", STRING, b"v"), Key(b"l", STRING, b"w")]),
                           command("SELECT", 0), ident="b", offset=5000, at=START + 100)
        self.assertEqual(self.events("k", "--in", path), ["snapshot"])
        self.assertEqual(self.events("l", "--in", path), ["snapshot", "snapshot"])

    def test_without_the_beginning_a_value_is_unknown(self):
        path = self.capture.begin(None, command("SELECT", 0) + command("APPEND", "k", "w") +
                                  command("SET", "k", "x") + command("APPEND", "k", "y"))
        versions = self.lines("history", "k", "--in", path, "--values")
        self.assertEqual([v["event"] for v in versions], ["unknown", "created", "changed"])

    def test_since_until_and_last(self):
        stream = b"".join(command("SET", "k", i) for i in range(10))
        path = self.capture.begin(snapshot([]), stream)
        self.assertEqual(len(self.lines("history", "k", "--in", path)), 10)
        some = self.lines("history", "k", "--in", path, "--since", str(START + 3), "--until",
                          str(START + 6))
        self.assertEqual([v["commands"][0][2] for v in some], ["3", "4", "5", "6"])
        last = self.lines("history", "k", "--in", path, "-n", "2")
        self.assertEqual([v["commands"][0][2] for v in last], ["8", "9"])

    def test_several_keys(self):
        log = self.log("SET cart:1 a", "SET user:1 b", "SET cart:2 c")
        found = self.lines("history", "--prefix", "cart:", "--in", log)
        self.assertEqual([v["key"] for v in found], ["cart:1", "cart:2"])
        found = self.lines("history", "--match", "*:1", "--in", log)
        self.assertEqual([v["key"] for v in found], ["cart:1", "user:1"])
        self.assertIn('    "cart:2" created: string of 1 byte\n',
                      self.text("history", "cart:1", "cart:2", "--in", log))

    def test_no_control_characters(self):
        key = b"\x1b[31m\nk"
        log = self.put("log.aof", command("SET", key, b"\x1b]0;x\x07"))
        out = subprocess.run([REDOUBT, "history", key, "--in", log, "--patch", "--values"],
                             capture_output=True, check=True).stdout
        self.assertNotIn(b"\x1b", out)
        self.assertIn(b'"\\x1b[31m\\nk"', out)

    def test_it_finds_the_capture_in_the_current_folder(self):
        self.capture.begin(snapshot([]), command("SET", "k", "1"))
        out = subprocess.run([REDOUBT, "history", "k"], cwd=self.folder, capture_output=True,
                             check=True).stdout
        self.assertIn(b"created: string of 1 byte", out)

    def test_a_folder_with_a_snapshot_only_has_no_history(self):
        self.put("dump.rdb", snapshot([]))
        done = subprocess.run([REDOUBT, "history", "k"], cwd=self.folder, capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"there is no capture and no log in the current folder: use --in",
                      done.stderr)


class Indexes(Recorded):
    """A capture of several segments."""

    def setUp(self):
        super().setUp()
        stream = b"".join(command("HSET", f"k{i % 50}", "f", i) for i in range(3000))
        self.path = self.capture.begin(snapshot([]), command("SELECT", 0) + stream, segment=20000)
        self.want = self.text("history", "k7", "--in", self.path, "--no-index")

    def indexes(self):
        return sorted(n for n in os.listdir(self.path) if n.endswith(".keys"))

    def test_results_are_the_same_with_indexes(self):
        self.assertEqual(self.indexes(), [])
        for _ in range(2):
            self.assertEqual(self.text("history", "k7", "--in", self.path), self.want)
        self.assertGreater(len(self.indexes()), 3)
        self.assertEqual(self.want.count("\n"), 120)

    def test_a_home_that_does_not_exist_is_not_created(self):
        del os.environ["XDG_CACHE_HOME"]
        self.addCleanup(os.environ.__setitem__, "XDG_CACHE_HOME", "")  # taken back by setUp()
        home = os.path.join(self.folder, "missing")
        with unittest.mock.patch.dict(os.environ, {"HOME": home}):
            self.text("history", "k", "--in", self.log("SET k v"))
        self.assertFalse(os.path.exists(home))

    def test_damaged_indexes_are_made_again(self):
        self.text("history", "k7", "--in", self.path)
        names = self.indexes()
        for i, name in enumerate(names):
            path = os.path.join(self.path, name)
            with open(path, "rb") as f:
                data = bytearray(f.read())
            with open(os.path.join(self.path, names[(i + 1) % len(names)]), "rb") as f:
                other = f.read()
            flipped = data[:170] + bytes([data[170] ^ 4]) + data[171:]
            for damaged in (data[:i * 7], data[:-1], flipped, other, b""):
                with open(path, "wb") as f:
                    f.write(damaged)
                self.assertEqual(self.text("history", "k7", "--in", self.path), self.want, name)

    def test_without_a_place_for_them(self):
        self.assertEqual(self.text("history", "k7", "--in", self.path, "--index-dir",
                                   "/proc/nowhere"), self.want)

    def test_in_another_folder(self):
        folder = os.path.join(self.folder, "indexes")
        self.assertEqual(self.text("history", "k7", "--in", self.path, "--index-dir", folder),
                         self.want)
        self.assertEqual(self.indexes(), [])
        self.assertGreater(len(os.listdir(folder)), 3)

    def test_captures_with_the_same_names_in_one_folder(self):
        folder = os.path.join(self.folder, "indexes")
        other = Capture(os.path.join(self.folder, "other"))
        stream = command("SELECT", 0) + b"".join(command("SET", "k7", i) for i in range(3000))
        other.begin(snapshot([]), stream, segment=20000)
        want = self.text("history", "k7", "--in", other.path, "--no-index")
        self.text("history", "k7", "--in", self.path, "--index-dir", folder)
        self.text("history", "k7", "--in", other.path, "--index-dir", folder)
        before = {n: os.stat(os.path.join(folder, n)).st_ino for n in os.listdir(folder)}
        for path, text in ((self.path, self.want), (other.path, want)):
            self.assertEqual(self.text("history", "k7", "--in", path, "--index-dir", folder), text)
        after = {n: os.stat(os.path.join(folder, n)).st_ino for n in os.listdir(folder)}
        self.assertEqual(before, after)

    def test_what_nobody_uses_does_not_stay(self):
        folder = os.path.join(self.folder, "indexes")
        os.mkdir(folder)
        names = ["0" * 32 + "-1.keys", "1" * 32 + "-2.keys", "mine.keys", "1" * 32 + "-2.txt"]
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "wb"):
                pass
            if not name.startswith("0"):
                os.utime(path, (START, START))
        self.text("history", "k7", "--in", self.path, "--index-dir", folder)
        self.assertEqual(sorted(set(os.listdir(folder)) & set(names)),
                         sorted(set(names) - {"1" * 32 + "-2.keys"}))

    def test_other_tools_take_no_notice(self):
        out = os.path.join(self.folder, "out")
        lines = [["check-aof", self.path], ["check-aof", "--json", self.path],
                 ["show", self.path], ["doctor", self.path], ["stat", self.path],
                 ["convert", "--to", "rdb", self.path, "-o", out, "--force"],
                 ["diff", self.path, self.path]]

        def answers():
            done = [subprocess.run([REDOUBT, *line], capture_output=True, check=False)
                    for line in lines]
            return [(line, d.returncode, d.stdout, d.stderr) for line, d in zip(lines, done)]

        before = answers()
        self.text("history", "k7", "--in", self.path)
        self.assertGreater(len(self.indexes()), 3)
        self.assertEqual(answers(), before)

    def test_they_go_with_their_files(self):
        self.text("history", "k7", "--in", self.path)
        names = self.indexes()
        first = sorted(n for n in os.listdir(self.path) if n.endswith(".seg"))[0]
        os.unlink(os.path.join(self.path, first))
        self.capture.go_on(command("SET", "k7", "x"))
        self.assertEqual(self.indexes(), [n for n in names if not n.startswith(first[:8])])

    def growing(self, n, *more):
        stream = b"".join(command("HSET", f"k{i % 50}", "f", f"{i:0200}") for i in range(n))
        return command("SELECT", 0) + stream + b"".join(more)

    def test_transactions_that_are_longer_than_spans_and_segments(self):
        """What is said of a transaction does not depend on where reading begins."""
        def filler(n):
            return [command("SET", f"f{i}", "x" * 200) for i in range(n)]

        stream = [command("SELECT", 0), *filler(10), command("MULTI"), *filler(1000),
                  command("SET", "k7", 1), *filler(1000), command("SET", "k8", 2),
                  command("EXEC"), *filler(1000)]
        begin = 1000 + sum(len(c) for c in stream[:11])
        for segment in (600000, 100000):
            path = os.path.join(self.folder, str(segment))
            Capture(path).begin(snapshot([]), b"".join(stream), segment=segment)
            log = self.put("log.aof", b"".join(stream))
            for key in ("k7", "k8"):
                for args in ((), ("--no-index",)):
                    version, = self.lines("history", key, "--in", path, *args)
                    self.assertEqual(version["multi"], begin, (segment, key, args))
                version, = self.lines("history", key, "--in", log)
                self.assertEqual(version["multi"], begin - 1000)
        self.assertGreater(len([n for n in os.listdir(path) if n.endswith(".seg.keys")]), 2)

    def test_a_segment_that_is_being_written(self):
        """Its index is about its beginning, and is used until enough has come after it."""
        small = Capture(os.path.join(self.folder, "small"))
        small.begin(snapshot([]), self.growing(500))
        self.text("history", "k7", "--in", small.path)
        self.assertEqual([n for n in os.listdir(small.path) if n.endswith(".seg.keys")], [])

        big = Capture(os.path.join(self.folder, "big"))
        big.begin(snapshot([]), self.growing(22000))
        segment, = (n for n in os.listdir(big.path) if n.endswith(".seg"))
        index = os.path.join(big.path, segment + ".keys")
        seen = set()
        for more in (self.growing(100), self.growing(100, command("MULTI"), command("DEL", "k7")),
                     command("SET", "k7", "x") + command("EXEC"), self.growing(22000)):
            for _ in range(2):
                self.assertEqual(self.text("history", "k7", "--in", big.path),
                                 self.text("history", "k7", "--in", big.path, "--no-index"))
            seen.add(os.stat(index).st_ino)
            big.go_on(more)
        self.assertEqual(len(seen), 1)
        self.text("history", "k7", "--in", big.path)
        self.assertNotIn(os.stat(index).st_ino, seen)

    def test_a_segment_that_was_cut_and_written_anew(self):
        path = os.path.join(self.folder, "big")
        big = Capture(path)
        big.begin(snapshot([]), self.growing(22000))
        segment, = (n for n in os.listdir(path) if n.endswith(".seg"))
        self.text("history", "k7", "--in", path)
        with open(os.path.join(path, segment), "r+b") as f:
            f.truncate(os.path.getsize(f.name) // 2)
        other = [command("SET", f"k{i % 50}", f"{i:0300}") for i in range(11000)]
        big.go_on(b"".join(other))
        self.assertEqual(self.text("history", "k7", "--in", path),
                         self.text("history", "k7", "--in", path, "--no-index"))

    def test_only_the_owner_reads_them(self):
        self.text("history", "k7", "--in", self.path)
        for name in self.indexes():
            self.assertEqual(os.stat(os.path.join(self.path, name)).st_mode & 0o777, 0o600)


class Blame(Recorded):
    def writers(self, key, *args):
        return {(p.get("field") or p.get("member") or p.get("index", p.get("at"))): p["command"]
                for p in self.lines("blame", key, *args) if "command" in p}

    def test_text(self):
        stream = [command("SELECT", 0), command("HSET", "k", "a", "1", "b", "2"),
                  command("HINCRBY", "k", "a", "1"), command("PEXPIREAT", "k", 99999999999999)]
        path = self.capture.begin(snapshot([]), b"".join(stream))
        self.assertEqual(self.text("blame", "k", "--in", path), """\
"k" in database 0: hash of 2 fields
2023-11-14T22:13:22Z 1:1072 HINCRBY "a" "2"
2023-11-14T22:13:21Z 1:1023 HSET "b" "2"
2023-11-14T22:13:23Z 1:1110 PEXPIREAT expires 5138-11-16T09:46:39.999Z
""")

    def test_what_the_snapshot_held(self):
        path = self.capture.begin(snapshot([Key(b"k", STRING, b"abc")]),
                                  command("SELECT", 0) + command("APPEND", "k", "d"))
        parts = self.lines("blame", "k", "--in", path)
        self.assertTrue(parts[0]["snapshot"])
        self.assertNotIn("command", parts[0])
        self.assertEqual((parts[1]["at"], parts[1]["value"], parts[1]["command"]),
                         (3, "d", "APPEND"))

    def test_until(self):
        path = self.capture.begin(snapshot([]), command("RPUSH", "k", "a") +
                                  command("RPUSH", "k", "b") + command("LPOP", "k"))
        self.assertEqual(self.writers("k", "--in", path), {0: "RPUSH"})
        parts = self.lines("blame", "k", "--in", path, "--until", str(START + 1))
        self.assertEqual([p["value"] for p in parts], ["a", "b"])


class RealServer(Recorded):
    def test_log_of_a_real_server(self):
        with redis_server.RedisServer({"appendonly": "yes", "appendfsync": "always"}) as server:
            server.command("HSET", "k", "a", "1")
            server.command("BGREWRITEAOF")
            while "aof_rewrite_in_progress:0" not in server.command("INFO").decode():
                time.sleep(0.05)
            server.command("HSET", "k", "b", "2")
            server.command("EVAL", "redis.call('HDEL', KEYS[1], 'a')", "1", "k")
            path = os.path.join(server.dir, "appendonlydir")
            versions = self.lines("history", "k", "--in", path)
            self.assertEqual([v["event"] for v in versions], ["snapshot", "changed", "changed"])
            self.assertEqual([p["field"] for p in self.lines("blame", "k", "--in", path)], ["b"])


if __name__ == "__main__":
    unittest.main()
