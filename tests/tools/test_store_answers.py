"""Every status that a store can give, at every request of the tools of backups: nothing that was
listed or archived is lost, and every run says the truth.

A part of the table is tried, always the same. With REDOUBT_STORE_SHARE=N it is one of N
combinations: 1 tries all. REDOUBT_STORE_PART=K takes the K-th of each N, so that N processes with
K from 0 to N - 1 try all of them at once. tests/answers/run does this, and counts.

Some answers are lies that look right: an object that exists is said not to, one is said to be
stored or removed that is not. A tool may believe them, but loses nothing because of them.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import sftp_server  # noqa: E402
import ssh_server  # noqa: E402
from azure_server import AzureServer, error_text, service  # noqa: E402
from backup_case import REDOUBT, SNAPSHOT, BackupCase  # noqa: E402
from captures import command  # noqa: E402
from s3_server import Fault, S3Server  # noqa: E402
from webdav_server import WebDAVServer  # noqa: E402

RUN = "20231114T221320Z-0000002a"

# ---- what S3 answers, and what is between it and the tools ----

HTML = b"<html><body>Please log in</body></html>"
JSON = b'{"message": "upstream request timeout"}'
STATUSES = (200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408,
            409,
            410, 411, 412, 413, 416, 417, 421, 429, 500, 501, 502, 503, 504, 507, 509, 599)
CODES = {
    200: ("InternalError", "SlowDown"),
    301: ("PermanentRedirect",), 307: ("TemporaryRedirect",),
    400: ("AuthorizationHeaderMalformed", "BadDigest", "EntityTooLarge", "EntityTooSmall",
          "ExpiredToken", "IncompleteBody", "InvalidArgument", "InvalidPart", "InvalidPartOrder",
          "InvalidRequest", "InvalidToken", "KeyTooLongError", "MalformedXML", "RequestTimeout",
          "XAmzContentSHA256Mismatch"),
    403: ("AccessDenied", "AllAccessDisabled", "InvalidAccessKeyId", "InvalidObjectState",
          "RequestTimeTooSkewed", "SignatureDoesNotMatch"),
    404: ("NoSuchBucket", "NoSuchUpload", "NoSuchVersion"), 405: ("MethodNotAllowed",),
    409: ("BucketNotEmpty", "ConditionalRequestConflict", "OperationAborted"),
    411: ("MissingContentLength",), 412: ("PreconditionFailed",), 416: ("InvalidRange",),
    429: ("TooManyRequests",), 500: ("InternalError",), 501: ("NotImplemented",),
    503: ("ServiceUnavailable", "SlowDown"),
}


def s3_error(code):
    return (b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>%s</Code><Message>it is so'
            b"</Message><RequestId>1</RequestId></Error>" % code.encode())


NO_SETS = (b'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult><IsTruncated>false'
           b"</IsTruncated></ListBucketResult>")
S3 = [Fault(status, body, done=done) for status in STATUSES for body in (b"", HTML, JSON)
      for done in (False, True) if body != JSON or not done]
S3 += [Fault(status, s3_error(code), done=done) for status, codes in CODES.items()
       for code in codes for done in (False, True)]
S3 += [Fault(status, done=True) for status in STATUSES]  # with the right body
S3 += [Fault(200, b"<ListBucketResult><Contents>"), Fault(body=lambda right: right[:-1], done=True),
       Fault(body=lambda right: right[1:], done=True), Fault(body=lambda right: right * 2,
                                                             done=True),
       Fault(body=lambda right: right[:len(right) // 2], done=True),
       Fault(headers=(("Content-Length", "1000000000"),), done=True, sent=10),
       Fault(done=True, sent=0), Fault(done=True, sent=1), Fault(done=True, sent=100), "cut",
       "lost"]
S3_FEW = [Fault(status, body, done=done) for status in STATUSES for body, done in (
    (b"", False), (s3_error("InternalError"), True))] + S3[-11:]
S3_LIES = [Fault(404, s3_error("NoSuchKey")), Fault(200, NO_SETS),
           Fault(200, b"", headers=(("ETag", '"0"'),)),
           Fault(200, b"", headers=(("ETag", '"0"'), ("Content-Length", "0")))]

# ---- what Azure answers, and what is between it and the tools ----

AZURE_CODES = {
    304: ("ConditionNotMet",),
    400: ("InvalidBlockList", "InvalidQueryParameterValue", "MissingRequiredHeader", "Md5Mismatch"),
    403: ("AuthenticationFailed", "AuthorizationFailure", "InsufficientAccountPermissions"),
    404: ("ContainerNotFound", "ResourceNotFound"), 405: ("UnsupportedHttpVerb",),
    409: ("ContainerBeingDeleted", "LeaseAlreadyPresent", "BlobImmutableDueToPolicy",
          "SnapshotsPresent"),
    411: ("MissingContentLengthHeader",), 412: ("LeaseIdMissing",), 416: ("InvalidRange",),
    429: ("TooManyRequests",), 500: ("InternalError", "OperationTimedOut"), 503: ("ServerBusy",),
}


def azure_error(status, code, done=False):
    return Fault(status, error_text(code), service(code), done=done)


AZURE = [f for f in S3 if not isinstance(f, Fault) or not (
    isinstance(f.body, bytes) and f.body.startswith(b"<?xml"))]
AZURE += [azure_error(status, code, done) for status, codes in AZURE_CODES.items()
          for code in codes for done in (False, True)]
AZURE_FEW = [Fault(status, b"", done=False) for status in STATUSES] + [
    azure_error(500, "InternalError", True), azure_error(403, "AuthorizationFailure")] + S3[-11:]
AZURE_ETAG = (("ETag", '"0x0"'), *service())
AZURE_LIES = [
    azure_error(404, "BlobNotFound"), azure_error(409, "BlobAlreadyExists"),
    Fault(200, b"<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>", service()),
    Fault(201, b"", AZURE_ETAG), Fault(202, b"", service()),
    Fault(200, b"", (("Content-Length", "0"), *AZURE_ETAG))]
# ---- what WebDAV answers, and what is between it and the tools ----


def without_children(right):
    """A list that names only the folder itself."""
    return re.sub(rb"(?s)(</x:response>).*(</x:multistatus>)", rb"\1\2", right)


# The right status of a change that was not made cannot be told from the truth.
DAV_TRUE = [Fault(status, body, done=done) for status in (*STATUSES, 207, 423)
            for body in (b"", HTML) for done in (False, True) if done or status not in (201, 204)]
DAV_TRUE += S3[-11:]
DAV_LIES = [Fault(status, body) for status in (201, 204) for body in (b"", HTML)]
DAV_LIES += [Fault(body=without_children, done=True)]

# ---- what SFTP answers: statuses of versions 3 to 6 ----

# libssh2 waits for a minute after the statuses of a lost connection.
SFTP_LOST = (5, 6, 7)
SFTP_STATUSES = (sftp_server.DENIED, sftp_server.FAILURE, sftp_server.UNSUPPORTED, 9, 10, 11, 12,
                 13,
                 14, 15, 31)
SFTP_TRUE = [{"status": status, "done": done, "cut": False} for status in SFTP_STATUSES
             for done in (False, True)] + [
    {"status": 0, "done": done, "cut": True} for done in (False, True)]
SFTP_LIES = [{"status": status, "done": done, "cut": False, "lie": True}
             for status in (sftp_server.OK, sftp_server.EOF, sftp_server.NO_SUCH_FILE)
             for done in (False, True)]


class Answers:
    """The same for every store. `faults`: what is tried, of which `few` for a tool that takes
    seconds, and `lies`; begin(): a store; count(): the requests since set_fault(); save() and
    load(): its contents."""

    share = 1  # of this many combinations one is tried

    def setUp(self):
        super().setUp()
        more = self.begin()
        self.nightly(sealed=False, more=more)
        for _ in range(3):
            self.good("backup")
        self.good("prune", "--pin", self.sets()[0]["id"])
        self.known = self.sets()
        self.saved = self.save()
        with open(SNAPSHOT, "rb") as file:
            self.data = file.read()
        self.make_spool()

    def make_spool(self):
        """What a run of `archive` could not upload: some segments and the snapshot before them."""
        stream = b"".join(command("SET", "k", word) for word in range(20))
        os.mkdir(self.path("spooled"))
        subprocess.run([os.environ["REDOUBT_MAKE_CAPTURE"], self.path("spooled", RUN), "a", "0",
                        SNAPSHOT, "1700000000000000", "1000000",
                        self.write("stream.resp", stream), "600"], check=True)
        self.end, self.moment = len(stream), None

    def waiting(self):
        """Whether something in the spool is not in the repository: the last segment stays."""
        names = os.listdir(self.path("spool", RUN))
        return any(n.endswith(".rdb") for n in names) or sum(n.endswith(".seg") for n in names) > 1

    def archive(self):
        """A run that uploads the spool; its master is not there."""
        shutil.rmtree(self.path("spool"), ignore_errors=True)
        shutil.copytree(self.path("spooled"), self.path("spool"))
        return self.archive_on()

    def archive_on(self):
        running = subprocess.Popen(  # without a buffer, which communicate() would not see
            [REDOUBT, "archive", "nightly", "--config", self.config, "--source",
             "redis://127.0.0.1:1", "--spool", self.path("spool")], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, bufsize=0,
            env={**os.environ, "ASAN_OPTIONS": self.options()})
        said = running.stderr.readline()  # of the master that is not there: it catches signals
        end = time.monotonic() + 120
        while running.poll() is None and self.waiting() and time.monotonic() < end:
            time.sleep(0.05)
        if running.poll() is None:
            running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=600)
        return subprocess.CompletedProcess(running.args, running.returncode, out, said + err)

    def options(self):
        return os.environ.get("ASAN_OPTIONS", "")

    def look(self, name, *args):
        """A tool that shows what the repository has after a run."""
        return self.tool(name, *args)

    def sound(self, what, at_least=()):
        """Without faults: these sets are there and good."""
        self.set_fault(None, 0)
        listed = json.loads(self.look("list", "--json").stdout)["sets"]
        ids = {s["id"] for s in listed if s["state"] != "damaged"}
        self.assertLessEqual({s["id"] for s in at_least}, ids, what)
        done = self.look("verify", "--level", "digest")
        self.assertEqual(done.returncode, 0, (what, done.stdout, done.stderr))
        return ids

    def after_lie(self, done, what):
        """The store said that something was stored, removed or missing, and it was not."""
        name = what[0]
        self.set_fault(None, 0)
        found = self.look("verify", "--level", "digest", "--json")
        self.assertIn(found.returncode, (0, 1), (what, found.stderr))
        good = {s["id"] for s in json.loads(found.stdout)["sets"] if s["good"]}
        kept = self.known[2:] if name == "prune" else self.known
        self.assertLessEqual({s["id"] for s in kept}, good, what)
        if os.path.exists(self.path("out.rdb")):
            self.assertEqual(self.read("out.rdb"), self.data, what)
            os.unlink(self.path("out.rdb"))
        if name == "archive":
            self.after_archive(done, what)

    def after_backup(self, done, what):
        new = self.sound(what, self.known) - {s["id"] for s in self.known}
        if done.returncode == 0:
            self.assertEqual(len(new), 1, what)

    def after_list(self, done, what):
        if done.returncode == 0:
            found = json.loads(done.stdout)["sets"]
            self.assertEqual([(s["id"], s["state"]) for s in found],
                             [(s["id"], s["state"]) for s in self.known], what)

    def after_verify(self, done, what):
        self.assertNotEqual(done.returncode, 1, (what, done.stdout))
        if done.returncode == 0:
            self.assertEqual(done.stdout.count(b": ok"), 3, (what, done.stdout))
        self.sound(what, self.known)

    def after_restore(self, done, what):
        out = self.path("out.rdb")
        self.assertEqual(os.path.exists(out), done.returncode == 0, what)
        if done.returncode == 0:
            self.assertEqual(self.read("out.rdb"), self.data, what)
            os.unlink(out)

    def after_prune(self, done, what):
        left = self.sound(what, (self.known[0], self.known[2]))
        if done.returncode == 0:
            self.assertEqual(len(left), 2, what)

    def after_archive(self, done, what):
        """What the repository does not have is in the spool, and the next run uploads it."""
        if done.returncode == 0:
            self.assertFalse(self.waiting(), what)
        self.set_fault(None, 0)
        again = self.archive_on()
        self.assertEqual(again.returncode, 0, (what, again.stderr))
        self.sound(what, self.known)
        got = self.look("restore", "--to", "-", "--target-offset", str(self.end))
        self.assertEqual(got.returncode, 0, (what, got.stderr))
        self.moment = self.moment or got.stdout
        self.assertEqual(got.stdout, self.moment, what)

    def tools(self):
        return (("backup", (), self.after_backup), ("list", ("--json",), self.after_list),
                ("verify", (), self.after_verify),
                ("restore", ("--to", self.path("out.rdb")), self.after_restore),
                ("prune", ("--keep", "count 1", "--confirm"), self.after_prune),
                ("archive", (), self.after_archive))

    def one(self, name, args):
        return self.archive() if name == "archive" else self.tool(name, *args)

    def try_one(self, name, args, after, at, fault):
        what = (name, at, fault)
        self.load(self.saved)
        self.set_fault(fault, at)
        done = self.one(name, args)
        self.assertIn(done.returncode, (0, 1, 2, 3, 4, 6, 7, 8), (what, done.stderr))
        if done.returncode != 0:
            self.assertTrue(done.stderr.strip() or name == "verify", what)
        if fault in self.lies:
            self.after_lie(done, what)
        else:
            self.assertNotEqual(done.returncode, 1, (what, done.stderr))
            after(done, what)

    def requests_of(self, name, args, after):
        """How many requests a run without faults makes."""
        self.load(self.saved)
        self.set_fault(None, 0)
        done = self.one(name, args)
        self.assertEqual(done.returncode, 0, done.stderr)
        n = self.count()
        after(done, name)
        return n

    def combinations(self, name, n):
        """Each of n requests with each fault. A run of `archive` takes seconds."""
        faults = self.few if name == "archive" else self.faults
        return [(at, fault) for at in range(1, n + 1) for fault in faults + self.lies]

    def test_every_run_says_the_truth(self):
        tried, skipped = 0, int(os.environ.get("REDOUBT_STORE_PART", 0))
        for name, args, after in self.tools():
            usual = 5 * self.share if name == "archive" else self.share
            share = int(os.environ.get("REDOUBT_STORE_SHARE", usual))
            n = self.requests_of(name, args, after)
            for at, fault in self.combinations(name, n):
                skipped += 1
                if skipped % share == 0:
                    tried += 1
                    with self.subTest(tool=name, request=at, fault=fault):
                        self.try_one(name, args, after, at, fault)
        print(f"# {tried} answers", flush=True)
        self.assertGreater(tried, 10)


class OfS3(Answers, BackupCase):
    faults, lies = S3, S3_LIES
    few = S3_FEW
    share = 151

    def begin(self):
        self.s3 = S3Server()
        self.s3.__enter__()
        self.addCleanup(self.s3.__exit__, None, None, None)
        self.write("s3key", f"{self.s3.access_key}\n{self.s3.secret_key}\n")
        self.repository = "s3://vault/some/where"
        return f"s3-endpoint = {self.s3.url}\ns3-key-file = {self.path('s3key')}\n"

    def set_fault(self, fault, at):
        self.s3.requests.clear()
        self.s3.faults = lambda method, path, n: fault if n == at else None

    def count(self):
        return len(self.s3.requests)

    def lie(self, method, end, answer):
        """What prune does if each such request has this answer."""
        self.load(self.saved)
        self.s3.faults = lambda its, path, n: (
            answer if its == method and path.endswith(end) else None)
        done = self.tool("prune", "--keep", "count 1", "--confirm")
        self.assertIn(done.returncode, (3, 6), done.stderr)
        known = self.known
        if method == "HEAD" and b"removed the manifest, but may still have it" in done.stderr:
            # manifests were read ahead, without this request; one set was to be removed, and is
            known = [s for s in known if f"/{s['id']}/".encode() not in done.stderr]
            self.assertEqual(len(known), len(self.known) - 1)
        self.sound(end, known)

    def test_a_manifest_that_the_store_does_not_give_does_not_count_as_damaged(self):
        self.lie("HEAD", "manifest.json", S3_LIES[3])

    def test_the_objects_of_a_set_stay_while_the_store_keeps_its_manifest(self):
        self.lie("DELETE", "manifest.json", Fault(204, b""))

    def test_what_the_store_only_says_it_has_stays_in_the_spool(self):
        for part in ("/00000001-0-", "/00000007-", "/dump.rdb", "/manifest.json"):
            lied = []

            def lie(method, path, _, part=part, lied=lied):
                if method != "PUT" or part not in path or lied:
                    return None
                lied.append(path)
                return S3_LIES[3]
            with self.subTest(part=part):
                self.load(self.saved)
                self.s3.faults = lie
                done = self.archive()
                self.assertEqual(len(lied), 1, done.stderr)
                self.assertRegex(done.stderr, b"the store does not show it|are missing")
                self.after_lie(done, ("archive", part))

    def save(self):
        return dict(self.s3.objects)

    def load(self, saved):
        self.s3.objects, self.s3.uploads = dict(saved), {}


class OfAzure(Answers, BackupCase):
    faults, lies = AZURE, AZURE_LIES
    few = AZURE_FEW
    share = 301

    def begin(self):
        self.azure = AzureServer()
        self.azure.__enter__()
        self.addCleanup(self.azure.__exit__, None, None, None)
        self.write("azurekey", self.azure.key)
        self.repository = "azure://redis/vault/some/where"
        return (f"azure-endpoint = {self.azure.endpoint}\n"
                f"azure-key-file = {self.path('azurekey')}\n")

    def set_fault(self, fault, at):
        self.azure.requests.clear()
        self.azure.faults = lambda method, path, n: fault if n == at else None

    def count(self):
        return len(self.azure.requests)

    def save(self):
        return dict(self.azure.objects)

    def load(self, saved):
        self.azure.objects, self.azure.blocks = dict(saved), {}
class OfWebDAV(Answers, BackupCase):
    faults, lies = DAV_TRUE, DAV_LIES
    few = DAV_TRUE[::5] + DAV_TRUE[-11:]
    share = 401

    def begin(self):
        self.dav = WebDAVServer()
        self.dav.__enter__()
        self.addCleanup(self.dav.__exit__, None, None, None)
        self.write("davpass", self.dav.password)
        self.repository = self.dav.url + "/srv/where"
        return f"webdav-user = {self.dav.user}\nwebdav-pass-file = {self.path('davpass')}\n"

    def set_fault(self, fault, at):
        self.dav.requests.clear()
        self.dav.faults = lambda method, path, n: fault if n == at else None

    def count(self):
        return len(self.dav.requests)

    def save(self):
        return dict(self.dav.files), set(self.dav.folders)

    def load(self, saved):
        self.dav.files, self.dav.folders = dict(saved[0]), set(saved[1])


@unittest.skipIf(ssh_server.missing(), ssh_server.missing())
class OfSFTP(Answers, BackupCase):
    faults, lies = SFTP_TRUE, SFTP_LIES
    few = SFTP_TRUE[:6] + SFTP_TRUE[-2:]
    if int(os.environ.get("REDOUBT_STORE_SHARE", 100)) < 100:
        faults = SFTP_TRUE + [{"status": status, "done": done, "cut": False}
                              for status in SFTP_LOST for done in (False, True)]
    share = 401

    def begin(self):
        self.control = self.write("control", "null")
        self.write("control.count", "")
        server = os.path.abspath(sftp_server.__file__)
        self.ssh = ssh_server.SSHServer(f"{sys.executable} -I -S {server} {self.control}")
        self.ssh.__enter__()
        self.addCleanup(self.ssh.__exit__)
        self.there = self.path("there")
        os.mkdir(self.there)
        self.repository = f"sftp://{self.ssh.user}@127.0.0.1:{self.ssh.port}{self.there}"
        return f"ssh-key-file = {self.ssh.key}\nssh-known-hosts = {self.ssh.known_hosts}\n"

    def options(self):
        """libssh2 itself leaks what a failed request had."""
        return super().options() + ":detect_leaks=0"

    def tool(self, name, *args, **more):
        return super().tool(name, *args, **{"env": {"ASAN_OPTIONS": self.options()}, **more})

    def look(self, name, *args):
        """Without a connection: the repository is a folder here."""
        if not os.path.exists(self.path("there.conf")):
            self.write("there.conf", f"[nightly]\nsource = {self.path('dump.rdb')}\n"
                       f"repository = {self.there}\n")
        return self.tool(name, "nightly", *args, "--config", self.path("there.conf"))

    def set_fault(self, fault, at):
        self.write("control.count", "")
        self.write("control", json.dumps({"at": at, **fault} if fault else None))

    def count(self):
        return os.path.getsize(self.path("control.count"))

    def test_a_connection_that_ends_in_a_list_hides_nothing(self):
        """libssh2 still has the status "no such file" of an earlier answer then."""
        done = self.path("control.done")
        for kind, nth in ((sftp_server.OPENDIR, 3), (sftp_server.OPENDIR, 5),
                          (sftp_server.OPENDIR, 7), (sftp_server.READDIR, 4)):
            self.load(self.saved)
            self.set_fault({"status": 0, "done": True, "cut": True, "stale": kind, "nth": nth}, 0)
            self.after_prune(self.tool("prune", "--keep", "count 1", "--confirm"), (kind, nth))
            self.assertTrue(os.path.exists(done))
            os.unlink(done)

    def test_a_segment_that_the_store_has_lost_a_part_of_is_uploaded_again(self):
        self.load(self.saved)
        self.set_fault({"lose": ".seg"}, 0)
        done = self.archive()
        self.assertTrue(os.path.exists(self.path("control.done")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"the store does not show it; trying again", done.stderr)
        self.after_archive(done, "lose")

    def save(self):
        shutil.copytree(self.there, self.path("saved"))
        return self.path("saved")

    def load(self, saved):
        shutil.rmtree(self.there)
        shutil.copytree(saved, self.there)


if __name__ == "__main__":
    unittest.main()
