"""A replica that loads a snapshot beside its data, expires keys of its own, and what it does about
errors."""

import os
import signal
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_server import crc64  # noqa: E402
from persistence import Faulty  # noqa: E402
from server_under_test import (  # noqa: E402
    Redis, Redoubt, ReplyError, encode, of_reference, redis_server, wait_for)
from test_replication import digest, follow, linked, offset, servers, wait_same  # noqa: E402
from test_replication_words import Master  # noqa: E402

KEYS = 200
DELAY = "20000"
SLOW_LOAD = {"loading-process-events-interval-bytes": "1024",
             "rdbcompression": "no", "repl-backlog-size": "16384", "repl-diskless-sync": "yes"}


def fill(server, text, size=2000):
    c = server.client()
    for i in range(KEYS):
        c.send("SET", f"key:{i}", text * size)
    for _ in range(KEYS):
        c.read()


def quiet(replica):
    """Loading is slow from the next sync on."""
    replica.client().command("CONFIG", "SET", "key-load-delay", "0")


def loading(replica):
    return replica.info("persistence")["async_loading"] == "1"


class Beside(unittest.TestCase):
    def begin(self, master, replica, other_history=False, size=2000, save_delay="5000"):
        """A replica with the data "a" begins to load the data "b"."""
        slow = replica.client()
        slow.command("CONFIG", "SET", "repl-diskless-load", "swapdb")
        slow.command("CONFIG", "SET", "key-load-delay", "0")
        fill(master, "a", size)
        follow(replica, master)
        wait_same(master, replica)
        slow.command("CONFIG", "SET", "key-load-delay", DELAY)
        c = master.client()
        c.command("CONFIG", "SET", "rdb-key-save-delay", save_delay)
        if other_history:
            c.command("DEBUG", "CHANGE-REPL-ID")
        c.send("MULTI")
        c.send("CLIENT", "KILL", "TYPE", "replica")
        for i in range(KEYS):
            c.send("SET", f"key:{i}", "b" * size)
        c.send("EXEC")
        for _ in range(KEYS + 3):
            c.read()

    def test_the_old_data_is_served_until_the_new_data_is_complete(self):
        for kinds in ((Redoubt, Redoubt), (Redis, Redoubt), (Redoubt, Redis)):
            with self.subTest(str(kinds)), servers(*kinds, config=SLOW_LOAD) as (master, replica):
                master.client().command("FUNCTION", "LOAD", "#!lua name=l\n"
                                        "redis.register_function{function_name='f', "
                                        "callback=function() return 1 end, flags={'no-writes'}}")
                self.begin(master, replica)
                wait_for(lambda: loading(replica))
                fields = replica.info("persistence")
                self.assertEqual(fields["loading"], "0")
                self.assertIn("loading_loaded_bytes", fields)
                c = replica.client()
                watching = replica.client()
                watching.command("WATCH", "key:1")
                self.assertEqual(c.command("GET", f"key:{KEYS - 1}"), b"a" * 2000)
                self.assertEqual(c.command("DBSIZE"), KEYS)
                self.assertEqual(c.command("FCALL", "f", 0), 1)
                for words in (("REPLICAOF", "NO", "ONE"), ("BGSAVE",),
                              ("CONFIG", "SET", "appendonly", "yes")):
                    # Later versions of redis-server do some of these.
                    if kinds[1] is Redoubt or redis_server.is_reference():
                        self.assertRegex(c.ask(*words)[1], b"^LOADING ")
                quiet(replica)
                wait_same(master, replica)
                self.assertEqual(c.command("GET", f"key:{KEYS - 1}"), b"b" * 2000)
                watching.command("MULTI")
                watching.command("GET", "key:1")
                self.assertIn(watching.ask("EXEC")[1], (None, b""))
                self.assertEqual(replica.info("persistence")["async_loading"], "0")

    def test_the_old_data_stays_when_the_sync_fails(self):
        with servers(Redoubt, Redoubt, config={**SLOW_LOAD, "appendonly": "yes"}) as (master,
                                                                                    replica):
            self.begin(master, replica)
            wait_for(lambda: loading(replica))
            before = digest(replica)
            port = master.port
            master.kill()
            quiet(replica)
            wait_for(lambda: "Discarding temporary DB" in replica.log)
            self.assertEqual(digest(replica), before)
            self.assertEqual(replica.client().command("GET", "key:0"), b"a" * 2000)
            replica.kill()  # its log was never closed
            replica.start()
            self.assertEqual(digest(replica), before)
            master.start_at(port)
            follow(replica, master)
            wait_same(master, replica)

    def test_data_of_another_history_is_kept_but_not_served(self):
        with servers(Redoubt, Redoubt, config=SLOW_LOAD) as (master, replica):
            self.begin(master, replica, other_history=True)
            wait_for(lambda: replica.info("persistence")["loading"] == "1")
            self.assertRegex(replica.client().ask("GET", "key:0")[1], b"^LOADING ")
            self.assertEqual(replica.info("persistence")["async_loading"], "0")
            master.kill()
            quiet(replica)
            wait_for(lambda: "Discarding temporary DB" in replica.log)
            self.assertEqual(replica.client().command("GET", "key:0"), b"a" * 2000)

    def test_a_log_holds_the_new_data_after_the_swap(self):
        with servers(Redoubt, Redoubt, config={**SLOW_LOAD, "appendonly": "yes"}) as (master,
                                                                                    replica):
            self.begin(master, replica)
            quiet(replica)
            wait_same(master, replica)
            wait_for(lambda: replica.info("persistence")["aof_rewrite_in_progress"] == "0")
            before = digest(replica)
            replica.kill()
            master.kill()
            replica.start()
            self.assertEqual(digest(replica), before)


    def test_the_data_is_not_swapped_under_a_script(self):
        with servers(Redoubt, Redoubt, config=SLOW_LOAD) as (master, replica):
            master.client().command("CONFIG", "SET", "rdbcompression", "yes")
            self.begin(master, replica, size=200, save_delay="0")  # it arrives in one piece
            wait_for(lambda: loading(replica))
            c, killer = replica.client(), replica.client()
            c.command("CONFIG", "SET", "busy-reply-threshold", "1")
            c.send_raw(encode("CONFIG", "SET", "key-load-delay", "0") +
                       encode("EVAL_RO", "local a = redis.call('GET', 'key:0') "
                              "repeat local b = redis.call('GET', 'key:0') until a ~= b "
                              "return 'swapped'", 0))
            c.read()
            time.sleep(1.5)  # the rest of the snapshot is loaded at once
            killer.ask("SCRIPT", "KILL")
            self.assertIn(b"Script killed", c.read()[1])
            wait_same(master, replica)


