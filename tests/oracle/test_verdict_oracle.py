"""What check-rdb says of changed snapshots, beside a server that loads them with
sanitize-dump-payload yes: what is sound loads.

The checksum of every file is 0 (disabled), so that the structure alone decides. The changes are
random with a fixed seed. Libraries of functions are left out: whether their code compiles is not
checked.
"""

import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ["REDOUBT_FIXTURES"]
RDB_MAX = 10
N_FILES = 150
SIZE_MAX = 30000

# Lengths, encodings, types and opcodes.
BYTES = (0, 1, 2, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 0x3F, 0x40, 0x7F, 0x80, 0x81,
         0xC0, 0xC1, 0xC3, 0xE0, 0xF0, 0xF1, 0xF5, 0xFA, 0xFB, 0xFC, 0xFE, 0xFF)


def without_checksum(data):
    return data[:-8] + bytes(8) if int(data[5:9]) >= 5 else data


def change(rng, data):
    data = bytearray(data)
    at = rng.randrange(9, len(data) - 8)
    kind = rng.randrange(5)
    if kind == 0:
        data[at] = rng.choice(BYTES)
    elif kind == 1:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 2:
        data[at] = (data[at] + rng.choice((1, 255))) & 255
    elif kind == 3:
        del data[at:at + rng.choice((1, 2, 8))]
    else:
        source = rng.randrange(9, len(data) - 8)
        data[at:at] = data[source:source + rng.choice((1, 8, 40))]
    return bytes(data)


def snapshots():
    for path in sorted(glob.glob(os.path.join(FIXTURES, "redis-*", "*.rdb"))):
        if "module" in path or "function" in path or os.path.getsize(path) > SIZE_MAX:
            continue
        with open(path, "rb") as file:
            data = file.read()
        if len(data) > 40 and int(data[5:9]) <= RDB_MAX:
            yield path, data


class Verdict(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def sound(self, paths):
        """Those of the files that are sound."""
        done = subprocess.run([REDOUBT, "check-rdb", "--json", *paths], capture_output=True)
        files = json.loads(done.stdout)["files"]
        return [file["file"] for file in files if file["verdict"] in ("ok", "warnings")]

    def loads(self, server, path):
        try:
            server.load(path)
        except (redis_server.ServerDied, redis_server.ReplyError, OSError):
            return False
        return True

    def check(self, cases):
        """cases: name of a file to what it was made of. Every sound one loads."""
        sound = self.sound(list(cases))
        with redis_server.RedisServer({"databases": "17000"}) as server:
            for path in sound:
                self.assertTrue(self.loads(server, path), cases[path])
        return len(sound)

    def test_a_changed_file_that_is_sound_loads(self):
        rng = random.Random(20)
        known = list(snapshots())
        cases = {}
        for n in range(N_FILES):
            path, data = rng.choice(known)
            changed = without_checksum(change(rng, data))
            cases[self.write(f"{n}.rdb", changed)] = os.path.relpath(path, FIXTURES)
        self.assertGreater(self.check(cases), N_FILES // 20)

    def test_a_stream_with_one_node_twice_is_refused_by_both(self):
        path = os.path.join(FIXTURES, "damaged", "stream-node-twice.rdb")
        self.assertEqual(self.sound([path]), [])
        with redis_server.RedisServer() as server:
            self.assertFalse(self.loads(server, path))


if __name__ == "__main__":
    unittest.main()
