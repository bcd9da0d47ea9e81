"""Replication: redoubt-server as a master and as a replica, beside redis-server and itself."""

import contextlib
import os
import random
import signal
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import Redis, Redoubt, encode, free_port, wait_for  # noqa: E402

FAST = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1"}


def follow(replica, master, **config):
    c = replica.client()
    for name, value in config.items():
        c.command("CONFIG", "SET", name.replace("_", "-"), value)
    c.command("REPLICAOF", "127.0.0.1", master.port)


def linked(replica):
    return replica.info("replication").get("master_link_status") == "up"


def offset(server):
    return int(server.info("replication")["master_repl_offset"])


def digest(server):
    return server.client().command("DEBUG", "DIGEST")


def wait_same(master, *replicas):
    """All have the data and the offset of the master."""
    for replica in replicas:
        wait_for(lambda: linked(replica))
        wait_for(lambda: offset(replica) == offset(master))
        assert digest(replica) == digest(master), (master.name, replica.name)


def pause(server, seconds=None):
    """Stops the process until it is continued, or for some time. (DEBUG SLEEP could begin after the
    next write has arrived.)"""
    server.process.send_signal(signal.SIGSTOP)
    if seconds is not None:
        threading.Timer(seconds, resume, (server,)).start()


def resume(server):
    server.process.send_signal(signal.SIGCONT)


def fill(c, n, seed=1, db=0):
    """n random writes of all types."""
    rnd = random.Random(seed)
    commands = []
    if db:
        c.command("SELECT", db)
    for i in range(n):
        key = b"%d:%d" % (rnd.randrange(6), rnd.randrange(50))
        kind = int(key[:1])
        value = b"v%d" % rnd.randrange(1000)
        commands.append([
            lambda: ("SET", key, value * rnd.randrange(1, 9), *rnd.choice([(), ("PX", 100000)])),
            lambda: rnd.choice([("RPUSH", key, value, i), ("LPOP", key)]),
            lambda: rnd.choice([("SADD", key, value, i), ("SPOP", key)]),
            lambda: ("HSET", key, value, i),
            lambda: rnd.choice([("ZADD", key, i % 77, value), ("ZPOPMIN", key)]),
            lambda: ("XADD", key, "*", "f", value),
        ][kind]())
        if i % 97 == 0:
            commands += [("MULTI",), ("INCR", "n"), ("SPOP", b"2:1"), ("EXPIRE", key, 1000),
                         ("EXEC",)]
    for at in range(0, len(commands), 500):
        part = commands[at : at + 500]
        c.send_raw(b"".join(encode(*command) for command in part))
        for _ in part:
            c.read()


@contextlib.contextmanager
def servers(*kinds, config=None):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(kind({**FAST, **(config or {})})) for kind in kinds]


class FullSync(unittest.TestCase):
    def check(self, kinds, config=None, n=3000):
        with servers(*kinds, config=config) as (master, replica):
            c = master.client()
            fill(c, n)
            fill(c, 100, seed=2, db=3)
            replica.client().command("SET", "old", "data")
            follow(replica, master)
            wait_same(master, replica)
            fill(c, n, seed=3)
            c.command("SELECT", 5)
            c.command("SET", "k", "v")
            wait_same(master, replica)
            self.assertEqual(master.info("stats")["sync_full"], "1", master.log + replica.log)

    def test_redoubt_copies_redis_from_disk_and_from_its_socket(self):
        for diskless in ("no", "yes"):
            self.check((Redis, Redoubt), {"repl-diskless-sync": diskless})

    def test_redis_copies_redoubt_from_disk_and_from_its_socket(self):
        for diskless in ("no", "yes"):
            self.check((Redoubt, Redis), {"repl-diskless-sync": diskless})

    def test_redoubt_copies_redoubt_to_disk_and_to_memory(self):
        for diskless in ("no", "yes"):
            for load in ("disabled", "on-empty-db", "swapdb"):
                self.check((Redoubt, Redoubt),
                           {"repl-diskless-sync": diskless, "repl-diskless-load": load}, 500)


