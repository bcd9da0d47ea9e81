"""What comes from outside cannot do anything to the terminal on which the log is read."""

import struct
import unittest

from server_under_test import Redoubt, ServerDied, wait_for

# Escape sequences of 7 and 8 bits, an end of line, marks of direction, what is not UTF-8.
EVIL = b"\x1b[31m|\xc2\x9b1m|\x9b1m|\r\n1:M forged|\xe2\x80\xae|\xe2\x81\xa6|\x7f|\xff|\xed\xa0\x80"
GOOD = "grün 键".encode()


def string(data):
    return bytes([len(data)]) + data


def damaged_snapshot(key):
    """A listpack that is too long, under this name."""
    listpack = struct.pack("<IH", 99, 2) + b"\x81a\x02\x81b\x02\xff"
    return (b"REDIS0010" + b"\xfa" + string(b"redis-ver") + string(key) + b"\xfe\x00\x10" +
            string(key) + string(listpack) + b"\xff" + bytes(8))


class Log(unittest.TestCase):
    def expect_harmless(self, server):
        with open(server.path("stdout"), "rb") as f:
            data = f.read()
        self.assertEqual([b for b in data if b < 0x20 and b not in b"\n\t" or b == 0x7f], [])
        text = data.decode()  # nothing but UTF-8
        harmful = [c for c in text
                   if 0x80 <= ord(c) < 0xa0 or c in "\u200e\u200f\u061c\u2028\u2029" or
                   "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069"]
        self.assertEqual(harmful, [])
        self.assertNotIn("\n1:M forged", text)
        return text

    def test_what_clients_send(self):
        with Redoubt({"loglevel": "debug"}) as server:
            server.client().command("DEBUG", "LOG", EVIL + GOOD)
            for byte in (b"\x1b", b"\x9b", b"\n"):
                c = server.client()
                c.send_raw(b"*2\r\n" + byte + b"1\r\nx\r\n")
                self.assertTrue(c.closed())
            c = server.client()
            c.send_raw(EVIL[:-1] + b'"' + b"\r\n")
            wait_for(lambda: server.log.count("Protocol error") >= 3)
            text = self.expect_harmless(server)
            self.assertIn("\\x1b[31m|\\xc2\\x9b1m|\\x9b1m|\\x0d\\x0a1:M forged|", text)
            self.assertIn("|\\xe2\\x80\\xae|", text)
            self.assertIn(GOOD.decode(), text)

    def test_what_files_hold(self):
        for config in ({}, {"loglevel": "debug"}):
            with Redoubt(config) as server:
                server.kill()
                with open(server.path("dump.rdb"), "wb") as f:
                    f.write(damaged_snapshot(EVIL))
                with self.assertRaises(ServerDied):
                    server.start()
                self.assertIn("Loading RDB produced by version \\x1b[31m",
                              self.expect_harmless(server))

    def test_what_logs_hold(self):
        with Redoubt({"appendonly": "yes"}) as server:
            server.kill()
            with open(server.path("appendonlydir", "appendonly.aof.1.incr.aof"), "ab") as f:
                f.write(b"*1\r\n$%d\r\n%s\r\n" % (len(EVIL), EVIL))
            with self.assertRaises(ServerDied):
                server.start()
            self.expect_harmless(server)


if __name__ == "__main__":
    unittest.main()
