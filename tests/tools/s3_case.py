"""What the tests of backups in S3 share: a bucket, and a configuration that names it."""

import os
import random

from backup_case import BackupCase
from s3_server import S3Server


class S3Case(BackupCase):
    scheme = "s3"

    def setUp(self):
        super().setUp()
        self.s3 = self.enter(S3Server(google=self.scheme == "gs"))
        self.use("")

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def use(self, more, secret=None):
        self.write("s3key", f"{self.s3.access_key}\n{secret or self.s3.secret_key}\n")
        self.repository = f"{self.scheme}://vault/some/where"
        self.nightly(more=f"s3-endpoint = {self.s3.url}\ns3-key-file = {self.path('s3key')}\n"
                     "compress = none\n" + more)

    def big(self, size=20 << 20):
        """A snapshot that takes several parts."""
        rng = random.Random(1)
        blob = rng.randbytes(size)
        name = self.write("big.rdb", b"REDIS0011\xfe\x00\x00\x01k\x80" + size.to_bytes(4, "big") +
                          blob + b"\xff" + bytes(8))
        os.rename(name, self.path("dump.rdb"))
        with open(self.path("dump.rdb"), "rb") as file:
            return file.read()
