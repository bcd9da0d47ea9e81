"""The shards of a cluster, each archived as a target, and restored to one time."""

import copy
import glob
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from capture_case import acknowledged, eventually  # noqa: E402
from redis_server import RedisServer  # noqa: E402
from test_archive_moments import ms_of  # noqa: E402
from test_backup_cluster import TAGS, ClusterCase, Writer  # noqa: E402

SHARDS = ("first", "second", "third")
HALF_A_SECOND = 500_000


class Shards(ClusterCase):
    def archive_all(self, nodes):
        text = f"repository = {self.repository}\narchive-interval = 1s\n"
        for name, node in zip(SHARDS, nodes):
            text += (f"[{name}]\nsource = redis://127.0.0.1:{node.port}\n"
                     f"spool = {self.path(name)}\n")
        self.configure(text)
        running = [self.start(name) for name in SHARDS]
        for one in running:
            one.says("snapshot received")
        return running

    def archived_cluster(self, n=40):
        """Three shards with n keys each, and more on the second one after the moment."""
        nodes = self.cluster()
        self.fill(nodes, n)
        running = self.archive_all(nodes)
        for node, tag in zip(nodes, TAGS):
            node.command("SET", "last" + tag, "1")
        moment = self.known_moment(nodes)
        nodes[1].command("SET", "later" + TAGS[1], "1")
        return nodes, running, moment

    def is_known(self, moment, nodes):
        """Whether all archives have this time. On a busy machine one may have an interruption."""
        for name, node in zip(SHARDS, nodes):
            offset = self.offset(node)
            eventually("it is archived", lambda n=name, o=offset: any(
                s["end"] >= o for s in self.streams_of(n)))
            if not any(ms_of(m["from_time"]) <= moment < ms_of(m["to_time"])
                       for s in self.streams_of(name) for m in s["moments"]):
                return False
        return True

    def streams_of(self, name):
        return [s for s in self.json("list", name)[0]["streams"] if s["bases"]]

    def known_moment(self, nodes):
        """A time that all archives have, with all that was written before."""
        while True:
            for node in nodes:
                acknowledged(node)
            time.sleep(0.7)
            moment = int(time.time() * 1000)
            time.sleep(0.7)
            for node, tag in zip(nodes, TAGS):
                node.command("DEL", "none" + tag)
                node.command("PUBLISH", "c", "x")
                acknowledged(node)
            if self.is_known(moment, nodes):
                return moment

    def another_connection(self, node):
        other = copy.copy(node)
        other.socket = None
        other._connect()  # pylint: disable=protected-access
        self.addCleanup(other._disconnect)  # pylint: disable=protected-access
        return other

    def end(self, running):
        for one in running:
            self.assertEqual(one.end(), 0, one.said)

    def restored(self, to, moment, *more):
        return self.good("restore", *SHARDS, "--to", to, "--target-time", str(moment), *more)

    def test_each_has_what_was_written_by_then(self):
        nodes = self.cluster()
        self.fill(nodes)
        running = self.archive_all(nodes)
        writer = Writer(nodes)
        writer.start()
        others = [self.another_connection(node) for node in nodes]
        moments = [self.known_moment(others) for _ in range(3)]
        writer.stop()
        self.end(running)
        for moment in moments:
            out = self.path(str(moment))
            self.restored(out, moment)
            self.assertEqual(sorted(os.listdir(out)), sorted(SHARDS))
            for name, tag, times in zip(SHARDS, TAGS, writer.times):
                with RedisServer() as server:
                    server.load(os.path.join(out, name, "dump.rdb"))
                    value = int(server.command("GET", "counter" + tag))
                    self.assertEqual(server.command("DBSIZE"), 41)
                self.assertLessEqual(times[value][0], moment * 1000 + HALF_A_SECOND)
                self.assertGreaterEqual(times[value + 1][1], moment * 1000 - HALF_A_SECOND)

    def test_a_running_cluster_gets_all_of_them(self):
        nodes, running, moment = self.archived_cluster()
        self.end(running)
        saved = sorted(key for node in nodes for key in node.command("KEYS", "*")
                       if not key.startswith(b"later"))
        fewer, one = self.cluster(2), self.server()
        url = f"redis://127.0.0.1:{fewer[0].port}"
        one.command("SET", "mine", "1")
        self.fails(2, "is not empty", "restore", *SHARDS, "--target-time", str(moment), "--to",
                   f"redis://127.0.0.1:{one.port}")
        self.assertEqual(one.command("KEYS", "*"), [b"mine"])
        reported, status = self.json("restore", *SHARDS, "--target-time", str(moment), "--to", url)
        self.assertEqual(status, 0)
        self.assertEqual(reported["target_time_ms"], moment)
        self.assertEqual([(t["target"], t["keys"], t["sent_to_masters"])
                          for t in reported["targets"]], [(name, 41, 2) for name in SHARDS])
        self.assertEqual(sorted(k for node in fewer for k in node.command("KEYS", "*")), saved)
        one.command("FLUSHALL")
        said = self.restored(f"redis://127.0.0.1:{one.port}", moment)
        self.assertEqual(said.count(b"41 keys sent"), 3, said)
        self.assertEqual(sorted(one.command("KEYS", "*")), saved)

    def test_a_key_that_is_in_two_targets_is_reported(self):
        nodes, running, _ = self.archived_cluster(3)
        one = self.server()
        key = b"k1" + TAGS[0].encode()
        slot = nodes[0].command("CLUSTER", "KEYSLOT", key)
        nodes[1].command("CLUSTER", "SETSLOT", slot, "IMPORTING",
                         nodes[0].command("CLUSTER", "MYID"))
        nodes[1].command("ASKING")
        nodes[1].command("SET", key, "here too")
        moment = self.known_moment(nodes)
        self.end(running)
        done = self.tool("restore", *SHARDS, "--target-time", str(moment), "--to",
                         f"redis://127.0.0.1:{one.port}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"it is in two of the targets", done.stderr)

    def test_nothing_is_written_unless_all_are_proved(self):
        nodes, running, moment = self.archived_cluster()
        self.assertEqual(running[2].end(), 0)
        time.sleep(1.5)  # beyond the last second of the third one
        later = self.known_moment(nodes[:2])
        self.end(running[:2])
        out = self.path("out")
        said = self.fails(2, "the target third", "restore", *SHARDS, "--to", out,
                          "--target-time", str(later))
        self.assertEqual(said.stdout, b"")
        self.assertFalse(os.path.exists(out))
        self.good("restore", *SHARDS[:2], "--to", out, "--target-time", str(later))
        self.assertEqual(sorted(os.listdir(out)), ["first", "second"])
        # The folder of one target has a file already.
        os.mkdir(self.path("new"))
        os.mkdir(self.path("new", "third"))
        self.write("new/third/dump.rdb", b"mine")
        self.fails(2, "restore into another folder", "restore", *SHARDS, "--to",
                   self.path("new"), "--target-time", str(moment))
        self.assertEqual(glob.glob(self.path("new", "*")), [self.path("new", "third")])
        self.assertEqual(self.read("new", "third", "dump.rdb"), b"mine")

    def test_layouts_filters_and_options(self):
        _, running, moment = self.archived_cluster(3)
        self.end(running)
        at = ("--target-time", str(moment))
        reported, _ = self.json("restore", *SHARDS, "--to", self.path("dry"), "--dry-run", *at)
        self.assertEqual([t["target"] for t in reported["targets"]], list(SHARDS))
        self.assertFalse(os.path.exists(self.path("dry")))
        self.restored(self.path("log"), moment, "--layout", "aof")
        self.assertTrue(os.path.exists(self.path("log", "third", "appendonlydir")))
        self.restored(self.path("some/"), moment, "--key", "k1{c}")
        with RedisServer() as server:
            for name, keys in zip(SHARDS, ([], [b"k1{c}"], [])):
                server.load(self.path("some", name, "dump.rdb"))
                self.assertEqual(server.command("KEYS", "*"), keys)
        self.fails(1, "no key", "restore", *SHARDS, "--to", self.path("none"), "--key", "no", *at)
        self.assertFalse(os.path.exists(self.path("none")))
        for text, args in (("--target-time", ("--to", "x")),
                           ("--set and --replid", ("--to", "x", "--set", "2", *at)),
                           ("--force cannot", ("--to", "x", "--force", *at)),
                           ("into a folder", ("--to", "-", *at))):
            self.fails(2, text, "restore", *SHARDS, *args)
        self.fails(2, "all shards of a cluster", "restore", "--to", "x", *at)
        for name in SHARDS:  # each one with the moments that it has
            self.fails(2, f"the target {name}", "restore", *SHARDS, "--to", "x", "--target-time",
                       "2001-02-03")


if __name__ == "__main__":
    unittest.main()
