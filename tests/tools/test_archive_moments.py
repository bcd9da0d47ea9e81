"""Restores to random moments of archives with interruptions of all kinds, against what the master
had: every answer is exact or refused.

By hand, 1,000 restores: REDOUBT_MOMENTS=40 test_archive_moments.py Simulated (25 restores in each
of 40 archives of a simulated master, and as many in archives that someone without the key changes);
REDOUBT_MOMENTS_SEED is the first seed."""

import bisect
import datetime
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from archive_forgery import Forger, read  # noqa: E402
from backup_case import REDOUBT  # noqa: E402
from capture_case import Proxy, eventually  # noqa: E402

RESOLUTION = 0.5  # seconds by which an archiver may be late without a note
RUN = "20231114T221320Z-0000002a"


def ms_of(text):
    """The time of `redoubt list --json` in milliseconds."""
    when = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round(when.timestamp() * 1000)


def value_of_n(data):
    """The value of the key "n" in a snapshot."""
    at = data.index(b"\x00\x01n") + 3
    kind = data[at]
    if kind in (0xc0, 0xc1, 0xc2):
        return int.from_bytes(data[at + 1:at + 1 + (1, 2, 4)[kind - 0xc0]], "little")
    return int(data[at + 1:at + 1 + kind])


class Oracle:
    """What the master had at each time of the clock of the capture."""

    def __init__(self, text):
        self.times, self.states, self.clocks, self.events = [], [], [], []
        for line in text.splitlines():
            word, us, *rest = line.split()
            if word == "state":
                self.times.append(int(us))
                self.states.append(int(rest[0]))
            elif word == "clock":
                self.clocks.append((int(us), int(rest[0])))
            elif word == "event":
                self.events.append((int(us), rest[0]))
            else:
                self.end = int(us)

    def clock(self, us):
        return us + [ahead for since, ahead in self.clocks if since <= us][-1]

    def at(self, us):
        return self.states[bisect.bisect_right(self.times, us) - 1]

    def allowed(self, ms, lost):
        """The values of n in this millisecond of the clock. It may have come twice, or never: then
        nothing is exact. But lost segments may have been all that told that."""
        passes = []
        for i, (since, ahead) in enumerate(self.clocks):
            until = self.clocks[i + 1][0] if i + 1 < len(self.clocks) else self.end + 1
            first, last = ms * 1000 - ahead, ms * 1000 + 999 - ahead
            first, last = max(first, since), min(last, until - 1)
            if first <= last:
                passes.append(set(range(self.at(first), self.at(last) + 1)))
        if not passes:
            return set()
        return set.union(*passes) if lost else set.intersection(*passes)

    def moments(self, chance, n):
        """Random ones, and those around events and writes, in milliseconds of the clock."""
        start = self.times[0]
        for _ in range(n):
            near = chance.randrange(4)
            if near == 0 and self.events:
                us = chance.choice(self.events)[0] + chance.randrange(-3000, 3000)
            elif near == 1:
                us = chance.choice(self.times) + chance.randrange(-3000, 3000)
            else:
                us = chance.randrange(start - 5000000, self.end + 5000000)
            us = min(max(us, start), self.end)
            yield self.clock(us) // 1000 + chance.randrange(-2, 3)


