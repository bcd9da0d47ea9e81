"""Sets in chunks, in a folder and in S3, while their writers are disturbed at random moments.

Each round takes a new snapshot and disturbs a backup or a prune, which rewrites packs. Rounds in
which the run had ended before that do not count:

    kill    SIGKILL
    cut     no request arrives from some moment on, or the answers of some are lost (S3)
    two     a second backup or prune runs at the same time and waits for the lock
    stale   the run is stopped, its lock expires, another run does its work, and it resumes (S3)
    force   its lock is removed by an operator who believes that it has ended, and another run
            does its work at the same time (S3)

After each round everything that is listed is good, verify finds nothing, and a set gives the
snapshot that it was made of; after every tenth, all sets do. No set disappears that no prune was
told to remove. In the end an undisturbed backup and prune succeed.
"""

import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from backup_case import REDOUBT
from s3_server import S3Server
from test_backup_chunks import snapshot

KEYS, KEEP = 6000, 3


class Wrong(Exception):
    pass


class World:
    def __init__(self, folder, rng, s3):
        self.folder, self.rng, self.s3 = folder, rng, s3
        self.name = "s3" if s3 else "folder"
        self.dump = os.path.join(folder, self.name + ".rdb")
        self.config = os.path.join(folder, self.name + ".conf")
        self.made, self.turn = {}, 0
        self.whole = {"backup": 0.5, "prune": 0.3}
        self.count = collections.Counter()
        more = f"repository = {folder}/repository\n"
        if s3:
            key = os.path.join(folder, "s3key")
            with open(key, "w", encoding="utf-8") as out:
                out.write(f"{s3.access_key}\n{s3.secret_key}\n")
            more = (f"repository = s3://vault/some/where\ns3-endpoint = {s3.url}\n"
                    f"s3-key-file = {key}\nlock-expire = 1s\n")
        with open(self.config, "w", encoding="utf-8") as out:
            out.write(f"[nightly]\nsource = {self.dump}\nkey-file = {folder}/key\nstore = chunks\n"
                      f"chunk-grace = 1s\nkeep = count {KEEP}\nlock-wait = 20s\n"
                      f"spool = {folder}/spool-{self.name}\n{more}")

    # ---- runs ----

    def argv(self, tool, *args):
        return [REDOUBT, tool, *args, "--config", self.config]

    def work(self, tool):
        return self.argv("backup") if tool == "backup" else self.argv("prune", "--confirm")

    def start(self, argv):
        return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def end(self, process, seconds=60):
        try:
            said = process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            raise Wrong("a run does not end") from error
        return process.returncode, said.decode(errors="replace")

    def good(self, *args):
        status, said = self.end(self.start(self.argv(*args)), 120)
        if status != 0:
            raise Wrong(f"{args}: {status}: {said}")

    def listed(self):
        done = subprocess.run(self.argv("list", "--json"), capture_output=True, check=False)
        return json.loads(done.stdout)["sets"]

    # ---- rounds ----

    def next_snapshot(self):
        self.turn += 1
        changed = set(range(self.turn % 50, KEYS, 50))
        keys = KEYS if self.turn % 3 else KEYS // 20
        data = snapshot(keys, order=self.turn // 4 % 2, changed=changed)
        with open(self.dump, "wb") as out:
            out.write(data)
        return data

    def moment(self, tool):
        time.sleep(self.rng.random() * self.whole[tool] * 1.2)

    def kill(self, tool):
        process = self.start(self.work(tool))
        self.moment(tool)
        process.send_signal(signal.SIGKILL)
        self.end(process)
        return process.returncode == -signal.SIGKILL

    def cut(self, tool):
        process = self.start(self.work(tool))
        self.moment(tool)
        kind = self.rng.choice(["cut", "lost", "some"])
        ended = process.poll() is not None
        self.s3.faults = lambda *_: (kind if kind != "some"
                                     else self.rng.choice(["cut", "lost", None, None]))
        if self.rng.random() < 0.5:
            time.sleep(self.rng.random() * 2)
            self.s3.faults = None
        else:
            time.sleep(1)
            process.send_signal(signal.SIGKILL)
        self.end(process)
        self.s3.faults = None
        return not ended

    def two(self, tool):
        other = self.rng.choice(["backup", "prune"])
        processes = [self.start(self.work(tool))]
        self.moment(tool)
        processes.append(self.start(self.work(other)))
        overlap = processes[0].poll() is None
        if self.rng.random() < 0.3:
            self.moment(other)
            self.rng.choice(processes).send_signal(signal.SIGKILL)
        for process in processes:
            status, said = self.end(process)
            if status not in (0, 7, -signal.SIGKILL):
                raise Wrong(f"two: {status}: {said}")
        return overlap

    def stale(self, tool):
        process = self.start(self.work(tool))
        self.moment(tool)
        process.send_signal(signal.SIGSTOP)
        alive = process.poll() is None
        try:
            self.good(*self.work(self.rng.choice(["backup", "prune"]))[1:-2])
        finally:
            process.send_signal(signal.SIGCONT)
        self.end(process)
        return alive

    def force(self, tool):
        process = self.start(self.work(tool))
        self.moment(tool)
        alive = process.poll() is None
        self.end(self.start(self.argv("unlock", "--confirm", "--force")))
        other = self.start(self.work(self.rng.choice(["backup", "prune"])))
        for each in (process, other):
            status, said = self.end(each)
            if status not in (0, 3, 7):
                raise Wrong(f"force: {status}: {said}")
        return alive

    def round(self):
        tool = self.rng.choice(["backup", "backup", "prune"])
        kinds = ["kill", "two"] + (["cut", "stale", "force"] if self.s3 else ["kill"])
        kind = self.rng.choice(kinds)
        if tool == "prune":
            self.next_snapshot_set()
        data = self.next_snapshot()
        before = {s["id"] for s in self.listed()}
        hit = getattr(self, kind)(tool)
        # So that most moments are while the run works.
        self.whole[tool] = min(3, max(0.02, self.whole[tool] * (1.1 if hit else 0.8)))
        self.check(data, before)
        if hit:
            self.count[f"{kind} {tool}"] += 1
        return hit

    def next_snapshot_set(self):
        data = self.next_snapshot()
        before = {s["id"] for s in self.listed()}
        self.good("backup")
        self.adopt(data, before)

    # ---- what must be ----

    def adopt(self, data, before):
        sets = self.listed()
        for found in sets:
            if found["state"] == "incomplete":
                continue
            if not found["good"]:
                raise Wrong(f"not good: {found}")
            if found["id"] not in before:
                self.made.setdefault(found["id"], data)
        return [s["id"] for s in sets if s["good"]]

    def restore(self, one):
        out = os.path.join(self.folder, "out.rdb")
        self.good("restore", "--set", one, "--to", out, "--force")
        with open(out, "rb") as file:
            if file.read() != self.made[one]:
                raise Wrong(f"{one} gives other bytes")

    def check(self, data, before):
        ids = self.adopt(data, before)
        newest = sorted(before)[-KEEP:]
        gone = [i for i in newest if i not in ids]
        # A prune that ran with new sets removes older ones: the newest always stay.
        if len(ids) < min(KEEP, len(before)) or (gone and len(ids) < KEEP):
            raise Wrong(f"sets are missing: {gone}")
        if ids:
            self.good("verify")
            for one in ids if self.turn % 10 == 0 else [self.rng.choice(ids)]:
                self.restore(one)

    def finish(self):
        if self.s3:
            time.sleep(1.2)
        data, before = self.next_snapshot(), {s["id"] for s in self.listed()}
        self.good("backup")
        self.adopt(data, before)
        for _ in range(3):
            time.sleep(1.1)
            self.good("prune", "--confirm")
        ids = self.adopt(None, {s["id"] for s in self.listed()})
        if len(ids) != KEEP:
            raise Wrong(f"{len(ids)} sets are left")
        self.good("verify", "--level", "parse")
        for one in ids:
            self.restore(one)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    rng = random.Random(seed)
    print(f"seed {seed}, {rounds} rounds", flush=True)
    folder = tempfile.mkdtemp(prefix="redoubt-kills-")
    with S3Server() as s3:
        subprocess.run([REDOUBT, "seal", "--make-key", os.path.join(folder, "key")], check=True,
                       stdout=subprocess.DEVNULL)
        worlds = [World(folder, rng, None), World(folder, rng, s3)]
        for world in worlds:
            world.next_snapshot_set()
        i = n = 0
        while i < rounds:
            n += 1
            world = worlds[n % 2]
            try:
                i += world.round()
            except Wrong as error:
                print(f"round {i} of {rounds}, in {world.name}, seed {seed}: {error}\n"
                      f"what is left: {folder}", flush=True)
                return 1
            if n % 50 == 0:
                print(f"{i} rounds, and {n - i} in which the run had ended before", flush=True)
        for world in worlds:
            world.finish()
            for what, n in sorted(world.count.items()):
                print(f"{world.name}: {n} {what}")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
