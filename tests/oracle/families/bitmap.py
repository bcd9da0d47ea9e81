"""Bits of strings: SETBIT to BITFIELD, on few keys, some of them other types, and the commands that
make strings of each encoding."""

UNORDERED = set()
RANDOM = set()
SESSIONS = 2
CONFIGS = [{"proto-max-bulk-len": 1048576}]

STRINGS = ["b1", "b2", "b3", "b4", "n1", ""]
OTHERS = ["list", "missing"]
HUGE = [9223372036854775807, -9223372036854775808, 4294967296, 1 << 62, -(1 << 62), 1 << 63,
        -1, 1 << 35]
NOT_NUMBERS = ["", "x", " 1", "01", "+1", "-0", "1.0", "#", "#x", "##1", "#-1"]
TEXTS = ["", "a", "12345", "-77", "9223372036854775807", "\x00" * 40, "\xff" * 40, "\xff" * 100,
         "\x00" * 100 + "\x01", "\xff" * 100 + "\x7f", "foobar", "\x00\xff\xf0"]


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def key(self):
        return self.rng.choice(STRINGS if self.rng.random() < 0.96 else OTHERS)

    def word(self, word):
        return word.lower() if self.rng.random() < 0.2 else word

    def text(self):
        rng = self.rng
        if rng.random() < 0.5:
            return rng.choice(TEXTS).encode("latin-1")
        fill = rng.choice([b"\x00", b"\xff"])
        text = bytearray(fill * rng.randrange(300))
        for _ in range(rng.randrange(4)):
            if text:
                text[rng.randrange(len(text))] = rng.randrange(256)
        return bytes(text)

    def offset(self):
        rng = self.rng
        p = rng.random()
        if p < 0.7:
            return rng.randrange(0, 200)
        if p < 0.9:
            return rng.randrange(0, 3000)
        if p < 0.905:
            return rng.choice([8388607, 8388608, 8388600])
        return rng.choice(NOT_NUMBERS + HUGE + ["#0", "#1"])

    def number(self):
        rng = self.rng
        p = rng.random()
        if p < 0.5:
            return rng.randrange(-300, 300)
        if p < 0.75:
            return rng.choice([1, -1]) * ((1 << rng.randrange(64)) + rng.randrange(-2, 3))
        return rng.choice(HUGE + NOT_NUMBERS) if p < 0.82 else rng.randrange(-(1 << 40), 1 << 40)

    def index(self):
        rng = self.rng
        p = rng.random()
        if p < 0.5:
            return rng.randrange(-50, 50)
        if p < 0.92:
            return rng.randrange(-2500, 2500)
        return rng.choice(HUGE + NOT_NUMBERS)

    def unit(self):
        rng = self.rng
        return self.word(rng.choice(["BIT", "BIT", "BYTE"])) if rng.random() < 0.97 else "BITS"

    def range(self):
        rng = self.rng
        args = [self.index(), self.index(), self.unit()]
        return args[:rng.choice([0, 1, 2, 2, 3, 3, 3])] + (["x"] if rng.random() < 0.01 else [])

    def type(self):
        rng = self.rng
        if rng.random() < 0.95:
            return rng.choice("iu") + str(rng.randrange(1, 64))
        return rng.choice(["i64", "u64", "i0", "u0", "i65", "I8", "", "i", "u", "x8", "u-1", "i08",
                           "i 8", "i8\x00x", "u8 "])

    def place(self):
        rng = self.rng
        if rng.random() < 0.2:
            return "#" + str(rng.choice([0, 1, 2, 3, 10, 1 << 60, 1 << 61, 1 << 62, "x", -1]))
        return self.offset()

    def operation(self, only_get):
        rng = self.rng
        p = rng.random()
        if p < 0.2 and not only_get:
            return [self.word("OVERFLOW"),
                    self.word(rng.choice(["WRAP", "SAT", "SAT", "FAIL", "FAIL"]))
                    if rng.random() < 0.97 else "NONE"]
        if p < 0.4 or only_get:
            return [self.word("GET"), self.type(), self.place()]
        if p < 0.99:
            return [self.word(rng.choice(["SET", "INCRBY"])), self.type(), self.place(),
                    self.number()]
        return [rng.choice(["FOO", "GET", "SET", "OVERFLOW", ""])]

    def bitfield(self):
        rng = self.rng
        name = "BITFIELD" if rng.random() < 0.85 else "BITFIELD_RO"
        only_get = name == "BITFIELD_RO" and rng.random() < 0.8 or rng.random() < 0.1
        n = rng.choice([0, 1, 1, 1, 2, 3, 4, 8])
        return [name, self.key(), *[x for _ in range(n) for x in self.operation(only_get)]]

    def bitop(self):
        rng = self.rng
        op = self.word(rng.choice(["AND", "OR", "XOR", "NOT"])) if rng.random() < 0.98 else "NAND"
        n = 1 if op.upper() == "NOT" and rng.random() < 0.8 else rng.randrange(1, 6)
        keys = [self.key() if rng.random() < 0.8 else "missing" for _ in range(n)]
        return ["BITOP", op, rng.choice(["b4", "dest", self.key()]), *keys]

    def command(self):
        rng = self.rng
        p = rng.random()
        if p < 0.3:
            return self.bitfield()
        if p < 0.4:
            return self.bitop()
        key = self.key()
        return rng.choice([
            lambda: ["SETBIT", key, self.offset(), rng.choice([0, 1, 1, 0, 1, 1, 2, -1, "", "x"])],
            lambda: ["SETBIT", key, rng.randrange(3000), rng.randrange(2)],
            lambda: ["GETBIT", key, self.offset()],
            lambda: ["BITCOUNT", key, *self.range()],
            lambda: ["BITCOUNT", key, *self.range()],
            lambda: ["BITPOS", key, rng.choice([0, 1, 0, 1, 0, 1, 2, "x"]), *self.range()],
            lambda: ["BITPOS", key, rng.choice([0, 1]), *self.range()],
            lambda: ["BITPOS", key, rng.choice([0, 1])],
            lambda: ["SET", rng.choice(STRINGS), self.text()],
            lambda: ["SET", rng.choice(STRINGS), rng.randrange(-100000, 100000)],
            lambda: ["GET", key],
            lambda: ["SET", key, self.text(), "PX", rng.randrange(1, 30000)],
            lambda: ["OBJECT", "ENCODING", key],
            lambda: ["DEL", key] if rng.random() < 0.5 else ["RPUSH", "list", "1"],
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
        if p > 0.97 and len(argv) > 1 and argv[0] in ("SETBIT", "BITFIELD"):
            yield ["OBJECT", "ENCODING", argv[1]]
            yield ["GET", argv[1]]
