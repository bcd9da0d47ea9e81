"""Runs of backup, archive and prune that are killed, cut off or starved at random moments.

The repository never lists a set that does not verify, what is left over is removed, and the next
run succeeds. REDOUBT_KILLS is the number of kills and cuts of each test, 8 by default. The moments
are spread over the time that a whole run takes on this machine.
"""

import hashlib
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from backup_case import REDOUBT  # noqa: E402
from capture_case import Load, acknowledged, eventually  # noqa: E402

KILLS = int(os.environ.get("REDOUBT_KILLS", "8"))


class CuttingProxy:
    """Carries bytes to a server, up to a number of bytes from there; then it cuts everything."""

    def __init__(self, target):
        self.target = target
        self.left = 1 << 60
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def limit(self, n):
        with self.lock:
            self.left = n

    def accept(self):
        while True:
            try:
                left, _ = self.listener.accept()
                right = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            for a, b, counted in ((left, right, False), (right, left, True)):
                threading.Thread(target=self.carry, args=(a, b, counted), daemon=True).start()

    def carry(self, source, sink, counted):
        cut = False
        try:
            while not cut:
                data = source.recv(1 << 14)
                if not data:
                    break
                if counted:
                    with self.lock:  # a new limit is for the next connection
                        data = data[:self.left]
                        self.left -= len(data)
                        cut = self.left == 0
                sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Moments(ArchiveCase):
    def setUp(self):
        super().setUp()
        self.random = random.Random(20261123)

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

    def kill_often(self, name, whole, run):
        """Calls run(seconds) until it was killed KILLS times; a run that is killed later than its
        end does not count."""
        killed = n = 0
        while killed < KILLS:
            n += 1
            self.assertLess(n, 20 * KILLS, "the runs are too fast")
            if run(self.random.random() * whole):
                killed += 1
            else:
                whole *= 0.97  # the first runs on a machine are slow
        print(f"# {name}: {killed} of {n} runs were killed", flush=True)

    def check_repository(self):
        """What is listed is good."""
        for reported in self.sets():
            self.assertTrue(reported["good"], reported)
        if self.sets():
            self.good("verify", "--level", "parse")

    def leftovers(self):
        """Folders of interrupted sets."""
        folder = os.path.join(self.repository, "nightly", "sets")
        return set(os.listdir(folder)) - {s["id"] for s in self.sets()}

    def big_master(self):
        server = self.server()
        server.command("DEBUG", "POPULATE", "60000", "key", "50")
        return server

    def test_backup_is_killed(self):
        server = self.big_master()
        self.nightly(source=f"redis://127.0.0.1:{server.port}", more="prune = yes\n")
        self.configure(self.read("redoubt.conf").decode().replace("hourly 48, daily 60", "count 2"))

        def run(seconds):
            killed = self.run_for(seconds, "backup")
            self.check_repository()
            return killed

        self.kill_often("backup", self.duration("backup"), run)
        self.good("backup")
        self.assertEqual(self.leftovers(), set())

    def test_prune_is_killed(self):
        self.nightly()
        self.good("backup")
        self.configure(self.read("redoubt.conf").decode().replace("hourly 48, daily 60", "count 1"))
        for _ in range(12):
            self.good("backup")
        newest = self.sets()[-1]["id"]
        shutil.copytree(self.repository, self.path("full"))

        def run(seconds):
            shutil.rmtree(self.repository)
            shutil.copytree(self.path("full"), self.repository)
            killed = self.run_for(seconds, "prune", "--confirm")
            self.check_repository()
            self.assertEqual(self.sets()[-1]["id"], newest)
            self.good("prune", "--confirm")
            self.assertEqual([s["id"] for s in self.sets()], [newest])
            self.assertEqual(self.leftovers(), set())
            return killed

        self.kill_often("prune", self.duration("prune", "--confirm"), run)

    def test_archive_is_killed(self):
        server = self.server()
        self.archived(server.port, more="base-interval = 2s\nsegment-size = 100kb\nprune = yes\n")
        self.configure(self.read("redoubt.conf").decode().replace("hourly 48, daily 60", "count 3"))
        began = time.monotonic()
        running = self.start()
        server.command("SET", "a", "b")
        self.wait_for(server)
        whole = time.monotonic() - began
        self.assertEqual(running.end(), 0)

        def run(seconds):
            # Only meanwhile: what is written while no run reads it must fit into the backlog.
            load = Load(server.port, pause=0.05)
            load.start()
            killed = self.run_for(seconds, "archive")
            load.stop()
            self.check_repository()
            return killed

        self.kill_often("archive", whole, run)
        # From now on nothing is pruned: newer bases would push out those before the offset below.
        self.configure(self.read("redoubt.conf").decode().replace("prune = yes", "prune = no"))
        began_ms = time.time() * 1000
        running = self.start()
        offset, digest = self.moment(server)
        self.wait_for(server)
        eventually("there is one more base", lambda: self.sets()[-1]["begin_ms"] > began_ms)
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))
        self.check_repository()
        self.assertEqual(self.leftovers(), set())
        self.assertEqual(len(self.streams()), 1)
        self.assertNotIn(b"gap", running.said)

    def test_the_network_is_cut_at_random_bytes(self):
        server = self.server()
        server.command("DEBUG", "POPULATE", "2000", "key", "50")
        with CuttingProxy(server.port) as proxy:
            self.nightly(source=f"redis://127.0.0.1:{proxy.port}")
            self.good("backup")
            size = (1 << 60) - proxy.left  # of the whole conversation
            failed = 0
            for _ in range(KILLS):
                before = len(self.sets())
                proxy.limit(self.random.randrange(1, size))
                done = self.tool("backup")
                failed += done.returncode != 0
                self.assertIn(done.returncode, (0, 6), done.stderr)
                self.assertEqual(len(self.sets()) - before, done.returncode == 0)
            self.check_repository()
            self.assertEqual(self.leftovers(), set())
            proxy.limit(1 << 60)
            self.good("backup")
        self.assertGreater(failed, KILLS // 2)
        print(f"# network: {failed} of {KILLS} runs failed", flush=True)

    def test_the_archive_is_cut_at_random_bytes(self):
        server = self.server()
        with CuttingProxy(server.port) as proxy:
            self.archived(proxy.port)
            running = self.start()
            running.says("snapshot received")
            load = Load(server.port)

            def cut():
                self.load(server, [load.one() for _ in range(10)])
                return proxy.left == 0

            for _ in range(KILLS):
                proxy.limit(self.random.randrange(1, 60000))
                eventually("the connection is cut", cut)
                proxy.limit(1 << 60)
                acknowledged(server)  # it has all, so that the backlog suffices
            offset, digest = self.moment(server)
            self.wait_for(server)
            self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))
        self.assertEqual(len(self.streams()), 1)
        self.good("verify", "--level", "parse")


