#!/usr/bin/env python3
"""The tests of backups in S3 with s3rver, an S3-compatible server of npm, in place of our own.

usage: npm install s3rver            (in a folder outside of the project)
       REDOUBT=build/release/tools/redoubt python3 tests/oracle/s3rver_by_hand.py \\
           FOLDER/node_modules/.bin/s3rver

It is not a part of ./run test, which needs no network. s3rver has no If-None-Match, accepts a wrong
secret, and cannot be made to fail: the tests of those need our own server.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "tools"), os.path.join(HERE, "..", "support")]
os.environ.setdefault("REDOUBT_FIXTURES", os.path.join(HERE, "..", "..", "fixtures"))

import s3_case  # noqa: E402
import test_backup_s3  # noqa: E402

TESTS = ("test_a_set_goes_there_and_comes_back", "test_settings_that_make_no_sense_are_refused",
         "test_a_list_of_many_pages_is_read_to_its_end", "test_large", "test_prefix",
         "test_conditions")
SUFFIX = "._S3rver_object"


class S3rver:
    access_key = secret_key = "S3RVER"
    program = None

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-s3rver-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            ["node", self.program, "-d", self.folder, "-p", str(self.port), "-a", "127.0.0.1",
             "--configure-bucket", "vault"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                time.sleep(0.1)
        raise AssertionError("s3rver does not start")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)

    @property
    def objects(self):
        top = os.path.join(self.folder, "vault")
        paths = [os.path.join(d, name) for d, _, names in os.walk(top) for name in names]
        return {os.path.relpath(p, top)[:-len(SUFFIX)] for p in paths if p.endswith(SUFFIX)}


class InS3rver(test_backup_s3.InS3):
    def test_large(self):
        """In parts and ranges, as far as it can be seen from here."""
        data = self.big()
        self.good("backup")
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), data)

    def test_prefix(self):
        self.repository = "s3://vault/a b+c%20d&e/\u00fc"
        self.nightly(more=f"s3-endpoint = {self.s3.url}\ns3-key-file = {self.path('s3key')}\n")
        self.good("backup")
        self.assertEqual(len(self.sets()), 1)
        self.good("verify")

    def test_conditions(self):
        self.fails(4, "If-None-Match", "check-config")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.partition("usage: ")[0].strip())
    S3rver.program = sys.argv[1]
    s3_case.S3Server = S3rver
    done = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(map(InS3rver, TESTS)))
    return 0 if done.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
