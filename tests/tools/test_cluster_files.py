"""redoubt cluster nodes-conf: files of nodes are read together and repaired, and a real cluster
starts with what was written.

REDOUBT names the program.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cluster_nodes import Node, RealNodes  # noqa: E402

REDOUBT = os.environ["REDOUBT"]

A, B, C = ("a" * 40, "b" * 40, "c" * 40)
VARS = "vars currentEpoch 8 lastVoteEpoch {}\n"


def line(node, myself, slots="", epoch=1, host=None, port=6379, master=None, flags=()):
    role = "slave" if master else "master"
    words = ",".join([*(["myself"] if node == myself else []), role, *flags])
    host = host if host is not None else f"10.0.0.{'abc'.index(node[0]) + 1}"
    return (f"{node} {host}:{port}@{port + 10000} {words} {master or '-'} 0 0 {epoch} connected"
            f"{' ' + slots if slots else ''}\n")


def conf(myself, slots_a="0-5460", slots_b="5461-10922", slots_c="10923-16383", vote=0):
    return (line(A, myself, slots_a, 1) + line(B, myself, slots_b, 2)
            + line(C, myself, slots_c, 3) + VARS.format(vote))


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-test-")  # pylint: disable=R1732
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def put(self, **texts):
        paths = []
        for name, text in texts.items():
            paths.append(os.path.join(self.folder, name))
            with open(paths[-1], "w", encoding="utf-8") as f:
                f.write(text)
        return paths

    def get(self, path):
        with open(path, encoding="utf-8") as f:
            return f.read()

    def run_tool(self, *args, expect=0, stdin=""):
        done = subprocess.run([REDOUBT, "cluster", "nodes-conf", *args], capture_output=True,
                              text=True, input=stdin, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def report(self, *args, expect=0):
        return json.loads(self.run_tool(*args, "--json", expect=expect).stdout)


class Reports(Files):
    def test_files_that_agree_are_sound(self):
        paths = self.put(a=conf(A), b=conf(B), c=conf(C))
        out = self.report(*paths)
        self.assertEqual(out["verdict"], "sound")
        self.assertEqual([f["node"] for f in out["files"]], [A, B, C])
        self.assertEqual([n["slots"] for n in out["nodes"]],
                         [[[0, 5460]], [[5461, 10922]], [[10923, 16383]]])
        text = self.run_tool(*paths).stdout
        self.assertIn("verdict: 3 files, which agree\n", text)
        self.assertIn("aaaaaaaa  10.0.0.1:6379", text)

    def test_damage_is_named_with_its_place(self):
        whole = conf(A)
        (path,) = self.put(a=whole[:-5])
        at = whole.index("vars")
        out = self.report(path, expect=1)
        problem = out["files"][0]["problems"][0]
        self.assertEqual((problem["problem"], problem["offset"], problem["line"]),
                         ("conf-line-cut", at, 4))
        self.assertTrue(out["files"][0]["fatal"])
        self.assertIn(f"line 4 at byte {at}: the last line has no end",
                      self.run_tool(path, expect=1).stdout)

    def test_an_empty_file_is_not_sound(self):
        paths = self.put(a=conf(A), b="")
        out = self.report(*paths, expect=1)
        self.assertEqual([p["problem"] for p in out["files"][1]["problems"]], ["conf-empty"])

    def test_an_older_view_is_found(self):
        paths = self.put(a=conf(A), c=conf(C, slots_b="5461-10900", slots_a="0-5460 10901-10922"))
        finding = self.report(*paths, expect=1)["findings"][0]
        self.assertEqual((finding["finding"], finding["file"], finding["node"], finding["other"],
                          finding["first_slot"], finding["last_slot"]),
                         ("slots-outdated", paths[1], B, A, 10901, 10922))

    def test_names_do_not_reach_the_terminal_unescaped(self):
        text = self.run_tool(*self.put(**{"a\x1b[31m": "x\x1b[2J y\n"}), expect=1).stdout
        self.assertNotIn("\x1b", text)

    def test_wrong_arguments(self):
        (path,) = self.put(a=conf(A))
        for args in ([], ["--fix", "-o", "x", path], ["--address", "a", path],
                     ["--address", f"{A}=h", path], ["--address", f"{A}=h:0", path],
                     ["--address", "d=h:1", path], ["--prefer", "d", path],
                     ["--fix", "--json", path]):
            self.run_tool(*args, expect=2)
        self.run_tool(os.path.join(self.folder, "missing"), expect=3)


class Repair(Files):
    def fixed(self, *args, expect=0):
        return self.run_tool("--fix", "--yes", *args, expect=expect)

    def test_a_torn_file_gets_what_the_others_know(self):
        paths = self.put(a=conf(A, vote=3), b=conf(B)[:150], c=conf(C))
        self.run_tool("--fix", "--yes", *paths, expect=2)  # nobody knows whose file it is
        self.fixed(paths[0], f"{B}={paths[1]}", paths[2])
        self.assertEqual(self.get(paths[1]), conf(B, vote=8))  # it does not vote twice
        self.assertEqual(self.get(paths[0]), conf(A, vote=3))
        self.assertEqual(self.report(*paths)["verdict"], "sound")
        (copy,) = glob.glob(paths[1] + ".redoubt-save-*")
        self.assertEqual(self.get(copy), conf(B)[:150])
        self.assertEqual(glob.glob(paths[0] + ".redoubt-save-*"), [])  # it was right

    def test_a_file_of_new_lines_and_old_ones(self):
        old = conf(B, slots_a="0-5400", slots_b="5401-10922")
        paths = self.put(a=conf(A), b=conf(B) + old[old.index(C):], c=conf(C))
        out = self.report(*paths, expect=1)
        self.assertIn("conf-after-vars", [p["problem"] for p in out["files"][1]["problems"]])
        self.fixed(*paths)
        self.assertEqual(self.get(paths[1]), conf(B))

    def test_output_leaves_the_files_alone(self):
        paths = self.put(a=conf(A), b=conf(B, slots_a="0-5000"), c=conf(C))
        out = os.path.join(self.folder, "out")
        self.run_tool("-o", out, *paths)
        self.assertEqual(sorted(os.listdir(out)), [f"nodes-{n}.conf" for n in (A, B, C)])
        self.assertEqual(self.get(os.path.join(out, f"nodes-{B}.conf")), conf(B))
        self.assertEqual(self.get(paths[1]), conf(B, slots_a="0-5000"))
        self.run_tool("-o", out, *paths, expect=2)
        self.run_tool("-o", out, "--force", *paths)

    def test_new_addresses(self):
        paths = self.put(a=conf(A), b=conf(B), c=conf(C))
        self.fixed("--address", "b=10.1.0.2:7000", "--address", f"{C}=10.1.0.3:7000@7001", *paths)
        for path in paths:
            text = self.get(path)
            self.assertIn(B + " 10.1.0.2:7000@17000 ", text)
            self.assertIn(C + " 10.1.0.3:7000@7001 ", text)
            self.assertIn(A + " 10.0.0.1:6379@16379 ", text)

    def test_a_dispute_is_not_decided_without_the_user(self):
        views = [line(A, me, a, 2) + line(B, me, b, 2) + VARS.format(0)
                 for me, a, b in ((A, "0-9000", "9001-16383"), (B, "0-8000", "8001-16383"))]
        paths = self.put(a=views[0], b=views[1])
        done = self.fixed(*paths, expect=2)
        self.assertIn("slots 8001-9000", done.stderr)
        self.assertEqual([self.get(p) for p in paths], views)
        self.fixed("--prefer", "b", *paths)
        self.assertIn(line(B, A, "8001-16383", 9), self.get(paths[0]))  # nobody doubts it again
        self.assertIn("vars currentEpoch 9 ", self.get(paths[1]))

    def test_two_files_of_one_node_and_of_two_clusters_are_refused(self):
        paths = self.put(a=conf(A), copy=conf(A))
        self.assertIn("same node", self.fixed(*paths, expect=2).stderr)
        other = line("d" * 40, "d" * 40, "0-16383", host="h") + VARS.format(0)
        self.assertIn("another cluster", self.fixed(*self.put(a=conf(A), d=other), expect=2).stderr)

    def test_slots_that_nobody_has_stay_a_problem(self):
        paths = self.put(a=conf(A, slots_b="5461-10921") + "x\n", b=conf(B, slots_b="5461-10921"))
        self.fixed(*paths, expect=1)
        self.assertEqual(self.get(paths[0]), conf(A, slots_b="5461-10921"))

    def test_no_answer_changes_nothing(self):
        paths = self.put(a=conf(A), b=conf(B, slots_a="0-5000"))
        self.run_tool("--fix", *paths, expect=1, stdin="n\n")
        self.assertEqual(self.get(paths[1]), conf(B, slots_a="0-5000"))

    def test_the_file_of_a_server_that_replaces_it_stays(self):
        paths = self.put(a=conf(A), b=conf(B, slots_a="0-5000"))
        with open(paths[1], "a", encoding="utf-8"):
            self.put(new=conf(B, slots_a="0-5000"))
            os.replace(os.path.join(os.path.dirname(paths[1]), "new"), paths[1])
            done = self.fixed(*paths, expect=7)
        self.assertIn("a server is using the file", done.stderr)
        self.assertIn(f"process {os.getpid()}", done.stderr)
        self.assertEqual(self.get(paths[1]), conf(B, slots_a="0-5000"))
        self.fixed(*paths)


class RealCluster(Files, RealNodes):
    def test_a_running_server_keeps_its_file(self):
        node = self.enter(Node())
        done = self.run_tool("--fix", "--yes", node.conf, "--address",
                             node.command("CLUSTER", "MYID").decode() + "=h:1", expect=7)
        self.assertIn("a server is using the file", done.stderr)

    def test_a_cluster_starts_at_new_addresses_with_a_torn_file(self):
        nodes = self.cluster(3)
        ids = [n.command("CLUSTER", "MYID").decode() for n in nodes]
        for node in nodes:
            node.command("CLUSTER", "SAVECONFIG")
            node.stop()
        with open(nodes[1].conf, "r+b") as f:
            f.truncate(60)
        moved = []
        for node, name in zip(nodes, ids):
            node.move()
            node.port = node.fixed
            moved += ["--address", f"{name}={node.place}"]
        self.run_tool("--fix", "--yes", *moved, nodes[0].conf, f"{ids[1]}={nodes[1].conf}",
                      nodes[2].conf)
        for node in nodes:
            node.start()
        self.wait(lambda: self.is_ok(nodes))
        for node in nodes:
            text = node.command("CLUSTER", "NODES").decode()
            for other, name in zip(nodes, ids):
                self.assertIn(f"{name} {other.place}", text)
        self.assertEqual([n.command("CLUSTER", "MYID").decode() for n in nodes], ids)


if __name__ == "__main__":
    unittest.main()
