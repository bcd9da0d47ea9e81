"""What clients may take of memory: limits of output, maxmemory-clients, buffers of idle ones.

Each is driven beside redis-server where that is installed, and asked for the same.
"""

import contextlib
import time
import unittest

from server_under_test import Redis, Redoubt, Reference, ServerDied, encode, wait_for

KINDS = [Redoubt, Redis]
OF_7_0 = [Redoubt, Reference]  # where later versions do something else


def both(config=None, kinds=KINDS):
    """Each server in turn."""
    for kind in kinds:
        with kind(config) as server:
            yield server


def clients(asking):
    """CLIENT LIST, as dicts by name."""
    lines = asking.command("CLIENT", "LIST").decode().splitlines()
    found = [dict(word.split("=", 1) for word in line.split(" ")) for line in lines]
    return {fields["name"]: fields for fields in found}


def named(server, name):
    c = server.client()
    c.command("CLIENT", "SETNAME", name)
    return c


class Output(unittest.TestCase):
    LIMIT = {"client-output-buffer-limit": "normal 100000 0 0"}

    def test_a_pipeline_over_the_hard_limit_is_cut_and_nothing_is_sent(self):
        for server in both(self.LIMIT):
            watching, c = server.client(), named(server, "pipe")
            watching.command("SET", "big", "x" * 10000)
            pairs = [encode("GET", "big") + encode("SET", f"k{i}", 1) for i in range(20)]
            c.send_raw(b"".join(pairs))
            self.assertTrue(c.closed())
            self.assertEqual(c.buf, b"")
            self.assertNotIn("pipe", clients(watching))
            self.assertEqual(watching.command("EXISTS", "k19"), 0)
            self.assertIn("for overcoming of output buffer limits", server.log)

    def test_an_answer_over_the_hard_limit_ends_the_client_however_fast_it_reads(self):
        for server in both(self.LIMIT):
            watching, c = server.client(), named(server, "fast")
            watching.command("SETRANGE", "big", 200000, "x")
            with self.assertRaises(ServerDied):
                for _ in range(3):
                    c.command("GET", "big")
            self.assertNotIn("fast", clients(watching))

    def test_a_transaction_over_the_hard_limit_is_done_and_not_answered(self):
        for server in both(self.LIMIT):
            watching, c = server.client(), server.client()
            watching.command("SET", "big", "x" * 10000)
            c.command("MULTI")
            for _ in range(15):
                c.command("GET", "big")
            c.command("SET", "after", 1)
            c.send("EXEC")
            self.assertTrue(c.closed())
            self.assertEqual(c.buf, b"")
            self.assertEqual(watching.command("EXISTS", "after"), 1)

    def test_a_reply_that_cannot_be_sent_is_not_completed(self):
        commands = [["HRANDFIELD", "h"], ["SRANDMEMBER", "s"], ["ZRANDMEMBER", "z"]]
        for server in both(self.LIMIT):
            watching = server.client()
            watching.command("HSET", "h", "f", 1)
            watching.command("SADD", "s", "a")
            watching.command("ZADD", "z", 1, "a")
            began = time.monotonic()
            for command in commands:
                with self.assertRaises(ServerDied):
                    server.client().command(*command, -2000000000)
            self.assertLess(time.monotonic() - began, 100)
            watching.command("DEBUG", "POPULATE", 2000, "k" * 100)
            with self.assertRaises(ServerDied):
                server.client().command("KEYS", "*")

    def test_a_limit_of_one_command_is_none_for_messages_that_come_later(self):
        config = {"client-output-buffer-limit": "normal 20000 0 0 pubsub 0 0 0"}
        for server in both(config):
            c, teller = server.client(), server.client()
            c.command("SUBSCRIBE", "news")
            for _ in range(100):
                teller.command("PUBLISH", "news", "x" * 10000)
            for _ in range(100):
                self.assertEqual(len(c.read()[1]), 3)


