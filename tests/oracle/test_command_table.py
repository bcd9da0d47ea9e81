"""The command table of the engine, beside COMMAND of a real server.

The server is Redis 7.0.15, or what was recorded of it. The replies of COMMAND and of its
subcommands are compared with their types, in both protocols. What is worded freely (summaries,
complexities, notes, what is new) is only compared as being there, and what has no order is put into
one.
"""

import hashlib
import json
import os
import random
import shlex
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import engine_resp  # noqa: E402
import redis_server  # noqa: E402
import tape  # noqa: E402

PRINT_COMMANDS = os.environ.get("REDOUBT_PRINT_COMMANDS", "print_commands")

LATER = {"hexpire", "hexpireat", "hexpiretime", "hgetdel", "hgetex", "hpersist", "hpexpire",
         "hpexpireat", "hpexpiretime", "hpttl", "hsetex", "httl"}

CATEGORIES = """
keyspace read write set sortedset list hash string bitmap geo Stream hyperloglog pubsub admin FAST
slow blocking dangerous connection transaction scripting @hash
"""
PATTERNS = ["*", "x*", "XIN*", "xinfo|*", "get[a-e]*", "?et", "*|h?lp", "g\\et", "nope", ""]

# Words that mean something somewhere, numbers of keys among them.
WORDS = ["k", "key2", "", "0", "1", "2", "3", "-1", "2x", " 1", "01", "GET", "get", "SET", "INCRBY",
         "OVERFLOW", "SAT", "u8", "STORE", "store", "STOREDIST", "STREAMS", "BY", "LIMIT", "KEYS",
         "AUTH", "AUTH2", "COPY", "BLOCK", "COUNT", "GROUP", "m"]

LINES = """
set k v|set k v get|SET k v EX 10 GET|set k get|set k v nx|set k v x getx|set k|set|get k|get
get k k|GetEx k persist|append k v|mget a b c|mset a 1 b 2|mset a 1 b|msetnx a 1|lcs a b len
bitfield k|bitfield k get u8 0|bitfield k set u8 0 1|bitfield k get u8 0 incrby u8 0 1
bitfield k overflow sat get u8 0|bitfield k overflow|bitfield k get u8|bitfield k foo
bitfield_ro k get u8 0|bitop and d a b|bitop not d a|bitop and d|eval s 0|eval s 2 a b
eval s 3 a b|eval s x|eval s 2x a b|eval s ' 1' a|eval s 01 a|eval s -1 a|eval_ro s 1 a
evalsha s 1 a b|evalsha_ro s 0|fcall f 1 a|fcall_ro f 2 a b|fcall f 2 a|zunionstore d 2 a b
zunionstore d 0 a|zunionstore d 3 a b|zunionstore d 2x a b|zinterstore d 1 a|zdiffstore d 2 a b
zunion 2 a b|zinter 1 a withscores|zdiff 3 a b|zintercard 2 a b limit 1|sintercard 2 a b
sintercard 0 a|sintercard 99999999999999999999 a|lmpop 1 a left|lmpop 1x a left
blmpop 0 2 a b left|blmpop 0 3 a b left|zmpop 1 a min|bzmpop 0 1 a max|bzpopmin a b 0|blpop a 0
brpoplpush a b 0|blmove a b left right 0|lmove a b left right|smove a b m|rename a b|copy a b
sort k limit 0 store x|sort k|sort k store a store b|sort k by store d|sort k limit store x
sort k get store x
sort k store|sort k limit 1 store store y|sort_ro k store d|sort
migrate h 1 k 0 10|migrate h 1 '' 0 10 keys a b|migrate h 1 x 0 10 keys a b|migrate h 1 '' 0 10
migrate h 1 '' 0 10 auth keys keys a|migrate h 1 '' 0 10 auth2 keys keys keys a
migrate h 1 '' 0 10 copy replace keys a|migrate h 1 k 0 10 auth keys|migrate h 1 k 0 keys a b
migrate h 1 '' 0 10 keys|migrate h 1 '' 0 10 keys a keys b|migrate h 1 x 0 10 keys
xread streams a b 0 0|xread streams a b 0|xread streams a|xread count 1 streams a 0
xread count 1 a b c|xread block 0 streams a
xread streams a b c 0 0|xreadgroup group g c streams a b 0 0
xreadgroup group streams c streams a 0|xreadgroup group g c count 1 noack streams a 0
xreadgroup group g streams a b c|georadius k 1 1 1 m|georadius k 1 1 1 m store d
georadius k 1 1 1 m store
georadius k 1 1 1 m storedist d store|georadius k 1 1 1 m store store d
georadiusbymember k m 1 m store d|georadiusbymember k m 1 store d
georadiusbymember k m 1 m storedist|georadius_ro k 1 1 1 m
geosearchstore d s frommember a byradius 1 m|geosearch s frommember a|zrangestore d s 0 1
pfcount a b|pfmerge d|pfmerge d a|pfadd k a|pfdebug getreg k|sinterstore d a|object encoding k
object help|object nope k|object|memory usage k|memory doctor|xinfo stream k|xgroup create k g 0
xgroup nope k|debug object k|watch a b|publish a b|ssubscribe a b|spublish a b|config get x
config nope x|nope a|ping|command getkeys get a|restore-asking k 0 x|restore k 0 x|del a b c
unlink a|exists a b|touch a|expire k 1|type k|dump k|move k 1|persist k|scan 0|keys *|hset k f v
hdel k f|hscan k 0|sscan k 0|zscan k 0|zadd k 1 a|zadd k 1|xadd k * f v|xack k g 1|xdel k 1
xtrim k maxlen 1|xautoclaim k g c 0 0|xclaim k g c 0 1|xpending k g|xlen k|xrange k - +|hget k f
hgetall k|hincrby k f 1|hmget k a b|hrandfield k 2|hsetnx k f v|lindex k 0|linsert k after a b
llen k|lpos k a|lpush k a b|lrange k 0 1|lrem k 0 a|lset k 0 a|ltrim k 0 1|rpop k|rpoplpush a b
sadd k m|zcount k 0 1|zincrby k 1 m|zrange k 0 1|zrevrange k 0|zscore k m|zmscore k a b
zrandmember k|sdiff a b|sdiffstore d|sunion a|sunionstore d a b|sismember k m|smismember k a b
spop k|srandmember k 2|geoadd k 1 1 m|geodist k a b|geopos k|geohash k a|expiretime k
pexpireat k 1 gt|object freq k|multi x|auth a|select 1|wait 0 1|module load x|script load x
cluster keyslot a|acl whoami|asking x
"""


