"""Clusters and sentinels as the tools find them: what old, odd and hostile ones say."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fake_server import FakeServer, array, bulk  # noqa: E402

PRINT = os.environ.get("REDOUBT_PRINT_TOPOLOGY", "print_topology")


def number(n):
    return b":%d\r\n" % n


def node(host=b"10.0.0.1", port=7000, role=b"master", health=b"online", name=b"n1", **more):
    pairs = {b"id": bulk(name), b"port": number(port), b"ip": bulk(host), b"endpoint": bulk(host),
             b"role": bulk(role), b"replication-offset": number(1), b"health": bulk(health)}
    pairs.update({key.encode().replace(b"_", b"-"): value for key, value in more.items()})
    return array([part for key, value in pairs.items() for part in (bulk(key), value)])


def shard(slots, *nodes):
    return array([bulk(b"slots"), array([number(n) for n in slots]), bulk(b"nodes"),
                  array(list(nodes))])


def run(*args):
    return subprocess.run([PRINT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600)


class Cluster(unittest.TestCase):
    def ask(self, shards, slots=b"-ERR unknown\r\n", status=0, how="cluster"):
        with FakeServer(lambda args: shards if args[1] == b"SHARDS" else slots) as server:
            done = run(how, f"redis://127.0.0.1:{server.port}")
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        self.err = done.stderr.decode()
        return done.stdout.decode().splitlines()

    def test_masters_are_reported_in_the_order_of_slots(self):
        out = self.ask(array([
            shard([10000, 16383], node(port=7003, name=b"c")),
            shard([5, 9, 0, 3], node(port=7004, role=b"replica"), node(port=7001, name=b"a")),
            shard([4, 4, 10, 9999], node(port=7002, name=b"b")),
            shard([], node(port=7009, name=b"new")),
        ]))
        self.assertEqual(out, ["10.0.0.1:7001 a 0-3 5-9 with n1", "10.0.0.1:7002 b 4-4 10-9999",
                               "10.0.0.1:7003 c 10000-16383", "16384"])

    def test_a_master_that_failed_is_none(self):
        out = self.ask(array([shard([0, 9], node(port=7001, health=b"fail"),
                                    node(port=7002, name=b"b"))]))
        self.assertEqual(out, ["10.0.0.1:7002 b 0-9 with n1", "10"])
        self.ask(array([shard([0, 9], node(health=b"fail"))]), status=6)
        self.assertIn("slots from 0 have no master", self.err)

    def test_who_wants_one_shard_gets_it_while_another_has_no_master(self):
        out = self.ask(array([shard([0, 9], node(health=b"fail")),
                              shard([10, 19], node(port=7001, name=b"a"))]), how="partial")
        self.assertEqual(out, ["10.0.0.1:7001 a 10-19", "10"])

    def test_who_does_not_know_its_address_has_the_one_it_was_asked_at(self):
        for host in (b"", b"?", None):
            out = self.ask(array([shard([0, 9], node(host=host))]))
            self.assertEqual(out[0], "127.0.0.1:7000 n1 0-9")
        out = self.ask(array([shard([0, 9], node(endpoint=bulk(b"name.test")))]))
        self.assertEqual(out[0], "name.test:7000 n1 0-9")

    def test_before_7_0_slots_are_asked_for(self):
        slots = array([
            array([number(0), number(99), array([bulk(b"10.0.0.1"), number(7000), bulk(b"a")]),
                   array([bulk(b"10.0.0.2"), number(7000), bulk(b"r")])]),
            array([number(200), number(299), array([bulk(b""), number(7001)])]),
            array([number(100), number(199), array([bulk(b"10.0.0.1"), number(7000),
                                                    bulk(b"a")])])])
        out = self.ask(b"-ERR Unknown subcommand or wrong number of arguments\r\n", slots)
        self.assertEqual(out, ["10.0.0.1:7000 a 0-99 100-199 with r",
                               "127.0.0.1:7001  200-299", "300"])

    def test_no_member_of_a_cluster(self):
        self.ask(b"-ERR This instance has cluster support disabled\r\n", status=6)
        self.assertIn("cluster support disabled", self.err)
        self.ask(array([]), status=6)

    def test_what_makes_no_sense_is_refused(self):
        good = node()
        for reply in (
                b"+OK\r\n", number(7), bulk(b"x"), b"*-1\r\n", array([number(1)]),
                array([array([])]), array([shard([0], good)]), array([shard([5, 4], good)]),
                array([shard([0, 16384], good)]), array([shard([-1, 4], good)]),
                array([shard([0, 16383], good), shard([0, 0], good)]),
                array([shard([0, 9], node(port=0))]), array([shard([0, 9], node(port=65536))]),
                array([shard([0, 9], node(host=b"h" * 256))]),
                array([shard([0, 9], node(host=b"h\0"))]),
                array([shard([0, 9], node(name=b"n" * 64))]),
                array([shard([0, 9], number(1))]),
                array([array([bulk(b"slots"), array([array([number(1)]), number(1)]),
                              bulk(b"nodes"), array([good])])])):
            with self.subTest(reply=reply):
                self.ask(reply, status=6)
        for reply in (number(1), array([number(1)]), array([array([number(0), number(1)])]),
                      array([array([number(0), number(1), number(2)])]),
                      array([array([number(0), number(1), array([bulk(b"h")])])]),
                      array([array([number(0), number(1), array([bulk(b"h"), bulk(b"x")])])])):
            with self.subTest(reply=reply):
                self.ask(b"-ERR unknown\r\n", reply, status=6)


class Sentinel(unittest.TestCase):
    def test_the_first_that_knows_a_master_counts(self):
        def role(word):
            return lambda args: array([bulk(word)])

        def says(port):
            return lambda args: array([bulk(b"127.0.0.1"), bulk(b"%d" % port)])

        with FakeServer(role(b"slave")) as old, FakeServer(role(b"master")) as new, \
                FakeServer(lambda args: b"-NOPERM no\r\n") as shy, \
                FakeServer(lambda args: b"*-1\r\n") as ignorant, \
                FakeServer(says(old.port)) as late, FakeServer(says(new.port)) as good, \
                FakeServer(says(shy.port)) as other:
            def ask(*sentinels, status=0):
                done = run("sentinel", "mine", "redis://",
                           *(f"redis://127.0.0.1:{s if isinstance(s, int) else s.port}"
                             for s in sentinels))
                self.assertEqual(done.returncode, status, done.stderr)
                return done.stdout.decode().strip(), done.stderr.decode()

            self.assertEqual(ask(1, ignorant, late, good)[0], f"127.0.0.1:{new.port}")
            self.assertEqual(good.seen[0], [b"SENTINEL", b"get-master-addr-by-name", b"mine"])
            self.assertEqual(ask(other)[0], f"127.0.0.1:{shy.port}")
            self.assertIn("does not know master \"mine\"", ask(ignorant, status=6)[1])
            self.assertIn("as a master, but it is not", ask(late, status=6)[1])
            self.assertIn("refused", ask(1, status=6)[1])
            ask(status=2)

    def test_what_makes_no_sense_is_refused(self):
        for reply in (b"+OK\r\n", array([bulk(b"h")]), array([bulk(b"h"), bulk(b"x")]),
                      array([bulk(b"h"), bulk(b"99999999999999999999")])):
            with FakeServer(lambda args: reply) as sentinel:
                done = run("sentinel", "mine", "redis://", f"redis://127.0.0.1:{sentinel.port}")
                self.assertEqual(done.returncode, 6, done.stderr)


if __name__ == "__main__":
    unittest.main()
