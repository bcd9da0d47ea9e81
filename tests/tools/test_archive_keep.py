"""The retention of the stream of its own: keep-stream."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from capture_case import eventually  # noqa: E402


class ArchiveKeep(ArchiveCase):
    def setUp(self):
        super().setUp()
        master = self.server()
        self.archived(master.port, more="base-interval = 1s\nmerge = no\n")
        text = self.read("redoubt.conf").decode()
        self.configure(text.replace("hourly 48, daily 60", "count 99"))
        running = self.start()
        self.found = []
        for i in range(4):
            master.command("SET", "a", i)
            eventually("one more set", lambda n=i: len(self.sets()) > n)
            self.wait_for(master)
            self.found.append(self.moment(master))
        self.assertEqual(running.end(), 0)
        self.wanted = min(self.found[-1][0], self.streams()[-1]["to_offset"])

    def stays(self, n_sets):
        """All sets, and the newest moment."""
        self.assertEqual(len(self.sets()), n_sets)
        self.check(self.found[-1][1], "--target-offset", str(self.wanted))
        self.good("verify", "--level", "parse")
        for found in self.sets():
            self.good("restore", "nightly", "--set", found["id"], "--to", "-")

    def test_a_time(self):
        sets, segments = self.sets(), self.segments()
        before = self.streams()[0]
        self.good("prune", "--confirm", "--keep-stream", "60m")
        self.assertEqual(self.segments(), segments)
        self.good("prune", "--keep-stream", "1s")
        self.assertEqual(self.segments(), segments)
        self.assertIn(b"of the stream", self.good("prune", "--confirm", "--keep-stream", "1s"))
        self.assertLess(len(self.segments()), len(segments))
        stream = self.streams()[0]
        self.assertGreater(stream["from_offset"], before["from_offset"])
        self.assertEqual(stream["to_offset"], before["to_offset"])
        # It begins with a set, and the moments before it are not promised any more.
        self.assertIn(stream["from_offset"], [s["offset"] for s in sets])
        self.assertGreater(stream["moments"][0]["from_time"], before["moments"][0]["from_time"])
        self.stays(len(sets))
        self.fails(2, "nearest archived offset", "restore", "nightly", "--to", self.path("x"),
                   "--target-offset", str(before["from_offset"] + 1))

    def test_a_size(self):
        sets, segments = self.sets(), self.segments()
        self.good("prune", "--confirm", "--keep-stream", "1gb")
        self.assertEqual(self.segments(), segments)
        self.good("prune", "--confirm", "--keep-stream", "1b")
        # From the segment of the newest set on, however large that is.
        stream = self.streams()[0]
        newest = max(s["offset"] for s in sets if s["offset"] <= stream["end"])
        self.assertTrue(stream["start"] <= stream["from_offset"] <= newest, (stream, newest))
        self.assertLessEqual(stream["segments"], 2)
        self.assertLess(len(self.segments()), len(segments))
        self.stays(len(sets))

    def test_what_is_neither_is_refused(self):
        self.fails(2, "neither a time", "prune", "--confirm", "--keep-stream", "much")
        self.fails(2, "two times", "prune", "--confirm", "--keep-stream", "1d, 2d")


if __name__ == "__main__":
    unittest.main()
