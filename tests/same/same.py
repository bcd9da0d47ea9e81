"""Compares what two programs `redoubt` do: some thousand invocations of all tools over the
fixtures, with options, damaged inputs and repositories. Ends with 1 if an exit status, an output or
a file that was written differs.

    same.py OLD NEW [--only TOOL,...] [--share N] [--show N] [--processes N]

--share N takes every N-th invocation (7), --show N prints the first N differences (10). Each
process works in a folder of its own, in which all paths are relative. OLD writes the repositories
and logs. What depends on the clock, such as ages, is replaced.
"""

import argparse
import glob
import hashlib
import itertools
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import hexfile  # noqa: E402

# What may differ between two runs: times, durations and rates, and random names.
CLOCK = [
    (re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?"), b"TIME"),
    (re.compile(rb"\b\d+(?:\.\d+)? ?(?:ms|s|seconds?|minutes?|hours?)\b"), b"DURATION"),
    (re.compile(rb'("(?:age|elapsed|began|now|seconds|wall|time)[a-z_]*": ?)[\d.]+'), rb"\1N"),
    (re.compile(rb"process \d+"), b"process N"),
    (re.compile(rb"redoubt-verify-\w{6}"), b"redoubt-verify-X"),
]
END_S = 120  # of one invocation
MS = re.compile(rb"(?<!\d)[12]\d{12}(?!\d)")
FAR_MS = (0, 10**11, 10**12)  # some fixtures have keys that expire so much later


def is_now(number):
    return any(abs(int(number) - time.time() * 1000 - far) < 86400000 for far in FAR_MS)


def normal(data):
    """Without the times. Commands that are replayed may store the present time, in milliseconds."""
    data = MS.sub(lambda m: b"NOW" if is_now(m.group(0)) else m.group(0), data)
    for pattern, text in CLOCK:
        data = pattern.sub(text, data)
    return data


# ---- the inputs ----


def put_fixtures(world):
    """The fixtures under their names; those in hexadecimal as files. Returns the paths by kind."""
    kinds = {}
    with open(os.path.join(ROOT, "fixtures", "MANIFEST.tsv"), encoding="utf-8") as table:
        rows = [line.rstrip("\n").split("\t") for line in table][1:]
    for path, _, kind, *_ in rows:
        source, target = os.path.join(ROOT, "fixtures", path), os.path.join(world, "f", path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if kind == "rdb-hex":
            target, path, kind = target[:-4], path[:-4], "rdb"
            with open(target, "wb") as out:
                out.write(hexfile.load(source))
        elif os.path.isfile(source):
            shutil.copy(source, target)
        kinds.setdefault(kind, []).append("f/" + path)
    return {kind: sorted(paths) for kind, paths in kinds.items()}


def run(program, world, args, stdin=b""):
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC", "HOME": "/nonexistent",
           "TMPDIR": os.path.join(world, "tmp"), "COLUMNS": "80"}
    return subprocess.run([program, *args], input=stdin, capture_output=True, cwd=world, env=env,
                          check=False, timeout=END_S)


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def put_log(folder, base):
    """A log whose commands have times, from an hour ago on."""
    os.makedirs(folder)
    now = int(time.time()) - 3600
    text = b"".join(b"#TS:%d\r\n" % (now + i) + command(b"SET", b"key:%d" % (i % 37), b"%d" % i)
                    for i in range(400))
    with open(os.path.join(folder, "appendonly.aof.1.incr.aof"), "wb") as out:
        out.write(command(b"SELECT", b"0") + text)
    shutil.copy(base, os.path.join(folder, "appendonly.aof.1.base.rdb"))
    with open(os.path.join(folder, "appendonly.aof.manifest"), "w", encoding="utf-8") as out:
        out.write("file appendonly.aof.1.base.rdb seq 1 type b\n"
                  "file appendonly.aof.1.incr.aof seq 1 type i\n")


CONFIG = """[plain]
source = f/redis-7.0.15/tiny.rdb
repository = repo
repository = repo2
keep = count 2

[sealed]
source = f/redis-7.0.15/cluster.rdb
repository = repo
key-file = key
keep = hourly 5

[log]
source = appendonlydir
repository = repo

[stream]
source = appendonlydir
repository = repo
spool = spool
archive-interval = 1s
keep = count 1

[damaged]
source = f/redis-7.0.15/tiny.rdb
repository = repo
"""


def must(done):
    if done.returncode != 0:
        raise SystemExit(f"{done.args}: {done.stderr.decode(errors='replace')}")


def put_stream(old, world):
    with subprocess.Popen([old, "archive", "stream", "--config", "conf"], cwd=world,
                          stderr=subprocess.PIPE) as service:
        end = time.monotonic() + 60
        pattern = os.path.join(world, "repo", "stream", "stream", "*", "*", "*")
        while not glob.glob(pattern) and time.monotonic() < end:
            time.sleep(0.1)
        service.send_signal(signal.SIGTERM)
        said = service.communicate()[1]
    if not glob.glob(pattern):
        raise SystemExit(f"no stream: {said.decode(errors='replace')}")


def flip(path):
    os.chmod(path, 0o600)
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x55]))