class Simulated(ArchiveCase):
    sealed = False

    def archive_of(self, seed):
        for folder in (self.spool, self.repository):
            shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(self.spool)
        self.forged = []
        made = subprocess.run([os.environ["REDOUBT_MAKE_TIMELINE"], str(seed), "150",
                               os.path.join(self.spool, RUN)], capture_output=True, check=True)
        n = sum(name.endswith(".rdb") for name in os.listdir(os.path.join(self.spool, RUN)))
        self.plain = [read(p) for p in glob.glob(os.path.join(self.spool, RUN, "*.seg"))]
        self.archived(1, sealed=self.sealed, more="compress = none\n")
        running = self.start()
        eventually("the sets are there", lambda: len(self.sets()) == n)
        self.assertEqual(running.end(), 0)
        return Oracle(made.stdout.decode())

    def lose(self, chance):
        """Sets and segments that are gone."""
        gone = []
        if chance.randrange(2):
            have = self.segments()
            gone += chance.sample(have, min(len(have), chance.randrange(1, 4)))
        if chance.randrange(3) == 0:
            gone += self.segments()[:chance.randrange(1, 5)]
        self.lost = bool(gone)
        for path in set(gone):
            os.remove(path)
        sets = self.sets()
        if len(sets) > 1 and chance.randrange(3) == 0:
            gone_set = chance.choice(sets)["id"]
            shutil.rmtree(os.path.join(self.repository, "nightly", "sets", gone_set))

    def restore(self, oracle, ms, what):
        """Whether there was an answer, which is right."""
        done = self.tool("restore", "nightly", "--to", "-", "--target-time", str(ms))
        self.said = said = f"{what} {self.forged}, {ms}: {done.stderr.decode()}"
        if done.returncode != 0:
            self.assertIn(done.returncode, (1, 2) if self.forged else (2,), said)
            return False
        self.assertIn(value_of_n(done.stdout), oracle.allowed(ms, self.lost), said)
        return True

    def listed(self):
        """The moments that are certain."""
        return [(ms_of(m["from_time"]), ms_of(m["to_time"])) for s in self.streams()
                for m in s["moments"]]

    def test_answers_are_exact_or_refused(self):
        first = int(os.environ.get("REDOUBT_MOMENTS_SEED", "1"))
        answered = refused = 0
        for seed in range(first, first + int(os.environ.get("REDOUBT_MOMENTS", "2"))):
            chance = random.Random(seed)
            oracle = self.archive_of(seed)
            self.lose(chance)
            listed = self.listed()
            for ms in oracle.moments(chance, 20):
                ok = self.restore(oracle, ms, f"seed {seed}")
                answered += ok
                refused += not ok
            # What the list promises is there, unless it is there twice.
            for span in chance.sample(listed, min(len(listed), 3)):
                for ms in (span[0], span[1], chance.randrange(span[0], span[1] + 1)):
                    if sum(a <= ms <= b for a, b in listed) == 1:
                        self.assertTrue(self.restore(oracle, ms, f"seed {seed}, listed"), self.said)
                        answered += 1
        print(f"# {answered} exact, {refused} refused", flush=True)
        self.assertGreater(answered, 0)
        self.assertGreater(refused, 0)

    def set_folders(self, repository=None):
        pattern = os.path.join(repository or self.repository, "nightly", "sets", "*")
        return sorted(glob.glob(pattern))

    def of_another_target(self):
        """The segments and sets of a target with another name, and the same key."""
        self.archive_of(999)
        other = self.path("other")
        os.rename(self.repository, self.path("there"))
        config = self.read("redoubt.conf").decode().replace("[nightly]", "[weekly]")
        shutil.rmtree(self.spool)
        os.mkdir(self.spool)
        subprocess.run([os.environ["REDOUBT_MAKE_TIMELINE"], "999", "30",
                        os.path.join(self.spool, RUN)], capture_output=True, check=True)
        self.configure(config.replace(self.repository, other))
        running = self.start("weekly")
        sets = os.path.join(other, "weekly", "sets", "*", "manifest.json")
        eventually("it has a set", lambda: glob.glob(sets))
        self.assertEqual(running.end(), 0)
        return (sorted(glob.glob(os.path.join(other, "weekly", "stream", "*", "*", "*"))),
                sorted(os.path.dirname(path) for path in glob.glob(sets)))

    def change(self, chance, other):
        """Forgeries; verify must find those that can be seen."""
        self.lost = True
        must = False
        for _ in range(chance.randrange(1, 4)):
            sets = [f for f in self.set_folders() if os.path.exists(f + "/manifest.json")]
            if len(self.segments()) < 2 or not sets:
                break
            forger = Forger(chance, self.segments(), sets, self.plain, other, self.folder)
            kind, found = forger.forge()
            self.forged.append(kind)
            must = must or found
        done = self.tool("verify")
        self.assertIn(done.returncode, (1,) if must else (0, 1, 2), (self.forged, done.stdout))

    def test_answers_of_a_store_that_is_forged_are_exact_or_refused(self):
        first = int(os.environ.get("REDOUBT_MOMENTS_SEED", "1"))
        answered = refused = 0
        self.sealed = True
        other = self.of_another_target()
        for seed in range(first, first + int(os.environ.get("REDOUBT_MOMENTS", "2"))):
            chance = random.Random(seed)
            oracle = self.archive_of(seed)
            if chance.randrange(2):
                self.lose(chance)
            self.change(chance, other)
            for ms in oracle.moments(chance, 23):
                ok = self.restore(oracle, ms, f"seed {seed}")
                answered += ok
                refused += not ok
        print(f"# {answered} exact, {refused} refused", flush=True)
        self.assertGreater(answered, 0)
        self.assertGreater(refused, 0)

    def test_a_capture_is_as_exact(self):
        folder = self.path(RUN)
        answered = refused = 0
        for seed in range(3):
            shutil.rmtree(folder, ignore_errors=True)
            made = subprocess.run([os.environ["REDOUBT_MAKE_TIMELINE"], str(seed), "100", folder],
                                  capture_output=True, check=True)
            oracle = Oracle(made.stdout.decode())
            later = oracle.clock(oracle.end) // 1000 + 60000
            for ms in (later, *oracle.moments(random.Random(seed), 8)):
                done = subprocess.run([REDOUBT, "convert", folder, "--to", "rdb", "-o", "-", "--at",
                                       str(ms)], capture_output=True, check=False)
                said = f"seed {seed}, {ms}: {done.stderr.decode()}"
                if done.returncode == 2:
                    refused += 1
                    continue
                self.assertEqual(done.returncode, 0, said)
                self.assertIn(value_of_n(done.stdout), oracle.allowed(ms, False), said)
                answered += 1
        self.assertGreater(answered, 0)
        self.assertGreater(refused, 0)


