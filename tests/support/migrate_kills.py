"""A migration whose processes are killed at random moments, while writers write to the source.

    kills = MigrateKills(program, seed)
    kills.run(source, target, rounds=200)

The writers use commands that must not be applied twice: INCR, LPUSH, APPEND. At the end the two
servers must have the same data.
"""

import binascii
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import cluster_nodes
import redis_server
from cluster_nodes import SLOTS
from capture_case import encode, exchange


class Server(cluster_nodes.Fixed):
    """A server that is killed and started again."""

    def crash(self):
        self.stop()
        self.start()


class Cluster:
    """Masters and their replicas, which replace each other."""

    def __init__(self, masters, replicas, seed):
        self.random = random.Random(seed)
        self.nodes = []
        try:
            self._make(masters, replicas)
        except BaseException:
            self.close()
            raise

    def _make(self, masters, replicas):
        for _ in range(masters + replicas):
            node = cluster_nodes.Node()
            node.config.update({"cluster-node-timeout": "1000", "repl-diskless-sync-delay": "0",
                                "appendonly": "yes", "cluster-require-full-coverage": "no",
                                "cluster-replica-validity-factor": "0",
                                "repl-backlog-size": "64mb"})
            self.nodes.append(node)
            node.__enter__()
        for i, node in enumerate(self.nodes):
            if i < masters:
                node.command("CLUSTER", "ADDSLOTSRANGE", SLOTS * i // masters,
                             SLOTS * (i + 1) // masters - 1)
            node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for node in self.nodes[1:]:
            node.command("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port,
                         self.nodes[0].config["cluster-port"])
        wait(lambda: all(len(node.command("CLUSTER", "NODES").splitlines()) == len(self.nodes) and
                         b"cluster_state:ok" in node.command("CLUSTER", "INFO")
                         for node in self.nodes))
        for i, node in enumerate(self.nodes[masters:]):
            node.command("CLUSTER", "REPLICATE", self.nodes[i % masters].id)
        self.settle()

    def close(self):
        for node in self.nodes:
            node.close()

    def masters(self):
        return [node for node in self.nodes
                if b"role:master" in node.command("INFO", "replication")]

    def is_settled(self):
        """Every slot has a master, and every replica its link."""
        covered = 0
        for node in self.nodes:
            info = node.command("CLUSTER", "INFO")
            if b"cluster_state:ok" not in info or b"cluster_slots_fail:0" not in info:
                return False
            replication = node.command("INFO", "replication")
            if b"role:slave" in replication and b"master_link_status:up" not in replication:
                return False
            covered += b"role:master" in replication
        return covered > 0

    def settle(self):
        wait(self.is_settled)

    def crash(self):
        """A master is killed and started again, before a replica replaces it."""
        victim = self.random.choice(self.masters())
        victim.stop()
        victim.start()
        self.settle()

    def kill_master(self):
        """A replica replaces a master."""
        victim = self.random.choice(self.masters())
        before = victim.id
        victim.stop()
        others = [node for node in self.nodes if node is not victim]
        wait(lambda: all(f"{before} ".encode() not in line or b"fail" in line
                         for line in others[0].command("CLUSTER", "NODES").splitlines()) and
             b"cluster_state:ok" in others[0].command("CLUSTER", "INFO") and
             b"cluster_slots_fail:0" in others[0].command("CLUSTER", "INFO"))
        victim.start()
        self.settle()

    def move_slots(self, n=20):
        """Slots move from a master to another, key by key."""
        masters = self.masters()
        if len(masters) < 2:
            return
        a, b = self.random.sample(masters, 2)
        lines = [line.split() for line in a.command("CLUSTER", "NODES").splitlines()]
        own = next(line for line in lines if b"myself" in line[2])[8:]
        slots = [slot for part in own if not part.startswith(b"[")
                 for slot in range(int(part.split(b"-")[0]), int(part.split(b"-")[-1]) + 1)]
        for slot in self.random.sample(slots, min(n, len(slots))):
            wait(lambda slot=slot: self.move_slot(slot, a, b, masters))

    @staticmethod
    def move_slot(slot, a, b, masters):
        b.command("CLUSTER", "SETSLOT", slot, "IMPORTING", a.id)
        a.command("CLUSTER", "SETSLOT", slot, "MIGRATING", b.id)
        while keys := a.command("CLUSTER", "GETKEYSINSLOT", slot, 10):
            a.command("MIGRATE", "127.0.0.1", b.port, "", 0, 5000, "KEYS", *keys)
        for node in (b, a, *masters):
            node.command("CLUSTER", "SETSLOT", slot, "NODE", b.id)
        return True

    @property
    def url(self):
        return self.nodes[0].url


def wait(what, seconds=120):
    end = time.monotonic() + seconds
    while True:
        try:
            if what():
                return
        except (OSError, redis_server.ServerDied, redis_server.ReplyError):
            pass
        if time.monotonic() > end:
            raise AssertionError("the servers do not settle")
        time.sleep(0.05)


class Writer(threading.Thread):
    """Writes until it is stopped, through restarts of the server. `ports` returns those that are
    tried."""

    def __init__(self, ports, seed, tag="", pause=0.01):
        super().__init__(daemon=True)
        self.ports = ports
        self.random = random.Random(seed)
        self.tag = tag
        self.pause = pause
        self.over = threading.Event()
        self.n = 0

    def key(self, kind):
        return "%s%s:%d" % (self.tag, kind, self.random.randrange(60))

    def one(self):
        r = self.random
        self.n += 1
        tagged = "{%d}" % r.randrange(20)
        return r.choice((
            encode("INCR", self.key("n")), encode("INCR", self.key("n")),
            encode("LPUSH", self.key("l"), self.n), encode("RPUSH", self.key("l"), self.n),
            encode("LTRIM", self.key("l"), 0, 50), encode("APPEND", self.key("s"), "%d," % self.n),
            encode("HINCRBY", self.key("h"), "f", 1), encode("SADD", self.key("t"), self.n % 99),
            encode("ZINCRBY", self.key("z"), 1, "m"), encode("DEL", self.key("s")),
            encode("XADD", self.key("x"), "MAXLEN", "20", "*", "n", self.n),
            encode("SET", self.key("e"), self.n, "PX", 600000),
            encode("MULTI") + encode("INCR", "a" + tagged) + encode("INCR", "b" + tagged) +
            encode("RPUSH", "c" + tagged, self.n) + encode("EXEC")))

    def session(self, port):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
            while not self.over.is_set():
                exchange(s, b"".join(self.one() for _ in range(20)))
                time.sleep(self.pause)

    def run(self):
        while not self.over.is_set():
            for port in self.ports():
                try:
                    self.session(port)
                except OSError:
                    time.sleep(0.05)

    def stop(self):
        self.over.set()
        self.join()


def slot_of(key):
    tag = key[key.index("{") + 1:key.index("}")] if "{" in key else key
    return binascii.crc_hqx(tag.encode(), 0) % SLOTS


class ClusterWriter(Writer):
    """Writes to the masters of a cluster, each key to its own. A refused write is not repeated."""

    def __init__(self, cluster, seed, pause=0.01):
        super().__init__(lambda: [], seed, pause=pause)
        self.cluster = cluster
        self.ports_of = {}
        self.sockets = {}

    def refresh(self):
        for node in self.cluster.nodes:
            try:
                with socket.create_connection(("127.0.0.1", node.port), timeout=5) as s:
                    s.sendall(encode("CLUSTER", "NODES"))
                    text = b""
                    while not text.endswith(b"\n\r\n"):
                        text += s.recv(1 << 16) or b"\n\r\n"
            except OSError:
                continue
            for line in text.decode(errors="replace").splitlines():
                words = line.split()
                if len(words) > 8 and "master" in words[2] and "fail" not in words[2]:
                    port = int(words[1].split("@")[0].rsplit(":", 1)[1])
                    for part in words[8:]:
                        if not part.startswith("["):
                            first, _, last = part.partition("-")
                            for slot in range(int(first), int(last or first) + 1):
                                self.ports_of[slot] = port
            return

    def send(self, port, data):
        """Whether nothing was redirected."""
        if port not in self.sockets:
            self.sockets[port] = socket.create_connection(("127.0.0.1", port), timeout=5)
        return b"-MOVED" not in exchange(self.sockets[port], data)

    def key(self, kind):
        self.last = super().key(kind)
        return self.last

    def one(self):
        while True:
            self.last = None
            r = self.random
            self.n += 1
            tag = "{%d}" % r.randrange(20)
            transaction = (encode("MULTI") + encode("INCR", "a" + tag) +
                           encode("INCR", "b" + tag) + encode("EXEC"))
            choices = (
                lambda: encode("INCR", self.key("n")),
                lambda: encode("LPUSH", self.key("l"), self.n),
                lambda: encode("LTRIM", self.key("l"), 0, 50),
                lambda: encode("APPEND", self.key("s"), "%d," % self.n),
                lambda: encode("HINCRBY", self.key("h"), "f", 1),
                lambda: encode("DEL", self.key("s")),
                lambda: encode("SET", self.key("e"), self.n, "PX", 600000))
            if r.randrange(8) == 0:
                return tag, transaction
            data = r.choice(choices)()
            return self.last, data

    def run(self):
        self.refresh()
        while not self.over.is_set():
            by_port = {}
            for _ in range(30):
                key, data = self.one()
                port = self.ports_of.get(slot_of(key))
                by_port[port] = by_port.get(port, b"") + data
            for port, data in by_port.items():
                try:
                    if port is None or not self.send(port, data):
                        self.refresh()
                except OSError:
                    self.sockets.pop(port, None)
                    self.refresh()
                    time.sleep(0.05)
            time.sleep(self.pause)
        for s in self.sockets.values():
            s.close()


class MigrateKills:
    def __init__(self, program, seed, say=lambda text: None, args=()):
        self.program = program
        self.args = list(args)
        self.random = random.Random(seed)
        self.say = say
        self.folder = tempfile.mkdtemp(prefix="redoubt-migrate-")
        self.spool = os.path.join(self.folder, "spool")
        self.tool = None
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.counts = {}

    def close(self):
        if self.tool is not None and self.tool.poll() is None:
            self.tool.kill()
            self.tool.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, source, target, *more):
        return [self.program, "migrate", "--spool", self.spool, *self.args, *more, source, target]

    def start(self, source, target):
        self.tool = subprocess.Popen(self.command(source, target), stdin=subprocess.DEVNULL,
                                     stdout=self.log, stderr=self.log)

    def ensure(self, source, target):
        """A tool whose target is down ends: it is started again, as a service would."""
        if self.tool is None or self.tool.poll() is not None:
            if self.tool is not None:
                self.count("ended with %d" % self.tool.returncode)
            self.start(source, target)

    def kill(self):
        if self.tool is not None and self.tool.poll() is None:
            self.tool.send_signal(signal.SIGKILL)
            self.tool.wait()
        self.tool = None

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def run(self, source, target, rounds, victims, pause=1.5):
        """victims: functions by name; each does harm and repairs it."""
        names = sorted(victims)
        for i in range(rounds):
            self.ensure(source, target)
            time.sleep(self.random.random() * pause)
            name = self.random.choice(names)
            self.count(name)
            self.say("%d %s" % (i, name))
            victims[name]()

    def finish(self, source, target, timeout=600):
        """The last run, to the cut-over, after which the source is paused."""
        self.kill()
        done = subprocess.run(self.command(source, target, "--json", "--cut-over", "--pause",
                                           "10m", "--remove-position"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout, check=False)
        return done

    def output(self):
        self.log.flush()
        with open(self.log.name, errors="replace") as f:
            return f.read()


def value(command, key):
    kind = command("TYPE", key)
    if kind == b"string":
        found = command("GET", key)
    elif kind == b"list":
        found = command("LRANGE", key, 0, -1)
    elif kind == b"set":
        found = sorted(command("SMEMBERS", key))
    elif kind == b"zset":
        found = command("ZRANGE", key, 0, -1, "WITHSCORES")
    elif kind == b"hash":
        flat = command("HGETALL", key)
        found = sorted(zip(flat[::2], flat[1::2]))
    else:
        found = command("XRANGE", key, "-", "+")
    return kind, found, command("PEXPIRETIME", key)
