"""The clocks: the wall clock is set while the server runs, and nothing that lasts takes longer or
ends early; what moves on inside a script and a transaction."""

import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from persistence import Faulty  # noqa: E402
from server_under_test import Redis, Redoubt, Reference, pair, wait_for  # noqa: E402

HOUR = 3600


class Clock(unittest.TestCase):
    def set_by(self, server, seconds):
        """Until the server has seen it."""
        c = server.client()
        server.set_clock(seconds)
        wait_for(lambda: abs(int(c.command("TIME")[0]) - time.time() - seconds) < HOUR / 2)

    def test_a_timeout_of_a_blocked_client_ends_although_the_clock_goes_back(self):
        with Faulty() as server:
            waiting = server.client()
            waiting.send("BLPOP", "nothing", 1)
            self.set_by(server, -10 * HOUR)
            self.assertEqual(waiting.read(), ("*", None))

    def test_the_clock_is_set_while_a_command_starts_to_wait(self):
        with Faulty() as server:
            server.set_clock(-10 * HOUR, "alternate")
            for _ in range(20):
                client = server.client()
                before = time.monotonic()
                self.assertEqual(client.ask("BLPOP", "nothing", 0.1), ("*", None))
                self.assertGreaterEqual(time.monotonic() - before, 0.1)

    def test_a_timeout_of_a_blocked_client_does_not_end_when_the_clock_goes_forward(self):
        with Faulty() as server:
            waiting = server.client()
            waiting.send("BLPOP", "list", 600)
            self.set_by(server, 10 * HOUR)
            self.assertTrue(waiting.nothing(1))
            server.client().command("RPUSH", "list", "x")
            self.assertEqual(waiting.read(), ("*", [("$", b"list"), ("$", b"x")]))

    def test_active_clients_stay_when_the_clock_goes_forward(self):
        with Faulty({"timeout": "600"}) as server:
            c = server.client()
            self.assertEqual(c.command("PING"), b"PONG")
            self.set_by(server, 10 * HOUR)
            time.sleep(2)
            self.assertEqual(c.command("PING"), b"PONG")

    def test_idle_clients_are_closed_although_the_clock_goes_back(self):
        with Faulty({"timeout": "1"}) as server:
            c = server.client()
            self.assertEqual(c.command("PING"), b"PONG")
            self.set_by(server, -10 * HOUR)
            self.assertTrue(c.closed())

    def test_a_save_point_comes_although_the_clock_goes_back(self):
        with Faulty({"save": "1 1"}) as server:
            self.set_by(server, -10 * HOUR)
            server.client().command("SET", "k", "v")
            wait_for(lambda: "Background saving terminated with success" in server.log)

    def test_a_save_point_does_not_come_when_the_clock_goes_forward(self):
        with Faulty({"save": "3600 1"}) as server:
            server.client().command("SET", "k", "v")
            self.set_by(server, 10 * HOUR)
            time.sleep(1)
            self.assertNotIn("Saving...", server.log)

    def test_a_pause_ends_although_the_clock_goes_back(self):
        with Faulty() as server:
            c = server.client()
            c.command("CLIENT", "PAUSE", 500)
            server.set_clock(-10 * HOUR)
            self.assertEqual(c.command("SET", "k", "v"), b"OK")


WAIT = """local function now() local t = redis.call('time') return t[1] * 1000000 + t[2] end
local function wait(ms) local from = now() repeat until now() - from >= ms * 1000 end
"""


class Moving(unittest.TestCase):
    """In a script and in a transaction TIME moves on. Keys expire as of their start."""

    SCRIPTS = [
        "wait(20) return 'ended'",
        "redis.call('set', 'k', 'v', 'px', 5) wait(50) "
        "return {redis.call('exists', 'k'), redis.call('pttl', 'k'), redis.call('get', 'k')}",
        "wait(20) redis.call('set', 'k', 'v', 'px', 100000) "
        "return redis.call('pexpiretime', 'k') >= (now() - 1000000) / 1000 + 100000 - 1",
        "wait(20) redis.call('expire', 'k', 100) return redis.call('ttl', 'k')",
        "redis.call('set', 'gone', 'v') wait(5) return redis.call('pexpireat', 'gone', "
        "string.format('%d', now() / 1000 - 1)) + 10 * redis.call('exists', 'gone')",
        "local from = now() wait(20) local id = redis.call('xadd', 's', '*', 'f', 'v') "
        "return tonumber(id:match('%d+')) >= math.floor(from / 1000) + 19",
    ]

    def ask(self, server):
        c = server.client()
        replies = [c.ask("EVAL", WAIT + script, 0) for script in self.SCRIPTS]
        c.command("FUNCTION", "LOAD", "#!lua name=l\n" + WAIT +
                  "redis.register_function('f', function() wait(20) return 'ended' end)")
        replies.append(c.ask("FCALL", "f", 0))
        return replies

    def test_in_scripts_as_on_redis_server(self):
        with pair() as servers:
            ours, theirs = [self.ask(server) for server in servers]
            self.assertEqual(ours, theirs)
            self.assertEqual(ours[0], ("$", b"ended"))
            self.assertEqual(ours[1][1], [(":", 1), (":", 0), ("$", b"v")])

    def test_a_key_does_not_vanish_inside_a_script(self):
        for kind in (Redoubt, Redis):
            with self.subTest(kind=kind.name), kind() as server:
                c = server.client()
                script = WAIT + ("local a = redis.call('exists', KEYS[1]) wait(300) "
                                 "return {a, redis.call('exists', KEYS[1])}")
                for ms in (100, 200, 400, 800, 1600, 3200, 6400):  # for a slow machine
                    c.command("SET", "k", "v", "PX", ms)
                    reply = c.command("EVAL", script.replace("300", str(2 * ms)), 1, "k")
                    self.assertIn(reply, ([1, 1], [0, 0]))
                    if reply == [1, 1]:
                        break
                self.assertEqual(reply, [1, 1])
                self.assertEqual(c.command("EXISTS", "k"), 0)

    def test_in_transactions_as_on_redis_server(self):
        for kind in (Redoubt, Reference):
            with self.subTest(kind=kind.name), kind() as server:
                c = server.client()
                for words in (["MULTI"], ["SET", "k", "v", "PX", 10], ["TIME"],
                              ["DEBUG", "SLEEP", "0.1"], ["TIME"], ["EXISTS", "k"], ["PTTL", "k"]):
                    c.command(*words)
                _, before, _, after, exists, left = c.command("EXEC")
                before, after = (int(t[0]) * 1000000 + int(t[1]) for t in (before, after))
                self.assertGreaterEqual(after - before, 100000)
                self.assertEqual((exists, left), (1, 0))
                self.assertEqual(c.command("EXISTS", "k"), 0)


if __name__ == "__main__":
    unittest.main()