class SoftLimit(unittest.TestCase):
    SECONDS = 3
    LIMIT = {"client-output-buffer-limit": f"pubsub 0 100000 {SECONDS}"}
    MESSAGES, SIZE = 1200, 20000  # more than a socket holds

    def burst(self, asking):
        asking.send_raw(encode("MULTI") + encode("PUBLISH", "c", "x" * self.SIZE) * self.MESSAGES +
                        encode("EXEC"))
        for _ in range(self.MESSAGES + 2):
            asking.read()

    def rounds(self, server, seconds):
        """A subscriber that is over the limit most of the time, and below it now and then. None:
        the machine was too slow for that."""
        asking, c = server.client(), server.client()
        try:
            return self.rounds_of(asking, c, seconds)
        finally:
            c.close()

    def rounds_of(self, asking, c, seconds):
        c.command("SUBSCRIBE", "c")
        end = time.monotonic() + 2.5 * seconds
        while time.monotonic() < end:
            began = time.monotonic()
            self.burst(asking)
            time.sleep(0.3 * seconds)
            left = self.MESSAGES * len(encode("message", "c", "x" * self.SIZE))
            while left > 0:  # fast: the moment below the limit is to be short
                data = c.socket.recv(min(left, 1 << 20))
                if not data:  # closed: rightly so, if the machine was too slow
                    return None if time.monotonic() - began > 0.7 * seconds else False
                left -= len(data)
            if time.monotonic() - began > 0.7 * seconds:
                return None
        return True

    def test_a_client_that_gets_below_the_limit_in_between_stays(self):
        for server in both(self.LIMIT):
            done = None
            others = [server.client() for _ in range(60)]  # each is looked at once a second
            self.assertEqual(len(others), 60)
            for seconds in (self.SECONDS, 4, 6, 9, 13, 20, 30):  # enough for a slow machine
                others[0].command("CONFIG", "SET", "client-output-buffer-limit",
                                  f"pubsub 0 100000 {seconds}")
                before = len(server.log)
                with contextlib.suppress(ServerDied):
                    done = self.rounds(server, seconds)
                    if done is not None:
                        break
            self.assertTrue(done, server.name)
            self.assertNotIn("overcoming of output buffer limits", server.log[before:])

    def test_a_client_that_stays_over_the_limit_is_closed_and_logged(self):
        for server in both(self.LIMIT):
            asking, c = server.client(), named(server, "slow")
            c.command("SUBSCRIBE", "c")
            self.burst(asking)
            wait_for(lambda: "slow" not in clients(asking))
            self.assertRegex(server.log, r"# Client id=\d+ .*name=slow .* (scheduled to be closed "
                                         r"ASAP|closed) for overcoming of output buffer limits\.")


