"""Texts of others on standard error and output: lines of manifests, and error replies of servers.

They may hold escape sequences and characters that change the direction of text. All tools print
them escaped.
"""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from captures import Capture  # noqa: E402
from rdb_text import STRING, Key, snapshot  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
EVIL = "\x1b[2J\x07\u009b31m\u202eevil"
FORBIDDEN = [*map(chr, range(0x00, 0x0a)), *map(chr, range(0x0b, 0x20)), "\x7f",
             *map(chr, range(0x80, 0xa0)), "\u202e", "\u2066", "\u200b"]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-texts-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_tool(self, *args, **kwargs):
        run = subprocess.run([REDOUBT, *args], stdin=subprocess.DEVNULL, capture_output=True,
                             timeout=600, check=False, **kwargs)
        text = (run.stdout + run.stderr).decode("utf-8", "surrogateescape")
        found = [c for c in FORBIDDEN if c in text]
        self.assertEqual(found, [], (args, text))
        return run.returncode, text


class Paths(Case):
    """Warnings and hints name files."""

    def test_paths_are_printed_escaped(self):
        name = EVIL.replace("/", "")
        one, two = self.path(name + ".rdb"), self.path(name + "2.rdb")
        for path in (one, two):
            with open(path, "wb") as f:
                f.write(snapshot([Key(b"k", STRING, b"v")]) + b"more")
        out = self.path("out")
        for args, status in ((("merge", one, two, "-o", out), 1), (("stat", one), 0),
                             (("diff", one, two), 0), (("check-rdb", one), 1),
                             (("check-rdb", "--salvage", out, one), 8),
                             (("split", "--by", "db", one, "-o", self.path("parts")), 0),
                             (("convert", "--to", "aof", two, "-o", self.path("log")), 0),
                             (("check-aof", one), 1), (("stat", self.path(name)), 3)):
            status_of, text = self.run_tool(*args)
            self.assertEqual(status_of, status, text)

    def test_other_characters_stay_as_they_are(self):
        one = self.path("\u00e4\u65e5\U0001f600.rdb")
        with open(one, "wb") as f:
            f.write(snapshot([Key(b"k", STRING, b"v")]))
        status, text = self.run_tool("merge", one, one, "-o", self.path("out"))
        self.assertEqual(status, 1)
        self.assertIn(f"in {one} and in {one}", text)


class Manifests(Case):
    """Every tool that reads a manifest."""

    LINES = (
        "file a.1.base.rdb seq 1 type b\nfile {0}.aof seq 1 type i",
        "file {0} seq 1 type b",
        "file a.1.base.rdb seq {0} type b",
        "file a.1.base.rdb seq 1 type {0}",
        "file a.1.base.rdb seq 1 type b {0} 1",
        "{0} a.1.base.rdb seq 1 type b",
        "{0}",
        "file \"{0}\" seq 1 type b",
        "file a.1.base.rdb seq 1 type b\nfile a.1.base.rdb seq 1 type b\n{0}",
        "file ../{0} seq 1 type b",
        "file a.1.base.rdb seq 1 type b\nfile a.2{0}.incr.aof seq 2 type i\n"
        "file a.2{0}.incr.aof seq 2 type i",
    )

    def log(self, text):
        os.makedirs(self.path("log"), exist_ok=True)
        with open(self.path("log", "a.1.base.rdb"), "wb") as f:
            f.write(snapshot([Key(b"k", STRING, b"v")]))
        manifest = self.path("log", "a.manifest")
        with open(manifest, "w", encoding="utf-8") as f:
            f.write(text + "\n")
        return manifest

    def tools(self, manifest):
        out = self.path("out")
        yield "check-aof", manifest
        yield "check-aof", "--json", manifest
        yield "check-aof", "--fix", "--yes", manifest
        yield "check-aof", "--fix-manifest", "--yes", self.path("log")
        yield "check-aof", "--salvage", out, "--force", manifest
        yield "convert", "--to", "rdb", manifest, "-o", out, "--force"
        yield "stat", manifest
        yield "diff", manifest, manifest
        yield "show", manifest
        yield "sum", manifest
        yield "split", "--by", "db", manifest, "-o", self.path("parts")
        yield "merge", manifest, "-o", out, "--force"
        yield "check-rdb", manifest
        yield "replay", manifest, "redis://127.0.0.1:1"

    def test_lines_of_a_manifest_are_printed_escaped(self):
        shown = 0
        for line in self.LINES:
            for n, args in enumerate(self.tools("")):
                manifest = self.log(line.format(EVIL))
                args = list(self.tools(manifest))[n]
                with self.subTest(line=line, args=args):
                    shown += "evil" in self.run_tool(*args)[1]
        self.assertGreater(shown, 20)

    def test_the_compatible_mode_prints_them_escaped(self):
        link = self.path("redis-check-aof")
        os.symlink(os.path.abspath(REDOUBT), link)
        shown = 0
        for line in self.LINES:
            manifest = self.log(line.format(EVIL))
            with self.subTest(line=line):
                run = subprocess.run([link, manifest], input=b"n\n", capture_output=True,
                                     timeout=600, check=False)
                text = (run.stdout + run.stderr).decode("utf-8", "surrogateescape")
                self.assertEqual([c for c in FORBIDDEN if c in text], [], text)
                shown += "evil" in text
        self.assertGreater(shown, 3)


