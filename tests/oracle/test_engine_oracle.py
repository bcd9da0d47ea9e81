"""The engine beside a redis-server 7.0.15: random commands of every family, and scripts of old.

Each family gets its share of REDOUBT_ORACLE_SECONDS (20): a seed that is always the same, and one
of the clock, which is printed. Where another server is installed, the first commands of the fixed
seed are compared with what 7.0.15 did when it was recorded: engine_tape.py. A difference is printed
as a script that shows it: once the engine is right, the script goes to engine_cases/, whose files
are all played here.
"""

import glob
import os
import random
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import engine_peers  # noqa: E402
import engine_world  # noqa: E402
import recorded  # noqa: E402
from engine_compare import Item, Mismatch, Rules, Setup, World  # noqa: E402
from engine_tape import EngineTape  # noqa: E402
from engine_resp import Incomplete, encode, parse, quote, same, split  # noqa: E402

CASES = os.path.join(engine_world.HERE, "engine_cases")
LEAST = 200  # commands of a family, on a slow machine
SECONDS = float(os.environ.get("REDOUBT_ORACLE_SECONDS", "20"))
FIXED_SEED = 1
RECORDED = 1000  # commands of a family with the fixed seed
FAMILIES = engine_world.families()


def items(*lines):
    return [Item(0, split(line)) for line in lines]


