"""CLIENT TRACKING: what random commands do not reach. Messages because of time, memory and limits,
and what the server remembers. tests/oracle/test_tracking_oracle.py has the random clients."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import Redoubt, pair, wait_for  # noqa: E402


def figures(server):
    info = server.info("clients", "stats")
    return {k: int(v) for k, v in info.items() if k.startswith("tracking_")}


class Messages(unittest.TestCase):
    def test_a_key_that_expires_alone_is_reported(self):
        with pair() as servers:
            for server in servers:
                c, other = server.client(3), server.client()
                c.command("CLIENT", "TRACKING", "on")
                other.command("SET", "k", "v", "PX", "50")
                c.command("GET", "k")
                self.assertEqual(c.read(), (">", [("$", b"invalidate"), ("*", [("$", b"k")])]))

    def test_a_key_that_is_evicted_is_reported(self):
        with Redoubt({"maxmemory-policy": "allkeys-random"}) as server:
            c, other = server.client(3), server.client()
            c.command("CLIENT", "TRACKING", "on")
            for i in range(50):
                other.command("SET", f"k{i}", "v" * 100)
                c.command("GET", f"k{i}")
            other.command("CONFIG", "SET", "maxmemory", "1")
            gone = {c.read()[1][1][1][0][1] for _ in range(50)}
            self.assertEqual(len(gone), 50)
            self.assertEqual(figures(server)["tracking_total_keys"], 0)

    def test_reloading_the_data_reports_all_keys(self):
        with pair() as servers:
            for server in servers:
                c, other = server.client(3), server.client()
                c.command("CLIENT", "TRACKING", "on")
                other.command("SET", "k", "v")
                c.command("GET", "k")
                other.command("DEBUG", "RELOAD")
                self.assertEqual(c.read(), (">", [("$", b"invalidate"), ("_", b"")]))

    def test_messages_are_not_stopped_by_client_reply_off(self):
        with pair() as servers:
            for server in servers:
                c, other = server.client(3), server.client()
                c.command("CLIENT", "TRACKING", "on")
                c.command("GET", "k")
                c.send("CLIENT", "REPLY", "OFF")
                c.send("PING")
                other.command("SET", "k", "v")
                self.assertEqual(c.read()[1][0], ("$", b"invalidate"))

    def test_messages_of_others_do_not_break_the_reply(self):
        # redis-server sends them at once, which can be in the middle of a reply
        with Redoubt() as server:
            c, other = server.client(3), server.client(3)
            other.command("CLIENT", "TRACKING", "on", "REDIRECT", c.command("CLIENT", "ID"))
            other.command("MGET", "a", "b")
            c.command("MULTI")
            for args in (["SET", "a", "1"], ["GET", "a"], ["SET", "b", "2"]):
                c.command(*args)
            self.assertEqual(c.ask("EXEC"), ("*", [("+", b"OK"), ("$", b"1"), ("+", b"OK")]))
            self.assertEqual([c.read()[1][1][1] for _ in range(2)], [[("$", b"a")], [("$", b"b")]])
            other.command("MGET", "a", "b")
            self.assertEqual(c.ask("FLUSHALL"), ("+", b"OK"))
            self.assertEqual(c.read()[1][1], ("_", b""))

    def test_a_name_cannot_forge_messages(self):
        with Redoubt() as server:
            c, other = server.client(3), server.client()
            c.command("CLIENT", "TRACKING", "on")
            name = "k\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx"
            c.command("GET", name)
            other.command("SET", name, "v")
            self.assertEqual(c.read()[1][1], ("*", [("$", name.encode())]))
            self.assertEqual(c.ask("PING"), ("+", b"PONG"))


class Replies(unittest.TestCase):
    def test_options_and_their_errors_reply_alike(self):
        on = ["TRACKING", "on"]
        calls = [[*on, "REDIRECT", "x"], [*on, "REDIRECT", "99999"], [*on, "PREFIX", "a"],
                 [*on, "REDIRECT", "1", "REDIRECT", "1"], [*on, "BCAST", "OPTIN"], [*on, "PREFIX"],
                 [*on, "OPTIN", "OPTOUT"], [*on, "FOO"], ["TRACKING", "maybe"], ["CACHING", "yes"],
                 [*on, "OPTIN"], ["CACHING", "no"], ["CACHING", "maybe"], ["CACHING", "yes"],
                 ["TRACKINGINFO"], [*on, "OPTOUT"], ["TRACKING", "off"], [*on, "OPTOUT"],
                 ["CACHING", "yes"], ["CACHING", "no"], ["TRACKINGINFO"], [*on, "BCAST"],
                 ["TRACKING", "off"], [*on, "BCAST", "PREFIX", "b", "PREFIX", "a", "NOLOOP"],
                 ["TRACKINGINFO"], ["GETREDIR"], ["TRACKING", "off"], ["GETREDIR"]]
        with pair() as servers:
            clients = [server.client(3) for server in servers]
            for call in calls:
                self.assertEqual(*(c.ask("CLIENT", *call) for c in clients), call)

    def test_a_redirect_is_broken_when_a_message_cannot_be_sent(self):
        with pair() as servers:
            seen = []
            for server in servers:
                c, other, target = server.client(3), server.client(), server.client()
                number = target.command("CLIENT", "ID")
                c.command("CLIENT", "TRACKING", "on", "REDIRECT", number)
                c.command("GET", "k")
                target.close()
                wait_for(lambda o=other, n=number: f"id={n} " not in
                         o.command("CLIENT", "LIST").decode())
                before = c.ask("CLIENT", "TRACKINGINFO")
                other.command("SET", "k", "v")
                message = c.read()
                after = c.ask("CLIENT", "TRACKINGINFO")
                self.assertIn("broken_redirect", repr(after))
                seen.append([repr(x).replace(str(number), "N") for x in (before, message, after)])
            self.assertEqual(*seen)


class Scripts(unittest.TestCase):
    def test_a_script_that_reads_counts_with_its_own_keys(self):
        with pair() as servers:
            said = []
            for server in servers:
                c, other = server.client(3), server.client()
                c.command("CLIENT", "TRACKING", "on")
                out = []
                for command, script in (("EVAL", "return redis.call('get', KEYS[1])"),
                                        ("EVAL", "return redis.call('set', KEYS[1], 'v')"),
                                        ("EVAL", "return 1"), ("EVAL_RO", "return 1"),
                                        ("EVAL_RO", "return redis.call('get', 'other')")):
                    other.command("FLUSHALL")
                    while not c.nothing(0.05):
                        c.read()
                    c.command(command, script, 2, "k1", "k2")
                    out.append(server.info("stats")["tracking_total_keys"])
                    for key in ("k1", "k2", "other"):
                        other.command("SET", key, "v")
                    out.append(c.ask("PING"))
                    while out[-1][0] == ">":
                        out.append(c.read())
                # its own change follows the reply
                c.command("GET", "k1")
                out.append(c.ask("EVAL", "return {redis.call('set', KEYS[1], 'v'), 'x'}", 1, "k1"))
                out.append(c.read())
                said.append(out)
            self.assertEqual(*said)


class Limits(unittest.TestCase):
    def test_the_table_keeps_within_tracking_table_max_keys(self):
        with Redoubt({"tracking-table-max-keys": "100"}) as server:
            c = server.client(3)
            c.command("CLIENT", "TRACKING", "on")
            reported = 0
            for i in range(1000):
                c.send("GET", f"k{i}")
                while c.read()[0] == ">":
                    reported += 1
            found = figures(server)
            c.send("PING")
            while c.read()[0] == ">":
                reported += 1
            self.assertLessEqual(found["tracking_total_keys"], 101)
            self.assertEqual(reported + found["tracking_total_keys"], 1000)
            self.assertEqual(found["tracking_total_items"], found["tracking_total_keys"])

    def test_a_lower_limit_holds_without_commands(self):
        with Redoubt() as server:
            c = server.client(3)
            c.command("CLIENT", "TRACKING", "on")
            for start in range(0, 5000, 100):
                c.command("MGET", *[f"k{i}" for i in range(start, start + 100)])
            server.client().command("CONFIG", "SET", "tracking-table-max-keys", "10")
            wait_for(lambda: figures(server)["tracking_total_keys"] <= 10)

    def test_clients_that_leave_are_forgotten_with_the_key(self):
        with Redoubt() as server:
            clients = [server.client(3) for _ in range(20)]
            for c in clients:
                c.command("CLIENT", "TRACKING", "on")
                c.command("GET", "k")
            clients[0].command("GET", "k")
            want = {"tracking_clients": 20, "tracking_total_keys": 1, "tracking_total_items": 20,
                    "tracking_total_prefixes": 0}
            self.assertEqual(figures(server), want)
            for c in clients[:10]:
                c.close()
            wait_for(lambda: figures(server)["tracking_clients"] == 10)
            server.client().command("SET", "k", "v")
            for c in clients[10:]:
                self.assertEqual(c.read()[1][0], ("$", b"invalidate"))
            self.assertEqual(figures(server), {**want, "tracking_clients": 10,
                                               "tracking_total_keys": 0,
                                               "tracking_total_items": 0})

    def test_prefixes_end_with_their_last_client(self):
        with Redoubt() as server:
            a, b = server.client(3), server.client(3)
            for c in (a, b):
                c.command("CLIENT", "TRACKING", "on", "BCAST", "PREFIX", "x", "PREFIX", "y")
            self.assertEqual(figures(server)["tracking_total_prefixes"], 2)
            a.command("CLIENT", "TRACKING", "off")
            b.close()
            wait_for(lambda: figures(server)["tracking_total_prefixes"] == 0)

    def test_prefixes_that_overlap_are_refused(self):
        with Redoubt() as server:
            c = server.client(3)
            reply = c.ask("CLIENT", "TRACKING", "on", "BCAST", "PREFIX", "z", "PREFIX", "ab",
                          "PREFIX", "a")
            self.assertEqual(reply, ("-", b"ERR Prefix 'ab' overlaps with another provided prefix "
                                          b"'a'. Prefixes for a single client must not overlap."))
            self.assertEqual(c.ask("PING"), ("+", b"PONG"))
            self.assertEqual(figures(server)["tracking_clients"], 0)


if __name__ == "__main__":
    unittest.main()
