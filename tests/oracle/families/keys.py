"""Keys of any type: names, expiries, databases, copies, payloads, sorting, transactions.

RANDOMKEY is not here: which keys that are due it takes out is by chance."""

UNORDERED = {"KEYS", "SORT_RO"}  # whose elements may weigh the same: see Maker.sort()
# Small numbers may be shared or not; the server's clock of accesses advances only in ticks.
RANDOM = {"SCAN", "OBJECT|FREQ", "OBJECT|IDLETIME", "OBJECT|REFCOUNT"}
SESSIONS = 3
EVENTS = "g$lshzxetn"  # keys that SORT misses come in the order of a table
CONFIGS = [{"lazyfree-lazy-expire": "yes"}, {"maxmemory-policy": "allkeys-lfu"}]

KEYS = ["k1", "k2", "k3", "k4", "k5", "w_1", "w_2", "w_10", "o:a", "o:b", "", "k\r\n\x00", "K1"]
HUGE = [9223372036854775807, -9223372036854775808, 9223372036854775, 9223372036854776,
        1 << 62, -1]
WORDS = ["", "a", "1", "x y", "0", "10", "9", "2.5", "abc", "-3", "1e3", "nan", "inf", "0x10"]


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def key(self):
        return self.rng.choice(KEYS)

    def keys(self, most=4):
        return [self.key() for _ in range(self.rng.randrange(1, most + 1))]

    def db(self):
        rng = self.rng
        if rng.random() < 0.85:
            return rng.randrange(0, 3)
        return rng.choice([15, 16, -1, "x", "", 2147483647, 2147483648, 9223372036854775808, "1.5"])

    def word(self, word):
        return word.lower() if self.rng.random() < 0.2 else word

    # ---- something to work on ----

    def fill(self):
        rng = self.rng
        key, kind = self.key(), rng.randrange(7)
        some = [rng.choice(WORDS) for _ in range(rng.randrange(1, 6))]
        if kind < 2:
            return ["SET", key, rng.choice(WORDS)]
        if kind == 2:
            return ["RPUSH", key, *some]
        if kind == 3:
            return ["SADD", key, *some]
        if kind == 4:
            return ["HSET", key, "f", rng.choice(WORDS), "g", rng.choice(WORDS)]
        if kind == 5:
            return ["ZADD", key, *[x for m in some for x in (rng.randrange(-5, 5), m)]]
        return ["SADD", key, *[rng.randrange(20) for _ in range(5)]]

    # ---- expiry ----

    def time(self, scale):
        rng = self.rng
        p = rng.random()
        if p < 0.75:
            return rng.randrange(-2, 60) * scale
        return rng.choice(HUGE) if p < 0.9 else rng.choice(["", "x", "1.5", " 1", "9" * 25])

    def expire(self):
        rng = self.rng
        name = rng.choice(["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"])
        scale = 1000 if name[0] == "P" else 1
        when = self.time(scale)
        if name.endswith("AT") and rng.random() < 0.8:
            when = (1700000000 + rng.randrange(-100, 100000000)) * scale
        options = [self.word(w) for w in ["NX", "XX", "GT", "LT", "??"] if rng.random() < 0.12]
        return [name, self.key(), when, *options]

    def ttl(self):
        names = ["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "PERSIST"]
        return [self.rng.choice(names), self.key()]

    # ---- names ----

    def move(self):
        rng = self.rng
        p = rng.randrange(4)
        if p == 0:
            return [rng.choice(["RENAME", "RENAMENX"]), self.key(), self.key()]
        if p == 1:
            return ["MOVE", self.key(), self.db()]
        command = ["COPY", self.key(), self.key()]
        if rng.random() < 0.4:
            command += [self.word("DB"), self.db()]
        if rng.random() < 0.4:
            command += [self.word("REPLACE")]
        if rng.random() < 0.03:
            command += ["DB"]
        return command

    def ask(self):
        rng = self.rng
        return rng.choice([
            ["EXISTS", *self.keys()], ["TOUCH", *self.keys()], ["TYPE", self.key()],
            ["KEYS", rng.choice(["*", "k*", "w_?", "[ko]*", "nothing", "", "K1", "k[^12]"])],
            ["DBSIZE"], ["PING"], ["PING", "x"], ["PING", "x", "y"], ["ECHO", "hi"],
            ["OBJECT", rng.choice(["ENCODING", "REFCOUNT"]), self.key()],
            ["OBJECT", rng.choice(["IDLETIME", "FREQ"]), self.key()],
            ["OBJECT", "NOPE", self.key()], ["OBJECT", "ENCODING"], ["OBJECT"],
            ["NOSUCHCOMMAND", "a", "b" * 200], ["GET"], ["TTL", "a", "b"],
        ])

    def scan(self):
        rng = self.rng
        # One name in all of the table: which keys that are due are met, and in which order they go,
        # would be by chance.
        command = ["SCAN", rng.choice([0, 0, 0, "x"]), "MATCH", rng.choice(KEYS[:10] + ["none"])]
        command += ["COUNT", rng.choice([1000, 1000, 1000, 0, -1, "x"])]
        if rng.random() < 0.3:
            command += ["TYPE", rng.choice(["string", "LIST", "zset", "nope"])]
        if rng.random() < 0.05:
            command += ["MATCH"]
        return command

    def remove(self):
        rng = self.rng
        if rng.random() < 0.97:
            return [rng.choice(["DEL", "UNLINK"]), *self.keys(3)]
        return rng.choice([["FLUSHDB"], ["FLUSHALL", "ASYNC"], ["FLUSHDB", "SYNC"],
                           ["FLUSHALL", "x"], ["SWAPDB", self.db(), self.db()], ["FLUSHALL"]])

    # ---- payloads: of values whose bytes are known ----

    PAYLOADS = [
        b"\x00\xc0\x05\x0a\x00", b"\x00\x03abc\x0a\x00",
    ]

    def restore(self):
        rng = self.rng
        body = rng.choice(self.PAYLOADS)
        payload = body + crc64(body).to_bytes(8, "little")
        if rng.random() < 0.1:
            payload = payload[:-1] + bytes([payload[-1] ^ 1])
        if rng.random() < 0.05:
            payload = payload[:rng.randrange(len(payload))]
        ttl = rng.choice([0, 0, 1000, 5000, -1, "x", 9223372036854775807])
        command = ["RESTORE", self.key(), ttl, payload]
        for words in (["REPLACE"], ["ABSTTL"], ["IDLETIME", rng.choice([5, -1, "x"])],
                      ["FREQ", rng.choice([5, 300, "x"])]):
            if rng.random() < 0.25:
                command += words
        return command

    # ---- sorting ----

    def sort(self):
        rng = self.rng
        command = [rng.choice(["SORT", "SORT", "SORT_RO"]), self.key()]
        parts = []
        if rng.random() < 0.4:
            unsorted = ["nosort", "#"] if command[0] == "SORT_RO" else []
            parts.append(["BY", rng.choice(["w_*", "o:*->f", "*", "k*", "w_*->", *unsorted])])
        # Which of those that weigh the same LIMIT leaves is by chance.
        if rng.random() < 0.4 and not parts:
            parts.append(["LIMIT", rng.choice([0, 1, -1, 5, "x", HUGE[0]]),
                          rng.choice([0, 2, -1, 10, "x", HUGE[1]])])
        for _ in range(rng.choice([0, 0, 1, 2])):
            parts.append(["GET", rng.choice(["#", "w_*", "o:*->f", "o:*->g", "nothing", "k*"])])
        if rng.random() < 0.3:
            parts.append([rng.choice(["ASC", "DESC", "desc"])])
        # Texts that are equal, or missing, leave elements in the order of the table they were in.
        ties = command[0] == "SORT" and any(part[0] == "BY" for part in parts)
        if rng.random() < 0.6 and not ties:
            parts.append(["ALPHA"])
        if rng.random() < 0.25:
            parts.append(["STORE", self.key()])
        rng.shuffle(parts)
        return command + [x for part in parts for x in part]

    # ---- transactions ----

    def transaction(self):
        rng = self.rng
        return rng.choice([["MULTI"], ["MULTI"], ["EXEC"], ["EXEC"], ["EXEC"], ["DISCARD"],
                           ["WATCH", *self.keys(2)], ["WATCH", *self.keys(2)], ["UNWATCH"],
                           ["SELECT", self.db()], ["EXEC", "x"], ["MULTI", "x"], ["WATCH"]])


def crc64(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
    return crc


def commands(rng):
    make = Maker(rng)
    kinds = [(make.fill, 25), (make.expire, 14), (make.ttl, 10), (make.move, 14), (make.ask, 10),
             (make.scan, 3), (make.remove, 5), (make.restore, 6), (make.sort, 12),
             (make.transaction, 9)]
    functions = [function for function, weight in kinds for _ in range(weight)]
    by_chance = UNORDERED | RANDOM | {"OBJECT"}
    session, in_multi = 0, set()
    while True:
        if rng.random() < 0.02:
            session = rng.randrange(SESSIONS)
            yield ["@session", session]
        if rng.random() < 0.01:
            yield ["SELECT", rng.randrange(3)]
        command = rng.choice(functions)()
        if command[0] in by_chance and session in in_multi:
            continue  # its reply would be a part of that of EXEC
        if command == ["MULTI"]:
            in_multi.add(session)
        elif command in (["EXEC"], ["DISCARD"]):
            in_multi.discard(session)
        yield command
