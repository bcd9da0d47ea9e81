"""What `redoubt check-rdb --salvage` saves of damaged snapshots is loaded by a real server, and
every key that the damage did not touch has there the value it had before.

The server has sanitize-dump-payload yes. Fixtures that it loads are damaged at
random: a bit flips, 16 bytes are noise, 4 KiB are zeros, the file is cut. REDOUBT_SEED repeats a
run; REDOUBT_ROUNDS is how often each damage is done to each fixture.
"""

import bisect
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import manifest  # noqa: E402
import redis_server  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
SEED = int(os.environ.get("REDOUBT_SEED", "20240501"))
ROUNDS = int(os.environ.get("REDOUBT_ROUNDS", "1"))
RDB_VERSION = 10

EVENT = re.compile(r"^  (\d+) \(0x[0-9a-f]+\) +([a-z-]+) ")


def snapshots():
    """(name, bytes) of what servers wrote and ours loads."""
    for row in manifest.read(FIXTURES).values():
        if row.kind == "rdb" and row.path.startswith(("redis-", "valkey-")):
            with open(os.path.join(FIXTURES, row.path), "rb") as f:
                data = f.read()
            if data[:5] == b"REDIS" and int(data[5:9]) <= RDB_VERSION:
                yield row.path, data


class Records:
    """Where the records of a sound snapshot begin, and what they are."""

    def __init__(self, path):
        done = subprocess.run(
            [REDOUBT, "check-rdb", "-v", path], stdout=subprocess.PIPE, check=False)
        self.begins, self.kinds = [], []
        for line in done.stdout.decode().splitlines():
            found = EVENT.match(line)
            if found:
                self.begins.append(int(found.group(1)))
                self.kinds.append(found.group(2))

    def touched(self, first, last):
        """Numbers of the records that have a byte of [first, last)."""
        begin = max(bisect.bisect_right(self.begins, first) - 1, 0)
        return range(begin, bisect.bisect_left(self.begins, last))


def flip(rng, data):
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)
    return at, at + 1


def noise(rng, data):
    at = rng.randrange(len(data) - 16)
    data[at:at + 16] = rng.randbytes(16)
    return at, at + 16


def zeros(rng, data):
    at = rng.randrange(len(data))
    length = min(4096, len(data) - at)
    data[at:at + length] = bytes(length)
    return at, at + length


def cut(rng, data):
    at = rng.randrange(len(data))
    size = len(data)
    del data[at:]
    return at, size


DAMAGES = (flip, noise, zeros, cut)


class Salvage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = redis_server.RedisServer({"databases": "17000"})
        self.addCleanup(self.server.close)
        self.server.__enter__()
        print(f"# seed {SEED}")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def digests(self, path):
        """{(db, key): digest} of a snapshot; None where the server refuses it."""
        # A server that has just restarted keeps nothing of this.
        self.server.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        try:
            self.server.load(path)
        except (redis_server.ServerDied, redis_server.ReplyError):
            return None
        found = {}
        for db in self.server.databases():
            self.server.command("SELECT", db)
            keys = self.server.command("KEYS", "*")
            if keys:
                values = self.server.command("DEBUG", "DIGEST-VALUE", *keys)
                found.update(((db, key), value) for key, value in zip(keys, values))
        self.server.command("SELECT", 0)
        return found

    def keys_by_record(self, path):
        """For each record of a key, in the order of the file, (db, key): from the lines that
        `convert` writes, which have one for each key."""
        done = subprocess.run(
            [REDOUBT, "convert", "--to", "ndjson", "--strings=hex", path],
            stdout=subprocess.PIPE, check=True)
        line = re.compile(rb'^{"db":(\d+),(?:"slot":\d+,)?"key":"([0-9a-f]*)"')
        found = [line.match(text) for text in done.stdout.splitlines()]
        return [(int(m.group(1)), bytes.fromhex(m.group(2).decode())) for m in found]

    def salvage(self, data):
        """Path of what was saved, or None."""
        out = self.path("out.rdb")
        if os.path.exists(out):
            os.unlink(out)
        path = self.write("damaged.rdb", data)
        done = subprocess.run(
            [REDOUBT, "check-rdb", "--salvage", out, path], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, check=False, timeout=600)
        self.assertIn(done.returncode, (0, 1, 8), done.stderr.decode(errors="replace"))
        return out if os.path.exists(out) else None

    def whole_keys(self, records, keys, touched):
        """Those whose record is untouched, and so is the one that says their database."""
        of_keys = iter(keys)
        db_is_sure, whole = True, set()
        for number, kind in enumerate(records.kinds):
            if kind == "db":
                db_is_sure = number not in touched
            elif kind == "key":
                key = next(of_keys)
                if db_is_sure and number not in touched:
                    whole.add(key)
        return whole

    def one(self, name, data, damage, rng):
        bad = bytearray(data)
        first, last = damage(rng, bad)
        what = f"{name}, {damage.__name__} of bytes {first} to {last}, seed {SEED}"
        touched = self.records.touched(first, last)
        kinds = {self.records.kinds[number] for number in touched}
        whole = self.whole_keys(self.records, self.keys, touched) & set(self.before)
        out = self.salvage(bytes(bad))
        after = {} if out is None else self.digests(out)
        if after is None:
            # A library that no longer compiles and a database that the server has not look sound.
            if not kinds & {"function", "db"}:
                self.problems.append(f"{what}: the server refuses what was saved")
            return
        self.compare(what, whole, after, len(touched), "db" in kinds)

    def compare(self, what, whole, after, n_touched, other_db):
        """other_db: keys may have come into another database, and in the way of keys there."""
        wrong = [key for key in whole if key in after and after[key] != self.before[key]]
        if wrong and not other_db:
            self.problems.append(f"{what}: another value: {sorted(wrong)[:3]}")
        strange = set(after) - set(self.before)
        if len(strange) > n_touched and whole and not other_db:
            self.problems.append(f"{what}: keys that were not there: {sorted(strange)[:3]}")
        lost = len(whole - set(after))
        self.n_whole += len(whole)
        self.n_saved += len(whole) - lost
        if lost > len(whole) // 2 + 1:
            self.losses.append(f"{what}: {lost} of {len(whole)} are lost")

    def test_what_damage_did_not_touch_is_saved_as_it_was(self):
        self.problems, self.losses = [], []
        self.n_whole = self.n_saved = files = 0
        for name, data in snapshots():
            path = self.write("whole.rdb", data)
            self.before = self.digests(path)
            if not self.before:
                continue  # modules that the server has not, functions alone, all expired
            self.records = Records(path)
            self.keys = self.keys_by_record(path)
            self.assertEqual(self.records.kinds.count("key"), len(self.keys), name)
            files += 1
            rng = random.Random(f"{SEED} {name}")
            for _ in range(ROUNDS):
                for damage in DAMAGES:
                    self.one(name, data, damage, rng)
        print(f"# {files} files, {self.n_saved} of {self.n_whole} untouched keys were saved")
        for line in self.losses:
            print(f"# {line}")
        for line in self.problems:
            print(f"# {line}")
        self.assertFalse(self.problems)
        self.assertGreater(files, 40)
        self.assertGreater(self.n_saved, self.n_whole * 95 // 100)


if __name__ == "__main__":
    unittest.main()
