"""The spool of `redoubt archive` that is lost, or of another target, and settings that would fail
when the service has run for a while."""

import glob
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from backup_case import REDOUBT  # noqa: E402


class Spools(ArchiveCase):
    def test_a_spool_that_was_lost_is_a_gap(self):
        server = self.server()
        self.archived(server.port)
        self.start_and_end(server)
        shutil.rmtree(self.spool)
        server.command("SET", "lost", "1")
        running = self.start("nightly", "--json")
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        self.assertIn(b'"gaps":1', running.process.stdout.read())
        self.assertIn(b"the archive has a gap", running.said)

    def start_and_end(self, server):
        running = self.start()
        self.wait_for(server)
        self.assertEqual(running.end(), 0)

    def test_indexes_of_keys_go_with_their_segments(self):
        """`redoubt history` of the spool makes them there."""
        server = self.server()
        self.archived(server.port)
        running = self.start()
        for _ in range(3):
            server.command("SET", "k", "1")
            self.wait_for(server)
            spool = os.path.dirname(glob.glob(os.path.join(self.spool, "**", "*.seg"),
                                              recursive=True)[0])
            subprocess.run([REDOUBT, "history", "k", "--in", spool], check=False,
                           capture_output=True)  # a segment may go meanwhile
        self.assertNotEqual(glob.glob(os.path.join(spool, "*.seg.keys")), [])
        self.assertEqual(running.end(), 0)
        left = [n for n in os.listdir(spool) if n.endswith(".keys")]
        self.assertEqual([n for n in left if not os.path.exists(os.path.join(spool, n[:-5]))], [])
        self.start_and_end(server)

    def test_the_spool_of_another_target_is_refused(self):
        """What waits there is not a stream of this target, and the other one would lose it."""
        server, other = self.server(), self.server()
        self.archived(server.port)
        self.start_and_end(server)
        self.configure(self.read("redoubt.conf").decode() + f"""
[other]
source = redis://127.0.0.1:{other.port}
repository = {self.repository}
spool = {self.spool}
""")
        before = sorted(glob.glob(os.path.join(self.spool, "*", "*")))
        running = self.start("other")
        self.assertEqual(running.wait(), 2)
        self.assertIn(b"the spool is that of the target", running.said)
        self.fails(2, "the spool is that of the target", "check-config", "other")
        self.assertEqual(sorted(glob.glob(os.path.join(self.spool, "*", "*"))), before)
        self.assertFalse(os.path.exists(os.path.join(self.repository, "other", "stream")))
        self.start_and_end(server)

    def test_a_key_that_is_not_given_any_more_is_named(self):
        """The segment that the spool keeps for the next run was sealed with it."""
        server = self.server()
        self.archived(server.port)
        self.start_and_end(server)
        conf, key = self.read("redoubt.conf").decode(), self.read("key")
        self.good("seal", "--make-key", self.path("new"))
        for other in (f"key-file = {self.path('new')}\n", ""):
            self.configure(conf.replace(f"key-file = {self.key}\n", other))
            running = self.start()
            self.assertEqual(running.wait(), 2)
            self.assertIn(b"cannot be read: ", running.said)
            self.assertIn(b"sealed with the key", running.said)
            self.assertIn(b"hint: a key file may have several keys", running.said)
            self.assertNotIn(b"move it away", running.said)
        self.configure(conf)
        self.write("key", self.read("new") + key)
        self.start_and_end(server)

    def test_a_lock_file_that_was_removed_is_taken_again(self):
        server = self.server()
        self.archived(server.port)
        running = self.start()
        self.wait_for(server)
        for _ in range(2):
            running.said = b""
            os.remove(os.path.join(self.repository, "nightly", "stream", "lock"))
            server.command("SET", "k", "1")
            running.says("the file of the lock was removed or replaced; trying again")
            running.says("accepts segments again")
        self.wait_for(server)
        self.assertEqual(running.end(), 0)

    def test_settings_that_fail_later_are_refused_at_the_beginning(self):
        self.nightly(source="redis://127.0.0.1:1", sealed=False)
        for args, text in ((("--prune", "Yes"), b"prune must be yes or no"),
                           (("--prune", "yes", "--keep", "hourly"), b"invalid rule"),
                           (("--lock-wait", "5"), b"lock-wait is not a time"),
                           (("--sentinel", ","), b"names no sentinel"),
                           (("--metrics-file", "x", "--archive-metrics-file", "x"),
                            b"must be different files")):
            running = self.start("nightly", "--spool", self.spool, *args)
            self.assertEqual(running.wait(), 2, (args, running.said))
            self.assertIn(text, running.said)


if __name__ == "__main__":
    unittest.main()
