"""What servers remember of accesses, and whom chance chooses, beside redis-server.

Values are not small numbers: redis-server keeps one of each for all keys, times of access included.
"""

import os
import tempfile
import time
import unittest

from server_under_test import Redoubt, encode, pair


KEYS = ["k", "list", "hash", "set", "zset"]
FILL = """
SET k 20001
RPUSH list 1 2 3
HSET hash f 1 g 2
SADD set a b c
ZADD zset 1 a 2 b
"""

# Each is run on keys that were not used for a long time.
ACCESSES = """
GET k
SET k 20002
SET k 20002 KEEPTTL
INCR k
APPEND k 3
STRLEN k
GETRANGE k 0 1
SETRANGE k 0 x
GETEX k EX 100
GETSET k 20007
SETNX k 20008
MGET k list
MSETNX k 20001 k2 20002
TYPE k
TTL k
PTTL k
EXPIRE k 100
PERSIST k
EXPIRETIME k
EXISTS k hash
TOUCH k list
OBJECT ENCODING k
OBJECT IDLETIME k
DUMP k
COPY k copy
RENAME k copy
MOVE k 1
SCAN 0 COUNT 100
RANDOMKEY
KEYS *
BITCOUNT k
GETBIT k 1
LLEN list
LPUSH list 9
LPUSHX nolist 9
LRANGE list 0 -1
LPOP list
LINDEX list 0
LMOVE list list2 LEFT LEFT
HGET hash f
HSET hash f 2
HLEN hash
HGETALL hash
HSCAN hash 0
HINCRBY hash f 1
HDEL hash nosuch
SCARD set
SADD set a
SADD set d
SMEMBERS set
SISMEMBER set a
SREM set nosuch
SINTER set set
SINTERSTORE to set set
SUNIONSTORE set set set
SMOVE set set2 a
SRANDMEMBER set 1
ZADD zset 1 a
ZADD zset 3 c
ZRANGE zset 0 -1
ZSCORE zset a
ZCARD zset
ZRANGESTORE to zset 0 -1
ZUNIONSTORE to 1 zset
ZINTER 2 zset set
ZPOPMIN zset
SORT list
SORT list STORE to
SORT list BY k*->f
DEBUG OBJECT k
MEMORY USAGE k
WATCH k
GET list
LPUSH k 1
"""


def both(case, servers, *argv):
    got, want = (c.ask(*argv) for c in servers)
    case.assertEqual(got, want, argv)
    return want


def restore(c, key, text, *more):
    c.command("RESTORE", key, 0, text, "REPLACE", *more)


def fill(servers, clients):
    """{key: what DUMP says of it}"""
    for c in clients:
        c.command("FLUSHALL")
        for line in FILL.strip().splitlines():
            c.command(*line.split())
    # The order of a set is chance.
    return {key: servers[1].first(lambda key=key: clients[1].command("DUMP", key)) for key in KEYS}


