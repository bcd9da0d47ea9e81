"""Damaged payloads and snapshots: what is refused, and the words that programs look for in logs."""

import os
import shutil
import struct
import unittest

from server_under_test import Redis, Redoubt, ReplyError, wait_for

KINDS = [Redoubt, Redis]


def string(data):
    return bytes([len(data)]) + data


def payload(number, body):
    return bytes([number]) + body + struct.pack("<HQ", 10, 0)


def listpack(count, *entries):
    """Of short strings."""
    body = b"".join(bytes([0x80 | len(e)]) + e + bytes([1 + len(e)]) for e in entries)
    return struct.pack("<IH", 7 + len(body), count) + body + b"\xff"


def ziplist(*entries):
    """Of short strings."""
    body, before = b"", 0
    for e in entries:
        body += bytes([before, len(e)]) + e
        before = 2 + len(e)
    last = 10 + len(body) - before
    return struct.pack("<IIH", 11 + len(body), last, len(entries)) + body + b"\xff"


def stream(last, *ids, deleted=()):
    """A stream of small IDs in one node, each entry with the field f and the value v."""
    def ints(*numbers):
        return b"".join(bytes([n & 0x7f, 1]) if n >= 0 else
                        bytes([0xc0 | (n >> 8 & 0x1f), n & 0xff, 2]) for n in numbers)

    live = len(ids) - len(deleted)
    body = ints(live, len(deleted), 1) + b"\x81f\x02" + ints(0)
    for ms, seq in ids:
        flags = 3 if (ms, seq) in deleted else 2
        body += ints(flags, ms - ids[0][0], seq - ids[0][1]) + b"\x81v\x02" + ints(4)
    node = struct.pack("<IH", 7 + len(body), 5 + 5 * len(ids)) + body + b"\xff"
    return payload(19, b"\x01" + string(struct.pack(">QQ", *ids[0])) + string(node) +
                   bytes([live, *last, *ids[0], 0, 0, len(ids), 0]))


TOO_LONG = struct.pack("<IH", 99, 2) + listpack(2, b"a", b"b")[6:]
ZIPLIST = b"\x0b\x00\x00\x00\x0a\x00\x00\x00\x05\x00\xff"

# What is restored, and what the log says of it.
REFUSED = [
    (payload(16, string(TOO_LONG)), "Hash listpack integrity check failed."),
    (payload(16, string(listpack(1, b"a"))), None),
    (payload(17, string(TOO_LONG)), "Zset listpack integrity check failed."),
    (payload(11, string(struct.pack("<IIh", 2, 9, 1))), "Intset integrity check failed."),
    (payload(18, b"\x01\x02" + string(TOO_LONG)), "Listpack integrity check failed."),
    (payload(18, b"\x01\x05" + string(listpack(1, b"a"))), "Quicklist integrity check failed."),
    (payload(14, b"\x01" + string(ZIPLIST)), "Ziplist integrity check failed."),
    (payload(13, string(ZIPLIST)), "Hash ziplist integrity check failed."),
    (payload(13, string(ziplist(b"a", b"1", b"a", b"2"))),
     "Hash ziplist integrity check failed"),
    (payload(9, string(b"\x00\xff")), "Zipmap integrity check failed."),
    (payload(9, string(b"\x02\x01a\x09")), "Zipmap integrity check failed."),
    (payload(15, b"\x00\x00\x00\x00\x01" + string(b"group") + b"\x00\x00\x00\x02" +
             2 * (string(b"name") + bytes(8) + b"\x00")), "Duplicate stream consumer detected"),
    (payload(18, b"\x01\x01\x00"), None),
    (payload(4, b"\x00"), None),
    (payload(1, b"\x00"), None),
    (payload(99, b"\x01a"), None),
]
TWICE = listpack(4, b"a", b"b", b"a", b"b")


