"""redoubt backup of servers that refuse replicas, key by key."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from capture_case import Load  # noqa: E402
from fake_server import FakeServer  # noqa: E402
from redis_server import RedisServer, installed  # noqa: E402
from test_diff_server import Story, text  # noqa: E402


class Scan(ArchiveCase):
    def scanned(self, port, user=""):
        self.nightly(source=f"redis://{user}127.0.0.1:{port}", more="scan = yes\n")

    def test_a_server_that_refuses_replicas_is_read_key_by_key(self):
        server = self.server()
        load = Load(server.port)
        self.load(server, [load.one() for _ in range(2000)])
        server.command("FUNCTION", "LOAD", "#!lua name=f\nredis.register_function('g', "
                       "function() return 1 end)")
        server.command("ACL", "SETUSER", "hosted", "on", ">secret", "~*", "+@all", "-psync",
                       "-sync", "-replconf")
        self.nightly(source=f"redis://hosted:secret@127.0.0.1:{server.port}")
        self.fails(6, "redoubt", "backup")
        self.scanned(server.port, "hosted:secret@")
        self.good("backup")
        reported = self.sets()[0]
        self.assertEqual((reported["one_moment"], reported["replid"], reported["data_ms"]),
                         (False, None, 0))
        self.assertEqual(reported["server"], " ".join(installed()))
        self.assertIn(b"not one moment", self.good("list"))
        self.good("verify", "--level", "parse")
        digest = server.command("DEBUG", "DIGEST")
        out = self.path("out.rdb")
        self.assertIn(b"different times", self.tool("restore", "--to", out).stderr)
        with RedisServer() as other:
            other.load(out)
            self.assertEqual(other.command("DEBUG", "DIGEST"), digest)
            self.assertEqual(len(other.command("FUNCTION", "LIST")), 1)

    def test_an_ordinary_set_is_of_one_moment(self):
        self.nightly()
        self.good("backup")
        self.assertTrue(self.sets()[0]["one_moment"])

    def test_a_key_that_scan_returns_twice_is_stored_once(self):
        story = Story({b"a": [(text(b"1"), LATER, LATER)], b"b": text(b"2"), b"c": text(b"3")},
                      scans=[[b"a", b"b"], [b"b", b"c", b"a"]])
        with FakeServer(story) as server:
            self.scanned(server.port)
            self.good("backup")
        self.assertEqual(self.sets()[0]["keys"], 3)
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out.rdb"), "--rdb-version", "10")
        with RedisServer() as other:
            other.load(self.path("out.rdb"))
            self.assertEqual(sorted(other.command("KEYS", "*")), [b"a", b"b", b"c"])
            self.assertGreater(other.command("PTTL", "a"), 0)

    def test_an_unreadable_key_makes_no_set(self):
        story = Story({b"a": text(b"1"), b"m": b"\x63what\x0b\0" + bytes(8)})
        with FakeServer(story) as server:
            self.scanned(server.port)
            done = self.tool("backup")
        self.assertIn(done.returncode, (4, 6))
        self.assertEqual(self.sets(), [])

    def test_what_does_not_go_with_it(self):
        self.nightly(more="scan = yes\n")
        self.fails(2, "scan needs the URL of a server", "backup")
        self.nightly(source="redis://127.0.0.1:1", more="scan = yes\ncluster = yes\n")
        self.fails(2, "cannot be combined", "backup")
        self.nightly(source="redis://127.0.0.1:1", more=f"scan = yes\nspool = {self.spool}\n")
        self.fails(4, "no stream", "archive")
        self.nightly(more="scan = maybe\n")
        self.fails(2, "must be yes or no", "backup")


LATER = 4102444800000

if __name__ == "__main__":
    unittest.main()