class BrokenSync(unittest.TestCase):
    """A snapshot that is damaged replaces neither the data nor the file of the replica."""

    def snapshots(self):
        good = bytearray(b"REDIS0010\xfe\x00\xfb\x02\x00\x00\x03new\x01v\x00\x05other\x01w\xff")
        sound = bytes(good) + crc64(good).to_bytes(8, "little")
        cut = bytearray(sound)
        cut[16] = 0x7f  # a name that is longer than the file
        other = bytearray(sound)
        other[20] ^= 1  # a value: only the checksum shows it
        return {"cut": bytes(cut), "changed": bytes(other), "newer": b"REDIS9999" + sound[9:]}

    def test_a_damaged_snapshot_replaces_nothing(self):
        for name, snapshot in self.snapshots().items():
            full = b"+FULLRESYNC %b 0\r\n$%d\r\n%b" % (b"a" * 40, len(snapshot), snapshot)
            with self.subTest(name), Redoubt() as replica, Master(PSYNC=full) as master:
                c = replica.client()
                c.command("SET", "old", "data")
                c.command("SAVE")
                path = os.path.join(replica.dir, "dump.rdb")
                with open(path, "rb") as f:
                    before = f.read()
                c.command("REPLICAOF", "127.0.0.1", master.port)
                wait_for(lambda: "Failed trying to load the MASTER synchronization DB from disk"
                         in replica.log)
                wait_for(lambda: len(master.requests()) > 1)  # it tries again
                self.assertEqual(c.command("GET", "old"), b"data")
                self.assertEqual(c.command("DBSIZE"), 1)
                with open(path, "rb") as f:
                    self.assertEqual(f.read(), before)
                c.command("REPLICAOF", "NO", "ONE")
                wait_for(lambda: [n for n in os.listdir(replica.dir) if n.startswith("temp-")]
                         == [])

    def ends_after_the_check(self, n_keys):
        """Whether a script begins during the check, and the link ends right after the script."""
        keys = b"".join(b"\x00\x08%08x\x01v" % i for i in range(n_keys))
        good = b"REDIS0010\xfe\x00" + keys + b"\xff"
        snapshot = good + crc64(good).to_bytes(8, "little")
        full = b"+FULLRESYNC %b 0\r\n$%d\r\n%b" % (b"a" * 40, len(snapshot), snapshot)
        script = ("local from = redis.call('TIME')[1] "
                  "repeat until redis.call('TIME')[1] - from > 3 return 'busy'")
        with Redoubt({"busy-reply-threshold": "1"}) as replica, Master(PSYNC=full) as master:
            c = replica.client()
            c.command("SET", "old", "data")
            c.command("REPLICAOF", "127.0.0.1", master.port)
            wait_for(lambda: c.command("ROLE")[3] == b"sync")
            wait_for(lambda: replica.info("replication").get("master_sync_left_bytes") == "0")
            c.send_raw(encode("EVAL_RO", script, 0) + encode("REPLICAOF", "NO", "ONE"))
            replies = [c.read()[1] for _ in range(2)]
            if replies[0].startswith(b"LOADING"):
                return False
            self.assertEqual(replies, [b"busy", b"OK"])
            return c.command("GET", "old") == b"data"

    def test_the_link_ends_between_the_check_of_a_snapshot_and_its_load(self):
        for n_keys in (50000, 200000, 800000):
            if self.ends_after_the_check(n_keys):
                return
        self.fail("no script was in time")


