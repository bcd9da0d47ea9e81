#!/usr/bin/env python3
"""Measures replication of redoubt-server beside that of redis-server, in the same run.

usage: ./run bench replication [--runs N] [QUESTION…]

    QUESTION    only: full, partial, writes

Each pair is a master with replicas of the same program. BENCH_MB is the size of the mixed snapshot
(350), BENCH_GAP_MB that of the gap of a partial sync (100), in 10^6 bytes; BENCH_N the number of
writes of redis-benchmark in a run (1000000). Pairs take turns; each figure is the best of the runs.

The peak of memory is that of the master and its child while it sends a snapshot: pages that both
share count once.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import snapshots

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import server_under_test as sut  # noqa: E402

PATIENCE_SECONDS = 600
SAMPLE_SECONDS = 0.02
CONFIG = {"repl-diskless-sync-delay": "0", "repl-backlog-size": "1gb",
          "client-output-buffer-limit": "replica 0 0 0"}
FULL_BAR, MEMORY_BAR, PARTIAL_BAR, CPU_BAR = 0.5, 0.9, 1.0, 0.7
KINDS = (sut.Redoubt, sut.Redis)


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)


def wait_for(condition):
    sut.wait_for(condition, PATIENCE_SECONDS, 0.01)


def offset(server):
    return int(server.info("replication")["master_repl_offset"])


def is_up(replica):
    return replica.info("replication").get("master_link_status") == "up"


def follow(replica, master):
    replica.client().command("REPLICAOF", "127.0.0.1", master.port)


class Memory(threading.Thread):
    """The peak of the memory of a process and its children, in MiB."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid = pid
        self.peak = 0
        self.ended = False
        self.start()

    def tree(self):
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as f:
            return [self.pid, *map(int, f.read().split())]

    @staticmethod
    def share(pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as f:
            return int(re.search(r"^Pss: +(\d+) kB", f.read(), re.M).group(1)) / 1024
        return 0

    def run(self):
        while not self.ended:
            self.peak = max(self.peak, sum(map(self.share, self.tree())))
            time.sleep(SAMPLE_SECONDS)

    def end(self):
        self.ended = True
        self.join()
        return self.peak


# ---- the questions: each returns figures, of which less is better ----

def full(kind, stack, path):
    """A master that holds the data; then, for each run, an empty replica."""
    master = stack.enter_context(kind(CONFIG))
    os.symlink(path, master.path("dump.rdb"))
    client = master.client()
    client.socket.settimeout(PATIENCE_SECONDS)
    client.command("DEBUG", "RELOAD", "NOSAVE")

    def once():
        with kind(CONFIG) as replica:
            memory = Memory(master.pid)
            began = time.monotonic()
            follow(replica, master)
            wait_for(lambda: is_up(replica))
            took = time.monotonic() - began
            return took, memory.end()
    return once


def partial(kind, stack, gap):
    """The replica stops, its connection is cut, the master writes, and the replica continues."""
    master, replica = (stack.enter_context(kind(CONFIG)) for _ in range(2))
    follow(replica, master)
    wait_for(lambda: is_up(replica))
    client = master.client()
    command = sut.encode("SET", "key:00000", "v" * 150)

    def once():
        wait_for(lambda: offset(replica) == offset(master))
        replica.process.send_signal(signal.SIGSTOP)
        client.command("CLIENT", "KILL", "TYPE", "replica")
        for _ in range(gap // len(command) // 1000):
            client.send_raw(command * 1000)
            for _ in range(1000):
                client.read()
        end = offset(master)
        before = int(master.info("stats")["sync_partial_ok"])
        replica.process.send_signal(signal.SIGCONT)
        began = time.monotonic()
        wait_for(lambda: offset(replica) >= end)
        took = time.monotonic() - began
        assert int(master.info("stats")["sync_partial_ok"]) == before + 1
        return (took,)
    return once


def writes(kind, stack, n):
    """Two replicas follow a master under load."""
    master, *replicas = (stack.enter_context(kind(CONFIG)) for _ in range(3))
    for replica in replicas:
        follow(replica, master)
    wait_for(lambda: all(map(is_up, replicas)))

    def once():
        before = [cpu_seconds(server.pid) for server in (master, *replicas)]
        subprocess.run([shutil.which("redis-benchmark"), "-p", str(master.port), "-t", "set",
                        "-P", "16", "-c", "50", "-r", "100000", "-d", "64", "-n", str(n), "-q"],
                       check=True, stdout=subprocess.DEVNULL)
        end = offset(master)
        wait_for(lambda: all(offset(replica) >= end for replica in replicas))
        used = [cpu_seconds(server.pid) - was
                for server, was in zip((master, *replicas), before)]
        return used[0] / n * 1e6, sum(used[1:]) / len(replicas) / n * 1e6
    return once


def lines(snapshot):
    """name: (question, its argument, (what, unit, bar)…)"""
    return {
        "full": (full, snapshot, (("full sync", "s", FULL_BAR),
                                  ("its memory, master", "MiB", MEMORY_BAR))),
        "partial": (partial, int(os.environ.get("BENCH_GAP_MB", "100")) * 1000000,
                    (("partial sync", "s", PARTIAL_BAR),)),
        "writes": (writes, int(os.environ.get("BENCH_N", "1000000")),
                   (("master, 10^6 writes", "cpu s", CPU_BAR),
                    ("replica, 10^6 writes", "cpu s", CPU_BAR))),
    }


def measure(question, argument, runs):
    """For each program, the best of each figure."""
    with contextlib.ExitStack() as stack:
        once = [question(kind, stack, argument) for kind in KINDS]
        found = [[run() for run in once] for _ in range(runs)]
    return [[min(turn[i][at] for turn in found) for at in range(len(found[0][i]))]
            for i in range(len(KINDS))]


def main():
    parser = argparse.ArgumentParser(description="Measures replication beside redis-server.")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("questions", nargs="*", metavar="QUESTION")
    args = parser.parse_args()
    cache = os.environ.get("BENCH_CACHE", os.path.join(os.environ["REDOUBT_BENCH"], "..", "..",
                                                       "..", "bench-data"))
    wanted = args.questions or ["full", "partial", "writes"]
    snapshot = None
    if "full" in wanted:
        snapshot = snapshots.make(os.path.abspath(cache), int(os.environ.get("BENCH_MB", "350")),
                                  (), lambda text: print(text, file=sys.stderr))
    missed = False
    print(f"{'':22} {'unit':6} {'ours':>9} {'redis-server':>13} {'ratio':>6} {'bar':>5}")
    for name, (question, argument, figures) in lines(snapshot).items():
        if name not in wanted:
            continue
        ours, theirs = measure(question, argument, args.runs)
        for i, (what, unit, bar) in enumerate(figures):
            ratio = ours[i] / theirs[i]
            missed |= ratio > bar
            print(f"{what:22} {unit:6} {ours[i]:9.2f} {theirs[i]:13.2f} {ratio:6.2f} {bar:5.2g}  "
                  f"{'met' if ratio <= bar else 'missed'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
