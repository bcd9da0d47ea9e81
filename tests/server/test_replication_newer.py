"""redoubt-level, and replication from masters that are newer than Redis 7.0."""

import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "support")]
from fake_server import FakeServer, crc64  # noqa: E402
from server_under_test import Redoubt, encode, wait_for  # noqa: E402

FAST = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1"}
LEVELS = ("7.0", "8.0", "8.6", "valkey-9.1")
ID = b"5" * 40
LATER_MS = 4102444800000  # the year 2100


def linked(replica):
    return replica.info("replication").get("master_link_status") == "up"


def offset(server):
    return int(server.info("replication")["master_repl_offset"])


def snapshot(version, keys=((b"old", b"data"),)):
    """A snapshot of strings."""
    body = b"REDIS%04d\xfe\x00" % version
    for key, value in keys:
        body += b"\x00" + b"".join(bytes([len(s)]) + s for s in (key, value))
    body += b"\xff"
    return body + crc64(body).to_bytes(8, "little")


def master(version, *commands):
    """A server that sends a snapshot and then these commands. Each connection gets the same."""
    payload = snapshot(version)
    stream = b"".join(encode(*command) for command in commands)

    def answer(args):
        word = args[0].upper()
        if word == b"PING":
            return b"+PONG\r\n"
        if word == b"REPLCONF":
            return b"" if args[1].upper() == b"ACK" else b"+OK\r\n"
        if word == b"PSYNC":
            return (b"+FULLRESYNC %s 0\r\n$%d\r\n" % (ID, len(payload))) + payload + stream
        return b"-ERR unknown\r\n"

    return FakeServer(answer)


def follow(replica, port):
    replica.client().command("REPLICAOF", "127.0.0.1", port)


def syncs(fake):
    return sum(args[0].upper() == b"PSYNC" for args in fake.seen)


def reason(replica):
    return replica.info("replication").get("master_link_down_reason")


class Level(unittest.TestCase):
    """Clients get the commands of one server."""

    HAS = {
        ("HSETEX", "h", "FIELDS", 1, "f", "v"): {"8.0", "8.6", "valkey-9.1"},
        ("HEXPIRE", "h", 100, "FIELDS", 1, "f"): {"8.0", "8.6", "valkey-9.1"},
        ("HGETDEL", "h", "FIELDS", 1, "f"): {"8.0", "8.6", "valkey-9.1"},
        ("VADD", "v", "VALUES", 2, 1, 0, "a"): {"8.0", "8.6"},
        ("MSETEX", 1, "k", "v"): {"8.6", "valkey-9.1"},
        ("DELIFEQ", "k", "v"): {"valkey-9.1"},
        ("XDELEX", "x", "IDS", 1, "1-1"): {"8.6"},
    }

    def test_each_level_has_its_commands(self):
        for level in LEVELS:
            with self.subTest(level=level), Redoubt({"redoubt-level": level}) as server:
                c = server.client()
                for line, levels in self.HAS.items():
                    kind, reply = c.ask(*line)
                    known = not (kind == "-" and reply.startswith(b"ERR unknown command"))
                    self.assertEqual(known, level in levels, (level, line, reply))
                    self.same_everywhere(c, line[0], known)

    def same_everywhere(self, c, name, known):
        """COMMAND, scripts and the rules of users know what clients may send."""
        self.assertEqual(c.command("COMMAND", "INFO", name) != [None], known, name)
        listed = name.lower().encode() in c.command("COMMAND", "LIST")
        self.assertEqual(listed, known, name)
        self.assertEqual(bool(c.command("COMMAND", "DOCS", name)), known, name)
        kind, reply = c.ask("EVAL", "return redis.pcall(ARGV[1])", 0, name)
        unknown = b"Unknown Redis command" in reply if kind == "-" else False
        self.assertNotEqual(unknown, known, (name, reply))
        kind, reply = c.ask("ACL", "SETUSER", "u", "+" + name)
        self.assertEqual(kind == "+", known, (name, reply))

    def test_categories_and_their_description_have_the_commands_of_the_level(self):
        for level, known in (("7.0", False), ("8.0", True)):
            with self.subTest(level=level), Redoubt({"redoubt-level": level}) as server:
                c = server.client()
                self.assertEqual(b"hsetex" in c.command("ACL", "CAT", "hash"), known)
                c.command("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@hash")
                self.assertIn(b"+@hash", c.command("ACL", "LIST")[1])
                self.assertNotIn(b"hsetex", c.command("ACL", "LIST")[1])
                c.command("AUTH", "u", "")
                kind, reply = c.ask("HSETEX", "h", "FIELDS", 1, "f", "v")
                self.assertEqual(kind == ":", known, reply)

    def test_the_level_is_fixed_and_named_in_errors(self):
        with Redoubt({"redoubt-level": "8.0"}) as server:
            c = server.client()
            self.assertEqual(c.command("CONFIG", "GET", "redoubt-level")[1], b"8.0")
            kind, reply = c.ask("CONFIG", "SET", "redoubt-level", "7.0")
            self.assertIn(b"immutable", reply)
        with self.assertRaises(Exception) as caught, Redoubt({"redoubt-level": "9"}):
            pass
        self.assertIn("valkey-9.1", str(caught.exception))

    def test_field_expiry_is_written_as_the_server_of_the_level_does(self):
        for level, magic, version in (("8.0", b"REDIS0012", 12), ("8.6", b"REDIS0012", 12),
                                      ("valkey-9.1", b"VALKEY080", 80)):
            with self.subTest(level=level), Redoubt({"redoubt-level": level}) as server:
                c = server.client()
                c.command("HSET", "h", "f", "v", "g", "w")
                c.command("HPEXPIREAT", "h", LATER_MS, "FIELDS", 1, "f")
                before = c.command("DEBUG", "DIGEST")
                c.command("SAVE")
                with open(server.path("dump.rdb"), "rb") as file:
                    self.assertEqual(file.read(9), magic)
                self.assertEqual(int.from_bytes(c.command("DUMP", "h")[-10:-8], "little"), version)
                c.command("RESTORE", "copy", 0, c.command("DUMP", "h"))
                self.assertEqual(c.command("HPEXPIRETIME", "copy", "FIELDS", 2, "f", "g"),
                                 [LATER_MS, -1])
                c.command("DEL", "copy")
                c.command("DEBUG", "RELOAD")
                self.assertEqual(c.command("DEBUG", "DIGEST"), before)