def put_repository(old, world):
    with open(os.path.join(world, "conf"), "w", encoding="utf-8") as out:
        out.write(CONFIG)
    with open(os.path.join(world, "key"), "w", encoding="utf-8") as out:
        out.write("17" * 32 + "\n")
    os.chmod(os.path.join(world, "key"), 0o600)
    put_log(os.path.join(world, "appendonlydir"), os.path.join(world, "f/redis-7.0.15/tiny.rdb"))
    for target in ("plain", "plain", "sealed", "log", "damaged", "plain", "damaged"):
        must(run(old, world, ["backup", target, "--config", "conf"]))
        time.sleep(1.1)  # ids have seconds
    put_stream(old, world)
    objects = sorted(glob.glob(os.path.join(world, "repo", "damaged", "sets", "*", "*.rdb*")))
    flip(objects[-1])


def put_world(old, world):
    kinds = put_fixtures(world)
    for name in ("tmp", "in", "out"):
        os.mkdir(os.path.join(world, name))
    put_repository(old, world)
    return kinds


# ---- the invocations: (arguments, what is copied to in/ before) ----

STAT = ([], ["--json"], ["--csv"], ["--top", "3", "--exact"], ["--for", "valkey-9", "--json"],
        ["--html", "-"], ["--type", "hash", "--depth", "1"])
CONVERT = (
    ["ndjson"], ["ndjson", "--meta"], ["ndjson", "--strings", "hex", "--type", "stream"], ["csv"],
    ["resp"], ["resp", "--restore", "--replace"], ["resp", "--for", "redis-5.0", "--lossy"],
    ["aof"], ["rdb"], ["rdb", "--rewrite"], ["rdb", "--for", "redis-3.2"],
    ["rdb", "--for", "redis-3.2", "--lossy", "--json"], ["rdb", "--dialect", "valkey"],
    ["rdb", "--match", "a*", "--json"], ["ndjson", "--min-size", "100"])
SPLIT = (["--by", "db"], ["--by", "slot-range", "--slots", "3", "--json"], ["--by", "prefix"],
         ["--by", "size", "--size", "1kb"], ["--by", "prefix", "--max-open", "2", "--json"],
         ["--by", "db", "--type", "string"])


def of_snapshots(snapshots):
    for i, path in enumerate(snapshots):
        yield from ((["check-rdb", path],), (["check-rdb", "--json", path],),
                    (["check-rdb", "--salvage", "out/saved.rdb", path],))
        for options in STAT:
            yield (["stat", "--now", "1700000000000", *options, path],)
        for k, options in enumerate(CONVERT):
            out = f"out/{k}.{options[0]}" if options[0] == "rdb" or "--json" in options else "-"
            yield (["convert", "--to", options[0], path, "-o", out, *options[1:]],)
        other = snapshots[(i * 7 + 3) % len(snapshots)]
        near = snapshots[(i + 1) % len(snapshots)]
        yield from ((["diff", path, path],), (["diff", path, near],),
                    (["diff", "--json", near, path],), (["diff", "--values", path, other],),
                    (["diff", "--html", "-", path, near],))
        yield from ((["merge", path, near, "-o", "out/m.rdb"],),
                    (["merge", "--json", "--on-conflict", "last", near, path, path, "-o",
                      "out/m.rdb"],))
        for options in SPLIT[i % 2::2]:
            yield (["split", path, "-o", "out/s", *options],)
        yield (["sum", path],)


