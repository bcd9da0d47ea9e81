"""redoubt history and blame on a long capture: what the indexes of keys cost, and what they save.

    lines = history.measure_keys(size, keys, runs, say)

bench_stream writes the capture, which is removed afterwards. The bars are those for 10 GB with five
million keys, BENCH_STREAM_MB=10000. A cold run reads from the disk: before it, the system forgets
the pages of the capture and its indexes. What is read counts the bytes of system calls; of a cold
run, those that came from the disk, with what the system read ahead.
"""

import glob
import os
import subprocess
import tempfile

import measure
from capture import REDOUBT

INDEX_BAR, MAKE_BAR = 3, 300  # percent of the stream, MB/s for each second of a processor
WARM_BAR, COLD_BAR = 0.1, 1  # seconds
READ_BAR, MIB_BAR = 0.1, 64  # percent of the stream
KINDS = ("string", "list", "set", "zset", "hash")


def _key(i, keys):
    """The names of bench_stream: those of one kind in turn, from all over the snapshot."""
    number = i * keys // 100 // len(KINDS) * len(KINDS) + i % len(KINDS)
    return f"{KINDS[number % len(KINDS)]}:{number}"


def _make(folder, size, keys):
    program = os.path.join(os.environ["REDOUBT_BENCH"], "bench_stream")
    subprocess.run([program, folder, str(size), str(keys)], check=True,
                   stdout=subprocess.DEVNULL)


def _sizes(folder, ending):
    return sum(os.path.getsize(path) for path in glob.glob(os.path.join(folder, "*" + ending)))


def _forget(folder):
    for path in glob.glob(os.path.join(folder, "*")):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def _counters():
    """Of this process, and of its children that have ended."""
    with open("/proc/self/io", encoding="ascii") as f:
        return {name: int(value) for name, value in (line.split(": ") for line in f)}


def _ask(tool, key, folder, *args):
    """One run: {wall, user, sys, kib, called, disk}."""
    run = measure.Run([REDOUBT, tool, key, "--in", folder, *args])
    before = _counters()
    sample = measure.once(run)
    after = _counters()
    return {**sample, "called": after["rchar"] - before["rchar"],
            "disk": after["read_bytes"] - before["read_bytes"]}


def _line(question, unit, value, bar, missed):
    return {"question": "history: " + question, "unit": unit, "ours": {"best": value},
            "peer": None, "ratio": None, "bar": bar, "missed": missed}


def _at_most(question, unit, value, bar):
    return _line(question, unit, value, f"{bar:g}", value > bar)


def _indexes(folder, keys):
    """Of the segments alone: the index of the snapshot is there already."""
    _ask("history", _key(0, keys), folder)
    for path in glob.glob(os.path.join(folder, "*.seg.keys")):
        os.unlink(path)
    sample = _ask("history", _key(0, keys), folder)
    rate = _sizes(folder, ".seg") / 1e6 / (sample["user"] + sample["sys"])
    percent = 100 * _sizes(folder, ".seg.keys") / _sizes(folder, ".seg")
    return [
        _line("indexes made, for each cpu s", "MB", rate, f"{MAKE_BAR}", rate < MAKE_BAR),
        _at_most("their size", "% of the stream", percent, INDEX_BAR),
        _at_most("memory while they are made", "MiB", sample["kib"] / 1024, MIB_BAR),
    ]


def _warm(folder, keys, runs):
    samples = [_ask(tool, _key(i, keys), folder) for i in range(5 * runs)
               for tool in ("history", "blame")]
    stream = _sizes(folder, ".seg")
    walls = sorted(s["wall"] for s in samples)
    return [
        _at_most("a key, warm, median", "s", walls[len(walls) // 2], WARM_BAR),
        _at_most("a key, warm, slowest", "s", walls[-1], WARM_BAR),
        _at_most("read for it, at most", "% of the stream",
                 100 * max(s["called"] for s in samples) / stream, READ_BAR),
        _at_most("memory of history and blame", "MiB", max(s["kib"] for s in samples) / 1024,
                 MIB_BAR),
    ]


def _cold(folder, keys, runs):
    samples = []
    for i in range(runs):
        _forget(folder)
        samples.append(_ask("history", _key(i + 50, keys), folder))
    stream = _sizes(folder, ".seg")
    return [
        _at_most("a key, cold, slowest", "s", max(s["wall"] for s in samples), COLD_BAR),
        _at_most("from the disk for it, at most", "% of the stream",
                 100 * max(s["disk"] for s in samples) / stream, READ_BAR),
    ]


def measure_keys(size, keys, runs, say):
    with tempfile.TemporaryDirectory(prefix="redoubt-bench-") as top:
        folder = os.path.join(top, "capture")
        say(f"history, a stream of {size:,} bytes")
        _make(folder, size, keys)
        say("history, indexes")
        lines = _indexes(folder, keys)
        say("history, warm and cold")
        return lines + _warm(folder, keys, runs) + _cold(folder, keys, runs)
