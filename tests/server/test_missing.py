"""What this server does not have answers an error at once: in both protocols, alone, in a pipeline
and in a transaction. No command leaves a client waiting without a reply."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import Redoubt, encode  # noqa: E402

MISSING = (
    ["CLIENT", "CACHING", "YES"], ["EVALSHA", "0" * 40, "0"], ["EVALSHA_RO", "0" * 40, "0"],
    ["FCALL", "f", "0"], ["FCALL_RO", "f", "0"],
    ["FUNCTION", "LOAD", "#!lua name=x"], ["FUNCTION", "RESTORE", "x"],
    ["ACL", "LOAD"], ["ACL", "SAVE"],
    ["MODULE", "LOAD", "/x"], ["MODULE", "LOADEX", "/x"], ["MODULE", "UNLOAD", "x"],
    ["FAILOVER"], ["CLUSTER", "INFO"], ["CLUSTER", "SLOTS"], ["ASKING"],
    ["READONLY"], ["READWRITE"], ["PFSELFTEST", "x"], ["NOPE"],
)

# These close the connection, end the server, answer with more than one reply or none by design.
APART = {"shutdown", "debug", "monitor", "quit", "client|reply", "client|pause", "subscribe",
         "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe", "sync", "psync",
         "replconf", "replicaof", "slaveof"}


def every_command(client):
    def walk(items):
        for item in items:
            name, arity = item[0], item[1]
            yield name.decode(), arity
            yield from walk(item[9])
    return walk(client.command("COMMAND"))


class Missing(unittest.TestCase):
    def test_an_error_comes_at_once_in_both_protocols(self):
        with Redoubt({"enable-module-command": "yes"}) as server:
            for proto in (2, 3):
                for args in MISSING:
                    with self.subTest(f"{args} in RESP{proto}"):
                        client = server.client(proto)
                        self.assertEqual(client.ask(*args)[0], "-")
                        self.assertEqual(client.ask("PING"), ("+", b"PONG"))

    def test_an_error_comes_in_a_pipeline_that_begins_with_hello(self):
        with Redoubt({"enable-module-command": "yes"}) as server:
            for args in MISSING:
                with self.subTest(args):
                    client = server.client()
                    client.send_raw(encode("HELLO", 3) + encode(*args) + encode("GET", "k") +
                                    encode("PING"))
                    self.assertEqual([client.read()[0] for _ in range(4)], ["%", "-", "_", "+"])

    def test_an_error_comes_in_a_transaction(self):
        with Redoubt({"enable-module-command": "yes"}) as server:
            for proto in (2, 3):
                for args in MISSING:
                    with self.subTest(f"{args} in RESP{proto}"):
                        client = server.client(proto)
                        client.command("MULTI")
                        queued = client.ask(*args)
                        client.ask("PING")
                        reply = client.ask("EXEC")
                        if queued[0] == "+":
                            self.assertEqual(reply[1][0][0], "-")
                        else:
                            self.assertEqual(reply[0], "-")

    def test_no_command_is_left_without_a_reply(self):
        with Redoubt({"enable-module-command": "yes"}) as server:
            n = 0
            for name, arity in every_command(server.client()):
                words = name.split("|")
                if name in APART or words[0] in APART:
                    continue
                n += 1
                for proto in (2, 3):
                    for more in (0, 1, 2) if arity < 0 else (0,):
                        args = words + ["1"] * (abs(arity) + more - len(words))
                        with self.subTest(f"{args} in RESP{proto}"):
                            client = server.client(proto)
                            client.ask(*args)  # WAIT and BLPOP wait for a second at most
                            client.close()
                            server.clients.remove(client)
            self.assertGreater(n, 300)


if __name__ == "__main__":
    unittest.main()
