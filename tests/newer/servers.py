"""The servers of other Debian suites, each in a root of its own, started by chroot.

    for kind in servers.find("/srv/roots"):     # "redis-8.0.6", "valkey-9.1.2" …
        with Server(kind) as server:            # on loopback, in a folder in the root
            server.pipeline([("SET", "k", "v"), ("INCR", "n")])
            server.save()
            server.rdb                          # as this machine sees it

The reference server of the machine, of no root, is among them. Replies are those of redis_server.
"""

import dataclasses
import os
import re
import shutil
import subprocess
import tempfile

from redis_server import RedisServer, ReplyError, free_port

PROGRAMS = ("redis-server", "valkey-server", "redict-server")
MODULE = "/usr/lib/redis/modules/knot.so"
MIN_VERSION = (7, 0)


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str  # "valkey-9.1.2"
    root: str  # "/" for the machine
    program: str

    @property
    def family(self):
        return self.name.split("-")[0]

    @property
    def version(self):
        return tuple(int(n) for n in self.name.split("-")[1].split("."))

    @property
    def module(self):
        """The path of a module in the root that this server takes, or None."""
        there = os.path.exists(os.path.join(self.root, MODULE.lstrip("/")))
        return MODULE if there and self.family == "redis" and self.root != "/" else None


def _inside(root, *command):
    return ["chroot", root, *command] if root != "/" else list(command)


def _version(root, program):
    text = subprocess.run(_inside(root, program, "--version"), capture_output=True).stdout.decode()
    found = re.search(r"v=(\d+\.\d+\.\d+)", text)
    return found.group(1) if found else None


def find(roots):
    """Every server below a folder of roots, and that of the machine; by family and version."""
    found = {}
    places = ["/"] + sorted(os.path.join(roots, name) for name in os.listdir(roots))
    for root in places:
        for name in PROGRAMS:
            program = "/usr/bin/" + name
            if not os.path.lexists(os.path.join(root, program.lstrip("/"))):
                continue
            version = _version(root, program)
            kind = Kind(f"{name.split('-')[0]}-{version}", root, program)
            if version is not None and kind.version >= MIN_VERSION:
                found.setdefault(kind.name, kind)
    order = {"redis": 0, "valkey": 1, "redict": 2}
    return sorted(found.values(), key=lambda k: (order[k.family], k.version))


class Server(RedisServer):
    def __init__(self, kind, config=None, module=False):
        config = dict(config or {})
        if kind.family == "redict" or kind.version >= (8, 0):
            config.setdefault("enable-debug-command", "local")
        super().__init__(config)
        self.kind = kind
        self.program = kind.program
        self.with_module = module
        self._commands = None

    def __enter__(self):
        parent = os.path.join(self.kind.root, "tmp")
        self.dir = tempfile.mkdtemp(prefix="redoubt-newer-", dir=parent)
        os.chmod(self.dir, 0o755)
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    @property
    def inner_dir(self):
        """The folder as the server sees it."""
        return os.path.join("/tmp", os.path.basename(self.dir))

    def _spawn(self):
        args = _inside(self.kind.root, self.program, "--port", str(self.port), "--dir",
                       self.inner_dir, "--logfile", os.path.join(self.inner_dir, "log"))
        for name, value in self.config.items():
            args += ["--" + name, value]
        if self.config.get("cluster-enabled") == "yes":  # not the port plus 10,000
            args += ["--cluster-port", str(free_port())]
        if self.with_module:
            args += ["--loadmodule", self._module()]
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def _module(self):
        """A copy of the module that may be executed, as servers ask."""
        copy = os.path.join(self.dir, "module.so")
        shutil.copyfile(os.path.join(self.kind.root, self.kind.module.lstrip("/")), copy)
        os.chmod(copy, 0o755)
        return os.path.join(self.inner_dir, "module.so")

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def pipeline(self, commands):
        """The replies of many commands; errors are ReplyError objects among them."""
        replies, batch = [], []
        for command in commands:
            batch.append(command)
            if len(batch) == 200:
                replies += self._batch(batch)
                batch = []
        return replies + self._batch(batch)

    def _batch(self, commands):
        self.socket.sendall(b"".join(encode(*c) for c in commands))
        return [self._reply_or_error() for _ in commands]

    def has(self, name):
        """Whether the server has this command."""
        if self._commands is None:
            self._commands = {row[0].decode().lower(): row for row in self.command("COMMAND")}
        return name.lower() in self._commands

    def writes(self):
        """The names of all commands that the server itself calls writes."""
        self.has("get")
        return sorted(n for n, row in self._commands.items() if b"write" in row[2])

    def save(self):
        self.command("SAVE")
        return self.rdb

    def load(self, path):
        """Replaces all data by a snapshot; raises where the server does not load it."""
        self.stop()
        if path != self.rdb:
            shutil.copyfile(path, self.rdb)
        self.start()


def encode(*args):
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        arg = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(parts)


__all__ = ["Kind", "ReplyError", "Server", "encode", "find"]
