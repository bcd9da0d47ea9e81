"""A server and an engine that get the same commands, and what must be the same then.

World.begin() makes both empty, World.play() sends items to both and raises Mismatch where they
differ. See engine_world.py for what is compared and what items are.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from engine_peers import ANSWER_SECONDS, Died  # noqa: E402
from engine_resp import as_bytes, encode, names_of, parse, same, with_databases  # noqa: E402

START_US = 1_700_000_000_000_000
HELPER = 1_000_000  # a session of the shell that no client has

DEFAULTS = {
    "hash-max-listpack-entries": 512, "hash-max-listpack-value": 64,
    "set-max-intset-entries": 512, "zset-max-listpack-entries": 128,
    "zset-max-listpack-value": 64, "list-max-listpack-size": -2, "list-compress-depth": 0,
    "stream-node-max-bytes": 4096, "stream-node-max-entries": 100,
    "hll-sparse-max-bytes": 3000, "proto-max-bulk-len": 512 * 1024 * 1024,
}
BLOCKING = {"BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP",
            "XREAD", "XREADGROUP"}


class Mismatch(Exception):
    """kind: the comparison that failed; index: of this item; name: of this command."""

    def __init__(self, kind, index, name, ours, theirs):
        super().__init__(f"{kind} differs at item {index} ({name})\n"
                         f"  engine: {ours}\n  server: {theirs}")
        self.kind = kind
        self.index = index
        self.name = name


class Item:
    """A command of a session; or a directive, whose first word begins with @."""

    __slots__ = ("session", "argv", "name")

    def __init__(self, session, argv):
        self.session = session
        self.argv = [as_bytes(arg) for arg in argv]
        self.name = self.argv[0].decode("latin-1").upper()

    @property
    def directive(self):
        return self.name[:1] == "@"

    def ends_multi(self):
        return self.name in ("EXEC", "DISCARD", "RESET") and len(self.argv) == 1


class Rules:
    """How replies are compared: what families say of their commands."""

    def __init__(self, modules=()):
        self.unordered = {"KEYS", "SMEMBERS", "SUNION", "SINTER", "SDIFF", "HGETALL", "HKEYS",
                          "HVALS"}
        self.random = {"RANDOMKEY", "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER", "SPOP"}
        for module in modules:
            self.unordered |= {name.upper() for name in getattr(module, "UNORDERED", ())}
            self.random |= {name.upper() for name in getattr(module, "RANDOM", ())}


class Setup:
    """What an epoch begins with. events: letters of notify-keyspace-events, or none."""

    def __init__(self, config=None, events="", protos=None):
        self.config = config or {}
        self.events = events
        self.protos = protos or {}


def sorted_deletions(commands):
    """Keys that expired go in no order where a command meets several of them."""
    out, run = [], []
    for command in [*commands, None]:
        if command is not None and command[1][0] == b"DEL" and len(command[1]) == 2:
            run.append(command)
            continue
        out += sorted(run, key=repr)
        run = []
        if command is not None:
            out.append(command)
    return out


def sorted_expiries(events):
    out, run = [], []
    for event in [*events, None]:
        if event is not None and event[0] == b"expired":
            run.append(event)
            continue
        out += sorted(run)
        run = []
        if event is not None:
            out.append(event)
    return out


def without_failed_sums(ours, theirs):
    """Servers do not log a BITFIELD that made room and then failed: docs/compatibility.md."""
    def may_fail(argv):
        return argv[0].upper() == b"BITFIELD" and b"FAIL" in [word.upper() for word in argv]
    if ours == theirs or not any(may_fail(argv) for _, argv in ours):
        return ours, theirs
    ours, theirs = ([one for one in side if one[1][0] not in (b"MULTI", b"EXEC")]
                    for side in (ours, theirs))
    out = []
    for one in ours:
        if theirs[len(out):len(out) + 1] == [one] or not may_fail(one[1]):
            out.append(one)
    return out, theirs


def first_difference(ours, theirs):
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b),
              min(len(ours), len(theirs)))
    return ours[at:at + 4], theirs[at:at + 4]


class World:
    def __init__(self, peers, rules):
        self.peers = peers
        self.rules = rules
        self.connections = {}
        self.watcher = None
        self.control = None
        control = self.peers.server.connect()
        known = {name.decode().upper() for _, name in control("COMMAND", "LIST")}
        control.close()
        self.absent = known - {name.decode().upper() for _, name in self.peers.shell("COMMANDS")}

    # ---- an epoch ----

    def begin(self, setup):
        self.close()
        self.setup = setup
        self.now = START_US
        self.blocked = {}   # session: the command that waits
        self.in_multi = {}  # session: whether something by chance is queued
        self.queued = {}    # session: what EXEC will run
        self.current = 0    # session of the shell
        self.db = [0, 0]    # of the shell's effects and of the server's log
        self.ours = []      # effects since they were last compared
        self.events = []
        self.jumped = False
        shell, server = self.peers.shell, self.peers.server
        self.control = server.connect("redis-server's control connection")
        self.control("FLUSHALL", "SYNC")
        self.control("FUNCTION", "FLUSH")
        self.control("SCRIPT", "FLUSH")
        self._configure({**DEFAULTS, **setup.config}, setup.events and setup.events + "E")
        shell("RESET")
        self._clock(START_US)
        if setup.events:
            self.watcher = server.connect("redis-server's event connection")
            self.watcher("PSUBSCRIBE", "__keyevent@*__:*")
        server.logged()

    def _configure(self, config, events):
        settings = [x for pair in config.items() for x in pair]
        self.control("CONFIG", "SET", *settings, "notify-keyspace-events", events)
        for name, value in config.items():
            self.peers.shell("CONFIG", name, value)
        self.peers.shell("EVENTS", events)

    def close(self):
        for connection in [*self.connections.values(), self.watcher, self.control]:
            if connection is not None:
                connection.close()
        self.connections = {}
        self.watcher = self.control = None

    def _clock(self, now_us):
        """Both clocks jump."""
        new_second = now_us // 1_000_000 != self.now // 1_000_000 or now_us == START_US
        self.now = now_us
        record = self.peers.set_time(now_us)
        if new_second:
            self.peers.server.follow(now_us)
        self.control("PING")
        self.control("PING")  # clients whose time is over are served between two rounds
        return record

    def play(self, items, check_every=0, base=0):
        """Sends items; raises Mismatch. Data is compared after each check_every of them and, if it
        is not 0, at the end."""
        i = checked = 0
        while i < len(items):
            i += self._segment(items, i, base, check_every or len(items))
            if check_every and (i - checked >= check_every or i == len(items)):
                checked = i
                self.compare_data(base + i - 1, items[i - 1].name)

    # ---- a run of commands of one session ----

    def _segment(self, items, i, base, most):
        """Plays what can be sent in one go; returns how many items that was."""
        first = items[i]
        if first.directive:
            self._directive(base + i, first)
            return 1
        if first.session in self.blocked:
            return 1
        run = []
        for item in items[i:i + min(most, 256)]:
            if item.directive or item.session != first.session:
                break
            alone = self._alone(item)
            if not (alone and run):
                run.append((base + i + len(run), item))
            if alone or item.name in BLOCKING or self.blocked:
                break
        self._run(first.session, run, self._alone(first))
        return len(run)

    def _alone(self, item):
        """Both sides may do something else, or meet keys that expired in another order."""
        queued = self.in_multi.get(item.session)
        if item.name == "MULTI" and queued is None and len(item.argv) == 1:
            self.in_multi[item.session] = False
        elif item.ends_multi():
            return bool(queued)
        elif item.name in self.rules.random or item.name == "SCAN":
            if queued is not None:
                self.in_multi[item.session] = True
            return queued is None
        return False

    def _connect(self, session):
        """The commands that the shell needs before a command of this session."""
        settings = []
        if session != self.current:
            settings.append(encode([b"%", b"SESSION", b"%d" % session]))
            self.current = session
        if session not in self.connections:
            connection = self.peers.server.connect(f"redis-server (client {session})")
            connection.id = connection("CLIENT", "ID")
            proto = self.setup.protos.get(session, 2)
            if proto == 3:
                connection("HELLO", 3)
            self.connections[session] = connection
            settings.append(encode([b"%", b"PROTO", b"%d" % proto]))
        return settings

    def _run(self, session, run, alone):
        if alone:
            self._before_chance(*run[0])
        data = b"".join([encode(item.argv) for _, item in run])
        shell = self.peers.shell
        settings = self._connect(session)
        connection = self.connections[session]
        connection.send(data)
        shell.send(b"".join(settings) + data)
        for _ in settings:
            shell.record()
        for index, item in run:
            record = shell.record()
            self.ours.append(record.all_effects())
            self.events += record.events
            self._answer(session, connection, index, item, record)
            self._served(index, item, record)
        index, item = run[-1]
        if self.blocked:
            self._check_waiting(index, item)
        if alone:
            self._after_chance(index, item)
        elif self.blocked or len(self.ours) > 50:
            self.compare_effects(index, item.name)

    def _answer(self, session, connection, index, item, record):
        queued = []
        if item.ends_multi():
            self.in_multi.pop(session, None)
            queued = self.queued.pop(session, [])
        elif record.reply == b"+QUEUED\r\n":
            self.queued.setdefault(session, []).append(item)
        if record.reply == b"" or item.name in BLOCKING:
            self.control("PING")
            self.control("PING")  # the first may come in the same round, before the client is read
            answered = connection.poll()
            if record.reply == b"" and answered:
                raise Mismatch("reply", index, item.name, "(blocked)", connection.reply())
            if record.reply != b"" and not answered:
                raise Mismatch("reply", index, item.name, record.reply, "(blocked)")
        if record.reply == b"":
            self.blocked[session] = item
        else:
            self._compare_reply(connection, index, item, record.reply, queued)

    def _compare_reply(self, connection, index, item, ours, queued=()):
        if connection.starts_with(ours):
            return
        mine, _ = parse(ours)
        try:
            theirs = connection.reply()
        except Died as e:
            raise Mismatch("reply", index, item.name, mine, str(e)) from None
        if not self._same(item, mine, theirs, queued):
            raise Mismatch("reply", index, item.name, mine, theirs)

    def _same(self, item, mine, theirs, queued):
        """What EXEC answers is compared by what was queued."""
        lists = [reply[1] for reply in (mine, theirs)]
        if queued and all(isinstance(x, list) and len(x) == len(queued) for x in lists):
            return all(self._same(one, a, b, ()) for one, a, b in zip(queued, *lists))
        return same(item.argv, mine, theirs, self.rules.unordered, self.rules.random)

    def _served(self, index, item, record):
        if record.served:
            self.control("PING")
        for session, reply, _ in record.served:
            if session < 0:
                continue  # no session was served
            waiting = self.blocked.pop(session, item)
            connection = self.connections[session]
            if not connection.poll():
                raise Mismatch("reply to one who waited", index, waiting.name, reply,
                               "(still waits)")
            self._compare_reply(connection, index, waiting, reply)

    def _check_waiting(self, index, item):
        self.control("PING")
        for session, waiting in self.blocked.items():
            if self.connections[session].poll():
                raise Mismatch("reply to one who waits", index, waiting.name, "(waits)",
                               self.connections[session].reply())

    # ---- directives ----

    def _directive(self, index, item):
        word, args = item.name, item.argv[1:]
        if word == "@TIME":
            record = self._clock(self.now + int(args[0]))
            self.jumped = True
        elif word == "@UNBLOCK" and int(args[0]) in self.blocked:
            error = [arg for arg in args[1:2] if arg.upper() == b"ERROR"]
            self.control("CLIENT", "UNBLOCK", self.connections[int(args[0])].id, *error)
            record = self.peers.shell.ask("%", "UNBLOCK", args[0], *error)
        elif word == "@CLOSE" and int(args[0]) in self.connections and int(args[0]) != 0:
            record = self._close_session(int(args[0]))
        else:
            return
        self.ours.append(record.all_effects())
        self.events += record.events
        self._served(index, item, record)
        if self.blocked:
            self._check_waiting(index, item)

    def _close_session(self, session):
        self.connections.pop(session).close()
        self.blocked.pop(session, None)
        self.in_multi.pop(session, None)
        self.queued.pop(session, None)
        self.control("PING")
        self.control("PING")
        record = self.peers.shell.ask("%", "CLOSE", session)
        self.current = 0 if self.current == session else self.current
        return record

    # ---- effects and events ----

    def _take_effects(self):
        """Effects of both since the last call, as (database, argv); of equal ones, none."""
        ours, theirs = b"".join(self.ours), self.peers.server.logged()
        self.ours = []
        if ours == theirs and self.db[0] == self.db[1] and not self.peers.server.is_recorded:
            if b"SELECT\r\n" in ours:
                _, self.db[0] = with_databases(ours, self.db[0])
                self.db[1] = self.db[0]
            return [], []
        ours, self.db[0] = with_databases(ours, self.db[0])
        theirs, self.db[1] = with_databases(theirs, self.db[1])
        ours, theirs = without_failed_sums(ours, theirs)
        return sorted_deletions(ours), sorted_deletions(theirs)

    def compare_effects(self, index, name):
        ours, theirs = self._take_effects()
        if ours != theirs:
            raise Mismatch("log", index, name, *first_difference(ours, theirs))
        self._compare_events(index, name)

    def _server_events(self):
        out = []
        self.watcher.send(encode([b"PING"]))
        while True:
            _, content = self.watcher.reply()
            if content[0][1] == b"pong":
                return out
            channel, key = content[2][1], content[3][1]
            db, _, event = channel[len(b"__keyevent@"):].partition(b"__:")
            out.append((event, key, int(db)))

    def _compare_events(self, index, name):
        if self.watcher is None:
            return
        ours, self.events = sorted_expiries(self.events), []
        theirs = sorted_expiries(self._server_events())
        if ours != theirs:
            raise Mismatch("event", index, name, *first_difference(ours, theirs))

    # ---- chance ----

    def _before_chance(self, index, item):
        self.compare_effects(index, item.name)
        if self.jumped and item.name in ("SCAN", "RANDOMKEY"):
            self._touch_expired()

    def _touch_expired(self):
        """Removes keys that are due on both sides: these commands meet some of them by chance."""
        self.jumped = False
        due = [(db, key) for db, key, _, _, expiry in self._keys()
               if 0 <= expiry <= self.now // 1000]
        self._helper(
            due, lambda engine, server, key: (engine("EXISTS", key), server("EXISTS", key)))

    def _helper(self, keys, do):
        """do(ask the engine, ask the server, key) for keys of databases; its result is not
        compared."""
        shell, control = self.peers.shell, self.control
        effects = []

        def ask_shell(*args):
            record = shell.ask(*args)
            effects.append(record.all_effects())
            return parse(record.reply)[0]

        shell("SESSION", HELPER)
        for db, key in sorted(keys):
            ask_shell("SELECT", db)
            control("SELECT", db)
            do(ask_shell, control.ask, key)
        control("SELECT", 0)
        shell("SESSION", self.current)
        _, self.db[0] = with_databases(b"".join(effects), self.db[0])
        _, self.db[1] = with_databases(self.peers.server.logged(), self.db[1])
        self.events = []
        if self.watcher is not None:
            self._server_events()

    def _after_chance(self, index, item):
        """Where it changed other things on both sides, the engine gets the server's."""
        ours, theirs = self._take_effects()
        if [(db, argv[0], len(argv)) for db, argv in ours] != [
                (db, argv[0], len(argv)) for db, argv in theirs]:
            raise Mismatch("log", index, item.name, ours[:4], theirs[:4])
        self._compare_events(index, item.name)
        if ours == theirs and not self.peers.server.is_recorded:
            return
        keys = {(db, argv[1]) for db, argv in [*ours, *theirs] if db is not None}
        self._helper(keys, self._copy)

    @staticmethod
    def _copy(engine, server, key):
        """Both restore what the server has, for that may change the encoding. Where the engine
        cannot, the key goes."""
        (_, payload), (_, expiry) = server("DUMP", key), server("PEXPIRETIME", key)
        engine("DEL", key)
        server("DEL", key)
        if payload is not None:
            restore = ("RESTORE", key, max(expiry, 0), payload, "ABSTTL")
            if engine(*restore)[0] != "-":
                server(*restore)

    # ---- data ----

    def compare_data(self, index, name):
        self.compare_effects(index, name)
        if self.peers.shell("DIGEST") != self.control("DEBUG", "DIGEST"):
            raise Mismatch("digest", index, name, *self._different_keys())
        for command, field in ((["OBJECT", "ENCODING"], 3), (["PEXPIRETIME"], 4)):
            for key, (_, reported) in self._ask_keys(command):
                if reported != key[field]:
                    raise Mismatch(command[-1].lower(), index, name, key, reported)

    def _keys(self):
        """(database, name, type, encoding, expiry) of the engine's keys."""
        return [tuple(x for _, x in about) for _, about in self.peers.shell("KEYS")]

    def _ask_keys(self, command):
        """Each key of the engine that is not due, and the server's answer to a command about it."""
        keys = sorted(k for k in self._keys() if k[4] < 0 or k[4] > self.now // 1000)
        data = []
        for key in keys:
            data.append(encode([b"SELECT", b"%d" % key[0]]))
            data.append(encode([*map(as_bytes, command), key[1]]))
        self.control.send(b"".join(data) + encode([b"SELECT", b"0"]))
        out = []
        for key in keys:
            self.control.reply()
            out.append((key, self.control.reply()))
        self.control.reply()
        return out

    def _different_keys(self):
        ours, theirs = [], []
        for key, reported in self._ask_keys(["DEBUG", "DIGEST-VALUE"]):
            mine = self.peers.shell("DIGEST-VALUE", key[0], key[1])
            if mine != reported[1][0][1]:
                ours.append(key)
                self.control("SELECT", key[0])
                theirs.append((self.control("TYPE", key[1]),
                               self.control.ask("OBJECT", "ENCODING", key[1])[1]))
        names = {key[:2] for key in self._keys()}
        for db in range(16):
            self.control("SELECT", db)
            theirs += [("only there", db, key) for _, key in self.control("KEYS", "*")
                       if (db, key) not in names]
        self.control("SELECT", 0)
        return ours[:10], theirs[:10]

    def missing(self, argv):
        """A command that the server has and the engine does not have yet."""
        return names_of(argv) & self.absent
