"""Strings: all their commands, on few keys, some of them other types."""

UNORDERED = set()
RANDOM = set()
SESSIONS = 2
CONFIGS = [{"proto-max-bulk-len": 1048576}, {"lazyfree-lazy-user-del": "yes"},
           {"lazyfree-lazy-expire": "yes"}]

STRINGS = ["s1", "s2", "s3", "n1", "n2", "", "s\r\n\x00"]
OTHERS = ["list", "set"]
NUMBERS = ["0", "1", "-1", "10", "127", "9999", "10000", "10001", "-32769", "2147483648",
           "9223372036854775807", "-9223372036854775808", "9223372036854775806"]
NOT_NUMBERS = ["", " ", "x", "1.0", " 1", "1 ", "01", "+1", "-0", "--1", "0x10", "1e3",
               "9223372036854775808", "-9223372036854775809", "99999999999999999999999", "1\x00"]
FLOATS = ["0", "-0", "0.1", "-0.1", "1.5", "3.0e3", "-5.0e-3", "1e17", "1e18", "1e19", "1e30",
          "123456789012345678901234567890", "0.00000000000000001", "0.000000000000000001",
          "1e-17", "1e-20", "5e-18", "4.9e-18", "1e300", "-1e300", "1e4000", "-1e4000", "1e4932",
          "1.1e4932", "1e-4000", "1e-4950", "1e-5000", "1e5000", "inf", "-inf", "+inf", "Infinity",
          "nan", "-nan", "nan(1)", "0x1p3", "0x.8", "0xg", ".5", "5.", ".", "e5", "1e", "1e+", "+3",
          "1.", "0.1000", "00001.5", "1_0", "1,5", " 1.5", "1.5 ", "1.5\n", "\t1", "1\x00",
          "3" * 300, "0." + "3" * 300, "1" * 5118, "1" * 5119, "1" * 5120, "1" * 6000, ""]
TEXTS = ["", "a", "b", "abc", "value", "x" * 43, "x" * 44, "x" * 45, "y" * 64, "z" * 1000,
         "\x00", "\xff\xfe", "a\r\nb", "12345678901234567890", "123456789012345678901"]
