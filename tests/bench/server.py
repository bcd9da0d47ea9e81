"""redoubt-server beside redis-server: start-up, SAVE, memory, and what commands cost.

    lines = server.measure_files(snapshot, log, runs, say)
    lines += server.measure_commands(n, runs, wanted, say)

Both programs have the same options and files and take turns. Start-up is from the start of the
process until PING is answered. Processor time is that of the server alone, all its threads, by its
own clock, so that it holds on a machine that does other things as well; requests/s do not.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

import measure

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import server_under_test as sut  # noqa: E402

PATIENCE_SECONDS = 900  # for a server that loads or saves
MANIFEST = "appendonly.aof.manifest"
INCREMENT = "appendonly.aof.1.incr.aof"

COMMANDS = ("set", "get", "incr", "lpush", "hset", "zadd", "mset")
RATE_BAR, CPU_BAR = 1.0, 0.75


def missing():
    """Which program cannot be found; None where all are there."""
    for name in ("redis-server", "redis-benchmark"):
        if not shutil.which(name):
            return name
    return None


def _cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # the process clock of another one, in Linux


def _resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+) kB", f.read()).group(1))


@contextlib.contextmanager
def _started(kind, config, prepare=None):
    """(server, seconds until it answered)."""
    class Prepared(kind):
        def start(self):
            if prepare:
                prepare(self.dir)
            self.began = time.monotonic()
            super().start()

    sut.START_SECONDS = sut.REPLY_SECONDS = PATIENCE_SECONDS
    with Prepared({"auto-aof-rewrite-percentage": "0", **config}) as server:
        yield server, time.monotonic() - server.began


# ---- files ----

def _from_snapshot(kind, path):
    def prepare(folder):
        os.symlink(path, os.path.join(folder, "dump.rdb"))  # SAVE puts its own in the place of it

    with _started(kind, {}, prepare) as (server, seconds):
        found = {"start_s": seconds, "start_cpu_s": _cpu_seconds(server.pid),
                 "resident_kib": _resident_kib(server.pid)}
        client = server.client()
        found["keys"] = client.command("DBSIZE")
        begin, cpu = time.monotonic(), _cpu_seconds(server.pid)
        client.command("SAVE")
        return {**found, "save_s": time.monotonic() - begin,
                "save_cpu_s": _cpu_seconds(server.pid) - cpu}


def _from_log(kind, path):
    def prepare(folder):
        logs = os.path.join(folder, "appendonlydir")
        os.mkdir(logs)
        shutil.copyfile(path, os.path.join(logs, INCREMENT))
        with open(os.path.join(logs, MANIFEST), "w", encoding="ascii") as f:
            f.write(f"file {INCREMENT} seq 1 type i\n")

    with _started(kind, {"appendonly": "yes"}, prepare) as (server, seconds):
        return {"replay_s": seconds, "replay_cpu_s": _cpu_seconds(server.pid),
                "replayed_kib": _resident_kib(server.pid),
                "replayed_keys": server.client().command("DBSIZE")}


FILE_LINES = (  # question, name, bar, whether the bar is how many times as fast
    ("start from the snapshot", "start_s", 2, True),
    ("start from the snapshot, CPU time", "start_cpu_s", None, True),
    ("start from the log", "replay_s", 2.5, True),
    ("start from the log, CPU time", "replay_cpu_s", None, True),
    ("SAVE", "save_s", 2, True),
    ("SAVE, CPU time", "save_cpu_s", None, True),
    ("memory after loading the snapshot", "resident_kib", 0.95, False),
    ("memory after loading the log", "replayed_kib", 0.95, False),
)


def _line(question, unit, own, peer, bar, faster):
    line = {"question": "server: " + question, "unit": unit, "ours": measure.Figure(own).data(),
            "peer": measure.Figure(peer).data(), "peer_program": "redis-server"}
    a, b = line["ours"]["best"], line["peer"]["best"]
    line["ratio"] = b / a if faster else a / b
    line["bar"] = f"{bar:g}x" if faster and bar else f"at most {bar:g}" if bar else None
    line["missed"] = bool(bar) and (line["ratio"] < bar if faster else line["ratio"] > bar)
    return line


def measure_files(snapshot, log, runs, say):
    found = {sut.Redoubt: [], sut.Redis: []}
    for i in range(runs):
        say(f"server, files, run {i + 1} of {runs}")
        for kind, samples in found.items():
            samples.append({**_from_snapshot(kind, snapshot), **_from_log(kind, log)})
    own, peer = found[sut.Redoubt], found[sut.Redis]
    for name in ("keys", "replayed_keys"):
        if own[0][name] != peer[0][name]:
            raise measure.Failed(f"{name}: {own[0][name]} here, {peer[0][name]} in redis-server")
    return [_line(question, name.rpartition("_")[2], [f[name] for f in own],
                  [f[name] for f in peer], bar, faster)
            for question, name, bar, faster in FILE_LINES]


# ---- commands ----

def _rate_and_cpu(server, name, n, depth):
    """Requests/s, and the seconds of the server's processors for a million of them."""
    server.client().command("FLUSHALL")
    before = _cpu_seconds(server.pid)
    done = subprocess.run(
        ["redis-benchmark", "-p", str(server.port), "-t", name, "-n", str(n), "-c", "50",
         "-P", str(depth), "-r", "100000", "--csv"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    cpu = _cpu_seconds(server.pid) - before
    rates = re.findall(r'^"[^"]+","([\d.]+)"', done.stdout.decode(), re.M)
    if done.returncode != 0 or len(rates) != 1:
        raise measure.Failed(f"redis-benchmark -t {name}: {done.stderr.decode()[-300:]}")
    return float(rates[0]), cpu / n * 1e6


def _command_line(question, own, peer):
    def best(samples):
        return {"requests_per_s": max(s[0] for s in samples),
                "cpu_s_per_million": min(s[1] for s in samples), "runs": samples}

    line = {"question": question, "ours": best(own), "peer": best(peer),
            "peer_program": "redis-server"}
    for name in ("requests_per_s", "cpu_s_per_million"):
        line[name + "_ratio"] = line["ours"][name] / line["peer"][name]
    line["missed"] = [what for what, is_missed in (
        ("rate", line["requests_per_s_ratio"] < RATE_BAR),
        ("CPU", line["cpu_s_per_million_ratio"] > CPU_BAR)) if is_missed]
    return line


def pipeline(depth):
    return f"{depth} commands per pipeline" if depth > 1 else "without pipelining"


def measure_commands(n, runs, wanted, say):
    """n commands each with a depth of 16, a quarter of it without pipelining."""
    lines = []
    for log, config in (("appendonly no", {}), ("appendfsync everysec", {"appendonly": "yes"})):
        with _started(sut.Redoubt, config) as (ours, _), _started(sut.Redis, config) as (theirs, _):
            for depth in (1, 16):
                for name in COMMANDS:
                    question = f"server: {name.upper()}, {pipeline(depth)}, {log}"
                    if not wanted(question):
                        continue
                    say(question)
                    count = n if depth > 1 else max(n // 4, 1)
                    pairs = [(_rate_and_cpu(ours, name, count, depth),
                              _rate_and_cpu(theirs, name, count, depth)) for _ in range(runs)]
                    lines.append(_command_line(question, *zip(*pairs)))
    return lines


# ---- tables ----

COMMAND_HEADS = ("benchmark", "requests/s", "redis-server", "ratio", "CPU s per million",
                 "redis-server", "ratio", "target")
COMMAND_TARGET = f"at least {RATE_BAR:.0%} of the rate, at most {CPU_BAR:.0%} of the CPU time"
FILE_HEADS = ("benchmark", "unit", "Redoubt", "redis-server", "ratio", "target")


def command_rows(lines):
    rows = [COMMAND_HEADS]
    for line in lines:
        cells = [line["question"]]
        for name, form in (("requests_per_s", ",.0f"), ("cpu_s_per_million", ".3f")):
            cells += [format(line["ours"][name], form), format(line["peer"][name], form),
                      f"{line[name + '_ratio']:.2f}"]
        cells.append(measure.verdict(COMMAND_TARGET, line["missed"]))
        rows.append(cells)
    return rows


def file_rows(lines):
    rows = [FILE_HEADS]
    for line in lines:
        cells = [f"{line[who]['best']:,.3f}/{line[who]['median']:,.3f}" for who in ("ours", "peer")]
        rows.append([line["question"], line["unit"], *cells, f"{line['ratio']:.2f}",
                     measure.verdict(line["bar"], line["missed"])])
    return rows
