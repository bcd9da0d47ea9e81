"""A replica whose master has a name: while no name server answers, the replica serves clients, and
all addresses of the name are tried."""

import contextlib
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from persistence import Faulty  # noqa: E402
from server_under_test import Redoubt, wait_for  # noqa: E402

SILENT_SECONDS = 3  # more than one turn of the timer that connects


class Lookups(unittest.TestCase):
    def setUp(self):
        with contextlib.ExitStack() as stack:
            self.master = stack.enter_context(Redoubt())
            self.replica = stack.enter_context(Faulty())
            self.addCleanup(stack.pop_all().close)
        self.master.client().command("SET", "k", "v")
        self.client = self.replica.client()

    def silence(self):
        with open(os.path.join(self.replica.faults, "lookup"), "w"):
            pass

    def speak(self):
        os.unlink(os.path.join(self.replica.faults, "lookup"))

    def role(self):
        return self.client.command("ROLE")

    def test_a_lookup_that_lasts_does_not_stop_the_server(self):
        self.silence()
        begun = int(self.replica.info("server")["uptime_in_seconds"])
        self.client.command("REPLICAOF", "one-address.test", self.master.port)
        wait_for(lambda: int(self.replica.info("server")["uptime_in_seconds"]) >=
                 begun + SILENT_SECONDS)
        self.assertEqual(self.role()[3], b"connect")
        self.assertEqual(self.replica.log.count("Connecting to MASTER"), 1)
        self.speak()
        wait_for(lambda: self.client.command("GET", "k") == b"v")

    def test_the_name_is_not_used_after_the_replica_became_a_master(self):
        self.silence()
        self.client.command("REPLICAOF", "one-address.test", self.master.port)
        self.client.command("REPLICAOF", "NO", "ONE")
        self.speak()
        begun = int(self.replica.info("server")["uptime_in_seconds"])
        wait_for(lambda: int(self.replica.info("server")["uptime_in_seconds"]) > begun)
        self.assertEqual(self.role()[0], b"master")
        self.assertNotIn("MASTER <-> REPLICA sync started", self.replica.log)

    def test_the_end_of_the_server_does_not_wait_for_an_answer(self):
        self.silence()
        self.client.command("REPLICAOF", "one-address.test", self.master.port)
        self.assertEqual(self.replica.terminate(), 0)

    def test_all_addresses_of_a_name_are_tried(self):
        self.client.command("REPLICAOF", "two-addresses.test", self.master.port)
        wait_for(lambda: self.client.command("GET", "k") == b"v")
        self.assertEqual(self.replica.log.count("Connecting to MASTER"), 1)
        self.assertEqual(self.replica.log.count("Error condition on socket for SYNC"), 1)

    def test_a_name_without_an_address_is_tried_again(self):
        self.client.command("REPLICAOF", "no-such-host.invalid", self.master.port)
        wait_for(lambda: self.replica.log.count("Unable to connect to MASTER: ") >= 2)
        self.client.command("REPLICAOF", "one-address.test", self.master.port)
        wait_for(lambda: self.client.command("GET", "k") == b"v")


if __name__ == "__main__":
    unittest.main()
