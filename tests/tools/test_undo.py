"""`redoubt undo`, on a real server whose stream is captured."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
from captures import CaptureTest, command  # noqa: E402

REDOUBT = os.environ["REDOUBT"]


class Undo(CaptureTest):
    def setUp(self):
        super().setUp()
        os.environ["XDG_CACHE_HOME"] = os.path.join(self.folder, "cache")
        self.addCleanup(os.environ.pop, "XDG_CACHE_HOME")
        self.server = redis_server.RedisServer({"repl-diskless-sync-delay": "0"}).__enter__()
        self.addCleanup(self.server.close)
        self.url = f"redis://127.0.0.1:{self.server.port}"
        self.path = os.path.join(self.folder, "capture")
        self.capturing = subprocess.Popen([REDOUBT, "capture", self.url, "-o", self.path, "-q"],
                                          stderr=subprocess.DEVNULL)
        self.addCleanup(self.capturing.wait)
        self.addCleanup(self.capturing.kill)
        while b"state=online" not in self.server.command("INFO", "replication"):
            time.sleep(0.02)

    def send(self, *lines):
        for line in lines:
            self.server.command(*line.split())

    def recorded(self):
        """Ends the capture when all that the server wrote is in it."""
        while True:
            info = self.server.command("INFO", "replication").decode()
            offset = info.split("master_repl_offset:")[1].split()[0]
            if f"offset={offset}," in info:
                break
            time.sleep(0.02)
        self.capturing.terminate()
        self.capturing.wait()

    def place(self, key, words):
        out = subprocess.run([REDOUBT, "history", key, "--in", self.path, "--json"], check=True,
                             capture_output=True).stdout
        for line in out.splitlines():
            version = json.loads(line)
            for one in version.get("commands", []):
                if words in " ".join(one):
                    return f"{version['chapter']}:{version['offset']}"
        raise AssertionError(f"no command {words} of {key}")

    def undo(self, *args, expect=0, to=None):
        """The lines of the plan."""
        done = subprocess.run(
            [REDOUBT, "undo", *args, "--in", self.path, "--to", to or self.url, "--json"],
            cwd=self.folder, capture_output=True, check=False)
        self.assertEqual(done.returncode, expect, done.stderr.decode())
        self.said = done.stderr.decode()
        return [json.loads(line) for line in done.stdout.splitlines()]

    def saved(self):
        return [n for n in os.listdir(self.folder) if n.startswith("undo-")]

    def test_takes_back_one_command_and_keeps_what_came_after(self):
        self.send("HSET k a 1 b 2", "HSET k a 9 c 3", "HSET k b 7 d 4")
        self.recorded()
        place = self.place("k", "HSET k a 9")
        plan = self.undo("--command", place, "--dry-run")
        self.assertEqual(plan[0]["commands"], [["HSET", "k", "a", "1"], ["HDEL", "k", "c"]])
        self.assertEqual(self.server.command("HGET", "k", "a"), b"9")
        self.assertEqual(self.saved(), [])
        self.undo("--command", place)
        self.assertEqual(self.server.command("HMGET", "k", "a", "b", "c", "d"),
                         [b"1", b"7", None, b"4"])
        self.assertEqual(os.stat(os.path.join(self.folder, self.saved()[0])).st_mode & 0o777, 0o600)

    def test_what_it_saved_takes_it_back(self):
        self.send("HSET h a 1", "SET s x", "RPUSH l a b", "XADD st 1-1 f v", "EXPIRE s 1000",
                  "FLUSHALL", "SET s y")
        self.recorded()
        before = self.server.command("DEBUG", "DIGEST") if redis_server.is_reference() else None
        self.undo("--command", self.place("h", "FLUSHALL"), "--theirs", "--save", "back.resp")
        self.assertEqual(self.server.command("LRANGE", "l", "0", "-1"), [b"a", b"b"])
        self.assertEqual(self.server.command("GET", "s"), b"x")
        self.assertGreater(self.server.command("TTL", "s"), 900)
        self.assertEqual(self.server.command("XLEN", "st"), 1)
        subprocess.run([redis_server.program("cli"), "-p", str(self.server.port), "--pipe"],
                       stdin=open(os.path.join(self.folder, "back.resp"), "rb"), check=True,
                       stdout=subprocess.DEVNULL)
        self.assertEqual(self.server.command("KEYS", "*"), [b"s"])
        self.assertEqual(self.server.command("GET", "s"), b"y")
        self.assertEqual(self.server.command("TTL", "s"), -1)
        if before is not None:
            self.assertEqual(self.server.command("DEBUG", "DIGEST"), before)

    def test_conflicts(self):
        self.send("HSET k a 1 b 1", "HSET k a 2 b 2", "HSET k a 3")
        self.recorded()
        place = self.place("k", "HSET k a 2")
        plan = self.undo("--command", place, expect=1)
        self.assertEqual(plan[0]["conflicts"],
                         [{"of": "element", "name": "a", "before": "1", "now": "3"}])
        self.assertEqual(self.server.command("HMGET", "k", "a", "b"), [b"3", b"2"])
        self.assertIn("nothing was changed", self.said)
        self.undo("--command", place, "--ours")
        self.assertEqual(self.server.command("HMGET", "k", "a", "b"), [b"3", b"1"])
        self.undo("--command", place, "--theirs", "--save", "other.resp")
        self.assertEqual(self.server.command("HMGET", "k", "a", "b"), [b"1", b"1"])

    def test_a_transaction_is_taken_back_as_a_whole(self):
        self.send("SET a 1", "SET b 1")
        self.server.command("MULTI")
        self.send("SET a 2", "SET b 2", "SET c 2")
        self.server.command("EXEC")
        self.recorded()
        self.undo("--command", self.place("b", "SET b 2"))
        self.assertEqual(self.server.command("MGET", "a", "b", "c"), [b"1", b"1", None])

    def test_a_range_of_time_and_a_prefix(self):
        self.send("SET cart:1 a", "SET cart:2 a", "SET user:1 a")
        time.sleep(1)
        begin = time.time()
        self.send("SET cart:1 b", "DEL cart:2", "SET user:1 b", "SET cart:3 b")
        end = time.time()
        time.sleep(1)
        self.send("SET cart:4 b")
        self.recorded()
        args = ["--from", str(int(begin * 1000) - 50), "--until", str(int(end * 1000) + 900)]
        self.undo(*args, "--prefix", "cart:")
        self.assertEqual(self.server.command("MGET", "cart:1", "cart:2", "cart:3", "cart:4",
                                             "user:1"), [b"a", b"a", None, b"b", b"b"])
        self.undo(*args, "user:1", "--save", "second.resp")
        self.assertEqual(self.server.command("GET", "user:1"), b"a")

    def test_into_a_file(self):
        self.send("SET k 1", "SET k 2")
        self.recorded()
        out = os.path.join(self.folder, "out.resp")
        self.undo("--command", self.place("k", "SET k 2"), to=out)
        self.assertIn(f"nothing was changed; the commands for 1 key are in {out}", self.said)
        with open(out, "rb") as f:
            self.assertEqual(f.read(), command("SELECT", 0) + command("DEL", "k") +
                             command("SET", "k", "1"))
        self.undo("--command", self.place("k", "SET k 2"), to=out, expect=2)

    def test_other_databases(self):
        self.server.command("SELECT", "3")
        self.send("SET k 1", "SET k 2")
        self.recorded()
        self.undo("--command", self.place("k", "SET k 2"))
        self.assertEqual(self.server.command("GET", "k"), b"1")

    def test_moves_between_keys(self):
        self.send("RPUSH a 1 2", "RPUSH b 3", "RPOPLPUSH a b", "RENAME b c")
        self.recorded()
        self.undo("--command", self.place("a", "RPOPLPUSH"), "--theirs")
        self.assertEqual(self.server.command("LRANGE", "a", "0", "-1"), [b"1", b"2"])
        self.undo("--command", self.place("c", "RENAME"), "--theirs", "--save", "second.resp")
        self.assertEqual(self.server.command("LRANGE", "b", "0", "-1"), [b"2", b"3"])
        self.assertEqual(self.server.command("EXISTS", "c"), 0)

    def test_unknown_keys_are_left_alone(self):
        log = os.path.join(self.folder, "log.aof")
        with open(log, "wb") as f:
            f.write(command("SET", "k", "1") + command("JSON.SET", "k", "$", "2") +
                    command("MSET", "k", "3", "l", "4"))
        self.server.command("MSET", "k", "3", "l", "4")
        self.path = log
        last = os.path.getsize(log) - len(command("MSET", "k", "3", "l", "4"))
        plan = self.undo("--command", f"log.aof:{last}", expect=8)
        self.assertEqual({p["key"]: p["unknown"] for p in plan}, {"k": True, "l": False})
        self.assertEqual(self.server.command("MGET", "k", "l"), [b"3", None])

    def test_a_refused_payload_changes_nothing(self):
        """RESTORE cannot be used: the stream stays."""
        self.send("XADD s 1-1 f v", "XTRIM s MAXLEN 0", "XADD s 2-1 f v")
        self.recorded()
        self.server.command("ACL", "SETUSER", "undo", "on", "nopass", "~*", "+@all", "-restore")
        to = self.url.replace("//", "//undo:x@")
        self.undo("--command", self.place("s", "XTRIM"), "--theirs", to=to, expect=8)
        self.assertEqual(self.server.command("XLEN", "s"), 1)
        self.assertIn("restore", self.said.lower())

    def test_a_server_without_pexpiretime(self):
        self.send("SET k 1", "SET k 2")
        self.recorded()
        self.server.command("ACL", "SETUSER", "old", "on", "nopass", "~*", "+@all", "-pexpiretime")
        self.undo("--command", self.place("k", "SET k 2"), to=self.url.replace("//", "//old:x@"))
        self.assertEqual(self.server.command("GET", "k"), b"1")

    def test_nothing_is_there(self):
        self.send("SET k 1")
        self.recorded()
        self.undo("--command", "1:999999", expect=2)
        self.undo("--from", "0", "--until", "1", expect=1)
        self.undo("--command", "x", expect=2)

    def test_writers_lose_nothing(self):
        """Counters are written all the time; fields of them are taken back meanwhile."""
        keys = [f"h{i}" for i in range(200)]
        for k in keys:
            self.send(f"HSET {k} name good n 0")
        self.server.command("MULTI")
        for k in keys:
            self.send(f"HSET {k} name bad")
        self.server.command("EXEC")
        self.recorded()
        place = self.place("h0", "HSET h0 name bad")
        counts = [dict.fromkeys(keys, 0) for _ in range(3)]
        stop = threading.Event()

        def write(mine):
            with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
                replies = connection.makefile("rb")
                while not stop.is_set():
                    for k in keys:
                        connection.sendall(command("HINCRBY", k, "n", 1))
                        self.assertTrue(replies.readline().startswith(b":"))
                        mine[k] += 1

        writers = [threading.Thread(target=write, args=(c,)) for c in counts]
        for w in writers:
            w.start()
        try:
            self.undo("--command", place)
        finally:
            stop.set()
            for w in writers:
                w.join()
        for k in keys:
            self.assertEqual(self.server.command("HMGET", k, "name", "n"),
                             [b"good", str(sum(c[k] for c in counts)).encode()])

    def test_a_flushall_of_more_keys_than_are_in_memory_at_a_time(self):
        self.server.command("EVAL", "for i=1,45000 do redis.call('SET','k'..i,'v'..i) end", "0")
        self.send("FLUSHALL", "SET k7 new")
        self.recorded()
        plan = self.undo("--command", self.place("k7", "FLUSHALL"), "--theirs")
        self.assertEqual(len(plan), 45000, "k7 is one of them")
        self.assertEqual(self.server.command("DBSIZE"), 45000)
        self.assertEqual(self.server.command("MGET", "k7", "k44999"), [b"v7", b"v44999"])


if __name__ == "__main__":
    unittest.main()
