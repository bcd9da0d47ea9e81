"""What connects, speaks and waits: redoubt-server beside redis-server, byte for byte."""

import contextlib
import os
import socket
import struct
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import Redis, Redoubt, encode, pair, wait_for  # noqa: E402


def bytes_after(client, data, end=b"", seconds=600):
    """What comes back for these bytes, until the connection is closed or `end` was seen."""
    client.send_raw(data)
    client.socket.settimeout(seconds)
    got = b""
    try:
        while not (end and got.endswith(end)):
            more = client.socket.recv(65536)
            if not more:
                return got + b"<closed>"
            got += more
    except (ConnectionError, TimeoutError) as e:
        return got + type(e).__name__.encode()
    return got


class Beside(unittest.TestCase):
    """Both servers receive the same commands and must return the same bytes."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.servers = cls.stack.enter_context(pair())

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def both(self, act):
        ours, theirs = (act(server) for server in self.servers)
        self.assertEqual(ours, theirs)
        return ours

    def raw(self, data, end=b"+PONG\r\n"):
        return self.both(lambda server: bytes_after(server.client(), data, end))

    def test_protocol_errors_are_reported_and_close_the_connection(self):
        for data in (b"*x\r\n", b"*1\r\nPING\r\n", b"*1\r\n$x\r\n", b"*1\r\n$-1\r\n",
                     b"*1\r\n$600000000\r\n", b"*2147483648\r\n", b"SET \"a\r\n",
                     b"*" + b"1" * 70000, b"x" * 70000, b"*1\r\n$" + b"1" * 70000):
            with self.subTest(data[:20]):
                self.assertTrue(self.raw(data, b"").endswith(b"<closed>"))

    def test_what_stood_in_front_of_a_protocol_error_is_answered(self):
        got = self.raw(b"PING\r\n*1\r\n$4\r\nECHO\r\nset a 1\r\n*x\r\nPING\r\n", b"")
        self.assertTrue(got.startswith(b"+PONG\r\n-ERR wrong number"))

    def test_a_client_that_sends_after_a_protocol_error_gets_all_replies(self):
        def act(server):
            server.client().command("SET", "large", "v" * (8 << 20))
            client = server.client()
            client.send_raw(b"GET large\r\n*x\r\n")
            time.sleep(0.2)
            client.send_raw(b"PING\r\n")
            return bytes_after(client, b"PING\r\n")

        got = self.both(act)
        self.assertEqual((len(got) > 8 << 20, got[-8:]), (True, b"<closed>"))

    def test_a_client_that_leaves_unread_replies_after_a_protocol_error_is_freed(self):
        def act(server):
            control = server.client()
            control.command("SET", "large", "v" * (8 << 20))
            client = server.client()
            client.send_raw(b"CLIENT SETNAME goes\r\nGET large\r\n*x\r\n")
            wait_for(lambda: b"name=goes" in control.command("CLIENT", "LIST"))
            client.close()
            wait_for(lambda: b"name=goes" not in control.command("CLIENT", "LIST"))

        self.both(act)

    def test_lines_and_arrays_may_be_mixed(self):
        self.raw(b"\r\n*0\r\n*-1\r\n  \r\nset k \"a\\x00b\"\r\nget k\n" + encode("APPEND", "k", "c")
                 + b"get 'k'\r\nPING\r\n")

    def test_unknown_commands_are_quoted_as_servers_do(self):
        long = "x" * 300
        for argv in (["nosuch"], ["nosuch", "a", "b"], ["nosuch", long, long], [long, "a"],
                     ["nosuch", "\r\n\x01"], ["config", "nosuch"], ["config|get", "x"], [""],
                     ["CLIENT"], ["object", "x" * 200], ["get"], ["get", "a", "b"], ["XINFO"]):
            with self.subTest(argv[0][:20]):
                self.raw(encode(*argv) + encode("PING"))

    def test_hello_speaks_of_the_same_server(self):
        for line in ("HELLO", "HELLO 3", "HELLO 2", "HELLO 4", "HELLO x", "HELLO 3 AUTH a",
                     "HELLO 3 AUTH default x", "HELLO 3 AUTH unknown x", "HELLO 2 SETNAME a\x01",
                     "HELLO 3 SETNAME ok", "HELLO 3 NOSUCH"):
            with self.subTest(line):
                self.both(lambda s, line=line: mask_id(s.client().ask(*line.split())))

    def test_a_transaction_fails_where_a_command_was_refused(self):
        for queued in (["SET", "a"], ["NOSUCH"], ["WATCH", "a"], ["SUBSCRIBE", "a"],
                       ["SET", "a", 1]):
            with self.subTest(queued):
                last, end = ["ECHO", "the end"], b"$7\r\nthe end\r\n"
                if queued[0] == "SUBSCRIBE":  # after it, PING alone is allowed
                    last, end = ["PING"], b"$4\r\npong\r\n$0\r\n\r\n"
                self.raw(b"".join(encode(*argv) for argv in
                                  (["MULTI"], queued, ["PING"], ["EXEC"], ["EXEC"], last)), end)

    def test_watched_keys(self):
        def act(server):
            a, b = server.client(), server.client()
            out = [a.ask("WATCH", "w"), b.ask("SET", "w", 1), a.ask("MULTI"),
                   a.ask("SET", "w", 2), a.ask("EXEC"), a.ask("WATCH", "w"), a.ask("MULTI"),
                   a.ask("INCR", "w"), a.ask("EXEC"), a.ask("GET", "w")]
            return out
        self.both(act)

    def test_blocked_clients_are_served_in_order_of_arrival(self):
        def act(server):
            first, second, pusher = server.client(), server.client(3), server.client()
            first.send("BLPOP", "q", "r", 0)
            wait_for(lambda: server.info("clients")["blocked_clients"] == "1")
            second.send("BLMOVE", "q", "r", "LEFT", "RIGHT", 0)
            wait_for(lambda: server.info("clients")["blocked_clients"] == "2")
            out = [pusher.ask("RPUSH", "q", "a", "b"), first.read(), second.read()]
            return out + [pusher.ask("LRANGE", "r", 0, -1), pusher.ask("DEL", "r")]
        self.both(act)

    def test_waiting_ends_in_time(self):
        def act(server):
            c, began = server.client(), time.monotonic()
            out = c.ask("BLPOP", "none", 0.2)
            took = time.monotonic() - began
            return out, 0.15 < server.measured(lambda: took) < 60
        self.assertTrue(self.both(act)[1])

    def test_what_was_sent_after_a_command_that_waits_is_run_afterwards(self):
        def act(server):
            c, other = server.client(), server.client()
            c.send_raw(encode("BLPOP", "p", 0) + encode("PING") + encode("INCR", "after"))
            time.sleep(0.1)
            out = [c.nothing(0.1), other.ask("LPUSH", "p", "x"), c.read(), c.read(), c.read()]
            other.ask("DEL", "after")
            return out
        self.both(act)

    def test_a_client_that_goes_while_it_waits_is_forgotten(self):
        def act(server):
            c, other = server.client(), server.client()
            c.send("BLPOP", "gone", 0)
            wait_for(lambda: server.info("clients")["blocked_clients"] == "1")
            c.close()
            wait_for(lambda: server.info("clients")["blocked_clients"] == "0")
            return other.ask("RPUSH", "gone", "x"), other.ask("DEL", "gone")
        self.both(act)

    def test_large_values_go_through(self):
        def act(server):
            c = server.client()
            value = bytes(range(256)) * (80 << 10)
            return [c.ask("SET", "big", value), c.ask("GET", "big") == ("$", value),
                    c.ask("STRLEN", "big"), c.ask("DEL", "big")]
        self.both(act)

    def test_a_pipeline_of_many_commands(self):
        def act(server):
            c = server.client()
            data = b"".join(encode("SET", f"p{i}", i) + encode("GET", f"p{i}")
                            for i in range(20000))
            sender = threading.Thread(target=c.send_raw, args=(data,))
            sender.start()
            out = [c.read() for _ in range(40000)]
            sender.join()
            c.ask("FLUSHALL")
            return out
        self.both(act)

    def test_quit_and_reset(self):
        self.assertTrue(self.raw(b"QUIT\r\nPING\r\n", b"").endswith(b"+OK\r\n<closed>"))
        self.raw(b"MULTI\r\nRESET\r\nEXEC\r\nSELECT 3\r\nRESET\r\nHELLO 3\r\nRESET\r\nGET none\r\n"
                 b"PING\r\n".replace(b"HELLO 3\r\n", b""))

    def test_client_reply_is_obeyed(self):
        self.raw(b"CLIENT REPLY SKIP\r\nPING\r\nPING\r\n")
        self.raw(b"CLIENT REPLY OFF\r\nPING\r\nSET a 1\r\nCLIENT REPLY ON\r\nPING\r\n")


def mask_id(reply):
    """HELLO without the number of the client."""
    kind, content = reply
    if kind == "%":
        return kind, [pair for pair in content if pair[0] != ("$", b"id")]
    if kind == "*":
        at = content.index(("$", b"id"))
        return kind, content[:at] + content[at + 2:]
    return reply


class Transactions(unittest.TestCase):
    """Commands that change what their client may do or gets, inside a transaction."""

    OK = ("+", b"OK")
    CASES = (  # the commands, what comes after the first line of EXEC's answer
        ([("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"), ("SET", "k", 1)], [(":", 1), None]),
        ([("ACL", "DELUSER", "u"), ("SET", "k", 1)], [(":", 1), None]),
        ([("ECHO", "a"), ("CLIENT", "REPLY", "OFF"), ("SET", "k", 1)], [("$", b"a"), OK]),
        ([("MONITOR",), ("SET", "k", 1)],
         [("-", b"ERR MONITOR isn't allowed for DENY BLOCKING client"), OK, OK]),
    )

    def check(self, server, words, replies):
        c = server.client()
        c.command("ACL", "SETUSER", "u", "on", "nopass", "+@all", "~*", "&*")
        c.command("AUTH", "u", "x")
        every = [("MULTI",), *words, ("EXEC",), ("CLIENT", "REPLY", "ON")]
        c.send_raw(b"".join(encode(*one) for one in every))
        queued = [("+", b"QUEUED")] * len(words)
        self.assertEqual([c.read() for _ in range(len(words) + 1)], [self.OK, *queued])
        self.assertEqual(c._line(), b"*%d" % len(words))
        for reply in replies:
            if reply is not None:
                self.assertEqual(c.read(), reply)
            else:
                self.assertTrue(c.closed())
        self.assertEqual(c.buf, b"")
        wait_for(lambda: server.client().command("EXISTS", "k") == 1)

    def test_what_follows_runs_and_is_answered_as_on_redis_server(self):
        for kind in (Redoubt, Redis):
            for words, replies in self.CASES:
                with self.subTest(words), kind() as server:
                    self.check(server, words, replies)


class Alone(unittest.TestCase):
    def test_a_password_is_asked_for(self):
        with Redoubt({"requirepass": "secret"}) as server:
            c = server.client()
            self.assertIn(b"NOAUTH", c.ask("GET", "k")[1])
            self.assertIn(b"WRONGPASS", c.ask("AUTH", "secreT")[1])
            self.assertIn(b"WRONGPASS", c.ask("AUTH", "secretsecret")[1])
            self.assertEqual(c.ask("AUTH", "secret"), ("+", b"OK"))
            self.assertEqual(c.ask("GET", "k"), ("$", None))

    def test_a_password_is_never_cut_at_a_byte_of_value_0(self):
        with Redoubt() as server:
            c = server.client()
            answer = c.ask("CONFIG", "SET", "masteruser", b"abc\0def")[1]
            self.assertIn(b"'masteruser') - a value cannot contain a NUL byte", answer)
            self.assertEqual(c.ask("CONFIG", "SET", "requirepass", b"abc\0def"), ("+", b"OK"))
            late = server.client()
            self.assertEqual(late.ask("PING")[0], "-")
            self.assertEqual(late.ask("AUTH", b"abc")[0], "-")
            self.assertEqual(late.ask("AUTH", b"abc\0def"), ("+", b"OK"))

    def test_more_clients_than_allowed_are_turned_away(self):
        with Redoubt({"maxclients": "3"}) as server:
            first = [server.client() for _ in range(3)]
            for c in first:
                c.ask("PING")
            late = server.client()
            self.assertEqual(bytes_after(late, b"", b""),
                             b"-ERR max number of clients reached\r\n<closed>")
            first[0].close()
            wait_for(lambda: server.client().ask("PING") == ("+", b"PONG"))

    def leave_by_reset(self, server, data, busy):
        """Sends this and resets the connection; the server sees both at once."""
        holder = server.client()
        c = server.client()
        c.command("PING")
        holder.send(*busy)
        time.sleep(0.1)
        c.send_raw(data)
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
        holder.read()
        holder.close()

    def test_a_client_that_resets_its_connection_goes_whatever_it_has_sent(self):
        busy = (["DEBUG", "SLEEP", "0.3"], ["EVAL", "for i = 1, 10000000 do end", 0])
        with Redoubt({"busy-reply-threshold": "1"}) as server:
            for data in (b"*2\r\n$4\r\nECHO\r\n$100\r\nx", b"PING\r\n", b"x", b"*x\r\n",
                         encode("BLPOP", "q", 0), encode("BLPOP", "q", 0) + b"PI",
                         encode("ECHO", "x" * 100000)[:-5], encode("SUBSCRIBE", "c") + b"*1\r\n",
                         encode("MULTI") + encode("GET", "k"), b"PING\r\n" * 10000 + b"PI"):
                for words in busy:
                    with self.subTest(data=data[:30], busy=words[0]):
                        self.leave_by_reset(server, data, words)
                        wait_for(lambda: server.info()["connected_clients"] == "1", seconds=5)

    def test_a_server_that_slept_knows_how_late_it_is(self):
        with Redoubt({"hz": "1"}) as server:
            c = server.client()
            for _ in range(5):
                c.command("SET", "k", "v", "PX", "30")
                time.sleep(0.05)
                self.assertEqual(c.ask("GET", "k"), ("$", None))

    def test_a_unix_socket(self):
        with Redoubt() as server:
            path = server.path("socket")
            server.config["unixsocket"] = path
            server.config["unixsocketperm"] = "700"
            server.restart()
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o700)
            import server_under_test
            c = server_under_test.Client(path)
            self.assertEqual(c.ask("PING"), ("+", b"PONG"))
            c.close()
            server.kill()


if __name__ == "__main__":
    unittest.main()
