"""redoubt migrate between real servers.

REDOUBT names the program.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "kills"))
import migrate as kills  # noqa: E402
import redis_server  # noqa: E402
from cluster_nodes import RealNodes  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
FAST = {"repl-diskless-sync-delay": "0"}


@contextlib.contextmanager
def another_client(server):
    other = redis_server.RedisServer()
    other.port, other.dir = server.port, server.dir
    other._connect()  # pylint: disable=protected-access
    try:
        yield other
    finally:
        other._disconnect()  # pylint: disable=protected-access


class Migration(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.source, self.target = self.server(), self.server()

    def server(self, **config):
        server = redis_server.RedisServer({**FAST, **config}).__enter__()
        self.addCleanup(server.close)
        return server

    def args(self, *args, target=None):
        return [REDOUBT, "migrate", "--json", "--spool", os.path.join(self.folder, "spool"), *args,
                f"redis://127.0.0.1:{self.source.port}",
                f"redis://127.0.0.1:{(target or self.target).port}"]

    def migrate(self, *args, status=0, target=None):
        done = subprocess.run(self.args("--until-caught-up", *args, target=target),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=600,
                              check=False)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        self.err = done.stderr.decode()
        return json.loads(done.stdout)

    def same(self, *args):
        done = subprocess.run([REDOUBT, "diff", "--not", "--prefix", "redoubt:migrate:", *args,
                               f"redis://127.0.0.1:{self.source.port}",
                               f"redis://127.0.0.1:{self.target.port}"],
                              capture_output=True, check=False)
        if b"no key matches" not in done.stderr:  # both have none
            self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))


class Single(Migration):
    def test_a_run_continues_where_the_last_one_ended(self):
        self.source.command("SET", "s", "1")
        self.source.command("RPUSH", "l", "1")
        first = self.migrate()
        self.assertEqual((first["snapshots"], first["keys"], first["refused"]), (1, 2, 0))
        for i in range(5):
            self.source.command("INCR", "s")
            self.source.command("RPUSH", "l", i)
            self.source.command("SELECT", 3)
            self.source.command("APPEND", "a", i)
            self.source.command("SELECT", 0)
        second = self.migrate()
        self.assertEqual((second["snapshots"], second["commands"]), (0, 15))
        self.assertEqual(second["sources"][0]["applied"], second["sources"][0]["received"])
        self.assertEqual(self.migrate()["commands"], 0)
        self.same()

    def test_what_concerns_databases_keeps_the_position(self):
        self.source.command("SET", "a", "1")
        self.migrate()
        for command in (("SWAPDB", 0, 1), ("SET", "b", 1), ("SWAPDB", 0, 2), ("FLUSHDB",),
                        ("INCR", "n"), ("FLUSHALL",), ("INCR", "n"), ("SWAPDB", 0, 7)):
            self.source.command(*command)
            result = self.migrate()
            self.assertEqual((result["snapshots"], result["commands"]), (0, 1), command)
            self.same()
        self.source.command("SWAPDB", 0, 1)
        self.source.command("FLUSHALL")
        self.source.command("MULTI")
        self.source.command("INCR", "n")
        self.source.command("FLUSHALL")
        self.source.command("INCR", "n")
        self.source.command("EXEC")
        self.assertEqual(self.migrate()["transactions"], 1)
        self.same()

    def test_functions_are_copied(self):
        code = "#!lua name=%s\nredis.register_function('%s', function() return 1 end)"
        self.source.command("FUNCTION", "LOAD", code % ("one", "f"))
        self.migrate()
        self.source.command("FUNCTION", "LOAD", code % ("two", "g"))
        self.source.command("FUNCTION", "DELETE", "one")
        self.migrate()
        self.assertEqual(len(self.target.command("FUNCTION", "LIST")), 1)
        self.assertEqual(self.target.command("FCALL", "g", 0), 1)

    def test_a_target_with_keys_is_refused(self):
        self.target.command("SET", "other", "1")
        self.target.command("SET", "a", "old")
        self.source.command("SET", "a", "new")
        self.migrate(status=2)
        self.assertIn("--flush", self.err)
        self.assertEqual(self.target.command("GET", "a"), b"old")
        self.migrate("--merge")
        self.assertEqual(self.target.command("MGET", "a", "other"), [b"new", b"1"])
        self.migrate("--merge", "--recopy")
        self.migrate("--flush", "--merge", status=2)

    def test_flush_empties_the_target_once(self):
        self.target.command("SET", "other", "1")
        self.source.command("SET", "a", "1")
        self.migrate("--flush")
        self.target.command("SET", "later", "1")
        self.assertEqual(self.migrate("--flush")["snapshots"], 0)
        self.assertEqual(self.target.command("EXISTS", "other", "later"), 1)

    def test_without_the_spool_the_source_continues(self):
        self.source.command("SET", "a", "1")
        self.migrate()
        self.source.command("SELECT", 2)
        self.source.command("INCR", "n")
        self.migrate()
        shutil.rmtree(os.path.join(self.folder, "spool"))
        self.source.command("INCR", "n")
        result = self.migrate()
        self.assertEqual((result["snapshots"], result["commands"]), (0, 1))
        self.same()

    def test_a_source_with_another_history_needs_recopy(self):
        self.source.command("SET", "a", "1")
        self.migrate()
        self.source.command("DEL", "a")
        self.source.command("SET", "b", "1")
        self.source.command("CONFIG", "SET", "repl-backlog-size", "16384")
        self.source.command("DEBUG", "CHANGE-REPL-ID")
        self.source.command("CLIENT", "KILL", "TYPE", "replica")
        self.migrate(status=2)
        self.assertIn("--recopy", self.err)
        self.assertEqual(self.target.command("EXISTS", "a"), 1)
        self.assertEqual(self.migrate("--recopy")["snapshots"], 1)
        self.assertEqual(self.target.command("EXISTS", "a"), 0)
        self.same()

    def test_only_chosen_keys_are_copied(self):
        self.source.command("MSET", "app:a", 1, "other", 2)
        self.migrate("--prefix", "app:")
        self.source.command("MSET", "app:b", 1, "more", 2)
        self.source.command("INCR", "other")
        self.source.command("DEL", "app:a", "other")
        self.target.command("SET", "own", "1")
        self.assertEqual(self.migrate("--prefix", "app:")["not_copied"], 1)
        self.assertEqual(sorted(self.target.command("KEYS", "[ao]*")), [b"app:b", b"own"])
        self.source.command("FLUSHDB")
        self.source.command("SET", "app:c", "1")
        self.migrate("--prefix", "app:")
        self.assertEqual(sorted(self.target.command("KEYS", "[ao]*")), [b"app:c", b"own"])
        self.source.command("RENAME", "app:c", "d")
        self.migrate("--prefix", "app:", status=4)
        self.assertIn("RENAME", self.err)

    def test_keys_are_renamed_by_prefix(self):
        self.source.command("MSET", "old:a", 1, "other", 2, "tmp:x", 3)
        args = ("--rename-prefix", "old:=new:", "--rename-prefix", "tmp:=", "--not", "--prefix",
                "other")
        self.migrate(*args)
        self.source.command("RPUSH", "old:l", 1)
        self.source.command("MSET", "old:a", 5, "other", 4, "tmp:y", 3)
        self.assertTrue(self.cut_over(*args)["same"])
        self.assertEqual(sorted(self.target.command("KEYS", "[^r]*")),
                         [b"new:a", b"new:l", b"x", b"y"])
        self.assertEqual(self.target.command("GET", "new:a"), b"5")
        self.source.command("CLIENT", "UNPAUSE")
        self.target.command("SET", "new:a", "6")
        self.assertFalse(self.cut_over(*args, status=1)["same"])

    def test_the_rate_is_limited(self):
        for i in range(20):
            self.source.command("SET", f"k{i}", os.urandom(10000))
        began = time.monotonic()
        self.migrate("--limit-rate", "100kb")
        for i in range(10):
            self.source.command("SET", f"k{i}", os.urandom(10000))
        self.migrate("--limit-rate", "100kb")
        self.assertGreater(time.monotonic() - began, 2)
        self.same()

    def test_an_unknown_command_is_named(self):
        self.source.command("SET", "a", "1")
        self.migrate()
        self.target.command("ACL", "SETUSER", "default", "-append")
        self.source.command("INCR", "a")
        self.source.command("APPEND", "a", "x")
        self.migrate(status=4)
        self.assertIn("APPEND", self.err)

    def test_a_refused_command_is_reported(self):
        self.migrate()
        self.target.command("SET", "k", "text")
        self.source.command("LPUSH", "k", "1")
        self.source.command("SET", "a", "1")
        result = self.migrate(status=8)
        self.assertEqual(result["refused"], 1)
        self.assertEqual(result["refusals"][0]["command"], "LPUSH")
        self.assertEqual(self.target.command("GET", "a"), b"1")

    def cut_over(self, *args, status=0):
        done = subprocess.run(self.args("--cut-over", *args), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=600, check=False)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        return json.loads(done.stdout)["verdict"]

    def is_paused(self):
        """A write does not end while the source is paused."""
        with another_client(self.source) as other:
            other.socket.settimeout(1)
            try:
                other.command("INCR", "later")
                return False
            except TimeoutError:
                return True

    def test_a_cut_over_pauses_and_compares(self):
        for i in range(20):
            self.source.command("SET", f"k{i}", i)
            self.source.command("XADD", "x", "*", "n", i)
        self.source.command("SET", "soon", 1, "PX", 5000)
        self.source.command("SET", "late", 1, "PX", 5000000)
        self.source.command("SELECT", 2)
        self.source.command("ZADD", "z", 1.5, "m")
        verdict = self.cut_over()
        self.assertEqual((verdict["same"], verdict["source_keys"], verdict["target_keys"],
                          verdict["due"]), (True, 23, 23, 1))
        self.assertTrue(self.is_paused())
        self.source.command("CLIENT", "UNPAUSE")
        self.assertEqual(self.target.command("EXISTS", "redoubt:migrate:migrate"), 1)
        self.assertTrue(self.cut_over("--remove-position")["same"])
        self.assertEqual(self.target.command("EXISTS", "redoubt:migrate:migrate"), 0)

    def test_the_pause_ends_with_its_bound(self):
        self.source.command("SET", "a", 1)
        began = time.monotonic()
        self.assertTrue(self.cut_over("--pause", "3s")["same"])
        self.source.command("INCR", "a")
        self.assertLess(time.monotonic() - began, 12)

    def test_a_source_that_takes_no_connection_cannot_be_paused(self):
        for i in range(30):
            self.source.command("SET", f"k{i}", os.urandom(10000))
        with subprocess.Popen(self.args("--cut-over", "--limit-rate", "100kb"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as tool:
            end = time.monotonic() + 600
            while self.target.command("DBSIZE") < 2:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            self.source.command("CONFIG", "SET", "port", 0)
            err = tool.communicate(timeout=600)[1]
        self.assertEqual(tool.returncode, 6, err)
        self.assertIn(b"refused", err)

    def test_each_kind_of_difference_is_found(self):
        self.source.command("MSET", "a", 1, "b", 2)
        self.source.command("SADD", "s", 1, 2)
        self.source.command("PEXPIRE", "b", 5000000)
        self.migrate()
        self.assertTrue(self.cut_over()["same"])
        for harm, repair in ((("SET", "a", 3), ("SET", "a", 1)), (("SET", "c", 1), ("DEL", "c")),
                             (("PERSIST", "b"), ("PEXPIREAT", "b", None)),
                             (("SREM", "s", 2), ("SADD", "s", 2)),
                             (("FUNCTION", "LOAD", "#!lua name=n\nredis.register_function('f', "
                               "function() end)"), ("FUNCTION", "FLUSH"))):
            self.source.command("CLIENT", "UNPAUSE")
            time_ms = self.source.command("PEXPIRETIME", "b")
            self.target.command(*harm)
            verdict = self.cut_over(status=1)
            self.assertFalse(verdict["same"])
            self.assertEqual(verdict["slots_differ"], 0 if harm[0] == "FUNCTION" else 1)
            self.assertFalse(self.is_paused())
            self.source.command("DEL", "later")
            self.target.command(*(time_ms if word is None else word for word in repair))
            self.assertTrue(self.cut_over()["same"], harm)
        self.source.command("CLIENT", "UNPAUSE")

    def test_it_follows_until_a_signal(self):
        self.source.command("SET", "n", "1")
        with subprocess.Popen(self.args(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as tool:
            try:
                end = time.monotonic() + 600
                while self.target.command("GET", "n") != b"1":
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.01)
                self.source.command("INCR", "n")
                while self.target.command("GET", "n") != b"2":
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.01)
                tool.send_signal(signal.SIGTERM)
                out = tool.communicate(timeout=600)[0]
            finally:
                tool.kill()
        self.assertEqual(tool.returncode, 143)
        self.assertEqual(json.loads(out)["commands"], 1)

    def test_connections_of_an_earlier_run_are_closed(self):
        with another_client(self.target) as other:
            other.command("CLIENT", "SETNAME", "redoubt-migrate-migrate")
            self.migrate()
            with self.assertRaises((redis_server.ServerDied, OSError)):
                other.command("SET", "late", "1")


class ToCluster(Migration, RealNodes):
    def test_a_cluster_gets_commands_by_slot(self):
        nodes = self.cluster(2)
        for i in range(50):
            self.source.command("SET", f"k{i}", i)
        self.migrate(target=nodes[0])
        self.source.command("MSET", "a", 1, "b", 2, "c", 3)
        self.source.command("DEL", "k1", "k2", "k3", "k4")
        self.source.command("FUNCTION", "LOAD", "#!lua name=one\nredis.register_function("
                            "'f', function() return 1 end)")
        for _ in range(3):
            self.source.command("MULTI")
            self.source.command("INCR", "x")
            self.source.command("INCR", "y")
            self.source.command("EXEC")
        result = self.migrate(target=nodes[1])
        self.assertEqual((result["divided"], result["transactions"]), (2, 3))
        self.assertEqual(kills.compare([self.source], nodes), ([], 51))
        for node in nodes:
            self.assertEqual(node.command("FCALL", "f", 0), 1)
        self.source.command("INCR", "x")
        self.source.command("FLUSHALL")
        self.source.command("INCR", "x")
        self.source.command("INCR", "y")
        self.migrate(target=nodes[0])
        self.assertEqual(kills.compare([self.source], nodes), ([], 2))
        self.source.command("RENAME", "x", "z")
        self.migrate(target=nodes[0], status=4)
        self.assertIn("RENAME", self.err)
        self.assertIn("several slots", self.err)


class FromCluster(Migration, RealNodes):
    def write(self, node, slot, n):
        """INCR and LPUSH in a slot, on a node that has it."""
        tag = self.tags[slot]
        for _ in range(n):
            node.command("INCR", f"n{{{tag}}}")
            node.command("LPUSH", f"l{{{tag}}}", n)

    def move(self, slot, a, b, nodes):
        kills.Cluster.move_slot(slot, a, b, nodes)
        self.wait(lambda: len({str(node.command("CLUSTER", "SLOTS")) for node in nodes}) == 1)
        time.sleep(0.3)  # until both have told each other

    def test_commands_of_a_slot_that_moves_are_in_order(self):
        nodes = self.cluster(2)
        a, b = nodes
        for node in nodes:
            node.command("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        self.tags = {}
        for i in range(40):
            slot = kills.migrate_kills.slot_of(str(i))
            if slot < 8192 and len(self.tags) < 8:
                self.tags[slot] = str(i)
                self.write(a, slot, 2)
        self.source = a
        self.assertEqual(self.migrate()["snapshots"], 2)
        for slot in self.tags:
            self.write(a, slot, 2)
            self.move(slot, a, b, nodes)
            self.write(b, slot, 3)
        self.assertEqual(self.migrate()["snapshots"], 0)
        self.assertEqual(kills.compare(nodes, [self.target]), ([], 2 * len(self.tags)))
        for slot in self.tags:  # there and back again
            self.write(b, slot, 1)
            self.move(slot, b, a, nodes)
            self.write(a, slot, 1)
            self.move(slot, a, b, nodes)
            self.write(b, slot, 1)
        done = subprocess.run(self.args("--cut-over"), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        self.assertTrue(json.loads(done.stdout)["verdict"]["same"])
        self.assertEqual(kills.compare(nodes, [self.target]), ([], 2 * len(self.tags)))


    def test_a_snapshot_that_was_not_copied_comes_before_all_commands(self):
        nodes = self.cluster(2)
        a, b = nodes
        self.tags = {kills.migrate_kills.slot_of(text): text for text in ("0", "2", "3", "6", "7")}
        slots = [slot for slot in self.tags if slot < 8192]
        for node in nodes:
            node.command("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        for slot in slots:
            self.write(a, slot, 2)
        self.source = a
        self.migrate()
        # As if the first run had been killed between the copies of the two snapshots.
        self.target.command("HDEL", "redoubt:migrate:migrate", f"at:127.0.0.1-{a.port}")
        for slot in slots:
            self.write(a, slot, 1)
            self.move(slot, a, b, nodes)
            self.write(b, slot, 1)
        self.assertEqual(self.migrate()["snapshots"], 1)
        self.assertEqual(kills.compare(nodes, [self.target]), ([], 2 * len(slots)))


class Kills(unittest.TestCase):
    def run_kills(self, kind, rounds):
        done, differ, n, counts, output, _ = kills.KINDS[kind](rounds, 7, lambda text: None)
        self.assertEqual(done.returncode, 0, (done.stderr, output[-2000:]))
        self.assertEqual(differ, [], (counts, output[-2000:]))
        self.assertGreater(n, 0)

    def test_nothing_is_lost_or_doubled(self):
        self.run_kills("single", 6)


if __name__ == "__main__":
    unittest.main()
