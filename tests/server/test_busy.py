"""Clients while a script runs for too long: no input is run while a command of its client runs.

The loop runs inside the script, so every path that runs input meets the client of the script.
"""

import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from persistence import incr  # noqa: E402
from server_under_test import Redoubt, ServerDied, encode, wait_for  # noqa: E402

BUSY = {"busy-reply-threshold": "1"}
LOOP = "while true do end"
SEEDS = range(4)


def begin(other, c, data):
    """A slow script of c begins."""
    c.send_raw(data)
    wait_for(lambda: other.ask("PING")[1].startswith(b"BUSY"), step=0)


def wait_blocked(server, n):
    wait_for(lambda: server.info()["blocked_clients"] == str(n))


class Running(unittest.TestCase):
    """Each case makes a path that runs input, closes a client or moves its bytes meet the client
    whose script runs."""

    def wake_and_run(self, server, script, end):
        """A waiting client gets its element, and the end of its script, in one turn."""
        c, pusher, holder = server.client(), server.client(), server.client()
        words = encode("EVAL", script, 0)
        c.send_raw(encode("BLPOP", "q", 0) + words[:-7])
        wait_blocked(server, 1)
        holder.send("DEBUG", "SLEEP", "0.3")
        pusher.send("LPUSH", "q", "x")
        c.send_raw(words[-7:] + end)
        self.assertEqual(pusher.read(), (":", 1))
        return c

    def test_a_client_that_was_woken_in_the_turn_of_its_input(self):
        hidden = encode("SET", "forged", 1) + encode("ECHO", "forged")
        script = "local x = [==[" + hidden.decode() + "]==] " + LOOP
        with Redoubt(BUSY) as server:
            for _ in range(3):
                c = self.wake_and_run(server, script, encode("ECHO", "after"))
                other = server.client()
                wait_for(lambda o=other: o.ask("PING")[1].startswith(b"BUSY"), step=0)
                for _ in range(20):
                    self.assertEqual(other.ask("PING")[1][:4], b"BUSY")
                self.assertEqual(other.ask("SCRIPT", "KILL"), ("+", b"OK"))
                self.assertEqual(c.read()[0], "*")
                self.assertEqual(c.read()[1][:29], b"ERR Script killed by user wit")
                self.assertEqual(c.read(), ("$", b"after"))
                self.assertEqual(other.command("EXISTS", "forged"), 0)
                c.close()
                other.close()

    def test_a_client_that_loads_a_log_with_a_slow_script(self):
        """The script belongs to the client that loads; the one that asked for it waits."""
        with Redoubt({"appendonly": "yes", **BUSY}) as server:
            c, other = server.client(), server.client()
            script = "for i = 1, 1000000 do redis.call('ping') end redis.call('set', 'k', 'v')"
            with open(incr(server), "ab") as f:
                f.write(encode("SELECT", 0) + encode("EVAL", script, 0))
            words = encode("DEBUG", "LOADAOF") + encode("ECHO", "after")
            c.send_raw(words + encode("ECHO", "x" * 20000)[:-9000])
            wait_for(lambda: other.ask("PING")[1].startswith(b"LOADING"), step=0)
            c.send_raw(encode("ECHO", "x" * 20000)[-9000:] + encode("GET", "k"))
            for _ in range(20):
                other.ask("PING")
            self.assertEqual(c.read(), ("+", b"OK"))
            self.assertEqual(c.read(), ("$", b"after"))
            self.assertEqual(c.read(), ("$", b"x" * 20000))
            self.assertEqual(c.read(), ("$", b"v"))

    def test_the_largest_client_runs_the_script(self):
        config = {"maxmemory-clients": "300kb", **BUSY}
        with Redoubt(config) as server:
            c, other = server.client(), server.client()
            begin(other, c, encode("EVAL", LOOP, 0, "x" * 150000) + encode("ECHO", "y" * 100000))
            filler = server.client()
            filler.send_raw(encode("ECHO", "z" * 120000)[:-10])
            for _ in range(20):
                self.assertEqual(other.ask("PING")[1][:4], b"BUSY")
            self.assertEqual(other.ask("SCRIPT", "KILL"), ("+", b"OK"))
            wait_for(lambda: other.ask("PING") == ("+", b"PONG"))

    def test_a_client_without_replies_that_is_closed_meanwhile_goes_at_the_end(self):
        with Redoubt({"client-output-buffer-limit": "normal 100000 0 0", **BUSY}) as server:
            c, other = server.client(), server.client()
            c.command("DEL", "nothing")
            begin(other, c, encode("CLIENT", "REPLY", "OFF") + encode("EVAL", LOOP, 0))
            c.close()
            for _ in range(20):
                self.assertEqual(other.ask("PING")[1][:4], b"BUSY")
            self.assertEqual(other.ask("SCRIPT", "KILL"), ("+", b"OK"))
            wait_for(lambda: server.info()["connected_clients"] == "2")

    def test_a_pause_ends_and_its_clients_run_scripts(self):
        with Redoubt(BUSY) as server:
            other, many = server.client(), [server.client() for _ in range(4)]
            other.command("CLIENT", "PAUSE", 600000, "WRITE")
            words = encode("EVAL", f"redis.call('get', 'k') {LOOP}", 0)
            for one in many:
                one.send_raw(words + encode("ECHO", "after")[:-5])
            wait_blocked(server, len(many))
            other.send("CLIENT", "UNPAUSE")
            for one in many:
                one.send_raw(encode("ECHO", "after")[-5:])
            self.assertEqual(other.read(), ("+", b"OK"))
            wait_for(lambda: other.ask("SCRIPT", "KILL") and other.ask("PING")[1] == b"PONG")
            replies = [[one.read(), one.read()] for one in many]
            for script, after in replies:
                self.assertIn(script[1][:4], (b"ERR ", b"BUSY"))
                self.assertIn(after[1][:5], (b"after", b"BUSY "))


