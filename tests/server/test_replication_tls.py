"""Replication over TLS, with certificates of both sides."""

import os
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "support")]
import certificates  # noqa: E402
from server_under_test import Redis, Redoubt, free_port, wait_for  # noqa: E402
from test_replication import FAST, fill, linked, wait_same  # noqa: E402

FOLDER = None


def setUpModule():
    global FOLDER
    FOLDER = tempfile.mkdtemp(prefix="redoubt-tls-")
    certificates.make(FOLDER)


def tearDownModule():
    shutil.rmtree(FOLDER)


def config(side, **more):
    path = lambda name: os.path.join(FOLDER, name)  # noqa: E731
    return {**FAST, "tls-port": str(free_port()), "tls-ca-cert-file": path("ca.crt"),
            "tls-cert-file": path("server.crt"), "tls-key-file": path("server.key"),
            "tls-client-cert-file": path(side + ".crt"), "tls-client-key-file": path(side + ".key"),
            "tls-replication": "yes",
            **{name.replace("_", "-"): value for name, value in more.items()}}


class Tls(unittest.TestCase):
    def check(self, master_kind, replica_kind, **more):
        with master_kind(config("client", **more)) as master, \
                replica_kind(config("client", **more)) as replica:
            fill(master.client(), 2000)
            c = replica.client()
            c.command("REPLICAOF", "127.0.0.1", master.config["tls-port"])
            wait_same(master, replica)
            master.client().command("CLIENT", "KILL", "TYPE", "replica")
            fill(master.client(), 2000, seed=2)
            wait_same(master, replica)
            stats = master.info("stats")
            self.assertEqual((stats["sync_full"], stats["sync_partial_ok"]), ("1", "1"))

    def test_a_replica_and_its_master_show_each_other_their_certificates(self):
        for kinds in ((Redoubt, Redoubt), (Redis, Redoubt), (Redoubt, Redis)):
            for diskless in ("yes", "no"):
                self.check(*kinds, repl_diskless_sync=diskless)

    def test_a_master_with_another_authority_is_not_followed(self):
        with Redoubt(config("client")) as master:
            other = tempfile.mkdtemp(prefix="redoubt-tls-")
            try:
                certificates.make(other)
                with Redoubt({**config("client"),
                              "tls-ca-cert-file": os.path.join(other, "ca.crt")}) as replica:
                    c = replica.client()
                    c.command("SET", "kept", 1)
                    c.command("REPLICAOF", "127.0.0.1", master.config["tls-port"])
                    wait_for(lambda: "Error condition on socket for SYNC" in replica.log)
                    self.assertFalse(linked(replica))
                    self.assertEqual(c.command("GET", "kept"), b"1")
            finally:
                shutil.rmtree(other)
