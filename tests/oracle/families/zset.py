"""Sorted sets: all their commands, with sets as inputs of the algebra, and the waiting ones with
several clients.

Ranges of members (BYLEX) mean something only where all scores are equal: in a skiplist of other
scores a server answers by chance. So there are keys whose scores are all zero, one that stays a
listpack, and others, and results of one kind are stored under its own names."""

UNORDERED = set()
RANDOM = {"ZRANDMEMBER"}
SESSIONS = 4
CONFIGS = [
    {"zset-max-listpack-entries": 5, "zset-max-listpack-value": 1},
    {"zset-max-listpack-entries": 20, "zset-max-listpack-value": 5},
    {"zset-max-listpack-entries": 1000, "zset-max-listpack-value": 1000},
]

SCORED = ["z1", "z2", "z3", "big", "z\r\n\x00"]
LEX = ["l1", "l2", "lbig"]
TINY = "tiny"
TINY_MEMBERS = ["a", "b", "c", "d", "e"]
SETS = ["s1", "s2", "s3"]
OTHERS = ["str", "list", "hash", "missing", ""]
LEX_OTHERS = [TINY, TINY, TINY, "wrong", "nothing"]  # nothing is stored there by the others

FEW = ["a", "b", "c", "d", "e", "f", "ab", "abc", "b\x00", "\x00", "\xff", "", "0", "1", "-1", "12",
       "01", "1.5", "127", "128", "-4096", "4096", "32768", "2147483648", "9223372036854775807",
       "9223372036854775808", "x" * 10, "x" * 11, "x" * 63, "x" * 64, "x" * 65]
SCORES = ["0", "1", "-1", "2", "3", "5", "1.5", "-1.5", "0.1", "3.14", "1e3", "-0", "inf", "-inf",
          "+inf", "Infinity", "1e300", "-1e300", "1e308", "5e-324", "1e17", "123456789012345678",
          "9007199254740993", "4611686018427387904", "4611686018427387905", "9223372036854775807",
          "-9223372036854775808", "1e18", "1e19", "100000000000000000", "0x10", "0x1p3", "+5", ".5",
          "5.", "1e-5", "0.30000000000000004", "2.2250738585072014e-308"]
BAD_SCORES = ["", "x", "nan", "-nan", " 1", "1 ", "1e999", "-1e999", "1e-999", "1\x00", "0x", "1,5",
              "(1", "infx"]
BOUNDS = ["-inf", "+inf", "inf", "(-inf", "(+inf", "0", "(0", "1", "(1", "2", "(2", "5", "(5",
          "1.5", "(1.5", "-1", "(-1", "100", "(100", "0x2", "1e3"]
BAD_BOUNDS = ["", "(", " 1", "1\x00x", "x", "nan", "(nan", "((1", "1x", "[1", "1e999", "- 1"]
LEX_BOUNDS = ["-", "+", "[a", "(a", "[b", "(b", "[c", "(c", "[", "(", "[ab", "(abc", "[1", "(m1",
              "[m150", "(m2", "[\xff", "[x", "(zz", "[\x00"]
