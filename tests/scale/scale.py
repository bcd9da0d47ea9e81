"""What list, backup, prune and restore cost in a repository with many sets and segments.

A server is archived for a moment, so that the repository has a set and a stream which can be
restored. Before these, a history is made up: sets at equal distances with the data of the first
one, and the segments between them, which have names and sizes, but no contents. No tool reads a
segment that it does not need, so these are never opened.

    --merged    the segments are those that merging leaves: as many as possible of a group of 4096.
                Merging does not join over the position of a
                set, so at least one segment remains for each set.

Prints one line for each store and tool: the exit status, seconds, the peak of memory, and in S3
the requests. `data` are those that read or write the object of a set or a segment; all others are
what finding them costs. The bar is that of each tool: 50 such requests, 5 s and 64 MiB. The exit
status is 1 if one is missed, and 2 if a tool fails.
"""

import argparse
import bisect
import collections
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from archive_case import REDOUBT
from capture_case import MASTER
from redis_server import RedisServer
from s3_server import S3Server

TARGET, PREFIX = "nightly", "some/where"
RUN, REPLID = "20240101T000000Z-00000000", "f" * 40
BEGIN_MS, SEGMENT_MS, SEGMENT_BYTES = 1704067200000, 30000, 1000
LEVEL = 4096
BAR_REQUESTS, BAR_SECONDS, BAR_MIB = 50, 5, 64


class Wrong(Exception):
    pass


# ---- what is made up ----

