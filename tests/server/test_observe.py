"""What the server reports about itself and its clients, beside redis-server, over RESP2 and RESP3.

Replies are compared as they are but for numbers that depend on the moment, which are masked.
"""

import re
import shlex
import unittest

import server_under_test
from server_under_test import Redoubt, ReplyError, wait_for


def same_commands(case, lines, proto, servers, mask=lambda reply: reply):
    """Each line as a command to both; the replies must be alike."""
    ours, theirs = (server.client(proto) for server in servers)
    for line in lines.strip().splitlines():
        argv = shlex.split(line)
        got, want = mask(ours.ask(*argv)), mask(theirs.ask(*argv))
        with case.subTest(line=line, proto=proto):
            case.assertEqual(got, want)
        for c in (ours, theirs):
            while c.buf:
                c.read()


def masked(reply):
    """Digits of texts become N, numbers stay what they are."""
    kind, content = reply
    if isinstance(content, bytes):
        return kind, re.sub(rb"\d+", b"N", content)
    if isinstance(content, list):
        return kind, [masked(x) if isinstance(x[0], str) else x for x in content]
    return reply


ERRORS = """
PUBSUB CHANNELS a b
PUBSUB NUMSUB
PUBSUB NUMSUB a b
PUBSUB NUMPAT x
PUBSUB NUMPAT
PUBSUB CHANNELS
PUBSUB SHARDCHANNELS
PUBSUB SHARDNUMSUB a
PUBSUB NOSUCH
PUBLISH a b
PUBLISH a
SPUBLISH a b
SLOWLOG GET -2
SLOWLOG GET x
SLOWLOG GET 1 2
SLOWLOG GET 0
SLOWLOG NOSUCH
LATENCY HISTORY nosuch
LATENCY GRAPH nosuch
LATENCY RESET a b
LATENCY LATEST
LATENCY NOSUCH
LATENCY HISTOGRAM nosuch
CLIENT LIST TYPE x
CLIENT LIST TYPE master
CLIENT LIST TYPE replica
CLIENT LIST TYPE
CLIENT LIST TYPE normal x
CLIENT LIST ID
CLIENT LIST ID x
CLIENT LIST ID 0
CLIENT LIST ID 99999
CLIENT LIST FOO
CLIENT KILL ID x
CLIENT KILL ID 0
CLIENT KILL ID 99999
CLIENT KILL 1.2.3.4:4
CLIENT KILL TYPE x
CLIENT KILL TYPE normal SKIPME maybe
CLIENT KILL USER nope
CLIENT KILL ADDR
CLIENT KILL ADDR x
CLIENT KILL LADDR y
CLIENT KILL foo bar
CLIENT KILL foo bar x
CLIENT KILL
CLIENT PAUSE x
CLIENT PAUSE -1
CLIENT PAUSE 100 foo
CLIENT PAUSE 1 write x
CLIENT UNPAUSE
CLIENT NO-EVICT x
CLIENT NO-EVICT on
CLIENT NO-EVICT off
CLIENT REPLY x
CLIENT REPLY ON x
CLIENT REPLY ON
CLIENT UNBLOCK x
CLIENT UNBLOCK 99999
CLIENT UNBLOCK 1 foo
CLIENT UNBLOCK 1 ERROR x
CLIENT GETREDIR
CLIENT TRACKINGINFO
CLIENT CACHING yes
CLIENT TRACKING x
CLIENT TRACKING off
CLIENT TRACKING off bcast prefix x
CLIENT TRACKING on REDIRECT
CLIENT TRACKING on foo
CLIENT GETNAME
CLIENT SETNAME "a b"
CLIENT SETNAME ab
CLIENT GETNAME
CLIENT SETNAME ""
CLIENT GETNAME
CLIENT NOSUCH
CLIENT SETINFO lib-name x
SCRIPT EXISTS a b
SCRIPT EXISTS
SCRIPT FLUSH
SCRIPT FLUSH SYNC
SCRIPT FLUSH x
SCRIPT KILL
FUNCTION FLUSH
FUNCTION FLUSH ASYNC
FUNCTION FLUSH x
FUNCTION FLUSH SYNC x
FUNCTION LIST
FUNCTION LIST WITHCODE
FUNCTION LIST LIBRARYNAME
FUNCTION LIST LIBRARYNAME x
FUNCTION LIST foo
FUNCTION LIST WITHCODE WITHCODE
FUNCTION DUMP
FUNCTION STATS
FUNCTION KILL
MODULE LIST
MODULE LOAD x
CLUSTER INFO
CLUSTER NODES
CLUSTER
ROLE
WAIT 0 0
WAIT 1 10
WAIT 1 x
WAIT x 1
WAIT -1 0
WAIT 1 -1
REPLICAOF NO ONE
SLAVEOF no one
REPLICAOF a b c
REPLICAOF a b
REPLICAOF a 99999
FAILOVER
FAILOVER ABORT
FAILOVER TO
FAILOVER TO a 1
FAILOVER FORCE
FAILOVER x
MEMORY PURGE
MEMORY USAGE nosuch
MEMORY USAGE nosuch SAMPLES
MEMORY USAGE nosuch SAMPLES x
MEMORY USAGE nosuch SAMPLES -1
MEMORY USAGE nosuch SAMPLES 0
MEMORY USAGE nosuch FOO 1
MEMORY USAGE nosuch SAMPLES 1 x
MEMORY NOSUCH
LOLWUT VERSION x
DEBUG
DEBUG NOSUCH
DEBUG OBJECT nosuch
DEBUG OBJECT
DEBUG SLEEP
DEBUG SLEEP 0
DEBUG LISTPACK nosuch
DEBUG QUICKLIST nosuch
DEBUG SDSLEN nosuch
DEBUG HTSTATS
DEBUG HTSTATS x
DEBUG HTSTATS 99
DEBUG HTSTATS-KEY nosuch
DEBUG DIGEST
DEBUG DIGEST-VALUE
DEBUG DIGEST-VALUE nosuch a
DEBUG SET-ACTIVE-EXPIRE x
DEBUG SET-ACTIVE-EXPIRE 1
DEBUG SET-SKIP-CHECKSUM-VALIDATION 0
DEBUG QUICKLIST-PACKED-THRESHOLD x
DEBUG QUICKLIST-PACKED-THRESHOLD 5g
DEBUG QUICKLIST-PACKED-THRESHOLD 0
DEBUG PAUSE-CRON 0
DEBUG AOF-FLUSH-SLEEP 0
DEBUG LOG x
DEBUG ERROR hello
DEBUG ERROR "hello world"
DEBUG PROTOCOL string
DEBUG PROTOCOL integer
DEBUG PROTOCOL double
DEBUG PROTOCOL null
DEBUG PROTOCOL array
DEBUG PROTOCOL set
DEBUG PROTOCOL map
DEBUG PROTOCOL attrib
DEBUG PROTOCOL push
DEBUG PROTOCOL verbatim
DEBUG PROTOCOL true
DEBUG PROTOCOL false
DEBUG PROTOCOL bignum
DEBUG PROTOCOL x
DEBUG CHANGE-REPL-ID
DEBUG CLIENT-EVICTION
DEBUG REPLYBUFFER RESIZING 1
DEBUG REPLYBUFFER PEAK-RESET-TIME RESET
DEBUG REPLYBUFFER PEAK-RESET-TIME x
DEBUG REPLYBUFFER x 1
DEBUG REPLICATE x y
DEBUG POPULATE
DEBUG POPULATE x
DEBUG POPULATE -1
DEBUG POPULATE 3
DEBUG POPULATE 2 k 10
DEBUG DIGEST
GET key:2
GET k:1
TTL k:1
DEBUG SDSLEN nosuch
DEBUG LISTPACK k:0
DEBUG QUICKLIST k:0
DEBUG HTSTATS-KEY k:0
DEBUG RELOAD x
INFO nosuch
MONITOR x
"""