class Restore(unittest.TestCase):
    def test_what_is_damaged_is_refused_and_the_log_says_why(self):
        for kind in KINDS:
            with kind({"loglevel": "verbose"}) as server:
                c = server.client()
                c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
                for data, words in REFUSED:
                    with self.subTest(server.name, words=words, data=data):
                        before = len(server.log)
                        with self.assertRaisesRegex(ReplyError, "^ERR Bad data format$"):
                            c.command("RESTORE", "k", 0, data)
                        self.assertEqual(c.command("EXISTS", "k"), 0)
                        if words is not None:
                            wait_for(lambda w=words, b=before, s=server: w in s.log[b:])

    def test_members_that_come_twice_are_always_refused(self):
        # redis-server looks for them where it is asked to.
        for kind in KINDS:
            for value, taken in [("no", kind is Redis), ("yes", False), ("clients", False)]:
                with self.subTest(kind.name, sanitize=value):
                    with kind({"sanitize-dump-payload": value}) as server:
                        c = server.client()
                        c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
                        answer = c.ask("RESTORE", "k", 0, payload(16, string(TWICE)))
                        self.assertEqual(answer[0], "+" if taken else "-")

    def test_members_that_come_twice_are_named_in_the_log(self):
        with Redoubt({"loglevel": "verbose"}) as server:
            c = server.client()
            c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
            self.assertEqual(c.ask("RESTORE", "k", 0, payload(16, string(TWICE)))[0], "-")
            wait_for(lambda: "listpack with dup elements" in server.log)


    def test_a_checksum_of_zero_is_refused(self):
        for kind in KINDS:
            with self.subTest(kind.name), kind() as server:
                c = server.client()
                c.command("SET", "k", "v")
                data = c.command("DUMP", "k")
                for wrong in (data[:-8] + bytes(8), data[:-1] + bytes([data[-1] ^ 1])):
                    self.assertEqual(c.ask("RESTORE", "l", 0, wrong),
                                     ("-", b"ERR DUMP payload version or checksum are wrong"))
                self.assertEqual(c.command("RESTORE", "l", 0, data), b"OK")

    def test_what_was_taken_without_its_checksum_is_in_the_log_with_it(self):
        with Redoubt({"appendonly": "yes"}) as server:
            c = server.client()
            c.command("SET", "k", "v")
            data = c.command("DUMP", "k")
            c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
            c.command("RESTORE", "zero", 0, data[:-8] + bytes(8))
            c.command("RESTORE", "wrong", 5000000, data[:-8] + b"wrong..." )
            server.kill()
            server.start()
            c = server.client()
            self.assertEqual(c.command("MGET", "zero", "wrong"), [b"v", b"v"])
            self.assertGreater(c.command("PTTL", "wrong"), 0)

    def test_an_intset_that_is_not_in_order_is_always_refused(self):
        for numbers in ((3, 0, 3), (1, 1), (2, 1)):
            ints = b"".join(struct.pack("<h", n) for n in numbers)
            value = string(struct.pack("<II", 2, len(numbers)) + ints)
            for sanitize in ("no", "yes"):
                with Redoubt({"sanitize-dump-payload": sanitize}) as server:
                    c = server.client()
                    c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
                    self.assertEqual(c.ask("RESTORE", "k", 0, payload(11, value)),
                                     ("-", b"ERR Bad data format"))

    def test_a_stream_whose_entries_are_not_in_order_is_always_refused(self):
        for ids in (((5, 5), (5, 5)), ((5, 5), (7, 0), (6, 1)), ((5, 5), (5, 4))):
            for sanitize in ("no", "yes"):
                with Redoubt({"sanitize-dump-payload": sanitize}) as server:
                    c = server.client()
                    c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
                    self.assertEqual(c.ask("RESTORE", "k", 0, stream((9, 9), *ids)),
                                     ("-", b"ERR Bad data format"))

    def test_deleted_entries_may_be_out_of_order(self):
        """XDEL and XSETID of Redis 5 and 6 leave them so."""
        for kind in KINDS:
            with kind() as server:
                c = server.client()
                c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
                c.command("RESTORE", "k", 0,
                          stream((3, 0), (1, 0), (9, 0), (3, 0), deleted=((9, 0),)))
                self.assertEqual([e[0] for e in c.command("XRANGE", "k", "-", "+")],
                                 [b"1-0", b"3-0"])
                c.command("XADD", "k", "4-0", "f", "v")
                digest = c.command("DEBUG", "DIGEST")
                c.command("DEBUG", "RELOAD")
                self.assertEqual(c.command("DEBUG", "DIGEST"), digest)

    def test_an_entry_is_never_added_before_another(self):
        """The last ID of the stream is lower than that of its last entry."""
        with Redoubt({"appendonly": "yes", "stream-node-max-entries": "2"}) as server:
            c = server.client()
            c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
            c.command("RESTORE", "k", 0, stream((1, 0), (5, 5), (6, 6)))
            self.assertIn(b"equal or smaller", c.ask("XADD", "k", "5-5", "f", "w")[1])
            self.assertEqual(c.command("XADD", "k", "6-*", "f", "w"), b"6-7")
            entries = c.command("XRANGE", "k", "-", "+")
            self.assertEqual([e[0] for e in entries], [b"5-5", b"6-6", b"6-7"])
            server.kill()
            server.config["stream-node-max-entries"] = "100"
            server.start()
            self.assertEqual(server.client().command("XRANGE", "k", "-", "+"), entries)


