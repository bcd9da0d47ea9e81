"""Hashes: all commands that 7.0 knows.

Few keys, so that commands meet each other's hashes, some of them other types; fields from few, and
texts around the length at which a listpack becomes a table. What later versions know of fields that
expire has no server here: see tests/engine/test_hash_expire.c."""

UNORDERED = {"HGETALL", "HKEYS", "HVALS"}
RANDOM = {"HRANDFIELD"}
SESSIONS = 3
CONFIGS = [
    {"hash-max-listpack-entries": 0},
    {"hash-max-listpack-value": 0},
    {"hash-max-listpack-entries": 20, "hash-max-listpack-value": 5000},
    {"hash-max-listpack-entries": 1000000, "hash-max-listpack-value": 64},
]

HASHES = ["h1", "h2", "h3", "h4", "big"]
KEYS = [*HASHES, "str", "list", "set", "zset", "", "h\r\n\x00"]
FIELDS = ["", "a", "b", "c", "d", "1", "2", "-1", "01", "x" * 9, "x" * 10, "x" * 11, "x" * 63,
          "x" * 64, "x" * 65, "\x00", "\xff\xfe", "9223372036854775807", "a*", "[ab]"]
VALUES = ["", "a", "0", "1", "-1", "127", "128", "4095", "4096", "32768", "8388608", "2147483648",
          "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.5", "-2.25",
          "1e3",
          "01", " 1", "nan", "inf", "-inf", "x" * 9, "x" * 10, "x" * 11, "x" * 64, "x" * 65, "\x00",
          "3.0", "0x10", "1e4000", "1e-4940", "0.1"]
NOT_NUMBERS = ["", "x", "1.0", " 1", "9223372036854775808", "-9223372036854775809", "0x1", "+1",
               "-0", "1\x00"]
FLOATS = ["1", "-1", "0.1", "1.5", "3.0e3", "1e2", "-0.0", "0", "1e17", "0.00000000000000001",
          "0.000000000000000001", "-1e-18", "1e300", "1e4000", "-1e4000", "1e4932",
          "123456789.987654321",
          "9223372036854775807", "0x1p4", "5e-1", "1.", ".5"]
NOT_FLOATS = ["", "x", " 1", "1 ", "nan", "inf", "-inf", "infinity", "1e5000", "1e-5000", "1,5",
              "0x", "--1", "1\x00", "1e", "+inf"]
PATTERNS = ["*", "a*", "*a", "?", "[a-c]", "[^a]*", "1*", "", "x*x", "-*", "[", "*[0-9]"]


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def key(self):
        return self.rng.choice(HASHES if self.rng.random() < 0.94 else KEYS)

    def field(self):
        rng = self.rng
        p = rng.random()
        if p < 0.55:
            return rng.choice(FIELDS[:8])
        return rng.choice(FIELDS) if p < 0.75 else rng.randrange(40)

    def value(self):
        rng = self.rng
        p = rng.random()
        if p < 0.4:
            return rng.randrange(-100, 100)
        if p < 0.9:
            return rng.choice(VALUES)
        return chr(97 + rng.randrange(26)) * rng.choice([1, 20, 60, 66, 100, 300, 5001])

    def pairs(self):
        rng = self.rng
        p = rng.random()
        n = 1 if p < 0.6 else rng.randrange(1, 7) if p < 0.97 else rng.randrange(1, 120)
        short = rng.random() < 0.7
        return [x for _ in range(n)
                for x in (self.field(), rng.randrange(100) if short else self.value())]

    def fields(self):
        rng = self.rng
        return [self.field() for _ in range(rng.choice([1, 1, 2, 3, 5, 12]))]

    def increment(self):
        rng = self.rng
        p = rng.random()
        if p < 0.85:
            return rng.randrange(-100, 100)
        if p < 0.93:
            return rng.choice([9223372036854775807, -9223372036854775808, 4611686018427387904])
        return rng.choice(NOT_NUMBERS)

    def float(self):
        return self.rng.choice(FLOATS if self.rng.random() < 0.88 else NOT_FLOATS)

    def random(self):
        """Counts are not too negative: the answer is that long."""
        rng = self.rng
        argv = ["HRANDFIELD", self.key()]
        p = rng.random()
        if p < 0.2:
            return argv
        if p < 0.85:
            argv.append(rng.randrange(-20, 40))
        elif p < 0.95:
            argv.append(rng.choice([9223372036854775807, -9223372036854775808, 4611686018427387903,
                                    4611686018427387904, -4611686018427387904]))
            if argv[-1] == -4611686018427387904 or rng.random() < 0.5:
                argv.append("WITHVALUES")
        else:
            argv.append(rng.choice(NOT_NUMBERS))
        if len(argv) == 3 and rng.random() < 0.5:
            argv.append(rng.choice(["WITHVALUES", "withvalues", "WITHVALUES", "WITHSCORES"]))
        if rng.random() < 0.02:
            argv.append("x")
        return argv

    def scan(self):
        rng = self.rng
        argv = ["HSCAN", self.key()]
        argv.append(0 if rng.random() < 0.92 else rng.choice(["", "x", "-1", " 1", "-", "1x",
                                                              "18446744073709551616"]))
        for _ in range(rng.choice([0, 1, 1, 2])):
            argv += rng.choice([
                lambda: ["MATCH", rng.choice(PATTERNS)],
                lambda: [rng.choice(["COUNT", "count"]), rng.choice([1000, 100000, 5, 1])],
            ])()
        if rng.random() < 0.06:
            argv += rng.choice([["COUNT"], ["MATCH"], ["TYPE", "hash"], ["COUNT", 0],
                                ["COUNT", "x"],
                                ["NOVALUES"], ["COUNT", 4611686018427387904], ["x", "y"]])
        return argv


