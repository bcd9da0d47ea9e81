"""A server that answers as the engine's shell does, so that it can be compared in the same way.

    with ServerPeers(program) as peers:
        world = World(peers, rules)

The comparison of engine_compare.py gives commands of sessions to a shell, which reports the reply,
effects and events of each, and which sessions were served. Here every session is a connection of
its own to redoubt-server; the effects are what the server wrote to its append-only file, the events
what a subscriber got.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from engine_compare import BLOCKING  # noqa: E402
from engine_peers import ANSWER_SECONDS, Connection, Died, Peers, Record, Server  # noqa: E402
from engine_resp import Incomplete, as_bytes, encode, parse  # noqa: E402

NAME = "redoubt-server"


def commands_of(data):
    """The commands that these bytes encode."""
    out, pos = [], 0
    while pos < len(data):
        (_, items), pos = parse(data, pos)
        out.append([content for _, content in items])
    return out


def raw_reply(connection):
    """The bytes of one reply."""
    while True:
        try:
            start = connection.pos
            _, connection.pos = parse(connection.buf, start)
            return bytes(connection.buf[start:connection.pos])
        except Incomplete:
            connection.more()


class OurServer(Server):
    program = None

    def command_line(self, args):
        """The clock is loaded before a sanitizer's runtime, which must not mind."""
        options = os.environ.get("ASAN_OPTIONS", "")
        return ["env", f"ASAN_OPTIONS=verify_asan_link_order=0:{options}",
                "REDOUBT_CLOCK_MONOTONIC=1", self.program, *args[1:]]


