"""Which client sent a command: `history` and `blame` with a recording of MONITOR.

REDOUBT names the program, REDOUBT_MAKE_CAPTURE the one that writes captures.
"""

import json
import os
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
from capture_case import eventually  # noqa: E402
from captures import START, CaptureTest, command  # noqa: E402
from rdb_text import STRING, Key, snapshot  # noqa: E402


def line(at, client, *words, db=0):
    return "%.6f [%d %s] %s\n" % (at, db, client, " ".join(f'"{w}"' for w in words))


class Client:
    """One connection, and its address as the server sees it."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]

    def send(self, *args):
        self.socket.sendall(command(*args))

    def command(self, *args):
        self.send(*args)
        return self.socket.recv(65536)

    def close(self):
        self.socket.close()


class WhoCase(CaptureTest):
    def setUp(self):
        super().setUp()
        os.environ["XDG_CACHE_HOME"] = os.path.join(self.folder, "cache")
        self.addCleanup(os.environ.pop, "XDG_CACHE_HOME")

    def put(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return path

    def versions(self, key, *args, expect=0):
        out, _ = self.run_tool("history", key, "--json", *args, expect=expect)
        return [json.loads(text) for text in out.splitlines()]

    def clients(self, key, *args):
        return [v["client"] for v in self.versions(key, *args) if "commands" in v]

    @staticmethod
    def read(path):
        with open(path, "rb") as f:
            return f.read()

    def text(self, *args):
        return self.run_tool(*args)[0].decode()


class Files(WhoCase):
    """Recordings of redis-cli monitor."""

    def recording(self, *lines):
        ends = [line(START - 9, "9.9.9.9:9", "ping"), line(START + 99, "9.9.9.9:9", "ping")]
        return self.put("monitor.txt", "OK\n" + ends[0] + "".join(lines) + ends[1])

    def test_text_and_json_name_the_client(self):
        path = self.capture.begin(snapshot([Key(b"k", STRING, b"v")]), command("SELECT", 0) +
                                  command("SET", "k", "1") + command("SET", "k", "2"))
        recording = self.recording(line(START + 1, "10.0.0.5:41234", "set", "k", "1"))
        args = ("k", "--in", path, "--monitor-file", recording)
        self.assertEqual(self.text("history", *args), """\
2023-11-14T22:13:20Z 00000001-1000.rdb [0] snapshot
    in the snapshot: string of 1 byte
2023-11-14T22:13:21Z 1:1023 [0] "SET" "k" "1"
    changed: string of 1 byte, by 10.0.0.5:41234
2023-11-14T22:13:22Z 1:1050 [0] "SET" "k" "2"
    changed: string of 1 byte, by unknown
""")
        self.assertEqual(self.clients(*args), ["10.0.0.5:41234", None])
        self.assertNotIn("client", self.versions(*args)[0])
        self.assertEqual(self.text("blame", *args, "--until", str(START + 1)), """\
