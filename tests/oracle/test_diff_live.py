"""redoubt diff against real servers: every way to reach one, to log in, and to fail at it; and what
is found is what differs.
"""

import json
import os
import pty
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import certificates  # noqa: E402
import redis_server  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
LATER = 4102444800123
SECRET = "s3cr3t/w@rd"
QUOTED = "s3cr3t%2Fw%40rd"


def redoubt(*args, env=None, **more):
    return subprocess.run([REDOUBT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600, env={**os.environ, **(env or {})}, **more)


def fill(server, n=1000):
    for db in (0, 3, 9):
        server.command("SELECT", db)
        for i in range(100):
            server.command("SET", f"str:{i}", f"value {i}" * (i + 1))
        for i in range(10):
            server.command("PEXPIREAT", f"str:{i}", LATER + i)
        server.command("SET", "big", bytes(range(256)) * 4000)
        for name, size in (("small", 5), ("big", n)):
            server.command("RPUSH", f"list:{name}", *(f"element {i}" for i in range(size)))
            server.command("SADD", f"set:{name}", *(f"m{i}" for i in range(size)))
            server.command("ZADD", f"zset:{name}", *(x for i in range(size)
                                                     for x in (i / 3, f"m{i}")))
            server.command("HSET", f"hash:{name}", *(x for i in range(size)
                                                     for x in (f"f{i}", f"v{i}")))
        for i in range(1, 50):
            server.command("XADD", "stream", f"{i}-0", "field", f"v{i}")
        server.command("XGROUP", "CREATE", "stream", "group", "0")
        server.command("XREADGROUP", "GROUP", "group", "me", "COUNT", 5, "STREAMS", "stream", ">")
        server.command("SET", b"\x00\xff binary \r\n", b"\x00\xff")
    server.command("SELECT", 0)
    server.command("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', "
                   "function() return 1 end)")


class Case(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="redoubt-live-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.server = cls.start({"unixsocket": os.path.join(cls.folder, "socket")})
        fill(cls.server)
        cls.server.command("SAVE")
        cls.file = os.path.join(cls.folder, "saved.rdb")
        shutil.copyfile(cls.server.rdb, cls.file)

    @classmethod
    def start(cls, config=None):
        server = redis_server.RedisServer(config).__enter__()
        cls.addClassCleanup(server.close)
        return server

    def setUp(self):
        self.addCleanup(self.reset)

    def reset(self):
        self.server.command("CONFIG", "SET", "requirepass", "")
        self.server.command("ACL", "DELUSER", "me")

    def url(self, login="", place=None, scheme="redis"):
        place = place if place is not None else f"127.0.0.1:{self.server.port}"
        return f"{scheme}://{login}{place}"

    def diff(self, *args, status=0, env=None, **more):
        run = redoubt("diff", *args, env=env, **more)
        self.assertEqual(run.returncode, status, (run.stdout[-500:], run.stderr))
        self.assertNotIn(b"s3cr3t", run.stderr + run.stdout)
        self.err = run.stderr.decode()
        return run.stdout.decode()


class Same(Case):
    def test_every_way_to_name_a_server(self):
        port, path = str(self.server.port), os.path.join(self.folder, "socket")
        for args in ([self.url()], [self.url(scheme="valkey")], [f"unix://{path}"],
                     [self.url(place=f"127.1:{port}/")], ["-p", port],
                     ["-h", "127.0.0.1", "-p", port], ["-s", path], ["-u", self.url()]):
            with self.subTest(args=args):
                out = self.diff(self.file, *args)
                self.assertIn("0 only in A, 0 only in B, 0 different", out)
                self.assertEqual(self.err, "")

    def test_two_servers(self):
        other = self.start()
        other.load(self.file)
        self.diff(self.url(), self.url(place=f"127.0.0.1:{other.port}"))
        self.diff("--values", self.url(), self.url())

    def test_one_database(self):
        only = json.loads(self.diff("--json", self.url(place=f"127.0.0.1:{self.server.port}/3"),
                                    "-p", str(self.server.port), "-n", "3"))
        self.assertEqual(only["keys"], [111, 111])
        self.diff("--db", "3", self.file, self.url(place=f"127.0.0.1:{self.server.port}/3"))

    def test_filters(self):
        for args in (["--match", "str:*"], ["--type", "stream"], ["--min-size", "10kb"],
                     ["--not", "--slot", "0-8000"]):
            reported = json.loads(self.diff("--json", *args, self.file, self.url()))
            self.assertGreater(reported["keys"][0], 0)
            self.assertEqual(*reported["keys"])

    def test_an_empty_server(self):
        empty = self.start()
        url = self.url(place=f"127.0.0.1:{empty.port}")
        self.assertIn("0 and 0 keys", self.diff(url, url))
        reported = json.loads(self.diff("--json", self.file, url, status=1))
        self.assertEqual(reported["only"], [333, 0])
        self.assertTrue(reported["functions_differ"])

    def test_memory_is_bounded(self):
        big = self.start({"proto-max-bulk-len": "1gb"})
        for i in range(3):
            big.command("SET", f"big:{i}", b"%d" % i + os.urandom(1 << 20) * 64)
        url = self.url(place=f"127.0.0.1:{big.port}")
        code = ("import resource, subprocess, sys; r = subprocess.run(sys.argv[1:]); "
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); "
                "sys.exit(r.returncode)")
        run = subprocess.run([sys.executable, "-c", code, REDOUBT, "diff", url, url],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        self.assertEqual(run.returncode, 0, run.stderr)
        limit = 400_000 if os.environ.get("REDOUBT_SANITIZE", "none") != "none" else 80_000
        self.assertLess(int(run.stderr.split()[-1]), limit)


class Differences(Case):
    def one(self, *command):
        other = self.start()
        other.load(self.file)
        other.command("SELECT", 3)
        other.command(*command)
        reported = json.loads(self.diff("--json", "--values", self.url(),
                                    self.url(place=f"127.0.0.1:{other.port}"), status=1))
        other.close()
        self.assertEqual(len(reported["differences"]), 1, reported)
        self.assertEqual(reported["differences"][0]["db"], 3)
        return reported["differences"][0]

    def test_an_element(self):
        found = self.one("LSET", "list:big", 500, "other")
        self.assertEqual(found["value"]["first"], [
            {"part": "element", "index": 500, "in": "both", "a": {"text": "element 500"},
             "b": {"text": "other"}}])

    def test_a_field(self):
        self.assertEqual(self.one("HDEL", "hash:big", "f7")["value"]["only"], [1, 0])

    def test_a_group(self):
        found = self.one("XACK", "stream", "group", "1-0")
        self.assertEqual(found["value"]["first"][0]["part"], "group")

    def test_a_key_and_its_type(self):
        self.assertEqual(self.one("DEL", "big")["in"], "a")
        self.assertEqual(self.one("SET", "list:big", "x")["type"], ["list", "string"])

    def test_an_expiry(self):
        found = self.one("PEXPIREAT", "str:0", LATER + 1)
        self.assertEqual(found["expire_ms"], [LATER, LATER + 1])
        self.assertEqual(found["differs"], ["expiry"])

    def test_functions(self):
        other = self.start()
        other.load(self.file)
        other.command("FUNCTION", "FLUSH")
        self.assertIn("functions differ: 1 and 0",
                      self.diff(self.file, "-p", str(other.port), status=1))

    def test_an_expiry_from_pttl_has_a_tolerance(self):
        self.server.command("ACL", "SETUSER", "me", "on", f">{SECRET}", "~*", "+@all",
                            "-pexpiretime")
        self.diff(self.file, self.url(f"me:{QUOTED}@"))
        self.assertIn("up to 1000 ms are ignored", self.err)


class Login(Case):
    def test_the_password_of_the_default_user(self):
        self.server.command("CONFIG", "SET", "requirepass", SECRET)
        path = os.path.join(self.folder, "password")
        with open(path, "w", encoding="utf-8") as f:
            f.write(SECRET + "\n")
        self.diff(self.file, self.url(f":{QUOTED}@"))
        self.diff(self.file, self.url(f"{QUOTED}@"))
        self.diff(self.file, self.url(), "-a", SECRET)
        self.diff(self.file, self.url(), f"--pass={SECRET}")
        self.diff(self.file, self.url(), "--pass-file", path)
        self.diff(self.file, self.url(), env={"REDISCLI_AUTH": SECRET})
        self.diff(self.file, f"unix://:{QUOTED}@{self.folder}/socket")

    def test_a_user(self):
        self.server.command("ACL", "SETUSER", "me", "on", f">{SECRET}", "~*", "+@all")
        self.diff(self.file, self.url(f"me:{QUOTED}@"))
        self.diff(self.file, self.url(), "--user", "me", "-a", SECRET)
        self.diff(self.file, self.url(), "--user", "me", env={"REDISCLI_AUTH": SECRET})

    def test_a_wrong_password(self):
        self.server.command("CONFIG", "SET", "requirepass", "another")
        for args in ([self.url(f":{QUOTED}@")], [self.url(), "-a", SECRET],
                     [self.url(f"me:{QUOTED}@")]):
            self.diff("--json", self.file, *args, status=6)
            self.assertIn(f"redoubt diff: 127.0.0.1:{self.server.port}: WRONGPASS", self.err)
            self.assertIn("hint:", self.err)
        self.diff(self.file, self.url(), status=6)
        self.assertIn("NOAUTH", self.err)
        self.assertIn("REDISCLI_AUTH", self.err)

    def test_a_user_who_may_not_read(self):
        self.server.command("ACL", "SETUSER", "me", "on", f">{SECRET}", "~*", "+@all", "-dump")
        self.diff(self.file, self.url(f"me:{QUOTED}@"), status=6)
        self.assertIn("'dump'", self.err)
        self.assertIn("ACL", self.err)
        self.server.command("ACL", "SETUSER", "me", "+dump", "resetkeys", "~str:*")
        self.diff(self.file, self.url(f"me:{QUOTED}@"), status=6)
        self.assertIn("while reading key", self.err)
        self.diff("--prefix", "str:", self.file, self.url(f"me:{QUOTED}@"))
        self.server.command("ACL", "SETUSER", "me", "~*", "-function")
        self.diff(self.file, self.url(f"me:{QUOTED}@"))
        self.assertIn("functions are not compared", self.err)

    def test_a_database_that_is_not_there(self):
        self.diff(self.file, self.url(), "-n", "99", status=6)
        self.assertIn("DB index", self.err)

    def test_a_prompt_at_the_terminal(self):
        self.server.command("CONFIG", "SET", "requirepass", SECRET)
        for typed, status in ((SECRET, 0), ("not-it", 6), ("\x03", 130)):
            pid, terminal = pty.fork()
            if pid == 0:
                os.execv(REDOUBT, [REDOUBT, "diff", "--askpass", self.file, self.url()])
            shown = b""
            while b"Password for 127.0.0.1" not in shown:
                shown += os.read(terminal, 1000)
            os.write(terminal, typed.encode() + b"\n")
            try:
                while data := os.read(terminal, 1000):
                    shown += data
            except OSError:
                pass  # the terminal's other end is closed
            _, ended = os.waitpid(pid, 0)
            os.close(terminal)
            self.assertEqual(os.waitstatus_to_exitcode(ended), status, shown)
            self.assertNotIn(typed.encode(), shown)


class Silence(Case):
    """Somebody who listens and says nothing."""

    def setUp(self):
        super().setUp()
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        self.silent = f"127.0.0.1:{listener.getsockname()[1]}"

    def test_it_has_a_limit(self):
        for scheme in ("redis", "rediss"):
            begin = time.monotonic()
            self.diff(self.file, self.url(place=self.silent, scheme=scheme), "-t", "0.3", status=6)
            self.assertLess(time.monotonic() - begin, 20)
            self.assertIn("timed out", self.err)
            self.assertIn("hint:", self.err)

    def test_no_server_is_listening(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{s.getsockname()[1]}"
        self.diff(self.file, self.url(place=place), status=6)
        self.assertIn(f"{place}: cannot connect: Connection refused", self.err)
        self.diff(self.file, f"unix://{self.folder}/nothing", status=6)
        self.diff(self.file, "redis://no-such-host.invalid", status=6)
        self.assertIn("cannot find the address", self.err)

    def test_no_list_of_processes_shows_a_secret(self):
        silent = self.url(place=self.silent)
        for args in ([self.url(f"me:{QUOTED}@", self.silent)], [silent, "-a", SECRET],
                     [silent, f"--pass={SECRET}"], [f"-qa{SECRET}", silent],
                     ["-u", self.url(f":{QUOTED}@", self.silent)]):
            args = [self.file, *args]
            child = subprocess.Popen([REDOUBT, "diff", *args, "-t", "600"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                self.look(child)
            finally:
                child.terminate()
                self.assertNotIn(b"s3cr3t", child.communicate()[1])

    def look(self, child):
        """The beginning of the program alone may show it."""
        end = time.monotonic() + 600
        while time.monotonic() < end:
            with open(f"/proc/{child.pid}/cmdline", "rb") as f:
                line = f.read()
            if b"diff" in line and b"s3cr3t" not in line:
                break
            time.sleep(0.01)
        self.assertIn(b"diff", line)
        self.assertNotIn(b"s3cr3t", line)
        with open(f"/proc/{child.pid}/task/{child.pid}/children", encoding="ascii") as f:
            self.assertEqual(f.read(), "")


class Tls(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        certificates.make(cls.folder)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            cls.port = s.getsockname()[1]
        cls.secure = cls.start({
            "tls-port": str(cls.port), "tls-cert-file": cls.path("server.crt"),
            "tls-key-file": cls.path("server.key"), "tls-ca-cert-file": cls.path("ca.crt"),
            "tls-auth-clients": "no"})
        cls.secure.load(cls.file)
        cls.tls = f"rediss://127.0.0.1:{cls.port}"

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def test_who_is_believed(self):
        ca = ["--cacert", self.path("ca.crt")]
        self.diff(self.file, self.tls, *ca)
        self.diff(self.file, self.tls.replace("rediss", "valkeys"), *ca)
        self.diff(self.file, "-p", str(self.port), "--tls", *ca)
        self.diff(self.file, self.tls, "--insecure")
        self.diff(self.file, self.tls, "--sni", "here.test", *ca)
        folder = self.path("cadir")
        os.mkdir(folder)
        shutil.copy(self.path("ca.crt"), folder)
        certificates.openssl("rehash", folder, cwd=folder)
        self.diff(self.file, self.tls, "--cacertdir", folder)

    def test_who_is_not(self):
        self.diff(self.file, self.tls, status=6)
        self.assertIn("certificate not accepted", self.err)
        self.assertIn("--cacert", self.err)
        self.diff(self.file, self.tls, "--cacert", self.path("ca.crt"), "--sni", "there.test",
                  status=6)
        self.assertIn("hostname mismatch", self.err)
        # A name that leads there without a table of names, and is not in the certificate.
        self.diff(self.file, self.tls.replace("127.0.0.1", "127.1"), "--cacert",
                  self.path("ca.crt"), status=6)
        self.assertIn("hostname mismatch", self.err)
        self.diff(self.file, self.tls, "--cacert", self.path("nothing"), status=2)

    def test_a_client_with_a_certificate(self):
        self.secure.command("CONFIG", "SET", "tls-auth-clients", "yes")
        self.addCleanup(self.secure.command, "CONFIG", "SET", "tls-auth-clients", "no")
        ca = ["--cacert", self.path("ca.crt")]
        self.diff(self.file, self.tls, *ca, status=6)
        self.assertIn("TLS: ", self.err)
        self.assertIn("--cert", self.err)
        self.diff(self.file, self.tls, *ca, "--cert", self.path("client.crt"), "--key",
                  self.path("client.key"))
        with open(self.path("both.pem"), "w", encoding="ascii") as f:
            for name in ("client.crt", "client.key"):
                with open(self.path(name), encoding="ascii") as part:
                    f.write(part.read())
        self.diff(self.file, self.tls, *ca, "--cert", self.path("both.pem"))
        self.diff(self.file, self.tls, *ca, "--cert", self.path("client.crt"), "--tls-key",
                  self.path("ca.key"), status=2)
        self.diff(self.file, self.tls, *ca, "--tls-key", self.path("client.key"), status=2)

    def test_a_tls_port_is_recognised_by_its_silence(self):
        self.diff(self.file, self.tls.replace("rediss", "redis"), "-t", "2", status=6)
        self.assertIn("TLS", self.err)


if __name__ == "__main__":
    unittest.main()
