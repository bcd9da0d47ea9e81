"""redoubt capture beside redis-cli: what a replica that keeps everything costs itself and others.

    lines = capture.measure_stream(seconds, runs, say)
    lines += capture.measure_kills(seconds, kills, say)
    lines += capture.measure_snapshot(path, runs, say)

Each has a redis-server of its own as master. Under load, redis-benchmark -P 64 writes, and either
the capture or `redis-cli --replica` with its output in /dev/null follows, in turns. Where
processors are short, whatever follows takes time from the master and from who writes: therefore
the master's requests for each second of its own processor time are printed next to the rate.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import measure

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import server_under_test as sut  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
MASTER = {"repl-diskless-sync-delay": "0", "repl-backlog-size": "512mb",
          "client-output-buffer-limit": "replica 0 0 0"}
PATIENCE_SECONDS = 600
SETTLE_SECONDS = 1  # from the begin of the load until it is measured
KEYS = 100000
RATE_BAR, CPU_BAR = 0.95, 20  # of the peer's; percent of a core
WALL_BAR, MIB_BAR = 1.1, 32
HEADS = ("benchmark", "unit", "Redoubt", "redis-cli", "ratio", "target")


def missing():
    """Which program cannot be found; None where all are there."""
    for name in ("redis-server", "redis-benchmark", "redis-cli"):
        if not shutil.which(name):
            return name
    return None


def _folder():
    return tempfile.TemporaryDirectory(prefix="redoubt-bench-")


def wait_for(condition):
    sut.wait_for(condition, PATIENCE_SECONDS)


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # the process clock of another one, in Linux


@contextlib.contextmanager
def process(argv, output=subprocess.DEVNULL):
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        try:
            yield child
        finally:
            ended = child.poll()
            child.kill()
            child.wait()
            errors.seek(0)
            text = errors.read().decode(errors="replace")
    if ended not in (None, 0, 128 + signal.SIGINT):
        raise measure.Failed(f"{' '.join(argv)}: exit status {ended}: {text[-500:]}")


def load(server, tests):
    return process(["redis-benchmark", "-p", str(server.port), "-t", tests, "-P", "64", "-c", "50",
                     "-r", str(KEYS), "-n", "1000000", "-l", "-q"])


def _online(server):
    """The offset that the only replica has reported, or -1; -1 while there is none."""
    found = re.search(r"state=online,offset=(\d+)", server.info("replication").get("slave0", ""))
    return int(found.group(1)) if found else -1


def _url(server):
    return f"redis://127.0.0.1:{server.port}"


# ---- what it costs ----

def _follower(server, folder):
    if folder:
        return process([REDOUBT, "capture", _url(server), "-o", folder])
    return process(["redis-cli", "-p", str(server.port), "--replica"])


def _under_load(server, folder, seconds):
    with _follower(server, folder) as follower:
        wait_for(lambda: _online(server) >= 0)
        with load(server, "set"):
            time.sleep(SETTLE_SECONDS)
            begin, cpu, own = time.monotonic(), cpu_seconds(server.pid), cpu_seconds(follower.pid)
            before = server.info("stats")
            time.sleep(seconds)
            after = server.info("stats")
            took = time.monotonic() - begin
            cpu = cpu_seconds(server.pid) - cpu
            own = cpu_seconds(follower.pid) - own

    def grown(name):
        return int(after[name]) - int(before[name])

    return {"rate": grown("total_commands_processed") / took,
            "rate_cpu": grown("total_commands_processed") / cpu,
            "percent": 100 * own / took,
            "own_ms": 1e6 * own / grown("total_commands_processed")}


STREAM_LINES = (  # question, unit, name, bar, whether more is better
    ("the master, SET -P 64", "requests/s", "rate", RATE_BAR, True),
    ("the master, for its cpu", "requests/cpu s", "rate_cpu", RATE_BAR, True),
    ("cpu of who follows", "% of a core", "percent", None, False),
    ("the same, for a million", "cpu s", "own_ms", None, False),
)


def _stream_line(question, unit, name, bar, more, own, peer):
    best = max if more else min
    line = {"question": "capture: " + question, "unit": unit,
            "ours": {"best": best(own), "runs": own}, "peer": {"best": best(peer), "runs": peer},
            "ratio": best(own) / best(peer), "bar": None, "missed": False}
    if bar:
        line["bar"] = f"{bar:g} of it"
        line["missed"] = line["ratio"] < bar
    if name == "percent":
        line["bar"] = f"{CPU_BAR} %"
        line["missed"] = best(own) > CPU_BAR
    return line


def measure_stream(seconds, runs, say):
    """Each of both for `seconds` in all."""
    own, peer = [], []
    with _folder() as folder, sut.Redis(MASTER) as server:
        for i in range(runs):
            say(f"capture, under load, run {i + 1} of {runs}")
            path = os.path.join(folder, str(i))
            own.append(_under_load(server, path, seconds / runs))
            shutil.rmtree(path)
            peer.append(_under_load(server, None, seconds / runs))
    return [_stream_line(question, unit, name, bar, more, [s[name] for s in own],
                         [s[name] for s in peer])
            for question, unit, name, bar, more in STREAM_LINES]


# ---- killed again and again ----

def _reported_by(argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise measure.Failed(f"{' '.join(argv)}: exit status {done.returncode}: "
                             f"{done.stderr.decode(errors='replace')[-500:]}")
    return json.loads(done.stdout)


def _kill_and_go_on(server, folder, seconds, kills):
    """Processor time of all the captures."""
    used, begin = 0, time.monotonic()
    for i in range(kills):
        child = subprocess.Popen([REDOUBT, "capture", _url(server), "-o", folder],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        until = begin + (i + 1) * seconds / (kills + 1)
        time.sleep(max(until - time.monotonic(), 0.05))
        used += cpu_seconds(child.pid)
        child.kill()
        child.wait()
    return used


def _last_one(server, folder):
    """Ends when it has everything; returns its report."""
    argv = [REDOUBT, "capture", _url(server), "-o", folder, "--json"]
    with tempfile.TemporaryFile() as out, process(argv, out) as child:
        wait_for(lambda: _online(server) >= int(server.info("replication")["master_repl_offset"]))
        child.send_signal(signal.SIGINT)
        child.wait()
        out.seek(0)
        return json.loads(out.read())["targets"][0]


def _digest_of(path):
    with sut.Redis() as server:
        os.symlink(path, os.path.join(server.dir, "dump.rdb"))
        client = server.client()
        client.command("DEBUG", "RELOAD", "NOSAVE")
        return client.command("DEBUG", "DIGEST")


def measure_kills(seconds, kills, say):
    """A capture that is killed while all kinds of commands are written: is anything missing?"""
    sut.REPLY_SECONDS = PATIENCE_SECONDS
    with _folder() as top, sut.Redis(MASTER) as server:
        folder, path = os.path.join(top, "capture"), os.path.join(top, "end.rdb")
        say(f"capture, killed {kills} times in {seconds:g} s")
        with load(server, "set,incr,sadd,hset,spop,zadd,mset"):
            begin = time.monotonic()
            used = _kill_and_go_on(server, folder, seconds, kills)
            took = time.monotonic() - begin
        reported = _last_one(server, folder)
        stream = int(server.info("replication")["master_repl_offset"])
        say(f"capture, replay of {stream:,} bytes")
        _reported_by([REDOUBT, "convert", "--json", "--to", "rdb", folder, "-o", path])
        same = _digest_of(path) == server.client().command("DEBUG", "DIGEST")
    found = (("chapters", "1", reported["chapter"], 1),
             ("digest is the master's", "yes", same, True),
             ("cpu, with all the beginnings", f"{CPU_BAR} %", 100 * used / took, None))
    return [{"question": f"capture, {kills} kills: {question}",
             "unit": "% of a core" if want is None else "", "bar": bar, "ours": {"best": value},
             "peer": None, "ratio": None,
             "missed": value > CPU_BAR if want is None else value != want}
            for question, bar, value, want in found]


# ---- the snapshot alone ----

def measure_snapshot(path, runs, say):
    """--rdb-only beside redis-cli --rdb; the file is verified by the one and not by the other."""
    with _folder() as folder, sut.Redis(MASTER) as server:
        say("capture --rdb-only")
        os.symlink(path, os.path.join(server.dir, "dump.rdb"))
        sut.REPLY_SECONDS = PATIENCE_SECONDS
        client = server.client()
        client.command("DEBUG", "RELOAD", "NOSAVE")
        own = os.path.join(folder, "own.rdb")
        costs = measure.alternately({
            "ours": measure.Run([REDOUBT, "capture", _url(server), "--rdb-only", own, "--force"]),
            "peer": measure.Run(["redis-cli", "-p", str(server.port), "--rdb",
                                 os.path.join(folder, "peer.rdb")])}, runs)
        same = _digest_of(own) == client.command("DEBUG", "DIGEST")
    if not same:
        raise measure.Failed("the snapshot of --rdb-only is another data set")
    mib = [costs[who].peak_kib / 1024 for who in ("ours", "peer")]
    return [
        beside("capture --rdb-only: wall", "s", costs["ours"].wall.data(),
               costs["peer"].wall.data(), WALL_BAR),
        beside("capture --rdb-only: cpu", "s", costs["ours"].cpu.data(),
               costs["peer"].cpu.data(), None),
        {**beside("capture --rdb-only: memory", "MiB", {"best": mib[0]}, {"best": mib[1]}, None),
         "bar": f"{MIB_BAR} MiB", "missed": mib[0] > MIB_BAR},
    ]


def beside(question, unit, own, peer, bar):
    ratio = own["best"] / peer["best"]
    return {"question": question, "unit": unit, "ours": own, "peer": peer,
            "ratio": ratio, "bar": f"{bar:g} of it" if bar else None,
            "missed": bool(bar) and ratio > bar}


# ---- the table ----

def _text(figure):
    if figure is None:
        return "-"
    value = figure["best"]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{0 if value > 1000 else 2}f}"


def rows(lines):
    found = [HEADS]
    for line in lines:
        found.append([line["question"], line["unit"], _text(line["ours"]), _text(line["peer"]),
                      f"{line['ratio']:.2f}" if line["ratio"] else "-",
                      measure.verdict(line["bar"], line["missed"])])
    return found
