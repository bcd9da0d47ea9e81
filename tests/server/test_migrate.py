"""MIGRATE: keys go to another server, of either kind, and are gone here when they are there."""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from server_under_test import Redis, Redoubt, free_port, wait_for

KINDS = [Redoubt, Redis]


@contextlib.contextmanager
def servers(source=Redoubt, target=Redoubt, source_config=None, target_config=None):
    with source(source_config) as ours, target(target_config) as theirs:
        yield ours, theirs


def migrate(client, target, *args):
    """MIGRATE key-or-"" db timeout ...; what it answers."""
    return client.ask("MIGRATE", "127.0.0.1", target.port, *args)


def fill(client):
    client.command("SET", "text", b"\x00\xff\r\n")
    client.command("SET", "due", "x", "PX", 100000)
    client.command("RPUSH", "list", *range(300))
    client.command("HSET", "hash", "f", "v" * 100)
    client.command("ZADD", "zset", 1.5, "a", "inf", "b")
    client.command("XADD", "stream", "1-1", "f", "v")
    return ["text", "due", "list", "hash", "zset", "stream"]


class Keys(unittest.TestCase):
    def test_all_types_go_between_servers_of_both_kinds(self):
        for source, target in ((a, b) for a in KINDS for b in KINDS):
            if source is not Redoubt and target is not Redoubt:
                continue
            with self.subTest(source=source, target=target), servers(source, target) as (s, t):
                here, there = s.client(), t.client()
                keys = fill(here)
                digests = [here.command("DEBUG", "DIGEST-VALUE", key) for key in keys]
                there.command("SELECT", 3)
                self.assertEqual(migrate(here, t, "", 3, 5000, "KEYS", *keys, "nosuch"),
                                 ("+", b"OK"))
                self.assertEqual([there.command("DEBUG", "DIGEST-VALUE", key) for key in keys],
                                 digests)
                self.assertEqual(here.command("DBSIZE"), 0)
                self.assertIn(there.command("PTTL", "due"), range(90000, 100001))
                self.assertEqual(there.command("PTTL", "text"), -1)
                self.assertEqual(migrate(here, t, "text", 3, 5000), ("+", b"NOKEY"))

    def test_what_is_there_already_is_replaced_only_if_asked_for(self):
        with servers() as (s, t):
            here, there = s.client(), t.client()
            for key in "abcd":
                here.command("SET", key, "new")
            there.command("MSET", "b", "old", "c", "old")
            kind, text = migrate(here, t, "", 0, 5000, "KEYS", *"abcd")
            self.assertEqual((kind, text.startswith(b"ERR Target instance replied with error: "
                                                    b"BUSYKEY")), ("-", True))
            self.assertEqual(here.command("EXISTS", *"abcd"), 2)
            self.assertEqual(here.command("EXISTS", "b", "c"), 2)
            self.assertEqual(migrate(here, t, "b", 0, 5000, "COPY", "REPLACE"), ("+", b"OK"))
            self.assertEqual(here.command("EXISTS", "b"), 1)
            self.assertEqual(there.command("GET", "b"), b"new")

    def test_a_password_is_sent_and_a_refusal_reported(self):
        with servers(target_config={"requirepass": "secret"}) as (s, t):
            here = s.client()
            here.command("SET", "k", 1)
            for args, want in (((), b"NOAUTH"), (("AUTH", "wrong"), b"WRONGPASS"),
                               (("AUTH2", "unknown", "secret"), b"WRONGPASS")):
                kind, text = migrate(here, t, "k", 0, 5000, *args)
                self.assertEqual(kind, "-")
                self.assertIn(want, text)
                self.assertEqual(here.command("EXISTS", "k"), 1)
            self.assertEqual(migrate(here, t, "k", 0, 5000, "AUTH2", "default", "secret"),
                             ("+", b"OK"))
            here.command("SET", "k", 1)
            self.assertEqual(migrate(here, t, "k", 0, 5000, "REPLACE", "AUTH", "secret"),
                             ("+", b"OK"))

    def test_a_migrated_key_is_deleted_in_the_log_and_for_watchers(self):
        with servers(source_config={"appendonly": "yes"}) as (s, t):
            here, watching = s.client(), s.client()
            here.command("MSET", "a", 1, "b", 2)
            watching.command("WATCH", "a")
            here.command("MULTI")
            migrate(here, t, "a", 0, 5000)
            here.command("INCR", "n")
            self.assertEqual(here.command("EXEC"), [b"OK", 1])
            watching.command("MULTI")
            self.assertEqual(watching.ask("EXEC"), ("*", None))
            s.kill()
            s.start()
            self.assertEqual(s.client().command("MGET", "a", "b", "n"), [None, b"2", b"1"])


