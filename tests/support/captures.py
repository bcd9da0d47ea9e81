"""Small captures for tests, written by the program that REDOUBT_MAKE_CAPTURE names.

    world = Capture(os.path.join(folder, "capture"))
    world.begin(snapshot([Key(b"k", STRING, b"v")]), command("SELECT", "0") + ...)
    world.go_on(command("SET", "k", "w"), at=START + 10)

Commands come one each second, the first at START. A test that inherits CaptureTest has self.folder,
and self.capture in it.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

START = 1700000000


def command(*args):
    args = [a if isinstance(a, bytes) else str(a).encode() for a in args]
    out = b"*%d\r\n" % len(args)
    return out + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in args)


def ends(commands, offset):
    """Where each command begins in a stream from an offset on, and where the last one ends."""
    found = [offset]
    for c in commands:
        found.append(found[-1] + len(c))
    return found


# Databases, a transaction, what changes nothing, and the end of a key "old".
USUAL = [command("SELECT", 0), command("SET", "a", "1"), command("PING"), command("SELECT", 2),
         command("SET", "b", "2"), command("REPLCONF", "GETACK", "*"), command("INCR", "a"),
         command("MULTI"), command("SET", "c", "3"), command("SET", "d", "4"), command("EXEC"),
         command("DEL", "old")]


class Capture:
    def __init__(self, path):
        self.path = path

    def _run(self, ident, offset, snapshot, stream, at, step_us, segment, run=()):
        with open(self.path + ".resp", "wb") as out:
            out.write(stream)
        name = "-"
        if snapshot is not None:
            name = self.path + ".snapshot"
            with open(name, "wb") as out:
                out.write(snapshot)
        subprocess.run([os.environ["REDOUBT_MAKE_CAPTURE"], self.path, ident, str(offset), name,
                        str(int(at * 1000000)), str(step_us), self.path + ".resp", str(segment),
                        *run],
                       check=True)
        return self.path

    def begin(self, snapshot, stream, ident="a", offset=1000, at=START, step_us=1000000, segment=0,
              run=()):
        """A chapter; snapshot None: one without. run: a digit, as in the capture of a server."""
        return self._run(ident, offset, snapshot, stream, at, step_us, segment, run)

    def go_on(self, stream, ident="a", at=START, step_us=1000000, segment=0):
        return self._run(ident, 0, None, stream, at, step_us, segment)


class CaptureTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.capture = Capture(os.path.join(self.folder, "capture"))

    def run_tool(self, *args, expect=0):
        """stdout, as bytes, and stderr."""
        done = subprocess.run([os.environ["REDOUBT"], *args], capture_output=True, check=False)
        self.assertEqual(done.returncode, expect, done.stderr.decode())
        return done.stdout, done.stderr.decode()
