"""Backups on a WebDAV server: a small one of the tests, and lighttpd where it is installed."""

import os
import random
import shutil
import signal
import socket
import subprocess
import time
import unittest

import certificates
from backup_case import REDOUBT, SNAPSHOT, BackupCase
from capture_case import eventually
from captures import command
from s3_server import Fault
from webdav_server import WebDAVServer

LIGHTTPD = shutil.which("lighttpd", path=os.environ["PATH"] + ":/usr/sbin")
HTML = b"<html><body>Please log in</body></html>"


class OnWebDAV(BackupCase):
    def setUp(self):
        super().setUp()
        self.serve()

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def serve(self, path="/srv/back ups%25/redis", more="", **about):
        self.dav = self.enter(WebDAVServer(**about))
        self.write("pass", self.dav.password + "\nanother line\n")
        self.repository = self.dav.url + path
        self.use(more)

    def use(self, more="", user=None):
        self.nightly(more=f"webdav-user = {user or self.dav.user}\ncompress = none\n"
                     f"webdav-pass-file = {self.path('pass')}\n{more}")

    def big(self, size=20 << 20):
        """A snapshot that does not stay in memory."""
        blob = random.Random(1).randbytes(size)
        self.write("dump.rdb", b"REDIS0011\xfe\x00\x00\x01k\x80" + size.to_bytes(4, "big") + blob +
                   b"\xff" + bytes(8))
        return self.read("dump.rdb")

    def comes_back(self, data):
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), data)
        os.unlink(self.path("out.rdb"))

    def leftovers(self):
        return [name for name in self.dav.files if name.endswith(".new")]

    def test_a_set_goes_there_and_comes_back(self):
        self.good("check-config")
        self.good("backup")
        self.assertTrue(all(name.startswith("/srv/back ups%/redis/nightly/sets/")
                            for name in self.dav.files), self.dav.files.keys())
        self.assertEqual((len(self.dav.files), self.leftovers()), (2, []))
        self.assertEqual(len(self.sets()), 1)
        with open(SNAPSHOT, "rb") as file:
            self.comes_back(file.read())

    def test_long_names_of_segments_are_listed(self):
        run, begin = "20231114T221320Z-0000002a", 10 ** 14
        stream = b"".join(command("SET", "k", word) for word in range(9))
        os.mkdir(self.path("spool"))
        subprocess.run([os.environ["REDOUBT_MAKE_CAPTURE"], self.path("spool", run), "a",
                        str(begin), SNAPSHOT, "1700000000000000", "1000000",
                        self.write("stream.resp", stream), "60", "1", "late"], check=True)
        spooled = [n for n in os.listdir(self.path("spool", run)) if n.endswith(".seg")]
        process = subprocess.Popen([REDOUBT, "archive", "nightly", "--config", self.config,
                                    "--source", "redis://127.0.0.1:1", "--spool",
                                    self.path("spool"), "--merge", "no"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0)
        process.stderr.readline()  # it catches signals now
        eventually("the spool is empty but for its last segment", lambda: len([
            n for n in os.listdir(self.path("spool", run)) if n.endswith(".seg")]) == 1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=120), 0, process.stderr.read())
        process.stderr.close()
        names = [os.path.basename(n) for n in self.dav.files if ".seg" in n]
        self.assertGreater(min(map(len, names)), 100)
        self.assertEqual(len(names), len(spooled))
        listed = self.json("list", "nightly")[0]["streams"]
        self.assertEqual([s["segments"] for s in listed], [len(names)])
        self.good("restore", "nightly", "--to", self.path("out.rdb"), "--target-offset",
                  str(begin + len(stream)))

    def test_objects_of_every_size_come_back(self):
        for size in (0, 1, 10000, (8 << 20) - 200, (8 << 20) + 1, 20 << 20):
            with self.subTest(size=size):
                data = self.big(size)
                self.good("backup")
                self.comes_back(data)
        self.assertEqual(self.leftovers(), [])

    def test_a_large_object_waits_in_a_folder_without_a_name(self):
        self.big()
        folder = self.path("spool")
        os.mkdir(folder)
        for more, env in (("", {"TMPDIR": folder}), (f"spool = {folder}\n", {})):
            self.use(more)
            done = self.tool("backup", env=env)
            self.assertEqual((done.returncode, os.listdir(folder)), (0, []), done.stderr)
        self.use()
        done = self.tool("backup", env={"TMPDIR": self.path("nowhere")})
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(b"nowhere: cannot create the file of an upload", done.stderr)

    def test_digest_is_used_where_the_server_offers_it(self):
        self.serve(login="digest")
        data = self.big()
        self.good("backup")
        self.comes_back(data)
        for _, _, headers in self.dav.requests:
            self.assertNotIn("Basic", headers.get("Authorization", ""))

    def test_a_password_is_sent_only_when_it_is_asked_for(self):
        self.good("backup")
        self.assertNotIn("Authorization", self.dav.requests[0][2])
        self.assertTrue(all("Authorization" in r[2] for r in self.dav.requests[1:]))
        self.serve(login=None)
        self.good("backup")
        self.assertFalse(any("Authorization" in r[2] for r in self.dav.requests))

    def test_a_wrong_password_is_an_error_and_not_an_empty_repository(self):
        self.good("backup")
        self.write("pass", "wr0ng\n")
        for tool in ("list", "verify", "backup", "prune"):
            done = self.fails(6, "status 401 (the user or the password is not accepted)", tool)
            self.assertNotIn(b"wr0ng", done.stderr + done.stdout)

    def test_logins_come_from_the_url_and_the_environment(self):
        self.repository = self.repository.replace("//", "//me%40here@")
        self.nightly()
        self.fails(2, "no password: webdav-pass-file or WEBDAV_PASSWORD", "list")
        done = self.tool("backup", env={"WEBDAV_PASSWORD": self.dav.password})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.write("pass", "\n")
        self.use()
        self.fails(2, "the first line, the password, is empty", "list")

    def test_tls_trusts_only_the_authority(self):
        certificates.make(self.folder)
        self.serve(certificate=self.folder, more=f"ca-file = {self.path('ca.crt')}\n")
        self.good("backup")
        self.assertEqual(len(self.sets()), 1)
        self.use()
        n = len(self.dav.requests)
        self.fails(6, "certificate", "list")
        self.assertEqual(len(self.dav.requests), n)

    def test_redirections_are_not_followed(self):
        other = self.enter(WebDAVServer())
        self.dav.faults = lambda method, path, n: Fault(
            301, HTML, headers=(("Location", other.url.replace("webdav", "http") + path),))
        self.fails(6, "with status 301 (a redirection, which is not followed)", "list")
        self.assertEqual(other.requests, [])

    def test_urls_that_make_no_sense_are_refused(self):
        host = "webdav://127.0.0.1:1"
        for url, why in (("webdav://host", "it has no path"), ("webdav:///srv", "it has no host"),
                         ("webdav://u:s3cret@host/srv", "use webdav-pass-file"),
                         (host + "/a/../b", 'may be empty, ".", ".."'),
                         (host + "/a/%2e%2E/b", 'may be empty, ".", ".."'),
                         (host + "/a//b", "may be empty"), (host + "/a%2Fb", "contain a slash"),
                         (host + "/a%", "must be written as %25"), (host + "/a%00", "%25"),
                         (host + "/a?b", "%3F"), (host + "/a#b", "%23"),
                         (host + "/a%0Ab", "control character"),
                         ("webdav://ho st/b", "the host is not valid"),
                         (host + "/" + "x" * 500, "too long")):
            with self.subTest(url=url):
                done = self.fails(2, why, "list", "--repository", url)
                self.assertNotIn(b"s3cret", done.stderr)

    def test_names_of_urls_on_another_host_are_read(self):
        self.dav.absolute = True
        self.good("backup")
        self.good("verify")

    def test_what_exists_is_never_replaced(self):
        self.good("check-config")
        self.dav.overwrites = True
        self.fails(4, "the store replaces objects that exist", "check-config")

    def test_a_server_that_keeps_only_a_part_is_found_out(self):
        self.dav.keeps = 100
        self.fails(6, "the server has stored 100 of", "backup")
        self.assertEqual(self.dav.files, {})

    def test_a_server_without_ranges_is_good_for_small_objects_only(self):
        self.good("backup")
        self.dav.ranges = False
        self.good("verify")
        self.big()
        self.good("backup")
        self.fails(4, "the server sends no ranges of objects", "restore", "--to",
                   self.path("out.rdb"))

    def test_an_answer_that_was_lost_is_settled(self):
        self.good("backup")
        for method in ("PUT", "MOVE", "MKCOL", "DELETE"):
            lost = []

            def lose(its, path, _, method=method, lost=lost):
                if its == method and len(lost) < 2:
                    lost.append(path)
                    return "lost"
                return None
            self.dav.faults = lose
            with self.subTest(method=method):
                self.good("backup")
                self.assertEqual(len(lost), 2)
        self.dav.faults = None
        self.good("verify")
        self.assertEqual((len(self.sets()), self.leftovers()), (5, []))

    def test_what_cannot_be_read_is_not_missing(self):
        """A page of a proxy, a list that was cut or is of another kind, an answer of 404."""
        self.good("backup")
        faults = [(Fault(status, HTML), end) for status in (200, 401, 403, 404, 410)
                  for end in ("", "/sets", "manifest.json")]
        faults += [(Fault(body=change, done=True), "/sets") for change in (
            lambda right: right[:len(right) // 2], lambda right: b"",
            lambda right: b'<multistatus xmlns="DAV:"/>',
            lambda right: right.replace(b'"DAV:"', b'"OTHER:"'),
            lambda right: right.replace(b"200 OK", b"403 Forbidden"))]
        for fault, end in faults:
            self.dav.faults = lambda method, path, n, fault=fault, end=end: (
                fault if method == "PROPFIND" and path.rstrip("/").endswith(end) else None)
            with self.subTest(fault=fault, end=end):
                done = self.tool("prune", "--keep", "count 1", "--confirm")
                self.assertIn(done.returncode, (0, 3, 6) if end == "manifest.json" else (6,),
                              done.stderr)
        self.dav.faults = None
        self.good("verify")
        self.assertEqual(len(self.sets()), 1)

    def test_runs_keep_apart(self):
        self.good("backup")
        held = self.dav.files
        lock = "/srv/back ups%/redis/nightly/locks/sets/00000003-0123456789abcdef"
        for age, status in ((290, 7), (310, 0)):
            held[lock] = b'{"format": 1, "owner": "redoubt backup, process 1 on pod"}'
            self.dav.times[lock] = time.time() - age
            done = self.tool("backup", "--lock-wait", "0s")
            self.assertEqual(done.returncode, status, (age, done.stderr))
        self.assertNotIn(lock, held)
        runs = [subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                                 stderr=subprocess.PIPE) for _ in range(3)]
        for run in runs:
            self.assertIn(run.wait(), (0, 7), run.stderr.read())
            run.stderr.close()
        self.good("verify")

    def test_folders_and_leftovers_go_away(self):
        for _ in range(3):
            self.good("backup")
        folder = "/srv/back ups%/redis/nightly/sets/"
        old, new = (f"{folder}{self.sets()[-1]['id']}/x.{n}.new" for n in ("0123abcd", "0123abce"))
        self.dav.files[old] = self.dav.files[new] = b"left"
        self.dav.times[old], self.dav.times[new] = time.time() - 90000, time.time() - 80000
        self.good("backup")
        self.assertNotIn(old, self.dav.files)
        self.assertIn(new, self.dav.files)
        self.good("prune", "--keep", "count 1", "--confirm")
        self.dav.times.update({name: time.time() - 80000 for name in self.dav.folders})
        self.good("prune", "--keep", "count 1", "--confirm")
        folders = len(self.dav.folders)
        self.dav.times.update({name: time.time() - 90000 for name in self.dav.folders})
        self.good("prune", "--keep", "count 1", "--confirm")
        self.assertLess(len(self.dav.folders), folders)
        kept = {name for name in self.dav.folders if name.startswith(folder)}
        self.assertEqual(kept, {folder + s["id"] for s in self.sets()})

    def test_a_run_that_is_killed_leaves_a_repository_that_is_sound(self):
        self.big()
        self.good("backup")
        for i in range(0, 40, 6):
            self.dav.requests.clear()
            process = subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while process.poll() is None and len(self.dav.requests) < i:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.good("verify", "--set", "latest", "--level", "list")
        self.good("backup")
        self.good("verify")


