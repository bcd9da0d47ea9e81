#!/usr/bin/env python3
"""Hours in minutes: redoubt-server with many clients, expiry, eviction and a BGSAVE every so often.

usage: ./run bench soak [--keys N] [--value BYTES] [--memory BYTES] [--connections N] [--minutes M]
                        [--save-every S] [--append] [--redis]

    --keys N         how many keys there are at first (1000000)
    --value BYTES    the longest value (512)
    --memory BYTES   maxmemory; a little more than the keys take at first by default
    --connections N  clients that each wait for their reply (200)
    --minutes M      how long (5)
    --save-every S   seconds from one BGSAVE to the next (60)
    --append         with appendonly yes
    --redis          redis-server instead, to compare with

New keys evict old ones. A line every ten seconds: commands/s of the clients, keys, MiB that the
server counts and that are resident, keys evicted and expired since the start, the slowest answer to
a PING that a process of its own sends every millisecond, the slowest of those that a fork held up,
and how long the last fork took. The exit status is 1 when a reply is an error, when a client is cut
off, when a snapshot fails, or when the resident memory grows by a quarter after the first third.
"""

import argparse
import multiprocessing
import os
import random
import re
import selectors
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import server_under_test as sut  # noqa: E402

LINE_SECONDS = 10
GROWTH = 1.25
FILL_BATCH = 2000


class Slowest:
    """The longest answers to PING since the last look, in seconds, of what a fork held up apart.

    A fork delays commands until the waiting clients have their replies, for
    which as much time again is given.
    """

    def __init__(self):
        self.usual = multiprocessing.Value("d", 0)
        self.at_fork = multiprocessing.Value("d", 0)
        self.fork_begin = multiprocessing.Value("d", 0)
        self.fork_end = multiprocessing.Value("d", 0)

    def fork_begins(self):
        self.fork_begin.value, self.fork_end.value = time.monotonic(), float("inf")

    def fork_ends(self):
        now = time.monotonic()
        self.fork_end.value = now + (now - self.fork_begin.value)

    def see(self, begin, end):
        held_up = end >= self.fork_begin.value and begin <= self.fork_end.value
        longest = self.at_fork if held_up else self.usual
        with longest.get_lock():
            longest.value = max(longest.value, end - begin)

    def take(self):
        taken = []
        for longest in (self.usual, self.at_fork):
            with longest.get_lock():
                taken.append(longest.value)
                longest.value = 0
        return taken


def probe(port, slowest, stop):
    client = sut.Client(("127.0.0.1", port))
    while not stop.is_set():
        begin = time.monotonic()
        client.ask("PING")
        slowest.see(begin, time.monotonic())
        time.sleep(0.001)


class Work:
    """Commands whose keys are drawn from twice as many as there were at first."""

    def __init__(self, keys, longest):
        self.keys = 2 * keys
        self.draw = random.Random(1)
        self.blob = self.draw.randbytes(longest)

    def value(self):
        return self.blob[: self.draw.randrange(min(8, len(self.blob)), len(self.blob) + 1)]

    def next(self):
        n = self.draw.randrange(self.keys)
        kind = self.draw.randrange(12)
        if kind < 4:
            return sut.encode("SET", f"s:{n}", self.value())
        if kind == 4:
            return sut.encode("SET", f"s:{n}", self.value(), "PX", self.draw.randrange(1, 20000))
        if kind < 7:
            return sut.encode("GET", f"s:{n}")
        small = n % (self.keys // 100 + 1)
        return {
            7: lambda: sut.encode("HSET", f"h:{small}", f"f{n % 500}", self.value()),
            8: lambda: sut.encode("RPUSH", f"l:{small}", self.value()),
            9: lambda: sut.encode("ZADD", f"z:{small}", n, f"m{n % 1000}"),
            10: lambda: sut.encode("UNLINK", f"{'hlzs'[n % 4]}:{small}"),
            11: lambda: sut.encode("EXPIRE", f"{'hlz'[n % 3]}:{small}", 1 + n % 30),
        }[kind]()


def fill(client, work, keys):
    for first in range(0, keys, FILL_BATCH):
        last = min(first + FILL_BATCH, keys)
        client.send_raw(b"".join(sut.encode("SET", f"s:{i}", work.value())
                                 for i in range(first, last)))
        for _ in range(first, last):
            client.read()


class Clients:
    """All connections in one thread; their replies are checked for errors."""

    def __init__(self, server, n, work):
        self.work = work
        self.done = 0
        self.errors = {}
        self.select = selectors.DefaultSelector()
        for _ in range(n):
            client = server.client()
            self.select.register(client.socket, selectors.EVENT_READ, client)
            client.send_raw(work.next())

    def fail(self, text):
        self.errors[text] = self.errors.get(text, 0) + 1

    def turn(self):
        for key, _ in self.select.select(1):
            client = key.data
            try:
                kind, content = client.read()
                if kind == "-":
                    self.fail(content.decode(errors="replace"))
                self.done += 1
                client.send_raw(self.work.next())
            except sut.ServerDied as e:
                self.fail(str(e))
                self.select.unregister(key.fileobj)


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) / 1024


