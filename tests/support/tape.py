"""What connections to redis-server 7.0.15 carried, for systems that have another server.

    tape = Tape("server-core")
    socket = tape.connect(key, lambda: socket.create_connection(address))

Where 7.0.15 is installed the socket is a real one, and what is sent must be in the record.
Elsewhere the record plays: what is sent must be what was recorded, in this order, and the answers
are those of then, in the same pieces, with the same timeouts. A test must therefore send the same
each time: chance has a fixed seed, and ports and folders have the names of the record.

With REDOUBT_RECORD=yes in the environment of the whole test file, on a system with 7.0.15, the
record is written again (recorded.py).
"""

import base64
import collections
import os
import sys
import unittest
import zlib

import recorded

LARGE = 10000
RELEASE = os.uname().release  # INFO and reports of crashes have it
MODES = RECORD, CHECK, PLAY = "record", "check", "play"


def _running():
    """The case that runs and the name of its test; the class and None while it is set up."""
    frame = sys._getframe(1)
    while frame is not None:
        case, cls = frame.f_locals.get("self"), frame.f_locals.get("cls")
        if isinstance(case, unittest.TestCase):
            return type(case), case._testMethodName
        if isinstance(cls, type) and issubclass(cls, unittest.TestCase):
            return cls, None
        frame = frame.f_back
    return None, None


def running():
    """The test that runs, as "Class.test_name", or "Class" while the class is set up."""
    cls, name = _running()
    return f"{cls.__name__}.{name}" if name else cls and cls.__name__


def running_file():
    return sys.modules[_running()[0].__module__].__file__


def clean(text):
    """Without what is of one machine, and as long."""
    return text.replace(RELEASE, "6.1.0".ljust(len(RELEASE), "0"))


def deflated(text):
    return {"z": base64.b64encode(zlib.compress(text.encode("latin-1"))).decode()}


def inflated(packed):
    return zlib.decompress(base64.b64decode(packed["z"])).decode("latin-1")


def pack(value):
    """As JSON has it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bytes):
        return {"bytes": clean(value.decode("latin-1"))}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [pack(x) for x in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(k), pack(v)] for k, v in value.items()]}
    return value


def unpack(value):
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "bytes":
        return content.encode("latin-1")
    if kind == "dict":
        return {unpack(k): unpack(v) for k, v in content}
    return (tuple if kind == "tuple" else list)(unpack(x) for x in content)


class Stale(AssertionError):
    """A test does something else than when it was recorded."""


class Tape:
    def __init__(self, name):
        self.record = recorded.Record(name)
        self.mode = RECORD if self.record.recording else CHECK if self.record.live else PLAY
        self.counts = collections.Counter()

    def key(self, owner=None):
        """A name for the next thing of the running test, and of its owner's."""
        where = running()
        if owner is not None and (where is None or owner.split("#")[0] == where):
            where = owner
        elif owner is not None:
            where = f"{owner} {where}"
        self.counts[where] += 1
        return f"{where}#{self.counts[where]}"

    def entry(self, key, make):
        """What is known of a key; what make() returns while it is recorded."""
        known = self.record.known
        if self.mode == RECORD:
            known[key] = make()
        if key not in known:
            self.stale(f"has no {key}")
        return known[key]

    def kept(self, question, get):
        """What get() returned when it was recorded, on every system: what a test begins with."""
        key = f"{running()} {question}"
        return unpack(self.entry(key, lambda: pack(get())))

    def stale(self, what):
        raise Stale(f"{self.record.path} {what}: record it again (tape.py)")

    def answer(self, question, get):
        """What get() returns, which is not compared: that of the record where it plays."""
        key = f"{running()} {recorded.digest(repr(question).encode('utf-8', 'surrogateescape'))}"
        if self.mode == PLAY:
            return unpack(self.entry(key, None))
        value = get()
        self.entry(key, lambda: pack(value))
        return value

    def connect(self, key, make, names):
        """names: (text of here, text of the record) that are the same in what is carried. The list
        grows by the address of this end."""
        kinds = {RECORD: Recorder, CHECK: Checker, PLAY: Player}
        return kinds[self.mode](self, key, make, names)


class Taped:
    """A socket. Its entry: [what was sent, as digests; what came; the name of this end]."""

    def __init__(self, tape, key, names):
        self.tape = tape
        self.key = key
        self.names = names

    def digest(self, data):
        for here, there in self.names:
            data = data.replace(here.encode(), there.encode())
        return recorded.digest(data)[:12]


class Recorder(Taped):
    def __init__(self, tape, key, make, names):
        super().__init__(tape, key, names)
        self.sent, self.came, self.name = tape.entry(key, lambda: [[], [], []])
        try:
            self.socket = make()
        except OSError as e:
            self.came.append(["refused", str(e)])
            raise
        address = self.socket.getsockname()
        self.name[:] = address if isinstance(address, tuple) else [address]

    def sendall(self, data):
        self.sent.append(self.digest(bytes(data)))
        self.socket.sendall(data)

    def recv(self, size):
        try:
            data = self.socket.recv(size)
        except TimeoutError:
            self.came.append(["timeout"])
            raise
        except OSError as e:
            self.came.append(["error", str(e)])
            raise
        text = clean(data.decode("latin-1"))
        self.came.append(text if len(text) < LARGE else deflated(text))
        return text.encode("latin-1")

    def __getattr__(self, name):
        return getattr(self.socket, name)


class Checker(Taped):
    def __init__(self, tape, key, make, names):
        super().__init__(tape, key, names)
        # How often a test that waits asks again is chance.
        alike = [entry for other, entry in tape.record.known.items()
                 if other.rsplit("#", 1)[0] == key.rsplit("#", 1)[0]]
        if not alike:
            tape.stale(f"has no {key}")
        self.known = {digest for sent, _, _ in alike for digest in sent}
        name = tape.record.known.get(key, alike[0])[2]
        self.socket = make()
        here = self.socket.getsockname()
        if len(name) == len(here) == 2:
            names.append((":".join(map(str, here)), ":".join(map(str, name))))

    def sendall(self, data):
        if self.digest(bytes(data)) not in self.known:
            self.tape.stale(f"has no {bytes(data)[:200]!r} of {self.key}")
        self.socket.sendall(data)

    def __getattr__(self, name):
        return getattr(self.socket, name)


class Player(Taped):
    def __init__(self, tape, key, _, names):
        super().__init__(tape, key, names)
        self.sent, self.came, self.name = tape.entry(key, None)
        self.n_sent = self.n_came = 0
        if self.came and isinstance(self.came[0], list) and self.came[0][0] == "refused":
            raise ConnectionRefusedError(self.came[0][1])

    def sendall(self, data):
        self.n_sent += 1
        if self.sent[self.n_sent - 1:self.n_sent] != [self.digest(bytes(data))]:
            self.tape.stale(f"has another call than {bytes(data)[:200]!r} of {self.key}")

    def recv(self, _):
        if self.n_came == len(self.came):
            self.tape.stale(f"has no more answers for {self.key}")
        came = self.came[self.n_came]
        self.n_came += 1
        if isinstance(came, list):
            raise TimeoutError if came[0] == "timeout" else OSError(came[1])
        if isinstance(came, dict):
            came = inflated(came)
        data = came.encode("latin-1")
        for here, there in self.names:
            data = data.replace(there.encode(), here.encode())
        return data

    def getsockname(self):
        return tuple(self.name)

    def settimeout(self, _):
        pass

    def setsockopt(self, *_):
        pass

    def shutdown(self, _):
        pass

    def close(self):
        pass
