"""What servers say about replication: log lines and errors in the words of redis-server, and what a
replica does about masters that send something strange."""

import os
import re
import socket
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_server import FakeServer  # noqa: E402
from server_under_test import Redis, Redoubt, encode, of_reference, wait_for  # noqa: E402
from test_replication import FAST, follow, linked, servers, wait_same  # noqa: E402

ID = b"a" * 40
EMPTY_RDB = b"REDIS0010\xff" + bytes(8)
FULL = b"+FULLRESYNC %b 0\r\n" % ID
SNAPSHOT = FULL + b"$%d\r\n%b" % (len(EMPTY_RDB), EMPTY_RDB)


class Master(FakeServer):
    """Answers each command of a replica with what is given for it, else with OK; None closes the
    connection."""

    def __init__(self, **answers):
        super().__init__(lambda args: answers.get(args[0].decode(),
                                                  b"" if b"ACK" in args else b"+OK\r\n"))

    def requests(self):
        return [args for args in self.seen if args[0] in (b"PSYNC", b"SYNC")]


ANSWERS = [
    (dict(PING=b"-ERR foo\r\n"), "Error reply to PING from master: '-ERR foo'"),
    (dict(PING=None), "Master did not respond to command during SYNC handshake"),
    (dict(PSYNC=b"-LOADING x\r\n"),
     "Master is currently unable to PSYNC but should be in the future: -LOADING x"),
    (dict(PSYNC=b"+HELLO\r\n"), "Unexpected reply to PSYNC from master: +HELLO"),
    (dict(PSYNC=b"+FULLRESYNC abc\r\n"), "Master replied with wrong +FULLRESYNC syntax."),
    (dict(PSYNC=None), "Master did not reply to PSYNC, will try later"),
    (dict(PSYNC=b"-ERR x\r\n"),
     "Master does not support PSYNC or is in error state (reply: -ERR x)"),
    (dict(PSYNC=FULL + b"-ERR BGSAVE failed\r\n"),
     "MASTER aborted replication with an error: ERR BGSAVE failed"),
    (dict(PSYNC=FULL + b"xyz\r\n"),
     "Bad protocol from MASTER, the first byte is not '$' (we received 'xyz')"),
]


class Masters(unittest.TestCase):
    def test_what_a_master_answers_is_logged_in_the_words_of_redis(self):
        for kind in (Redoubt, Redis):
            with kind() as replica:
                for answers, line in ANSWERS:
                    with self.subTest(kind=kind.name, line=line), Master(**answers) as master:
                        replica.client().command("REPLICAOF", "127.0.0.1", master.port)
                        wait_for(lambda: line in replica.log)

    def test_after_a_wrong_stream_everything_is_copied_again(self):
        for kind in (Redoubt, Redis):
            for stream, line in ((b"SET a 1\r\n", "Receiving inline protocol from master"),
                                 (b"*3\r\n$x\r\n", "Protocol error (")):
                stream = SNAPSHOT + encode("SELECT", 0) + stream
                with self.subTest(kind=kind.name, line=line), kind() as replica, \
                        Master(PSYNC=stream) as master:
                    c = replica.client()
                    c.command("REPLICAOF", "127.0.0.1", master.port)
                    wait_for(lambda: len(master.requests()) > 1)
                    self.assertEqual(master.requests()[1], [b"PSYNC", b"?", b"-1"])
                    self.assertIn(line, replica.log)
                    self.assertEqual(c.command("EXISTS", "a"), 0)

    def test_the_stream_needs_the_setting_for_debug(self):
        stream = [("SELECT", 0), ("DEBUG", "SEGFAULT"), ("SET", "end", 1)]
        stream = SNAPSHOT + b"".join(encode(*words) for words in stream)
        for kind in (Redoubt, Redis):
            with self.subTest(kind=kind.name), Master(PSYNC=stream) as master, \
                    kind({"enable-debug-command": "no"}) as replica:
                c = replica.client()
                c.command("REPLICAOF", "127.0.0.1", master.port)
                wait_for(lambda: c.command("EXISTS", "end"))
                self.assertIn("DEBUG command not allowed", replica.log)

    def test_the_stream_changes_no_roles(self):
        stream = [("SELECT", 0), ("REPLICAOF", "NO", "ONE"), ("REPLICAOF", "127.0.0.1", 1),
                  ("FAILOVER",), ("PSYNC", "?", -1), ("MULTI",), ("REPLICAOF", "NO", "ONE"),
                  ("EXEC",), ("SET", "end", 1)]
        stream = SNAPSHOT + b"".join(encode(*words) for words in stream)
        with Master(PSYNC=stream) as master, Redoubt() as replica:
            c = replica.client()
            c.command("REPLICAOF", "127.0.0.1", master.port)
            wait_for(lambda: c.command("EXISTS", "end"))
            self.assertEqual(c.command("ROLE")[:4], [b"slave", b"127.0.0.1", master.port,
                                                     b"connected"])
            self.assertEqual(replica.info("replication")["connected_slaves"], "0")


