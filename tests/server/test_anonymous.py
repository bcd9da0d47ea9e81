"""Clients that have not logged in: what they may take of memory, alone and together."""

import contextlib
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import Redoubt, ServerDied, encode, wait_for  # noqa: E402

PASSWORD = {"requirepass": "secret", "loglevel": "verbose"}
MB = 1 << 20


def admin(server):
    c = server.client()
    c.command("AUTH", "secret")
    return c


def memory(asking):
    """The bytes of all clients, and their number."""
    lines = asking.command("CLIENT", "LIST").decode().splitlines()
    sizes = [int(line.split("tot-mem=")[1].split(" ")[0]) for line in lines]
    return sum(sizes), len(sizes)


def blocks_of(command):
    """As many as a server without a limit answers with more than sockets hold."""
    one = command * (16384 // len(command))
    return [one] * (32 * MB // len(one))


class One(unittest.TestCase):
    def test_who_does_not_read_is_closed(self):
        commands = [b"PING\r\n", encode("HELLO", 3), encode("AUTH", "wrong"), encode("GET", "k"),
                    encode("AUTH", "other", "wrong"), encode("RESET"), encode("HELLO", 9)]
        with Redoubt(PASSWORD) as server:
            asking = admin(server)
            for command in commands:
                c = server.client()
                with self.assertRaises(ServerDied, msg=command):
                    for block in blocks_of(command):
                        c.send_raw(block)
                wait_for(lambda: memory(asking)[1] == 1)
                self.assertLess(memory(asking)[0], MB)
            log = server.log
            self.assertIn("for overcoming of output buffer limits", log)

    def test_a_user_that_is_taken_away_is_limited_again(self):
        with Redoubt() as server:
            asking, c = server.client(), server.client()
            asking.command("ACL", "SETUSER", "me", "on", ">p", "+@all", "~*")
            asking.command("AUTH", "me", "p")
            asking.command("ACL", "SETUSER", "default", "resetpass", ">q")
            c.command("PING")  # it came before the password, as on redis-server
            late = server.client()
            with self.assertRaises(ServerDied):
                for block in blocks_of(b"PING\r\n"):
                    late.send_raw(block)

    def test_who_logs_in_may_have_much_to_read(self):
        with Redoubt({"client-output-buffer-limit": "normal 0 0 0", **PASSWORD}) as server:
            c, n = server.client(), 300
            c.send_raw(encode("AUTH", "secret") + encode("SET", "k", "x" * 10000) +
                       encode("GET", "k") * n)
            self.assertEqual([c.read(), c.read()], [("+", b"OK")] * 2)
            self.assertEqual({len(c.read()[1]) for _ in range(n)}, {10000})

    def test_a_short_pipeline_is_answered(self):
        with Redoubt(PASSWORD) as server:
            c = server.client()
            c.send_raw(encode("PING") * 100 + encode("AUTH", "secret") + encode("PING"))
            self.assertEqual({c.read()[1][:6] for _ in range(100)}, {b"NOAUTH"})
            self.assertEqual([c.read(), c.read()], [("+", b"OK"), ("+", b"PONG")])


class Many(unittest.TestCase):
    """The limit of all is 16 MiB. What follows takes three times as much without it."""

    CLIENTS = 300

    def fill(self, server, data):
        many = []
        for _ in range(self.CLIENTS):
            c = server.client()
            many.append(c)
            with contextlib.suppress(ServerDied):
                c.send_raw(data)
        return many

    def test_commands_that_never_end_take_a_limited_amount(self):
        argument = b"$16384\r\n" + b"x" * 16384 + b"\r\n"
        data = b"*10\r\n" + argument * 9 + argument[:16000]
        with Redoubt(PASSWORD) as server:
            asking = admin(server)
            many = self.fill(server, data)
            wait_for(lambda: "clients that have not logged in use too much" in server.log)
            for _ in range(30):
                used, n = memory(asking)
                self.assertLess(used, 20 * MB)
            self.assertGreater(n, 50)
            late = server.client()  # logs in, and is not one of those that are closed
            late.send_raw(encode("AUTH", "secret")[:20])
            late.send_raw(encode("AUTH", "secret")[20:])
            self.assertEqual(late.read(), ("+", b"OK"))
            for c in many:
                c.close()
            wait_for(lambda: memory(asking)[1] == 2)
            self.fill(server, data[:1000])
            self.assertEqual(memory(asking)[1], self.CLIENTS + 2)


if __name__ == "__main__":
    unittest.main()
