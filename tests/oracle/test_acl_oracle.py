"""ACL of redoubt-server beside redis-server 7.0.15, over sockets: random users, random rules, right
and wrong, and random commands of clients of these users, in RESP2 and RESP3, alone and in
transactions. Every reply must be equal, and so must the data, the users and ACL LOG. Runs for
REDOUBT_ORACLE_SECONDS (10)."""

import hashlib
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import side_by_side  # noqa: E402

USERS = ["u0", "u1", "u2", "u3", "default"]
PASSWORDS = [b"p", b"swordfish", b"", b"with\x00nul", b"\xff\xfe", b"p w"]
KEYS = ["a1", "a2", "b1", "b2", "obj:1", "obj:2", ""]
CHANNELS = ["c1", "c2", "news:1", "c*", "*", ""]
PATTERNS = ["*", "a*", "b?", "obj:*", "[ab]1", "a1", "", "a\\*", "x", "**"]
COMMANDS = ["get", "set", "GETEX", "del", "lpush", "config", "config|get", "config|set",
            "acl|whoami", "acl", "client|id", "client", "xgroup|create", "xinfo", "object|encoding",
            "sort", "multi", "exec", "publish", "subscribe", "debug", "select", "auth", "hello",
            "memory|usage", "eval", "ping"]
WRONG_COMMANDS = ["nope", "config|nope", "get|x|y", "config|get|x", "", "|", "config|",
                  "select|", "hexpire"]
CATEGORIES = ["all", "keyspace", "read", "write", "set", "sortedset", "list", "hash", "string",
              "bitmap", "hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow",
              "blocking", "dangerous", "connection", "transaction", "scripting", "READ", "nope",
              ""]
WORDS = ["on", "off", "ON", "nopass", "resetpass", "reset", "allkeys", "resetkeys", "allchannels",
         "resetchannels", "allcommands", "nocommands", "clearselectors", "sanitize-payload",
         "skip-sanitize-payload", "", "nope", "+", "-", "%", "%R", "%RW", "%RX~a", "%RR~a", "(",
         ")", "()", "(nope)", "~a b", "&c d", "#0", "!0", "<nope"]

# Templates: K a key, V a value, C a channel, P a pattern, N a small number.
LINES = """
GET K
SET K V
SET K V GET
GETDEL K
GETEX K
MGET K K
MSET K V K V
DEL K K
EXISTS K
INCR K
APPEND K V
COPY K K
COPY K K REPLACE
RENAME K K
RENAMENX K K
TYPE K
OBJECT ENCODING K
TOUCH K K
EXPIRE K 1000
PERSIST K
LPUSH K V V
RPUSH K V
LRANGE K 0 -1
LLEN K
LMOVE K K LEFT RIGHT
RPOPLPUSH K K
LMPOP 2 K K LEFT
LPOP K
SADD K V V
SMEMBERS K
SMOVE K K V
SINTERSTORE K K K
SUNION K K
SINTERCARD 2 K K
HSET K f V
HGETALL K
ZADD K 1 V
ZRANGE K 0 -1
ZUNIONSTORE K 2 K K
ZUNION 2 K K
ZMPOP 1 K MIN
ZRANGESTORE K K 0 -1
PFADD K V
PFMERGE K K
PFCOUNT K K
BITFIELD K GET u8 0
BITFIELD K SET u8 0 1
BITFIELD_RO K GET u8 0
BITOP AND K K K
SETBIT K 1 1
GETBIT K 1
GEOADD K 1 1 V
GEOSEARCHSTORE K K FROMLONLAT 1 1 BYRADIUS 1 m
GEORADIUS K 1 1 1 m STORE K
XADD K 1-1 f V
XREAD COUNT 1 STREAMS K K 0 0
XLEN K
XADD K nope f V
SORT K
SORT K ALPHA
SORT K BY nosort
SORT K BY w*
SORT K ALPHA GET #
SORT K ALPHA STORE K
SORT_RO K ALPHA BY w*->f
LCS K K
SETRANGE K 0 V
STRLEN K
DUMP K
RESTORE K 0 V
MIGRATE 127.0.0.1 1 K 0 1 KEYS x
KEYS P
SCAN 0
DBSIZE
FLUSHDB
SELECT N
SWAPDB 0 1
PUBLISH C V
SPUBLISH C V
PUBSUB CHANNELS
PUBSUB NUMSUB C
ACL WHOAMI
ACL USERS
ACL CAT nope
CONFIG GET acl-pubsub-default
CONFIG SET maxmemory-samples 5
CLIENT ID nope
CLIENT GETNAME
CLIENT NO-EVICT off
PING
ECHO V
TIME nope
INFO nope
COMMAND GETKEYS GET K
NOPE K
GET
ZUNION x K
EVAL
MULTI
EXEC
DISCARD
WATCH K
UNWATCH
RESET
""".strip().splitlines()