class PartialSync(unittest.TestCase):
    def check_cut(self, *kinds):
        with servers(*kinds) as (master, replica):
            follow(replica, master)
            fill(master.client(), 500)
            wait_same(master, replica)
            for seed in range(5):
                master.client().command("CLIENT", "KILL", "TYPE", "replica")
                fill(master.client(), 500, seed=seed)
                wait_same(master, replica)
            stats = master.info("stats")
            self.assertEqual((stats["sync_full"], stats["sync_partial_ok"]), ("1", "5"))

    def test_a_cut_link_continues(self):
        self.check_cut(Redoubt, Redoubt)
        self.check_cut(Redis, Redoubt)
        self.check_cut(Redoubt, Redis)

    def test_a_gap_larger_than_the_backlog_is_a_full_sync(self):
        with servers(Redoubt, Redoubt, config={"repl-backlog-size": "16384"}) as (master, replica):
            follow(replica, master)
            wait_same(master, replica)
            replica.client().command("CONFIG", "SET", "masterauth", "wrong")
            master.client().command("CLIENT", "KILL", "TYPE", "replica")
            c = master.client()
            for i in range(20):
                c.command("SET", i, "x" * 10000)
            replica.client().command("CONFIG", "SET", "masterauth", "")
            wait_same(master, replica)
            self.assertEqual(master.info("stats")["sync_full"], "2")
            self.assertIn("for lack of backlog", master.log)

    def test_a_replica_that_restarts_continues_from_its_snapshot(self):
        for kinds in ((Redoubt, Redoubt), (Redis, Redoubt), (Redoubt, Redis)):
            with servers(*kinds, config={"save": "3600 1"}) as (master, replica):
                follow(replica, master)
                fill(master.client(), 300)
                wait_same(master, replica)
                fill(master.client(), 300, seed=2, db=3)
                wait_same(master, replica)
                replica.config["replicaof"] = ["127.0.0.1", str(master.port)]
                self.assertEqual(replica.terminate(), 0)
                fill(master.client(), 300, seed=3, db=3)  # the stream has no SELECT again
                replica.start()
                wait_same(master, replica)
                stats = master.info("stats")
                self.assertEqual((stats["sync_full"], stats["sync_partial_ok"]), ("1", "1"))

    def test_a_master_that_restarts_is_continued(self):
        for kinds in ((Redoubt, Redoubt), (Redoubt, Redis)):
            with servers(*kinds, config={"save": "3600 1"}) as (master, replica):
                follow(replica, master)
                fill(master.client(), 300)
                c = master.client()
                c.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
                c.command("SET", "soon", "gone", "PX", 1)
                wait_same(master, replica)
                self.assertEqual(master.terminate(), 0)
                master.start_at(master.port)
                wait_same(master, replica)
                self.assertEqual(master.info("stats")["sync_partial_ok"], "1")
                self.assertIsNone(master.client().command("GET", "soon"))

    def test_a_promoted_replica_is_continued_by_the_others_and_by_the_old_master(self):
        for kinds in ((Redoubt,) * 3, (Redis, Redoubt, Redis), (Redoubt, Redis, Redoubt)):
            with servers(*kinds) as (old, new, other):
                follow(new, old)
                follow(other, old)
                c = old.client()
                fill(c, 500)
                # The old master writes nothing more, not even a PING or the DEL of a key that is
                # due: the new one would not have it.
                c.command("CONFIG", "SET", "repl-ping-replica-period", "86400")
                c.command("CLIENT", "PAUSE", "86400000", "WRITE")
                wait_same(old, new, other)
                new.client().command("REPLICAOF", "NO", "ONE")
                fill(new.client(), 500, seed=2)
                follow(other, new)
                follow(old, new)
                c.command("CLIENT", "UNPAUSE")
                wait_same(new, other, old)
                stats = new.info("stats")
                self.assertEqual((stats["sync_full"], stats["sync_partial_ok"]), ("0", "2"))