def snapshot(body):
    return b"REDIS0010" + body + b"\xff" + bytes(8)


class AtStart(unittest.TestCase):
    FILES = [
        (snapshot(b"\xfe\x00\x10\x01a" + string(TOO_LONG)), "integrity check failed"),
        (snapshot(b"\xfe\x00\x10\x01a" + string(TOO_LONG)), "Terminating server after rdb file"),
        (snapshot(b"\xfe\x00\x0d\x01a" + string(ZIPLIST[:-1] + b"\x01")),
         "integrity check failed"),
        (snapshot(b"\xfe\x00\x63\x01a\x01b"), "-> Unknown RDB encoding type 99"),
        (snapshot(b"\xfe\x40\x99\x00\x01a\x01b"), "to handle more than 16 databases"),
        (snapshot(b"")[:-8] + b"\x01" * 8, "-> RDB CRC error"),
        (snapshot(b"")[:-8] + b"\x01" * 8, "but got (101010101010101). Aborting now."),
        (b"REDIS0077" + snapshot(b"")[9:], "Can't handle RDB format version 77"),
        (b"REDIS0010\xfa\x09redis", "-> Unexpected EOF reading RDB file"),
    ]

    def test_the_log_says_what_is_wrong_with_the_snapshot_and_the_server_ends(self):
        for kind in KINDS:
            for data, words in self.FILES:
                with self.subTest(kind.name, words=words):
                    with kind() as server:
                        server.kill()
                        with open(server.path("dump.rdb"), "wb") as f:
                            f.write(data)
                        server.wait = False
                        server.start()
                        self.assertNotEqual(server.wait_end(), 0)
                        self.assertIn(words, server.log)

    def test_the_log_says_which_key_it_is_and_what_can_be_done(self):
        with Redoubt() as server:
            server.kill()
            with open(server.path("dump.rdb"), "wb") as f:
                f.write(snapshot(b"\xfe\x00\x10\x03bad" + string(TOO_LONG)))
            server.wait = False
            server.start()
            server.wait_end()
            self.assertIn('hash "bad" in db 0', server.log)
            self.assertRegex(server.log, "integrity check failed at byte [0-9]+ of the packed")
            self.assertIn("'redoubt check-rdb dump.rdb'", server.log)

    def refuses_to_start(self, server, words):
        server.wait = False
        server.start()
        self.assertNotEqual(server.wait_end(), 0)
        self.assertIn(words, server.log)

    def test_only_regular_files_in_the_folder_of_the_log_are_read(self):
        for kind, words in (("link", "symbolic link"), ("fifo", "not a regular file")):
            for name in ("appendonly.aof.1.base.rdb", "appendonly.aof.1.incr.aof",
                         "appendonly.aof.manifest"):
                with self.subTest(kind, name=name), Redoubt({"appendonly": "yes"}) as server:
                    server.client().command("SET", "k", "v")
                    server.kill()
                    path = server.path("appendonlydir", name)
                    os.rename(path, server.path("moved"))
                    if kind == "link":
                        os.symlink(server.path("moved"), path)
                    else:
                        os.mkfifo(path)
                    self.refuses_to_start(server, words)
                    self.assertRegex(server.log, f"{name}.*{words}")

    def test_a_link_to_an_old_log_is_refused_and_stays(self):
        with Redoubt({"appendonly": "yes"}) as server:
            server.kill()
            shutil.rmtree(server.path("appendonlydir"))
            with open(server.path("moved"), "wb") as f:
                f.write(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")
            os.symlink("moved", server.path("appendonly.aof"))
            self.refuses_to_start(server, "is a symbolic link")
            os.rename(server.path("moved"), server.path("appendonly.aof"))
            server.wait = True
            server.start()
            self.assertEqual(server.client().command("GET", "k"), b"v")
            os.symlink("nothing", server.path("appendonly.aof"))
            server.kill()
            server.start()
            self.assertEqual(server.client().command("GET", "k"), b"v")


if __name__ == "__main__":
    unittest.main()
