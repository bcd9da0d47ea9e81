#!/usr/bin/env python3
"""Sets that share chunks, beside restic: what each of many snapshots of one server adds.

usage: ./run bench incremental [--sets N] [--keys N] [--json FILE]

A server has 2.6 million keys, a mixture of texts, JSON and random digits, about 140 bytes each.
Before each snapshot 1 % of them change at random places: new values, longer ones, and some keys
are replaced by others. redoubt backup with store = chunks and store = file, and restic, back up
the same files. Then the server is restarted, and a replica is asked. All repositories are on the
disk of $TMPDIR, which takes about 3 GB.

The bars: a set of which 1 % changed adds at most 3 % of the room of a whole one, 6 % after a
restart and from a replica; all sets take at most 3 times the room of one; the first set takes at
most 1.25 times the wall time of store = file and 128 MiB; one key is read with at most 1 % of the
bytes of a set in ten requests; the whole set comes back at least as fast as from store = file;
and ours is smaller and faster than restic.
"""

import argparse
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import make_mixed
import measure

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
BATCH = 2000


class Data:
    """The keys of a running server."""

    def __init__(self, server, keys):
        self.server = server
        self.source = make_mixed.Source(5)
        self.rng = random.Random(7)
        self.made = 0
        for _ in range(0, keys, BATCH):
            self.ask([(b"SET", self.new_name(), self.value()) for _ in range(BATCH)])

    def new_name(self):
        self.made += 1
        return b"user:%d:profile" % (self.made * 7919 % 10**9)

    def value(self):
        kind = self.rng.random()
        if kind < 0.4:
            return self.source.json(60 + self.rng.randrange(70))
        if kind < 0.8:
            return self.source.text(40 + self.rng.randrange(120))
        return self.source.noise(25 + self.rng.randrange(45)).hex().encode()

    def ask(self, commands):
        client = self.server.client()
        for i in range(0, len(commands), BATCH):
            for reply in client.pipeline(commands[i:i + BATCH]):
                if isinstance(reply, Exception):
                    raise reply

    def change(self, share=0.01):
        client = self.server.client()
        n = int(client.command("DBSIZE") * share)
        keys = set()
        while len(keys) < n:
            keys.update(client.pipeline([(b"RANDOMKEY",)] * min(BATCH, n - len(keys))))
        commands = []
        for key in sorted(keys):
            what = self.rng.random()
            if what < 0.1:
                commands += [(b"DEL", key), (b"SET", self.new_name(), self.value())]
            elif what < 0.5:
                commands.append((b"SET", key, self.value()))
            else:
                commands.append((b"APPEND", key, b"%d" % self.rng.randrange(10**6)))
        self.ask(commands)


