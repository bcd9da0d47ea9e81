"""What a server does when it is signalled, hangs or crashes, and what its log says of it."""

import os
import re
import resource
import signal
import time
import unittest
from unittest import mock

from persistence import Faulty  # noqa: E402
from server_under_test import Redis, Redoubt, Reference, ReplyError, ServerDied, wait_for

KINDS = [Redoubt, Redis]
OF_7_0 = [Redoubt, Reference]  # where later versions do something else


def both(config=None, kinds=KINDS):
    for kind in kinds:
        with kind(config) as server:
            yield server


class Signals(unittest.TestCase):
    def test_the_watchdog_logs_where_a_server_hangs_and_it_continues(self):
        for server in both(kinds=OF_7_0):
            c = server.client()
            c.command("CONFIG", "SET", "watchdog-period", 600000)
            c.command("DEBUG", "SLEEP", 0.3)
            self.assertNotIn("WATCHDOG", server.log)
            c.command("CONFIG", "SET", "watchdog-period", 200)
            c.command("DEBUG", "SLEEP", 0.6)
            wait_for(lambda: "--- WATCHDOG TIMER EXPIRED ---" in server.log)
            self.assertIn("Backtrace:", server.log)
            c.command("CONFIG", "SET", "watchdog-period", 10)
            self.assertEqual(c.command("CONFIG", "GET", "watchdog-period")[1], b"200")
            c.command("CONFIG", "SET", "watchdog-period", 0)
            before = server.log.count("WATCHDOG")
            c.command("DEBUG", "SLEEP", 0.5)
            self.assertEqual(server.log.count("WATCHDOG"), before)

    def test_the_watchdog_expires_while_a_replica_waits_for_a_snapshot(self):
        for kind in KINDS:
            with kind({"repl-diskless-sync-delay": "0", "rdbcompression": "no"}) as master, \
                    kind({"repl-diskless-load": "on-empty-db"}) as replica:
                m, r = master.client(), replica.client()
                m.command("DEBUG", "POPULATE", 100, "key", 100000)
                m.command("CONFIG", "SET", "rdb-key-save-delay", 20000)
                r.command("CONFIG", "SET", "watchdog-period", 200)
                r.command("REPLICAOF", "127.0.0.1", master.port)
                wait_for(lambda: "Loading DB in memory" in replica.log)
                before = replica.log.rindex("Loading DB in memory")
                wait_for(lambda: "WATCHDOG TIMER EXPIRED" in replica.log[before:])

    def test_a_stray_alarm_does_no_harm(self):
        for server in both():
            c = server.client()
            os.kill(server.pid, signal.SIGALRM)
            time.sleep(0.1)
            self.assertEqual(c.command("PING"), b"PONG")

    def test_a_shutdown_that_has_not_begun_can_be_taken_back(self):
        for server in both():
            c = server.client()
            c.command("DEBUG", "PAUSE-CRON", 1)
            os.kill(server.pid, signal.SIGTERM)
            wait_for(lambda server=server: "scheduling shutdown" in server.log)
            self.assertEqual(c.command("SHUTDOWN", "ABORT"), b"OK")
            self.assertIn("Shutdown manually aborted", server.log)
            self.assertIn(b"No shutdown in progress", c.ask("SHUTDOWN", "ABORT")[1])
            c.command("DEBUG", "PAUSE-CRON", 0)
            time.sleep(0.2)
            self.assertEqual(c.command("PING"), b"PONG")

    def test_a_second_interrupt_does_not_wait_for_the_snapshot(self):
        config = {"save": "900 1", "rdb-key-save-delay": "2000"}
        for server in both(config):
            c = server.client()
            c.command("DEBUG", "POPULATE", 20000)
            c.command("SET", "k", 1)
            os.kill(server.pid, signal.SIGINT)
            wait_for(lambda: any(n.startswith("temp-") for n in os.listdir(server.dir)))
            os.kill(server.pid, signal.SIGINT)
            self.assertEqual(server.wait_end(), 1)
            self.assertIn("You insist... exiting now.", server.log)
            self.assertFalse([n for n in os.listdir(server.dir) if n.endswith(".rdb")])

    def test_a_crash_report_shows_the_client_and_its_command_but_no_password(self):
        for server in both():
            c = server.client()
            c.command("CLIENT", "SETNAME", "culprit")
            with self.assertRaises(ServerDied):
                c.command("DEBUG", "SEGFAULT")
            server.wait_end()
            reported = server.log.split("------ CURRENT CLIENT INFO ------")[1]
            self.assertIn("name=culprit", reported)
            self.assertRegex(reported, r"argv\[0\]: '?\"DEBUG\"")
            self.assertRegex(reported, r"argv\[1\]: '?\"SEGFAULT\"")

    def test_a_stack_overflow_is_reported(self):
        with Faulty() as server:
            server.fail("stack", 1)
            with self.assertRaises(ServerDied):
                server.client().command("SAVE")
            server.wait_end()
            self.assertIn("crashed by signal: 11", server.log)
            self.assertIn("------ CURRENT CLIENT INFO ------", server.log)
            self.assertIn("=== REDIS BUG REPORT END.", server.log)

    def test_a_panic_has_its_words_in_the_log(self):
        for server in both():
            with self.assertRaises(ServerDied):
                server.client().command("DEBUG", "PANIC")
            self.assertNotEqual(server.wait_end(), 0)
            self.assertRegex(server.log, r"!!! Software Failure")
            self.assertIn("Guru Meditation: ", server.log)
            self.assertIn("=== REDIS BUG REPORT START", server.log)


    def test_a_server_with_many_keys_ends_well(self):
        with Redoubt() as server:
            server.client().command("DEBUG", "POPULATE", 20000)
            self.assertEqual(server.terminate(), 0)

    def test_out_of_memory_is_reported_as_such(self):
        null = "allocator_may_return_null=1"
        with mock.patch.dict(os.environ, ASAN_OPTIONS=null, TSAN_OPTIONS=null):
            for server in both():
                c = server.client()
                size = int(re.search(r"VmSize:\s+(\d+)", status_of(server.pid)).group(1)) * 1024
                limit = size + 100 * 1024 * 1024
                resource.prlimit(server.pid, resource.RLIMIT_AS, (limit, limit))
                with self.assertRaises(ServerDied):
                    c.command("SETRANGE", "k", 500 * 1024 * 1024, "x")
                self.assertNotEqual(server.wait_end(), 0)
                self.assertRegex(server.log, r"Out Of Memory allocating \d{9} bytes!")
                self.assertRegex(server.log,
                                 r"Guru Meditation: .*OUT OF MEMORY. Allocating \d{9} bytes!")
                self.assertIn("=== REDIS BUG REPORT START", server.log)


def status_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return f.read()


class Loading(unittest.TestCase):
    def test_what_may_not_be_set_while_data_is_loaded(self):
        config = {
            "loading-process-events-interval-bytes": "1024",
            "enable-protected-configs": "yes",
        }
        for server in both(config, OF_7_0):
            c = server.client()
            c.command("CONFIG", "SET", "rdbcompression", "no")
            c.command("DEBUG", "POPULATE", 1000, "k", 1000)
            c.command("SAVE")
            server.config["key-load-delay"] = "2000"
            server.kill()
            server.wait = False
            server.start()
            wait_for(lambda: self.answers(server))
            c = server.client()
            for name in ["appendonly", "dir", "repl-diskless-load"]:
                value = c.command("CONFIG", "GET", name)[1]
                with self.assertRaisesRegex(ReplyError, "^LOADING "):
                    c.command("CONFIG", "SET", name, value)
            self.assertEqual(c.command("CONFIG", "SET", "loglevel", "debug"), b"OK")

    def answers(self, server):
        try:
            return re.match("[01]", server.info("persistence")["loading"])
        except (OSError, ServerDied):
            return None


if __name__ == "__main__":
    unittest.main()
