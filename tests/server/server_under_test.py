"""Servers for one test: the one that is built here, and redis-server, asked the same questions.

    with Redoubt({"appendonly": "yes"}) as server:
        c = server.client()                     # RESP2; server.client(3) says HELLO 3
        c.command("SET", "k", "v")              # b"OK"; raises ReplyError
        c.ask("GET", "k")                       # ("$", b"v"); errors are ("-", b"ERR ...")
        c.send("BLPOP", "l", 0); c.read()       # in two steps
        c.nothing()                             # True: nothing came for a while
        server.restart()                        # after SIGTERM; kill() first for SIGKILL

    with pair({"databases": "4"}) as (ours, theirs):
        ...

A server has a folder of its own, listens on loopback on a free port, and is killed when the block
ends, whatever ended it. What a sanitizer wrote to its output fails the test then. The redis-server
of pair() is 7.0.15, itself or as it was recorded (tape.py); Redis() is the installed one.

A reply is a tuple of type and content as in tests/oracle/engine_resp.py: ("*", [...]), ("%", [(key,
value), ...]), ("$", None) for null of RESP2 and ("_", b"") for that of RESP3.
"""

import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
import tape  # noqa: E402
from redis_server import free_port  # noqa: E402

START_SECONDS = 600
REPLY_SECONDS = 600
COVERAGE_SECONDS = 5
REPORTS = ("AddressSanitizer", "ThreadSanitizer", "LeakSanitizer", "runtime error:")


class ReplyError(Exception):
    pass


class ServerDied(Exception):
    pass


def program():
    """The server that is built here."""
    named = os.environ.get("REDOUBT_SERVER")
    if named:
        return named
    return os.path.join(os.environ["REDOUBT_BUILD"], "server", "redoubt-server")


def wait_for(condition, seconds=REPLY_SECONDS, step=0.02):
    """Until condition() is true; its value, or AssertionError."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {condition}")
        time.sleep(step)


def encode(*args):
    """A command as bytes; arguments are bytes, str, int or float."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


def connected(address):
    """A socket."""
    if not isinstance(address, str):
        return socket.create_connection(address, timeout=REPLY_SECONDS)
    s = socket.socket(socket.AF_UNIX)
    s.connect(address)
    return s


class Client:
    """One connection."""

    def __init__(self, address, proto=2, connect=None):
        """address: a path, or host and port. connect: makes the socket instead."""
        self.proto = proto
        self.socket = connect() if connect is not None else connected(address)
        self.socket.settimeout(REPLY_SECONDS)
        self.buf = b""
        if proto == 3:
            self.command("HELLO", 3)

    def close(self):
        self.socket.close()

    def send_raw(self, data):
        try:
            self.socket.sendall(data)
        except OSError as e:
            raise ServerDied(str(e)) from None

    def send(self, *args):
        self.send_raw(encode(*args))

    def _more(self):
        try:
            data = self.socket.recv(1 << 16)
        except TimeoutError:
            raise
        except OSError as e:
            raise ServerDied(str(e)) from None
        if not data:
            raise ServerDied("the connection was closed")
        self.buf += data

    def _line(self):
        while (end := self.buf.find(b"\r\n")) < 0:
            self._more()
        line, self.buf = self.buf[:end], self.buf[end + 2 :]
        return line

    def _bytes(self, n):
        while len(self.buf) < n + 2:
            self._more()
        data, self.buf = self.buf[:n], self.buf[n + 2 :]
        return data

    def read(self):
        """The next reply or push, as (type, content)."""
        head = self._line()
        kind, rest = head[:1].decode("latin-1"), head[1:]
        if kind in "$=!*~>%" and rest == b"-1":
            return kind, None
        if kind in "$=!":
            return kind, self._bytes(int(rest))
        if kind in "*~>":
            return kind, [self.read() for _ in range(int(rest))]
        if kind in "%|":
            return kind, [(self.read(), self.read()) for _ in range(int(rest))]
        if kind == ":":
            return kind, int(rest)
        if kind in "+-,#_(":
            return kind, rest
        raise ValueError(f"not a reply: {head!r}")

    def ask(self, *args):
        self.send(*args)
        return self.read()

    def command(self, *args):
        """The plain value: bytes, int, None, float, bool, list, dict; raises ReplyError."""
        return plain(self.ask(*args))

    def nothing(self, seconds=0.2):
        """True when nothing comes for so long."""
        if self.buf:
            return False
        self.socket.settimeout(seconds)
        try:
            self._more()
            return False
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(REPLY_SECONDS)

    def closed(self, seconds=REPLY_SECONDS):
        """True when the server closes the connection within that time; what it sent before is
        left in buf."""
        self.socket.settimeout(seconds)
        try:
            while True:
                self._more()
        except TimeoutError:
            return False
        except ServerDied:
            return True
        finally:
            self.socket.settimeout(REPLY_SECONDS)