class OwnKeys(unittest.TestCase):
    def check(self, kind):
        with servers(Redoubt, kind, config={"appendonly": "yes"}) as (master, replica):
            top = master.client()
            top.command("SET", "theirs", "v", "PX", 200)
            follow(replica, master, replica_read_only="no")
            wait_for(lambda: linked(replica))
            top.command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            top.command("SET", "late", "v", "PX", 1)
            wait_for(lambda: offset(replica) == offset(master))
            c = replica.client()
            c.command("SET", "own", "v", "PX", 300)
            c.command("SET", "kept", "v")
            c.command("PEXPIRE", "kept", 100000)
            c.command("PERSIST", "kept")
            c.command("SELECT", 3)
            c.command("MULTI")  # the time does not advance in it
            for words in (("SADD", "own", "v"), ("PEXPIRE", "own", 300), ("DBSIZE",)):
                c.command(*words)
            self.assertEqual(c.command("EXEC"), [1, 1, 1])
            wait_for(lambda: c.command("DBSIZE") == 0)
            c.command("SELECT", 0)
            wait_for(lambda: c.command("EXISTS", "own") == 0)
            wait_for(lambda: replica.info("stats")["slave_expires_tracked_keys"] == "0")
            self.assertEqual(c.command("GET", "kept"), b"v")
            # The keys of the master wait for its DEL: they are still there.
            self.assertIsNone(c.command("GET", "late"))
            self.assertEqual(c.command("DEBUG", "OBJECT", "late")[:8], b"Value at")
            c.command("PEXPIREAT", "kept", 1)
            self.assertIsNone(c.command("GET", "kept"))
            wait_for(lambda: replica.info("stats")["slave_expires_tracked_keys"] == "0")
            return replica.info("stats")["expired_keys"]

    def test_a_writable_replica_expires_the_keys_of_its_clients(self):
        self.assertEqual(self.check(Redoubt), self.check(Redis))


EMPTY_RDB = b"REDIS0010\xff" + bytes(8)


