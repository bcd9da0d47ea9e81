"""Keys that leave by themselves, beside redis-server: memory is short, or their time is over.

Which keys go is chance in both servers, so what is compared is what a policy promises: which keys
it may take, that memory stays below the limit, what is answered where it may take none.
"""

import time
import unittest

from server_under_test import Redis, Redoubt, encode, pair, wait_for

VALUE = "v" * 400
ROOM = 1 << 20  # bytes that are left for keys when the limit is set
SLACK = 64 << 10  # for buffers that were allocated after the last check of the limit
BATCH = 50


def pipeline(client, commands):
    """All at once; the replies."""
    client.socket.sendall(b"".join(encode(*argv) for argv in commands))
    return [client.read() for _ in commands]


def names(client):
    return {name.decode() for name in client.command("KEYS", "*")}


def used(server):
    return int(server.info("memory")["used_memory"])


def limit(server, room=ROOM):
    c = server.client()
    c.command("CONFIG", "SET", "maxmemory", used(server) + room)
    return c


def put(client, prefix, numbers, *more):
    """SET with a value of some size; how many were refused."""
    refused = 0
    numbers = list(numbers)
    for at in range(0, len(numbers), BATCH):
        replies = pipeline(client, [("SET", f"{prefix}{i}", VALUE, *more)
                                    for i in numbers[at:at + BATCH]])
        refused += sum(kind == "-" for kind, _ in replies)
    return refused


def evicted(server):
    return int(server.info("stats")["evicted_keys"])


def settled(server, look):
    """What look() says, and how many keys were evicted until then: any command may evict."""
    while True:
        before, seen = evicted(server), look()
        if evicted(server) == before:
            return seen, before


class Both(unittest.TestCase):
    """check(server) for each of the two, with the same settings."""

    def on_both(self, config, check):
        with Redoubt(config) as ours, Redis(config) as theirs:
            for server in (ours, theirs):
                with self.subTest(server=server.name):
                    check(server)


