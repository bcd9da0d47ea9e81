"""Random writes on a real server under `archive`, restored to many moments, by hand:

    moments.py ROOTS --server redis-8.6.3 [--seconds 3600] [--moments 200] [--seed 1]

All write commands that data.Traffic knows are sent with valid arguments, in all databases and in
transactions. The archiver is interrupted now and then: its connection is cut, or it is killed and
started again. At each moment the server's own account is taken; at the end each moment is restored,
by its offset or by its time, loaded by a server of the same kind and compared. Ends with 1 at the
first difference.
"""

import argparse
import datetime
import random
import subprocess
import sys
import time

import account
import cells
import data
import jobs
import servers

BATCH = 40


class Archiver:
    """The tool, which can be killed and started again."""

    def __init__(self, config, server):
        self.config, self.server = config, server
        self.start()

    def start(self):
        self.running = subprocess.Popen(
            [jobs.REDOUBT, "archive", "nightly", "--config", self.config],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        jobs.connected("archive", self.server, self.running)

    def kill(self):
        self.running.kill()
        self.running.communicate()
        self.start()

    def stop(self):
        self.running.terminate()
        said = self.running.communicate(timeout=300)[1].decode(errors="replace")
        if self.running.returncode != 0:
            raise cells.Failure(f"archive: exit status {self.running.returncode}: {said}")


class Run:
    def __init__(self, subject, server, config, seed):
        self.subject, self.server, self.config = subject, server, config
        self.random = random.Random(seed)
        self.traffic = data.Traffic(server, seed)
        self.archiver = Archiver(config, server)
        self.writes = 0
        self.kept = []  # option, value, account

    def write(self, until):
        while time.monotonic() < until:
            batch = self.traffic.take(BATCH)
            if self.random.random() < 0.3:
                batch = [("MULTI",), *batch, ("EXEC",)]
            if self.random.random() < 0.1:
                batch = [("SELECT", self.random.randrange(3)), *batch]
            self.server.pipeline(batch)
            self.writes += BATCH
            time.sleep(0.02)
        self.server.command("SELECT", 0)

    def disturb(self):
        what = self.random.random()
        if what < 0.1:
            self.server.command("CLIENT", "KILL", "TYPE", "replica")
            jobs.connected("archive", self.server, self.archiver.running)
        elif what < 0.15:
            self.archiver.kill()

    def moment(self):
        """A write on each side of it, so that it is in the stream."""
        self.server.command("INCR", "moment")
        while True:
            before = jobs.offset(self.server)
            facts = account.read(self.server)
            if jobs.offset(self.server) == before:
                break
        jobs.acknowledged(self.server)
        if self.random.random() < 0.2:
            time.sleep(1.5)
            at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
            time.sleep(1.5)
            self.kept.append(("--target-time", at, facts))
        else:
            self.kept.append(("--target-offset", str(before), facts))
        self.server.command("INCR", "moment")

    def finish(self):
        """Everything is shipped."""
        end = jobs.offset(self.server)
        jobs.eventually("the archive has all",
                        lambda: jobs._shipped(self.config, end, self.archiver.running), 600)
        self.archiver.stop()

    def restore(self):
        keys = refused = 0
        for option, at, facts in self.kept:
            out = self.subject.path("restored.rdb")
            done = jobs.tool("restore", "nightly", "--config", self.config, "--to", out, "--force",
                             option, at, good=(0, 2))
            if done.returncode == 2:
                print(done.stderr.decode(errors="replace").strip(), file=sys.stderr)
                refused += 1
                continue
            keys += jobs.loaded(self.subject, out, facts, times=False)
        return keys, refused


def run(kind, seconds, moments, seed):
    subject = jobs.Subject(kind, seed, old=False)
    with subject.filled() as server:
        config = jobs._config(subject, "archive", server.url,
                              f"spool = {subject.path('spool')}\narchive-interval = 1s\n")
        this = Run(subject, server, config, seed)
        begin = time.monotonic()
        for i in range(1, moments + 1):
            this.write(begin + seconds * i / moments)
            this.disturb()
            this.moment()
        this.write(time.monotonic() + 1)
        this.finish()
        unknown = this.traffic.unknown
    keys, refused = this.restore()
    subject.close()
    print(f"{kind.name}: {this.writes} writes in {seconds:.0f} s, {len(this.traffic.used)} of its "
          f"commands, left out: {' '.join(unknown) or 'none'}; {moments} moments, "
          f"{refused} refused, {keys} keys equal, 0 different", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roots")
    parser.add_argument("--server", action="append")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for kind in servers.find(args.roots):
        if not args.server or kind.name in args.server:
            run(kind, args.seconds, args.moments, args.seed)


if __name__ == "__main__":
    main()
