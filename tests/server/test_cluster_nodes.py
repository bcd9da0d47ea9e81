"""Clusters of nodes of both servers: what clients see while slots move and masters fail."""

import subprocess
import time
import unittest

from cluster_node import agree, masters, meet, nodes
from server_under_test import Redis, Redoubt, ReplyError, wait_for


def cli(*args, ok=True):
    done = subprocess.run(["redis-cli", *[str(a) for a in args]], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=600, check=False,
                          stdin=subprocess.DEVNULL)
    text = done.stdout.decode(errors="replace")
    if ok and done.returncode != 0:
        raise AssertionError(text)
    return text


class Smart:
    """A client of a cluster: follows redirections."""

    def __init__(self, all_nodes):
        self.nodes = {one.port: one for one in all_nodes}
        self.clients = {}
        self.first = all_nodes[0].port

    def client(self, port):
        if port not in self.clients:
            self.clients[port] = self.nodes[port].client()
        return self.clients[port]

    def command(self, *args):
        port, asking = self.first, False
        for _ in range(1000):
            c = self.client(port)
            if asking:
                c.command("ASKING")
            try:
                return c.command(*args)
            except ReplyError as e:
                words = str(e).split()
                asking = words[0] == "ASK"
                if words[0] in ("MOVED", "ASK"):
                    port = int(words[2].rpartition(":")[2])
                elif words[0] != "TRYAGAIN":
                    raise
        raise AssertionError("too many redirections")


class Masters(unittest.TestCase):
    def test_keys_move_one_by_one_while_clients_use_them(self):
        with masters(Redoubt, Redoubt, Redis) as all_nodes:
            smart = Smart(all_nodes)
            names = [f"{{foo}}{i}" for i in range(50)]
            for name in names:
                smart.command("SET", name, name)
            source = all_nodes[2]  # of slot 12182
            for target in (all_nodes[0], all_nodes[1], all_nodes[2]):
                s, t = source.client(), target.client()
                t.command("CLUSTER", "SETSLOT", 12182, "IMPORTING", source.id)
                s.command("CLUSTER", "SETSLOT", 12182, "MIGRATING", target.id)
                self.assertEqual(t.ask("GET", names[0])[1].split()[0], b"MOVED")
                s.command("MIGRATE", "127.0.0.1", target.port, "", 0, 60000, "KEYS", *names[:25])
                self.assertEqual(s.ask("GET", names[0]),
                                 ("-", b"ASK 12182 127.0.0.1:%d" % target.port))
                self.assertEqual(s.command("GET", names[30]), names[30].encode())
                self.assertEqual(s.ask("MGET", names[0], names[30])[1][:8], b"TRYAGAIN")
                t.command("ASKING")
                self.assertEqual(t.ask("MGET", names[0], names[30])[1][:8], b"TRYAGAIN")
                for name in names:
                    self.assertEqual(smart.command("GET", name), name.encode())
                with self.assertRaises(ReplyError):
                    s.command("CLUSTER", "SETSLOT", 12182, "NODE", target.id)
                s.command("MIGRATE", "127.0.0.1", target.port, "", 0, 60000, "KEYS", *names[25:])
                t.command("CLUSTER", "SETSLOT", 12182, "NODE", target.id)
                s.command("CLUSTER", "SETSLOT", 12182, "NODE", target.id)
                wait_for(lambda t=target: all(
                    o.client().command("CLUSTER", "SLOTS") and
                    any(r[0] <= 12182 <= r[1] and r[2][1] == t.port
                        for r in o.client().command("CLUSTER", "SLOTS")) for o in all_nodes))
                for name in names:
                    self.assertEqual(smart.command("GET", name), name.encode())
                source = target

    def test_messages_reach_the_clients_of_all_nodes(self):
        with masters(Redoubt, Redis, Redoubt) as all_nodes:
            for sender in all_nodes:
                listeners = [one.client() for one in all_nodes if one is not sender]
                for c in listeners:
                    c.command("SUBSCRIBE", "news")
                self.assertEqual(sender.client().command("PUBLISH", "news", "text"), 0)
                for c in listeners:
                    self.assertEqual(c.read()[1][2], ("$", b"text"))
                    c.command("UNSUBSCRIBE", "news")

    def test_links_with_a_node_are_beside_each_other(self):
        def links(c):
            rows = [dict(zip(row[::2], row[1::2])) for row in c.command("CLUSTER", "LINKS")]
            return [(row[b"node"], row[b"direction"]) for row in rows]

        with masters(Redoubt, Redoubt, Redis, Redis) as all_nodes:
            for one in all_nodes:
                c = one.client()
                wait_for(lambda c=c: len(links(c)) == 6)
                found = links(c)
                self.assertEqual([node for node, _ in found[::2]],
                                 [node for node, _ in found[1::2]])
                self.assertEqual([way for _, way in found], [b"to", b"from"] * 3)

    def test_nodes_that_were_forgotten_are_gone(self):
        with masters(Redoubt, Redis, Redoubt) as all_nodes:
            gone = all_nodes[2]
            gone_id = gone.id
            gone.client().command("CLUSTER", "RESET", "HARD")
            for one in (*all_nodes[:2], all_nodes[0]):  # ours says OK if it knows already
                one.client().command("CLUSTER", "FORGET", gone_id)
            for one in all_nodes[:2]:
                self.assertNotIn(gone_id, one.known())
            self.assertEqual(len(gone.known()), 1)


