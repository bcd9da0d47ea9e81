"""An SFTP server (version 3) on stdin and stdout, for sshd's `Subsystem sftp`, whose n-th answer
can be another one.

    sftp_server.py CONTROL

CONTROL is a JSON file: {"at": 7, "status": 4, "done": false, "cut": false}. The request number `at`
is answered with this status of SSH_FX_…; done: it is done first; cut: the connection ends instead.
CONTROL.count has a byte for each request of all connections. {"stale": 12, "nth": 2}: instead of
"at", the second request 12 (READDIR) on a connection that had an answer "no such file", once.
{"lose": ".seg"}: what is first written to a file with this in its name is not there after the
answer "ok".
"""

import json
import os
import signal
import stat
import struct
import sys

(INIT, VERSION, OPEN, CLOSE, READ, WRITE, LSTAT, FSTAT, SETSTAT, FSETSTAT, OPENDIR, READDIR, REMOVE,
 MKDIR, RMDIR, REALPATH, STAT, RENAME) = range(1, 19)
STATUS, HANDLE, DATA, NAME, ATTRS = 101, 102, 103, 104, 105
OK, EOF, NO_SUCH_FILE, DENIED, FAILURE, UNSUPPORTED = 0, 1, 2, 3, 4, 8


class Refused(Exception):
    pass


def text(data):
    data = data if isinstance(data, bytes) else os.fsencode(data)
    return struct.pack(">I", len(data)) + data


def attributes(st):
    return struct.pack(">IQIIIII", 0xD, st.st_size, 0, 0, st.st_mode, 0, 0)[:12] + \
        struct.pack(">III", st.st_mode, int(st.st_atime), int(st.st_mtime))


def long_name(name, st):
    return (f"{stat.filemode(st.st_mode)} 1 user group {st.st_size:>8} Nov 27 10:00 ".encode() +
            os.fsencode(name))


def cut():
    """Ends the processes of sshd that have the connection: the end of this one alone would only end
    the channel, which libssh2 does not notice before a timeout."""
    process = os.getppid()
    while True:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            parent = int(file.read().rsplit(")", 1)[1].split()[1])
        with open(f"/proc/{parent}/cmdline", "rb") as file:
            listener = b"-D" in file.read()
        with open(f"/proc/{process}/comm", encoding="ascii") as file:
            if file.read().strip() not in ("sshd", "sshd-session", "sh", "bash", "dash"):
                break
        os.kill(process, signal.SIGKILL)
        if listener:
            break
        process = parent
    os._exit(1)


