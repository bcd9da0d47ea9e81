"""Segments of a stream are merged, in a folder and in S3, by prunes that are disturbed at random
moments. Rounds in which the prune had ended before that do not count:

    kill    SIGKILL
    cut     no request arrives from some moment on, or the answers of some are lost (S3)
    two     a second prune runs at the same time; sometimes one of them is killed
    stale   the prune is stopped, its lock expires, another one does its work, and it resumes (S3)

After each round `verify` finds nothing, and a restore to some offset gives the bytes that it gave
before anything was merged. When nothing is left to merge, all offsets are tried, and the repository
begins again with the small segments.
"""

import collections
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from backup_case import REDOUBT, SNAPSHOT
from captures import command
from s3_server import S3Server

COMMANDS, OFFSETS, RUN = 300, 12, "20231114T221320Z-0000002a"


class Wrong(Exception):
    pass


class World:
    def __init__(self, folder, rng, s3):
        self.folder, self.rng, self.s3 = folder, rng, s3
        self.name = "s3" if s3 else "folder"
        self.config = os.path.join(folder, self.name + ".conf")
        self.there = os.path.join(folder, "repository")
        self.count, self.whole, self.merged = collections.Counter(), 0.3, 0
        more = f"repository = {self.there}\n"
        if s3:
            key = os.path.join(folder, "s3key")
            with open(key, "w", encoding="utf-8") as out:
                out.write(f"{s3.access_key}\n{s3.secret_key}\n")
            more = (f"repository = s3://vault/some/where\ns3-endpoint = {s3.url}\n"
                    f"s3-key-file = {key}\nlock-expire = 1s\n")
        with open(self.config, "w", encoding="utf-8") as out:
            out.write(f"[nightly]\nsource = redis://127.0.0.1:1\nkey-file = {folder}/key\n"
                      f"merge-grace = 0s\nlock-wait = 20s\nkeep = count 9\n"
                      f"spool = {folder}/spool-{self.name}\n{more}")
        self.archive()
        self.saved = self.save()
        self.right = {n: self.restore(n) for n in rng.sample(range(1, self.end_offset), OFFSETS)}

    # ---- runs ----

    def argv(self, tool, *args):
        return [REDOUBT, tool, "nightly", *args, "--config", self.config]

    def start(self):
        return subprocess.Popen(self.argv("prune", "--confirm"), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def end(self, process, allowed=None):
        try:
            said = process.communicate(timeout=120)[0].decode(errors="replace")
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            raise Wrong("a run does not end") from error
        self.merged += "merged" in said
        if allowed is not None and process.returncode not in allowed:
            raise Wrong(f"{process.args}: {process.returncode}: {said}")
        return said

    def archive(self):
        """A run that uploads a spool of many segments; its master is not there."""
        stream = b"".join(command("APPEND", f"k{n % 7}", f"word {n} ") for n in range(COMMANDS))
        self.end_offset = len(stream)
        spool = os.path.join(self.folder, "spool-" + self.name)
        os.mkdir(spool)
        path = os.path.join(self.folder, "stream")
        with open(path, "wb") as out:
            out.write(stream)
        subprocess.run([os.environ["REDOUBT_MAKE_CAPTURE"], os.path.join(spool, RUN), "a", "0",
                        SNAPSHOT, "1700000000000000", "1000000", path, "200", "1", "recorded"],
                       check=True)
        process = subprocess.Popen(self.argv("archive", "--merge", "no"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0)
        process.stderr.readline()  # it catches signals now
        while process.poll() is None and self.waiting(os.path.join(spool, RUN)):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        said = process.communicate()[1]
        if process.returncode != 0:
            raise Wrong(f"archive: {process.returncode}: {said}")

    @staticmethod
    def waiting(spool):
        names = os.listdir(spool)
        return any(n.endswith(".rdb") for n in names) or sum(n.endswith(".seg") for n in names) > 1

    def save(self):
        if self.s3:
            return dict(self.s3.objects)
        shutil.copytree(self.there, self.there + ".saved")
        return None

    def begin_again(self):
        if self.s3:
            self.s3.objects, self.s3.uploads = dict(self.saved), {}
            return
        shutil.rmtree(self.there)
        shutil.copytree(self.there + ".saved", self.there)

    # ---- rounds ----

    def moment(self):
        time.sleep(self.rng.random() * self.whole * 1.2)

    def kill(self):
        process = self.start()
        self.moment()
        process.send_signal(signal.SIGKILL)
        self.end(process)
        return process.returncode == -signal.SIGKILL

    def cut(self):
        process = self.start()
        self.moment()
        ended = process.poll() is not None
        kind = self.rng.choice(["cut", "lost", "some"])
        self.s3.faults = lambda *_: (kind if kind != "some"
                                     else self.rng.choice(["cut", "lost", None, None]))
        time.sleep(self.rng.random() * 2)
        self.s3.faults = None
        if self.rng.random() < 0.5:
            process.send_signal(signal.SIGKILL)
        self.end(process)
        return not ended

    def two(self):
        processes = [self.start()]
        self.moment()
        overlap = processes[0].poll() is None
        processes.append(self.start())
        if self.rng.random() < 0.5:
            self.moment()
            self.rng.choice(processes).send_signal(signal.SIGKILL)
        for process in processes:
            self.end(process, (0, 7, -signal.SIGKILL))
        return overlap

    def stale(self):
        process = self.start()
        self.moment()
        process.send_signal(signal.SIGSTOP)
        alive = process.poll() is None
        try:
            self.end(self.start(), (0,))
        finally:
            process.send_signal(signal.SIGCONT)
        self.end(process)
        return alive

    def round(self):
        kind = self.rng.choice(["kill", "two"] + (["cut", "stale"] if self.s3 else ["kill"]))
        hit = getattr(self, kind)()
        self.whole = min(3, max(0.02, self.whole * (1.1 if hit else 0.8)))
        self.count[kind] += hit
        self.check([self.rng.choice(list(self.right))])
        if not hit:
            self.finish()
        return hit

    # ---- what must be ----

    def restore(self, offset):
        done = subprocess.run(self.argv("restore", "--to", "-", "--target-offset", str(offset)),
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise Wrong(f"restore to {offset}: {done.returncode}: {done.stderr}")
        return hashlib.sha256(done.stdout).digest()

    def check(self, offsets):
        done = subprocess.run(self.argv("verify"), capture_output=True, check=False)
        if done.returncode != 0:
            raise Wrong(f"verify: {done.returncode}: {done.stdout} {done.stderr}")
        for offset in offsets:
            if self.restore(offset) != self.right[offset]:
                raise Wrong(f"a restore to {offset} gives other bytes")

    def finish(self):
        """Undisturbed prunes, until nothing is left to merge or to remove."""
        if self.s3:
            time.sleep(1.1)
        for _ in range(9):
            said = self.end(self.start(), (0,))
            if "merged" not in said and "removed" not in said:
                break
        self.check(self.right)
        self.begin_again()


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
            print(f"{world.name}: {world.merged} runs reported merging", flush=True)
            for what, times in sorted(world.count.items()):
                print(f"{world.name}: {times} {what}")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