def lines():
    for text in LINES.replace("\n", "|").split("|"):
        if text:
            yield shlex.split(text)


class Ours:
    def __init__(self, proto):
        self.process = subprocess.Popen([PRINT_COMMANDS, str(proto)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, commands):
        text = "".join("\t".join(c) + "\n" for c in commands)
        out, _ = self.process.communicate(text.encode(), timeout=600)
        assert self.process.returncode == 0, self.process.returncode
        return replies(out, len(commands))


class Theirs:
    def __init__(self, port, proto):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self.ask([["HELLO", str(proto)]])

    def ask(self, commands):
        """In pieces, so that neither side waits for the other to read."""
        return [one for at in range(0, len(commands), 100)
                for one in self._ask(commands[at:at + 100])]

    def _ask(self, commands):
        data = b"".join(engine_resp.encode([w.encode() for w in c]) for c in commands)
        self.socket.sendall(data)
        out = bytearray()
        while True:
            piece = self.socket.recv(1 << 22)
            assert piece, "the server went away"
            out += piece
            if len(piece) > 16384 and not out.endswith(b"\r\n"):
                continue
            try:
                return replies(out, len(commands))
            except engine_resp.Incomplete:
                pass

    def close(self):
        self.socket.close()


def replies(data, n):
    out, pos = [], 0
    for _ in range(n):
        reply, pos = engine_resp.parse(data, pos)
        out.append(reply)
    return out


def of_sentence(words):
    return hashlib.sha256(words.lower().rstrip(b".")).hexdigest()[:16].encode()


def sentences_as_digests(reply):
    """The sentences of the server are not needed: some digest of them is."""
    kind, content = reply
    if isinstance(content, list):
        return kind, [tuple(map(sentences_as_digests, x)) if kind == "%" else
                      sentences_as_digests(x) for x in content]
    if kind in "$+" and content is not None and b" " in content:
        return kind, of_sentence(content)
    return reply


def text(value):
    return value[1].decode()


def pairs(value):
    """A map of either protocol, in its order."""
    kind, items = value
    if kind == "%":
        return [(text(k), v) for k, v in items]
    return [(text(items[i]), items[i + 1]) for i in range(0, len(items), 2)]


def unordered(value):
    """A set of RESP3 has no order."""
    kind, items = value
    return (kind, sorted(items)) if kind == "~" else value


def spec(value):
    """A key spec: the words of its note are free."""
    return [(k, "words" if k == "notes" else unordered(v) if k == "flags" else v)
            for k, v in pairs(value)]


def command(value):
    """A reply of COMMAND about one command, comparable."""
    if value[1] is None or value[0] == "_":
        return value
    kind, items = value
    name, arity, flags, first, last, step, acl, tips, specs, subs = items
    return (kind, name, arity, unordered(flags), first, last, step, unordered(acl),
            unordered(tips), (specs[0], [spec(s) for s in specs[1]]),
            (subs[0], sorted(command(s) for s in subs[1])))


def arguments(value):
    kind, items = value
    return kind, [[(k, arguments(v) if k == "arguments" else unordered(v)) for k, v in pairs(arg)]
                  for arg in items]


def docs(value):
    """The documentation of one command. Words are free; versions and their number are not."""
    out = []
    for key, v in pairs(value):
        if key in ("summary", "complexity", "replaced_by"):
            assert v[0] == "$" and v[1], key
            v = "words"
        elif key == "history":
            v = v[0], sorted((kind, version, words[0]) for kind, (version, words) in v[1])
        elif key == "arguments":
            v = arguments(v)
        elif key == "subcommands":
            v = v[0], sorted((k, docs(one)) for k, one in pairs(v))
        elif key == "doc_flags":
            v = unordered(v)
        out.append((key, v))
    return out


def random_lines(commands):
    """Some command lines for each command, of all lengths around its arity."""
    rng = random.Random(20240607)
    for name, arity in commands:
        words = name.split("|")
        least = max(abs(arity), 2)
        for i in range(60):
            n = max(least - 1 + i % 9 if arity < 0 else least, len(words) + 1)
            yield words + [rng.choice(WORDS) for _ in range(n - len(words))]


# redis-server finds some keys by a word. The word can be the argument of another option, or the
# first of two: its command then uses another key than its rules look at (test_command_keys.c).
SEARCHED = {"sort", "georadius", "georadiusbymember", "xread", "xreadgroup"}
OPTIONS = {"store", "storedist", "streams", "group", "count", "block", "by", "get", "limit"}


def is_clear(argv):
    """A line with at most one such option."""
    words = [word.lower() for word in argv]
    if words[0] not in SEARCHED:
        return True
    if words[0] == "xreadgroup" and words[1:2] == ["group"]:
        return not OPTIONS.intersection(words[2:4]) and len(OPTIONS.intersection(words[4:])) <= 1
    return sum(word in OPTIONS for word in words[2:]) + words[1:].count("streams") <= 1 and \
        words[0] != "xreadgroup"


class CommandTable(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.tape = tape.Tape("oracle-command-table")
        if cls.tape.mode != tape.PLAY:
            cls.server = redis_server.RedisServer().__enter__()
            cls.addClassCleanup(cls.server.close)

    def ask_theirs(self, proto, commands):
        theirs = Theirs(self.server.port, proto)
        try:
            return [sentences_as_digests(reply) if c[1:2] in ([], ["DOCS"], ["INFO"]) else reply
                    for c, reply in zip(commands, theirs.ask(commands))]
        finally:
            theirs.close()

    def ask(self, proto, *commands):
        theirs = self.tape.answer((proto, commands), lambda: self.ask_theirs(proto, commands))
        return Ours(proto).ask(commands), theirs

    def same_by_name(self, ours, theirs):
        self.assertEqual(sorted(ours), sorted(theirs))
        wrong = [f"{name}: {ours[name]}\n    {theirs[name]}" for name in theirs
                 if ours[name] != theirs[name]]
        self.assertFalse(wrong, "\n".join(wrong))

    def test_command_describes_every_command_alike(self):
        for proto in (2, 3):
            ours, theirs = self.ask(proto, ["COMMAND"])
            self.assertGreater(len(theirs[0][1]), 200)
            self.same_by_name(*({text(c[1][0]): command(c) for c in reply[0][1]}
                                for reply in (ours, theirs)))

    def test_command_docs_have_the_same_structure(self):
        for proto in (2, 3):
            ours, theirs = self.ask(proto, ["COMMAND", "DOCS"])
            self.assertEqual(ours[0][0], theirs[0][0])
            self.same_by_name(*({name: docs(d) for name, d in pairs(reply[0])}
                                for reply in (ours, theirs)))

    def test_some_commands_by_name(self):
        names = ["get", "GET", "nope", "config", "config|get", "Config|GET", "config|nope",
                 "config|get|x", "get|x", "", "|", "|get", "client|no-evict", "restore-asking"]
        for proto in (2, 3):
            ours, theirs = self.ask(proto, ["COMMAND", "INFO", *names])
            self.assertEqual([command(c) for c in ours[0][1]], [command(c) for c in theirs[0][1]])
            ours, theirs = self.ask(proto, ["COMMAND", "DOCS", *names])
            self.assertEqual([(k, docs(d)) for k, d in pairs(ours[0])],
                             [(k, docs(d)) for k, d in pairs(theirs[0])])

    def test_lists_and_counts(self):
        filters = [[], ["FILTERBY", "ACLCAT", "nope"], ["FILTERBY", "MODULE", "x"],
                   ["FILTERBY", "X", "y"], ["FILTERBY", "ACLCAT"], ["x"]]
        for word in CATEGORIES.split():
            filters.append(["filterby", "aclcat", word])
        for word in PATTERNS:
            filters.append(["FILTERBY", "pattern", word])
        commands = [["COMMAND", "LIST", *f] for f in filters] + [["COMMAND", "COUNT"]]
        for proto in (2, 3):
            for asked, our, their in zip(commands, *self.ask(proto, *commands)):
                if their[0] == "*":
                    our, their = ((v[0], sorted(v[1])) for v in (our, their))
                self.assertEqual(our, their, asked)

    def keys(self, proto, argvs):
        commands = [["COMMAND", "GETKEYSANDFLAGS", *argv] for argv in argvs]
        wrong = []
        for argv, our, their in zip(argvs, *self.ask(proto, *commands)):
            if b"wrong number of arguments for 'command" in (their[1] if their[0] == "-" else b""):
                their = ("-", b"ERR arity")
            if their[0] == "*":
                our, their = ((v[0], [(kind, key, unordered(flags)) for kind, (key, flags) in v[1]])
                              if v[0] == "*" else v for v in (our, their))
            if our != their:
                wrong.append(f"{argv}: {our}, the server: {their}")
        self.assertFalse(wrong, "\n".join(wrong[:20]))

    def test_keys_of_command_lines(self):
        argvs = list(lines())
        self.assertGreater(len(argvs), 200)
        self.keys(2, argvs)
        self.keys(3, argvs)
        ours, theirs = self.ask(2, *(["COMMAND", "GETKEYS", *a] for a in argvs if len(a) > 1))
        self.assertEqual(ours, theirs)

    def test_keys_of_command_lines_made_by_chance(self):
        _, theirs = self.ask(3, ["COMMAND"])
        commands = []
        for c in theirs[0][1]:
            subs = [(text(s[1][0]), s[1][1][1]) for s in c[1][9][1]]
            commands += subs or [(text(c[1][0]), c[1][1][1])]
        self.keys(3, [argv for argv in random_lines(sorted(commands)) if is_clear(argv)])

    def test_later_commands_are_hidden_from_clients_of_this_level(self):
        out = subprocess.run([PRINT_COMMANDS], stdout=subprocess.PIPE, check=True).stdout
        table = [json.loads(line) for line in out.splitlines()]
        later = {c["name"] for c in table if c["later"]}
        self.assertLessEqual(LATER, later)
        ours = Ours(3).ask([["COMMAND", "LIST"], ["COMMAND", "INFO", *sorted(later)]])
        self.assertFalse(later & {text(name) for name in ours[0][1]})
        self.assertEqual(ours[1][1], [("_", b"")] * len(later))

    def test_summaries_are_short_and_our_own(self):
        out = subprocess.run([PRINT_COMMANDS], stdout=subprocess.PIPE, check=True).stdout
        table = {(c := json.loads(line))["name"]: c["summary"] for line in out.splitlines()}
        _, theirs = self.ask(3, ["COMMAND", "DOCS"])

        def check(name, value):
            fields = dict(pairs(value))
            summary = table[name]
            self.assertTrue(10 < len(summary) < 80 and summary[-1] != ".", summary)
            self.assertNotEqual(of_sentence(summary.encode()), fields["summary"][1])
            for sub, one in pairs(fields.get("subcommands", ("%", []))):
                check(sub, one)

        for name, value in pairs(theirs[0]):
            check(name, value)


if __name__ == "__main__":
    unittest.main()
