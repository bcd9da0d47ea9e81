"""What ./run shows while it builds, when it asks for packages, and what it leaves when stopped.

Stubs are in for meson and ninja, and for the programs of packages.
"""

import os
import select
import signal
import subprocess
import tempfile
import time
import unittest

RUN = os.path.join(os.environ["REDOUBT_SOURCE"], "run")
# Its tests are "one" and "two".
MESON = """#!/bin/sh
case "$*" in
*--list) printf 'redoubt / one\\nredoubt / two\\n'; exit ;;
test*) echo "tested $*"; exit ;;
esac
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
# Packages are missing until the file "installed" is there; "asked" is there when dpkg was asked.
DPKG_QUERY = """#!/bin/sh
: >HERE/asked
[ -e HERE/installed ] || exit 1
shift 3
for name in "$@"; do printf 'installed:%s ' "$name"; done
"""
# Reports itself in the pipe "begun", then works until the pipe "go" is opened for writing.
APT_GET = """#!/bin/sh
[ ! -e HERE/unpacking ] || echo "Unpacking one"
echo "$$" >HERE/begun
: <HERE/go
: >HERE/installed
"""
SUDO = """#!/bin/sh
exec "$@"
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-run-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(self.path("bin"))
        for name, text in (("meson", MESON), ("ninja", NINJA), ("dpkg-query", DPKG_QUERY),
                           ("apt-get", APT_GET), ("sudo", SUDO)):
            with open(self.path("bin", name), "w", encoding="ascii") as f:
                f.write(text.replace("HERE", self.folder))
            os.chmod(self.path("bin", name), 0o755)
        self.env = {**os.environ, "PATH": self.path("bin") + ":" + os.environ["PATH"],
                    "REDOUBT_BUILD_DIR": self.path("build"), "TERM": "xterm",
                    "REDOUBT_POLICY_RC_D": self.path("policy-rc.d")}
        self.touch("installed")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def touch(self, *names):
        with open(self.path(*names), "w", encoding="ascii"):
            pass

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


