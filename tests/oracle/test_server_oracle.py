"""redoubt-server beside redis-server 7.0.15, over sockets: the random commands of every family, by
several clients in RESP2 and RESP3, with transactions, WATCH and clients that wait, and the scripts
of differences that were repaired.

Each family gets its share of REDOUBT_ORACLE_SECONDS (10), but at least LEAST commands, and a seed
of the clock, which is printed.
"""

import glob
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import engine_world  # noqa: E402
import redis_server  # noqa: E402
import server_shell  # noqa: E402
from engine_compare import Rules, World  # noqa: E402

CASES = os.path.join(engine_world.HERE, "engine_cases")
SECONDS = float(os.environ.get("REDOUBT_ORACLE_SECONDS", "10"))
LEAST = 500  # commands of a family, on a slow machine
PROGRAM = os.environ.get("REDOUBT_SERVER") or os.path.join(
    os.environ["REDOUBT_BUILD"], "server", "redoubt-server")


redis_server.need_reference()


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.families = engine_world.families()
        cls.peers = server_shell.ServerPeers(PROGRAM)
        cls.peers.__enter__()
        cls.world = World(cls.peers, Rules(cls.families.values()))

    @classmethod
    def tearDownClass(cls):
        cls.world.close()
        cls.peers.close()

    def test_scripts_of_old_differences(self):
        for path in sorted(glob.glob(os.path.join(CASES, "*.txt"))):
            with self.subTest(os.path.basename(path)):
                engine_world.play_case(self.world, path)

    def test_random_commands(self):
        share = SECONDS / len(self.families)
        for name, module in self.families.items():
            seed = int(time.time())
            print(f"# {name}: seed {seed}", flush=True)
            with self.subTest(name):
                runner = engine_world.Runner(self.world, name, module, seed)
                try:
                    runner.run(1 << 30, time.monotonic() + share, LEAST)
                except engine_world.Failure as e:
                    self.fail(str(e))
                self.assertGreaterEqual(runner.n, LEAST)


if __name__ == "__main__":
    unittest.main()
