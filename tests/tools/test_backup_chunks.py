"""Sets that are stored as chunks, in a folder and in S3: every tool that reads or removes them."""

import glob
import json
import os
import random
import re
import shutil
import subprocess
import time

from backup_case import FIXTURES, REDOUBT, BackupCase
from s3_server import S3Server

CHUNK_GRACE = "chunk-grace = 1s\n"


def record(name, value):
    return b"\x00" + bytes([len(name)]) + name + b"\x40" + bytes([len(value)]) + value


def snapshot(keys, order=0, changed=()):
    """A snapshot of key:0 to key:N - 1 in an order that a seed gives; some have another value."""
    names = list(range(keys))
    if order:
        random.Random(order).shuffle(names)
    body = bytearray(b"REDIS0011\xfe\x00")
    for k in names:
        rng = random.Random(k + (10**9 if k in changed else 0))
        body += record(b"key:%d" % k, b"%d %x" % (k, rng.getrandbits(500)))
    return bytes(body) + b"\xff" + bytes(8)  # no checksum


class Chunks(BackupCase):
    def setUp(self):
        super().setUp()
        self.more = f"store = chunks\nspool = {self.path('spool')}\n" + CHUNK_GRACE
        self.use()

    def use(self, more="", **named):
        self.nightly(more=self.more + more, **named)

    def back_up(self, data):
        self.write("dump.rdb", data)
        self.good("backup")
        return self.sets()[-1]

    def restored(self, *args):
        self.good("restore", "--to", self.path("out.rdb"), "--force", *args)
        return self.read("out.rdb")

    def packs(self, suffix=".pack"):
        return sorted(glob.glob(self.path("repo", "nightly", "chunks", "*" + suffix)))

    def flip(self, path, at):
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1]))

    def test_a_set_takes_room_for_what_changed(self):
        first = self.back_up(snapshot(20000))
        second = self.back_up(snapshot(20000, changed=range(0, 20000, 100)))
        self.assertLess(second["stored_bytes"], first["stored_bytes"] / 20)
        self.assertEqual(second["files"][0]["compression"], "chunks")
        self.assertEqual(self.restored(), snapshot(20000, changed=range(0, 20000, 100)))
        self.assertEqual(self.restored("--set", first["id"]), snapshot(20000))
        for level in ("list", "digest", "parse"):
            self.good("verify", "--level", level)

    def test_every_snapshot_comes_back(self):
        for path in sorted(glob.glob(os.path.join(FIXTURES, "redis-[78].*", "*.rdb")))[:12]:
            shutil.copy(path, self.path("dump.rdb"))
            self.good("backup")
            with open(path, "rb") as file:
                self.assertEqual(self.restored(), file.read(), path)
        self.good("verify", "--level", "parse")

    def test_a_log_comes_back(self):
        folder = self.path("appendonlydir")
        os.mkdir(folder)
        shutil.copy(os.path.join(FIXTURES, "redis-7.0.15", "tiny.rdb"),
                    os.path.join(folder, "appendonly.aof.1.base.rdb"))
        incr = b"".join(b"*3\r\n$3\r\nSET\r\n$5\r\nk%04d\r\n$1\r\nv\r\n" % i for i in range(500))
        self.write("appendonlydir/appendonly.aof.1.incr.aof", incr)
        self.write("appendonlydir/appendonly.aof.manifest",
                   b"file appendonly.aof.1.base.rdb seq 1 type b\n"
                   b"file appendonly.aof.1.incr.aof seq 1 type i\n")
        self.use(source=folder)
        self.good("backup")
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out"), "--layout", "aof")
        self.assertEqual(self.read("out", "appendonlydir", "appendonly.aof.1.incr.aof"), incr)

    def test_one_key_is_found(self):
        self.back_up(snapshot(20000))
        self.back_up(snapshot(20000, order=1, changed={7}))
        done = self.tool("restore", "--key", "key:7", "--to", self.path("key.rdb"), "-v")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"requests", done.stdout)
        self.assertLess(len(self.read("key.rdb")), 400)
        lines = subprocess.run([REDOUBT, "convert", "--to", "ndjson", self.path("key.rdb")],
                               capture_output=True, check=True).stdout
        rng = random.Random(7 + 10**9)
        self.assertIn(b"7 %x" % rng.getrandbits(500), lines)
        done = self.tool("restore", "--key", "none", "--to", self.path("none.rdb"))
        self.assertEqual(done.returncode, 1)
        self.good("restore", "--key", "key:7", "--prefix", "key:", "--to", self.path("both.rdb"))
        self.assertLess(len(self.read("both.rdb")), 400)

    def test_keys_are_found_by_what_they_begin_with(self):
        names = [b"user:%d:%s" % (u, f) for u in range(20000) for f in (b"cart", b"name")]
        body = b"".join(record(n, n + b"%x" % random.Random(n).getrandbits(500)) for n in names)
        self.back_up(b"REDIS0011\xfe\x00" + body + b"\xff" + bytes(8))
        for args in (("--prefix", "user:77:"), ("--match", "user:77:*")):
            done = self.json("restore", "--to", self.path("out.rdb"), "--force", *args)[0]
            self.assertEqual(done["keys"], 2)
            self.assertLess(done["read_bytes"], done["set_bytes"] / 2)
            self.assertLessEqual(done["read_requests"], 6)
            self.assertIn(b"user:77:cart", self.read("out.rdb"))
        said = self.good("restore", "--key", "user:5:name", "--to", self.path("key.rdb"))
        self.assertRegex(said, rb"read [0-9.,]+ .* in [3-9] requests, of .* that the set has")
        self.assertNotIn("read_bytes", self.json(
            "restore", "--prefix", "use", "--to", self.path("use.rdb"))[0])

    def test_chunks_that_follow_each_other_are_read_once(self):
        rng = random.Random(4)
        body = bytearray(b"REDIS0011\xfe\x00")
        for i in range(100000):
            body += record(b"%s:%d" % (b"few" if i < 30000 else b"many", i), rng.randbytes(250))
        self.back_up(bytes(body) + b"\xff" + bytes(8))
        done = self.json("restore", "--to", self.path("out.rdb"), "--prefix", "few:")[0]
        self.assertEqual(done["keys"], 30000)
        self.assertLess(done["read_bytes"], done["set_bytes"] * 0.4)

    def test_a_restore_over_an_older_one_reads_what_differs(self):
        datas = [snapshot(4000)]
        datas += [snapshot(4000, changed=range(i * 20, i * 20 + 40)) for i in range(1, 5)]
        datas.append(snapshot(4000, order=4, changed={1}))
        ids = [self.back_up(data)["id"] for data in datas]
        out = self.path("over.rdb")
        args = ("--to", out, "--force")
        self.assertNotIn("kept_bytes", self.json("restore", *args)[0])
        self.assertEqual(self.read("over.rdb"), datas[-1])
        for old, new in ((5, 2), (2, 3), (3, 0), (0, 4), (4, 5), (5, 5)):
            self.write("over.rdb", datas[old])
            done = self.json("restore", "--set", ids[new], *args)[0]
            self.assertEqual(self.read("over.rdb"), datas[new])
            self.assertEqual(done["kept_of"], ids[old])
            self.assertGreater(done["kept_bytes"], len(datas[new]) * 0.9)
        self.write("over.rdb", datas[0])
        said = self.good("restore", "--set", ids[1], *args)
        self.assertIn(b"of the file that was there, of set " + ids[0].encode(), said)
        for other in (datas[0][:-9], datas[0] + b"x", b"", datas[0][:5000] + b"!" +
                      datas[0][5001:]):
            self.write("over.rdb", other)
            self.assertNotIn("kept_of", self.json("restore", "--set", ids[1], *args)[0])
            self.assertEqual(self.read("over.rdb"), datas[1])
        os.mkdir(self.path("data"))
        self.write("data/dump.rdb", datas[0])
        done = self.json("restore", "--set", ids[1], "--to", self.path("data"), "--force")[0]
        self.assertEqual(done["kept_of"], ids[0])
        self.assertLess(done["read_bytes"], 60000)
        self.assertEqual(self.read("data", "dump.rdb"), datas[1])

    def test_sizes(self):
        self.back_up(snapshot(20000))
        self.back_up(snapshot(20000, changed={7}))
        one, two = self.json("list", "--sizes")[0]["sets"]
        for found in (one, two):
            self.assertGreater(found["needed_bytes"], one["stored_bytes"] / 2)
            self.assertLess(found["freed_bytes"], one["stored_bytes"] / 2)
        self.assertIn(b"its removal would free", self.good("list", "--sizes"))
        self.assertNotIn("freed_bytes", self.sets()[0])

    def test_damage_is_named_and_the_parity_gives_the_bytes(self):
        one = self.back_up(snapshot(3000))
        two = self.back_up(snapshot(3000, changed={5}))
        self.flip(max(self.packs(), key=os.path.getsize), 30000)
        done, status = self.json("verify")
        self.assertEqual(status, 1)
        self.assertEqual({d["id"] for d in done["chunks"]}, {one["id"], two["id"]})
        self.assertTrue(all(d["recoverable"] and d["names"] for d in done["chunks"]))
        self.assertIn(b"key:", self.tool("verify").stdout)
        self.assertEqual(self.restored("--set", one["id"]), snapshot(3000))
        self.flip(max(self.packs(), key=os.path.getsize), 30000)
        self.good("verify")

    def test_other_keys_than_damaged_ones_come_back(self):
        keys = 20000
        one = self.back_up(snapshot(keys))
        args = ("restore", "--set", one["id"], "--to", self.path("out.rdb"), "--force")
        pack = max(self.packs(), key=os.path.getsize)
        self.flip(pack, 30000)
        self.good(*args, "--skip-damaged")
        self.assertEqual(self.read("out.rdb"), snapshot(keys))
        os.unlink(self.path("out.rdb"))  # which has all that the pack has
        self.flip(pack, os.path.getsize(pack) // 2)
        self.fails(1, "damaged", *args)
        done = self.fails(8, "left out", *args, "--skip-damaged")
        lost = int(re.search(rb"([\d ,]+) records? w", done.stderr).group(1).replace(b",", b""))
        lines = subprocess.run([REDOUBT, "convert", "--to", "ndjson", self.path("out.rdb")],
                               capture_output=True, check=True).stdout.splitlines()
        names = {json.loads(line)["key"] for line in lines if b'"key"' in line}
        self.assertIn(len(names), range(keys - lost, keys - lost + 3))
        self.assertTrue(0 < len(names) < keys)
        self.fails(2, "--skip-damaged", *args, "--skip-damaged", "--target-time", "-1m")

    def test_a_pack_that_is_missing(self):
        self.back_up(snapshot(3000))
        os.unlink(max(self.packs(), key=os.path.getsize))
        for level in ("list", "digest"):
            done = self.tool("verify", "--level", level)
            self.assertEqual(done.returncode, 1, level)
            self.assertIn(b"missing", done.stdout)
        self.assertNotEqual(self.tool("restore", "--to", self.path("out.rdb")).returncode, 0)
        self.assertFalse(os.path.exists(self.path("out.rdb")))
        self.back_up(snapshot(3000))
        self.assertEqual(self.restored(), snapshot(3000))

    def test_prune_removes_what_no_set_needs_after_its_time(self):
        prune = ("prune", "--confirm", "--keep", "count 1")
        self.back_up(snapshot(3000))
        last = self.back_up(snapshot(3000, changed=range(2000)))
        self.good(*prune)
        self.assertEqual(len(self.sets()), 1)
        before = len(self.packs())
        self.good(*prune)
        self.assertEqual(len(self.packs()), before)
        for _ in range(3):
            time.sleep(1.1)
            self.good(*prune)
        self.assertEqual(self.restored(), snapshot(3000, changed=range(2000)))
        self.assertTrue(self.packs(".moved") or len(self.packs()) < before or
                        any(last["id"] in p for p in self.packs()))
        self.good("verify", "--level", "parse")
        self.back_up(snapshot(10))
        self.good(*prune)
        for _ in range(3):
            time.sleep(1.1)
            self.good(*prune)
        self.assertLessEqual(len(self.packs()), 4)
        self.assertEqual(self.restored(), snapshot(10))

    def test_without_the_key_nothing_is_known_and_nothing_removed(self):
        self.back_up(snapshot(3000))
        self.back_up(snapshot(3000, changed={1}))
        key = self.read("key")
        self.nightly(more=self.more, sealed=False)
        done = self.tool("verify")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.good("prune", "--confirm", "--keep", "count 1")
        time.sleep(1.1)
        done = self.tool("prune", "--confirm", "--keep", "count 1")
        self.assertIn(b"chunks are kept", done.stderr)
        self.assertEqual(len(self.packs()), 2)
        self.write("key", key)
        self.use()
        self.assertEqual(self.restored(), snapshot(3000, changed={1}))

    def test_a_passphrase(self):
        self.write("pass", "correct horse")
        self.nightly(sealed=False, more=self.more + f"passphrase-file = {self.path('pass')}\n")
        first = self.back_up(snapshot(5000))
        second = self.back_up(snapshot(5000, changed={1}))
        self.assertLess(second["stored_bytes"], first["stored_bytes"] / 10)
        self.assertEqual(self.restored(), snapshot(5000, changed={1}))
        self.good("verify", "--level", "parse")

    def test_another_key_shares_nothing(self):
        first = self.back_up(snapshot(5000))
        os.rename(self.key, self.path("old"))
        self.make_key()
        second = self.back_up(snapshot(5000))
        self.assertGreater(second["stored_bytes"], first["stored_bytes"] / 2)
        self.assertEqual(self.restored(), snapshot(5000))

    def test_two_repositories(self):
        self.use(f"repository = {self.path('other')}\n")
        self.back_up(snapshot(5000))
        shutil.rmtree(self.path("other"))
        self.back_up(snapshot(5000, changed={1}))
        self.assertEqual(self.restored("--repository", self.path("other")),
                         snapshot(5000, changed={1}))
        self.assertEqual(self.restored("--repository", self.path("repo")),
                         snapshot(5000, changed={1}))

    def test_the_setting(self):
        self.nightly(more="store = rows\n")
        self.fails(2, "store must be file or chunks", "backup")

    def test_sets_of_both_kinds(self):
        self.nightly(more=f"spool = {self.path('spool')}\n")
        self.back_up(snapshot(3000))
        self.use()
        self.back_up(snapshot(3000, changed={1}))
        self.nightly(more=f"spool = {self.path('spool')}\n")
        self.back_up(snapshot(3000, changed={2}))
        self.good("verify", "--level", "parse")
        self.assertEqual(self.restored("--set", self.sets()[1]["id"]),
                         snapshot(3000, changed={1}))


class InS3(Chunks):
    """The same in a bucket."""

    def setUp(self):
        self.s3 = S3Server()
        self.s3.__enter__()
        self.addCleanup(self.s3.__exit__, None, None, None)
        super().setUp()

    def use(self, more="", **named):
        self.write("s3key", f"{self.s3.access_key}\n{self.s3.secret_key}\n")
        self.repository = "s3://vault/some/where"
        super().use(f"s3-endpoint = {self.s3.url}\ns3-key-file = {self.path('s3key')}\n" + more,
                    **named)

    def packs(self, suffix=".pack"):
        return sorted(k for k in self.s3.objects if k.endswith(suffix))

    def test_one_key_takes_few_requests(self):
        self.back_up(snapshot(20000))
        self.back_up(snapshot(20000, order=1, changed={7}))
        begin = len(self.s3.requests)
        self.restored("--key", "key:7")
        ranges = [r for r in self.s3.requests[begin:] if r[0] == "GET" and ".pack" in r[1]]
        self.assertLessEqual(len(ranges), 6)

    # What a folder shows in another way.
    test_damage_is_named_and_the_parity_gives_the_bytes = None
    test_other_keys_than_damaged_ones_come_back = None
    test_a_pack_that_is_missing = None
    test_two_repositories = None
    test_sets_of_both_kinds = None
    test_without_the_key_nothing_is_known_and_nothing_removed = None
    test_a_passphrase = None
    test_the_setting = None
    test_every_snapshot_comes_back = None
    test_a_log_comes_back = None


if __name__ == "__main__":
    import unittest

    unittest.main()
