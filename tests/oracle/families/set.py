"""Sets: all their commands.

Few keys, so that commands meet each other's sets, some of them other types; members from few, many
of them integers of all widths, so that sets cross the limits of intsets and results may be either
encoding."""

UNORDERED = {"SMEMBERS", "SINTER", "SUNION", "SDIFF"}
RANDOM = {"SPOP", "SRANDMEMBER"}
SESSIONS = 3
CONFIGS = [
    {"set-max-intset-entries": 0},
    {"set-max-intset-entries": 1},
    {"set-max-intset-entries": 20},
    {"set-max-intset-entries": 2000000000},
]

SETS = ["s1", "s2", "s3", "s4", "ints"]
KEYS = [*SETS, "str", "list", "hash", "zset", "", "s\r\n\x00"]
WORDS = ["", "a", "b", "c", "d", "e", "x" * 63, "x" * 64, "x" * 100, "01", "+1", "-0", " 1", "1.5",
         "\x00", "\xff\xfe", "9223372036854775808", "-9223372036854775809", "a*", "[ab]", "a?"]
INTS = [0, 1, -1, 127, 128, 32767, 32768, -32768, -32769, 2147483647, 2147483648, -2147483648,
        -2147483649, 9223372036854775807, -9223372036854775808]
HUGE = [9223372036854775807, -9223372036854775808, 4294967296, 2147483648]
NOT_NUMBERS = ["", "x", "1.0", " 1", "9223372036854775808", "-9223372036854775809", "0x1", "+1",
               "-0", "nan"]
PATTERNS = ["*", "**", "a*", "*a", "?", "[a-c]", "[^a]*", "1*", "", "x*x", "\\*", "-*", "[",
            "*[0-9]", "a**", "**b*"]


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def key(self):
        return self.rng.choice(SETS if self.rng.random() < 0.94 else KEYS)

    def keys(self):
        return [self.key() for _ in range(self.rng.choice([1, 1, 2, 2, 3, 4, 6]))]

    def member(self):
        rng = self.rng
        p = rng.random()
        if p < 0.45:
            return rng.randrange(-10, 30)
        if p < 0.6:
            return rng.choice(INTS)
        if p < 0.7:
            return rng.randrange(-40000, 40000)
        return rng.choice(WORDS)

    def members(self):
        rng = self.rng
        p = rng.random()
        n = 1 if p < 0.5 else rng.randrange(1, 8) if p < 0.97 else rng.randrange(1, 150)
        if rng.random() < 0.6:
            return [rng.choice([rng.randrange(-10, 60), rng.choice(INTS)]) for _ in range(n)]
        return [self.member() for _ in range(n)]

    def count(self):
        rng = self.rng
        p = rng.random()
        if p < 0.8:
            return rng.randrange(-4, 30)
        return rng.choice(HUGE) if p < 0.93 else rng.choice(NOT_NUMBERS)

    def random_count(self):
        """Not too negative: the answer is that long."""
        rng = self.rng
        p = rng.random()
        if p < 0.85:
            return rng.randrange(-20, 40)
        if p < 0.95:
            return rng.choice([9223372036854775807, -9223372036854775808, 4294967296])
        return rng.choice(NOT_NUMBERS)

    def scan(self):
        rng = self.rng
        argv = ["SSCAN", self.key()]
        p = rng.random()
        argv.append(0 if p < 0.9 else rng.choice(["", "x", "-1", "18446744073709551615", " 1", "0x",
                                                  "18446744073709551616", "-", "+0", "1\x00z"]))
        for _ in range(rng.choice([0, 1, 1, 2])):
            argv += rng.choice([
                lambda: ["MATCH", rng.choice(PATTERNS)],
                lambda: [rng.choice(["COUNT", "count"]), rng.choice([1000, 100000, 5, 1])],
            ])()
        if rng.random() < 0.06:
            argv += rng.choice([["COUNT"], ["MATCH"], ["TYPE", "set"], ["COUNT", 0], ["COUNT", "x"],
                                ["COUNT", -1], ["COUNT", 9223372036854775807], ["x", "y"]])
        return argv

    def card(self):
        rng = self.rng
        keys = self.keys()
        n = len(keys) if rng.random() < 0.93 else rng.choice([0, -1, 7, "x", 9223372036854775807])
        argv = ["SINTERCARD", n, *keys]
        if rng.random() < 0.5:
            argv += [rng.choice(["LIMIT", "limit"]), rng.choice([0, 1, 2, 5, 100, self.count()])]
        if rng.random() < 0.04:
            argv += rng.choice([["LIMIT"], ["LIMIT", -1], ["x"], ["LIMIT", 1]])
        return argv


