"""`redoubt undo` of keys of a cluster of real servers."""

import json
import os
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
from backup_case import REDOUBT  # noqa: E402
from capture_case import eventually  # noqa: E402
from captures import command  # noqa: E402
from test_backup_cluster import TAGS, ClusterCase  # noqa: E402


class Cluster(ClusterCase):
    def setUp(self):
        super().setUp()
        self.log = self.path("log.aof")

    def owner(self, nodes, key):
        slot = nodes[0].command("CLUSTER", "KEYSLOT", key)
        return nodes[slot * len(nodes) // 16384]

    def record(self, nodes, before, after):
        """Both run on the cluster; the log has `after` in one transaction."""
        with open(self.log, "wb") as f:
            for line in before:
                f.write(command(*line))
            self.place = f"log.aof:{f.tell()}"
            f.write(command("MULTI"))
            for line in after:
                f.write(command(*line))
            f.write(command("EXEC"))
        for line in (*before, *after):
            self.owner(nodes, line[1]).command(*line)

    def undo(self, to, *args, expect=0):
        done = subprocess.run(
            [REDOUBT, "undo", "--command", self.place, "--in", self.log, "--to",
             f"redis://127.0.0.1:{to.port}", "--json", *args], cwd=self.folder,
            capture_output=True, check=False, env={**os.environ, "XDG_CACHE_HOME": self.folder})
        self.assertEqual(done.returncode, expect, done.stderr.decode())
        self.said = done.stderr.decode()
        return [json.loads(line) for line in done.stdout.splitlines()]

    def get(self, nodes, *keys):
        return [self.owner(nodes, key).command("GET", key) for key in keys]

    def keys(self, n):
        return [f"k{i}{tag}" for i in range(n) for tag in TAGS]

    def test_keys_of_all_masters(self):
        nodes = self.cluster()
        keys = self.keys(20)
        self.record(nodes, [("SET", k, f"{k} \"good\"\0\n") for k in keys],
                    [("SET", k, "bad\r\n") for k in keys] + [("SET", "new{a}", "x")])
        for node in nodes:
            self.assertEqual(len(self.undo(node, "--dry-run")), len(keys) + 1)
        self.undo(nodes[1])
        self.assertEqual(self.get(nodes, *keys), [f"{k} \"good\"\0\n".encode() for k in keys])
        self.assertEqual(self.get(nodes, "new{a}"), [None])
        # What it saved takes it back.
        saved = [n for n in os.listdir(self.folder) if n.startswith("undo-")]
        self.assertEqual([os.path.splitext(n)[1] for n in saved], [".txt"])
        with open(self.path(saved[0]), "rb") as f:
            said = subprocess.run([redis_server.program("cli"), "-c", "-p", str(nodes[2].port)],
                                  stdin=f, check=True, capture_output=True).stdout
        self.assertNotIn(b"ERR", said)
        self.assertEqual(self.get(nodes, *keys), [b"bad\r\n"] * len(keys))
        self.assertEqual(self.get(nodes, "new{a}"), [b"x"])

    def begin_to_move(self, nodes, key):
        """(slot, from, to), while the slot is being moved."""
        slot = nodes[0].command("CLUSTER", "KEYSLOT", key)
        source = self.owner(nodes, key)
        target = nodes[(nodes.index(source) + 1) % len(nodes)]
        target.command("CLUSTER", "SETSLOT", slot, "IMPORTING",
                       source.command("CLUSTER", "MYID").decode())
        source.command("CLUSTER", "SETSLOT", slot, "MIGRATING",
                       target.command("CLUSTER", "MYID").decode())
        return slot, source, target

    def test_a_slot_that_is_being_moved(self):
        nodes = self.cluster()
        self.record(nodes, [("HSET", f"{n}{{a}}", "f", "good") for n in ("stays", "moves", "gone")],
                    [("HSET", "stays{a}", "f", "bad"), ("HSET", "moves{a}", "f", "bad"),
                     ("DEL", "gone{a}")])
        _, source, target = self.begin_to_move(nodes, "x{a}")
        source.command("MIGRATE", "127.0.0.1", target.port, "moves{a}", 0, 5000)
        self.undo(nodes[0])
        self.assertEqual(source.command("HGET", "stays{a}", "f"), b"good")
        for key in ("moves{a}", "gone{a}"):
            target.command("ASKING")
            self.assertEqual(target.command("HGET", key, "f"), b"good", key)

    def test_slots_move_while_it_runs(self):
        nodes = self.cluster()
        keys = self.keys(400)
        self.record(nodes, [("SET", k, "good") for k in keys], [("SET", k, "bad") for k in keys])
        stop = threading.Event()
        moved = []

        def move():
            home = dict(zip(TAGS, nodes))
            while not stop.is_set():
                for tag in TAGS:
                    if stop.is_set():
                        break
                    source = home[tag]
                    target = nodes[(nodes.index(source) + 1) % 3]
                    self.move(tag, source.command, target, nodes)
                    home[tag] = target
                    moved.append(tag)
            self.home = home

        mover = threading.Thread(target=move)
        mover.start()
        try:
            self.undo(nodes[0])
        finally:
            stop.set()
            mover.join()
        self.assertGreater(len(moved), 0)
        self.assertEqual([self.home[tag].command("GET", k) for tag in TAGS
                          for k in keys if tag in k], [b"good"] * len(keys))

    def move(self, tag, a, target, nodes):
        """A slot with all its keys."""
        b = target.command
        slot = a("CLUSTER", "KEYSLOT", "x" + tag)
        b("CLUSTER", "SETSLOT", slot, "IMPORTING", a("CLUSTER", "MYID").decode())
        a("CLUSTER", "SETSLOT", slot, "MIGRATING", b("CLUSTER", "MYID").decode())
        while True:
            some = a("CLUSTER", "GETKEYSINSLOT", slot, 100)
            if not some:
                break
            a("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *some)
        for one in (b, a, *(n.command for n in nodes)):
            one("CLUSTER", "SETSLOT", slot, "NODE", b("CLUSTER", "MYID").decode())
        eventually("all know the owner",
                   lambda: {self.known_owner(n, slot) for n in nodes} == {target.port})
        time.sleep(0.2)
        assert {self.known_owner(n, slot) for n in nodes} == {target.port}

    def known_owner(self, node, slot):
        return next(master[1] for first, last, master, *_ in node.command("CLUSTER", "SLOTS")
                    if first <= slot <= last)

    def test_other_databases_are_refused(self):
        nodes = self.cluster()
        with open(self.log, "wb") as f:
            f.write(command("SET", "k", "0") + command("SELECT", "1") + command("SET", "k", "1"))
            self.place = f"log.aof:{f.tell()}"
            f.write(command("MULTI") + command("SET", "k", "2") + command("EXEC"))
        self.undo(nodes[0], expect=2)
        self.assertIn("a key is in database 1", self.said)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("undo-")], [])


if __name__ == "__main__":
    unittest.main()