def set_id(k, distance):
    when = time.gmtime((BEGIN_MS + k * distance * SEGMENT_MS) // 1000)
    return time.strftime("%Y%m%dT%H%M%SZ", when) + f"-{k:08x}"


def manifest(text, k, distance):
    """That of the set k, made from the text of another one."""
    at = BEGIN_MS + k * distance * SEGMENT_MS
    body = text[:text.rindex(',\n "sha256"')]
    for name, value in (("id", f'"{set_id(k, distance)}"'), ("replid", f'"{REPLID}"'),
                        ("begin_ms", at), ("end_ms", at + 1), ("data_ms", at),
                        ("offset", k * distance * SEGMENT_BYTES)):
        body, n = re.subn(rf'("{name}": ?)("[^"]*"|\d+)', rf"\g<1>{value}", body, count=1)
        if n != 1:
            raise Wrong(f"the manifest has no {name}")
    return body + f',\n "sha256": "{hashlib.sha256(body.encode()).hexdigest()}"}}\n'


def parts(n, distance, merged):
    """The first and the last number of each segment."""
    at = 0
    while at < n:
        end = min(at // LEVEL * LEVEL + LEVEL, n) if merged else at + 1
        cut = (at // distance + 1) * distance  # after the one that ends where a set is
        if merged and cut < end and cut <= (n // distance - 2) * distance:
            end = cut
        yield at, end - 1
        at = end


def segment(first, last):
    begin = BEGIN_MS + first * SEGMENT_MS
    end = BEGIN_MS + (last + 1) * SEGMENT_MS
    name = (f"{RUN}/00000001-{REPLID}/{first:08d}-{first * SEGMENT_BYTES}-"
            f"{(last + 1) * SEGMENT_BYTES}-{begin + 1}-{end - 1}-0-0")
    return name + (f"-{last}" if last > first else "") + ".seg"


# ---- stores ----

class Folder:
    name = "folder"

    def __init__(self, folder):
        self.path = os.path.join(folder, "repository")
        self.settings = f"repository = {self.path}\n"
        self.requests = []

    def read(self, name):
        with open(os.path.join(self.path, name), "rb") as file:
            return file.read()

    def names(self):
        return [os.path.relpath(os.path.join(at, name), self.path)
                for at, _, names in os.walk(self.path) for name in names]

    def add(self, name, data):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "wb") as out:
            out.write(data)

    def close(self):
        pass


class Objects(dict):
    """Remembers the order of its keys until one comes or goes."""
    order = None

    def __setitem__(self, key, value):
        if key not in self:
            self.order = None
        super().__setitem__(key, value)

    def __delitem__(self, key):
        self.order = None
        super().__delitem__(key)

    def pop(self, key, *default):
        self.order = None
        return super().pop(key, *default)


class Sorted(S3Server):
    def __init__(self):
        super().__init__()
        self.objects = Objects()

    def keys(self, prefix):
        if self.objects.order is None:
            self.objects.order = sorted(self.objects)
        order = self.objects.order
        begin = bisect.bisect_left(order, prefix)
        return order[begin:bisect.bisect_left(order, prefix + "\U0010ffff")]


class Bucket:
    name = "s3"

    def __init__(self, folder):
        self.s3 = Sorted().__enter__()
        key = os.path.join(folder, "s3key")
        with open(key, "w", encoding="utf-8") as out:
            out.write(f"{self.s3.access_key}\n{self.s3.secret_key}\n")
        self.settings = (f"repository = s3://vault/{PREFIX}\ns3-endpoint = {self.s3.url}\n"
                         f"s3-key-file = {key}\n")

    @property
    def requests(self):
        return self.s3.requests

    def read(self, name):
        return self.s3.objects[f"{PREFIX}/{name}"]

    def names(self):
        return [name[len(PREFIX) + 1:] for name in self.s3.objects]

    def add(self, name, data):
        self.s3.objects[f"{PREFIX}/{name}"] = data

    def close(self):
        self.s3.__exit__(None, None, None)


# ---- the repository ----

class World:
    def __init__(self, folder, store, opts, port):
        self.store, self.folder = store, folder
        self.config = os.path.join(folder, "redoubt.conf")
        with open(self.config, "w", encoding="utf-8") as out:
            out.write(f"[{TARGET}]\nsource = redis://127.0.0.1:{port}\nspool = {folder}/spool\n"
                      f"archive-interval = 1s\ncompress = none\nkeep = count 1000000\n"
                      f"merge = {'yes' if opts.merged else 'no'}\n{store.settings}")

    def argv(self, tool, *args):
        return [REDOUBT, tool, TARGET, *args, "--config", self.config]

    def archive(self, server):
        """The last moment of a stream that can be restored."""
        found = []
        process = subprocess.Popen(self.argv("archive"), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            for i in range(600):
                server.command("SET", f"key:{i}", "x" * 100)
                time.sleep(0.1)
                if i % 20 == 19:
                    out = subprocess.run(self.argv("list", "--json"), capture_output=True,
                                         check=False).stdout
                    found = [s for s in (json.loads(out).get("streams", []) if out else [])
                             if s["bases"] > 0 and s["segments"] > 2]
                    if found:
                        break
        finally:
            process.terminate()
            process.wait()
        if not found:
            raise Wrong("nothing was archived")
        return found[-1]["end"], found[-1]["replid"]

    def fill(self, opts):
        distance = max(1, opts.segments // opts.sets)
        name = next(n for n in self.store.names() if n.endswith("/manifest.json"))
        text = self.store.read(name).decode()
        objects = [(n.rsplit("/", 1)[1], self.store.read(n)) for n in self.store.names()
                   if n.startswith(os.path.dirname(name) + "/") and n != name]
        for k in range(opts.sets - 1):
            place = f"{TARGET}/sets/{set_id(k, distance)}"
            for object_name, data in objects:
                self.store.add(f"{place}/{object_name}", data)
            self.store.add(f"{place}/manifest.json", manifest(text, k, distance).encode())
        n = 0
        for first, last in parts(opts.segments, distance, opts.merged):
            self.store.add(f"{TARGET}/stream/{segment(first, last)}", b"")
            n += 1
        return n


# ---- what it costs ----

def peak_of(pid, before):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            found = re.search(r"VmHWM:\s*(\d+) kB", file.read())
    except OSError:
        return before
    return max(before, int(found.group(1))) if found else before


def is_data(path):
    return re.search(r"/sets/[^/?]+/(?!manifest\.json)[^/?]+|\.seg(\b|$)", path) is not None


def kind(request):
    method, path = request[0], request[1]
    if is_data(path.split("?")[0]):
        return "data"
    if "list-type" in path:
        return "LIST"
    return f"{method} {'manifest' if 'manifest.json' in path else 'other'}"


def measure(world, tool, *args):
    del world.store.requests[:]
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as out:
        begin, peak = time.monotonic(), 0
        process = subprocess.Popen(world.argv(tool, *args), stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=said)
        while process.poll() is None:
            peak = peak_of(process.pid, peak)
            time.sleep(0.003)
        took = time.monotonic() - begin
        said.seek(0)
        errors = said.read().decode(errors="replace").strip()
        out.seek(0)
        world.said = out.read()
    kinds = collections.Counter(kind(r) for r in world.store.requests)
    beyond = sum(n for name, n in kinds.items() if name != "data")
    missed = beyond > BAR_REQUESTS or took > BAR_SECONDS or peak > BAR_MIB * 1024
    told = ", ".join(f"{name} {n}" for name, n in sorted(kinds.items()))
    print(f"{world.store.name:7} {tool:8} exit {process.returncode}  {took:7.2f} s  "
          f"{peak / 1024:7.1f} MiB  {str(beyond) + ' requests' if kinds else ''}"
          f"{' (' + told + ')' if told else ''}{'  over the bar' if missed else ''}", flush=True)
    if process.returncode != 0:
        print(errors[-600:], file=sys.stderr)
    return 2 if process.returncode != 0 else int(missed)


def check(world, opts, n):
    """What list found."""
    found = json.loads(world.said)
    own = [s for s in found["streams"] if s["run"] == RUN]
    if len(found["sets"]) != opts.sets or sum(s["segments"] for s in own) != n:
        raise Wrong(f"{len(found['sets'])} sets and {[s['segments'] for s in own]} segments are "
                    "listed")
    if not all(s["good"] for s in found["sets"]) or [s["bases"] for s in own] != [opts.sets - 1]:
        raise Wrong("a set is not good, or not a base")


def settle(world):
    """What a repository that grew to this size has had: prune has merged what was archived, and
    in S3 the catalogue has all sets."""
    for _ in range(4):
        subprocess.run(world.argv("prune", "--confirm", "--quiet", "--merge-grace", "1s"),
                       stdin=subprocess.DEVNULL, check=True)
        time.sleep(1)


def run(kind_of_store, opts):
    folder = tempfile.mkdtemp(prefix="redoubt-scale-", dir=opts.folder)
    store = kind_of_store(folder)
    try:
        with RedisServer(MASTER) as server:
            world = World(folder, store, opts, server.port)
            offset, replid = world.archive(server)
            n = world.fill(opts)
            print(f"{store.name}: {opts.sets} sets, {n} objects of {opts.segments} segments",
                  flush=True)
            settle(world)
            status = measure(world, "list", "--json")
            check(world, opts, n)
            return max(
                status, measure(world, "backup"),
                measure(world, "prune", "--confirm", "--quiet"),
                measure(world, "restore", "--target-offset", str(offset), "--replid", replid,
                        "--to", os.path.join(folder, "out.rdb")))
    finally:
        store.close()
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sets", type=int, default=10000)
    parser.add_argument("--segments", type=int, default=1000000)
    parser.add_argument("--merged", action="store_true")
    parser.add_argument("--folder", help="where the repository is made; it takes an inode for each "
                                         "object")
    parser.add_argument("stores", nargs="*", default=["folder", "s3"],
                        help="folder, s3; both by default")
    opts = parser.parse_args()
    stores = {"folder": Folder, "s3": Bucket}
    return max(run(stores[name], opts) for name in opts.stores)


if __name__ == "__main__":
    sys.exit(main())
