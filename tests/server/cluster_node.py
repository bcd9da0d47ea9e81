"""Nodes of clusters for one test: of the server that is built here, and of redis-server.

    with Node() as node:                  # or Node(Redis)
        node.own_all(); node.wait_ok()
    with nodes(Redoubt, Redis, Redoubt) as all:
        ...
"""

import contextlib
import random
import socket

from server_under_test import Redis, Redoubt, wait_for

SLOTS = 16384
NODE_TIMEOUT_MS = 5000


BUS_DISTANCE = 10000


def _is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _port():
    """One that is free, as that of its bus is. redis-cli takes it for granted where that is."""
    while True:
        port = random.randrange(12000, 22000)
        if _is_free(port) and _is_free(port + BUS_DISTANCE):
            return port


def _config(more):
    return {"cluster-enabled": "yes", "cluster-node-timeout": str(NODE_TIMEOUT_MS),
            **(more or {})}


class _Node:
    """It keeps its port."""

    def start(self):
        for _ in range(5):
            self.fixed_port = self.fixed_port or _port()
            try:
                super().start()
                return
            except Exception:
                if "ddress already in use" not in self.log or self.known_elsewhere:
                    raise
                self.fixed_port = None

    known_elsewhere = False  # by its port

    def own(self, first=0, last=SLOTS - 1):
        self.client().command("CLUSTER", "ADDSLOTSRANGE", first, last)

    def wait_ok(self):
        c = self.client()
        wait_for(lambda: b"cluster_state:ok" in c.command("CLUSTER", "INFO"))
        return c

    @property
    def id(self):
        return self.client().command("CLUSTER", "MYID").decode()

    @property
    def bus_port(self):
        return self.port + BUS_DISTANCE

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def known(self):
        """The lines of CLUSTER NODES by id, as lists of words."""
        text = self.client().command("CLUSTER", "NODES").decode()
        return {line.split()[0]: line.split() for line in text.splitlines()}

    def flags(self, node_id):
        return self.known()[node_id][2].split(",")


class OurNode(_Node, Redoubt):
    def __init__(self, config=None):
        super().__init__(_config(config))


class RedisNode(_Node, Redis):
    def __init__(self, config=None):
        super().__init__(_config(config))


def node(kind=Redoubt, config=None):
    return OurNode(config) if kind is Redoubt else RedisNode(config)


def agree(all_nodes):
    """Whether all know each other and say that the cluster works."""
    known = b"cluster_known_nodes:%d\r\n" % len(all_nodes)
    for one in all_nodes:
        c = one.client()
        info, text = c.command("CLUSTER", "INFO"), c.command("CLUSTER", "NODES")
        c.close()
        one.clients.remove(c)
        if b"cluster_state:ok" not in info or known not in info:
            return False
        if b"handshake" in text or b"fail" in text or b":0@0" in text:
            return False
    return True


def meet(all_nodes):
    for one in all_nodes:
        one.known_elsewhere = True
    for one in all_nodes[1:]:
        one.client().command("CLUSTER", "MEET", "127.0.0.1", all_nodes[0].port,
                             all_nodes[0].bus_port)


@contextlib.contextmanager
def nodes(*kinds, config=None):
    """Started, and strangers to each other."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(node(kind, config)) for kind in kinds]


@contextlib.contextmanager
def masters(*kinds, config=None):
    """A cluster without replicas that works."""
    with nodes(*kinds, config=config) as all_nodes:
        n = len(all_nodes)
        for i, one in enumerate(all_nodes):
            one.own(SLOTS * i // n, SLOTS * (i + 1) // n - 1)
            one.client().command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        meet(all_nodes)
        wait_for(lambda: agree(all_nodes))
        yield all_nodes