class Server:
    def __init__(self, control):
        self.control, self.handles, self.n = control, {}, 0
        self.had_missing, self.seen, self.lose = False, 0, None

    def take(self, size):
        data = sys.stdin.buffer.read(size)
        if len(data) < size:
            sys.exit(0)
        return data

    def send(self, kind, data):
        sys.stdout.buffer.write(struct.pack(">IB", len(data) + 1, kind) + data)
        sys.stdout.buffer.flush()

    def status(self, ident, code):
        self.send(STATUS, struct.pack(">II", ident, code) + text(f"status {code}") + text("en"))

    def string(self):
        size = struct.unpack_from(">I", self.body, self.at)[0]
        self.at += 4 + size
        return self.body[self.at - size: self.at]

    def number(self, form=">I"):
        value = struct.unpack_from(form, self.body, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def is_stale(self, fault, kind):
        """Whether it is the request of a fault "stale"."""
        self.seen += self.had_missing and kind == fault["stale"]
        if self.seen != fault["nth"] or os.path.exists(self.control + ".done"):
            return False
        return self.once()

    def once(self):
        with open(self.control + ".done", "wb"):
            return True

    def is_lost(self, fd, fault):
        path = os.readlink(f"/proc/self/fd/{fd}")
        return fault["lose"] in path and not os.path.exists(self.control + ".done") and self.once()

    def fault(self, kind):
        """The fault of this request, or None."""
        with open(self.control + ".count", "ab") as out:
            out.write(b".")
        n = os.path.getsize(self.control + ".count")
        with open(self.control, encoding="ascii") as file:
            fault = json.load(file)
        if fault and "stale" in fault:
            return fault if self.is_stale(fault, kind) else None
        self.lose = fault if fault and "lose" in fault else None
        if self.lose:
            return None
        return fault if fault and fault["at"] == n else None

    def run(self):
        while True:
            size, kind = struct.unpack(">IB", self.take(5))
            self.body, self.at = self.take(size - 1), 0
            if kind == INIT:
                self.send(VERSION, struct.pack(">I", 3))
                continue
            ident = self.number()
            fault = self.fault(kind)
            if fault and not fault["done"]:
                answer = None
            else:
                answer = self.serve(kind, ident)
            self.had_missing = self.had_missing or answer == NO_SUCH_FILE
            if fault and fault["cut"]:
                cut()
            if fault:
                self.status(ident, fault["status"])
            elif isinstance(answer, int):
                self.status(ident, answer)
            else:
                self.send(answer[0], struct.pack(">I", ident) + answer[1])

    def serve(self, kind, ident):
        try:
            return self.SERVE.get(kind, lambda _: UNSUPPORTED)(self)
        except FileNotFoundError:
            return NO_SUCH_FILE
        except PermissionError:
            return DENIED
        except (OSError, Refused):
            return FAILURE

    def handle(self, value):
        self.n += 1
        self.handles[b"%d" % self.n] = value
        return HANDLE, text(b"%d" % self.n)

    def open(self):
        path, flags = self.string(), self.number()
        how = os.O_RDWR if flags & 3 == 3 else os.O_WRONLY if flags & 2 else os.O_RDONLY
        for bit, value in ((4, os.O_APPEND), (8, os.O_CREAT), (16, os.O_TRUNC), (32, os.O_EXCL)):
            how |= value if flags & bit else 0
        return self.handle(os.open(path, how, 0o600))

    def close(self):
        value = self.handles.pop(self.string())
        if isinstance(value, int):
            os.close(value)
        return OK

    def read(self):
        fd, off, size = self.handles[self.string()], self.number(">Q"), self.number()
        data = os.pread(fd, size, off)
        return (DATA, text(data)) if data else EOF

    def write(self):
        fd, off, data = self.handles[self.string()], self.number(">Q"), self.string()
        if not self.lose or not self.is_lost(fd, self.lose):
            os.pwrite(fd, data, off)
        return OK

    def opendir(self):
        path = self.string()
        names = [b".", b".."] + os.listdir(path)
        return self.handle([(name, os.lstat(os.path.join(path, name))) for name in names])

    def readdir(self):
        entries = self.handles[self.string()]
        if not entries:
            return EOF
        some = entries[:3]
        del entries[:3]
        return NAME, struct.pack(">I", len(some)) + b"".join(
            text(name) + text(long_name(name, st)) + attributes(st) for name, st in some)

    def stat(self):
        return ATTRS, attributes(os.stat(self.string()))

    def fstat(self):
        return ATTRS, attributes(os.fstat(self.handles[self.string()]))

    def realpath(self):
        path = os.path.normpath(self.string())
        return NAME, struct.pack(">I", 1) + text(path) + text(path) + struct.pack(">I", 0)

    def rename(self):
        old, new = self.string(), self.string()
        os.link(old, new)
        os.unlink(old)
        return OK

    def change(self, call, *args):
        call(self.string(), *args)
        return OK

    SERVE = {
        OPEN: open, CLOSE: close, READ: read, WRITE: write, STAT: stat, LSTAT: stat, FSTAT: fstat,
        SETSTAT: lambda self: OK, FSETSTAT: lambda self: OK, OPENDIR: opendir, READDIR: readdir,
        REALPATH: realpath, RENAME: rename,
        REMOVE: lambda self: self.change(os.unlink), RMDIR: lambda self: self.change(os.rmdir),
        MKDIR: lambda self: self.change(os.mkdir, 0o700),
    }


if __name__ == "__main__":
    Server(sys.argv[1]).run()