class Chains(unittest.TestCase):
    def test_sub_replicas_get_the_stream_of_the_top_master(self):
        for kinds in ((Redoubt,) * 3, (Redis, Redoubt, Redis), (Redoubt, Redis, Redoubt)):
            with servers(*kinds) as (top, middle, leaf):
                follow(middle, top)
                wait_same(top, middle)
                follow(leaf, middle)
                fill(top.client(), 1000)
                wait_same(top, middle, leaf)
                ids = {s.info("replication")["master_replid"] for s in (top, middle, leaf)}
                self.assertEqual(len(ids), 1)
                top.client().command("CLIENT", "KILL", "TYPE", "replica")
                fill(top.client(), 1000, seed=2)
                wait_same(top, middle, leaf)
                self.assertEqual(middle.info("stats")["sync_full"], "1")

    def test_messages_reach_the_subscribers_of_replicas(self):
        for kinds in ((Redoubt,) * 3, (Redoubt, Redis, Redoubt)):
            with servers(*kinds, config={"appendonly": "yes"}) as (top, middle, leaf):
                follow(middle, top)
                wait_same(top, middle)
                follow(leaf, middle)
                wait_same(top, leaf)
                listeners = [s.client() for s in (middle, leaf)]
                for listener in listeners:
                    listener.command("SUBSCRIBE", "c")
                    listener.command("SSUBSCRIBE", "c")
                c = top.client()
                c.command("PUBLISH", "c", "alone")
                c.command("SPUBLISH", "c", "shard")
                c.command("MULTI")
                c.command("SET", "k", "v")
                c.command("PUBLISH", "c", "together")
                c.command("EXEC")
                c.command("EVAL", "redis.call('publish', 'c', 'script')", 0)
                for listener in listeners:
                    self.assertEqual([listener.read()[1][-1][1] for _ in range(4)],
                                     [b"alone", b"shard", b"together", b"script"])
                wait_same(top, middle, leaf)
                top.restart()
                self.assertEqual(top.client().command("GET", "k"), b"v")

    def test_replicas_get_what_follows_the_end_of_the_log_at_once(self):
        with Redoubt({**FAST, "appendonly": "yes"}) as master, Redoubt(FAST) as replica:
            follow(replica, master)
            wait_same(master, replica)
            c = master.client()
            c.send_raw(encode("CONFIG", "SET", "appendonly", "no") + encode("SET", "k", "v"))
            self.assertEqual([c.read(), c.read()], [("+", b"OK")] * 2)
            wait_same(master, replica)
            self.assertEqual(replica.client().command("GET", "k"), b"v")

    def test_writes_on_a_writable_replica_stay_there(self):
        with servers(Redoubt, Redoubt, Redoubt) as (top, middle, leaf):
            follow(middle, top, replica_read_only="no")
            wait_same(top, middle)
            follow(leaf, middle)
            wait_same(top, leaf)
            middle.client().command("SET", "here", "only")
            top.client().command("SET", "every", "where")
            wait_for(lambda: leaf.client().command("GET", "every"))
            self.assertIsNone(leaf.client().command("GET", "here"))
            self.assertEqual(offset(middle), offset(top))


