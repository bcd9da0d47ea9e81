"""What a program costs, several times over, through bench_exec.

    costs = measure.alternately({"ours": run_a, "peer": run_b}, times=5)
    costs["ours"].wall.best, costs["ours"].peak_kib

Programs take turns, so that what else the machine does meets all of them.
"""

import contextlib
import os
import statistics
import subprocess


class Failed(Exception):
    pass


class Run:
    """One command line; `feed` is that of a program whose output it reads."""

    def __init__(self, argv, feed=None):
        self.argv = argv
        self.feed = feed


class Figure:
    def __init__(self, values):
        self.values = values
        self.best = min(values)
        self.median = statistics.median(values)

    def data(self):
        return {"best": self.best, "median": self.median, "runs": self.values}


class Cost:
    """wall and cpu (user and system) in seconds, the greatest peak of memory."""

    def __init__(self, samples):
        self.wall = Figure([s["wall"] for s in samples])
        self.cpu = Figure([s["user"] + s["sys"] for s in samples])
        self.peak_kib = max(s["kib"] for s in samples)

    def data(self):
        return {
            "wall_s": self.wall.data(),
            "cpu_s": self.cpu.data(),
            "peak_kib": self.peak_kib,
        }


def verdict(target, missed):
    """A cell of a table. missed: whether the target was missed, or in what."""
    if not target:
        return ""
    if not missed:
        return f"{target}: met"
    return f"{target}: not met" + ("" if missed is True else f" ({', '.join(missed)})")


@contextlib.contextmanager
def _input(feed):
    if feed is None:
        yield subprocess.DEVNULL
        return
    writer = subprocess.Popen(feed, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        yield writer.stdout
    finally:
        writer.stdout.close()
        if writer.wait() != 0:
            raise Failed(f"{' '.join(feed)}: exit status {writer.returncode}")


def once(run):
    """{wall, user, sys, kib} of a run; its output goes nowhere."""
    program = os.path.join(os.environ["REDOUBT_BENCH"], "bench_exec")
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as report:
        with _input(run.feed) as stdin:
            done = subprocess.run(
                [program, str(write_end), *run.argv], stdin=stdin, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, pass_fds=(write_end,), check=False)
            os.close(write_end)
        words = report.read().split()
    if done.returncode != 0 or not words or words[0] != "0":
        text = done.stderr.decode(errors="replace").strip()
        raise Failed(f"{' '.join(run.argv)}: exit status {words[0] if words else '?'}: {text}")
    wall, user, system = map(float, words[1:4])
    return {"wall": wall, "user": user, "sys": system, "kib": int(words[4])}


def alternately(runs, times):
    samples = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            samples[name].append(once(run))
    return {name: Cost(found) for name, found in samples.items()}
