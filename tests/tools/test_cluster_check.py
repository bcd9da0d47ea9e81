"""redoubt cluster check: what it says of real clusters, whole and broken.

REDOUBT names the program.
"""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
from cluster_nodes import RealNodes  # noqa: E402
from fake_server import FakeServer, bulk  # noqa: E402

REDOUBT = os.environ["REDOUBT"]


class Check(unittest.TestCase, RealNodes):
    def run_tool(self, *args, expect=0):
        done = subprocess.run([REDOUBT, "cluster", "check", *args], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def report(self, node, expect=0):
        out = json.loads(self.run_tool(node.url, "--json", expect=expect).stdout)
        self.assertEqual(out["verdict"], "problems" if expect else "sound")
        return out

    def remarks(self, out, *severities):
        return {(r["remark"], r["server"]) for r in out["remarks"] if r["severity"] in severities}

    def findings(self, out, *severities):
        return {f["finding"] for f in out["findings"] if f["severity"] in severities}

    def test_a_sound_cluster(self):
        nodes = self.cluster(2, replicas=1)
        out = self.report(nodes[0])
        self.assertEqual(out["n_servers"], 3)
        self.assertEqual({n["id"] for n in out["nodes"]}, {n.id for n in nodes})
        self.assertEqual(self.findings(out, "note"), {"no-replica"})
        self.assertEqual({word for word, _ in self.remarks(out, "note")},
                         {"masters-on-one-host", "replica-on-same-host"})
        self.assertIn("all 16384 slots are covered, and all 3 nodes agree",
                      self.run_tool(nodes[2].url).stdout)

    def test_a_node_that_is_gone(self):
        nodes = self.cluster(3)
        name = f"127.0.0.1:{nodes[2].port}"
        nodes[2].stop()
        out = self.report(nodes[0], expect=1)  # at once, before the others have noticed
        self.assertIn(("no-answer", name), self.remarks(out, "error"))
        self.assertEqual(out["n_silent"], 1)
        self.wait(lambda: b"cluster_state:fail" in nodes[0].command("CLUSTER", "INFO"))
        out = self.report(nodes[0], expect=1)
        self.assertIn(("state-not-ok", f"127.0.0.1:{nodes[0].port}"), self.remarks(out, "error"))
        self.assertTrue(self.findings(out, "warning") & {"node-failed", "node-unreachable"})

    def test_slots_that_nobody_has(self):
        nodes = self.cluster(2)
        nodes[0].command("CONFIG", "SET", "cluster-require-full-coverage", "no")
        for node in nodes:
            node.command("CLUSTER", "DELSLOTS", 5, 6)
        out = self.report(nodes[1], expect=1)
        (finding,) = [f for f in out["findings"] if f["severity"] == "error"]
        self.assertEqual((finding["finding"], finding["first_slot"], finding["last_slot"]),
                         ("slots-uncovered", 5, 6))
        self.assertIn("fix-would", {word for word, _ in self.remarks(out, "note")})
        self.assertIn("setting-differs", {word for word, _ in self.remarks(out, "warning")})

    def test_keys_in_slots_of_another_node(self):
        nodes = self.cluster(2)
        slot = nodes[0].command("CLUSTER", "KEYSLOT", "bar")  # 5061
        nodes[0].command("SET", "bar", "1")
        for node in nodes:
            node.command("CLUSTER", "DELSLOTS", slot)
        nodes[1].command("CLUSTER", "ADDSLOTS", slot)
        self.wait(lambda: self.is_ok(nodes))
        out = self.report(nodes[0], expect=1)
        self.assertEqual(self.remarks(out, "warning"),
                         {("foreign-keys", f"127.0.0.1:{nodes[0].port}")})
        self.assertIn(f"1 key in 1 slot of other nodes, the first {slot}",
                      self.run_tool(nodes[0].url, expect=1).stdout)

    def test_a_slot_that_is_being_moved(self):
        nodes = self.cluster(2)
        slot = nodes[0].command("CLUSTER", "KEYSLOT", "bar")
        nodes[1].command("CLUSTER", "SETSLOT", slot, "IMPORTING", nodes[0].id)
        nodes[0].command("CLUSTER", "SETSLOT", slot, "MIGRATING", nodes[1].id)
        out = self.report(nodes[0], expect=1)
        self.assertEqual(self.findings(out, "warning"), {"slot-migrating", "slot-importing"})
        self.assertEqual(self.remarks(out, "warning", "error"), set())

    def test_a_server_without_cluster(self):
        with redis_server.RedisServer() as server:
            done = self.run_tool(f"redis://127.0.0.1:{server.port}", expect=6)
            self.assertIn("the server is not a member of a cluster", done.stderr)

    def test_a_reply_that_is_none(self):
        with FakeServer(lambda command: bulk(b"nonsense")) as server:
            self.run_tool(f"redis://127.0.0.1:{server.port}", expect=6)

    def test_wrong_arguments(self):
        self.run_tool("redis://127.0.0.1:1", "redis://127.0.0.1:2", expect=2)
        self.run_tool("--fix", "redis://127.0.0.1:1", expect=2)
        self.run_tool("redis://127.0.0.1:1", expect=6)


if __name__ == "__main__":
    unittest.main()
