"""What the checks make of gzip and lz4 files that are themselves cut or damaged."""

import gzip
import json
import os
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_check_rdb import REDOUBT, CheckRdbTest, fixture  # noqa: E402
import report_text  # noqa: E402


def unpacked(packed):
    """What comes of the beginning of a gzip file."""
    return zlib.decompressobj(31).decompress(packed)


class Snapshots(CheckRdbTest):
    def setUp(self):
        super().setUp()
        with open(fixture("redis-7.0.15", "mixed.rdb"), "rb") as f:
            self.mixed = f.read()
        self.write("mixed.rdb", self.mixed)

    def saved(self, name, data=b""):
        """What a file is said to be, and the keys that --salvage writes of it."""
        status, file = self.one(name, "--salvage", "out.rdb", "--force", data=data)
        out = file["salvage"]["out"]
        self.assertEqual(status, 1 if out is None else 8)
        if out is None:
            return file, []
        self.assertTrue(out["well_formed"])
        self.assertEqual(out["verified"], file["salvage"]["proved"])
        done = subprocess.run([REDOUBT, "convert", "--to", "ndjson", self.path("out.rdb")],
                              capture_output=True, check=True)
        return file, done.stdout.splitlines()

    def test_what_can_be_unpacked_of_a_gzip_file_that_is_cut_is_saved(self):
        packed = gzip.compress(self.mixed)
        most = 0
        for cut in range(40, len(packed), len(packed) // 12):
            plain = unpacked(packed[:cut])
            _, want = self.saved(self.write("cut.rdb", plain))
            for name, data in ((self.write("cut.gz", packed[:cut]), b""), ("-", packed[:cut])):
                file, got = self.saved(name, data=data)
                self.assertEqual(got, want)
                self.assertEqual(file["salvage"]["unpacked_until"], len(plain))
                self.assertIn("gzip: input ends", file["damage"]["text"])
                self.assertIsNone(file["size"])
            most = max(most, len(want))
        self.assertGreater(most, 20)
        report = self.check("cut.gz")[1]
        self.assertRegex(report, r"the bytes after byte \d+ \(0x[0-9a-f]+\) cannot be decompressed")
        self.assertNotIn("no bytes are lost", report)

    def test_a_damaged_gzip_file_is_read_as_far_as_it_can_be_unpacked(self):
        packed = bytearray(gzip.compress(self.mixed))
        packed[len(packed) // 2] ^= 0x55
        # What a wrong bit makes of the rest may be of a type that is not known.
        file, got = self.saved(self.write("bad.gz", bytes(packed)))
        self.assertGreater(len(got), 10)
        self.assertLess(file["damage_offset"], file["salvage"]["unpacked_until"])

    def test_a_sound_snapshot_in_a_damaged_container_is_reported_and_saved_whole(self):
        for cut in (False, True):
            packed = bytearray(gzip.compress(self.mixed))
            packed[-6] ^= 1
            data = bytes(packed[:-3] if cut else packed)
            status, file = self.one(self.write("sum.gz", data))
            self.assertEqual((status, file["verdict"], file["checksum"]["state"]),
                             (1, "damaged", "ok"))
            self.assertEqual(self.ids(file, "error"), {"container-damaged"})
            _, got = self.saved("sum.gz")
            done = subprocess.run([REDOUBT, "convert", "--to", "ndjson", self.path("mixed.rdb")],
                                  capture_output=True, check=True)
            self.assertEqual(got, done.stdout.splitlines())

    def test_the_blocks_in_front_of_a_cut_in_an_lz4_file_are_saved(self):
        keys = b"".join(b"\x00\x04%04d\x40\xc8" % i + os.urandom(100).hex().encode()
                        for i in range(1000))
        self.write("plain", b"REDIS0011" + keys + b"\xff" + bytes(8))
        subprocess.run(["lz4", "-q", "-f", "-B4", self.path("plain"), self.path("all.lz4")],
                       check=True)
        with open(self.path("all.lz4"), "rb") as f:
            packed = f.read()
        file, got = self.saved(self.write("cut.lz4", packed[:len(packed) // 2]))
        self.assertEqual(file["salvage"]["unpacked_until"], 65536)
        self.assertEqual(len(got), 65536 // 208)


class Logs(CheckRdbTest):
    def salvage(self, packed, *args):
        self.write("log.gz", packed)
        if os.path.exists(self.path("out.aof")):
            os.unlink(self.path("out.aof"))
        status, out, err = self.run_program([os.path.abspath(REDOUBT), "check-aof", *args,
                                             "--salvage", "out.aof", "log.gz"])
        return status, report_text.unwrapped(out), err

    def out(self):
        with open(self.path("out.aof"), "rb") as f:
            return f.read()

    def setUp(self):
        super().setUp()
        self.commands = [b"*3\r\n$3\r\nSET\r\n$4\r\n%04d\r\n$20\r\n%b\r\n"
                         % (i, os.urandom(10).hex().encode()) for i in range(400)]
        self.packed = gzip.compress(b"".join(self.commands))

    def test_the_commands_in_front_of_a_cut_are_saved(self):
        for cut in range(200, len(self.packed), len(self.packed) // 9):
            plain = unpacked(self.packed[:cut])
            status, out, err = self.salvage(self.packed[:cut])
            self.assertEqual(status, 8)
            self.assertIn(f"the bytes after byte {len(plain)} ", out)
            self.assertIn("gzip: input ends", err)
            self.assertEqual(self.out(), plain[:len(plain) // 50 * 50])

    def test_a_log_that_is_whole_in_a_damaged_container_is_saved_whole(self):
        status, out, _ = self.salvage(self.packed[:-4])
        self.assertEqual((status, self.out()), (8, b"".join(self.commands)))
        self.assertNotIn("no bytes are lost", out)
        _, out, _ = self.salvage(self.packed[:-4], "--json")
        self.assertEqual(json.loads(out)["salvage"]["unpacked_until"], 50 * len(self.commands))

    def test_where_nothing_can_be_unpacked_nothing_is_written(self):
        status, _, err = self.salvage(self.packed[:15])
        self.assertEqual(status, 1)
        self.assertIn("gzip: input ends", err)
        self.assertFalse(os.path.exists(self.path("out.aof")))
