"""redoubt backup beside redis-cli --rdb, and what redoubt archive costs under load.

    lines = backup.measure_sets(path, runs, say)
    lines += backup.measure_archive(seconds, runs, say)

A set is received from a running server, checked, compressed with lz4, sealed and stored in a
folder. redis-cli --rdb receives the same snapshot and does nothing else. The archive ships sealed
segments into a folder while redis-benchmark -P 64 writes; it keeps up if what the master has
written when the load ends is in the repository after a few turns of its interval.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time

import capture
import measure
from capture import REDOUBT, sut

WALL_BAR, MIB_BAR = 1.3, 96
CPU_BAR = 30  # percent of a core
INTERVAL_SECONDS, TURNS_BAR = 2, 3


class Target:
    """A configuration with a key, and a repository that is emptied between runs."""

    def __init__(self, folder, server, more=""):
        self.repository = os.path.join(folder, "repository")
        self.spool = os.path.join(folder, "spool")
        self.config = os.path.join(folder, "redoubt.conf")
        key = os.path.join(folder, "key")
        subprocess.run([REDOUBT, "seal", "--make-key", key], check=True,
                       stdout=subprocess.DEVNULL)
        with open(self.config, "w", encoding="utf-8") as out:
            out.write(f"[bench]\nsource = redis://127.0.0.1:{server.port}\n"
                      f"repository = {self.repository}\nkey-file = {key}\ncompress = lz4\n"
                      f"spool = {self.spool}\n{more}")

    def argv(self, tool, *args):
        return [REDOUBT, tool, "bench", "--config", self.config, *args]

    def empty(self):
        for folder in (self.repository, self.spool):
            shutil.rmtree(folder, ignore_errors=True)

    def verify(self):
        done = subprocess.run(self.argv("verify", "--level", "parse"), capture_output=True,
                              check=False)
        if done.returncode != 0:
            raise measure.Failed("the set does not verify: " +
                                 done.stderr.decode(errors="replace")[-500:])


# ---- sets ----

def measure_sets(path, runs, say):
    """The greatest peak of memory, and wall times of runs in turns."""
    samples = {"ours": [], "peer": []}
    with tempfile.TemporaryDirectory(prefix="redoubt-bench-") as folder, \
            sut.Redis(capture.MASTER) as server:
        sut.REPLY_SECONDS = capture.PATIENCE_SECONDS
        os.symlink(path, os.path.join(server.dir, "dump.rdb"))
        server.client().command("DEBUG", "RELOAD", "NOSAVE")
        target = Target(folder, server)
        peer = os.path.join(folder, "peer.rdb")
        for i in range(runs):
            say(f"backup, run {i + 1} of {runs}")
            target.empty()
            samples["ours"].append(measure.once(measure.Run(target.argv("backup"))))
            samples["peer"].append(measure.once(
                measure.Run(["redis-cli", "-p", str(server.port), "--rdb", peer])))
            os.unlink(peer)
        target.verify()
    own, other = measure.Cost(samples["ours"]), measure.Cost(samples["peer"])
    mib = [cost.peak_kib / 1024 for cost in (own, other)]
    return [
        capture.beside("backup: wall", "s", own.wall.data(), other.wall.data(), WALL_BAR),
        capture.beside("backup: cpu", "s", own.cpu.data(), other.cpu.data(), None),
        {**capture.beside("backup: memory", "MiB", {"best": mib[0]}, {"best": mib[1]}, None),
         "bar": f"{MIB_BAR} MiB", "missed": mib[0] > MIB_BAR},
    ]


# ---- the stream ----

def _shipped(target):
    """The offset up to which the repository has the stream."""
    done = subprocess.run(target.argv("list", "--json"), capture_output=True, check=False)
    streams = json.loads(done.stdout).get("streams", []) if done.returncode == 0 else []
    return max((s["end"] for s in streams if s["bases"] > 0), default=0)


def _offset(server):
    return int(server.info("replication")["master_repl_offset"])


def _under_load(server, target, seconds):
    target.empty()
    with capture.process(target.argv("archive")) as archive:
        capture.wait_for(lambda: _shipped(target) > 0)
        with capture.load(server, "set"):
            time.sleep(capture.SETTLE_SECONDS)
            begin, cpu = time.monotonic(), capture.cpu_seconds(archive.pid)
            before = server.info("stats"), _offset(server)
            time.sleep(seconds)
            after = server.info("stats"), _offset(server)
            took = time.monotonic() - begin
            cpu = capture.cpu_seconds(archive.pid) - cpu
        begin, end = time.monotonic(), _offset(server)
        capture.wait_for(lambda: _shipped(target) >= end)
        left = time.monotonic() - begin
    name = "total_commands_processed"
    requests = int(after[0][name]) - int(before[0][name])
    return {"rate": requests / took, "stream": (after[1] - before[1]) / took / 1e6,
            "percent": 100 * cpu / took, "own": 1e6 * cpu / requests, "left": left}


ARCHIVE_LINES = (  # question, unit, name, bar
    ("the master, SET -P 64", "requests/s", "rate", None),
    ("its stream", "MB/s", "stream", None),
    ("cpu of archive", "% of a core", "percent", CPU_BAR),
    ("the same, for a million", "cpu s", "own", None),
    ("all shipped after the load", "s", "left", INTERVAL_SECONDS * TURNS_BAR),
)


def measure_archive(seconds, runs, say):
    found = []
    with tempfile.TemporaryDirectory(prefix="redoubt-bench-") as folder, \
            sut.Redis(capture.MASTER) as server:
        target = Target(folder, server, f"archive-interval = {INTERVAL_SECONDS}s\n")
        for i in range(runs):
            say(f"archive, under load, run {i + 1} of {runs}")
            found.append(_under_load(server, target, seconds / runs))
        target.verify()
    lines = []
    for question, unit, name, bar in ARCHIVE_LINES:
        values = [f[name] for f in found]
        best = max(values) if name in ("rate", "stream") else min(values)
        lines.append({"question": "archive: " + question, "unit": unit,
                      "ours": {"best": best, "runs": values}, "peer": None, "ratio": None,
                      "bar": f"{bar} {unit.split()[0]}" if bar else None,
                      "missed": bool(bar) and best > bar})
    return lines