class Soak:
    def __init__(self, args, server):
        self.args = args
        self.server = server
        self.control = server.client()
        self.slowest = Slowest()
        self.usual = []
        self.resident = []

    def info(self):
        text = self.control.command("INFO").decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def line(self, second, rate):
        info = self.info()
        usual, at_fork = self.slowest.take()
        self.usual.append(usual)
        self.resident.append(resident_mib(self.server.pid))
        print(f"{second:5.0f}  {rate:10,.0f}  {self.control.command('DBSIZE'):10,}  "
              f"{int(info['used_memory']) / 2**20:8.1f}  {self.resident[-1]:8.1f}  "
              f"{int(info['evicted_keys']):10,}  {int(info['expired_keys']):8,}  "
              f"{usual * 1e3:8.1f}  {at_fork * 1e3:8.1f}  "
              f"{int(info['latest_fork_usec']) / 1e3:8.1f}  "
              f"{'saving' if info['rdb_bgsave_in_progress'] == '1' else ''}",
              flush=True)
        return info

    def run(self):
        work = Work(self.args.keys, self.args.value)
        fill(self.control, work, self.args.keys)
        limit = self.args.memory or int(int(self.info()["used_memory"]) * 1.05)
        self.control.command("CONFIG", "SET", "maxmemory", limit)
        clients = Clients(self.server, self.args.connections, work)
        stop = multiprocessing.Event()
        pinger = multiprocessing.Process(target=probe, args=(self.server.port, self.slowest, stop))
        pinger.start()
        print(f"{'s':>5}  {'commands/s':>10}  {'keys':>10}  {'used':>8}  {'resident':>8}  "
              f"{'evicted':>10}  {'expired':>8}  {'slow ms':>8}  {'at fork':>8}  "
              f"{'fork ms':>8}")
        begin = time.monotonic()
        try:
            self.turns(clients, begin)
        finally:
            stop.set()
            pinger.join()
        return self.verdict(clients, self.line(time.monotonic() - begin, 0))

    def turns(self, clients, begin):
        end = begin + self.args.minutes * 60
        reported, save_at, before = begin, begin + self.args.save_every / 2, 0
        while (now := time.monotonic()) < end:
            clients.turn()
            if now >= save_at:
                self.slowest.fork_begins()
                self.control.ask("BGSAVE")
                self.slowest.fork_ends()
                save_at += self.args.save_every
            if now - reported >= LINE_SECONDS:
                self.line(now - begin, (clients.done - before) / (now - reported))
                reported, before = now, clients.done

    def verdict(self, clients, info):
        wrong = [f"{n} times: {text}" for text, n in clients.errors.items()]
        if info["rdb_last_bgsave_status"] != "ok":
            wrong.append("the last BGSAVE failed")
        third = len(self.resident) // 3
        if max(self.resident) > GROWTH * max(self.resident[: third + 1]):
            wrong.append("resident memory grows")
        print(f"{clients.done:,} commands, {max(self.usual) * 1e3:.1f} ms the slowest without a "
              f"fork, {max(self.resident):.1f} MiB the most, in the first third "
              f"{max(self.resident[: third + 1]):.1f}, " + ("; ".join(wrong) or "no errors"))
        return 1 if wrong else 0


def main(argv):
    usage, _, text = __doc__.partition("usage: ")[2].partition("\n\n")
    parser = argparse.ArgumentParser(usage=usage, epilog=text, add_help=True)
    parser.add_argument("--keys", type=int, default=1000000)
    parser.add_argument("--value", type=int, default=512)
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--save-every", type=float, default=60)
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--redis", action="store_true")
    args = parser.parse_args(argv)
    kind = sut.Redis if args.redis else sut.Redoubt
    config = {"maxmemory-policy": "allkeys-lru", "appendonly": "yes" if args.append else "no"}
    with kind(config) as server:
        return Soak(args, server).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
