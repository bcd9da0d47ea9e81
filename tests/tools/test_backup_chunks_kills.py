"""Backups in chunks, prunes and the rewriting of packs that are killed at random moments.

Every set that is listed gives the snapshot that it was made of, and the next run succeeds.
REDOUBT_KILLS is the number of kills of each test, 8 by default.
"""

import os
import random
import signal
import subprocess
import time

from backup_case import REDOUBT, BackupCase
from test_backup_chunks import snapshot

KILLS = int(os.environ.get("REDOUBT_KILLS", "8"))
KEYS = 20000


class ChunksKills(BackupCase):
    def setUp(self):
        super().setUp()
        self.random = random.Random(20261129)
        self.write("dump.rdb", snapshot(KEYS))
        self.nightly(more=f"store = chunks\nspool = {self.path('spool')}\nchunk-grace = 1s\n")
        self.made = {}  # by id
        self.turn = 0

    def next_snapshot(self):
        """Most keys are the same; a part of them is gone now and then, so that packs are waste."""
        self.turn += 1
        changed = set(range(self.turn % 50, KEYS, 50))
        keys = KEYS if self.turn % 3 else KEYS // 20
        data = snapshot(keys, order=self.turn // 4 % 2, changed=changed)
        self.write("dump.rdb", data)
        return data

    def run_for(self, seconds, *args):
        """Whether the run was killed."""
        with subprocess.Popen([REDOUBT, *args, "--config", self.config],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        return process.returncode == -signal.SIGKILL

    def duration(self, *args):
        began = time.monotonic()
        self.good(*args)
        return time.monotonic() - began

    def check(self, data=None):
        """What is listed is good, and gives the snapshot that it was made of."""
        sets = self.sets()
        for found in sets:
            self.assertTrue(found["good"], found)
            if found["id"] not in self.made:
                self.assertIsNotNone(data, "a set that nobody made")
                self.made[found["id"]] = data
        if sets:
            self.good("verify")
            one = self.random.choice(sets)["id"]
            self.good("restore", "--set", one, "--to", self.path("out.rdb"), "--force")
            self.assertEqual(self.read("out.rdb"), self.made[one])

    def kill_often(self, args, prepare, whole):
        killed = n = 0
        while killed < KILLS:
            n += 1
            self.assertLess(n, 30 * KILLS, "the runs are too fast")
            data = prepare()
            if self.run_for(self.random.random() * whole, *args):
                killed += 1
            else:
                whole *= 0.97
            self.check(data)

    def test_a_backup_is_killed(self):
        data = self.next_snapshot()
        whole = self.duration("backup")
        self.check(data)
        self.kill_often(("backup",), self.next_snapshot, whole)
        data = self.next_snapshot()
        self.good("backup")
        self.check(data)

    def test_a_prune_is_killed(self):
        prune = ("prune", "--confirm", "--keep", "count 2")

        def prepare():
            data = None
            for _ in range(2):
                data = self.next_snapshot()
                self.good("backup")
                self.check(data)
            return None

        prepare()
        prepare()
        whole = self.duration(*prune)
        self.kill_often(prune, prepare, whole)
        for _ in range(3):
            time.sleep(1.1)
            self.good(*prune)
            self.check()
        self.assertEqual(len(self.sets()), 2)


if __name__ == "__main__":
    import unittest

    unittest.main()