def of_logs(logs, folders):
    for path in logs + folders:
        yield from ((["check-aof", path],), (["check-aof", "--json", path],), (["show", path],),
                    (["show", "--json", path],), (["show", "--stats", path],),
                    (["stat", path],), (["convert", "--to", "ndjson", path],),
                    (["convert", "--to", "rdb", path, "-o", "out/x.rdb"],),
                    (["convert", "--to", "resp", "--input-format", "aof", path],),
                    (["diff", path, "f/redis-7.0.15/tiny.rdb"],),
                    (["history", "a", path],), (["blame", "a", path],),
                    (["history", "--json", "key", path],))
        name = os.path.basename(path)
        yield ["check-aof", "--fix", f"in/{name}"], path
        yield ["check-aof", "--salvage", "out/saved", path], None


def of_captures(captures):
    for path in captures:
        yield from ((["show", path],), (["convert", "--to", "rdb", path, "-o", "out/x.rdb"],),
                    (["stat", path],), (["check-aof", path],))


def of_repository(world):
    targets = ("plain", "sealed", "log", "stream", "damaged", "none")
    config = ["--config", "conf"]
    levels = ("list", "digest", "parse")
    sets = sorted(os.path.relpath(s, world)
                  for s in glob.glob(os.path.join(world, "repo", "*", "sets", "*")))
    for target, level, json in itertools.product(targets, levels, ([], ["--json"])):
        yield (["verify", target, "--level", level, *json, *config],)
    yield from ((["verify", *config],), (["verify", "--json", *config],),
                (["verify", "plain", "--set", "none", *config],),
                (["list", *config],), (["list", "--json", *config],))
    for path in sets:
        target, ident = path.split("/")[1], os.path.basename(path)
        for more in ([], ["--json"], ["-q"]):
            yield (["verify", target, "--set", ident, "--level", "parse", *more, *config],)
            yield (["restore", target, "--set", ident, "--to", "out/x.rdb", *more, *config],)
            yield (["restore", target, "--set", ident, "--to", "out/", *more, *config],)
            yield (["restore", target, "--set", ident, "--to", "out/", "--layout", "aof", *more,
                    *config],)
            yield (["restore", target, "--set", ident, "--to", "out/x.rdb", "--rdb-version", "9",
                    *more, *config],)
            yield (["restore", target, "--set", ident, "--to", "out/x.rdb", "--match", "k*", *more,
                    *config],)
            yield (["restore", target, "--set", ident, "--to", "out/", "--dry-run", *more,
                    *config],)
        yield (["restore", target, "--set", ident, "--to", "-", *config],)
        yield (["restore", target, "--set", ident, "--to", "out/n", "--key", "none", *config],)
        yield from ((["prune", target, "--pin", ident, *config], "repo"),
                    (["prune", target, "--unpin", ident, *config], "repo"))
    for target, more in itertools.product(targets, ([], ["--json"], ["-q"])):
        yield (["prune", target, *more, *config],)
        yield ["prune", target, "--confirm", *more, *config], "repo"
        yield ["prune", target, "--confirm", "--keep", "count 1", *more, *config], "repo"
        yield (["restore", target, "--to", "out/", *more, *config],)
        yield (["restore", target, "--to", "out/x.rdb", "--dialect", "valkey", *more, *config],)
        for when in ("1h", "2026-01-01T00:00:00Z"):
            yield (["restore", target, "--target-time", when, "--to", "out/x.rdb", *more,
                    *config],)
    for offset in range(0, 20000, 700):
        for option in ("--target-offset", "--before-command"):
            yield (["restore", "stream", option, str(offset), "--to", "out/x.rdb", *config],)
            yield (["restore", "stream", option, str(offset), "--to", "out/y.rdb", "--json",
                    "--match", "key:1*", *config],)
    yield from ((["restore", "--to", "out/", *config],), (["restore", "plain", *config],),
                (["restore", "f/redis-7.0.15/tiny.rdb", "--to", "out/", *config],),
                (["prune", "--pin", "x", "plain", *config], "repo"))


def of_programs(program):
    done = subprocess.run([program, "--help"], capture_output=True, check=True)
    for tool in re.findall(rb"^  ([a-z-]+)  +", done.stdout, re.M):
        name = tool.decode()
        yield from (([name, "--help"],), ([name],), ([name, "--none"],), ([name, "/nonexistent"],),
                    ([name, "--list-options"],))


def invocations(old, world, kinds):
    logs = [p for p in kinds.get("aof", []) if os.path.isfile(os.path.join(world, p))]
    folders = sorted({os.path.dirname(p) for p in kinds.get("manifest", [])})
    captures = [p for p in kinds.get("capture", []) if os.path.exists(os.path.join(world, p))]
    for one in itertools.chain(of_programs(old), of_snapshots(kinds["rdb"]),
                               of_logs(logs, folders), of_captures(captures),
                               of_repository(world)):
        yield one[0], one[1] if len(one) > 1 else None


