"""A node of a cluster that is alone: its slots, its keys by slot, and where it sends clients.

The texts are those of redis-server 7.0.15."""

import fcntl
import os
import subprocess
import unittest

from cluster_node import SLOTS, OurNode
from server_under_test import Redoubt, encode, program, wait_for

FOREIGN = "f" * 40


def error(text):
    return ("-", text.encode())


class Cases(unittest.TestCase):
    def check(self, client, cases):
        for args, answer in cases:
            with self.subTest(args):
                self.assertEqual(client.ask(*args.split(" ")), answer)


class Slots(Cases):
    def test_slots_are_added_and_given_up(self):
        ok = ("+", b"OK")
        with OurNode() as node:
            self.check(node.client(), [
                ("CLUSTER KEYSLOT foo", (":", 12182)),
                ("CLUSTER KEYSLOT {foo}bar", (":", 12182)),
                ("CLUSTER ADDSLOTS 0 1 2", ok),
                ("CLUSTER ADDSLOTS 3 2", error("ERR Slot 2 is already busy")),
                ("CLUSTER ADDSLOTS 3 3", error("ERR Slot 3 specified multiple times")),
                ("CLUSTER ADDSLOTS 16384", error("ERR Invalid or out of range slot")),
                ("CLUSTER ADDSLOTS x", error("ERR Invalid or out of range slot")),
                ("CLUSTER DELSLOTS 3", error("ERR Slot 3 is already unassigned")),
                ("CLUSTER DELSLOTS 2", ok),
                ("CLUSTER ADDSLOTSRANGE 5 4",
                 error("ERR start slot number 5 is greater than end slot number 4")),
                ("CLUSTER ADDSLOTSRANGE 4 5 6",
                 error("ERR wrong number of arguments for 'cluster|addslotsrange' command")),
                ("CLUSTER ADDSLOTSRANGE 4 5 9 11", ok),
                ("CLUSTER DELSLOTSRANGE 4 5", ok),
                ("CLUSTER SETSLOT 1 MIGRATING " + FOREIGN,
                 error("ERR I don't know about node " + FOREIGN)),
                ("CLUSTER SETSLOT 7 MIGRATING " + FOREIGN,
                 error("ERR I'm not the owner of hash slot 7")),
                ("CLUSTER SETSLOT 1 IMPORTING " + FOREIGN,
                 error("ERR I'm already the owner of hash slot 1")),
                ("CLUSTER SETSLOT 7 NODE " + FOREIGN, error("ERR Unknown node " + FOREIGN)),
                ("CLUSTER SETSLOT 7 STABLE", ok),
                ("CLUSTER SETSLOT 7 STABLE x", error(
                    "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER "
                    "HELP")),
            ])
            line = list(node.known().values())[0]
            self.assertEqual(line[2], "myself,master")
            self.assertEqual(line[8:], ["0-1", "9-11"])
            self.check(node.client(), [("CLUSTER FLUSHSLOTS", ok)])
            self.assertEqual(list(node.known().values())[0][8:], [])

    def test_keys_are_counted_and_listed_by_slot(self):
        with OurNode() as node:
            node.own()
            c = node.wait_ok()
            for i in range(100):
                c.command("SET", f"{{foo}}{i}", "v" * (i % 60))
                c.command("SADD", f"other{i}", "m")
            self.check(c, [
                ("CLUSTER COUNTKEYSINSLOT 12182", (":", 100)),
                ("CLUSTER COUNTKEYSINSLOT 16384", error("ERR Invalid slot")),
                ("CLUSTER GETKEYSINSLOT 12182 -1",
                 error("ERR Invalid slot or number of keys")),
            ])
            self.assertEqual(len(c.command("CLUSTER", "GETKEYSINSLOT", 12182, 7)), 7)
            names = {b"{foo}%d" % i for i in range(100)}
            self.assertEqual(set(c.command("CLUSTER", "GETKEYSINSLOT", 12182, 1000)), names)
            for i in range(0, 100, 2):
                c.command("DEL", f"{{foo}}{i}")
                c.command("RENAME", f"{{foo}}{i + 1}", f"{{foo}}{i}")
                c.command("APPEND", f"{{foo}}{i}", "longer" * 20)
            even = {b"{foo}%d" % i for i in range(0, 100, 2)}
            self.assertEqual(set(c.command("CLUSTER", "GETKEYSINSLOT", 12182, 1000)), even)
            c.command("DEBUG", "RELOAD")
            self.assertEqual(set(c.command("CLUSTER", "GETKEYSINSLOT", 12182, 1000)), even)
            self.check(c, [("CLUSTER FLUSHSLOTS", error(
                "ERR DB must be empty to perform CLUSTER FLUSHSLOTS."))])
            for how in ("ASYNC", "SYNC"):
                c.command("FLUSHALL", how)
                self.assertEqual(c.command("CLUSTER", "COUNTKEYSINSLOT", 12182), 0)
                c.command("SET", "{foo}x", 1)
                self.assertEqual(c.command("CLUSTER", "COUNTKEYSINSLOT", 12182), 1)

    def test_the_sum_of_the_slots_is_the_number_of_keys(self):
        with OurNode({"appendonly": "yes"}) as node:
            node.own()
            c = node.wait_ok()
            c.command("DEBUG", "POPULATE", 3000)
            for _ in range(2):
                c.send_raw(b"".join(encode("CLUSTER", "COUNTKEYSINSLOT", slot)
                                    for slot in range(SLOTS)))
                self.assertEqual(sum(c.read()[1] for _ in range(SLOTS)), 3000)
                c.command("BGREWRITEAOF")
                wait_for(lambda: node.info()["aof_rewrite_in_progress"] == "0" and
                         node.info()["aof_rewrite_scheduled"] == "0")
                node.kill()
                node.start()
                c = node.wait_ok()