class Expected:
    """The replies of one client, in order. Each command answers with what only it knows."""

    def __init__(self, client):
        self.client = client
        self.pending = []
        self.data = b""

    def add(self, words, *answers):
        self.pending.append(answers)
        self.data += encode(*words)

    def flush(self, rng):
        """Sends a part of what is to be sent, often with an end in the middle of a command."""
        n = len(self.data) if rng.random() < 0.4 else rng.randrange(len(self.data) + 1)
        self.client.send_raw(self.data[:n])
        self.data = self.data[n:]

    def check(self, case):
        self.client.send_raw(self.data)
        self.data = b""
        for answers in self.pending:
            kind, value = self.client.read()
            refused = kind == "-" and value[:4] in (b"BUSY", b"ERR ", b"NOTB")
            case.assertTrue(refused or (kind, value) in answers, (kind, value, answers))
        self.pending = []


class Chance(unittest.TestCase):
    """Scripts, waits, pauses and slow turns at once, by seeds."""

    CLIENTS, ROUNDS, COMMANDS = 6, 12, 8

    def one(self, rng, expected, n):
        choice, mark = rng.randrange(8), f"mark-{n}"
        if choice < 2:
            spin = f"for i = 1, {rng.choice((10, 400000, 1500000))} do end return ARGV[1]"
            expected.add(("EVAL", spin, 0, mark), ("$", mark.encode()))
        elif choice == 2:
            expected.add(("EVAL", "redis.call('lpush', KEYS[1], ARGV[1]) return ARGV[1]", 1,
                          f"q{rng.randrange(2)}", mark), ("$", mark.encode()))
        elif choice == 3:
            self.pop(rng, expected)
        elif choice == 4:
            expected.add(("RPUSH", "other", "x"), *((":", i) for i in range(10000)))
        elif choice == 5:
            mark *= rng.choice((1, 3000))
            expected.add(("ECHO", mark), ("$", mark.encode()))
        elif choice == 6:
            expected.add(("CLIENT", "PAUSE", rng.choice((1, 20)), "WRITE"), ("+", b"OK"))
        else:
            expected.add(("SCRIPT", "KILL"), ("+", b"OK"))

    @staticmethod
    def pop(rng, expected):
        class Any(tuple):
            """A list of the queue's name and a mark, or no list after the time-out."""

            def __eq__(self, reply):
                kind, value = reply
                return kind == "*" and (value is None or value[0][1][:1] == b"q")
            __hash__ = tuple.__hash__

        name = f"q{rng.randrange(2)}"
        expected.add(("BLPOP", name, rng.choice(("0.01", "0.1"))), Any())

    def run_seed(self, seed):
        rng = random.Random(seed)
        with Redoubt({"maxmemory-clients": "20mb", **BUSY}) as server:
            holder, every = server.client(), [Expected(server.client())
                                              for _ in range(self.CLIENTS)]
            for round_ in range(self.ROUNDS):
                for n in range(self.COMMANDS * self.CLIENTS):
                    self.one(rng, rng.choice(every), round_ * 1000 + n)
                for _ in range(3):  # all of this is there in one turn
                    holder.send("DEBUG", "SLEEP", "0.03")
                    for expected in rng.choices(every, k=2 * self.CLIENTS):
                        expected.flush(rng)
                    holder.read()
                for expected in every:
                    expected.check(self)
                if rng.random() < 0.3:
                    every[0].client.send("EVAL", "for i = 1, 400000 do end", 0)
                    every[0].client.close()
                    every[0] = Expected(server.client())
            wait_for(lambda: server.client().ask("PING") == ("+", b"PONG"))

    def test_every_reply_answers_its_command(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                try:
                    self.run_seed(seed)
                except (ServerDied, ConnectionError) as error:
                    self.fail(f"seed {seed}: {error}")


if __name__ == "__main__":
    unittest.main()
