"""The table of random writes: a row for each command, with a maker of valid arguments."""

# Writes that random traffic leaves out: they wait, need another server, or end everything.
NOT_RANDOM = {
    "blpop", "brpop", "brpoplpush", "blmove", "blmpop", "bzpopmin", "bzpopmax", "bzmpop", "migrate",
    "restore", "restore-asking", "flushall", "flushdb", "swapdb", "function", "debug", "pfdebug",
    "pfselftest", "rpoplpush", "substr", "sort", "georadius", "georadiusbymember", "xreadgroup",
    "xgroup", "trimslots", "xidmprecord",
}


def _strings(t):
    s = t.s
    yield "set", lambda: ("SET", t.key("s"), s.bytes())
    yield "set", lambda: ("SET", t.key("s"), s.bytes(), s.choice(("NX", "XX")), "GET")
    yield "set", lambda: ("SET", t.key("s"), s.bytes(), "PXAT", t.far())
    yield "set", lambda: ("SET", t.key("s"), s.number(), "EX", 10**7)
    yield "setnx", lambda: ("SETNX", t.key("s"), s.bytes())
    yield "setex", lambda: ("SETEX", t.key("s"), 10**7, s.bytes())
    yield "psetex", lambda: ("PSETEX", t.key("s"), 10**10, s.bytes())
    yield "getset", lambda: ("GETSET", t.key("s"), s.bytes())
    yield "getdel", lambda: ("GETDEL", t.key("s"))
    yield "getex", lambda: ("GETEX", t.key("s"), "PERSIST")
    yield "getex", lambda: ("GETEX", t.key("s"), "PXAT", t.far())
    yield "append", lambda: ("APPEND", t.key("s"), s.bytes(9))
    yield "setrange", lambda: ("SETRANGE", t.key("s"), s.randrange(60), s.bytes())
    yield "incr", lambda: ("INCR", t.key("n"))
    yield "decr", lambda: ("DECR", t.key("n"))
    yield "incrby", lambda: ("INCRBY", t.key("n"), s.randrange(-99, 99))
    yield "decrby", lambda: ("DECRBY", t.key("n"), s.randrange(-99, 99))
    yield "incrbyfloat", lambda: ("INCRBYFLOAT", t.key("f"), s.choice(("0.5", "-3.25", "1e2")))
    yield "mset", lambda: ("MSET", t.key("s"), s.bytes(), t.key("s"), s.bytes())
    yield "msetnx", lambda: ("MSETNX", t.key("s"), s.bytes(), t.key("s"), s.bytes())
    yield "setbit", lambda: ("SETBIT", t.key("b"), s.randrange(500), s.randrange(2))
    yield "bitop", lambda: ("BITOP", s.choice(("AND", "OR", "XOR")), t.key("b"), *t.two("b"))
    yield "bitfield", lambda: ("BITFIELD", t.key("b"), "OVERFLOW", "SAT", "INCRBY", "i5",
                               s.randrange(200), 3)
    yield "pfadd", lambda: ("PFADD", t.key("p"), *[s.randrange(999) for _ in range(5)])
    yield "pfmerge", lambda: ("PFMERGE", t.key("p"), *t.two("p"))


