"""The indexes of keys that `redoubt archive` writes, and `redoubt history` reads."""

import glob
import hashlib
import json
import os
import re
import shutil
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import ssh_server  # noqa: E402
from archive_case import ArchiveCase  # noqa: E402
from fake_server import crc64  # noqa: E402
from s3_server import S3Server  # noqa: E402

HEADER, DIGEST = 160, 32  # of an index of keys; at the end of an object that is not sealed
PLAIN = "compress = none\n"


def without_age(out):
    """The output of `list` without the ages of sets, which depend on when it ran."""
    return re.sub(rb"(?m)^(\d{4}-\d\d-\d\d \d\d:\d\d) +\d+ \w+", rb"\1", out)


class IndexCase(ArchiveCase):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")
        os.environ["XDG_CACHE_HOME"] = self.cache
        self.addCleanup(os.environ.pop, "XDG_CACHE_HOME")

    def archive(self, server, *batches):
        """Each batch ends a segment."""
        running = self.start()
        for batch in batches:
            self.wait_for(server)
            for line in batch:
                server.command(*line.split() if isinstance(line, str) else line)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        return running.said.decode()

    def indexes(self):
        pattern = os.path.join(self.repository, "nightly", "keys", "*", "*", "*")
        return sorted(glob.glob(pattern))

    def index_of(self, segment):
        return segment.replace("/stream/", "/keys/").replace(".seg", ".keys").replace(".lz4", "")

    def cached(self):
        return sorted(glob.glob(os.path.join(self.cache, "redoubt", "keys", "*")))

    def ask(self, *args, tool="history", status=0):
        done = self.tool(tool, *args, "--in", "nightly", "--json")
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()

    def answers(self, key, *args):
        return (self.ask(key, *args)[0], self.ask(key, *args, tool="blame")[0])

    def segment_with(self, key):
        """Of the last version of a key."""
        offset = self.ask(key, "--no-index")[0][-1]["offset"]
        for segment in self.segments():
            start, end = os.path.basename(segment).split("-")[1:3]
            if int(start) <= offset < int(end):
                return segment
        return None

    def damage(self, path, at=None):
        size = os.path.getsize(path)
        with open(path, "r+b") as f:
            f.seek(size // 2 if at is None else at)
            byte = f.read(1)
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte[0] ^ 0x10]))

    def two_keys(self, sealed=True, more=""):
        server = self.server()
        self.archived(server.port, sealed=sealed, more=more)
        said = self.archive(server, ["HSET user:17 a 1 b 2"], ["SET other x"],
                            ["MULTI", "HSET user:17 a 3", "SET third y", "EXEC"])
        self.assertNotIn("index", said)
        return server


