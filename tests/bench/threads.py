"""The rate of check-rdb by the number of its threads.

    lines = threads.measure_check(path, runs, say)

More threads than processors are not tried.
"""

import os

import measure
from capture import REDOUBT


def counts():
    """1, 2, 4 …, and the number of processors."""
    most = len(os.sched_getaffinity(0))
    return sorted({n for n in (1, 2, 4, 8, 16, 32) if n < most} | {min(most, 32)})


def measure_check(path, runs, say):
    say("check-rdb by threads")
    costs = measure.alternately({n: measure.Run([REDOUBT, "check-rdb", "--threads", str(n), path])
                                 for n in counts()}, runs)
    size = os.path.getsize(path)
    return [{"question": "check-rdb threads", "threads": n, **cost.data(),
             "bytes_per_s": size / cost.wall.best, "bytes_per_core_s": size / cost.cpu.best}
            for n, cost in costs.items()]


def rows(lines):
    heads = ("threads", "time", "CPU", "MiB", "MB/s", "MB/s per core")
    return [heads, *([str(line["threads"]), f"{line['wall_s']['best']:.3f}",
                      f"{line['cpu_s']['best']:.3f}", f"{line['peak_kib'] / 1024:.1f}",
                      f"{line['bytes_per_s'] / 1e6:,.0f}",
                      f"{line['bytes_per_core_s'] / 1e6:,.0f}"] for line in lines)]
