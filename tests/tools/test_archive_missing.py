"""What is missing in a repository, or is there twice: segments, keys, sets, histories."""

import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from backup_case import SNAPSHOT  # noqa: E402
from capture_case import eventually  # noqa: E402
from captures import command  # noqa: E402

START = 1700000000


class Missing(ArchiveCase):
    def ship(self, run, digit, words, step_us=1000000, more=()):
        """A stream of a SET each second, in a repository."""
        os.makedirs(self.spool, exist_ok=True)
        stream = b"".join(command("SET", "k", w) for w in words) + command("PING")
        made = subprocess.run(
            [os.environ["REDOUBT_MAKE_CAPTURE"], os.path.join(self.spool, run), digit, "0",
             SNAPSHOT, str(START * 1000000), str(step_us), self.write("stream.resp", stream),
             "600", *more], check=False)
        self.assertEqual(made.returncode, 0)
        self.archived(1, sealed=False)
        n = len(self.sets()) if os.path.isdir(self.repository) else 0
        running = self.start()
        eventually("the set is there", lambda: len(self.sets()) > n)
        self.assertEqual(running.end(), 0)

    def test_a_missing_segment_is_a_finding(self):
        self.ship("20231114T221320Z-0000002a", "a", range(100))
        self.assertGreater(len(self.segments()), 5)
        self.good("verify", "--level", "list")
        self.good("list")
        data = self.path("data")
        os.mkdir(data)
        shutil.copy(SNAPSHOT, os.path.join(data, "dump.rdb"))
        doctor = ("doctor", data, "--target", "nightly", "--json", "--max-age", "99999d")
        os.remove(self.segments()[2])
        done = self.tool("verify", "--level", "list")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"1 segment is missing before it", done.stdout)
        listed, status = self.json("list")
        self.assertEqual(status, 1)
        self.assertEqual([s["missing_segments"] for s in listed["streams"]], [0, 1])
        done = self.tool(*doctor)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"1 segment of the stream of nightly missing", done.stdout)
        # The beginning of a chain may go.
        for path in self.segments()[:2]:
            os.remove(path)
        self.good("verify", "--level", "list")
        self.good("list")

    def test_a_moment_in_a_hole_or_before_the_archive_is_refused(self):
        self.ship("20231114T221320Z-0000002a", "a", range(100))
        out = self.path("out.rdb")
        at = ("restore", "nightly", "--to", out, "--force", "--target-time")
        self.good(*at, str(START + 20))
        self.fails(2, "nearest known moment", *at, str(START - 86400))
        whole = self.streams()[0]
        gone = self.segments()[3]
        first, latest = (int(n) for n in os.path.basename(gone).split(".")[0].split("-")[3:5])
        os.remove(gone)
        self.fails(2, "nearest known moment", *at, str((first + latest) // 2))
        self.fails(2, "is not known", *at, str(latest + 1000))
        self.good(*at, str(first - 1500))
        end = int(os.path.basename(gone).split("-")[2])
        self.fails(2, "is not archived", "restore", "--to", out, "--target-offset", str(end))
        self.fails(2, "is not archived", "restore", "--to", out, "--before-command",
                   str(whole["to_offset"] - 14))
        # Without its first segments, a chain does not have the moments before it.
        for path in self.segments()[:1]:
            os.remove(path)
        self.fails(2, "no set from which the stream reaches", *at, str(START - 86400))
        self.fails(2, "no set from which the stream reaches", *at, str(START + 60))

    def test_a_moment_in_two_histories_is_refused_with_the_choice(self):
        self.ship("20231114T221320Z-0000002a", "a", ["first"] * 60)
        self.ship("20231114T221321Z-0000002b", "b", ["other"] * 60)
        out = self.path("out.rdb")
        at = ("restore", "nightly", "--to", out, "--force", "--target-time", str(START + 30))
        done = self.fails(2, "is in more than one history", *at)
        self.assertIn(f"--replid {40 * 'a'} or --replid {40 * 'b'}".encode(), done.stderr)
        for digit, word in (("a", b"first"), ("b", b"other")):
            self.good(*at, "--replid", digit)
            self.assertIn(word, self.read("out.rdb"))
        self.fails(2, "more than one history", "restore", "--to", out, "--target-offset", "200")

    def test_a_silence_in_an_archive_of_an_older_version_is_not_trusted(self):
        self.ship("20231114T221320Z-0000002a", "a", range(20), step_us=5000000, more=("1",))
        at = ("restore", "nightly", "--to", self.path("out.rdb"), "--force", "--target-time")
        done = self.tool(*at, str(START + 12))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"did not record interruptions", done.stderr)
        self.assertIn(b"except in interruptions that an older version did not record",
                      self.good("list"))
        self.assertFalse(self.streams()[0]["outages_recorded"])
        for folder in (self.spool, self.repository):
            shutil.rmtree(folder)
        self.ship("20231114T221320Z-0000002a", "a", range(20), step_us=20000000, more=("1",))
        self.fails(2, "was not recorded", *at, str(START + 31))
        # The times of a log are those of its annotations, and silence has no meaning.
        for folder in (self.spool, self.repository):
            shutil.rmtree(folder)
        self.ship("20231114T221320Z-0000002a", "a", range(20), step_us=20000000)
        self.good(*at, str(START + 31))

    def test_sets_with_other_keys_are_counted(self):
        self.nightly()
        self.good("backup")
        first = self.sets()[-1]["id"]
        old = self.read("key")
        os.remove(self.key)
        self.make_key()
        done = self.tool("backup")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"1 set in", done.stderr)
        self.assertIn(b"cannot be restored with the given keys", done.stderr)
        second = self.sets()[-1]["id"]
        done = self.tool("verify", "--level", "parse")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"{first}: not verified".encode(), done.stdout)
        self.assertIn(f"{second}: ok".encode(), done.stdout)
        self.assertIn(b"1 set and 0 segments are sealed with keys that are not given", done.stderr)
        report, status = self.json("verify", "--level", "parse")
        self.assertEqual((status, report["good"], report["unknown_keys"]), (2, 1, 1))
        self.write("key", self.read("key") + old)
        self.good("verify", "--level", "parse")
        done = self.tool("backup")
        self.assertNotIn(b"cannot be restored", done.stderr)

    def test_a_set_that_prune_keeps_has_its_stream(self):
        """A key that is not given may be given again, and a mark of damage may be forged."""
        server = self.server()
        self.archived(server.port)
        running = self.start()
        moments = self.moments(server, 4, pause=1.1)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        base, segments, old = self.sets()[0]["id"], self.segments(), self.read("key")
        marks = os.path.join(self.repository, "nightly", "marks")
        self.good("backup", "--source", self.snapshot())
        os.makedirs(marks, exist_ok=True)
        self.write(os.path.join(marks, base + ".damaged"), "")
        self.good("prune", "--confirm", "--keep", "count 2")
        self.assertEqual(self.segments(), segments)
        self.good("verify")
        os.remove(self.key)
        self.make_key()
        self.good("backup", "--source", self.snapshot())
        done = self.tool("prune", "--confirm", "--keep", "count 1")
        self.assertIn(b"not proved", done.stdout)
        self.assertEqual(self.segments(), segments)
        self.write("key", self.read("key") + old)
        self.check(moments[1][2], "--target-time", str(moments[1][1]))
        self.good("prune", "--confirm", "--keep", "count 1")
        self.assertLess(len(self.segments()), len(segments))

    def snapshot(self):
        return os.path.abspath(SNAPSHOT)

    def test_the_newest_set_has_a_key_that_is_not_given(self):
        """It is not replaced by an older one without a word, and the way out is named."""
        self.nightly()
        self.good("backup")
        self.good("backup")
        given = self.read("key")
        os.remove(self.key)
        self.make_key()
        self.good("backup")
        self.write("key", given)
        older, newest = (s["id"] for s in self.sets()[-2:])
        ids = [s["key_id"] for s in self.sets()[-2:]]
        out = self.path("out.rdb")
        done = self.fails(2, newest, "restore", "nightly", "--to", out)
        for text in (f"--set {older}", *ids):
            self.assertIn(text.encode(), done.stderr)
        self.assertFalse(os.path.exists(out))
        self.good("restore", "nightly", "--to", out, "--set", older)
        for level in ("digest", "parse"):
            done = self.tool("verify", "--level", level)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{newest}: not verified".encode(), done.stdout)
            self.assertIn(f"{older}: ok".encode(), done.stdout)
        self.fails(0, f"the newest one, {newest}, with the key {ids[1]}", "list")

    def test_a_moment_is_restored_from_a_set_whose_key_is_given(self):
        """What the stream gives does not depend on the set."""
        server = self.server()
        self.archived(server.port)
        running = self.start()
        running.says("snapshot received")
        eventually("the base is there", self.sets)
        given = self.read("key")
        os.remove(self.key)
        self.make_key()
        self.good("backup", "--lock-wait", "10m")
        self.write("key", given)
        offset, _, digest = self.moments(server, 1)[0]
        eventually("all is there", lambda: self.shipped(offset))
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))
        self.assertEqual(len(self.sets()), 2)
        self.fails(2, self.sets()[-1]["id"], "restore", "nightly", "--to", "-", "--target-offset",
                   str(offset), "--set", self.sets()[-1]["id"])

    def test_the_newest_segments_are_removed(self):
        """A stream that ends earlier looks the same, until the next run: it uploads again what its
        spool has, and the rest is a gap."""
        server = self.server()
        self.archived(server.port)
        running = self.start()
        moments = []
        while len(self.segments()) < 4:
            moments += self.moments(server, 1)
            offset = moments[-1][0]
            eventually("it is there", lambda at=offset: self.shipped(at))
        self.assertEqual(running.end(), 0)
        removed = self.segments()[-2:]
        for path in removed:
            os.remove(path)
        self.good("verify")
        end = self.streams()[-1]["end"]
        self.fails(2, "is not archived", "restore", "nightly", "--to", "-", "--target-offset",
                   str(moments[-1][0]))
        kept = [m for m in moments if m[0] <= end][-1]
        self.check(kept[2], "--target-offset", str(kept[0]))
        running = self.start()
        running.says("1 segment before offset")
        offset, _, digest = self.moments(server, 1)[0]
        eventually("all is there", lambda: self.shipped(offset))
        self.assertEqual(running.end(), 0)
        self.assertIn(removed[1], self.segments())
        self.fails(1, "1 segment is missing before it", "verify")
        self.fails(1, "1 segment of the stream is missing", "list")
        self.check(digest, "--target-offset", str(offset))
        self.fails(2, "is not archived", "restore", "nightly", "--to", "-", "--target-offset",
                   str(end + 1))


if __name__ == "__main__":
    unittest.main()
