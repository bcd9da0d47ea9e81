"""Keys of S3 from the metadata service of an instance, and from that of a container."""

import datetime
import json
import os
import subprocess
import unittest

from backup_case import REDOUBT, BackupCase
from s3_server import S3Server
from web_server import WebServer

TOKEN = "session-token-of-the-service=="
ROLE = "/latest/meta-data/iam/security-credentials/"


def later(**kwargs):
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**kwargs)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


class Instance(BackupCase):
    def setUp(self):
        super().setUp()
        self.s3 = self.enter(S3Server())
        self.web = self.enter(WebServer(self.answer))
        self.expires = later(hours=6)
        self.rotate = False  # other keys with each answer, and the store knows the last ones only
        self.session = "token-of-the-session"
        self.repository = "s3://vault/some"
        self.nightly(more=f"s3-endpoint = {self.s3.url}\ns3-instance-keys = yes\n")
        self.env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": self.web.url}

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def keys(self):
        if self.rotate:
            self.s3.access_key = f"AKID{len(self.web.requests)}"
            self.s3.secret_key = f"secret{len(self.web.requests)}/+="
        return json.dumps({"Code": "Success", "Type": "AWS-HMAC",
                           "AccessKeyId": self.s3.access_key, "SecretAccessKey": self.s3.secret_key,
                           "Token": self.session, "Expiration": self.expires}).encode()

    def answer(self, method, path, headers):
        """The service: version 2 only."""
        if path == "/latest/api/token":
            good = method == "PUT" and headers.get("x-aws-ec2-metadata-token-ttl-seconds")
            return (200, TOKEN.encode()) if good else (400, b"")
        if method != "GET" or headers.get("x-aws-ec2-metadata-token") != TOKEN:
            return 401, b"secret-answer"
        if path == ROLE:
            return 200, b"backup-role"
        return (200, self.keys()) if path == f"{ROLE}backup-role" else (404, b"")

    def run_tool(self, *args, env=None):
        done = subprocess.run([REDOUBT, *args, "--config", self.config], capture_output=True,
                              env={**os.environ, **(self.env if env is None else env)},
                              check=False)
        said = (done.stdout + done.stderr).decode()
        for secret in (self.s3.secret_key, TOKEN, self.session, self.s3.access_key,
                       "secret-answer"):
            self.assertNotIn(secret, said)
        return done.returncode, said

    def asked_for_keys(self):
        return [path for path in self.web.paths() if path.endswith("backup-role")]

    def test_a_backup_with_the_role_of_the_instance(self):
        self.assertEqual(self.run_tool("backup", "nightly")[0], 0)
        self.assertEqual(self.web.paths(),
                         ["/latest/api/token", ROLE, f"{ROLE}backup-role"])
        headers = self.s3.requests[0][2]
        self.assertEqual(headers["x-amz-security-token"], self.session)
        self.assertIn("x-amz-security-token", headers["Authorization"])
        self.assertEqual(self.run_tool("verify", "nightly")[0], 0)
        stored = b"".join(self.s3.objects.values())
        self.assertNotIn(self.session.encode(), stored)
        self.assertNotIn(self.s3.secret_key.encode(), stored)

    def test_keys_are_renewed_before_they_expire(self):
        self.expires, self.rotate = later(minutes=2), True
        self.assertEqual(self.run_tool("backup", "nightly")[0], 0)
        self.assertGreater(len(self.asked_for_keys()), 3)

    def test_keys_that_the_store_refuses_are_renewed(self):
        self.rotate = True

        def expire(method, path, n):
            if n == 4:
                self.s3.access_key = "AKIDOTHER"
            return None
        self.s3.faults = expire
        self.assertEqual(self.run_tool("backup", "nightly")[0], 0)
        self.assertEqual(len(self.asked_for_keys()), 2)

    def test_a_refusal_that_new_keys_do_not_change(self):
        self.s3.faults = lambda method, path, n: 403
        status, said = self.run_tool("backup", "nightly")
        self.assertEqual(status, 6)
        self.assertIn("status 403", said)

    def test_keys_are_used_while_the_service_is_away(self):
        self.expires = later(minutes=2)
        count = []

        def away(method, path, headers):
            count.append(path)
            return self.answer(method, path, headers) if len(count) <= 3 else (503, b"")
        self.web.answer = away
        self.assertEqual(self.run_tool("backup", "nightly")[0], 0)

    def test_a_container(self):
        def answer(method, path, headers):
            if headers.get("authorization") != "container secret":
                return 403, b""
            return (200, self.keys()) if path == "/v1/keys" else (404, b"")
        self.web.answer = answer
        env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.web.url}/v1/keys"}
        status, said = self.run_tool("backup", "nightly", env=env)
        self.assertEqual(status, 6)
        self.assertIn("it answered with status 403", said)
        self.write("token", "container secret\n")
        env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = self.path("token")
        self.web.requests.clear()
        self.assertEqual(self.run_tool("backup", "nightly", env=env)[0], 0)
        self.assertEqual(self.web.paths(), ["/v1/keys"])

    def test_the_authorization_goes_to_hosts_of_platforms_only(self):
        for url in ("http://example.org/keys", "http://127.0.0.1@example.org/",
                    "file:///etc/passwd", "http://127.0.0.1.example.org/", "127.0.0.1/keys"):
            env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": url,
                   "AWS_CONTAINER_AUTHORIZATION_TOKEN": "x"}
            status, said = self.run_tool("backup", "nightly", env=env)
            self.assertEqual(status, 2, url)
            self.assertIn("neither https nor of this host", said)

    def test_answers_that_are_not_keys(self):
        good = json.loads(self.keys())
        for change in ({"Code": "Failed"}, {"AccessKeyId": ""}, {"AccessKeyId": "a:b"},
                       {"Token": "a\r\nX: y"}, {"SecretAccessKey": "x" * 300},
                       {"Expiration": "soon"}):
            text = json.dumps({**good, **change}).encode()
            self.answer_keys(text)
        for text in (b"", b"[]", b"{", b"<html>", b"\x00" * 100, b"{" * 70000):
            self.answer_keys(text)

    def answer_keys(self, text):
        self.web.answer = lambda method, path, headers: (
            (200, text) if path.endswith("-role") else self.answer(method, path, headers))
        status, said = self.run_tool("list", "nightly")
        self.assertEqual(status, 6, (text[:80], said))

    def test_a_service_that_is_missing_or_refuses(self):
        for answer in ((404, b""), (200, b""), (200, b"a\nb c"), (200, b"x" * 70000)):
            self.web.answer = lambda *_, answer=answer: answer
            self.assertEqual(self.run_tool("list", "nightly")[0], 6, answer[0])
        env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}
        status, said = self.run_tool("list", "nightly", env=env)
        self.assertEqual(status, 6)
        self.assertIn("the keys of the instance", said)


if __name__ == "__main__":
    unittest.main()
