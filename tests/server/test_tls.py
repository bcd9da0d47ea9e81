"""TLS: limits of a client before its handshake is complete, and the replies it gets."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import (  # noqa: E402
    Client, Redis, Redoubt, ServerDied, encode, free_port, wait_for)

FOLDER = None


def setUpModule():
    global FOLDER
    FOLDER = tempfile.mkdtemp(prefix="redoubt-tls-")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=test", "-keyout", path("key"), "-out", path("cert")],
                   check=True, stderr=subprocess.DEVNULL)


def tearDownModule():
    shutil.rmtree(FOLDER)


def path(name):
    return os.path.join(FOLDER, name)


def config(**more):
    return {"tls-port": str(free_port()), "tls-cert-file": path("cert"),
            "tls-key-file": path("key"), "tls-auth-clients": "no", "loglevel": "verbose",
            **{name.replace("_", "-"): value for name, value in more.items()}}


def silent(server):
    """A connection that never begins its handshake."""
    c = Client(("127.0.0.1", int(server.config["tls-port"])))
    server.clients.append(c)
    return c


def secure(server):
    """A client whose handshake is done."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    c = silent(server)
    c.socket = context.wrap_socket(c.socket)
    return c


def descriptors(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def each(test):
    """Runs a test with both servers: what it asserts is what redis-server does."""
    def run(self):
        for which in (Redoubt, Redis):
            with self.subTest(which.name):
                test(self, which)
    run.__name__ = test.__name__
    return run


class Handshakes(unittest.TestCase):
    @each
    def test_silent_connections_are_among_maxclients(self, which):
        with which(config(maxclients="20")) as server:
            c = server.client()
            before = descriptors(server)
            waiting = [silent(server) for _ in range(100)]
            wait_for(lambda: int(server_info(c)["rejected_connections"]) >= 81)
            self.assertLess(descriptors(server), before + 21)
            closed = sum(one.closed(0.05) for one in waiting)
            self.assertGreater(closed, 80)
            self.assertEqual(int(server_info(c)["connected_clients"]), 20)

    @each
    def test_silent_connections_are_ended_by_timeout(self, which):
        with which(config(timeout="1")) as server:
            for one in [silent(server) for _ in range(5)]:
                self.assertTrue(one.closed())

    @each
    def test_a_refusal_for_maxclients_is_not_said_in_plain_text(self, which):
        with which(config(maxclients="1")) as server:
            server.client().command("PING")
            one = silent(server)
            self.assertTrue(one.closed())
            self.assertEqual(one.buf, b"")

    @each
    def test_a_connection_is_received_when_its_handshake_is_done(self, which):
        with which(config()) as server:
            c = server.client()
            before = int(server_info(c)["total_connections_received"])
            clients = int(server_info(c)["connected_clients"])
            silent(server)
            wait_for(lambda: int(server_info(c)["connected_clients"]) == clients + 1)
            self.assertEqual(int(server_info(c)["total_connections_received"]), before)
            self.assertEqual(secure(server).command("PING"), b"PONG")
            self.assertEqual(int(server_info(c)["total_connections_received"]), before + 1)

    @each
    def test_each_connection_is_accepted_in_the_log(self, which):
        with which(config()) as server:
            one = secure(server)
            one.command("PING")
            port = one.socket.getsockname()[1]
            self.assertRegex(server.log, rf"Accepted 127\.0\.0\.1:{port}\n")

    @each
    def test_bytes_other_than_a_handshake_are_logged(self, which):
        with which(config()) as server:
            one = silent(server)
            one.send_raw(b"PING\r\n")
            self.assertTrue(one.closed())
            # redis-server names the descriptor only if the bytes came after the connection.
            self.assertRegex(server.log, "# Error accepting a client connection: "
                                         ".*wrong version number")

    @each
    def test_a_client_in_its_handshake_can_be_listed_and_killed(self, which):
        with which(config()) as server:
            c = server.client()
            one = silent(server)
            name = "127.0.0.1:%d" % one.socket.getsockname()[1]
            wait_for(lambda: name.encode() in c.command("CLIENT", "LIST"))
            self.assertEqual(c.command("CLIENT", "KILL", name), b"OK")
            self.assertTrue(one.closed())

    def test_clients_with_pending_bytes_kill_each_other_and_themselves(self):  # CVE-2026-56684
        with Redoubt(config()) as server:
            c = server.client()
            for _ in range(20):
                many = [secure(server) for _ in range(4)]
                ids = [one.command("CLIENT", "ID") for one in many]
                holder = server.client()
                holder.send("DEBUG", "SLEEP", "0.02")  # all of it is there in one turn
                for one in many:
                    kills = b"".join(encode("CLIENT", "KILL", "ID", other, "SKIPME", "no")
                                     for other in ids)
                    one.send_raw(encode("PING") * 3000 + kills + encode("PING") * 3000)
                holder.read()
                wait_for(lambda: c.command("CLIENT", "LIST").count(b"\n") <= 2)
                holder.close()
                for one in many:
                    one.close()

    def test_many_broken_handshakes_leave_nothing(self):
        with Redoubt(config()) as server:
            c = server.client()
            c.command("PING")  # accepted
            before = descriptors(server)
            for n in range(200):
                one = silent(server)
                one.send_raw(b"\x16\x03\x01\x02\x00\x01"[:n % 7])
                if n % 2:
                    one.send_raw(b"garbage" * n)
                one.close()
            secure(server).close()  # accepted after all others
            wait_for(lambda: int(server_info(c)["connected_clients"]) == 1)
            wait_for(lambda: descriptors(server) <= before)


class Files(unittest.TestCase):
    def test_a_file_that_cannot_be_loaded_ends_the_start_and_is_named_in_the_log(self):
        for setting in "tls_cert_file", "tls_key_file", "tls_ca_cert_file", "tls_dh_params_file":
            with self.subTest(setting):
                with self.assertRaises(ServerDied) as died:
                    with Redoubt(config(**{setting: path("missing")})):
                        self.fail("started")
                self.assertIn(path("missing"), str(died.exception))

    def test_malformed_parameters_end_the_start(self):
        for which in (Redoubt, Redis):
            with self.subTest(which.name):
                with self.assertRaises(ServerDied):
                    with which(config(tls_dh_params_file=path("cert"))):
                        self.fail("started")

    def test_parameters_are_used(self):
        subprocess.run(["openssl", "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt",
                        "group:ffdhe2048", "-out", path("dh")], check=True,
                       stderr=subprocess.DEVNULL)
        with Redoubt(config(tls_dh_params_file=path("dh"), tls_protocols="TLSv1.2",
                            tls_ciphers="DHE-RSA-AES256-GCM-SHA384")) as server:
            one = secure(server)
            self.assertEqual(one.command("PING"), b"PONG")
            self.assertEqual(one.socket.cipher()[0], "DHE-RSA-AES256-GCM-SHA384")


def server_info(client):
    text = client.command("INFO").decode()
    return dict(re.findall(r"(?m)^(\w+):(.*?)\r?$", text))


if __name__ == "__main__":
    unittest.main()
