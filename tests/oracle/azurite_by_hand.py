#!/usr/bin/env python3
"""Backups in Azurite, the emulator of Azure Storage of npm, in place of our own server.

usage: npm install azurite           (in a folder outside of the project)
       REDOUBT=build/release/tools/redoubt python3 tests/oracle/azurite_by_hand.py \\
           FOLDER/node_modules/.bin/azurite-blob

It is not a part of ./run test, which needs no network. Azurite cannot be made to fail: the tests of
that need our own server. It calls a wrong key an AuthorizationFailure.
"""

import base64
import hashlib
import hmac
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
from email.utils import formatdate

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "tools"), os.path.join(HERE, "..", "support")]
os.environ.setdefault("REDOUBT_FIXTURES", os.path.join(HERE, "..", "..", "fixtures"))

import test_backup_azure  # noqa: E402
from azure_server import signature  # noqa: E402

TESTS = ("test_whole", "test_conditions", "test_prefixes", "test_secrets", "test_pages",
         "test_settings_that_make_no_sense_are_refused")
VERSION = "2021-08-06"


class Azurite:
    account = "redis"
    key = base64.b64encode(bytes(range(64))).decode()
    program = None

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-azurite-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{self.port}/{self.account}"
        self.process = subprocess.Popen(
            [self.program, "--silent", "--disableTelemetry", "--location", self.folder,
             "--blobPort", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "AZURITE_ACCOUNTS": f"{self.account}:{self.key}"})
        for _ in range(900):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                time.sleep(0.1)
        self.request("PUT", "/vault?restype=container")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)

    def request(self, method, path, body=b"", **more):
        path = f"/{self.account}{path}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION,
                   "content-length": str(len(body)),
                   **{name.replace("_", "-"): value for name, value in more.items()}}
        made = signature(self.key, self.account, method, path, headers)
        headers["authorization"] = f"SharedKey {self.account}:{made}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status == 201, (answer.status, text)

    def sas(self, permissions):
        """A SAS of the account, by the text of "Create an account SAS"."""
        fields = {"sp": permissions, "ss": "b", "srt": "sco", "st": "",
                  "se": "2099-01-01T00:00:00Z", "sip": "", "spr": "http,https", "sv": VERSION,
                  "ses": ""}
        text = "\n".join([self.account, *fields.values()]) + "\n"
        made = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        fields["sig"] = base64.b64encode(made).decode()
        return urllib.parse.urlencode({k: v for k, v in fields.items() if v}, safe=":")


class InAzurite(test_backup_azure.InAzure):
    def test_whole(self):
        """Blocks and ranges, as far as they can be seen from here."""
        data = self.big()
        for _ in range(3):
            self.good("backup")
        self.assertEqual(len(self.sets()), 3)
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), data)
        self.good("prune", "--keep", "count 1", "--confirm")
        self.assertEqual(len(self.sets()), 1)
        self.good("verify")

    def test_conditions(self):
        self.assertIn(b"exclusive azure://redis", self.good("check-config"))

    def test_prefixes(self):
        for prefix in ("a%20b", "a&b=c", "a+b c", "M\u00fcnchen/\u6771\u4eac"):
            with self.subTest(prefix=prefix):
                where = ("nightly", "--repository", "azure://redis/vault/" + prefix)
                self.good("backup", *where)
                self.good("verify", *where)

    def test_secrets(self):
        self.good("backup")
        self.fails(6, "ContainerNotFound", "list", "--repository", "azure://redis/other")
        self.use(key=base64.b64encode(b"wrong").decode())
        self.fails(6, "Server failed to authenticate", "list")
        self.use(key=self.azure.sas("rwdlc"), secret="azure-sas-file")
        self.good("backup")
        self.assertEqual(len(self.sets()), 2)
        self.good("prune", "--keep", "count 1", "--confirm")
        self.use(key=self.azure.sas("rl"), secret="azure-sas-file")
        self.assertEqual(len(self.sets()), 1)
        done = self.tool("backup")
        self.assertEqual(done.returncode, 6)
        self.assertNotIn(b"sig=", done.stderr)

    def test_pages(self):
        """What is listed on the second page: names before it fill the first."""
        self.good("backup")
        for n in range(2001):
            self.azure.request("PUT", f"/vault/some/where/nightly/a/{n}", b"x",
                               x_ms_blob_type="BlockBlob")
        self.assertEqual(len(self.sets()), 1)
        self.good("verify")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.partition("usage: ")[0].strip())
    Azurite.program = sys.argv[1]
    test_backup_azure.AzureServer = Azurite
    done = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(map(InAzurite, TESTS)))
    return 0 if done.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
