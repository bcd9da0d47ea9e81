"""`redoubt pause` and `redoubt resume`: no backups for some time, and everybody sees it."""

import shutil
import unittest

from backup_case import BackupCase
from s3_server import S3Server


class Pause(BackupCase):
    def setUp(self):
        super().setUp()
        self.metrics = self.path("metrics")
        self.nightly(more=f"metrics-file = {self.metrics}\n"
                          f"hook-failed = touch {self.path('failed')}\n"
                          f"hook-pre = touch {self.path('pre')}\n")

    def paused_figure(self):
        lines = self.read("metrics").decode().splitlines()
        return [line for line in lines if line.startswith("redoubt_backup_paused{")]

    def test_a_paused_target_gets_no_set(self):
        self.good("backup")
        shutil.os.unlink(self.path("pre"))
        self.assertEqual(self.paused_figure(), ['redoubt_backup_paused{target="nightly"} 0'])
        self.assertIn(b"redoubt resume nightly",
                      self.good("pause", "nightly", "--reason", 'the "bucket" moves'))
        before = self.read("metrics")
        self.assertEqual(self.paused_figure(), ['redoubt_backup_paused{target="nightly"} 1'])
        self.assertIn(b"redoubt_backup_sets{", before)
        for _ in range(2):
            self.fails(9, "moves: no set was made", "backup")
        self.assertEqual(self.read("metrics"), before)
        done, status = self.json("backup")
        self.assertEqual((status, done["sets"][0]["paused"], done["sets"][0]["ok"]),
                         (9, True, False))
        self.assertEqual(len(self.sets()), 1)
        for name in ("failed", "pre"):
            self.assertFalse(shutil.os.path.exists(self.path(name)))
        self.assertIn(b"backups are paused since", self.good("list"))
        listed = self.json("list")[0]["paused"]
        self.assertEqual([(p["target"], p["reason"]) for p in listed],
                         [("nightly", 'the "bucket" moves')])
        self.assertIn(b"was paused already", self.good("pause", "nightly", "--reason", "other"))
        self.assertEqual(self.json("list")[0]["paused"], listed)
        self.good("verify")
        self.good("prune", "--confirm")
        self.assertIn(b"resumed", self.good("resume", "nightly"))
        self.assertIn(b"was not paused", self.good("resume", "nightly"))
        self.good("backup")
        self.assertEqual(self.json("list")[0]["paused"], [])
        self.assertEqual(self.paused_figure(), ['redoubt_backup_paused{target="nightly"} 0'])

    def test_one_repository_is_enough_and_other_targets_get_their_sets(self):
        second = self.path("second")
        text = self.read("redoubt.conf").decode()
        self.configure(text + f"repository = {second}\n[other]\nsource = {self.path('dump.rdb')}\n"
                              f"repository = {self.repository}\n")
        self.good("backup")
        self.good("pause", "nightly")
        shutil.rmtree(self.path("repo", "nightly", "marks"))
        self.fails(9, "is paused", "backup")
        self.assertEqual(len(self.sets("other")), 2)
        self.fails(3, "is paused", "backup", "--source", self.path("missing"))

    def test_doctor_says_so(self):
        self.good("backup")
        args = (self.folder, "--target", "nightly", "--json")
        self.good("pause", "nightly", "--reason", "why")
        said = self.tool("doctor", *args).stdout
        self.assertIn(b"are paused since", said)
        self.good("resume", "nightly")
        self.assertIn(b"are not paused", self.tool("doctor", *args).stdout)

    def test_a_mark_that_is_not_understood_is_a_pause(self):
        self.good("backup")
        shutil.os.makedirs(self.path("repo", "nightly", "marks"), exist_ok=True)
        for text in (b"", b"{", b"x" * 100000, b"[1]"):
            self.write("repo/nightly/marks/paused", text)
            self.fails(9, "is paused", "backup")
            self.assertEqual(len(self.json("list")[0]["paused"]), 1)
        self.good("resume", "nightly")
        self.good("backup")

    def test_in_s3(self):
        with S3Server() as s3:
            self.write("s3key", f"{s3.access_key}\n{s3.secret_key}\n")
            self.repository = "s3://vault/there"
            self.nightly(more=f"s3-endpoint = {s3.url}\ns3-key-file = {self.path('s3key')}\n")
            self.good("backup")
            self.good("pause", "nightly")
            self.fails(9, "is paused", "backup")
            self.good("resume", "nightly")
            self.good("backup")


if __name__ == "__main__":
    unittest.main()
