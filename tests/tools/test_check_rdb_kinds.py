"""redoubt check-rdb, given files that are not snapshots.

REDOUBT names the program, REDOUBT_FIXTURES the fixtures.
"""

import base64
import gzip
import io
import os
import random
import sys
import tarfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_check_rdb import CheckRdbTest, pair, rdb  # noqa: E402


class OtherKinds(CheckRdbTest):
    """Sound files that are not snapshots are not called damaged."""

    @staticmethod
    def tar(data):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            entry = tarfile.TarInfo("dump.rdb")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        return out.getvalue()

    def kinds(self):
        data = rdb(b"\xfe\x00", pair(b"k"))
        text = b"".join(b"service %d/tcp\n" % i for i in range(100))
        plain = {
            "tar": [self.tar(data)],
            "html": [b"<!DOCTYPE html>\n<html><body>404</body></html>\n",
                     b"\xef\xbb\xbf \n<HTML>"],
            "base64": [base64.encodebytes(data), base64.b64encode(gzip.compress(data)),
                       base64.b64encode(random.Random(2).randbytes(300))],
            "json": [b'{"db":0,"key":"a","type":"string","value":"b"}\n'],
            "aof": [b"*1\r\n$4\r\nPING\r\n", b"#TS:1700000000\r\n*1\r\n$4\r\nPING\r\n"],
            "manifest": [b"file a.1.base.rdb seq 1 type b\n"],
            "capture": [b"RDCAPT\r\n" + bytes(100)],
            "xz": [b"\xfd7zXZ\x00" + bytes(100)],
            "gzip": [gzip.compress(gzip.compress(data))],
            "text": [text],
        }
        for kind, files in plain.items():
            for file in files:
                yield kind, file
                if kind != "gzip":
                    yield kind, gzip.compress(file)

    def test_they_have_a_verdict_of_their_own(self):
        for kind, data in self.kinds():
            with self.subTest(kind, gzip=data[:2] == b"\x1f\x8b"):
                status, file = self.one(self.write("f", data))
                self.assertEqual((status, file["verdict"], file["kind"]), (4, "other-kind", kind))
                self.assertEqual(file["damage"]["code"], "unsupported")
                self.assertIsNone(file["damage_offset"])
                status, out, err = self.check("f")
                self.assertEqual(status, 4)
                self.assertRegex(out, "^f: another kind of file: ")
                self.assertNotIn("damage", out + err)
                self.assertEqual(self.check("--quiet", "-", data=data)[:2], (4, ""))

    def test_snapshots_damaged_ones_and_chance_are_not_among_them(self):
        data = rdb(b"\xfe\x00", pair(b"k"))
        for bad in (data[:20], data[:5], data[:3], b"", b"\0" + data[1:], b"REDIStribute " * 20,
                    b"VALKEYrie " * 20, random.Random(3).randbytes(1000), bytes(1000)):
            _, file = self.one(self.write("f", bad))
            self.assertNotEqual(file["verdict"], "other-kind")
            self.assertEqual(file["kind"], "rdb")
        # A tar header whose sum is wrong.
        tar = bytearray(self.tar(data))
        tar[3] ^= 1
        self.assertEqual(self.one(self.write("f", bytes(tar)))[1]["verdict"], "damaged")

    def test_salvage_still_searches_them(self):
        status, file = self.one("--salvage", "out.rdb", self.write("f", bytes(1) + b"x" * 99))
        self.assertEqual((status, file["kind"]), (1, "rdb"))
        _, file = self.one("--salvage", "out.rdb", self.write("f", self.tar(b"not a snapshot")))
        self.assertEqual((file["verdict"], file["kind"]), ("other-kind", "tar"))
        self.assertIsNone(file["salvage"]["out"])
        self.assertFalse(os.path.exists(self.path("out.rdb")))


class Cut(CheckRdbTest):
    """What a file that ends too early held is not known."""

    def saved(self, data, *args):
        _, out, _ = self.check(*args, self.write("f", data))
        return next(line[13:] for line in out.splitlines()
                    if line.startswith(("  can save", "  saved")))

    def test_of_a_file_of_0_bytes_nothing_is_known(self):
        for data in (b"", gzip.compress(b"")):
            for args in ((), ("--salvage", "out.rdb")):
                self.assertEqual(self.saved(data, *args),
                                 "nothing: the file has 0 bytes, and what it held is not known")
        self.assertFalse(os.path.exists(self.path("out.rdb")))

    def test_nothing_is_said_to_be_all_that_is_lost(self):
        data = rdb(b"\xfe\x00", pair(b"key"), pair(b"two"))
        for end in range(9, len(data) - 9):
            said = self.saved(data[:end])
            self.assertIn("; what came after the end of the file is not known", said)
            self.assertNotIn("lost: 1 range of 0 bytes", said)
            self.assertNotIn("no record is lost", said)
        self.assertIn("not known", self.saved(data[:20], "--salvage", "out.rdb"))


if __name__ == "__main__":
    unittest.main()
