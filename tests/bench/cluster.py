#!/usr/bin/env python3
"""Measures a cluster of redoubt-server beside one of redis-server, in the same run.

usage: ./run bench cluster [--runs N] [COMMAND…]

    COMMAND    only these of redis-benchmark, such as set or get

Each cluster has three masters. redis-benchmark --cluster asks both in turns: a pair is one run on
each. BENCH_N is the number of requests in a run (300000); with a depth of 1 it is a quarter.
Processor time is that of the three nodes, all their threads, by their own clocks, so that it holds
on a machine that does other things as well. A ratio is the median of those of the pairs.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import cluster_node  # noqa: E402
import server_under_test as sut  # noqa: E402

RATE_BAR, CPU_BAR = 1.0, 0.75
COMMANDS = ("set", "get", "incr", "lpush", "hset", "zadd", "mset")
DEPTHS = (1, 16)


def cpu_seconds(nodes):
    return sum(time.clock_gettime(~node.pid << 3 | 2) for node in nodes)


def once(nodes, name, n, depth):
    """Requests/s, and seconds of processors for a million of them."""
    for node in nodes:
        node.client().command("FLUSHALL")
    before = cpu_seconds(nodes)
    done = subprocess.run(
        ["redis-benchmark", "--cluster", "-p", str(nodes[0].port), "-t", name, "-n", str(n),
         "-c", "50", "-P", str(depth), "-r", "100000", "--csv"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    cpu = cpu_seconds(nodes) - before
    text = done.stdout.decode(errors="replace")
    rates = re.findall(r'^"[^"]+","([\d.]+)"', text, re.M)
    if done.returncode != 0 or len(rates) != 1:
        sys.exit(f"redis-benchmark -t {name}: {text[-300:]}")
    return float(rates[0]), cpu / n * 1e6


def measure(ours, theirs, name, n, depth, runs):
    """Prints a line. Returns whether a bar was missed."""
    pairs = [(once(ours, name, n, depth), once(theirs, name, n, depth)) for _ in range(runs)]
    cells = [f"{name.upper() + ' -P ' + str(depth):14}"]
    ratios = []
    for at, form in ((0, "11,.0f"), (1, "11.3f")):
        cells += [format(statistics.median(pair[who][at] for pair in pairs), form)
                  for who in (0, 1)]
        ratios.append(statistics.median(own[at] / peer[at] for own, peer in pairs))
        cells.append(f"{ratios[-1]:6.2f}")
    missed = [what for what, is_missed in (("rate", ratios[0] < RATE_BAR),
                                           ("cpu", ratios[1] > CPU_BAR)) if is_missed]
    print(*cells, ", ".join(missed) + " missed" if missed else "met", flush=True)
    return bool(missed)


def main():
    parser = argparse.ArgumentParser(description="Measures clusters beside redis-server.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("commands", nargs="*", metavar="COMMAND")
    args = parser.parse_args()
    n = int(os.environ.get("BENCH_N", "300000"))
    missed = False
    print(f"{'':14} {'requests/s':>11} {'redis':>11} {'ratio':>6} {'cpu s/10^6':>11} {'redis':>11} "
          f"{'ratio':>6} bar: {RATE_BAR:g}, {CPU_BAR:g}")
    with cluster_node.masters(*[sut.Redoubt] * 3) as ours, \
            cluster_node.masters(*[sut.Redis] * 3) as theirs:
        for depth in DEPTHS:
            for name in args.commands or COMMANDS:
                count = n if depth > 1 else max(n // 4, 1)
                missed |= measure(ours, theirs, name, count, depth, args.runs)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
