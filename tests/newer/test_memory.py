"""`redoubt stat` estimates the memory that real servers used for each kind of data. memory.py
recorded it in memory.json, from the packages of Debian."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import memory_kinds  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memory.json")
NEAR = 0.10


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-memory-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.kinds = list(memory_kinds.all())
        with open(RECORDED, encoding="ascii") as file:
            cls.recorded = json.load(file)

    def snapshot(self, target):
        """All kinds in one file, each in a database of its own, which is its number in the list."""
        path = os.path.join(self.folder, target + ".rdb")
        if os.path.exists(path):
            return path
        lines = memory_kinds.text([])
        for db, (name, keys) in enumerate(self.kinds):
            if memory_kinds.is_for(name, target):
                lines += memory_kinds.text([{**key, "db": db} for key in keys], head=False)
        subprocess.run([REDOUBT, "convert", "--to", "rdb", "--for", target, "--input-format",
                        "ndjson", "-", "-o", path], input=lines, check=True)
        return path

    def estimated(self, server):
        """Bytes of each kind."""
        path = self.snapshot(memory_kinds.target(server))
        said = json.loads(subprocess.run([REDOUBT, "stat", "--json", "--for",
                                          memory_kinds.word(server), path],
                                         stdout=subprocess.PIPE, check=True).stdout)
        return {self.kinds[row["db"]][0]: row["memory"] + row["tables"]
                for row in said["databases"]}

    def check(self, server):
        ours, theirs = self.estimated(server), self.recorded[server]
        self.assertGreater(len(theirs), 50)
        self.assertEqual(ours.keys(), theirs.keys())
        wrong = [f"{name}: {ours[name]} estimated, {said['used']} used, "
                 f"{100 * (ours[name] / said['used'] - 1):+.1f} %"
                 for name, said in theirs.items() if abs(ours[name] / said["used"] - 1) > NEAR]
        self.assertEqual(wrong, [])

    def test_redis_7_0(self):
        self.check("redis-7.0.15")

    def test_redis_8_0(self):
        self.check("redis-8.0.2")
        self.check("redis-8.0.6")

    def test_redis_8_6(self):
        self.check("redis-8.6.3")

    def test_valkey_8_0(self):
        self.check("valkey-8.0.1")

    def test_valkey_8_1(self):
        self.check("valkey-8.1.1")

    def test_valkey_9_1(self):
        self.check("valkey-9.1.2")


if __name__ == "__main__":
    unittest.main()