class Roles(unittest.TestCase):
    def test_a_replica_refuses_writes_and_stale_reads_if_configured(self):
        with servers(Redoubt, Redoubt) as (master, replica):
            follow(replica, master)
            wait_same(master, replica)
            c = replica.client()
            self.assertEqual(c.ask("SET", "k", "v"), (
                "-", b"READONLY You can't write against a read only replica."))
            master.kill()
            wait_for(lambda: not linked(replica))
            self.assertIsNone(c.command("GET", "k"))
            self.assertTrue(c.ask("PSYNC", "?", -1)[1].startswith(b"NOMASTERLINK "))
            c.command("CONFIG", "SET", "replica-serve-stale-data", "no")
            self.assertTrue(c.ask("GET", "k")[1].startswith(b"MASTERDOWN Link with MASTER is down"))
            self.assertEqual(c.ask("PING")[0], "-")
            self.assertEqual(c.ask("INFO")[0], "$")

    def test_a_pause_holds_the_stream(self):
        for kinds in ((Redis, Redoubt), (Redoubt, Redis)):
            with servers(*kinds) as (master, replica):
                follow(replica, master)
                wait_same(master, replica)
                c = replica.client()
                c.command("CLIENT", "PAUSE", 1000000, "WRITE")
                master.client().command("SET", "k", "v" * 100000)
                field = "slave_read_repl_offset"
                wait_for(lambda: int(replica.info("replication")[field]) > 100000)
                self.assertIsNone(c.command("GET", "k"))
                self.assertLess(int(replica.info("replication")["slave_repl_offset"]), 100000)
                c.command("CLIENT", "UNPAUSE")
                wait_for(lambda: c.command("GET", "k"))
                wait_same(master, replica)

    def test_wait_counts_the_replicas_that_have_the_write(self):
        with servers(Redoubt, Redoubt, Redis) as (master, one, two):
            c = master.client()
            self.assertEqual(c.command("WAIT", 0, 10), 0)
            follow(one, master)
            follow(two, master)
            wait_same(master, one, two)
            c.command("SET", "k", "v")
            self.assertEqual(c.command("WAIT", 2, 600000), 2)
            c.command("SET", "k", "w")
            self.assertEqual(c.command("WAIT", 2, 600000), 2)
            self.assertEqual(c.command("WAIT", 3, 100), 2)
            self.assertEqual(one.client().ask("WAIT", 1, 1)[0], "-")

    def test_min_replicas_to_write_needs_replicas_that_answer(self):
        with servers(Redoubt, Redoubt) as (master, replica):
            c = master.client()
            c.command("CONFIG", "SET", "min-replicas-to-write", 1, "min-replicas-max-lag", 2)
            self.assertEqual(c.ask("SET", "k", "v"), (
                "-", b"NOREPLICAS Not enough good replicas to write."))
            follow(replica, master)
            wait_for(lambda: c.ask("SET", "k", "v")[0] == "+")
            asleep = threading.Thread(target=replica.client().command, args=("DEBUG", "SLEEP", 6))
            asleep.start()
            wait_for(lambda: c.ask("SET", "k", "v")[0] == "-")
            asleep.join()
            wait_for(lambda: c.ask("SET", "k", "v")[0] == "+")

    def test_expired_keys_are_hidden_and_wait_for_the_master(self):
        for kinds in ((Redoubt, Redoubt), (Redis, Redoubt)):
            with servers(*kinds) as (master, replica):
                c, r = master.client(), replica.client()
                follow(replica, master)
                wait_same(master, replica)
                c.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
                c.command("SET", "k", "v", "PX", 50)
                wait_for(lambda: r.command("DBSIZE") == 1)
                wait_for(lambda: r.command("GET", "k") is None)
                self.assertEqual(r.command("DBSIZE"), 1)
                c.command("GET", "k")
                wait_for(lambda: r.command("DBSIZE") == 0)

    def test_evictions_of_the_master_reach_a_replica_that_ignores_maxmemory(self):
        config = {"maxmemory-policy": "allkeys-lru"}
        with servers(Redoubt, Redoubt, config=config) as (master, replica):
            follow(replica, master)
            c = master.client()
            for i in range(300):
                c.command("SET", i, "x" * 10000)
            wait_same(master, replica)
            used = int(master.info("memory")["used_memory"])
            replica.client().command("CONFIG", "SET", "maxmemory", 1)
            c.command("CONFIG", "SET", "maxmemory", used - 1000000)
            wait_for(lambda: c.command("DBSIZE") < 250)
            wait_same(master, replica)
            self.assertEqual(replica.info("stats")["evicted_keys"], "0")

    def test_the_role_is_reported_and_kept_in_the_configuration(self):
        with servers(Redoubt, Redoubt) as (master, replica):
            follow(replica, master)
            wait_same(master, replica)
            role = replica.client().command("ROLE")
            self.assertEqual(role[:4], [b"slave", b"127.0.0.1", master.port, b"connected"])
            wait_for(lambda: master.client().command("ROLE")[2])  # it has acknowledged
            role = master.client().command("ROLE")
            self.assertEqual(role[2][0][:2], [b"127.0.0.1", b"%d" % replica.port])
            value = replica.client().command("CONFIG", "GET", "replicaof")
            self.assertEqual(value[1], b"127.0.0.1 %d" % master.port)
            flags = master.client().command("CLIENT", "LIST", "TYPE", "replica")
            self.assertIn(b" flags=S ", flags)
            flags = replica.client().command("CLIENT", "LIST", "TYPE", "master")
            self.assertIn(b" flags=M ", flags)

    def test_clients_that_wait_are_disconnected_from_a_new_replica(self):
        text = (b"UNBLOCKED force unblock from blocking operation, instance state changed "
                b"(master -> replica?)")
        waits = [("BLPOP", "l", 0), ("BZMPOP", 0, 1, "z", "MIN"), ("WAIT", 1, 0),
                 ("BLMOVE", "l", "m", "LEFT", "LEFT", 0),
                 ("XREAD", "BLOCK", 0, "STREAMS", "s", "$")]
        for kind in (Redoubt, Redis):
            with servers(kind) as (server,):
                c, blocked = server.client(), [server.client() for _ in waits]
                for one, words in zip(blocked, waits):
                    one.send_raw(encode(*words) + encode("SET", "after", 1))
                wait_for(lambda: server.info("clients")["blocked_clients"] == str(len(waits)))
                c.command("REPLICAOF", "127.0.0.1", free_port())
                for one in blocked:
                    self.assertEqual(one.read(), ("-", text))
                    self.assertTrue(one.closed())
                    self.assertEqual(one.buf, b"")
                c.command("REPLICAOF", "NO", "ONE")
                self.assertEqual(c.command("EXISTS", "after"), 0)

    def test_a_master_with_a_password_is_logged_in_to(self):
        for kinds in ((Redoubt, Redoubt), (Redis, Redoubt), (Redoubt, Redis)):
            with servers(*kinds) as (master, replica):
                c = master.client()
                c.command("CONFIG", "SET", "requirepass", b"secret\0bytes")
                c.command("AUTH", b"secret\0bytes")
                c.command("SET", "k", "v")
                follow(replica, master, masterauth="secret")
                wait_for(lambda: "Unable to AUTH to MASTER" in replica.log)
                replica.client().command("CONFIG", "SET", "masterauth", b"secret\0bytes")
                wait_for(lambda: linked(replica))
                self.assertEqual(replica.client().command("GET", "k"), b"v")
                if kinds[1] is Redoubt:
                    got = replica.client().command("CONFIG", "GET", "masterauth")
                    self.assertEqual(got, [b"masterauth", b"secret\0bytes"])


    def test_a_replica_that_causes_a_reply_is_disconnected(self):
        with Redoubt(FAST) as server:
            for command, name in ((("PING",), "ping"), (("XINFO", "HELP"), "xinfo|help"),
                                  (("GET", "k"), "get")):
                c = server.client()
                c.send("PSYNC", "?", -1)
                self.assertEqual(c.read()[1][:10], b"FULLRESYNC")
                c.send(*command)
                wait_for(lambda: f"Replica generated a reply to command '{name}', disconnecting it"
                         in server.log)
                wait_for(lambda: server.info("replication")["connected_slaves"] == "0")
            self.assertIn("== CRITICAL == This master is sending an error to its replica: "
                          "'Replica can't interact with the keyspace'", server.log)
            self.assertEqual(server.client().ask("PSYNC", "?", "x")[0], "-")
            self.assertIn("asks for synchronization but with a wrong offset", server.log)

    def test_a_replica_that_loads_for_long_is_heard_of(self):
        """It sends empty lines until it can acknowledge something."""
        def lag(server):
            return int(server.info("replication")["slave0"].rsplit("lag=", 1)[1])

        for diskless in ("no", "yes"):
            with Redoubt({**FAST, "repl-diskless-sync": diskless}) as server:
                c = server.client()
                c.command("REPLCONF", "capa", "eof", "capa", "psync2")
                c.send("PSYNC", "?", -1)
                wait_for(lambda: "state=online" in server.info("replication")["slave0"])
                wait_for(lambda: lag(server) >= 2)
                wait_for(lambda: c.send_raw(b"\n") or lag(server) < 2)

    def test_a_replica_that_is_stuck_is_dropped_and_the_other_gets_the_snapshot(self):
        config = {"repl-diskless-sync": "yes", "repl-diskless-sync-delay": "60",
                  "repl-diskless-sync-max-replicas": "2", "rdbcompression": "no"}
        with servers(Redoubt, Redoubt, config=config) as (master, replica):
            c = master.client()
            c.command("DEBUG", "POPULATE", 20000, "key", 1000)
            c.command("CONFIG", "SET", "repl-timeout", 2)
            follow(replica, master)
            wait_for(lambda: "Delay next BGSAVE" in master.log)
            stuck = master.client()  # its sockets hold less than the snapshot
            stuck.command("REPLCONF", "capa", "eof")
            stuck.send("PSYNC", "?", "-1")
            wait_for(lambda: "done reading from pipe" in master.log)
            self.assertIn("done reading from pipe, 1 replicas still up", master.log)
            wait_same(master, replica)
            self.assertEqual(master.info("stats")["sync_full"], "2")

    def test_a_snapshot_that_no_replica_waits_for_is_ended(self):
        for save, ends in (("", True), ("900 1", False)):
            config = {**FAST, "save": save, "rdb-key-save-delay": "100000000",
                      "repl-diskless-sync": "no"}
            with Redoubt(config) as server:
                c = server.client()
                c.command("SET", "k", "v")
                replicas = [server.client() for _ in range(2)]
                for replica in replicas:
                    replica.send("SYNC")
                wait_for(lambda: server.info("replication")["connected_slaves"] == "2")
                for left in (1, 0):
                    self.assertEqual(server.info("persistence")["rdb_bgsave_in_progress"], "1")
                    replicas[left].close()
                    wait_for(lambda: server.info("replication")["connected_slaves"] == str(left))
                running = server.info("persistence")["rdb_bgsave_in_progress"]
                self.assertEqual(running, "0" if ends else "1")
                c.command("CONFIG", "SET", "rdb-key-save-delay", 0)
                server.kill()


