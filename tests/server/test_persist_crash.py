"""Servers that are killed while eight connections write, and disks that fail.

A process that is killed leaves what it wrote in the page cache, so each kill is a power failure
here: files are cut back to what was made durable (tests/server/faults.c).

REDOUBT_KILLS=3000 kills so often; the ordinary run 200 times.
"""

import errno
import os
import random
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from persistence import AOF, Faulty, child_of, fill, incr  # noqa: E402
from server_under_test import ReplyError, ServerDied, wait_for  # noqa: E402

KILLS = int(os.environ.get("REDOUBT_KILLS", "200"))
WRITERS = 8


class Writer(threading.Thread):
    """Counts up a key of its own, one more each time; what was answered, and when."""

    def __init__(self, server, n, first):
        super().__init__(daemon=True)
        self.key, self.c = f"w:{n}", server.client()
        self.sent = self.acked = first
        self.times = []

    def run(self):
        try:
            while True:
                self.sent += 1
                if self.sent % 5 == 0:
                    self.transaction()
                else:
                    self.c.command("SET", self.key, self.sent)
                self.acked = self.sent
                self.times.append((time.monotonic(), self.sent))
        except (ServerDied, ReplyError, OSError, ValueError, AssertionError, TimeoutError):
            pass

    def transaction(self):
        self.c.send("MULTI")
        self.c.send("SET", self.key, self.sent)
        self.c.send("SET", self.key + ":copy", self.sent)
        self.c.send("EXEC")
        for _ in range(4):
            kind, content = self.c.read()
        if kind != "*":
            raise ServerDied(content)