def plain(reply):
    kind, content = reply
    if kind in "-!":
        raise ReplyError(content.decode(errors="replace"))
    if content is None or kind == "_":
        return None
    if kind in "*~>":
        return [_plain_inside(item) for item in content]
    if kind == "%":
        return {_plain_inside(k): _plain_inside(v) for k, v in content}
    if kind == ",":
        return float(content)
    if kind == "#":
        return content == b"t"
    if kind == "=":
        return content[4:]
    return content


def _plain_inside(reply):
    try:
        value = plain(reply)
        return tuple(value) if isinstance(value, list) and reply[0] == "~" else value
    except ReplyError as e:
        return e


class _Server:
    """What both servers have in common."""

    parent = None  # of the folder; the usual one
    fixed_port = None

    def __init__(self, config=None, args=(), wait=True):
        self.config = {
            "bind": "127.0.0.1",
            "save": "",
            "appendonly": "no",
            "enable-debug-command": "yes",
            **(config or {}),
        }
        self.args = list(args)
        self.wait = wait
        self.process = None
        self.clients = []
        self.dir = None
        self.output = b""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="redoubt-test-", dir=self.parent)
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, *_):
        self.close()
        if kind is None:
            self.complain()

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def measured(self, get):
        """What get() finds beside the connections, such as files and times. A record has it."""
        return get()

    def first(self, get):
        """What get() found when the record was made."""
        return get()

    @property
    def log(self):
        """What it has written to its standard output and error since the beginning."""
        with open(self.path("stdout"), "rb") as f:
            return f.read().decode(errors="replace")

    @property
    def pid(self):
        return self.process.pid

    def info(self, *sections):
        """INFO as a dict of its fields."""
        with contextlib.closing(self._connect()) as c:
            text = c.command("INFO", *sections).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def spawn(self):
        """Starts the process and does not wait."""
        self.port = self.fixed_port or free_port()
        args = [self.program(), "--port", str(self.port), "--dir", self.dir]
        for name, value in self.config.items():
            args += ["--" + name, *(value if isinstance(value, list) else [value])]
        with open(self.path("stdout"), "ab") as out:
            self.process = subprocess.Popen(
                args + self.args,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.dir,
            )

    def start(self):
        """Starts it, on what its folder holds, and waits until it answers PING."""
        for _ in range(5):
            self.spawn()
            if not self.wait or self._wait():
                return
            if "Address already in use" not in self.log:
                break
        raise ServerDied(self.log[-4000:])

    def start_at(self, port):
        """The same on the port that others know it by."""
        self.fixed_port = port
        self.start()

    def _wait(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return False
            try:
                with contextlib.closing(self._connect()) as c:
                    if c.ask("PING")[0] == "+" or b"NOAUTH" in c.ask("PING")[1]:
                        return True
            except (OSError, ServerDied):
                pass
            time.sleep(0.02)
        return False

    def _connect(self, proto=2):
        return Client(("127.0.0.1", self.port), proto)

    def client(self, proto=2):
        """A new connection; it is closed with the server."""
        c = self._connect(proto)
        self.clients.append(c)
        return c

    def kill(self):
        """SIGKILL."""
        self._forget_clients()
        if self.process is not None:
            if self.process.poll() is None:
                self._end()
            self.process.wait()
            self.process = None

    def _end(self):
        self.process.kill()

    def terminate(self):
        """SIGTERM, and waits; its exit status."""
        self._forget_clients()
        self.process.send_signal(signal.SIGTERM)
        return self.wait_end()

    def wait_end(self):
        status = self.process.wait(START_SECONDS)
        self.process = None
        return status

    def restart(self):
        if self.process is not None:
            self.terminate()
        self.start()

    def _forget_clients(self):
        for c in self.clients:
            c.close()
        self.clients = []

    def complain(self):
        """Fails when a sanitizer reported something."""
        if any(word in self.last_log for word in REPORTS):
            raise AssertionError(self.last_log[-8000:])

    def close(self):
        self.kill()
        if self.dir is not None:
            self.last_log = self.log
            shutil.rmtree(self.dir, ignore_errors=True)
            self.dir = None


class Redoubt(_Server):
    name = "redoubt-server"

    def program(self):
        return program()

    def _end(self):
        """A build that measures coverage writes its figures first (tests/support/coverage.c)."""
        if os.environ.get("REDOUBT_COVERAGE"):
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGRTMAX)
            try:
                self.process.wait(COVERAGE_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        super()._end()


class Redis(_Server):
    """The server that is installed, of any version (redis_server.py)."""

    name = "redis-server"

    def program(self):
        return redis_server.program()


class _Ghost:
    """The process of a server that is only played."""

    def __init__(self, pid):
        self.pid = pid

    def poll(self):
        return None

    def send_signal(self, _):
        pass

    def kill(self):
        pass

    def wait(self, _=None):
        return None


@functools.lru_cache(maxsize=None)
def _tape(name):
    return tape.Tape(name)


def reference_tape():
    """Of the running test's file."""
    path = tape.running_file()
    folder, stem = os.path.split(os.path.splitext(os.path.abspath(path))[0])
    return _tape(f"{os.path.basename(folder)}-{stem.removeprefix('test_').replace('_', '-')}")


def of_reference(question, ask):
    """ask(the program of redis-server 7.0.15), or what was recorded for the question."""
    return reference_tape().answer(question, lambda: ask(redis_server.program()))


VALUES = ("starts", "logs", "ends", "measured", "first")  # of a server, beside its connections


class Reference(_Server):
    """redis-server 7.0.15, or what was recorded of it: tape.py. Its folder is empty then."""

    name = "redis-server"

    def __init__(self, config=None, args=(), wait=True):
        super().__init__(config, args, wait)
        self.tape = reference_tape()
        self.key = self.tape.key()
        self.entry = self.tape.entry(self.key, lambda: {what: [] for what in VALUES})
        self.is_played = self.tape.mode == tape.PLAY
        self.n = dict.fromkeys(VALUES, 0)
        self.untaped = 0

    def program(self):
        return redis_server.program()

    def _taped(self, what, get):
        """A value that is not compared, such as a status."""
        if self.tape.mode == tape.RECORD:
            self.entry[what].append(get())
        if not self.is_played:
            return self.entry[what][-1] if self.tape.mode == tape.RECORD else get()
        values, self.n[what] = self.entry[what], self.n[what] + 1
        if self.n[what] > len(values):
            self.tape.stale(f"has no more {what} of {self.key}")
        return values[self.n[what] - 1]

    def start(self):
        if not self.is_played:
            with self._real_connections():
                super().start()
        port, pid = self._taped("starts", lambda: [self.port, self.process.pid])
        if self.is_played:
            self.port, self.process = port, _Ghost(pid)
        here = [self.dir, *(value for value in self.config.values() if value[:1] == "/")]
        there = self.entry.setdefault("paths", here)
        self.names = [*zip(here, there), (str(self.port), str(port))]

    @contextlib.contextmanager
    def _real_connections(self):
        self.untaped += 1
        try:
            yield
        finally:
            self.untaped -= 1

    def _connect(self, proto=2):
        address = ("127.0.0.1", self.port)
        if self.untaped:
            return Client(address, proto)
        key = self.tape.key(self.key)
        return Client(address, proto, lambda: self.tape.connect(
            key, lambda: connected(address), self.names))

    def measured(self, get):
        return tape.unpack(self._taped("measured", lambda: tape.pack(get())))

    def first(self, get):
        value = get()
        if self.tape.mode == tape.RECORD:
            self.entry["first"].append(tape.pack(value))
        self.n["first"] += 1
        return tape.unpack(self.entry["first"][self.n["first"] - 1])

    @property
    def log(self):
        if self.untaped:
            return super().log
        return self._taped("logs", lambda: tape.clean(super(Reference, self).log))

    def wait_end(self):
        return self._taped("ends", super().wait_end)

    def complain(self):
        pass

    def close(self):
        with self._real_connections():
            if self.is_played:
                self.last_log = ""
                self._forget_clients()
                shutil.rmtree(self.dir, ignore_errors=True)
                self.dir = self.process = None
            else:
                super().close()


@contextlib.contextmanager
def pair(config=None, args=()):
    """redoubt-server and redis-server 7.0.15 with the same configuration."""
    with Redoubt(config, args) as ours, Reference(config, args) as theirs:
        yield ours, theirs