HUGE = [9223372036854775807, -9223372036854775808, 9223372036854775, 9223372036854776, 4294967296,
        2147483648, -4294967297, 1 << 62]


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def key(self):
        p = self.rng.random()
        if p < 0.95:
            return self.rng.choice(STRINGS)
        return self.rng.choice(OTHERS) if p < 0.99 else "missing"

    def word(self, word):
        return word.lower() if self.rng.random() < 0.2 else word

    def text(self):
        rng = self.rng
        p = rng.random()
        if p < 0.35:
            return rng.choice(TEXTS)
        if p < 0.55:
            return rng.choice(NUMBERS)
        if p < 0.65:
            return rng.choice(NOT_NUMBERS)
        if p < 0.75:
            return rng.choice(FLOATS)
        if p < 0.85:
            return rng.randrange(-20000, 20000)
        return "".join(rng.choice("abAB01") for _ in range(rng.randrange(70)))

    def number(self):
        rng = self.rng
        p = rng.random()
        if p < 0.5:
            return rng.randrange(-100, 100)
        if p < 0.8:
            return rng.choice(NUMBERS)
        return rng.choice(HUGE + NOT_NUMBERS)

    def float(self):
        rng = self.rng
        p = rng.random()
        if p < 0.4:
            return rng.choice(FLOATS)
        if p < 0.6:
            return rng.choice(NUMBERS)
        if p < 0.8:
            return repr(rng.uniform(-1, 1) * 10 ** rng.randrange(-20, 21))
        return f"{rng.uniform(-1000, 1000):.{rng.randrange(20)}f}"

    def time(self, absolute, seconds):
        rng = self.rng
        p = rng.random()
        if p < 0.15:
            return rng.choice([0, -1, "x", "", "1.5", *HUGE, "9223370336854775807",
                               "9223370336854775808", "9223370336854775", "9223370336854776"])
        scale = 1 if seconds else 1000
        start = (1_700_000_000 + rng.randrange(-100, 20000)) * scale if absolute else 0
        return start + rng.randrange(1, 60) * scale + rng.randrange(2)

    def expiry(self):
        option = self.rng.choice(["EX", "PX", "EXAT", "PXAT"])
        return [self.word(option), self.time(option.endswith("AT"), option.startswith("EX"))]

    def index(self):
        rng = self.rng
        p = rng.random()
        if p < 0.9:
            return rng.randrange(-70, 70)
        return rng.choice(HUGE) if p < 0.96 else rng.choice(NOT_NUMBERS)

    def offset(self):
        rng = self.rng
        p = rng.random()
        if p < 0.9:
            return rng.randrange(0, 100)
        if p < 0.91:
            return rng.choice([1048570, 1048575, 1048576])
        return rng.choice([-1, 536870912, 536870911 + 100, *HUGE, *NOT_NUMBERS])

    # ---- commands ----

    def set(self):
        rng = self.rng
        argv = ["SET", self.key(), self.text()]
        for _ in range(rng.choice([0, 0, 0, 1, 1, 1, 2, 2, 3])):
            p = rng.random()
            if p < 0.5:
                argv += self.expiry()
            elif p < 0.97:
                argv.append(self.word(rng.choice(["NX", "XX", "GET", "KEEPTTL", "GET"])))
            else:
                argv.append(rng.choice(["EX", "PERSIST", "", "FOO", "PXAT", "NXX"]))
        return argv

    def getex(self):
        rng = self.rng
        argv = ["GETEX", self.key()]
        for _ in range(rng.choice([0, 1, 1, 1, 1, 2])):
            p = rng.random()
            if p < 0.7:
                argv += self.expiry()
            elif p < 0.93:
                argv.append(self.word("PERSIST"))
            else:
                argv.append(rng.choice(["NX", "XX", "GET", "KEEPTTL", "EX", "", "PERSISTX"]))
        return argv

    def pairs(self):
        n = self.rng.randrange(1, 5)
        argv = [x for _ in range(n) for x in (self.key(), self.text())]
        if self.rng.random() < 0.8:
            argv = [x if x not in OTHERS else "s1" for x in argv]
        return argv[:-1] if self.rng.random() < 0.05 else argv

    def lcs(self):
        rng = self.rng
        argv = ["LCS", self.key(), self.key()]
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            p = rng.random()
            if p < 0.4:
                argv.append(self.word("IDX"))
            elif p < 0.55:
                argv.append(self.word("LEN"))
            elif p < 0.75:
                argv.append(self.word("WITHMATCHLEN"))
            elif p < 0.95:
                argv += [self.word("MINMATCHLEN"), self.number()]
            else:
                argv.append(rng.choice(["MINMATCHLEN", "FOO", ""]))
        return argv

    def command(self):
        rng = self.rng
        key = self.key()
        p = rng.random()
        if p < 0.12:
            return self.set()
        if p < 0.20:
            return ["SET", key, self.text()]
        if p < 0.27:
            return self.getex()
        if p < 0.32:
            return self.lcs()
        if p < 0.35:
            return ["SET", rng.choice(STRINGS), "".join(rng.choice("acgt") for _ in range(150))]
        if p < 0.37:
            return ["OBJECT", "ENCODING", key]
        return rng.choice([
            lambda: ["GET", key],
            lambda: ["GET", key],
            lambda: ["SETNX", key, self.text()],
            lambda: ["SETEX", key, self.time(False, True), self.text()],
            lambda: ["PSETEX", key, self.time(False, False), self.text()],
            lambda: ["MSET", *self.pairs()],
            lambda: ["MSETNX", *self.pairs()],
            lambda: ["MGET", *[self.key() for _ in range(rng.randrange(1, 6))]],
            lambda: ["GETSET", key, self.text()],
            lambda: ["GETDEL", key],
            lambda: ["APPEND", key, self.text()],
            lambda: ["APPEND", key, self.text()],
            lambda: ["STRLEN", key],
            lambda: ["SETRANGE", key, self.offset(), self.text()],
            lambda: ["SETRANGE", key, self.offset(), self.text()],
            lambda: ["GETRANGE", key, self.index(), self.index()],
            lambda: ["GETRANGE", key, self.index(), self.index()],
            lambda: ["SUBSTR", key, self.index(), self.index()],
            lambda: ["INCR", key],
            lambda: ["DECR", key],
            lambda: ["INCRBY", key, self.number()],
            lambda: ["DECRBY", key, self.number()],
            lambda: ["INCRBYFLOAT", key, self.float()],
            lambda: ["INCRBYFLOAT", key, self.float()],
            lambda: ["INCRBYFLOAT", key, self.float()],
            lambda: ["SET", rng.choice(["n1", "n2"]), self.number()],
            lambda: ["SET", rng.choice(["n1", "n2"]), self.float()],
            lambda: ["DEL", key],
            lambda: ["RPUSH", rng.choice(OTHERS), "1"],
            lambda: ["SADD", rng.choice(["set", "s3"]), "1"],
            lambda: ["EXPIRE", key, rng.randrange(1, 30)],
        ])()


def commands(rng):
    maker = Maker(rng)
    while True:
        argv = maker.command()
        p = rng.random()
        if p < 0.01:
            argv = argv[:-1] or argv
        elif p < 0.015:
            argv = argv + ["extra"]
        yield argv
        if p > 0.995:
            yield ["SELECT", rng.randrange(2)]
        elif p > 0.98 and len(argv) > 1:
            yield ["OBJECT", "ENCODING", argv[1]]
