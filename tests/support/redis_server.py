"""A server of the machine for one test: on a free port, in a folder that goes away with it.

    with RedisServer({"databases": "17000"}) as server:
        server.command("SET", "k", "v")
        server.load("dump.rdb")

It is the installed redis-server or else valkey-server, of any version since 7.0, or the program
that REDOUBT_TEST_SERVER names. What only holds for one version depends on installed(); behaviour of
7.0.15 that other versions do not have is recorded (recorded.py, tape.py).

The server keeps nothing, listens on loopback alone, and is stopped when the block ends, whatever
ended it. Replies are bytes, int, None, lists, or ReplyError raised.
"""

import functools
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time

START_SECONDS = 600
REFERENCE = ("redis", "7.0.15")


class ReplyError(Exception):
    pass


class ServerDied(Exception):
    pass


def program(kind="server"):
    """The path of the server, or of the program of its package: "cli", "check-rdb", "check-aof".
    AssertionError where there is none."""
    named = os.environ.get("REDOUBT_TEST_SERVER")
    if named:
        found = shutil.which(re.sub("server$", kind, named))
    else:
        found = shutil.which(f"redis-{kind}") or shutil.which(f"valkey-{kind}")
    if found is None:
        raise AssertionError(f"neither redis-{kind} nor valkey-{kind} is installed")
    return found


@functools.lru_cache(maxsize=None)
def installed():
    """What the server is, as ("redis", "7.0.15")."""
    text = subprocess.run([program(), "--version"], stdout=subprocess.PIPE, check=True).stdout
    version = re.search(r"v=(\S+)", text.decode()).group(1)
    return ("valkey" if b"alkey" in text else "redis"), version


def is_reference():
    """Whether the server is the one that redoubt-server is compared with."""
    return installed() == REFERENCE


def free_port():
    """One that no program listened at a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class RedisServer:
    program = None  # the installed one

    def __init__(self, config=None, wrap=()):
        """wrap: a command line that runs the one after it."""
        self.wrap = list(wrap)
        self.config = {
            "bind": "127.0.0.1",
            "save": "",
            "appendonly": "no",
            "enable-debug-command": "yes",
            "sanitize-dump-payload": "yes",
            **(config or {}),
        }
        self.process = None
        self.socket = None
        self.dir = None

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="redoubt-test-")
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def rdb(self):
        """Where the server has its snapshot."""
        return os.path.join(self.dir, "dump.rdb")

    @property
    def log(self):
        try:
            with open(os.path.join(self.dir, "log"), errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def start(self):
        """Starts the server, from its snapshot where there is one."""
        for _ in range(5):
            self.port = free_port()
            self._spawn()
            if self._wait():
                return
            if "Address already in use" not in self.log:
                break
        raise ServerDied(self.log[-2000:])

    def _spawn(self):
        args = [*self.wrap, self.program or program(), "--port", str(self.port)]
        args += ["--dir", self.dir]
        args += ["--logfile", os.path.join(self.dir, "log")]
        for name, value in self.config.items():
            args += ["--" + name, value]
        self.process = subprocess.Popen(
            args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _wait(self):
        """Until the server answers; False where it ended instead."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return False
            try:
                self._connect()
                if self.command("PING") == b"PONG":
                    return True
            except (OSError, ServerDied, ReplyError):
                time.sleep(0.01)
        self.stop()
        return False

    def _connect(self):
        self._disconnect()
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=600)
        self.input = self.socket.makefile("rb")

    def _disconnect(self):
        if self.socket is not None:
            self.input.close()
            self.socket.close()
            self.socket = None

    def stop(self):
        self._disconnect()
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self.process = None

    def close(self):
        self.stop()
        if self.dir is not None:
            shutil.rmtree(self.dir, ignore_errors=True)
            self.dir = None

    def command(self, *args):
        """One command; arguments are bytes, str or int."""
        parts = [b"*%d\r\n" % len(args)]
        for arg in args:
            if not isinstance(arg, bytes):
                arg = str(arg).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
        try:
            self.socket.sendall(b"".join(parts))
            return self._reply()
        except (ConnectionError, BrokenPipeError) as e:
            raise ServerDied(f"{e}; {self.log[-2000:]}") from None

    def _reply(self):
        line = self.input.readline()
        if not line.endswith(b"\r\n"):
            raise ServerDied(self.log[-2000:])
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            raise ReplyError(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            data = self.input.read(int(rest) + 2)
            if len(data) != int(rest) + 2:
                raise ServerDied(self.log[-2000:])
            return data[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self._reply_or_error() for _ in range(int(rest))]
        raise ServerDied(f"not a reply: {line!r}")

    def _reply_or_error(self):
        try:
            return self._reply()
        except ReplyError as e:
            return e

    def load(self, path):
        """Replaces the dataset by a snapshot. ServerDied (the server is started again, empty) or
        ReplyError where it does not load."""
        self.command("FLUSHALL")
        self.command("FUNCTION", "FLUSH")
        shutil.copyfile(path, self.rdb)
        try:
            self.command("DEBUG", "RELOAD", "NOSAVE")
        except ServerDied:
            self.stop()
            log = self.log
            os.unlink(self.rdb)
            os.unlink(os.path.join(self.dir, "log"))
            self.start()
            raise ServerDied(log[-2000:]) from None

    def databases(self):
        """Numbers of the databases that have keys."""
        text = self.command("INFO", "keyspace").decode()
        return [int(n) for n in re.findall(r"^db(\d+):", text, re.M)]
