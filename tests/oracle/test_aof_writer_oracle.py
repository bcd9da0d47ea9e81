"""What the log writer writes is loaded by a real server, and what the server wrote is continued.

One server gets commands by socket; another loads a log that holds the same commands;
DEBUG DIGEST must agree.
"""

import os
import random
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402

WRITE_LOG = os.environ.get("REDOUBT_WRITE_LOG", "write_log")
FOLDER = "appendonlydir"
NAME = "appendonly.aof"


def resp(*args):
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        arg = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(parts)


def some_command(rng):
    key = lambda kind: b"%s:%d" % (kind, rng.randrange(8))  # noqa: E731
    value = bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
    return rng.choice([
        lambda: ("SET", key(b"s"), value),
        lambda: ("SET", key(b"big"), value * 3000),
        lambda: ("INCRBY", key(b"n"), rng.randrange(100)),
        lambda: ("RPUSH", key(b"l"), value, rng.randrange(1000)),
        lambda: ("LPOP", key(b"l")),
        lambda: ("SADD", key(b"set"), value, rng.randrange(1000)),
        lambda: ("ZADD", key(b"z"), rng.randrange(1000) / 8, value),
        lambda: ("HSET", key(b"h"), rng.randrange(100), value),
        lambda: ("XADD", key(b"x"), f"{1 + some_command.n}-1", "f", value),
        lambda: ("DEL", key(b"s")),
        lambda: ("PEXPIREAT", key(b"n"), 4102444800000 + rng.randrange(1000)),
    ])()


some_command.n = 0


class Both:
    """Commands for the server with a socket, and the script of the same for the writer."""

    def __init__(self, server, seed):
        self.server = server
        self.rng = random.Random(seed)
        self.script = []
        self.db = 0
        self.now = 1700000000000

    def direct(self, *args):
        self.script.append(resp(*args))

    def command(self, *args):
        self.server.command(*args)
        self.script.append(resp(*args))

    def commands(self, n):
        for _ in range(n):
            some_command.n += 1
            if self.rng.randrange(5) == 0:
                self.db = self.rng.randrange(4)
                self.server.command("SELECT", self.db)
                self.direct("@db", self.db)
            if self.rng.randrange(10) == 0:
                self.now += self.rng.randrange(3000)
                self.direct("@now", self.now)
            if self.rng.randrange(10) == 0:
                self.direct("@flush")
            if self.rng.randrange(8) == 0:
                self.transaction()
            else:
                self.command(*some_command(self.rng))

    def transaction(self):
        self.direct("@multi")
        self.server.command("MULTI")
        for _ in range(1 + self.rng.randrange(4)):
            some_command.n += 1
            self.command(*some_command(self.rng))
        self.server.command("EXEC")
        self.direct("@exec")

    def digest(self):
        digest = self.server.command("DEBUG", "DIGEST")
        assert digest != b"0" * 40, "the data set is empty"
        return digest


