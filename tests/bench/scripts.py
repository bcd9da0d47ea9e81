#!/usr/bin/env python3
"""Measures scripts on redoubt-server beside redis-server, in the same run.

usage: ./run bench scripts [--runs N]

BENCH_N is the number of commands of the shortest script in a run (400000); longer ones get fewer.
Each line is the best of the runs; both servers take turns. Processor time is that of the server.
The bars: at least 1.0 times the requests per second, at most 0.9 times the processor time.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import server_under_test as sut  # noqa: E402

RATE_BAR, CPU_BAR = 1.0, 0.9

JSON = json.dumps([{"id": i, "name": f"name {i}", "tags": ["a", "b", "c"], "score": i * 1.5,
                    "on": i % 2 == 0} for i in range(120)], separators=(",", ":"))

# name, script, arguments, share of BENCH_N
CASES = (
    ("one line", "return redis.call('get', KEYS[1])", ("1", "k"), 1),
    ("1,000 calls", "for i = 1, 1000 do redis.call('set', KEYS[1], i) end return 1", ("1", "k"),
     1 / 400),
    ("cjson, 10 kB", "return #cjson.encode(cjson.decode(ARGV[1]))", ("0", JSON), 1 / 80),
    ("cmsgpack, 10 kB", "local t = cjson.decode(ARGV[1]) local n = 0 "
     "for i = 1, 5 do local p = cmsgpack.pack(t) t = cmsgpack.unpack(p) n = n + #p end return n",
     ("0", JSON), 1 / 200),
)


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)


def measure(server, script, rest, n):
    """(requests/s, processor seconds of a million)"""
    client = server.client()
    client.command("SET", "k", "v")
    sha = client.command("SCRIPT", "LOAD", script).decode()
    assert sha == hashlib.sha1(script.encode()).hexdigest()
    client.command("EVALSHA", sha, *rest)
    cpu, began = cpu_seconds(server.pid), time.monotonic()
    subprocess.run([shutil.which("redis-benchmark"), "-p", str(server.port), "-c", "20", "-P", "8",
                    "-n", str(n), "-q", "EVALSHA", sha, *rest], check=True,
                   stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    return n / seconds, (cpu_seconds(server.pid) - cpu) / n * 1e6


def main():
    parser = argparse.ArgumentParser(description="Measures scripts beside redis-server.")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    total = int(os.environ.get("BENCH_N", "400000"))
    missed = False
    print(f"{'EVALSHA':18} {'requests/s':>12} {'redis-server':>12} {'ratio':>6} "
          f"{'cpu s/million':>14} {'redis-server':>12} {'ratio':>6}")
    with sut.pair() as servers:
        for name, script, rest, share in CASES:
            n = max(int(total * share), 100)
            runs = [[measure(server, script, rest, n) for server in servers]
                    for _ in range(args.runs)]
            rates = [max(run[i][0] for run in runs) for i in range(2)]
            cpus = [min(run[i][1] for run in runs) for i in range(2)]
            rate, cpu = rates[0] / rates[1], cpus[0] / cpus[1]
            ok = rate >= RATE_BAR and cpu <= CPU_BAR
            missed = missed or not ok
            print(f"{name:18} {rates[0]:12,.0f} {rates[1]:12,.0f} {rate:6.2f} {cpus[0]:14,.2f} "
                  f"{cpus[1]:12,.2f} {cpu:6.2f}  {'met' if ok else 'missed'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
