"""Names with characters that a terminal, a browser or a spreadsheet would obey."""

import base64
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from rdb_text import HASH, STRING, Key, snapshot  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
CONTROLS = ["\x80", "\x85", "\x9b31m", "\x9f", "\u00ad", "\u061c", "\u200b", "\u200e", "\u200f",
            "\u2028", "\u2029", "\u202a", "\u202e", "\u2060", "\u2066", "\u2069", "\ufeff",
            "\ufff9", "\U000e0001", "\U000e0041"]
PLAIN = ["\u00a0", "\u00e4", "\u2027", "\u202f", "\u20ac", "\u65e5", "\U0001f600"]
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=a,b", '=a"b']


class Controls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-controls-")
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "in.rdb")
        self.names = CONTROLS + PLAIN + FORMULAS
        with open(self.path, "wb") as f:
            f.write(snapshot([Key(n.encode(), HASH, [(n.encode(), b"v" + n.encode())])
                              for n in self.names], aux=[(b"redis-ver", "7\u202e\x9b".encode())]))

    def run_tool(self, *args, status=0):
        run = subprocess.run([REDOUBT, *args], stdin=subprocess.DEVNULL, capture_output=True,
                             timeout=600, check=False)
        self.assertEqual(run.returncode, status, run.stderr)
        text = (run.stdout + run.stderr).decode("utf-8")
        for c in CONTROLS:
            self.assertNotIn(c[0], text, (args, c))
        return run.stdout.decode("utf-8")

    def test_json_lines_have_them_escaped_and_lose_nothing(self):
        out = self.run_tool("convert", "--to", "ndjson", "--meta", self.path)
        found = [json.loads(line) for line in out.splitlines()]
        found = [line for line in found if "key" in line]
        self.assertEqual([line["key"] for line in found], self.names)
        self.assertEqual([line["value"] for line in found], [{n: "v" + n} for n in self.names])
        for name in PLAIN:
            self.assertIn(name, out)

    def test_they_come_back_from_json_lines(self):
        lines = self.run_tool("convert", "--to", "ndjson", self.path)
        run = subprocess.run([REDOUBT, "convert", "--to", "rdb", "-"], input=lines.encode(),
                             capture_output=True, timeout=600, check=True)
        run = subprocess.run([REDOUBT, "diff", "-", self.path], input=run.stdout,
                             capture_output=True, timeout=600, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_reports_have_them_escaped(self):
        for args in (["check-rdb"], ["check-rdb", "--json"], ["stat"], ["stat", "--json"],
                     ["stat", "--csv"], ["convert", "--to", "csv"]):
            self.run_tool(*args, self.path)
        empty = self.path + ".empty"
        with open(empty, "wb") as f:
            f.write(snapshot([Key(b"k", STRING, b"v")]))
        for args in (["diff"], ["diff", "--json"], ["diff", "--ndjson", "--values"]):
            self.run_tool(*args, self.path, empty, status=1)

    def test_no_cell_of_a_table_begins_a_formula(self):
        for args, column in ((["convert", "--to", "csv"], "key"), (["stat", "--csv"], "key")):
            rows = list(csv.DictReader(self.run_tool(*args, self.path).splitlines()))
            self.assertEqual(len(rows), len(self.names))
            for row in rows:
                self.assertNotIn(row[column][0], "=+-@\t\r", row)
        rows = csv.DictReader(self.run_tool("convert", "--to", "csv", self.path).splitlines())
        self.assertEqual([json.loads('"' + row["key"].replace('"', '\\"').replace('\\\\"', '\\"') +
                                     '"') for row in rows], self.names)

    def test_the_page_runs_only_its_own_script_and_style(self):
        page = self.run_tool("stat", "--html", "-", self.path)
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe-inline", policy)
        for element, directive in (("style", "style-src"), ("script", "script-src")):
            text = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
            self.assertEqual(len(text), 1)
            digest = base64.b64encode(hashlib.sha256(text[0].encode()).digest()).decode()
            self.assertIn(f"{directive} 'sha256-{digest}';", policy)


if __name__ == "__main__":
    unittest.main()
