"""What a user gives in the place of a file: folders, captures and running servers.

The server is the redis-server of the machine.
"""

import json
import os
import pty
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import captures  # noqa: E402
import redis_server  # noqa: E402
import report_text  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ["REDOUBT_FIXTURES"]
EMPTY = b"REDIS0011\xff" + bytes(8)


def redoubt(*args, env=None):
    run = subprocess.run([REDOUBT, *args], capture_output=True, check=False,
                         env={**os.environ, **(env or {})})
    return run.returncode, run.stdout.decode(), run.stderr.decode()


class Captures(captures.CaptureTest):
    def setUp(self):
        super().setUp()
        self.capture.begin(EMPTY, b"".join(captures.USUAL))

    def files(self, tail):
        return [os.path.join(self.capture.path, name) for name in os.listdir(self.capture.path)
                if name.endswith(tail)]

    def test_a_sound_capture_is_verified(self):
        status, out, err = redoubt("check-aof", self.capture.path)
        self.assertEqual((status, err), (0, ""), out)
        self.assertIn(": a sound capture\n", out)
        self.assertIn(f"{len(captures.USUAL)} commands", out)
        status, out, _ = redoubt("check-aof", "--json", self.capture.path)
        reported = json.loads(out)
        self.assertEqual((status, reported["kind"], reported["verdict"], reported["findings"]),
                         (0, "capture", "ok", []))
        self.assertEqual((reported["segments"], reported["snapshots"], reported["chapters"],
                          reported["commands"]), (1, 1, 1, len(captures.USUAL)))

    def test_damage_is_named_with_its_file_and_offset(self):
        path, = self.files(".rdb")
        with open(path, "r+b") as f:
            f.write(b"X")
        status, out, _ = redoubt("check-aof", self.capture.path)
        self.assertEqual(status, 1, out)
        self.assertIn(": a damaged capture\n", out)
        status, out, _ = redoubt("check-aof", "--json", self.capture.path)
        finding = json.loads(out)["findings"][0]
        self.assertEqual((status, finding["file"]), (1, os.path.basename(path)))
        self.assertIn("offset", finding["error"])

    def test_a_capture_is_not_changed(self):
        status, out, err = redoubt("check-aof", "--fix", self.capture.path)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("a capture is verified, but not changed", err)

    def test_check_rdb_points_to_the_tool_for_captures(self):
        for path in self.files(".rdb"):
            os.unlink(path)
        status, _, err = redoubt("check-rdb", self.capture.path)
        self.assertEqual(status, 3, err)
        self.assertIn("use redoubt check-aof", err)


