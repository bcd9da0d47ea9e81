"""Prints how far `redoubt stat` is from MEMORY USAGE KEY SAMPLES 0, by type and encoding.

    stat_memory_by_hand.py REDOUBT SERVER [LIBJEMALLOC]

Run by hand, as no test may rely on servers other than Debian's. A server that was built with
MALLOC=libc gives the sizes of its own jemalloc when LIBJEMALLOC, built from the server's
deps/jemalloc with --with-lg-quantum=3, is loaded before it.
"""

import collections
import csv
import os
import random
import socket
import subprocess
import sys
import tempfile
import time

NEAR = 0.10  # a key is near when it is at most this far off
FAR_MS = 10**9


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def __call__(self, *words):
        words = [str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) +
                            b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise ValueError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest


def start(server, folder, library):
    env = dict(os.environ, LD_PRELOAD=library)
    path = os.path.join(folder, "socket")
    process = subprocess.Popen([server, "--port", "0", "--unixsocket", path, "--dir", folder,
                                "--save", ""], env=env, stdout=subprocess.DEVNULL)
    for _ in range(300):
        try:
            client = Client(path)
            client("DBSIZE")
            return process, client
        except (OSError, ValueError):
            time.sleep(0.1)
    process.kill()
    raise SystemExit(f"{server} does not start")


def fill(c):
    rng = random.Random(5)
    for i in range(150):
        n = int(10 ** (rng.random() * 3))
        name = "x" * rng.randrange(1, 60)
        words = ["%x" % rng.getrandbits(4 * rng.randrange(1, 30)) for _ in range(n)]
        pairs = [w for j in range(n) for w in (f"field{j}", words[j])]
        c("SET", f"s{name}{i}", rng.choice(["z" * n, str(n), "12345678901234", "w" * 44]))
        c("RPUSH", f"l{name}{i}", *words)
        c("SADD", f"t{name}{i}", *words)
        c("SADD", f"i{name}{i}", *range(0, n * 1000, 1000))
        c("HSET", f"h{name}{i}", *pairs)
        c("ZADD", f"z{name}{i}", *[w for j in range(n) for w in (j / 4, words[j])])
        if i % 2 == 0:
            fill_expiring(c, f"e{name}{i}", pairs, 2 if i % 4 == 0 else n)
    for i in range(20):
        fill_stream(c, rng, f"stream{i}")


def fill_expiring(c, key, pairs, step):
    c("HSET", key, *pairs)
    try:
        for j in range(0, len(pairs) // 2, step):
            c("HPEXPIRE", key, FAR_MS + j, "FIELDS", 1, f"field{j}")
    except ValueError:
        c("DEL", key)


def fill_stream(c, rng, key):
    ms = 1700000000000
    for j in range(int(10 ** (rng.random() * 3))):
        ms += rng.randrange(5000)
        c("XADD", key, f"{ms}-{j}", "name", rng.randrange(10**6), "text", "t" * rng.randrange(80))
    c("XGROUP", "CREATE", key, "group", 0)
    for name in ("ann", "bob"):
        c("XREADGROUP", "GROUP", "group", name, "COUNT", 300, "STREAMS", key, ">")


def compare(redoubt, c, path):
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    run = subprocess.run([redoubt, "stat", "--csv", path], stdout=subprocess.PIPE, check=True)
    for row in csv.DictReader(run.stdout.decode().splitlines()):
        key, ours = row["key"], int(row["size_in_bytes"])
        theirs = c("MEMORY", "USAGE", key, "SAMPLES", 0)
        kind = row["type"] + ("+ttl " if key[0] == "e" else " ")
        for name in (kind + c("OBJECT", "ENCODING", key).decode(), "all"):
            total = rows[name]
            total[0] += ours
            total[1] += theirs
            total[2] += 1
            total[3] += abs(ours / theirs - 1) <= NEAR
    return rows


def main():
    redoubt, server = sys.argv[1:3]
    library = sys.argv[3] if len(sys.argv) > 3 else ""
    with tempfile.TemporaryDirectory() as folder:
        for step in (fill, None):
            process, client = start(server, folder, library)
            try:
                if step is not None:
                    step(client)
                    client("SAVE")
                else:
                    rows = compare(redoubt, client, os.path.join(folder, "dump.rdb"))
            finally:
                process.kill()
                process.wait()
    print(server)
    for name, (ours, theirs, n, near) in sorted(rows.items()):
        print(f"  {name:22} {n:5} keys, sum {100 * (ours / theirs - 1):+7.2f} %, "
              f"{100 * near / n:5.1f} % of keys within 10 %")


if __name__ == "__main__":
    main()
