"""redoubt check-rdb, where the checksum proves what is wrong with a file, or that nothing is.

REDOUBT names the program, REDOUBT_FIXTURES the fixtures.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_check_rdb import CheckRdbTest, fixture, pair, rdb, string, summed  # noqa: E402

MARK = b"0123456789abcdef0123456789abcdef01234567"
NONE = {"before": "none", "before_length": 0, "after_length": 0, "crlf": False, "utf8": False}


def tiny():
    with open(fixture("redis-7.0.15", "tiny.rdb"), "rb") as f:
        return f.read()


class Transfers(CheckRdbTest):
    """A snapshot that a transfer changed is saved as it was before."""

    def expect(self, data, original, lines, **transfer):
        self.write("f.rdb", data)
        status, out, err = self.check("f.rdb")
        self.assertEqual(status, 1)
        self.assertIn("hint: --salvage OUT writes the file as it was before the transfer", err)
        for label, line in lines:
            self.assertIn(f"  {label:10} {line}, as the checksum proves\n", out)
        status, file = self.one("--salvage", "out.rdb", "f.rdb")
        self.assertEqual(status, 8)
        sv = file["salvage"]
        self.assertEqual((sv["keys"], sv["keys_doubtful"], sv["n_ranges"], sv["proved"]),
                         (9, 0, 0, True))
        self.assertEqual(sv["transfer"], {**NONE, **transfer})
        self.assertEqual(sv["corrected"]["kind"], "transfer")
        self.assertTrue(sv["out"]["verified"])
        with open(self.path("out.rdb"), "rb") as f:
            saved = f.read()
        # Without the sizes of databases, which are left out, the records are the same.
        self.assertIn(original[-40:-8], saved)
        os.unlink(self.path("out.rdb"))

    def test_the_frame_of_a_diskless_transfer(self):
        head = b"+FULLRESYNC 8371 14\r\n\n$EOF:" + MARK + b"\r\n"
        self.expect(head + tiny() + MARK, tiny(),
                    [("before", f"{len(head)} bytes, the replies of a master, precede the "
                                "snapshot"),
                     ("after", "40 bytes follow the snapshot")],
                    before="replication", before_length=len(head), after_length=40)

    def test_messages_of_a_program(self):
        head = b"sending REPLCONF capa eof\nSYNC sent to master, writing 272 bytes to '-'\n"
        self.expect(head + tiny() + b"Transfer finished with success.\n", tiny(),
                    [("before", f"{len(head)} bytes, text, precede the snapshot")],
                    before="text", before_length=len(head), after_length=32)

    def test_line_ends_of_a_terminal(self):
        self.expect(tiny().replace(b"\n", b"\r\n"), tiny(),
                    [("text mode", "each line feed became a carriage return and a line feed")],
                    crlf=True)

    def test_a_character_set(self):
        self.expect(tiny().decode("latin-1").encode(), tiny(),
                    [("text mode", "the bytes were converted from Latin-1 or Windows-1252 to "
                                   "UTF-8")],
                    utf8=True)

    def test_the_bytes_of_a_connection(self):
        with open(fixture("redis-7.0.15", "psync-eof.bin"), "rb") as f:
            data = f.read()
        status, file = self.one(self.write("f.rdb", data))
        self.assertEqual((status, file["salvage"]["keys"], file["salvage"]["proved"]),
                         (1, 24, True))
        self.assertEqual(file["salvage"]["transfer"]["before"], "replication")


class Headers(CheckRdbTest):
    def test_a_wrong_header_is_found_by_the_checksum(self):
        for header in b"REDIS0009", b"REDIS0099", b"\0\0\0\0\0\0\0\0\0":
            self.write("f.rdb", header + tiny()[9:])
            status, out, err = self.check("f.rdb")
            self.assertEqual(status, 1)
            self.assertIn("  header     the header must be REDIS0010, as the checksum proves\n",
                          out)
            self.assertIn("hint: --salvage OUT writes the file with the right header", err)
            status, file = self.one("--salvage", "out.rdb", "f.rdb")
            self.assertEqual((status, file["salvage"]["keys"]), (8, 9))
            self.assertEqual(file["salvage"]["corrected"],
                             {"kind": "header", "offset": 0, "length": 9, "bytes": "REDIS0010"})
            os.unlink(self.path("out.rdb"))

    def test_a_header_that_the_checksum_covers_is_not_damaged(self):
        """A converter wrote it, whatever release a field names."""
        release = b"\xfa" + string(b"redis-ver") + string(b"7.0.15")
        data = summed(rdb(release, b"\xfe\x00", pair(b"k"), version=12))
        self.assertEqual(self.check(self.write("f.rdb", data))[0], 0)
        status, file = self.one("--salvage", "out.rdb", "f.rdb")
        self.assertEqual((status, file["salvage"]["proved"]), (0, True))
        with open(self.path("out.rdb"), "rb") as f:
            self.assertEqual(f.read(), data)

    def test_a_newer_version_whose_checksum_matches_is_not_damaged(self):
        for tail, keys in ((b"", 1), (b"\x21\x01k\x01", 1)):
            data = summed(rdb(b"\xfe\x00", pair(b"a"), tail, version=17))
            self.write("f.rdb", data)
            status, out, _ = self.check("f.rdb")
            self.assertEqual(status, 4)
            self.assertNotIn("damaged", out.split("  lost")[0])
            self.assertIn("  checksum   matches", out)
            status, file = self.one("--salvage", "out.rdb", "f.rdb", "--force")
            self.assertEqual((status, file["verdict"], file["salvage"]["keys"]),
                             (8, "unsupported", keys))
            self.assertEqual((file["salvage"]["out"]["sealed"], file["salvage"]["proved"]),
                             (True, True))


class FieldExpiries(CheckRdbTest):
    """A hash of 520 fields, one byte of which is missing, among 17 other keys."""

    def salvage(self, checksum):
        with open(fixture("redis-unstable", "hash-ttl.rdb"), "rb") as f:
            data = f.read()
        at = data.index(b"ht:many") + 3000
        data = data[:at] + data[at + 1:-8] + (data[-8:] if checksum else bytes(8))
        status, file = self.one("--strict", "--salvage", "out.rdb", self.write("f.rdb", data))
        self.assertEqual(status, 8)
        _, out, _ = self.check("-v", "out.rdb")
        self.assertNotIn("/string \"field:", out)
        self.assertIn("\"lpex:persisted\"", out)
        return file["salvage"]

    def test_the_checksum_proves_the_missing_byte(self):
        sv = self.salvage(True)
        self.assertEqual((sv["keys"], sv["proved"], sv["corrected"]["kind"]), (18, True, "missing"))

    def test_no_field_becomes_a_key_without_a_checksum(self):
        sv = self.salvage(False)
        # The hash is lost, and the key before it is next to the damage.
        self.assertEqual((sv["keys"], sv["keys_left_out"], sv["n_ranges"]), (16, 1, 1))
        self.assertEqual([d["doubts"] for d in sv["doubtful"]], [["beside-damage"]])


class UnknownNumbers(CheckRdbTest):
    """A newer version may have numbers that this program does not know. All those of the others
    are known: what has no meaning there is damage, unless the checksum proves that it was saved."""

    def expect(self, data, status, verdict):
        got, out, _ = self.check(self.write("f.rdb", data))
        self.assertEqual((got, out.split("\n")[0].split(" at ")[0]), (status, f"f.rdb: {verdict}"))

    def test_unknown_type(self):
        unknown = rdb(b"\xfe\x00\x64\x01k")
        self.expect(unknown, 1, "damaged")
        self.expect(summed(unknown), 4, "not supported")
        self.expect(b"REDIS0016" + unknown[9:], 4, "not supported")

    def test_unknown_version(self):
        self.expect(summed(b"REDIS0099" + tiny()[9:]), 4, "not supported")
        self.expect(b"REDIS0099" + tiny()[9:-8] + bytes(8), 4, "not supported")
        self.expect(b"REDIS0000" + tiny()[9:-8] + bytes(8), 1, "damaged")

    def test_zeros_before_it(self):
        zeros = tiny()[:100] + bytes(64) + tiny()[164:]
        self.expect(zeros, 1, "damaged")


if __name__ == "__main__":
    unittest.main()
