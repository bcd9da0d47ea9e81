"""`redoubt check-aof` beside the servers' own tool, and what a real server makes of its repairs.

The tool is that of Redis 7.0.15, itself or as it was recorded; the server is any.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import recorded  # noqa: E402
import redis_server  # noqa: E402

REDOUBT = os.path.abspath(os.environ.get("REDOUBT", "redoubt"))
FIXTURES = os.path.abspath(os.environ.get("REDOUBT_FIXTURES", "fixtures"))
RDB_VERSION = 10
NO_TIME = 1  # before every annotation
SECONDS = 7


ANSWERS = recorded.Answers("check-aof")


def logs():
    """(folder, name) of every log: a file, or a manifest with its files beside it."""
    for folder, _, names in sorted(os.walk(FIXTURES)):
        for name in sorted(names):
            if name.endswith((".aof", ".manifest", ".base.rdb")):
                yield folder, name


def is_newer(path):
    """A snapshot of a version that the server does not know."""
    with open(path, "rb") as f:
        magic = f.read(9)
    return magic[:6] == b"VALKEY" or (magic[:5] == b"REDIS" and int(magic[5:]) > RDB_VERSION)


def known(folder, name):
    alone = os.path.basename(folder) == "damaged"
    names = [name] if alone else os.listdir(folder)
    return not any(is_newer(os.path.join(folder, name)) for name in names)


def same_words(text):
    """Where a line ends too early, that tool prints a byte after the end of what it has read. What
    is wrong with a manifest it says in lines of a server's log."""
    text = re.split(r"^\d+:C \d", text, flags=re.M)[0]
    return re.sub(r"(Expected \\r\\n, got: 00)[0-9a-f]+", r"\1", text)


class Folder(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)


class Compatible(Folder):
    def make_copy(self, folder, name):
        copy = self.path("copy")
        if os.path.basename(folder) == "damaged":
            os.mkdir(copy)
            shutil.copy(os.path.join(folder, name), copy)
        else:
            shutil.copytree(folder, copy)
        return copy

    @staticmethod
    def files(folder):
        """{name: digest of its bytes} of the files there."""
        found = {}
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    found[name] = recorded.digest(f.read())
        return found

    def run_in_copy(self, program, folder, name, args, answer):
        """Status, output and the files afterwards."""
        copy = self.make_copy(folder, name)
        argv = ["redis-check-aof", *args, name]
        done = subprocess.run(argv, executable=program, cwd=copy, input=answer,
                              capture_output=True, check=False)
        files = self.files(copy)
        shutil.rmtree(copy)
        return [done.returncode, same_words(done.stdout.decode(errors="backslashreplace")), files]

    def theirs(self, folder, name, args, answer):
        copy = self.make_copy(folder, name)
        question = (sorted(self.files(copy).items()), name, args, answer)
        shutil.rmtree(copy)
        return ANSWERS.get(question, lambda: self.run_in_copy(
            shutil.which("redis-check-aof"), folder, name, args, answer))

    def compare(self, folder, name, args, answer=b""):
        ours = self.path("redis-check-aof")
        if not os.path.exists(ours):
            os.symlink(REDOUBT, ours)
        if ANSWERS.recording:
            self.theirs(folder, name, args, answer)
            return
        *said, files = self.run_in_copy(ours, folder, name, args, answer)
        *wanted, left = self.theirs(folder, name, args, answer)
        self.assertEqual(said, wanted, f"{args} {folder}/{name}")
        self.assertTrue(files == left, f"{args} {folder}/{name}: the files differ")

    def all(self, args, answer=b""):
        n = 0
        for folder, name in logs():
            if known(folder, name):
                self.compare(folder, name, args, answer)
                n += 1
        self.assertGreater(n, 40)

    def test_a_check_prints_the_same_lines(self):
        self.all([])

    def test_a_fix_that_is_wanted_does_the_same(self):
        self.all(["--fix"], b"y\n")

    def test_a_fix_that_is_not_wanted_does_nothing(self):
        self.all(["--fix"], b"n\n")
        self.all(["--fix"])

    def test_a_time_cuts_the_same_bytes(self):
        for folder, name in logs():
            if not known(folder, name):
                continue
            times = {NO_TIME}
            for other in [name] if name.endswith(".aof") else os.listdir(folder):
                with open(os.path.join(folder, other), "rb") as f:
                    times.update(int(t) for t in re.findall(rb"^#TS:(\d+)\r$", f.read(), re.M))
            for t in sorted(times)[:4]:
                self.compare(folder, name, ["--truncate-to-timestamp", str(t)])

    def test_the_command_line_is_the_same(self):
        name = "aof-whole.aof"
        folder = os.path.join(FIXTURES, "damaged")
        for args in (["--truncate-to-timestamp", "x"], ["--fix", "--fix"], ["--fox"]):
            self.compare(folder, name, args)

    def test_every_cut_of_a_log_is_judged_the_same(self):
        with open(os.path.join(FIXTURES, "damaged", "aof-multi-open.aof"), "rb") as f:
            data = f.read()
        os.mkdir(self.path("cuts"))
        for size in range(len(data) - 200, len(data)):
            with open(self.path("cuts", "cut.aof"), "wb") as f:
                f.write(data[:size])
            self.compare(self.path("cuts"), "cut.aof", [])