class Evict(Both):
    def test_a_lower_limit_waits_for_the_end_of_a_transaction(self):
        def check(server):
            c = server.client()
            c.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            c.command("MULTI")
            c.command("INCR", "x")
            c.command("CONFIG", "SET", "maxmemory", 1)
            c.command("INCR", "x")
            self.assertEqual(c.command("EXEC"), [1, b"OK", 2])
            wait_for(lambda: c.command("DBSIZE") == 0)
        self.on_both({}, check)

    def test_input_that_has_just_arrived_counts(self):
        def check(server):
            c = limit(server, 2 << 20)
            c.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            put(c, "k", range(1000))
            for _ in range(20):
                server.client().send_raw(b"*300\r\n" + b"$1000\r\n" + b"x" * 1000 + b"\r\n" +
                                         (b"$1000\r\n" + b"x" * 1000 + b"\r\n") * 298)
            wait_for(lambda: evicted(server) > 0)
        self.on_both({}, check)

    def within(self, server):
        """Memory falls below the limit. Not at once: redis-server stops evicting after half a
        millisecond and continues later, and frees the buffers of its clients and the table that it
        grew out of only with time."""
        def below():
            memory = server.info("memory")
            return int(memory["used_memory"]) <= int(memory["maxmemory"]) + SLACK
        wait_for(below)

    def test_policies_of_all_keys_keep_memory_below_the_limit_and_loses_no_key_uncounted(self):
        for policy in ("allkeys-lru", "allkeys-lfu", "allkeys-random"):
            def check(server):
                c = limit(server)
                self.assertEqual(put(c, "k", range(6000)), 0)
                self.within(server)
                n_keys, n_evicted = settled(server, lambda: c.command("DBSIZE"))
                self.assertGreater(n_evicted, 1000)
                self.assertEqual(n_keys + n_evicted, 6000)
            with self.subTest(policy=policy):
                self.on_both({"maxmemory-policy": policy}, check)

    def test_volatile_policies_take_keys_that_expire_and_no_others(self):
        for policy in ("volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"):
            def check(server):
                c = limit(server)
                self.assertEqual(put(c, "stay", range(500)), 0)
                self.assertEqual(put(c, "go", range(4000), "EX", 10000), 0)
                self.within(server)
                left, n_evicted = settled(server, lambda: names(c))
                self.assertEqual(sum(name.startswith("stay") for name in left), 500)
                self.assertEqual(len(left) + n_evicted, 4500)
                self.assertGreater(n_evicted, 1000)
            with self.subTest(policy=policy):
                self.on_both({"maxmemory-policy": policy}, check)

    def test_when_nothing_is_left_that_may_go_writes_are_refused(self):
        def check(server):
            c = limit(server)
            put(c, "go", range(100), "EX", 10000)
            self.assertGreater(put(c, "stay", range(5000)), 1000)
            self.assertFalse([name for name in names(c) if name.startswith("go")])
            self.assertEqual(evicted(server), 100)
            self.within(server)
        self.on_both({"maxmemory-policy": "volatile-lru"}, check)

    def test_the_time_left_decides_under_volatile_ttl(self):
        def check(server):
            c = limit(server)
            put(c, "soon", range(1000), "EX", 1000)
            put(c, "late", range(2500), "EX", 1000000)
            left = names(c)
            self.assertLess(sum(name.startswith("soon") for name in left), 100)
            self.assertGreater(sum(name.startswith("late") for name in left), 1000)
        self.on_both({"maxmemory-policy": "volatile-ttl", "maxmemory-samples": "10"}, check)

    def test_what_was_not_looked_at_for_long_goes_first_under_lru(self):
        def check(server):
            c = limit(server, 2 * ROOM)
            put(c, "cold", range(1000))
            put(c, "hot", range(300))
            time.sleep(2.2)  # the clock of redis-server counts seconds
            pipeline(c, [("GET", f"hot{i}") for i in range(300)])
            at = 0
            while evicted(server) < 500:
                put(c, "new", range(at, at + BATCH))
                at += BATCH
            left = names(c)
            self.assertGreater(sum(name.startswith("hot") for name in left), 290)
            self.assertLess(sum(name.startswith("cold") for name in left), 550)
        self.on_both({"maxmemory-policy": "allkeys-lru", "maxmemory-samples": "10"}, check)

    def test_what_was_asked_for_seldom_goes_first_under_lfu(self):
        def check(server):
            c = limit(server, 2 * ROOM)
            put(c, "often", range(300))
            for _ in range(30):
                pipeline(c, [("GET", f"often{i}") for i in range(300)])
            put(c, "once", range(8000))
            left = names(c)
            self.assertGreater(sum(name.startswith("often") for name in left), 290)
            self.assertGreater(evicted(server), 2000)
        self.on_both({"maxmemory-policy": "allkeys-lfu", "maxmemory-samples": "10",
                      "lfu-log-factor": "1"}, check)

    def test_every_database_loses_keys(self):
        def check(server):
            c = limit(server)
            for db in (0, 5):
                c.command("SELECT", db)
                put(c, f"k{db}-", range(1000))
            put(c, "more", range(4000))
            sizes = {}
            for db in (0, 5):
                c.command("SELECT", db)
                sizes[db] = sum(name.startswith(f"k{db}-") for name in names(c))
            self.assertLess(sizes[0], 900)
            self.assertLess(sizes[5], 900)
        self.on_both({"maxmemory-policy": "allkeys-random"}, check)

    def test_subscribers_hear_of_it(self):
        def check(server):
            listener = server.client()
            listener.command("PSUBSCRIBE", "__keyevent@0__:evicted")
            c = limit(server)
            put(c, "k", range(4000))
            left, n_evicted = settled(server, lambda: names(c))
            heard = {listener.read()[1][3][1].decode() for _ in range(n_evicted)}
            self.assertEqual(heard, {f"k{i}" for i in range(4000)} - left)
        self.on_both({"maxmemory-policy": "allkeys-random", "notify-keyspace-events": "Ee"}, check)


REFUSED = """
SET k 1
APPEND k x
LPUSH l x
HSET h f v
SADD s a
ZADD z 1 a
XADD x * f v
INCR n
GETSET k 1
COPY there other
GET there
STRLEN there
DEL nothing
EXPIRE there 1000
PERSIST there
RENAME there there2
LPOP nothing
HDEL nothing f
TYPE there2
PING
MULTI
GET there2
EXEC
MULTI
SET k 1
EXEC
MULTI
DEL nothing
DISCARD
NOSUCH
SET
RESTORE k 0 x
SORT nothing STORE to
BITOP NOT to there2
SETRANGE k 0 x
GETDEL nothing
"""


