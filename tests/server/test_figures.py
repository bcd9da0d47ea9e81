"""Figures, refusals and small commands beside redis-server: what counts, and what does not."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import (  # noqa: E402
    Redis, Redoubt, ReplyError, pair, program, wait_for)


def figures(client, *names):
    text = client.command("INFO", "everything").decode()
    return {name: (re.search(rf"(?m)^{name}:(.*?)\r?$", text) or [None, None])[1]
            for name in names}


class Beside(unittest.TestCase):
    CONFIG = {"save": "10000 10000"}

    def run_both(self, steps):
        """What `steps` returns of each server is the same."""
        with pair(self.CONFIG) as servers:
            ours, theirs = (steps(server) for server in servers)
        self.assertEqual(ours, theirs)
        return ours

    def test_requested_snapshots_are_counted(self):
        def steps(server):
            c, seen = server.client(), []
            for args in (["SAVE"], ["SET", "a", "b"], ["FLUSHALL"], ["FLUSHALL"],
                         ["DEBUG", "RELOAD"],
                         ["BGSAVE"], ["CONFIG", "SET", "save", ""], ["SET", "a", "b"],
                         ["FLUSHALL"], ["SET", "a", "b"], ["FLUSHDB"], ["CONFIG", "RESETSTAT"]):
                c.ask(*args)
                wait_for(lambda: "0" in figures(c, "rdb_bgsave_in_progress").values())
                seen.append((args[0], figures(c, "rdb_saves", "rdb_changes_since_last_save")))
            return seen
        self.assertEqual(self.run_both(steps)[-1][1]["rdb_saves"], "0")

    def test_object_counts_hits_and_misses(self):
        def steps(server):
            c, seen = server.client(), []
            c.command("SET", "k", "v")
            for args in (["OBJECT", "ENCODING", "k"], ["OBJECT", "ENCODING", "no"],
                         ["OBJECT", "FREQ", "k"], ["OBJECT", "REFCOUNT", "k"],
                         ["OBJECT", "IDLETIME", "no"], ["DEBUG", "OBJECT", "k"],
                         ["MEMORY", "USAGE", "k"], ["TTL", "k"]):
                c.ask(*args)
                seen.append(figures(c, "keyspace_hits", "keyspace_misses"))
            return seen
        self.run_both(steps)

    def test_errors_of_protocol_are_counted(self):
        def steps(server):
            c = server.client()
            for raw in (b"*1\r\nfoo\r\n", b"*a\r\n", b'get "a\r\n', b"*1\r\n$-5\r\n"):
                bad = server.client()
                bad.send_raw(raw)
                self.assertEqual(bad.read()[0], "-")
                self.assertTrue(bad.closed())
            return figures(c, "errorstat_ERR", "total_error_replies")
        self.assertEqual(self.run_both(steps)["total_error_replies"], "4")

    def test_small_commands_answer_the_same(self):
        commands = (["ACL", "LOG", "x"], ["ACL", "LOG", "-1"], ["ACL", "LOG", "5"],
                    ["ACL", "LOG", "reset"], ["ACL", "GENPASS", "x"], ["ACL", "GENPASS", "-5"],
                    ["ACL", "GENPASS", "4097"], ["ACL", "GENPASS", ""], ["DEBUG", "ERROR", "foo"],
                    ["DEBUG", "ERROR", "a b\r\nc"], ["DEBUG", "ERROR", ""],
                    ["DEBUG", "ERROR", "WORD and more"])

        def steps(server):
            c = server.client()
            return [c.ask(*args) for args in commands], figures(c, "errorstat_WORD")
        self.run_both(steps)

    def test_a_line_does_not_end_after_a_byte_of_value_0(self):
        def steps(server):
            seen = []
            for raw in (b"PING a\0b\r\n", b"\0\r\n", b"a\0b\r\nPING\r\n"):
                c = server.client()
                c.send_raw(b"PING\r\n" + raw)
                seen.append((c.read(), c.nothing()))
                c.send_raw(b"x" * (64 * 1024 + 1))
                seen.append((c.read(), c.closed()))
            return seen
        self.assertEqual(self.run_both(steps)[0], (("+", b"PONG"), True))

    def test_a_snapshot_that_is_loaded_says_what_its_writer_used(self):
        def steps(server):
            c = server.client()
            for i in range(2000):
                c.send("SET", i, "x" * 50)
            for i in range(2000):
                c.read()
            c.command("SAVE")
            server.config.update({"key-load-delay": "2000", "loading-process-events-interval-bytes":
                                  "1024"})
            server.wait = False
            server.kill()
            server.start()
            def loading():
                try:
                    return figures(server.client(), "loading_rdb_used_mem")
                except (OSError, ReplyError):
                    return None
            used = wait_for(lambda: (loading() or {}).get("loading_rdb_used_mem"))
            return int(used) > 200000
        self.assertTrue(self.run_both(steps))


class Process(unittest.TestCase):
    @staticmethod
    def score(pid, value=None):
        path = f"/proc/{pid}/oom_score_adj"
        if value is not None:
            with open(path, "w", encoding="ascii") as f:
                f.write(str(value))
        with open(path, encoding="ascii") as f:
            return int(f.read())

    def test_the_score_for_the_end_of_memory(self):
        for kind in (Redoubt, Redis):
            with self.subTest(kind.name), kind() as server:
                c, pid = server.client(), server.pid
                base = self.score(pid)
                c.command("CONFIG", "SET", "oom-score-adj-values", "10 20 30",
                          "oom-score-adj", "yes")
                self.assertEqual(self.score(pid), base + 10)
                c.command("CONFIG", "SET", "oom-score-adj-values", "15 20 30")
                self.assertEqual(self.score(pid), base + 15)
                c.command("REPLICAOF", "127.0.0.1", 1)
                self.assertEqual(self.score(pid), base + 20)
                c.command("REPLICAOF", "NO", "ONE")
                self.assertEqual(self.score(pid), base + 15)
                c.command("CONFIG", "SET", "oom-score-adj", "no")
                self.assertEqual(self.score(pid), base)
                self.score(pid, base + 2)
                c.command("CONFIG", "SET", "oom-score-adj-values", "77 77 77")
                self.assertEqual(self.score(pid), base + 2)  # it is off: left alone
                c.command("CONFIG", "SET", "oom-score-adj-values", "9 19 29",
                          "oom-score-adj", "yes")
                self.assertEqual(self.score(pid), base + 11)
                c.command("CONFIG", "SET", "oom-score-adj", "absolute")
                self.assertEqual(self.score(pid), 9)
                c.command("CONFIG", "SET", "oom-score-adj", "no")
                self.assertEqual(self.score(pid), base + 2)

    def test_a_restart_has_the_command_line_of_the_start(self):
        for kind in (Redoubt, Redis):
            for how in ("RESTART", "CRASH-AND-RECOVER"):
                with self.subTest(f"{kind.name} {how}"):
                    config = {"maxmemory": "123mb", "proc-title-template": "short"}
                    with kind(config) as server:
                        c = server.client()
                        run_id = figures(c, "run_id")["run_id"]
                        c.send("DEBUG", how)
                        self.assertTrue(c.closed())
                        self.assertTrue(server._wait())
                        c = server.client()
                        self.assertNotEqual(figures(c, "run_id")["run_id"], run_id)
                        self.assertEqual(c.command("CONFIG", "GET", "maxmemory")[1],
                                         str(123 << 20).encode())

    def test_the_report_of_the_heap_is_that_of_its_allocator(self):
        with Redoubt() as server:
            c = server.client()
            name = figures(c, "mem_allocator")["mem_allocator"]
            report = c.command("MEMORY", "MALLOC-STATS").decode()
            self.assertIn("jemalloc" if name.startswith("jemalloc") else "allocator: libc", report)

    def test_the_system_is_checked_as_there(self):
        def names(which):
            done = subprocess.run([which, "--check-system"], stdout=subprocess.PIPE, timeout=600,
                                  check=False)
            return re.findall(r"(?m)^\[(.+?)\]\.\.\.", done.stdout.decode())
        ours = names(program())
        self.assertIn("slow-clocksource", ours)
        self.assertEqual([name for name in names("redis-server") if name in ours], ours)

    def test_memory_is_tested(self):
        done = subprocess.run([program(), "--test-memory", "1"], stdout=subprocess.PIPE,
                              timeout=600, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"pass 50 of 50", done.stdout)
        self.assertIn(b"Your memory passed this test", done.stdout)
        for args in ([], ["x"], ["0"], ["-1"], ["1", "2"]):
            done = subprocess.run([program(), "--test-memory", *args], stderr=subprocess.PIPE,
                                  timeout=600, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"Please specify the amount of memory to test in megabytes.", done.stderr)


if __name__ == "__main__":
    unittest.main()