class Failovers(unittest.TestCase):
    def test_a_failover_loses_nothing_and_the_old_master_follows(self):
        for kinds in ((Redoubt, Redoubt), (Redis, Redoubt), (Redoubt, Redis)):
            with servers(*kinds) as (old, new):
                follow(new, old)
                fill(old.client(), 500)
                wait_same(old, new)
                old.client().command("FAILOVER", "TO", "127.0.0.1", new.port, "TIMEOUT", 20000)
                wait_for(lambda: new.info("replication")["role"] == "master")
                wait_for(lambda: linked(old))
                fill(new.client(), 500, seed=2)
                wait_same(new, old)
                self.assertEqual(new.info("stats")["sync_full"], "0")
                self.assertEqual(old.info("replication")["master_failover_state"], "no-failover")

    def test_writes_wait_during_a_failover_and_an_abort_lets_them_run(self):
        with servers(Redoubt, Redoubt) as (master, replica):
            follow(replica, master)
            wait_same(master, replica)
            c, other = master.client(), master.client()
            self.assertEqual(c.ask("FAILOVER", "ABORT"), ("-", b"ERR No failover in progress."))
            pause(replica)
            c.command("SET", "before", 1)
            c.command("FAILOVER")
            self.assertEqual(c.ask("FAILOVER")[1], b"ERR FAILOVER already in progress.")
            self.assertEqual(c.ask("REPLICAOF", "NO", "ONE")[0], "-")
            self.assertIn("waiting-for-sync", master.info()["master_failover_state"])
            other.send("SET", "k", "v")
            self.assertTrue(other.nothing())
            c.command("FAILOVER", "ABORT")
            self.assertEqual(other.read(), ("+", b"OK"))

    def test_a_failover_is_refused_with_the_reason(self):
        with servers(Redoubt, Redoubt) as (master, replica):
            follow(replica, master)
            wait_same(master, replica)
            for args, text in ((("TO", "127.0.0.1", 1), "is not a replica"),
                               (("FORCE",), "requires both a timeout and target"),
                               (("TIMEOUT", 0), "must be greater than 0"),
                               (("TO", "127.0.0.1"), "syntax error")):
                self.assertIn(text, master.client().ask("FAILOVER", *args)[1].decode())
            self.assertIn("not valid when server is a replica",
                          replica.client().ask("FAILOVER")[1].decode())


