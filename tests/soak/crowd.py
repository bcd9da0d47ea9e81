"""Connections that send random commands: valid ones, broken ones, and clients that never read.

    crowd = Crowd(rng, words, address, record)
    crowd.open("script"); crowd.turn(0.01); crowd.close_all()

A connection is of one kind (KINDS). The clean ones send whole commands, so the server must answer
each of them or close the connection: see finish() and unfinished().
"""

import errno
import os
import selectors
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from server_under_test import encode  # noqa: E402

MOST_PENDING = 1 << 16
RECEIVE = 1 << 18
TAIL = 200
ASK_SECONDS = 2

# How many there are of each kind.
KINDS = {"data": 4, "bulk": 4, "script": 3, "wait": 5, "transaction": 3, "acl": 3, "tracking": 4,
         "pubsub": 3, "admin": 2, "payload": 2, "later": 3, "mangled": 6, "deaf": 4, "junk": 2}
OF_REPLICA = {"read": 4, "mangled": 1, "deaf": 1}
JUNK = (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST / HTTP/1.1\r\nX: y\r\n\r\n", b"\r\n" * 500,
        b"*1000000000\r\n", b"*-1\r\n*0\r\n", b"*2147483648\r\n", b"*3\r\n$536870912\r\nx",
        b"*1\r\n$-1\r\n", b"*1\r\n$1\r\n\r\n", b"*2\r\n$4\r\nECHO\r\n$99999999999999999999\r\n",
        b"x" * 70000, b"\0" * 300, b"set a \"b\r\n", b"echo 'x\\'y' \"\\x41\\n\"\r\n",
        b"*1\n$4\nPING\n",
        b"PSYNC ? -1\r\n", b"PSYNC " + b"a" * 40 + b" 1\r\n", b"SYNC\r\n",
        b"REPLCONF ACK 99999\r\n",
        b"REPLCONF capa eof capa psync2\r\nPSYNC ? -1\r\n", b"REPLCONF rdb-only 1\r\nSYNC\r\n",
        b"*" + b"9" * 70000, b"*1000000\r\n" + b"$1\r\nx\r\n" * 3000, b"$5\r\nhello\r\n",
        b"+OK\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n" + b"y" * 50000, b"*1\r\n*1\r\n*1\r\n",
        b"PING")


def inline(*words):
    """The same command on one line, where its words allow this."""
    texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    if all(text and text.isalnum() for text in texts):
        return b" ".join(texts) + b"\r\n"
    return encode(*words)


