"""What the tests of `redoubt archive` share: the running service, and moments that are compared
with what the master had."""

import glob
import os
import signal
import subprocess
import threading
import time

from backup_case import REDOUBT, BackupCase
from capture_case import MASTER, Load, acknowledged, eventually
from redis_server import RedisServer

END = "the end of the batch"


class Archiving:
    """The service, while it runs."""

    def __init__(self, case, *args, env=None):
        self.process = subprocess.Popen(
            [REDOUBT, "archive", *args, "--config", case.config], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        self.said = b""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.said += line

    def says(self, text):
        eventually(f"it says {text!r}: {self.said.decode()}",
                   lambda: text.encode() in self.said or self.process.poll() is not None)
        assert text.encode() in self.said, self.said.decode()

    def kill(self):
        self.process.kill()
        self.wait()

    def wait(self):
        status = self.process.wait(timeout=600)
        self.reader.join()
        return status

    def end(self, number=signal.SIGTERM):
        """The exit status. It catches signals before it says anything."""
        eventually("it says something", lambda: self.said or self.process.poll() is not None)
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()


class ArchiveCase(BackupCase):
    def setUp(self):
        super().setUp()
        self.spool = self.path("spool")
        self.checker = None

    def server(self, **config):
        server = RedisServer({**MASTER, **{k.replace("_", "-"): v for k, v in config.items()}})
        server.__enter__()
        self.addCleanup(server.close)
        return server

    def archived(self, port, sealed=True, more=""):
        self.nightly(source=f"redis://127.0.0.1:{port}", sealed=sealed,
                     more=f"spool = {self.spool}\narchive-interval = 1s\n{more}")

    def start(self, *args, env=None):
        running = Archiving(self, *(args or ("nightly",)), env=env)
        self.addCleanup(running.kill)
        return running

    def streams(self):
        return self.json("list")[0]["streams"]

    def segments(self, repository=None):
        """The objects of the stream, from old to new."""
        pattern = os.path.join(repository or self.repository, "nightly", "stream", "*", "*", "*")
        return sorted(glob.glob(pattern))

    def offset(self, server):
        text = server.command("INFO", "replication").decode()
        return int(text.split("master_repl_offset:")[1].split()[0])

    def shipped(self, offset):
        """Whether the repository has the stream up to an offset, and a set to begin with."""
        return any(s["end"] >= offset and s["bases"] for s in self.streams())

    def wait_for(self, server):
        offset = self.offset(server)
        eventually(f"the archive has offset {offset}", lambda: self.shipped(offset))

    def load(self, server, batch):
        """Executes commands, whose replies do not matter."""
        server.socket.sendall(b"".join(batch) + b"*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n"
                              % (len(END), END.encode()))
        end = b"$%d\r\n%s\r\n" % (len(END), END.encode())
        seen = b""
        while not seen.endswith(end):
            piece = server.socket.recv(1 << 16)
            self.assertTrue(piece, server.log[-500:])
            seen = seen[-200:] + piece

    def moment(self, server):
        """(offset, digest): nothing else may write meanwhile."""
        while True:
            before = self.offset(server)
            digest = server.command("DEBUG", "DIGEST")
            if self.offset(server) == before:
                return before, digest

    def moments(self, server, n, pause=0.0, seed=1):
        """Writes n batches; after each: (offset, time in ms, digest). With a pause, the archive has
        received the batch by that time, and nothing is written for as long as the pause."""
        load = Load(server.port, seed=seed)
        found = []
        for _ in range(n):
            self.load(server, [load.one() for _ in range(load.random.randrange(1, 30))])
            offset, digest = self.moment(server)
            if pause:
                acknowledged(server)
                time.sleep(0.002)  # times are in milliseconds
            found.append((offset, int(time.time() * 1000), digest))
            time.sleep(pause)
        return found

    def digest_of(self, path):
        """What a server has that loads it: always the same one, which starts once. It is a
        replica, because a master drops the keys that have expired since the moment."""
        if self.checker is None:
            self.checker = RedisServer({"replicaof": "127.0.0.1 1", "replica-read-only": "no"})
            self.checker.__enter__()
            self.addCleanup(self.checker.close)
        self.checker.load(path)
        return self.checker.command("DEBUG", "DIGEST")

    def check(self, digest, *args):
        """A restore has this digest."""
        out = self.path("restored.rdb")
        self.good("restore", "nightly", "--to", out, "--force", *args)
        self.assertEqual(self.digest_of(out), digest, args)
