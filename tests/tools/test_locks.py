"""Locks of repositories: heartbeats, expiry, `redoubt unlock`."""

import fcntl
import json
import os
import random
import signal
import subprocess
import threading
import time

from backup_case import REDOUBT, BackupCase
from capture_case import eventually
from s3_server import S3Server

SETS = "some/where/nightly/locks/sets/"


class Locks(BackupCase):
    def setUp(self):
        super().setUp()
        self.s3 = S3Server()
        self.s3.__enter__()
        self.addCleanup(self.s3.__exit__, None, None, None)
        self.write("s3key", f"{self.s3.access_key}\n{self.s3.secret_key}\n")
        self.repository = "s3://vault/some/where"
        self.use()

    def use(self, more=""):
        self.nightly(more=f"s3-endpoint = {self.s3.url}\ns3-key-file = {self.path('s3key')}\n"
                     f"compress = none\n{more}")

    def big(self):
        """A snapshot that takes several parts."""
        blob = random.Random(1).randbytes(20 << 20)
        self.write("dump.rdb", b"REDIS0011\xfe\x00\x00\x01k\x80" + len(blob).to_bytes(4, "big") +
                   blob + b"\xff" + bytes(8))

    def start_and_stop(self):
        """A backup that is stopped in the middle of its upload."""
        started, held = threading.Event(), threading.Event()

        def stop(method, path, n):
            if method == "PUT" and "partNumber=2" in path and not held.is_set():
                started.wait()
                os.kill(process.pid, signal.SIGSTOP)
                held.set()

        self.s3.faults = stop
        process = subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.set()
        while not held.wait(0.05):
            self.assertIsNone(process.poll())
        self.s3.faults = None
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def resume(self, process):
        process.send_signal(signal.SIGCONT)
        said = b"".join(process.communicate(timeout=120)).decode()
        return process.returncode, said

    def locks(self):
        return [k for k in self.s3.objects if "/locks/" in k]

    def put_lock(self, age_s=None, **more):
        """The lock of a process somewhere else; without an age the store reports none."""
        key = f"{SETS}00000007-0123456789abcdef"
        self.s3.objects[key] = json.dumps({
            "format": 1, "id": "0123456789abcdef", "host": "pod", "space": "another/1", "pid": 1,
            "owner": "redoubt backup, process 1 on pod, since 2026-01-01T00:00:00Z",
            "since_ms": 1767225600000, "beat_ms": 1767225600000, "expire_ms": 300000, **more,
        }).encode()
        if age_s is not None:
            self.s3.times[key] = time.time() - age_s
        return key

    # ---- a run that lost its lock ----

    def test_a_run_that_was_stopped_for_too_long_writes_no_manifest(self):
        self.big()
        self.use(f"lock-expire = 2s\nhook-failed = touch {self.path('failed')}\n")
        first = self.start_and_stop()
        self.good("backup", "--lock-wait", "60s")
        newer = self.sets()
        status, said = self.resume(first)
        self.assertTrue(os.path.exists(self.path("failed")))
        self.assertEqual(status, 7, said)
        self.assertIn("the lock was lost", said)
        self.assertEqual(self.sets(), newer)
        self.assertEqual(len(newer), 1)
        self.assertEqual(self.locks(), [])
        self.good("verify", "--level", "parse")

    def test_a_run_whose_lock_was_removed_writes_no_manifest(self):
        self.big()
        first = self.start_and_stop()
        self.fails(7, "may be running", "unlock", "nightly", "--confirm")
        self.good("unlock", "nightly", "--confirm", "--force")
        status, said = self.resume(first)
        self.assertEqual(status, 7, said)
        self.assertEqual(self.sets(), [])

    def test_a_run_whose_objects_are_gone_writes_no_manifest(self):
        def lose(method, path, n):
            if method == "PUT" and path.endswith("/manifest.json"):
                self.fail("the manifest is written")
            if method == "GET" and "prefix=some%2Fwhere%2Fnightly%2Fsets%2F2" in path:
                for key in [k for k in self.s3.objects if "dump.rdb" in k]:
                    del self.s3.objects[key]

        self.s3.faults = lose
        self.fails(3, "objects of the set are missing", "backup")
        self.assertEqual(self.sets(), [])

    def test_a_run_renews_its_lock_and_keeps_it(self):
        os.mkfifo(self.path("fifo"))
        self.use(f"lock-expire = 10s\nhook-pre = cat {self.path('fifo')}\n")
        process = subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        eventually("it has the lock", self.locks)
        first = self.locks()
        eventually("it renews the lock", lambda: self.locks() and self.locks() != first)
        # The second run waits until it has seen that the first one is alive.
        self.fails(7, f"process {process.pid} on", "backup", "--lock-wait", "1s")
        with open(self.path("fifo"), "wb"):
            pass
        said = b"".join(process.communicate(timeout=120)).decode()
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(self.locks(), [])
        self.assertEqual(len(self.sets()), 1)

    # ---- a lock of a process that is somewhere else ----

    def test_a_lock_that_is_not_renewed_does_not_block_for_ever(self):
        self.put_lock(age_s=240)
        self.fails(7, "process 1 on pod", "backup", "--lock-wait", "0s")
        self.put_lock(age_s=400)
        self.good("backup", "--lock-wait", "0s")
        self.assertEqual(self.locks(), [])

    def test_without_a_time_of_the_store_the_waiting_run_watches_the_lock(self):
        self.put_lock(expire_ms=2000)
        self.fails(7, "process 1 on pod", "backup", "--lock-wait", "0s")
        self.good("backup", "--lock-wait", "1s")
        self.assertEqual(self.locks(), [])

    def test_the_clock_of_the_holder_does_not_matter(self):
        for beat_ms in (0, 1, 4102444800000):
            self.put_lock(age_s=10, beat_ms=beat_ms)
            self.fails(7, "process 1 on pod", "backup", "--lock-wait", "0s")

    def test_a_lock_of_an_older_version_is_named_and_can_be_removed(self):
        key = "some/where/nightly/lock"
        self.s3.objects[key] = b"redoubt backup, process 1 on pod, since 2026-01-01T00:00:00Z"
        self.fails(7, "process 1 on pod", "backup", "--lock-wait", "0s")
        self.s3.times[key] = time.time() - 24 * 3600
        self.fails(7, "process 1 on pod", "backup", "--lock-wait", "0s")
        self.fails(7, "without heartbeats", "unlock", "--confirm")
        self.good("unlock", "--confirm", "--force")
        self.good("backup", "--lock-wait", "0s")
        self.s3.objects[key] = b"redoubt backup, process 1 on pod, since 2026-01-01T00:00:00Z"
        self.s3.times[key] = time.time() - 330 * 24 * 3600
        self.good("backup", "--lock-wait", "0s")

    def test_the_time_of_expiry_has_limits(self):
        for value in ("0s", "999999h", "soon"):
            self.fails(2, "lock-expire", "backup", "--lock-expire", value)

    # ---- unlock ----

    def test_unlock_shows_who_has_a_lock(self):
        self.assertIn(b"sets: not locked", self.good("unlock", "nightly"))
        self.put_lock(age_s=12)
        said = self.good("unlock", "nightly").decode()
        self.assertIn("redoubt backup, process 1 on pod, since 2026-01-01T00:00:00Z", said)
        self.assertRegex(said, "last heartbeat 1[2-9] s ago")
        report, status = self.json("unlock", "nightly")
        self.assertEqual(status, 0)
        lock = report["locks"][0]
        self.assertEqual((lock["state"], lock["host"], lock["pid"], lock["removed"]),
                         ("alive", "pod", 1, False))
        self.assertEqual(lock["since_ms"], 1767225600000)
        self.assertEqual([(x["lock"], x["state"]) for x in report["locks"]],
                         [("sets", "alive"), ("stream", "free"), ("merge", "free")])
        self.assertEqual(len(self.locks()), 1)

    def test_unlock_removes_what_has_expired(self):
        self.put_lock(age_s=3000)
        self.assertIn(b"expired", self.good("unlock", "nightly"))
        report, status = self.json("unlock", "nightly", "--confirm")
        self.assertEqual((status, report["locks"][0]["removed"]), (0, True))
        self.assertEqual(self.locks(), [])

    def test_unlock_of_a_folder_knows_the_lock_of_the_system(self):
        self.repository = self.path("repo")
        self.nightly()
        self.good("backup")
        path = self.path("repo", "nightly", "lock")
        with open(path, "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(b"redoubt backup, process 7 on somewhere")
            lock.flush()
            self.assertIn(b"process 7 on somewhere", self.good("unlock"))
            self.fails(7, "--force", "unlock", "--confirm")
            self.good("unlock", "--confirm", "--force")
            self.good("backup", "--lock-wait", "0s")
        self.assertIn(b"not locked", self.good("unlock"))
