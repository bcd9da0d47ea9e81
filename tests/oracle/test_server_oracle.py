"""redoubt-server beside redis-server 7.0.15, over sockets: the random commands of every family, by
several clients in RESP2 and RESP3, with transactions, WATCH and clients that wait, and the scripts
of differences that were repaired.

Each family gets its share of REDOUBT_ORACLE_SECONDS (10), but at least LEAST commands, and a seed
of the clock, which is printed. Commands with a fixed seed are compared with what 7.0.15 did when it
was recorded, too (engine_tape.py).
"""

import glob
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import engine_world  # noqa: E402
import recorded  # noqa: E402
import server_shell  # noqa: E402
from engine_compare import Rules, World  # noqa: E402
from engine_tape import EngineTape  # noqa: E402

CASES = os.path.join(engine_world.HERE, "engine_cases")
SECONDS = float(os.environ.get("REDOUBT_ORACLE_SECONDS", "10"))
FIXED_SEED = 1
LEAST = 500  # commands of a family, on a slow machine
PROGRAM = os.environ.get("REDOUBT_SERVER") or os.path.join(
    os.environ["REDOUBT_BUILD"], "server", "redoubt-server")


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.families = engine_world.families()
        cls.tape = EngineTape("oracle-server-oracle")
        cls.peers = server_shell.ServerPeers(PROGRAM, cls.tape)
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

    def run_families(self, seed, seconds, least):
        for name, module in self.families.items():
            with self.subTest(name):
                runner = engine_world.Runner(self.world, name, module, seed)
                try:
                    if seconds == 0:
                        runner.run(least)
                    else:
                        share = seconds / len(self.families)
                        runner.run(1 << 30, time.monotonic() + share, least)
                except engine_world.Failure as e:
                    self.fail(str(e))
                self.assertGreaterEqual(runner.n, least)
                yield name, runner

    def test_random_commands_of_the_fixed_seed(self):
        for name, runner in self.run_families(FIXED_SEED, 0, LEAST):
            self.tape.items(name, runner.digest(LEAST))


def of_the_clock(self):
    seed = int(time.time())
    print(f"# seed {seed}", flush=True)
    for _ in self.run_families(seed, SECONDS, LEAST):
        pass


if recorded.chance_is_allowed():
    Server.test_random_commands_with_a_seed_of_the_clock = of_the_clock


if __name__ == "__main__":
    unittest.main()