class Ends(unittest.TestCase):
    def test_a_shutdown_waits_until_replicas_have_the_last_write(self):
        with servers(Redoubt, Redoubt, config={"shutdown-timeout": "600"}) as (master, replica):
            follow(replica, master)
            c = master.client()
            wait_same(master, replica)
            pause(replica)
            c.command("SET", "last", "write")
            master.process.send_signal(signal.SIGTERM)
            wait_for(lambda: "Waiting for replicas before shutting down." in master.log)
            resume(replica)
            self.assertEqual(master.wait_end(), 0)
            self.assertIn("1 of 1 replicas are in sync when shutting down.", master.log)
            self.assertEqual(replica.client().command("GET", "last"), b"write")

    def test_a_shutdown_can_be_aborted_while_it_waits(self):
        with servers(Redoubt, Redoubt) as (master, replica):
            follow(replica, master)
            wait_same(master, replica)
            c, other = master.client(), master.client()
            pause(replica)
            c.command("SET", "k", "v")
            c.send("SHUTDOWN", "NOSAVE")
            wait_for(lambda: "Waiting for replicas" in master.log)
            other.send("SET", "k", "w")
            self.assertTrue(other.nothing())
            self.assertEqual(master.client().command("SHUTDOWN", "ABORT"), b"OK")
            self.assertEqual(c.read(), ("-", b"ERR Errors trying to SHUTDOWN. Check logs."))
            self.assertEqual(other.read(), ("+", b"OK"))
            resume(replica)

    def test_a_timeout_ends_the_wait(self):
        with servers(Redoubt, Redoubt, config={"shutdown-timeout": "1"}) as (master, replica):
            follow(replica, master)
            wait_same(master, replica)
            pause(replica)
            master.client().command("SET", "k", "v")
            self.assertEqual(master.terminate(), 0)
            self.assertIn("Lagging replica 127.0.0.1:", master.log)
            self.assertIn("0 of 1 replicas are in sync when shutting down.", master.log)
            resume(replica)

    def test_a_shutdown_that_cannot_save_is_an_error_for_those_who_wait(self):
        with servers(Redoubt, Redoubt) as (master, replica):
            follow(replica, master)
            wait_same(master, replica)
            c = master.client()
            pause(replica, seconds=2)
            c.command("SET", "k", "v")
            c.command("CONFIG", "SET", "rdb-key-save-delay", 30000000, "appendonly", "yes")
            self.assertEqual(c.ask("SHUTDOWN"), (
                "-", b"ERR Errors trying to SHUTDOWN. Check logs."))
            self.assertIn("Errors trying to shut down the server.", master.log)
            self.assertEqual(c.ask("SET", "k", "w"), ("+", b"OK"))
