"""Sentinels for tests: ours and those of Redis.

    with Ours(lines_for(master)) as a, Theirs(lines_for(master)) as b:
        wait_for(lambda: knows(a, replicas=0, others=1))
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "server"))
import server_under_test as sut  # noqa: E402

FAILOVER_SECONDS = 120
MASTER = {"repl-diskless-sync-delay": "0", "repl-timeout": "10"}


class Watcher:
    """What both kinds of Sentinels have in common: they start with a file."""

    def __init__(self, lines, **more):
        super().__init__(**more)
        self.lines = lines

    def spawn(self):
        self.port = self.fixed_port or sut.free_port()
        self.fixed_port = self.port
        path = self.path("sentinel.conf")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"port {self.port}\nbind 127.0.0.1\n" + self.lines)
        with open(self.path("stdout"), "ab") as out:
            self.process = subprocess.Popen(
                [*self.command_line(), path, *self.more()], stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, cwd=self.dir)

    def more(self):
        return ["--sentinel"]

    def command_line(self):
        return [self.program()]

    @property
    def file(self):
        with open(self.path("sentinel.conf"), encoding="utf-8") as f:
            return f.read()


class Ours(Watcher, sut.Redoubt):
    pass


class Theirs(Watcher, sut.Redis):
    pass


def lines_for(master, quorum=2, more="", down_after_ms=1500, failover_ms=20000):
    return (f"sentinel monitor mine 127.0.0.1 {master.port} {quorum}\n"
            f"sentinel down-after-milliseconds mine {down_after_ms}\n"
            f"sentinel failover-timeout mine {failover_ms}\n" + more)


def address(sentinel, name="mine"):
    try:
        return sentinel.client().command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)
    except sut.ServerDied:
        return None


def state(sentinel, name="mine"):
    reply = sentinel.client().command("SENTINEL", "MASTER", name)
    return dict(zip(reply[::2], reply[1::2]))


def knows(sentinel, replicas, others):
    fields = state(sentinel)
    return (int(fields[b"num-slaves"]) == replicas and
            int(fields[b"num-other-sentinels"]) == others)
