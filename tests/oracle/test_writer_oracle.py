"""What `redoubt convert --to rdb` writes is loaded by a real server, and compared inside it.

A fixture that it loads is written again, element by element, in its own
version and in version 10; the server must load that too and hold the same dataset.
"""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import facts  # noqa: E402
import redis_server  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
RDB_VERSION = 10  # that every server of these tests loads
RDB_VERSION_MIN = 6  # that the writer writes


def snapshots():
    """(path, version) of all fixtures that say they are of Redis and no newer than the server."""
    for folder, _, names in sorted(os.walk(FIXTURES)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.endswith(".rdb") or ".aof.d" in path or "aofdir-" in path:
                continue
            with open(path, "rb") as f:
                magic = f.read(9)
            if magic[:5] == b"REDIS" and magic[5:].isdigit() and int(magic[5:]) <= RDB_VERSION:
                yield path, int(magic[5:])


def convert(*args):
    run = subprocess.run(
        [REDOUBT, "convert", "--to", "rdb", *args], stderr=subprocess.PIPE, timeout=600
    )
    return run.returncode, run.stderr.decode(errors="replace")


def rewrite(path, version, out):
    """As a server, it reads the first snapshot of a file with more in it."""
    return convert("--rewrite", "--rdb-version", str(version), "--input-format", "rdb", path,
                   "-o", out, "--force")


def living_lines(path):
    run = subprocess.run(
        [REDOUBT, "convert", "--to", "ndjson", "--no-expired", path], stdout=subprocess.PIPE,
        timeout=600,
    )
    return facts.read_lines(run.stdout)[0]


def wanted(line):
    """What the server must answer to reported() for a line."""
    decode = facts.DECODE["utf8"]
    value = line["value"]
    if line["type"] == "string":
        return decode(value)
    if line["type"] == "list":
        return [decode(v) for v in value]
    if line["type"] == "set":
        return {decode(v) for v in value}
    if line["type"] == "hash":
        return {decode(f): decode(v) for f, v in value.items()}
    if line["type"] == "zset":
        return {decode(m): facts.score_bits(score + 0.0 if score == 0 else score)
                for m, score in value}
    return [(e["id"], [decode(x) for pair in e["fields"] for x in pair]) for e in value["entries"]]


def reported(server, line):
    key = facts.DECODE["utf8"](line["key"])
    kind = server.command("TYPE", key)
    if kind == b"string":
        return server.command("GET", key)
    if kind == b"list":
        return server.command("LRANGE", key, 0, -1)
    if kind == b"set":
        return set(server.command("SMEMBERS", key))
    if kind == b"hash":
        got = server.command("HGETALL", key)
        return dict(zip(got[::2], got[1::2]))
    if kind == b"zset":
        got = server.command("ZRANGE", key, 0, -1, "WITHSCORES")
        return {m: facts.score_bits(float(s) + 0.0) for m, s in zip(got[::2], got[1::2])}
    return [(e[0].decode(), e[1]) for e in server.command("XRANGE", key, "-", "+")]


def without_layout(info):
    """XINFO STREAM without what depends on how entries fell into nodes, and on the clock."""
    items = list(info)
    out = []
    for name, value in zip(items[::2], items[1::2]):
        if not name.startswith(b"radix-tree"):
            out.append((name, value))
    return out


def zset(server, key):
    """Members and scores. The server turns -0 into 0 where it packs a skip list on loading; we keep
    it, so it is taken for 0 here, and the digest cannot be compared."""
    items = server.command("ZRANGE", key, 0, -1, "WITHSCORES")
    return [(m, b"0" if score == b"-0" else score) for m, score in zip(items[::2], items[1::2])]


def has_minus_zero(server):
    """Whether a sorted set of database 0 has a score of -0."""
    server.command("SELECT", 0)
    zsets = [key for key in server.command("KEYS", "*") if server.command("TYPE", key) == b"zset"]
    return any(b"-0" in server.command("ZRANGE", k, 0, -1, "WITHSCORES")[1::2] for k in zsets)


def content(server):
    """Digest of the dataset, and what the digest leaves out: expiries, groups, functions."""
    out = {"digest": server.command("DEBUG", "DIGEST")}
    for db in server.databases():
        server.command("SELECT", db)
        for key in sorted(server.command("KEYS", "*")):
            about = [server.command("PEXPIRETIME", key)]
            kind = server.command("TYPE", key)
            if kind == b"zset":
                about.append(zset(server, key))
            else:
                about.append(server.command("DEBUG", "DIGEST-VALUE", key))
            if kind == b"stream":
                info = server.command("XINFO", "STREAM", key, "FULL", "COUNT", 0)
                about.append(without_layout(info))
            out[db, key] = about
    server.command("SELECT", 0)
    out["functions"] = server.command("FUNCTION", "LIST", "WITHCODE")
    return out


class ServerCase(unittest.TestCase):
    """Has a server of its own for each test, and a place for an output."""

    maxDiff = 4000
    out_name = "out.rdb"

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.out = os.path.join(self.dir.name, self.out_name)
        server = redis_server.RedisServer({"databases": "17000"})
        self.server = server.__enter__()
        self.addCleanup(server.close)
        self.quiet()

    def quiet(self):
        self.server.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)

    def loads(self, path):
        try:
            self.server.load(path)
            return True
        except (redis_server.ServerDied, redis_server.ReplyError):
            self.quiet()
            return False


