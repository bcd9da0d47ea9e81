"""The wall clock is set while the server runs: nothing that lasts takes longer or ends early."""

import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from persistence import Faulty  # noqa: E402
from server_under_test import wait_for  # noqa: E402

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


if __name__ == "__main__":
    unittest.main()
