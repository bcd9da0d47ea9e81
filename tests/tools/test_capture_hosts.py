"""redoubt capture where the master is not reported: sentinels that name it, and a whole cluster."""

import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from capture_case import CaptureCase, acknowledged, eventually  # noqa: E402
import redis_server  # noqa: E402
from redis_server import ReplyError, ServerDied, free_port  # noqa: E402


class Sentinel(CaptureCase):
    def sentinel(self, master):
        """A process of its own, with its configuration in a file, as it insists."""
        server = self.server()  # its port and folder are taken over
        port, folder = server.port, server.dir
        server.stop()
        path = os.path.join(folder, "sentinel.conf")
        with open(path, "w") as f:
            f.write(f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
                    f"sentinel monitor mine 127.0.0.1 {master.port} 1\n"
                    "sentinel down-after-milliseconds mine 1000\n"
                    "sentinel failover-timeout mine 5000\n")
        process = subprocess.Popen([redis_server.program(), path, "--sentinel"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        eventually("the sentinel answers", lambda: self.answers(server))
        return server

    def answers(self, server):
        try:
            server._connect()
            return server.command("PING") == b"PONG"
        except OSError:
            return False

    def is_master(self, server):
        """A sentinel that promotes closes the connections of clients."""
        try:
            return b"role:master" in server.command("INFO")
        except ServerDied:
            server._connect()
            return False

    def test_a_failover_is_followed(self):
        master, replica = self.server(), self.server()
        replica.command("REPLICAOF", "127.0.0.1", master.port)
        eventually("it follows", lambda: b"link_status:up" in replica.command("INFO"))
        sentinel = self.sentinel(master)
        eventually("it knows the replica", lambda: b"slaves=1" in sentinel.command("INFO"))
        running = self.start("--sentinel", f"127.0.0.1:{sentinel.port}", "--master", "mine",
                             "-o", self.out, "--json")
        eventually("it is there", lambda: b"connected_slaves:2" in master.command("INFO"))
        for n in range(50):
            master.command("INCR", "n")
        acknowledged(master, 2)
        master.stop()
        eventually("the replica is the master", lambda: self.is_master(replica))
        replica.command("SET", "after", "1")
        eventually("it is there again", lambda: self.acked(replica) >= 0)
        self.wait_for(replica)
        status, out, err = running.end()
        self.assertEqual(status, 143, err)
        reported = json.loads(out)
        self.assertIn("moved", [e["event"] for e in reported["events"]])
        target = reported["targets"][0]
        self.assertEqual(target["target"], f"127.0.0.1:{replica.port}")
        self.assertEqual((target["full_syncs"], target["chapter"]), (1, 2), err)
        self.check_same(replica)

    def test_the_snapshot_of_whom_they_name(self):
        master = self.server()
        sentinel = self.sentinel(master)
        path = os.path.join(self.folder, "x.rdb")
        self.run_capture("--sentinel", f"127.0.0.1:{sentinel.port}", "--master", "mine",
                         "--rdb-only", path)
        self.assertTrue(os.path.exists(path))
        for args in (["-o", self.out], ["--rdb-only", path, "--force"]):
            _, err = self.run_capture("--sentinel", f"127.0.0.1:{sentinel.port}", "--master",
                                      "other", *args, status=6)
            self.assertIn('the sentinel does not know master "other"', err)


class Cluster(CaptureCase):
    def member(self, **config):
        server = self.server(cluster_enabled="yes", cluster_node_timeout="2000",
                             cluster_port=str(free_port()), **config)
        self.bus[server.port] = server.config["cluster-port"]
        return server

    def setUp(self):
        super().setUp()
        self.bus = {}

    def cluster(self, n):
        nodes = [self.member() for _ in range(n)]
        for i, node in enumerate(nodes):
            node.command("CLUSTER", "ADDSLOTSRANGE", 16384 * i // n, 16384 * (i + 1) // n - 1)
            node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for node in nodes[1:]:
            node.command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, self.bus[nodes[0].port])
        for node in nodes:
            eventually("the cluster is one",
                       lambda: b"cluster_state:ok" in node.command("CLUSTER", "INFO")
                       and b"known_nodes:%d" % n in node.command("CLUSTER", "INFO"))
        return nodes

    def fill(self, nodes, prefix):
        for n in range(300):
            for node in nodes:
                try:
                    node.command("SET", f"{prefix}{n}", n)
                    break
                except ReplyError:
                    continue

    def folder_of(self, node):
        return os.path.join(self.out, f"127.0.0.1-{node.port}")

    def promoted(self, replica):
        """A failover that is asked for gives up after five seconds: then it is asked for again."""
        if b"role:master" in replica.command("INFO"):
            return True
        try:
            replica.command("CLUSTER", "FAILOVER")
        except ReplyError:
            pass
        time.sleep(1)
        return b"role:master" in replica.command("INFO")

    def test_every_master_has_a_folder_which_failovers_keep(self):
        nodes = self.cluster(3)
        replica = self.member()
        replica.command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, self.bus[nodes[0].port])
        name = nodes[0].command("CLUSTER", "MYID")
        eventually("they know each other",
                   lambda: name in replica.command("CLUSTER", "NODES"))
        replica.command("CLUSTER", "REPLICATE", name)
        eventually("it follows", lambda: b"link_status:up" in replica.command("INFO"))
        self.fill(nodes, "a")
        running = self.start(self.url(nodes[1]), "--cluster", "-o", self.out, "--json")
        eventually("all are there", lambda: all(
            self.acked(node) >= 0 for node in nodes[1:])
            and nodes[0].command("INFO").count(b"state=online") == 2)
        self.fill(nodes, "b")
        for node in nodes[1:]:
            self.wait_for(node)
        eventually("it is the master", lambda: self.promoted(replica))
        eventually("the capture has moved", lambda: self.has_moved(replica))
        old, nodes = nodes[0], [replica, *nodes[1:]]
        eventually("the cluster is well", lambda: all(
            b"cluster_state:ok" in node.command("CLUSTER", "INFO") for node in nodes))
        self.fill(nodes, "c")
        time.sleep(2)
        # And back, by the death of the one that was promoted.
        eventually("the old one follows", lambda: b"link_status:up" in old.command("INFO"))
        acknowledged(replica, 2)
        replica.stop()
        eventually("it is the master again", lambda: b"role:master" in old.command("INFO"))
        eventually("the capture has moved", lambda: self.has_moved(old))
        nodes[0] = old
        eventually("the cluster is well", lambda: all(
            b"cluster_state:ok" in node.command("CLUSTER", "INFO") for node in nodes))
        self.fill(nodes, "d")
        eventually("it is there", lambda: self.acked(old) >= 0)
        for node in nodes:
            self.wait_for(node)
        status, out, err = running.end()
        self.assertEqual(status, 143, err)
        reported = json.loads(out)
        self.assertEqual(len(reported["targets"]), 3, err)
        self.assertEqual([t["full_syncs"] for t in reported["targets"]], [1, 1, 1], err)
        folders = sorted(n for n in os.listdir(self.out) if n != "topology")
        self.assertEqual(len(folders), 3)
        for node in nodes:
            self.check_same(node, self.folder_of(node))
        # Another run finds the folders again.
        out, err = self.run_capture(self.url(nodes[1]), "--cluster", "-o", self.out, "--json",
                                    "--duration", "1")
        again = json.loads(out)
        self.assertEqual(sorted(t["folder"] for t in again["targets"]), folders)
        self.assertEqual([t["full_syncs"] for t in again["targets"]], [0, 0, 0], err)

    def move_slot(self, slot, source, target, others):
        """As redis-cli does."""
        ids = [node.command("CLUSTER", "MYID") for node in (source, target)]
        target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        keys = source.command("CLUSTER", "GETKEYSINSLOT", slot, 100)
        if keys:
            source.command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for node in (target, source, *others):
            node.command("CLUSTER", "SETSLOT", slot, "NODE", ids[1])

    def test_slots_that_move_take_their_keys_along(self):
        # A master without slots must not become a replica of the node that has them now.
        nodes = [self.member(cluster_allow_replica_migration="no") for _ in range(3)]
        big, small, new = nodes
        small.command("CLUSTER", "ADDSLOTSRANGE", 0, 3)
        big.command("CLUSTER", "ADDSLOTSRANGE", 4, 16383)
        for i, node in enumerate(nodes):
            node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for node in nodes[1:]:
            node.command("CLUSTER", "MEET", "127.0.0.1", big.port, self.bus[big.port])
        for node in nodes:
            eventually("the cluster is one",
                       lambda: b"cluster_state:ok" in node.command("CLUSTER", "INFO")
                       and b"known_nodes:3" in node.command("CLUSTER", "INFO"))
        self.fill([big], "a")
        names = (f"k{n}" for n in range(10**6))
        mine = [next(k for k in names if small.command("CLUSTER", "KEYSLOT", k) < 4)
                for _ in range(5)]
        for name in mine:
            small.command("SET", name, name)
        running = self.start(self.url(small), "--cluster", "-o", self.out, "--json")
        eventually("both are there", lambda: all(self.acked(n) >= 0 for n in (big, small)))
        self.assertFalse(os.path.exists(self.folder_of(new)))
        for slot in range(2):
            self.move_slot(slot, small, new, [big])
        big.command("CLIENT", "KILL", "TYPE", "replica")  # what was lost makes it ask the cluster
        eventually("the new one is captured, too", lambda: self.acked(new) >= 0)
        for slot in range(2, 4):
            self.move_slot(slot, small, new, [big])
        big.command("CLIENT", "KILL", "TYPE", "replica")
        eventually("it is left", lambda: b"connected_slaves:0" in small.command("INFO"))
        for name in mine:
            new.command("SET", name, "after")
        eventually("it is there", lambda: self.acked(big) >= 0)
        for node in (big, new):
            self.wait_for(node)
        status, out, err = running.end()
        self.assertEqual(status, 143, err)
        reported = json.loads(out)
        self.assertIn("gone", [e["event"] for e in reported["events"]])
        for node in nodes:
            self.check_same(node, self.folder_of(node))
        with open(os.path.join(self.out, "topology")) as f:
            self.assertIn(f" 127.0.0.1 {new.port} ", f.read())

    def has_moved(self, replica):
        with open(os.path.join(self.out, "topology")) as f:
            return f" 127.0.0.1 {replica.port} " in f.read()

    def test_a_server_that_is_not_a_member(self):
        master = self.server()
        _, err = self.run_capture(self.url(master), "--cluster", "-o", self.out, status=6)
        self.assertIn("cluster support disabled", err)


if __name__ == "__main__":
    unittest.main()