class Refuse(unittest.TestCase):
    def test_without_memory_the_same_commands_are_refused_with_the_same_words(self):
        for policy in ("noeviction", "volatile-lru"):
            with pair({"maxmemory-policy": policy}) as servers:
                ours, theirs = (server.client() for server in servers)
                for c in (ours, theirs):
                    c.command("SET", "there", 5)
                    c.command("CONFIG", "SET", "maxmemory", 1)
                for line in REFUSED.strip().splitlines():
                    got, want = (c.ask(*line.split()) for c in (ours, theirs))
                    with self.subTest(policy=policy, line=line):
                        self.assertEqual(got, want)
                for c in (ours, theirs):
                    c.command("CONFIG", "SET", "maxmemory", 0)
                    self.assertEqual(c.ask("SET", "k", 1), ("+", b"OK"))


class Expire(Both):
    def test_keys_that_are_due_are_deleted_without_a_look(self):
        def check(server):
            c = server.client()
            pipeline(c, [("SET", f"stay{i}", i, "EX", 1000) for i in range(300)])
            pipeline(c, [("SET", f"for ever{i}", i) for i in range(300)])
            pipeline(c, [("SET", f"go{i}", i, "PX", 1 + i % 100) for i in range(3000)])
            wait_for(lambda: c.command("DBSIZE") == 600)
            stats = server.info("stats", "keyspace")
            self.assertEqual(int(stats["expired_keys"]), 3000)
            self.assertIn("keys=600,expires=300", stats["db0"])
        self.on_both({}, check)

    def test_it_can_be_switched_off(self):
        def check(server):
            c = server.client()
            c.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            pipeline(c, [("SET", f"go{i}", i, "PX", 1) for i in range(50)])
            time.sleep(0.4)
            self.assertEqual(c.command("DBSIZE"), 50)
            self.assertIsNone(c.command("GET", "go7"))
            self.assertEqual(c.command("DBSIZE"), 49)
        self.on_both({}, check)

    def test_every_database_is_looked_through_and_subscribers_hear_of_it(self):
        def check(server):
            listener, c = server.client(), server.client()
            listener.command("PSUBSCRIBE", "__keyevent@*__:expired")
            for db in (0, 3, 15):
                c.command("SELECT", db)
                c.command("SET", f"k{db}", 1, "PX", 20)
            heard = {(event[1][2][1], event[1][3][1])
                     for event in (listener.read() for _ in range(3))}
            self.assertEqual(heard, {(b"__keyevent@%d__:expired" % db, b"k%d" % db)
                                     for db in (0, 3, 15)})
        self.on_both({"notify-keyspace-events": "Ex"}, check)


class Fields(unittest.TestCase):
    """Of hashes: no client of this release can let them expire, but logs and snapshots of later
    ones can."""

    HASHES = 300

    def log(self, due_ms):
        """Of each hash h two fields go; of each hash all, everything."""
        for i in range(self.HASHES):
            pairs = [x for k in range(3 + i % 10) for x in (f"f{k}", k)]
            yield encode("HSET", f"h{i}", *pairs)
            yield encode("HPEXPIREAT", f"h{i}", due_ms, "FIELDS", 2, "f0", "f2")
            yield encode("HSETEX", f"all{i}", "PXAT", due_ms, "FIELDS", 1, "f", "v")

    def test_fields_that_are_due_go_without_a_look_and_stay_gone(self):
        config = {"appendonly": "yes", "hash-max-listpack-entries": "8"}
        with Redoubt(config) as server:
            path = server.path("appendonlydir", "appendonly.aof.1.incr.aof")
            server.terminate()
            due_ms = int(time.time() * 1000) + 3000
            with open(path, "ab") as log:
                log.writelines([encode("SELECT", 0), *self.log(due_ms)])
            server.start()
            c = server.client()
            wait_for(lambda: c.command("DBSIZE") == self.HASHES)
            self.assertGreater(time.time() * 1000, due_ms)

            def deletions():
                with open(path, "rb") as log:
                    return log.read().count(b"HDEL")
            wait_for(lambda: deletions() == 3 * self.HASHES)
            server.terminate()
            server.start()
            c = server.client()
            c.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            self.assertEqual(c.command("DBSIZE"), self.HASHES)
            for i in range(self.HASHES):
                self.assertEqual(c.command("HLEN", f"h{i}"), 1 + i % 10)


if __name__ == "__main__":
    unittest.main()
