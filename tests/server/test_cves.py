"""What was wrong in other servers: a test for each published vulnerability that no other test has.
SECURITY.md has the list."""

import contextlib
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import Client, Redoubt, ServerDied, encode, wait_for  # noqa: E402

I64_MIN, I64_MAX = -(1 << 63), (1 << 63) - 1


class Commands(unittest.TestCase):
    """One server for all: each case must leave it as it was."""

    @classmethod
    def setUpClass(cls):
        cls.server = Redoubt()
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__, None, None, None)

    def setUp(self):
        self.c = self.server.client()
        self.c.command("FLUSHALL")

    def tearDown(self):
        self.assertEqual(self.server.client().command("PING"), b"PONG")

    def group(self, n):
        """A stream whose n entries wait for the consumer a; each second entry is gone."""
        for i in range(1, n + 1):
            self.c.command("XADD", "s", f"{i}-0", "f", "v")
        self.c.command("XGROUP", "CREATE", "s", "g", 0)
        self.c.command("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">")
        for i in range(2, n + 1, 2):
            self.c.command("XDEL", "s", f"{i}-0")

    def test_xautoclaim_of_removed_entries(self):  # CVE-2022-31144, CVE-2022-35951
        for count in (1, 5, 100, I64_MAX // 16, I64_MAX):
            self.c.command("DEL", "s")
            self.group(20)
            reply = self.c.ask("XAUTOCLAIM", "s", "g", "b", 0, 0, "COUNT", count)
            if reply[0] == "*":
                self.assertLessEqual(len(reply[1][1][1]) + len(reply[1][2][1]), 20)
            else:
                self.assertRegex(reply[1], b"COUNT (must be|too high)")

    def test_streams_that_lose_their_first_entry_keep_no_memory(self):  # CVE-2022-33105
        def used():
            for _ in range(3000):
                self.c.send_raw(encode("XADD", "s", "*", "f", "v") +
                                encode("XTRIM", "s", "MAXLEN", 1) + encode("XINFO", "STREAM", "s") +
                                encode("XSETID", "s", "9999999999999-0") + encode("DEL", "s"))
                for _ in range(5):
                    self.c.read()
            return int(self.server.info("memory")["used_memory"])
        before = used()
        self.assertLess(used(), before + 100000)

    def test_numbers_that_overflow(self):  # CVE-2022-35977, CVE-2023-22458, CVE-2023-25155
        c = self.c
        c.command("RPUSH", "l", 3, 1, 2)
        c.command("HSET", "h", "f", "v", "g", "w")
        c.command("SADD", "s", "a", "b")
        c.command("ZADD", "z", 1, "a", 2, "b")
        for n in (I64_MAX, I64_MIN, I64_MAX - 1, -I64_MAX, 1 << 62, -(1 << 62), 1 << 32):
            self.assertEqual(c.ask("SETRANGE", "k", n, "x")[0], "-", n)
            self.assertIn(c.ask("SORT", "l", "LIMIT", n, n)[0], "*-")
            self.assertIn(c.ask("SORT_RO", "l", "LIMIT", 1, n)[0], "*-")
            self.assertIn(c.ask("LRANGE", "l", n, I64_MAX)[0], "*-")
            self.assertIn(c.ask("GETRANGE", "l", n, n)[0], "$-")
        for n in (I64_MIN, -I64_MAX, -(1 << 62)):
            for words in (["HRANDFIELD", "h"], ["ZRANDMEMBER", "z"]):
                self.assertEqual(c.ask(*words, n, "WITHVALUES" if words[0][0] == "H"
                                       else "WITHSCORES")[0], "-")
            self.assertEqual(c.ask("SRANDMEMBER", "s", I64_MIN)[0], "-")

    def test_msetnx_with_one_key_twice(self):  # CVE-2023-28425
        self.assertEqual(self.c.command("MSETNX", "k", "a", "k", "b", "k", "c"), 1)
        self.assertEqual(self.c.command("GET", "k"), b"c")

    def test_hincrbyfloat_leaves_no_field_that_is_no_number(self):  # CVE-2023-28856
        for value in ("inf", "-inf", "nan", "1e5000", "x"):
            self.assertEqual(self.c.ask("HINCRBYFLOAT", "h", "f", value)[0], "-")
            self.assertEqual(self.c.command("HGETALL", "h"), [])
        self.c.command("HSET", "h", "f", "1.7e308")
        self.c.ask("HINCRBYFLOAT", "h", "f", "1.7e308")
        self.assertEqual(len(self.c.command("HGETALL", "h")), 2)

    def test_the_keys_of_long_lines(self):  # CVE-2023-36824
        for n in (1, 255, 256, 257, 1000, 5000):
            keys = [f"k{i}" for i in range(n)]
            pairs = [word for key in keys for word in (key, "v")]
            self.assertEqual(len(self.c.command("COMMAND", "GETKEYS", "MSET", *pairs)), n)
            for words in (["ZUNIONSTORE", "d", n, *keys], ["EVAL", "s", n, *keys],
                          ["MIGRATE", "h", 1, "", 0, 1, "KEYS", *keys]):
                self.assertGreaterEqual(
                    len(self.c.command("COMMAND", "GETKEYSANDFLAGS", *words)), n)

    def test_sort_ro_reads_only_what_the_user_may_read(self):  # CVE-2023-41053
        self.c.command("ACL", "SETUSER", "u", "on", "nopass", "+sort_ro", "+sort", "~mine")
        self.c.command("RPUSH", "mine", 1)
        self.c.command("SET", "secret_1", "x")
        limited = self.server.client()
        limited.command("AUTH", "u", "x")
        for name in ("SORT_RO", "SORT"):
            self.assertEqual(limited.ask(name, "mine", "GET", "secret_*")[0], "-")
            self.assertEqual(limited.ask(name, "mine", "BY", "secret_*")[0], "-")
        self.c.command("ACL", "DELUSER", "u")

    def test_rules_that_are_not_complete(self):  # CVE-2024-31227, CVE-2024-51741
        rules = ["(", "()", "( )", "(+get", "(~", "(%", "(%R", "(%R~", "(%~)", "%", "%R", "%~x",
                 "%RW", "%RX~x", "%WR~", "(+@all ~*) (", "((", "(()", ")", "(clearselectors)",
                 "(%RW)", "(allkeys", "&", "(&", "+", "-", "+|", "-@", "(+@)", "#", "!", "<", ">"]
        for rule in rules:
            for words in ([rule], ["on", rule], [rule, rule], rule.split()):
                self.c.ask("ACL", "SETUSER", "u", *words)
                self.c.ask("ACL", "LIST")
                self.c.ask("ACL", "GETUSER", "u")
                self.c.ask("ACL", "DRYRUN", "u", "GET", "k")
        self.c.ask("ACL", "DELUSER", "u")

    def test_a_sketch_with_too_many_registers(self):  # CVE-2025-32023
        head = b"HYLL\x01\0\0\0" + bytes(8)
        for body in (b"\x7f\xff" * 1000, b"\x7f\xff\x80", b"\x7f\xfe\xff",
                     b"\x7f\xff" * 131073 + b"\x80", b"\x00" * 300, b"\x7f", b"", b"\xff" * 5000):
            self.c.command("SET", "k", head + body)
            for words in (["PFCOUNT", "k"], ["PFADD", "k", "a"], ["PFMERGE", "d", "k"],
                          ["PFCOUNT", "k", "d"], ["PFDEBUG", "GETREG", "k"]):
                self.c.ask(*words)
            self.c.command("DEL", "d")

    def test_an_error_or_a_status_of_a_script_is_one_line(self):  # CVE-2025-67733
        scripts = ["return redis.error_reply('E x\\r\\n+forged\\r\\n')",
                   "return {err = 'E x\\r\\n+forged'}", "error({err = 'E x\\n+forged'})",
                   "return redis.status_reply('x\\r\\n+forged')", "return {ok = 'x\\n+forged'}",
                   "error('x\\r\\n+forged')", "redis.call('set', 'k\\r\\n+forged')",
                   "redis.call('no\\r\\n+forged')", "return redis.pcall('no\\r\\n+forged')",
                   "return {big_number = '1\\r\\n+forged'}",
                   "return {verbatim_string = {format = 't\\r\\n', string = 'x\\r\\n+forged'}}"]
        for proto in (2, 3):
            c = self.server.client(proto)
            for script in scripts:
                c.ask("EVAL", "redis.setresp(3) " + script, 0)
                self.assertEqual(c.ask("ECHO", "next"), ("$", b"next"), script)
            for words in (["NO\r\n+forged"], ["CONFIG", "x\r\n+forged"], ["GET"],
                          ["ACL", "SETUSER", "u", "\r\n+forged"], ["HELLO", "3\r\n+forged"]):
                c.ask(*words)
                self.assertEqual(c.ask("ECHO", "next"), ("$", b"next"), words)

    def test_an_entry_that_waits_for_two_consumers(self):  # CVE-2026-63639
        c = self.c
        for i in (1, 2):
            c.command("XADD", "s", f"{i}-0", "f", "v")
        c.command("XGROUP", "CREATE", "s", "g", 0)
        for name in ("a", "b"):
            c.command("XREADGROUP", "GROUP", "g", name, "COUNT", 1, "STREAMS", "s", ">")
        payload = c.command("DUMP", "s")
        one, two = ((i).to_bytes(8, "big") + bytes(8) for i in (1, 2))
        at = payload.rindex(two)
        bad = payload[:at] + one + payload[at + 16:]
        c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
        try:
            self.assertEqual(c.ask("RESTORE", "t", 0, bad)[0], "-")
            self.assertEqual(c.ask("RESTORE", "t", 0, payload), ("+", b"OK"))
        finally:
            c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 0)

    def test_a_zipmap_whose_lengths_disagree(self):  # CVE-2026-25243
        c = self.c
        c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
        try:
            for body in (b"\x01\xfe\xff\xff\xff\xffkk\x01\0v\xff",
                         b"\x01\x01k\xfe\x01\0\0\0\0v\xff",
                         b"\x01\x01k\x01\xffv\xff", b"\xfe\x01k\x01\0v\xff", b"\x01\x01k\x01\0v",
                         b"\x01\xfe\x01\0\0\0k\x01\x03v\xff", b"\x02\x01k\x01\0v\xff", b""):
                payload = b"\x09" + bytes([len(body)]) + body + b"\x0a\0" + bytes(8)
                c.ask("RESTORE", "z", 0, payload, "REPLACE")
                c.ask("HGETALL", "z")
                c.ask("HSET", "z", "f", "v")
        finally:
            c.command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 0)

    def test_an_empty_request_before_an_inline_one(self):  # CVE-2026-27623
        for data in (b"*0\r\nPING\r\n", b"*-1\r\nPING\r\n",
                     b"*0\r\n*0\r\nPING\r\n*1\r\n$4\r\nPING\r\n"):
            one = self.server.client()
            one.send_raw(data)
            self.assertEqual(one.read(), ("+", b"PONG"))