class Replicas(unittest.TestCase):
    maxDiff = None

    def talk(self, server, *commands, until):
        """The answers fit into the buffers of the socket. They are read before it is closed, so
        that the connection ends in order."""
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            for words in commands:
                s.sendall(encode(*words))
                if words[0] == "REPLCONF":
                    s.recv(100)
            wait_for(lambda: until in server.log)
            wait_for(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0")
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        wait_for(lambda: server.info("replication")["connected_slaves"] == "0")

    def said(self, kind, diskless):
        with kind({**FAST, "repl-diskless-sync": diskless, "enable-debug-command": "yes"}) as s:
            head = (("REPLCONF", "listening-port", 7777), ("REPLCONF", "capa", "eof"))
            self.talk(s, *head, ("PSYNC", "?", -1), until="Synchronization with replica")
            self.talk(s, *head, ("REPLCONF", "rdb-only", 1), ("PSYNC", "?", -1),
                      until="RDB transfer completed, rdb only replica")
            s.client().command("DEBUG", "CHANGE-REPL-ID")
            lines = []
            for line in s.log.splitlines():
                text = re.sub(r"^\S+ \d+ \S+ \d+ \S+ ", "", line)
                text = re.sub(r"\b[0-9a-f]{40}\b", "ID", text)
                if re.search("eplica|SYNC|Diskless", text) and "overcommit" not in text:
                    lines.append(text)
            return sorted(lines)

    def test_the_syncs_of_replicas_are_logged_in_the_words_of_redis(self):
        for diskless in ("no", "yes"):
            self.assertEqual("\n".join(self.said(Redoubt, diskless)),
                             "\n".join(of_reference(diskless, lambda _, diskless=diskless:
                                                    self.said(Redis, diskless))))

    def test_a_file_for_replicas_is_removed_if_the_settings_say_so(self):
        config = {"repl-diskless-sync": "no", "rdb-del-sync-files": "yes", "save": ""}
        for kind in (Redoubt, Redis):
            with self.subTest(kind.name), servers(kind, Redoubt, config=config) as nodes:
                master, replica = nodes
                follow(replica, master)
                wait_same(master, replica)
                wait_for(lambda: "Removing the RDB file used to feed replicas in a "
                         "persistence-less instance" in master.log)
                wait_for(lambda: not os.path.exists(master.path("dump.rdb")))

    def test_a_replica_may_announce_a_long_host_name(self):
        name = "replica." * 30
        with servers(Redoubt, Redoubt) as (master, replica):
            follow(replica, master, replica_announce_ip=name)
            wait_for(lambda: linked(replica) and "state=online" in
                     master.info("replication")["slave0"])
            self.assertIn(f"ip={name},", master.info("replication")["slave0"])
            self.assertEqual(master.client().command("ROLE")[2][0][0].decode(), name)


if __name__ == "__main__":
    unittest.main()
