"""Clusters and sentinels as the tools find them, beside real ones: three masters, and a failover.
"""

import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
from redis_server import free_port  # noqa: E402

PRINT = os.environ.get("REDOUBT_PRINT_TOPOLOGY", "print_topology")


def find(*args):
    return subprocess.run([PRINT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600)


def wait_for(what):
    end = time.monotonic() + 600
    while not what():
        if time.monotonic() > end:
            raise TimeoutError(what.__name__)
        time.sleep(0.1)


class Topology(unittest.TestCase):
    def start(self, config=None):
        server = redis_server.RedisServer(config).__enter__()
        self.addCleanup(server.close)
        return server

    def test_the_masters_of_a_cluster(self):
        nodes = [self.start({"cluster-enabled": "yes", "cluster-config-file": "nodes.conf",
                             "cluster-port": str(free_port())}) for _ in range(3)]
        ids = [server.command("CLUSTER", "MYID").decode() for server in nodes]
        for server, (first, last) in zip(nodes, ((0, 5000), (5001, 9999), (10001, 16383))):
            server.command("CLUSTER", "ADDSLOTSRANGE", first, last)
        nodes[1].command("CLUSTER", "ADDSLOTS", 10000)
        for server in nodes[1:]:
            bus = server.config["cluster-port"]
            nodes[0].command("CLUSTER", "MEET", "127.0.0.1", server.port, bus)

        def together():
            return all(b"cluster_state:ok" in server.command("CLUSTER", "INFO") and
                       b"cluster_known_nodes:3" in server.command("CLUSTER", "INFO")
                       for server in nodes)

        wait_for(together)
        for server in nodes:
            done = find("cluster", f"redis://127.0.0.1:{server.port}")
            self.assertEqual(done.returncode, 0, done.stderr)
            ports = [f"127.0.0.1:{other.port} {name}" for other, name in zip(nodes, ids)]
            reported = done.stdout.decode().splitlines()
            self.assertEqual(reported[0], f"{ports[0]} 0-5000")
            self.assertIn(reported[1], (f"{ports[1]} 5001-9999 10000-10000",
                                        f"{ports[1]} 5001-10000"))
            self.assertEqual(reported[2:], [f"{ports[2]} 10001-16383", "16384"])

    def test_a_server_that_is_not_a_member(self):
        alone = self.start()
        done = find("cluster", f"redis://127.0.0.1:{alone.port}")
        self.assertEqual(done.returncode, 6)
        self.assertIn(b"cluster support disabled", done.stderr)

    def sentinel(self, master):
        """A redis-server as a sentinel: it wants a file of settings that it may write."""
        server = redis_server.RedisServer()
        server.__enter__()
        self.addCleanup(server.close)
        path = os.path.join(server.dir, "sentinel.conf")
        server.stop()
        with open(path, "w", encoding="ascii") as f:
            f.write(f"port {server.port}\nbind 127.0.0.1\nsentinel monitor mine 127.0.0.1 "
                    f"{master.port} 1\nsentinel auth-pass mine pw\n"
                    "sentinel down-after-milliseconds mine 500\n")
        child = subprocess.Popen([redis_server.program(), path, "--sentinel"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return f"redis://127.0.0.1:{server.port}"

    def test_the_master_that_a_sentinel_knows_before_and_after_a_failover(self):
        master = self.start()
        replica = self.start({"replica-priority": "1"})
        for server in (master, replica):
            server.command("CONFIG", "SET", "masterauth", "pw")
            server.command("CONFIG", "SET", "requirepass", "pw")
        replica.command("REPLICAOF", "127.0.0.1", master.port)
        sentinel = self.sentinel(master)

        def ask():
            done = find("sentinel", "mine", "redis://:pw@", "redis://127.0.0.1:1", sentinel)
            self.error = done.stderr.decode()
            return done.stdout.decode().strip()

        wait_for(lambda: ask() == f"127.0.0.1:{master.port}")
        self.assertEqual(find("sentinel", "other", "redis://", sentinel).returncode, 6)
        wait_for(lambda: b"master_link_status:up" in replica.command("INFO", "replication"))
        # The sentinel looks for replicas each ten seconds, or when it begins.
        wait_for(lambda: str(replica.port).encode() in subprocess.run(
            [redis_server.program("cli"), "-u", sentinel, "SENTINEL", "REPLICAS", "mine"],
            stdout=subprocess.PIPE, check=False).stdout)
        master.stop()
        wait_for(lambda: ask() == f"127.0.0.1:{replica.port}")
        self.assertEqual(self.error, "")


if __name__ == "__main__":
    unittest.main()
