"""The small segments of a stream are merged into larger ones: what could be restored stays so, also
if processes are killed at any moment."""

import hashlib
import os
import random
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from backup_case import REDOUBT  # noqa: E402
from capture_case import Load, acknowledged, eventually  # noqa: E402
import ssh_server  # noqa: E402
from s3_server import S3Server  # noqa: E402

AT_ONCE = "merge-grace = 0s\n"


class MergeCase(ArchiveCase):
    def numbers(self):
        """(first, last) of the segments of the folder, by their names."""
        found = []
        for path in self.segments():
            numbers = re.match(r"([0-9-]+)\.seg", os.path.basename(path)).group(1).split("-")
            found.append((int(numbers[0]), int(numbers[-1] if len(numbers) == 8 else numbers[0])))
        return sorted(found)

    def moments_listed(self):
        """What `list` says about the stream, without how it is stored."""
        return [{k: v for k, v in s.items() if k not in ("segments", "stored_bytes")}
                for s in self.streams()]

    def small(self, server, n):
        """Archives n segments or more, with a batch in each; returns the moments."""
        load = Load(server.port, seed=n)
        found = []
        while len(self.segments()) < n:
            before = len(self.segments())
            server.command("APPEND", "grows", "x")
            self.load(server, [load.one() for _ in range(load.random.randrange(1, 20))])
            offset, digest = self.moment(server)
            acknowledged(server)
            time.sleep(0.002)
            found.append((offset, int(time.time() * 1000), digest))
            eventually("a segment", lambda b=before: len(self.segments()) > b)
        return found

    def check_moments(self, moments, n):
        for offset, _, digest in random.Random(n).sample(moments, min(n, len(moments))):
            self.check(digest, "--target-offset", str(offset))

    def answers(self, moments, n):
        """What restores to some times give, or that they are refused."""
        found = []
        for _, ms, _ in random.Random(n).sample(moments, min(n, len(moments))):
            done = self.tool("restore", "nightly", "--to", "-", "--target-time", str(ms))
            self.assertIn(done.returncode, (0, 2), done.stderr)
            found.append((ms, done.returncode, hashlib.sha256(done.stdout).hexdigest()))
        return found

    def is_sound(self):
        """The stream is one, and everything in it is good."""
        streams = self.streams()
        self.assertEqual(len(streams), 1, streams)
        self.good("verify", "nightly")