class Script:
    """A master that sends an empty snapshot, then these commands."""

    def __init__(self, *commands):
        self.stream = b"".join(encode(*command) for command in commands)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        replica, _ = self.socket.accept()
        with replica, replica.makefile("rb") as lines:
            for line in lines:
                if line.startswith((b"*", b"$")):
                    continue
                word = line.strip().upper()
                if word == b"PSYNC":
                    replica.sendall(b"+FULLRESYNC %b 0\r\n$%d\r\n%b%b" % (
                        b"a" * 40, len(EMPTY_RDB), EMPTY_RDB, self.stream))
                    while replica.recv(4096):
                        pass
                    return
                elif word in (b"PING", b"REPLCONF"):
                    replica.sendall(b"+OK\r\n")

    def close(self):
        self.socket.close()


class Errors(unittest.TestCase):
    def check_refused(self, kind):
        master = Script(("SELECT", 0), ("MULTI",), ("NO-SUCH-COMMAND", "x"), ("SET", "a", 1),
                        ("EXEC",), ("SET", "b", "text"), ("INCR",), ("LPUSH", "b", 1),
                        ("SET", "end", 1))
        with kind() as replica:
            c = replica.client()
            c.command("REPLICAOF", "127.0.0.1", master.port)
            wait_for(lambda: c.command("EXISTS", "end"))
            self.assertEqual(c.command("EXISTS", "a"), 0)
            errors = replica.info("errorstats")
            said = [line.split(" # ")[1] for line in replica.log.splitlines()
                    if "== CRITICAL ==" in line or "Latest backlog is" in line]
            total = replica.info("stats")["unexpected_error_replies"]
        master.close()
        return errors, said, total

    def test_a_refused_command_in_the_stream_hides_no_later_error(self):
        ours = self.check_refused(Redoubt)
        self.assertEqual(ours[0], {"errorstat_ERR": "count=2", "errorstat_EXECABORT": "count=1",
                                   "errorstat_WRONGTYPE": "count=1"})
        self.assertEqual(ours, of_reference("refused", lambda _: self.check_refused(Redis)))

    def test_a_history_never_gets_a_known_id(self):
        with Faulty() as server:
            server.fail("random", 38)
            server.client().send("DEBUG", "CHANGE-REPL-ID")
            self.assertEqual(server.wait_end(), -signal.SIGABRT)
            self.assertIn("the system provides no random numbers", server.log)

    def test_an_error_in_the_stream_ends_the_process_where_the_setting_says_so(self):
        for setting in ("ignore", "panic", "panic-on-replicas"):
            with self.subTest(setting), servers(Redoubt, Redoubt) as (master, replica):
                follow(replica, master, propagation_error_behavior=setting)
                wait_for(lambda: linked(replica))
                top = master.client()
                c = replica.client()
                c.command("CONFIG", "SET", "replica-read-only", "no")
                c.command("SET", "n", "text")
                c.command("CONFIG", "SET", "replica-read-only", "yes")
                top.command("INCR", "n")
                wait_for(lambda: "== CRITICAL == This replica is sending an error" in replica.log)
                if setting == "ignore":
                    self.assertIn("after processing the command 'incr'", replica.log)
                    top.command("SET", "n", "v")
                    wait_same(master, replica)
                    self.assertEqual(replica.info("stats")["unexpected_error_replies"], "1")
                    continue
                replica.wait_end()
                self.assertIn("This replica panicked sending an error to its master",
                              replica.log)

    def check_disk(self, ignore):
        config = {"appendonly": "yes", "replica-ignore-disk-write-errors": ignore,
                  "dbfilename": "folder"}
        with servers(Redoubt, Redoubt, config=config) as (master, replica):
            follow(replica, master)
            wait_for(lambda: linked(replica))
            c = replica.client()
            c.command("CONFIG", "SET", "save", "3600 1")
            os.remove(replica.path("folder"))
            os.makedirs(replica.path("folder", "full"))
            c.command("BGSAVE", "SCHEDULE")
            wait_for(lambda: replica.info("persistence")["rdb_last_bgsave_status"] == "err")
            master.client().command("SET", "k", "v")
            if ignore == "yes":
                wait_same(master, replica)
                self.assertIn("unable to write to disk", replica.log)
            else:
                replica.wait_end()
                self.assertIn("Replica was unable to write command to disk.", replica.log)

    def test_a_replica_whose_disk_fails_ends_or_continues_as_configured(self):
        self.check_disk("yes")
        self.check_disk("no")


if __name__ == "__main__":
    unittest.main()
