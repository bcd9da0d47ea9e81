"""Real servers as the nodes of a cluster.

    class Test(unittest.TestCase, RealNodes):
        def test_it(self):
            nodes = self.cluster(3)
"""

import time

import redis_server

SLOTS = 16384


class Fixed(redis_server.RedisServer):
    """A server that keeps its port."""

    def __init__(self, config=None):
        super().__init__(config)
        self.move()

    def move(self):
        """The next start is at another address."""
        self.fixed = redis_server.free_port()

    def start(self):
        self.port = self.fixed
        self._spawn()
        if not self._wait():
            raise redis_server.ServerDied(self.log[-2000:])

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"


class Node(Fixed):
    """A node with a bus port that it keeps, too."""

    def __init__(self):
        super().__init__({"cluster-enabled": "yes", "cluster-node-timeout": "2000"})

    def move(self):
        super().move()
        self.config["cluster-port"] = str(redis_server.free_port())

    @property
    def conf(self):
        return f"{self.dir}/nodes.conf"

    @property
    def place(self):
        return f"127.0.0.1:{self.port}@{self.config['cluster-port']}"

    @property
    def id(self):
        return self.command("CLUSTER", "MYID").decode()


class RealNodes:
    """For test cases."""

    def wait(self, what):
        end = time.monotonic() + 120
        while not what():
            self.assertLess(time.monotonic(), end, "the cluster does not form")
            time.sleep(0.05)

    def enter(self, node):
        node.__enter__()
        self.addCleanup(node.__exit__, None, None, None)
        return node

    def is_ok(self, nodes):
        """Whether all know each other, with addresses, and all slots."""
        known = f"cluster_known_nodes:{len(nodes)}\r\n".encode()
        for node in nodes:
            info = node.command("CLUSTER", "INFO")
            if b"cluster_state:ok" not in info or known not in info:
                return False
            lines = node.command("CLUSTER", "NODES")
            if b":0@0" in lines or b"handshake" in lines:
                return False
        return True

    def cluster(self, n, replicas=0):
        """n masters, and as many nodes more as replicas of the first of them."""
        nodes = [self.enter(Node()) for _ in range(n + replicas)]
        for i, node in enumerate(nodes):
            if i < n:
                node.command("CLUSTER", "ADDSLOTSRANGE", SLOTS * i // n, SLOTS * (i + 1) // n - 1)
            node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for node in nodes[1:]:
            node.command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port,
                         nodes[0].config["cluster-port"])
        self.wait(lambda: self.is_ok(nodes))
        for i, node in enumerate(nodes[n:]):
            node.command("CLUSTER", "REPLICATE", nodes[i].id)
        for node in nodes[n:]:
            self.wait(lambda node=node: b"master_link_status:up" in node.command("INFO"))
        return nodes
