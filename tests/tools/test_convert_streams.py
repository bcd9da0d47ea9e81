"""redoubt convert --to resp of streams: what is pending follows the entries, so a stream is
set aside first, wherever it comes from.

The program is $REDOUBT, the files are under $REDOUBT_FIXTURES. That servers understand the commands
is tests/oracle/test_convert_oracle.py's.
"""

import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import hexfile  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
STREAMS = os.path.join(FIXTURES, "redis-7.0.15", "streams.rdb")
GONE_LINE = {
    "db": 3, "key": "s", "type": "stream", "value": {
        "entries": [{"id": "5-0", "fields": [["f", "v"]]}],
        "length": 1, "last_id": "9-0", "first_id": "5-0", "max_deleted_id": "9-0",
        "entries_added": 4,
        "groups": [{
            "name": "g", "last_id": "9-0", "entries_read": 4,
            "pending": [{"id": "4-0", "consumer": "c", "delivery_ms": 7, "delivery_count": 2}],
            "consumers": [{"name": "c", "seen_ms": 7}]}]}}


def convert(*args, stdin=None, env=None):
    return subprocess.run([REDOUBT, "convert", "--to", *args], input=stdin, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, **(env or {})})


class Streams(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def commands(self, *args, **how):
        run = convert("resp", *args, **how)
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        return run.stdout

    def test_any_way_in_gives_the_same_commands(self):
        want = self.commands(STREAMS)
        self.assertIn(b"\r\nXDEL\r\n", want)
        with open(STREAMS, "rb") as f:
            data = f.read()
        self.assertEqual(self.commands("-", stdin=data), want)
        self.assertEqual(self.commands(self.path("a.gz", gzip.compress(data))), want)
        lines = convert("ndjson", STREAMS).stdout
        self.assertEqual(self.commands(self.path("a.ndjson", lines)), want)

    def test_a_line_has_its_pending_entries(self):
        text = self.commands("-", stdin=json.dumps(GONE_LINE).encode())
        verbs = re.findall(rb"\n(X[A-Z]+)\r\n\$\d+\r\ns\r\n\$\d+\r\n([^\r]*)", text)
        self.assertEqual(verbs, [(b"XADD", b"4-0"), (b"XADD", b"5-0"), (b"XCLAIM", b"g"),
                                 (b"XDEL", b"4-0"), (b"XSETID", b"9-0")])

    def test_damage_is_reported_where_it_is(self):
        """As by a target that takes streams as they come."""
        n = 0
        for name in sorted(glob.glob(os.path.join(FIXTURES, "broken", "stream-*.hex"))):
            path = self.path("broken.rdb", hexfile.load(name))
            want, run = convert("ndjson", path), convert("resp", path)
            if want.returncode == 0:
                continue
            n += 1
            with self.subTest(os.path.basename(name)):
                first, more = run.stderr.split(b"\n", 1)
                self.assertEqual(first, want.stderr.split(b"\n", 1)[0])
                self.assertEqual(run.returncode, 1)
                key = re.search(rb'stream "[^"]*" in db \d+', want.stderr).group()
                self.assertIn(key, more)
        self.assertGreater(n, 3)

    def test_what_is_too_long_for_memory_goes_to_a_file(self):
        line = json.loads(json.dumps(GONE_LINE))
        line["value"]["entries"][0]["fields"][0][1] = os.urandom(3 << 20).hex()
        path = os.path.join(self.folder, "long.rdb")
        run = convert("rdb", "-", "-o", path, stdin=json.dumps(line).encode())
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        out = self.commands(path)
        self.assertIn(line["value"]["entries"][0]["fields"][0][1].encode(), out)
        self.assertIn(b"\r\nXDEL\r\n", out)
        out = os.path.join(self.folder, "out.resp")
        run = convert("resp", path, "-o", out, env={"TMPDIR": os.path.join(self.folder, "none")})
        self.assertEqual(run.returncode, 3)
        self.assertIn(b"temporary file", run.stderr)
        self.assertFalse(os.path.exists(out))


if __name__ == "__main__":
    unittest.main()
