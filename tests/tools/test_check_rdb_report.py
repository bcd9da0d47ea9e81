"""redoubt check-rdb: what the report of a damaged file has without -v, and what with it."""

import os
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_check_rdb import REDOUBT, CheckRdbTest, fixture, pair, rdb, string  # noqa: E402


class Report(CheckRdbTest):
    def lines(self, out, *labels):
        return [line for line in out.splitlines() if line[2:12].strip() in labels]

    def test_five_doubtful_keys_are_enough(self):
        path = os.path.abspath(fixture("damaged", "flip-17.rdb"))
        _, out, _ = self.check(path)
        doubtful = self.lines(out, "doubtful", "omitted")
        _, more, _ = self.check("-v", path)
        every = self.lines(more, "doubtful", "omitted")
        self.assertEqual(doubtful, every[:5])
        self.assertGreater(len(every), 10)
        self.assertIn(f"\n             and {len(every) - 5} more (-v, --json)\n", out)
        self.assertNotIn("(-v, --json)", more)

    def test_lines_fit_80_columns(self):
        for name in ("flip-17.rdb", "cut-tiny-262.rdb", "checksum-zero.rdb"):
            for args in ((), ("-v",), ("--salvage", self.path(name))):
                path = os.path.relpath(fixture("damaged", name), self.folder)
                _, out, _ = self.run_program([os.path.abspath(REDOUBT), "check-rdb", *args, path])
                out = out[out.index(path):]  # -v lists records before
                words = {len(word) for word in out.split()}
                self.assertLessEqual(max(map(len, out.splitlines())), max(80, *words), out)

    def test_the_last_line_says_what_can_be_saved(self):
        good = rdb(b"\xfe\x00", pair(b"one"), pair(b"two"))
        for data, said in ((good[:-12], "truncated; --salvage OUT saves 1 key, 1 of them doubtful"),
                           (b"", "empty; nothing can be saved"),
                           (good[:12], "truncated; nothing can be saved")):
            _, out, _ = self.check(self.write("f", data))
            self.assertEqual(out.splitlines()[-1], "f: " + said)
        _, out, _ = self.check("--salvage", "out.rdb", self.write("f", good[:-12]))
        self.assertEqual(out.splitlines()[-1].split(",")[0], "out.rdb: 1 key (1 doubtful)")

    def test_keys_before_the_damage_do_not_include_the_broken_one(self):
        """Nor those after it, of a value whose framing is intact."""
        listpack = bytearray(b"\x0b\0\0\0\2\0\1\1\2\1\xff")
        listpack[7] = 9  # a wrong back length
        keys = [pair(b"a%d" % i) for i in range(3)]
        broken = b"\x10" + string(b"h") + string(bytes(listpack))
        data = rdb(b"\xfe\x00", *keys, broken, *[pair(b"b%d" % i) for i in range(5)])
        _, out, _ = self.check(self.write("f", data))
        self.assertIn("\n  up to here 3 keys\n", out)
        self.assertIn("  can save   8 keys, 5 of them after the damage", out)
        _, out, _ = self.check(self.write("f", rdb(b"\xfe\x00", *keys)[:-11]))
        self.assertIn("\n  up to here 2 keys\n", out)

    def test_an_error_is_printed_once_where_both_streams_are_read(self):
        path = self.write("f", rdb(b"\xfe\x00", pair(b"one"), pair(b"two"))[:-12])
        done = subprocess.run([REDOUBT, "check-rdb", path], cwd=self.folder, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        self.assertEqual(done.stdout.count("the input ends here"), 1, done.stdout)
        _, _, err = self.check(path)
        self.assertEqual(err.count("the input ends here"), 1)

    def test_names_are_shown_as_they_are_unless_a_terminal_interprets_them(self):
        shown = {"käse".encode(): "käse", "日本".encode(): "日本",
                 "a\u202eb".encode(): "a\\xe2\\x80\\xaeb", b"\xff\xc3": "\\xff\\xc3",
                 b"\x1b[2J": "\\x1b[2J", "\x9b".encode(): "\\xc2\\x9b"}
        path = self.write("f", rdb(b"\xfe\x00", *map(pair, shown)))
        _, out, _ = self.check("-v", path)
        for text in shown.values():
            self.assertIn(f'string/string "{text}"\n', out)

    def test_the_evidence_is_printed_on_request(self):
        path = os.path.abspath(fixture("damaged", "flip-17.rdb"))
        _, out, _ = self.check(path)
        _, more, _ = self.check("-v", path)
        for words in "anchor", "; then: ":
            self.assertNotIn(words, out)
            self.assertIn(words, more)
        self.assertTrue(self.lines(more, "run"))
        self.assertFalse(self.lines(out, "run"))


class Historic(CheckRdbTest):
    """What docs/compatibility.md says of drafts and of files that servers no longer have."""

    def test_the_info_fields_of_a_draft(self):
        fields = b"".join(struct.pack("<HQ", number, len(data)) + data for number, data in (
            (1, struct.pack("<q", 1293839999)), (2, b"2.2.0\0"), (0, b"")))
        name = self.write("draft.rdb", b"REDIS0004" + fields + b"\xfe\0\0\1k\1v\xff")
        status, out, err = self.check(name)
        self.assertEqual(status, 1)
        self.assertIn("draft.rdb: damaged at byte 9 (0x9)\n", out)
        self.assertIn("hint: --salvage OUT can save 1 key", err)

    def test_the_swap_file_of_virtual_memory(self):
        name = self.write("redis.swap", (b"\0\5hello" + bytes(25)) * 100)
        status, out, err = self.check(name)
        self.assertEqual(status, 1)
        self.assertIn("not an RDB file: it begins with neither REDIS nor VALKEY", err)
        self.assertIn("  can save   nothing", out)


if __name__ == "__main__":
    unittest.main()
