"""The data set library beside a server: loading, saving, replaying, memory; and its pauses.

    lines = engine.measure_files(snapshot, log, runs, say)
    lines += engine.measure_conversion(collections, runs, say)
    lines += engine.measure_pauses(keys, say)

A server's figures are its own: the seconds that its log reports for loading, INFO's resident memory
right after that, and the time in which it answers SAVE. Ours are those of bench_engine. The two
take turns. A conversion reads a log and writes a snapshot; a server that loads the log only reads
it.

Pauses are printed next to those of steps that only compute: what a machine with shared processors
takes from any program. A pause is ours where there are more of them in a second of work than there.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import measure

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402

PATIENCE_SECONDS = 600  # for a server that loads
PAUSE_BAR_US = 1000

MANIFEST = "appendonly.aof.manifest"
INCREMENT = "appendonly.aof.1.incr.aof"


def ours(*args):
    """What bench_engine found, as {name: number}."""
    program = os.path.join(os.environ["REDOUBT_BENCH"], "bench_engine")
    done = subprocess.run([program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    if done.returncode != 0:
        raise measure.Failed(done.stderr.decode(errors="replace").strip())
    return {name: float(number) for name, number in
            (line.split() for line in done.stdout.decode().splitlines())}


def _loaded(server, source):
    """Seconds that the server took to load, and what is resident then, in KiB."""
    found = re.findall(rf"DB loaded from {source}: ([\d.]+) seconds", server.log)
    if not found:
        raise measure.Failed(f"the server did not load: {server.log[-500:]}")
    memory = server.command("INFO", "memory").decode()
    return float(found[-1]), int(re.search(r"used_memory_rss:(\d+)", memory).group(1)) / 1024


class _Server(redis_server.RedisServer):
    """Starts with files in its folder."""

    def __init__(self, config, prepare):
        super().__init__(config)
        self.prepare = prepare

    def start(self):
        self.prepare(self.dir)
        before = redis_server.START_SECONDS
        redis_server.START_SECONDS = PATIENCE_SECONDS
        try:
            super().start()
        finally:
            redis_server.START_SECONDS = before
        self.socket.settimeout(PATIENCE_SECONDS)


def _server_snapshot(path):
    def prepare(folder):
        os.symlink(path, os.path.join(folder, "dump.rdb"))  # SAVE puts its own in the place of it

    with _Server({}, prepare) as server:
        seconds, kib = _loaded(server, "disk")
        begin = time.monotonic()
        server.command("SAVE")
        return {"load_s": seconds, "load_kib": kib, "save_s": time.monotonic() - begin}


def _server_log(path):
    def prepare(folder):
        logs = os.path.join(folder, "appendonlydir")
        os.mkdir(logs)
        shutil.copyfile(path, os.path.join(logs, INCREMENT))
        with open(os.path.join(logs, MANIFEST), "w", encoding="ascii") as f:
            f.write(f"file {INCREMENT} seq 1 type i\n")

    with _Server({"appendonly": "yes"}, prepare) as server:
        seconds, kib = _loaded(server, "append only file")
        cpu = time.clock_gettime(~server.process.pid << 3 | 2)  # of the process, in Linux
        return {"replay_s": seconds, "replay_kib": kib, "cpu_s": cpu}


def _line(question, unit, own, peer, bar, more_is_better):
    """bar: the server's figure is so many times ours at least, or ours so much of the server's."""
    line = {"question": question, "unit": unit, "ours": measure.Figure(own).data(),
            "peer": measure.Figure(peer).data(), "peer_program": "redis-server"}
    a, b = line["ours"]["best"], line["peer"]["best"]
    if more_is_better:
        line.update(ratio=b / a, bar=f"{bar:g}x", missed=b / a < bar)
    else:
        line.update(ratio=a / b, bar=f"at most {bar:g}", missed=a / b > bar)
    return line


def measure_files(snapshot, log, runs, say):
    mine, theirs = [], []
    for i in range(runs):
        say(f"engine, run {i + 1} of {runs}")
        with tempfile.TemporaryDirectory(prefix="redoubt-bench-") as folder:
            found = ours("snapshot", snapshot, os.path.join(folder, "out.rdb"))
        mine.append({**found, **ours("log", log)})
        theirs.append({**_server_snapshot(snapshot), **_server_log(log)})

    def line(question, name, bar, more_is_better=True):
        return _line(question, name.rpartition("_")[2], [m[name] for m in mine],
                     [t[name] for t in theirs], bar, more_is_better)

    return [
        line("engine: load the snapshot", "load_s", 2.7),
        line("engine: save it", "save_s", 2.5),
        line("engine: replay the log", "replay_s", 3),
        line("engine: memory after loading the snapshot", "load_kib", 0.95, False),
        line("engine: memory after replaying the log", "replay_kib", 0.95, False),
    ]


def measure_conversion(log, runs, say):
    mine, theirs = [], []
    for i in range(runs):
        say(f"engine, conversion {i + 1} of {runs}")
        with tempfile.TemporaryDirectory(prefix="redoubt-bench-") as folder:
            out = os.path.join(folder, "out.rdb")
            program = os.environ.get("REDOUBT", "redoubt")
            mine.append(measure.once(measure.Run([program, "convert", "--to", "rdb", log,
                                                  "-o", out])))
        theirs.append(_server_log(log))
    return [
        _line("engine: convert the log of collections", "s", [m["wall"] for m in mine],
              [t["replay_s"] for t in theirs], 2.5, True),
        _line("engine: convert it, CPU time", "s", [m["user"] + m["sys"] for m in mine],
              [t["cpu_s"] for t in theirs], 2.5, True),
    ]


def measure_pauses(keys, say):
    say(f"engine, pauses with {keys:,} keys")
    found = ours("pause", str(keys))
    lines = []
    for name, what in (("set", "SET while the table grows"), ("resize", "a step of resizing"),
                       ("expire", "an expire cycle of 500 us"), ("del", "DEL while it shrinks"),
                       ("floor", "nothing but computing")):
        longest = found[f"{name}_longest_us"]
        lines.append({"question": f"engine: the longest {what}", "unit": "us",
                      "ours": measure.Figure([longest]).data(), "peer": None,
                      "peer_program": None, "ratio": None, "bar": f"{PAUSE_BAR_US} us",
                      "missed": longest > PAUSE_BAR_US, "mean_us": found[f"{name}_mean_us"],
                      "steps": int(found[f"{name}_steps"]),
                      "seconds": found[f"{name}_sum_s"],
                      "steps_above_bar": int(found[f"{name}_long_steps"])})
    return lines


HEADS = ("benchmark", "unit", "Redoubt", "compared with", "its result", "ratio", "target")


def rows(lines):
    """A table as lists of cells, with its heads."""
    def figure(data):
        return f"{data['best']:,.3f}/{data['median']:,.3f}" if data else "-"

    found = [HEADS]
    for line in lines:
        verdict = measure.verdict(line["bar"], line["missed"])
        if "steps" in line:
            each_second = line["steps_above_bar"] / max(line["seconds"], 1e-3)
            verdict += f", {line['steps_above_bar']} of {line['steps']:,} steps above, "
            verdict += f"{each_second:.1f} a second"
        ratio = f"{line['ratio']:.2f}" if line["ratio"] else "-"
        found.append((line["question"], line["unit"], figure(line["ours"]),
                      line["peer_program"] or "-", figure(line["peer"]), ratio,
                      verdict))
    return found
