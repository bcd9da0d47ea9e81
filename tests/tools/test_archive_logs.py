"""redoubt archive of an append-only folder, where the server itself cannot be reached."""

import os
import shutil
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from capture_case import eventually  # noqa: E402
from captures import command  # noqa: E402
from redis_server import RedisServer  # noqa: E402

BASE = "appendonly.aof.{}.base.rdb"
INCR = "appendonly.aof.{}.incr.aof"
START = 1700000000


class LogCase(ArchiveCase):
    def setUp(self):
        super().setUp()
        self.log = self.path("appendonlydir")

    def archived_log(self, more=""):
        self.nightly(source=self.log, more=f"spool = {self.spool}\narchive-interval = 1s\n{more}")

    def base(self, number, *commands):
        """A base with the data after these commands, written by a server."""
        with RedisServer({"rdbcompression": "no"}) as server:
            for c in commands:
                server.command(*c)
            server.command("SAVE")
            data = self.read(server.rdb)
        os.makedirs(self.log, exist_ok=True)
        # The time of the base is before the traffic.
        at = data.index(b"ctime") + 5
        self.assertEqual(data[at:at + 1], b"\xc2")
        data = data[:at + 1] + START.to_bytes(4, "little") + data[at + 5:]
        with open(os.path.join(self.log, BASE.format(number)), "wb") as out:
            out.write(data[:-8] + bytes(8))

    def manifest(self, base, *numbers):
        path = os.path.join(self.log, "appendonly.aof.manifest")
        with open(path + ".new", "w", encoding="utf-8") as out:
            out.write(f"file {BASE.format(base)} seq {base} type b\n")
            for n in numbers:
                out.write(f"file {INCR.format(n)} seq {n} type i\n")
        os.rename(path + ".new", path)

    def append(self, number, data):
        with open(os.path.join(self.log, INCR.format(number)), "ab") as out:
            out.write(data)

    def at(self, seconds):
        return b"#TS:%d\r\n" % (START + seconds)

    def shipped_bytes(self, n):
        """The stream is in the repository so far, and a set to begin with."""
        eventually(f"{n} bytes are there", lambda: os.path.isdir(self.repository) and
                   sum(s["end"] - s["start"] for s in self.streams()) >= n and self.sets())

    def keys_at(self, seconds):
        out = self.path("restored.rdb")
        self.good("restore", "--to", out, "--force", "--target-time", str(START + seconds))
        with RedisServer() as server:
            server.load(out)
            return {k.decode(): server.command("GET", k).decode()
                    for k in server.command("KEYS", "*")}