class Server(Folder):
    """A server whose log lies in a folder of the test."""

    def start(self, **config):
        options = {"appendonly": "yes", "dir": self.folder, "appendfsync": "always",
                   "aof-timestamp-enabled": "yes", "auto-aof-rewrite-percentage": "0"}
        options.update({k.replace("_", "-"): v for k, v in config.items()})
        return redis_server.RedisServer(options)

    def digest_of(self, folder):
        """What a server holds that was started from a log; None where it does not start."""
        copy = self.path("start")
        os.mkdir(copy)
        shutil.copytree(folder, os.path.join(copy, "appendonlydir"))
        try:
            with self.start(dir=copy, aof_load_truncated="no") as server:
                return server.command("DEBUG", "DIGEST")
        except redis_server.ServerDied:
            return None
        finally:
            shutil.rmtree(copy)

    def check(self, *args):
        done = subprocess.run([REDOUBT, "check-aof", "--json", *args], capture_output=True,
                              check=False, stdin=subprocess.DEVNULL)
        return done.returncode, json.loads(done.stdout)

    def rewrite(self, server):
        server.command("BGREWRITEAOF")
        while b"aof_rewrite_in_progress:1" in server.command("INFO", "persistence"):
            time.sleep(0.01)


class Repairs(Server):
    def write_log(self):
        with self.start() as server:
            for i in range(40):
                server.command("SET", f"k{i}", "v" * (i % 7))
                if i % 5 == 0:
                    server.command("MULTI")
                    server.command("INCR", "n")
                    server.command("LPUSH", "l", i)
                    server.command("EXEC")
        return self.path("appendonlydir")

    def test_a_log_that_was_cut_anywhere_loads_after_a_fix(self):
        log = self.write_log()
        name = next(n for n in os.listdir(log) if n.endswith(".incr.aof"))
        with open(os.path.join(log, name), "rb") as f:
            data = f.read()
        whole = None
        for size in range(len(data) - 150, len(data) + 1, 11):
            copy = self.path("cut")
            shutil.copytree(log, copy)
            with open(os.path.join(copy, name), "r+b") as f:
                f.truncate(size)
            status, report = self.check("--fix", "--yes", copy)
            self.assertEqual((status, report["verdict"]), (0, "ok"), size)
            whole = self.digest_of(copy)
            self.assertIsNotNone(whole, size)
            shutil.rmtree(copy)

    def test_zeros_at_the_end_are_cut_off(self):
        log = self.write_log()
        before = self.digest_of(log)
        name = next(n for n in os.listdir(log) if n.endswith(".incr.aof"))
        with open(os.path.join(log, name), "ab") as f:
            f.write(bytes(5000))
        self.assertIsNone(self.digest_of(log))
        _, report = self.check(log)
        self.assertEqual((report["verdict"], report["findings"][0]["id"]), ("torn", "zero-tail"))
        self.assertEqual(self.check("--fix", "--yes", log)[0], 0)
        self.assertEqual(self.digest_of(log), before)


class Times(Server):
    def record(self):
        """A log of three incremental files, and {second: digest at its end}."""
        reported = {}
        with self.start() as server:
            server.command("CONFIG", "SET", "aof-use-rdb-preamble", "yes")
            n = 0
            while len(reported) < SECONDS - 1:
                n += 1
                server.command("SET", f"k{n % 50}", n)
                if n % 10 == 0:
                    server.command("MULTI")
                    server.command("INCR", "n")
                    server.command("SADD", "s", n)
                    server.command("EXEC")
                time.sleep(0.004)
                second, micros = (int(part) for part in server.command("TIME"))
                if micros > 900000:
                    # Nothing is written around the moment at which the second changes.
                    reported[second] = server.command("DEBUG", "DIGEST")
                    time.sleep(1.05 - micros / 1e6)
                    if len(reported) in (2, 4):
                        self.new_file(server)
        return self.path("appendonlydir"), reported

    def new_file(self, server):
        """A rewrite that fails leaves another incremental file."""
        pid = server.process.pid
        server.command("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        server.command("CONFIG", "SET", "rdb-key-save-delay", "10000000")
        server.command("BGREWRITEAOF")
        children = []
        for _ in range(200):
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                children = f.read().split()
            if children:
                break
            time.sleep(0.005)
        for child in children:
            os.kill(int(child), 10)  # SIGUSR1: the child ends and the server takes it for failed
        while b"aof_rewrite_in_progress:1" in server.command("INFO", "persistence"):
            time.sleep(0.005)
        server.command("CONFIG", "SET", "rdb-key-save-delay", "0")

    def test_a_cut_at_any_second_is_what_the_server_held_then(self):
        log, reported = self.record()
        _, report = self.check(log)
        kinds = [f["type"] for f in report["files"]]
        self.assertEqual((report["verdict"], kinds), ("ok", ["base"] + 3 * ["incr"]))
        base = report["files"][0]["snapshot"]["saved"]
        n = 0
        for second in range(base - 1, report["last_time"] + 2):
            copy = self.path("cut")
            shutil.copytree(log, copy)
            status, after = self.check("--truncate-to-timestamp", str(second), "--yes", copy)
            if second < base:
                self.assertEqual((status, after["error"]["code"]), (2, "usage"))
                shutil.rmtree(copy)
                continue
            self.assertEqual((status, after.get("verdict", "ok")), (0, "ok"), second)
            if reported.get(second) is not None:
                self.assertEqual(self.digest_of(copy), reported[second], second)
                n += 1
            shutil.rmtree(copy)
        self.assertGreater(n, SECONDS - 3)


if __name__ == "__main__":
    unittest.main()