class Redirections(Cases):
    def test_keys_of_slots_without_owner_are_refused(self):
        with OurNode({"cluster-require-full-coverage": "no"}) as node:
            c = node.client()
            self.check(c, [("GET foo", error("CLUSTERDOWN Hash slot not served"))])
            node.own(12182, 12182)
            c = node.wait_ok()
            self.check(c, [
                ("SET foo 1", ("+", b"OK")),
                ("GET bar", error("CLUSTERDOWN Hash slot not served")),
                ("MGET foo bar", error("CROSSSLOT Keys in request don't hash to the same slot")),
                ("MGET foo {foo}x", ("*", [("$", b"1"), ("$", None)])),
                ("PING", ("+", b"PONG")),
                ("DBSIZE", (":", 1)),
                ("SSUBSCRIBE foo bar",
                 error("CROSSSLOT Keys in request don't hash to the same slot")),
                ("SSUBSCRIBE bar", error("CLUSTERDOWN Hash slot not served")),
                ("SPUBLISH foo bar", (":", 0)),
                ("SPUBLISH bar foo", error("CLUSTERDOWN Hash slot not served")),
                ("PUBLISH bar foo", (":", 0)),
            ])

    def test_a_cluster_that_does_not_cover_all_slots_is_down(self):
        with OurNode() as node:
            node.own(12182, 12182)
            c = node.client()
            self.check(c, [("GET foo", error("CLUSTERDOWN The cluster is down"))])
            c.command("CONFIG", "SET", "cluster-allow-reads-when-down", "yes")
            self.check(c, [
                ("GET foo", ("$", None)),
                ("SET foo 1", error(
                    "CLUSTERDOWN The cluster is down and only accepts read commands")),
            ])

    def test_a_transaction_is_sent_elsewhere_as_a_whole(self):
        with OurNode({"cluster-require-full-coverage": "no"}) as node:
            node.own(12182, 12182)
            c = node.wait_ok()
            self.check(c, [
                ("MULTI", ("+", b"OK")),
                ("SET foo 1", ("+", b"QUEUED")),
                ("SET bar 1", error("CLUSTERDOWN Hash slot not served")),
                ("EXEC", error("EXECABORT Transaction discarded because of previous errors.")),
                ("MULTI", ("+", b"OK")),
                ("SET foo 1", ("+", b"QUEUED")),
                ("EXEC", ("*", [("+", b"OK")])),
                ("MULTI", ("+", b"OK")),
                ("SET foo 2", ("+", b"QUEUED")),
            ])
            node.client().command("CLUSTER", "DELSLOTS", 12182)
            self.check(c, [
                ("EXEC", error("CLUSTERDOWN Hash slot not served")),
                ("EXEC", error("ERR EXEC without MULTI")),
            ])

    def test_scripts_have_the_keys_that_they_name(self):
        with OurNode({"cluster-require-full-coverage": "no"}) as node:
            node.own(12182, 12182)
            node.own(0, 100)
            c = node.wait_ok()
            other = next(f"k{i}" for i in range(10 ** 6)
                         if c.command("CLUSTER", "KEYSLOT", f"k{i}") <= 100)
            local = "Script attempted to access a non local key in a cluster node"
            self.assertEqual(c.command("EVAL", "return redis.call('get', KEYS[1])", 1, "foo"), None)
            self.assertEqual(c.ask("EVAL", "return 1", 2, "foo", other), error(
                "CROSSSLOT Keys in request don't hash to the same slot"))
            self.assertEqual(c.ask("EVAL", "return 1", 1, "bar"),
                             error("CLUSTERDOWN Hash slot not served"))
            for body in ("return redis.call('get', 'bar')",
                         "#!lua\nreturn redis.call('get', 'bar')"):
                self.assertIn(local, c.ask("EVAL", body, 0)[1].decode())
            both = f"redis.call('get', 'foo') return redis.call('get', '{other}')"
            self.assertEqual(c.ask("EVAL", both, 0), ("$", None))
            self.assertEqual(c.ask("EVAL", "#!lua flags=allow-cross-slot-keys\n" + both, 0),
                             ("$", None))
            self.assertIn("Script attempted to access keys that do not hash to the same slot",
                          c.ask("EVAL", "#!lua\n" + both, 0)[1].decode())
            self.assertEqual(c.ask("EVAL", "#!lua flags=no-cluster\nreturn 1", 0), error(
                "ERR Can not run script on cluster, 'no-cluster' flag is set."))

    def test_there_is_one_database(self):
        with OurNode() as node:
            node.own()
            c = node.wait_ok()
            self.check(c, [
                ("SELECT 0", ("+", b"OK")),
                ("SELECT 1", error("ERR SELECT is not allowed in cluster mode")),
                ("MOVE foo 1", error("ERR MOVE is not allowed in cluster mode")),
                ("SWAPDB 0 1", error("ERR SWAPDB is not allowed in cluster mode")),
                ("COPY {a}1 {a}2 DB 1", error(
                    "ERR Copying to another database is not allowed in cluster mode")),
                ("SORT foo BY w_*", error("ERR BY option of SORT denied in Cluster mode.")),
                ("SORT foo GET w_*", error("ERR GET option of SORT denied in Cluster mode.")),
                ("REPLICAOF 127.0.0.1 1", error("ERR REPLICAOF not allowed in cluster mode.")),
                ("FAILOVER", error(
                    "ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command "
                    "instead.")),
            ])

    def test_a_client_that_waits_learns_that_its_slot_is_gone(self):
        with OurNode({"cluster-require-full-coverage": "no"}) as node:
            node.own(12182, 12182)
            node.own(0, 0)
            c, s = node.wait_ok(), node.client()
            c.send("BLPOP", "foo", 0)
            s.command("SSUBSCRIBE", "{foo}1")
            s.command("SSUBSCRIBE", "{foo}2")
            node.client().command("CLUSTER", "DELSLOTS", 12182)
            self.assertEqual(c.read(), error("CLUSTERDOWN Hash slot not served"))
            self.assertEqual([s.read(), s.read()], [
                ("*", [("$", b"sunsubscribe"), ("$", b"{foo}1"), (":", 1)]),
                ("*", [("$", b"sunsubscribe"), ("$", b"{foo}2"), (":", 0)])])
            self.assertEqual(s.ask("PING"), ("+", b"PONG"))


