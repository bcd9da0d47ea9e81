"""Sizes of hash tables as DEBUG HTSTATS shows them: when they are resized, and when not."""

import os
import re
import signal
import unittest

from persistence import child_of
from server_under_test import Redis, Redoubt, Reference, wait_for


def labels(text):
    """The lines without their numbers."""
    return [re.sub(r"^( +)[\d>= ]+:.*", r"\1N", re.sub(r"[\d.]+(?= *$| \()", "N", line))
            for line in text.decode().splitlines()]


def once(lines):
    """A distribution has as many lines as there are lengths."""
    return [line for i, line in enumerate(lines) if i == 0 or line != lines[i - 1]]


def pipeline(c, commands):
    for command in commands:
        c.send(*command)
    for _ in commands:
        c.read()


def add_members(c, n):
    pipeline(c, [("SADD", "s", f"m{i}") for i in range(n)])


def is_moving(c):
    return b"rehashing target" in c.command("DEBUG", "HTSTATS-KEY", "s")


class Tables(unittest.TestCase):
    def test_the_statistics_have_the_lines_of_redis(self):
        shown = []
        for kind in (Redoubt, Reference):
            with kind() as server:
                c = server.client()
                add_members(c, 1000)
                wait_for(lambda c=c: c.command("SRANDMEMBER", "s") and not is_moving(c))
                shown.append([once(labels(c.command("DEBUG", *args)))
                              for args in (("HTSTATS-KEY", "s"), ("HTSTATS", 0), ("HTSTATS", 9))])
        self.assertEqual(shown[0], shown[1])
        self.assertIn(" number of elements: N", shown[0][0])

    def test_removing_many_members_resizes_once_and_reading_finishes_it(self):
        for commands in (("SADD", "SREM", "SRANDMEMBER"), ("HSET", "HDEL", "HRANDFIELD"),
                         ("ZADD", "ZREM", None)):
            add, remove, pick = commands
            with self.subTest(remove), Redoubt() as server:
                c = server.client()
                value = {"SADD": [], "HSET": ["v"], "ZADD": []}[add]
                for i in range(20000):
                    score = [i] if add == "ZADD" else []
                    c.send(add, "s", *score, f"m{i}", *value)
                for _ in range(20000):
                    c.read()
                while is_moving(c):
                    c.command(remove, "s", "nosuch")
                c.command(remove, "s", *[f"m{i}" for i in range(19900)])
                self.assertTrue(is_moving(c))
                before = c.command("MEMORY", "USAGE", "s", "SAMPLES", 0)
                for _ in range(20000):
                    if not is_moving(c):
                        break
                    c.command(*([pick, "s", 1] if pick else [remove, "s", "nosuch"]))
                self.assertFalse(is_moving(c))
                self.assertLess(c.command("MEMORY", "USAGE", "s", "SAMPLES", 0), before / 2)

    def test_the_table_of_keys_does_not_grow_if_keys_would_be_evicted_for_it(self):
        for kind in (Redoubt, Redis):
            with self.subTest(kind.name), kind({"maxmemory-policy": "allkeys-random"}) as server:
                c = server.client()
                c.command("CONFIG", "SET", "latency-tracking", "no")
                pipeline(c, [("SET", f"k{i}", "v") for i in range(4096)])
                used = int(server.info("memory")["used_memory"])
                c.command("CONFIG", "SET", "maxmemory", used + 10 * 1024)
                c.command("SET", "a", 1)
                c.command("SET", "b", 2)
                self.assertEqual(c.command("DBSIZE"), 4098)
                self.assertEqual(self.size(c), 4096)
                c.command("CONFIG", "SET", "maxmemory", used + 10240 * 1024)
                c.command("SET", "c", 3)
                c.command("SET", "d", 4)
                wait_for(lambda c=c: self.size(c) == 8192)
                self.assertEqual(c.command("DBSIZE"), 4100)

    @staticmethod
    def size(c):
        text = c.command("DEBUG", "HTSTATS", 0)
        return int(re.search(rb"table size: (\d+)", text)[1])

    def test_the_table_of_keys_is_not_resized_while_a_child_shares_its_memory(self):
        for command in ("BGSAVE", "BGREWRITEAOF"):
            with self.subTest(command), Redoubt({"rdb-key-save-delay": "1000000"}) as server:
                c = server.client()
                c.command("DEBUG", "POPULATE", 4096)
                self.assertEqual(self.size(c), 4096)
                c.command(command)
                wait_for(lambda s=server: child_of(s))
                c.command("MSET", "a", 1, "b", 2)
                stats = c.command("DEBUG", "HTSTATS", 0)
                self.assertIn(b"table size: 4096", stats)
                self.assertNotIn(b"rehashing target", stats)
                os.kill(child_of(server), signal.SIGKILL)
                wait_for(lambda s=server: not child_of(s))
                wait_for(lambda c=c: self.size(c) == 8192)


if __name__ == "__main__":
    unittest.main()