class Kill(unittest.TestCase):
    """KILLS in all, a third for each policy."""

    def write_and_crash(self, server, chance, disturb, long, first):
        writers = [Writer(server, n, first) for n in range(WRITERS)]
        for w in writers:
            w.start()
        if disturb:
            time.sleep(chance.random() * 0.05)
            server.client().ask(disturb)
        time.sleep(0.01 + chance.random() * 0.1 + (4 if long else 0))
        killed_at = time.monotonic()
        cut = server.crash()
        for w in writers:
            w.join()
        server.start()
        return writers, killed_at, cut

    def check(self, server, w, least):
        """Not less than was promised, nothing that was never sent, transactions whole."""
        c = server.client()
        value = int(c.command("GET", w.key) or 0)
        self.assertGreaterEqual(value, least, w.key)
        self.assertLessEqual(value, w.sent)
        copy = int(c.command("GET", w.key + ":copy") or 0)
        self.assertTrue(value - 5 < copy <= value, (value, copy))
        return value

    def kills(self, policy, promise, base="yes"):
        """Kills one server again and again."""
        chance = random.Random(5)
        config = {"appendfsync": policy, "aof-use-rdb-preamble": base}
        kills = -(-KILLS // 3)
        total = promised = lost = 0
        with Faulty({"appendonly": "yes", "hz": "50", **config}) as server:
            fill(server.client())
            # What a restart has found stays: durable is what was read from the file.
            found = [0] * WRITERS
            time.sleep(2.2 if policy == "everysec" else 0)
            first = 0
            for i in range(kills):
                disturb = (None, "BGSAVE", "BGREWRITEAOF")[i % 3]
                long = policy == "everysec" and i % 15 == 1
                writers, at, cut = self.write_and_crash(server, chance, disturb, long, first)
                lost += cut
                for n, w in enumerate(writers):
                    least = promise(w, at)
                    found[n] = self.check(server, w, max(least, found[n]))
                    total += w.acked - first
                    promised += max(least - first, 0)
                first = max(w.sent for w in writers) + 5
                first -= first % 5
                c = server.client()
                for w in writers:
                    c.command("MSET", w.key, first, w.key + ":copy", first)
                self.assertEqual(c.command("LLEN", "l:1"), 58)
        print(f"# {policy}: {kills} kills, {total} writes answered, {promised} of them "
              f"promised, {lost} bytes were cut off")
        self.assertGreater(promised, 0)

    def test_always_loses_nothing_that_was_answered(self):
        self.kills("always", lambda w, at: w.acked)

    def test_everysec_loses_two_seconds_at_most(self):
        def promise(w, at):
            # A machine that holds up the answers for some time holds up the thread that syncs, too.
            times = [t for t, _ in w.times if t > at - 5] + [at]
            late = max((b - a for a, b in zip(times, times[1:])), default=0)
            return max([n for t, n in w.times if t < at - 2 - 2 * late], default=0)
        self.kills("everysec", promise)

    def test_always_with_a_base_of_commands(self):
        self.kills("always", lambda w, at: w.acked, "no")


class Disks(unittest.TestCase):
    def refused(self, c):
        kind, text = c.ask("SET", "k", "refused")
        return kind == "-" and text.startswith(b"MISCONF")

    def fails_and_heals(self, kind, number, text):
        with Faulty({"appendonly": "yes"}) as server:
            c = server.client()
            c.command("SET", "k", "1")
            server.fail(kind, number)
            wait_for(lambda: self.refused(c))
            self.assertEqual(c.ask("SET", "k", "3"),
                             ("-", b"MISCONF Errors writing to the AOF file: " + text))
            self.assertNotEqual(c.command("GET", "k"), b"3")
            server.heal()
            wait_for(lambda: c.ask("SET", "k", "4")[0] == "+")
            self.assertIn("AOF write error looks solved, Redis can write again.", server.log)
            c.command("SET", "k", "5")
            wait_for(lambda: server.is_durable(incr(server)))
            server.crash()
            server.start()
            self.assertEqual(server.client().command("GET", "k"), b"5")

    def test_a_full_disk_refuses_writes_until_there_is_room(self):
        self.fails_and_heals("write", errno.ENOSPC, b"No space left on device")

    def test_an_fsync_that_fails_refuses_writes_until_one_succeeds(self):
        self.fails_and_heals("sync", errno.EIO, b"Input/output error")

    def test_under_always_a_failing_disk_ends_the_server(self):
        for kind, words in (("write", "Can't recover from AOF write error"),
                            ("sync", "Can't persist AOF for fsync error")):
            with self.subTest(kind), Faulty({"appendonly": "yes",
                                             "appendfsync": "always"}) as server:
                c = server.client()
                c.command("SET", "k", "1")
                server.fail(kind, errno.EIO)
                with self.assertRaises(ServerDied):
                    c.command("SET", "k", "2")
                self.assertEqual(server.wait_end(), 1)
                self.assertIn(words, server.log)
                server.heal()
                server.start()
                self.assertEqual(server.client().command("GET", "k"), b"1")

    def test_a_snapshot_that_cannot_be_written_leaves_the_old_one(self):
        with Faulty({"save": "3600 1"}) as server:
            c = server.client()
            c.command("SET", "k", "1")
            c.command("SAVE")
            c.command("SET", "k", "2")
            server.fail("write", errno.ENOSPC)
            self.assertEqual(c.ask("SAVE"), ("-", b"ERR"))
            c.command("BGSAVE")
            wait_for(lambda: "Background saving error" in server.log)
            wait_for(lambda: self.refused(c))
            self.assertEqual(c.ask("SHUTDOWN"),
                             ("-", b"ERR Errors trying to SHUTDOWN. Check logs."))
            server.heal()
            c.command("BGSAVE")
            wait_for(lambda: not self.refused(c))
            server.kill()
            self.assertEqual([n for n in os.listdir(server.dir) if n.startswith("temp-")], [])
            server.start()
            self.assertEqual(server.client().command("GET", "k"), b"2")

    def test_a_rewrite_that_fails_leaves_a_log_that_loads(self):
        with Faulty({"appendonly": "yes", "appendfsync": "no"}) as server:
            c = server.client()
            c.command("SET", "k", "1")
            c.command("CONFIG", "SET", "rdb-key-save-delay", 2000000)
            c.command("BGREWRITEAOF")
            os.kill(wait_for(lambda: child_of(server)), signal.SIGKILL)
            wait_for(lambda: "Background AOF rewrite terminated by signal 9" in server.log)
            c.command("SET", "k", "2")
            server.terminate()
            server.start()
            self.assertEqual(server.client().command("GET", "k"), b"2")
            self.assertEqual([n for n in os.listdir(server.path(AOF)) if "temp" in n], [])


if __name__ == "__main__":
    unittest.main()
