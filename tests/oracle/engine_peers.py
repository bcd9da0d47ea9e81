"""The two that are compared: a redis-server whose clock is stopped, and the shell of the engine.

    with Peers() as peers:
        peers.set_time(now_us)
        ...
"""

import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
from engine_resp import Incomplete, as_bytes, encode, parse  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ANSWER_SECONDS = 600


class Died(Exception):
    """A peer ended, or does not answer."""


class Stream:
    """Bytes to and from a peer, over descriptors that do not block: while it receives data, its
    answers are taken, so that neither waits for the other."""

    def __init__(self, name, fd_in, fd_out):
        self.name = name
        self.fd_in = fd_in
        self.fd_out = fd_out
        self.buf = bytearray()
        self.pos = 0
        os.set_blocking(fd_in, False)
        os.set_blocking(fd_out, False)

    def _take(self):
        try:
            data = os.read(self.fd_in, 1 << 20)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            raise Died(f"{self.name} closed its connection")
        if self.pos == len(self.buf):
            self.buf.clear()
            self.pos = 0
        self.buf += data

    def send(self, data):
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.fd_out, view):]
            except BlockingIOError:
                readable, _, _ = select.select([self.fd_in], [self.fd_out], [], ANSWER_SECONDS)
                if readable:
                    self._take()
            except (BrokenPipeError, ConnectionError):
                raise Died(f"{self.name} closed its connection") from None

    def more(self, seconds=ANSWER_SECONDS):
        """Waits for bytes."""
        if not select.select([self.fd_in], [], [], seconds)[0]:
            raise Died(f"{self.name} does not answer")
        self._take()

    def poll(self):
        """Whether there are bytes, without waiting."""
        if self.pos < len(self.buf):
            return True
        if select.select([self.fd_in], [], [], 0)[0]:
            self._take()
        return self.pos < len(self.buf)

    def starts_with(self, expected):
        """Takes a reply that is equal to these bytes; False: it is another, or not whole yet."""
        if self.buf.startswith(expected, self.pos):
            self.pos += len(expected)
            return True
        return False

    def reply(self, seconds=ANSWER_SECONDS):
        while True:
            try:
                value, self.pos = parse(self.buf, self.pos)
                return value
            except Incomplete:
                self.more(seconds)


