"""docs/exit-status.md: every cell of the table is provoked, and what it does not have has no case.

REDOUBT names the program.
"""

import fcntl
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import redis_server  # noqa: E402
from captures import CaptureTest, command  # noqa: E402
from fake_server import FakeServer, array, bulk, dump  # noqa: E402
from rdb_text import STRING, Key, snapshot, string  # noqa: E402
from redis_server import free_port  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
SOURCE = os.environ["REDOUBT_SOURCE"]
SIGNALS = {129: signal.SIGHUP, 130: signal.SIGINT, 143: signal.SIGTERM}


def rows_after(head):
    """Tool -> status -> text of the cell, of the table whose first cell is `head`."""
    with open(os.path.join(SOURCE, "docs", "exit-status.md"), encoding="utf-8") as f:
        text = f.read()
    lines = text[text.index(f"| {head} |"):].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    statuses = [int(cell) for cell in rows[0][1:]]
    return {row[0]: dict(zip(statuses, row[1:])) for row in rows[2:]}


def table():
    """The table of the tools that work on files and servers; "-": never ends with that status."""
    return rows_after("tool")


class Silent:
    """A server that takes connections and never says a word."""

    def __enter__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(8)
        self.url = f"redis://127.0.0.1:{self.socket.getsockname()[1]}"
        return self

    def __exit__(self, *_):
        self.socket.close()


def server_with_a_new_type():
    """The replies that diff needs, of a server with one key of an unknown type."""
    def answer(args):
        name = args[0].upper()
        if name == b"SCAN":
            return array([bulk(b"0"), array([bulk(b"new")])])
        if name == b"INFO":
            return bulk(b"# Keyspace\r\ndb0:keys=1\r\n")
        answers = {b"DUMP": bulk(dump(b"\x63abc")), b"PEXPIRETIME": b":-1\r\n"}
        return answers.get(name, b"-ERR unknown command '%s'\r\n" % name)
    return FakeServer(answer)


def master_with(data):
    """A master that sends these bytes as its snapshot."""
    def answer(args):
        if args[0].upper() == b"PSYNC":
            return (b"+FULLRESYNC %s 100\r\n$%d\r\n" % (b"a" * 40, len(data))) + data
        return {b"REPLCONF": b"+OK\r\n", b"PING": b"+PONG\r\n", b"INFO": bulk(b"")}.get(
            args[0].upper(), b"-ERR unknown command\r\n")
    return FakeServer(answer)


