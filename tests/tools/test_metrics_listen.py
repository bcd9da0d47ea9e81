"""Figures for Prometheus at an address: archive and capture, while they run."""

import socket
import unittest
import urllib.error
import urllib.request

from archive_case import ArchiveCase
from capture_case import Running, eventually
from redis_server import free_port


def ask(url, method="GET"):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, method=method), timeout=60) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, None, error.read().decode()


class Listening(ArchiveCase):
    def test_an_archive_answers_with_its_figures(self):
        server, port = self.server(), free_port()
        metrics = self.path("metrics")
        self.archived(server.port, more=f"metrics-listen = 127.0.0.1:{port}\n"
                      f"archive-metrics-file = {metrics}\n")
        running = self.start()
        running.says("snapshot received")
        self.wait_for(server)
        url = f"http://127.0.0.1:{port}/metrics"
        eventually("it is connected",
                   lambda: 'redoubt_archive_up{target="nightly"} 1' in ask(url)[2])
        status, kind, text = ask(url)
        self.assertEqual((status, kind), (200, "text/plain; version=0.0.4"))
        names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
        in_file = [line.split()[2] for line in self.read("metrics").decode().splitlines()
                   if line.startswith("# TYPE")]
        self.assertEqual(names, in_file)
        self.assertIn("redoubt_archive_rpo_seconds", names)
        self.assertEqual(ask(url, "HEAD"), (200, kind, ""))
        self.assertEqual(ask(url, "POST")[0], 405)
        self.assertEqual(ask(f"http://127.0.0.1:{port}/")[0], 404)
        # A client that says nothing does not hold others, nor the end.
        with socket.create_connection(("127.0.0.1", port)):
            self.assertEqual(ask(url)[0], 200)
            self.assertEqual(running.end(), 0)
        with self.assertRaises(OSError):
            ask(url)

    def test_a_port_that_is_in_use_is_an_error(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            self.nightly(source="redis://127.0.0.1:1", sealed=False)
            port = str(s.getsockname()[1])
            running = self.start("nightly", "--spool", self.spool, "--metrics-listen", port)
            self.assertEqual(running.wait(), 3)
            self.assertIn(port.encode(), running.said)
            self.assertIn(b"cannot listen there", running.said)

    def test_what_is_no_address_is_refused(self):
        for address in ("0", "65536", "http", "localhost:9121", ":9121", "127.0.0.1:", "::1:9121",
                        "[::1]", "[127.0.0.1]:9121", "1.2.3.4.5:9121", "x" * 100 + ":9121"):
            self.nightly(source="redis://127.0.0.1:1", sealed=False,
                         more=f"spool = {self.spool}\nmetrics-listen = {address}\n")
            running = self.start()
            self.assertEqual(running.wait(), 2, (address, running.said))
            self.assertIn(b"is not PORT, ADDRESS:PORT", running.said)
            self.fails(2, "is not PORT, ADDRESS:PORT", "check-config")

    def test_a_capture_answers_with_its_figures(self):
        server, port = self.server(), free_port()
        running = Running(f"redis://127.0.0.1:{server.port}", "-o", self.path("captured"),
                          "--metrics-listen", str(port))
        self.addCleanup(running.kill)
        eventually("it is connected", lambda: running.process.poll() is not None or
                   self.is_up(f"http://127.0.0.1:{port}/metrics"))
        self.assertIsNone(running.process.poll())

    @staticmethod
    def is_up(url):
        try:
            return any(line.startswith("redoubt_capture_up{") and line.endswith(" 1")
                       for line in ask(url)[2].splitlines())
        except OSError:
            return False  # not yet


if __name__ == "__main__":
    unittest.main()