class Follow(unittest.TestCase):
    """A replica applies what a newer master sends, whatever its own level is."""

    def test_it_applies_the_commands_of_each_level(self):
        for level in LEVELS[1:]:
            with self.subTest(level=level), Redoubt({**FAST, "redoubt-level": level}) as a, \
                    Redoubt(FAST) as b:
                c = a.client()
                c.command("HSET", "before", "f", "v")
                c.command("HPEXPIREAT", "before", LATER_MS, "FIELDS", 1, "f")
                follow(b, a.port)
                wait_for(lambda: linked(b))
                c.command("HSETEX", "h", "PXAT", LATER_MS, "FIELDS", 2, "f", "v", "g", "w")
                c.command("MULTI")
                c.command("HPERSIST", "h", "FIELDS", 1, "g")
                c.command("HGETEX", "h", "PXAT", LATER_MS + 1, "FIELDS", 1, "f")
                c.command("EXEC")
                if level != "8.0":
                    c.command("MSETEX", 2, "k", "1", "l", "2", "PXAT", LATER_MS)
                if level != "valkey-9.1":
                    c.command("VADD", "v", "VALUES", 2, 1, 0, "a")
                c.command("XADD", "x", "1-1", "f", "v")
                c.command("XGROUP", "CREATE", "x", "g", 0)
                c.command("XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">")
                wait_for(lambda: offset(b) == offset(a))
                self.assertEqual(b.client().command("DEBUG", "DIGEST"),
                                 c.command("DEBUG", "DIGEST"))
                self.assertEqual(b.client().command("XINFO", "GROUPS", "x"),
                                 c.command("XINFO", "GROUPS", "x"))
                self.assertTrue(linked(b))
                self.assertEqual(b.client().ask("HSETEX", "h", "FIELDS", 1, "f", "v")[0], "-")

    def test_it_closes_the_link_for_what_it_does_not_know(self):
        """Nothing of the command is applied, and the reason is reported."""
        for commands, words, kept in (
                ([("SET", "a", "1"), ("NOSUCH", "x"), ("SET", "b", "2")],
                 'the command "NOSUCH"', {b"old", b"a"}),
                ([("ARSET", "x", "0", "1"), ("SET", "b", "2")], 'the command "ARSET"', {b"old"}),
                ([("SET", "a", "1", "SOMEHOW"), ("SET", "b", "2")],
                 'a form of the command "SET": syntax error', {b"old"}),
                ([("GET", "a", "b"), ("SET", "b", "2")],
                 'a form of the command "GET": wrong number', {b"old"}),
                ([("MULTI",), ("SET", "a", "1"), ("NOSUCH", "x"), ("EXEC",)],
                 'the command "NOSUCH"', {b"old"}),
                ([("MULTI",), ("SET", "a", "1"), ("SET", "b", "2", "SOMEHOW"), ("EXEC",),
                  ("SET", "c", "1")],
                 'a form of the command "EXEC": syntax error (set)', {b"old", b"a"}),
                ([("LPUSH", "old", "1"), ("SET", "b", "2")],
                 'what changes the data by the command "LPUSH": WRONGTYPE', {b"old"})):
            with self.subTest(commands=commands), master(12, ("SELECT", 0), *commands) as fake, \
                    Redoubt(FAST) as replica:
                follow(replica, fake.port)
                wait_for(lambda: reason(replica) is not None)
                self.assertIn(words, reason(replica))
                self.assertIn(words, replica.log)
                self.assertFalse(linked(replica))
                self.assertEqual(set(replica.client().command("KEYS", "*")), kept)
                time.sleep(2.5)
                self.assertEqual(syncs(fake), 1, "the next full sync is not at once")
                follow(replica, fake.port + 1)
                follow(replica, fake.port)
                wait_for(lambda: syncs(fake) == 2)

    def test_commands_without_data_are_passed_over(self):
        with master(12, ("SELECT", 0), ("CLUSTER", "SYNCSLOTS", "FINISH"), ("SPUBLISH", "c", "m"),
                    ("SET", "b", "2")) as fake, Redoubt(FAST) as replica:
            follow(replica, fake.port)
            c = replica.client()
            wait_for(lambda: c.command("EXISTS", "b") == 1)
            self.assertTrue(linked(replica))

    def test_an_older_master_is_followed_as_redis_server_does(self):
        """It cannot have sent what is newer: an error is logged, and the link stays."""
        with master(10, ("SELECT", 0), ("NOSUCH", "x"), ("SET", "b", "2")) as fake, \
                Redoubt(FAST) as replica:
            follow(replica, fake.port)
            c = replica.client()
            wait_for(lambda: c.command("EXISTS", "b") == 1)
            self.assertTrue(linked(replica))
            self.assertIn("== CRITICAL ==", replica.log)
            self.assertIsNone(reason(replica))

    def test_a_snapshot_that_is_not_supported_is_not_asked_for_every_second(self):
        with master(99) as fake, Redoubt(FAST) as replica:
            c = replica.client()
            c.command("SET", "own", "1")
            follow(replica, fake.port)
            wait_for(lambda: reason(replica) is not None)
            self.assertIn("the snapshot", reason(replica))
            time.sleep(2.5)
            self.assertEqual(syncs(fake), 1)
            self.assertEqual(c.command("GET", "own"), b"1")


class Updates(unittest.TestCase):
    """Commands among the keys of a snapshot of Valkey 9.2."""

    def sync(self, replica, *records):
        body = b"VALKEY081\xfe\x00" + b"".join(records) + b"\xff" + bytes(8)

        def answer(args):
            word = args[0].upper()
            if word == b"PSYNC":
                return b"+FULLRESYNC %s 0\r\n$%d\r\n" % (ID, len(body)) + body
            return {b"PING": b"+PONG\r\n", b"REPLCONF": b"+OK\r\n"}.get(word, b"-ERR unknown\r\n")
        fake = FakeServer(answer).__enter__()
        self.addCleanup(fake.__exit__, None, None, None)
        follow(replica, fake.port)

    KEYS = (b"\x00\x01k\x01v", b"\xf2" + encode("SET", "k", "w"), b"\x00\x01l\x01x",
            b"\xf2" + encode("APPEND", "k", "z"), b"\x00\x01l\x01y",
            b"\xf2" + encode("RPUSH", "m", "1", "2"))

    def test_they_run(self):
        for how in ("disabled", "swapdb"):
            with self.subTest(diskless_load=how), \
                    Redoubt({"repl-diskless-load": how}) as replica:
                replica.client().command("SET", "own", "1")
                self.sync(replica, *self.KEYS)
                wait_for(lambda: linked(replica))
                c = replica.client()
                self.assertEqual(c.command("MGET", "k", "l", "own"), [b"wz", b"y", None])
                self.assertEqual(c.command("LRANGE", "m", 0, -1), [b"1", b"2"])

    def test_one_that_cannot_run_is_the_reason(self):
        with Redoubt() as replica:
            replica.client().command("SET", "own", "1")
            self.sync(replica, b"\xf2" + encode("JSON.SET", "k", "$", "1"))
            wait_for(lambda: reason(replica) is not None)
            self.assertIn("a command among the keys", reason(replica))


if __name__ == "__main__":
    unittest.main()