class Starved(ArchiveCase):
    """Full disks, wrong permissions, wrong clocks."""

    def limited(self, name, *args):
        """With files of at most 8 KiB."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        return subprocess.run([REDOUBT, name, *args, "--config", self.config],
                              capture_output=True, preexec_fn=limit, check=False)

    def test_a_full_spool_disk_ends_the_archive_and_the_next_run_continues(self):
        server = self.server()
        self.archived(server.port)
        running = self.start()
        running.says("snapshot received")
        eventually("the base is there", self.sets)
        self.assertEqual(running.end(), 0)
        for i in range(40):
            server.command("SET", f"k{i}", "x" * 3000)
        done = self.limited("archive", "nightly")
        self.assertEqual(done.returncode, 3, done.stderr)
        offset, digest = self.moment(server)
        running = self.start()
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))
        self.assertEqual(len(self.streams()), 1)

    def test_a_repository_that_refuses_is_waited_for(self):
        server = self.server()
        self.archived(server.port, more="compress = none\n")
        running = self.start()
        running.says("snapshot received")
        eventually("the base is there", self.sets)
        eventually("there is a segment", self.segments)
        chapter = os.path.dirname(self.segments()[0])
        # A file in the place of the folder: as root, permissions do not stop anything.
        os.rename(chapter, chapter + ".away")
        open(chapter, "w").close()
        server.command("SET", "a", "b")
        running.says("trying again")
        os.unlink(chapter)
        os.rename(chapter + ".away", chapter)
        running.says("accepts segments again")
        offset, digest = self.moment(server)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))

    @unittest.skipUnless(shutil.which("setpriv"), "util-linux is not installed")
    def test_wrong_permissions_are_named(self):
        self.nightly()
        os.chmod(self.folder, 0o755)
        os.chmod(self.key, 0o644)
        os.mkdir(self.repository, 0o755)
        for name, args in (("backup", ()), ("archive", ("--source", "redis://127.0.0.1:1",
                                                        "--spool", self.spool))):
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                   REDOUBT, name, "nightly", "--config", self.config, *args],
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(b"Permission denied", done.stderr)
        self.good("backup")

    def take_in(self, year):
        """A set that a host with a wrong clock has taken."""
        before = {s["id"] for s in self.sets()} if os.path.isdir(self.repository) else set()
        self.good("backup")
        old = ({s["id"] for s in self.sets()} - before).pop()
        new = str(year) + old[4:]
        sets = os.path.join(self.repository, "nightly", "sets")
        os.rename(os.path.join(sets, old), os.path.join(sets, new))
        path = os.path.join(sets, new, "manifest.json")
        text = self.read(path).replace(old.encode(), new.encode())
        text = text[:text.index(b',\n "sha256": "', text.rindex(b"]"))]
        with open(path, "wb") as out:
            out.write(text + b',\n "sha256": "' + hashlib.sha256(text).hexdigest().encode()
                      + b'"}\n')
        return new

    def test_sets_of_a_wrong_clock_do_not_push_others_out(self):
        for keep in ("count 1", "hourly 1", "daily 1", "age 1h"):
            with self.subTest(keep=keep):
                shutil.rmtree(self.repository, ignore_errors=True)
                self.nightly(sealed=False, more=f"metrics-file = {self.path('m.prom')}\n")
                self.configure(self.read("redoubt.conf").decode()
                               .replace("hourly 48, daily 60", keep))
                future = self.take_in(2094)
                past = self.take_in(1994)
                self.good("backup")
                present = [s["id"] for s in self.sets() if s["id"] not in (past, future)]
                ended = [s["end_ms"] for s in self.sets() if s["id"] == present[0]]
                self.assertIn(f"last_success_timestamp_seconds{{target=\"nightly\"}} "
                              f"{ended[0] / 1000:.3f}\n", self.read("m.prom").decode())
                self.good("prune", "--confirm")
                self.assertIn(present[0], [s["id"] for s in self.sets()])
                self.assertTrue(all(s["good"] for s in self.sets()))
                self.good("verify")
                self.assertEqual(self.json("restore", "--dry-run", "--to", "-")[0]["id"],
                                 present[0])
                self.good("list", "--max-age", "1h")
                shutil.rmtree(os.path.join(self.repository, "nightly", "sets", present[0]))
                if future in [s["id"] for s in self.sets()]:
                    self.fails(1, "", "list", "--max-age", "1h")


if __name__ == "__main__":
    unittest.main()
