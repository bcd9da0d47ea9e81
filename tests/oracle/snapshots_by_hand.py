"""Writes snapshots with a real server whose values look like records of a snapshot.

    snapshots_by_hand.py SERVER FOLDER [SEED] [MODULE]

Run by hand, as no test may rely on servers other than Debian's. The files are for the harness of
salvage (REDOUBT_FILES=FOLDER test_rdb --filter 'salvage_bar/what*') and for verdicts_by_hand.py.
Each subject makes one file with compression and one without. Large values come in files of their
own ("large"). MODULE is the module "datatype" of the servers' own tests, for values of modules.
"""

import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

START_SECONDS = 600
FAR_MS = 10**9


class Refused(Exception):
    pass


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def __call__(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) +
                            b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise Refused(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest


class Server:
    """A server in a folder of its own, with the settings of a configuration file."""

    def __init__(self, program, settings):
        self.program = program
        self.folder = tempfile.mkdtemp(prefix="redoubt-hand-")
        self.path = os.path.join(self.folder, "socket")
        base = {"port": "0", "unixsocket": self.path, "dir": self.folder, "save": '""'}
        self.config = os.path.join(self.folder, "conf")
        with open(self.config, "w", encoding="utf-8") as f:
            for name, value in {**base, **settings}.items():
                f.write(f"{name} {value}\n")

    def __enter__(self):
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen([self.program, self.config], stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                client = Client(self.path)
                client("DBSIZE")
                return client
            except (OSError, Refused):
                time.sleep(0.05)
        self.__exit__()
        raise Refused("the server does not start")

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def snapshot(self):
        return os.path.join(self.folder, "dump.rdb")


# -- bytes that look like records --

def length(n):
    return bytes([n]) if n < 64 else bytes([0x40 | n >> 8, n & 0xff])


def text(value):
    return length(len(value)) + value


def record(rng, number):
    """A key as it is in a snapshot."""
    name = b"key:%d" % number
    expiry = b"\xfc" + struct.pack("<Q", 1893456000000 + number) if rng.random() < 0.2 else b""
    if rng.random() < 0.7:
        return expiry + b"\x00" + text(name) + text(b"value:%d" % rng.randrange(10**6))
    members = [text(b"m%d" % i) for i in range(rng.randrange(1, 6))]
    return expiry + b"\x02" + text(name) + length(len(members)) + b"".join(members)


def records(rng, n):
    return b"".join(record(rng, rng.randrange(100000)) for _ in range(n))


def database(rng, number, n):
    return b"\xfe" + length(number) + b"\xfb" + length(n) + length(0) + records(rng, n)


# -- subjects --

def some_strings(c, rng, n=40):
    for i in range(n):
        c("SET", f"key:{rng.randrange(100000)}", rng.choice(["value:%d" % i, "x" * i, str(i)]))
        if i % 5 == 0:
            c("PEXPIRE", f"key:{i}", FAR_MS)
            c("SET", f"session:{i}", "y" * rng.randrange(200))
            c("EXPIRE", f"session:{i}", FAR_MS // 1000)


def plain(c, rng):
    some_strings(c, rng, 100)
    for i in range(20):
        c("RPUSH", f"list:{i}", *[f"item:{j}" for j in range(rng.randrange(1, 40))])
        c("SADD", f"set:{i}", *[f"member:{j}" for j in range(rng.randrange(1, 40))])
        c("ZADD", f"zset:{i}", *[w for j in range(rng.randrange(1, 30)) for w in (j / 8, f"m{j}")])
        for j in range(rng.randrange(1, 30)):
            c("HSET", f"hash:{i}", f"field:{j}", f"value:{j}")


def short_names(c, rng):
    for i in range(300):
        c("SET", rng.choice([str(i), "%x" % i, chr(97 + i % 26) + str(i // 26)]), i)
    for i in range(30):
        c("SADD", f"{i}s", *range(rng.randrange(1, 20)))


def binary_names(c, rng):
    for i in range(120):
        name = rng.getrandbits(8 * 16).to_bytes(16, "little")
        c("SET", name, rng.getrandbits(8 * 20).to_bytes(20, "little"))
        if i % 6 == 0:
            c("SADD", name[::-1], *[rng.getrandbits(64).to_bytes(8, "little") for _ in range(9)])
        if i % 4 == 0:
            c("PEXPIRE", name, FAR_MS)


def databases(c, rng):
    for db in range(16):
        c("SELECT", db)
        if rng.random() < 0.8:
            some_strings(c, rng, rng.randrange(1, 40))


def blobs(c, rng):
    """Strings, lists, sets and hashes whose elements are records."""
    some_strings(c, rng)
    for i in range(12):
        c("SET", f"blob:{i}", records(rng, rng.randrange(1, 60)))
        c("SET", f"dbs:{i}", database(rng, i, rng.randrange(1, 40)))
        c("RPUSH", f"queue:{i}", *[records(rng, rng.randrange(1, 10)) for _ in range(8)])
        c("SADD", f"members:{i}", *[records(rng, rng.randrange(1, 4)) for _ in range(6)])
        for j in range(8):
            c("HSET", f"object:{i}", f"field:{j}", records(rng, rng.randrange(1, 6)))


def nested(c, rng, own):
    """Strings that are whole snapshots of the same server."""
    some_strings(c, rng)
    for i in range(6):
        c("SET", f"backup:{i}", own)
        some_strings(c, rng, 10)
    for i in range(8):
        c("RPUSH", f"backups:{i % 2}", own[:-rng.randrange(1, 30)])
    c("SELECT", 3)
    some_strings(c, rng, 10)
    c("SET", "backup:last", own)


def streams(c, rng):
    some_strings(c, rng)
    for i in range(12):
        for j in range(rng.randrange(1, 150)):
            words = [w for k in range(1 + j % 4) for w in (f"field:{k}", records(rng, 1))]
            c("XADD", f"stream:{i}", f"{j + 1}-{j % 3}", *words)
        for g in range(i % 4):
            c("XGROUP", "CREATE", f"stream:{i}", f"group:{g}", "0")
            c("XREADGROUP", "GROUP", f"group:{g}", f"consumer:{g}", "COUNT", 20, "STREAMS",
              f"stream:{i}", ">")


def field_expiries(c, rng):
    """Hashes with field expiries; most fields have none and look like strings."""
    some_strings(c, rng)
    for i in range(25):
        n = rng.choice([3, 20, 60, 200])
        for j in range(n):
            c("HSET", f"hash:{i}", f"field:{j}", rng.choice(["held:%d" % j, "z" * 70, str(j)]))
        for j in range(0, n, rng.choice([1, 7, 30])):
            c("HPEXPIRE", f"hash:{i}", FAR_MS + j, "FIELDS", 1, f"field:{j}")
        some_strings(c, rng, 4)


def functions(c, rng):
    some_strings(c, rng)
    for i in range(4):
        code = "#!lua name=lib%d\n" % i + "".join(
            "redis.register_function('f%d_%d', function() return %d end)\n" % (i, j, j)
            for j in range(rng.randrange(1, 10)))
        c("FUNCTION", "LOAD", code)
    c("SELECT", 2)
    some_strings(c, rng, 20)


def accessed(c, rng):
    for i in range(200):
        c("SET", f"key:{i}", "value")
        for _ in range(rng.randrange(5)):
            c("GET", f"key:{i}")
    some_strings(c, rng)


def geo(c, rng):
    for i in range(15):
        c("GEOADD", f"geo:{i}", *[w for j in range(rng.randrange(1, 200)) for w in
                                  (rng.uniform(-180, 180), rng.uniform(-80, 80), f"place:{j}")])
        c("PFADD", f"visits:{i}", *range(rng.randrange(2000)))
        c("SETBIT", f"bits:{i}", rng.randrange(5000), 1)
        c("SADD", f"numbers:{i}", *[rng.getrandbits(40) for _ in range(rng.randrange(1, 300))])


def module(c, rng):
    some_strings(c, rng)
    for i in range(40):
        c("DATATYPE.SET", f"datatype:{i}", rng.getrandbits(60), "z" * rng.randrange(90))
        some_strings(c, rng, 2)


def large(c, rng):
    some_strings(c, rng)
    for i in range(3):
        c("SET", f"blob:{i}", rng.getrandbits(8 * 40000).to_bytes(40000, "little"))
        for _ in range(10):
            c("RPUSH", f"list:{i}", *[f"item:{rng.getrandbits(60)}" for _ in range(300)])
            c("ZADD", f"zset:{i}", *[w for _ in range(100)
                                     for w in (rng.random(), f"m{rng.getrandbits(40)}")])
            c("SADD", f"set:{i}", *[f"s{rng.getrandbits(60)}" for _ in range(200)])
    some_strings(c, rng, 60)


SUBJECTS = {
    "plain": (plain, {}),
    "short": (short_names, {}),
    "binary": (binary_names, {}),
    "databases": (databases, {}),
    "blobs": (blobs, {}),
    "nested": (nested, {}),
    "streams": (streams, {}),
    "fields": (field_expiries, {}),
    "functions": (functions, {}),
    "accessed": (accessed, {"maxmemory": "1gb", "maxmemory-policy": "allkeys-lfu"}),
    "idle": (accessed, {"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"}),
    "geo": (geo, {}),
    "slots": (plain, {"cluster-enabled": "yes", "port": "{port}"}),
    "large": (large, {}),
    "module": (module, {"loadmodule": "{module}"}),
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    return port if port < 50000 else port - 20000  # the port of the bus must be one, too


def make(program, subject, compress, seed, own, library):
    """The bytes of a snapshot, or None where the server has no such command."""
    fill, settings = SUBJECTS[subject]
    settings = {name: value.format(port=free_port(), module=library)
                for name, value in settings.items()}
    server = Server(program, {**settings, "rdbcompression": "yes" if compress else "no"})
    rng = random.Random(seed)
    try:
        with server as c:
            if "cluster-enabled" in settings:
                c("CLUSTER", "ADDSLOTS", *range(16384))
                end = time.monotonic() + START_SECONDS
                while b"cluster_state:ok" not in c("CLUSTER", "INFO") and time.monotonic() < end:
                    time.sleep(0.1)
            fill(c, rng, *([own] if subject == "nested" else []))
            c("SAVE")
            with open(server.snapshot, "rb") as f:
                return f.read()
    except Refused as e:
        print(f"# {subject}: {str(e)[:60]}", file=sys.stderr)
        return None


def main():
    program, folder = sys.argv[1:3]
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    library = sys.argv[4] if len(sys.argv) > 4 else ""
    version = os.path.basename(os.path.dirname(program))
    own = b""
    for compress in (False, True):
        for n, subject in enumerate(SUBJECTS):
            if subject == "module" and not library:
                continue
            data = make(program, subject, compress, 100 * seed + n, own, library)
            if data is None:
                continue
            if subject == "databases":
                own = data
            name = f"{version}-{subject}-{'lzf' if compress else 'raw'}-{seed}.rdb"
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
            print(f"{len(data):8} {name}")


if __name__ == "__main__":
    main()
