"""Records which commands of a running server write, and where their keys are.

    record_commands_by_hand.py PORT FIXTURES

Writes FIXTURES/NAME-VERSION/commands.tsv, which test_command_newer.py compares with the table of
the engine. Run by hand with a server of a new version, without modules; then run
tests/support/manifest.py FIXTURES.
"""

import os
import re
import socket
import sys

import engine_resp


def ask(port, *words):
    data = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        s.sendall(engine_resp.encode([w.encode() for w in words]))
        while True:
            piece = s.recv(1 << 20)
            assert piece, "the server went away"
            data += piece
            try:
                return engine_resp.parse(data, 0)[0]
            except engine_resp.Incomplete:
                pass


def pairs(value):
    items = value[1]
    return {items[i][1].decode(): items[i + 1] for i in range(0, len(items), 2)}


def words(value):
    return [item[1].decode() for item in value[1]]


def part(value):
    """The place where a search begins or how keys are found: "index:1", "range:0:1:0"."""
    fields = pairs(value)
    numbers = [v[1].decode() if isinstance(v[1], bytes) else str(v[1])
               for v in pairs(fields["spec"]).values()]
    return ":".join([fields["type"][1].decode(), *numbers])


def spec(value):
    """None: not a key."""
    fields = pairs(value)
    if "not_key" in words(fields["flags"]):
        return None
    return part(fields["begin_search"]) + " " + part(fields["find_keys"])


def rows(commands):
    for command in commands:
        name, arity, flags, _, _, _, _, _, specs, subcommands = command[1]
        if "write" in words(flags):
            found = [s for s in map(spec, specs[1]) if s is not None]
            yield "\t".join([name[1].decode().lower(), str(arity[1]), *found])
        yield from rows(subcommands[1])


def main(port, fixtures):
    info = ask(port, "INFO", "server")[1].decode()
    version = dict(re.findall(r"(redis|valkey|redict)_version:(\S+)", info))
    name = next(n for n in ("valkey", "redict", "redis") if n in version)
    folder = os.path.join(fixtures, f"{name}-{version[name]}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "commands.tsv"), "w", encoding="ascii") as f:
        f.writelines(line + "\n" for line in sorted(rows(ask(port, "COMMAND")[1])))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
