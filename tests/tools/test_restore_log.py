"""redoubt restore into a folder that has a log: all of the new one, or the old one as it was."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from backup_case import SNAPSHOT, BackupCase  # noqa: E402
from capture_case import eventually  # noqa: E402
from captures import command  # noqa: E402
from redis_server import RedisServer  # noqa: E402
from test_backup import bytes_of, flip  # noqa: E402

BASE, INCR = "appendonly.aof.1.base.rdb", "appendonly.aof.1.incr.aof"
MANIFEST = "appendonly.aof.manifest"


class Log(BackupCase):
    def log(self, folder, base, value):
        log = self.path(folder, "appendonlydir")
        os.makedirs(log)
        self.write(os.path.join(log, BASE), base)
        self.write(os.path.join(log, INCR), command("SELECT", 0) + command("SET", "key", value))
        self.write(os.path.join(log, MANIFEST), f"file {BASE} seq 1 type b\n"
                   f"file {INCR} seq 1 type i\n")

    def files(self, folder):
        log = self.path(folder, "appendonlydir")
        return {name: self.read(log, name) for name in os.listdir(log)}

    def setUp(self):
        super().setUp()
        self.log("new", bytes_of(SNAPSHOT), "new")
        self.log("old", b"REDIS0009\xff" + bytes(8), "old")
        self.nightly(source=self.path("new"), sealed=False)
        self.good("backup")

    def test_all_of_the_new_log(self):
        self.fails(2, "a log already exists", "restore", "--to", self.path("old"))
        self.good("restore", "--to", self.path("old"), "--force")
        self.assertEqual(self.files("old"), self.files("new"))
        self.nightly(source=self.path("new", "appendonlydir", BASE), sealed=False)
        self.good("backup")
        self.good("restore", "--to", self.path("old"), "--force", "--layout", "aof")
        files = self.files("old")
        self.assertEqual(files.pop(MANIFEST), f"file {BASE} seq 1 type b\n".encode())
        self.assertEqual(sorted(files), [BASE, INCR])

    def test_the_old_log_if_the_set_is_damaged(self):
        before = self.files("old")
        flip(os.path.join(self.set_folder(), INCR + ".lz4"), 20)
        done = self.tool("restore", "--to", self.path("old"), "--force")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(self.files("old"), before)

    def test_what_another_version_cannot_hold_names_the_set(self):
        data = b"REDIS0010\xf5\x26#!lua name=l\nredis.register_function()\xff" + bytes(8)
        self.nightly(source=self.write("f.rdb", data), sealed=False)
        self.good("backup")
        done = self.fails(4, "dump.rdb of the set 20", "restore", "--to", self.path("out.rdb"),
                          "--rdb-version", "9")
        self.assertIn(b"convert --lossy", done.stderr)


class Snapshot(ArchiveCase):
    """The log of a real server, restored where a log cannot be."""

    def setUp(self):
        super().setUp()
        self.server_dir = self.path("source")
        os.mkdir(self.server_dir)
        with RedisServer({"appendonly": "yes", "dir": self.server_dir}) as server:
            server.command("FUNCTION", "LOAD",
                           "#!lua name=l\nredis.register_function('f', function() return 1 end)")
            for i in range(20):
                server.command("RPUSH", f"list:{i}", *range(i + 1))
            server.command("BGREWRITEAOF")
            eventually("the log is rewritten", lambda: "aof_rewrite_in_progress:0\r" in
                       server.command("INFO").decode())
            server.command("MULTI")
            server.command("LPOP", "list:3")
            server.command("SET", "text", "x", "EX", "100000")
            server.command("EXEC")
            self.digest = server.command("DEBUG", "DIGEST")
        self.nightly(source=self.server_dir, more=f"spool = {self.spool}\n")
        self.good("backup")

    def loaded(self, **files):
        """The digest of a server that starts in a folder."""
        with RedisServer(files) as server:
            self.assertEqual(server.command("FCALL", "f", "0"), 1)
            return server.command("DEBUG", "DIGEST")

    def test_into_files_and_folders(self):
        os.mkdir(self.path("here"))
        for to, args in (("out.rdb", ()), ("here/", ("--layout", "rdb")),
                         ("new/", ("--layout", "rdb"))):
            self.good("restore", "--to", self.path(to), *args)
            path = self.path(to, "dump.rdb") if to.endswith("/") else self.path(to)
            with self.subTest(to):
                self.assertEqual(self.loaded(dir=os.path.dirname(path),
                                             dbfilename=os.path.basename(path)), self.digest)
        self.assertEqual(self.good("restore", "--to", "-")[:5], b"REDIS")
        self.assertEqual(self.json("restore", "--to", self.path("x.rdb"))[0]["layout"], "rdb")
        self.good("restore", "--to", self.path("log"))
        self.assertEqual(self.loaded(dir=self.path("log"), appendonly="yes"), self.digest)

    def test_filtered_as_a_log(self):
        said, status = self.json("restore", "--to", self.path("log"), "--prefix", "list:1")
        self.assertEqual((status, said["layout"], said["keys"], said["refused"]),
                         (0, "aof", 11, 0))
        with RedisServer({"dir": self.path("log"), "appendonly": "yes"}) as server:
            self.assertEqual(server.command("DBSIZE"), 11)

    def test_into_a_server(self):
        other = self.server()
        self.good("restore", "--to", f"redis://127.0.0.1:{other.port}")
        self.assertEqual(other.command("DEBUG", "DIGEST"), self.digest)
        self.assertIn(b"x", other.command("GET", "text"))

    def test_the_next_repository_starts_anew(self):
        log = self.path("source", "appendonlydir")
        incr = max(name for name in os.listdir(log) if "incr" in name)
        with open(os.path.join(log, incr), "ab") as file:
            file.write(command("LPUSH", "text", "1"))
            file.write(b"".join(command("SET", i, os.urandom(100000).hex()) for i in range(60)))
        self.nightly(source=self.server_dir, sealed=False,
                     more=f"repository = {self.path('second')}\n")
        self.good("backup")
        stored = os.path.join(self.set_folder(), incr + ".lz4")
        flip(stored, os.path.getsize(stored) - 1)
        said, status = self.json("restore", "--to", self.path("out.rdb"))
        self.assertEqual((status, said["refused"]), (8, 1))

    def dbsize(self, path):
        with RedisServer({"dir": os.path.dirname(path), "dbfilename": os.path.basename(path)}) as s:
            return s.command("DBSIZE")

    def test_keys_of_unknown_commands_are_left_out(self):
        log = self.path("source", "appendonlydir")
        incr = os.path.join(log, max(name for name in os.listdir(log) if "incr" in name))
        with open(incr, "ab") as file:
            file.write(command("SET", "text", "1") + command("JSON.SET", "text", "$", "1"))
        self.good("backup")
        keys = {}
        for option in (), ("--keep-unknown",):
            path = self.path(f"{len(option)}.rdb")
            said, status = self.json("restore", "--to", path, *option)
            self.assertEqual((status, said["refused"], said["unknown"]), (8, 0, 1))
            keys[option] = self.dbsize(path)
        self.assertEqual(keys[("--keep-unknown",)], keys[()] + 1)

    def test_commands_that_fail_are_reported(self):
        """A log that says more than a server could have done, and one that needs a server."""
        log = self.path("source", "appendonlydir")
        incr = os.path.join(log, max(name for name in os.listdir(log) if "incr" in name))
        for text, status, words in ((command("LPUSH", "text", "1"), 8, "failed, and the effect"),
                                    (command("NOPE.SET", "j", "$", "1"), 4, "--layout aof")):
            with open(incr, "ab") as file:
                file.write(text)
            self.good("backup")
            self.fails(status, words, "restore", "--to", self.path(f"{status}.rdb"))
        self.fails(8, "any key may differ", "restore", "--keep-unknown", "--to",
                   self.path("all.rdb"))
        self.good("restore", "--to", self.path("whole"))


if __name__ == "__main__":
    unittest.main()
