"""What check-aof --salvage writes loads in a real server: damaged folders of Redis 7.0.15.

REDOUBT names the program.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402

REDOUBT = os.path.abspath(os.environ.get("REDOUBT", "redoubt"))
FIXTURES = os.path.abspath(os.environ.get("REDOUBT_FIXTURES", "fixtures"))
SOURCE = os.path.join(FIXTURES, "redis-7.0.15", "aof-multi.aof.d", "appendonlydir")
ROUNDS = 12


class SalvagedLogs(unittest.TestCase):
    def damage(self, folder, rng):
        """One bit of the framing of some command, or a run of zeros."""
        name = rng.choice(["appendonly.aof.2.incr.aof", "appendonly.aof.3.incr.aof"])
        path = os.path.join(folder, name)
        with open(path, "rb") as f:
            data = bytearray(f.read())
        if rng.random() < 0.3:
            at = rng.randrange(len(data) - 200)
            data[at:at + 200] = bytes(200)
        else:
            at = rng.choice([i for i, c in enumerate(data) if c in b"*$"]) + rng.randrange(2)
            data[at] ^= 1 << rng.randrange(7)
        with open(path, "wb") as f:
            f.write(data)

    def loads(self, rng):
        server = redis_server.RedisServer({"appendonly": "yes"})
        server.dir = server_dir = os.path.join(self.folder, "server")
        damaged = os.path.join(self.folder, "damaged")
        out = os.path.join(server_dir, "appendonlydir")
        shutil.copytree(SOURCE, damaged)
        os.mkdir(server_dir)
        self.damage(damaged, rng)
        done = subprocess.run([REDOUBT, "check-aof", "--salvage", out, damaged],
                              capture_output=True, check=False)
        self.assertIn(done.returncode, (0, 8), done.stderr)
        self.assertIn(b": verified", done.stdout)
        try:
            server.start()
            n = sum(server.command("SELECT", db) and server.command("DBSIZE") for db in range(16))
        finally:
            server.close()
        self.assertGreater(n, 50)

    def test_a_server_loads_what_was_salvaged(self):
        rng = random.Random("salvaged logs")
        for i in range(ROUNDS):
            with self.subTest(round=i):
                with tempfile.TemporaryDirectory(prefix="redoubt-test-") as self.folder:
                    self.loads(rng)


if __name__ == "__main__":
    unittest.main()