class Connection(Stream):
    """A client of the server."""

    def __init__(self, path, name="redis-server"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        super().__init__(name, self.socket.fileno(), self.socket.fileno())

    def close(self):
        self.socket.close()

    def ask(self, *args):
        self.send(encode([as_bytes(arg) for arg in args]))
        return self.reply()

    def __call__(self, *args):
        """As ask(), and an error is raised."""
        kind, content = self.ask(*args)
        if kind == "-":
            raise Died(f"redis-server: {content.decode()}")
        return content


class Server:
    is_recorded = False  # chance does not decide what it is asked

    def __init__(self, folder, clock_library, clock_file):
        self.folder = folder
        self.socket_path = os.path.join(folder, "socket")
        self.log_path = os.path.join(folder, "log")
        self.process = self.clock = None
        self.start(clock_library, clock_file)
        self.aof = open(os.path.join(folder, "appendonlydir", "appendonly.aof.1.incr.aof"), "rb")

    def start(self, clock_library, clock_file):
        config = {
            "port": "0", "unixsocket": self.socket_path, "dir": self.folder,
            "logfile": self.log_path, "save": "", "appendonly": "yes", "appendfsync": "no",
            "aof-use-rdb-preamble": "no", "auto-aof-rewrite-percentage": "0",
            "enable-debug-command": "yes", "sanitize-dump-payload": "yes", "hz": "500",
            "dynamic-hz": "no", "databases": "16", "timeout": "0", "maxclients": "1000",
            "client-output-buffer-limit": "normal 0 0 0 pubsub 0 0 0 replica 0 0 0",
        }
        args = [redis_server.program()]
        for name, value in config.items():
            args += ["--" + name, *(value.split() if " " in value else [value])]
        env = {**os.environ, "LD_PRELOAD": clock_library, "REDOUBT_CLOCK": clock_file}
        self.process = subprocess.Popen(
            self.command_line(args), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        end = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                control = self.connect_really("redis-server")
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise Died("redis-server does not start: " + self.log()) from None
                time.sleep(0.01)
        while control.ask("PING")[0] == "-":
            time.sleep(0.01)
        control("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        control.close()

    def command_line(self, args):
        return args

    def log(self):
        try:
            with open(self.log_path, errors="replace") as f:
                return f.read()[-2000:]
        except OSError:
            return ""

    def connect(self, name="redis-server"):
        return Connection(self.socket_path, name)

    def follow(self, now_us):
        """Waits until the server has seen the new time: its idea of the second follows with its
        next round."""
        want = b"lru_clock:%d\r\n" % (now_us // 1_000_000 & 0xffffff)
        end = time.monotonic() + ANSWER_SECONDS
        if self.clock is None:
            self.clock = self.connect_really("redis-server's clock")
        while want not in self.clock("INFO", "server"):
            if time.monotonic() > end:
                raise Died("redis-server's clock does not follow")
            time.sleep(0.001)

    def connect_really(self, name):
        return Connection(self.socket_path, name)

    def logged(self):
        """What it wrote to its log of commands since the last call."""
        return self.aof.read()

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.aof.close()
        if self.clock is not None:
            self.clock.close()


class Record:
    """What the shell says of one command."""

    __slots__ = ("reply", "effects", "events", "served")

    def __init__(self, reply, effects, events, served):
        self.reply = reply
        self.effects = effects
        self.events = events
        self.served = served

    def all_effects(self):
        return self.effects + b"".join(effects for _, _, effects in self.served)


class Shell(Stream):
    def __init__(self, program, folder):
        self.program = program
        self.errors = open(os.path.join(folder, "shell.err"), "w+b")
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            bufsize=0)
        super().__init__("the engine's shell", self.process.stdout.fileno(),
                         self.process.stdin.fileno())

    def _bulk(self):
        while True:
            end = self.buf.find(b"\r\n", self.pos)
            if end >= 0:
                length = int(self.buf[self.pos + 1:end])
                start = end + 2
                if len(self.buf) >= start + length + 2:
                    self.pos = start + length + 2
                    return bytes(self.buf[start:start + length])
            self.more()

    def _list(self):
        while len(self.buf) < self.pos + 4:
            self.more()
        if self.starts_with(b"*0\r\n"):
            return []
        return self.reply()[1]

    def record(self):
        """Of the next command. Died carries what the shell said of its end."""
        try:
            reply, effects = self._bulk(), self._bulk()
            events = [tuple(x for _, x in event) for _, event in self._list()]
            served = [tuple(x for _, x in one) for _, one in self._list()]
        except Died as e:
            raise Died(f"{e}: {self.last_words()}") from None
        return Record(reply, effects, events, served)

    def last_words(self):
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            return "it still runs"
        self.errors.seek(0)
        return f"exit status {status}\n" + self.errors.read().decode(errors="replace")[:6000]

    def ask(self, *args):
        self.send(encode([as_bytes(arg) for arg in args]))
        return self.record()

    def __call__(self, *args):
        """A command of the shell: its reply's content."""
        (kind, content), _ = parse(self.ask("%", *args).reply)
        if kind == "-":
            raise Died(f"the engine's shell: {content.decode()}")
        return content

    def close(self):
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()
        try:
            self.process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()


def find_shell():
    """The program: REDOUBT_ENGINE_SHELL, or where builds put it; None."""
    reported = os.environ.get("REDOUBT_ENGINE_SHELL")
    root = os.path.join(HERE, "..", "..")
    for path in [reported] if reported else [
            os.path.join(root, "build", kind, "tests", "engine", "engine_shell")
            for kind in ("test", "asan", "debug", "release", ".")]:
        if path and os.access(path, os.X_OK):
            return path
    return None


class Peers:
    def __init__(self, shell=None, tape=None):
        """tape: engine_tape.py; None: the server is a real one."""
        self.program = shell or find_shell()
        self.tape = tape
        self.server = None
        self.shell = None
        self.clock = None

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-engine-")
        try:
            self._clock()
            os.mkdir(os.path.join(self.folder, "server"))
            self.server = self.make_server()
            self.shell = self.make_shell()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _clock(self):
        self.clock_path = os.path.join(self.folder, "clock")
        with open(self.clock_path, "wb") as f:
            f.write(struct.pack("=q", 1_700_000_000_000_000))
        self.clock_library = os.environ.get("REDOUBT_ENGINE_CLOCK") or self._make_clock()
        self.clock = open(self.clock_path, "r+b", buffering=0)

    def _make_clock(self):
        """For runs by hand; the build has one."""
        path = os.path.join(self.folder, "clock.so")
        subprocess.run(
            [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE",
             os.path.join(HERE, "engine_clock.c"), "-o", path], check=True)
        return path

    def set_time(self, now_us):
        """Of both. Replies to what was sent before must have been read."""
        os.pwrite(self.clock.fileno(), struct.pack("=q", now_us), 0)
        return self.shell.ask("%", "TIME", now_us)

    def make_server(self):
        args = os.path.join(self.folder, "server"), self.clock_library, self.clock_path
        return self.tape.server(Server, *args) if self.tape is not None else Server(*args)

    def make_shell(self):
        return Shell(self.program, self.folder)

    def restart_shell(self):
        self.shell.close()
        self.shell = self.make_shell()

    def restart_server(self):
        self.server.close()
        shutil.rmtree(self.server.folder)
        os.mkdir(self.server.folder)
        self.server = self.make_server()

    def close(self):
        for peer in (self.shell, self.server):
            if peer is not None:
                peer.close()
        if self.clock is not None:
            self.clock.close()
        shutil.rmtree(self.folder, ignore_errors=True)