class Writer(threading.Thread):
    """Counts "n" up on a server, and notes when."""

    def __init__(self, seed):
        super().__init__(daemon=True)
        self.chance = random.Random(seed)
        self.notes = []  # (sent, replied), for n = 1, 2, 3 and so on
        self.lock = threading.Lock()
        self.over = False
        self.client = None  # a function that runs a command

    def one(self):
        with self.lock:
            sent = time.time()
            n = self.client("INCR", "n")
            assert n == len(self.notes) + 1, n
            self.notes.append((sent, time.time()))

    def run(self):
        while not self.over:
            self.one()
            time.sleep(self.chance.choice((0, 0.001, 0.01, 0.03, 0.2)))

    def allowed(self, ms):
        """The lowest and the highest value in this millisecond."""
        low = sum(replied < ms / 1000 - RESOLUTION for _, replied in self.notes)
        return low, sum(sent <= (ms + 1) / 1000 for sent, _ in self.notes)


class Real(ArchiveCase):
    def setUp(self):
        super().setUp()
        self.chance = random.Random(int(os.environ.get("REDOUBT_MOMENTS_SEED", "1")))
        self.master = self.server(repl_ping_replica_period="1")
        self.replica = self.server(repl_ping_replica_period="1")
        self.replica.command("REPLICAOF", "127.0.0.1", self.master.port)
        eventually("it follows", lambda: b"link_status:up" in self.replica.command("INFO"))
        self.proxy = Proxy(self.master.port)
        self.addCleanup(self.proxy.__exit__)
        self.writer = Writer(1)
        self.faults = []

    def pause(self):
        time.sleep(self.chance.uniform(0.7, 1.3))

    def lose(self):
        self.proxy.deaf = True
        self.proxy.cut()
        self.pause()
        self.proxy.deaf = False

    def delay(self):
        """The network delivers nothing for two seconds longer than the period of PINGs, which is
        taken for ten seconds until it was measured: on a busy machine, it may not be yet."""
        self.proxy.pause = 13
        time.sleep(0.5)
        self.proxy.pause = 0
        time.sleep(13)

    def stop(self):
        self.running.process.send_signal(signal.SIGSTOP)
        self.pause()
        self.running.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.running.kill()
        self.pause()
        self.running = self.start()

    def freeze(self):
        self.master.process.send_signal(signal.SIGSTOP)
        self.pause()
        self.master.process.send_signal(signal.SIGCONT)

    def fail_over(self):
        with self.writer.lock:
            eventually("it has all", lambda: self.offset(self.replica) >= self.offset(self.master))
            self.proxy.deaf = True
            self.proxy.cut()
            self.master.stop()
            self.replica.command("REPLICAOF", "NO", "ONE")
            self.writer.client = self.replica.command
            self.proxy.target = self.replica.port
        self.pause()
        self.proxy.deaf = False

    def ask(self, ms):
        done = self.tool("restore", "nightly", "--to", "-", "--target-time", str(ms))
        said = f"{ms}: {done.stderr.decode()}"
        if done.returncode != 0:
            self.assertEqual(done.returncode, 2, said)
            return False
        low, high = self.writer.allowed(ms)
        n = value_of_n(done.stdout)
        self.assertTrue(low <= n <= high, f"{low} <= {n} <= {high}: {said}{self.faults}")
        return True

    def test_answers_about_a_server_are_exact_or_refused(self):
        self.writer.client = self.master.command
        self.writer.one()
        self.archived(self.proxy.port, sealed=False, more="base-interval = 5s\n")
        self.running = self.start()
        self.running.says("snapshot received")
        time.sleep(7)  # until the period is known: Redis 8 sends PING while nothing is written
        began = time.time()
        self.writer.start()
        for fault in (self.delay, self.lose, self.stop, self.kill, self.freeze, self.fail_over):
            self.pause()
            self.faults.append((fault.__name__, int(time.time() * 1000)))
            fault()
        self.pause()
        self.writer.over = True
        self.writer.join()
        ended = time.time()
        self.wait_for(self.replica)
        self.assertEqual(self.running.end(), 0)
        n = int(os.environ.get("REDOUBT_MOMENTS_REAL", "25"))
        answers = [self.ask(self.chance.randrange(int(began * 1000), int(ended * 1000)))
                   for _ in range(n)]
        print(f"# {sum(answers)} exact, {n - sum(answers)} refused", flush=True)
        self.assertGreater(sum(answers), 0)
        self.assertLess(sum(answers), n)


if __name__ == "__main__":
    unittest.main()
