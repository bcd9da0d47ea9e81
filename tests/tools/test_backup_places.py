"""Targets with several repositories, which do not have the same sets, and settings that are
given in several places."""

import os
import shutil
import unittest

from backup_case import FIXTURES, BackupCase


class Places(BackupCase):
    def test_a_repository_that_is_given_twice_is_refused(self):
        for again in (self.repository, self.repository + "/", self.repository + "/./"):
            self.nightly(sealed=False, more=f"repository = {again}\n")
            for tool in ("backup", "list", "check-config"):
                self.fails(2, "is given twice", tool)

    def test_the_newest_set_of_all_repositories_is_restored(self):
        """A run may have failed to store it in the first one, or it is damaged there."""
        self.nightly()
        self.good("backup")
        second, away = self.path("second"), self.path("away")
        self.nightly(more=f"repository = {second}\n")
        self.good("backup")
        os.rename(self.repository, away)
        self.write("repo", "")
        older = self.read("dump.rdb")
        newer = self.read(os.path.join(os.path.abspath(FIXTURES), "redis-7.0.15", "lists.rdb"))
        self.write("dump.rdb", newer)
        self.tool("backup")
        os.unlink(self.repository)
        os.rename(away, self.repository)
        for args in ((), ("--set", "latest")):
            done = self.tool("restore", "--to", self.path("out.rdb"), "--force", *args)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.read("out.rdb"), newer)
            self.assertNotIn(b"left out", done.stderr)
        newest = self.json("list")[0]["sets"][-1]["id"]
        data = os.path.join(second, "nightly", "sets", newest, "dump.rdb.lz4.sealed")
        sound = self.read(data)
        self.write(data, sound[:150] + bytes([sound[150] ^ 1]) + sound[151:])
        done = self.tool("restore", "--to", self.path("out.rdb"), "--force")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read("out.rdb"), older)
        self.assertIn(f"1 newer set of nightly in {second} left out; {newest}".encode(),
                      done.stderr)
        self.tool("verify")
        done = self.tool("restore", "--to", self.path("out.rdb"), "--force")
        self.assertIn(f"1 newer set of nightly in {second} left out; {newest}".encode(),
                      done.stderr)
        shutil.copytree(second, away)
        self.write(os.path.join(away, os.path.relpath(data, second)), sound)
        self.tool("verify", "--repository", away)
        self.nightly(more=f"repository = {second}\nrepository = {away}\n")
        self.good("restore", "--to", self.path("out.rdb"), "--force")
        self.assertEqual(self.read("out.rdb"), newer)
        os.rename(second, second + ".x")
        self.write("second", "")
        done = self.tool("restore", "--to", self.path("out.rdb"), "--force")
        self.assertEqual(self.read("out.rdb"), newer)
        self.assertIn(b"cannot open the repository", done.stderr)

    def test_a_repository_or_a_target_without_sets_is_a_finding_of_verify(self):
        second = self.path("second")
        self.nightly(more=f"repository = {second}\n")
        self.good("backup")
        shutil.rmtree(os.path.join(self.repository, "nightly", "sets"))
        self.fails(1, f"nightly has no set in {self.repository}", "verify")
        report, status = self.json("verify")
        self.assertEqual((status, report["good"], report["without_sets"]), (1, 1, 1))
        self.fails(2, f'no set "latest" in {self.repository}', "verify", "--set", "latest")
        self.fails(1, f"other has no set in {second}", "verify", "nightly", "other",
                   "--config", self.write("c", f"[nightly]\nrepository = {second}\n[other]\n"
                                               f"repository = {second}\n"
                                               f"key-file = {self.key}\n"), "--allow-unsealed")

    def test_an_indented_line_is_not_a_second_repository(self):
        """Its key would be ignored, and the set would not be sealed."""
        self.nightly()
        lines = f"[nightly]\n  source = {self.path('dump.rdb')}\nrepository = {self.repository}\n"
        for more, line in (("  key-file = x\n", 4), ("\n; x\n\tkey-file = x", 6), (" [b]\n", 4)):
            self.configure(lines + more)
            self.fails(2, f"line {line} begins with a blank", "backup")
        self.configure(f"{lines}  ; x\n \n\t\r\nkey-file = {self.key}\n[b]\n  repository = x\n")
        self.good("backup", "nightly")
        self.assertTrue(self.sets()[0]["files"][0]["sealed"])

    def test_a_key_of_a_target_takes_the_place_of_the_common_one(self):
        """Whether it is in a file or printed by a command."""
        self.nightly()
        self.good("backup")
        theirs, ours = self.key, self.path("ours")
        self.good("seal", "--make-key", ours)
        text = self.read("redoubt.conf").decode().replace(f"key-file = {theirs}\n", "")
        for common, own in (("file", "command"), ("command", "file")):
            value = {"file": lambda path: path, "command": lambda path: f"cat {path}"}
            self.configure(f"key-{common} = {value[common](theirs)}\n{text}")
            self.good("restore", "--to", self.path("out.rdb"), "--force")
            self.fails(2, "wrong key", "restore", "--to", self.path("x.rdb"),
                       f"--key-{own}", value[own](ours))
            self.configure(f"key-{common} = {value[common](theirs)}\n{text}"
                           f"key-{own} = {value[own](ours)}\n")
            self.fails(2, "wrong key", "restore", "--to", self.path("x.rdb"))
            self.good("restore", "--to", self.path("out.rdb"), "--force",
                      f"--key-{common}", value[common](theirs))
        self.configure(f"{text}key-file = {theirs}\nkey-command = cat {theirs}\n")
        self.fails(2, "only one of key-file and key-command", "list")
        self.fails(2, "only one of", "list", "--s3-key-file", "a", "--s3-key-command", "b")


if __name__ == "__main__":
    unittest.main()