class WriterAndServer(unittest.TestCase):
    def setUp(self):
        self.reported = self.start({})
        self.loading = self.start({"aof-load-truncated": "no"})
        self.loading.stop()
        self.log = os.path.join(self.loading.dir, FOLDER)

    def start(self, config):
        server = redis_server.RedisServer(config).__enter__()
        self.addCleanup(server.close)
        return server

    def write(self, both, *options):
        run = subprocess.run(
            [WRITE_LOG, self.loading.dir, FOLDER, *options], input=b"".join(both.script),
            stderr=subprocess.PIPE, timeout=600,
        )
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        both.script = []

    def load(self, **config):
        self.loading.config["appendonly"] = "yes"
        for name, value in config.items():
            self.loading.config[name.replace("_", "-")] = value
        self.loading.start()
        return self.loading.command("DEBUG", "DIGEST")

    def put_base(self, name):
        """The data set of the server with the socket, as a child of a rewrite would write it."""
        self.reported.command("SAVE")
        os.makedirs(self.log, exist_ok=True)
        shutil.copyfile(self.reported.rdb, os.path.join(self.log, name))

    def names(self):
        return sorted(os.listdir(self.log))

    def test_a_log_of_the_writer_loads_with_the_same_digest(self):
        for seed in range(3):
            with self.subTest(seed=seed):
                shutil.rmtree(self.log, ignore_errors=True)
                self.reported.command("FLUSHALL")
                self.reported.command("SELECT", 0)
                both = Both(self.reported, seed)
                both.commands(150)
                self.write(both, "timestamps")
                self.assertEqual(self.load(), both.digest())
                self.loading.stop()

    def test_a_log_that_was_rewritten_loads_with_the_same_digest(self):
        both = Both(self.reported, 11)
        both.commands(100)
        both.direct("@begin")
        self.put_base("temp-a.rdb")
        both.commands(50)
        both.direct("@commit", "temp-a.rdb", "rdb")
        both.commands(50)
        both.direct("@begin")
        both.commands(20)
        both.direct("@abort")
        both.commands(20)
        self.write(both, "timestamps")
        self.assertEqual(self.names(), [
            f"{NAME}.1.base.rdb", f"{NAME}.2.incr.aof", f"{NAME}.3.incr.aof", f"{NAME}.manifest"])
        self.assertEqual(self.load(), both.digest())

    def settle(self, server):
        end = time.monotonic() + 600
        while time.monotonic() < end:
            info = server.command("INFO", "persistence").decode()
            if "aof_rewrite_in_progress:0" in info and "aof_rewrite_scheduled:0" in info:
                return
            time.sleep(0.02)
        self.fail("the server does not end its rewrite")

    def test_a_log_of_the_server_is_continued_rewritten_and_loaded_again(self):
        for timestamps in ("no", "yes"):
            with self.subTest(timestamps=timestamps):
                shutil.rmtree(self.log, ignore_errors=True)
                self.reported.command("FLUSHALL")
                self.reported.command("SELECT", 0)
                self.continued(timestamps)

    def continued(self, timestamps):
        self.load(aof_timestamp_enabled=timestamps)
        here, there = Both(self.loading, 21), Both(self.reported, 21)
        for part in (60, 40):
            start = some_command.n
            here.commands(part)
            some_command.n = start
            there.commands(part)
            self.loading.command("BGREWRITEAOF")
            self.settle(self.loading)
        start = some_command.n
        here.commands(30)
        some_command.n = start
        there.commands(30)
        self.assertEqual(here.digest(), there.digest())
        self.loading.stop()
        there.script = []
        there.direct("@db", there.db)
        there.commands(60)
        there.direct("@begin")
        self.put_base("temp-b.rdb")
        there.commands(30)
        there.direct("@commit", "temp-b.rdb", "rdb")
        self.write(there, "timestamps")
        self.assertEqual(len(self.names()), 3)
        self.assertEqual(self.load(), there.digest())
        # And the server continues with it.
        self.loading.command("SET", "more", "1")
        self.reported.command("SELECT", 0)
        self.reported.command("SET", "more", "1")
        self.loading.command("BGREWRITEAOF")
        self.settle(self.loading)
        self.loading.stop()
        self.assertEqual(self.load(), there.digest())
        self.loading.stop()

    def old_log(self, both):
        """One file, a snapshot and commands after it, as servers 4.0 to 6.2 leave it."""
        both.commands(40)
        self.put_base("old")
        snapshot = os.path.join(self.log, "old")
        both.script = []
        both.direct("@db", both.db)
        both.commands(40)
        tail = both.script
        self.write(both)
        with open(os.path.join(self.loading.dir, NAME), "wb") as out:
            for path in (snapshot, os.path.join(self.log, f"{NAME}.1.incr.aof")):
                with open(path, "rb") as f:
                    shutil.copyfileobj(f, out)
        shutil.rmtree(self.log)
        self.assertTrue(tail)

    def test_an_old_log_is_upgraded_continued_and_loaded(self):
        both = Both(self.reported, 31)
        self.old_log(both)
        both.direct("@db", both.db)
        both.commands(30)
        self.write(both, "upgrade")
        self.assertEqual(self.names(), [NAME, f"{NAME}.1.incr.aof", f"{NAME}.manifest"])
        self.assertEqual(self.load(), both.digest())

    def test_the_server_finishes_an_upgrade_that_was_interrupted(self):
        both = Both(self.reported, 41)
        self.old_log(both)
        os.mkdir(self.log)
        with open(os.path.join(self.log, f"{NAME}.manifest"), "w") as f:
            f.write(f"file {NAME} seq 1 type b\n")
        self.assertEqual(self.load(), both.digest())

    def test_a_torn_end_is_cut_and_the_log_continues(self):
        both = Both(self.reported, 51)
        both.commands(30)
        self.write(both)
        path = os.path.join(self.log, f"{NAME}.1.incr.aof")
        whole = os.path.getsize(path)
        with open(path, "ab") as f:
            f.write(resp("MULTI") + resp("SET", "k", "v") + b"*3\r\n$3\r\nSE")
        both.direct("@db", both.db)
        both.commands(30)
        self.write(both, f"cut={whole}")
        self.assertEqual(self.load(), both.digest())


if __name__ == "__main__":
    unittest.main()