class Comparing(unittest.TestCase):
    """The measure itself."""

    def test_replies_are_parsed_whole_or_not_at_all(self):
        reply = (b"*5\r\n$3\r\na\r\n\r\n:-5\r\n%1\r\n+k\r\n$-1\r\n*-1\r\n~2\r\n,1.5\r\n#t\r\n")
        value, end = parse(reply)
        self.assertEqual(value, ("*", [
            ("$", b"a\r\n"), (":", -5), ("%", [(("+", b"k"), ("$", None))]), ("*", None),
            ("~", [(",", b"1.5"), ("#", b"t")])]))
        self.assertEqual(end, len(reply))
        for n in range(len(reply)):
            with self.assertRaises(Incomplete):
                parse(reply[:n])

    def test_any_bytes_survive_a_script(self):
        rng = random.Random(5)
        for _ in range(300):
            argv = [bytes(rng.randrange(256) for _ in range(rng.randrange(6))) for _ in range(4)]
            argv[0] = b"c" + argv[0]
            self.assertEqual(split(" ".join(quote(arg) for arg in argv)), argv)
            text = engine_world.script(Setup({"a": 1}, "g", {1: 3}), [Item(1, argv)], "why\nso")
            setup, again = engine_world.read_script(text)
            self.assertEqual((again[0].session, again[0].argv), (1, argv))
            self.assertEqual((setup.config, setup.events, setup.protos), ({"a": "1"}, "g", {1: 3}))

    def test_order_and_chance_are_forgiven_only_where_rules_say_so(self):
        one, other = parse(encode([b"a", b"b"]))[0], parse(encode([b"b", b"a"]))[0]
        short, error = parse(encode([b"b"]))[0], ("-", b"ERR")
        argv = [b"smembers", b"k"]
        self.assertFalse(same(argv, one, other, set(), set()))
        self.assertTrue(same(argv, one, other, {"SMEMBERS"}, set()))
        self.assertFalse(same(argv, one, short, {"SMEMBERS"}, set()))
        self.assertTrue(same(argv, one, other, set(), {"SMEMBERS"}))
        self.assertFalse(same(argv, one, short, set(), {"SMEMBERS"}))
        self.assertFalse(same(argv, one, error, {"SMEMBERS"}, {"SMEMBERS"}))
        pairs = [parse(encode(words))[0]
                 for words in ([b"a", b"1", b"2", b"b"], [b"a", b"b", b"2", b"1"])]
        self.assertFalse(same([b"HGETALL", b"k"], *pairs, {"HGETALL"}, set()))
        self.assertFalse(same([b"sscan", b"k", b"0"],
                              parse(b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n")[0],
                              parse(b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nb\r\n")[0], set(), set()))


class Engine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tape = EngineTape("oracle-engine-oracle")
        cls.peers = engine_peers.Peers(tape=cls.tape)
        cls.peers.__enter__()
        cls.world = World(cls.peers, Rules(FAMILIES.values()))

    @classmethod
    def tearDownClass(cls):
        cls.world.close()
        cls.peers.close()

    def play(self, setup, commands):
        return engine_world.attempt(self.world, setup, commands, 1)

    def test_the_world_sees_what_differs(self):
        """The server is changed after its back: once in its data, once in its settings."""
        self.assertIsNone(self.play(Setup(), items("SADD k 1 2", "EXPIRE k 100", "@time 5000000")))
        self.world.control("SREM", "k", 2)
        with self.assertRaises(Mismatch) as reported:
            self.world.compare_data(0, "")
        self.assertEqual(reported.exception.kind, "log")
        with self.assertRaises(Mismatch) as reported:
            self.world.compare_data(0, "")
        self.assertEqual(reported.exception.kind, "digest")
        with self.assertRaises(Mismatch) as reported:
            self.world.play(items("SMEMBERS k"))
        self.assertEqual(reported.exception.kind, "reply")
        self.world.begin(Setup())
        self.world.control("CONFIG", "SET", "set-max-intset-entries", 1)
        with self.assertRaises(Mismatch) as reported:
            self.world.play(items("SADD k 1 2"), 1)
        self.assertEqual(reported.exception.kind, "encoding")

    def test_a_difference_is_made_small(self):
        commands = items(*[f"SADD k{i} 1 2 3" for i in range(40)], "SADD s 1 2", "SADD t 1")
        found = Mismatch("reply", 41, "SADD", "", "")
        rest, _ = engine_world.minimise(self.Odd(), Setup(), commands, found)
        self.assertEqual([item.argv[1] for item in rest], [b"s", b"t"])

    class Odd:
        """A world that differs where t is added after s."""

        def begin(self, _):
            pass

        def play(self, commands, _):
            keys = [item.argv[1] for item in commands]
            if b"s" in keys and b"t" in keys[keys.index(b"s"):]:
                raise Mismatch("reply", keys.index(b"t"), "SADD", "", "")

    def test_scripts_of_old_differences(self):
        paths = sorted(glob.glob(os.path.join(CASES, "*.txt")))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(os.path.basename(path)):
                try:
                    engine_world.play_case(self.world, path)
                except Mismatch as e:
                    self.fail(str(e))

    def family(self, name, seed):
        deadline = time.monotonic() + SECONDS / len(FAMILIES) / 2
        runner = engine_world.Runner(self.world, name, FAMILIES[name], seed)
        try:
            if seed == FIXED_SEED:
                runner.run(RECORDED)
            if not self.peers.server.is_recorded:
                runner.run(1 << 60, deadline, LEAST)
        except engine_world.Failure as e:
            self.fail("\n" + str(e))
        print(f"# {name}: seed {seed}, {runner.n} commands", flush=True)
        self.assertGreaterEqual(runner.n, LEAST)
        self.assertEqual(runner.skipped, {}, "commands that the engine lacks")
        if seed == FIXED_SEED:
            self.tape.items(name, runner.digest(RECORDED))


def add_families():
    for name in FAMILIES:
        def fixed(self, name=name):
            self.family(name, FIXED_SEED)

        def of_the_clock(self, name=name):
            self.family(name, int(time.time() * 1000))
        setattr(Engine, f"test_family_{name}_with_the_fixed_seed", fixed)
        if recorded.chance_is_allowed():
            setattr(Engine, f"test_family_{name}_with_a_seed_of_the_clock", of_the_clock)


add_families()

if __name__ == "__main__":
    unittest.main()
