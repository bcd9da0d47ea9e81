"""Random data and random writes, from a seed, of what a server has.

    data.fill(server, seed)             every type in every encoding, streams, functions, databases
    data.fill(server, seed, old=True)   only what every server since 7.0 has
    traffic = data.Traffic(server, seed)
    server.pipeline(traffic.take(500))  valid write commands; traffic.used are their names

Expiries are far away, so that no key goes while two accounts are made.
"""

import collections
import random
import struct

import traffic

FAR_MS = 4102444800000
DATABASES = (0, 1, 7)

FIELD_TTL = "hexpire"
VECTORS = "vadd"
IDEMPOTENT = "xcfgset"

LIBRARY = """#!lua name=%s
local function get(keys, args) return redis.call('GET', keys[1]) end
local function put(keys, args) return redis.call('SET', keys[1], args[1]) end
redis.register_function{function_name='%s_get', callback=get, flags={'no-writes'}}
redis.register_function('%s_put', put)
"""

ZONE = """$TTL 600
@ SOA ns admin 1 3600 600 86400 600
@ NS ns
ns A 192.0.2.1
www%d A 192.0.2.%d
"""


class Source:
    """Random parts of commands."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def __getattr__(self, name):
        return getattr(self.random, name)

    def bytes(self, longest=40):
        n = self.randrange(1, longest)
        return self.choice((
            lambda: b"%d" % self.randrange(-10**9, 10**9), lambda: b"word-%d" % self.randrange(999),
            lambda: self.randbytes(n), lambda: b"a" * n, lambda: b"\xc3\xa9" * n))()

    def number(self):
        return self.choice((0, -1, 7, 127, 128, -4096, 4095, 32767, -32769, 2**23, 2**31,
                            -2**31 - 1, 2**63 - 1, -2**63, self.randrange(10**6)))

    def score(self):
        return self.choice((0, "-0", 1, -1, "inf", "-inf", 0.1, 1e300, -2.5e-300, 3.5, 2**53,
                            self.random.random(), self.randrange(10**6)))

    def many(self, make, n):
        made = {}
        while len(made) < n:
            made.setdefault(make(), None)
        return list(made)


def _strings(s):
    values = [b"", b"0", b"-1", b"127", b"32768", b"2147483648", b"9223372036854775807",
              b"9223372036854775808", b"-0", b"01", b"3.25", b"x" * 44, b"x" * 45, b"a" * 5000,
              bytes(range(256)), s.randbytes(20000), b"\r\n", b"\xff\xfe"]
    for i, value in enumerate(values + [s.bytes(200) for _ in range(40)]):
        yield ("SET", b"string:%d" % i, value)
    yield ("SET", b"string:" + b"n" * 600, "a long name")
    yield ("SET", b"string:\x00\xff\r\n", "an odd name")
    yield ("PFADD", "hll:sparse", *range(50))
    yield ("PFADD", "hll:dense", *range(5000))
    yield ("SETBIT", "bits", 9999, 1)


def _lists(s):
    for i in range(12):
        n = s.choice((1, 2, 8, 120, 700))
        yield ("RPUSH", f"list:{i}", *[s.choice((s.bytes(), s.number())) for _ in range(n)])
    yield ("RPUSH", "list:plain", "a", b"b" * 20000, "c", s.randbytes(9000))
    yield ("RPUSH", "list:nodes", *[b"%d" % i * 100 for i in range(300)])


def _sets(s):
    for width in (100, 30000, 10**9, 10**18):
        yield ("SADD", f"set:int:{width}", *s.many(lambda w=width: s.randrange(-w, w), 60))
    for i in range(8):
        n = s.choice((1, 5, 100, 400))
        yield ("SADD", f"set:{i}", *s.many(lambda: s.bytes(30), n))
    yield ("SADD", "set:long", b"m" * 100, "1")
    yield ("SADD", "set:many:int", *range(0, 3000, 3))


def _zsets(s):
    for i in range(8):
        n = s.choice((1, 5, 100, 300))
        members = s.many(lambda: s.bytes(30), n)
        yield ("ZADD", f"zset:{i}", *[w for m in members for w in (s.score(), m)])
    yield ("ZADD", "zset:long", 1, b"m" * 100, 2, "b")
    yield ("GEOADD", "geo", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")


def _hashes(s):
    for i in range(10):
        n = s.choice((1, 5, 100, 700))
        fields = s.many(lambda: s.bytes(30), n)
        yield ("HSET", f"hash:{i}", *[w for f in fields for w in (f, s.bytes(50))])
    yield ("HSET", "hash:long", "f", b"v" * 100, "n", 5)


def _expiries(s):
    for i in range(20):
        yield ("SET", f"expires:{i}", s.bytes(), "PXAT", FAR_MS + s.randrange(10**9))
    for name in ("list:0", "set:0", "zset:0", "hash:0", "stream:0"):
        yield ("PEXPIREAT", name, FAR_MS + s.randrange(10**9))


def _streams(s):
    for i in range(8):
        key, ms = f"stream:{i}", 1700000000000
        for j in range(s.choice((1, 5, 150, 400))):
            ms += s.randrange(3000)
            fields = ("name", s.bytes(), "n", j) if s.randrange(3) else (s.bytes(9), s.bytes(90))
            yield ("XADD", key, f"{ms}-{j}", *fields)
        yield ("XGROUP", "CREATE", key, "all", "0")
        yield ("XGROUP", "CREATE", key, b"end\xff", "$")
        yield ("XGROUP", "CREATECONSUMER", key, "all", "idle")
        for name in ("ann", "bob"):
            yield ("XREADGROUP", "GROUP", "all", name, "COUNT", 20, "STREAMS", key, ">")
        yield ("XREADGROUP", "GROUP", "all", "ann", "COUNT", 5, "STREAMS", key, "0")
    yield ("XTRIM", "stream:1", "MAXLEN", 3)
    yield ("XADD", "stream:empty", "MAXLEN", 0, "5-5", "a", "b")
    yield ("XADD", "stream:big", "18446744073709551615-18446744073709551614", "a", b"v" * 6000)
    yield ("XSETID", "stream:2", "1800000000000-0", "ENTRIESADDED", 5000, "MAXDELETEDID", "3-3")


def _field_ttls(s):
    for i, n in enumerate((1, 2, 10, 100, 700)):
        key = f"fields:{i}"
        fields = [b"f%d" % j for j in range(n)]
        yield ("HSET", key, *[w for f in fields for w in (f, s.bytes(30))])
        some = [f for f in fields if i % 2 == 0 or s.randrange(2)] or fields[:1]
        for f in some:
            yield ("HPEXPIREAT", key, FAR_MS + s.randrange(10**9), "FIELDS", 1, f)
    yield ("HSET", "fields:long", "f", b"v" * 300, "g", "1")
    yield ("HPEXPIREAT", "fields:long", FAR_MS, "FIELDS", 1, "f")
    yield ("HSET", "fields:gone", "f", "1")
    yield ("HPEXPIREAT", "fields:gone", FAR_MS, "FIELDS", 1, "f")
    yield ("HPERSIST", "fields:gone", "FIELDS", 1, "f")


def vector(s, n):
    return struct.pack(f"<{n}f", *[s.uniform(-4, 4) for _ in range(n)])


def _vectors(s):
    for i, (n, dims, kind) in enumerate(((1, 3, "Q8"), (40, 8, "Q8"), (40, 8, "NOQUANT"),
                                         (30, 16, "BIN"), (150, 20, "Q8"))):
        for j in range(n):
            more = ("SETATTR", '{"n":%d}' % j) if s.randrange(3) == 0 else ()
            yield ("VADD", f"vectors:{i}", "FP32", vector(s, dims), f"e{j}", kind, *more)
    for j in range(20):
        yield ("VADD", "vectors:reduced", "REDUCE", 4, "FP32", vector(s, 12), f"e{j}", "NOQUANT")


def _idempotent(s):
    yield ("XADD", "stream:idmp", "1-1", "a", "b")
    yield ("XCFGSET", "stream:idmp", "IDMP-DURATION", 80000, "IDMP-MAXSIZE", 50)
    for i in range(30):
        yield ("XADD", "stream:idmp", "IDMP", f"p{i % 3}", f"i{i // 2}", "*", "n", i)
    for i in range(10):
        yield ("XADD", "stream:idmp", "IDMPAUTO", "auto", "*", "n", i % 5)


def _module(s):
    for i in range(3):
        zone = f"example{i}.org"
        yield zone, ZONE % (i, s.randrange(1, 250))


def features(server):
    """What the server has beyond 7.0."""
    named = {"field expiry": FIELD_TTL, "vector sets": VECTORS, "idempotent streams": IDEMPOTENT}
    return sorted(name for name, command in named.items() if server.has(command))


def _all(server, s, old):
    yield from (*_strings(s), *_lists(s), *_sets(s), *_zsets(s), *_hashes(s), *_streams(s),
                *_expiries(s))
    if not old and server.has(FIELD_TTL):
        yield from _field_ttls(s)
    if not old and server.has(VECTORS):
        yield from _vectors(s)
    if not old and server.has(IDEMPOTENT):
        yield from _idempotent(s)


def fill_small(server, seed, most=1200):
    """As fill(), in one database, with the commands alone that are short."""
    s = Source(seed)
    server.command("FUNCTION", "LOAD", LIBRARY % ("lib_a", "lib_a", "lib_a"))
    seen = collections.Counter()
    for command in _all(server, s, False):
        seen[command[:2]] += 1
        if len(str(command)) < most and seen[command[:2]] <= 12:
            server.pipeline([command])


def fill_vectors(server, seed):
    """Small vector sets, of which elements were changed and removed."""
    s = Source(seed)
    for kind, dims, more in (("Q8", 5, ()), ("NOQUANT", 2, ("M", 4)), ("BIN", 70, ())):
        for j in range(24):
            attributes = ("SETATTR", '{"n":%d}' % j) if j % 4 == 0 and kind != "BIN" else ()
            server.command("VADD", f"v:{kind}", "FP32", vector(s, dims), f"e{j}", kind, *attributes,
                           *more)
        server.command("VREM", f"v:{kind}", "e3")
        server.command("VADD", f"v:{kind}", "FP32", vector(s, dims), "e5", kind, *more)
    for j in range(8):
        server.command("VADD", "v:reduced", "REDUCE", 3, "FP32", vector(s, 6), f"e{j}")
    server.command("VADD", "v:zero", "VALUES", 2, 0, 0, "z")


def _zones(server, s):
    for zone, text in _module(s):
        txn = server.command("KNOT.ZONE.BEGIN", zone, 1)
        server.command("KNOT.ZONE.STORE", zone, txn, text)
        server.command("KNOT.ZONE.COMMIT", zone, txn)


def fill(server, seed, old=False, databases=DATABASES):
    """Fills an empty server. `old`: only with types that every server has."""
    s = Source(seed)
    for name in ("lib_a", "lib_b"):
        server.command("FUNCTION", "LOAD", LIBRARY % (name, name, name))
    for db in databases:
        _send(server, [("SELECT", db), *_all(server, s, old)])
    server.command("SELECT", 0)
    if not old and server.has("knot.zone.begin"):
        _zones(server, s)


def _send(server, commands):
    for command, reply in zip(commands, server.pipeline(commands)):
        if isinstance(reply, Exception):
            raise AssertionError(f"{str(command)[:200]}: {reply}")


# ---- random writes ----


class Traffic:
    """Random write commands whose arguments are valid. Keys are few, so that commands meet."""

    def __init__(self, server, seed, old=False, keys=20):
        self.s = Source(seed)
        self.n = keys
        self.used = set()
        self.makers = [(name, make) for name, make in traffic.rows(self)
                       if server.has(name.split("|")[0]) and not (old and name in traffic.NEWER)]
        if not old:
            self.makers += list(traffic.extra(self, server))
        self.names = sorted({name for name, _ in self.makers})
        have = {name.split("|")[0] for name in self.names}
        self.unknown = sorted(set(server.writes()) - have - traffic.NOT_RANDOM)

    def key(self, kind):
        return f"{kind}{self.s.randrange(self.n)}"

    def two(self, kind):
        a, b = self.s.sample(range(self.n), 2)
        return f"{kind}{a}", f"{kind}{b}"

    def fields(self, n=3):
        return [b"f%d" % self.s.randrange(8) for _ in range(self.s.randrange(1, n + 1))]

    def far(self):
        return FAR_MS + self.s.randrange(10**9)

    def take(self, n):
        made = []
        while len(made) < n:
            name = self.s.choice(self.names)
            self.used.add(name)
            commands = self.s.choice([make for n, make in self.makers if n == name])()
            made += commands if isinstance(commands, list) else [commands]
        return made