class Client:
    """One connection, with many commands at a time."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def reply(self):
        line = self.file.readline()
        if line[:1] == b"$":
            size = int(line[1:])
            return None if size < 0 else self.file.read(size + 2)[:-2]
        if line[:1] == b"-":
            return measure.Failed(line.decode(errors="replace"))
        return int(line[1:]) if line[:1] == b":" else line[1:-2]

    def pipeline(self, commands):
        self.socket.sendall(b"".join(make_mixed.command(*c) for c in commands))
        return [self.reply() for _ in commands]

    def command(self, *args):
        return self.pipeline([tuple(a.encode() if isinstance(a, str) else a for a in args)])[0]


class Server:
    def __init__(self, more=None):
        self.inner = redis_server.RedisServer(more)
        self.inner.__enter__()
        self.connection = None

    def client(self):
        if self.connection is None:
            self.connection = Client(self.inner.port)
        return self.connection

    def save(self):
        if self.client().command("SAVE") != b"OK":
            raise measure.Failed("the server does not save")
        return self.inner.rdb

    def restart(self):
        self.connection = None
        self.inner.stop()
        self.inner.start()

    def close(self):
        self.inner.__exit__(None, None, None)


def size_of(folder):
    return sum(os.path.getsize(os.path.join(where, name))
               for where, _, names in os.walk(folder) for name in names)


class Ours:
    def __init__(self, folder, store):
        self.repository = os.path.join(folder, "ours-" + store)
        self.config = os.path.join(folder, f"{store}.conf")
        key = os.path.join(folder, f"{store}.key")
        subprocess.run([REDOUBT, "seal", "--make-key", key], check=True, stdout=subprocess.DEVNULL)
        with open(self.config, "w", encoding="utf-8") as out:
            out.write(f"[bench]\nrepository = {self.repository}\nkey-file = {key}\n"
                      f"store = {store}\nspool = {folder}/spool-{store}\n")

    def argv(self, tool, *args):
        return [REDOUBT, tool, "bench", "--config", self.config, *args]

    def back_up(self, path):
        return measure.once(measure.Run(self.argv("backup", "--source", path)))

    def restore(self, to, *args):
        return measure.once(measure.Run(self.argv("restore", "--to", to, "--force", *args)))

    def one_key(self, name, to):
        done = subprocess.run(self.argv("restore", "--key", name, "--to", to, "--force", "-v"),
                              capture_output=True, check=True)
        found = re.search(rb"(\d+) requests, (\d+) bytes of chunks", done.stderr)
        return int(found.group(1)), int(found.group(2))

    def empty(self):
        shutil.rmtree(self.repository, ignore_errors=True)


class Restic:
    def __init__(self, folder):
        self.repository = os.path.join(folder, "restic")
        self.env = {**os.environ, "RESTIC_PASSWORD": "bench",
                    "RESTIC_REPOSITORY": self.repository,
                    "RESTIC_CACHE_DIR": os.path.join(folder, "restic-cache")}
        os.environ.update(self.env)
        subprocess.run(["restic", "init", "-q"], check=True)

    def back_up(self, path):
        return measure.once(measure.Run(["restic", "backup", "-q", path]))

    def restore(self, to):
        return measure.once(measure.Run(["restic", "restore", "-q", "latest", "--target", to]))


def room(who, path, found):
    """Backs up, and notes what that took."""
    before = size_of(who.repository)
    cost = who.back_up(path)
    found.append({"bytes": size_of(who.repository) - before, **cost})
    return found[-1]


def report(lines, out):
    for question, value, bar, missed in lines:
        print(f"{question:<58} {value:>22}   {bar:<14} {'MISSED' if missed else ''}".rstrip())
    if out:
        with open(out, "w", encoding="utf-8") as file:
            json.dump([{"question": q, "value": v, "bar": b, "missed": m}
                       for q, v, b, m in lines], file, indent=1)
    return 1 if any(line[3] for line in lines) else 0


def mb(value):
    return f"{value / 1e6:.1f} MB"


def sets(folder, args, data, server, say):
    """The costs of all sets, by who made them."""
    whole = Ours(folder, "file")
    who = {"chunks": Ours(folder, "chunks"), "restic": Restic(folder)}
    found = {name: [] for name in who}
    files = []
    for i in range(args.sets):
        say(f"set {i + 1} of {args.sets}")
        if i > 0:
            data.change()
        path = server.save()
        for name, program in who.items():
            room(program, path, found[name])
        if i == 0:
            for _ in range(3):
                whole.empty()
                files.append(whole.back_up(path))
                # Without a state and a repository: a first set.
                who["chunks"].empty()
                shutil.rmtree(os.path.join(folder, "spool-chunks"), ignore_errors=True)
                found["chunks"] = []
                room(who["chunks"], path, found["chunks"])
                files[-1]["chunks"] = found["chunks"][0]["wall"]
                files[-1]["chunks_kib"] = found["chunks"][0]["kib"]
    return who, whole, found, files


def compare_restores(folder, path, who, whole, lines):
    to = os.path.join(folder, "out.rdb")
    whole.back_up(path)
    who["chunks"].back_up(path)
    times = {"file": [], "chunks": []}
    for _ in range(3):
        times["file"].append(whole.restore(to)["wall"])
        times["chunks"].append(who["chunks"].restore(to)["wall"])
    same = subprocess.run(["cmp", "-s", to, path], check=False).returncode == 0
    ours, peer = min(times["chunks"]), min(times["file"])
    lines.append(("restore of a whole set", f"{ours:.2f} s of {peer:.2f} s", "1.0", ours > peer))
    lines.append(("the snapshot comes back byte for byte", str(same), "True", not same))
    return to


def measure_all(folder, args, say):
    lines = []
    server = Server()
    try:
        say(f"making {args.keys} keys")
        data = Data(server, args.keys)
        who, whole, found, files = sets(folder, args, data, server, say)
        first = found["chunks"][0]["bytes"]
        wall = min(f["chunks"] for f in files), min(f["wall"] for f in files)
        lines.append(("the first set", mb(first), "", False))
        lines.append(("the first set, wall time, chunks of file",
                      f"{wall[0]:.2f} s of {wall[1]:.2f} s", "1.25", wall[0] > 1.25 * wall[1]))
        kib = max(f["chunks_kib"] for f in files)
        limit = 128 + max(0, args.keys - 2600000) * 16 / 2**20
        lines.append(("the first set, memory", f"{kib / 1024:.0f} MiB", f"{limit:.0f} MiB",
                      kib / 1024 > limit))
        if args.sets > 1:
            more = [f["bytes"] for f in found["chunks"][1:]]
            lines.append(("the second set, 1 % changed", f"{100 * more[0] / first:.2f} %", "3 %",
                          more[0] > 0.03 * first))
            total = first + sum(more)
            lines.append((f"{args.sets} sets, 1 % changed before each",
                          f"{total / first:.2f} of the first", "3", total > 3 * first))
            lines.append((f"{args.sets} sets, most memory",
                          f"{max(f['kib'] for f in found['chunks']) / 1024:.0f} MiB", "", False))
        peer, ours = found["restic"], found["chunks"]
        for what, unit, get in (
                ("room", "MB", lambda f: f["bytes"] / 1e6), ("wall time", "s", lambda f: f["wall"]),
                ("processor time", "s", lambda f: f["user"] + f["sys"])):
            a, b = sum(map(get, ours)), sum(map(get, peer))
            lines.append((f"{args.sets} sets, {what}, of restic", f"{a:.1f} of {b:.1f} {unit}",
                          "1.0", a > b))
        a, b = (max(f["kib"] for f in x) / 1024 for x in (ours, peer))
        lines.append(("most memory, of restic", f"{a:.0f} of {b:.0f} MiB", "", False))

        to = compare_restores(folder, server.inner.rdb, who, whole, lines)
        name = server.client().command("RANDOMKEY").decode()
        requests, size = who["chunks"].one_key(name, to)
        lines.append(("one key: requests, bytes", f"{requests}, {100 * size / first:.2f} %",
                      "10, 1 %", requests > 10 or size > first / 100))

        say("after a restart")
        server.restart()
        data.change()
        cost = room(who["chunks"], server.save(), [])
        lines.append(("after a restart, 1 % changed", f"{100 * cost['bytes'] / first:.2f} %", "6 %",
                      cost["bytes"] > 0.06 * first))
        compare_restores(folder, server.inner.rdb, who, whole, lines)
        say("from a replica")
        replica = Server()
        try:
            replica.client().command("REPLICAOF", "127.0.0.1", str(server.inner.port))
            while b"master_link_status:up" not in replica.client().command("INFO", "replication"):
                pass
            data.change()
            cost = room(who["chunks"], replica.save(), [])
        finally:
            replica.close()
        lines.append(("from a replica, 1 % changed", f"{100 * cost['bytes'] / first:.2f} %", "6 %",
                      cost["bytes"] > 0.06 * first))
    finally:
        server.close()
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=48)
    parser.add_argument("--keys", type=int, default=2600000)
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="redoubt-bench-") as folder:
        lines = measure_all(folder, args, lambda text: print(f"bench: {text}", file=sys.stderr))
    return report(lines, args.json)


if __name__ == "__main__":
    sys.exit(main())
