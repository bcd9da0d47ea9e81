"""Clients that do not keep to TLS. The server stays up, and has afterwards as many descriptors as
before and not much more memory.
"""

import os
import random
import shutil
import socket
import ssl
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
import certificates  # noqa: E402
from server_under_test import Redoubt, encode, free_port, wait_for  # noqa: E402

GROWTH = 64 << 20  # a sanitizer keeps what was freed for a while
SILENT = 300


def shut(s, how=socket.SHUT_WR):
    """Closes one half, where the server has not hung up already."""
    try:
        s.shutdown(how)
    except OSError:
        pass


class Records:
    """A client's side of TLS in memory: what it sends can be cut, changed and delayed."""

    def __init__(self, server, version=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if version is not None:
            context.minimum_version = context.maximum_version = version
        self.input, self.output = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.input, self.output)
        self.socket = server.connect()

    def handshake(self, flights=None, alter=bytes):
        """Until it is done, or so many flights were sent. False where the server hung up."""
        n = 0
        while True:
            try:
                self.tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            except ssl.SSLError:
                return False
            if self.output.pending:
                n += 1
                if not self.send(alter(self.output.read())):
                    return False
            if done or n == flights:
                return True
            try:
                data = self.socket.recv(65536)
            except OSError:
                return False
            if not data:
                return False
            self.input.write(data)

    def send(self, data):
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def write(self, data):
        self.tls.write(data)
        return self.output.read()

    def read(self, size):
        got = b""
        while len(got) < size:
            try:
                got += self.tls.read(size - len(got))
            except ssl.SSLWantReadError:
                data = self.socket.recv(65536)
                if not data:
                    break
                self.input.write(data)
        return got


class TlsServer(Redoubt):
    def connect(self):
        s = socket.create_connection(("127.0.0.1", int(self.config["tls-port"])), timeout=600)
        self.opened.append(s)
        return s


class Adversary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="redoubt-tls-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        certificates.make(cls.folder)
        cls.server = TlsServer({
            "tls-port": str(free_port()), "tls-auth-clients": "no",
            "tls-cert-file": os.path.join(cls.folder, "server.crt"),
            "tls-key-file": os.path.join(cls.folder, "server.key"),
            "tls-ca-cert-file": os.path.join(cls.folder, "ca.crt")})
        cls.server.opened = []
        cls.server.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.server.pid}/fd"))

    def memory(self):
        with open(f"/proc/{self.server.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))

    def setUp(self):
        self.served()
        self.before = self.descriptors(), self.memory()

    def served(self):
        """An honest client gets its answer."""
        peer = Records(self.server)
        self.assertTrue(peer.handshake())
        peer.send(peer.write(encode("PING")))
        self.assertEqual(peer.read(7), b"+PONG\r\n")
        peer.socket.close()

    def tearDown(self):
        self.served()
        for s in self.server.opened:
            s.close()
        self.server.opened.clear()
        wait_for(lambda: self.descriptors() <= self.before[0])
        self.assertLess(self.memory(), self.before[1] + GROWTH)

    def test_garbage_instead_of_a_handshake(self):
        rng = random.Random(1)
        for n in range(100):
            s = self.server.connect()
            head = (b"", b"\x16\x03\x01", b"\x16\x03\x01\xff\xff\x01\x00", b"PING\r\n",
                    b"\x80\x2e\x01", b"\x15\x03\x03\x00\x02")[n % 6]
            try:
                s.sendall(head + rng.randbytes(rng.randrange(1, 40000)))
            except OSError:
                pass

    def test_any_byte_of_a_handshake_may_be_wrong(self):
        rng = random.Random(2)
        for n in range(100):
            def alter(data):
                data = bytearray(data)
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                return bytes(data)
            peer = Records(self.server)
            peer.socket.settimeout(0.1)  # where a length is wrong, both sides wait for more
            peer.handshake(1 + n % 3, alter)

    def test_a_handshake_may_be_cut_or_stall_at_each_stage(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for flight in (1, 2):
                for part in (1, 3, 5, 6, 50, -1):
                    for end in (socket.socket.close, shut, lambda s: None):
                        peer = Records(self.server, version)
                        if flight == 2:
                            self.assertTrue(peer.handshake(1))
                        peer.handshake(1, lambda data: data[:part])
                        end(peer.socket)

    def test_half_of_a_connection_may_be_closed(self):
        for n in range(50):
            peer = Records(self.server)
            self.assertTrue(peer.handshake())
            data = peer.write(encode("ECHO", "x" * 1000))
            peer.send(data if n % 2 else data[:n * 10])
            shut(peer.socket, socket.SHUT_WR if n % 3 else socket.SHUT_RD)

    def test_records_may_have_one_byte_and_come_byte_by_byte(self):
        peer = Records(self.server)
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.assertTrue(peer.handshake())
        command = encode("ECHO", "x" * 200)
        for byte in command:
            peer.send(peer.write(bytes([byte])))
        self.assertEqual(peer.read(208), b"$200\r\n" + b"x" * 200 + b"\r\n")
        for byte in peer.write(command):
            peer.send(bytes([byte]))
        self.assertEqual(peer.read(208), b"$200\r\n" + b"x" * 200 + b"\r\n")

    def test_a_handshake_in_the_middle_of_a_session_ends_that_session_alone(self):
        """A plain hello, and one that is encrypted, as a renegotiation is."""
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for _ in range(20):
                peer, other = Records(self.server, version), Records(self.server, version)
                self.assertTrue(peer.handshake())
                with self.assertRaises(ssl.SSLWantReadError):
                    other.tls.do_handshake()
                hello = other.output.read()
                peer.send(hello)
                with self.assertRaises((ssl.SSLError, OSError)):
                    self.assertEqual(peer.read(1), b"")
                    raise OSError

    def test_records_that_are_altered_end_a_session(self):
        for n in range(50):
            peer = Records(self.server)
            self.assertTrue(peer.handshake())
            data = bytearray(peer.write(encode("SET", "altered", "x" * 100)))
            data[n * 3 % len(data)] ^= 1
            peer.send(data)
            shut(peer.socket)
        c = self.server.client()
        self.assertEqual(c.command("EXISTS", "altered"), 0)
        c.close()

    def test_many_connections_may_be_silent(self):
        for n in range(SILENT):
            s = self.server.connect()
            if n % 3:
                s.sendall(b"\x16\x03\x01"[:n % 3])
        # The connection of setUp() may have been counted before.
        wait_for(lambda: self.descriptors() >= self.before[0] + SILENT - 1)


if __name__ == "__main__":
    unittest.main()