# ---- the comparison ----


def files_of(folder, replayed=False):
    """{path: digest of the contents, and the mode}. A log that is replayed may store the present
    time: the length instead of the digest."""
    found = {}
    for here, folders, names in os.walk(folder):
        for name in folders:
            found[os.path.relpath(os.path.join(here, name), folder)] = "folder"
        for name in names:
            path = os.path.join(here, name)
            with open(path, "rb") as file:
                data = file.read()
            digest = f"{len(data)}" if replayed else hashlib.sha256(data).hexdigest()
            found[os.path.relpath(path, folder)] = f"{digest[:16]} {os.stat(path).st_mode:o}"
    return found


def clear(folder):
    shutil.rmtree(folder)
    os.mkdir(folder)


def copy(source, target):
    if os.path.isdir(source):
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


def answer(program, world, args, copied):
    """What can be compared of one invocation."""
    for name in ("in", "out"):
        clear(os.path.join(world, name))
    kept = None
    if copied == "repo":  # it is changed in place, and put back
        kept = os.path.join(world, "repo.kept")
        copy(os.path.join(world, "repo"), kept)
    elif copied is not None:
        copy(os.path.join(world, copied),
             os.path.join(world, "in", os.path.basename(copied)))
    done = run(program, world, args)
    replayed = args[0] == "restore" or any("aof" in a or "sync" in a for a in args)
    found = [done.returncode, normal(done.stdout), normal(done.stderr),
             files_of(os.path.join(world, "in"), replayed),
             files_of(os.path.join(world, "out"), replayed)]
    if kept is not None:
        found.append(sorted(files_of(os.path.join(world, "repo"))))
        shutil.rmtree(os.path.join(world, "repo"))
        os.rename(kept, os.path.join(world, "repo"))
    found.append(os.listdir(os.path.join(world, "tmp")))
    return found


def parts_that_differ(a, b):
    at = len(os.path.commonprefix([a, b]))
    return tuple(text[max(0, at - 60) : at + 200] for text in (a, b))


def describe(args, old, new):
    lines = [f"redoubt {' '.join(args)}"]
    for name, a, b in zip(("status", "stdout", "stderr", "in", "out", "repository or tmp", "tmp"),
                          old, new):
        if a != b:
            lines += [f"  {name}"] + [f"    {which}: {part}" for which, part in
                                      zip(("old", "new"), parts_that_differ(repr(a), repr(b)))]
    return "\n".join(lines)


def compare(part):
    """Each N-th invocation, in a copy of the world. Returns [(arguments, text or None)]."""
    at, options, world, all_of_them = part
    own = f"{world}.{at}"
    shutil.copytree(world, own, symlinks=True)
    found = []
    for args, copied in all_of_them[at::options.processes]:
        for _ in range(2):  # a second may have passed between the two
            old = answer(options.old, own, args, copied)
            new = answer(options.new, own, args, copied)
            if old == new:
                break
        found.append((args, None if old == new else describe(args, old, new), old[0]))
    shutil.rmtree(own)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--only", default="")
    parser.add_argument("--share", type=int, default=7)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    options.old, options.new = os.path.abspath(options.old), os.path.abspath(options.new)
    only = set(filter(None, options.only.split(",")))
    with tempfile.TemporaryDirectory(prefix="redoubt-same-") as folder:
        world = os.path.join(folder, "world")
        os.mkdir(world)
        kinds = put_world(options.old, world)
        them = [one for one in invocations(options.old, world, kinds)
                if not only or one[0][0] in only][:: options.share]
        with multiprocessing.Pool(options.processes) as pool:
            results = pool.map(compare, [(i, options, world, them)
                                         for i in range(options.processes)])
    results = list(itertools.chain(*results))
    differ = [text for _, text, _ in results if text]
    statuses = {}
    for _, _, status in results:
        statuses[status] = statuses.get(status, 0) + 1
    for text in differ[: options.show]:
        print(text)
    print(f"{len(results)} invocations, {len(differ)} differ; exit statuses of OLD: "
          + ", ".join(f"{k}: {n}" for k, n in sorted(statuses.items())))
    return 1 if differ or not results else 0


if __name__ == "__main__":
    sys.exit(main())
