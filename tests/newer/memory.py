"""Records how much memory each kind of data takes in real servers: tests/newer/memory.json.

usage: memory.py ROOTS OUT [SERVER]...     by hand, as root

For each server and kind: the memory that the server uses with the keys loaded from a snapshot, less
that of the same server without them (INFO used_memory), and the sum of MEMORY USAGE with SAMPLES 0.
"""

import json
import os
import subprocess
import sys
import tempfile

import memory_kinds
import servers

REDOUBT = os.environ.get("REDOUBT", "redoubt")


def used(server):
    info = server.command("INFO", "memory").decode()
    return int(info.partition("used_memory:")[2].split("\r\n")[0])


def reported(server):
    """The sum of MEMORY USAGE over all keys."""
    names = server.command("KEYS", "*")
    asked = [("MEMORY", "USAGE", name, "SAMPLES", 0) for name in names]
    return sum(server.pipeline(asked))


def snapshot(kind, lines, folder):
    """The keys as a snapshot that this server loads."""
    path = os.path.join(folder, "made.rdb")
    subprocess.run([REDOUBT, "convert", "--to", "rdb", "--for", memory_kinds.target(kind.name),
                    "--force", "--input-format", "ndjson", "-", "-o", path],
                   input=memory_kinds.text(lines), check=True)
    return path


def record(kind):
    found = {}
    with tempfile.TemporaryDirectory() as folder, servers.Server(kind) as server:
        server.command("SAVE")
        server.load(server.rdb)
        empty = used(server)
        for name, lines in memory_kinds.all():
            if not memory_kinds.is_for(name, memory_kinds.target(kind.name)):
                continue
            server.load(snapshot(kind, lines, folder))
            bytes_ = used(server) - empty
            n = server.command("DBSIZE")
            if n != len(lines):
                raise SystemExit(f"{kind.name}: {name}: {n} keys of {len(lines)}")
            found[name] = {"keys": n, "used": bytes_, "reported": reported(server)}
    return found


def write(made, out):
    with open(out, "w", encoding="ascii") as file:
        json.dump(made, file, indent=1, sort_keys=True)
        file.write("\n")


def main(roots, out, *names):
    made = {}
    if os.path.exists(out):
        with open(out, encoding="ascii") as file:
            made = json.load(file)
    for kind in servers.find(roots):
        if not names or kind.name in names:
            made[kind.name] = record(kind)
            print(kind.name, len(made[kind.name]), file=sys.stderr)
            write(made, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
