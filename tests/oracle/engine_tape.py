"""The redis-server 7.0.15 that the engine is compared with, recorded for systems that have another
one (tape.py).

    with engine_peers.Peers(tape=EngineTape("oracle-engine-oracle")) as peers:
        ...

Played are epochs of a fixed seed, whose items are the same each time. Where the server is real, it
is not compared with the record, since chance changes what it has; the items are.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import recorded  # noqa: E402
import tape  # noqa: E402
from engine_peers import Connection  # noqa: E402
from engine_resp import Incomplete, as_bytes, encode, parse  # noqa: E402


class EngineTape(tape.Tape):
    def server(self, real, *args):
        """A server to record, a played one, or a real one."""
        if self.mode == tape.PLAY:
            return Played(self)
        if self.mode == tape.CHECK:
            return real(*args)
        return recording(real)(self, *args)

    def items(self, name, digest):
        """Fails where the items of an epoch are others than in the record."""
        if self.entry(f"items {name}", lambda: digest) != digest:
            self.stale(f"has other commands of {name}")


def short(data):
    return recorded.digest(data)[:8]


def text(data):
    data = data.decode("latin-1")
    return data if len(data) < tape.LARGE else tape.deflated(data)


def data_of(kept):
    return (tape.inflated(kept) if isinstance(kept, dict) else kept).encode("latin-1")


class Recorder(Connection):
    """Its entry: [what was sent, as digests; replies and answers of poll()]."""

    def __init__(self, path, name, entry):
        super().__init__(path, name)
        self.sent, self.came = entry

    def send(self, data):
        self.sent.append(short(data))
        super().send(data)

    def poll(self):
        self.came.append(super().poll())
        return self.came[-1]

    def starts_with(self, expected):
        equal = super().starts_with(expected)
        if equal:
            self.came.append(text(expected))
        return equal

    def reply(self, *args):
        while True:
            try:
                value, end = parse(self.buf, self.pos)
                self.came.append(text(bytes(self.buf[self.pos:end])))
                self.pos = end
                return value
            except Incomplete:
                self.more(*args)


def recording(real):
    class Recording(real):
        is_recorded = True

        def __init__(self, kept, *args):
            self.tape = kept
            super().__init__(*args)

        def connect(self, name="redis-server"):
            entry = self.tape.entry(self.tape.key(), lambda: [[], []])
            return Recorder(self.socket_path, name, entry)

        def logged(self):
            data = super().logged()
            self.tape.entry(self.tape.key(), lambda: text(data))
            return data

    return Recording


class PlayedConnection:
    def __init__(self, kept, key):
        self.tape = kept
        self.key = key
        self.sent, self.came = kept.entry(key, None)
        self.n_sent = self.n_came = 0

    def send(self, data):
        self.n_sent += 1
        if self.sent[self.n_sent - 1:self.n_sent] != [short(data)]:
            self.tape.stale(f"has another call than {bytes(data)[:200]!r} of {self.key}")

    def _next(self, kinds):
        if not isinstance(self._coming(), kinds):
            self.tape.stale(f"has no more answers for {self.key}")
        self.n_came += 1
        return self.came[self.n_came - 1]

    def _coming(self):
        return self.came[self.n_came] if self.n_came < len(self.came) else None

    def poll(self):
        return self._next(bool)

    def starts_with(self, expected):
        coming = self._coming()
        equal = isinstance(coming, (str, dict)) and data_of(coming) == expected
        self.n_came += equal
        return equal

    def reply(self, *_):
        return parse(data_of(self._next((str, dict))))[0]

    def ask(self, *args):
        self.send(encode([as_bytes(arg) for arg in args]))
        return self.reply()

    def __call__(self, *args):
        return self.ask(*args)[1]

    def close(self):
        pass


class Played:
    is_recorded = True

    def __init__(self, kept):
        self.tape = kept

    def connect(self, name="redis-server"):
        return PlayedConnection(self.tape, self.tape.key())

    def follow(self, now_us):
        pass

    def logged(self):
        return data_of(self.tape.entry(self.tape.key(), None))

    def close(self):
        pass