"k" in database 0: string of 1 byte
2023-11-14T22:13:21Z 1:1023 SET at 0 "1", by 10.0.0.5:41234
""")
        out = self.text("blame", *args, "--json")
        self.assertIsNone(json.loads(out)["client"])

    def test_without_a_recording_nothing_is_said(self):
        path = self.capture.begin(snapshot([]), command("SET", "k", "1"))
        self.assertNotIn("by ", self.text("history", "k", "--in", path))
        self.assertNotIn("client", self.versions("k", "--in", path)[0])

    def test_a_log_with_timestamps(self):
        log = self.put("log.aof", b"#TS:%d\r\n" % START + command("SELECT", 0) +
                       command("SADD", "k", "a") + b"#TS:%d\r\n" % (START + 9) +
                       command("SADD", "k", "b"))
        recording = self.recording(line(START + 0.7, "a:1", "SADD", "k", "a"),
                                   line(START + 9.2, "b:2", "SADD", "k", "b"))
        self.assertEqual(self.clients("k", "--in", log, "--monitor-file", recording),
                         ["a:1", "b:2"])
        log = self.put("log.aof", command("SELECT", 0) + command("SADD", "k", "a"))
        self.assertEqual(self.clients("k", "--in", log, "--monitor-file", recording), [None])

    def test_a_key_that_expired_was_removed_by_the_server(self):
        path = self.capture.begin(snapshot([]), command("SET", "k", "1", "PXAT",
                                                        (START + 1) * 1000) + command("DEL", "k"))
        recording = self.recording(line(START, "a:1", "SET", "k", "1", "EX", "1"),
                                   line(START + 1, "b:2", "DEL", "k"))
        args = ("k", "--in", path, "--monitor-file", recording)
        self.assertEqual(self.clients(*args), ["a:1", None])
        self.assertIn("    removed because it had expired at 2023-11-14T22:13:21Z\n",
                      self.text("history", *args))

    def test_a_transaction_is_of_one_client(self):
        path = self.capture.begin(snapshot([]), b"".join(
            command(*c.split()) for c in ("SELECT 0", "MULTI", "SADD k a", "SADD k b", "EXEC",
                                          "SADD k c")), step_us=1000)
        recording = self.recording(*(line(START, client, *c.split()) for client, c in (
            ("b:2", "SADD k b"), ("a:1", "MULTI"), ("a:1", "SADD k a"), ("a:1", "SADD k b"),
            ("a:1", "EXEC"), ("b:2", "SADD k c"))))
        self.assertEqual(self.clients("k", "--in", path, "--monitor-file", recording),
                         ["a:1", "b:2"])

    def test_several_recordings_and_torn_ones(self):
        path = self.capture.begin(snapshot([]), command("SET", "k", "1") + command("SET", "k", "2"),
                                  step_us=60000000)
        one = self.put("one", line(START - 5, "x:1", "ping") +
                       line(START, "a:1", "SET", "k", "1") + line(START + 5, "x:1", "ping"))
        two = self.put("two", line(START + 50, "x:1", "ping") +
                       line(START + 60, "b:2", "SET", "k", "2") + line(START + 70, "x:1", "ping") +
                       line(START + 80, "x:1", "ping")[:-9])
        args = ("k", "--in", path, "--monitor-file", one)
        self.assertEqual(self.clients(*args), ["a:1", None])
        self.assertEqual(self.clients(*args, "--monitor-file", two), ["a:1", "b:2"])

    def test_a_file_of_something_else(self):
        path = self.capture.begin(snapshot([]), command("SET", "k", "1"))
        other = self.put("other", "OK\nhello\n")
        _, err = self.run_tool("history", "k", "--in", path, "--monitor-file", other, expect=2)
        self.assertIn("no line of MONITOR", err)
        self.run_tool("history", "k", "--in", path, "--monitor-file", "/nowhere", expect=3)

    def test_control_characters_of_an_address(self):
        path = self.capture.begin(snapshot([]), command("SET", "k", "1"))
        recording = self.recording(line(START, "unix:/\x1b[31mx", "SET", "k", "1"))
        out = self.text("history", "k", "--in", path, "--monitor-file", recording)
        self.assertNotIn("\x1b", out)
        self.assertIn(", by unix:/", out)


class RealServer(WhoCase):
    def test_a_log_and_redis_cli(self):
        config = {"appendonly": "yes", "appendfsync": "always", "aof-timestamp-enabled": "yes"}
        with redis_server.RedisServer(config) as server:
            path = os.path.join(self.folder, "monitor.txt")
            with open(path, "wb") as out:
                cli = subprocess.Popen([redis_server.program("cli"), "-p", str(server.port),
                                        "monitor"], stdout=out)
            self.addCleanup(cli.wait)
            self.addCleanup(cli.kill)
            a, b = Client(server.port), Client(server.port)
            self.addCleanup(a.close)
            self.addCleanup(b.close)
            while os.path.getsize(path) < 20:
                a.command("PING")
                time.sleep(0.05)
            time.sleep(2.1)
            a.command("HSET", "k", "x", "1")
            b.command("EVAL", "redis.call('HSET', KEYS[1], 'y', ARGV[1])", "1", "k", "2\n\xff")
            a.command("MULTI")
            a.command("HINCRBY", "k", "x", "5")
            a.command("EXPIRE", "k", "100")
            a.command("EXEC")
            b.command("HDEL", "k", "y")
            time.sleep(2.1)
            b.command("PING")
            eventually("all is written", lambda: b'"PING"' in self.read(path)[-60:])
            log = os.path.join(server.dir, "appendonlydir")
            self.assertEqual(self.clients("k", "--in", log, "--monitor-file", path),
                             [a.address, b.address, a.address, b.address])


if __name__ == "__main__":
    unittest.main()
