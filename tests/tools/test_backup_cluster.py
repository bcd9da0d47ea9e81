"""redoubt backup of a whole cluster, as of one moment, and what is restored of it."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from backup_case import REDOUBT  # noqa: E402
from capture_case import eventually  # noqa: E402
from redis_server import RedisServer, free_port  # noqa: E402
from test_backup import flip  # noqa: E402

TAGS = ("{b}", "{c}", "{a}")  # of slots of the first, second and third of three masters


class ClusterCase(ArchiveCase):
    def member(self, **config):
        return self.server(cluster_enabled="yes", cluster_node_timeout="2000",
                           cluster_port=str(free_port()), **config)

    def meet(self, nodes):
        bus = nodes[0].config["cluster-port"]
        for node in nodes[1:]:
            node.command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, bus)
        for node in nodes:
            eventually("the cluster is one",
                       lambda n=node: b"cluster_state:ok" in n.command("CLUSTER", "INFO")
                       and b"known_nodes:%d" % len(nodes) in n.command("CLUSTER", "INFO"))

    def cluster(self, n=3, **config):
        nodes = [self.member(**config) for _ in range(n)]
        for i, node in enumerate(nodes):
            node.command("CLUSTER", "ADDSLOTSRANGE", 16384 * i // n, 16384 * (i + 1) // n - 1)
            node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        self.meet(nodes)
        return nodes

    def clustered(self, nodes):
        self.nightly(source=f"redis://127.0.0.1:{nodes[0].port}",
                     more=f"cluster = yes\nspool = {self.spool}\n")

    def fill(self, nodes, n=40):
        for node, tag in zip(nodes, TAGS):
            for i in range(n):
                node.command("SET", f"k{i}{tag}", "x" * 30)

    def nothing_in_the_spool(self):
        self.assertEqual(os.listdir(self.spool), [])


class Writer(threading.Thread):
    """Counts up on all masters in turn, and notes when each write began and was answered."""

    def __init__(self, nodes):
        super().__init__(daemon=True)
        self.nodes = nodes
        self.times = [[] for _ in nodes]
        self.over = threading.Event()

    def run(self):
        n = 0
        while not self.over.is_set():
            for node, tag, times in zip(self.nodes, TAGS, self.times):
                began = time.time() * 1e6
                node.command("SET", "counter" + tag, n)
                times.append((began, time.time() * 1e6))
            n += 1

    def stop(self):
        self.over.set()
        self.join()


class Cluster(ClusterCase):
    def test_all_masters_as_of_one_moment(self):
        nodes = self.cluster(rdb_key_save_delay="3000")
        self.fill(nodes)
        self.clustered(nodes)
        writer = Writer(nodes)
        writer.start()
        self.good("backup")
        writer.stop()
        self.nothing_in_the_spool()
        self.good("verify", "--level", "parse")
        reported = self.sets()[0]
        self.assertEqual([n["port"] for n in reported["nodes"]], [n.port for n in nodes])
        self.assertEqual(reported["nodes"][0]["slots"], "0-5460")
        self.assertLess(reported["begin_ms"] * 1000, reported["moment_from_us"])
        self.assertLess(reported["moment_to_us"], reported["end_ms"] * 1000 + 1000)
        self.good("restore", "--to", self.path("out"))
        for i, (tag, times) in enumerate(zip(TAGS, writer.times)):
            with RedisServer() as server:
                server.load(self.path("out", f"shard-{i + 1}", "dump.rdb"))
                value = int(server.command("GET", "counter" + tag))
                self.assertEqual(server.command("DBSIZE"), 41)
            # The write of this value began before the moment was over, and the next one was
            # answered after it began.
            self.assertLessEqual(times[value][0], reported["moment_to_us"])
            if value + 1 < len(times):
                self.assertGreaterEqual(times[value + 1][1], reported["moment_from_us"])

    def test_a_cluster_starts_with_what_is_restored(self):
        for layout in ("rdb", "aof"):
            nodes = self.cluster()
            self.fill(nodes)
            digests = [node.command("DEBUG", "DIGEST") for node in nodes]
            shutil.rmtree(self.repository, ignore_errors=True)
            self.clustered(nodes)
            self.good("backup")
            for node in nodes:
                node.stop()
            out = self.path("out-" + layout)
            self.good("restore", "--to", out, "--layout", layout)
            again = []
            for i in range(3):
                server = self.member(appendonly="yes" if layout == "aof" else "no")
                server.stop()
                shutil.rmtree(server.dir)
                shutil.copytree(os.path.join(out, f"shard-{i + 1}"), server.dir)
                server._spawn()
                self.assertTrue(server._wait(), server.log)
                again.append(server)
            self.meet(again)
            self.assertEqual([s.command("DEBUG", "DIGEST") for s in again], digests)

    def test_no_two_masters_fork_at_once(self):
        nodes = self.cluster()
        self.fill(nodes)
        self.clustered(nodes)
        self.good("backup")
        times = []
        for node in nodes:
            for what in ("started by pid", "terminated with success"):
                at = re.findall(r"(\d\d:\d\d:\d\d\.\d\d\d) \* Background RDB transfer " + what,
                                node.log)
                self.assertEqual(len(at), 1, node.log)
                times += at
        midnight = times.index(min(times))
        self.assertEqual(times[midnight:] + times[:midnight], sorted(times))

    def test_a_cluster_that_changes_makes_no_set(self):
        nodes = self.cluster(rdb_key_save_delay="10000")
        self.fill(nodes)
        self.clustered(nodes)
        with subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            eventually("it has begun", lambda: os.path.isdir(self.spool) and
                       os.listdir(self.spool))
            nodes[0].command("CLUSTER", "DELSLOTS", "7")
            said = process.stderr.read()
        self.assertEqual(process.returncode, 6)
        self.assertIn(b"the cluster changed during the backup", said)
        self.assertEqual(self.sets(), [])
        self.nothing_in_the_spool()

    def test_a_master_that_dies_makes_no_set(self):
        nodes = self.cluster(rdb_key_save_delay="10000")
        self.fill(nodes)
        self.clustered(nodes)
        with subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            eventually("it has begun", lambda: os.path.isdir(self.spool) and
                       os.listdir(self.spool))
            nodes[2].stop()
            process.stderr.read()
        self.assertEqual(process.returncode, 6)
        self.assertEqual(self.sets(), [])
        self.nothing_in_the_spool()

    def at_full_speed(self, nodes):
        for node in nodes:
            node.command("CONFIG", "SET", "rdb-key-save-delay", "0")

    def test_what_a_killed_run_left_is_removed(self):
        nodes = self.cluster(rdb_key_save_delay="200000")
        self.fill(nodes)
        self.clustered(nodes)
        for _ in range(2):
            with subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                                  stdout=subprocess.DEVNULL) as process:
                eventually("it has begun", lambda: os.path.isdir(self.spool) and
                           os.listdir(self.spool))
                time.sleep(0.4)
                process.kill()
        self.assertEqual(len(os.listdir(self.spool)), 1)
        self.at_full_speed(nodes)
        other = os.path.join(self.spool, "cluster-other-20261129T101514Z-fcb3dd3a")
        os.mkdir(other)  # of another target with this spool
        os.mkdir(os.path.join(self.spool, "cluster-20261129T101514Z-fcb3dd3a"))  # redoubt 0.2.0
        self.good("backup")
        os.rmdir(other)
        self.nothing_in_the_spool()
        self.assertEqual(len(self.sets()), 1)

    def test_a_signal_ends_it_and_leaves_nothing(self):
        nodes = self.cluster(rdb_key_save_delay="200000")
        self.fill(nodes)
        self.clustered(nodes)
        with subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            eventually("it has begun", lambda: os.path.isdir(self.spool) and
                       os.listdir(self.spool))
            time.sleep(0.3)
            process.terminate()
            process.stderr.read()
        self.assertEqual(process.returncode, 143)
        self.nothing_in_the_spool()
        self.at_full_speed(nodes)
        self.good("backup")

    def shards(self, name):
        return {path: self.read(name, *path) for path in
                [(shard, file) for shard in sorted(os.listdir(self.path(name)))
                 for file in sorted(os.listdir(self.path(name, shard)))]}

    def some_masters_of_a_cluster(self):
        """A key that one master has; a key that none has; and a set that is damaged at its end."""
        self.good("restore", "--to", self.path("one"))
        whole = self.shards("one")
        self.assertEqual(len(whole), 6)
        last = max(name for name in os.listdir(self.set_folder()) if ".rdb" in name)
        last = os.path.join(self.set_folder(), last)
        flip(last, os.path.getsize(last) // 2)
        self.assertEqual(self.tool("restore", "--to", self.path("one"), "--force", "--prefix",
                                   "k1").returncode, 1)
        flip(last, os.path.getsize(last) // 2)
        self.fails(1, "no key", "restore", "--to", self.path("one"), "--force", "--key", "none")
        self.assertEqual(self.shards("one"), whole)
        self.good("restore", "--to", self.path("one"), "--force", "--key", "k1{c}")
        self.assertEqual(sorted(self.shards("one")), sorted(whole))
        with RedisServer() as server:
            for shard, keys in (("shard-1", 0), ("shard-2", 1), ("shard-3", 0)):
                server.load(self.path("one", shard, "dump.rdb"))
                self.assertEqual(server.command("DBSIZE"), keys)

    def test_what_can_be_done_with_the_set_of_a_cluster(self):
        nodes = self.cluster()
        self.fill(nodes)
        self.clustered(nodes)
        self.good("backup")
        self.fails(4, "is a cluster", "restore", "--to", "-")
        self.good("restore", "--to", self.path("some"), "--match", "k1{?}")
        with RedisServer() as server:
            server.load(self.path("some", "shard-2", "dump.rdb"))
            self.assertEqual(server.command("KEYS", "*"), [b"k1{c}"])
        self.some_masters_of_a_cluster()
        reported, _ = self.json("restore", "--to", self.path("other"), "--dry-run")
        self.assertEqual(reported["masters"], 3)
        self.assertFalse(os.path.exists(self.path("other")))
        for name in sorted(os.listdir(self.set_folder())):
            path = os.path.join(self.set_folder(), name)
            flip(path, os.path.getsize(path) // 2)
            self.fails(1, "DAMAGED", "verify", "--level", "digest")
            flip(path, os.path.getsize(path) // 2)

    def test_a_running_cluster_gets_what_was_saved(self):
        library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
        nodes = self.cluster()
        self.fill(nodes)
        for node in nodes:
            node.command("FUNCTION", "LOAD", library)
        self.clustered(nodes)
        self.good("backup")
        saved = sorted(key for node in nodes for key in node.command("KEYS", "*"))
        self.assertEqual(len(saved), 120)
        one, fewer = self.server(), self.cluster(2)
        url = f"redis://127.0.0.1:{fewer[0].port}"
        reported, _ = self.json("restore", "--to", url, "--match", "k[12]{?}")
        self.assertEqual((reported["keys"], reported["sent_to_masters"]), (6, 2))
        self.fails(2, "is not empty", "restore", "--to", url)
        said = self.good("restore", "--to", url, "--force")
        self.assertIn(b"120 keys sent to the 2 masters of a cluster", said)
        self.assertEqual(sorted(k for node in fewer for k in node.command("KEYS", "*")), saved)
        for node in fewer:
            self.assertGreater(node.command("DBSIZE"), 20)
            self.assertEqual(node.command("FUNCTION", "LIST")[0][1], b"lib")
        self.good("restore", "--to", f"redis://127.0.0.1:{one.port}")
        self.assertEqual(sorted(one.command("KEYS", "*")), saved)
        nodes[2].command("FUNCTION", "LOAD", "REPLACE", library + " -- another")
        self.good("backup")
        self.fails(8, "different function libraries", "restore", "--to", url, "--force")
        fewer[1].command("CLUSTER", "DELSLOTS", "16383")
        self.fails(6, "slots of the cluster have a master", "restore", "--to",
                   f"redis://127.0.0.1:{fewer[1].port}", "--force")

    def test_a_running_cluster_gets_the_set_of_a_server(self):
        server, nodes = self.server(), self.cluster()
        self.nightly(source=f"redis://127.0.0.1:{server.port}")
        for i in range(100):
            server.command("SET", f"k{i}", i)
        server.command("MOVE", "k99", 3)
        self.good("backup")
        url = f"redis://127.0.0.1:{nodes[1].port}"
        self.fails(4, "database 3 has keys", "restore", "--to", url)
        self.assertEqual([node.command("DBSIZE") for node in nodes], [0] * 3)
        self.good("restore", "--to", url, "--db", "0")
        self.assertEqual(sum(node.command("DBSIZE") for node in nodes), 99)

    def test_a_server_without_a_cluster_is_reported(self):
        server = self.server()
        self.clustered([server])
        self.fails(6, "cluster support disabled", "backup")
        self.nightly(more=f"cluster = yes\nspool = {self.spool}\n")
        self.fails(2, "cluster needs the URL of a server", "backup")
        self.clustered([server])
        self.fails(4, "a target for each shard", "archive")


if __name__ == "__main__":
    unittest.main()
