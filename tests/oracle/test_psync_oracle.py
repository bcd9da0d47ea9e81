"""A replica of ours follows a real master: what arrives must make the master's data.

DEBUG DIGEST shows whether the data is the same.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
from redis_server import RedisServer  # noqa: E402

FOLLOW = os.environ.get("REDOUBT_FOLLOW", "follow")
MASTER = {"repl-diskless-sync": "yes", "repl-diskless-sync-delay": "0",
          "repl-ping-replica-period": "1"}
LIBRARY = b"#!lua name=lib\nredis.register_function('f', function() return 1 end)"
WAIT_SECONDS = 600


def info(server, field):
    text = server.command("INFO", "replication").decode()
    return re.search(rf"^{field}:(.*?)\r?$", text, re.M).group(1)


def wait_until(what, condition):
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain until {what}")
        time.sleep(0.02)


def some_commands(server, rng, n):
    for _ in range(n):
        key = b"k%d" % rng.randrange(30)
        value = bytes(rng.randrange(256) for _ in range(rng.randrange(50)))
        kind = rng.randrange(8)
        if kind == 0:
            server.command("SELECT", rng.randrange(4))
        elif kind == 1:
            server.command("MULTI")
            server.command("SET", b"s" + key, value)
            server.command("SADD", b"set" + key, value, "m")
            server.command("EXEC")
        else:
            server.command(*[
                ("SET", b"s" + key, value * 200),
                ("RPUSH", b"l" + key, value, "x"),
                ("ZADD", b"z" + key, rng.randrange(100) / 4, value),
                ("HSET", b"h" + key, value, rng.randrange(9)),
                ("SET", b"e" + key, value, "PX", 10000000 + rng.randrange(1000)),
                ("XADD", b"x" + key, "*", "f", value),
            ][kind - 2])


class Run:
    """A follower that has ended: its lines."""

    def __init__(self, server, **options):
        self.end(Run.begin(server, **options))

    def end(self, follower):
        self.lines = follower.communicate(timeout=600)[0].decode().splitlines()
        return self

    @staticmethod
    def begin(server, **options):
        words = [f"{name.replace('_', '-')}={value}" for name, value in options.items()]
        return subprocess.Popen([FOLLOW, str(server.port), *words], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE)

    def all(self, word):
        """What follows the word, of each line that begins with it."""
        return [line[len(word) + 1:] for line in self.lines if line.split(" ")[0] == word]

    def one(self, word):
        (rest,) = self.all(word)
        return rest


class Psync(unittest.TestCase):
    def setUp(self):
        self.rng = random.Random(7)
        self.dir = tempfile.TemporaryDirectory(prefix="redoubt-test-")
        self.data = os.path.join(self.dir.name, "data.rdb")

    def tearDown(self):
        self.dir.cleanup()

    def same(self, run, server):
        self.assertEqual(run.one("digest"), server.command("DEBUG", "DIGEST").decode())

    def offset(self, server):
        return int(info(server, "master_repl_offset"))

    def wait_for_replica(self, server):
        at = self.offset(server)
        wait_until("the offset is acknowledged", lambda: int(re.search(
            r"offset=(\d+)", info(server, "slave0")).group(1)) >= at)

    def follow_writes(self, server, **options):
        """Commands before and while a follower is there, who ends after the last of them."""
        some_commands(server, self.rng, 200)
        replicas = int(info(server, "connected_slaves"))
        follower = Run.begin(server, data=self.data, until=2**62, **options)
        try:
            wait_until("a replica is online",
                       lambda: "state=online" in server.command("INFO", "replication").decode()
                       and int(info(server, "connected_slaves")) == replicas + 1)
            some_commands(server, self.rng, 200)
            self.assertEqual(server.command("WAIT", replicas + 1, WAIT_SECONDS * 1000),
                             replicas + 1)
        finally:
            server.command("CLIENT", "KILL", "TYPE", "replica")
            run = Run.__new__(Run).end(follower)
        return run

    def test_a_full_resynchronisation_by_mark_and_the_stream_after_it_make_the_data(self):
        with RedisServer(MASTER) as master:
            run = self.follow_writes(master)
            self.assertEqual(run.one("payload"), "by mark")
            self.assertIn("error closed", "\n".join(run.lines))
            self.assertGreater(int(run.one("commands")), 150)
            self.same(run, master)

    def test_a_payload_by_length_does_the_same(self):
        with RedisServer({**MASTER, "repl-diskless-sync": "no"}) as master:
            run = self.follow_writes(master)
            self.assertEqual(run.one("payload"), "by length")
            self.same(run, master)
            run = self.follow_writes(master, no_eof=1, no_psync2=1)
            self.assertEqual(run.one("payload"), "by length")
            self.same(run, master)

    def test_the_master_knows_where_its_replica_is(self):
        with RedisServer(MASTER) as master:
            follower = Run.begin(master, until=2**62, port=7777, ip="10.1.2.3", version="7.0.15")
            try:
                wait_until("the replica is online", lambda: "state=online" in
                           master.command("INFO", "replication").decode())
                self.assertIn("ip=10.1.2.3,port=7777,", info(master, "slave0"))
                master.command("SET", "k", "v")
                self.assertEqual(master.command("WAIT", 1, WAIT_SECONDS * 1000), 1)
                self.wait_for_replica(master)
            finally:
                follower.kill()
                follower.communicate()

    def test_after_a_cut_only_what_is_missing_is_sent(self):
        with RedisServer(MASTER) as master:
            first = self.follow_writes(master)
            replid, offset, db = first.one("place").split(" ")
            some_commands(master, self.rng, 300)
            run = Run(master, data=self.data, id=replid, offset=offset, db=db,
                      until=self.offset(master))
            self.assertEqual(run.one("continue"), f"{replid} {offset} same")
            self.assertEqual(run.all("payload"), [])
            self.same(run, master)

    def test_an_unknown_offset_causes_a_full_sync(self):
        with RedisServer(MASTER) as master:
            first = self.follow_writes(master)
            replid, offset, _ = first.one("place").split(" ")
            run = Run(master, data=self.data, id=replid, offset=int(offset) + 10**9,
                      until=self.offset(master))
            self.assertEqual(run.one("full").split(" ")[0], replid)
            self.same(run, master)

    def test_a_promoted_replica_continues_with_a_new_id(self):
        with RedisServer(MASTER) as master, RedisServer(MASTER) as other:
            other.command("REPLICAOF", "127.0.0.1", master.port)
            wait_until("the link is up", lambda: info(other, "master_link_status") == "up")
            first = self.follow_writes(master)
            replid, offset, db = first.one("place").split(" ")
            wait_until("both are at one place",
                       lambda: self.offset(other) >= self.offset(master))
            other.command("REPLICAOF", "NO", "ONE")
            some_commands(other, self.rng, 100)
            run = Run(other, data=self.data, id=replid, offset=offset, db=db,
                      until=self.offset(other))
            new = info(other, "master_replid")
            self.assertNotEqual(new, replid)
            self.assertEqual(run.one("continue"), f"{new} {offset} changed")
            self.assertEqual(run.one("place").split(" ")[0], new)
            self.same(run, other)

    def test_a_replica_of_a_replica_continues_in_the_database_of_the_snapshot(self):
        with RedisServer(MASTER) as master, RedisServer(MASTER) as middle:
            middle.command("REPLICAOF", "127.0.0.1", master.port)
            wait_until("the link is up", lambda: info(middle, "master_link_status") == "up")
            master.command("SELECT", 3)
            master.command("SET", "a", 1)
            wait_until("the write is there", lambda: self.offset(middle) >= self.offset(master))
            follower = Run.begin(middle, until=2**62)
            try:
                wait_until("the replica is online", lambda: "state=online" in
                           middle.command("INFO", "replication").decode())
                master.command("SET", "b", 2)
                wait_until("the write is there",
                           lambda: self.offset(middle) >= self.offset(master))
                self.wait_for_replica(middle)
            finally:
                middle.command("CLIENT", "KILL", "TYPE", "replica")
                run = Run.__new__(Run).end(follower)
            self.assertEqual(run.one("stream-db"), "3")
            self.same(run, master)

    def test_sync_brings_the_data_and_no_place(self):
        with RedisServer(MASTER) as master:
            run = self.follow_writes_by_sync(master)
            self.assertEqual(run.one("sync"), "")
            self.assertEqual(run.all("place"), [])
            self.same(run, master)

    def follow_writes_by_sync(self, master):
        some_commands(master, self.rng, 200)
        follower = Run.begin(master, sync=1, no_eof=1, no_psync2=1)
        try:
            wait_until("a replica is online", lambda: "state=online" in
                       master.command("INFO", "replication").decode())
            some_commands(master, self.rng, 200)
            # The progress of such a replica is not visible: what the server has sent, it will get.
            wait_until("all is sent", lambda: b" events=r " in
                       master.command("CLIENT", "LIST", "TYPE", "replica"))
        finally:
            master.command("CLIENT", "KILL", "TYPE", "replica")
            run = Run.__new__(Run).end(follower)
        return run

    def test_rdb_only_brings_the_snapshot_alone(self):
        with RedisServer(MASTER) as master:
            some_commands(master, self.rng, 300)
            run = Run(master, rdb_only=1)
            self.assertEqual(run.all("error"), [])
            self.assertEqual(run.one("commands"), "0")
            self.same(run, master)

    def test_a_filter_brings_functions_and_no_key(self):
        with RedisServer(MASTER) as master:
            some_commands(master, self.rng, 50)
            master.command("FUNCTION", "LOAD", LIBRARY)
            run = Run(master, rdb_only=1, filter="functions", data=self.data)
            self.assertEqual(run.one("digest"), "0" * 40)
            with open(self.data, "rb") as f:
                self.assertIn(b"register_function", f.read())

    def test_passwords_and_users_are_who_they_say_they_are(self):
        with RedisServer(MASTER) as master:
            master.command("SET", "k", "v")
            master.command("ACL", "SETUSER", "copy", "on", ">secret", "+psync", "+replconf",
                           "+ping")
            master.command("ACL", "SETUSER", "weak", "on", ">secret", "+ping", "+replconf")
            master.command("CONFIG", "SET", "requirepass", "main")
            for who in ({"password": "main"}, {"user": "copy", "password": "secret"}):
                run = Run(master, until=0, **who)
                self.same(run, master)
            for who, word in (({}, "NOAUTH"), ({"password": "wrong-one"}, "WRONGPASS"),
                              ({"user": "copy", "password": "wrong-one"}, "WRONGPASS"),
                              ({"user": "weak", "password": "secret"}, "NOPERM")):
                run = Run(master, until=0, **who)
                self.assertRegex(run.one("error"), f"^auth .*{word}")
                self.assertNotIn("wrong-one", "\n".join(run.lines))

    def test_a_replica_without_its_master_says_later(self):
        with RedisServer(MASTER) as master:
            with RedisServer(MASTER) as gone:
                port = gone.port
            master.command("REPLICAOF", "127.0.0.1", port)
            run = Run(master, until=0)
            self.assertRegex(run.one("error"), "^retry .*NOMASTERLINK")

    def test_a_master_that_loads_says_later(self):
        config = {**MASTER, "loading-process-events-interval-bytes": "1024"}
        with RedisServer(MASTER) as master:
            some_commands(master, self.rng, 300)
            master.command("SAVE")
            with RedisServer(config) as loading:
                loading.command("CONFIG", "SET", "key-load-delay", "50000")
                loading.command("REPLICAOF", "127.0.0.1", master.port)

                def is_loading():
                    try:
                        loading.command("GET", "k")
                        return False
                    except redis_server.ReplyError as e:
                        return str(e).startswith("LOADING")
                wait_until("the server loads", is_loading)
                run = Run(loading, until=0)
                self.assertRegex(run.one("error"), "^retry .*(LOADING|NOMASTERLINK)")


if __name__ == "__main__":
    unittest.main()