class Logs(LogCase):
    def test_a_command_that_cannot_be_restored_is_named_at_once_and_by_verify(self):
        self.base(1, ("SET", "old", "1"))
        data = command("SELECT", 0) + self.at(1) + command("SET", "k", 1) + \
            self.at(2) + command("JSON.SET", "j", "$", "1") + self.at(3) + command("SET", "k", 2)
        self.append(1, data)
        self.manifest(1, 1)
        self.archived_log()
        running = self.start()
        running.says('cannot run "JSON.SET"')
        self.shipped_bytes(len(data) - len(self.at(1)) * 3)
        self.assertEqual(running.end(), 0)
        done = self.tool("verify", "--level", "parse")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b'cannot run "JSON.SET"', done.stderr)
        done = self.tool("restore", "--to", self.path("out.rdb"), "--target-time", str(START + 2))
        self.assertEqual(done.returncode, 8, done.stderr)
        self.assertIn(b'it is left out: "j"', done.stderr)

    def test_every_second_of_a_log_has_its_data(self):
        self.base(1, ("SET", "old", "1"))
        self.append(1, command("SELECT", 0) + b"".join(
            self.at(i) + command("SET", "a", i) + command("INCR", "n") for i in range(1, 9)))
        self.manifest(1, 1)
        self.archived_log()
        running = self.start()
        running.says("snapshot received")
        self.append(1, self.at(9) + command("SET", "a", 9)[:11])
        size = 23 + 8 * (len(command("SET", "a", 1)) + len(command("INCR", "n")))
        self.shipped_bytes(size)
        self.append(1, command("SET", "a", 9)[11:] + self.at(10) + command("SET", "a", 10))
        self.shipped_bytes(size + 50)
        self.assertEqual(running.end(), 0)
        for i in range(1, 10):
            self.assertEqual(self.keys_at(i), {"old": "1", "a": str(i), "n": str(min(i, 8))})
        # Whether the tenth second had more commands is not known.
        self.fails(2, "is not known", "restore", "--to", self.path("x"), "--target-time",
                   str(START + 10))
        self.good("verify", "--level", "parse")

    def test_a_transaction_is_taken_when_it_is_whole(self):
        self.base(1)
        self.append(1, command("SELECT", 0) + self.at(1) + command("SET", "a", 1))
        self.manifest(1, 1)
        self.archived_log()
        running = self.start()
        self.append(1, self.at(2) + command("MULTI") + command("SET", "b", 1))
        self.shipped_bytes(50)
        running.kill()
        running = self.start()
        running.says("resuming at offset")
        self.append(1, command("SET", "c", 1) + command("EXEC") + self.at(3) + command("PING"))
        self.shipped_bytes(50 + 3 * 27)
        self.assertEqual(running.end(), 0)
        self.assertEqual(self.keys_at(1), {"a": "1"})
        self.assertEqual(self.keys_at(2), {"a": "1", "b": "1", "c": "1"})
        self.assertNotIn(b"gap", running.said)

    def test_the_next_file_of_a_rewrite_is_followed_and_its_base_begins_a_chapter(self):
        self.base(1)
        self.append(1, command("SELECT", 3) + self.at(1) + command("SET", "a", 1))
        self.manifest(1, 1)
        self.archived_log()
        running = self.start()
        self.shipped_bytes(50)
        # A file begins in database 0, even where there is no SELECT.
        self.append(2, self.at(2) + command("SET", "b", 1))
        self.manifest(1, 1, 2)
        self.shipped_bytes(90)
        self.base(2, ("SET", "base2", "1"))
        self.append(2, self.at(3) + command("SET", "c", 1))
        self.manifest(2, 2)
        running.says("the server has rewritten its log")
        eventually("both have a set", lambda: len(self.streams()) == 2 and
                   all(s["bases"] for s in self.streams()))
        self.assertEqual(running.end(), 0)
        reported = self.streams()
        out = self.path("first.rdb")
        self.good("restore", "--to", out, "--target-offset", str(reported[0]["to_offset"]), "--set",
                  self.sets()[0]["id"])
        with RedisServer() as server:
            server.load(out)
            self.assertEqual(server.databases(), [0, 3])
            self.assertIn(b"b", server.command("KEYS", "*"))
        self.assertEqual(self.keys_at(2), {"base2": "1", "b": "1"})
        self.assertNotIn(b"gap", running.said)

    def test_a_log_that_lost_files_or_bytes_is_a_gap(self):
        self.base(1)
        self.append(1, command("SELECT", 0) + self.at(1) + command("SET", "a", 1) * 5)
        self.manifest(1, 1)
        self.archived_log()
        running = self.start()
        self.shipped_bytes(100)
        os.truncate(os.path.join(self.log, INCR.format(1)), 60)
        running.says("was truncated")
        shutil.rmtree(self.log)
        running.says("trying again")
        self.base(5)
        self.append(5, command("SELECT", 0) + self.at(9) + command("SET", "a", 1))
        self.manifest(5, 5)
        running.says("files of the log were removed")
        self.assertIn(running.end(), (0, 8))  # 8: before the new base
        self.base(7)
        self.append(7, command("SELECT", 0) + self.at(11) + command("SET", "a", 1))
        self.manifest(7, 7)
        running = self.start()
        running.says("rewritten since the last run")
        self.assertIn(running.end(), (0, 8))  # 8: before the new base

    def test_input_that_is_not_a_log_is_refused(self):
        self.archived_log()
        self.fails(3, "appendonlydir", "archive")
        os.mkdir(self.log)
        self.fails(3, "there is no log", "archive")
        with open(os.path.join(self.log, "appendonly.aof.manifest"), "w", encoding="utf-8") as out:
            out.write("file appendonly.aof.1.base.aof seq 1 type b\n")
        with open(os.path.join(self.log, "appendonly.aof.1.base.aof"), "wb") as out:
            out.write(command("SET", "a", 1))
        self.assertIn(self.tool("archive").returncode, (1, 4))
        self.base(1)
        self.append(1, b"rubbish\r\n")
        self.manifest(1, 1)
        self.fails(1, INCR.format(1), "archive")
        os.remove(os.path.join(self.log, INCR.format(1)))
        os.mkfifo(os.path.join(self.log, INCR.format(1)))
        self.fails(3, "it is not a regular file", "archive")

    def test_a_server_writes_and_rewrites_meanwhile(self):
        server = self.server(appendonly="yes", aof_timestamp_enabled="yes",
                             appendfsync="always")
        self.log = server.dir
        self.archived_log()
        running = self.start()
        running.says("snapshot received")
        found = []
        for i in range(3):
            server.command("SET", f"k{i}", i)
            server.command("MULTI")
            server.command("INCR", "n")
            server.command("INCR", "m")
            server.command("EXEC")
            found.append((int(time.time()), server.command("DEBUG", "DIGEST")))
            if i == 1:
                server.command("BGREWRITEAOF")
                running.says("the server has rewritten its log")
            time.sleep(2.1)
        server.command("SET", "last", 1)
        eventually("it is there", lambda: any(s.get("to_time", "") > time.strftime(
            "%Y-%m-%dT%H:%M:%S.", time.gmtime(found[-1][0] + 1)) for s in self.streams()))
        self.assertEqual(running.end(), 0)
        for second, digest in found:
            self.check(digest, "--target-time", str(second + 1))
        self.good("verify", "--level", "parse")


if __name__ == "__main__":
    unittest.main()