# Their arrays have no order, or their bytes are a server's own choice.
UNORDERED = {"KEYS", "SCAN", "SMEMBERS", "SUNION", "HGETALL", "PUBSUB", "EXEC", "CONFIG", "SORT",
             "SORT_RO"}
OPAQUE = {"DUMP", "EXEC"}


def normal(reply):
    """Without what may differ: the order of commands in rules, which follows a hash table."""
    if isinstance(reply, (tuple, list)):
        return type(reply)(normal(item) for item in reply)
    if isinstance(reply, bytes) and re.search(rb"[+-]@all", reply):
        return re.sub(rb"([+-]@all)((?: [+-][^\s()]+)*)", sorted_rules, reply)
    return reply


def unordered(reply):
    """Arrays within, in one order: that of a hash table differs."""
    kind, content = reply
    if isinstance(content, list):
        return kind, sorted((unordered(i) if isinstance(i, tuple) and len(i) == 2 else i
                             for i in content), key=repr)
    return reply


def sorted_rules(found):
    words = found.group(2).split()
    groups = [w for w in words if w[1:2] == b"@"]
    rest = sorted(w for w in words if w[1:2] != b"@")
    return b" ".join([found.group(1), *groups, *rest])


def without_bytes(reply):
    """Without the payloads of DUMP."""
    kind, content = reply
    if kind == "*" and content is not None:
        return kind, [without_bytes(item) for item in content]
    return reply if kind != "$" or content is None or len(content) < 10 else (kind, b"")