class Connections(unittest.TestCase):
    def cached(self, server):
        return server.info("stats")["migrate_cached_sockets"]

    def test_a_connection_is_kept_and_reopened_after_the_peer_has_closed_it(self):
        with servers() as (s, t):
            here = s.client()
            for i in range(3):
                here.command("SET", i, "x")
                self.assertEqual(migrate(here, t, i, 0, 5000), ("+", b"OK"))
            self.assertEqual(self.cached(s), "1")
            self.assertEqual(t.info("stats")["total_connections_received"], "3")
            closed = t.client().command("CLIENT", "KILL", "TYPE", "normal")
            self.assertGreaterEqual(closed, 1)
            here.command("SET", "k", "x")
            self.assertEqual(migrate(here, t, "k", 0, 5000), ("+", b"OK"))
            self.assertEqual(t.client().command("GET", "k"), b"x")

    def test_no_server_and_no_reply(self):
        with servers() as (s, t):
            here = s.client()
            here.command("SET", "k", "x")
            for host, doing in (("127.0.0.1", b"writing to target instance"),
                                ("no host", b"connecting to the client")):
                self.assertEqual(here.ask("MIGRATE", host, free_port(), "k", 0, 500),
                                 ("-", b"IOERR error or timeout " + doing))
            os.kill(t.pid, signal.SIGSTOP)
            self.assertEqual(migrate(here, t, "k", 0, 100),
                             ("-", b"IOERR error or timeout reading to target instance"))
            os.kill(t.pid, signal.SIGCONT)
            self.assertEqual(here.command("GET", "k"), b"x")
            self.assertEqual(self.cached(s), "0")
            wait_for(lambda: t.client().command("EXISTS", "k") == 1)

    def test_arguments_are_refused_as_redis_refuses_them(self):
        with servers(Redoubt, Redis) as (ours, theirs):
            clients = ours.client(), theirs.client()
            for args in (["h", 1, "k", 0, "x"], ["h", 1, "k", "x", 1], ["h", 1, "k", 0, 1, "AUTH"],
                         ["h", 1, "k", 0, 1, "AUTH2", "a"], ["h", 1, "k", 0, 1, "NOSUCH"],
                         ["h", 1, "k", 0, 1, "KEYS", "a"], ["h", 1, "", 0, 1, "KEYS"],
                         ["h", 1, "nosuch", 0, 1], ["h", 1, "nosuch", 0, 0, "COPY"],
                         ["h", 1, "", 0, 1, "KEYS", "a", "b"]):
                got, want = (c.ask("MIGRATE", *args) for c in clients)
                self.assertEqual(got, want, args)


class Secure(unittest.TestCase):
    """With tls-cluster, MIGRATE connects through TLS, as a client with a certificate."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="redoubt-migrate-")
        cls.path = functools.partial(os.path.join, cls.folder)
        for name in ("ours", "other"):
            cls.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=" + name, "-keyout", name + ".key", "-out", name + ".crt")
        cls.openssl("rsa", "-in", "ours.key", "-aes128", "-passout", "pass:phrase", "-out",
                    "locked.key")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def openssl(cls, *args):
        subprocess.run(["openssl", *args], cwd=cls.folder, check=True, stderr=subprocess.DEVNULL)

    def config(self, **more):
        return {"tls-port": str(free_port()), "tls-cert-file": self.path("ours.crt"),
                "tls-key-file": self.path("ours.key"), "tls-ca-cert-file": self.path("ours.crt"),
                "tls-cluster": "yes",
                **{name.replace("_", "-"): value for name, value in more.items()}}

    def ask(self, source, target, *args):
        here = source.client()
        here.command("SET", "k", "v" * 100000)
        return here.ask("MIGRATE", "127.0.0.1", target.config["tls-port"], "k", 0, 2000, "REPLACE",
                        *args)

    def test_keys_go_through_tls_between_servers_of_both_kinds(self):
        for source, target in ((Redoubt, Redoubt), (Redoubt, Redis), (Redis, Redoubt)):
            with self.subTest(source=source, target=target), \
                    servers(source, target, self.config(), self.config()) as (s, t):
                for _ in range(3):
                    self.assertEqual(self.ask(s, t), ("+", b"OK"))
                self.assertEqual(t.client().command("STRLEN", "k"), 100000)
                self.assertEqual(s.client().command("EXISTS", "k"), 0)

    def test_the_client_has_a_certificate_of_its_own_and_a_key_with_a_pass_phrase(self):
        own = {"tls_client_cert_file": self.path("ours.crt"),
               "tls_client_key_file": self.path("locked.key"),
               "tls_client_key_file_pass": "phrase"}
        for kind in KINDS:
            with self.subTest(kind.name), \
                    servers(kind, Redoubt, self.config(**own), self.config()) as (s, t):
                self.assertEqual(self.ask(s, t), ("+", b"OK"))

    def test_whom_the_authority_does_not_know_is_refused(self):
        other = self.config(tls_cert_file=self.path("other.crt"),
                            tls_key_file=self.path("other.key"),
                            tls_ca_cert_file=self.path("other.crt"), tls_auth_clients="no")
        for kind in KINDS:
            with self.subTest(kind.name), servers(kind, Redoubt, self.config(), other) as (s, t):
                answer = self.ask(s, t)
                self.assertEqual(answer[0], "-")
                self.assertIn(b"IOERR", answer[1])
                self.assertEqual(s.client().command("EXISTS", "k"), 1)
                self.assertEqual(t.client().command("EXISTS", "k"), 0)

    def test_protocols_and_ciphers_are_those_of_the_settings(self):
        for ours, theirs in (("TLSv1.2", "TLSv1.3"), ("TLSv1.3", "TLSv1.2")):
            with servers(Redoubt, Redoubt, self.config(tls_protocols=ours),
                         self.config(tls_protocols=theirs)) as (s, t):
                self.assertIn(b"IOERR", self.ask(s, t)[1])
                s.client().command("CONFIG", "SET", "tls-protocols", theirs)
                self.assertEqual(self.ask(s, t), ("+", b"OK"))

    def test_without_tls_cluster_the_connection_is_plain(self):
        with servers(Redoubt, Redoubt, self.config(tls_cluster="no"), self.config()) as (s, t):
            self.assertIn(b"IOERR", self.ask(s, t)[1])


if __name__ == "__main__":
    unittest.main()
