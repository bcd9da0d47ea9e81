"""Streams: all their commands, and the waiting ones with several clients.

Few keys, groups and consumers, and ids from a narrow range, so that commands meet each other's
entries; entries from a few bytes to more than a node, so that nodes fill, lose entries and go
(XINFO shows the tree of them, trimming with ~ takes them whole)."""

UNORDERED = set()
RANDOM = set()
SESSIONS = 4
CONFIGS = [
    {"stream-node-max-entries": 1},
    {"stream-node-max-entries": 3, "stream-node-max-bytes": 200},
    {"stream-node-max-entries": 0, "stream-node-max-bytes": 0},
    {"stream-node-max-entries": 10, "stream-node-max-bytes": 0},
    {"stream-node-max-entries": 130, "stream-node-max-bytes": 100000},
]

KEYS = ["s1", "s2", "s3", "many", "str", "set", "none", "", "s\r\n"]
STREAMS = KEYS[:4]
GROUPS = ["g1", "g2", "g", "", "zz"]
CONSUMERS = ["alice", "bob", "a", "", "c" * 70]
FIELDS = ["a", "b", "field", "7", "", "x" * 64]
VALUES = ["", "1", "a", "value", "-5", "128", "4095", "70000", "9223372036854775807", "x" * 63,
          "y" * 300, "\x00\xff", "01"]
NOW = 1_700_000_000_000
BAD_IDS = ["", "x", "-", "+", "1-", "-1", "1--1", "1-x", "1-*", "*", "$", ">", "1-1-1", " 5", "+5",
           "07", "5 ", "1-+2", "1- 3", "1--03", "18446744073709551616", "1-18446744073709551616",
           "(5",
           "((5", "(", "(-", "(+", "(1-*", "9" * 130, "0-*", "*-1"]
TOP = "18446744073709551615"
EXTREME_IDS = ["0", "0-0", "0-1", "1", TOP, f"{TOP}-{TOP}", f"{TOP}-18446744073709551614",
               "9223372036854775807-9223372036854775807", "9223372036854775808-0", f"1-{TOP}"]
