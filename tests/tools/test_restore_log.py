"""redoubt restore into a folder that has a log: all of the new one, or the old one as it was."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from backup_case import SNAPSHOT, BackupCase  # noqa: E402
from captures import command  # noqa: E402
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


if __name__ == "__main__":
    unittest.main()
