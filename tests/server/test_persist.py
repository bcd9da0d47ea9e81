"""SAVE, BGSAVE, BGREWRITEAOF, save points, SHUTDOWN: what they answer and leave after."""

import os
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from persistence import AOF, child_of, fill, files, incr  # noqa: E402
from server_under_test import Redoubt, ServerDied, wait_for  # noqa: E402

SLOW = ("CONFIG", "SET", "rdb-key-save-delay", 10000000)
BUSY = b"ERR Background save already in progress"


def idle(server):
    return wait_for(lambda: child_of(server) is None)


class Snapshots(unittest.TestCase):
    def test_what_save_and_bgsave_answer(self):
        with Redoubt() as server:
            c = server.client()
            c.command("SET", "k", "v")
            self.assertEqual(c.ask("SAVE"), ("+", b"OK"))
            self.assertEqual(c.ask("BGSAVE", "x")[0], "-")
            c.command(*SLOW)
            self.assertEqual(c.ask("BGSAVE"), ("+", b"Background saving started"))
            self.assertEqual(c.ask("BGSAVE"), ("-", BUSY))
            self.assertEqual(c.ask("SAVE"), ("-", BUSY))
            self.assertEqual(c.ask("BGREWRITEAOF"),
                             ("+", b"Background append only file rewriting scheduled"))
            os.kill(child_of(server), signal.SIGUSR1)
            wait_for(lambda: "Background append only file rewriting started" in server.log)
            self.assertEqual(c.ask("BGREWRITEAOF")[1],
                             b"ERR Background append only file rewriting already in progress")
            self.assertIn(b"Another child process is active", c.ask("BGSAVE")[1])
            self.assertEqual(c.ask("BGSAVE", "schedule"), ("+", b"Background saving scheduled"))
            c.command("CONFIG", "SET", "rdb-key-save-delay", 0)
            os.kill(child_of(server), signal.SIGUSR1)
            wait_for(lambda: "Background saving terminated with success" in server.log)

    def test_what_writes_a_file_gives_way_to_the_server(self):
        with Redoubt() as server:
            c = server.client()
            c.command("SET", "k", "v")
            c.command(*SLOW)
            c.command("BGSAVE")
            ours = os.getpriority(os.PRIO_PROCESS, server.pid)
            wait_for(lambda: os.getpriority(os.PRIO_PROCESS, child_of(server)) == min(ours + 5, 19))
            os.kill(child_of(server), signal.SIGUSR1)

    def test_in_a_transaction_they_are_scheduled(self):
        with Redoubt() as server:
            c = server.client()
            c.command("MULTI")
            c.command("BGSAVE")
            c.command("BGREWRITEAOF")
            self.assertEqual(c.command("EXEC"),
                             [b"Background saving scheduled",
                              b"Background append only file rewriting scheduled"])
            wait_for(lambda: "Background saving terminated with success" in server.log and
                     "Background AOF rewrite finished successfully" in server.log)

    def test_a_child_ended_by_usr1_is_not_an_error_but_a_killed_one_is(self):
        with Redoubt({"save": "3600 1"}) as server:
            c = server.client()
            c.command("SET", "k", "1")
            for number, refused in ((signal.SIGUSR1, False), (signal.SIGKILL, True)):
                c.command(*SLOW)
                c.command("BGSAVE")
                os.kill(wait_for(lambda: child_of(server)), number)
                wait_for(lambda: f"terminated by signal {number}" in server.log)
                kind, text = c.ask("SET", "k", "2")
                self.assertEqual(kind == "-" and text.startswith(b"MISCONF"), refused)
                self.assertEqual([n for n in os.listdir(server.dir) if "temp" in n], [])
            self.assertEqual(c.command("GET", "k"), b"2")
            c.command("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
            c.command("SET", "k", "3")
            c.command("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
            c.command("CONFIG", "SET", "rdb-key-save-delay", 0)
            c.command("BGSAVE")
            wait_for(lambda: c.ask("SET", "k", "4")[0] == "+")

    def test_a_save_point(self):
        with Redoubt({"save": "1 3"}) as server:
            c = server.client()
            c.command("SET", "a", 1)
            c.command("SET", "b", 1)
            time.sleep(2.5)
            self.assertNotIn("Saving...", server.log)
            c.command("SET", "c", 1)
            wait_for(lambda: "3 changes in 1 seconds. Saving..." in server.log)
            wait_for(lambda: "Background saving terminated with success" in server.log)
            server.kill()
            server.start()
            self.assertEqual(server.client().command("DBSIZE"), 3)

    def test_flushall_leaves_an_empty_snapshot_where_there_are_save_points(self):
        with Redoubt({"save": "3600 1"}) as server:
            c = server.client()
            c.command("SET", "a", 1)
            c.command("SAVE")
            c.command("FLUSHALL")
            server.kill()
            server.start()
            self.assertEqual(server.client().command("DBSIZE"), 0)

    def test_keys_that_are_due_are_saved_and_counted_when_they_are_left_out(self):
        with Redoubt({"save": "3600 1"}) as server:
            c = server.client()
            c.command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            c.command("SET", "stays", "1")
            for i in range(10):
                c.command("SET", i, "x", "PX", "1")
            time.sleep(0.01)
            c.command("SAVE")
            server.kill()
            server.start()
            info = server.info("persistence")
            self.assertEqual(info["rdb_last_load_keys_loaded"], "1")
            self.assertEqual(info["rdb_last_load_keys_expired"], "10")

    def test_loading_answers_that_it_loads(self):
        with Redoubt({"save": "3600 1", "rdbcompression": "no"}) as server:
            c = server.client()
            for i in range(300):
                c.command("SET", f"key:{i}", f"{i} " * 700)
            server.terminate()
            server.config["key-load-delay"] = "20000"
            server.config["loading-process-events-interval-bytes"] = "1024"
            server.spawn()
            wait_for(lambda: self.is_loading(server))
            server.kill()

    def is_loading(self, server):
        try:
            return server.client().ask("GET", "key:1") == \
                ("-", b"LOADING Redis is loading the dataset in memory")
        except (OSError, ServerDied):
            return False


    def test_a_reload_does_not_load_what_a_child_began_before(self):
        with Redoubt({"rdb-key-save-delay": "1000"}) as server:
            c = server.client()
            c.command("DEBUG", "POPULATE", 300)
            c.command("BGSAVE")
            c.command("CONFIG", "SET", "rdb-key-save-delay", 0)
            c.command("SET", "new", "v")
            self.assertIsNotNone(child_of(server))
            c.command("DEBUG", "RELOAD")
            self.assertIsNone(child_of(server))
            self.assertEqual(c.command("GET", "new"), b"v")
            server.kill()
            server.start()
            self.assertEqual(server.client().command("GET", "new"), b"v")


class Logs(unittest.TestCase):
    def test_a_rewrite_leaves_one_base_and_one_file_of_commands(self):
        with Redoubt({"appendonly": "yes"}) as server:
            c = server.client()
            self.assertEqual(files(server), ["appendonly.aof.1.base.rdb",
                                             "appendonly.aof.1.incr.aof",
                                             "appendonly.aof.manifest"])
            for i in range(100):
                c.command("INCR", "n")
            c.command("BGREWRITEAOF")
            wait_for(lambda: "rewrite finished successfully" in server.log)
            self.assertEqual(files(server), ["appendonly.aof.2.base.rdb",
                                             "appendonly.aof.2.incr.aof",
                                             "appendonly.aof.manifest"])
            self.assertEqual(os.path.getsize(incr(server)), 0)
            server.kill()
            server.start()
            self.assertEqual(server.client().command("GET", "n"), b"100")

    def test_a_base_of_commands_begins_with_the_time(self):
        config = {"appendonly": "yes", "aof-use-rdb-preamble": "no", "aof-timestamp-enabled": "yes"}
        with Redoubt(config) as server:
            before = int(time.time())
            server.client().command("BGREWRITEAOF")
            wait_for(lambda: "rewrite finished successfully" in server.log)
            with open(server.path("appendonlydir", "appendonly.aof.2.base.aof")) as f:
                stamp = re.fullmatch(r"#TS:(\d+)\n", f.readline())
            self.assertIn(int(stamp[1]) - before, range(600))

    def test_growth_begins_a_rewrite(self):
        with Redoubt({"appendonly": "yes", "auto-aof-rewrite-min-size": "20kb"}) as server:
            c = server.client()
            for i in range(100):
                c.command("SET", "k", "x" * 1000)
            wait_for(lambda: "Starting automatic rewriting of AOF on" in server.log)
            wait_for(lambda: "rewrite finished successfully" in server.log)

    def test_the_log_is_turned_on_and_off_while_clients_write(self):
        with Redoubt() as server:
            c = server.client()
            fill(c)
            c.command("SET", "n", 0)
            for _ in range(3):
                c.command("CONFIG", "SET", "appendonly", "yes")
                for _ in range(200):
                    c.command("INCR", "n")
                idle(server)
                c.command("CONFIG", "SET", "appendonly", "no")
                c.command("INCR", "n")
            c.command("CONFIG", "SET", "appendonly", "yes")
            idle(server)
            wait_for(lambda: server.log.count("rewrite finished successfully") == 4)
            want = c.command("INCR", "n")
            server.kill()
            server.config["appendonly"] = "yes"
            server.start()
            self.assertEqual(server.client().command("GET", "n"), str(want).encode())
            self.assertEqual(len(files(server)), 3)

    def test_a_first_rewrite_that_is_killed_is_tried_again(self):
        with Redoubt() as server:
            c = server.client()
            c.command("SET", "k", 1)
            c.command(*SLOW)
            c.command("CONFIG", "SET", "appendonly", "yes")
            c.command("SET", "k", 2)
            self.assertEqual(c.ask("SHUTDOWN"),
                             ("-", b"ERR Errors trying to SHUTDOWN. Check logs."))
            c.command("CONFIG", "SET", "rdb-key-save-delay", 0)
            os.kill(wait_for(lambda: child_of(server)), signal.SIGKILL)
            wait_for(lambda: "rewrite finished successfully" in server.log)
            self.assertIn("Removing the temp incr aof file", server.log)
            server.kill()
            server.config["appendonly"] = "yes"
            server.start()
            self.assertEqual(server.client().command("GET", "k"), b"2")

    def test_rewrites_that_fail_again_and_again_are_held_back(self):
        with Redoubt({"appendonly": "yes", "auto-aof-rewrite-min-size": "10kb"}) as server:
            c = server.client()
            c.command(*SLOW)
            for _ in range(20):
                c.command("SET", "k", "x" * 1000)
            for n in range(1, 4):
                os.kill(wait_for(lambda: child_of(server)), signal.SIGKILL)
                wait_for(lambda: server.log.count("terminated by signal 9") == n)
            wait_for(lambda: "triggered the limit, will retry in 1 minutes" in server.log)
            c.command("CONFIG", "SET", "rdb-key-save-delay", 0)
            self.assertEqual(c.command("BGREWRITEAOF"),
                             b"Background append only file rewriting started")
            wait_for(lambda: "rewrite finished successfully" in server.log)
            self.assertEqual(len(files(server)), 3)

    def test_history_stays_where_it_is_wanted(self):
        with Redoubt({"appendonly": "yes", "aof-disable-auto-gc": "yes"}) as server:
            c = server.client()
            c.command("SET", "k", 1)
            c.command("BGREWRITEAOF")
            wait_for(lambda: "rewrite finished successfully" in server.log)
            self.assertEqual(len(files(server)), 5)
            c.command("BGREWRITEAOF")
            wait_for(lambda: server.log.count("rewrite finished successfully") == 2)
            with open(server.path("appendonlydir", "appendonly.aof.manifest")) as f:
                self.assertEqual([line.split()[1::4] for line in f], [
                    ["appendonly.aof.3.base.rdb", "b"], ["appendonly.aof.2.incr.aof", "h"],
                    ["appendonly.aof.2.base.rdb", "h"], ["appendonly.aof.1.incr.aof", "h"],
                    ["appendonly.aof.1.base.rdb", "h"], ["appendonly.aof.3.incr.aof", "i"]])
            c.command("CONFIG", "SET", "aof-disable-auto-gc", "no")
            wait_for(lambda: len(files(server)) == 3)

    def test_the_log_and_replicas_delete_what_a_reload_drops(self):
        config = {"appendonly": "yes"}
        with Redoubt(config) as server, \
                Redoubt({"replicaof": ["127.0.0.1", str(server.port)]}) as replica:
            c, r = server.client(), replica.client()
            wait_for(lambda: replica.info("replication")["master_link_status"] == "up")
            c.command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            c.command("SET", "k", "old", "PX", 1)
            c.command("WAIT", 1, 5000)
            time.sleep(0.01)
            r.command("DEBUG", "RELOAD")
            self.assertEqual(r.command("DBSIZE"), 1)
            self.assertEqual(c.command("DEBUG", "RELOAD"), b"OK")
            self.assertEqual(server.info("persistence")["rdb_last_load_keys_expired"], "1")
            c.command("APPEND", "k", "new")
            c.command("WAIT", 1, 5000)
            self.assertEqual(r.command("GET", "k"), b"new")
            server.kill()
            server.start()
            self.assertEqual(server.client().command("GET", "k"), b"new")


class Ends(unittest.TestCase):
    def test_shutdown_saves_where_there_are_save_points(self):
        for how, kept in (([], True), (["NOSAVE"], False), (["SAVE"], True),
                          (["NOW", "FORCE"], True)):
            with self.subTest(how), Redoubt({"save": "3600 1"}) as server:
                c = server.client()
                c.command("SET", "k", 1)
                with self.assertRaises(ServerDied):
                    c.command("SHUTDOWN", *how)
                self.assertEqual(server.wait_end(), 0)
                self.assertEqual(os.path.exists(server.path("dump.rdb")), kept)
                self.assertIn("ready to exit, bye bye", server.log)

    def test_what_shutdown_refuses(self):
        with Redoubt() as server:
            c = server.client()
            for words in (["SAVE", "NOSAVE"], ["ABORT", "NOW"], ["X"]):
                self.assertEqual(c.ask("SHUTDOWN", *words), ("-", b"ERR syntax error"))
            self.assertEqual(c.ask("SHUTDOWN", "ABORT"), ("-", b"ERR No shutdown in progress."))

    def test_a_signal_ends_children_and_keeps_everything(self):
        with Redoubt({"save": "3600 1", "appendonly": "yes"}) as server:
            c = server.client()
            c.command("SET", "k", 1)
            c.command("CONFIG", "SET", "rdb-key-save-delay", 300000)
            c.command("BGSAVE")
            self.assertEqual(server.terminate(), 0)
            self.assertIn("There is a child saving an .rdb. Killing it!", server.log)
            self.assertIn("Calling fsync() on the AOF file.", server.log)
            self.assertEqual([n for n in os.listdir(server.dir) if "temp" in n], [])
            server.start()
            self.assertEqual(server.client().command("GET", "k"), b"1")
            self.assertTrue(os.path.isdir(server.path(AOF)))


if __name__ == "__main__":
    unittest.main()