class Beside(unittest.TestCase):
    """Both servers, asked the same."""

    @classmethod
    def setUpClass(cls):
        cls.stack = server_under_test.contextlib.ExitStack()
        cls.both = cls.stack.enter_context(server_under_test.pair())

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def setUp(self):
        for server in self.both:
            with server_under_test.contextlib.closing(server.client()) as c:
                c.command("FLUSHALL")

    def both_clients(self, proto=2, n=1):
        """A list of n clients for each server."""
        return [[server.client(proto) for _ in range(n)] for server in self.both]

    def compare(self, play, *args):
        """play(server) of both must give the same."""
        got, want = (play(server, *args) for server in self.both)
        self.assertEqual(got, want)
        return got

    def test_answers_and_errors_of_resp2_are_those_of_redis(self):
        same_commands(self, ERRORS, 2, self.both)

    def test_answers_and_errors_of_resp3_are_those_of_redis(self):
        same_commands(self, ERRORS, 3, self.both)

    def test_info_has_the_sections_and_fields_of_redis_in_their_order(self):
        def fields(server, *sections):
            text = server.client().command("INFO", *sections).decode()
            return [line.split(":")[0] for line in text.split("\r\n")]

        for names in ((), ("all",), ("everything",), ("default",), ("server", "memory"),
                      ("CPU", "keyspace"), ("modules",), ("module_list",), ("nosuch",),
                      ("nosuch", "clients"), ("replication",), ("persistence", "stats")):
            with self.subTest(sections=names):
                ours, theirs = (fields(server, *names) for server in self.both)
                volatile = ("cmdstat_", "latency_percentiles", "errorstat_")
                ours, theirs = ([x for x in f if not x.startswith(volatile)]
                                for f in (ours, theirs))
                if "redoubt_version" in ours:
                    ours.remove("redoubt_version")
                self.assertEqual(ours, theirs)

    def test_command_and_error_statistics_count_as_redis_counts(self):
        def play(server):
            c = server.client()
            c.command("CONFIG", "RESETSTAT")
            for argv in (["SET", "k", "v"], ["GET", "k"], ["LPUSH", "k", "x"], ["GET"],
                         ["NOSUCH"], ["CLIENT", "ID"], ["AUTH", "x", "y"],
                         ["CLIENT", "NOSUCH"], ["XGROUP", "CREATE", "q", "g", "0"]):
                c.ask(*argv)
            text = c.command("INFO", "commandstats", "errorstats").decode()
            text = re.sub(r"usec=\d+,usec_per_call=[\d.]+", "usec=N", text)
            return sorted(text.split("\r\n"))

        self.compare(play)

    def test_a_command_that_waits_counts_at_once_and_is_slow_when_it_is_served(self):
        def play(server):
            c, w = server.client(), server.client()
            c.command("CONFIG", "SET", "slowlog-log-slower-than", "0")
            c.command("CONFIG", "RESETSTAT")
            counts = []

            def count():
                text = c.command("INFO", "commandstats", "errorstats").decode()
                text = re.sub(r"usec=\d+,usec_per_call=[\d.]+", "usec=N", text)
                counts.append(sorted(re.findall(r"cmdstat_(?:blpop|xread).*|err.*", text)))

            def waiting():
                return server.info("clients")["blocked_clients"] == "1"

            for argv, *ends in ((["BLPOP", "l", "0"], ["LPUSH", "l", "x"]),
                                (["BLPOP", "l", "0.01"], ["PING"]),
                                (["XREADGROUP", "GROUP", "g", "a", "BLOCK", "0", "STREAMS", "s",
                                  ">"], ["DEL", "s"])):
                c.ask("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
                w.send(*argv)
                if argv[-1] != "0.01":
                    wait_for(waiting)
                    count()
                c.command("SLOWLOG", "RESET")
                for end in ends:
                    c.ask(*end)
                w.read()
                count()
                counts.append([entry[3] for entry in c.command("SLOWLOG", "GET", "-1")
                               if entry[3][0].lower() in (b"blpop", b"xreadgroup")])
            return counts

        self.compare(play)

    def test_latencies_of_commands_have_the_same_shape(self):
        def play(server, proto):
            c = server.client(proto)
            c.command("CONFIG", "RESETSTAT")
            c.command("SET", "k", "v")
            c.command("CLIENT", "ID")
            found = c.ask("LATENCY", "HISTOGRAM", "set", "client", "nosuch", "get")

            def shape(x):
                if isinstance(x[1], list):
                    return x[0], [tuple(map(shape, y)) if x[0] == "%" else shape(y) for y in x[1]]
                return x if x[0] == "$" else x[0]

            return shape(found)

        for proto in (2, 3):
            self.compare(play, proto)

    def test_a_sleep_shows_in_percentiles_slow_log_and_latency_events(self):
        def play(server):
            c = server.client()
            c.command("CONFIG", "SET", "latency-monitor-threshold", "20")
            c.command("CONFIG", "SET", "slowlog-log-slower-than", "20000")
            c.command("CLIENT", "SETNAME", "sleeper")
            c.command("SLOWLOG", "RESET")
            c.command("DEBUG", "SLEEP", "0.05")
            entry = c.command("SLOWLOG", "GET")[0]
            latest = c.command("LATENCY", "LATEST")[0]
            history = c.command("LATENCY", "HISTORY", "command")
            graph = c.command("LATENCY", "GRAPH", "command").decode()
            c.command("CONFIG", "SET", "latency-monitor-threshold", "0")
            self.assertGreaterEqual(entry[2], 50000)
            self.assertGreaterEqual(latest[2], 50)
            self.assertEqual(history[0][1], latest[2])
            n = c.command("LATENCY", "RESET", "command", "nosuch")
            return (entry[3], entry[5], c.command("SLOWLOG", "LEN"), latest[0], len(history),
                    re.sub(r"\d+", "N", graph), n)

        self.compare(play)

    def test_the_slow_log_cuts_long_commands_and_hides_passwords(self):
        def play(server):
            c = server.client()
            c.command("SLOWLOG", "RESET")
            c.command("CONFIG", "SET", "slowlog-log-slower-than", "0")
            c.ask("RPUSH", "l", *range(40))
            c.ask("SET", "k", "x" * 300)
            c.ask("AUTH", "someone", "secret")
            c.ask("HELLO", "2", "AUTH", "someone", "secret")
            c.ask("CONFIG", "SET", "masterauth", "secret")
            c.ask("CONFIG", "SET", "slowlog-log-slower-than", "10000")
            return [entry[3] for entry in c.command("SLOWLOG", "GET", "-1")]

        self.compare(play)

    def test_subscribers_receive_messages_in_order(self):
        def play(server, proto):
            c, p = server.client(proto), server.client()
            out = []

            def say(n, *argv):
                c.send(*argv)
                out.extend(c.read() for _ in range(n))

            say(2, "SUBSCRIBE", "a", "b")
            say(1, "SUBSCRIBE", "a")
            say(2, "PSUBSCRIBE", "a*", "?")
            say(2, "SSUBSCRIBE", "a", "s")
            out.append([p.command("PUBLISH", "a", "hi"), p.command("SPUBLISH", "a", "ho"),
                        p.command("PUBLISH", "c", "x"), p.command("PUBLISH", "none", "x")])
            got = [c.read() for _ in range(5)]
            out.append(sorted(got[:3]))  # redis-server keeps patterns in no order
            out.append(got[3:])
            out.append(sorted(p.command("PUBSUB", "CHANNELS")))
            out.append(sorted(p.command("PUBSUB", "CHANNELS", "a*")))
            out.append(p.command("PUBSUB", "NUMSUB", "a", "b", "zz"))
            out.append(p.command("PUBSUB", "NUMPAT"))
            out.append(sorted(p.command("PUBSUB", "SHARDCHANNELS")))
            out.append(p.command("PUBSUB", "SHARDNUMSUB", "a", "q"))
            say(1, "UNSUBSCRIBE", "a")
            say(1, "UNSUBSCRIBE", "nosuch")
            say(1, "UNSUBSCRIBE")
            say(1, "UNSUBSCRIBE")
            say(1, "PUNSUBSCRIBE", "?")
            say(1, "PUNSUBSCRIBE")
            say(1, "SUNSUBSCRIBE", "s")
            say(1, "SUNSUBSCRIBE")
            say(1, "SUNSUBSCRIBE")
            say(1, "PING")
            return out

        for proto in (2, 3):
            self.compare(play, proto)

    def test_a_subscriber_of_resp2_may_do_little_else(self):
        def play(server):
            c = server.client()
            c.ask("SUBSCRIBE", "a")
            return [c.ask(*argv) for argv in (["GET", "k"], ["PING"], ["PING", "x"],
                                              ["CLIENT", "ID"], ["RESET"], ["PING"])]

        self.compare(play)

    def test_subscriptions_in_a_transaction(self):
        def play(server):
            c = server.client()
            return [c.ask(*argv) for argv in (
                ["MULTI"], ["SSUBSCRIBE", "a"], ["SUNSUBSCRIBE"], ["EXEC"], ["SPUBLISH", "a", "m"],
                ["MULTI"], ["SUBSCRIBE", "a"], ["UNSUBSCRIBE"], ["EXEC"], ["PING"])]

        self.compare(play)

    def test_messages_to_oneself_and_with_replies_off_come(self):
        def play(server):
            c, p = server.client(3), server.client()
            c.ask("SUBSCRIBE", "ch")
            out = [c.ask("PUBLISH", "ch", "1"), c.read()]
            c.send("CLIENT", "REPLY", "OFF")
            out += [c.ask("PSUBSCRIBE", "x*"), c.ask("PUNSUBSCRIBE", "x*")]
            wait_for(lambda: p.command("PUBLISH", "ch", "2") == 1)
            out.append(c.read())
            c.send("CLIENT", "REPLY", "ON")
            out.append(c.read())
            c.send("CLIENT", "REPLY", "SKIP")
            c.send("PING")
            out.append(c.ask("PING", "x"))
            return out

        self.compare(play)

    def test_keyspace_events_are_messages(self):
        def play(server):
            c, p = server.client(), server.client()
            p.command("CONFIG", "SET", "notify-keyspace-events", "KEA")
            c.ask("PSUBSCRIBE", "__key*")
            for argv in (["SET", "k", "v"], ["LPUSH", "l", "a"], ["LPOP", "l"],
                         ["EXPIRE", "k", "100"], ["DEL", "k", "nosuch"], ["SELECT", "3"],
                         ["HSET", "h", "f", "v"]):
                p.command(*argv)
            p.command("CONFIG", "SET", "notify-keyspace-events", "")
            p.command("SET", "k", "v")
            p.command("PUBLISH", "__key_end", "")
            out = []
            while not out or out[-1][1][2][1] != b"__key_end":
                out.append(c.read())
            return out

        self.compare(play)

    def test_monitor_shows_commands_as_redis_does(self):
        def play(server):
            m, c = server.client(), server.client()
            self.assertEqual(m.command("MONITOR"), b"OK")
            for argv in (["SET", "a", b'x\n\r\t\a\b\\"\x01\xc3\xa9'], ["GET", "a"],
                         ["AUTH", "x"], ["AUTH", "u", "p"], ["HELLO", "2", "AUTH", "d", "nopass"],
                         ["CONFIG", "GET", "x"], ["nosuch", "x"], ["get"], ["SUBSCRIBE", "a"],
                         ["UNSUBSCRIBE", "a"], ["SELECT", "1"], ["INCR", "n"],
                         ["PUBLISH", "a", "b"], ["MULTI"], ["SET", "t", "1"],
                         ["PUBLISH", "q", "1"], ["EXEC"],
                         ["PING", "end"]):
                c.ask(*argv)
            lines = []
            while not lines or b'"end"' not in lines[-1]:
                lines.append(m.read()[1])
            self.assertTrue(all(re.match(rb"\d{10}\.\d{6} \[\d+ 127\.0\.0\.1:\d+\] ", x)
                                for x in lines))
            return [re.sub(rb"^[\d.]+ \[(\d+) [\d.:]+\]", rb"[\1]", x) for x in lines]

        self.compare(play)

    def test_a_client_is_described_with_the_fields_of_redis(self):
        def play(server):
            c, other, sub = server.client(3), server.client(), server.client()
            c.command("CLIENT", "SETNAME", "me")
            other.command("SELECT", "2")
            other.command("MULTI")
            other.command("PING")
            sub.ask("PSUBSCRIBE", "x")
            lines = [c.command("CLIENT", "INFO").decode()]
            lines += c.command("CLIENT", "LIST").decode().splitlines()[-2:]
            lines += c.command("CLIENT", "LIST", "TYPE", "pubsub").decode().splitlines()[-1:]
            fixed = ("name", "age", "idle", "flags", "db", "sub", "psub", "ssub", "multi", "oll",
                     "omem", "events", "cmd", "user", "redir", "resp")
            out = []
            for line in lines:
                pairs = [pair.split("=", 1) for pair in line.split()]
                out.append([pair[0] for pair in pairs])
                out.append({k: v for k, v in pairs if k in fixed})
            return out

        self.compare(play)

    def test_clients_are_killed_by_address_id_type_and_user(self):
        def play(server):
            c = server.client()
            a, b, d, e = (server.client() for _ in range(4))
            ids = [x.command("CLIENT", "ID") for x in (a, b)]
            addr = "%s:%d" % d.socket.getsockname()
            e.ask("SUBSCRIBE", "ch")
            c.send_raw(server_under_test.encode("CLIENT", "KILL", "ID", ids[0]) +
                       server_under_test.encode("CLIENT", "LIST", "ID", ids[0]))
            out = [c.read(), c.read(), a.closed(),
                   c.ask("CLIENT", "KILL", "ADDR", addr, "TYPE", "pubsub"),
                   c.ask("CLIENT", "KILL", addr), d.closed(),
                   c.ask("CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "no"), e.closed(),
                   c.ask("CLIENT", "LIST", "ID", ids[0])]
            me = c.command("CLIENT", "ID")
            out.append(c.ask("CLIENT", "KILL", "ID", me, "SKIPME", "yes"))
            out.append(c.ask("CLIENT", "KILL", "ID", me, "SKIPME", "no"))
            out.append(c.closed())
            out.append(b.ask("PING"))
            return out

        self.compare(play)

    def test_unblock_ends_waiting_with_null_or_error(self):
        def play(server):
            c, w = server.client(), server.client()
            wid = w.command("CLIENT", "ID")
            out = []
            for how in ((), ("TIMEOUT",), ("ERROR",)):
                w.send("BLPOP", "nosuch", "0")
                wait_for(lambda: c.command("CLIENT", "UNBLOCK", wid, *how) == 1)
                out.append(w.read())
            w.send("WAIT", "3", "0")
            wait_for(lambda: c.command("CLIENT", "UNBLOCK", wid) == 1)
            out.append(w.read())
            out.append(c.ask("CLIENT", "UNBLOCK", wid))
            return out

        self.compare(play)

    def test_pause_holds_writes_back_or_everything(self):
        def play(server):
            c, w = server.client(), server.client()
            out = [c.ask("CLIENT", "PAUSE", "100000", "WRITE"), w.ask("GET", "k")]
            w.send("SET", "k", "1")
            out.append(w.nothing())
            out.append(c.ask("CLIENT", "UNPAUSE"))
            out.append(w.read())
            out.append(c.ask("CLIENT", "PAUSE", "1500"))
            w.send("GET", "k")
            out.append(w.nothing(0.05))
            out.append(w.read())
            return out

        self.compare(play)

    def test_a_pause_holds_commands_that_a_transaction_would_only_queue(self):
        def play(server):
            c, w = server.client(), server.client()
            out = [w.ask("MULTI"), c.ask("CLIENT", "PAUSE", "100000", "WRITE"), w.ask("GET", "k")]
            w.send("SET", "k", "1")
            wait_for(lambda: "blocked_clients:1" in c.command("INFO", "clients").decode())
            out.append(c.ask("CLIENT", "UNPAUSE"))
            out.append(w.read())
            out.append(w.ask("EXEC"))
            return out

        self.compare(play)

    def test_a_protected_command_is_refused_when_it_would_be_queued(self):
        def play(server):
            w = server.client()
            return [w.ask("MULTI"), w.ask("MODULE", "UNLOAD", "x"), w.ask("MODULE", "LIST"),
                    w.ask("EXEC")]

        self.compare(play)

    def test_memory_usage_is_of_the_same_order(self):
        filler = (["SET", "s", "x" * 10000], ["SET", "short", "hello"], ["SET", "i", "5"],
                  ["RPUSH", "l", *(f"element:{i}" for i in range(1000))],
                  ["SADD", "set", *(f"element:{i}" for i in range(1000))],
                  ["SADD", "ints", 1, 2, 3],
                  ["HSET", "h", *(f"element:{i}" for i in range(2000))],
                  ["ZADD", "z", *(x for i in range(1000) for x in (i, f"element:{i}"))],
                  ["XADD", "x", "1-1", "field", "v" * 1000])
        ours, theirs = (server.client() for server in self.both)
        for argv in filler:
            ours.command(*argv)
            theirs.command(*argv)
            with self.subTest(key=argv[1]):
                got, want = (c.command("MEMORY", "USAGE", argv[1]) for c in (ours, theirs))
                self.assertLess(got, want * 2 + 64)
                self.assertGreater(got * 4 + 64, want)
                every = ours.command("MEMORY", "USAGE", argv[1], "SAMPLES", "0")
                self.assertLess(abs(every - got), got / 2 + 64)

    def test_memory_stats_has_the_fields_of_redis(self):
        def play(server, proto):
            c = server.client(proto)
            c.command("SET", "k", "v", "EX", "100")
            reply = c.ask("MEMORY", "STATS")
            pairs = reply[1] if proto == 3 else list(zip(reply[1][::2], reply[1][1::2]))
            return [(k, v[0]) if not isinstance(v[1], list) else (k, "map") for k, v in pairs]

        for proto in (2, 3):
            self.compare(play, proto)

    def test_debug_object_and_digest_agree(self):
        def play(server):
            c = server.client()
            c.command("RPUSH", "l", *range(300))
            c.command("RPUSH", "long", *("x" * 100 + str(i) for i in range(300)))
            c.command("SADD", "s", "a", "b")
            c.command("SET", "str", "hello")
            out = [c.command("DEBUG", "DIGEST"), c.command("DEBUG", "DIGEST-VALUE", "l", "s")]
            for key in ("l", "long", "s", "str"):
                text = c.command("DEBUG", "OBJECT", key).decode()
                text = re.sub(r"at:\S+", "at:P", re.sub(r"lru:\d+", "lru:N", text))
                out.append(text)
            return out

        self.compare(play)


class Alone(unittest.TestCase):
    """What is this server's own."""

    def test_it_reports_its_own_version_and_resets_its_counters(self):
        with Redoubt() as server:
            info = server.info()
            self.assertEqual(info["redis_version"], "7.0.15")
            self.assertRegex(info["redoubt_version"], r"^\d+\.\d+\.\d+$")
            c = server.client()
            c.command("SET", "k", "v")
            c.command("GET", "k")
            self.assertEqual(server.info()["keyspace_hits"], "1")
            c.command("CONFIG", "RESETSTAT")
            self.assertEqual(server.info()["keyspace_hits"], "0")

    def test_messages_to_oneself_inside_exec_do_not_break_its_reply(self):
        with Redoubt() as server:
            c = server.client(3)
            c.ask("SUBSCRIBE", "ch")
            for argv in (["MULTI"], ["PING"], ["PUBLISH", "ch", "m"], ["PING"]):
                c.ask(*argv)
            push, reply = c.ask("EXEC"), c.read()
            self.assertEqual(push, (">", [("$", b"message"), ("$", b"ch"), ("$", b"m")]))
            self.assertEqual(reply, ("*", [("+", b"PONG"), (":", 1), ("+", b"PONG")]))

    def test_lolwut_draws_and_prints_the_version_last(self):
        with Redoubt() as server:
            lines = server.client().command("LOLWUT").decode().splitlines()
            self.assertGreater(len(lines), 10)
            self.assertEqual(lines[-1], "Redis ver. 7.0.15")

    def test_debug_is_refused_unless_it_is_enabled(self):
        with Redoubt({"enable-debug-command": "no"}) as server:
            with self.assertRaisesRegex(ReplyError, "^ERR DEBUG command not allowed"):
                server.client().command("DEBUG", "SLEEP", "0")
        with Redoubt({"enable-debug-command": "local"}) as server:
            self.assertEqual(server.client().command("DEBUG", "SLEEP", "0"), b"OK")

    def test_help_is_given_in_the_usual_frame(self):
        with Redoubt() as server:
            c = server.client()
            for name in ("CLIENT", "MEMORY", "SLOWLOG", "LATENCY", "PUBSUB", "DEBUG", "FUNCTION",
                         "SCRIPT", "MODULE"):
                lines = c.command(name, "HELP")
                self.assertEqual(lines[0].decode(), f"{name} <subcommand> [<arg> [value] [opt] "
                                                    "...]. Subcommands are:")
                self.assertEqual(lines[-2:], [b"HELP", b"    Prints this help."])


if __name__ == "__main__":
    unittest.main()
