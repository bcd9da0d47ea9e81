"""Lists: all their commands, and the waiting ones with several clients.

Few keys, so that commands meet each other's lists, some of them other types; elements from a few
bytes to more than a node, so that nodes fill, split and merge."""

UNORDERED = set()
RANDOM = set()
SESSIONS = 4
CONFIGS = [
    {"list-max-listpack-size": 1},
    {"list-max-listpack-size": 0},
    {"list-max-listpack-size": 16, "list-compress-depth": 2},
    {"list-max-listpack-size": -1},
    {"list-max-listpack-size": -5},
    {"list-max-listpack-size": 5000},
]

KEYS = ["l1", "l2", "l3", "l4", "long", "str", "set", "hash", "zset", "", "l\r\n\x00"]
LISTS = KEYS[:5]
SMALL = ["", "a", "b", "c", "x" * 63, "x" * 64, "0", "1", "-1", "127", "128", "4095", "-4097",
         "32768", "8388608", "2147483648", "9223372036854775807", "-9223372036854775808",
         "9223372036854775808", "01", "+1", "-0", " 1", "1.5", "\x00", "\xff\xfe", "value:17"]
NOT_NUMBERS = ["", "x", "1.0", " 1", "9223372036854775808", "-9223372036854775809", "0x1", "+1",
               "-0"]
HUGE = [9223372036854775807, -9223372036854775808, -9223372036854775807, 4294967296, -4294967296]


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def key(self):
        rng = self.rng
        return rng.choice(LISTS if rng.random() < 0.93 else KEYS)

    def element(self):
        rng = self.rng
        p = rng.random()
        if p < 0.6:
            return rng.choice(SMALL)
        if p < 0.8:
            return rng.randrange(-5000, 5000)
        if p < 0.97:
            return chr(97 + rng.randrange(26)) * rng.randrange(300)
        return chr(97 + rng.randrange(26)) * rng.choice([1000, 4085, 4090, 8180, 8185, 9000, 20000])

    def elements(self):
        p = self.rng.random()
        n = 1 if p < 0.5 else self.rng.randrange(1, 6) if p < 0.95 else self.rng.randrange(1, 200)
        return [self.element() for _ in range(n)]

    def index(self):
        rng = self.rng
        p = rng.random()
        if p < 0.6:
            return rng.randrange(-6, 7)
        if p < 0.9:
            return rng.randrange(-300, 300)
        return rng.choice(HUGE) if p < 0.96 else rng.choice(NOT_NUMBERS)

    def count(self):
        rng = self.rng
        p = rng.random()
        if p < 0.8:
            return rng.randrange(-1, 6)
        if p < 0.9:
            return rng.randrange(200)
        return rng.choice(HUGE) if p < 0.95 else rng.choice(NOT_NUMBERS)

    def end(self):
        rng = self.rng
        return rng.choice(["LEFT", "RIGHT", "left", "Right"]) if rng.random() < 0.97 else "MIDDLE"

    def timeout(self):
        rng = self.rng
        if rng.random() < 0.9:
            return rng.choice([0, 0, "0.0", 1, "0.5", "3", 100, "1e1", "0.0001"])
        return rng.choice([-1, "x", "", "nan", "-0.5", "1e400", "0x", "1 "])

    def keys(self):
        return [self.key() for _ in range(self.rng.choice([1, 1, 2, 3]))]

    def mpop(self):
        rng = self.rng
        keys = self.keys()
        n = len(keys) if rng.random() < 0.95 else rng.choice([0, -1, 5, "x", 9223372036854775807])
        argv = [n, *keys, self.end()]
        if rng.random() < 0.6:
            argv += [rng.choice(["COUNT", "count"]), self.count()]
        if rng.random() < 0.03:
            argv += rng.choice([["COUNT"], ["COUNT", 1], ["x"]])
        return argv

    def lpos(self):
        rng = self.rng
        argv = ["LPOS", self.key(), self.element()]
        for name in rng.sample(["RANK", "COUNT", "MAXLEN"], rng.randrange(4)):
            value = self.count() if name != "RANK" else rng.choice([1, 2, -1, -2, 3, self.index()])
            argv += [name, value]
        if rng.random() < 0.03:
            argv += rng.choice([["RANK"], ["x"], ["COUNT", 1]])
        return argv


