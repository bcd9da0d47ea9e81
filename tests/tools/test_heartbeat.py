"""The heartbeat of backup and archive: a request after each success and failure, and no more."""

import os
import signal
import subprocess
import time
import unittest

from backup_case import REDOUBT, BackupCase
from redis_server import RedisServer
from web_server import WebServer

SECRET = "7f1c0c1e-secret-uuid"
PATIENCE = 600


class Heartbeat(BackupCase):
    def setUp(self):
        super().setUp()
        self.web = WebServer()
        self.web.__enter__()
        self.addCleanup(self.web.__exit__)
        self.url = f"{self.web.url}/ping/{SECRET}"

    def beats(self, *paths, more=""):
        """A backup with this configuration requests these paths, and says none of them."""
        self.web.requests.clear()
        self.nightly(more=f"heartbeat-url = {self.url}\n{more}")
        done = self.tool("backup", "nightly", "--json")
        self.assertNotIn(SECRET.encode(), done.stdout + done.stderr)
        self.assertEqual(self.web.paths(), [f"/ping/{SECRET}{path}" for path in paths])
        self.assertTrue(all(method == "GET" for method, _, _ in self.web.requests))
        return done

    def damage(self):
        with open(self.path("dump.rdb"), "r+b") as file:
            file.truncate(20)

    def test_success_and_failure(self):
        self.assertEqual(self.beats("").returncode, 0)
        self.damage()
        self.assertEqual(self.beats("/fail").returncode, 1)

    def test_a_url_of_its_own_for_failures(self):
        more = f"heartbeat-failed-url = {self.web.url}/ping/{SECRET}/bad?code=1\n"
        self.assertEqual(self.beats("", more=more).returncode, 0)
        self.damage()
        self.assertEqual(self.beats("/bad?code=1", more=more).returncode, 1)

    def test_the_query_stays_at_the_end(self):
        self.nightly()
        self.damage()
        self.url += "/?a=b"
        self.web.requests.clear()
        self.nightly(more=f"heartbeat-url = {self.url}\n")
        self.fails(1, "truncated", "backup", "nightly")
        self.assertEqual(self.web.paths(), [f"/ping/{SECRET}/fail?a=b"])

    def test_a_repository_that_fails_is_a_failure(self):
        self.write("file", "x")
        done = self.beats("/fail", more=f"repository = {self.path('file', 'no')}\n")
        self.assertEqual(done.returncode, 8, done.stderr)

    def test_a_repository_that_cannot_be_opened_is_a_failure(self):
        self.write("file", "x")
        self.repository = self.path("file", "no")
        self.assertEqual(self.beats("/fail").returncode, 3)

    def test_a_service_that_fails_does_not_fail_the_backup(self):
        for status, requests in ((404, 1), (500, 3), (429, 3)):
            self.web.answer = lambda *_, status=status: (status, b"no")
            done = self.beats(*[""] * requests)
            self.assertEqual(done.returncode, 0)
            self.assertIn(f"the heartbeat failed: the server answered with status {status}",
                          done.stderr.decode())
        self.url = f"http://127.0.0.1:1/{SECRET}"
        self.assertEqual(self.beats().returncode, 0)
        self.url = f"ftp://127.0.0.1/{SECRET}"
        done = self.beats()
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"Unsupported protocol", done.stderr)

    def test_a_service_that_does_not_answer(self):
        self.web.answer = lambda *_: None
        done = self.beats("")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"Timeout was reached", done.stderr)
        self.assertEqual(len(self.sets()), 1)

    def test_the_url_of_the_command_line_is_cleared(self):
        self.nightly()
        self.web.answer = lambda *_: None
        args = [REDOUBT, "backup", "--config", self.config, "--heartbeat-url", self.url]
        with subprocess.Popen(args, stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL) as process:
            self.poll(lambda: self.web.requests)
            with open(f"/proc/{process.pid}/cmdline", "rb") as file:
                self.assertNotIn(SECRET.encode(), file.read())
            process.kill()

    def poll(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, "it does not happen")
            time.sleep(0.01)

    def test_archive(self):
        with RedisServer({"repl-diskless-sync-delay": "0"}) as server:
            self.nightly(source=f"redis://127.0.0.1:{server.port}",
                         more=f"spool = {self.path('spool')}\nheartbeat-url = {self.url}\n")
            with subprocess.Popen([REDOUBT, "archive", "nightly", "--config", self.config],
                                  stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
                self.poll(lambda: self.web.requests)
                process.send_signal(signal.SIGTERM)
                said = process.stderr.read()
            self.assertEqual(process.returncode, 0, said)
            self.assertEqual(self.web.paths(), [f"/ping/{SECRET}"])
            self.assertNotIn(SECRET.encode(), said)


if __name__ == "__main__":
    unittest.main()