def change(m):
    rng = m.rng
    return rng.choice([
        lambda: ["HSET", m.key(), *m.pairs()],
        lambda: ["HSET", m.key(), *m.pairs()],
        lambda: ["HSET", m.key(), *m.pairs()],
        lambda: ["HMSET", m.key(), *m.pairs()],
        lambda: ["HSETNX", m.key(), m.field(), m.value()],
        lambda: ["HDEL", m.key(), *m.fields()],
        lambda: ["HDEL", m.key(), *m.fields()],
        lambda: ["HDEL", m.key(), *FIELDS, *range(40)],
        lambda: ["HINCRBY", m.key(), m.field(), m.increment()],
        lambda: ["HINCRBY", m.key(), m.field(), m.increment()],
        lambda: ["HINCRBYFLOAT", m.key(), m.field(), m.float()],
        lambda: ["HINCRBYFLOAT", m.key(), m.field(), m.float()],
    ])()


def look(m):
    rng = m.rng
    return rng.choice([
        lambda: ["HGET", m.key(), m.field()],
        lambda: ["HMGET", m.key(), *m.fields()],
        lambda: ["HGETALL", m.key()],
        lambda: ["HKEYS", m.key()],
        lambda: ["HVALS", m.key()],
        lambda: ["HLEN", m.key()],
        lambda: ["HSTRLEN", m.key(), m.field()],
        lambda: ["HEXISTS", m.key(), m.field()],
        lambda: m.random(),
        lambda: m.scan(),
        lambda: ["OBJECT", "ENCODING", m.key()],
    ])()


def around(m):
    """Other types in the way, expiry, copies, and commands that are not right."""
    rng = m.rng
    return rng.choice([
        lambda: ["DEL", m.key()],
        lambda: ["SET", rng.choice(["str", m.key()]), 7],
        lambda: ["RPUSH", "list", "a"],
        lambda: ["SADD", "set", "a"],
        lambda: ["ZADD", "zset", 1, "a"],
        lambda: ["EXPIRE", m.key(), rng.choice([1, 5, 100])],
        lambda: ["PERSIST", m.key()],
        lambda: ["COPY", m.key(), m.key(), "REPLACE"],
        lambda: ["RENAME", m.key(), m.key()],
        lambda: ["@time", rng.randrange(3_000_000)],
        lambda: ["@session", rng.randrange(SESSIONS)],
        lambda: ["SELECT", rng.choice([0, 0, 0, 1])],
        lambda: [rng.choice(["HSET", "HMSET", "HSETNX", "HDEL", "HINCRBY", "HINCRBYFLOAT", "HGET",
                             "HMGET", "HGETALL", "HKEYS", "HVALS", "HLEN", "HSTRLEN", "HEXISTS",
                             "HRANDFIELD", "HSCAN"]), *[m.key() for _ in range(rng.randrange(5))]],
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
                yield change(m)
            yield rng.choice([["EXEC"], ["EXEC"], ["DISCARD"]])
            yield ["@time", 1000]  # what follows must not go together with the end of this