def plain(m):
    """A command that does not wait."""
    rng = m.rng
    return rng.choice([
        lambda: ["RPUSH", m.key(), *m.elements()],
        lambda: ["RPUSH", m.key(), *m.elements()],
        lambda: ["LPUSH", m.key(), *m.elements()],
        lambda: ["LPUSH", m.key(), *m.elements()],
        lambda: ["RPUSHX", m.key(), *m.elements()],
        lambda: ["LPUSHX", m.key(), *m.elements()],
        lambda: ["LINSERT", m.key(), rng.choice(["BEFORE", "after", "AFTER", "x"]), m.element(),
                 m.element()],
        lambda: ["LINSERT", m.key(), rng.choice(["BEFORE", "AFTER"]), rng.choice(SMALL),
                 m.element()],
        lambda: ["LLEN", m.key()],
        lambda: ["LINDEX", m.key(), m.index()],
        lambda: ["LSET", m.key(), m.index(), m.element()],
        lambda: ["LPOP", m.key()],
        lambda: ["RPOP", m.key()],
        lambda: ["LPOP", m.key(), m.count()],
        lambda: ["RPOP", m.key(), m.count()],
        lambda: ["LRANGE", m.key(), m.index(), m.index()],
        lambda: ["LTRIM", m.key(), m.index(), m.index()],
        lambda: ["LTRIM", m.key(), rng.randrange(4), -rng.randrange(1, 4)],
        m.lpos,
        lambda: ["LREM", m.key(), m.count(), rng.choice(SMALL)],
        lambda: ["LREM", m.key(), m.index(), m.element()],
        lambda: ["RPOPLPUSH", m.key(), m.key()],
        lambda: ["LMOVE", m.key(), m.key(), m.end(), m.end()],
        lambda: ["LMPOP", *m.mpop()],
    ])()


def waiting(m):
    rng = m.rng
    return rng.choice([
        lambda: ["BLPOP", *m.keys(), m.timeout()],
        lambda: ["BRPOP", *m.keys(), m.timeout()],
        lambda: ["BLMOVE", m.key(), m.key(), m.end(), m.end(), m.timeout()],
        lambda: ["BRPOPLPUSH", m.key(), m.key(), m.timeout()],
        lambda: ["BLMPOP", m.timeout(), *m.mpop()],
    ])()


def other(m):
    """Other types, and what makes, moves and ends keys."""
    rng = m.rng
    return rng.choice([
        lambda: ["DEL", *m.keys()],
        lambda: ["DEL", m.key()],
        lambda: ["SET", m.key(), "x"],
        lambda: ["SADD", "set", "a", "b"],
        lambda: ["HSET", "hash", "f", "v"],
        lambda: ["ZADD", "zset", 1, "a"],
        lambda: ["PEXPIRE", m.key(), rng.choice([1, 1000, 5000, 100000])],
        lambda: ["PERSIST", m.key()],
        lambda: ["RENAME", m.key(), m.key()],
        lambda: ["COPY", m.key(), m.key(), "REPLACE"],
        lambda: ["COPY", m.key(), m.key()],
        lambda: ["MOVE", m.key(), rng.randrange(3)],
        lambda: ["SELECT", rng.choice([0, 0, 0, 1])],
        lambda: ["OBJECT", "ENCODING", m.key()],
        lambda: ["TYPE", m.key()],
        lambda: ["SORT", m.key(), "ALPHA", "STORE", m.key()],
    ])()


def wrong_arity(m):
    argv = (plain(m) if m.rng.random() < 0.7 else waiting(m))
    return argv[:-1] if m.rng.random() < 0.6 else argv + ["extra"]


def one(m):
    p = m.rng.random()
    if p < 0.86:
        return plain(m)
    if p < 0.93:
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
    for n in range(1, rng.randrange(3, 6)):
        yield ["@session", n]
        yield waiting(m)
    yield ["@session", 0]
    if rng.random() < 0.5:
        yield from transaction(m)
    for _ in range(rng.randrange(1, 4)):
        yield ["RPUSH", rng.choice(LISTS), *m.elements()] if rng.random() < 0.6 else one(m)
    yield rng.choice([["@time", 600_000], ["@unblock", rng.randrange(1, 5)],
                      ["@unblock", rng.randrange(1, 5), "ERROR"], ["@close", rng.randrange(1, 5)]])


def swap(m):
    """SWAPDB with one who waits for one key: of several keys that become ready at once, chance says
    which is first."""
    for n in range(16):
        yield ["@unblock", n]
    key = m.key()
    yield ["@session", 2]
    yield ["SELECT", 1]
    yield m.rng.choice([["RPUSH", key, "in db 1"], ["DEL", key], ["SET", key, "x"]])
    yield ["SELECT", 0]
    yield ["@session", 1]
    yield ["BLMOVE", key, m.key(), m.end(), m.end(), 0]
    yield ["@session", 0]
    yield ["SWAPDB", 0, 1]


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
            yield from swap(m)
        elif p < 0.04:
            yield ["RPUSH", "long", *[rng.choice(SMALL) for _ in range(rng.randrange(400))], "end"]
        else:
            yield one(m)