class Folders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, data=EMPTY):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def test_the_snapshots_of_a_folder_are_checked(self):
        self.write("dump.rdb")
        self.write("b.rdb", EMPTY[:-9])
        self.write("temp-1.rdb", b"REDIS")
        self.write("other.txt", b"x")
        status, out, _ = redoubt("check-rdb", "--json", self.folder)
        files = json.loads(out)["files"]
        self.assertEqual(status, 1)
        self.assertEqual([(os.path.basename(f["file"]), f["verdict"]) for f in files],
                         [("b.rdb", "truncated"), ("dump.rdb", "ok")])

    def test_compressed_snapshots_are_snapshots_of_a_folder(self):
        plain = self.write("dump.rdb")
        for end in (".gz", ".lz4", ".zst"):
            self.assertEqual(redoubt("convert", plain, "-o", plain + end)[0], 0)
        cut = os.path.join(self.folder, "dump.rdb.lz4")
        os.truncate(cut, os.path.getsize(cut) // 2)
        os.unlink(plain)
        status, out, _ = redoubt("check-rdb", "--json", self.folder)
        self.assertEqual(status, 1)
        self.assertEqual([(os.path.basename(f["file"]), f["verdict"] == "ok")
                          for f in json.loads(out)["files"]],
                         [("dump.rdb.gz", True), ("dump.rdb.lz4", False), ("dump.rdb.zst", True)])

    def test_a_log_beside_the_snapshot_is_mentioned(self):
        self.write("dump.rdb")
        os.mkdir(os.path.join(self.folder, "appendonlydir"))
        status, _, err = redoubt("check-rdb", self.folder)
        self.assertEqual(status, 0)
        self.assertIn("also has a log or a capture: redoubt check-aof verifies it", err)

    def test_a_folder_without_snapshots_is_an_error(self):
        status, _, err = redoubt("check-rdb", self.folder)
        self.assertEqual(status, 3)
        self.assertIn("hint: no name in this folder ends in .rdb", err)

    def test_check_aof_finds_the_log_of_a_folder(self):
        self.write("dump.rdb")
        status, _, err = redoubt("check-aof", self.folder)
        self.assertEqual(status, 1)
        self.assertIn("no log in this folder\n  hint: the folder has a snapshot", err)
        self.write("appendonly.aof.1.incr.aof", b"")
        self.assertIn("hint: check-aof --fix-manifest", redoubt("check-aof", self.folder)[2])
        self.write("appendonly.aof", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")
        status, out, _ = redoubt("check-aof", self.folder)
        self.assertEqual((status, out.splitlines()[0]), (0, f"{self.folder}/appendonly.aof: sound"))
        status, out, _ = redoubt("convert", "--to", "ndjson", self.folder)
        self.assertEqual((status, json.loads(out)["key"]), (0, "k"))

    def test_salvage_takes_the_only_snapshot_of_a_folder(self):
        self.write("dump.rdb")
        out = os.path.join(self.folder, "saved")
        self.assertEqual(redoubt("check-rdb", "--salvage", out, self.folder)[0], 0)
        self.write("b.rdb")
        status, _, err = redoubt("check-rdb", "--salvage", out, "--force", self.folder)
        self.assertEqual(status, 2)
        self.assertIn("the folder has several snapshots", err)


class Servers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = redis_server.RedisServer()
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.close)
        for i in range(100):
            cls.server.command("RPUSH", f"list:{i}", *range(i + 1))
        cls.server.command("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        cls.url = f"redis://127.0.0.1:{cls.server.port}"

    def test_tools_read_a_server_as_a_replica_and_with_scan(self):
        for options in ((), ("--scan",)):
            with self.subTest(options):
                status, out, err = redoubt("stat", "--json", *options, self.url)
                self.assertEqual(status, 0, err)
                self.assertEqual(json.loads(out)["total"]["keys"], 100)
                status, out, err = redoubt("check-rdb", "--json", *options, self.url)
                self.assertEqual(status, 0, err)
                file, = json.loads(out)["files"]
                self.assertEqual((file["verdict"], file["keys"]), ("ok", 100))
                _, out, _ = redoubt("check-rdb", *options, self.url)
                self.assertRegex(out, "checksum +" + ("none, the keys were read one by one"
                                                      if options else "matches"))
                status, out, err = redoubt("convert", "--to", "ndjson", *options, self.url)
                self.assertEqual(status, 0, err)
                lines = {v["key"]: v["value"] for v in map(json.loads, out.splitlines())}
                self.assertEqual(lines, {f"list:{i}": [str(n) for n in range(i + 1)]
                                         for i in range(100)})

    def test_a_filter_and_an_output_are_as_for_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.rdb")
            status, _, err = redoubt("convert", "--to", "rdb", "--match", "list:7", self.url, "-o",
                                     out)
            self.assertEqual((status, err), (0, ""))
            self.assertEqual(json.loads(redoubt("stat", "--json", out)[1])["total"]["keys"], 1)

    def test_a_server_without_its_scheme_has_a_hint(self):
        for tool in (("stat",), ("check-rdb",), ("convert", "--to", "ndjson"), ("doctor",)):
            status, _, err = redoubt(*tool, "localhost:6379")
            self.assertEqual(status, 3)
            self.assertIn("hint: for a server: redis://localhost:6379", err)

    def test_merge_and_split_read_a_server(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.rdb")
            self.assertEqual(redoubt("merge", "-o", out, self.url)[0], 0)
            self.assertEqual(json.loads(redoubt("stat", "--json", out)[1])["total"]["keys"], 100)
            status, _, err = redoubt("split", "--by", "db", "-o", os.path.join(folder, "parts"),
                                     self.url)
            self.assertEqual(status, 0, err)
            part, = (p for p in os.listdir(os.path.join(folder, "parts")) if p.endswith(".rdb"))
            self.assertEqual(redoubt("diff", os.path.join(folder, "parts", part), out)[0], 0)

    def test_a_server_has_no_past(self):
        status, _, err = redoubt("convert", "--to", "ndjson", "--until-time", "-1h", self.url)
        self.assertEqual(status, 2)
        self.assertIn("a server has only its present data", err)

    def test_a_server_that_is_not_there_is_a_network_error_with_a_hint(self):
        for tool in (("stat",), ("check-rdb",), ("convert", "--to", "ndjson"),
                     ("merge", "-o", "out"), ("split", "--by", "db", "-o", "parts")):
            status, _, err = redoubt(*tool, "redis://user:hidden@127.0.0.1:1")
            self.assertEqual(status, 6, err)
            self.assertIn("hint: no server listens there", err)
            self.assertNotIn("hidden", err)

    def test_the_default_server_is_in_a_variable(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.rdb")
            env = {"REDOUBT_URL": self.url}
            status, _, err = redoubt("capture", "--rdb-only", path, env=env)
            self.assertEqual(status, 0, err)
            status, out, err = redoubt("diff", path, env=env)
            self.assertEqual(status, 0, err)
            self.assertEqual(redoubt("diff", path, "-p", "1", env=env)[0], 6)
            # A server is not filled because of a variable.
            self.assertEqual(redoubt("replay", folder, env=env)[0], 2)

    def check_default(self, env):
        status, out, err = redoubt("stat", "--json", env=env)
        self.assertEqual(status, 0, err)
        self.assertEqual(json.loads(out)["total"]["keys"], 100)
        self.assertEqual(json.loads(out)["file"], self.url)
        status, out, err = redoubt("check-rdb", env=env)
        self.assertEqual(status, 0, err)
        self.assertIn(f"{self.url}: sound", out)
        status, out, err = redoubt("convert", "--to", "ndjson", env=env)
        self.assertEqual((status, len(out.splitlines())), (0, 100), err)

    def test_without_a_file_the_default_server_is_read(self):
        self.check_default({"REDOUBT_URL": self.url})

    def test_a_variable_that_is_no_url_is_named(self):
        for tool in (("stat",), ("check-rdb",), ("doctor",)):
            status, _, err = redoubt(*tool, env={"REDOUBT_URL": "localhost"})
            self.assertEqual(status, 2)
            self.assertIn("REDOUBT_URL: not the URL of a server: use redis://HOST", err)

    def test_the_default_server_is_in_a_configuration(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "redoubt"))
            path = os.path.join(folder, "redoubt", "redoubt.conf")
            with open(path, "w") as f:
                f.write(f"# of this user\nsource = {self.url}\nuser = \n"
                        "keep = last 3\n[nightly]\nsource = redis://127.0.0.1:1\n")
            env = {"XDG_CONFIG_HOME": folder, "REDOUBT_URL": ""}
            self.check_default(env)
            snapshot = os.path.join(folder, "out.rdb")
            self.assertEqual(redoubt("capture", "--rdb-only", snapshot, env=env)[0], 0)
            self.assertEqual(redoubt("diff", snapshot, env=env)[0], 0)
            # The variable comes first, and a server is not filled because of a file.
            self.assertEqual(redoubt("stat", env={**env, "REDOUBT_URL": "redis://127.0.0.1:1"})[0],
                             6)
            self.assertEqual(redoubt("replay", folder, env=env)[0], 2)
            with open(path, "w") as f:
                f.write("source\n")
            status, _, err = redoubt("stat", env=env)
            self.assertEqual(status, 2)
            self.assertIn("redoubt.conf: line 1 is neither a section nor key = value", err)
            with open(path, "w") as f:
                f.write(f"#\nsource = {self.url}/{300 * '0'}\n")
            self.assertIn("redoubt.conf: line 2 is too long", redoubt("stat", env=env)[2])

    def test_the_options_of_a_connection(self):
        with redis_server.RedisServer() as server:
            server.command("CONFIG", "SET", "requirepass", "secret")
            url = f"redis://127.0.0.1:{server.port}"
            status, _, err = redoubt("stat", url)
            self.assertEqual(status, 6, err)
            self.assertIn("hint: set a password: REDISCLI_AUTH, --askpass, --pass-file FILE", err)
            with tempfile.NamedTemporaryFile("w") as f:
                f.write("secret\n")
                f.flush()
                for tool in (("stat",), ("check-rdb",), ("convert", "--to", "ndjson")):
                    status, _, err = redoubt(*tool, "--pass-file", f.name, url)
                    self.assertEqual(status, 0, err)
            status, out, err = redoubt("stat", "--json",
                                       env={"REDOUBT_URL": url.replace("//", "//:secret@")})
            self.assertEqual((status, json.loads(out)["file"]), (0, url), err)
        status, _, err = redoubt("stat", "--key", "x", "dump.rdb")
        self.assertEqual(status, 2)
        self.assertIn("use --match to select keys", err)
        for option, name in (("--pass-file=x", "--pass-file"), ("--cacert=x", "--cacert"),
                             ("--tls", "--tls"), ("--user=x", "--user"), ("-ax", "-a")):
            status, _, err = redoubt("check-rdb", option, "dump.rdb")
            self.assertEqual(status, 2)
            self.assertIn(f"{name} is for a server, but none is given", err)


class Plain:
    """A server without TLS: it replies to lines, and waits for the end of what is none."""

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"rediss://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(client,), daemon=True).start()

    @staticmethod
    def talk(client):
        with client:
            while data := client.recv(4096):
                if data == b"PING\r\n":
                    client.sendall(b"-NOAUTH Authentication required.\r\n")

    def __exit__(self, *_):
        self.socket.close()


class Mistakes(unittest.TestCase):
    """What users type that is not what they mean."""

    def test_tls_to_a_port_without_it_is_reported_at_once(self):
        with Plain() as server:
            began = time.monotonic()
            status, _, err = redoubt("stat", "-t", "300", server.url)
            self.assertLess(time.monotonic() - began, 150)
        self.assertEqual(status, 6)
        self.assertIn("TLS: the server answers without TLS only", err)
        self.assertIn("try redis:// instead of rediss://", err)

    def test_replay_of_the_folder_of_a_server(self):
        with tempfile.TemporaryDirectory() as folder:
            status, _, err = redoubt("replay", folder, "redis://127.0.0.1:1")
            self.assertEqual(status, 2)
            self.assertIn("the capture is empty", err)
            os.mkdir(os.path.join(folder, "appendonlydir"))
            for path in (folder, os.path.join(FIXTURES, "damaged", "aofdir-whole",
                                              "appendonlydir")):
                status, _, err = redoubt("replay", path, "redis://127.0.0.1:1")
                self.assertEqual(status, 2)
                self.assertIn("it has the data of a server, not a capture", err)
                self.assertIn("redoubt convert --to resp FILE | redis-cli --pipe", err)

    def test_stat_says_that_a_log_was_replayed(self):
        path = os.path.join(FIXTURES, "damaged", "aofdir-whole")
        self.assertIn("\n  read      a log or a capture, replayed", redoubt("stat", path)[1])
        path = os.path.join(FIXTURES, "redis-7.0.15", "mixed.rdb")
        out = redoubt("stat", path)[1]
        self.assertNotIn("replayed", out)
        self.assertRegex(out, r"used_memory also has 992 bytes \(2.3 %\) of hash tables")

    def test_show_has_no_more_distinct_keys_than_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log.aof")
            for n in range(1, 60):
                with open(path, "wb") as f:
                    f.writelines(b"*3\r\n$3\r\nSET\r\n$4\r\nk%03d\r\n$1\r\nv\r\n" % (i * 37 % 1000)
                                 for i in range(n))
                out = redoubt("show", "--stats", path)[1]
                keys, distinct = re.search(r"(\d+) keys? in these commands, about (\d+)",
                                           out).groups()
                self.assertEqual(int(keys), n)
                self.assertLessEqual(int(distinct), n)


class Terminal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def snapshot(self, name, lines):
        path = os.path.join(self.folder, name)
        text = "".join(json.dumps({"db": 0, "key": k, "type": "string", "value": v}) + "\n"
                       for k, v in lines)
        subprocess.run([REDOUBT, "convert", "-q", "--to", "rdb", "-", "-o", path],
                       input=text.encode(), check=True)
        return path

    def on_terminal(self, *args):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(REDOUBT, [REDOUBT, *args])
        shown = b""
        try:
            while data := os.read(terminal, 65536):
                shown += data
        except OSError:
            pass  # the other end is closed
        os.waitpid(pid, 0)
        os.close(terminal)
        return shown.decode().replace("\r\n", "\n")

    def test_diff_lists_the_first_keys_of_each_kind(self):
        a = self.snapshot("a", [(f"a{i}", "x") for i in range(25)] +
                          [(f"c{i}", "1") for i in range(30)])
        b = self.snapshot("b", [(f"b{i}", "x") for i in range(20)] +
                          [(f"c{i}", "2") for i in range(30)])
        shown = self.on_terminal("diff", a, b)
        self.assertIn("… and 5 more only in A (--all lists them)\n", shown)
        self.assertIn("… and 10 more different (--all lists them)\n", shown)
        self.assertNotIn("more only in B", shown)
        self.assertEqual(sum('"a' in line for line in shown.splitlines()), 20)
        self.assertEqual(sum('"c' in line for line in shown.splitlines()), 20)
        every = self.on_terminal("diff", "--all", a, b)
        self.assertEqual(sum('"a' in line for line in every.splitlines()), 25)
        self.assertNotIn("--all", every)
        # Elsewhere all are listed.
        out = redoubt("diff", a, b)[1]
        self.assertEqual(out, every)

    def test_damage_is_told_once(self):
        path = self.snapshot("a", [(f"k{i}", "1") for i in range(9)])
        with open(path, "r+b") as f:
            f.seek(40)
            f.write(b"\x40\x40\x40")
        shown = report_text.unwrapped(self.on_terminal("check-rdb", path))
        self.assertTrue(shown.startswith(f"{path}: "), shown)
        self.assertNotIn("redoubt check-rdb", shown)
        self.assertRegex(shown, r"; --salvage OUT saves \d+ keys?\b.*\n\Z")
        self.assertTrue(redoubt("check-rdb", path)[2].startswith("redoubt check-rdb: "))

    def test_damage_of_a_log_is_told_once(self):
        path = os.path.join(self.folder, "log.aof")
        with open(path, "wb") as f:
            f.write(b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nDEL\r\n$1")
        shown = report_text.unwrapped(self.on_terminal("check-aof", path))
        self.assertTrue(shown.startswith(f"{path}: "), shown)
        self.assertEqual(shown.count("the file ends inside a command"), 1)
        self.assertRegex(shown, r"torn at its end\S*; --fix cuts the torn end\n\Z")
        self.assertEqual(redoubt("check-aof", path)[2].count("the file ends inside a command"), 1)

    def test_a_version_to_come_has_a_hint(self):
        path = os.path.join(self.folder, "new.rdb")
        with open(path, "wb") as f:
            f.write(b"REDIS0099\xff" + bytes(8))
        for tool in (("stat",), ("convert", "--to", "ndjson"), ("check-rdb",)):
            status, out, err = redoubt(*tool, path)
            self.assertEqual(status, 4)
            self.assertIn("Redis RDB version 99 is newer than this program supports", err)
            self.assertIn("hint: a later version of redoubt may read it: this is 0.", err)
        self.assertIn("  format     Redis RDB version 99, which is not supported\n", out)

    def test_convert_and_merge_tell_what_they_wrote(self):
        a = self.snapshot("a", [("k", "1"), ("l", "2")])
        out = os.path.join(self.folder, "out")
        shown = self.on_terminal("convert", "--to", "rdb", "--for", "redis-6.2", a, "-o", out)
        self.assertRegex(shown, rf"^{out}: RDB version 9 \(Redis 5.0 to 6.2\), 2 keys, "
                         r"\d+ bytes\n$")
        shown = self.on_terminal("convert", a, "-o", out + ".ndjson.gz")
        self.assertRegex(shown, r"gz: 2 keys, \d+ bytes before compression\n$")
        self.assertIn(f"{out}.rdb: RDB version ", redoubt("merge", a, "-o", out + ".rdb")[2])


if __name__ == "__main__":
    unittest.main()