class Connections(unittest.TestCase):
    def test_protocol_errors_do_not_keep_others_from_the_server(self):  # CVE-2025-48367
        with Redoubt({"requirepass": "secret"}) as server:
            for _ in range(300):
                bad = server.client()
                bad.send_raw(b"*1\r\n$-5\r\n")
            other = server.client()
            self.assertEqual(other.command("AUTH", "secret"), b"OK")
            wait_for(lambda: server_clients(other) == 1)

    def test_a_client_that_is_woken_and_evicted(self):  # CVE-2026-23479
        with Redoubt() as server:
            control, pusher = server.client(), server.client()
            for one in (control, pusher):
                one.command("CLIENT", "NO-EVICT", "on")
            for _ in range(20):
                waiting = server.client()
                waiting.send_raw(encode("BLPOP", "q", 0) + encode("ECHO", "x" * 300000)[:-10])
                wait_for(lambda: server.info("clients")["blocked_clients"] == "1")
                pusher.send_raw(encode("MULTI") +
                                encode("CONFIG", "SET", "maxmemory-clients", "200kb") +
                                encode("RPUSH", "q", "x" * 200000) + encode("EXEC"))
                for _ in range(4):
                    pusher.read()
                wait_for(lambda: server_clients(control) == 2)
                control.command("CONFIG", "SET", "maxmemory-clients", 0)
                control.command("DEL", "q")

    def test_a_client_whose_command_serves_others_is_not_evicted_meanwhile(self):
        # CVE-2026-130822
        with Redoubt() as server:
            control = server.client()
            control.command("CLIENT", "NO-EVICT", "on")
            for push in (["RPUSH", "q"], ["LPUSH", "q"], ["EVAL", "return redis.call('rpush', "
                                                          "KEYS[1], unpack(ARGV))", 1, "q"]):
                for kib in range(400, 2200, 200):  # before, while and after the others are served
                    self.serve_with_little_room(server, control, push, kib)

    def serve_with_little_room(self, server, control, push, kib):
        waiting = [server.client() for _ in range(20)]
        for one in waiting:
            one.send("BLPOP", "q", 0)
        wait_for(lambda: server.info("clients")["blocked_clients"] == "20")
        control.command("CONFIG", "SET", "maxmemory-clients", f"{kib}kb")
        pusher = server.client()
        with contextlib.suppress(ServerDied):
            pusher.send(*push, *["x" * 20000] * 20)
            pusher.read()
        control.command("CONFIG", "SET", "maxmemory-clients", 0)
        for one in (pusher, *waiting):
            one.close()
        control.command("DEL", "q")
        wait_for(lambda: server_clients(control) == 1)

    def test_the_socket_has_its_permissions_from_the_beginning(self):  # CVE-2023-45145
        for umask in (0, 0o022, 0o077):
            for mode in ("700", "770", "777", "600"):
                with tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "s")
                    before = os.umask(umask)
                    try:
                        with Redoubt({"unixsocket": path, "unixsocketperm": mode}) as server:
                            self.assertEqual(oct(os.stat(path).st_mode & 0o777), "0o" + mode)
                            with contextlib.closing(Client(path)) as c:
                                self.assertEqual(c.command("PING"), b"PONG")
                            self.assertEqual(server.client().command("PING"), b"PONG")
                    finally:
                        os.umask(before)