class Replicas(unittest.TestCase):
    def make(self, all_nodes):
        """redis-cli makes three masters with a replica each."""
        cli("--cluster", "create", *[one.address for one in all_nodes], "--cluster-replicas", 1,
            "--cluster-yes")
        for one in all_nodes:
            one.known_elsewhere = True
        wait_for(lambda: agree(all_nodes))
        for one in all_nodes:
            wait_for(lambda o=one: o.info("replication")["role"] == "master" or
                     o.info("replication")["master_link_status"] == "up")

    def of(self, all_nodes, master):
        """The replica of a master."""
        lines = wait_for(lambda: master.client().command("CLUSTER", "REPLICAS", master.id))
        port = int(lines[0].split()[1].partition(b"@")[0].rpartition(b":")[2])
        return next(one for one in all_nodes if one.port == port)

    def owner(self, all_nodes, slot):
        """As all nodes say."""
        def ports():
            return {master[1] for one in all_nodes
                    for first, last, master, *_ in one.client().command("CLUSTER", "SLOTS")
                    if first <= slot <= last}
        wait_for(lambda: len(ports()) == 1)
        port = ports().pop()
        return next(one for one in all_nodes if one.port == port)

    def life(self, *kinds):
        with nodes(*kinds) as all_nodes:
            self.make(all_nodes)
            smart = Smart(all_nodes)
            for i in range(300):
                smart.command("SET", f"k{i}", i)
            self.assertIn("All 16384 slots covered", cli("--cluster", "check",
                                                         all_nodes[0].address))
            self.replicas_answer(all_nodes)
            self.manual(all_nodes)
            self.killed(all_nodes)
            smart = Smart([one for one in all_nodes if one.process is not None])
            for i in range(300):
                self.assertEqual(smart.command("GET", f"k{i}"), b"%d" % i)

    def replicas_answer(self, all_nodes):
        master = self.owner(all_nodes, 12182)
        replica = self.of(all_nodes, master)
        master.client().command("SET", "foo", "bar")
        c = replica.client()
        moved = ("-", b"MOVED 12182 127.0.0.1:%d" % master.port)
        self.assertEqual(c.ask("GET", "foo"), moved)
        c.command("READONLY")
        wait_for(lambda: c.command("GET", "foo") == b"bar")
        self.assertEqual(c.ask("SET", "foo", 1), moved)
        c.command("READWRITE")
        self.assertEqual(c.ask("GET", "foo"), moved)

    def manual(self, all_nodes):
        """No write is lost."""
        master = self.owner(all_nodes, 12182)
        replica = self.of(all_nodes, master)
        replica.client().command("CLUSTER", "FAILOVER")
        wait_for(lambda: "master" in replica.flags(replica.id))
        wait_for(lambda: "slave" in master.flags(master.id))
        wait_for(lambda: self.owner(all_nodes, 12182) is replica)
        self.assertEqual(Smart(all_nodes).command("GET", "foo"), b"bar")
        wait_for(lambda: agree(all_nodes))
        wait_for(lambda: master.info("replication").get("master_link_status") == "up")

    def killed(self, all_nodes):
        master = self.owner(all_nodes, 12182)
        replica = self.of(all_nodes, master)
        self.assertEqual(master.client().command("WAIT", 1, 60000), 1)
        master.kill()
        alive = [one for one in all_nodes if one is not master]
        wait_for(lambda: "master" in replica.flags(replica.id))
        wait_for(lambda: all(b"cluster_state:ok" in one.client().command("CLUSTER", "INFO")
                             for one in alive))
        self.assertEqual(replica.client().command("GET", "foo"), b"bar")
        master.start()
        wait_for(lambda: "slave" in master.flags(master.id))
        wait_for(lambda: master.info("replication").get("master_link_status") == "up")

    def test_six_of_ours(self):
        self.life(*[Redoubt] * 6)

    def test_both_servers_together(self):
        self.life(Redoubt, Redis, Redoubt, Redis, Redoubt, Redis)

    def test_redis_cli_moves_slots_and_nodes(self):
        with nodes(Redoubt, Redis, Redoubt, Redoubt) as all_nodes:
            first, last = all_nodes[0], all_nodes[3]
            cli("--cluster", "create", *[one.address for one in all_nodes[:3]], "--cluster-yes")
            wait_for(lambda: agree(all_nodes[:3]))
            smart = Smart(all_nodes)
            for i in range(500):
                smart.command("SET", f"k{i}", "v" * i)
            cli("--cluster", "add-node", last.address, first.address)
            wait_for(lambda: agree(all_nodes))
            cli("--cluster", "reshard", first.address, "--cluster-from", "all", "--cluster-to",
                last.id, "--cluster-slots", 60, "--cluster-yes")
            wait_for(lambda: agree(all_nodes))
            self.assertGreater(last.client().command("DBSIZE"), 0)
            cli("--cluster", "rebalance", first.address, "--cluster-weight", f"{last.id}=0")
            wait_for(lambda: agree(all_nodes))
            cli("--cluster", "check", first.address)
            self.assertEqual(sum(one.client().command("DBSIZE") for one in all_nodes), 500)
            for i in range(500):
                self.assertEqual(smart.command("GET", f"k{i}"), b"v" * i)
            cli("--cluster", "del-node", first.address, last.id)
            wait_for(lambda: agree(all_nodes[:3]))


