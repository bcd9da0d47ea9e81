"""The table of commands beside what servers of many versions said to COMMAND.

Fixtures are fixtures/*/commands.tsv, by record_commands_by_hand.py: the commands that write, their
arity and the places of their keys. A command that is missing here, or has its keys elsewhere, would
make a log of that server unreadable, or the wrong keys unknown.
"""

import glob
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import engine_resp  # noqa: E402
import record_commands_by_hand as recorded  # noqa: E402

FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
PRINT_COMMANDS = os.environ.get("REDOUBT_PRINT_COMMANDS", "print_commands")
SERVERS = {"redis-7.0.15", "redis-8.0.2", "redis-8.0.6", "redis-8.6.3", "redict-7.3.6",
           "valkey-8.0.1", "valkey-8.1.1", "valkey-9.1.2"}


def read(path):
    with open(path, encoding="ascii") as f:
        for line in f:
            name, arity, *specs = line.rstrip("\n").split("\t")
            yield name, int(arity), specs


class Newer(unittest.TestCase):
    def ours(self, names):
        text = "\t".join(["COMMAND", "INFO", *names]) + "\n"
        out = subprocess.run([PRINT_COMMANDS, "2", "all"], input=text.encode(),
                             stdout=subprocess.PIPE, check=True).stdout
        found = {}
        for name, command in zip(names, engine_resp.parse(out, 0)[0][1]):
            if command[1] is None:
                continue
            row = command[1]
            specs = [s for s in map(recorded.spec, row[8][1]) if s is not None]
            found[name] = row[1][1], recorded.words(row[2]), specs
        return found

    def test_every_write_command_of_every_server_is_known(self):
        paths = glob.glob(os.path.join(FIXTURES, "*", "commands.tsv"))
        self.assertEqual({os.path.basename(os.path.dirname(p)) for p in paths}, SERVERS)
        wrong = []
        for path in paths:
            rows = list(read(path))
            self.assertGreater(len(rows), 100, path)
            ours = self.ours([name for name, _, _ in rows])
            for name, arity, specs in rows:
                if name not in ours:
                    wrong.append(f"{path}: {name} is missing")
                    continue
                least, flags, places = ours[name]
                if places != specs:
                    wrong.append(f"{path}: {name} has its keys at {specs}, not {places}")
                if "write" not in flags:
                    wrong.append(f"{path}: {name} writes")
                # Modules of 8.0 say -1, which allows what their commands refuse.
                if arity != -1 and least != arity and not (least < 0 and abs(arity) >= -least):
                    wrong.append(f"{path}: {name} takes {arity} arguments, not {least}")
        self.assertFalse(wrong, "\n" + "\n".join(sorted(wrong)))


if __name__ == "__main__":
    unittest.main()