class ServerShell:
    """What World asks of a shell, done with a server."""

    def __init__(self, server):
        self.server = server
        self.control = server.connect(NAME)
        self.watcher = None
        self.connections = {}
        self.protos = {}
        self.blocked = {}
        self.current = 0
        self.waiting = []  # commands that were sent and are not reported yet

    # ---- commands of sessions ----

    def send(self, data):
        runs = []  # so that what goes to one connection goes in one piece
        for argv in commands_of(data):
            if argv[0] == b"%":
                self.waiting.append((None, argv[1:]))
                self._switch(argv[1:])
                continue
            self.waiting.append((self.current, argv))
            if not runs or runs[-1][0] != self.current:
                runs.append((self.current, []))
            runs[-1][1].append(encode(argv))
        for session, pieces in runs:
            self._connection(session).send(b"".join(pieces))

    def _switch(self, argv):
        """What decides where the commands after it go is done at once."""
        if argv[0] == b"SESSION":
            self.current = int(argv[1])
        elif argv[0] == b"PROTO":
            self.protos[self.current] = int(argv[1])

    def _connection(self, session):
        if session not in self.connections:
            connection = self.server.connect(f"{NAME} (client {session})")
            connection.id = connection("CLIENT", "ID")
            if self.protos.get(session, 2) == 3:
                connection("HELLO", 3)
            self.connections[session] = connection
        return self.connections[session]

    def record(self):
        session, argv = self.waiting.pop(0)
        if argv[0] in (b"SESSION", b"PROTO") and session is None:
            return Record(b"+OK\r\n", b"", [], [])  # done by _switch()
        if session is None:
            return self._record(self._directive(argv[0].decode("latin-1"), argv[1:]))
        connection = self.connections[session]
        name = argv[0].decode("latin-1").upper()
        if name in BLOCKING and not self._answered(connection):
            self.blocked[session] = connection
            return self._record(b"")
        return self._record(raw_reply(connection))

    def _answered(self, connection):
        self.control("PING")
        self.control("PING")
        return connection.poll()

    def _record(self, reply):
        last = not self.waiting
        served = self._served() if self.blocked and last else []
        return Record(reply, self.server.logged(), self._events() if last else [], served)

    def _served(self):
        """Those who waited and have got something."""
        self.control("PING")
        self.control("PING")
        out = []
        for session in list(self.blocked):
            if self.blocked[session].poll():
                out.append((session, raw_reply(self.blocked.pop(session)), b""))
        return out

    def _events(self):
        out = []
        if self.watcher is None:
            return out
        self.watcher.send(encode([b"PING"]))
        while True:
            _, content = self.watcher.reply()
            if content[0][1] == b"pong":
                return out
            db, _, event = content[2][1][len(b"__keyevent@"):].partition(b"__:")
            out.append((event, content[3][1], int(db)))

    def ask(self, *args):
        self.send(encode([as_bytes(arg) for arg in args]))
        return self.record()

    # ---- directives ----

    def __call__(self, *args):
        """A directive: its reply's content."""
        (kind, content), _ = parse(self.ask("%", *args).reply)
        if kind == "-":
            raise Died(f"{NAME}: {content.decode()}")
        return content

    def _directive(self, name, args):
        return getattr(self, "_do_" + name.lower().replace("-", "_"))(*args)

    def _do_time(self, now_us):
        """The clock is a file that both servers read: until it is seen here, too."""
        want = b"lru_clock:%d\r\n" % (int(now_us) // 1_000_000 & 0xFFFFFF)
        end = time.monotonic() + ANSWER_SECONDS
        while want not in self.control("INFO", "server"):
            if time.monotonic() > end:
                raise Died(f"{NAME}'s clock does not follow")
            time.sleep(0.001)
        self.control("PING")
        self.control("PING")
        return b"+OK\r\n"

    def _do_reset(self):
        for connection in self.connections.values():
            connection.close()
        self.connections, self.protos, self.blocked = {}, {}, {}
        self.current = 0
        self.control("PING")
        self.control("FLUSHALL", "SYNC")
        self.control("FUNCTION", "FLUSH")
        self.control("SCRIPT", "FLUSH")
        self.server.logged()
        if self.watcher is not None:
            self._events()
        return b"+OK\r\n"

    def _do_config(self, name, value):
        self.control("CONFIG", "SET", name, value)
        return b"+OK\r\n"

    def _do_events(self, letters=b""):
        self.control("CONFIG", "SET", "notify-keyspace-events", letters)
        if self.watcher is not None:
            self.watcher.close()
            self.watcher = None
        if letters:
            self.watcher = self.server.connect(f"{NAME} (events)")
            self.watcher("PSUBSCRIBE", "__keyevent@*__:*")
        return b"+OK\r\n"

    def _do_digest(self):
        self.control.send(encode([b"DEBUG", b"DIGEST"]))
        return raw_reply(self.control)

    def _do_digest_value(self, db, key):
        self.control("SELECT", db)
        (_, values) = self.control.ask("DEBUG", "DIGEST-VALUE", key)
        self.control("SELECT", 0)
        return b"+%b\r\n" % values[0][1]

    def _do_commands(self):
        self.control.send(encode([b"COMMAND", b"LIST"]))
        return raw_reply(self.control)

    def _do_unblock(self, session, *error):
        self.control("CLIENT", "UNBLOCK", self.connections[int(session)].id, *error)
        return b"+OK\r\n"

    def _do_close(self, session):
        self.blocked.pop(int(session), None)
        self.connections.pop(int(session)).close()
        if self.current == int(session):
            self.current = 0
        self.control("PING")
        self.control("PING")
        return b"+OK\r\n"

    def _do_keys(self):
        """Database, name, type, encoding and expiry of all keys that are there. Those that are due
        hide from readers; they are compared when a command touches them."""
        out = []
        for db in range(16):
            self.control("SELECT", db)
            for _, key in self.control("KEYS", "*"):
                about = [self.control.ask(*command, key)[1] for command in
                         (["TYPE"], ["OBJECT", "ENCODING"], ["PEXPIRETIME"])]
                if about[1] is not None:
                    out.append([db, key, *about])
        self.control("SELECT", 0)
        return b"*%d\r\n" % len(out) + b"".join(
            b"*5\r\n:%d\r\n$%d\r\n%b\r\n+%b\r\n+%b\r\n:%d\r\n" % (db, len(key), key, *about)
            for db, key, *about in out)

    def close(self):
        for connection in [*self.connections.values(), self.watcher, self.control]:
            if connection is not None:
                connection.close()


class ServerPeers(Peers):
    """redis-server and redoubt-server, by one clock."""

    def __init__(self, program, tape=None):
        super().__init__(program, tape)
        self.ours = None

    def make_shell(self):
        folder = os.path.join(self.folder, "ours")
        os.makedirs(folder, exist_ok=True)
        OurServer.program = self.program
        self.ours = OurServer(folder, self.clock_library, self.clock_path)
        return ServerShell(self.ours)

    def restart_shell(self):
        self.shell.close()
        self.ours.close()
        self.shell = self.make_shell()

    def close(self):
        super().close()
        if self.ours is not None:
            self.ours.close()
            self.ours = None
