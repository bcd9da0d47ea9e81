"""fixtures/MANIFEST.tsv lists what is there, and nothing else; and the tools agree with it."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import hexfile  # noqa: E402
import manifest  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")

_EXPECTED = re.compile(r"^(ok|[a-z]+@(\d+(\+\d+)?|-))( [a-z-]+)*( \d+)?$")


class Manifest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.rows = manifest.read(FIXTURES)

    def test_the_list_names_every_file_and_no_other(self):
        self.assertEqual(list(self.rows), manifest.paths(FIXTURES))

    def test_every_file_is_the_one_that_was_listed(self):
        for made in manifest.made(FIXTURES, self.rows):
            self.assertEqual(made.line(), self.rows[made.path].line())

    def test_what_readers_judge_has_an_expectation_and_nothing_else_has(self):
        for row in self.rows.values():
            if manifest.is_judged(row.path):
                self.assertRegex(row.expected, _EXPECTED, row.path)
            else:
                self.assertEqual(row.expected, "-", row.path)

    def test_the_annotated_files_are_bytes_of_a_snapshot(self):
        n = 0
        for row in self.rows.values():
            if row.kind == "rdb-hex":
                data = hexfile.load(os.path.join(FIXTURES, row.path))
                self.assertIn(data[:5], (b"REDIS", b"VALKE"), row.path)
                n += 1
        self.assertGreater(n, 50)

    def test_the_folder_stays_small(self):
        total = sum(os.path.getsize(os.path.join(FIXTURES, path)) for path in self.rows)
        self.assertLess(total, 6 << 20)


if __name__ == "__main__":
    unittest.main()
