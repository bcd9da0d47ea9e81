"""What ./run shows while it builds: on a terminal what it is doing, elsewhere nothing.

Stubs are in for meson and ninja.
"""

import os
import subprocess
import tempfile
import unittest

RUN = os.path.join(os.environ["REDOUBT_SOURCE"], "run")
MESON = """#!/bin/sh
echo The Meson build system
mkdir -p "$2/tools"
: >"$2/build.ninja"
"""
NINJA = """#!/bin/sh
while [ "$1" != -C ]; do
    [ "$1" = --quiet ] && quiet=yes
    shift
done
[ -n "$quiet" ] || echo "[1/2] Compiling one.c"
[ ! -e "$2/broken" ] || { echo "one.c:1: error"; exit 1; }
printf '#!/bin/sh\\necho built; echo words >&2\\n' >"$2/tools/redoubt"
chmod 755 "$2/tools/redoubt"
"""


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-run-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(self.path("bin"))
        for name, text in ("meson", MESON), ("ninja", NINJA):
            with open(self.path("bin", name), "w", encoding="ascii") as f:
                f.write(text)
            os.chmod(self.path("bin", name), 0o755)
        self.env = {**os.environ, "PATH": self.path("bin") + ":" + os.environ["PATH"],
                    "REDOUBT_BUILD_DIR": self.path("build"), "TERM": "xterm"}

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_it(self, stderr, **env):
        return subprocess.run([RUN, "check-rdb", "x"], stdin=subprocess.DEVNULL, stderr=stderr,
                              stdout=subprocess.PIPE, env={**self.env, **env}, check=False)

    def on_terminal(self, **env):
        """Status, standard output and what the terminal got."""
        ours, theirs = os.openpty()
        with open(ours, "rb", buffering=0) as screen:
            done = self.run_it(theirs, **env)
            os.close(theirs)
            shown = b""
            try:
                while data := screen.read(4096):
                    shown += data
            except OSError:  # the end of a terminal
                pass
        return done.returncode, done.stdout, shown

    def test_a_terminal_shows_each_step_and_then_none(self):
        status, out, shown = self.on_terminal()
        self.assertEqual((status, out), (0, b"built\n"))
        for step in (b"configuring", b"The Meson build system", b"[1/2] Compiling one.c"):
            self.assertIn(step, shown)
        self.assertTrue(shown.endswith(b"\r\x1b[Kwords\r\n"), shown)

    def test_nothing_is_shown_elsewhere(self):
        for done in (self.run_it(subprocess.PIPE), self.run_it(subprocess.PIPE)):
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (0, b"built\n", b"words\n"))
        self.assertNotIn(b"\x1b", self.on_terminal(TERM="dumb")[2])

    def test_errors_are_shown_everywhere(self):
        os.makedirs(self.path("build", "release"))
        self.run_it(subprocess.PIPE)
        with open(self.path("build", "release", "broken"), "w", encoding="ascii"):
            pass
        done = self.run_it(subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (3, b"", b"one.c:1: error\nrun: building failed\n"))
        status, _, shown = self.on_terminal()
        self.assertEqual(status, 3)
        self.assertIn(b"\r\x1b[Kone.c:1: error\r\nrun: building failed\r\n", shown)


if __name__ == "__main__":
    unittest.main()