def change(m):
    rng = m.rng
    return rng.choice([
        lambda: ["SADD", m.key(), *m.members()],
        lambda: ["SADD", m.key(), *m.members()],
        lambda: ["SADD", m.key(), *m.members()],
        lambda: ["SREM", m.key(), *m.members()],
        lambda: ["SREM", m.key(), *[m.member() for _ in range(rng.randrange(1, 40))]],
        lambda: ["SMOVE", m.key(), m.key(), m.member()],
        lambda: ["SMOVE", m.key(), m.key(), rng.randrange(-10, 30)],
        lambda: ["SINTERSTORE", m.key(), *m.keys()],
        lambda: ["SUNIONSTORE", m.key(), *m.keys()],
        lambda: ["SDIFFSTORE", m.key(), *m.keys()],
        lambda: ["SPOP", m.key()],
        lambda: ["SPOP", m.key(), m.count()],
    ])()


def settled(m):
    """A change that leaves nothing to chance: in a transaction others follow before it is known."""
    argv = change(m)
    return ["SPOP", m.key(), 100000] if argv[0] == "SPOP" else argv


def look(m):
    rng = m.rng
    return rng.choice([
        lambda: ["SISMEMBER", m.key(), m.member()],
        lambda: ["SMISMEMBER", m.key(), *m.members()],
        lambda: ["SCARD", m.key()],
        lambda: ["SMEMBERS", m.key()],
        lambda: ["SINTER", *m.keys()],
        lambda: ["SUNION", *m.keys()],
        lambda: ["SDIFF", *m.keys()],
        lambda: m.card(),
        lambda: m.scan(),
        lambda: ["SRANDMEMBER", m.key()],
        lambda: ["SRANDMEMBER", m.key(), m.random_count()],
        lambda: ["OBJECT", "ENCODING", m.key()],
        lambda: ["TYPE", m.key()],
    ])()


def around(m):
    """Other types in the way, expiry, copies, and commands that are not right."""
    rng = m.rng
    return rng.choice([
        lambda: ["DEL", m.key()],
        lambda: ["SET", rng.choice(["str", m.key()]), 7],
        lambda: ["RPUSH", "list", "a"],
        lambda: ["HSET", "hash", "a", 1],
        lambda: ["ZADD", "zset", 1, "a"],
        lambda: ["EXPIRE", m.key(), rng.choice([1, 5, 100])],
        lambda: ["PERSIST", m.key()],
        lambda: ["COPY", m.key(), m.key(), "REPLACE"],
        lambda: ["RENAME", m.key(), m.key()],
        lambda: ["@time", rng.randrange(3_000_000)],
        lambda: ["@session", rng.randrange(SESSIONS)],
        lambda: ["SELECT", rng.choice([0, 0, 0, 1])],
        lambda: [rng.choice(["SADD", "SREM", "SMOVE", "SISMEMBER", "SMISMEMBER", "SCARD", "SPOP",
                             "SRANDMEMBER", "SINTER", "SUNION", "SDIFF", "SINTERSTORE",
                             "SUNIONSTORE", "SDIFFSTORE", "SINTERCARD", "SMEMBERS", "SSCAN"]),
                 *[m.key() for _ in range(rng.randrange(5))]],
    ])()


def commands(rng):
    m = Maker(rng)
    while True:
        p = rng.random()
        if p < 0.5:
            yield change(m)
        elif p < 0.9:
            yield look(m)
        elif p < 0.99:
            yield around(m)
        else:
            yield ["@session", rng.randrange(SESSIONS)]
            yield ["MULTI"]
            for _ in range(rng.randrange(1, 5)):
                yield settled(m)
            yield rng.choice([["EXEC"], ["EXEC"], ["DISCARD"]])
            yield ["@time", 1000]  # what follows must not go together with the end of this
