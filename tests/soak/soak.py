"""An hour of everything at once on a server with a replica: see usage below.

usage: tests/soak/run [SECONDS [SEED]]

Clients of many kinds send random commands, valid and broken: writes that expire and are evicted,
scripts and functions that are slow or endless and are killed, transactions, waits with pipelined
input after them, users whose rules change, tracking, messages, settings, snapshots and rewrites;
some clients never read. Meanwhile the replica is cut off, stopped, killed and promoted.

Each minute the traffic stops. Each client that sent whole commands must get an answer to its last
question or be closed; nothing may be left of clients; the data of the master, of the master after
DEBUG RELOAD, LOADAOF or a restart from its log, and of the replica must be the same. All chance
comes from the seed, but not the order in which servers see the commands.

Prints a line for each round and a summary. The exit status is 1 after a report of a sanitizer, a
crash, a hang or a difference; then the folder that is printed keeps the logs of the servers,
what was sent in the last two rounds (traffic-*.bin), and the keys that differ (difference.txt). It
is also 1 when a run of ten minutes or more has not seen something that it is for.
"""

import collections
import glob
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import time

import crowd as crowds
from words import Words
from world import Found, Watched, fields_of

ROUND_SECONDS = 45
FINISH_SECONDS = 120
LONG_RUN = 600
# Figures of INFO that are summed up; all must have happened in a long run.
COUNTED = ("total_commands_processed", "total_error_replies", "evicted_keys", "expired_keys",
           "evicted_clients", "sync_full", "sync_partial_ok", "rdb_saves", "aof_rewrites")
# What is counted here, and must have happened, too.
SEEN = ("scripts killed", "promotions", "loads of the log", "clients over the limit of replies")


class Traffic:
    """What was sent in this round and the one before: time, connection, length, bytes."""

    def __init__(self, folder):
        self.folder, self.file, self.n = folder, None, 0

    def next(self):
        if self.file:
            self.file.close()
        self.n += 1
        self.file = open(os.path.join(self.folder, f"traffic-{self.n % 2}.bin"), "wb")

    def record(self, role):
        def write(number, data):
            self.file.write(struct.pack("<dBII", time.time(), role, number, len(data)) + data)
        return write


