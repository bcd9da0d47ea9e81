"""Masters that are killed again and again, and how long their clients wait.

Each group has a master with two replicas of redis-server, three Sentinels, and clients that write
through them: ioredis, and redis-py where their folders are given. The groups run side by side, so
that the load of the machine is the same for all. After each kill the master is started again, and
the next kill comes when everyone knows everyone.

For each group, the times from a kill to the first +switch-master that a Sentinel publishes, until
all Sentinels give the new address, and until the first write of each client at the new master. A
write or an agreement that does not come within five minutes ends the run with status 1. What the
Sentinels logged is printed for each kill that took more than ten seconds. With --stall, these are
more frequent: if Sentinels begin elections at once, all of them can lose, and the next election
comes after twice the failover-timeout.
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time

import sentinels
import server_under_test as sut

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 300  # a Sentinel whose process stood still does nothing for 30 s
SLOW = 10
KINDS = {"real": [sentinels.Theirs] * 3,
         "mixed": [sentinels.Ours, sentinels.Theirs, sentinels.Ours],
         "half": [sentinels.Theirs, sentinels.Ours, sentinels.Theirs],
         "ours": [sentinels.Ours] * 3}


class Writes:
    """The last write that succeeded at each port, and the first one after a change."""

    def __init__(self):
        self.lock = threading.Lock()
        self.firsts = []  # (seconds, port) when the port was another than before

    def add(self, at, port):
        with self.lock:
            if not self.firsts or self.firsts[-1][1] != port:
                self.firsts.append((at, port))

    def first_after(self, at, old_port):
        with self.lock:
            found = [t for t, port in self.firsts if t >= at and port != old_port]
        return found[0] if found else None


def ioredis(ports, folder, writes):
    """A process that writes; its end is that of its standard input."""
    process = subprocess.Popen(
        ["node", os.path.join(HERE, "client.js"), os.path.abspath(folder), *map(str, ports)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def read():
        for line in process.stdout:
            at, port = line.split()
            writes.add(int(at) / 1000, int(port))
    threading.Thread(target=read, daemon=True).start()

    def end():
        process.stdin.close()
        process.wait()
    return end


def redis_py(ports, folder, writes):
    sys.path.insert(0, folder)
    import redis  # pylint: disable=import-outside-toplevel
    import redis.sentinel  # pylint: disable=import-outside-toplevel
    found = redis.sentinel.Sentinel([("127.0.0.1", port) for port in ports], socket_timeout=1)
    client = found.master_for("mine", socket_timeout=1)
    stop = threading.Event()

    def write():
        while not stop.wait(0.02):
            try:
                client.incr("redis-py")
                writes.add(time.time(), int(client.config_get("port")["port"]))
            except redis.RedisError:
                pass
    thread = threading.Thread(target=write, daemon=True)
    thread.start()

    def end():
        stop.set()
        thread.join()
    return end


def stall(processes, longest):
    """Stops each process again and again, for up to so many seconds, as under load."""
    stop = threading.Event()

    def stall_one(process):
        chance = random.Random()
        while not stop.wait(chance.uniform(longest / 4, longest)):
            process.process.send_signal(signal.SIGSTOP)
            stop.wait(chance.uniform(0, longest))
            process.process.send_signal(signal.SIGCONT)
    threads = [threading.Thread(target=stall_one, args=(p,), daemon=True) for p in processes]
    for thread in threads:
        thread.start()

    def end():
        stop.set()
        for thread in threads:
            thread.join()
    return end


class Group(threading.Thread):
    def __init__(self, name, options):
        super().__init__()
        self.name, self.options = name, options
        self.times = {}
        self.error = None

    def run(self):
        try:
            with Running(KINDS[self.name], self.options) as running:
                for n in range(self.options.kills):
                    for what, seconds in running.kill().items():
                        self.times.setdefault(what, []).append(seconds)
                    if (n + 1) % 10 == 0:
                        print(f"{self.name}: {n + 1} kills", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            self.error = f"{type(e).__name__}: {e}"


class Running:
    def __init__(self, kinds, options):
        self.options = options
        self.servers = [sut.Redis(dict(sentinels.MASTER)) for _ in range(3)]
        self.kinds = kinds
        self.watchers = []
        self.clients = {}
        self.ends = []

    def __enter__(self):
        for server in self.servers:
            server.__enter__()
            server.fixed_port = server.port
        for replica in self.servers[1:]:
            replica.client().command("REPLICAOF", "127.0.0.1", self.servers[0].port)
        lines = sentinels.lines_for(self.servers[0], down_after_ms=1000, failover_ms=10000)
        self.watchers = [kind(lines) for kind in self.kinds]
        for watcher in self.watchers:
            watcher.__enter__()
        ports = [w.port for w in self.watchers]
        for name, start, folder in (("ioredis", ioredis, self.options.node_modules),
                                    ("redis-py", redis_py, self.options.redis_py)):
            if folder is not None:
                self.clients[name] = Writes()
                self.ends.append(start(ports, folder, self.clients[name]))
        if self.options.stall > 0:
            self.ends.append(stall(self.watchers, self.options.stall / 1000))
        self.settle()
        return self

    def __exit__(self, *_):
        for end in self.ends:
            end()
        for process in [*self.watchers, *self.servers]:
            process.close()

    def master_port(self):
        """The port that all Sentinels give; None: they disagree."""
        found = {tuple(sentinels.address(w) or ()) for w in self.watchers}
        return int(found.pop()[1]) if len(found) == 1 and () not in found else None

    def is_settled(self):
        port = self.master_port()
        if port is None or not all(sentinels.knows(w, 2, 2) for w in self.watchers):
            return False
        for watcher in self.watchers:
            rows = watcher.client().command("SENTINEL", "REPLICAS", "mine")
            for row in rows:
                fields = dict(zip(row[::2], row[1::2]))
                if fields[b"flags"] != b"slave" or fields[b"master-link-status"] != b"ok":
                    return False
                if fields[b"master-port"] != b"%d" % port:
                    return False
        return all(w.firsts and w.firsts[-1][1] == port for w in self.clients.values())

    def settle(self):
        sut.wait_for(self.quietly(self.is_settled), PATIENCE, 0.3)

    def quietly(self, ask):
        def answer():
            try:
                return ask()
            finally:
                for process in [*self.watchers, *self.servers]:
                    process._forget_clients()
        return answer

    def events(self, times):
        """The time of the first +switch-master, in times[0]."""
        def listen(client):
            try:
                while client.read()[1][0][1] != b"message":
                    pass
                times.append(time.time())
            except (sut.ServerDied, OSError):
                pass
        clients = [sut.Client(("127.0.0.1", w.port)) for w in self.watchers]
        for client in clients:
            client.command("SUBSCRIBE", "+switch-master")
            threading.Thread(target=listen, args=(client,), daemon=True).start()
        return clients

    def kill(self):
        """Seconds by what happened."""
        old_port = self.master_port()
        logged = [len(w.log) for w in self.watchers]
        master = next(s for s in self.servers if s.port == old_port)
        switched = []
        clients = self.events(switched)
        begin = time.time()
        master.kill()
        found = {}

        def has_all():
            if switched and "first Sentinel" not in found:
                found["first Sentinel"] = min(switched) - begin
            if "all Sentinels" not in found and self.master_port() not in (None, old_port):
                found["all Sentinels"] = time.time() - begin
            for name, writes in self.clients.items():
                at = writes.first_after(begin, old_port)
                if name not in found and at is not None:
                    found[name] = at - begin
            return len(found) == 2 + len(self.clients)
        sut.wait_for(self.quietly(has_all), PATIENCE, 0.02)
        for client in clients:
            client.close()
        if max(found.values()) > SLOW:
            for watcher, before in zip(self.watchers, logged):
                print(f"{watcher.name} {watcher.port}, master {old_port}:\n{watcher.log[before:]}",
                      flush=True)
        master.start()
        self.settle()
        return found


def show(group):
    for what, times in group.times.items():
        times = sorted(times)
        print(f"{group.name:6} {what:15} {len(times):4} kills: "
              f"median {statistics.median(times):.2f} s, "
              f"90 % {times[len(times) * 9 // 10]:.2f} s, longest {times[-1]:.2f} s, "
              f"{sum(t > SLOW for t in times)} of more than {SLOW} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="of each group")
    parser.add_argument("--groups", default="real,mixed", help="some of " + ",".join(KINDS))
    parser.add_argument("--node-modules", help="a folder that contains ioredis")
    parser.add_argument("--redis-py", help="a folder that contains redis, of redis-py")
    parser.add_argument("--stall", type=int, default=0, metavar="MS",
                        help="stop each Sentinel again and again, for up to so many milliseconds")
    options = parser.parse_args()
    groups = [Group(name, options) for name in options.groups.split(",")]
    for group in groups:
        group.start()
    for group in groups:
        group.join()
        show(group)
        if group.error is not None:
            print(f"{group.name:6} failed: {group.error}")
    return 1 if any(group.error for group in groups) else 0


if __name__ == "__main__":
    sys.exit(main())
