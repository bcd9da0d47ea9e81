"""HyperLogLogs: what they store is asked for after most commands, since it must be the same bytes.

Some keys are filled in small steps, some at once until they are dense; and some hold strings that
only look like one, or were one until a byte was changed.

PFSELFTEST is left out: it takes seconds, and a server's fails now and then, by chance."""

UNORDERED = set()
RANDOM = set()
SESSIONS = 2
CONFIGS = [{"hll-sparse-max-bytes": n} for n in (0, 17, 20, 60, 500, 16000)]

KEYS = ["h1", "h2", "h3", "h4", "h5", "h6"]
OTHERS = ["list", "missing", "int", "bad", ""]
HEADER = b"HYLL\x01\x00\x00\x00" + b"\x00" * 7


def ends_within_run(ops):
    """Of a last run of two bytes there is one: a server then reads what lies after its string."""
    at = 0
    while at < len(ops):
        at += 2 if ops[at] >> 6 == 1 else 1
    return at > len(ops)


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.n = 0
        self.intact = rng.randrange(4000)  # commands before the first that may damage a value

    def byte(self):
        """Not the first of a run of two bytes."""
        byte = self.rng.randrange(256)
        return bytes([byte ^ 0x40 if byte >> 6 == 1 else byte])

    def key(self):
        return self.rng.choice(KEYS if self.rng.random() < 0.93 else OTHERS)

    def keys(self):
        return [self.key() for _ in range(self.rng.randrange(0, 4))]

    def element(self):
        rng = self.rng
        p = rng.random()
        if p < 0.5:
            return rng.randrange(3000)
        if p < 0.6:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
        self.n += 1
        return f"element:{self.n}:{rng.randrange(1 << 30)}"

    def elements(self):
        """At most one when values may be damaged: a server that fails at the second keeps the first
        but does not log it, where redoubt-server keeps none."""
        if self.intact == 0:
            return [self.element()] if self.rng.random() < 0.9 else []
        p = self.rng.random()
        n = self.rng.randrange(0, 4) if p < 0.85 else self.rng.randrange(60)
        if p > 0.98:
            n = self.rng.randrange(1500)
        return [self.element() for _ in range(n)]

    def sparse(self):
        """A sparse one of any runs, whose registers may be too few or too many."""
        rng = self.rng
        out, n = bytearray(), 0
        style = rng.random()
        while n < 16384:
            left = 16384 - n
            p = rng.random()
            if p < style * 0.3:
                length = min(rng.randrange(1, 16385 if rng.random() < 0.3 else 300), left)
                out += bytes([0x40 | (length - 1) >> 8, (length - 1) & 255])
            elif p < 0.5:
                length = min(rng.randrange(1, 65), left)
                out.append(length - 1)
            else:
                length = min(rng.randrange(1, 5), left)
                value = rng.randrange(3) if rng.random() < 0.8 else rng.randrange(32)
                out.append(0x80 | value << 2 | (length - 1))
            n += length
        p = rng.random()
        if p < 0.1:
            out = out[:rng.randrange(len(out) + 1)]
        elif p < 0.2:
            out += bytes(rng.randrange(256) for _ in range(rng.randrange(1, 4)))
        elif p < 0.4:
            for _ in range(rng.randrange(1, 3)):
                out[rng.randrange(len(out))] = rng.randrange(256)
        if ends_within_run(out):
            out.append(rng.randrange(256))
        return HEADER + bytes([rng.choice([0, 0x80])]) + bytes(out)

    def forged(self):
        rng = self.rng
        p = rng.random()
        if p < 0.6:
            return self.sparse()
        if p < 0.7:
            registers = bytes(rng.randrange(256) for _ in range(12288))
            if rng.random() < 0.5:
                registers = bytes(b & rng.randrange(256) for b in registers)
            return b"HYLL\x00\x00\x00\x00" + b"\x00" * 7 + b"\x80" + registers
        return rng.choice([
            b"", b"HYLL", b"HYLL\x01" + b"\x00" * 10, HEADER + b"\x00", HEADER + b"\x80",
            HEADER + b"\x80\x7f\xff", HEADER + b"\x00\x7f\xff",
            b"hyll\x01" + b"\x00" * 12, b"HYLL\x02" + b"\x00" * 12, b"HYLL\x00" + b"\x00" * 12,
            b"HYLL\x00" + b"\x00" * 12298, b"HYLL\x00" + b"\x00" * 12299,
            b"HYLL\x00" + b"\x00" * 12300, b"HYLL\x01" + b"\xff" * 12, b"12345", b"x" * 60])

    def word(self, word):
        return word.lower() if self.rng.random() < 0.2 else word

    def command(self):
        """Commands that may damage a value come after the first `intact` ones."""
        while True:
            argv = self.any_command()
            if self.intact == 0 or argv[0] not in ("SETRANGE", "APPEND"):
                break
        self.intact -= self.intact > 0
        return argv

    def any_command(self):
        rng = self.rng
        p = rng.random()
        key = self.key()
        if p < 0.55:
            return ["PFADD", key, *self.elements()]
        if p < 0.65:
            return ["PFCOUNT", key]
        if p < 0.70:
            return ["PFCOUNT", key, *self.keys()]
        if p < 0.78:
            return ["PFMERGE", key, *self.keys()]
        if p < 0.82 and self.intact == 0:
            return ["SET", rng.choice(KEYS + ["bad"]), self.forged()]
        if p < 0.85:
            what = rng.choice(["GETREG", "DECODE", "DECODE", "ENCODING", "TODENSE", "FOO", ""])
            return ["PFDEBUG", self.word(what), key]
        if p < 0.88:
            return ["DEL", key]
        if p < 0.93:
            return ["SETRANGE", rng.choice(KEYS), rng.randrange(0, 16), bytes([rng.randrange(256)])]
        return rng.choice([
            ["SET", "int", 12], ["RPUSH", "list", "x"], ["OBJECT", "ENCODING", key],
            ["STRLEN", key], ["APPEND", rng.choice(KEYS), self.byte()],
            ["PEXPIRE", key, rng.randrange(1, 20000)], ["COPY", key, rng.choice(KEYS), "REPLACE"],
            ["PFADD", key], ["PFCOUNT"], ["PFMERGE"], ["PFDEBUG", "DECODE"], ["PFADD"]])


def commands(rng):
    maker = Maker(rng)
    while True:
        argv = maker.command()
        yield argv
        p = rng.random()
        if len(argv) > 1 and argv[0] in ("PFADD", "PFMERGE", "PFCOUNT", "PFDEBUG") and p < 0.9:
            key = argv[2] if argv[0] == "PFDEBUG" and len(argv) > 2 else argv[1]
            yield ["GET", key]
            if p < 0.2:
                yield ["OBJECT", "ENCODING", key]