def _keys(t):
    s = t.s
    kinds = "snbplthzx"
    yield "del", lambda: ("DEL", t.key(s.choice(kinds)))
    yield "unlink", lambda: ("UNLINK", t.key(s.choice(kinds)))
    yield "pexpireat", lambda: ("PEXPIREAT", t.key(s.choice(kinds)), t.far())
    yield "pexpireat", lambda: ("PEXPIREAT", t.key(s.choice(kinds)), 1)
    yield "expireat", lambda: ("EXPIREAT", t.key(s.choice(kinds)), t.far() // 1000, "GT")
    yield "expire", lambda: ("EXPIRE", t.key(s.choice(kinds)), 10**7, "NX")
    yield "pexpire", lambda: ("PEXPIRE", t.key(s.choice(kinds)), 10**10, "LT")
    yield "persist", lambda: ("PERSIST", t.key(s.choice(kinds)))
    for kind in "slthzx":
        yield "rename", lambda k=kind: ("RENAME", *t.two(k))
        yield "renamenx", lambda k=kind: ("RENAMENX", *t.two(k))
        yield "copy", lambda k=kind: ("COPY", *t.two(k), "REPLACE")
    yield "copy", lambda: ("COPY", *t.two("h"), "DB", 1, "REPLACE")
    yield "move", lambda: ("MOVE", t.key("s"), 7)
    yield "sort", lambda: ("SORT", t.key("l"), "ALPHA", "STORE", t.key("l"))


def _lists(t):
    s = t.s

    def some():
        return [s.bytes() for _ in range(s.randrange(1, 4))]
    yield "lpush", lambda: ("LPUSH", t.key("l"), *some())
    yield "rpush", lambda: ("RPUSH", t.key("l"), *some())
    yield "lpushx", lambda: ("LPUSHX", t.key("l"), *some())
    yield "rpushx", lambda: ("RPUSHX", t.key("l"), *some())
    yield "linsert", lambda: ("LINSERT", t.key("l"), "BEFORE", "word-1", s.bytes())
    yield "lset", lambda: ("LSET", t.key("l"), 0, s.bytes())
    yield "lrem", lambda: ("LREM", t.key("l"), 0, "word-2")
    yield "ltrim", lambda: ("LTRIM", t.key("l"), 0, 50)
    yield "lpop", lambda: ("LPOP", t.key("l"))
    yield "rpop", lambda: ("RPOP", t.key("l"), 2)
    yield "rpoplpush", lambda: ("RPOPLPUSH", *t.two("l"))
    yield "lmove", lambda: ("LMOVE", *t.two("l"), "LEFT", "RIGHT")
    yield "lmpop", lambda: ("LMPOP", 2, *t.two("l"), "RIGHT", "COUNT", 2)


def _sets(t):
    s = t.s

    def some():
        return [s.choice((s.bytes(), s.randrange(99))) for _ in range(s.randrange(1, 5))]
    yield "sadd", lambda: ("SADD", t.key("t"), *some())
    yield "srem", lambda: ("SREM", t.key("t"), s.randrange(99), *some())
    yield "spop", lambda: ("SPOP", t.key("t"))
    yield "spop", lambda: ("SPOP", t.key("t"), 3)
    yield "smove", lambda: ("SMOVE", *t.two("t"), s.randrange(99))
    yield "sinterstore", lambda: ("SINTERSTORE", t.key("t"), *t.two("t"))
    yield "sunionstore", lambda: ("SUNIONSTORE", t.key("t"), *t.two("t"))
    yield "sdiffstore", lambda: ("SDIFFSTORE", t.key("t"), *t.two("t"))


def _zsets(t):
    s = t.s

    def member():
        return b"m%d" % s.randrange(40)
    yield "zadd", lambda: ("ZADD", t.key("z"), s.score(), member(), s.score(), member())
    yield "zadd", lambda: ("ZADD", t.key("z"), s.choice(("GT", "LT", "NX")), 5, member())
    yield "zincrby", lambda: ("ZINCRBY", t.key("z"), 1.5, "m0n%d" % s.randrange(9))
    yield "zrem", lambda: ("ZREM", t.key("z"), member())
    yield "zremrangebyrank", lambda: ("ZREMRANGEBYRANK", t.key("z"), 0, 1)
    yield "zremrangebyscore", lambda: ("ZREMRANGEBYSCORE", t.key("z"), 1, 2)
    yield "zremrangebylex", lambda: ("ZREMRANGEBYLEX", t.key("z"), "[m1", "[m2")
    yield "zpopmin", lambda: ("ZPOPMIN", t.key("z"))
    yield "zpopmax", lambda: ("ZPOPMAX", t.key("z"), 2)
    yield "zmpop", lambda: ("ZMPOP", 2, *t.two("z"), "MIN")
    yield "zrangestore", lambda: ("ZRANGESTORE", *t.two("z"), 0, 9)
    yield "zunionstore", lambda: ("ZUNIONSTORE", t.key("z"), 2, *t.two("z"), "AGGREGATE", "MAX")
    yield "zinterstore", lambda: ("ZINTERSTORE", t.key("z"), 2, *t.two("z"), "AGGREGATE", "MIN")
    yield "zdiffstore", lambda: ("ZDIFFSTORE", t.key("z"), 2, *t.two("z"))
    yield "geoadd", lambda: ("GEOADD", t.key("g"), s.uniform(-170, 170), s.uniform(-80, 80),
                             member())
    yield "geosearchstore", lambda: ("GEOSEARCHSTORE", *t.two("g"), "FROMLONLAT", 0, 0, "BYRADIUS",
                                     5000, "km")


def _hashes(t):
    s = t.s

    def pairs():
        return [w for f in dict.fromkeys(t.fields()) for w in (f, s.bytes())]
    yield "hset", lambda: ("HSET", t.key("h"), *pairs())
    yield "hset", lambda: ("HSET", t.key("h"), "long", b"v" * 90)
    yield "hmset", lambda: ("HMSET", t.key("h"), *pairs())
    yield "hsetnx", lambda: ("HSETNX", t.key("h"), t.fields()[0], s.bytes())
    yield "hdel", lambda: ("HDEL", t.key("h"), *t.fields())
    yield "hincrby", lambda: ("HINCRBY", t.key("h"), "count", s.randrange(-9, 9))
    yield "hincrbyfloat", lambda: ("HINCRBYFLOAT", t.key("h"), "float", "0.25")

    def named():
        fields = list(dict.fromkeys(t.fields()))
        return ("FIELDS", len(fields), *fields)
    yield "hexpire", lambda: ("HEXPIRE", t.key("h"), 10**7, *named())
    yield "hpexpire", lambda: ("HPEXPIRE", t.key("h"), 10**10, "NX", *named())
    yield "hexpireat", lambda: ("HEXPIREAT", t.key("h"), t.far() // 1000, *named())
    yield "hpexpireat", lambda: ("HPEXPIREAT", t.key("h"), t.far(), *named())
    yield "hpexpireat", lambda: ("HPEXPIREAT", t.key("h"), 1, *named())
    yield "hpersist", lambda: ("HPERSIST", t.key("h"), *named())
    yield "hgetdel", lambda: ("HGETDEL", t.key("h"), *named())
    yield "hgetex", lambda: ("HGETEX", t.key("h"), "PXAT", t.far(), *named())
    yield "hgetex", lambda: ("HGETEX", t.key("h"), "PERSIST", *named())

    def with_values():
        flat = pairs()
        return ("FIELDS", len(flat) // 2, *flat)
    yield "hsetex", lambda: ("HSETEX", t.key("h"), "PXAT", t.far(), *with_values())
    yield "hsetex", lambda: ("HSETEX", t.key("h"), "FNX", "EX", 10**7, *with_values())
    yield "hsetex", lambda: ("HSETEX", t.key("h"), "KEEPTTL", *with_values())


def _streams(t):
    s = t.s

    def an_id():
        return f"{s.randrange(1, 99)}-{s.randrange(9)}"
    yield "xadd", lambda: ("XADD", t.key("x"), "*", "f", s.bytes())
    yield "xadd", lambda: ("XADD", t.key("x"), "MAXLEN", 30, "*", "f", s.bytes(), "g", s.bytes())
    yield "xdel", lambda: ("XDEL", t.key("x"), an_id())
    yield "xtrim", lambda: ("XTRIM", t.key("x"), "MAXLEN", "~", 20)
    yield "xsetid", lambda: ("XSETID", t.key("x"), "9999999999999-0")
    yield "xgroup|create", lambda: ("XGROUP", "CREATE", t.key("x"), "g", "0", "MKSTREAM")
    yield "xgroup|setid", lambda: ("XGROUP", "SETID", t.key("x"), "g", "0")
    yield "xgroup|createconsumer", lambda: ("XGROUP", "CREATECONSUMER", t.key("x"), "g", "idle")
    yield "xgroup|delconsumer", lambda: ("XGROUP", "DELCONSUMER", t.key("x"), "g", "idle")
    yield "xreadgroup", lambda: ("XREADGROUP", "GROUP", "g", "c%d" % s.randrange(3), "COUNT", 4,
                                 "STREAMS", t.key("x"), ">")
    yield "xack", lambda: ("XACK", t.key("x"), "g", an_id())
    yield "xautoclaim", lambda: ("XAUTOCLAIM", t.key("x"), "g", "c1", 0, "0", "COUNT", 3)
    yield "xclaim", lambda: ("XCLAIM", t.key("x"), "g", "c2", 0, an_id(), "FORCE", "JUSTID")
    yield "xackdel", lambda: ("XACKDEL", t.key("x"), "g", "DELREF", "IDS", 1, an_id())
    yield "xdelex", lambda: ("XDELEX", t.key("x"), "KEEPREF", "IDS", 1, an_id())
    yield "xcfgset", lambda: ("XCFGSET", t.key("x"), "IDMP-DURATION", 80000, "IDMP-MAXSIZE", 90)


def _newer(t):
    s = t.s
    yield "delifeq", lambda: ("DELIFEQ", t.key("s"), "word-5")
    yield "delex", lambda: ("DELEX", t.key("s"), "IFNE", "word-5")
    yield "msetex", lambda: ("MSETEX", 2, t.key("s"), s.bytes(), t.key("s") + "m", s.bytes(),
                             "PXAT", t.far())
    yield from _vectors(t)


# Redis 8.0 to 8.6 do not send a VADD that changes an element to replicas and logs, so that a
# replica of the very version differs from its master. An element is therefore removed right before
# it is added: keys are moved between databases and names, so that nobody knows what is there.
def _vectors(t):
    s = t.s

    def element():
        return b"e%d" % s.randrange(40)

    def add():
        key, name = t.key("v"), element()
        return [("VREM", key, name),
                ("VADD", key, "VALUES", 3, s.random.random(), 0.5, -s.random.random(), name,
                 *s.choice(((), (), ("CAS",), ("SETATTR", '{"n":%d}' % s.randrange(9)),
                            ("EF", s.randrange(10, 300)))))]
    yield "vadd", add
    yield "vrem", lambda: ("VREM", t.key("v"), element())
    yield "vsetattr", lambda: ("VSETATTR", t.key("v"), element(),
                               s.choice(("", '{"a":1}', "no JSON")))


def _scripts(t):
    s = t.s
    yield "eval", lambda: ("EVAL", "redis.call('SET', KEYS[1], ARGV[1]) "
                           "return redis.call('INCR', KEYS[2])", 2, t.key("s"), t.key("i"),
                           s.bytes())


# Rows beside the commands that the server has under the same name: their syntax is newer.
def extra(t, server):
    s = t.s
    newer = server.kind.family == "redis" and server.kind.version >= (8, 4)
    valkey = server.kind.family == "valkey" and server.kind.version >= (8, 1)
    if newer or valkey:
        yield "set", lambda: ("SET", t.key("s"), s.bytes(), "IFEQ", "word-3")
    if server.has("xcfgset"):
        yield "xadd", lambda: ("XADD", t.key("x"), "IDMP", "p1", "i%d" % s.randrange(50), "*", "f",
                               s.bytes())
        yield "xadd", lambda: ("XADD", t.key("x"), "IDMPAUTO", "p2", "*", "f", s.randrange(30))
    if server.has("xackdel"):
        yield "xadd", lambda: ("XADD", t.key("x"), "KEEPREF", "MAXLEN", 25, "*", "f", s.bytes())
    if server.kind.family == "valkey" and server.kind.version >= (9, 0):
        yield "geosearchstore", lambda: ("GEOSEARCHSTORE", *t.two("g"), "BYPOLYGON", 3, -50, -50,
                                         50, -50, 0, 50)


def rows(t):
    for family in (_strings, _keys, _lists, _sets, _zsets, _hashes, _streams, _newer, _scripts):
        yield from family(t)


NEWER = {name for name in (
    "hexpire hpexpire hexpireat hpexpireat hpersist hgetdel hgetex hsetex xackdel xdelex xcfgset "
    "delifeq delex msetex vadd vrem vsetattr").split()}
