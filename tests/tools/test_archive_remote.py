"""redoubt archive into S3 and Azure, and onto a host with SFTP and a WebDAV server."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import ssh_server  # noqa: E402
from archive_case import ArchiveCase  # noqa: E402
from azure_server import AzureServer  # noqa: E402
from capture_case import eventually  # noqa: E402
from s3_server import S3Server  # noqa: E402
from webdav_server import WebDAVServer  # noqa: E402


class Remote:
    """The same for every store; `there` sets self.repository and returns more settings."""

    def test_moments_come_back(self):
        master = self.server()
        self.archived(master.port, more=self.there())
        running = self.start()
        running.says("snapshot received")
        found = self.moments(master, 4)
        self.wait_for(master)
        eventually("the base is there", self.sets)
        self.assertEqual(running.end(), 0)
        for offset, _, digest in found:
            self.check(digest, "--target-offset", str(offset))
        self.good("verify", "--level", "parse")
        # The lock is free, and the next run resumes.
        running = self.start()
        running.says("resuming at offset")
        offset, _, digest = self.moments(master, 1, seed=9)[0]
        self.wait_for(master)
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))
        self.assertEqual(len(self.streams()), 1)
        self.assertEqual(len(self.sets()), 1)

    def test_a_lock_whose_owner_was_killed_is_taken_over(self):
        master = self.server()
        self.archived(master.port, more=self.there())
        running = self.start()
        running.says("snapshot received")
        eventually("the base is there", self.sets)
        self.fails(7, "locked by", "archive", "--spool", self.path("other"))
        running.kill()
        running = self.start()
        running.says("resuming at offset")
        master.command("SET", "a", "b")
        self.wait_for(master)
        self.assertEqual(running.end(), 0)


class InS3(Remote, ArchiveCase):
    def setUp(self):
        super().setUp()
        self.s3 = S3Server()
        self.s3.__enter__()
        self.addCleanup(self.s3.__exit__, None, None, None)

    def there(self):
        self.write("s3key", f"{self.s3.access_key}\n{self.s3.secret_key}\n")
        self.repository = "s3://vault/some/where"
        return f"s3-endpoint = {self.s3.url}\ns3-key-file = {self.path('s3key')}\n"

    def test_a_store_that_fails_for_a_while_is_waited_for(self):
        master = self.server()
        self.archived(master.port, more=self.there())
        running = self.start()
        running.says("snapshot received")
        eventually("the base is there", self.sets)
        self.s3.faults = lambda method, path, n: 403 if "stream" in path else None
        offset, _, digest = self.moments(master, 3, pause=0.6)[-1]
        running.says("trying again")
        self.s3.faults = lambda method, path, n: (503, None, None)[n % 3]
        running.says("accepts segments again")
        self.s3.faults = None
        self.wait_for(master)
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))

    def test_objects_are_read_over_several_connections(self):
        master = self.server()
        self.archived(master.port, more=self.there() + "segment-size = 1kb\n")
        for _ in range(2):
            running = self.start("nightly", "--base-interval", "1s")
            running.says("offset")
            offset, _, digest = self.moments(master, 4, pause=0.1)[-1]
            self.wait_for(master)
            self.assertEqual(running.end(), 0)
        self.s3.delay = 0.03
        for parallel, least, most in ((1, 1, 1), (4, 2, 4), (None, 2, 16)):
            more = ["--parallel", str(parallel)] if parallel else []
            for args in (["verify", "nightly"], ["list", "nightly"]):
                self.s3.most = 0
                self.good(args[0], *more)
                self.assertGreaterEqual(self.s3.most, least)
                self.assertLessEqual(self.s3.most, most)
            self.check(digest, "--target-offset", str(offset), *more)
        # A connection that fails is not needed.
        self.s3.faults = lambda method, path, n: 503 if n % 3 == 0 else None
        self.check(digest, "--target-offset", str(offset))
        self.s3.faults = None
        self.fails(2, "parallel must be a number from 1 to 64", "list", "--parallel", "0")


class InAzure(Remote, ArchiveCase):
    def there(self):
        azure = AzureServer()
        azure.__enter__()
        self.addCleanup(azure.__exit__, None, None, None)
        self.write("azurekey", azure.key)
        self.repository = "azure://redis/vault/some/where"
        return (f"azure-endpoint = {azure.endpoint}\n"
                f"azure-key-file = {self.path('azurekey')}\n")


class OnWebDAV(Remote, ArchiveCase):
    def there(self):
        dav = WebDAVServer()
        dav.__enter__()
        self.addCleanup(dav.__exit__, None, None, None)
        self.write("pass", dav.password)
        self.repository = f"{dav.url}/srv/redis"
        return f"webdav-user = {dav.user}\nwebdav-pass-file = {self.path('pass')}\n"


@unittest.skipIf(ssh_server.missing(), ssh_server.missing())
class BySFTP(Remote, ArchiveCase):
    def setUp(self):
        super().setUp()
        self.ssh = ssh_server.SSHServer()
        self.ssh.__enter__()
        self.addCleanup(self.ssh.__exit__)

    def there(self):
        folder = self.path("there")
        os.mkdir(folder)
        self.repository = f"sftp://{self.ssh.user}@127.0.0.1:{self.ssh.port}{folder}"
        return (f"ssh-key-file = {self.ssh.key}\n"
                f"ssh-known-hosts = {self.ssh.known_hosts}\n")


if __name__ == "__main__":
    unittest.main()