@unittest.skipUnless(LIGHTTPD and os.path.exists("/usr/lib/lighttpd/mod_webdav.so"),
                     "lighttpd with mod_webdav is not installed")
class OnLighttpd(BackupCase):
    """Digest, folders of its own, and its way to say what a folder has."""

    def setUp(self):
        super().setUp()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        os.mkdir(self.path("there"))
        self.write("pass", "s3cret\n")
        self.write("users", "me:s3cret\n")
        self.write("lighttpd.conf", f'''
server.document-root = "{self.path('there')}"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{self.path('log')}"
server.modules = ("mod_auth", "mod_authn_file", "mod_webdav")
webdav.activate = "enable"
auth.backend = "plain"
auth.backend.plain.userfile = "{self.path('users')}"
auth.require = ("/" => ("method" => "digest", "realm" => "dav", "require" => "valid-user"))
''')
        server = subprocess.Popen([LIGHTTPD, "-D", "-f", self.path("lighttpd.conf")],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.repository = f"webdav://me@127.0.0.1:{port}/of redis/ü"
        self.nightly(more=f"webdav-pass-file = {self.path('pass')}\n")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)

    def test_sets_go_there_come_back_and_are_pruned(self):
        self.good("check-config")
        for _ in range(3):
            self.good("backup")
        self.good("prune", "--keep", "count 2", "--confirm")
        self.good("verify")
        self.good("restore", "--to", self.path("out.rdb"))
        with open(SNAPSHOT, "rb") as file:
            self.assertEqual(self.read("out.rdb"), file.read())
        folder = self.path("there", "of redis", "ü", "nightly")
        for name in os.listdir(os.path.join(folder, "sets")):  # a day later
            os.utime(os.path.join(folder, "sets", name), (time.time() - 90000,) * 2)
        self.good("prune", "--keep", "count 2", "--confirm")
        self.assertEqual(set(os.listdir(os.path.join(folder, "sets"))),
                         {s["id"] for s in self.sets()})
        self.assertEqual(os.listdir(os.path.join(folder, "locks", "sets")), [])


if __name__ == "__main__":
    unittest.main()