def mangle(rng, data):
    """Some bytes of it are changed."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at, kind = rng.randrange(len(data) + 1), rng.randrange(9)
        if kind == 0:
            data[at:at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[at:at + rng.choice((1, 2, 10, 200))]
        elif kind == 2:
            data[at:at] = rng.randbytes(rng.choice((1, 2, 10)))
        elif kind == 3:
            data[at:at] = data[at:at + rng.choice((1, 10, 100))]
        elif kind == 4:
            number = rng.choice((b"-1", b"0", b"4294967297", b"99999999999999999999", b"1073741824",
                                 b"-9223372036854775808", b"536870913", b"1e9", b"+1", b" 1"))
            start = data.find(rng.choice((b"*", b"$")), at)
            end = data.find(b"\r\n", start)
            if 0 <= start < end:
                data[start + 1:end] = number
        elif kind == 5:
            data[at:at] = rng.choice(JUNK)
        elif kind == 6:
            end = data.find(b"\r\n", at)
            if end >= 0:
                data[end:end + 2] = rng.choice((b"\n", b"\r", b"\r\r\n", b"", b"\0\n"))
        elif kind == 7:
            del data[at:]
        elif data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
    return bytes(data)


class Connection:
    def __init__(self, number, kind, address, slow):
        self.number, self.kind = number, kind
        self.clean = kind not in ("mangled", "deaf", "junk")
        self.socket = socket.socket()
        if slow:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.setblocking(False)
        error = self.socket.connect_ex(address)
        if error not in (0, errno.EINPROGRESS):
            self.socket.close()
            raise OSError(error, "connect")
        self.out, self.tail, self.life = b"", b"", 0
        self.token, self.asked = None, 0

    def reset(self):
        """Closed at once, without what is on its way."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Crowd:
    """record: a function (number of the connection, bytes) for all that is sent."""

    def __init__(self, rng, words, address, record, kinds):
        self.rng, self.words, self.address, self.record = rng, words, address, record
        self.kinds = kinds
        self.select = selectors.DefaultSelector()
        self.all, self.number = [], 0
        self.sent = self.received = self.closed = self.commands = 0

    def fill(self):
        """Opens what is missing of each kind."""
        for kind, n in self.kinds.items():
            for _ in range(n - sum(c.kind == kind for c in self.all)):
                self.open(kind)

    def open(self, kind):
        self.number += 1
        try:
            one = Connection(self.number, kind, self.address, kind == "deaf")
        except OSError:
            return
        one.life = 3000 if kind == "deaf" else self.rng.choice((3, 30, 300, 3000))
        if self.rng.random() < 0.4:
            one.out = encode("HELLO", 3)
        self.all.append(one)
        self.select.register(one.socket, selectors.EVENT_READ, one)

    def drop(self, one):
        self.select.unregister(one.socket)
        one.socket.close()
        self.all.remove(one)

    def close_some(self):
        for one in self.rng.sample(self.all, len(self.all) // 2):
            self.drop(one)

    def close_all(self, kinds=None):
        for one in [c for c in self.all if kinds is None or kinds(c)]:
            self.drop(one)

    # ---- sending ----

    def batch(self, one):
        """The next bytes of a connection."""
        rng = self.rng
        if one.kind == "junk":
            return rng.choice(JUNK) * rng.choice((1, 1, 1, 50))
        if one.kind == "mangled":
            kind = rng.choice(("data", "script", "wait", "transaction", "acl", "tracking", "pubsub",
                               "bulk", "payload", "admin", "later"))
        else:
            kind = "large" if one.kind == "deaf" else one.kind
        commands = [words if words != ["SYNC"] or not one.clean else ["PING"]
                    for words in self.words.of(kind)]
        self.commands += len(commands)
        data = b"".join((inline if rng.random() < 0.05 else encode)(*words) for words in commands)
        if one.kind == "mangled" and rng.random() < 0.6:
            data = mangle(rng, data)
        return data

    def feed(self):
        """One connection gets more to send, or ends."""
        if not self.all:
            return
        one = self.rng.choice(self.all)
        if len(one.out) > MOST_PENDING or one.token:
            return
        one.life -= 1
        if one.life < 0:
            if self.rng.random() < 0.3:
                one.reset()
            if self.rng.random() < 0.5 and one.out:
                self.push(one)
            if one in self.all:
                self.drop(one)
            return
        one.out += self.batch(one)
        self.push(one)

    def push(self, one):
        """Sends what the socket takes; often only a part of it for now."""
        n = len(one.out)
        if not one.token and self.rng.random() < 0.2:
            n = self.rng.randrange(n + 1)
        try:
            done = one.socket.send(one.out[:n]) if n else 0
        except (BlockingIOError, InterruptedError):
            return
        except OSError as e:
            if e.errno not in (errno.ENOTCONN, errno.EINPROGRESS):
                self.lost(one)
            return
        self.record(one.number, one.out[:done])
        self.sent += done
        one.out = one.out[done:]

    def lost(self, one):
        self.closed += 1
        self.drop(one)

    # ---- reading ----

    def turn(self, seconds):
        """Reads what is there, except for those that never read."""
        for key, _ in self.select.select(seconds):
            one = key.data
            if one.kind == "deaf" and self.rng.random() < 0.999:
                continue
            self.take(one)

    def take(self, one):
        try:
            data = one.socket.recv(RECEIVE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.lost(one)
            return
        self.received += len(data)
        one.tail = (one.tail + data)[-TAIL:]
        if one.token and one.token in one.tail:
            self.drop(one)

    # ---- the end of a round ----

    def finish(self):
        """Only the clean ones stay, and each asks a last question."""
        self.close_all(lambda c: not c.clean)
        for one in self.all:
            one.token = b"end-of-%d-%s" % (one.number, self.rng.randbytes(8).hex().encode())

    def continue_to_end(self, seconds):
        """More of it; whether all got their answers, or were closed. The question is asked again,
        because the answer may be that a script is busy."""
        now = time.monotonic()
        for one in list(self.all):
            if not one.out and now - one.asked > ASK_SECONDS:
                one.asked = now
                one.out += (encode("RESET") + encode("CLIENT", "REPLY", "ON") +
                            encode("ECHO", "x") + encode("ECHO", one.token))
            self.push(one)
        self.turn(seconds)
        return not self.all
