"""Random writes with redoubt-server as replica and as master of a real server, by hand:

    replication.py ROOTS --server valkey-9.1.2 [--seconds 60] [--seed 1]

Each step writes, does one of these, and compares the data of both sides when the replica has caught
up: nothing; a cut of the connection; writes during a cut; a full synchronization; a restart of the
replica, with its snapshot and by kill -9. A replica that closed the link must have said why. Ends
with 1 at a difference, or where a link is down without a reason.
"""

import argparse
import random
import sys
import time

import account
import cells
import data
import jobs
import servers

WRITES = 120


class Pair:
    """A master under random writes and its replica."""

    def __init__(self, master, replica, seed):
        self.master, self.replica = master, replica
        self.random = random.Random(seed)
        data.fill(master, seed)
        self.traffic = data.Traffic(master, seed)
        self.steps = self.writes = self.keys = self.dropped = 0
        self.follow()

    def follow(self):
        self.replica.command("REPLICAOF", "127.0.0.1", self.master.port)

    def write(self, n):
        jobs.write(self.master, self.traffic, n)
        self.writes += n

    def step(self):
        change = self.random.choice((self.plain, self.cut, self.apart, self.full, self.restart,
                                     self.crash))
        self.write(WRITES)
        change()
        self.write(WRITES)
        self.steps += 1
        if self.caught_up():
            a, b = account.read(self.master), account.read(self.replica)
            self.keys += cells.same(*account.differences(a, b, times=False))
        else:
            self.dropped += 1
            self.replica.command("REPLICAOF", "NO", "ONE")
            self.follow()

    def plain(self):
        pass

    def cut(self):
        self.master.command("CLIENT", "KILL", "TYPE", "replica")

    def apart(self):
        self.replica.command("REPLICAOF", "NO", "ONE")
        self.write(WRITES)
        self.follow()

    def full(self):
        self.master.command("DEBUG", "CHANGE-REPL-ID")
        self.cut()

    def restart(self):
        self.replica.save()
        self.again()

    def crash(self):
        self.again()

    def again(self):
        """The process ends at once and starts with its last snapshot."""
        self.replica.process.kill()
        self.replica.process.wait()
        self.replica.start()
        self.follow()

    def caught_up(self):
        """False: the replica closed the link and says why."""
        end = time.monotonic() + jobs.SECONDS
        while not jobs._link(self.replica) or \
                jobs.offset(self.replica) < jobs.offset(self.master):
            text = self.replica.command("INFO", "replication").decode()
            if "master_link_down_reason:" in text:
                print(text.split("master_link_down_reason:")[1].splitlines()[0], file=sys.stderr)
                return False
            if time.monotonic() > end:
                raise cells.Failure("the link is down without a reason")
            time.sleep(0.02)
        return True


def run(name, master, replica, seconds, seed):
    pair = Pair(master, replica, seed)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            pair.step()
        verdict = "0 different"
    except cells.Failure as failure:
        verdict = str(failure)
    print(f"{name}: {pair.steps} steps, {pair.writes} writes, {pair.keys} keys equal, "
          f"{pair.dropped} links closed with a reason, {verdict}", flush=True)
    return verdict == "0 different"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roots")
    parser.add_argument("--server", action="append")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    good = True
    for kind in servers.find(args.roots):
        if args.server and kind.name not in args.server:
            continue
        level = jobs.level(kind)
        with servers.Server(kind, jobs.MASTER) as other, \
                servers.Server(jobs.OWN, {**jobs.MASTER, **level}) as own:
            good &= run(f"replica of {kind.name}", other, own, args.seconds, args.seed)
        with servers.Server(kind, jobs.MASTER) as other, \
                servers.Server(jobs.OWN, {**jobs.MASTER, **level}) as own:
            good &= run(f"master of {kind.name}", own, other, args.seconds, args.seed)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
