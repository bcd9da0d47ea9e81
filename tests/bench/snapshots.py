"""Snapshots for benchmarks, made by the redis-server of this machine, and logs; kept for the next
run.

    path = snapshots.make(cache, mb=350, kinds=())
    path = snapshots.make_log(cache, mb=650)

A file's name carries the digest of its generator: when that changes, the file is made again.
"""

import hashlib
import os
import re
import shutil
import socket
import sys
import threading
import time

import make_log as log_maker
import make_mixed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402



class Replies(threading.Thread):
    """Reads the replies to piped commands and keeps the first error."""

    def __init__(self, sock):
        super().__init__(daemon=True)
        self.sock = sock
        self.error = None
        self.ended = False
        self.start()

    def run(self):
        tail = b"\r\n"
        while not self.ended:
            data = self.sock.recv(1 << 18)
            text = tail + data
            found = re.search(rb"\r\n-([A-Z][^\r]*)", text)
            if found and self.error is None:
                self.error = found.group(1).decode(errors="replace")
            self.ended = not data or b"bench-end\r\n" in text
            tail = text[-200:]


def _load(server, pieces):
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        replies = Replies(sock)
        for piece in pieces:
            sock.sendall(piece)
        sock.sendall(make_mixed.command(b"ECHO", b"bench-end"))
        replies.join()
    if replies.error:
        raise redis_server.ReplyError(replies.error)


def _forget(cache, base, suffix):
    for name in os.listdir(cache):
        if re.fullmatch(re.escape(base) + r"-[0-9a-f]{8}" + re.escape(suffix) + r"(\.part)?", name):
            os.unlink(os.path.join(cache, name))


def _keep(cache, base, suffix, generator, write, say):
    """Path of the file, which write(path) makes where it is not there."""
    with open(generator, "rb") as f:
        version = hashlib.sha256(f.read()).hexdigest()[:8]
    path = os.path.join(cache, f"{base}-{version}{suffix}")
    if os.path.exists(path):
        return path
    os.makedirs(cache, exist_ok=True)
    _forget(cache, base, suffix)
    begin = time.monotonic()
    write(path + ".part")
    os.rename(path + ".part", path)
    seconds = time.monotonic() - begin
    say(f"made {path}: {os.path.getsize(path) / 1e6:.1f} MB in {seconds:.0f} s")
    return path


def make(cache, mb, kinds=(), say=lambda text: None):
    """Path of the snapshot."""
    def write(path):
        with redis_server.RedisServer({"enable-debug-command": "no"}) as server:
            _load(server, make_mixed.resp(mb, kinds))
            server.socket.settimeout(None)
            server.command("SAVE")
            shutil.move(server.rdb, path)

    base = f"{'+'.join(kinds) or 'mixed'}-{mb:g}"
    return _keep(cache, base, ".rdb", make_mixed.__file__, write, say)


def make_log(cache, mb, say=lambda text: None, collections=False):
    """Path of the log."""
    make = log_maker.collections if collections else log_maker.log

    def write(path):
        with open(path, "wb") as f:
            for piece in make(mb * 1e6):
                f.write(piece)

    base = f"collections-{mb:g}" if collections else f"log-{mb:g}"
    return _keep(cache, base, ".aof", log_maker.__file__, write, say)
