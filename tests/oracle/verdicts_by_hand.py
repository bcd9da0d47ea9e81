"""Compares the verdicts of `redoubt check-rdb` on damaged snapshots with what real servers load.

    verdicts_by_hand.py REDOUBT PEERS FOLDER [DAMAGES] [SEED] [MODULE…]

Run by hand, as no test may rely on servers other than Debian's. PEERS has one folder for each
version, with a redis-server or valkey-server in it; FOLDER has the snapshots to damage (see
snapshots_by_hand.py). MODULE is a library that the servers load. Each damage changes one to four
bytes and disables the checksum. The servers run with sanitize-dump-payload yes.

Disagreements are a file called sound that a server refuses, unless a note of the report says so,
and a file called damaged that all servers load. Those are printed with the reasons of both, for a
person to judge.
"""

import collections
import json
import os
import random
import subprocess
import sys
import tempfile
import time

from snapshots_by_hand import Client, Refused

LOAD_SECONDS = 120
NOTES = {"high-db", "code-not-run", "needs-module", "enterprise-opcodes"}
NEWEST = {"2.6.17": 6, "2.8.24": 6, "3.2.13": 7, "4.0.14": 8, "5.0.14": 9, "6.2.16": 9,
          "7.0.15": 10, "7.2.5": 11, "7.4.1": 12, "unstable": 12, "valkey-8.0.1": 11}
SANITIZES = {"6.2.16", "7.0.15", "7.2.5", "7.4.1", "unstable", "valkey-8.0.1"}


class Peer:
    def __init__(self, folder, version, modules):
        self.version = version
        names = ("redis-server", "valkey-server")
        self.program = next(os.path.join(folder, version, n) for n in names
                            if os.path.exists(os.path.join(folder, version, n)))
        self.modules = modules

    def reads(self, data):
        """Old servers are asked only about files of their own version."""
        version = int(data[5:9])
        newest = NEWEST[self.version]
        return version <= newest and (self.version in SANITIZES or version == newest)

    def load(self, data):
        """None, or why the server refuses the file."""
        with tempfile.TemporaryDirectory(prefix="redoubt-hand-") as folder:
            with open(os.path.join(folder, "dump.rdb"), "wb") as f:
                f.write(data)
            path = os.path.join(folder, "socket")
            words = [self.program, "--port", "0", "--unixsocket", path, "--dir", folder,
                     "--save", "", "--databases", "17000"]
            if self.version in SANITIZES:
                words += ["--sanitize-dump-payload", "yes"]
            for module in self.modules if self.version in SANITIZES else ():
                words += ["--loadmodule", module]
            with open(os.path.join(folder, "log"), "wb") as log:
                process = subprocess.Popen(words, stdout=log, stderr=log)
            try:
                return self.wait(process, path, folder)
            finally:
                process.kill()
                process.wait()

    @staticmethod
    def wait(process, path, folder):
        end = time.monotonic() + LOAD_SECONDS
        while time.monotonic() < end:
            if process.poll() is not None:
                with open(os.path.join(folder, "log"), errors="replace", encoding="utf-8") as f:
                    lines = [line for line in f.read().splitlines() if line.strip()]
                return lines[-2][-90:] if len(lines) > 1 else "ended"
            try:
                Client(path)("DBSIZE")
                return None
            except (OSError, Refused):
                time.sleep(0.01)
        return "does not answer"


def damaged(rng, data):
    data = bytearray(data)
    start, end = 9, len(data) - 9
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(start, end)
        kind = rng.randrange(4)
        data[at] = (data[at] ^ 1 << rng.randrange(8) if kind < 2 else
                    rng.choice([0, 255, 254, 127, 128]) if kind == 2 else rng.randrange(256))
    if int(data[5:9]) >= 5:
        data[-8:] = bytes(8)
    return bytes(data)


def verdict(redoubt, data):
    run = subprocess.run([redoubt, "check-rdb", "--json", "-"], input=data, capture_output=True,
                         check=False)
    file = json.loads(run.stdout)["files"][0]
    return file["verdict"], sorted(file["findings_by_id"])


def main():
    redoubt, peers, folder = sys.argv[1:4]
    damages = int(sys.argv[4]) if len(sys.argv) > 4 else 300
    rng = random.Random(int(sys.argv[5]) if len(sys.argv) > 5 else 1)
    servers = [Peer(peers, version, sys.argv[6:]) for version in NEWEST
               if os.path.isdir(os.path.join(peers, version))]
    names = sorted(os.listdir(folder))
    counts = collections.Counter()
    for n in range(damages):
        name = rng.choice(names)
        with open(os.path.join(folder, name), "rb") as f:
            data = damaged(rng, f.read())
        said, ids = verdict(redoubt, data)
        sound = said in ("ok", "warnings")
        answers = {s.version: s.load(data) for s in servers if s.reads(data)}
        counts["loads"] += len(answers)
        refused = {v: why for v, why in answers.items() if why is not None}
        counts[said] += 1
        if sound and refused:
            noted = NOTES & set(ids)
            counts["sound, refused, with a note" if noted else "sound, refused"] += 1
            if not noted:
                print(f"{n} {name}: {said} {ids}, refused: {refused}", flush=True)
        elif not sound and said != "unsupported" and not refused:
            counts["damaged, loaded"] += 1
            print(f"{n} {name}: {said} {ids}, loaded by {sorted(answers)}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
