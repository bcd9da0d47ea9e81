"""redoubt browse: what it serves, and to whom."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import archive_case  # noqa: E402
import backup_case  # noqa: E402
import redis_server  # noqa: E402

REDOUBT = backup_case.REDOUBT
# What the page of ./run web has at its beginning.
POLICY = "default-src 'none'; script-src 'sha256-x'; connect-src 'none'; base-uri 'none'"
PAGE = ('<!doctype html>\n<meta http-equiv="Content-Security-Policy" content="' + POLICY + '">\n'
        '<meta name="redoubt-files" content="none">\n<p>connect-src \'none\'')
SECRET = b"REDIS"


class Browse(archive_case.ArchiveCase):
    def setUp(self):
        super().setUp()
        self.page = self.write("page.html", PAGE)
        self.rdb = self.path("dump.rdb")
        shutil.copy(backup_case.SNAPSHOT, self.rdb)
        self.data = self.read("dump.rdb")

    def serve(self, *args, stdin=None):
        """Starts the tool, and reads its address."""
        more = ["--config", self.config] if os.path.exists(self.config) else []
        process = subprocess.Popen([REDOUBT, "browse", "--page", self.page, *more, *args],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   stdin=stdin)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = process.stdout.readline().decode()
        if "--json" in args:
            line = json.loads(line)["url"]
        match = re.match(r"http://127\.0\.0\.1:(\d+)(/([0-9a-f]{32})/)$", line.strip())
        self.assertIsNotNone(match, line)
        self.port, self.root, self.token = int(match[1]), match[2], match[3]
        return process

    def ask(self, path, method="GET", **headers):
        """(status, headers, body); Host is that of the address unless it is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.addCleanup(connection.close)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        host = headers.pop("host", f"127.0.0.1:{self.port}")
        for value in host if isinstance(host, list) else [host]:
            if value is not None:
                connection.putheader("Host", value)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def list(self):
        status, _, body = self.ask(self.root + "list.json")
        self.assertEqual(status, 200)
        return json.loads(body)["files"]

    def test_a_file_and_the_page(self):
        self.serve(self.rdb)
        status, headers, body = self.ask(self.root)
        self.assertEqual(status, 200)
        # Only what is needed differs from the page, and the rest of its text is as it was.
        self.assertEqual(body.decode(), PAGE.replace("connect-src 'none'", "connect-src 'self'", 1)
                         .replace('files" content="none"', 'files" content="here"'))
        self.assertEqual(headers["Content-Security-Policy"],
                         POLICY.replace("connect-src 'none'", "connect-src 'self'") +
                         "; frame-ancestors 'none'")
        self.assertEqual(self.list(), [{"path": "dump.rdb", "bytes": len(self.data),
                                        "apart": False}])
        status, headers, body = self.ask(self.root + "file/0")
        self.assertEqual((status, body), (200, self.data))
        for name, value in (("Cache-Control", "no-store"), ("X-Frame-Options", "DENY"),
                            ("X-Content-Type-Options", "nosniff"),
                            ("Referrer-Policy", "no-referrer"),
                            ("Cross-Origin-Resource-Policy", "same-origin")):
            self.assertEqual(headers[name], value)
        self.assertIsNone(headers["Access-Control-Allow-Origin"])
        self.assertEqual(self.ask(self.root + "file/0", "HEAD")[2], b"")

    def refused(self, path, method="GET", **headers):
        status, _, body = self.ask(path, method, **headers)
        self.assertEqual((status, body), (403, b""), (path, method, headers))

    def test_no_byte_without_the_token(self):
        self.serve(self.rdb)
        first = "0" if self.token[0] != "0" else "1"
        wrong = [self.token[:-1], self.token + "0", first + self.token[1:], self.token.upper()
                 if self.token.upper() != self.token else "A" * 32, "", "0" * 32, ".", ".."]
        for token in wrong:
            for rest in ("", "list.json", "file/0"):
                self.refused(f"/{token}/{rest}")
        for path in ("/", "/list.json", "/file/0", "/index.html", "/favicon.ico", "/" + self.token,
                     f"/?{self.token}", f"/x/..{self.root}file/0", f"//{self.token}/file/0",
                     "/" + "a" * 5000, f"/list.json?token={self.token}"):
            self.refused(path)
        self.refused("/file/0", Cookie=f"token={self.token}", Authorization=f"Bearer {self.token}")
        self.refused("/file/0", Referer=f"http://127.0.0.1:{self.port}{self.root}")

    def test_no_byte_for_another_host_name(self):
        self.serve(self.rdb)
        own = f"127.0.0.1:{self.port}"
        for host in ("evil.example", f"evil.example:{self.port}", f"localhost:{self.port}",
                     "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil.example:{self.port}", own + "0",
                     " ", f"[::1]:{self.port}", [own, "evil.example"], ["evil.example", own],
                     [own, own]):
            for rest in ("", "list.json", "file/0"):
                with self.subTest(host=host, rest=rest):
                    status, _, body = self.ask(self.root + rest, host=host)
                    self.assertIn(status, (400, 403))
                    self.assertNotIn(SECRET, body)
                    self.assertNotIn(b"files", body)
        # Without Host, as in HTTP/1.0.
        with socket.create_connection(("127.0.0.1", self.port), 60) as s:
            s.sendall(f"GET {self.root}file/0 HTTP/1.0\r\n\r\n".encode())
            text = b""
            while part := s.recv(65536):
                text += part
        self.assertRegex(text, rb"^HTTP/1\.[01] 40[03] ")
        self.assertNotIn(SECRET, text)

    def test_no_byte_for_another_origin(self):
        self.serve(self.rdb)
        own = f"http://127.0.0.1:{self.port}"
        for origin in ("http://evil.example", "null", "http://127.0.0.1", own + "1", own + ".x",
                       f"https://127.0.0.1:{self.port}", f"http://localhost:{self.port}", "file://",
                       "http://127.0.0.1:1", ""):
            for rest in ("", "list.json", "file/0"):
                self.refused(self.root + rest, Origin=origin)
        for site in ("cross-site", "same-site", "x"):
            self.refused(self.root + "file/0", Sec_Fetch_Site=site)
        for headers in ({"Origin": own}, {"Sec_Fetch_Site": "same-origin"},
                        {"Sec_Fetch_Site": "none"}):
            self.assertEqual(self.ask(self.root + "file/0", **headers)[2], self.data)

    def test_it_only_reads(self):
        self.serve(self.rdb)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            status, _, body = self.ask(self.root + "file/0", method, Content_Length="0")
            self.assertIn(status, (400, 405), method)
            self.assertNotIn(SECRET, body)
        for path in ("file/1", "file/", "file/-1", "file/0x0", "file/00/", f"file/{10 ** 20}",
                     "file/../file/0", "x", "dump.rdb", "../../etc/passwd"):
            status, _, body = self.ask(self.root + path)
            self.assertEqual((status, body), (404, b""), path)
        self.assertEqual(self.read("dump.rdb"), self.data)

    def test_only_this_computer_is_answered(self):
        self.serve(self.rdb)
        with open("/proc/net/tcp", encoding="ascii") as file:
            listens = [line.split()[1] for line in file if f":{self.port:04X} 00000000:" in line]
        self.assertEqual(listens, [f"0100007F:{self.port:04X}"])
        with open("/proc/net/tcp6", encoding="ascii") as file:
            self.assertNotIn(f":{self.port:04X} 0000000000", file.read())

    def test_each_run_has_another_token(self):
        self.serve(self.rdb)
        old = self.token
        self.serve("--json", self.rdb)
        self.assertNotEqual(old, self.token)
        self.refused(f"/{old}/file/0")

    def test_a_folder_serves_its_data_only(self):
        for name in ("appendonlydir/appendonly.aof.manifest",
                     "appendonlydir/appendonly.aof.1.incr.aof", "dump.rdb.gz", "redis.conf",
                     "secret.key", ".hidden.rdb"):
            os.makedirs(os.path.dirname(self.path("data", name)), exist_ok=True)
            self.write("data/" + name, name)
        os.symlink(self.rdb, self.path("data", "link.rdb"))
        os.symlink(self.folder, self.path("data", "up"))
        self.serve(self.path("data") + "/")
        files = self.list()
        self.assertEqual([f["path"] for f in files],
                         ["data/appendonlydir/appendonly.aof.1.incr.aof",
                          "data/appendonlydir/appendonly.aof.manifest", "data/dump.rdb.gz"])
        for i, f in enumerate(files):
            self.assertEqual(self.ask(f"{self.root}file/{i}")[2], f["path"][5:].encode())

    def test_a_folder_that_is_replaced_by_a_link_is_not_followed(self):
        for name in "data/inner/dump.rdb", "data/dump.rdb", "secret/dump.rdb":
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.write(name, name)
        self.serve(self.path("data"))
        (first, inner) = (f["path"] for f in self.list())
        self.assertEqual((first, inner), ("data/dump.rdb", "data/inner/dump.rdb"))
        self.assertEqual(self.ask(self.root + "file/1")[2], b"data/inner/dump.rdb")
        os.rename(self.path("data", "inner"), self.path("data", "old"))
        os.symlink(self.path("secret"), self.path("data", "inner"))
        status, _, body = self.ask(self.root + "file/1")
        self.assertEqual(status, 500)
        self.assertNotIn(b"secret", body)
        self.assertEqual(self.ask(self.root + "file/0")[2], b"data/dump.rdb")

    def test_standard_input(self):
        with open(self.rdb, "rb") as file:
            self.serve("-", stdin=file)
        for _ in range(2):
            self.assertEqual(self.ask(self.root + "file/0")[2], self.data)
        (file,) = self.list()
        self.assertEqual((file["path"], file["bytes"]), ("standard-input", len(self.data)))

    def test_a_moment_of_an_archive(self):
        server = self.server()
        self.archived(server.port)
        running = self.start()
        running.says("snapshot received")
        found = self.moments(server, 3, pause=0.3)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        _, ms, digest = found[1]
        self.serve("nightly", "--at", str(ms))
        moment, *sets = self.list()
        self.assertRegex(moment["path"], r"^nightly-\d{4}-\d\d-\d\dT.*\.rdb$")
        self.assertFalse(moment["apart"])
        self.assertEqual([s["apart"] for s in sets], [True])
        _, _, body = self.ask(self.root + "file/0")
        self.assertEqual(len(body), moment["bytes"])
        self.assertEqual(self.digest_of(self.write("moment.rdb", body)), digest)
        self.assertIn("--target-time is for a target", self.fails(
            2, "--page", self.page, "--at", str(ms), self.rdb))
        self.assertIn("nearest known moment", self.fails(
            2, "--page", self.page, "--config", self.config, "--at", "2001-02-03", "nightly"))

    def test_sealed_sets(self):
        self.nightly()
        self.good("backup", "nightly")
        self.write("dump.rdb", self.data)
        self.good("backup", "nightly")
        self.serve("nightly")
        files = self.list()
        self.assertEqual([f["apart"] for f in files], [True, True])
        times = [f["time"] for f in files]
        self.assertEqual(times, sorted(times, reverse=True))
        for i, f in enumerate(files):
            self.assertRegex(f["time"], r"^\d{4}-\d\d-\d\dT")
            for _ in range(2):
                self.assertEqual(self.ask(f"{self.root}file/{i}")[2], self.data)
            self.assertEqual(f["bytes"], len(self.data))

    def test_a_set_that_cannot_be_read_is_an_error_and_the_next_one_is_served(self):
        self.nightly()
        self.good("backup", "nightly")
        self.good("backup", "nightly")
        self.serve("nightly")
        newest = self.list()[0]["path"][:-len(".rdb")]
        for folder, _, names in os.walk(self.repository):
            for name in names:
                if newest in folder and "dump.rdb" in name:
                    with open(os.path.join(folder, name), "r+b") as file:
                        file.seek(100)
                        file.write(b"XXXXXXXX")
        status, _, body = self.ask(self.root + "file/0")
        self.assertEqual(status, 500)
        self.assertNotIn(SECRET, body)
        self.assertEqual(self.ask(self.root + "file/1")[2], self.data)

    def test_a_running_server(self):
        with redis_server.RedisServer() as server:
            server.command("SET", "browsed", "x" * 100)
            self.serve(f"redis://127.0.0.1:{server.port}")
            server.command("FLUSHALL")
        (file,) = self.list()
        self.assertEqual(file["path"], f"127.0.0.1-{server.port}.rdb")
        _, _, body = self.ask(self.root + "file/0")
        self.assertEqual(len(body), file["bytes"])
        self.write("got.rdb", body)
        out = subprocess.run([REDOUBT, "convert", "--to", "ndjson", self.path("got.rdb")],
                             check=True, capture_output=True).stdout
        self.assertIn(b"browsed", out)

    def test_a_file_that_is_removed(self):
        self.serve(self.rdb)
        os.unlink(self.rdb)
        status, _, body = self.ask(self.root + "file/0")
        self.assertEqual(status, 500)
        self.assertIn(b"dump.rdb", body)

    def test_a_signal_ends_it(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.serve(self.rdb)
            process.send_signal(number)
            self.assertEqual(process.wait(60), 128 + number)

    def test_a_connection_that_is_closed_does_not_end_it(self):
        with open(self.path("large.rdb"), "wb") as file:
            file.truncate(64 << 20)
        process = self.serve(self.path("large.rdb"))
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", self.port), 60) as s:
                s.sendall(f"GET {self.root}file/0 HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n"
                          .encode())
                s.recv(1000)
        self.assertEqual(len(self.ask(self.root + "file/0")[2]), 64 << 20)
        self.assertIsNone(process.poll())

    def fails(self, status, *args):
        done = subprocess.run([REDOUBT, "browse", *args], capture_output=True, check=False,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, status, done)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_what_cannot_be_served(self):
        self.assertIn("not the page", self.fails(2, "--page", self.rdb, self.rdb))
        self.assertIn("no/page", self.fails(3, "--page", "no/page", self.rdb))
        os.mkdir(self.path("empty"))
        self.assertIn("no snapshot", self.fails(2, "--page", self.page, self.path("empty")))
        self.assertIn("port", self.fails(2, "--page", self.page, "--port", "65536", self.rdb))
        self.nightly()
        subprocess.run([REDOUBT, "seal", "--key-file", self.path("key"), self.rdb, "-o",
                        self.path("sealed")], check=True)
        self.assertIn("redoubt unseal", self.fails(2, "--page", self.page, self.path("sealed")))
        self.serve(self.rdb)
        self.assertIn("127.0.0.1", self.fails(3, "--page", self.page, "--port", str(self.port),
                                              self.rdb))


if __name__ == "__main__":
    unittest.main()
