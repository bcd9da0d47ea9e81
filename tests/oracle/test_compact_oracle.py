"""Logs that the engine replays hold what a redis-server says they held."""

import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402

REDOUBT = os.path.abspath(os.environ.get("REDOUBT", "redoubt"))
FIXTURES = os.path.abspath(os.environ.get("REDOUBT_FIXTURES", "fixtures"))
NEWEST = (7, 0)  # whose digests of sorted sets are those of this server
SEED = 20241121
COMMANDS = 300  # a second


def convert(log, out, *options):
    return subprocess.run([REDOUBT, "convert", "--from", "aof", "--to", "rdb", log, "-o", out,
                           "--force", *options], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def writes(rng, n):
    """Commands of several families on few keys, as a client sends them."""
    for _ in range(n):
        key = rng.choice("abcdef")
        value = rng.randrange(1000)
        yield rng.choice([
            ("SET", "s" + key, value), ("INCRBY", "n" + key, value),
            ("RPUSH", "l" + key, value, "x"), ("LPOP", "l" + key),
            ("SADD", "t" + key, value, value + 1), ("SPOP", "t" + key),
            ("HSET", "h" + key, value, key), ("HINCRBYFLOAT", "f" + key, "x", "1.25"),
            ("ZADD", "z" + key, value / 8, value), ("ZPOPMIN", "z" + key),
            ("XADD", "x" + key, "MAXLEN", "~", 50, "*", "f", value), ("PFADD", "p" + key, value),
            ("SETRANGE", "s" + key, 5, "abc"), ("EXPIRE", "s" + key, 10000),
            ("SETBIT", "b" + key, value, 1), ("GEOADD", "g" + key, value / 10, value / 20, key),
            ("RENAME", "s" + key, "s" + rng.choice("abcdef")), ("UNLINK", "h" + key),
        ])


def send(server, command):
    try:
        server.command(*command)
    except redis_server.ReplyError:
        pass


class Compact(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-test-")
        self.addCleanup(folder.cleanup)
        self.out = os.path.join(folder.name, "out.rdb")

    def digest_of(self, server, log, *options):
        run = convert(log, self.out, *options)
        self.assertEqual(run.returncode, 0, run.stderr.decode())
        server.load(self.out)
        return server.command("DEBUG", "DIGEST")


class LogServer(redis_server.RedisServer):
    """Starts from a log: a folder with a manifest, or one file."""

    def __init__(self, log):
        found = glob.glob(os.path.join(log, "**", "*.manifest"), recursive=True)
        self.files = os.path.dirname(found[0]) if found else log
        name = os.path.basename(found[0])[:-len(".manifest")] if found else os.path.basename(log)
        super().__init__({"appendonly": "yes", "appendfilename": name, "databases": "64"})

    def start(self):
        if os.path.isdir(self.files):
            shutil.copytree(self.files, os.path.join(self.dir, "appendonlydir"))
        else:
            shutil.copy(self.files, self.dir)
        super().start()


class Fixtures(Compact):
    def test_logs_of_real_servers_become_what_a_server_makes_of_them(self):
        n_equal = 0
        with redis_server.RedisServer({"databases": "64"}) as server:
            for path in sorted(glob.glob(os.path.join(FIXTURES, "*", "*.json"))):
                with open(path) as f:
                    facts = json.load(f)
                if isinstance(facts, dict) and "aof_dir" in facts:
                    n_equal += self.one(server, os.path.dirname(path), facts)
        self.assertGreater(n_equal, 5)

    def one(self, server, folder, facts):
        version = facts["server_version"].split(".")[:2]
        if not version[0].isdigit() or tuple(map(int, version)) > NEWEST:
            return 0
        log = os.path.join(folder, facts["aof_dir"])
        if not glob.glob(os.path.join(log, "**", "*.manifest"), recursive=True):
            log = os.path.join(log, sorted(os.listdir(log))[0])
        run = convert(log, self.out)
        if run.returncode == 4:  # modules: the error has the position
            self.assertRegex(run.stderr.decode(), r'at byte \d+ ')
            return 0
        self.assertEqual(run.returncode, 0, run.stderr.decode())
        server.load(self.out)
        digest = server.command("DEBUG", "DIGEST")
        if digest.decode() != facts["digest"]:  # of a server whose digests were others
            with LogServer(log) as same:
                self.assertEqual(digest, same.command("DEBUG", "DIGEST"), log)
        return 1


class Mistakes(Compact):
    """A log with annotations and an accidental FLUSHALL."""

    def test_the_log_ends_at_any_second_and_omits_the_excluded_commands(self):
        config = {"appendonly": "yes", "aof-timestamp-enabled": "yes", "appendfsync": "no"}
        rng = random.Random(SEED)
        with redis_server.RedisServer(config) as server, redis_server.RedisServer() as other:
            log = os.path.join(server.dir, "appendonlydir")
            seconds = self.write_seconds(server, rng)
            before = server.command("DEBUG", "DIGEST")
            server.command("FLUSHALL")
            for command in writes(rng, COMMANDS):
                send(server, command)
            after = server.command("DEBUG", "DIGEST")

            self.assertEqual(self.digest_of(other, log), after)
            for second, digest in seconds:
                self.assertEqual(self.digest_of(other, log, "--until-time", str(second)), digest)
            flush = self.find(log, "FLUSHALL")
            place = f"{flush['file']}:{flush['offset']}"
            self.assertEqual(self.digest_of(other, log, "--until-offset", place), before)
            skipped = self.digest_of(other, log, "--skip-command", str(flush["number"]))
            self.assertEqual(self.digest_of(other, log, "--skip-command", place), skipped)
            self.assertNotIn(skipped, (before, after))
            self.assertEqual(self.replayed_without(log, flush["number"]), skipped)

    def write_seconds(self, server, rng):
        """Three seconds, each with the digest at its end. Only seconds at whose end nothing was
        written count: on a busy machine, the writes of one may last into the next."""
        seconds = []
        for attempt in range(600):
            time.sleep(1.02 - time.time() % 1)
            begun = int(time.time())
            for command in writes(rng, max(COMMANDS >> attempt // 10, 3)):
                send(server, command)
            if int(time.time()) == begun:
                seconds.append((begun, server.command("DEBUG", "DIGEST")))
            if len(seconds) == 3:
                break
        self.assertEqual(len(seconds), 3, "the machine is too slow for this test")
        time.sleep(1.02 - time.time() % 1)
        return seconds

    def entries(self, log):
        run = subprocess.run([REDOUBT, "show", "--json", log], stdout=subprocess.PIPE, check=True)
        return [entry for entry in json.loads(run.stdout)["entries"] if "command" in entry]

    def find(self, log, name):
        found = [entry for entry in self.entries(log) if entry["command"][0].upper() == name]
        self.assertEqual(len(found), 1)
        return found[0]

    def replayed_without(self, log, number):
        """The digest of a server that is sent the log, but for one command."""
        with redis_server.RedisServer() as server:
            for entry in self.entries(log):
                if entry["number"] != number:
                    server.command(*[arg.encode("utf-8", "surrogateescape")
                                     for arg in entry["command"]])
            return server.command("DEBUG", "DIGEST")


if __name__ == "__main__":
    unittest.main()