class Node(Cases):
    def test_it_describes_itself(self):
        with OurNode() as node:
            c = node.client()
            self.check(c, [
                ("CLUSTER MEET x 1", error("ERR Invalid node address specified: x:1")),
                ("CLUSTER MEET 127.0.0.1 x", error("ERR Invalid TCP base port specified: x")),
                ("CLUSTER MEET 127.0.0.1 1 x", error("ERR Invalid TCP bus port specified: x")),
                ("CLUSTER FORGET " + FOREIGN, error("ERR Unknown node " + FOREIGN)),
                ("CLUSTER FORGET " + node.id, error(
                    "ERR I tried hard but I can't forget myself...")),
                ("CLUSTER REPLICATE " + FOREIGN, error("ERR Unknown node " + FOREIGN)),
                ("CLUSTER REPLICATE " + node.id, error("ERR Can't replicate myself")),
                ("CLUSTER REPLICAS " + node.id, ("*", [])),
                ("CLUSTER SLAVES " + FOREIGN, error("ERR Unknown node " + FOREIGN)),
                ("CLUSTER COUNT-FAILURE-REPORTS " + node.id, (":", 0)),
                ("CLUSTER FAILOVER", error("ERR You should send CLUSTER FAILOVER to a replica")),
                ("CLUSTER FAILOVER x", error("ERR syntax error")),
                ("CLUSTER SET-CONFIG-EPOCH -1", error(
                    "ERR Invalid config epoch specified: -1")),
                ("CLUSTER SET-CONFIG-EPOCH 7", ("+", b"OK")),
                ("CLUSTER SET-CONFIG-EPOCH 8", error(
                    "ERR Node config epoch is already non-zero")),
                ("CLUSTER BUMPEPOCH", ("+", b"STILL 7")),
                ("CLUSTER SAVECONFIG", ("+", b"OK")),
                ("CLUSTER LINKS", ("*", [])),
                ("CLUSTER SLOTS", ("*", [])),
                ("CLUSTER NOPE", error("ERR unknown subcommand 'NOPE'. Try CLUSTER HELP.")),
                ("READONLY", ("+", b"OK")),
                ("READWRITE", ("+", b"OK")),
                ("ASKING", ("+", b"OK")),
            ])
            info = node.info()
            self.assertEqual(info["cluster_enabled"], "1")
            self.assertEqual(info["redis_mode"], "cluster")
            self.assertEqual(node.client(3).command("HELLO")[b"mode"], b"cluster")
            node.own(0, 9)
            slots = c.command("CLUSTER", "SLOTS")
            self.assertEqual(slots, [[0, 9, [b"", node.port, node.id.encode(), []]]])
            shard = c.command("CLUSTER", "SHARDS")[0]
            self.assertEqual(shard[:2], [b"slots", [0, 9]])
            self.assertIn(b"role", shard[3][0])

    def test_what_it_announces_changes_at_once(self):
        with OurNode() as node:
            c, before = node.client(), node.known()[node.id][1]
            for name, value, place in (("announce-port", "1234", f":1234@{node.port + 10000}"),
                                       ("announce-bus-port", "1235", f":{node.port}@1235"),
                                       ("announce-hostname", "a.example", before + ",a.example")):
                c.command("CONFIG", "SET", "cluster-" + name, value)
                self.assertEqual(node.known()[node.id][1], place)
                c.command("CONFIG", "SET", "cluster-" + name, "0" if value.isdigit() else "")
                self.assertEqual(node.known()[node.id][1], before)

    def test_reset_forgets_all_and_hard_takes_another_id(self):
        with OurNode() as node:
            node.own()
            c, before = node.wait_ok(), node.id
            c.command("SET", "foo", 1)
            self.check(c, [("CLUSTER RESET", error(
                "ERR CLUSTER RESET can't be called with master nodes containing keys"))])
            c.command("DEL", "foo")
            c.command("CLUSTER", "RESET")
            self.assertEqual(node.id, before)
            self.assertEqual(c.command("CLUSTER", "SLOTS"), [])
            c.command("CLUSTER", "RESET", "HARD")
            self.assertNotEqual(node.id, before)

    def test_what_it_knows_outlives_it(self):
        with OurNode() as node:
            node.own(5, 500)
            before = node.id
            for stop in (node.kill, node.terminate):
                stop()
                node.start()
                line = node.known()[before]
                self.assertEqual(line[8:], ["5-500"])

    def test_keys_in_slots_without_owner_make_this_node_the_owner(self):
        with Redoubt({"appendonly": "yes"}) as plain:
            plain.client().command("SET", "foo", 1)
            plain.client().command("CONFIG", "SET", "appendfsync", "always")
            log = plain.path("appendonlydir")
            with OurNode({"appendonly": "yes"}) as node:
                node.terminate()
                plain.terminate()
                subprocess.run(["cp", "-r", log, node.dir], check=True)
                node.start()
                self.assertEqual(node.known()[node.id][8:], ["12182"])

    def test_two_nodes_do_not_share_a_file(self):
        with OurNode() as node:
            for _ in range(2):
                done = subprocess.run(
                    [program(), "--port", "0", "--cluster-port", "1", "--cluster-enabled", "yes",
                     "--dir", node.dir], stdout=subprocess.PIPE, check=False, timeout=600)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"is already used by a different Redis Cluster node", done.stdout)
                node.client().command("CLUSTER", "BUMPEPOCH")  # the file is another one then
            with open(os.path.join(node.dir, "nodes.conf"), encoding="utf-8") as file:
                with self.assertRaises(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_a_torn_file_ends_the_start(self):
        with OurNode() as node:
            node.terminate()
            with open(os.path.join(node.dir, "nodes.conf"), "w", encoding="utf-8") as file:
                file.write("something else\n")
            node.spawn()
            self.assertEqual(node.wait_end(), 1)
            self.assertIn("corrupted cluster config file", node.log)

    def test_a_port_must_leave_room_for_that_of_the_bus(self):
        done = subprocess.run([program(), "--port", "60000", "--cluster-enabled", "yes"],
                              stdout=subprocess.PIPE, check=False, timeout=600, cwd="/tmp")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"too high for cluster mode", done.stdout)


if __name__ == "__main__":
    unittest.main()
