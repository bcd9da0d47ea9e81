#!/usr/bin/env python3
"""Measures the tools beside the programs that are installed, in the same run, and prints a table.

usage: ./run bench [--types] [--json | --page FILE] [--runs N] [QUESTION…]

    --types     a table for each kind of value instead: where check-rdb is weak
    --json      one object instead of the tables
    --page FILE also writes the tables to FILE, as a page of Markdown
    --runs N    how often each program runs; 5 by default
    QUESTION    only the lines whose question contains one of these words

BENCH_MB is the size of the mixed snapshot (350), BENCH_TYPE_MB that of each kind (64), BENCH_LOG_MB
that of each log (650), in 10^6 bytes; BENCH_GIANT_MB the size of the giant list in MiB (4096);
BENCH_KEYS how many keys the engine's pauses are looked for with (10000000); BENCH_N how many
commands redis-benchmark sends to each server in a run (1000000; a quarter of it without
pipelining); BENCH_SECONDS for how long a capture or an archive is measured under load (60), which
is done only if QUESTION is "capture" or "backup". BENCH_STREAM_MB is the size of the stream in
which "history" looks for keys, if that is the QUESTION (1000; the bars are those for 10000), with a
key for each 2000 bytes. The files are kept in BENCH_CACHE, which is bench-data in the folder of
builds by default.

Times are in seconds: wall clock, and user and system time of all threads; the best of the runs,
with the median after the stroke. MiB is the most memory that was resident in any run. How many
times as fast ours is (4x: a quarter of the peer's time) compares the best of both. Files are in
the page cache, output goes to /dev/null, that of split to files in memory.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

import backup
import capture
import engine
import history
import make_mixed
import measure
import performance
import server
import snapshots
import threads

HERE = os.path.dirname(os.path.abspath(__file__))
REDOUBT = os.environ.get("REDOUBT", "redoubt")


class Bar:
    """What must hold: so many times as fast as the peer, a peak of at most so many MiB."""

    def __init__(self, wall=None, cpu=None, mib=None):
        self.wall = wall
        self.cpu = cpu
        self.mib = mib

    def text(self):
        parts = []
        if self.wall:
            parts.append(f"speedup of at least {self.wall:.2g}x")
        if self.cpu:
            parts.append(f"CPU speedup of at least {self.cpu:.2g}x")
        if self.mib:
            parts.append(f"at most {self.mib} MiB")
        return ", ".join(parts)

    def missed(self, line):
        found = []
        if self.wall and line["wall_ratio"] and line["wall_ratio"] < self.wall:
            found.append("time")
        if self.cpu and line["cpu_ratio"] and line["cpu_ratio"] < self.cpu:
            found.append("CPU")
        if self.mib and line["ours"]["peak_kib"] > self.mib * 1024:
            found.append("memory")
        return found


def ours(*args, feed=None):
    return measure.Run([REDOUBT, *args], feed)


def theirs(*argv):
    return measure.Run(list(argv)) if shutil.which(argv[0]) else None


def name_of(argv):
    """Of a program; with the tool, if it is Redoubt."""
    name = os.path.basename(argv[0])
    return f"{name} {argv[1]}" if argv[0] == REDOUBT else name


CHECK_BAR = Bar(wall=10, cpu=8, mib=32)


def mixed_questions(path, folder=""):
    """(question, ours, peer, bar); the bar of sums is that they take 1.3 times as long at most, and
    of SQLite beside JSON lines 2.5 times as long."""
    peer = theirs("redis-check-rdb", path)
    database = os.path.join(folder, "keys.db")
    return [
        ("check-rdb", ours("check-rdb", path), peer, CHECK_BAR),
        ("check-rdb --quick", ours("check-rdb", "--quick", path), peer, Bar(mib=32)),
        ("sum --crc64", ours("sum", "--crc64", path), theirs("cksum", path), Bar(wall=1 / 1.3)),
        ("sum --sha256", ours("sum", "--sha256", path), theirs("sha256sum", path),
         Bar(wall=1 / 1.3)),
        ("convert --to ndjson", ours("convert", "--to", "ndjson", path), peer,
         Bar(wall=3, mib=64)),
        ("convert --to resp", ours("convert", "--to", "resp", path), peer, Bar(wall=5, mib=64)),
        ("convert --to resp --restore", ours("convert", "--to", "resp", "--restore", path), peer,
         Bar(wall=5, mib=64)),
        ("convert --to csv", ours("convert", "--to", "csv", path), peer, Bar(mib=64)),
        ("convert --to sqlite, compared with ndjson",
         ours("convert", "--to", "sqlite", "--force", path, "-o", database),
         ours("convert", "--to", "ndjson", path), Bar(wall=1 / 2.5, mib=96)),
        ("convert --to rdb", ours("convert", "--to", "rdb", path), peer, Bar(wall=10, mib=64)),
        ("convert --to rdb --type hash", ours("convert", "--to", "rdb", "--type", "hash", path),
         peer, Bar(wall=10, mib=64)),
        ("split --by slot-range",
         ours("split", "--by", "slot-range", "--slots", "3", "--force", path, "-o", folder), peer,
         Bar(wall=10, mib=64)),
        ("stat", ours("stat", path), peer, Bar(wall=6, mib=64)),
        ("diff", ours("diff", path, path), peer, Bar(mib=64)),
        ("diff, compared with check-rdb", ours("diff", path, path), ours("check-rdb", path),
         Bar(wall=1 / 3)),
    ]


def log_questions(path):
    """The bar beside cat is to take five times as long at most."""
    run = ours("check-aof", path)
    return [
        ("check-aof", run, theirs("redis-check-aof", path), Bar(wall=12, mib=16)),
        ("check-aof, compared with cat", run, theirs("cat", path), Bar(wall=1 / 5)),
    ]


def giant_questions(mb):
    for form in ("quicklist2", "list"):
        feed = [sys.executable, "-B", os.path.join(HERE, "make_giant.py"), "--mb", str(mb),
                "--form", form]
        yield f"check-rdb - ({form})", ours("check-rdb", "-", feed=feed), None, Bar(mib=32)


def wanted(questions, words):
    return [q for q in questions if not words or any(word in q[0] for word in words)]


def answer(question, run, peer, bar, times):
    runs = {"ours": run}
    if peer:
        runs["peer"] = peer
    costs = measure.alternately(runs, times)
    line = {
        "question": question,
        "ours": costs["ours"].data(),
        "peer": None,
        "peer_program": None,
        "wall_ratio": None,
        "cpu_ratio": None,
    }
    if peer:
        line["peer"] = costs["peer"].data()
        line["peer_program"] = name_of(peer.argv)
        line["wall_ratio"] = costs["peer"].wall.best / costs["ours"].wall.best
        line["cpu_ratio"] = costs["peer"].cpu.best / max(costs["ours"].cpu.best, 1e-6)
    line["bar"] = bar.text()
    line["missed"] = bar.missed(line)
    return line, costs


HEADS = ("benchmark", "our time", "our CPU", "our MiB", "compared with", "its time", "its CPU",
         "its MiB", "speedup", "CPU speedup", "target")


def _cells(line, costs):
    def cost(name):
        if name not in costs:
            return ["-", "-", "-"]
        c = costs[name]
        return [f"{c.wall.best:.3f}/{c.wall.median:.3f}", f"{c.cpu.best:.3f}/{c.cpu.median:.3f}",
                f"{c.peak_kib / 1024:.1f}"]

    def ratio(name):
        return f"{line[name]:.2f}x" if line[name] else "-"

    return [line["question"], *cost("ours"), line["peer_program"] or "-", *cost("peer"),
            ratio("wall_ratio"), ratio("cpu_ratio"),
            measure.verdict(line["bar"], line["missed"])]


def _print(rows, left):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) if i in left else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


def run_crc64():
    """Bytes a second of each implementation of CRC-64, by size of the buffer in KiB."""
    program = os.path.join(os.environ["REDOUBT_BENCH"], "bench_crc64")
    done = subprocess.run([program], stdout=subprocess.PIPE, check=True)
    found = []
    for line in done.stdout.decode().splitlines():
        if not line.startswith("#"):
            name, kib, _, rate, _ = line.split()
            found.append({"implementation": name, "kib": int(kib), "bytes_per_s": int(rate)})
    return found


def print_crc64(found):
    print("\nCRC-64 alone, GB/s (10^9 bytes)")
    for line in found:
        print(f"  {line['implementation']:10} buffer of {line['kib']:6} KiB "
              f"{line['bytes_per_s'] / 1e9:8.2f}")


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith("model name"):
                    return " ".join(line.split(":", 1)[1].split())
    except OSError:
        pass
    return platform.machine()


def version(*argv):
    if not shutil.which(argv[0]):
        return None
    done = subprocess.run([*argv, "--version"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors="replace").splitlines()[0]


def machine(args):
    return {
        "command": " ".join(["./run bench", *args]),
        "processor": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "redoubt": version(REDOUBT),
        "peers": [v for v in map(version, ("redis-server", "redis-check-rdb", "cksum",
                                           "sha256sum")) if v],
    }


class Bench:
    def __init__(self, args):
        self.args = args
        self.tables = []
        self.shown = []  # title and rows
        default = os.path.join(os.environ["REDOUBT_BENCH"], "..", "..", "..", "bench-data")
        self.cache = os.path.abspath(os.environ.get("BENCH_CACHE", default))

    def say(self, text):
        print(f"bench: {text}", file=sys.stderr, flush=True)

    def cached(self, path):
        with open(path, "rb") as f:
            while f.read(1 << 20):
                pass
        return path

    def snapshot(self, mb, kinds=()):
        return self.cached(snapshots.make(self.cache, mb, kinds, self.say))

    def table(self, title, questions):
        answers = []
        for question in questions:
            self.say(question[0])
            answers.append(answer(*question, self.args.runs))
        if answers:
            self.add(title, [line for line, _ in answers],
                     [HEADS, *[_cells(line, costs) for line, costs in answers]], (0, 4, 10))

    def mixed(self):
        words = self.args.question
        by_threads = wanted([("check-rdb threads",)], words)
        if by_threads or wanted(mixed_questions(""), words):
            path = self.snapshot(float(os.environ.get("BENCH_MB", "350")))
            memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
            with tempfile.TemporaryDirectory(dir=memory) as folder:
                self.table(f"A mixed snapshot of {os.path.getsize(path):,} bytes",
                           wanted(mixed_questions(path, folder), words))
        if by_threads:
            lines = threads.measure_check(path, self.args.runs, self.say)
            self.add("check-rdb, by number of threads", lines, threads.rows(lines), ())
        if wanted(log_questions(""), words):
            mb = float(os.environ.get("BENCH_LOG_MB", "650"))
            path = self.cached(snapshots.make_log(self.cache, mb, self.say))
            self.table(f"A log of {os.path.getsize(path):,} bytes",
                       wanted(log_questions(path), words))
        giant = wanted(giant_questions(int(os.environ.get("BENCH_GIANT_MB", "4096"))), words)
        if giant:
            self.table(f"One list of {giant[0][1].feed[4]} MiB through a pipe", giant)

    def types(self):
        mb = float(os.environ.get("BENCH_TYPE_MB", "64"))
        questions = []
        for kind in make_mixed.KINDS:
            if wanted([(kind,)], self.args.question):
                path = self.snapshot(mb, (kind,))
                questions.append((kind, ours("check-rdb", path), theirs("redis-check-rdb", path),
                                  CHECK_BAR))
        if questions:
            self.table(f"check-rdb, snapshots of about {mb:g} MB of one kind", questions)

    def engine(self):
        if self.args.types or not wanted([("engine",)], self.args.question):
            return
        lines = []
        if shutil.which("redis-server"):
            snapshot = self.snapshot(float(os.environ.get("BENCH_MB", "350")))
            mb = float(os.environ.get("BENCH_LOG_MB", "650"))
            log = self.cached(snapshots.make_log(self.cache, mb, self.say))
            lines = engine.measure_files(snapshot, log, self.args.runs, self.say)
            log = self.cached(snapshots.make_log(self.cache, mb, self.say, True))
            lines += engine.measure_conversion(log, self.args.runs, self.say)
        lines += engine.measure_pauses(int(os.environ.get("BENCH_KEYS", "10000000")), self.say)
        self.add("The engine, compared with redis-server", lines, engine.rows(lines), (0, 3, 6))

    def server(self):
        def wanted_one(question):
            return wanted([(question,)], self.args.question)

        if self.args.types or not self.server_is_wanted() or server.missing():
            return
        if any(wanted_one("server: " + line[0]) for line in server.FILE_LINES):
            snapshot = self.snapshot(float(os.environ.get("BENCH_MB", "350")))
            mb = float(os.environ.get("BENCH_LOG_MB", "650"))
            log = self.cached(snapshots.make_log(self.cache, mb, self.say))
            lines = server.measure_files(snapshot, log, self.args.runs, self.say)
            self.add("redoubt-server, compared with redis-server: loading and saving", lines,
                     server.file_rows(lines), (0, 1, 5))
        n = int(os.environ.get("BENCH_N", "1000000"))
        lines = server.measure_commands(n, self.args.runs, wanted_one, self.say)
        if lines:
            title = "redoubt-server, compared with redis-server: redis-benchmark, 50 clients"
            self.add(title, lines, server.command_rows(lines), (0, 7))

    def server_is_wanted(self):
        words = self.args.question
        return not words or any(word.startswith("server") for word in words)

    def capture(self):
        """Minutes, and two processors: only where it is asked for."""
        words = self.args.question
        if self.args.types or not any(word.startswith("capture") for word in words):
            return
        if capture.missing():
            raise measure.Failed(f"{capture.missing()} is not installed")
        seconds = float(os.environ.get("BENCH_SECONDS", "60"))
        lines = capture.measure_stream(seconds, self.args.runs, self.say)
        lines += capture.measure_kills(seconds, 50, self.say)
        path = self.snapshot(float(os.environ.get("BENCH_MB", "350")))
        lines += capture.measure_snapshot(path, self.args.runs, self.say)
        self.add("redoubt capture beside redis-cli", lines, capture.rows(lines), (0, 1, 5))

    def backup(self):
        """As long as that of the capture."""
        words = self.args.question
        if self.args.types or not any(word.startswith("backup") for word in words):
            return
        if capture.missing():
            raise measure.Failed(f"{capture.missing()} is not installed")
        path = self.snapshot(float(os.environ.get("BENCH_MB", "350")))
        lines = backup.measure_sets(path, self.args.runs, self.say)
        seconds = float(os.environ.get("BENCH_SECONDS", "60"))
        lines += backup.measure_archive(seconds, self.args.runs, self.say)
        self.add("redoubt backup beside redis-cli --rdb, and redoubt archive", lines,
                 capture.rows(lines), (0, 1, 5))

    def history(self):
        """Gigabytes of disk: only where it is asked for."""
        words = self.args.question
        if self.args.types or not any(word.startswith("history") for word in words):
            return
        size = int(float(os.environ.get("BENCH_STREAM_MB", "1000")) * 1e6)
        lines = history.measure_keys(size, size // 2000, self.args.runs, self.say)
        self.add("The history of keys in a long capture", lines, capture.rows(lines), (0, 1, 5))

    def add(self, title, lines, rows, left):
        self.tables.append({"title": title, "lines": lines})
        self.shown.append((title, rows))
        if not self.args.json:
            print(f"\n{title}")
            _print(rows, left)
            sys.stdout.flush()

    def crc64(self):
        if not self.args.types and wanted([("crc64",)], self.args.question):
            self.say("crc64")
            return run_crc64()
        return None


def parse(argv):
    usage, _, text = __doc__.partition("usage: ")[2].partition("\n\n")
    parser = argparse.ArgumentParser(usage=usage, add_help=False)
    parser.add_argument("--types", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("question", nargs="*")
    args = parser.parse_args(argv)
    if args.help:
        print(f"usage: {usage}\n\n{text.rstrip()}")
        sys.exit(0)
    if args.json and args.page:
        parser.error("--json and --page exclude each other")
    if args.runs < 1:
        parser.error("--runs is at least 1")
    return args


def main(argv):
    args = parse(argv)
    bench = Bench(args)
    about = machine(argv)
    if not args.json:
        print(f"$ {about['command']}\n{about['processor']}, {about['processors']} of them, "
              f"Linux {about['kernel']}\n" + "\n".join([about["redoubt"], *about["peers"]]))
    try:
        (bench.types if args.types else bench.mixed)()
        bench.engine()
        bench.server()
        bench.capture()
        bench.backup()
        bench.history()
        crc64 = bench.crc64()
    except (measure.Failed, OSError, snapshots.redis_server.ServerDied,
            snapshots.redis_server.ReplyError) as e:
        bench.say(e)
        return 3
    if not bench.tables and not crc64:
        bench.say("no question has these words")
        return 2
    if args.page:
        with open(args.page, "w", encoding="utf-8") as f:
            f.write(performance.page(about, bench.shown))
    if args.json:
        print(json.dumps({"redoubt": 1, "bench": 1, **about, "tables": bench.tables,
                          "crc64": crc64}, indent=1))
    elif crc64:
        print_crc64(crc64)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