class Server:
    """Answers every command with one text."""

    def __init__(self, answer):
        self.answer = answer
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                while True:
                    data = connection.recv(65536)
                    if not data:
                        return
                    n = data.count(b"\n*") + 1 if data.startswith(b"*") else data.count(b"\n")
                    connection.sendall(self.answer(data) * max(n, 1))
            except OSError:
                pass

    def close(self):
        self.socket.close()


def after_greeting(text):
    """Lets the connection begin, and refuses what follows."""
    def answer(data):
        word = data.split(b"\r\n")[2].upper() if data.startswith(b"*") else b""
        if word in (b"PING", b"SELECT", b"CLIENT", b"REPLCONF"):
            return b"+PONG\r\n" if word == b"PING" else b"+OK\r\n"
        return text
    return answer


class Replies(Case):
    """Every tool that talks to a server."""

    ANSWERS = {
        "error": f"-ERR {EVIL}\r\n",
        "no error code": f"-{EVIL}\r\n",
        "simple string": f"+{EVIL}\r\n",
        "unknown type": f"{EVIL}\r\n",
        "bulk": f"${len(EVIL.encode())}\r\n{EVIL}\r\n",
        "version": "${}\r\nredis_version:7.0{}\r\nrole:master{}\r\n\r\n",
    }

    def answers(self):
        for name, text in self.ANSWERS.items():
            if name == "version":
                body = f"redis_version:7.0{EVIL}\r\nrole:{EVIL}\r\n"
                text = f"${len(body.encode())}\r\n{body}\r\n"
            yield name, lambda _, text=text.encode(): text
        yield "error, later", after_greeting(self.ANSWERS["error"].encode())

    def setUp(self):
        super().setUp()
        self.capture = Capture(self.path("capture"))
        self.capture.begin(snapshot([Key(b"k", STRING, b"v")]),
                           b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n")
        with open(self.path("in.rdb"), "wb") as f:
            f.write(snapshot([Key(b"k", STRING, b"v")]))

    def tools(self, url):
        snap = self.path("in.rdb")
        yield "capture", url, "-o", self.path("new"), "--duration", "1s"
        yield "capture", "--rdb-only", self.path("new.rdb"), "--force", url
        yield "replay", self.path("capture"), url
        yield "replay", "--verify", self.path("capture"), url
        yield "diff", snap, url
        yield "backup", "--source", url, "--repository", self.path("repo")

    def test_texts_of_servers_are_printed_escaped(self):
        shown = 0
        for name, answer in self.answers():
            server = Server(answer)
            url = f"redis://127.0.0.1:{server.port}"
            for args in self.tools(url):
                with self.subTest(answer=name, args=args):
                    shown += "evil" in self.run_tool(*args)[1]
            server.close()
        self.assertGreater(shown, 10)


if __name__ == "__main__":
    unittest.main()
