"""The memory that `redoubt stat` estimates, beside what a real server frees with a key.

It loads a file, and used_memory falls by so much when a key is deleted.
The sum over all keys of a type is compared with ours for this server.
"""

import collections
import csv
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
RDB_VERSION = 10
TOLERANCE = 0.15
ESCAPE = re.compile(rb"\\(\\|x..)")


def unescape(text):
    def one(m):
        return b"\\" if m[1] == b"\\" else bytes([int(m[1][1:], 16)])

    return ESCAPE.sub(one, text.encode())


def ours(path, *options):
    """(database, key) -> (type, bytes)."""
    run = subprocess.run([REDOUBT, "stat", "--csv", "--no-expired", "--for",
                          "-".join(redis_server.installed()), *options, path],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    if run.returncode == 1 and b"no key matches" in run.stderr:
        return {}
    run.check_returncode()
    rows = csv.DictReader(run.stdout.decode().splitlines())
    return {(int(row["database"]), unescape(row["key"])): (row["type"], int(row["size_in_bytes"]))
            for row in rows}


def used(command):
    return int(command("INFO", "memory").split(b"used_memory:")[1].split(b"\r\n")[0])


def freed(command, key):
    """The bytes that the server frees with a key; None where it has no such key. An expiry is in a
    table of its own, which stat does not count with the key."""
    command("PERSIST", key)
    before = used(command)
    return before - used(command) if command("DEL", key) else None


def warm_up(command):
    """The server allocates figures of each command when it is called first, and more when it
    deletes the first key."""
    for _ in range(2):
        command("SET", b"first", b"value")
        freed(command, b"first")


def snapshots():
    """Sound fixtures of servers up to the version of ours."""
    for folder, _, names in sorted(os.walk(FIXTURES)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.endswith(".rdb") or "damaged" in path or ".d" in os.path.basename(folder):
                continue
            with open(path, "rb") as f:
                magic = f.read(9)
            if magic[:5] == b"REDIS" and magic[5:].isdigit() and int(magic[5:]) <= RDB_VERSION:
                yield path


class Memory(unittest.TestCase):
    def setUp(self):
        server = redis_server.RedisServer({"databases": "17000"})
        self.server = server.__enter__()
        self.addCleanup(server.close)
        self.server.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        self.sums = collections.defaultdict(lambda: [0, 0])
        warm_up(self.server.command)

    def compare(self, path):
        """Adds up what both say of the keys in a file."""
        db = None
        for (number, key), (kind, size) in sorted(ours(path).items()):
            if number != db:
                self.server.command("SELECT", number)
                db = number
            usage = freed(self.server.command, key)
            if usage is not None:
                self.sums[kind][0] += size
                self.sums[kind][1] += usage

    def check(self, *kinds):
        wrong = []
        for kind in kinds:
            mine, theirs = self.sums[kind]
            print(f"# {kind}: {mine} estimated, {theirs} freed, "
                  f"{100 * (mine / max(theirs, 1) - 1):+.2f} %")
            if theirs == 0 or abs(mine / theirs - 1) > TOLERANCE:
                wrong.append(f"{kind}: {mine} estimated, {theirs} freed")
        self.assertEqual(wrong, [])

    def fill(self):
        """Values of many sizes, in every encoding."""
        rng = random.Random(20240501)
        command = self.server.command
        for i in range(400):
            n = int(10 ** (rng.random() * 3.2))
            name = "x" * rng.randrange(1, 60)
            words = [("%x" % rng.getrandbits(4 * rng.randrange(1, 30))) for _ in range(n)]
            command("SET", f"s{name}{i}", rng.choice(["z" * n, str(n), "12345678901234", "w" * 44]))
            command("RPUSH", f"l{name}{i}", *words)
            command("SADD", f"t{name}{i}", *words)
            command("SADD", f"i{name}{i}", *range(0, n * 1000, 1000))
            command("HSET", f"h{name}{i}", *[w for j in range(n) for w in (f"field{j}", words[j])])
            command("ZADD", f"z{name}{i}", *[w for j in range(n) for w in (j / 4, words[j])])
        for i in range(40):
            key, ms = f"stream{i}", 1700000000000
            for j in range(int(10 ** (rng.random() * 3.2))):
                ms += rng.randrange(5000)
                command("XADD", key, f"{ms}-{j}", "name", rng.randrange(10**6), "text",
                        "t" * rng.randrange(80))
            command("XGROUP", "CREATE", key, "group", 0)
            for name in ("ann", "bob"):
                command("XREADGROUP", "GROUP", "group", name, "COUNT", 300, "STREAMS", key, ">")
            command("EXPIRE", key, 10**6)

    def test_fixtures(self):
        n = 0
        for path in snapshots():
            try:
                self.server.load(path)
            except (redis_server.ServerDied, redis_server.ReplyError):
                self.server.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
                continue
            self.compare(path)
            n += 1
        self.assertGreater(n, 10)
        self.check("string", "list", "set", "zset", "hash", "stream")

    def test_values_of_many_sizes(self):
        self.fill()
        self.server.command("SAVE")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "copy.rdb")
            with open(self.server.rdb, "rb") as source, open(path, "wb") as copy:
                copy.write(source.read())
            self.server.load(path)
            self.compare(path)
        self.check("string", "list", "set", "zset", "hash", "stream")


class LongPackedValues(unittest.TestCase):
    """A packed value that is too long for one event of the reader is still one allocation. The
    server packs without limits, so that what it loads stays packed."""

    CONFIG = {"hash-max-listpack-entries": "1000000", "hash-max-listpack-value": "1000000",
              "zset-max-listpack-entries": "1000000", "zset-max-listpack-value": "1000000",
              "set-max-intset-entries": "1000000", "list-max-listpack-size": "1000000",
              "stream-node-max-bytes": "0", "stream-node-max-entries": "0"}
    TOLERANCE = 0.01

    def fill(self, command):
        for size in (200, 60_000, 64_000, 65_400, 65_600, 70_000, 131_100, 300_000, 1_100_000):
            # A server adds to a packed value in O(n), so values have few elements.
            for element in (100, 700, 5000) if size < 200_000 else (9000,):
                n = max(size // element, 1)
                words = [b"%0*d" % (element, i) + b"w" for i in range(n)]
                name = b"%d:%d" % (size, element)
                command("RPUSH", b"list:" + name, *words)
                command("HSET", b"hash:" + name, *(w for i, word in enumerate(words)
                                                   for w in (b"f%d" % i, word)))
                command("ZADD", b"zset:" + name, *(w for i, word in enumerate(words)
                                                   for w in (i / 4, word)))
                for i, word in enumerate(words):
                    command("XADD", b"stream:" + name, f"1700000000000-{i + 1}", "f", word)
            for step in (1, 10**5, 10**12):
                command("SADD", b"set:%d:%d" % (size, step), *range(0, size // 8 * step, step))
            command("XADD", b"one:%d" % size, "1-1", "f", b"x" * size)
        # Long elements get nodes of their own, which are not packed.
        command("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "10000")
        for size in (10_001, 65_535, 65_536, 70_000, 300_000):
            command("RPUSH", b"plain:%d" % size, b"a", b"x" * size, b"b", b"y" * (size + 1))
        command("SAVE")

    def wrong_keys(self, server, estimated, turn):
        """The keys are deleted in an order that is another one in every turn."""
        server.stop()  # with it the buffers of the connection, which would shrink later
        server.start()
        warm_up(server.command)
        wrong = []
        for (_, key), (_, mine) in random.Random(turn).sample(list(estimated.items()),
                                                              len(estimated)):
            theirs = freed(server.command, key)
            if abs(mine / theirs - 1) > self.TOLERANCE:
                wrong.append((key, mine, theirs))
        self.assertEqual(server.command("DBSIZE"), 0)
        return wrong

    def test_each_key_is_as_large_as_the_server_says(self):
        with redis_server.RedisServer(self.CONFIG) as server:
            self.fill(server.command)
            estimated = ours(server.rdb)
            wrong = self.wrong_keys(server, estimated, 0)
            for turn in range(1, 4):  # a buffer may shrink while a key is deleted
                if wrong:
                    again = {key for key, _, _ in self.wrong_keys(server, estimated, turn)}
                    wrong = [row for row in wrong if row[0] in again]
            self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