class Access(unittest.TestCase):
    def test_the_same_commands_reset_the_idle_time(self):
        with pair() as servers:
            clients = [server.client() for server in servers]
            dumps = fill(servers, clients)
            for line in ACCESSES.strip().splitlines():
                reported = []
                for c in clients:
                    c.command("FLUSHALL")
                    for key in KEYS:
                        restore(c, key, dumps[key], "IDLETIME", 1000)
                    c.ask(*line.split())
                    c.command("UNWATCH")
                    idle = [c.ask("OBJECT", "IDLETIME", key)[1] for key in [*KEYS, "copy", "to"]]
                    # some seconds may have passed meanwhile
                    reported.append([t // 500 if isinstance(t, int) else t for t in idle])
                with self.subTest(line=line):
                    self.assertEqual(*reported)

    def test_time_passes_in_seconds(self):
        with pair() as servers:
            clients = [server.client() for server in servers]
            for c in clients:
                began = time.monotonic()
                c.command("SET", "k", "own")
                c.command("SET", "other", "own")
                time.sleep(2.5)
                asked = time.monotonic()
                c.command("GET", "other")
                idle = [c.command("OBJECT", "IDLETIME", key) for key in ("k", "other")]
                # Both servers count whole seconds, and a slow machine needs some of them.
                ended = time.monotonic()
                self.assertIn(idle[0], range(2, int(ended - began) + 2))
                self.assertIn(idle[1], range(int(ended - asked) + 2))

    def test_the_same_accesses_give_the_same_frequency_where_nothing_is_left_to_chance(self):
        config = {"maxmemory-policy": "allkeys-lfu", "lfu-log-factor": "0", "lfu-decay-time": "0"}
        with pair(config) as servers:
            clients = [server.client() for server in servers]
            dumps = fill(servers, clients)
            for line in ACCESSES.strip().splitlines():
                for c in clients:
                    c.command("FLUSHALL")
                    for key in KEYS:
                        restore(c, key, dumps[key], "FREQ", 100)
                    c.ask(*line.split())
                    c.command("UNWATCH")
                for key in [*KEYS, "copy", "to"]:
                    with self.subTest(line=line, key=key):
                        both(self, clients, "OBJECT", "FREQ", key)

    def test_a_counter_begins_at_five_and_ends_at_255(self):
        config = {"maxmemory-policy": "volatile-lfu", "lfu-log-factor": "0", "lfu-decay-time": "0"}
        with pair(config) as servers:
            clients = [server.client() for server in servers]
            for c in clients:
                c.command("SET", "k", "own")
            self.assertEqual(both(self, clients, "OBJECT", "FREQ", "k"), (":", 5))
            for n in (1, 10, 100, 200):
                for c in clients:
                    for _ in range(n):
                        c.command("GET", "k")
                both(self, clients, "OBJECT", "FREQ", "k")
            self.assertEqual(both(self, clients, "OBJECT", "FREQ", "k"), (":", 255))

    def test_chance_lets_the_counter_grow_as_slowly(self):
        with pair({"maxmemory-policy": "allkeys-lfu"}) as servers:
            means = []
            for server in servers:
                c = server.client()
                keys = [f"k{i}" for i in range(40)]
                for key in keys:
                    c.command("SET", key, "own")
                for key in keys:
                    c.socket.sendall(encode("GET", key) * 1000)
                    for _ in range(1000):
                        c.read()
                means.append(sum(c.command("OBJECT", "FREQ", key) for key in keys) / len(keys))
            # 5 and the square root of 2 * 1000 / 10 make 18; one key's deviation is below 2
            self.assertAlmostEqual(means[0], means[1], delta=2)

    def test_the_other_policy_s_question_is_refused_alike(self):
        for policy in ("noeviction", "allkeys-lru", "volatile-lfu"):
            with pair({"maxmemory-policy": policy}) as servers:
                clients = [server.client() for server in servers]
                for c in clients:
                    c.command("SET", "k", "own")
                for argv in (("IDLETIME", "k"), ("FREQ", "k"), ("IDLETIME", "no"), ("FREQ", "no"),
                             ("FREQ",), ("IDLETIME", "k", "x")):
                    with self.subTest(policy=policy, argv=argv):
                        answers = [c.ask("OBJECT", *argv) for c in clients]
                        if answers[1][0] == ":" and argv[0] == "IDLETIME":
                            # a second may have passed between the two
                            answers = [(kind, n // 60) for kind, n in answers]
                        self.assertEqual(*answers)


class Chance(unittest.TestCase):
    KEYS = 64
    DRAWS = 64 * 300

    def chi_square(self, server):
        c = server.client()
        for i in range(self.KEYS):
            c.command("SET", f"k{i}", i)
        counts = dict.fromkeys((f"k{i}".encode() for i in range(self.KEYS)), 0)
        for _ in range(0, self.DRAWS, self.KEYS):
            c.socket.sendall(encode("RANDOMKEY") * self.KEYS)
            for _ in range(self.KEYS):
                counts[c.read()[1]] += 1
        mean = self.DRAWS / self.KEYS
        return sum((n - mean) ** 2 / mean for n in counts.values())

    def test_randomkey_finds_every_key_and_no_key_more_often(self):
        """63 degrees of freedom: chance alone is above 150 once in a hundred million runs. The
        choice of redis-server depends on how its table is filled."""
        with pair() as servers:
            ours, theirs = (self.chi_square(server) for server in servers)
        print(f"# chi-square of RANDOMKEY: {ours:.0f}, redis-server {theirs:.0f}")
        self.assertLess(ours, 150)
        self.assertGreater(ours, 15)  # no chance at all would be as wrong



class BinaryPassword(unittest.TestCase):
    PASSWORD = b"p\0w\x01\xff d"

    def test_a_password_may_hold_bytes_of_value_0(self):
        for password in (self.PASSWORD, b"\0", b"\0abc", b"abc\0"):
            with self.subTest(password), pair() as servers:
                seen = []
                for server in servers:
                    c, other = server.client(), server.client()
                    other.command("PING")  # it is connected before there is a password
                    replies = [c.ask("CONFIG", "SET", "requirepass", password),
                               c.ask("CONFIG", "GET", "requirepass")]
                    late = server.client()
                    for wrong in (b"", password[:1], password.split(b"\0")[0], password + b"x",
                                  password[:-1]):
                        replies.append(late.ask("AUTH", wrong))
                    replies += [late.ask("PING"), late.ask("AUTH", password), late.ask("PING"),
                                other.ask("ACL", "LIST"), other.ask("PING")]
                    seen.append(replies)
                self.assertEqual(*seen)
                self.assertEqual(seen[0][-4], ("+", b"OK"))

    def test_it_is_kept_by_a_rewrite_and_read_from_a_file(self):
        with tempfile.TemporaryDirectory(prefix="redoubt-password-") as folder:
            path = os.path.join(folder, "r.conf")
            with open(path, "w", encoding="ascii") as f:
                f.write('requirepass "\\x00abc"\n')
            with Redoubt(args=["--include", path]) as server:
                c = server.client()
                self.assertEqual(c.ask("PING")[0], "-")
                self.assertEqual(c.ask("AUTH", "")[0], "-")
                self.assertEqual(c.ask("AUTH", b"\0abc"), ("+", b"OK"))


if __name__ == "__main__":
    unittest.main()
