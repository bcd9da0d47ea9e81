"""Every write command of the table, read back from the log.

The test walks COMMAND of the server itself: a command that writes and has no row in CASES fails it.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from persistence import AOF, incr  # noqa: E402
from server_under_test import Redoubt, free_port, wait_for  # noqa: E402

FAR = 4102444800  # the year 2100, in seconds
DUMP = "<payload of a string>"
LIBRARY = "#!lua name=l\nredis.register_function('f', function() return 1 end)\n"

# Command: forms that succeed and change something, each with the commands that prepare it. K, L and
# M are placeholders for keys of the form's own; the rest is sent as it is.
CASES = {
    "append": [("SET K a", "APPEND K b")],
    "bitfield": [("BITFIELD K SET u8 #3 200 INCRBY i5 100 1",)],
    "bitop": [("MSET K abc L axz", "BITOP XOR M K L")],
    "blmove": [("RPUSH K a b", "BLMOVE K L LEFT RIGHT 0")],
    "blmpop": [("RPUSH K a b c", "BLMPOP 0 2 L K LEFT COUNT 2")],
    "blpop": [("RPUSH K a b", "BLPOP L K 0")],
    "brpop": [("RPUSH K a b", "BRPOP L K 0")],
    "brpoplpush": [("RPUSH K a b", "BRPOPLPUSH K L 0")],
    "bzmpop": [("ZADD K 1 a 2 b 3 c", "BZMPOP 0 2 L K MAX COUNT 2")],
    "bzpopmax": [("ZADD K 1 a 2 b", "BZPOPMAX K 0")],
    "bzpopmin": [("ZADD K 1 a 2 b", "BZPOPMIN K 0")],
    "copy": [("RPUSH K a b", "COPY K L"), ("SET K a EX 5000", "COPY K L DB 7 REPLACE")],
    "decr": [("DECR K",)],
    "decrby": [("DECRBY K 5",)],
    "del": [("MSET K a L b", "DEL K M")],
    "expire": [("SET K a", "EXPIRE K 5000"), ("SET K a", "EXPIRE K -1")],
    "expireat": [("SET K a", f"EXPIREAT K {FAR}")],
    "flushall": [("SET K a", "FLUSHALL"), ("SET K a", "FLUSHALL ASYNC")],
    "flushdb": [("SET K a", "FLUSHDB"), ("SET K a", "FLUSHDB ASYNC")],
    "function|delete": [("FUNCTION LOAD REPLACE LIBRARY", "FUNCTION DELETE l")],
    "function|load": [("FUNCTION LOAD REPLACE LIBRARY",)],
    "function|restore": [("FUNCTION RESTORE LIBRARIES REPLACE",)],
    "function|flush": [("FUNCTION FLUSH",), ("FUNCTION FLUSH ASYNC",), ("function flush sync",)],
    "geoadd": [("GEOADD K CH 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",)],
    "georadius": [("GEOADD K 13.361389 38.115556 a 15.087269 37.502669 b",
                   "GEORADIUS K 15 37 200 km STORE L", "GEORADIUS K 15 37 99 km STOREDIST M")],
    "georadiusbymember": [("GEOADD K 13.361389 38.115556 a 15.087269 37.502669 b",
                           "GEORADIUSBYMEMBER K a 200 km STORE L")],
    "geosearchstore": [("GEOADD K 13.361389 38.115556 a 15.087269 37.502669 b",
                        "GEOSEARCHSTORE L K FROMMEMBER a BYRADIUS 200 km STOREDIST")],
    "getdel": [("SET K a", "GETDEL K")],
    "getex": [("SET K a", "GETEX K EX 5000"), ("SET K a EX 5000", "GETEX K PERSIST")],
    "getset": [("SET K a EX 5000", "GETSET K b")],
    "hdel": [("HSET K a 1 b 2 c 3", "HDEL K a c x"), ("HSET K a 1", "HDEL K a")],
    "hincrby": [("HINCRBY K a 7",)],
    "hincrbyfloat": [("HSET K a 0.1", "HINCRBYFLOAT K a 0.2")],
    "hmset": [("HMSET K a 1 b 2",)],
    "hset": [("HSET K a 1 b 2",)],
    "hsetnx": [("HSETNX K a 1",)],
    "incr": [("INCR K",)],
    "incrby": [("INCRBY K 5",)],
    "incrbyfloat": [("SET K 0.1", "INCRBYFLOAT K 0.2")],
    "linsert": [("RPUSH K a c", "LINSERT K BEFORE c b")],
    "lmove": [("RPUSH K a b", "LMOVE K K LEFT RIGHT"), ("RPUSH K a", "LMOVE K L LEFT RIGHT")],
    "lmpop": [("RPUSH K a b c", "LMPOP 2 L K RIGHT COUNT 2")],
    "lpop": [("RPUSH K a b c", "LPOP K 2"), ("RPUSH K a", "LPOP K")],
    "lpush": [("LPUSH K a b",)],
    "lpushx": [("LPUSH K a", "LPUSHX K b")],
    "lrem": [("RPUSH K a b a", "LREM K -1 a")],
    "lset": [("RPUSH K a b", "LSET K -1 c")],
    "ltrim": [("RPUSH K a b c", "LTRIM K 1 1")],
    "migrate": [("SET K a", "MIGRATE 127.0.0.1 PEER K 0 9000 REPLACE")],
    "move": [("SET K a EX 5000", "MOVE K 7")],
    "mset": [("MSET K a L b",)],
    "msetnx": [("MSETNX K a L b",)],
    "persist": [("SET K a EX 5000", "PERSIST K")],
    "pexpire": [("SET K a", "PEXPIRE K 5000000")],
    "pexpireat": [("SET K a", f"PEXPIREAT K {FAR}123")],
    "pfadd": [("PFADD K a b c",)],
    "pfcount": [("PFADD K a b", "PFCOUNT K"), ("PFADD K a", "PFADD L b", "PFCOUNT K L")],
    "pfdebug": [("PFADD K a b", "PFDEBUG TODENSE K")],
    "pfmerge": [("PFADD K a b", "PFADD L c", "PFMERGE M K L")],
    "psetex": [("PSETEX K 5000000 a",)],
    "publish": [("SET K a", "PUBLISH channel message")],
    "rename": [("SET K a EX 5000", "RENAME K L")],
    "renamenx": [("SET K a", "RENAMENX K L")],
    "restore": [("RESTORE K 0 DUMP",), ("RESTORE K 5000000 DUMP REPLACE",),
                (f"RESTORE K {FAR}123 DUMP ABSTTL FREQ 7",),
                ("RESTORE K 5000000 DUMP" + " REPLACE" * 11,),
                ("RESTORE K 5000000 DUMP" + " REPLACE" * 12,),
                ("RESTORE K 5000000 DUMP" + " REPLACE" * 13,),
                ("RESTORE K 5000000 DUMP" + " REPLACE" * 40,)],
    "restore-asking": [("RESTORE-ASKING K 5000000 DUMP",)],
    "rpop": [("RPUSH K a b c", "RPOP K 2")],
    "rpoplpush": [("RPUSH K a b", "RPOPLPUSH K L")],
    "rpush": [("RPUSH K a b",)],
    "rpushx": [("RPUSH K a", "RPUSHX K b")],
    "sadd": [("SADD K 1 2 3", "SADD L a 2 c")],
    "sdiffstore": [("SADD K a b c", "SADD L b", "SDIFFSTORE M K L")],
    "set": [("SET K a",), ("SET K a PX 5000000",), ("SET K a", "SET K b XX GET KEEPTTL"),
            (f"SET K a EXAT {FAR}",)],
    "setbit": [("SETBIT K 1000 1",)],
    "setex": [("SETEX K 5000 a",)],
    "setnx": [("SETNX K a",)],
    "setrange": [("SETRANGE K 100 abc",)],
    "sinterstore": [("SADD K a b c", "SADD L b 2", "SINTERSTORE M K L")],
    "smove": [("SADD K a b", "SMOVE K L a")],
    "sort": [("RPUSH K 3 1 2", "SORT K DESC STORE L")],
    "spop": [("SADD K a b c d e f", "SPOP K"), ("SADD K 1 2 3 4 5 6", "SPOP K 4"),
             ("SADD K a b", "SPOP K 2")],
    "spublish": [("SET K a", "SPUBLISH channel message")],
    "srem": [("SADD K a b c", "SREM K a x c")],
    "sunionstore": [("SADD K a b c", "SADD L 1 2", "SUNIONSTORE M K L")],
    "swapdb": [("SET K a", "SWAPDB 0 5")],
    "unlink": [("MSET K a L b", "UNLINK K L M")],
    "xack": [("XADD K 1-1 a b", "XGROUP CREATE K g 0", "XREADGROUP GROUP g c STREAMS K >",
              "XACK K g 1-1")],
    "xadd": [("XADD K * a b",), ("XADD K MAXLEN ~ 2 1-* a b", "XADD K MINID 1-1 2-1 a b")],
    "xautoclaim": [("XADD K 1-1 a b", "XADD K 1-2 a b", "XGROUP CREATE K g 0",
                    "XREADGROUP GROUP g c STREAMS K >", "XDEL K 1-1", "XAUTOCLAIM K g d 0 0")],
    "xclaim": [("XADD K 1-1 a b", "XGROUP CREATE K g 0", "XREADGROUP GROUP g c STREAMS K >",
                "XCLAIM K g d 0 1-1 RETRYCOUNT 7")],
    "xdel": [("XADD K 1-1 a b", "XADD K 1-2 a b", "XDEL K 1-1 5-5")],
    "xgroup|create": [("XGROUP CREATE K g $ MKSTREAM",)],
    "xgroup|createconsumer": [("XGROUP CREATE K g $ MKSTREAM", "XGROUP CREATECONSUMER K g c")],
    "xgroup|delconsumer": [("XGROUP CREATE K g $ MKSTREAM", "XGROUP CREATECONSUMER K g c",
                            "XGROUP DELCONSUMER K g c")],
    "xgroup|destroy": [("XGROUP CREATE K g $ MKSTREAM", "XGROUP DESTROY K g")],
    "xgroup|setid": [("XADD K 1-1 a b", "XGROUP CREATE K g $",
                      "XGROUP SETID K g 0 ENTRIESREAD 0")],
    "xreadgroup": [("XADD K 1-1 a b", "XADD K 1-2 a b", "XGROUP CREATE K g 0",
                    "XREADGROUP GROUP g c COUNT 1 STREAMS K >",
                    "XREADGROUP GROUP g d NOACK STREAMS K >")],
    "xsetid": [("XADD K 1-1 a b", "XSETID K 7-7 ENTRIESADDED 9 MAXDELETEDID 2-2")],
    "xtrim": [("XADD K 1-1 a b", "XADD K 1-2 a b", "XTRIM K MAXLEN 1")],
    "zadd": [("ZADD K 1 a 2 b", "ZADD K INCR 0.1 a", "ZADD K GT CH 7 b -inf c")],
    "zdiffstore": [("ZADD K 1 a 2 b", "ZADD L 2 b", "ZDIFFSTORE M 2 K L")],
    "zincrby": [("ZADD K 0.1 a", "ZINCRBY K 0.2 a")],
    "zinterstore": [("ZADD K 1 a 2 b", "ZADD L 2 b", "ZINTERSTORE M 2 K L WEIGHTS 2 3")],
    "zmpop": [("ZADD K 1 a 2 b 3 c", "ZMPOP 2 L K MIN COUNT 2")],
    "zpopmax": [("ZADD K 1 a 2 b 3 c", "ZPOPMAX K 2")],
    "zpopmin": [("ZADD K 1 a", "ZPOPMIN K")],
    "zrangestore": [("ZADD K 1 a 2 b 3 c", "ZRANGESTORE L K 1 -1")],
    "zrem": [("ZADD K 1 a 2 b 3 c", "ZREM K a x c")],
    "zremrangebylex": [("ZADD K 0 a 0 b 0 c", "ZREMRANGEBYLEX K [a (c")],
    "zremrangebyrank": [("ZADD K 1 a 2 b 3 c", "ZREMRANGEBYRANK K 0 1")],
    "zremrangebyscore": [("ZADD K 1 a 2 b 3 c", "ZREMRANGEBYSCORE K -inf (3")],
    "zunionstore": [("ZADD K 1 a 2 b", "ZADD L 2 b", "ZUNIONSTORE M 2 K L AGGREGATE MAX")],
}

# They may change what is not in the log, or give a message that the log does not keep.
QUIET = {"pfcount", "publish", "spublish", "pfdebug"}


def write_commands(c):
    """Names of the commands that write, subcommands as box|name."""
    names = set()

    def walk(entries):
        for entry in entries:
            if b"write" in entry[2]:
                names.add(entry[0].decode())
            walk(entry[9])

    walk(c.command("COMMAND"))
    return names


def everything(c):
    """What the data set is: the digest, and what the digest does not cover."""
    seen = {"digest": c.command("DEBUG", "DIGEST")}
    for db in (0, 5, 7):
        c.command("SELECT", db)
        for key in sorted(c.command("KEYS", "*")):
            about = [c.command("DEBUG", "DIGEST-VALUE", key)[0], c.command("PEXPIRETIME", key)]
            if c.command("TYPE", key) == b"stream":
                # Logs of servers do not hold what a group has read in total, which comes last.
                groups = [group[:8] for group in c.command("XINFO", "GROUPS", key)]
                about += [c.command("XINFO", "STREAM", key), groups]
            seen[db, key] = about
    c.command("SELECT", 0)
    return seen


class Replay(unittest.TestCase):
    maxDiff = 4000

    def log_size(self):
        return os.path.getsize(incr(self.server))

    def words(self, line, tag):
        special = {"K": f"{tag}:k", "L": f"{tag}:l", "M": f"{tag}:m", "DUMP": self.payload,
                   "LIBRARY": LIBRARY, "LIBRARIES": self.libraries,
                   "PEER": self.peer.port}
        return [special.get(word, word) for word in line.split(" ")]

    def run_form(self, c, form, tag):
        """The form as it is, then in a transaction."""
        for line in form:
            kind, text = c.ask(*self.words(line, tag))
            self.assertNotEqual(kind, "-", (line, text))
        c.command("MULTI")
        for line in form:
            self.assertEqual(c.ask(*self.words(line, tag + ":in multi")), ("+", b"QUEUED"), line)
        for line, (kind, text) in zip(form, c.ask("EXEC")[1], strict=True):
            self.assertNotEqual(kind, "-", (line, text))

    def run_all(self, c):
        # Those that empty the data set come first, so that they hide nothing.
        order = sorted(CASES, key=lambda name: (not name.startswith("flush"), name))
        for name in order:
            for i, form in enumerate(CASES[name]):
                before = self.log_size()
                self.run_form(c, form, f"{name}:{i}")
                if name not in QUIET:
                    wait_for(lambda b=before: self.log_size() > b)

    def comes_back(self, seen):
        self.server.kill()
        self.server.start()
        c = self.server.client()
        again = everything(c)
        for key in sorted(set(seen) | set(again), key=str):
            self.assertEqual(seen.get(key), again.get(key), key)
        return c

    def replay(self, config):
        with Redoubt() as self.peer, Redoubt({"appendonly": "yes", **config}) as self.server:
            c = self.server.client()
            self.assertEqual(write_commands(c) - set(CASES), set())
            c.command("SET", "for dump", "value")
            self.payload = c.command("DUMP", "for dump")
            self.libraries = c.command("FUNCTION", "DUMP")
            self.run_all(c)
            seen = everything(c)
            self.assertGreater(len(seen), 100)
            c = self.comes_back(seen)
            c.command("BGREWRITEAOF")
            wait_for(lambda: c.command("INFO", "persistence").find(b"aof_rewrite_in_progress:0") > 0
                     and "rewrite finished successfully" in self.server.log)
            c = self.comes_back(seen)
            # The files of before the rewrite and those after it.
            self.run_all(c)
            self.comes_back(everything(c))

    def test_every_write_command_comes_back_from_the_log(self):
        self.replay({})

    def test_every_write_command_comes_back_from_a_log_without_a_snapshot(self):
        self.replay({"aof-use-rdb-preamble": "no", "appendfsync": "always"})


class Libraries(unittest.TestCase):
    """Commands that a log may hold and that need what this server does not have."""

    def start_with(self, *commands):
        server = Redoubt({"appendonly": "yes"})
        with server:
            c = server.client()
            c.command("SET", "k", "v")
            path = incr(server)
            server.kill()
            with open(path, "ab") as f:
                for command in commands:
                    f.write(b"*%d\r\n" % len(command))
                    for arg in command:
                        f.write(b"$%d\r\n%s\r\n" % (len(arg), arg.encode()))
            server.spawn()
            status = None
            if not server._wait():
                status = server.process.wait(600)
            return status, server.log

    def test_what_empties_something_that_is_empty_is_loaded(self):
        for words in (["FUNCTION", "FLUSH"], ["function", "flush", "async"], ["SCRIPT", "FLUSH"]):
            self.assertIsNone(self.start_with(words)[0], words)
            self.assertIsNone(self.start_with(["MULTI"], words, ["EXEC"])[0], words)

    def test_an_unknown_command_is_refused(self):
        status, log = self.start_with(["NOSUCH", "x"])
        self.assertEqual(status, 1)
        self.assertIn("Unknown command 'NOSUCH' reading the append only file", log)


class Renamed(unittest.TestCase):
    def test_a_renamed_command_comes_back_from_the_log(self):
        config = {"appendonly": "yes", "rename-command": ["SET", "zset"]}
        with Redoubt(config) as server:
            server.client().command("zset", "k", "v")
            server.kill()
            server.start()
            self.assertEqual(server.client().command("GET", "k"), b"v")
            self.assertTrue(os.path.exists(server.path(AOF)))


if __name__ == "__main__":
    unittest.main()
