"""The jobs of the table. Each takes a Subject and says how many keys it found equal."""

import contextlib
import json
import os
import random
import signal
import subprocess
import tempfile
import time

import account
import data
from cells import Failure, Impossible, same
from servers import Kind, Server

REDOUBT = os.environ.get("REDOUBT", "redoubt")
OWN = Kind("redoubt-7.0.15", "/", os.environ.get("REDOUBT_SERVER", "redoubt-server"))
MASTER = {"repl-diskless-sync-delay": "0", "repl-backlog-size": "64mb",
          "repl-ping-replica-period": "1"}
SECONDS = 60
FAITHFUL = 0.5  # of the keys of a damaged snapshot that salvage must keep


def eventually(what, true, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise Failure("in vain: " + what)
        time.sleep(0.05)


def tool(*args, good=(0,), stdin=None):
    """Runs the tool; Failure with what it said where its exit status is another one."""
    done = subprocess.run([REDOUBT, *args], capture_output=True, input=stdin, timeout=600)
    if done.returncode not in good:
        said = done.stderr.decode(errors="replace").strip() or done.stdout.decode(errors="replace")
        raise Failure(f"{args[0]}: exit status {done.returncode}: {said}")
    return done


class Subject:
    """A server, its data, and a folder for one run. `old`: only types of Redis 7.0."""

    def __init__(self, kind, seed, old):
        self.kind, self.seed, self.old = kind, seed, old
        self.module = kind.module is not None and not old
        self._folder = tempfile.TemporaryDirectory(prefix="redoubt-newer-")
        self.folder = self._folder.name
        self.snapshot = os.path.join(self.folder, "dump.rdb")
        with self.server() as server:
            data.fill(server, seed, old)
            self.facts = account.read(server)
            self.features = [] if old else data.features(server)
            with open(server.save(), "rb") as source, open(self.snapshot, "wb") as copy:
                copy.write(source.read())
        if self.module:
            self.features.append("module values")
        self.cluster, self.cluster_facts = None, None
        if not old:
            self._fill_cluster()

    def _fill_cluster(self):
        """Another snapshot, of a server in cluster mode that has all slots."""
        self.cluster = self.path("cluster.rdb")
        with Server(self.kind, {"cluster-enabled": "yes"}) as server:
            server.command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            eventually("the cluster is up", lambda: b"cluster_state:ok" in
                       server.command("CLUSTER", "INFO"))
            data.fill(server, self.seed, databases=(0,))
            self.cluster_facts = account.read(server)
            with open(server.save(), "rb") as source, open(self.cluster, "wb") as copy:
                copy.write(source.read())

    def files(self):
        """Snapshots with their accounts."""
        yield self.snapshot, self.facts
        if self.cluster is not None:
            yield self.cluster, self.cluster_facts

    def close(self):
        self._folder.cleanup()

    def server(self, config=None, kind=None):
        return Server(kind or self.kind, {**MASTER, **(config or {})},
                      module=self.module and kind is None)

    def path(self, name):
        return os.path.join(self.folder, name)

    @contextlib.contextmanager
    def filled(self):
        """The server with the data, running."""
        with self.server() as server:
            server.load(self.snapshot)
            if account.count(account.read(server)) != account.count(self.facts):
                raise Failure("the server did not load its own snapshot")
            yield server


def loaded(subject, path, want, kind=None, times=True):
    """Compares what a server has that loads a file."""
    with subject.server(kind=kind) as server:
        server.load(path)
        return same(*account.differences(want, account.read(server), times))


# ---- files ----


def read(subject):
    compared = 0
    for path, facts in subject.files():
        lines = tool("convert", "--to", "ndjson", "--meta", path).stdout
        compared += same(*account.of_lines(facts, lines))
    return compared


def check(subject):
    return sum(_checked(path, facts) for path, facts in subject.files())


def _checked(path, facts):
    done = tool("check-rdb", "--json", path, good=(0, 1, 4))
    said, want = json.loads(done.stdout)["files"][0], account.count(facts)
    if done.returncode != 0 or said["verdict"] != "ok" or said["keys"] != want:
        texts = {f["text"]: None for f in said["findings"] if f["severity"] != "info"}
        raise Failure(f"{os.path.basename(path)}: {said['verdict']}, {said['keys']} keys of "
                      f"{want}: {'; '.join(texts)}")
    if said["functions"] != len(facts["functions"]):
        raise Failure(f"{said['functions']} functions")
    return said["keys"]


def salvage(subject, damages=8):
    with open(subject.snapshot, "rb") as file:
        whole = file.read()
    rng = random.Random(subject.seed)
    compared = _salvaged(subject, whole, None)
    for _ in range(damages):
        at = rng.randrange(100, len(whole) - 100)
        n = rng.randrange(1, 30)
        compared += _salvaged(subject, whole[:at] + rng.randbytes(n) + whole[at + n:], at)
    return compared


def _salvaged(subject, bytes_, at):
    damaged, out = subject.path("damaged.rdb"), subject.path("salvaged.rdb")
    with open(damaged, "wb") as file:
        file.write(bytes_)
    done = tool("check-rdb", "--json", "--force", "--salvage", out, damaged, good=(0, 1, 8))
    said = json.loads(done.stdout)["files"][0]["salvage"]
    if said is None:
        if at is None or done.returncode != 0:
            return loaded(subject, damaged, subject.facts)
        raise Failure(f"damage at {at} was not seen")
    doubtful = {(d["db"], d["key"].encode("utf-8", "surrogateescape")) for d in said["doubtful"]}
    return _judge(subject, out, at, doubtful)


def _judge(subject, out, at, doubtful):
    """No more than the key that was hit may differ without a doubt, and most keys are there."""
    with subject.server() as server:
        server.load(out)
        got = account.read(server)
    problems, common = account.differences(subject.facts, got, functions=at is None)
    other = [p for p in problems if "missing" not in p and
             not any(repr(key[:60]) in p for _, key in doubtful)]
    if len(other) > (0 if at is None else 1):
        raise Failure(f"damage at {at}: " + "; ".join(other[:2]))
    if common < FAITHFUL * account.count(subject.facts):
        raise Failure(f"damage at {at}: {common} of {account.count(subject.facts)} keys were saved")
    return common - len(other)


# ---- conversions ----

LACKS = {"redis-7.0": {"field expiry", "vector sets", "idempotent streams"},
         "valkey-8": {"field expiry", "vector sets", "idempotent streams"},
         "redict-7": {"field expiry", "vector sets", "idempotent streams"},
         "valkey-9": {"vector sets", "idempotent streams"}, "redis-8.0": {"idempotent streams"},
         "redis-8.6": set()}


def lacking(kind):
    return next(v for k, v in LACKS.items() if kind.name.startswith(k))


def word(kind):
    """For --for. redict writes and reads what Redis 7.2 does."""
    return "redis-7.2" if kind.family == "redict" else kind.name


def convert_to(target, subjects):
    """From every server: what the target can hold is loaded there and is equal; what it cannot
    hold is refused."""
    compared, problems = 0, []
    for subject in subjects:
        cannot = set(subject.features) & lacking(target.kind)
        if "module values" in subject.features and not target.module:
            continue
        for path, facts in subject.files():
            try:
                compared += _converted(target, path, facts, cannot)
            except Exception as e:  # noqa: BLE001: every source is tried
                problems.append(f"from {subject.kind.name}: {e}")
    return same(problems, compared)


def _converted(target, path, facts, cannot):
    """How many keys were compared; none where the target cannot hold the data."""
    out = target.path("converted.rdb")
    tool("convert", "--force", "--to", "rdb", "--for", word(target.kind), path, "-o", out,
         good=(4,) if cannot else (0,))
    return 0 if cannot else loaded(target, out, facts)


def load_into(subject):
    """As commands, and as payloads of RESTORE, into a running server."""
    compared = 0
    by_commands = [()] if "module values" not in subject.features else []
    for more in (*by_commands, ("--restore",)):
        lines = tool("convert", "--to", "resp", "--for", word(subject.kind), *more,
                     subject.snapshot).stdout
        with subject.server() as server:
            server.socket.sendall(lines + b"*2\r\n$4\r\nECHO\r\n$7\r\nthe end\r\n")
            _drain(server)
            compared += same(*account.differences(subject.facts, account.read(server), False))
    return compared


def _drain(server):
    failed = []
    while True:
        reply = server._reply_or_error()
        if reply == b"the end":
            break
        if isinstance(reply, Exception):
            failed.append(str(reply))
    if failed:
        raise Failure(f"{len(failed)} commands were refused: {failed[0]}")


# ---- streams ----


def offset(server):
    text = server.command("INFO", "replication").decode()
    return int(text.split("master_repl_offset:")[1].split()[0])


def acknowledged(server):
    eventually("a replica has all", lambda: server.command("WAIT", 1, 500) >= 1)


def write(server, traffic, n):
    server.pipeline(traffic.take(n))
    server.command("SELECT", 0)


def capture(subject, folder="capture", traffic=1500):
    """Records a server under random writes; the facts at its end."""
    with subject.filled() as server:
        running = subprocess.Popen([REDOUBT, "capture", server.url, "-o", subject.path(folder)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            connected("capture", server, running)
            random_writes = data.Traffic(server, subject.seed, subject.old)
            for _ in range(5):
                write(server, random_writes, traffic // 5)
            acknowledged(server)
            facts = account.read(server)
            acknowledged(server)
        finally:
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=60)
    return facts


def connected(name, server, running):
    """Waits until the tool follows the server; Failure with what it said where it does not."""
    end = time.monotonic() + SECONDS
    while b"state=online" not in server.command("INFO", "replication"):
        if running.poll() is not None or time.monotonic() > end:
            running.terminate()
            said = running.communicate(timeout=60)[1].decode(errors="replace")
            raise Failure(f"{name}: never connected, exit status {running.returncode}: {said}")
        time.sleep(0.05)


def captured(subject):
    facts = capture(subject)
    out = subject.path("captured.rdb")
    tool("convert", "--to", "rdb", subject.path("capture"), "-o", out)
    return loaded(subject, out, facts, times=False)


def replay(subject):
    facts = capture(subject, "replay")
    with subject.server() as server:
        tool("replay", "--speed", "max", "--expiry", "recorded", subject.path("replay"), server.url)
        return same(*account.differences(facts, account.read(server), times=False))


# ---- backups ----


def _config(subject, name, source, more=""):
    path = subject.path(name + ".conf")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"[nightly]\nsource = {source}\nrepository = {subject.path(name)}\n"
                   f"keep = hourly 48\n{more}")
    return path


def backup(subject):
    with subject.filled() as server:
        config = _config(subject, "repository", server.url)
        tool("backup", "--config", config)
        facts = account.read(server)
    tool("verify", "--level", "parse", "--config", config)
    out = subject.path("restored.rdb")
    tool("restore", "nightly", "--config", config, "--to", out)
    return loaded(subject, out, facts)


def restore_into(subject):
    config = _config(subject, "from-file", subject.snapshot)
    tool("backup", "--config", config)
    with subject.server() as server:
        tool("restore", "nightly", "--config", config, "--to", server.url)
        return same(*account.differences(subject.facts, account.read(server), times=False))


def archive(subject, moments=6):
    with subject.filled() as server:
        config = _config(subject, "archive", server.url,
                         f"spool = {subject.path('spool')}\narchive-interval = 1s\n")
        running = subprocess.Popen([REDOUBT, "archive", "nightly", "--config", config],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            connected("archive", server, running)
            kept = _moments(subject, server, moments)
            eventually("the archive has all", lambda: _shipped(config, kept[-1][0], running))
        finally:
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=120)
    return sum(_restored(subject, config, at, facts) for at, facts in kept)


def _moments(subject, server, n):
    """Random writes in batches; after each the offset and the account."""
    traffic, kept = data.Traffic(server, subject.seed, subject.old), []
    for _ in range(n):
        write(server, traffic, 200)
        while True:
            before = offset(server)
            facts = account.read(server)
            if offset(server) == before:
                break
        kept.append((before, facts))
        acknowledged(server)
    server.command("SET", "end", "1")
    return kept


def _shipped(config, end, running):
    if running.poll() is not None:
        said = running.stderr.read().decode(errors="replace")
        raise Failure(f"archive: exit status {running.returncode}: {said}")
    done = subprocess.run([REDOUBT, "list", "--json", "--config", config], capture_output=True)
    streams = json.loads(done.stdout or b"{}").get("streams", [])
    return any(s["end"] >= end and s["bases"] for s in streams)


def _restored(subject, config, at, facts):
    out = subject.path(f"moment-{at}.rdb")
    tool("restore", "nightly", "--config", config, "--to", out, "--target-offset", str(at))
    return loaded(subject, out, facts, times=False)


# ---- replication with redoubt-server ----


LEVELS = {"redis-8.0": "8.0", "redis-8.6": "8.6", "valkey-9": "valkey-9.1"}


def level(kind):
    """The configuration that gives redoubt-server the commands of a server."""
    return next(({"redoubt-level": v} for k, v in LEVELS.items() if kind.name.startswith(k)), {})


def _link(replica):
    text = replica.command("INFO", "replication").decode()
    return "master_link_status:up" in text


def _follow(replica, master):
    replica.command("REPLICAOF", "127.0.0.1", master.port)
    end = time.monotonic() + SECONDS
    while not _link(replica):
        if time.monotonic() > end:
            raise Failure("the replica never gets its data: " + _reasons(replica))
        time.sleep(0.05)


def _reasons(replica):
    lines = [line for line in replica.log.splitlines() if " # " in line]
    return lines[-1].split(" # ", 1)[1] if lines else "no reason in the log"


def _caught_up(replica, master):
    """Until the replica has all; Failure with its reason where it dropped the link."""
    end = time.monotonic() + SECONDS
    while offset(replica) < offset(master) or not _link(replica):
        if time.monotonic() > end:
            raise Failure("the replica dropped the link: " + _reasons(replica))
        time.sleep(0.05)


def _replicated(master, replica, seed, old):
    traffic = data.Traffic(master, seed, old)
    _follow(replica, master)
    compared = 0
    for turn in range(3):
        write(master, traffic, 500)
        if turn == 1:  # a cut, then a partial resynchronization
            replica.command("REPLICAOF", "NO", "ONE")
            write(master, traffic, 100)
            _follow(replica, master)
        _caught_up(replica, master)
        a, b = account.read(master), account.read(replica)
        compared += same(*account.differences(a, b, times=False))
    return compared


def replica_of(subject):
    with subject.filled() as master, subject.server(level(subject.kind), OWN) as replica:
        return _replicated(master, replica, subject.seed, subject.old)


def master_of(subject):
    with subject.server(level(subject.kind), OWN) as master, subject.server() as replica:
        data.fill(master, subject.seed, subject.old)
        return _replicated(master, replica, subject.seed, subject.old)


RUN = {"read": read, "check": check, "salvage": salvage, "load into": load_into,
       "capture": captured, "replay": replay, "backup": backup, "archive": archive,
       "restore into": restore_into, "replica of": replica_of, "master of": master_of}

__all__ = ["RUN", "Impossible", "Subject", "convert_to"]
