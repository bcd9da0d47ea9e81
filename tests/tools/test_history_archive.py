"""`redoubt history` and `redoubt blame` of the stream that `redoubt archive` keeps."""

import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402


class Archived(ArchiveCase):
    def lines(self, tool, *args, status=0):
        done = self.tool(tool, *args, "--json")
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return [json.loads(line) for line in done.stdout.splitlines()]

    def events(self, *args):
        return [v["event"] for v in self.lines("history", *args, "--in", "nightly")]

    def archive(self, server, *batches):
        """Each batch ends a segment."""
        running = self.start()
        for batch in batches:
            self.wait_for(server)
            for line in batch:
                server.command(*line.split())
        self.wait_for(server)
        self.assertEqual(running.end(), 0)

    def check_all(self, sealed):
        server = self.server()
        server.command("SET", "old", "before")
        self.archived(server.port, sealed=sealed)
        self.archive(server, ["HSET k a 1 b 2", "SET other x"], ["HSET k a 3"],
                     ["RENAME k l", "APPEND old y"])
        self.assertEqual(self.events("k"), ["created", "changed", "moved_away"])
        self.assertEqual(self.events("old"), ["snapshot", "changed"])
        self.assertEqual(self.events("--match", "o*", "-n", "1"), ["changed"])
        parts = self.lines("blame", "l", "--in", "nightly")
        self.assertEqual([(p["field"], p["value"], p["command"]) for p in parts],
                         [("a", "3", "HSET"), ("b", "2", "HSET")])
        self.assertGreater(parts[0]["offset"], parts[1]["offset"])
        parts = self.lines("blame", "old", "--in", "nightly")
        self.assertTrue(parts[0]["snapshot"])
        self.assertEqual(parts[1]["command"], "APPEND")
        self.assertEqual(self.lines("history", "none", "--in", "nightly", status=1), [])

    def test_sealed(self):
        self.check_all(True)

    def test_not_sealed(self):
        self.check_all(False)

    def test_a_later_set_is_the_beginning_of_what_is_asked_for(self):
        server = self.server()
        self.archived(server.port)
        self.archive(server, ["SET k 1"], ["SET k 2"])
        time.sleep(0.01)
        self.good("backup", "nightly")
        since = str(int(time.time() * 1000))
        time.sleep(0.01)
        self.archive(server, ["SET k 3"])
        self.assertEqual(self.events("k"), ["created", "changed", "changed"])
        self.assertEqual(self.events("k", "--since", since), ["changed"])
        segments = self.segments()
        os.unlink(segments[0])  # before the set
        self.assertEqual(self.events("k", "--since", since), ["changed"])

    def test_a_damaged_segment_is_an_error(self):
        server = self.server()
        self.archived(server.port)
        self.archive(server, ["SET k 1"], ["SET k 2"])
        path = self.segments()[-1]
        with open(path, "r+b") as f:
            f.seek(os.path.getsize(path) // 2)
            byte = f.read(1)
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte[0] ^ 1]))
        self.assertEqual(self.tool("history", "k", "--in", "nightly").returncode, 1)

    def test_undo(self):
        server = self.server()
        self.archived(server.port)
        self.archive(server, ["HSET k a 1 b 1", "SET l x"], ["DEL k", "SET m y"], ["SET l z"])
        versions = self.lines("history", "k", "--in", "nightly")
        self.assertEqual([v["event"] for v in versions], ["created", "removed"])
        place = f"{versions[1]['chapter']}:{versions[1]['offset']}"
        save = self.path("back.resp")
        undo = ("undo", "--command", place, "--in", "nightly", "--to",
                f"redis://127.0.0.1:{server.port}", "--save", save)
        plan = self.lines(*undo, "--dry-run")
        self.assertEqual([p["key"] for p in plan], ["k"])
        self.assertEqual(server.command("EXISTS", "k"), 0)
        self.good(*undo)
        self.assertEqual(server.command("HMGET", "k", "a", "b"), [b"1", b"1"])
        self.assertEqual(server.command("GET", "l"), b"z")
        self.assertTrue(os.path.exists(save))

    def test_undo_of_a_time(self):
        server = self.server()
        self.archived(server.port)
        self.archive(server, ["SET cart:1 a", "SET user:1 a"], ["DEL cart:1 user:1"])
        removed = self.lines("history", "cart:1", "--in", "nightly")[-1]
        at = str(removed["time_us"] // 1000)
        self.good("undo", "--from", at, "--until", at, "--prefix", "cart:", "--in", "nightly",
                  "--to", f"redis://127.0.0.1:{server.port}", "--save", self.path("back.resp"))
        self.assertEqual(server.command("MGET", "cart:1", "user:1"), [b"a", None])

    def test_without_a_stream(self):
        server = self.server()
        self.archived(server.port)
        self.good("backup", "nightly")
        self.fails(2, "nightly has no stream", "history", "k", "--in", "nightly")
        self.fails(2, "nowhere", "history", "k", "--in", "nowhere")

    def test_nothing_stays(self):
        server = self.server()
        self.archived(server.port)
        self.archive(server, ["SET k 1"])
        folder = self.path("tmp")
        os.mkdir(folder)
        os.environ["TMPDIR"] = folder
        self.addCleanup(os.environ.pop, "TMPDIR")
        self.assertEqual(self.events("k"), ["created"])
        self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
