"""redoubt-server and redis-server with the same clients, which say the same: each reply must be
equal. For random tests of what families of commands do not reach (users, messages)."""

import os
import random
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "server"))
from server_under_test import Redis, Redoubt, ServerDied, pair  # noqa: E402
import recorded  # noqa: E402

SECONDS = float(os.environ.get("REDOUBT_ORACLE_SECONDS", "10"))
MIN_COMMANDS = 1000
FIXED_SEED, FIXED_COMMANDS = 1, 4000


class Random(unittest.TestCase):
    """compare() runs commands with a fixed seed, and knows the answers of redis-server 7.0.15 from
    the record (tape.py). Where the server itself is there, commands with a seed of the clock run,
    too; REDOUBT_ORACLE_SEED repeats them."""

    world = None
    CONFIG = {"enable-debug-command": "yes"}

    def compare(self):
        with pair(self.CONFIG) as servers:
            self.world(self, servers, FIXED_SEED).run(0, FIXED_COMMANDS)
        if recorded.chance_is_allowed():
            seed = int(os.environ.get("REDOUBT_ORACLE_SEED", time.time()))
            print(f"# seed {seed}", flush=True)
            with Redoubt(self.CONFIG) as ours, Redis(self.CONFIG) as theirs:
                self.world(self, (ours, theirs), seed).run(SECONDS)


class Side:
    """One server, and its clients by name."""

    def __init__(self, server):
        self.server = server
        self.clients = {}
        self.messages = []

    def open(self, name):
        if name in self.clients:
            self.clients[name].close()
        self.clients[name] = self.server.client()

    def ask(self, name, *args):
        """The reply; the messages before it are in `messages`."""
        client = self.clients[name]
        try:
            client.send(*args)
            while (reply := client.read())[0] == ">" and self.is_message(reply):
                self.messages.append(reply)
            return reply
        except (ServerDied, ConnectionError):
            return ("closed", b"")

    @staticmethod
    def is_message(reply):
        return b"message" in reply[1][0][1]


class World:
    side = Side

    def __init__(self, case, servers, seed):
        self.case = case
        self.sides = [self.side(server) for server in servers]
        self.random = random.Random(seed)
        self.seed = seed
        self.trail = []
        self.n = 0
        self.same_ids()

    def open(self, name):
        for side in self.sides:
            side.open(name)

    def same_ids(self):
        """The next client of both gets the same id, which replies show."""
        def newest(side):
            side.open("admin")
            return side.ask("admin", "CLIENT", "ID")[1]
        ids = [newest(side) for side in self.sides]
        while ids[0] != ids[1]:
            late = int(ids[0] > ids[1])
            ids[late] = newest(self.sides[late])

    def fail(self, ours, theirs):
        lines = "\n".join(f"  {who}: {what}" for who, what in self.trail)
        self.case.fail(f"seed {self.seed}, command {self.n}\n{lines}\n"
                       f"ours:   {ours}\ntheirs: {theirs}")

    def note(self, name, args):
        self.n += 1
        self.trail.append((name, args))
        del self.trail[:-40]

    def normal(self, args, reply):
        """What is compared of a reply to these arguments."""
        return reply

    def ask(self, name, *args):
        self.note(name, args)
        said = []
        for side in self.sides:
            reply = self.normal(args, side.ask(name, *args))
            said.append((reply, side.messages[:]))
            side.messages.clear()
        if said[0] != said[1]:
            self.fail(*said)
        return said[0][0]

    def run(self, seconds, least=MIN_COMMANDS):
        """Steps, which are functions with their weights, for so long, or for so many commands."""
        choice = [step for step, weight in self.steps() for _ in range(weight)]
        end = time.monotonic() + seconds
        while time.monotonic() < end or self.n < least:
            self.random.choice(choice)()
        print(f"# {self.n} commands", flush=True)