def replicate(master, replica):
    """Makes a node, which knew no other one, a replica."""
    meet([master, replica])
    wait_for(lambda: master.id in replica.known())
    replica.client().command("CLUSTER", "REPLICATE", master.id)
    wait_for(lambda: replica.info("replication").get("master_link_status") == "up")


def health(master, replica):
    """Of the replica, as its master says, and whether clients are told of it."""
    c = master.client()
    (shard,) = c.command("CLUSTER", "SHARDS")
    described = [dict(zip(n[::2], n[1::2])) for n in shard[shard.index(b"nodes") + 1]]
    (word,) = [n[b"health"] for n in described if n[b"port"] == replica.port]
    (slots,) = c.command("CLUSTER", "SLOTS")
    return word, replica.port in [n[1] for n in slots[2:]]


class Restarts(unittest.TestCase):
    def test_a_replica_loads_its_data_as_one(self):
        """With keys that have expired, and its place in the stream of its master."""
        for kind in (Redoubt, Redis):
            with masters(kind) as (master,), nodes(Redoubt) as (replica,):
                replicate(master, replica)
                c = master.client()
                c.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
                c.command("SET", "lasting", "x")
                c.command("SET", "expired", "x", "PX", 100)
                c.command("WAIT", 1, 60000)
                full = master.info("stats")["sync_full"]
                replica.client().command("SAVE")
                time.sleep(0.2)
                replica.restart()
                wait_for(lambda r=replica:
                         r.info("replication").get("master_link_status") == "up")
                self.assertEqual(replica.client().command("DBSIZE"), 2)
                self.assertEqual(master.info("stats")["sync_full"], full)
                c.command("SET", "more", "x")
                c.command("WAIT", 1, 60000)
                self.assertEqual(replica.client().command("DBSIZE"), 3)

    def test_a_replica_that_replaces_its_data_is_not_offered_to_clients(self):
        for kind in (Redoubt, Redis):
            with masters(kind) as (master,), nodes(Redoubt) as (replica,):
                replicate(master, replica)
                c, r = master.client(), replica.client()
                wait_for(lambda m=master, r=replica: health(m, r) == (b"online", True))
                c.command("CONFIG", "SET", "repl-backlog-size", 100)
                r.command("CONFIG", "SET", "key-load-delay", 100000,
                          "loading-process-events-interval-bytes", 1024)
                c.command("MULTI")
                c.command("CLIENT", "KILL", "TYPE", "replica")
                for i in range(100):
                    c.command("SET", f"{{0}}{i}", "A" * 1024)
                c.command("EXEC")
                wait_for(lambda m=master, r=replica: health(m, r) == (b"loading", False))
                r.command("CONFIG", "SET", "key-load-delay", 0)
                wait_for(lambda m=master, r=replica: health(m, r) == (b"online", True))


class Settings(unittest.TestCase):
    def test_hostnames_are_announced_and_preferred(self):
        with masters(Redoubt, Redis, Redoubt) as all_nodes:
            for i, one in enumerate(all_nodes):
                one.client().command("CONFIG", "SET", "cluster-announce-hostname",
                                     f"host-{i}.example")
            c = all_nodes[0].client()
            wait_for(lambda: all(b",host-%d.example " % i in c.command("CLUSTER", "NODES")
                                 for i in range(3)))
            self.assertEqual(c.ask("GET", "foo")[1].split()[2].partition(b":")[0], b"127.0.0.1")
            c.command("CONFIG", "SET", "cluster-preferred-endpoint-type", "hostname")
            self.assertEqual(c.ask("GET", "foo")[1].split()[2].partition(b":")[0],
                             b"host-2.example")
            c.command("CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint")
            self.assertEqual(c.ask("GET", "foo")[1].split()[2].partition(b":")[0], b"")
            for one in all_nodes:
                one.client().command("CONFIG", "SET", "cluster-announce-hostname", "")
            for one in all_nodes:
                wait_for(lambda n=one.client(): b".example" not in n.command("CLUSTER", "NODES"))

    def test_the_other_nodes_are_asked_again_after_a_restart(self):
        with masters(Redoubt, Redoubt, Redis) as all_nodes:
            first = all_nodes[0]
            known = set(first.known())
            first.kill()
            first.start()
            wait_for(lambda: agree(all_nodes))
            self.assertEqual(set(first.known()), known)


if __name__ == "__main__":
    unittest.main()