class Archived(IndexCase):
    def test_each_segment_has_an_index_without_names(self):
        for sealed in (True, False):
            with self.subTest(sealed=sealed):
                shutil.rmtree(self.repository, ignore_errors=True)
                shutil.rmtree(self.spool, ignore_errors=True)
                self.two_keys(sealed=sealed)
                self.assertEqual([self.index_of(s) for s in self.segments()], self.indexes())
                for path in self.indexes():
                    with open(path, "rb") as f:
                        data = f.read()
                    self.assertEqual(data.startswith(b"RDSEAL"), sealed)
                    self.assertNotIn(b"user", data)
                    self.assertNotIn(b"other", data)

    def test_segments_without_the_key_are_not_read(self):
        for sealed in (True, False):
            with self.subTest(sealed=sealed):
                shutil.rmtree(self.repository, ignore_errors=True)
                shutil.rmtree(self.spool, ignore_errors=True)
                self.two_keys(sealed=sealed)
                want = self.answers("user:17")
                self.assertEqual(want, self.answers("user:17", "--no-index"))
                other = self.segment_with("other")
                self.damage(other)
                self.assertEqual(self.answers("user:17"), want)
                self.ask("user:17", "--no-index", status=1)
                self.ask("other", status=1)
                self.fails(1, "", "verify")

    def test_a_passphrase(self):
        self.write("secret", "a long passphrase\n")
        self.two_keys(sealed=False, more=f"passphrase-file = {self.path('secret')}\n")
        want = self.answers("user:17")
        self.assertEqual(want, self.answers("user:17", "--no-index"))
        self.assertEqual(self.cached(), [])
        os.unlink(self.indexes()[0])
        self.damage(self.indexes()[-1])
        self.assertEqual(self.answers("user:17"), want)
        self.assertEqual(len(self.cached()), 2)
        with open(self.cached()[0], "rb") as f:
            self.assertTrue(f.read().startswith(b"RDSEAL"))
        self.damage(self.segment_with("other"))
        self.assertEqual(self.answers("user:17"), want)

    def test_two_repositories_have_the_indexes(self):
        server = self.server()
        other = self.path("other")
        self.archived(server.port, more=f"repository = {other}\n")
        self.archive(server, ["SET k 1"], ["SET k 2"])
        want = self.answers("k", "--no-index")
        one = [os.path.relpath(p, self.repository) for p in self.indexes()]
        shutil.rmtree(self.repository)
        self.assertEqual(one, sorted(os.path.relpath(p, other) for p in glob.glob(
            os.path.join(other, "nightly", "keys", "*", "*", "*"))))
        self.assertEqual(self.ask("k")[0], want[0])
        self.assertEqual(self.cached(), [])

    def test_of_a_plain_segment_only_blocks_with_the_key_are_read(self):
        server = self.server()
        self.archived(server.port, sealed=False, more=PLAIN)
        filler = [["SET", f"filler:{i}", os.urandom(1000).hex()] for i in range(1500)]
        self.archive(server, [["SET", "user:17", "1"], *filler, ["APPEND", "user:17", "2"]])
        want = self.answers("user:17")
        self.assertEqual(want, self.answers("user:17", "--no-index"))
        self.assertEqual(len(want[0]), 2)
        self.damage(self.segment_with("user:17"))
        self.assertEqual(self.answers("user:17"), want)
        self.ask("user:17", "--no-index", status=1)
        self.ask("filler:750", status=1)

    def check_rebuilt(self, want, segment, what):
        """Once with a note, then from the index that was kept."""
        shutil.rmtree(self.cache, ignore_errors=True)
        found, said = self.ask("user:17")
        self.assertEqual(found, want[0], what)
        if os.path.exists(self.index_of(segment)):
            self.assertIn("is not used, and made again", said, what)
        self.assertEqual(len(self.cached()), 1, what)
        self.assertEqual(self.answers("user:17"), want, what)
        self.assertEqual(len(self.cached()), 1, what)

    def check_wrong_indexes(self, sealed):
        self.two_keys(sealed=sealed)
        want = self.answers("user:17", "--no-index")
        segments = self.segments()
        for segment in (self.segment_with("user:17"), self.segment_with("other")):
            path = self.index_of(segment)
            data = open(path, "rb").read()
            others = [open(self.index_of(s), "rb").read() for s in segments if s != segment]
            step = max(1, len(data) // 12)
            wrong = [("flipped", data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
                     for at in range(0, len(data), step)]
            wrong += [("cut", data[:n]) for n in (0, 1, 31, 160, len(data) // 2, len(data) - 1)]
            wrong += [("longer", data + b"\0")] + [("exchanged", o) for o in others]
            for what, bad in wrong:
                with open(path, "wb") as f:
                    f.write(bad)
                self.check_rebuilt(want, segment, what)
            os.unlink(path)
            self.check_rebuilt(want, segment, "deleted")
            # Kept as it is in the repository.
            kept = open(self.cached()[0], "rb").read()
            self.assertEqual(kept.startswith(b"RDSEAL"), sealed)
            # One that was made again and damaged is made once more.
            self.damage(self.cached()[0])
            self.assertEqual(self.answers("user:17"), want)
            with open(path, "wb") as f:
                f.write(data)

    def test_wrong_indexes_are_found_and_made_again(self):
        self.check_wrong_indexes(sealed=False)

    def test_wrong_indexes_of_sealed_segments_are_found_and_made_again(self):
        self.check_wrong_indexes(sealed=True)

    def forge(self, data, name, digest):
        """The index of a segment with this SHA-256, for one section of one chunk each."""
        keys, head, end = struct.unpack_from("<QQQ", data, len(data) - DIGEST - 24)
        index = bytearray(data[:keys])
        index[32:64] = digest
        seed = crc64(index[:152])
        index[152:160] = seed.to_bytes(8, "little")
        sums = -(-(keys - HEADER) // 1032)
        body = keys - HEADER - 8 * sums
        for i in range(sums):
            piece = bytes(index[HEADER + 1024 * i:min(HEADER + 1024 * (i + 1), HEADER + body)])
            at = HEADER + body + 8 * i
            index[at:at + 8] = crc64(piece, seed ^ i).to_bytes(8, "little")
        ends = bytearray(data[keys:keys + head + end])
        ends[-32:] = digest
        forged = bytes(index) + bytes(ends) + data[keys + head + end:-DIGEST]
        return forged + hashlib.sha256(name.encode() + b"\0" + forged).digest()

    def test_an_index_of_other_data_is_not_trusted(self):
        for more in (PLAIN, ""):
            with self.subTest(more=more):
                shutil.rmtree(self.repository, ignore_errors=True)
                shutil.rmtree(self.spool, ignore_errors=True)
                self.two_keys(sealed=False, more=more)
                want = self.answers("user:17", "--no-index")
                path = self.index_of(self.segment_with("user:17"))
                name = os.path.relpath(path, self.repository)
                data = open(path, "rb").read()
                self.assertEqual(self.forge(data, name, data[32:64]), data)
                with open(path, "wb") as f:
                    f.write(self.forge(data, name, hashlib.sha256(b"other").digest()))
                found, said = self.ask("user:17")
                self.assertEqual(found, want[0])
                self.assertIn("indexes are not used", said)
                self.assertEqual(self.answers("user:17"), want)

    def test_an_archive_without_indexes(self):
        server = self.server()
        self.archived(server.port, more="key-index = no\n")
        self.archive(server, ["HSET k a 1", "SET l 2"], ["HSET k a 3"])
        self.assertEqual(self.indexes(), [])
        want = self.answers("k", "--no-index")
        self.assertEqual(self.cached(), [])
        self.assertEqual(self.answers("k"), want)
        self.assertEqual(len(self.cached()), len(self.segments()))
        self.assertEqual(len(want[0]), 2)

    def test_indexes_that_cannot_be_stored_do_not_stop_the_stream(self):
        server = self.server()
        self.archived(server.port)
        os.makedirs(os.path.join(self.repository, "nightly"))
        with open(os.path.join(self.repository, "nightly", "keys"), "wb"):
            pass
        said = self.archive(server, ["SET k 1"], ["SET k 2"], ["SET k 3"])
        self.assertEqual(said.count("cannot store an index of keys"), 1, said)
        self.assertIn("the stream is archived without it", said)
        found, said = self.ask("k")
        self.assertEqual([v["event"] for v in found], ["created", "changed", "changed"])

    def test_indexes_that_cannot_be_made_do_not_stop_the_stream(self):
        server = self.server()
        self.archived(server.port)
        running = self.start(env={"TMPDIR": self.path("missing")})
        running.says("cannot make an index of keys")
        server.command("SET", "k", "1")
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        self.assertEqual(self.indexes(), [])
        self.assertEqual([v["event"] for v in self.ask("k")[0]], ["created"])

    def test_a_run_that_ended_before_the_index_was_stored_stores_it_later(self):
        server = self.server()
        self.archived(server.port)
        self.archive(server, ["SET k 1"], ["SET k 2"])
        newest = self.index_of(self.segments()[-1])
        os.unlink(newest)
        self.archive(server, ["SET k 3"])
        self.assertTrue(os.path.exists(newest))
        self.assertEqual([self.index_of(s) for s in self.segments()], self.indexes())

    def test_other_tools_do_not_see_indexes(self):
        self.two_keys()
        self.assertGreater(len(self.indexes()), 2)
        orphan = self.indexes()[0].replace("/00000001-", "/99999999-")
        self.assertNotEqual(orphan, self.indexes()[0])
        os.makedirs(os.path.dirname(orphan), exist_ok=True)
        shutil.copy(self.indexes()[0], orphan)
        os.unlink(self.indexes()[1])
        out = self.path("out.rdb")

        def tools():
            return [(d.returncode, without_age(d.stdout), d.stderr) for d in (
                self.tool("list", "--json"), self.tool("list"), self.tool("verify"),
                self.tool("verify", "--level", "parse", "--json"),
                self.tool("restore", "nightly", "--to", out, "--force"),
                self.tool("prune", "nightly", "--keep", "yearly 5"))]
        some = tools()
        shutil.rmtree(os.path.join(self.repository, "nightly", "keys"))
        self.assertEqual([s[0] for s in some], [0] * len(some), some)
        none = tools()
        for with_them, without in zip(some[:2], none[:2]):
            self.assertEqual(with_them[1:], without[1:])
        self.assertEqual([s[0] for s in none], [s[0] for s in some])

    def test_prune_removes_indexes_with_their_segments(self):
        server = self.two_keys()
        segments = self.segments()
        self.archive(server, ["SET k 1"], ["SET k 2"])
        self.good("backup", "nightly")
        self.archive(server, ["SET k 3"])
        self.good("backup", "nightly")
        orphan = os.path.join(os.path.dirname(self.indexes()[-1]),
                              "00009999-1-2-3-4-0-0.keys.sealed")
        shutil.copy(self.indexes()[-1], orphan)
        self.good("prune", "nightly", "--keep", "yearly 1")
        self.assertTrue(os.path.exists(orphan))
        self.good("prune", "nightly", "--keep", "yearly 1", "--confirm")
        self.assertFalse(os.path.exists(orphan))
        self.assertFalse(os.path.exists(segments[0]))
        self.assertEqual([self.index_of(s) for s in self.segments()], self.indexes())
        self.assertGreater(len(self.indexes()), 0)
        self.assertEqual(self.ask("k")[0][-1]["event"], "snapshot")


class Remote:
    def test_indexes_are_used_and_kept(self):
        server = self.server()
        self.archived(server.port, more=self.there())
        self.archive(server, ["HSET user:17 a 1"], ["SET other x"], ["HSET user:17 a 2"])
        want = self.answers("user:17", "--no-index")
        self.assertEqual(self.cached(), [])
        self.assertEqual(self.answers("user:17"), want)
        n = len(self.cached())
        self.assertGreater(n, 2)
        self.check_traffic()
        self.assertEqual(self.answers("user:17"), want)
        self.good("verify")
        self.damage(self.cached()[0])
        self.assertEqual(self.answers("user:17"), want)
        self.assertEqual(len(self.cached()), n)

    def test_blocks_of_plain_segments(self):
        server = self.server()
        self.archived(server.port, sealed=False, more=PLAIN + self.there())
        filler = [["SET", f"filler:{i}", os.urandom(1000).hex()] for i in range(1500)]
        self.archive(server, [["SET", "user:17", "1"], *filler, ["APPEND", "user:17", "2"]])
        want = self.answers("user:17", "--no-index")
        self.assertEqual(len(want[0]), 2)
        self.assertEqual(self.answers("user:17"), want)
        self.check_blocks()


class InS3(Remote, IndexCase):
    def setUp(self):
        super().setUp()
        self.s3 = S3Server()
        self.s3.__enter__()
        self.addCleanup(self.s3.__exit__, None, None, None)

    def there(self):
        self.write("s3key", f"{self.s3.access_key}\n{self.s3.secret_key}\n")
        self.repository = "s3://vault/some/where"
        return f"s3-endpoint = {self.s3.url}\ns3-key-file = {self.path('s3key')}\n"

    def test_a_store_that_refuses_indexes_gets_the_stream(self):
        server = self.server()
        self.archived(server.port, more=self.there())
        self.s3.faults = lambda method, path, n: 503 if "/keys/" in path else None
        said = self.archive(server, ["SET k 1"], ["SET k 2"], ["SET k 3"])
        self.assertEqual(said.count("cannot store an index of keys"), 1, said)
        self.assertEqual(said.count("trying again"), 0, said)
        self.s3.faults = None
        self.assertEqual([v["event"] for v in self.ask("k")[0]],
                         ["created", "changed", "changed"])
        self.assertGreater(len(self.cached()), 0)

    def fetched(self, *args):
        """The names of objects that are read for an answer."""
        before = len(self.s3.requests)
        self.ask(*args)
        return {path.split("?")[0] for method, path, _ in self.s3.requests[before:]
                if method == "GET" and "list-type" not in path}

    def check_traffic(self):
        found = self.fetched("user:17")
        self.assertEqual([p for p in found if "/keys/" in p], [])
        all_of_it = self.fetched("user:17", "--no-index")
        self.assertLess(len([p for p in found if "/stream/" in p]),
                        len([p for p in all_of_it if "/stream/" in p]))
        self.assertEqual([p for p in self.fetched("nobody", "--match", "user*")
                          if "/keys/" in p], [])

    def check_blocks(self):
        before = len(self.s3.requests)
        self.ask("user:17")
        ranges = [headers.get("Range", "") for method, path, headers in self.s3.requests[before:]
                  if method == "GET" and "/stream/" in path and "list-type" not in path]
        total = sum(int(b) - int(a) + 1 for a, b in (r[6:].split("-") for r in ranges))
        self.assertLess(total, 1000000, ranges)


@unittest.skipIf(ssh_server.missing(), ssh_server.missing())
class BySFTP(Remote, IndexCase):
    def setUp(self):
        super().setUp()
        self.ssh = ssh_server.SSHServer()
        self.ssh.__enter__()
        self.addCleanup(self.ssh.__exit__)

    def there(self):
        folder = self.path("there")
        os.mkdir(folder)
        self.repository = f"sftp://{self.ssh.user}@127.0.0.1:{self.ssh.port}{folder}"
        return (f"ssh-key-file = {self.ssh.key}\n"
                f"ssh-known-hosts = {self.ssh.known_hosts}\n")

    def check_traffic(self):
        pass

    check_blocks = check_traffic


if __name__ == "__main__":
    unittest.main()