BAD_LEX = ["", "a", "-x", "+1", "-\x00", "+\x00x", "{a", "inf"]
HUGE = [9223372036854775807, -9223372036854775808, 4294967296, -4294967296]
NOT_NUMBERS = ["", "x", "1.0", " 1", "9223372036854775808", "0x1", "+1"]


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def pick(self, good, bad, share=0.04):
        return self.rng.choice(bad if self.rng.random() < share else good)

    def key(self):
        """Of sorted sets that may be read in any way but BYLEX."""
        return self.pick(SCORED, [*LEX, TINY, *SETS, *OTHERS], 0.12)

    def home(self):
        """Of one that may be written with any score."""
        return self.pick(SCORED, [*SETS, *OTHERS], 0.04)

    def lex(self):
        return self.pick(LEX, LEX_OTHERS, 0.2)

    def any(self):
        return self.rng.choice([*SCORED, *SCORED, *LEX, TINY, *SETS, *OTHERS])

    def member(self):
        p = self.rng.random()
        if p < 0.75:
            return self.rng.choice(FEW)
        return f"m{self.rng.randrange(300)}" if p < 0.97 else "y" * self.rng.randrange(300)

    def score(self):
        p = self.rng.random()
        if p < 0.5:
            return self.rng.randrange(-3, 12)
        if p < 0.6:
            return repr(self.rng.uniform(-100, 100))
        return self.pick(SCORES, BAD_SCORES, 0.05)

    def pairs(self):
        p = self.rng.random()
        n = 1 if p < 0.5 else self.rng.randrange(1, 5) if p < 0.95 else self.rng.randrange(1, 60)
        return [x for _ in range(n) for x in (self.score(), self.member())]

    def index(self):
        p = self.rng.random()
        if p < 0.8:
            return self.rng.randrange(-6, 7)
        return self.rng.randrange(-200, 200) if p < 0.93 else self.pick(HUGE, NOT_NUMBERS, 0.4)

    def count(self):
        p = self.rng.random()
        if p < 0.85:
            return self.rng.randrange(-1, 6)
        return self.rng.randrange(200) if p < 0.92 else self.pick(HUGE, NOT_NUMBERS, 0.4)

    def bound(self):
        return self.pick(BOUNDS, BAD_BOUNDS)

    def lex_bound(self):
        return self.pick(LEX_BOUNDS, BAD_LEX)

    def score_bounds(self):
        return [self.bound(), self.bound()] if self.rng.random() < 0.7 else \
            self.rng.choice([["-inf", "+inf"], ["+inf", "-inf"], ["0", "5"]])

    def lex_bounds(self):
        return [self.lex_bound(), self.lex_bound()] if self.rng.random() < 0.7 else \
            self.rng.choice([["-", "+"], ["+", "-"], ["[a", "[c"], ["[m1", "[m9"]])

    def options(self, words):
        return self.rng.sample(words, min(len(words), self.rng.choice([0, 0, 1, 1, 2])))

    def limit(self):
        if self.rng.random() < 0.6:
            return []
        return ["LIMIT", self.count(), self.count()] if self.rng.random() < 0.95 else \
            self.rng.choice([["LIMIT"], ["LIMIT", 1]])

    def timeout(self):
        return self.pick([0, 0, "0.0", 1, "0.5", 3, 100, "1e1", "0.0001"],
                         [-1, "x", "", "nan", "-0.5", "1 "], 0.1)

    def keys(self, key=None):
        return [(key or self.key)() for _ in range(self.rng.choice([1, 1, 2, 2, 3, 4]))]

    def zadd(self):
        words = self.options(["NX", "XX", "GT", "LT", "CH", "ch", "INCR"])
        pairs = self.pairs()
        if "INCR" in words and self.rng.random() < 0.9:
            pairs = pairs[:2]
        if self.rng.random() < 0.01:
            pairs.append("odd")
        return ["ZADD", self.home(), *words, *pairs]

    def lex_add(self):
        if self.rng.random() < 0.1:
            return ["ZADD", "lbig", *[x for _ in range(self.rng.randrange(1, 40))
                                      for x in (0, self.member())]]
        words = self.rng.choice([[], [], ["NX"], ["XX"], ["CH"]])
        return ["ZADD", self.rng.choice(LEX), *words,
                *[x for _ in range(self.rng.randrange(1, 5)) for x in ("0", self.member())]]

    def zrange(self):
        kind = self.rng.randrange(3)
        argv = ["ZRANGE", self.lex() if kind == 2 else self.key()]
        argv += [[self.index(), self.index()], self.score_bounds(), self.lex_bounds()][kind] \
            if kind < 2 or self.rng.random() < 0.9 else self.lex_bounds()
        tail = [[[], ["BYSCORE"], ["BYLEX"]][kind], self.limit() if kind or
                self.rng.random() < 0.05 else [], ["REV"] if self.rng.random() < 0.4 else [],
                ["WITHSCORES"] if self.rng.random() < (0.5 if kind < 2 else 0.03) else []]
        self.rng.shuffle(tail)
        if self.rng.random() < 0.01:
            tail.append([self.rng.choice(["x", "BYSCORE", "BYLEX", "REV"])])
        return argv + [word for words in tail for word in words]

    def rangestore(self):
        argv = self.zrange()
        if argv[1] in LEX:
            target = self.rng.choice(LEX)
        else:
            target = self.home()
        if self.rng.random() < 0.97:
            argv = [word for word in argv if word != "WITHSCORES"]
        return ["ZRANGESTORE", target, *argv[1:]]

    def algebra(self, name, keys, how):
        n = len(keys) if self.rng.random() < 0.96 else self.rng.choice([0, -1, 5, "x", HUGE[0]])
        argv = [name, n, *keys]
        if self.rng.random() < (0.4 if how != "DIFF" else 0.02):
            weights = [self.pick([1, 2, -1, 0, "0.5", "inf", "-inf", "1e300"], ["x", "nan", ""])
                       for _ in keys]
            argv += ["WEIGHTS", *weights[:len(weights) - (self.rng.random() < 0.03)]]
        if self.rng.random() < (0.4 if how != "DIFF" else 0.02):
            argv += ["AGGREGATE", self.pick(["SUM", "min", "MAX"], ["x", "AVG"])]
        return argv

    def query(self):
        how = self.rng.choice(["UNION", "INTER", "DIFF"])
        keys = self.keys(self.source)
        argv = self.algebra("Z" + how, keys, how)
        return argv + (["WITHSCORES"] if self.rng.random() < 0.6 else [])

    def source(self):
        return self.pick([*SCORED, *LEX, TINY, *SETS], OTHERS)

    def store(self):
        how = self.rng.choice(["UNION", "INTER", "DIFF"])
        if self.rng.random() < 0.15:
            argv = self.algebra(f"Z{how}STORE", self.keys(lambda: self.rng.choice(LEX)), how)
            return [argv[0], self.rng.choice(LEX), *argv[1:]]
        argv = self.algebra(f"Z{how}STORE", self.keys(self.source), how)
        tail = ["WITHSCORES"] if self.rng.random() < 0.01 else []
        return [argv[0], self.home(), *argv[1:], *tail]

    def intercard(self):
        argv = self.algebra("ZINTERCARD", self.keys(self.source), "DIFF")
        return argv + (["LIMIT", self.count()] if self.rng.random() < 0.5 else [])

    def mpop(self):
        keys = self.keys()
        n = len(keys) if self.rng.random() < 0.95 else self.rng.choice([0, -1, 5, "x", 1000])
        argv = [n, *keys, self.pick(["MIN", "MAX", "min", "Max"], ["x", "COUNT"])]
        if self.rng.random() < 0.6:
            argv += [self.rng.choice(["COUNT", "count"]), self.count()]
        if self.rng.random() < 0.03:
            argv += self.rng.choice([["COUNT"], ["COUNT", 1], ["x"]])
        return argv

    def randmember(self):
        argv = ["ZRANDMEMBER", self.key()]
        p = self.rng.random()
        if p < 0.75:
            argv.append(self.pick([0, 1, 2, 3, 5, -1, -3, -20, 10, 300, HUGE[0]],
                                  [HUGE[1], "x", ""]))
            if p < 0.35:
                argv.append(self.pick(["WITHSCORES", "withscores"], ["x"]))
        return argv

    def zscan(self):
        argv = ["ZSCAN", self.any(), self.pick([0], ["x", "-1", "", "99999999999999999999"])]
        tail = [["COUNT", self.pick([100000], [0, -1, "x", ""])]]
        if self.rng.random() < 0.5:
            tail.append(["MATCH", self.rng.choice(["*", "m*", "?", "[a-c]", "", "x*", "*1*"])])
        self.rng.shuffle(tail)
        return argv + [word for words in tail for word in words]