NOT_NUMBERS = ["", "x", "1.0", " 1", "9223372036854775808", "+1"]
HUGE = [9223372036854775807, -9223372036854775808, 4294967296]


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.top = 1

    def key(self):
        return self.rng.choice(STREAMS if self.rng.random() < 0.95 else KEYS)

    def group(self):
        return self.rng.choice(GROUPS[:2] if self.rng.random() < 0.9 else GROUPS)

    def consumer(self):
        return self.rng.choice(CONSUMERS[:3] if self.rng.random() < 0.9 else CONSUMERS)

    def id(self):
        """One that is likely to be that of an entry."""
        rng = self.rng
        p = rng.random()
        if p < 0.75:
            ms = max(0, self.top - rng.randrange(40))
            return rng.choice([f"{ms}", f"{ms}-0", f"{ms}-{rng.randrange(4)}", f"{ms}-1"])
        if p < 0.9:
            return f"{NOW + rng.choice([0, 0, 1, 2, 1000, 3000])}-{rng.randrange(5)}"
        return rng.choice(EXTREME_IDS) if p < 0.96 else rng.choice(BAD_IDS)

    def ids(self):
        return [self.id() for _ in range(self.rng.choice([1, 1, 2, 3, 5, 12]))]

    def bound(self):
        rng = self.rng
        p = rng.random()
        if p < 0.3:
            return rng.choice("-+")
        return self.id() if p < 0.8 else "(" + self.id()

    def new_id(self):
        rng = self.rng
        p = rng.random()
        if p < 0.12:
            return "*"
        if p < 0.9:
            self.top += rng.choice([0, 0, 1, 1, 1, 2, 5])
            return rng.choice([f"{self.top}", f"{self.top}-*", f"{self.top}-*",
                               f"{self.top}-{rng.randrange(6)}"])
        return self.id() if p < 0.99 else rng.choice(EXTREME_IDS)

    def pairs(self):
        rng = self.rng
        p = rng.random()
        if p < 0.6:
            names = ["a", "b"]
        else:
            names = [rng.choice(FIELDS) for _ in range(rng.choice([1, 1, 2, 2, 3, 9]))]
        values = [rng.choice(VALUES) for _ in names]
        if rng.random() < 0.02:
            values[0] = "z" * rng.choice([1000, 4000, 4090, 5000, 20000])
        return [x for pair in zip(names, values) for x in pair]

    def number(self, most=10):
        rng = self.rng
        p = rng.random()
        if p < 0.9:
            return rng.randrange(-1, most)
        return rng.choice(HUGE) if p < 0.95 else rng.choice(NOT_NUMBERS)

    def trim(self):
        rng = self.rng
        p = rng.random()
        if p < 0.6:
            argv = [rng.choice(["MAXLEN", "maxlen"])]
        else:
            argv = ["MINID"]
        argv += rng.choice([[], ["="], ["~"], ["~"]])
        if p < 0.6:
            argv += [rng.choice([0, 1, 5, 20, 100, 300, self.number(200)])]
        else:
            argv += [self.id()]
        if rng.random() < 0.2:
            argv += ["LIMIT", rng.choice([0, 1, 3, 50, 200, self.number()])]
        if rng.random() < 0.02:
            argv += rng.choice([["MAXLEN", 3], ["MINID", "5"], ["LIMIT"], ["x"], ["~"]])
        return argv

    def xadd(self):
        rng = self.rng
        argv = [rng.choice(["XADD", "XADD", "xadd"]), self.key()]
        if rng.random() < 0.05:
            argv += [rng.choice(["NOMKSTREAM", "nomkstream"])]
        if rng.random() < 0.12:
            argv += self.trim()
        if rng.random() < 0.01:
            argv += ["LIMIT", rng.choice([0, 1])]
        return argv + [self.new_id(), *self.pairs()]

    def count(self):
        if self.rng.random() < 0.5:
            return []
        return ["COUNT", self.rng.choice([1, 2, 5, 0, self.number(30)])]

    def range(self):
        rng = self.rng
        argv = [self.bound(), self.bound(), *self.count()]
        if rng.random() < 0.02:
            argv += rng.choice([["COUNT"], ["x", 1], ["COUNT", 3]])
        return argv

    def claim_options(self):
        rng = self.rng
        argv = []
        for name in rng.sample(["IDLE", "TIME", "RETRYCOUNT", "FORCE", "JUSTID", "LASTID"],
                               rng.choice([0, 0, 1, 2, 3])):
            argv.append(name if rng.random() < 0.9 else name.lower())
            if name == "IDLE":
                argv.append(rng.choice([0, 100, 5000, self.number()]))
            elif name == "TIME":
                argv.append(rng.choice([NOW, NOW + 500, NOW + 10_000_000, 0, self.number()]))
            elif name == "RETRYCOUNT":
                argv.append(self.number())
            elif name == "LASTID":
                argv.append(self.id())
        if rng.random() < 0.02:
            argv.append(rng.choice(["x", "IDLE", "5", "LASTID"]))
        return argv

    def min_idle(self):
        return self.rng.choice([0, 0, 0, 1, 500, 2000, self.number()])

    def streams(self, as_group):
        rng = self.rng
        keys = [self.key() for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        if as_group:
            ids = [">" if rng.random() < 0.8 else rng.choice(["0", "0", self.id()]) for _ in keys]
        else:
            ids = [rng.choice(["$", "$", "0", self.id()]) for _ in keys]
        if rng.random() < 0.01:
            ids[0] = rng.choice(BAD_IDS)
        if rng.random() < 0.01:
            ids.pop()
        return ["STREAMS" if rng.random() < 0.99 else rng.choice(["x", "streams"]), *keys, *ids]

    def block(self):
        rng = self.rng
        return ["BLOCK", rng.choice([0, 1, 500, 3000, 100000]) if rng.random() < 0.9 else
                rng.choice([-1, "x", "1.5", 9223372036854775808, ""])]

    def xread(self, block):
        return ["XREAD", *self.count(), *(self.block() if block else []), *self.streams(False)]

    def xreadgroup(self, block):
        rng = self.rng
        argv = ["XREADGROUP"]
        parts = [["GROUP", self.group(), self.consumer()], self.count()]
        if block:
            parts.append(self.block())
        if rng.random() < 0.15:
            parts.append(["NOACK"])
        if rng.random() < 0.01:
            parts.pop(0)
        rng.shuffle(parts)
        return argv + [x for part in parts for x in part] + self.streams(True)


def plain(m):
    """A command that does not wait."""
    rng = m.rng
    return rng.choice([
        m.xadd, m.xadd, m.xadd, m.xadd, m.xadd, m.xadd,
        lambda: ["XTRIM", m.key(), *m.trim()],
        lambda: ["XLEN", m.key()],
        lambda: ["XRANGE", m.key(), *m.range()],
        lambda: ["XREVRANGE", m.key(), *m.range()],
        lambda: ["XDEL", m.key(), *m.ids()],
        lambda: ["XDEL", m.key(), *m.ids()],
        lambda: m.xread(False),
        lambda: m.xreadgroup(False),
        lambda: m.xreadgroup(False),
        lambda: m.xreadgroup(False),
    ])()


def of_group(m):
    rng = m.rng
    return rng.choice([
        lambda: ["XACK", m.key(), m.group(), *m.ids()],
        lambda: ["XACK", m.key(), m.group(), *m.ids()],
        lambda: ["XPENDING", m.key(), m.group()],
        lambda: ["XPENDING", m.key(), m.group(),
                 *(["IDLE", m.min_idle()] if rng.random() < 0.3 else []), m.bound(), m.bound(),
                 m.number(20), *([m.consumer()] if rng.random() < 0.4 else [])],
        lambda: ["XPENDING", m.key(), m.group(), *[m.bound() for _ in range(rng.randrange(7))]],
        lambda: ["XCLAIM", m.key(), m.group(), m.consumer(), m.min_idle(), *m.ids(),
                 *m.claim_options()],
        lambda: ["XCLAIM", m.key(), m.group(), m.consumer(), m.min_idle(), *m.ids(),
                 *m.claim_options()],
        lambda: ["XAUTOCLAIM", m.key(), m.group(), m.consumer(), m.min_idle(), m.bound(),
                 *m.count(), *rng.choice([[], [], ["JUSTID"], ["justid"], ["x"]])],
        lambda: ["XAUTOCLAIM", m.key(), m.group(), m.consumer(), m.min_idle(),
                 rng.choice(["-", "0", m.id()]), *rng.choice([[], ["COUNT", 2], ["COUNT", 3]])],
        lambda: ["XINFO", "STREAM", m.key()],
        lambda: ["XINFO", "STREAM", m.key(), "FULL", *m.count()],
        lambda: ["XINFO", "GROUPS", m.key()],
        lambda: ["XINFO", "CONSUMERS", m.key(), m.group()],
        lambda: ["XINFO", "STREAM", m.key(), *rng.choice([["full"], ["x"], ["FULL", "x", 1],
                                                          ["FULL", "COUNT"], ["FULL", 1]])],
    ])()


def manage(m):
    rng = m.rng
    extra = rng.choice([[], [], [], ["ENTRIESREAD", m.number()], ["MKSTREAM"],
                        ["MKSTREAM", "ENTRIESREAD", m.number()], ["x"], ["ENTRIESREAD"],
                        ["MKSTREAM", "MKSTREAM", "MKSTREAM", "MKSTREAM"]])
    at = rng.choice(["0", "$", "0-0", m.id()])
    return rng.choice([
        lambda: ["XGROUP", "CREATE", m.key(), m.group(), at, *extra],
        lambda: ["XGROUP", "CREATE", m.key(), m.group(), at, "MKSTREAM"],
        lambda: ["XGROUP", "SETID", m.key(), m.group(), at, *extra],
        lambda: ["XGROUP", "SETID", m.key(), m.group(), at],
        lambda: ["XGROUP", "DESTROY", m.key(), m.group()],
        lambda: ["XGROUP", "CREATECONSUMER", m.key(), m.group(), m.consumer()],
        lambda: ["XGROUP", "DELCONSUMER", m.key(), m.group(), m.consumer()],
        lambda: ["XGROUP", rng.choice(["x", "CREATE", "setid"]), m.key()],
        lambda: ["XSETID", m.key(), m.id()],
        lambda: ["XSETID", m.key(), m.id(), *rng.choice([
            ["ENTRIESADDED", m.number(500)], ["MAXDELETEDID", m.id()],
            ["ENTRIESADDED", m.number(500), "MAXDELETEDID", m.id()], ["x"], ["ENTRIESADDED"]])],
    ])()


def waiting(m):
    return m.xread(True) if m.rng.random() < 0.5 else m.xreadgroup(True)


def other(m):
    """Other types, and what makes, moves and ends keys. Not SWAPDB: who waits for several streams
    may receive an error for any of them first (engine_cases/ has it for one)."""
    rng = m.rng
    return rng.choice([
        lambda: ["DEL", m.key()],
        lambda: ["DEL", m.key()],
        lambda: ["SET", m.key(), "x"],
        lambda: ["SADD", "set", "a", "b"],
        lambda: ["PEXPIRE", m.key(), rng.choice([1, 1000, 5000, 100000])],
        lambda: ["PERSIST", m.key()],
        lambda: ["RENAME", m.key(), m.key()],
        lambda: ["COPY", m.key(), m.key(), "REPLACE"],
        lambda: ["COPY", m.key(), m.key()],
        lambda: ["MOVE", m.key(), rng.randrange(3)],
        lambda: ["SELECT", rng.choice([0, 0, 0, 1])],
        lambda: ["OBJECT", "ENCODING", m.key()],
        lambda: ["TYPE", m.key()],
        lambda: ["WATCH", m.key()],
    ])()


def wrong_arity(m):
    argv = m.rng.choice([plain, of_group, manage, waiting])(m)
    return argv[:-1] if m.rng.random() < 0.6 else argv + ["extra"]


def one(m):
    p = m.rng.random()
    if p < 0.62:
        return plain(m)
    if p < 0.84:
        return of_group(m)
    if p < 0.91:
        return manage(m)
    if p < 0.96:
        return waiting(m)
    return other(m) if p < 0.985 else wrong_arity(m)


def transaction(m):
    yield ["MULTI"]
    for _ in range(m.rng.randrange(1, 6)):
        yield one(m)
    yield ["EXEC"] if m.rng.random() < 0.9 else ["DISCARD"]


def crowd(m):
    """Several clients wait for the same few keys, and one brings something for some of them."""
    rng = m.rng
    yield ["XGROUP", "CREATE", m.key(), m.group(), "$", "MKSTREAM"]
    for n in range(1, rng.randrange(3, 6)):
        yield ["@session", n]
        yield waiting(m)
    yield ["@session", 0]
    if rng.random() < 0.5:
        yield from transaction(m)
    for _ in range(rng.randrange(1, 4)):
        yield m.xadd() if rng.random() < 0.6 else one(m)
    yield rng.choice([["@time", 600_000], ["@unblock", rng.randrange(1, 5)],
                      ["@unblock", rng.randrange(1, 5), "ERROR"], ["@close", rng.randrange(1, 5)]])


def bulk(m):
    """Enough entries for several nodes of the usual size."""
    for _ in range(m.rng.randrange(20, 250)):
        m.top += m.rng.choice([0, 1, 300])
        yield ["XADD", "many", f"{m.top}-*", "a", m.rng.choice(VALUES), "b",
               m.rng.choice(VALUES)]


def commands(rng):
    m = Maker(rng)
    while True:
        p = rng.random()
        if p < 0.02:
            yield from crowd(m)
        elif p < 0.03:
            yield ["@session", rng.randrange(4)]
            yield from transaction(m)
        elif p < 0.032:
            yield from bulk(m)
        else:
            yield one(m)
