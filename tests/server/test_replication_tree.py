"""Trees of redoubt-server and redis-server over connections that break, stall and are slow.

By hand for longer: REDOUBT_TREE_SECONDS=600 python3 tests/support/tap.py <this file>
"""

import os
import random
import select
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import Redis, Redoubt, ReplyError, ServerDied, wait_for  # noqa: E402
from test_replication import digest, fill, offset, servers  # noqa: E402

SECONDS = float(os.environ.get("REDOUBT_TREE_SECONDS", "6"))


class Proxy(threading.Thread):
    """Between a replica and the server that it follows. The connections are cut from time to time,
    also in the middle of a command, and pieces come late."""

    def __init__(self, seed):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.target = None
        self.random = random.Random(seed)
        self.pairs = {}
        self.calm = False
        self.done = False
        self.cut_due = False
        self.cuts = 0
        self.start()

    def cut(self):
        """Soon: only its own thread changes the connections."""
        self.cut_due = True

    def cut_now(self):
        self.cut_due = False
        for s in self.pairs:
            s.close()
        self.cuts += bool(self.pairs)
        self.pairs = {}

    def accept(self):
        near, _ = self.listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", self.target), timeout=600)
        except OSError:
            near.close()
            return
        self.pairs[near], self.pairs[far] = far, near

    def forward(self, s):
        other = self.pairs.get(s)
        if other is None:
            return
        try:
            data = s.recv(65536 if self.calm else self.random.choice([1, 100, 4096, 65536]))
            if not data:
                raise OSError("the end")
            if not self.calm and self.random.random() < 0.003:
                other.sendall(data[: len(data) // 2])
                raise OSError("cut")
            if not self.calm and self.random.random() < 0.01:
                time.sleep(self.random.random() / 5)
            other.sendall(data)
        except OSError:
            self.cuts += 1
            for end in (s, other):
                self.pairs.pop(end, None)
                end.close()

    def run(self):
        while not self.done:
            if self.cut_due:
                self.cut_now()
            try:
                ready, _, _ = select.select([self.listener, *self.pairs], [], [], 0.1)
            except (OSError, ValueError):
                continue
            for s in ready:
                if s is self.listener:
                    self.accept()
                else:
                    self.forward(s)
        self.cut_now()
        self.listener.close()


class Tree:
    """The first server is the master. Each follows one before it, through a proxy of its own."""

    def __init__(self, nodes, parents, seed):
        self.nodes = nodes
        self.proxies = [Proxy(seed + i) for i in range(len(nodes))]
        self.random = random.Random(seed)
        for i, parent in enumerate(parents):
            if parent is not None:
                self.follow(i, parent)

    def follow(self, i, parent):
        proxy = self.proxies[i]
        proxy.target = self.nodes[parent].port
        proxy.cut()
        self.nodes[i].client().command("REPLICAOF", "127.0.0.1", proxy.port)

    def promote(self, old, new, parents):
        """What an operator does: the old master writes nothing more, not even a PING or the DEL of
        a key that is due, until the new one has it all; then the others follow."""
        c = self.nodes[old].client()
        c.command("CONFIG", "SET", "repl-ping-replica-period", "86400")
        c.command("CLIENT", "PAUSE", "86400000", "WRITE")
        self.settle(old)
        self.nodes[new].client().command("REPLICAOF", "NO", "ONE")
        for i, parent in enumerate(parents):
            if parent is not None:
                self.follow(i, parent)
        c.command("CLIENT", "UNPAUSE")

    def calm(self):
        for proxy in self.proxies:
            proxy.calm = True

    def close(self):
        for proxy in self.proxies:
            proxy.done = True
        for proxy in self.proxies:
            proxy.join()

    def settle(self, master):
        """All come to the offset and the data of the master."""
        top = self.nodes[master]
        for node in self.nodes:
            wait_for(lambda: node is top or
                     node.info("replication").get("master_link_status") == "up")
            wait_for(lambda: offset(node) == offset(top))
        # Keys that expire meanwhile change the data of the master first.
        wait_for(lambda: len({digest(node) for node in self.nodes}) == 1)


class MixedTrees(unittest.TestCase):
    CONFIG = {"repl-backlog-size": "10mb", "repl-timeout": "60", "save": "3600 1"}

    def check(self, kinds, seed):
        with servers(*kinds, config=self.CONFIG) as nodes:
            tree = Tree(nodes, [None, 0, 0, 1], seed)
            try:
                self.load(tree, 0)
                tree.calm()
                tree.settle(0)
                full = [int(node.info("stats")["sync_full"]) for node in nodes]
                for proxy in tree.proxies:
                    proxy.calm = False
                tree.promote(0, 1, [1, None, 1, 0])
                self.load(tree, 1)
                tree.calm()
                tree.settle(1)
                # The backlog holds it all: nothing was copied again.
                self.assertEqual([int(node.info("stats")["sync_full"]) for node in nodes], full)
                self.assertGreater(sum(proxy.cuts for proxy in tree.proxies), 3)
            finally:
                tree.close()

    def load(self, tree, master):
        c = tree.nodes[master].client()
        # The first copies are made undisturbed by cuts, so that the syncs can be counted.
        end = time.monotonic() + SECONDS / 2
        n = 0
        while time.monotonic() < end or n < 40:
            fill(c, 200, seed=n, db=n % 3)
            c.command("PUBLISH", "channel", "message")
            n += 1
            if n % 5 == 0:
                tree.proxies[tree.random.randrange(len(tree.proxies))].cut()
            time.sleep(0.02)

    def test_redoubt_is_above_below_and_between(self):
        for seed, kinds in enumerate([(Redoubt, Redis, Redoubt, Redis),
                                      (Redis, Redoubt, Redis, Redoubt),
                                      (Redoubt, Redoubt, Redoubt, Redoubt)]):
            with self.subTest([kind.name for kind in kinds]):
                self.check(kinds, seed)
