"""Random commands of each kind, all chance from one generator.

    words = Words(rng, payloads)
    words.data()            a command on keys, as a list of words
    words.of("script")      a list of such commands, of the kind of this client

The commands on keys are those of tests/oracle/families. What is here besides needs a whole server:
scripts that are slow, users, tracking, settings, snapshots.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from engine_world import families  # noqa: E402

FOREVER = ("while true do end", "while true do pcall(function() while true do end end) end",
           "while true do xpcall(function() error('x') end, function() while true do end end) end",
           "while true do redis.call('ping') end", "while true do redis.pcall('get', 'b:1') end",
           "local t = {} while true do t[#t % 50000 + 1] = string.rep('x', 100) end",
           "while true do string.find(string.rep('a', 2000), string.rep('a?', 20) .. 'b') end")
SLOW = ("for i = 1, {n} * 500 do redis.call('incr', 'sk:' .. i % 100) end",
        "for i = 1, {n} * 200 do redis.call('set', 'sk:' .. i, ARGV[1], 'px', 5000) end",
        "for i = 1, {n} * 100000 do end return redis.call('rpush', 'q:1', ARGV[1])",
        "redis.call('set', 'sk:0', 1) local t = {} for i = 1, {n} * 50000 do t[i % 999] = {i} end",
        "for i = 1, {n} * 30 do redis.call('publish', 'c:1', string.rep('x', 200)) end",
        "local x = cjson.encode({ARGV, KEYS}) for i = 1, {n} * 300 do "
        "x = cjson.encode(cjson.decode(x)) end return #x",
        "for i = 1, {n} * 200 do redis.call('xadd', 'xs:1', 'maxlen', 50, '*', 'f', i) end",
        "local s = '' for i = 1, {n} * 200 do s = s .. cmsgpack.pack({i, s:sub(1, 20)}) end "
        "return redis.call('set', 'sk:pack', s)")
QUICK = ("return redis.call('lpush', KEYS[1], ARGV[1])",
         "return redis.call('incr', 'sk:' .. ARGV[1])",
         "return redis.pcall('blpop', KEYS[1], 0)", "return {err = ARGV[1] .. '\\r\\n+x'}",
         "return string.rep(ARGV[1], 20000)", "redis.setresp(3) return redis.call('hgetall', 'h1')",
         "return redis.call('eval', 'return 1', 0)", "return {unpack({}, 1, 7000)}",
         "return redis.error_reply(ARGV[1])", "return struct.pack('>I4s', 7, ARGV[1])",
         "return bit.tohex(tonumber(ARGV[1]) or 0, -8)", "error({err = ARGV[1]})",
         "return cjson.decode(ARGV[1])", "return {cmsgpack.unpack(ARGV[1])}",
         "redis.call('set', KEYS[1], 'x') return redis.call('nothing')",
         "redis.call('flushdb') return 1", "return redis.call('client', 'list')",
         "for i = 1, 50 do redis.call('del', 'b:' .. i) end",
         "return redis.call('spop', 'sm:1', 3)", "return redis.call('time')",
         "redis.call('select', 5) return redis.call('set', KEYS[1], ARGV[1])",
         "redis.call('publish', 'c:2', ARGV[1]) return redis.call('expire', KEYS[1], 2)",
         "#!lua flags=no-writes\nreturn redis.call('get', KEYS[1])",
         "#!lua flags=allow-oom\nreturn redis.call('append', KEYS[1], ARGV[1])",
         "#!lua flags=allow-stale,no-writes\nreturn redis.call('ping')",
         "#!lua\nreturn redis.call('set', KEYS[1], ARGV[1])")
LIBRARY = """#!lua name=lib{n}
local function quick(keys, args) return redis.call('incr', 'fk:' .. #keys) end
local function slow(keys, args)
  for i = 1, 20000 do redis.call('set', 'fk:' .. i % 50, i) end
  return 1
end
local function endless(keys, args) while true do redis.call('get', 'fk:1') end end
redis.register_function('quick{n}', quick)
redis.register_function('slow{n}', slow)
redis.register_function{{function_name = 'endless{n}', callback = endless,
                         flags = {{'no-writes', 'allow-stale'}}}}
"""

CATEGORIES = ("all", "read", "write", "keyspace", "blocking", "pubsub", "scripting", "slow", "fast",
              "dangerous", "connection", "transaction", "string", "list", "hash", "stream", "admin")
RULES = ("on", "off", "nopass", "resetpass", "reset", "allkeys", "resetkeys", "allchannels",
         "resetchannels", "allcommands", "nocommands", "~b:*", "~q:*", "%R~*", "%W~b:*", "&c:*",
         "&k:*", "+get", "-get", "+eval", "+client|id", "-client|kill", "+config|get",
         "clearselectors",
         "(+get ~b:*)", "(+@write ~q:* &c:1)", "sanitize-payload", "skip-sanitize-payload", "(",
         "%X~a", "+nothing", "#00", "-@all", "+@all")

NUMBERS = ("-1", "0", "1", "7", "100", "4294967296", "9223372036854775807", "-9223372036854775808",
           "x", "", "1.5")
SETTINGS = {
    "maxmemory-samples": ("1", "5", "20"), "maxmemory-eviction-tenacity": ("0", "10", "100"),
    "maxmemory-clients": ("0", "0", "2mb", "500kb", "5%"), "active-expire-effort": ("1", "10"),
    "lazyfree-lazy-eviction": ("yes", "no"), "lazyfree-lazy-expire": ("yes", "no"),
    "lazyfree-lazy-server-del": ("yes", "no"), "lazyfree-lazy-user-del": ("yes", "no"),
    "lazyfree-lazy-user-flush": ("yes", "no"), "activerehashing": ("yes", "no"),
    "hz": ("1", "10", "100", "500"), "dynamic-hz": ("yes", "no"),
    "busy-reply-threshold": ("1", "5", "50"),
    "client-output-buffer-limit": ("normal 200kb 0 0", "normal 1mb 200kb 1", "normal 0 0 0",
                                   "pubsub 100kb 0 0", "pubsub 1mb 200kb 1", "replica 1mb 0 0",
                                   "replica 64mb 16mb 5", "replica 0 0 0"),
    "client-query-buffer-limit": ("1mb", "8mb"), "proto-max-bulk-len": ("1mb", "4mb"),
    "notify-keyspace-events": ("", "KEA", "Kx", "Eg$n"), "tracking-table-max-keys": ("0", "10",
                                                                                     "1000"),
    "repl-backlog-size": ("16kb", "200kb", "1mb"), "repl-diskless-sync": ("yes", "no"),
    "repl-diskless-sync-delay": ("0", "1"), "repl-disable-tcp-nodelay": ("yes", "no"),
    "repl-ping-replica-period": ("1", "10"), "repl-backlog-ttl": ("0", "1", "3600"),
    "appendfsync": ("always", "everysec", "no"), "appendonly": ("yes", "yes", "no"),
    "aof-use-rdb-preamble": ("yes", "no"), "aof-timestamp-enabled": ("yes", "no"),
    "no-appendfsync-on-rewrite": ("yes", "no"), "auto-aof-rewrite-min-size": ("1mb", "64mb"),
    "auto-aof-rewrite-percentage": ("0", "50"), "rdbcompression": ("yes", "no"),
    "save": ("", "1 1", "3600 1"), "stop-writes-on-bgsave-error": ("yes", "no"),
    "sanitize-dump-payload": ("yes", "no", "clients"), "slowlog-log-slower-than": ("0", "-1",
                                                                                   "10000"),
    "slowlog-max-len": ("0", "10", "1000"), "latency-monitor-threshold": ("0", "1"),
    "latency-tracking": ("yes", "no"), "acllog-max-len": ("0", "5", "128"),
    "list-max-listpack-size": ("-1", "-2", "3", "0"), "list-compress-depth": ("0", "1", "3"),
    "hash-max-listpack-entries": ("0", "5", "512"), "hash-max-listpack-value": ("8", "64"),
    "set-max-intset-entries": ("0", "10", "512"), "zset-max-listpack-entries": ("0", "5", "128"),
    "zset-max-listpack-value": ("8", "64"), "stream-node-max-entries": ("1", "4", "100"),
    "stream-node-max-bytes": ("100", "4096"),
    "min-replicas-to-write": ("0", "0", "0", "1"), "timeout": ("0", "0", "1"),
    "maxclients": ("10000", "10000", "60"), "lfu-decay-time": ("0", "1"), "lfu-log-factor": ("0",
                                                                                             "10"),
    "loading-process-events-interval-bytes": ("1024", "65536", "2097152"), "tcp-keepalive": ("0",
                                                                                             "1"),
    "acl-pubsub-default": ("allchannels", "resetchannels"), "activedefrag": ("no",),
    "rdb-del-sync-files": ("yes", "no"), "replica-lazy-flush": ("yes", "no"),
    "replica-serve-stale-data": ("yes", "yes", "no"),
    "latency-tracking-info-percentiles": ("50 99", ""),
    "repl-diskless-load": ("disabled", "swapdb", "on-empty-db"),
}
POLICIES = ("noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru",
            "volatile-lfu",
            "volatile-random", "volatile-ttl")


def crc64_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x95AC9329AC4BC9B5 if n & 1 else 0)
        table.append(n)
    return table


CRC64 = crc64_table()


def crc64(data):
    crc = 0
    for byte in data:
        crc = CRC64[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


class Words:
    """payloads: of DUMP, a list that the caller fills. later: whether the servers have commands of
    later versions. of_replica: the server is one."""

    def __init__(self, rng, payloads, later=False, of_replica=False):
        self.rng = rng
        self.payloads = payloads
        self.has_later, self.of_replica = later, of_replica
        self.sources = [module.commands(rng) for module in families().values()]
        self.kinds = {
            "data": self.data_only, "bulk": self.bulk, "script": self.script, "wait": self.wait,
            "transaction": self.transaction, "acl": self.acl, "tracking": self.tracking,
            "pubsub": self.pubsub, "admin": self.admin, "large": self.large, "read": self.read,
            "payload": self.payload, "later": self.later,
        }

    def of(self, kind):
        """A few commands of one kind; now and then of another."""
        p = self.rng.random()
        if p < 0.2:
            kind = "data"
        elif p < 0.24:
            kind = self.rng.choice(list(self.kinds))
        return self.kinds[kind]()

    # ---- keys ----

    def data(self):
        while True:
            words = next(self.rng.choice(self.sources))
            if not words[0].startswith("@") and not self.diverges(words):
                return words

    def diverges(self, words):
        """What may make the replica differ from its master: a script keeps a command from it, it
        runs PFCOUNT, which stores the count, or a sorted set has the score -0. A listpack does not
        keep that sign, so DEBUG RELOAD can change it; in redis-server 7.0.15 as well. Or a range of
        members of a set whose scores differ is changed or stored: what is in it depends on the
        encoding, which a full sync may change; in redis-server 7.0.15 as well."""
        texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        if any(b"set_repl" in text or self.of_replica and b"pfcount" in text.lower()
               for text in texts):
            return True
        lower = [text.lower() for text in texts]
        after = lower[lower.index(b"weights"):] if b"weights" in lower else []
        by_lex = b"zremrangebylex" in lower or (b"zrangestore" in lower and b"bylex" in lower)
        return by_lex or b"-0" in lower or any(text.startswith(b"-") for text in after)

    def data_only(self):
        return [self.data() for _ in range(self.rng.randrange(1, 12))]

    def value(self):
        return "v" * self.rng.choice((1, 10, 43, 45, 100, 700, 3000))

    def key(self):
        return f"b:{self.rng.randrange(4000)}"

    def bulk(self):
        """Enough keys, many of which expire, that some are evicted."""
        rng, out = self.rng, []
        for _ in range(rng.randrange(1, 30)):
            n = rng.randrange(4000)
            out.append(rng.choice((
                ["SET", f"b:{n}", self.value()],
                ["SET", f"b:{n}", self.value(), "PX", rng.randrange(1, 3000)],
                ["SETEX", f"b:{n}", rng.randrange(1, 5), n],
                ["HSET", f"bh:{n % 50}", f"f{n % 300}", self.value()],
                ["RPUSH", f"bl:{n % 30}", self.value(), n], ["LTRIM", f"bl:{n % 30}", -200, -1],
                ["ZADD", f"bz:{n % 30}", n, f"m{n % 500}"], ["SADD", f"bs:{n % 30}", n,
                                                             f"m{n % 99}"],
                ["XADD", f"bx:{n % 10}", "MAXLEN", "~", 300, "*", "f", self.value()],
                ["PFADD", f"bp:{n % 5}", n], ["SETBIT", f"bb:{n % 5}", n, 1],
                ["GEOADD", "bg", n / 30, n / 60, f"p{n}"],
                ["PEXPIRE", rng.choice((f"bh:{n % 50}", f"bl:{n % 30}", f"bx:{n % 10}")),
                 rng.randrange(1, 4000)],
                ["DEL", f"b:{n}", f"bh:{n % 50}"], ["UNLINK", f"bl:{n % 30}", f"bz:{n % 30}"],
                ["GET", f"b:{n}"], ["GETEX", f"b:{n}", "PX", 500], ["PERSIST", f"b:{n}"],
                ["OBJECT", "FREQ", f"b:{n}"], ["TOUCH", f"b:{n}"], ["RANDOMKEY"], ["DBSIZE"])))
        return out

    def later(self):
        """Commands of later versions: fields that expire, vector sets, streams with producers."""
        if not self.has_later:
            return self.bulk()
        return [self.one_later() for _ in range(self.rng.randrange(1, 20))]

    def one_later(self):
        rng = self.rng
        h, s, x, v = (f"{kind}:{rng.randrange(6)}" for kind in ("lh", "ls", "bx", "lv"))
        names = [f"f{rng.randrange(30)}" for _ in range(rng.randrange(1, 4))]
        fields = ["FIELDS", len(names), *names]
        pairs = ["FIELDS", len(names), *[word for name in names for word in (name, self.value())]]
        soon, id_, e = rng.randrange(1, 3000), f"{rng.randrange(1, 99)}-1", f"e{rng.randrange(40)}"
        vector = ["VALUES", 3, rng.random(), 0.5, -rng.random(), e]
        refs = rng.choice((["KEEPREF"], ["DELREF"], ["ACKED"], []))
        return rng.choice((
            ["HSET", h, *pairs[2:]], ["HPEXPIRE", h, soon, *fields], ["HPERSIST", h, *fields],
            ["HEXPIRE", h, rng.choice((1, 100, -1)), rng.choice(("NX", "XX", "GT", "LT")), *fields],
            ["HGETDEL", h, *fields], ["HGETEX", h, "PX", soon, *fields], ["HPTTL", h, *fields],
            ["HSETEX", h, "PX", soon, *pairs], ["HSETEX", h, "FNX", "KEEPTTL", *pairs],
            ["HGETALL", h], ["HRANDFIELD", h, 3, "WITHVALUES"], ["HINCRBY", h, names[0], 1],
            ["HDEL", h, *names], ["RENAME", h, "lh:0"], ["COPY", h, "lh:1", "REPLACE"],
            ["MSETEX", 2, s, self.value(), s + "m", "y", "PX", soon], ["DELEX", s, "IFNE", "x"],
            ["DELIFEQ", s, "y"], ["SET", s, "z", "IFEQ", "y"], ["DIGEST", s],
            ["VADD", v, *vector], ["VADD", v, *vector, rng.choice(("NOQUANT", "Q8", "BIN"))],
            ["VADD", v, "REDUCE", 2, *vector], ["VREM", v, e], ["VSETATTR", v, e, '{"n": 3}'],
            ["VSIM", v, "ELE", e, "COUNT", rng.choice((1, 10, 1000)), "WITHSCORES"],
            ["VSIM", v, *vector[:-1], "FILTER", ".n > 2"], ["VRANDMEMBER", v, -5], ["VINFO", v],
            ["VLINKS", v, e, "WITHSCORES"], ["VEMB", v, e], ["DEL", v],
            ["XADD", x, "IDMP", "p1", f"i{rng.randrange(50)}", "*", "f", "v"],
            ["XADD", x, "IDMPAUTO", "p2", "*", "f", rng.randrange(30)], ["XADD", x, id_, "f", "v"],
            ["XACKDEL", x, "g", *refs, "IDS", 1, id_], ["XDELEX", x, *refs, "IDS", 1, id_],
            ["XTRIM", x, "MAXLEN", 5, *refs], ["XCFGSET", x, "IDMP-DURATION", 1],
            ["XGROUP", "CREATE", x, "g", 0], ["XREADGROUP", "GROUP", "g", "c", "STREAMS", x, ">"]))

    def read(self):
        rng = self.rng
        n = rng.randrange(4000)
        return [rng.choice((
            ["GET", f"b:{n}"], ["HGETALL", f"bh:{n % 50}"], ["LRANGE", f"bl:{n % 30}", 0, -1],
            ["ZRANGE", f"bz:{n % 30}", 0, -1], ["XRANGE", f"bx:{n % 10}", "-", "+"], ["INFO"],
            ["SCAN", 0, "COUNT", 100], ["DEBUG", "DIGEST-VALUE", f"b:{n}"], ["EXISTS", f"b:{n}"],
            ["XREAD", "BLOCK", 100, "STREAMS", f"bx:{n % 10}", "$"], ["SUBSCRIBE", "c:1"],
            ["UNSUBSCRIBE"], ["PING"], ["EVAL", rng.choice(FOREVER[:1] + QUICK), 1, "k", "x"],
            ["CLIENT", "TRACKING", "ON"], ["WAIT", 0, 1], ["SET", f"b:{n}", "x"], self.data()))
            for _ in range(rng.randrange(1, 10))]

    # ---- scripts ----

    def script(self):
        rng = self.rng
        p, n = rng.random(), rng.randrange(3)
        key, arg = rng.choice(("q:1", "q:2", "b:1", "sk:1")), rng.choice(NUMBERS)
        if p < 0.04:
            one = ["EVAL", rng.choice(FOREVER), 0, arg]
        elif p < 0.25:
            one = ["EVAL", rng.choice(SLOW).replace("{n}", str(rng.randrange(1, 9))), 1, key, arg]
        elif p < 0.6:
            one = [rng.choice(("EVAL", "EVAL", "EVAL_RO")), rng.choice(QUICK), 1, key, arg]
        elif p < 0.7:
            one = rng.choice((["SCRIPT", "LOAD", rng.choice(QUICK)], ["SCRIPT", "FLUSH"],
                              ["SCRIPT", "FLUSH", "ASYNC"], ["SCRIPT", "EXISTS", "a" * 40],
                              ["SCRIPT", "KILL"], ["FUNCTION", "KILL"], ["FUNCTION", "STATS"],
                              ["EVAL", f"return {rng.randrange(100000)}", 0]))
        elif p < 0.8:
            one = rng.choice((["FUNCTION", "LOAD", "REPLACE", LIBRARY.format(n=n)],
                              ["FUNCTION", "LOAD", LIBRARY.format(n=n)], ["FUNCTION", "LIST"],
                              ["FUNCTION", "LIST", "WITHCODE"], ["FUNCTION", "DELETE", f"lib{n}"],
                              ["FUNCTION", "FLUSH"], ["FUNCTION", "DUMP"]))
        elif p < 0.83:
            one = ["FCALL_RO", f"endless{n}", 0]
        else:
            one = [rng.choice(("FCALL", "FCALL", "FCALL_RO")),
                   rng.choice((f"quick{n}", f"quick{n}", f"slow{n}")), 1, key, arg]
        return [one, *self.follow(0.3)]

    def follow(self, p):
        """What a client has sent in advance: it runs when the command before it has ended."""
        if self.rng.random() > p:
            return []
        return [self.rng.choice((["ECHO", "x" * 3000], ["PING"], ["LPUSH", "q:1", "f"], self.data(),
                                 ["EVAL", "for i = 1, 300000 do end", 0], ["SET", "sk:f", "x"]))
                for _ in range(self.rng.randrange(1, 6))]

    # ---- waiting ----

    def wait(self):
        rng = self.rng
        queues = [f"q:{rng.randrange(4)}" for _ in range(rng.randrange(1, 4))]
        time = rng.choice(("0.01", "0.1", "1", "2", "0"))
        push = rng.choice((["LPUSH", queues[0], *"abc"[:rng.randrange(1, 4)]],
                           ["RPUSH", queues[0], self.value()], ["ZADD", "zq:1", 1, "a", 2, "b"],
                           ["ZADD", "zq:2", 1, self.value()], ["XADD", "xq:1", "*", "f", "v"],
                           ["XGROUP", "CREATE", "xq:1", "g", "$", "MKSTREAM"], ["DEL", "xq:1"],
                           ["XGROUP", "DESTROY", "xq:1", "g"], ["RENAME", queues[0], queues[-1]],
                           ["DEL", queues[0], "zq:1"], ["SET", "q:3", "no list"],
                           ["LMOVE", queues[0], queues[-1], "LEFT", "RIGHT"],
                           ["EVAL",
                            "redis.call('lpush', KEYS[1], 1) redis.call('lpush', KEYS[2], 2)",
                            2, queues[0], queues[-1]], ["SWAPDB", 0, 5], ["MOVE", queues[0], 5],
                           ["CLIENT", "UNBLOCK", rng.randrange(1000)], ["SORT", "bs:1", "STORE",
                                                                        queues[0]],
                           ["COPY", "bl:1", queues[0], "REPLACE"]))
        if rng.random() < 0.5:
            return [push, *self.follow(0.2)]
        one = rng.choice((["BLPOP", *queues, time], ["BRPOP", *queues, time],
                          ["BLMOVE", queues[0], queues[-1], "LEFT", "RIGHT", time],
                          ["BRPOPLPUSH", queues[0], queues[-1], time],
                          ["BLMPOP", time, len(queues), *queues, "LEFT", "COUNT", 2],
                          ["BZPOPMIN", "zq:1", "zq:2", time], ["BZPOPMAX", "zq:1", time],
                          ["BZMPOP", time, 2, "zq:1", "zq:2", "MIN", "COUNT", 2],
                          ["XREAD", "BLOCK", rng.choice((1, 100, 1000, 0)), "STREAMS", "xq:1", "$"],
                          ["XREADGROUP", "GROUP", "g", "c", "BLOCK", rng.choice((1, 100, 1000, 0)),
                           "STREAMS", "xq:1", ">"], ["WAIT", rng.randrange(3), 100]))
        return [one, *self.follow(0.7)]

    def transaction(self):
        rng = self.rng
        out = [["WATCH", self.key(), "q:1"]] if rng.random() < 0.5 else []
        if rng.random() < 0.3:
            out.append(self.data())
        out.append(["MULTI"])
        for _ in range(rng.randrange(0, 8)):
            out.append(rng.choice((self.data(), self.data(), rng.choice(self.bulk()),
                                   *self.wait()[:1], *self.script()[:1], *self.acl()[:1],
                                   *self.pubsub()[:1], ["CONFIG", "SET", *self.setting()],
                                   ["SELECT", rng.randrange(3)], ["GET", "a", "b"], ["NOTHING"],
                                   ["RESET"] if rng.random() < 0.1 else ["PING"])))
        return out + [rng.choice((["EXEC"], ["EXEC"], ["EXEC"], ["DISCARD"], ["UNWATCH"]))]

    # ---- users, tracking, messages ----

    def user(self):
        return f"u{self.rng.randrange(5)}"

    def rules(self):
        rng = self.rng
        return [rng.choice((rng.choice(RULES), rng.choice(RULES),
                            rng.choice("+-") + "@" + rng.choice(CATEGORIES),
                            f">p{rng.randrange(3)}",
                            f"<p{rng.randrange(3)}")) for _ in range(rng.randrange(1, 6))]

    def acl(self):
        rng = self.rng
        return [rng.choice((
            ["ACL", "SETUSER", self.user(), *self.rules()],
            ["ACL", "SETUSER", self.user(), "on", "nopass", "+@all", "~*", "&*", "-acl",
             *self.rules()],
            ["AUTH", self.user(), f"p{rng.randrange(3)}"], ["AUTH", self.user(), "x"],
            ["AUTH", "default", "x"], ["ACL", "DELUSER", self.user()], ["ACL", "LIST"], ["ACL",
                                                                                         "LOG"],
            ["ACL", "LOG", "RESET"], ["ACL", "WHOAMI"], ["ACL", "GETUSER", self.user()],
            ["ACL", "DRYRUN", self.user(), *self.data()], ["ACL", "SAVE"], ["ACL", "LOAD"],
            ["ACL", "CAT", rng.choice(CATEGORIES)], self.data(), *self.pubsub()[:1],
            *self.wait()[:1], *self.script()[:1])) for _ in range(rng.randrange(1, 6))]

    def tracking(self):
        rng = self.rng
        on = ["CLIENT", "TRACKING", rng.choice(("ON", "ON", "ON", "OFF"))]
        for words in (["BCAST"], ["OPTIN"], ["OPTOUT"], ["NOLOOP"], ["REDIRECT",
                                                                     rng.randrange(500)],
                      ["PREFIX", rng.choice(("b:", "q:", "", "b"))]):
            if rng.random() < 0.25:
                on += words
        return [rng.choice((on, ["CLIENT", "CACHING", rng.choice(("YES", "NO"))], ["GET",
                                                                                   self.key()],
                            ["GET", self.key()], ["MGET", self.key(), self.key(), "q:1"],
                            ["HGETALL", f"bh:{rng.randrange(50)}"], ["SET", self.key(), "t"],
                            ["CLIENT", "TRACKINGINFO"], ["CLIENT", "GETREDIR"], self.data(),
                            ["HELLO", rng.choice((2, 3))], ["SUBSCRIBE", "__redis__:invalidate"]))
                for _ in range(rng.randrange(1, 12))]

    def pubsub(self):
        rng = self.rng
        name, data = f"c:{rng.randrange(4)}", self.value()
        return [rng.choice((
            ["SUBSCRIBE", name, "c:9"], ["PSUBSCRIBE", "c:*", rng.choice(("*", "c:[12]"))],
            ["SSUBSCRIBE", name], ["UNSUBSCRIBE", name], ["UNSUBSCRIBE"], ["PUNSUBSCRIBE"],
            ["SUNSUBSCRIBE"], ["PUBLISH", name, data], ["PUBLISH", name, data], ["SPUBLISH", name,
                                                                                 data],
            ["PUBSUB", "CHANNELS"], ["PUBSUB", "NUMSUB", name], ["PING"], ["RESET"],
            ["PSUBSCRIBE", "__key*__:*"], ["SET", self.key(), "p"]))
            for _ in range(rng.randrange(1, 8))]

    # ---- the server ----

    def number(self):
        """The name of a setting that may get any number. Without a limit for slow scripts, one that
        never ends could not be killed."""
        while True:
            name = self.setting()[0]
            if name != "busy-reply-threshold":
                return name

    def setting(self):
        rng = self.rng
        name = rng.choice(list(SETTINGS))
        return name, rng.choice(SETTINGS[name])

    def memory(self):
        return [["CONFIG", "SET", "maxmemory", self.rng.choice(("0", "8mb", "30mb", "60mb")),
                 "maxmemory-policy", self.rng.choice(POLICIES)]]

    def kill(self):
        rng = self.rng
        return ["CLIENT", "KILL", *rng.choice((
            ["ID", rng.randrange(3000)], ["TYPE", "normal", "SKIPME", "yes", "USER", self.user()],
            ["TYPE", "pubsub"], ["TYPE", "replica"], ["TYPE", "master"], ["USER", self.user()],
            ["USER", self.user(), "SKIPME", "no"], ["TYPE", "nothing"], ["ADDR", "127.0.0.1:1"],
            ["MAXAGE", "1"]))]

    def admin(self):
        rng = self.rng
        p = rng.random()
        if p < 0.35:
            return [["CONFIG", "SET", *self.setting()]]
        if p < 0.45:
            return self.memory()
        if p < 0.5:
            return [self.kill()]
        return [rng.choice((
            ["CONFIG", "SET", *self.setting(), *self.setting()],
            ["CONFIG", "SET", self.number(), rng.choice(NUMBERS)], ["CONFIG", "GET", "*"],
            ["CONFIG", "RESETSTAT"], ["CONFIG", "REWRITE"], ["INFO", "EVERYTHING"], ["CLIENT",
                                                                                     "LIST"],
            ["CLIENT", "PAUSE", rng.randrange(100), rng.choice(("WRITE", "ALL"))], ["CLIENT",
                                                                                    "UNPAUSE"],
            ["CLIENT", "NO-EVICT", rng.choice(("ON", "OFF"))], ["CLIENT", "SETNAME", "x" * 20],
            ["CLIENT", "REPLY", rng.choice(("SKIP", "OFF", "ON"))], ["CLIENT", "ID"],
            ["CLIENT", "UNBLOCK", rng.randrange(3000), rng.choice(("ERROR", "TIMEOUT"))],
            ["CLIENT", "INFO"], ["BGSAVE"], ["BGSAVE", "SCHEDULE"], ["BGREWRITEAOF"], ["LASTSAVE"],
            ["MEMORY", "USAGE", self.key()], ["MEMORY", "STATS"], ["MEMORY", "DOCTOR"],
            ["MEMORY", "PURGE"], ["SLOWLOG", "GET", "-1"], ["SLOWLOG", "RESET"], ["LATENCY",
                                                                                  "HISTOGRAM"],
            ["LATENCY", "LATEST"], ["LATENCY", "RESET"], ["LATENCY", "DOCTOR"], ["COMMAND"],
            ["COMMAND", "DOCS"], ["COMMAND", "GETKEYS", *self.data()], ["ROLE"], ["TIME"],
            ["LOLWUT"],
            ["DEBUG", "SLEEP", "0.02"], ["DEBUG", "JMAP"], ["DEBUG", "STRINGMATCH-LEN", "x", "y"],
            ["DEBUG", "HTSTATS", "0"], ["DEBUG", "OBJECT", self.key()], ["DEBUG", "CHANGE-REPL-ID"],
            ["DEBUG", "CLIENT-EVICTION"], ["DEBUG", "PROTOCOL", "attrib"], ["DEBUG", "LISTPACK",
                                                                            "l1"],
            ["DEBUG", "REPLYBUFFER", "PEAK-RESET-TIME", rng.choice(("0", "1", "RESET"))],
            ["DEBUG", "QUICKLIST-PACKED-THRESHOLD", rng.choice(("100B", "1G"))],
            ["DEBUG", "SET-ACTIVE-EXPIRE", rng.choice("0111")],
            *([["DEBUG", "RELOAD"], ["FLUSHALL", "ASYNC"], ["FLUSHDB"], ["SAVE"], ["MONITOR"],
               ["SWAPDB", 0, 1]] if p > 0.9 else [["PING"]])))]

    def large(self):
        """Replies that are much larger than their commands."""
        rng = self.rng
        n = rng.randrange(4000)
        return [rng.choice((
            ["LRANGE", f"bl:{n % 30}", 0, -1], ["HGETALL", f"bh:{n % 50}"], ["COMMAND"],
            ["ZRANGE", f"bz:{n % 30}", 0, -1, "WITHSCORES"], ["XRANGE", f"bx:{n % 10}", "-", "+"],
            ["KEYS", "*"], ["INFO", "everything"], ["CONFIG", "GET", "*"], ["MONITOR"],
            ["PSUBSCRIBE", "*"], ["CLIENT", "TRACKING", "ON", "BCAST"], ["COMMAND", "DOCS"],
            ["EVAL", "return string.rep('x', 1000000)", 0], ["SLOWLOG", "GET", -1],
            ["MGET", *[self.key() for _ in range(200)]], ["ECHO", "e" * 20000], ["CLIENT", "LIST"],
            *([["SYNC"]] if rng.random() < 0.05 else []), self.data()))
            for _ in range(rng.randrange(1, 10))]

    # ---- payloads ----

    def payload(self):
        """RESTORE of what DUMP gave, some of it changed."""
        rng = self.rng
        if not self.payloads:
            return [self.data()]
        data = bytearray(rng.choice(self.payloads))
        if rng.random() < 0.5:
            for _ in range(rng.randrange(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.05:
            del data[rng.randrange(len(data)):]
        elif rng.random() < 0.95:
            data[-8:] = crc64(data[:-8]).to_bytes(8, "little")
        key = f"r:{rng.randrange(30)}"
        return [["RESTORE", key, rng.choice((0, 0, 1000, 3000)), bytes(data), "REPLACE"],
                rng.choice((["HGETALL", key], ["LRANGE", key, 0, -1], ["ZADD", key, 1, "x"],
                            ["XADD", key, "*", "f", "v"], ["SADD", key, "x"], ["HSET", key, "f",
                                                                               "v"],
                            ["RPOP", key, 3], ["XREADGROUP", "GROUP", "g", "c", "STREAMS", key,
                                               ">"],
                            ["APPEND", key, "x"], ["PFADD", key, "x"], ["OBJECT", "ENCODING", key],
                            ["DEBUG", "DIGEST-VALUE", key], ["COPY", key, "r:c", "REPLACE"],
                            ["ZPOPMIN", key, 2], ["SPOP", key], ["LSET", key, 0, "y"],
                            ["XAUTOCLAIM", key, "g", "d", 0, 0], ["XTRIM", key, "MAXLEN", 1]))]
