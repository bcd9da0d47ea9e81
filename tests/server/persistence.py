"""What tests of persistence share: a server with faults, data of all types, crashes.

    with Faulty({"appendonly": "yes"}) as server:
        server.fail("write", errno.ENOSPC)      # until server.heal()
        server.crash()                          # SIGKILL; then what was not fsynced is cut off
"""

import contextlib
import os
import shutil
import signal
import tempfile

from server_under_test import Redoubt, wait_for

AOF = "appendonlydir"


class Faulty(Redoubt):
    """redoubt-server with tests/server/faults.c before its C library, which notes what is made
    durable. So a file system in memory will do, on which no fsync waits for a disk."""

    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None

    def __enter__(self):
        self.faults = tempfile.mkdtemp(prefix="redoubt-faults-")
        return super().__enter__()

    def close(self):
        super().close()
        shutil.rmtree(self.faults, ignore_errors=True)

    def spawn(self):
        before = dict(os.environ)
        os.environ["LD_PRELOAD"] = os.environ["REDOUBT_FAULTS_SO"]
        os.environ["REDOUBT_FAULTS"] = self.faults
        os.environ["ASAN_OPTIONS"] = before.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        try:
            super().spawn()
        finally:
            os.environ.clear()
            os.environ.update(before)

    def fail(self, kind, number):
        path = os.path.join(self.faults, "fail")
        with open(path + ".new", "w") as f:
            f.write(f"{kind} {number}\n")
        os.rename(path + ".new", path)

    def set_clock(self, seconds, word=""):
        """Sets the wall clock of the server by so many seconds from the true time; "alternate":
        only every second read of the clock."""
        path = os.path.join(self.faults, "clock")
        with open(path + ".new", "w") as f:
            f.write(f"{seconds} {word}\n")
        os.rename(path + ".new", path)

    def heal(self):
        os.unlink(os.path.join(self.faults, "fail"))

    def kill_all(self):
        """The server and its child, which would continue for a while."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_for(lambda: state_of(self.pid) == "T")
        child = child_of(self)
        self.kill()
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            wait_for(lambda: state_of(child) in (None, "Z", "X"))

    def synced(self):
        """How many bytes of which inode were made durable since the last crash."""
        path = os.path.join(self.faults, "synced")
        if not os.path.exists(path):
            return {}
        with open(path) as f:
            lines = f.read().rpartition("\n")[0].splitlines()
        return {int(inode): int(size) for inode, size in (line.split() for line in lines)}

    def is_durable(self, path):
        st = os.stat(path)
        return self.synced().get(st.st_ino) == st.st_size

    def crash(self):
        """As if the power had failed: of each file of data stays what was made durable."""
        self.kill_all()
        synced = self.synced()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.faults, "synced"))
        cut = 0
        for folder, _, names in os.walk(self.dir):
            for name in names:
                if "aof" not in name and "rdb" not in name:
                    continue
                file = os.path.join(folder, name)
                st = os.stat(file)
                size = synced.get(st.st_ino, st.st_size if self.old(st) else 0)
                if size < st.st_size:
                    os.truncate(file, size)
                    cut += st.st_size - size
        self.known = {os.stat(os.path.join(d, n)).st_ino
                      for d, _, names in os.walk(self.dir) for n in names}
        return cut

    known = frozenset()

    def old(self, st):
        """It was there after the last crash, so all of it is on the disk."""
        return st.st_ino in self.known


def fill(c, n=200):
    """Some of each type, in two databases, with expiries."""
    for i in range(n):
        c.send("SET", f"s:{i}", "v" * (i % 90) + str(i))
        c.send("RPUSH", f"l:{i % 7}", i, "e" * (i % 70))
        c.send("SADD", f"i:{i % 5}", i * 977)
        c.send("SADD", f"m:{i % 5}", f"member {i}", "x" * (i % 80))
        c.send("ZADD", f"z:{i % 5}", i / 7, f"m{i}")
        c.send("HSET", f"h:{i % 5}", f"f{i}", "y" * (i % 75))
        c.send("XADD", f"x:{i % 3}", f"{i + 1}-1", "k", i, "w", "z")
    for _ in range(7 * n):
        c.read()
    c.command("XGROUP", "CREATE", "x:1", "g", "0")
    c.command("XREADGROUP", "GROUP", "g", "alice", "COUNT", 5, "STREAMS", "x:1", ">")
    c.command("XACK", "x:1", "g", "2-1")
    c.command("PFADD", "hll", *range(100))
    c.command("SETRANGE", "big", 100000, "end")
    c.command("PEXPIREAT", "s:1", 4102444800123)
    c.command("SELECT", 9)
    c.command("MSET", "a", "1", "b", "2")
    c.command("SELECT", 0)


def files(server):
    """Names of the files of the log."""
    return sorted(n for n in os.listdir(server.path(AOF)) if not n.endswith(".lock"))


def incr(server):
    """Path of the last file of commands."""
    names = [n for n in files(server) if n.endswith(".incr.aof")]
    return server.path(AOF, max(names, key=lambda n: int(n.split(".")[-3])))


def state_of(pid):
    """The letter that /proc has for it; None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return None


def child_of(server):
    """The pid of its child, or None."""
    with open(f"/proc/{server.pid}/task/{server.pid}/children") as f:
        pids = f.read().split()
    return int(pids[0]) if pids else None