class WrittenAnew(ServerCase):
    def assert_loads_the_same(self, want, what):
        try:
            self.server.load(self.out)
        except (redis_server.ServerDied, redis_server.ReplyError) as e:
            self.quiet()
            self.fail(f"{what} does not load: {e}")
        got = content(self.server)
        for name in want.keys() | got.keys():
            if name != "digest":
                self.assertEqual(want.get(name), got.get(name), f"{what}: {name}")
        if not has_minus_zero(self.server):
            self.assertEqual(want["digest"], got["digest"], what)

    def test_rewritten_fixtures_load_with_the_same_digest(self):
        loaded = 0
        for path, version in snapshots():
            if not self.loads(path):
                continue
            want = content(self.server)
            if path.endswith(os.path.join("redis-7.0-rc1", "functions.rdb")):
                continue  # its functions have a form that only that server reads; refused, rightly
            for target in sorted({max(version, RDB_VERSION_MIN), RDB_VERSION}):
                with self.subTest(f"{os.path.relpath(path, FIXTURES)} as version {target}"):
                    status, text = rewrite(path, target, self.out)
                    if status == 1 and "damaged" in path:
                        continue  # the server is more forgiving than we are: see the manifest
                    self.assertEqual((status, text), (0, ""))
                    self.assert_loads_the_same(want, f"version {target}")
                    loaded += 1
        self.assertGreater(loaded, 40)

    def test_files_of_newer_servers_made_older_load_with_all_their_keys(self):
        n = 0
        for folder, _, names in sorted(os.walk(FIXTURES)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                reported = path[:-4] + ".json"
                if not name.endswith(".rdb") or not os.path.exists(reported):
                    continue
                with open(path, "rb") as f:
                    if int(f.read(9)[-3:]) <= RDB_VERSION:
                        continue
                with self.subTest(os.path.relpath(path, FIXTURES)):
                    self.newer(path)
                    n += 1
        self.assertGreater(n, 10)

    def newer(self, path):
        status, text = convert("--for", "redis-7.0", "--lossy", path, "-o", self.out, "--force")
        self.assertEqual(status, 0, text)
        if os.path.basename(path) == "module.rdb":
            return  # the server has no such modules
        self.server.load(self.out)
        lines = living_lines(self.out)
        for line in lines:
            self.server.command("SELECT", line["db"])
            self.assertEqual(reported(self.server, line), wanted(line))
        total = 0
        for db in self.server.databases():
            self.server.command("SELECT", db)
            total += self.server.command("DBSIZE")
        self.assertEqual(total, len(lines))

    def test_rewritten_dump_payloads_are_the_values_that_restore_makes(self):
        files = 0
        for folder, _, names in sorted(os.walk(FIXTURES)):
            if "dump-payloads.json" not in names:
                continue
            reported = facts.load(os.path.join(folder, "dump-payloads.json"))
            payloads = [(facts.key_bytes(e), bytes.fromhex(e["payload"]))
                        for e in reported["entries"]]
            version = max(int.from_bytes(p[-10:-8], "little") for _, p in payloads)
            if version > RDB_VERSION:
                continue
            with self.subTest(os.path.relpath(folder, FIXTURES)):
                self.payloads(payloads, version)
                files += 1
        self.assertGreater(files, 0)

    def payloads(self, payloads, version):
        self.server.command("FLUSHALL")
        kept = []
        for key, payload in payloads:
            try:
                self.server.command("RESTORE", key, 0, payload)
                kept.append((key, payload))
            except redis_server.ReplyError:
                pass  # a module's value
        self.assertGreater(len(kept), len(payloads) // 2)
        want = content(self.server)
        path = os.path.join(self.dir.name, "payloads.rdb")
        with open(path, "wb") as f:
            f.write(b"REDIS%04d\xfe\x00" % version)
            for key, payload in kept:
                head = b"\x80" + len(key).to_bytes(4, "big")
                f.write(payload[:1] + head + key + payload[1:-10])
            f.write(b"\xff" + b"\0" * 8)
        for target in sorted({max(version, RDB_VERSION_MIN), RDB_VERSION}):
            status, text = rewrite(path, target, self.out)
            self.assertEqual((status, text), (0, ""))
            self.assert_loads_the_same(want, f"version {target}")


if __name__ == "__main__":
    unittest.main()
