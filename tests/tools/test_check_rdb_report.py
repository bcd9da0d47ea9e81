"""redoubt check-rdb: what the report of a damaged file has without -v, and what with it."""

import os
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


if __name__ == "__main__":
    unittest.main()