def plain(m):
    """A command that does not wait."""
    rng = m.rng
    return rng.choice([
        m.zadd, m.zadd, m.zadd, m.zadd, m.lex_add, m.lex_add,
        lambda: ["ZADD", TINY, m.score(), rng.choice(TINY_MEMBERS)],
        lambda: ["ZINCRBY", m.home(), m.score(), m.member()],
        lambda: ["ZINCRBY", m.home(), rng.choice(["inf", "-inf", 1, "0.1"]), rng.choice(FEW)],
        lambda: ["ZREM", m.any(), *[m.member() for _ in range(rng.randrange(1, 4))]],
        lambda: ["ZREMRANGEBYRANK", m.any(), m.index(), m.index()],
        lambda: ["ZREMRANGEBYRANK", m.any(), rng.randrange(-3, 3), rng.randrange(-3, 3)],
        lambda: ["ZREMRANGEBYSCORE", m.any(), *m.score_bounds()],
        lambda: ["ZREMRANGEBYLEX", m.lex(), *m.lex_bounds()],
        lambda: ["ZCARD", m.any()],
        lambda: ["ZSCORE", m.any(), m.member()],
        lambda: ["ZMSCORE", m.any(), *[m.member() for _ in range(rng.randrange(1, 5))]],
        lambda: ["ZRANK", m.any(), m.member()],
        lambda: ["ZREVRANK", m.any(), m.member()],
        lambda: ["ZCOUNT", m.any(), *m.score_bounds()],
        lambda: ["ZLEXCOUNT", m.lex(), *m.lex_bounds()],
        m.zrange, m.zrange, m.zrange, m.rangestore, m.rangestore,
        lambda: ["ZREVRANGE", m.any(), m.index(), m.index(), *m.options(["WITHSCORES"])],
        lambda: ["ZRANGEBYSCORE", m.any(), *m.score_bounds(), *m.limit(),
                 *m.options(["WITHSCORES", "withscores"])],
        lambda: ["ZREVRANGEBYSCORE", m.any(), *m.score_bounds(), *m.options(["WITHSCORES"]),
                 *m.limit()],
        lambda: ["ZRANGEBYLEX", m.lex(), *m.lex_bounds(), *m.limit()],
        lambda: ["ZREVRANGEBYLEX", m.lex(), *m.lex_bounds(), *m.limit()],
        lambda: ["ZPOPMIN", m.any()],
        lambda: ["ZPOPMAX", m.any()],
        lambda: ["ZPOPMIN", m.key(), m.count()],
        lambda: ["ZPOPMAX", m.key(), m.count()],
        lambda: ["ZMPOP", *m.mpop()],
        m.query, m.query, m.store, m.store, m.intercard,
        m.randmember, m.zscan,
    ])()


