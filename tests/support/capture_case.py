"""What tests of `redoubt capture` share: the running tool, load for a master, a proxy that breaks
connections, and the proof: a server that is given what was captured has the master's digest."""

import json
import os
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from redis_server import RedisServer

REDOUBT = os.environ.get("REDOUBT", "redoubt")
DUMP = os.environ.get("REDOUBT_CAPTURE_DUMP", "capture_dump")
MASTER = {"repl-diskless-sync-delay": "0", "repl-backlog-size": "64mb", "databases": "16",
          "repl-ping-replica-period": "1"}


def eventually(what, true, seconds=600):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError("in vain: " + what)
        time.sleep(0.02)


def acknowledged(master, replicas=1):
    """Waits until so many replicas have all that the master wrote. One WAIT is shorter than the
    time after which a connection of the tests gives up: a replica that was cut off connects again
    after up to 40 s."""
    eventually("the replicas have it",
               lambda: master.command("WAIT", replicas, 1000) >= replicas)


def encode(*args):
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        arg = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(parts)


def exchange(connection, data):
    """Sends commands, and returns the replies when the last one is there."""
    connection.sendall(data + encode("ECHO", "batch's end"))
    seen = b""
    while not seen.endswith(b"$11\r\nbatch's end\r\n"):
        piece = connection.recv(1 << 16)
        if not piece:
            raise ConnectionError("the server went away")
        seen += piece
    return seen


class Running:
    """A capture under way."""

    def __init__(self, *args, env=None):
        self.process = subprocess.Popen([REDOUBT, "capture", *args], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                        env={**os.environ, **(env or {})})

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def end(self, number=signal.SIGTERM):
        """The exit status, stdout and stderr."""
        if number is not None and self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=600)
        return self.process.returncode, out.decode(), err.decode()


class Load(threading.Thread):
    """Writes of many kinds, in turns, until it is stopped."""

    def __init__(self, port, seed=1, pause=0.0):
        super().__init__(daemon=True)
        self.port = port
        self.random = random.Random(seed)
        self.pause = pause
        self.over = threading.Event()
        self.failed = None
        self.n = 0

    def one(self):
        r = self.random
        key = "k%d" % r.randrange(500)
        value = b"v" * r.choice((1, 10, 100, 3000))
        return r.choice((
            encode("SET", "s" + key, value), encode("INCR", "n" + key),
            encode("LPUSH", "l" + key, value, "x"), encode("LPOP", "l" + key),
            encode("HSET", "h" + key, "f%d" % r.randrange(9), value), encode("DEL", "s" + key),
            encode("SADD", "t" + key, r.randrange(99)), encode("SELECT", r.randrange(3)),
            encode("SET", "e" + key, value, "PX", 600000),
            encode("MULTI") + encode("INCR", "a") + encode("INCR", "b") + encode("EXEC")))

    def run(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=600) as s:
                while not self.over.is_set():
                    exchange(s, b"".join(self.one() for _ in range(200)))
                    self.n += 1
                    time.sleep(self.pause)
        except OSError as e:
            self.failed = e

    def stop(self):
        self.over.set()
        self.join()


class Proxy:
    """Carries bytes between a port and a server, slowly and not for ever."""

    def __init__(self, target):
        self.target = target
        self.pause = 0.0
        self.piece = 1 << 16
        self.deaf = False
        self.pairs = []
        self.sent = 0  # bytes of the server that reached the client
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.cut()

    def accept(self):
        while True:
            try:
                left, _ = self.listener.accept()
            except OSError:
                return
            if self.deaf:
                left.close()
                continue
            try:
                right = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                left.close()
                continue
            self.pairs.append((left, right))
            for a, b in ((left, right), (right, left)):
                threading.Thread(target=self.carry, args=(a, b, a is left), daemon=True).start()

    def carry(self, source, sink, from_client):
        try:
            while True:
                data = source.recv(self.piece)
                if not data:
                    break
                time.sleep(self.pause)
                sink.sendall(data)
                if not from_client:
                    self.sent += len(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        source.close()

    def cut(self):
        pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for s in pair:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class CaptureCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-capture-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(folder.name, "out")

    def server(self, **config):
        server = RedisServer({**MASTER, **{k.replace("_", "-"): v for k, v in config.items()}})
        server.__enter__()
        self.addCleanup(server.close)
        return server

    def url(self, server):
        return f"redis://127.0.0.1:{server.port}"

    def start(self, *args, env=None):
        running = Running(*args, env=env)
        self.addCleanup(running.kill)
        return running

    def run_capture(self, *args, status=0, env=None):
        got, out, err = self.start(*args, env=env).end(None)
        self.assertEqual(got, status, (out, err))
        return out, err

    def offset(self, server):
        text = server.command("INFO", "replication").decode()
        return int(text.split("master_repl_offset:")[1].split()[0])

    def acked(self, server):
        """The offset that the only replica has reported, or -1."""
        text = server.command("INFO", "replication").decode()
        if "state=online" not in text:
            return -1
        return int(text.split("state=online,offset=")[1].split(",")[0])

    def wait_for(self, server):
        """Until the capture has everything that was written before."""
        offset = self.offset(server)
        eventually("the capture has caught up", lambda: self.acked(server) >= offset)

    def dump(self, *args, folder=None):
        done = subprocess.run([DUMP, folder or self.out, *args], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def segments(self, folder=None):
        return [line.split() for line in self.dump(folder=folder).decode().splitlines()]

    def replayed_digest(self, folder=None):
        """Of a fresh server that has loaded the snapshot and executed the stream."""
        folder = folder or self.out
        stream = self.dump("stream", folder=folder)
        base = self.dump("base", folder=folder).decode().strip()
        db = [s[6] for s in self.segments(folder) if s[0] == base.replace(".rdb", ".seg")][0]
        with RedisServer() as server:
            server.load(os.path.join(folder, base))
            s = server.socket
            stream = encode("SELECT", db) + stream + encode("ECHO", "the end")
            writer = threading.Thread(target=s.sendall, args=(stream,))
            writer.start()
            seen = b""
            while not seen.endswith(b"$7\r\nthe end\r\n"):
                piece = s.recv(1 << 20)
                self.assertTrue(piece, server.log[-500:])
                seen = seen[-100:] + piece
            writer.join()
            return server.command("DEBUG", "DIGEST")

    def check_same(self, server, folder=None):
        self.assertEqual(self.replayed_digest(folder), server.command("DEBUG", "DIGEST"))

    def reported(self, out):
        return json.loads(out)
