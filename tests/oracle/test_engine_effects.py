"""What an engine writes to a log makes the same data: an engine beside one that runs its effects.

Random commands of each family and of later versions, and payloads of DUMP, some of them damaged. If
the data differs, the commands are played again one by one, and the first after which it does is
named. REDOUBT_EFFECTS_EPOCHS (6) is how many times 3,000 commands are tried at each level.
"""

import glob
import os
import random
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "soak"))
from engine_peers import Shell, as_bytes, encode, find_shell  # noqa: E402
from engine_resp import parse_commands  # noqa: E402
from words import Words  # noqa: E402

LEVELS = {"7.0": 0, "8.6": 3, "valkey-9.1": 4}
BEGAN_US = 1700000000000000
EPOCHS = int(os.environ.get("REDOUBT_EFFECTS_EPOCHS", "6"))
COMMANDS, STEP = 3000, 100
WAITING = {b"BLPOP", b"BRPOP", b"BLMOVE", b"BRPOPLPUSH", b"BLMPOP", b"BZPOPMIN", b"BZPOPMAX",
           b"BZMPOP", b"WAIT", b"XREAD"}


def payloads():
    out = []
    for path in sorted(glob.glob(os.path.join(HERE, "..", "fuzz", "corpus", "dump", "*"))):
        with open(path, "rb") as f:
            out.append(f.read()[1:])
    return [data for data in out if len(data) > 12]


def is_wanted(argv):
    """Not those that wait, or never end."""
    upper = [word.upper() for word in argv]
    return (upper[0] not in WAITING and b"BLOCK" not in upper and
            not any(b"while true" in word or b"set_repl" in word for word in argv))


class Effects(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.peers = []
        for name in ("source", "copy"):
            os.mkdir(os.path.join(self.folder, name))
            self.peers.append(Shell(find_shell(), os.path.join(self.folder, name)))
            self.addCleanup(self.peers[-1].close)

    def begin(self, level):
        for shell in self.peers:
            shell("CONFIG", "level", LEVELS[level])
            shell("RESET")
            shell("TIME", BEGAN_US)
        self.peers[1]("MASTER")
        self.now_us = BEGAN_US

    @staticmethod
    def ask_all(shell, commands):
        shell.send(b"".join(encode(argv) for argv in commands))
        return [shell.record() for _ in commands]

    def run_part(self, part):
        """Commands, and the effects of them; numbers are microseconds that pass."""
        commands = []
        for argv in part:
            if isinstance(argv, int):
                self.now_us += argv
                commands += [[b"%", b"TIME", b"%d" % self.now_us], [b"%", b"CYCLE"]]
            else:
                commands.append(argv)
        effects = parse_commands(b"".join(record.all_effects() for record in
                                          self.ask_all(self.peers[0], commands)))
        for argv, record in zip(effects, self.ask_all(self.peers[1], effects)):
            self.assertFalse(record.reply.startswith(b"-"), (argv, record.reply))

    def first_difference(self, level, commands, step):
        """Where the part of the commands begins after which the data differs."""
        self.begin(level)
        for i in range(0, len(commands), step):
            self.run_part(commands[i:i + step])
            if self.peers[0]("DIGEST") != self.peers[1]("DIGEST"):
                return i
        return None

    def commands(self, rng, level):
        words = Words(rng, payloads(), level != "7.0")
        kinds = [words.data_only] * 10 + [words.bulk, words.payload, words.payload,
                                          words.transaction] + [words.later] * 4
        out = []
        while len(out) < COMMANDS:
            if rng.random() < 0.1:
                out.append(rng.choice((1000, 100000, 2000000, 60000000)))
            some = [[as_bytes(word) for word in argv] for argv in rng.choice(kinds)()]
            out += [argv for argv in some if is_wanted(argv)]
        return out

    def test_the_effects_of_random_commands_make_the_same_data(self):
        for level in LEVELS:
            for epoch in range(EPOCHS):
                commands = self.commands(random.Random(f"effects {level} {epoch}"), level)
                at = self.first_difference(level, commands, STEP)
                if at is not None:
                    at = self.first_difference(level, commands[:at + STEP], 1)
                    self.assertIsNone(at, (level, epoch, commands[at]))


if __name__ == "__main__":
    unittest.main()
