"""Backups on a host that is reached by SFTP: OpenSSH's sshd."""

import os
import random
import shutil
import socket
import stat
import subprocess
import time
import threading
import unittest

import ssh_server
from backup_case import REDOUBT, SNAPSHOT, BackupCase


class Cutter(threading.Thread):
    """Passes connections on; the first ones are cut after so many bytes from the client."""

    def __init__(self, port, cuts):
        super().__init__(daemon=True)
        self.there, self.cuts = port, list(cuts)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def run(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.there))
            left = self.cuts.pop(0) if self.cuts else None
            threading.Thread(target=self.pass_on, args=(client, server, left), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(server, client, None), daemon=True).start()

    def pass_on(self, source, target, left):
        try:
            while left is None or left > 0:
                data = source.recv(65536)
                if not data:
                    break
                target.sendall(data)
                left = None if left is None else left - len(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@unittest.skipIf(ssh_server.missing(), ssh_server.missing())
class BySFTP(BackupCase):
    def setUp(self):
        super().setUp()
        self.ssh = ssh_server.SSHServer()
        self.ssh.__enter__()
        self.addCleanup(self.ssh.__exit__)
        self.there = self.path("there")
        os.mkdir(self.there)
        self.repository = f"sftp://{self.ssh.user}@127.0.0.1:{self.ssh.port}{self.there}"
        self.use()

    def use(self, key=None, hosts=None):
        self.nightly(more=f"ssh-key-file = {key or self.ssh.key}\n"
                     f"ssh-known-hosts = {hosts or self.ssh.known_hosts}\ncompress = none\n")

    def files(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.there)
                for name in names]

    def big(self):
        """A snapshot that takes several chunks."""
        size = 20 << 20
        blob = random.Random(1).randbytes(size)
        self.write("dump.rdb", b"REDIS0011\xfe\x00\x00\x01k\x80" + size.to_bytes(4, "big") + blob +
                   b"\xff" + bytes(8))
        return self.read("dump.rdb")

    def test_a_set_goes_there_and_comes_back(self):
        self.good("backup")
        self.assertEqual(len(self.sets()), 1)
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out.rdb"))
        with open(SNAPSHOT, "rb") as file:
            self.assertEqual(self.read("out.rdb"), file.read())
        for path in self.files():
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)
        self.assertEqual(len(self.files()), 2)
        self.good("check-config")

    def test_large_objects_go_in_chunks_and_come_in_ranges(self):
        data = self.big()
        self.good("backup")
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), data)

    def test_an_upload_that_is_cut_goes_on_where_it_stopped(self):
        data = self.big()
        cutter = Cutter(self.ssh.port, [5 << 20, 3 << 20, 9 << 20])
        cutter.start()
        self.addCleanup(cutter.socket.close)
        with open(self.ssh.known_hosts, encoding="ascii") as file:
            key = " ".join(file.read().split()[1:])
        self.write("hosts", f"[127.0.0.1]:{cutter.port} {key}\n")
        straight = self.repository
        self.repository = f"sftp://{self.ssh.user}@127.0.0.1:{cutter.port}{self.there}"
        self.use(hosts=self.path("hosts"))
        self.good("backup")
        self.assertEqual(cutter.cuts, [])
        self.repository = straight
        self.use()
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), data)

    def test_a_lock_is_respected_while_it_is_renewed(self):
        """The age is that by the clock of the host: it is the difference of two of its times."""
        self.good("backup")
        folder = os.path.join(self.there, "nightly", "locks", "sets")
        lock = os.path.join(folder, "00000003-0123456789abcdef")
        for age, status in ((290, 7), (310, 0)):
            os.makedirs(folder, exist_ok=True)
            with open(lock, "w", encoding="ascii") as file:
                file.write('{"format": 1, "owner": "redoubt backup, process 1 on pod"}')
            os.utime(lock, (time.time() - age,) * 2)
            done = self.tool("backup", "--lock-wait", "0s")
            self.assertEqual(done.returncode, status, (age, done.stderr))
        self.assertFalse(os.path.exists(folder) and os.listdir(folder))

    def test_rules_and_pins_work(self):
        for _ in range(3):
            self.good("backup")
        first = self.sets()[0]["id"]
        self.good("prune", "--pin", first)
        self.good("prune", "--keep", "count 1", "--confirm")
        kept = [s["id"] for s in self.sets()]
        self.assertEqual(len(kept), 2)
        self.assertIn(first, kept)
        self.good("verify")
        self.assertEqual(set(os.listdir(os.path.join(self.there, "nightly", "sets"))), set(kept))

    def test_damage_there_is_found(self):
        self.good("backup")
        path = next(p for p in self.files() if "dump" in p)
        with open(path, "r+b") as file:
            file.seek(150)
            file.write(b"damage")
        self.fails(1, "DAMAGED", "verify")
        os.unlink(path)
        self.fails(1, "DAMAGED", "verify", "--level", "list")

    def test_an_object_is_never_replaced(self):
        self.good("backup")
        before = {p: os.stat(p).st_mtime_ns for p in self.files()}
        self.good("backup")
        for path, mtime in before.items():
            self.assertEqual(os.stat(path).st_mtime_ns, mtime)

    def test_a_run_that_is_killed_leaves_a_repository_that_is_sound(self):
        self.big()
        self.good("backup")
        for i in range(6):
            process = subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before = len(self.files())
            while process.poll() is None and len(self.files()) < before + min(i, 2):
                pass
            process.kill()
            process.wait()
            self.good("verify", "--set", "latest", "--level", "list")
        self.good("backup")
        self.good("verify")
        folders = set(os.listdir(os.path.join(self.there, "nightly", "sets")))
        self.assertEqual(folders, {s["id"] for s in self.sets()})

    def test_a_host_that_is_not_known_is_refused(self):
        self.write("no-hosts", "")
        self.use(hosts=self.path("no-hosts"))
        self.fails(6, "sftp://", "backup")
        self.assertEqual(self.files(), [])

    def test_an_rsa_key_that_the_host_does_not_use_is_not_in_the_way(self):
        """ssh-keyscan prints the RSA key of a host first."""
        subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "1024", "-N", "", "-f",
                        self.path("rsa")], check=True)
        with open(self.ssh.known_hosts, encoding="ascii") as file:
            known = file.read()
        key = known.split()[0] + " " + " ".join(self.read("rsa.pub").decode().split()[:2])
        self.use(hosts=self.write("hosts", f"# a comment\n{key}\n{known}"))
        self.good("check-config")
        self.use(hosts=self.write("hosts", key))  # without a line feed
        # libssh2 1.10 itself copies overlapping memory then.
        options = os.environ.get("ASAN_OPTIONS", "") + ":replace_intrin=0"
        done = self.tool("list", env={"ASAN_OPTIONS": options})
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b"ed25519", done.stderr)

    def test_a_key_that_is_not_accepted_is_reported(self):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path("other")],
                       check=True)
        self.use(key=self.path("other"))
        self.fails(6, "sftp://", "list")

    def test_a_url_that_makes_no_sense_is_refused(self):
        for url in ("sftp://host", "sftp://host/", "sftp://u:s3cret@host/x", "sftp://host/a%20b"):
            done = self.fails(2, "", "list", "--repository", url)
            self.assertNotIn(b"s3cret", done.stderr)

    def test_a_host_that_is_away_is_a_network_error(self):
        self.ssh.stop()
        self.fails(6, "sftp://", "list")
        shutil.rmtree(self.there)
