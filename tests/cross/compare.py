"""Compares what the tools of a foreign processor print and write with what those of this one do.

usage: compare.py COMMAND…    (what runs the foreign program; REDOUBT names the program of this
                               machine, and the fixtures are those of the tree)
"""

import glob
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(ROOT, "fixtures")
SNAPSHOT = (["check-rdb", "--json"], ["convert", "--to", "ndjson"], ["convert", "--to", "resp"],
            ["convert", "--to", "rdb", "--for", "redis-7.0"],
            ["convert", "--to", "rdb", "--for", "redis-2.8", "--lossy"], ["sum", "--json"],
            ["stat", "--json", "--now", "2026-11-20T12:00:00Z"])
HOUR_MS = "3600000"
LOG = (["check-aof", "--json"], ["show", "--json"])


def run(program, *args):
    done = subprocess.run([*program, *args], capture_output=True, check=False,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def found(*patterns):
    return sorted(path for pattern in patterns
                  for path in glob.glob(os.path.join(FIXTURES, "*", pattern)))


class Comparison:
    def __init__(self, native, foreign):
        self.native = native
        self.foreign = foreign
        self.count = self.wrong = 0

    def wants(self, what, here, there):
        self.count += 1
        if here == there:
            return
        self.wrong += 1
        print("differs:", *what)
        for name, one, two in zip(("status", "output", "messages"), here, there):
            if one != two:
                print(f"  {name} here:  {one!r:.300}\n  {name} there: {two!r:.300}")

    def both(self, *args):
        """Both programs do the same."""
        self.wants(args, run(self.native, *args), run(self.foreign, *args))

    def replay(self, log, folder):
        """The foreign program builds the same data from a log. Its order is random, and times to
        live without a time count from the moment at which the tool began."""
        out = os.path.join(folder, "out.rdb")
        if run(self.native, "convert", "--to", "rdb", "--force", log, "-o", out)[0] == 0:
            self.wants(("diff", log), (0,),
                       run(self.foreign, "diff", "--expire-tolerance", HOUR_MS, log, out)[:1])


def main(foreign):
    work = Comparison([os.environ["REDOUBT"]], foreign)
    os.chdir(ROOT)
    for path in found("*.rdb"):
        for args in SNAPSHOT:
            work.both(*args, os.path.relpath(path))
    with tempfile.TemporaryDirectory() as folder:
        for path in found("*.aof", "*.aof.d"):
            for args in LOG:
                work.both(*args, os.path.relpath(path))
            work.replay(os.path.relpath(path), folder)
    print(f"{work.count} runs, {work.wrong} of them differ")
    return 1 if work.wrong > 0 or work.count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