class TestArchiveMerge(MergeCase):
    def archive(self, n, more="", sealed=True):
        server = self.server()
        self.archived(server.port, sealed=sealed, more="merge = no\n" + more)
        running = self.start()
        running.says("snapshot received")
        moments = self.small(server, n)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        return moments

    def merge(self, more=AT_ONCE):
        text = self.read("redoubt.conf").decode().replace("merge = no\n", "")
        self.configure(re.sub("merge-grace.*\n", "", text) + more)
        return self.good("prune", "nightly", "--confirm").decode()

    def test_prune_merges_a_stream_that_no_service_archives(self):
        moments = self.archive(36, more="compress = zstd\n")
        before, streams = self.segments(), self.moments_listed()
        history = self.good("history", "grows", "--in", "nightly")
        answers = self.answers(moments, 8)
        said = self.merge("merge-grace = 1h\n")
        self.assertIn("merged", said)
        # The small ones stay beside the larger ones, and each command is listed once.
        self.assertEqual(set(before) - set(self.segments()), set())
        self.assertEqual(self.moments_listed(), streams)
        self.is_sound()
        self.check_moments(moments, 4)
        self.assertNotIn("merged", self.good("prune", "nightly", "--confirm").decode())
        # After the grace time only what is not in them stays.
        self.assertIn("removed", self.merge())
        numbers = self.numbers()
        self.assertLess(len(numbers), len(before) / 2)
        for (_, last), (first, _) in zip(numbers, numbers[1:]):
            self.assertEqual(first, last + 1, numbers)
        self.assertTrue(any(last - first >= 8 for first, last in numbers), numbers)
        self.assertEqual(self.moments_listed(), streams)
        self.is_sound()
        self.check_moments(moments, 8)
        self.assertEqual(self.answers(moments, 8), answers)
        self.assertEqual(self.good("history", "grows", "--in", "nightly"), history)
        # Each has its index of keys, and no other index is left.
        keys = os.path.join(self.repository, "nightly", "keys")
        names = [name for _, _, files in os.walk(keys) for name in files]
        self.assertEqual(len(names), len(numbers), names)
        # The service goes on after them.
        running = self.start()
        running.says("resuming at offset")
        self.assertEqual(running.end(), 0)
        self.is_sound()

    def test_a_stream_that_is_not_sealed_is_merged_and_stays_readable_by_others(self):
        moments = self.archive(20, more="compress = lz4\n", sealed=False)
        self.merge()
        merged = max(self.segments(), key=os.path.getsize)
        self.assertRegex(merged, r"-\d+\.seg\.lz4$")
        plain = subprocess.run(["lz4", "-dc", merged], capture_output=True, check=True).stdout
        self.assertEqual(plain[:8], b"RDCAPT\r\n")
        self.is_sound()
        self.check_moments(moments, 4)

    def test_what_is_not_sealed_does_not_become_so(self):
        self.archive(20, sealed=False)
        before = self.segments()
        key = self.write("key", b"17" * 32 + b"\n")
        text = self.read("redoubt.conf").decode()
        self.configure(text + f"key-file = {key}\n")
        self.merge()
        self.good("prune", "nightly", "--confirm", "--allow-unsealed")
        self.assertEqual(self.segments(), before)

    def flip(self, path):
        data = bytearray(self.read(path))
        data[len(data) // 2] ^= 1
        self.write(path, bytes(data))

    def test_a_damaged_segment_is_not_merged_and_nothing_is_removed_for_it(self):
        self.archive(20)
        victim = self.segments()[5]
        self.flip(victim)
        text = self.read("redoubt.conf").decode().replace("merge = no\n", "")
        self.configure(text + AT_ONCE)
        done = self.tool("prune", "nightly", "--confirm")
        self.assertIn(b"not merged", done.stderr)
        self.assertIn(victim, self.segments())
        numbers = self.numbers()
        self.assertIn((6, 6), numbers)
        for (_, last), (first, _) in zip(numbers, numbers[1:]):
            self.assertEqual(first, last + 1, numbers)

    def test_a_merged_segment_that_is_damaged_removes_nothing(self):
        self.archive(20)
        before = self.segments()
        self.merge("merge-grace = 1h\n")
        for merged in set(self.segments()) - set(before):
            self.flip(merged)
        text = self.read("redoubt.conf").decode()
        self.configure(text.replace("merge-grace = 1h\n", AT_ONCE))
        self.tool("prune", "nightly", "--confirm")
        self.assertEqual(set(before) - set(self.segments()), set())

    def test_the_service_merges_what_it_archives(self):
        server = self.server()
        self.archived(server.port, more=AT_ONCE)
        running = self.start()
        running.says("snapshot received")
        moments = []
        load = Load(server.port, seed=7)
        deadline = time.time() + 120
        while time.time() < deadline and not any(a != b for a, b in self.numbers()):
            self.load(server, [load.one() for _ in range(9)])
            offset, digest = self.moment(server)
            acknowledged(server)
            time.sleep(0.002)
            moments.append((offset, int(time.time() * 1000), digest))
            time.sleep(0.5)
        self.assertTrue(any(a != b for a, b in self.numbers()), self.numbers())
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        self.is_sound()
        self.check_moments(moments, 6)

    def test_kills_at_any_moment_lose_and_double_nothing(self):
        server = self.server()
        self.archived(server.port, more=AT_ONCE + "lock-wait = 20s\n")
        chance = random.Random(20)
        moments, kills = [], 0
        load = Load(server.port, seed=20)
        deadline = time.time() + 150
        running = self.start()
        running.says("snapshot received")
        eventually("the base is there", self.sets)
        while time.time() < deadline and (kills < 12 or not any(a != b for a, b in self.numbers())):
            for _ in range(chance.randrange(2, 6)):
                self.load(server, [load.one() for _ in range(chance.randrange(1, 20))])
                offset, digest = self.moment(server)
                time.sleep(0.002)
                moments.append((offset, int(time.time() * 1000), digest))
                time.sleep(chance.random())
            if chance.randrange(3) == 0:
                other = subprocess.Popen([REDOUBT, "prune", "nightly", "--confirm", "--config",
                                          self.config], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
                time.sleep(chance.random() * 0.3)
                other.kill()
                other.wait()
            running.kill()
            kills += 1
            running = self.start()
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        self.merge()
        self.merge()
        self.assertTrue(any(a != b for a, b in self.numbers()), self.numbers())
        self.is_sound()
        for offset, _, digest in chance.sample(moments, 12):
            self.check(digest, "--target-offset", str(offset))


class Remote:
    """The same for every store that is elsewhere."""

    def test_what_could_be_restored_stays_so(self):
        server = self.server()
        self.archived(server.port, more="merge = no\n" + self.there())
        running = self.start()
        running.says("snapshot received")
        load = Load(server.port, seed=3)
        moments = []
        while len(moments) < 18:
            self.load(server, [load.one() for _ in range(load.random.randrange(1, 20))])
            offset, digest = self.moment(server)
            acknowledged(server)
            time.sleep(0.002)
            moments.append((offset, int(time.time() * 1000), digest))
            self.wait_for(server)
        self.assertEqual(running.end(), 0)
        streams = self.moments_listed()
        answers = self.answers(moments, 5)
        said = []
        for grace in ("1h", "0s"):
            text = re.sub("merge.*\n", "", self.read("redoubt.conf").decode())
            self.configure(text + f"merge-grace = {grace}\n")
            said.append(self.good("prune", "nightly", "--confirm").decode())
            self.assertEqual(self.moments_listed(), streams)
            self.is_sound()
        self.assertIn("merged", said[0])
        self.assertRegex(said[1], "removed [1-9]")
        self.check_moments(moments, 5)
        self.assertEqual(self.answers(moments, 5), answers)


class InS3(Remote, MergeCase):
    def there(self):
        s3 = S3Server()
        s3.__enter__()
        self.addCleanup(s3.__exit__, None, None, None)
        self.write("s3key", f"{s3.access_key}\n{s3.secret_key}\n")
        self.repository = "s3://vault/some/where"
        return f"s3-endpoint = {s3.url}\ns3-key-file = {self.path('s3key')}\n"


@unittest.skipIf(ssh_server.missing(), ssh_server.missing())
class BySFTP(Remote, MergeCase):
    def there(self):
        ssh = ssh_server.SSHServer()
        ssh.__enter__()
        self.addCleanup(ssh.__exit__)
        folder = self.path("there")
        os.mkdir(folder)
        self.repository = f"sftp://{ssh.user}@127.0.0.1:{ssh.port}{folder}"
        return (f"ssh-key-file = {ssh.key}\n"
                f"ssh-known-hosts = {ssh.known_hosts}\n")


if __name__ == "__main__":
    unittest.main()
