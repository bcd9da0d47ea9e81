"""redoubt demo: makes damaged files in a new folder, and rescues them with the tools."""

import json
import os
import pty
import subprocess
import tempfile
import unittest

REDOUBT = os.path.abspath(os.environ.get("REDOUBT", "redoubt"))
FILES = ["appendonlydir", "before-flushall.rdb", "dump.rdb", "original.rdb", "saved.rdb"]


class Demo(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-demo-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_tool(self, *args, **options):
        return subprocess.run([REDOUBT, *args], cwd=self.folder, capture_output=True,
                              encoding="utf-8", stdin=subprocess.DEVNULL, check=False, **options)

    def demo(self, *args):
        done = self.run_tool("demo", *args)
        self.assertEqual((done.returncode, done.stderr.count("redoubt demo:")), (0, 0), done)
        return done.stdout

    def test_each_command_is_shown_and_does_what_it_says(self):
        text = self.demo()
        commands = [line for line in text.splitlines() if line.startswith("$ ")]
        self.assertEqual(commands[0], "$ cd redoubt-demo")
        self.assertEqual(len(commands), 9)
        for words in ("dump.rdb: damaged at byte", "can save", "only in A", "torn at its end",
                      '"FLUSHALL"', "Biggest keys"):
            self.assertIn(words, text)
        inside = os.path.join(self.folder, "redoubt-demo")
        self.assertEqual(os.listdir(self.folder), ["redoubt-demo"])
        self.assertEqual(sorted(os.listdir(inside)), FILES)
        for name in ("original.rdb", "saved.rdb", "before-flushall.rdb", "appendonlydir"):
            tool = "check-aof" if name == "appendonlydir" else "check-rdb"
            self.assertEqual(self.run_tool(tool, "redoubt-demo/" + name).returncode, 0, name)

    def test_the_output_is_that_of_the_commands_typed_again(self):
        steps = json.loads(self.demo("--json", "again"))["steps"]
        self.assertEqual([step["exit"] for step in steps], [1, 8, 1, 1, 0, 0, 0, 0])
        for step in steps:
            if step["command"].split()[0] in ("show", "stat", "diff"):
                done = subprocess.run([REDOUBT, *step["command"].split()],
                                      cwd=os.path.join(self.folder, "again"), check=False,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      encoding="utf-8")
                self.assertEqual((done.returncode, done.stdout), (step["exit"], step["output"]))

    def test_what_is_restored_is_the_data_before_the_mistake(self):
        self.demo("--quiet", "new")
        done = self.run_tool("diff", "new/original.rdb", "new/before-flushall.rdb")
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 only in A, 300 only in B, 0 different", done.stdout)

    def test_lines_fit_a_terminal(self):
        wide = [line for line in self.demo().splitlines()
                if len(line) > 80 and not line.startswith("$ ")]
        self.assertEqual(wide, [])

    def test_a_folder_that_exists_is_refused(self):
        os.mkdir(os.path.join(self.folder, "mine"))
        done = self.run_tool("demo", "mine")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("mine: already exists", done.stderr)
        self.assertEqual(os.listdir(os.path.join(self.folder, "mine")), [])
        done = self.run_tool("demo", "no/such/parent")
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot create the folder", done.stderr)

    def test_a_terminal_is_asked_to_press_enter(self):
        parent, child = pty.openpty()
        with subprocess.Popen([REDOUBT, "demo"], cwd=self.folder, stdin=child, stdout=child,
                              stderr=child) as running:
            os.close(child)
            os.write(parent, b"\n" * 20)
            seen = b""
            while True:
                try:
                    piece = os.read(parent, 4096)
                except OSError:
                    break
                if not piece:
                    break
                seen += piece
            self.assertEqual(running.wait(), 0)
        os.close(parent)
        self.assertEqual(seen.count(b"[Enter: continue, Ctrl-C: stop]"), 7)


if __name__ == "__main__":
    unittest.main()