def server_clients(asking):
    return len(asking.command("CLIENT", "LIST").decode().splitlines())


class Later(unittest.TestCase):
    """What later servers have."""

    def test_xackdel_of_many_entries(self):  # CVE-2025-62507
        with Redoubt({"redoubt-level": "8.6"}) as server:
            c = server.client()
            for n in (1, 8, 9, 64, 65, 1000, 100000):
                ids = [f"{i}-1" for i in range(1, n + 1)]
                for i in ids[:100]:
                    c.command("XADD", "s", i, "f", "v")
                c.command("XGROUP", "CREATE", "s", "g", 0)
                c.command("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">")
                for how in (["KEEPREF"], ["DELREF"], ["ACKED"], []):
                    reply = c.command("XACKDEL", "s", "g", *how, "IDS", n, *ids)
                    self.assertEqual(len(reply), n)
                    self.assertEqual(len(c.command("XDELEX", "s", *how, "IDS", n, *ids)), n)
                for wrong in (n + 1, n - 1, 0, -1, I64_MAX, I64_MIN, 1 << 31, 1 << 32):
                    self.assertEqual(c.ask("XACKDEL", "s", "g", "IDS", wrong, *ids)[0], "-")
                    self.assertEqual(c.ask("XDELEX", "s", "IDS", wrong, *ids)[0], "-")
                c.command("DEL", "s")

    def test_msetex_needs_each_key(self):  # repaired in Redis 8.4.4, without a number
        with Redoubt({"redoubt-level": "8.6"}) as server:
            c, limited = server.client(), server.client()
            c.command("ACL", "SETUSER", "u", "on", "nopass", "+msetex", "~mine*")
            limited.command("AUTH", "u", "x")
            self.assertEqual(limited.command("MSETEX", 2, "mine1", "a", "mine2", "b"), 1)
            for words in ([2, "mine1", "a", "other", "b"], [2, "other", "a", "mine1", "b"],
                          [1, "other", "a"], [2, "mine1", "a", "other", "b", "NX"]):
                self.assertTrue(limited.ask("MSETEX", *words)[1].startswith(b"NOPERM"), words)
            self.assertEqual(c.command("EXISTS", "other"), 0)

    def test_sizes_of_slots_that_do_not_exist(self):  # repaired in Redis 8.10.1, without a number
        huge = b"\x81" + b"\xff" * 8
        for slot in (b"\x7f\xff", b"\x80\xff\xff\xff\xff", huge):
            for size in (b"\x01", huge):
                data = (b"REDIS0012\xf4" + slot + size + size + b"\xfe\0\xfb\x01\0\0\x01k\x01v"
                        b"\xff" + bytes(8))
                with Redoubt() as server:
                    server.kill()
                    with open(server.path("dump.rdb"), "wb") as f:
                        f.write(data)
                    server.start()
                    self.assertEqual(server.client().command("GET", "k"), b"v")
                    run = subprocess.run(
                        [os.environ["REDOUBT"], "check-rdb", server.path("dump.rdb")],
                        capture_output=True, check=False)
                    self.assertIn(run.returncode, (0, 1), run.stderr)


class Tools(unittest.TestCase):
    def test_a_path_that_is_too_long(self):  # CVE-2025-27151
        for length in (255, 1000, 4095, 4096, 5000, 100000):
            for tool in ("check-aof", "check-rdb", "stat"):
                run = subprocess.run([os.environ["REDOUBT"], tool, "x" * length],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
                self.assertEqual(run.returncode, 3, run.stderr)


if __name__ == "__main__":
    unittest.main()
