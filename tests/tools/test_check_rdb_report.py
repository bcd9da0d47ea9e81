"""redoubt check-rdb: what the report of a damaged file has without -v, and what with it."""

import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_check_rdb import CheckRdbTest, fixture  # noqa: E402


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
        self.assertIn(f"\n  … and {len(every) - 5} more (-v, --json)\n", out)
        self.assertNotIn("(-v, --json)", more)

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
