"""The library as a node (bus_node.c) in clusters of real servers.

REDOUBT_NODE_ROOT and REDOUBT_NODE_SERVER name another server than the installed one, by hand: a
folder for chroot, and a program in it.
"""

import os
import queue
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from redis_server import free_port, installed, program

BUS_NODE = os.environ["REDOUBT_BUS_NODE"]
ROOT = os.environ.get("REDOUBT_NODE_ROOT", "/")
SERVER = os.environ.get("REDOUBT_NODE_SERVER") or program()
TIMEOUT = 3000
PATIENCE = 120


def wait(condition, what):
    end = time.time() + PATIENCE
    while time.time() < end:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"never: {what() if callable(what) else what}")


def parse(text):
    """The lines of CLUSTER NODES by id: flags, master, link, slots."""
    nodes = {}
    for line in text.splitlines():
        f = line.split()
        if len(f) >= 8 and f[0] != "vars":
            nodes[f[0]] = {"address": f[1], "flags": f[2].split(","), "master": f[3],
                           "epoch": int(f[6]), "link": f[7], "slots": f[8:]}
    return nodes


class Real:
    """A real server."""

    def __init__(self):
        self.port, self.bus = free_port(), free_port()
        self.dir = tempfile.mkdtemp(prefix="redoubt-test-", dir=os.path.join(ROOT, "tmp"))
        inside = "/" + os.path.relpath(self.dir, ROOT)
        command = [SERVER, "--port", str(self.port), "--cluster-enabled", "yes", "--cluster-port",
                   str(self.bus), "--bind", "127.0.0.1", "--dir", inside, "--save", "",
                   "--cluster-node-timeout", str(TIMEOUT), "--logfile", "log",
                   "--repl-diskless-sync-delay", "0"]
        self.process = subprocess.Popen((["chroot", ROOT] if ROOT != "/" else []) + command,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait(lambda: self.cli("ping") == "PONG", "the server starts")
        self.id = self.cli("cluster", "myid")

    def cli(self, *words):
        return subprocess.run([program("cli"), "-p", str(self.port), *map(str, words)],
                              capture_output=True, text=True).stdout.strip()

    def nodes(self):
        return parse(self.cli("cluster", "nodes"))

    def is_ok(self):
        return "cluster_state:ok" in self.cli("cluster", "info")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.kill()
        shutil.rmtree(self.dir)


class Ours:
    def __init__(self, hostname=None):
        self.port, self.bus = free_port(), free_port()
        self.dir = tempfile.mkdtemp(prefix="redoubt-test-")
        self.hostname = [hostname] if hostname else []
        self.events = []
        self.start()
        self.id = self("myid")[0]

    def start(self):
        self.process = subprocess.Popen(
            [BUS_NODE, str(self.port), str(self.bus), os.path.join(self.dir, "nodes.conf"),
             str(TIMEOUT), *self.hostname],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self.read, args=(self.process, self.lines))
        self.reader.start()
        self.lines.get(timeout=PATIENCE)

    def read(self, process, lines):
        for line in process.stdout:
            if line.startswith("!"):
                self.events.append(line.strip()[1:])
            else:
                lines.put(line.rstrip("\n"))

    def __call__(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = []
        while True:
            line = self.lines.get(timeout=PATIENCE)
            if line == ".":
                return answer
            answer.append(line)

    def nodes(self):
        return parse("\n".join(self("nodes")))

    def is_ok(self):
        return self("state") == ["ok"]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()

    def stop(self):
        self.kill()
        shutil.rmtree(self.dir)


class RealNodes(unittest.TestCase):
    def setUp(self):
        self.all = []

    def tearDown(self):
        for node in self.all:
            node.stop()

    def add(self, node):
        self.all.append(node)
        return node

    def join(self, reals, ours, slots):
        """A cluster of these, which know each other; slots[i]: the range of a node, or None."""
        nodes = reals + ours
        for node, span in zip(nodes, slots):
            if span is None:
                continue
            if isinstance(node, Real):
                self.assertEqual(node.cli("cluster", "addslotsrange", *span), "OK")
            else:
                self.assertEqual(node("addslots", *span), [])
        for node in nodes[1:]:
            reals[0].cli("cluster", "meet", "127.0.0.1", node.port, node.bus)
        ids = {node.id for node in nodes}
        for node in nodes:
            wait(lambda n=node: set(n.nodes()) == ids and
                 all(x["link"] == "connected" for x in n.nodes().values()),
                 lambda n=node: n.nodes())
        for node in nodes:
            wait(node.is_ok, "the cluster works")

    def three(self, hostname=None):
        reals = [self.add(Real()) for _ in range(3)]
        ours = self.add(Ours(hostname))
        self.join(reals, [ours], [(0, 5460), (5461, 10922), (10923, 16383), None])
        return reals, ours

    def follow(self, ours, master, others):
        wait(lambda: ours("replicate", master.id) == [], "it is a replica")
        for node in others:
            wait(lambda n=node: n.nodes()[ours.id]["master"] == master.id, "they know")

    def test_real_nodes_know_ours_and_ours_knows_them(self):
        reals, ours = self.three("ours.example")
        for real in reals:
            wait(lambda r=real: r.nodes()[ours.id]["address"] ==
                 f"127.0.0.1:{ours.port}@{ours.bus},ours.example", lambda r=real: r.nodes())
        def views():
            return [{i: (n["slots"], n["epoch"]) for i, n in node.nodes().items()}
                    for node in (*reals, ours)]

        def agree():  # epochs that are the same still change when the cluster works
            first, *others = views()
            return all(view == first for view in others)
        wait(agree, views)
        counts = {line.split()[0]: line.split()[1:] for line in ours("stats")}
        self.assertEqual(counts["refused"], ["0"])
        self.assertGreater(int(counts["pong"][1]), 0)

    def test_ours_meets_a_real_node_and_is_known_after_a_restart(self):
        real, ours = self.add(Real()), self.add(Ours())
        ours("meet", "127.0.0.1", real.port, real.bus)
        wait(lambda: ours.id in real.nodes() and real.id in ours.nodes(), "they met")
        ours.kill()
        wait(lambda: real.nodes()[ours.id]["link"] == "disconnected", "it is gone")
        ours.start()
        self.assertEqual(ours("myid"), [ours.id])
        wait(lambda: real.nodes()[ours.id]["link"] == "connected" and
             ours.nodes()[real.id]["link"] == "connected", "it is back")

    def test_real_masters_find_ours_failed_and_working_again(self):
        reals, ours = self.three()
        ours.kill()
        for real in reals:
            wait(lambda r=real: "fail" in r.nodes()[ours.id]["flags"], lambda: reals[0].nodes())
        ours.start()
        for real in reals:
            wait(lambda r=real: "fail" not in r.nodes()[ours.id]["flags"], "it works again")

    def test_ours_reports_a_failure_and_votes(self):
        """Two masters of three are left, so both must report the third, and vote."""
        reals = [self.add(Real()) for _ in range(3)]
        ours = self.add(Ours())
        self.join(reals, [ours], [(0, 5460), (5461, 10922), None, (10923, 16383)])
        lost, _, replica = reals
        wait(lambda: replica.cli("cluster", "replicate", lost.id) == "OK", "a replica")
        wait(lambda: "master_link_status:up" in replica.cli("info", "replication"), "a link")
        wait(lambda: ours.nodes()[replica.id]["master"] == lost.id, "ours knows")
        lost.kill()
        wait(lambda: "role:master" in replica.cli("info", "replication"), "promoted")
        wait(lambda: ours.nodes()[replica.id]["slots"] == ["0-5460"], lambda: ours.nodes())
        wait(ours.is_ok, "ours works")
        counts = {line.split()[0]: line.split()[1:] for line in ours("stats")}
        self.assertEqual(counts["auth-ack"][0], "1")

    def test_real_masters_vote_for_ours(self):
        reals, ours = self.three()
        self.follow(ours, reals[0], reals)
        self.assertIn(f"replicate 127.0.0.1 {reals[0].port}", ours.events)
        time.sleep(1)
        reals[0].kill()
        for real in reals[1:]:
            wait(lambda r=real: r.nodes()[ours.id]["slots"] == ["0-5460"], lambda: ours.nodes())
            wait(real.is_ok, "the cluster works")
        self.assertIn("promote", ours.events)
        self.assertTrue(ours.is_ok())

    def test_a_real_master_gives_way_to_ours_when_asked(self):
        for how in ("", "force", "takeover"):
            with self.subTest(how=how):
                reals, ours = self.three()
                self.follow(ours, reals[0], reals)
                time.sleep(TIMEOUT / 1000)
                self.assertEqual(ours("failover", how), [])
                for real in reals:
                    wait(lambda r=real: r.nodes()[ours.id]["slots"] == ["0-5460"],
                         lambda: ours.nodes())
                wait(lambda: reals[0].nodes()[reals[0].id]["master"] == ours.id, "it follows")
                self.tearDown()
                self.all = []

    def test_ours_gives_way_to_a_real_replica_when_asked(self):
        reals = [self.add(Real()) for _ in range(2)]
        ours = self.add(Ours())
        self.join(reals, [ours], [(0, 10922), None, (10923, 16383)])
        reals[1].cli("cluster", "replicate", ours.id)
        for node in (ours, reals[0]):
            wait(lambda n=node: n.nodes()[reals[1].id]["master"] == ours.id, "a replica")
        self.assertEqual(reals[1].cli("cluster", "failover", "force"), "OK")
        wait(lambda: ours.nodes()[reals[1].id]["slots"] == ["10923-16383"], lambda: ours.nodes())
        wait(lambda: ours.nodes()[ours.id]["master"] == reals[1].id, "ours follows")

    def test_a_slot_moves_to_ours(self):
        reals, ours = self.three()
        self.assertEqual(ours("import", 0, reals[0].id), [])
        self.assertEqual(reals[0].cli("cluster", "setslot", 0, "migrating", ours.id), "OK")
        self.assertEqual(ours("own", 0), [])
        for real in reals:
            wait(lambda r=real: r.nodes()[ours.id]["slots"] == ["0"], lambda: reals[0].nodes())
        self.assertEqual(reals[0].cli("cluster", "setslot", 0, "node", ours.id), "OK")
        self.assertEqual(reals[0].nodes()[reals[0].id]["slots"], ["1-5460"])

    def test_messages_of_clients_go_both_ways(self):
        reals, ours = self.three()
        reals[1].cli("publish", "channel", "hello")
        wait(lambda: "publish channel hello" in ours.events, "it arrives")
        with socket.create_connection(("127.0.0.1", reals[2].port)) as client:
            client.settimeout(PATIENCE)
            client.sendall(b"SUBSCRIBE back\r\n")
            client.recv(1000)
            ours("publish", "back", "there")
            self.assertIn(b"there", client.recv(1000))

    def test_a_forgotten_node_is_gone(self):
        reals, ours = self.three()
        for real in reals:
            real.cli("cluster", "forget", ours.id)
        ours.kill()
        for real in reals:
            self.assertNotIn(ours.id, real.nodes())


if __name__ == "__main__":
    print("with", SERVER if ROOT != "/" else installed())
    unittest.main(verbosity=2)
