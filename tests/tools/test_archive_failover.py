"""redoubt archive of a shard of a cluster whose master fails: the promoted replica is followed."""

import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from capture_case import acknowledged, eventually  # noqa: E402
from test_backup_cluster import TAGS, ClusterCase  # noqa: E402


class Failover(ClusterCase):
    def shard(self, **config):
        """Three masters, and a replica of the first one, which is archived."""
        self.masters = self.cluster(**config)
        replica = self.member(**config)
        replica.command("CLUSTER", "MEET", "127.0.0.1", self.masters[0].port,
                        self.masters[0].config["cluster-port"])
        first = self.masters[0].command("CLUSTER", "MYID").decode()
        eventually("the replica knows its master",
                   lambda: first.encode() in replica.command("CLUSTER", "NODES"))
        replica.command("CLUSTER", "REPLICATE", first)
        eventually("the replica follows",
                   lambda: b"master_link_status:up" in replica.command("INFO"))
        eventually("all know the replica", lambda: all(
            b"slave " + first.encode() in n.command("CLUSTER", "NODES") for n in self.masters))
        self.replica = replica
        self.ids = [first, replica.command("CLUSTER", "MYID").decode()]
        self.archived(self.masters[0].port)
        return self.masters[0], replica

    def known(self):
        path = os.path.join(self.spool, "shard")
        if not os.path.exists(path):
            return []
        with open(path, encoding="ascii") as file:
            return file.readline().split()[1:]

    def put(self, server, n):
        for i in range(n):
            server.command("SET", f"k{i}:{server.port}{TAGS[0]}", time.time_ns())

    def fail(self, master, replica):
        master.stop()
        eventually("the replica is the master", lambda: b"role:master" in replica.command("INFO"))
        eventually("it writes",
                   lambda: b"cluster_state:ok" in replica.command("CLUSTER", "INFO"))

    def test_the_promoted_replica_is_followed_without_a_gap(self):
        master, replica = self.shard()
        running = self.start()
        running.says("snapshot received")
        eventually("the shard is known", lambda: sorted(self.known()) == sorted(self.ids))
        self.put(master, 30)
        acknowledged(master, 2)
        self.fail(master, replica)
        running.says("connected to the new master")
        self.put(replica, 30)
        self.wait_for(replica)
        offset, digest = self.moment(replica)
        self.wait_for(replica)
        self.assertEqual(running.end(), 0)
        self.assertEqual(len(self.sets()), 1, "no second snapshot was needed")
        self.check(digest, "--target-offset", str(offset))
        # The configured server is still away: the next run knows where its shard is.
        again = self.start()
        again.says("connected to the new master")
        self.put(replica, 10)
        self.wait_for(replica)
        offset, digest = self.moment(replica)
        self.wait_for(replica)
        self.assertEqual(again.end(), 0)
        self.assertEqual(len(self.sets()), 1)
        self.check(digest, "--target-offset", str(offset))

    def test_slots_that_move_are_not_followed(self):
        """The shard is that of its nodes: a master that lost all slots to another one keeps it."""
        self.shard(cluster_allow_replica_migration="no")
        first, second, third = self.masters
        running = self.start()
        running.says("snapshot received")
        eventually("the shard is known", lambda: len(self.known()) == 2)
        for node in (first, second):
            node.command("CLUSTER", "DELSLOTSRANGE", 0, 5460)
        second.command("CLUSTER", "ADDSLOTSRANGE", 0, 5460)
        second.command("CLUSTER", "BUMPEPOCH")
        eventually("the third one knows",
                   lambda: b" 0-10921" in third.command("CLUSTER", "NODES"))
        first.stop()
        time.sleep(5)  # it is asked where the shard is each second
        self.assertNotIn(b"connected to the new master", running.said)
        running.end()
        self.assertEqual(len(self.sets()), 1)

    def test_a_server_outside_of_clusters_has_no_shard(self):
        server = self.server()
        self.archived(server.port)
        running = self.start()
        running.says("snapshot received")
        server.command("SET", "k", "1")
        self.wait_for(server)
        asked = server.command("INFO", "commandstats")
        self.assertNotIn(b"cmdstat_cluster", asked)
        self.assertEqual(running.end(), 0)
        self.assertEqual(self.known(), [])

    def with_rights(self, *rights):
        master, _ = self.shard()
        master.command("ACL", "SETUSER", "copy", "on", ">p", "+psync", "+replconf", "+ping",
                       *rights)
        self.write("pass", "p")
        self.archived(master.port, more=f"user = copy\npass-file = {self.path('pass')}\n")
        return master, self.start()

    def works(self, master, running):
        running.says("snapshot received")
        self.put(master, 3)
        self.wait_for(master)
        self.assertEqual(running.end(), 0)

    def test_who_may_not_ask_is_told_so(self):
        master, running = self.with_rights("+info", "+auth", "+hello", "+config|get", "+role",
                                           "+select")
        running.says("its shard is not followed after a failover")
        self.works(master, running)

    def test_who_may_not_know_whether_it_is_a_cluster_is_told_so(self):
        master, running = self.with_rights()
        running.says("a failover there will not be followed")
        self.works(master, running)


if __name__ == "__main__":
    unittest.main()