class Eviction(unittest.TestCase):
    def limited(self, server, limit):
        c = named(server, "control")
        c.command("CLIENT", "NO-EVICT", "on")
        c.command("CONFIG", "SET", "maxmemory-clients", limit)
        return c

    def assert_evicted(self, control, name):
        wait_for(lambda: name not in clients(control))

    def test_input_queues_output_watches_and_patterns_count(self):
        for server in both():
            control = self.limited(server, 300000)
            control.command("SET", "big", "x" * 100000)
            c = named(server, "input")
            with contextlib.suppress(ServerDied):
                c.send_raw(b"*1\r\n$900000\r\n" + b"x" * 800000)
            self.assert_evicted(control, "input")
            c = named(server, "queue")
            c.command("MULTI")
            with self.assertRaises(ServerDied):
                for _ in range(20):
                    c.command("SET", "k", "x" * 50000)
            c = named(server, "output")
            with contextlib.suppress(ServerDied):
                c.send_raw(encode("GET", "big") * 300)
            self.assert_evicted(control, "output")
            for command in ["WATCH", "PSUBSCRIBE", "SUBSCRIBE"]:
                c = server.client()
                with self.assertRaises(ServerDied):
                    for i in range(200):
                        c.command(command, *[f"{i}:{k}" for k in range(100)])
                        while command != "WATCH" and i > 0 and c.buf:
                            c.read()
            self.assertEqual(server.info("stats")["evicted_clients"], "6")
            self.assertIn("Evicting client: id=", server.log)

    def test_clients_that_have_gone_leave_no_memory_behind(self):
        """What a transaction or WATCH adds to tables, the end of a client takes out of them."""
        names = [f"name-{i}" for i in range(2000)]
        shares = {
            "WATCH": [("WATCH", *names)],
            "SUBSCRIBE": [("MULTI",), ("SUBSCRIBE", *names), ("EXEC",)],
            "PSUBSCRIBE": [("MULTI",), ("PSUBSCRIBE", *names), ("EXEC",), ("PUNSUBSCRIBE",)],
            "UNSUBSCRIBE": [("SUBSCRIBE", *names), ("MULTI",), ("UNSUBSCRIBE",), ("EXEC",)],
            "tracking": [("CLIENT", "TRACKING", "ON"), ("MULTI",), ("MGET", *names), ("EXEC",)],
        }
        with Redoubt({"tracking-table-max-keys": "100"}) as server:
            for what, words in shares.items():
                used = [self.used_after(server, words) for _ in range(6)]
                self.assertLess(abs(used[-1] - used[1]), 10000, (what, used))

    def used_after(self, server, words):
        c = server.client(3)
        c.send_raw(b"".join(encode(*one) for one in [*words, ("ECHO", "end")]))
        while c.read() != ("$", b"end"):
            pass
        c.close()
        wait_for(lambda: server.info("clients")["connected_clients"] == "1")
        return int(server.info("memory")["used_memory"])

    def test_the_largest_go_first_and_only_as_many_as_needed(self):
        small, large = 200000, 1000000
        for server in both():
            control = self.limited(server, 0)
            for i in range(3):
                for size in [small, large]:
                    c = named(server, f"{size}-{i}")
                    c.send_raw(b"*1\r\n$%d\r\n" % size + b"v" * (size - 500))
            sizes = wait_for(lambda: self.complete(clients(control), 3 * (small + large)))
            control.command("CONFIG", "SET", "maxmemory-clients", sum(sizes) - large // 2)
            wait_for(lambda: len(clients(control)) == 6)
            left = [name for name in clients(control) if name.startswith(f"{large}-")]
            self.assertEqual(len(left), 2)
            self.assertEqual(server.info("stats")["evicted_clients"], "1")
            control.command("CONFIG", "SET", "maxmemory-clients", 0)

    def complete(self, found, at_least):
        sizes = [int(fields["tot-mem"]) for fields in found.values()]
        return sizes if sum(sizes) >= at_least else None

    def test_a_client_over_the_limit_is_closed_before_the_next_command(self):
        for server in both():
            control = self.limited(server, 1000000)
            control.command("SET", "big", "x" * 100000)
            c = named(server, "reads-nothing")
            for _ in range(200):
                fields = clients(control).get("reads-nothing")
                if fields is None or "A" in fields["flags"]:  # is closed by the end of the turn
                    break
                self.assertLess(int(fields["tot-mem"]), 1000000)
                with contextlib.suppress(ServerDied):
                    c.send("GET", "big")
            wait_for(lambda control=control: "reads-nothing" not in clients(control))

    def test_a_long_argument_takes_its_length_and_no_more(self):
        for server in both():
            watching, c = server.client(), named(server, "long")
            c.send_raw(b"*2\r\n$1000000\r\n" + b"x" * 995000)
            fields = wait_for(lambda: self.reads(clients(watching)["long"], 995000))
            self.assertLess(int(fields["tot-mem"]), 1100000)

    def reads(self, fields, n):
        return fields if fields["qbuf"] == str(n) else None

    def test_a_share_of_maxmemory_and_no_evict(self):
        for server in both({"maxmemory": "20mb"}):
            control = self.limited(server, "5%")
            spared, c = named(server, "spared"), named(server, "c")
            spared.command("CLIENT", "NO-EVICT", "on")
            spared.send_raw(b"*1\r\n$400000\r\n" + b"x" * 390000)
            self.assertIn("c", clients(control))
            spared.send_raw(b"x" * 100)
            with contextlib.suppress(ServerDied):
                c.send_raw(b"*1\r\n$900000\r\n" + b"x" * 890000)
            self.assert_evicted(control, "c")
            self.assertIn("spared", clients(control))


    def test_a_limit_that_is_too_low_still_lets_clients_talk(self):
        for server in both():
            c = server.client()
            c.command("CONFIG", "SET", "maxmemory-clients", 1)
            time.sleep(0.2)
            self.assertEqual(c.command("PING"), b"PONG")
            c.command("CONFIG", "SET", "maxmemory-clients", 0)
            self.assertEqual(server.info("stats")["evicted_clients"], "0")


class Buffers(unittest.TestCase):
    def test_the_answers_of_an_idle_client_have_little_room(self):
        for server in both():
            asking, c = server.client(), named(server, "c")
            asking.command("DEBUG", "REPLYBUFFER", "PEAK-RESET-TIME", 100)
            asking.command("SET", "big", "x" * 32768)
            c.command("GET", "big")
            wait_for(lambda: 600 <= int(clients(asking)["c"]["rbs"]) < 1200)

            def uses_all():
                c.command("GET", "big")
                return int(clients(asking)["c"]["rbs"]) == 16384

            wait_for(uses_all)
            self.assertGreater(int(server.info("stats")["reply_buffer_shrinks"]), 0)

    def test_room_for_input_that_does_not_come_is_given_back(self):
        for server in both({"hz": "100"}, OF_7_0):
            asking, c = server.client(), named(server, "c")

            def room():
                fields = clients(asking)["c"]
                return int(fields["qbuf"]) + int(fields["qbuf-free"])

            self.assertGreaterEqual(room(), 16384)
            c.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n")
            wait_for(lambda: room() >= 1000000)
            wait_for(lambda: room() < 1000)
            c.send_raw(b"x" * 1000000 + b"\r\n")
            self.assertEqual(c.read(), ("+", b"OK"))
            self.assertEqual(asking.command("STRLEN", "k"), 1000000)

    def test_the_room_of_a_long_command_is_kept_for_the_next_one_but_not_for_long(self):
        for server in both():
            asking, c = server.client(), named(server, "c")

            def room():
                fields = clients(asking)["c"]
                return int(fields["qbuf"]) + int(fields["qbuf-free"])

            def shrinks():
                c.command("SET", "k", "x" * 100)
                return room() < 32768

            c.command("SET", "k", "x" * 400000)
            self.assertGreater(room(), 32768)
            wait_for(shrinks)
            self.assertGreater(room(), 0)
            self.assertEqual(asking.command("STRLEN", "k"), 100)

    def test_a_very_long_command_takes_its_room_with_it(self):
        with Redoubt() as server:
            asking, c = server.client(), named(server, "c")
            c.command("SET", "k", "x" * 4000000)
            self.assertLess(int(clients(asking)["c"]["qbuf-free"]), 32768)

    def test_the_line_of_the_calling_client_shows_its_command(self):
        for server in both():
            c = server.client()
            fields = clients(c)[""]
            self.assertEqual((fields["qbuf"], fields["argv-mem"], fields["obl"]), ("26", "10", "0"))
            c.command("MULTI")
            c.command("SET", "a", "b")
            queued = named(server, "other")
            self.assertEqual(clients(queued)[""]["multi-mem"], "29")

    def test_the_list_stays_in_the_order_of_coming(self):
        with Redoubt() as server:
            for _ in range(30):
                server.client().command("PING")
            time.sleep(0.5)
            lines = server.client().command("CLIENT", "LIST").decode().splitlines()
            ids = [int(line.split(" ")[0].split("=")[1]) for line in lines]
            self.assertEqual(ids, sorted(ids))


class Paused(unittest.TestCase):
    def test_clients_that_wait_for_the_end_of_a_pause_are_blocked_and_counted(self):
        for server in both():
            c, writing, asking = (server.client() for _ in range(3))
            c.command("CLIENT", "PAUSE", 100000, "WRITE")
            writing.send("SET", "k", 1)
            asking.send("PFCOUNT", "k")
            wait_for(lambda: server.info("clients")["blocked_clients"] == "2")
            c.command("CLIENT", "UNPAUSE")
            self.assertEqual(writing.read(), ("+", b"OK"))
            self.assertEqual(asking.read()[0], "-")
            self.assertEqual(server.info("clients")["blocked_clients"], "0")

    def test_nothing_expires_and_nothing_is_evicted_in_a_pause(self):
        for server in both({"maxmemory-policy": "allkeys-random"}):
            c = server.client()
            c.command("SET", "stays", 1)
            c.command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            c.command("SET", "k", 1, "PX", 500)
            c.command("CLIENT", "PAUSE", 100000, "WRITE")
            c.command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
            time.sleep(0.8)
            self.assertIsNone(c.command("GET", "k"))
            self.assertEqual(c.command("EXISTS", "k"), 0)
            self.assertEqual(c.command("DBSIZE"), 2)
            c.command("CONFIG", "SET", "maxmemory", 1)
            self.assertEqual(c.command("GET", "stays"), b"1")
            stats = server.info("stats")
            self.assertEqual((stats["expired_keys"], stats["evicted_keys"]), ("0", "0"))
            c.command("CONFIG", "SET", "maxmemory", "100mb")
            c.command("CLIENT", "UNPAUSE")
            wait_for(lambda: c.command("DBSIZE") == 1)

    def test_an_error_that_ends_a_waiting_counts_for_the_command_that_waited(self):
        for server in both():
            c, waiting = server.client(), server.client()
            number = waiting.command("CLIENT", "ID")
            waiting.send("BLPOP", "list", 0)
            wait_for(lambda: c.command("CLIENT", "UNBLOCK", number, "ERROR") == 1)
            self.assertEqual(waiting.read()[0], "-")
            self.assertIn("failed_calls=1", server.info("commandstats")["cmdstat_blpop"])
            self.assertEqual(server.info("errorstats")["errorstat_UNBLOCKED"], "count=1")
            waiting.command("PING")
            self.assertIn("failed_calls=0", server.info("commandstats")["cmdstat_ping"])


class Excess(unittest.TestCase):
    def test_keys_do_not_go_for_memory_that_was_given_back(self):
        for server in both({"maxmemory-policy": "allkeys-lru"}):
            c, late = server.client(), server.client()
            for i in range(50):
                c.command("SETRANGE", i, 10000, "x")
            used = int(server.info("memory")["used_memory"])
            c.command("CONFIG", "SET", "maxmemory", used + 5000000)
            late.send_raw(b"*1\r\n$4000000\r\n" + b"x" * 3999000)
            time.sleep(0.25)
            late.close()
            wait_for(lambda server=server: server.info("clients")["connected_clients"] == "2")
            for i in range(50, 80):
                c.command("SETRANGE", i, 100000, "x")
            self.assertEqual(server.info("stats")["evicted_keys"], "0")
            self.assertEqual(c.command("DBSIZE"), 80)

    def test_the_time_over_maxmemory_is_reported_and_ends(self):
        for server in both({"maxmemory-policy": "volatile-lru"}):
            c = server.client()
            c.command("SET", "k", 1)
            c.command("CONFIG", "SET", "maxmemory", 1)
            self.assertIn("OOM", c.ask("SET", "k", 2)[1].decode())
            time.sleep(0.2)
            stats = server.info("stats")
            self.assertGreaterEqual(int(stats["current_eviction_exceeded_time"]), 150)
            self.assertGreaterEqual(int(stats["total_eviction_exceeded_time"]), 150)
            c.command("CONFIG", "SET", "maxmemory", "100mb")

            def is_over(server=server):
                return server.info("stats")["current_eviction_exceeded_time"] == "0"

            wait_for(is_over)
            self.assertGreaterEqual(int(server.info("stats")["total_eviction_exceeded_time"]), 150)


class Strangers(unittest.TestCase):
    def test_a_client_that_talks_like_a_browser_is_closed(self):
        for server in both():
            for head in [b"POST / HTTP/1.1\r\nSET a 1\r\n", b"Host: x\r\nSET a 1\r\n"]:
                c = server.client()
                c.send_raw(head)
                self.assertTrue(c.closed())
                self.assertEqual(c.buf, b"")
            self.assertEqual(server.client().command("EXISTS", "a"), 0)
            self.assertEqual(server.log.count("Possible SECURITY ATTACK detected"), 1)


class Longest(unittest.TestCase):
    """What counts its bytes in 32 bits is refused, not cut, whatever the settings allow."""

    def test_an_argument_of_4_gib_is_refused_before_it_comes(self):
        config = {"proto-max-bulk-len": "8gb", "client-query-buffer-limit": "16gb"}
        with Redoubt(config) as server:
            for length in ((1 << 32) - 8, 1 << 32, (1 << 32) + 1, 6 << 30):
                c = server.client()
                c.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % length)
                self.assertEqual(c.read(), ("-", b"ERR Protocol error: invalid bulk length"))
                self.assertTrue(c.closed())
            c = server.client()
            c.command("SET", "k", "abc")
            too_long = ("-", b"ERR string exceeds maximum allowed size (proto-max-bulk-len)")
            self.assertEqual(c.ask("SETRANGE", "k", (1 << 32) - 8, "x"), too_long)
            self.assertEqual(c.ask("SETRANGE", "k", 1 << 32, "x"), too_long)
            self.assertEqual(c.ask("SETRANGE", "new", 1 << 32, "x"), too_long)
            self.assertEqual(c.ask("SETBIT", "k", 1 << 35, 1)[0], "-")
            self.assertEqual(c.command("GET", "k"), b"abc")
            self.assertEqual(c.command("EXISTS", "new"), 0)


class NotThere(unittest.TestCase):
    LINES = ["EVALSHA abc 0", "FCALL f 0", "FCALL_RO f 0", "FUNCTION DELETE f", "READONLY",
             "READWRITE", "ASKING", "DEBUG SET-DISABLE-DENY-SCRIPTS 1", "DEBUG MALLCTL nosuch"]

    def test_what_is_not_there_is_missed_in_the_words_of_servers(self):
        reported = []
        for server in both():
            c = server.client()
            reported.append([c.ask(*line.split()) for line in self.LINES])
        for answers in reported[1:]:
            self.assertEqual(answers, reported[0])


if __name__ == "__main__":
    unittest.main()