class Shown(Case):
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

    def test_a_tool_that_is_built_asks_for_no_package(self):
        self.run_it(subprocess.PIPE)
        os.unlink(self.path("asked"))
        os.unlink(self.path("installed"))
        done = self.run_it(subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (0, b"built\n"))
        self.assertFalse(os.path.exists(self.path("asked")))

    def test_names_of_tests_that_do_not_exist_are_refused(self):
        def test(*names):
            return subprocess.run([RUN, "test", *names], stdin=subprocess.DEVNULL, check=False,
                                  stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        for names, wrong in ((("one", "three"), "three"), (("t?", "two"), "t?")):
            done = test(*names)
            self.assertEqual(done.returncode, 3)
            self.assertTrue(done.stderr.endswith(f"no test has the name {wrong}\n".encode()))
            self.assertNotIn(b"tested", done.stdout)
        for names in ((), ("one", "two"), ("t*",)):
            self.assertIn(b"tested", test(*names).stdout)

    def test_a_second_run_says_that_it_waits_for_the_first(self):
        os.makedirs(self.path("build"))
        lock = subprocess.Popen(["flock", self.path("build", "release.lock"), "cat"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        lock.stdin.write(b"locked\n")
        lock.stdin.flush()
        lock.stdout.readline()
        second = subprocess.Popen([RUN, "check-rdb", "x"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=self.env)
        self.assertEqual(second.stderr.readline(),
                         b"run: waiting for another run, which builds in "
                         + self.path("build", "release").encode() + b"\n")
        lock.communicate()
        self.assertEqual(second.communicate()[0], b"built\n")


class Packages(Case):
    """A run that installs packages, in a process group of its own as a terminal starts it."""

    def setUp(self):
        super().setUp()
        os.unlink(self.path("installed"))
        for name in "begun", "go":
            os.mkfifo(self.path(name))
        self.begun = os.open(self.path("begun"), os.O_RDWR)
        self.addCleanup(os.close, self.begun)

    def begin(self):
        """Starts a run, and waits until apt works."""
        run = self.start("check-rdb")
        self.apt()
        return run

    def start(self, tool):
        # These tests may run under nohup.
        run = subprocess.Popen(["env", "--default-signal=HUP,INT,TERM", RUN, tool, "x"],
                               stdin=subprocess.DEVNULL, env=self.env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, process_group=0)
        self.addCleanup(self.end, run)
        return run

    @staticmethod
    def end(run):
        try:
            os.killpg(run.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        run.communicate()

    def apt(self):
        """Waits until apt works; its process."""
        self.assertTrue(select.select([self.begun], [], [], 60)[0], "apt does not begin")
        return int(os.read(self.begun, 100))

    def go(self):
        os.close(os.open(self.path("go"), os.O_WRONLY))

    def policy(self):
        """The status of the policy: 101 forbids that a service starts; None: there is none."""
        if not os.path.exists(self.path("policy-rc.d")):
            return None
        return subprocess.run([self.path("policy-rc.d"), "redis", "start"], check=False).returncode

    def test_services_start_again_after_the_packages_are_there(self):
        run = self.begin()
        self.assertEqual(self.policy(), 101)
        self.go()
        self.assertEqual(run.communicate()[0], b"built\n")
        self.assertIsNone(self.policy())

    def test_a_run_that_is_stopped_leaves_no_policy(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            for whole_group in True, False:
                run = self.begin()
                (os.killpg if whole_group else os.kill)(run.pid, number)
                self.assertEqual(run.wait(60), -number, run.communicate())
                self.assertIsNone(self.policy(), number)

    def test_dpkg_is_not_interrupted(self):
        self.touch("unpacking")
        os.mkdir(self.path("tmp"))
        self.env["TMPDIR"] = self.path("tmp")
        run = self.begin()
        while not any(os.path.getsize(self.path("tmp", name))
                      for name in os.listdir(self.path("tmp"))):
            time.sleep(0.01)
        os.kill(run.pid, signal.SIGTERM)
        self.assertIn(b"installing", run.stderr.readline())
        self.assertIn(b"stopping as soon as apt", run.stderr.readline())
        self.assertEqual(self.policy(), 101)
        self.go()
        self.assertEqual(run.wait(60), -signal.SIGTERM)
        self.assertTrue(os.path.exists(self.path("installed")))
        self.assertIsNone(self.policy())

    def test_the_policy_of_a_run_that_was_killed_has_no_effect_and_goes_later(self):
        run = self.begin()
        run.kill()
        run.wait()
        self.assertEqual(self.policy(), 0)
        self.go()
        while not os.path.exists(self.path("installed")):
            time.sleep(0.01)
        os.unlink(self.path("installed"))
        run = self.begin()
        self.assertEqual(self.policy(), 101)
        self.go()
        self.assertEqual(run.wait(60), 0)
        self.assertIsNone(self.policy())

    def test_the_policy_of_an_administrator_stays(self):
        with open(self.path("policy-rc.d"), "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nexit 104\n")
        os.chmod(self.path("policy-rc.d"), 0o755)
        run = self.begin()
        os.kill(run.pid, signal.SIGTERM)
        run.wait(60)
        self.assertEqual(self.policy(), 104)

    def test_two_runs_install_one_after_the_other(self):
        first = self.begin()
        second = self.start("server")
        self.assertIn(b"installing", second.stderr.readline())
        self.assertEqual(second.stderr.readline(),
                         b"run: waiting for another run, which installs packages\n")
        self.go()
        self.assertEqual(first.wait(60), 0)
        self.apt()
        self.assertEqual(self.policy(), 101)
        self.go()
        second.wait(60)
        self.assertIsNone(self.policy())


if __name__ == "__main__":
    unittest.main()