class World(side_by_side.World):
    def __init__(self, case, servers, seed):
        super().__init__(case, servers, seed)
        self.clients = ["c0", "c1", "c2"]
        self.subscribers = ["s0", "s1"]
        for name in ["admin", *self.clients, *self.subscribers]:
            self.open(name)
        self.ask("admin", "ACL", "SETUSER", "root", "on", "nopass", "+@all", "~*", "&*")
        self.ask("admin", "AUTH", "root", "any")

    def normal(self, args, reply):
        reply = normal(reply)
        if args[0] in OPAQUE:
            reply = without_bytes(reply)
        return unordered(reply) if args[0] in UNORDERED else reply

    # ---- what to say ----

    def rule(self, nested=False):
        r = self.random
        kind = r.randrange(11 if nested else 14)
        if kind == 0:
            # Not the first: redis-server describes %RW~* as ~*, also where others follow.
            return r.choice(["~", "%R~", "%W~", "%RW~", "%w~", "%WR~"]) + r.choice(PATTERNS[1:])
        if kind == 1:
            return "~" + r.choice(PATTERNS)
        if kind == 2:
            return "&" + r.choice(CHANNELS + PATTERNS)
        if kind in (3, 4):
            return r.choice("+-") + "@" + r.choice(CATEGORIES)
        if kind in (5, 6):
            return r.choice("+-") + r.choice(COMMANDS)
        if kind == 7:
            return r.choice(["+select|", "+debug|", "+get|", "+Sort|"]) + r.choice(["0", "a1", "x"])
        if kind == 8 and r.random() < 0.3:
            return r.choice("+-") + r.choice(WRONG_COMMANDS)
        if kind == 9 and r.random() < 0.5:
            return r.choice(WORDS)
        if kind == 10 or nested:
            return r.choice(["allkeys", "+@all", "allchannels", "+@read", "+@write", "~*"])
        if kind == 11:
            password = r.choice(PASSWORDS)
            if r.random() < 0.5:
                return r.choice([b">", b">", b"<"]) + password
            return r.choice(["#", "#", "!"]) + hashlib.sha256(password).hexdigest()
        if kind == 12:
            return "(" + " ".join(self.rule(True) for _ in range(r.randrange(5))) + ")"
        return r.choice(["on", "nopass", "on", "+@all", "~*", "&*"])

    def rules(self):
        words = [self.rule() for _ in range(self.random.randrange(7))]
        if self.random.random() < 0.1:  # a selector over several words
            words += "( ~a* +get )".split() if self.random.random() < 0.8 else ["(~a*", "+get"]
        return words

    def line(self):
        r = self.random
        made = []
        for word in r.choice(LINES).split():
            made.append({"K": lambda: r.choice(KEYS), "V": lambda: r.choice(["1", "2", "x"]),
                         "C": lambda: r.choice(CHANNELS), "P": lambda: r.choice(PATTERNS),
                         "N": lambda: str(r.randrange(3))}.get(word, lambda: word)())
        return made

    # ---- steps ----

    def change_user(self):
        user = self.random.choice(USERS[:4] if self.random.random() < 0.95 else USERS)
        self.ask("admin", "ACL", "SETUSER", user, *self.rules())
        if user == "default":  # it must remain useful
            self.ask("admin", "ACL", "SETUSER", user, "on", "nopass", "+@all", "resetkeys", "~*")

    def show_users(self):
        what = self.random.choice(["LIST", "USERS", "GETUSER", "LOG", "CAT"])
        if what == "GETUSER":
            self.ask("admin", "ACL", what, self.random.choice(USERS + ["nope"]))
        elif what == "LOG":
            self.log()
        elif what == "CAT":
            self.ask("admin", "ACL", "CAT", "nope")
        else:
            self.ask("admin", "ACL", what)

    def log(self):
        entries = []
        for side in self.sides:
            kind, found = side.ask("admin", "ACL", "LOG", "50")
            self.case.assertEqual(kind, "*", f"seed {self.seed}: {found} after {self.trail[-5:]}")
            rows = [[value for _, value in entry[1]] for entry in found]
            # neither its age nor the sizes of buffers
            entries.append([row[:10] for row in rows])
        self.case.assertEqual(*entries, f"seed {self.seed}")
        if self.random.random() < 0.2:
            self.ask("admin", "ACL", "LOG", "RESET")

    def dry_run(self):
        self.ask("admin", "ACL", "DRYRUN", self.random.choice(USERS), *self.line())

    def log_in(self):
        name = self.random.choice(self.clients)
        user, password = self.random.choice(USERS), self.random.choice(PASSWORDS)
        how = self.random.randrange(6)
        if how == 0:
            self.tell(name, "HELLO", self.random.choice([2, 3]), "AUTH", user, password)
        elif how == 1:
            self.tell(name, "AUTH", password)
        elif how == 2:
            self.tell(name, "RESET")
        else:
            self.tell(name, "AUTH", user, password)

    def tell(self, name, *args):
        reply = self.ask(name, *args)
        if reply[0] == "closed":
            self.open(name)
        return reply

    def run_line(self):
        self.tell(self.random.choice(self.clients), *self.line())

    def subscribe(self):
        name = self.random.choice(self.subscribers)
        how = self.random.choice(["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"])
        for side in self.sides:
            if side.ask(name, "RESET")[0] == "closed":
                side.open(name)
        self.tell(name, "AUTH", self.random.choice(USERS), self.random.choice(PASSWORDS))
        if self.tell(name, "HELLO", 3)[0] != "%":
            return
        self.tell(name, how, self.random.choice(CHANNELS))

    def still_there(self):
        for name in [*self.clients, *self.subscribers]:
            self.tell(name, "PING")

    def settings(self):
        how = self.random.randrange(4)
        if how == 0:
            self.ask("admin", "CONFIG", "SET", "acl-pubsub-default",
                     self.random.choice(["allchannels", "resetchannels"]))
        elif how == 1:
            self.ask("admin", "CONFIG", "SET", "requirepass", self.random.choice(["p", "p", ""]))
        elif how == 2:
            self.ask("admin", "CONFIG", "SET", "acllog-max-len", self.random.choice([0, 1, 5, 50]))
        else:
            self.ask("admin", "ACL", "DELUSER", self.random.choice(USERS),
                     self.random.choice(USERS))

    def kill(self):
        users = [u for u in USERS if u != "default"]
        self.ask("admin", "CLIENT", "KILL", "USER", self.random.choice(users + ["nope"]))
        self.still_there()

    def data(self):
        self.ask("admin", "DEBUG", "DIGEST")

    def steps(self):
        return [(self.change_user, 14), (self.show_users, 6), (self.dry_run, 12),
                (self.log_in, 10), (self.run_line, 60), (self.subscribe, 3),
                (self.still_there, 3), (self.settings, 2), (self.kill, 1), (self.data, 2)]


class Acl(side_by_side.Random):
    world = World

    def test_random_users_rules_and_commands(self):
        self.compare()


if __name__ == "__main__":
    unittest.main()