class Soak:
    def __init__(self, seconds, seed, folder):
        self.seconds, self.folder = seconds, folder
        self.rng = random.Random(f"soak {seed}")
        self.traffic = Traffic(folder)
        level = self.rng.choice(("7.0", "8.6", "valkey-9.1"))
        print(f"redoubt-level {level}", flush=True)
        self.later = level != "7.0"
        self.payloads = self.seeds(self.later)
        self.figures, self.before = collections.Counter(), {}
        self.counts = collections.Counter()
        self.master = Watched("master", folder, self.rng, {"redoubt-level": level})
        master = ["127.0.0.1", str(self.master.fixed_port)]
        self.replica = Watched("replica", folder, self.rng,
                               {"redoubt-level": level, "replicaof": master})
        self.cut_at, self.due = 0, []
        self.began = time.monotonic()

    @staticmethod
    def seeds(later):
        """Payloads of DUMP that fuzzing uses. Fields that expire need the commands of later
        versions, so that the end of a round can stop them."""
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "corpus",
                              "dump")
        out = []
        for path in sorted(glob.glob(os.path.join(folder, "*"))):
            with open(path, "rb") as f:
                data = f.read()[1:]
            if len(data) > 12 and (later or data[0] not in range(22, 26)):
                out.append(data)
        return out

    # ---- traffic ----

    def run(self):
        with self.master, self.replica:
            try:
                self.rounds()
            finally:
                for one in (self.master, self.replica):
                    one.forget()
            for one in (self.replica, self.master):
                one.again(signal.SIGTERM, wait=False)
        for one in (self.master, self.replica):
            one.check_log()

    def rounds(self):
        while time.monotonic() - self.began < self.seconds:
            self.traffic.next()
            self.one_round()
            self.counts["rounds"] += 1
            print(f"round {self.counts['rounds']}: {time.monotonic() - self.began:.0f} s, "
                  f"{self.master.command('DBSIZE')} keys in database 0, "
                  f"{self.crowd.commands} commands, {self.crowd.sent >> 10} KiB sent, "
                  f"{self.crowd.received >> 10} received, "
                  f"{self.crowd.closed} connections closed by the servers", flush=True)

    def crowd_of(self, server, role, kinds):
        words = Words(self.rng, self.payloads, self.later, server is self.replica)
        one = crowds.Crowd(self.rng, words, ("127.0.0.1", server.port), self.traffic.record(role),
                           kinds)
        server.crowded = one.close_some
        return one

    def one_round(self):
        self.crowd = self.crowd_of(self.master, 0, crowds.KINDS)
        self.readers = self.crowd_of(self.replica, 1, crowds.OF_REPLICA)
        self.master.ask("CONFIG", "SET", "maxmemory", "8mb", "maxmemory-policy", "allkeys-lru",
                        "client-output-buffer-limit", "normal 2mb 0 0")
        end = min(time.monotonic() + ROUND_SECONDS, self.began + self.seconds)
        look = 0
        while time.monotonic() < end:
            for one in (self.crowd, self.readers):
                one.fill()
                one.turn(0.001)
            for _ in range(10):
                self.crowd.feed()
            self.readers.feed()
            if time.monotonic() > look:
                look = time.monotonic() + 0.2
                self.look()
        self.end_of_round()

    def look(self):
        """The servers answer; scripts that run for too long are killed; the replica is cut off."""
        for one in (self.master, self.replica):
            one.check_alive()
            self.look_at(one)
        for at, do in list(self.due):
            if time.monotonic() > at:
                self.due.remove((at, do))
                do()
        if time.monotonic() > self.cut_at and not self.due:
            self.cut_at = time.monotonic() + self.rng.choice((0.2, 1, 3, 6))
            self.cut()
        self.count()
        kind, data = self.master.ask("DUMP", self.master.ask("RANDOMKEY")[1] or "b:1")
        if kind == "$" and data and len(data) < 3000:
            self.payloads[self.rng.randrange(len(self.payloads))] = data

    def look_at(self, one):
        if one is self.replica and self.due:
            return
        if one.is_busy() and self.rng.random() < 0.6:
            self.counts["scripts killed"] += one.end_script()

    def cut(self):
        rng, replica = self.rng, self.replica
        p, soon = rng.random(), time.monotonic() + rng.choice((0.1, 0.5, 1.5))
        self.counts["cuts"] += 1
        if p < 0.25:
            self.master.ask("CLIENT", "KILL", "TYPE", "replica")
        elif p < 0.5:
            replica.ask("CLIENT", "KILL", "TYPE", "master")
        elif p < 0.65:
            os.kill(replica.pid, signal.SIGSTOP)
            self.due.append((soon, lambda: os.kill(replica.pid, signal.SIGCONT)))
        elif p < 0.75:
            self.counts["promotions"] += 1
            replica.ask("REPLICAOF", "NO", "ONE")
            replica.ask("SET", "only-here", "x")
            self.due.append((soon, self.follow))
        elif p < 0.85:
            self.counts["restarts of the replica"] += 1
            replica.again(rng.choice((signal.SIGTERM, signal.SIGKILL)))
        elif p < 0.9:
            replica.ask("DEBUG", "RELOAD")
        else:
            name, value = self.crowd.words.setting()
            if name not in ("sanitize-dump-payload", "appendonly", "maxclients", "timeout"):
                replica.ask("CONFIG", "SET", name, value)

    def follow(self):
        self.replica.ask("REPLICAOF", "127.0.0.1", self.master.port)

    # ---- the end of a round ----

    def end_of_round(self):
        while self.due:
            self.due.pop()[1]()
        self.end_traffic()
        for one in (self.master, self.replica):
            one.calm()
            self.check_left(one)
        self.master.settle_log()
        self.master.freeze()
        self.sync()
        self.count()
        self.compare()
        for one in (self.master, self.replica):
            one.check_log()
            one.check_alive()

    def end_traffic(self):
        """All scripts and waits end, and each client gets its answers."""
        both = ((self.master, self.crowd), (self.replica, self.readers))
        end = time.monotonic() + FINISH_SECONDS
        for _, crowd in both:
            crowd.finish()
        while not all([crowd.continue_to_end(0.01) for _, crowd in both]):
            for one, _ in both:
                if one.is_busy():
                    one.end_script()
                else:
                    one.quiet()
            if time.monotonic() > end:
                left = [(c.number, c.kind, bytes(c.tail[-60:])) for _,
                        crowd in both for c in crowd.all]
                raise Found(f"clients have no answer: {left}")
        for one, _ in both:
            end = time.monotonic() + FINISH_SECONDS
            while one.is_busy():
                one.end_script()
                if time.monotonic() > end:
                    one.hangs(["PING"])

    def check_left(self, one):
        """Nothing is left of clients that are gone."""
        def alone():
            f = one.fields()
            left = [f.get(name) for name in ("blocked_clients", "tracking_clients",
                                             "pubsub_channels",
                                             "pubsub_patterns", "clients_in_timeout_table")]
            lines = one.command("CLIENT", "LIST").decode(errors="replace").splitlines()
            links = sum(" flags=M" in line or " flags=S" in line for line in lines)
            what[0] = f"{left}, {lines} are left of clients"
            return left == ["0"] * 5 and len(lines) - links == 1 and links <= 1
        what = [""]
        one.until(alone, what)

    def sync(self):
        """Until the replica has all that the master has."""
        def same():
            ours, theirs = self.master.fields("replication"), self.replica.fields("replication")
            return (theirs["role"] == "slave" and theirs["master_link_status"] == "up" and
                    theirs["master_sync_in_progress"] == "0" and
                    theirs["slave_repl_offset"] == ours["master_repl_offset"])
        if self.replica.fields("replication")["role"] != "slave":
            self.follow()
        self.replica.until(same, "it has not the offset of its master")

    def count(self):
        """Adds the figures of this process of the master since the last look."""
        kind, text = self.master.ask("INFO", "everything")
        now = fields_of(text) if kind in "$=" else self.before
        for name in COUNTED:
            n = int(now.get(name, 0))
            self.figures[name] += n - self.before.get(name, 0) if n >= self.before.get(name,
                                                                                       0) else n
            self.before[name] = n
        self.counts["clients over the limit of replies"] = sum(
            one.log.count("overcoming of output buffer limits")
            for one in (self.master, self.replica))

    def compare(self):
        rng, want = self.rng, self.master.digest()
        self.same(self.replica, want, "the replica")
        self.master.command("DEBUG", "RELOAD")
        self.same(self.master, want, "the master after DEBUG RELOAD")
        self.sync()
        how = rng.choice(("nothing", "LOADAOF", signal.SIGTERM, signal.SIGKILL, "rewrite"))
        if how == "LOADAOF":
            self.master.command("DEBUG", "LOADAOF")
        elif how == "rewrite":
            self.master.ask("BGREWRITEAOF")
            self.master.settle_log()
            self.master.again(signal.SIGKILL)
        elif how != "nothing":
            self.master.again(how)
        if how != "nothing":
            self.counts["loads of the log"] += 1
            self.before = {}
            self.same(self.master, want, f"the master after {how!r}")
        p = rng.random()
        if p < 0.3:
            self.replica.command("DEBUG", "RELOAD")
        elif p < 0.5:
            self.replica.again(rng.choice((signal.SIGTERM, signal.SIGKILL)))
        self.sync()
        self.same(self.replica, want, "the replica at the end")
        self.master.command("ACL", "SAVE")
        users = self.master.command("ACL", "LIST")
        self.master.command("ACL", "LOAD")
        if users != self.master.command("ACL", "LIST"):
            raise Found("the users are others after ACL SAVE and ACL LOAD")

    def same(self, one, want, what):
        self.counts["comparisons"] += 1
        have = one.digest()
        if have == want:
            return
        self.differences(what, have, want)
        if have[0] == want[0]:
            raise Found(f"the functions of {what} are others")
        raise Found(f"the data of {what} is other data: {have[0]}, not {want[0]}")

    def differences(self, what, have, want):
        """Where master and replica differ; the other values went with the process that had them."""
        sides = [self.master, self.replica]
        values = [one.values() for one in sides]
        with open(os.path.join(self.folder, "difference.txt"), "w", encoding="utf-8") as f:
            f.write(f"{what}: {have}, not {want}\n")
            for key in sorted(set(values[0]) | set(values[1])):
                if values[0].get(key) != values[1].get(key):
                    for one, its in zip(sides, values):
                        f.write(f"{key} {one.role}: {its.get(key)} {one.dump(*key)}\n")

    # ---- the verdict ----

    def unseen(self):
        """What a long run has not met."""
        figures = {**self.figures, **{name: self.counts[name] for name in SEEN}}
        return [name for name in figures if figures[name] == 0]

    def summary(self):
        return ", ".join(f"{n} {name.replace('_', ' ')}"
                         for name, n in [*self.counts.items(), *self.figures.items()])


def main(argv):
    seconds = float(argv[0]) if argv else 3600
    seed = argv[1] if len(argv) > 1 else str(int(time.time()))
    folder = tempfile.mkdtemp(prefix="redoubt-soak-")
    print(f"seed {seed}", flush=True)
    soak = Soak(seconds, seed, folder)
    try:
        soak.run()
    except Found as e:
        soak.traffic.file.close()
        print(f"seed {seed}: {soak.summary()}; FOUND: {e}; see {folder}")
        return 1
    unseen = soak.unseen() if seconds >= LONG_RUN else []
    end = f"not seen: {unseen}" if unseen else "nothing found"
    print(f"seed {seed}: {soak.summary()}; {end}")
    shutil.rmtree(folder)
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