class Cells(CaptureTest):
    @classmethod
    def setUpClass(cls):
        cls.server = redis_server.RedisServer().__enter__()
        cls.addClassCleanup(cls.server.close)
        cls.url = f"redis://127.0.0.1:{cls.server.port}"
        cls.unused = f"redis://127.0.0.1:{free_port()}"

    def setUp(self):
        super().setUp()
        self.server.command("FLUSHALL")
        good = snapshot([Key(b"k", STRING, b"v")])
        self.good = self.write("good.rdb", good)
        self.other = self.write("other.rdb", snapshot([Key(b"k", STRING, b"w")]))
        self.cut = self.write("cut.rdb", good[:-12])
        self.new = self.write("new.rdb", b"REDIS0099" + good[9:])
        self.long = self.write("long.rdb", b"REDIS0010\xfa" + string(b"n" * (4 << 20)) +
                               string(b"v") + b"\xff" + bytes(8))
        self.stream = self.write("stream.ndjson", b'{"db":0,"key":"s","type":"stream","value":'
                                 b'{"entries":[{"id":"1-0","fields":[["f","v"]]}]}}\n')
        self.log = self.write("good.aof", command("SET", "a", "1"))
        self.torn = self.write("torn.aof", command("SET", "a", "1") + b"*3\r\n$3\r\nSE")
        self.out = self.path("out")
        self.missing = self.path("missing")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def ends(self, status, *args):
        run = subprocess.run([REDOUBT, *args], stdin=subprocess.DEVNULL, capture_output=True,
                             timeout=600, check=False)
        self.assertEqual(run.returncode, status, (args, run.stdout, run.stderr))
        if status != 0:
            self.assertTrue(run.stderr or run.stdout, "it must say why")

    # ---- tools that read a snapshot or a log ----

    def reads(self, tool):
        return {
            "convert": ["convert", "--to", "rdb", "-o", self.out],
            "merge": ["merge", "-o", self.out],
            "split": ["split", "--by", "db", "-o", self.out],
            "stat": ["stat"],
            "sum": ["sum"],
            "show": ["show"],
            "check-rdb": ["check-rdb"],
            "check-aof": ["check-aof"],
            "diff": ["diff", self.good],
            "cluster": ["cluster", "nodes-conf"],
        }[tool]

    def test_cells(self):
        cells = table()
        self.assertGreater(len(cells), 10)
        for tool, row in cells.items():
            self.assertEqual(sorted(row), [0, 1, 2, 3, 4, 5, 6, 7, 8, 129, 130, 143])
            for status, text in row.items():
                case = getattr(self, f"case_{tool.replace('-', '_')}_{status}", None)
                if status in SIGNALS:
                    case = lambda t=tool, s=status: self.by_signal(t, s)  # noqa: E731
                if case is None and tool in ("convert", "merge", "split", "stat", "diff"):
                    case = getattr(self, f"any_{status}", None)
                    case = case and (lambda c=case, t=tool: c(t))
                with self.subTest(tool=tool, status=status):
                    if text == "-":
                        own = f"case_{tool.replace('-', '_')}_{status}"
                        self.assertFalse(hasattr(self, own), "the table has no such cell")
                        continue
                    self.assertTrue(len(text) > 3)
                    self.assertIsNotNone(case, "a cell without a case")
                    self.tearDown()
                    self.doCleanups()
                    self.setUp()
                    case()

    def test_every_tool_has_a_row(self):
        text = subprocess.run([REDOUBT, "help"], capture_output=True, check=True).stdout.decode()
        names = set(re.findall(r"^  ([a-z][a-z0-9-]+)  ", text, re.M)) - {"help"}
        self.assertEqual(set(table()) | set(rows_after("backup tool")), names)

    def test_no_case_is_beside_the_table(self):
        cells = table()
        for name in dir(self):
            match = re.fullmatch(r"case_(\w+)_(\d+)", name)
            if match:
                self.assertNotEqual(cells[match[1].replace("_", "-")][int(match[2])], "-", name)

    def demo_by_signal(self, status):
        """It waits for Enter."""
        parent, child = pty.openpty()
        process = subprocess.Popen(
            [REDOUBT, "demo", self.out], stdin=child, stdout=child, stderr=child,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        os.close(child)
        try:
            text = b""
            while b"[Enter" not in text:
                text += os.read(parent, 4096)
            process.send_signal(SIGNALS[status])
            self.assertEqual(process.wait(600), status)
        finally:
            process.kill()
            process.wait()
            os.close(parent)

    def by_signal(self, tool, status):
        if tool == "demo":
            self.demo_by_signal(status)
            return
        with Silent() as silent:
            if tool == "capture":
                args = ["capture", silent.url, "-o", self.out]
            elif tool == "migrate":
                args = ["migrate", "--spool", self.out, silent.url, silent.url]
            elif tool == "replay":
                self.capture.begin(snapshot([]), command("SET", "a", "1"))
                args = ["replay", self.capture.path, silent.url]
            elif tool == "browse":
                args = ["browse", "--page", self.page(), self.good]
            elif tool in ("history", "blame", "undo"):
                os.mkfifo(self.path("fifo"))
                args = [tool, "a", "--in", self.path("fifo")]
                args += ["--command", "1:1", "--to", silent.url] if tool == "undo" else []
            else:
                args = [*self.reads(tool), "-"]
            process = subprocess.Popen(
                [REDOUBT, *args], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                # Under nohup the tests ignore SIGHUP, and so would the tool.
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
            )
            try:
                self.wait_until_it_waits(process)
                process.send_signal(SIGNALS[status])
                self.assertEqual(process.wait(600), status)
            finally:
                process.kill()
                process.stdin.close()
                process.wait()

    def wait_until_it_waits(self, process):
        """It sleeps in a read or poll, and did so a moment before."""
        quiet = 0
        for _ in range(30000):
            with open(f"/proc/{process.pid}/stat", encoding="utf-8") as f:
                state = f.read().rsplit(")", 1)[1].split()[0]
            caught = self.catches(process)
            quiet = quiet + 1 if state == "S" and caught else 0
            if quiet > 10:
                return
            time.sleep(0.02)
        self.fail("it does not wait")

    def catches(self, process):
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as f:
            mask = int(re.search(r"^SigCgt:\s*([0-9a-f]+)", f.read(), re.M)[1], 16)
        return mask & (1 << (signal.SIGTERM - 1)) != 0

    # ---- cells that several tools have in common ----

    def any_6(self, tool):
        self.ends(6, *self.reads(tool), "redis://127.0.0.1:1")

    def case_check_rdb_6(self):
        self.any_6("check-rdb")

    def any_0(self, tool):
        self.ends(0, *self.reads(tool), self.good)

    def any_1(self, tool):
        self.ends(1, *self.reads(tool), self.cut)
        self.assertFalse(os.path.exists(self.out))
        if tool != "diff":
            self.ends(1, *self.reads(tool), self.good, "--match", "nothing")
        else:
            self.ends(1, "diff", self.good, self.other)
            self.ends(1, "diff", self.good, self.good, "--match", "nothing")

    def any_2(self, tool):
        self.ends(2, *self.reads(tool), self.good, "--nonsense")
        self.ends(2, *self.reads(tool)[:1])
        if self.out in self.reads(tool):
            self.ends(0, *self.reads(tool), self.good)
            self.ends(2, *self.reads(tool), self.good)

    def any_3(self, tool):
        self.ends(3, *self.reads(tool), self.missing)
        if self.out in self.reads(tool):
            nowhere = [os.path.join(self.good, "x") if a == self.out else a
                       for a in self.reads(tool)]
            self.ends(3, *nowhere, self.good)

    def any_4(self, tool):
        self.ends(4, *self.reads(tool), self.new)

    def any_5(self, tool):
        self.ends(5, *self.reads(tool), self.long)

    def case_convert_0(self):
        self.any_0("convert")
        self.ends(0, "convert", "--to", "rdb", "--rdb-version", "6", "--lossy", self.stream, "-o",
                  self.out, "--force")

    def case_merge_0(self):
        self.any_0("merge")
        stream = self.path("stream.rdb")
        self.ends(0, "convert", "--to", "rdb", self.stream, "-o", stream)
        self.ends(0, "merge", "--rdb-version", "6", "--lossy", stream, "-o", self.out, "--force")

    def case_convert_4(self):
        self.any_4("convert")
        self.ends(4, "convert", "--to", "rdb", "--rdb-version", "6", self.stream, "-o", self.out)

    def case_merge_1(self):
        self.any_1("merge")
        self.ends(1, "merge", self.good, self.other, "-o", self.out)

    def case_split_5(self):
        keys = [Key(b"%d:k" % i, STRING, b"v") for i in range(10)]
        many = self.write("many.rdb", snapshot([k._replace(db=i) for i, k in enumerate(keys * 60)]))
        self.ends(5, "split", "--by", "db", many, "-o", self.out)

    def case_diff_6(self):
        self.ends(6, "diff", self.good, self.unused)

    def case_diff_8(self):
        with server_with_a_new_type() as fake:
            self.ends(8, "diff", self.write("empty.rdb", snapshot([])),
                      f"redis://127.0.0.1:{fake.port}")

    def any_8(self, tool):
        """A command that succeeded once fails when the log is replayed."""
        log = self.write("fails.aof", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
                         b"*3\r\n$5\r\nLPUSH\r\n$1\r\nk\r\n$1\r\nx\r\n")
        self.ends(8, *self.reads(tool), log)

    # ---- checks ----

    def case_check_rdb_0(self):
        self.ends(0, "check-rdb", self.good, self.other)

    def case_check_rdb_1(self):
        self.ends(1, "check-rdb", self.good, self.cut)
        self.ends(1, "check-rdb", "--salvage", self.out, self.write("nothing.rdb", b"REDIS0010"))

    def case_check_rdb_2(self):
        self.ends(2, "check-rdb")
        self.ends(2, "check-rdb", self.cut, "--salvage", self.good)

    def case_check_rdb_3(self):
        self.ends(3, "check-rdb", self.missing)

    def case_check_rdb_4(self):
        self.ends(4, "check-rdb", self.new)
        self.ends(4, "check-rdb", self.write("page.rdb", b"<html><body>404</body></html>\n"))

    def case_check_rdb_8(self):
        two = snapshot([Key(b"k", STRING, b"v"), Key(b"l", STRING, b"v")])
        self.ends(8, "check-rdb", "--salvage", self.out, self.write("two.rdb", two[:-12]))

    def case_check_aof_0(self):
        self.ends(0, "check-aof", self.log)

    def case_check_aof_1(self):
        self.ends(1, "check-aof", self.torn)
        nothing = self.write("nothing.aof", b"*3\r\n$3\r\nSE")
        self.ends(1, "check-aof", "--salvage", self.out, nothing)

    def case_check_aof_2(self):
        self.ends(2, "check-aof", "--nonsense", self.log)

    def case_check_aof_3(self):
        self.ends(3, "check-aof", self.missing)

    def case_check_aof_7(self):
        with open(self.torn, "ab"):
            self.ends(7, "check-aof", "--fix", "--yes", self.torn)

    def case_check_aof_8(self):
        self.ends(8, "check-aof", "--salvage", self.out, self.torn)

    # ---- cluster ----

    def conf(self, slots):
        return self.write("nodes.conf", (f"{'a' * 40} h:1@2 myself,master - 0 0 1 connected {slots}"
                                         "\nvars currentEpoch 1 lastVoteEpoch 0\n").encode())

    def case_cluster_0(self):
        self.ends(0, "cluster", "nodes-conf", self.conf("0-16383"))

    def case_cluster_1(self):
        self.ends(1, "cluster", "nodes-conf", self.conf("0-16382"))

    def case_cluster_2(self):
        self.ends(2, "cluster", "nodes-config", self.conf("0-16383"))

    def case_cluster_3(self):
        self.ends(3, "cluster", "nodes-conf", self.missing)

    def case_cluster_5(self):
        self.ends(5, "cluster", "nodes-conf", self.write("huge.conf", bytes(65 * 1024 * 1024)))

    def case_cluster_6(self):
        self.ends(6, "cluster", "check", "redis://127.0.0.1:1")

    def case_cluster_7(self):
        path = self.conf("0-16383")
        with open(path, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.ends(7, "cluster", "nodes-conf", "--fix", "--yes", path)

    # ---- show, sum ----

    def case_show_0(self):
        self.ends(0, "show", self.log)

    def case_show_1(self):
        self.ends(1, "show", self.torn)
        self.ends(1, "show", "--match", "nothing", self.log)

    def case_show_2(self):
        self.ends(2, "show", "--not", self.log)

    def case_show_3(self):
        self.ends(3, "show", self.missing)

    def case_history_0(self):
        self.ends(0, "history", "a", "--in", self.log)

    def case_history_1(self):
        self.ends(1, "history", "nothing", "--in", self.log)
        damaged = self.write("damaged.aof", command("SET", "a", "1") + b"garbage" * 10)
        self.ends(1, "history", "a", "--in", damaged)

    def case_history_2(self):
        self.ends(2, "history", "--in", self.log)

    def case_history_3(self):
        self.ends(3, "history", "a", "--in", self.missing)

    def case_history_4(self):
        self.ends(4, "history", "a", "--in", self.new)

    def case_history_5(self):
        many = self.write("many.aof", b"".join(command("SET", i, "") for i in range(100001)))
        self.ends(5, "history", "--prefix", "", "--in", many)

    def case_history_8(self):
        foreign = self.write("foreign.aof", command("JSON.SET", "a", "$", "1"))
        self.ends(8, "history", "a", "--in", foreign)

    def case_blame_0(self):
        self.ends(0, "blame", "a", "--in", self.log)

    def case_blame_1(self):
        self.ends(1, "blame", "nothing", "--in", self.log)
        damaged = self.write("damaged.aof", command("SET", "a", "1") + b"garbage" * 10)
        self.ends(1, "blame", "a", "--in", damaged)

    def case_blame_2(self):
        self.ends(2, "blame", "--in", self.log)

    def case_blame_3(self):
        self.ends(3, "blame", "a", "--in", self.missing)

    def case_blame_4(self):
        self.ends(4, "blame", "a", "--in", self.new)

    def case_blame_5(self):
        many = self.write("many.aof", b"".join(command("SET", i, "") for i in range(100001)))
        self.ends(5, "blame", "--prefix", "", "--in", many)

    def case_blame_8(self):
        foreign = self.write("foreign.aof", command("JSON.SET", "a", "$", "1"))
        self.ends(8, "blame", "a", "--in", foreign)

    def undo(self, status, *args, log=None):
        self.ends(status, "undo", *args, "--in", log or self.log, "--save", self.path("save"))

    def case_undo_0(self):
        self.undo(0, "--command", "good.aof:0", "--to", self.url)

    def case_undo_1(self):
        self.undo(1, "--command", "good.aof:0", "--to", self.url, "nothing")
        self.server.command("SET", "a", "2")
        twice = self.write("twice.aof", command("SET", "a", "1") + command("SET", "a", "2"))
        self.undo(1, "--command", "twice.aof:0", "--to", self.url, log=twice)

    def case_undo_2(self):
        self.undo(2, "--command", "good.aof:5", "--to", self.url)
        self.undo(2, "--command", "good.aof:0", "--to", self.log)

    def case_undo_3(self):
        self.undo(3, "--command", "good.aof:0", "--to", self.url, log=self.missing)

    def case_undo_4(self):
        folder = self.path("log")
        os.mkdir(folder)
        os.rename(self.new, os.path.join(folder, "a.1.base.rdb"))
        self.write("log/a.1.incr.aof", command("SET", "a", "1"))
        self.write("log/a.manifest", b"file a.1.base.rdb seq 1 type b\n"
                   b"file a.1.incr.aof seq 1 type i\n")
        self.undo(4, "--command", "a.1.incr.aof:0", "--to", self.url, log=folder)

    def case_undo_6(self):
        self.undo(6, "--command", "good.aof:0", "--to", self.unused)

    def case_undo_8(self):
        foreign = self.write("foreign.aof", command("JSON.SET", "a", "$", "1"))
        self.undo(8, "--command", "foreign.aof:0", "--to", self.url, log=foreign)

    def page(self):
        return self.write("page.html", b'<meta http-equiv="Content-Security-Policy" content="'
                          b"connect-src 'none'\">"
                          b'<meta name="redoubt-files" content="none">')

    def case_browse_2(self):
        self.ends(2, "browse", "--page", self.page(), "--port", "65536", self.good)

    def case_browse_3(self):
        self.ends(3, "browse", "--page", self.missing, self.good)

    def case_browse_6(self):
        self.ends(6, "browse", "--page", self.page(), self.unused)

    def case_demo_0(self):
        self.ends(0, "demo", self.out)

    def case_demo_2(self):
        self.ends(2, "demo", os.path.dirname(self.out))

    def case_demo_3(self):
        self.ends(3, "demo", os.path.join(self.missing, "demo"))

    def case_sum_0(self):
        self.ends(0, "sum", self.good)

    def case_sum_1(self):
        self.ends(1, "sum", self.write("bad.rdb", snapshot([], tail=b"\xff" + b"\x01" * 8)))

    def case_sum_2(self):
        self.ends(2, "sum", "--nonsense", self.good)

    def case_sum_3(self):
        self.ends(3, "sum", self.missing)

    def case_version_0(self):
        self.ends(0, "version", "--json")

    def case_version_2(self):
        self.ends(2, "version", "unexpected")

    # ---- capture ----

    def case_capture_0(self):
        self.ends(0, "capture", self.url, "--rdb-only", self.out)

    def case_capture_1(self):
        with master_with(b"REDIS0010\xfe\x00\x00\x01k\xff" + bytes(8)) as master:
            self.ends(1, "capture", f"redis://127.0.0.1:{master.port}", "--rdb-only", self.out)
        self.assertFalse(os.path.exists(self.out))

    def case_capture_2(self):
        self.ends(2, "capture", self.url)

    def case_capture_3(self):
        self.ends(3, "capture", self.url, "-o", os.path.join(self.good, "x"))

    def case_capture_4(self):
        with master_with(b"REDIS0099\xff" + bytes(8)) as master:
            self.ends(4, "capture", f"redis://127.0.0.1:{master.port}", "--rdb-only", self.out)

    def case_capture_6(self):
        self.ends(6, "capture", self.unused, "-o", self.out)

    def case_capture_7(self):
        with Silent() as silent:
            args = ["capture", silent.url, "-o", self.out]
            with subprocess.Popen([REDOUBT, *args], stdin=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as first:
                try:
                    self.wait_until_it_waits(first)
                    self.ends(7, *args)
                finally:
                    first.kill()

    # ---- replay ----

    def begin(self, *commands):
        self.capture.begin(snapshot([Key(b"k", STRING, b"v")]), b"".join(commands))

    def case_replay_0(self):
        self.begin(command("SET", "a", "1"))
        self.ends(0, "replay", "--speed", "max", "--verify", self.capture.path, self.url)

    def case_replay_1(self):
        self.begin(command("SET", "a", "1"))
        self.server.command("ACL", "SETUSER", "few", "on", ">pw", "~*", "+@all", "-set")
        url = self.url.replace("redis://", "redis://few:pw@")
        self.ends(1, "replay", "--speed", "max", "--verify", self.capture.path, url)

    def case_replay_2(self):
        self.begin(command("SET", "a", "1"))
        self.server.command("SET", "there", "1")
        self.ends(2, "replay", self.capture.path, self.url)

    def case_replay_3(self):
        self.ends(3, "replay", self.missing, self.url)

    def case_replay_6(self):
        self.begin(command("SET", "a", "1"))
        self.ends(6, "replay", self.capture.path, self.unused)

    def case_replay_8(self):
        self.begin(command("LPUSH", "k", "1"))
        self.ends(8, "replay", "--speed", "max", self.capture.path, self.url)

    # ---- migrate ----

    def migrate(self, status, *args, source=None, target=None):
        self.ends(status, "migrate", "--until-caught-up", "--spool", self.out, *args,
                  source or self.url, target or f"redis://127.0.0.1:{self.empty().port}")

    def empty(self):
        server = redis_server.RedisServer().__enter__()
        self.addCleanup(server.close)
        return server

    def case_migrate_0(self):
        self.server.command("SET", "a", "1")
        target = self.empty()
        self.migrate(0, target=f"redis://127.0.0.1:{target.port}")
        self.assertEqual(target.command("GET", "a"), b"1")

    def case_migrate_1(self):
        with master_with(b"REDIS0010\xfe\x00\x00\x01k\xff" + bytes(8)) as master:
            self.migrate(1, source=f"redis://127.0.0.1:{master.port}")
        target = self.empty()
        url = f"redis://127.0.0.1:{target.port}"
        self.migrate(0, "--spool", self.path("spool"), target=url)
        target.command("SET", "own", "1")
        self.ends(1, "migrate", "--cut-over", "--spool", self.path("spool"), self.url, url)

    def case_migrate_2(self):
        target = self.empty()
        target.command("SET", "other", "1")
        self.migrate(2, target=f"redis://127.0.0.1:{target.port}")

    def case_migrate_3(self):
        self.migrate(3, "--spool", os.path.join(self.good, "x"))

    def case_migrate_4(self):
        target = self.empty()
        url = f"redis://127.0.0.1:{target.port}"
        self.migrate(0, target=url)
        target.command("ACL", "SETUSER", "default", "-incr")
        self.server.command("INCR", "n")
        self.migrate(4, target=url)

    def case_migrate_5(self):
        target = self.empty()
        url = f"redis://127.0.0.1:{target.port}"
        self.migrate(0, target=url)
        target.command("CONFIG", "SET", "maxmemory", "1")
        self.server.command("SET", "a", "1")
        self.ends(5, "migrate", "--cut-over", "--pause", "3s", "--spool", self.out, self.url, url)
        self.server.command("SET", "a", "2")  # it is not paused any more

    def case_migrate_6(self):
        self.migrate(6, target=self.unused)
        self.migrate(6, source=self.unused)

    def case_migrate_7(self):
        target = f"redis://127.0.0.1:{self.empty().port}"
        args = ["migrate", "--spool", self.out, self.url, target]
        with subprocess.Popen([REDOUBT, *args], stdin=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as first:
            try:
                end = time.monotonic() + 600
                while not os.path.exists(os.path.join(self.out, "capture.lock")):
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.02)
                self.ends(7, *args)
            finally:
                first.kill()

    def case_migrate_8(self):
        target = self.empty()
        url = f"redis://127.0.0.1:{target.port}"
        self.migrate(0, target=url)
        target.command("SET", "k", "not a list")
        self.server.command("LPUSH", "k", "1")
        self.migrate(8, target=url)


if __name__ == "__main__":
    unittest.main()
