"""A server, its replica, and the connections through which the test watches them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from server_under_test import REPORTS, Client, Redoubt, ServerDied, encode, plain  # noqa: E402

HANG_SECONDS = 120
DATABASES = 16
FAR_MS = 4102444800000
WORDS = (*REPORTS, "BUG REPORT", "ASSERTION FAILED", "crashed by signal", "Guru Meditation")
# What a round ends with, so that nothing is refused, evicted or cut off while data is compared.
CALM = {
    "maxmemory": "0", "maxclients": "10000", "timeout": "0", "min-replicas-to-write": "0",
    "client-output-buffer-limit": "normal 0 0 0 replica 0 0 0 pubsub 0 0 0",
    "maxmemory-clients": "0",
    "save": "", "appendonly": "yes", "appendfsync": "everysec", "stop-writes-on-bgsave-error": "no",
    "busy-reply-threshold": "5", "hz": "50", "client-query-buffer-limit": "64mb",
    "proto-max-bulk-len": "4mb", "replica-serve-stale-data": "yes", "repl-backlog-size": "1mb",
    "repl-diskless-sync-delay": "0", "sanitize-dump-payload": "no",
    "auto-aof-rewrite-percentage": "0",
    "repl-ping-replica-period": "10", "repl-backlog-ttl": "3600", "tracking-table-max-keys": "1000",
}


def fields_of(info):
    lines = info.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


class Found(Exception):
    """Something is wrong with a server."""


def low_port(rng):
    """A free port that no outgoing connection gets while the server is down."""
    while True:
        port = rng.randrange(12000, 30000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


class Watched(Redoubt):
    """A server with a connection for control, which is opened again when it is closed."""

    def __init__(self, role, folder, rng, config):
        self.parent, self.role = folder, role
        self.fixed_port = low_port(rng)
        acl = os.path.join(folder, role + ".acl")
        with open(acl, "w", encoding="ascii") as f:
            f.write("user default on nopass ~* &* +@all\n")
        self.control = None
        self.crowded = lambda: None  # called when the server takes no more connections
        super().__init__({**CALM, "aclfile": acl, "appendonly": "yes", "repl-timeout": "20",
                          **config})
        limits = CALM["client-output-buffer-limit"].split()
        self.config["client-output-buffer-limit"] = limits

    def close(self):
        """The folder stays: the log is in it."""
        self.kill()
        self.last_log = self.log

    def check_alive(self):
        if self.process is not None and self.process.poll() is not None:
            raise Found(f"the {self.role} ended with status {self.process.poll()}")

    def check_log(self):
        for word in WORDS:
            if word in self.log:
                raise Found(f"the log of the {self.role} has: {word}")

    def ask(self, *words):
        """The reply, however often the connection is closed meanwhile."""
        end = time.monotonic() + HANG_SECONDS
        while True:
            try:
                if self.control is None:
                    self.control = self.connect()
                    self.control.send_raw(encode("CLIENT", "NO-EVICT", "ON"))
                    self.control.read()
                reply = self.control.ask(*words)
                if reply[0] != "-" or b"max number of clients" not in reply[1]:
                    return reply
                self.crowded()
                self.control = None
            except TimeoutError:
                self.hangs(words)
            except (ServerDied, OSError):
                self.control = None
                self.check_alive()
            if time.monotonic() > end:
                self.hangs(words)
            time.sleep(0.02)

    def hangs(self, words):
        """Its stack goes to the log."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGABRT)
            time.sleep(10)
        raise Found(f"the {self.role} does not answer {words[0]} within {HANG_SECONDS} s")

    def command(self, *words):
        return plain(self.ask(*words))

    def fields(self, section="everything"):
        return fields_of(self.command("INFO", section))

    def forget(self):
        if self.control is not None:
            self.control.close()
            self.control = None

    def pipeline(self, commands):
        """The replies to many commands."""
        self.control.send_raw(b"".join(encode(*words) for words in commands))
        return [self.control.read() for _ in commands]

    # ---- ends and starts ----

    def again(self, how, wait=True):
        """Ends and starts again; with SIGTERM it must end well, without memory that it lost."""
        self.forget()
        if how == signal.SIGTERM:
            status = self.end_well()
            self.process = None
            if status != 0:
                raise Found(f"the {self.role} ended with status {status} after SIGTERM")
        else:
            self.kill()
        self.check_log()
        if wait:
            self.start()
        else:
            self.spawn()

    def end_well(self):
        """SIGTERM, again and again: it waits for the end of a script, and a server that writes its
        first log refuses."""
        end = time.monotonic() + HANG_SECONDS
        while True:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(2)
            self.end_script()
            if time.monotonic() > end:
                self.hangs(["SIGTERM"])

    # ---- calm ----

    def quiet(self):
        """Ends pauses and waits, unless a script has begun."""
        self.ask("CLIENT", "UNPAUSE")
        kind, lines = self.ask("CLIENT", "LIST")
        if kind == "-":
            return
        blocked = [line.split()[0][3:] for line in lines.decode(errors="replace").splitlines()
                   if " flags=" in line and "b" in line.split(" flags=")[1].split()[0]]
        for number in blocked:
            self.ask("CLIENT", "UNBLOCK", number)

    def end_script(self):
        """Whether one was killed. A server with maxclients takes no other connection."""
        with contextlib.suppress(OSError, ServerDied):
            client = self.connect() if self.control is None else self.control
            return any([client.ask(name, "KILL") == ("+", b"OK")
                        for name in ("SCRIPT", "FUNCTION")])
        return False

    def connect(self):
        client = Client(("127.0.0.1", self.port))
        client.socket.settimeout(HANG_SECONDS)
        return client

    def is_busy(self):
        """Whether a script or the loading of data takes long."""
        kind, text = self.ask("PING")
        if kind == "-" and text.startswith(b"BUSY"):
            return True
        return kind == "-" and text.startswith((b"LOADING", b"MASTERDOWN"))

    def calm(self):
        for name, value in CALM.items():
            if self.ask("CONFIG", "GET",
                        name)[1] and self.role == "replica" and name == "appendonly":
                continue
            self.command("CONFIG", "SET", name, value)
        self.command("DEBUG", "SET-ACTIVE-EXPIRE", "1")

    def settle_log(self):
        """Until no child runs and the log is complete."""
        def settled():
            f = self.fields("persistence")
            return (f["aof_enabled"] == "1" and f["aof_rewrite_in_progress"] == "0" and
                    f["aof_rewrite_scheduled"] == "0" and f["rdb_bgsave_in_progress"] == "0" and
                    f["loading"] == "0" and f["aof_last_bgrewrite_status"] == "ok")
        self.until(settled, "its log is not settled")

    def until(self, condition, what):
        end = time.monotonic() + HANG_SECONDS
        while not condition():
            if time.monotonic() > end:
                why = what if isinstance(what, str) else what[0]
                raise Found(f"{self.role}: {why} after {HANG_SECONDS} s")
            time.sleep(0.05)

    # ---- data ----

    def keys(self, db):
        self.command("SELECT", db)
        cursor, seen = b"0", set()
        while True:
            cursor, names = self.command("SCAN", cursor, "COUNT", 1000)
            seen.update(names)
            if cursor == b"0":
                return sorted(seen)

    def freeze(self):
        """Nothing expires while data is compared: what has an expiry gets one far away."""
        for db in range(DATABASES):
            names = self.keys(db)
            for first in range(0, len(names), 500):
                some = names[first:first + 500]
                times = self.pipeline([["PTTL", name] for name in some])
                self.pipeline([["PEXPIREAT", name, FAR_MS + i] for i, (name, (_, ms))
                               in enumerate(zip(some, times)) if ms >= 0])
                if self.config["redoubt-level"] != "7.0":
                    self.freeze_fields(some)
        self.command("SELECT", 0)

    def freeze_fields(self, names):
        kinds = self.pipeline([["TYPE", name] for name in names])
        hashes = [name for name, (_, kind) in zip(names, kinds) if kind == b"hash"]
        for name, (_, fields) in zip(hashes, self.pipeline([["HKEYS", name] for name in hashes])):
            fields = [field for _, field in fields]
            if fields:
                _, times = self.ask("HPTTL", name, "FIELDS", len(fields), *fields)
                self.pipeline([["HPEXPIREAT", name, FAR_MS + i, "FIELDS", 1, field]
                               for i, (field, (_, ms)) in enumerate(zip(fields,
                                                                        times or ())) if ms >= 0])

    def digest(self):
        libraries = self.command("FUNCTION", "LIST", "WITHCODE")
        return self.command("DEBUG", "DIGEST").decode(), sorted(repr(one) for one in libraries)

    def values(self):
        """(database, key): digest of the value and expiry."""
        out = {}
        for db in range(DATABASES):
            for name in self.keys(db):
                digest, ms = (self.command("DEBUG", "DIGEST-VALUE", name)[0],
                              self.command("PEXPIRETIME", name))
                out[db, name] = digest, ms
        self.command("SELECT", 0)
        return out

    def dump(self, db, name):
        self.command("SELECT", db)
        return self.command("TYPE", name), self.command("OBJECT", "ENCODING", name), self.command(
            "DUMP", name)
