"""redoubt sum, beside the tools of coreutils.

REDOUBT names the program.
"""

import binascii
import gzip
import hashlib
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

REDOUBT = os.environ["REDOUBT"]


def crc64(data, crc=0):
    """CRC-64/Jones, bit by bit."""
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
    return crc


def rdb(magic=b"REDIS0011", crc=None):
    """The smallest snapshot: header, end, checksum (the right one unless one is given)."""
    body = magic + b"\xff"
    return body + struct.pack("<Q", crc64(body) if crc is None else crc)


class SumTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as out:
            out.write(data)

    def run_program(self, *argv, data=b""):
        done = subprocess.run(argv, cwd=self.folder, input=data, capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr.decode()

    def sum(self, *args, data=b""):
        return self.run_program(REDOUBT, "sum", *args, data=data)

    def write_names(self):
        names = ["plain", "two words", "new\nline", "back\\slash", "return\r", "ü", "*star",
                 " blank"]
        for name in names:
            self.write(name, name.encode() * 1000)
        return names


class Digests(SumTest):
    def test_lines_are_those_of_coreutils(self):
        names = self.write_names()
        for kind in "sha1", "sha256", "sha512":
            want = self.run_program(kind + "sum", *names)[1]
            self.assertEqual(self.sum("--" + kind, *names), (0, want, ""))

    def test_default_is_sha256(self):
        self.write("f", b"abc")
        want = hashlib.sha256(b"abc").hexdigest() + "  f\n"
        self.assertEqual(self.sum("f"), (0, want.encode(), ""))

    def test_several_digests_come_in_a_fixed_order(self):
        data = os.urandom(1000)
        self.write("f", data)
        status, out, _ = self.sum("--sha512", "--sha256", "--sha1", "--crc64", "f")
        want = ["%016x  f" % crc64(data)]
        want += [
            hashlib.new(kind, data).hexdigest() + "  f"
            for kind in ("sha1", "sha256", "sha512")
        ]
        self.assertEqual((status, out.decode().splitlines()), (0, want))

    def test_the_checksums_of_keys(self):
        status, out, err = self.sum("--crc16", "--crc32", "--crc64", "--text", "123456789", "-")
        self.assertEqual((status, out, err), (
            0, b"31c3  123456789\ncbf43926  123456789\ne9c6d914c4b8d9ca  123456789\n"
            + b"%04x  -\n%08x  -\n%016x  -\n" % (binascii.crc_hqx(b"-", 0), zlib.crc32(b"-"),
                                                  crc64(b"-")), ""))

    def test_the_slots_of_keys(self):
        self.assertEqual(self.sum("--slot", "foo", "{user1000}.following", "{user1000}.x", "{}"),
                         (0, b"12182  foo\n3443  {user1000}.following\n3443  {user1000}.x\n"
                          + b"%d  {}\n" % (binascii.crc_hqx(b"{}", 0) % 16384), ""))
        status, out, _ = self.sum("--json", "--slot", "--crc16", "foo")
        self.assertEqual((status, json.loads(out)["files"]),
                         (0, [{"text": "foo", "size": 3, "slot": 12182, "crc16": "af96"}]))

    def test_short_checksums_of_files(self):
        data = bytes(range(256)) * 3000
        self.write("f", data)
        status, out, _ = self.sum("--crc16", "--crc32", "f")
        lines = b"%04x  f\n%08x  f\n" % (binascii.crc_hqx(data, 0), zlib.crc32(data))
        self.assertEqual((status, out), (0, lines))
        self.assertEqual(self.sum("-c", "-", data=lines)[:2], (0, b"f: OK\nf: OK\n"))
        self.write("f", data + b"x")
        self.assertEqual(self.sum("-c", "-", data=lines)[:2], (1, b"f: FAILED\nf: FAILED\n"))

    def test_a_list_has_no_texts(self):
        for option in "--text", "--slot":
            self.assertEqual(self.sum("-c", option, "x")[0], 2)

    def test_every_short_length_is_summed_whole(self):
        for size in range(30):
            data = bytes(range(size))
            self.write("f", data)
            _, out, _ = self.sum("--crc64", "--sha1", "f")
            want = "%016x  f\n%s  f\n" % (crc64(data), hashlib.sha1(data).hexdigest())
            self.assertEqual(out.decode(), want, "size %d" % size)

    def test_sizes_around_the_window_are_summed_whole(self):
        for size in (256 * 1024 - 9, 256 * 1024 - 8, 256 * 1024, 256 * 1024 + 1, 1 << 20):
            data = os.urandom(size)
            self.write("f", data)
            _, out, _ = self.sum("f")
            self.assertEqual(out.decode(), hashlib.sha256(data).hexdigest() + "  f\n")

    def test_dash_is_standard_input(self):
        want = "e9c6d914c4b8d9ca  -\n".encode()
        self.assertEqual(self.sum("--crc64", "-", data=b"123456789"), (0, want, ""))

    def test_compressed_file_is_summed_as_it_is(self):
        packed = gzip.compress(b"abc" * 1000)
        self.write("f.gz", packed)
        _, out, _ = self.sum("f.gz")
        self.assertEqual(out.decode(), hashlib.sha256(packed).hexdigest() + "  f.gz\n")

    def test_unreadable_file_does_not_stop_the_others(self):
        self.write("f", b"abc")
        status, out, err = self.sum("missing", "f", ".")
        self.assertEqual(status, 3)
        self.assertEqual(out.decode(), hashlib.sha256(b"abc").hexdigest() + "  f\n")
        self.assertIn("missing", err)

    def test_no_file_is_a_usage_error(self):
        status, out, err = self.sum()
        self.assertEqual((status, out), (2, b""))
        self.assertIn("FILE", err)

    def test_json_gives_size_and_digests(self):
        self.write("f", b"abc")
        status, out, _ = self.sum("--json", "--crc64", "--sha1", "f", "missing")
        files = json.loads(out)["files"]
        self.assertEqual(status, 3)
        self.assertEqual(files[0], {"file": "f", "size": 3, "crc64": "%016x" % crc64(b"abc"),
                                    "sha1": hashlib.sha1(b"abc").hexdigest()})
        self.assertEqual(files[1]["file"], "missing")
        self.assertEqual(files[1]["error"]["code"], "io")


class StoredChecksum(SumTest):
    def check(self, data, status, text, checksum):
        self.write("dump.rdb", data)
        got, out, err = self.sum("--crc64", "dump.rdb")
        crc = crc64(data[:-8]) if checksum == "holds" else crc64(data)
        self.assertEqual((got, out), (status, b"%016x  dump.rdb\n" % crc))
        self.assertEqual(err, text)
        got, out, _ = self.sum("--json", "dump.rdb")
        self.assertEqual(got, status)
        self.assertEqual(json.loads(out)["files"][0].get("rdb", {}).get("checksum"), checksum)

    def test_right_one_holds(self):
        for magic in b"REDIS0011", b"REDIS0005", b"VALKEY080":
            self.check(rdb(magic), 0, "dump.rdb: stored CRC64 matches: %016x\n"
                       % crc64(magic + b"\xff"), "holds")

    def test_wrong_one_is_a_finding(self):
        computed = crc64(b"REDIS0011\xff")
        self.check(rdb(crc=1), 1, "dump.rdb: stored CRC64 mismatch: stored %016x, "
                   "computed %016x\n" % (1, computed), "wrong")

    def test_zero_means_disabled(self):
        self.check(rdb(crc=0), 0, "dump.rdb: checksum disabled\n", "disabled")

    def test_old_version_has_none(self):
        self.check(b"REDIS0004\xff", 0, "dump.rdb: version 4 has no checksum\n", "none")

    def test_short_file_has_lost_it(self):
        self.check(b"REDIS0011\xff", 1,
                   "dump.rdb: stored CRC64 missing: the file is truncated\n", "missing")

    def test_other_files_have_none(self):
        for data in b"REDIS", b"REDIS001", b"REDISxxxx" + bytes(20), b"REDISTRIBUTE" * 3:
            self.check(data, 0, "", None)

    def test_files_of_another_kind_are_named(self):
        page = b"<!DOCTYPE html>\n<html></html>\n"
        for data in page, gzip.compress(page):
            self.write("dump.rdb", data)
            status, out, err = self.sum("dump.rdb")
            self.assertEqual((status, out), (0, b"%s  dump.rdb\n" %
                                             hashlib.sha256(data).hexdigest().encode()))
            self.assertEqual(err, "dump.rdb: another kind of file: an HTML page, which has no "
                             "stored CRC64\n")
            file = json.loads(self.sum("--json", "dump.rdb")[1])["files"][0]
            self.assertEqual((file["kind"], "rdb" in file), ("html", False))
        self.write("dump.rdb", rdb())
        self.assertEqual(json.loads(self.sum("--json", "dump.rdb")[1])["files"][0]["kind"], "rdb")

    def test_long_snapshot_is_judged_in_one_pass(self):
        body = b"REDIS0012" + bytes(300 * 1024) + b"\xff"
        self.check(body + struct.pack("<Q", crc64(body)), 0,
                   "dump.rdb: stored CRC64 matches: %016x\n" % crc64(body), "holds")

    def packed(self, name, data, checksum, status):
        self.write(name, data)
        got, out, err = self.sum("--json", name)
        file = json.loads(out)["files"][0]
        self.assertEqual((got, file["size"]), (status, len(data)))
        self.assertEqual(file["sha256"], hashlib.sha256(data).hexdigest())
        self.assertEqual(file["rdb"]["checksum"], checksum)
        self.assertEqual(file["rdb"]["compressed"], True)
        return file["rdb"]

    def test_the_one_in_a_compressed_file_is_judged(self):
        body = b"REDIS0012" + bytes(300 * 1024) + b"\xff"
        good = body + struct.pack("<Q", crc64(body))
        self.packed("good.gz", gzip.compress(good) + gzip.compress(b""), "holds", 0)
        self.packed("bad.gz", gzip.compress(rdb(crc=1)), "wrong", 1)
        cut = self.packed("cut.gz", gzip.compress(good)[:-9], "unreadable", 1)
        self.assertEqual(cut["error"]["code"], "truncated")
        zstd = subprocess.run(["zstd", "-q", "-c"], input=good, capture_output=True, check=True)
        self.packed("good.zst", zstd.stdout, "holds", 0)

    def test_a_list_holds_for_a_snapshot_until_it_changes(self):
        self.write("dump.rdb", rdb())
        lines = self.sum("--crc64", "dump.rdb")[1]
        old = b"0" * 16 + b"  dump.rdb\n"
        for text in lines, old:
            self.assertEqual(self.sum("-c", "-", data=text)[0], 0)
        for changed in rdb(crc=0), rdb(crc=1), rdb(b"REDIS0010"):
            self.write("dump.rdb", changed)
            for text in (lines, old) if changed[:9] == b"REDIS0011" else (lines,):
                self.assertEqual(self.sum("-c", "-", data=text)[0], 1)


class Check(SumTest):
    def test_lists_of_coreutils_are_verified(self):
        names = self.write_names()
        for tool in "sha1sum", "sha256sum", "sha512sum":
            for option in (), ("--tag",), ("-b",):
                lines = self.run_program(tool, *option, *names)[1]
                self.write("list", lines)
                status, out, err = self.sum("-c", "list")
                self.assertEqual((status, err), (0, ""), tool)
                self.assertEqual(out.count(b": OK\n"), len(names))

    def test_options_may_follow_check(self):
        self.write("a", b"a")
        self.write("list", self.sum("a")[1])
        status, out, _ = self.sum("-c", "--json", "list", "list")
        self.assertEqual((status, out.count(b'"file":"a"')), (0, 2), out)
        status, _, err = self.sum("--check")
        self.assertEqual((status, err), (2, "redoubt sum: missing argument: LIST\n"
                                             "  hint: redoubt sum --help\n"))

    def test_output_is_that_of_coreutils(self):
        for name in "a", "b c", "new\nline", "back\\slash":
            self.write(name, name.encode())
        lines = self.run_program("sha256sum", "a", "b c", "new\nline", "back\\slash")[1]
        self.write("list", lines + b"0" * 64 + b"  a\n" + b"0" * 64 + b"  missing\n")
        status, out, _ = self.run_program("sha256sum", "-c", "list")
        # Newer ones escape a backslash here, too.
        out = out.replace(b"\\back\\\\slash: OK", b"back\\slash: OK")
        got = self.sum("-c", "list")
        self.assertEqual(got[:2], (status, out))
        self.assertEqual(got[0], 1)

    def test_own_lists_are_verified_by_us_and_by_coreutils(self):
        names = self.write_names()
        lines = self.sum("--crc64", "--sha1", "--sha256", "--sha512", *names)[1]
        status, out, _ = self.sum("-c", "-", data=lines)
        self.assertEqual((status, out.count(b": OK\n")), (0, 4 * len(names)))
        lines = self.sum("--sha512", *names)[1]
        self.assertEqual(self.run_program("sha512sum", "-c", "--status", data=lines)[0], 0)

    def test_changed_file_is_a_finding(self):
        self.write("f", b"abc")
        for kind in "--crc64", "--sha1", "--sha256", "--sha512":
            lines = self.sum(kind, "f")[1]
            self.write("f", b"abd")
            self.assertEqual(self.sum("-c", "-", data=lines)[:2], (1, b"f: FAILED\n"))
            self.write("f", b"abc")

    def test_unreadable_file_is_a_finding(self):
        lines = b"0" * 40 + b"  missing\n"
        status, out, _ = self.sum("-c", "-", data=lines)
        self.assertEqual((status, out), (1, b"missing: FAILED open or read\n"))

    def test_malformed_lines_are_counted_and_passed_over(self):
        self.write("f", b"abc")
        good = hashlib.sha1(b"abc").hexdigest().encode()
        lines = b"# comment\nnonsense\n" + good + b" f\n" + good[:-1] + b"  f\n\\" + good
        lines += b"  \\x\n" + good + b"  f\0\nMD5 (f) = " + good + b"\n" + good.upper() + b"  f\r\n"
        status, out, err = self.sum("-c", "-", data=lines)
        self.assertEqual((status, out), (0, b"f: OK\n"))
        self.assertIn(": 6", err)

    def test_list_without_a_digest_is_a_finding(self):
        for lines in b"", b"\n", b"nonsense", b"# comment\n":
            self.assertEqual(self.sum("-c", "-", data=lines)[:2], (1, b""))

    def test_missing_list_is_an_error(self):
        self.assertEqual(self.sum("-c", "missing")[0], 3)
        status, out, _ = self.sum("--json", "-c", "missing")
        self.assertEqual(status, 3)
        self.assertEqual(json.loads(out)["error"]["code"], "io")

    def test_quiet_reports_failures_only(self):
        self.write("f", b"abc")
        lines = hashlib.sha1(b"abc").hexdigest().encode() + b"  f\n" + b"0" * 40 + b"  f\n"
        self.assertEqual(self.sum("-q", "-c", "-", data=lines)[:2], (1, b"f: FAILED\n"))

    def test_json_reports_each_line(self):
        self.write("f", b"abc")
        lines = hashlib.sha1(b"abc").hexdigest().encode() + b"  f\n" + b"0" * 64 + b"  f\n"
        status, out, _ = self.sum("--json", "-c", "-", data=lines)
        report = json.loads(out)
        self.assertEqual(status, 1)
        self.assertEqual(report["files"], [{"file": "f", "digest": "sha1", "status": "ok"},
                                           {"file": "f", "digest": "sha256", "status": "failed"}])
        self.assertEqual((report["matched"], report["differing"]), (1, 1))


if __name__ == "__main__":
    unittest.main()