def waiting(m):
    return m.rng.choice([
        lambda: ["BZPOPMIN", *m.keys(), m.timeout()],
        lambda: ["BZPOPMAX", *m.keys(), m.timeout()],
        lambda: ["BZMPOP", m.timeout(), *m.mpop()],
    ])()


def other(m):
    """Other types, and what makes, moves and ends keys."""
    rng = m.rng
    return rng.choice([
        lambda: ["DEL", m.any()],
        lambda: ["DEL", m.any(), m.any()],
        lambda: ["UNLINK", m.any()],
        lambda: ["SET", rng.choice(["str", "wrong", *SCORED]), "x"],
        lambda: ["SADD", rng.choice(SETS), *[m.member() for _ in range(rng.randrange(1, 9))]],
        lambda: ["SADD", rng.choice(SETS),
                 *[rng.randrange(20) for _ in range(rng.randrange(1, 9))]],
        lambda: ["HSET", "hash", "f", "v"],
        lambda: ["RPUSH", "list", "a"],
        lambda: ["PEXPIRE", m.any(), rng.choice([1, 1000, 5000, 100000])],
        lambda: ["PERSIST", m.any()],
        lambda: ["RENAME", rng.choice(SCORED), rng.choice(SCORED)],
        lambda: ["COPY", rng.choice(SCORED), rng.choice(SCORED), "REPLACE"],
        lambda: ["COPY", rng.choice(LEX), rng.choice(SCORED + LEX)],
        lambda: ["SELECT", rng.choice([0, 0, 0, 1])],
        lambda: ["OBJECT", "ENCODING", m.any()],
        lambda: ["TYPE", m.any()],
        lambda: ["SORT", rng.choice(SCORED), "BY", "nosort", "LIMIT", m.count(), m.count()],
    ])()


def wrong_arity(m):
    argv = plain(m) if m.rng.random() < 0.8 else waiting(m)
    while argv[0] in ("ZADD", "ZRANGESTORE", "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE",
                      "ZREMRANGEBYLEX", "ZRANGE"):
        argv = plain(m)
    return argv[:-1] if m.rng.random() < 0.6 else argv + ["extra"]


def one(m):
    p = m.rng.random()
    if p < 0.87:
        return plain(m)
    if p < 0.92:
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
    if rng.random() < 0.4:
        yield from transaction(m)
    for _ in range(rng.randrange(1, 4)):
        yield rng.choice([m.zadd, m.zadd, m.store, lambda: one(m)])()
    yield rng.choice([["@time", 600_000], ["@unblock", rng.randrange(1, 5)],
                      ["@unblock", rng.randrange(1, 5), "ERROR"], ["@close", rng.randrange(1, 5)]])


def commands(rng):
    m = Maker(rng)
    while True:
        p = rng.random()
        if p < 0.02:
            yield from crowd(m)
        elif p < 0.03:
            yield ["@session", rng.randrange(4)]
            yield from transaction(m)
        elif p < 0.05:
            yield ["ZADD", rng.choice(["big", "big", "z3"]),
                   *[x for _ in range(rng.randrange(1, 70))
                     for x in (rng.randrange(50), f"m{rng.randrange(300)}")]]
        else:
            yield one(m)
