"""Every directive of redis.conf: CONFIG GET, SET and REWRITE, the file and the command line, beside
redis-server. And what a server does to its process: pid file, background, titles, crashes."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from persistence import child_of  # noqa: E402
from server_under_test import (  # noqa: E402
    Client, Redis, Redoubt, ServerDied, free_port, of_reference, pair, program, redis_server,
    wait_for)


def ask_cli(port, *args):
    return subprocess.run([redis_server.program("cli"), "-p", str(port), "-a", "a b",
                           "--no-auth-warning", *args], stdout=subprocess.PIPE, check=False).stdout


SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Values that one kind of directive takes and another refuses.
VALUES = ("", "yes", "No", "zzz", "0", "1", "-1", "64", "100", "+1", "010", " 1", "1 ", "1kb",
          "2Gb", "gb", "5%", "101%", "%", "-999999999999", "2147483647", "2147483648", "65536",
          "9223372036854775807", "99999999999999999999")

# What these would do is not for a list: they close the connection, or take minutes or memory.
LEFT_OUT = {"bind", "port", "tls-port", "maxclients", "oom-score-adj", "oom-score-adj-values",
            "appendonly", "maxmemory", "watchdog-period", "requirepass"}

HIDDEN = ("key-load-delay", "loading-process-events-interval-bytes", "lua-enable-deprecated-api",
          "rdb-key-save-delay", "use-exit-on-panic", "watchdog-period")

# Directives that are more than a number or a word, with values on both sides of their limits.
SPECIAL = {
    "save": ("10 1 20", "10 1 20 2", " 10 1", "10  1", "0 1", "1 -1", '"10 1"', "10 1", "10 0"),
    "maxmemory": ("1tb", "1.5gb", "1GB", "b", "", "0"),
    "client-output-buffer-limit": (
        "normal 1kb 2mb 3", "foo 1 2 3", "master 1 2 3", "replica 0 0 0 slave 1 1 1",
        "normal -1 0 0", "normal 0 0 -1", "normal 0 0", "", "NORMAL 0 0 0",
        "normal 1gb 5 0 pubsub 1 a 3", "slave 256mb 64mb 60"),
    "oom-score-adj-values": ("1 2", "1 2 3", "800 200 0", "0 200 2001", "a b c", "0  200 800",
                             "1.5 2 3", "0 200 800"),
    "latency-tracking-info-percentiles": (
        "", "50", "50 50 99.99999", "100.1", "-0", "1e1", "nan", "inf", "50 x", "33.333333333333",
        "  50", "50 99 99.9"),
    "shutdown-on-sigterm": ("save", "SAVE now", "nosave save", "default save", "", "force nosave",
                            "nope", "default"),
    "notify-keyspace-events": ("KEA", "Kg$lshzxetdmn", "KEg$lshzxetd", "Em", "n", "KEAmn", "gd",
                               "z E", "KEgxet", ""),
    "cluster-announce-hostname": ("hi.there-x", "a_b", "a" * 256, "a" * 255, ""),
    "proc-title-template": ("{title}", "{bad}", "", "{title", "}x", "{title} {pid}",
                            "{title} {listen-addr} {server-mode} {port} {config-file}"),
    "loglevel": ("NOTICE", "nothing", "debug", "notice"),
    "hz": ("0", "1000", "10"),
    "repl-backlog-size": ("1kb", "1mb"),
    "watchdog-period": ("100", "300", "0"),
    "tls-replication": ("yes", "no"),
    "requirepass": ("secret", ""),
    "maxclients": ("0", "100", "4294967296"),
    "oom-score-adj": ("maybe", "no"),
}



def without_clock(out):
    """The output of --check-system without its checks of the clock, which depend on the load."""
    return re.sub(rb"(?m)^\[(?:slow|xen)-clocksource\][^\[]*", b"", out)

class Beside(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.servers = cls.stack.enter_context(pair())
        cls.clients = [server.client() for server in cls.servers]

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def ask(self, *args):
        ours, theirs = (client.ask(*args) for client in self.clients)
        self.assertEqual(ours, theirs, args)
        return ours

    def names(self):
        reply = self.clients[1].ask("CONFIG", "GET", "*")
        return sorted(pair[1].decode() for pair in reply[1][::2])

    def test_the_same_directives_are_there_under_both_names(self):
        ours, theirs = (client.ask("CONFIG", "GET", "*")[1] for client in self.clients)
        self.assertEqual(sorted(ours[::2]), sorted(theirs[::2]))
        self.assertGreater(len(ours), 2 * 180)

    def test_each_has_the_same_default(self):
        own = {"dir", "port", "unixsocket", "logfile", "pidfile"}
        for name in [*self.names(), *HIDDEN]:
            if name not in own:
                with self.subTest(name):
                    self.ask("CONFIG", "GET", name)

    def test_each_takes_and_refuses_the_same_values(self):
        for name in [*self.names(), *HIDDEN]:
            if name in LEFT_OUT:
                continue
            before = [c.ask("CONFIG", "GET", name)[1][1][1] for c in self.clients]
            with self.subTest(name):
                for value in VALUES:
                    self.ask("CONFIG", "SET", name, value)
                    if name not in ("dir", "unixsocket", "logfile"):
                        self.ask("CONFIG", "GET", name)
            for client, value in zip(self.clients, before):
                client.ask("CONFIG", "SET", name, value)

    def test_those_with_a_grammar_read_it_the_same(self):
        for name, values in SPECIAL.items():
            before = [c.ask("CONFIG", "GET", name)[1][1][1] for c in self.clients]
            for value in values:
                with self.subTest(f"{name} {value[:40]}"):
                    self.ask("CONFIG", "SET", name, value)
                    self.ask("CONFIG", "GET", name)
            for client, value in zip(self.clients, before):
                client.ask("CONFIG", "SET", name, value)

    def test_an_amount_of_memory_beyond_64_bits_is_the_largest_amount(self):
        """redis-server 7.0.15 multiplies modulo 2^64 and gets a small limit from a large number."""
        ours = self.clients[0]
        for value in ("99999999999gb", "18446744073709551615kb"):
            ours.ask("CONFIG", "SET", "maxmemory", value)
            self.assertEqual(ours.ask("CONFIG", "GET", "maxmemory")[1][1][1],
                             b"18446744073709551615")
        ours.ask("CONFIG", "SET", "maxmemory", "0")

    def test_several_are_set_together_or_not_at_all(self):
        for args in (["timeout", "7", "hz", "x"], ["timeout", "7", "nope", "1"],
                     ["timeout", "7", "databases", "3"], ["timeout", "7", "TIMEOUT", "8"],
                     ["timeout", "7", "hz"], ["timeout"], ["timeout", "7", "dbfilename", "x"],
                     ["timeout", "7", "bind", "192.0.2.77"], ["timeout", "7", "tls-cluster", "yes"],
                     ["slave-priority", "1", "replica-priority", "2"],
                     ["save", "1 1", "timeout", "7", "save", ""]):
            with self.subTest(args):
                self.ask("CONFIG", "SET", *args)
                self.ask("CONFIG", "GET", "timeout")
                self.ask("CONFIG", "GET", "replica-priority")
                self.ask("PING")
        self.ask("CONFIG", "SET", "timeout", "9", "hz", "20", "save", "")
        self.assertEqual(self.ask("CONFIG", "GET", "hz"), ("*", [("$", b"hz"), ("$", b"20")]))

    def test_patterns_and_spellings_ask_for_names(self):
        for args in (["TimeOut"], ["[t]imeout"], ["nope"], ["key-load-delay"], ["key-load-dela?"],
                     ["slave-prio*"], ["timeout", "timeout"], ["TIMEOUT", "timeou[t]"]):
            with self.subTest(args):
                self.ask("CONFIG", "GET", *args)
        for client in self.clients:
            client.command("HELLO", 3)
        self.assertEqual(self.ask("CONFIG", "GET", "timeout")[0], "%")
        for client in self.clients:
            client.command("HELLO", 2)

    def test_help_and_unknown_subcommands(self):
        for args in (["HELP"], ["NOPE"], [], ["GET"], ["SET"], ["REWRITE"], ["REWRITE", "x"],
                     ["RESETSTAT"], ["HELP", "x"]):
            with self.subTest(args):
                if args != ["REWRITE"]:
                    self.ask("CONFIG", *args)


# Lines of a file; an error names its line. An accepted line ends the start at the missing port.
LINES = (
    "foo bar", "timeout", "timeout 1 2", 'timeout "1', "# c\n\n  timeout  x  ",
    "rename-command foo bar", "rename-command get set", "rename-command get",
    "rename-command get g3t\nrename-command set g3t", "include nope*.conf", "include", "user",
    "sentinel x", "a.b", "save 10", "dir /nope", "lua-replicate-commands yes", "replicaof a",
    "replicaof a x", "replicaof a 70000", "cluster-enabled yes\nreplicaof a 1", "loglevel foo",
    "dbfilename a/b", "appendfilename a/b", "appenddirname a/b", 'appendfilename ""',
    'appenddirname ""', 'dbfilename ""', "loadmodule", "bind", 'bind ""',
    "bind 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", "client-output-buffer-limit normal 0 0",
    "syslog-facility FOO", "timeout '\\x31'", 'timeout "\\x31"x', 'timeout\t"\\x31"\t',
    'save 10 1 "20 2"', 'save "10 1 20 2"', 'shutdown-on-sigterm "save now"', '"timeout" 3',
    "TimeOut 3", "logfile /nope/x", "proc-title-template {x}", "activedefrag yes", "databases 0",
    "cluster-announce-hostname a_b", "save", 'save ""\nsave 1 1', 'timeout ""', '""', "timeout 'a",
    "unixsocketperm 999", "unixsocketperm 7777", "maxmemory-clients 101%", "io-threads 129",
    "tcp-backlog -1", "supervised maybe", "enable-debug-command perhaps",
)

ARGUMENTS = (
    ["--timeout", "x"], ["--save", "--timeout", "x"], ["--save", "", "--timeout", "x"],
    ["--timeout"], ["--timeout", "--hz"], ["--timeout", "3", "foo"], ["--timeout 3", "--hz", "x"],
    ["--timeout 3 4"], ["--save", "10", "1", "20", "2", "--timeout", "x"],
    ["--proc-title-template", "--x"], ["--Save", "--timeout", "x"],
    ["--bind", "1", "2", "--hz", "x"],
    ["--timeout", "-1"], ["--"], ["-x"], ["--client-output-buffer-limit normal 0 0", "x"],
    ["--requirepass", 'a b"c', "--timeout", "x"], ["--requirepass", "a\nb\x01", "--timeout", "x"],
    ["--timeout ", "4", "--hz", "x"], ["--shutdown-on-sigint", "save", "--now"],
)


class Largest(unittest.TestCase):
    """Directives with the largest number that they take."""

    WORDS = (("SET", "k", "v", "EX", 100), ("HSET", "h", *range(40)), ("XADD", "x", "*", "f", "v"),
             ("ZADD", "z", 1, "m"), ("SADD", "s", *range(9)), ("RPUSH", "l", *range(300)),
             ("PFADD", "p", *range(300)), ("EVAL", "return redis.call('ping')", 0), ("GET", "k"),
             ("BGREWRITEAOF",), ("CLIENT", "TRACKING", "ON"), ("MEMORY", "DOCTOR"),
             ("LATENCY", "DOCTOR"), ("SLOWLOG", "GET"), ("ACL", "LOG"), ("BLPOP", "none", 0.1))

    @staticmethod
    def set_all(client):
        """The names of those that take such a number."""
        taken = set()
        for name in client.command("CONFIG", "GET", "*")[::2]:
            if name.decode() in LEFT_OUT or name.endswith(b"-to-write"):
                continue  # no writes without so many replicas
            for number in (2 ** 64 - 1, 2 ** 63 - 1, 2 ** 31 - 1):
                if client.ask("CONFIG", "SET", name, number)[0] == "+":
                    taken.add(name)
                    break
        return taken

    def test_a_server_works_with_them_and_keeps_its_backlog(self):
        with Redoubt() as server:
            client = server.client()
            with Redoubt({"replicaof": ["127.0.0.1", str(server.port)]}):
                wait_for(lambda: "state=online" in server.info("replication").get("slave0", ""))
            wait_for(lambda: server.info("replication")["connected_slaves"] == "0")
            self.assertIn(b"repl-backlog-ttl", self.set_all(client))
            for words in self.WORDS:
                client.command(*words)
            end = time.monotonic() + 2.5  # its cron looks at the backlog every second
            wait_for(lambda: time.monotonic() > end, step=0.5)
            self.assertEqual(server.info("replication")["repl_backlog_active"], "1")


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-config-")
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def text(self, name):
        with contextlib.suppress(FileNotFoundError), \
                open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def run_one(self, which, args, stdin=b""):
        done = subprocess.run([which, *args], cwd=self.folder, input=stdin, timeout=600,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        return done.returncode, done.stderr.decode()

    def both(self, args, stdin=b""):
        ours = self.run_one(program(), args, stdin)
        theirs = of_reference((args, stdin, self.text("t.conf")),
                              lambda which: self.run_one(which, args, stdin))
        self.assertEqual(ours, theirs, args)
        return ours

    def test_lines_are_refused_with_the_same_words(self):
        refused = 0
        for text in LINES:
            with self.subTest(text):
                self.write("t.conf", text + "\n")
                status, words = self.both(["t.conf", "--port", "0"])
                self.assertEqual(status, 1)
                refused += "FATAL CONFIG FILE ERROR" in words
        self.assertGreater(refused, 40)

    def test_options_become_lines_as_they_do_there(self):
        for args in ARGUMENTS:
            with self.subTest(args):
                self.both([*args, "--port", "0", "--nope"])

    def test_lines_are_counted_through_files_input_and_options(self):
        self.write("l.conf", "timeout 1\ntimeout 2\n")
        for args in (["l.conf", "--hz", "x"], ["-", "--hz", "x"], ["l.conf", "--hz", "x", "-"]):
            with self.subTest(args):
                self.both(args, b"timeout 3\ntimeout 4\n")

    def test_a_missing_file_is_logged(self):
        for args in (["nope.conf"], ["--include", "nope.conf"]):
            done = subprocess.run([program(), *args], cwd=self.folder, stdout=subprocess.PIPE,
                                  check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout.decode(), r"# Fatal error, can't open config file '\S*"
                             r"nope.conf': No such file or directory\n")

    def test_included_files_are_read_and_patterns_may_match_none(self):
        self.write("a.inc", "timeout 11")
        self.write("b.inc", "hz 22")
        with Redoubt(args=["--include", os.path.join(self.folder, "*.inc"),
                           "--include", os.path.join(self.folder, "*.none")]) as server:
            c = server.client()
            self.assertEqual(c.command("CONFIG", "GET", "timeout")[1], b"11")
            self.assertEqual(c.command("CONFIG", "GET", "hz")[1], b"22")

    def test_a_file_that_includes_itself_is_refused(self):
        self.write("self.conf", "include self.conf\n")
        status, words = self.run_one(program(), ["self.conf"])
        self.assertEqual(status, 1)
        self.assertIn("nested include", words)

    def directives(self, *file):
        port = free_port()
        process = subprocess.Popen([program(), *file, "--port", str(port), "--dir", self.folder],
                                   stdout=subprocess.DEVNULL)
        try:
            def connected():
                with contextlib.suppress(OSError):
                    return Client(("127.0.0.1", port))
            with contextlib.closing(wait_for(connected)) as client:
                reply = client.command("CONFIG", "GET", "*")
        finally:
            process.terminate()
            process.wait(600)
        values = {k.decode(): v.decode() for k, v in zip(reply[::2], reply[1::2])}
        return {name: value for name, value in values.items() if name != "port"}

    def test_the_file_of_the_documents_says_what_holds_anyway(self):
        path = os.path.join(SOURCE, "docs", "redoubt-server.conf")
        values = self.directives()
        self.assertEqual(self.directives(path), values)
        with open(path, encoding="utf-8") as file:
            reported = {line.lstrip("#").split()[0] for line in file if line.strip("# \n")}
        older = re.compile(r"slave|ziplist|lua-time-limit")
        self.assertEqual({name for name in set(values) - reported if not older.search(name)}, set())

    def test_the_unit_can_write_the_folder_of_its_configuration_and_no_other_in_etc(self):
        with open(os.path.join(SOURCE, "packaging", "redoubt-server.service"),
                  encoding="utf-8") as file:
            lines = [line.strip().split("=", 1) for line in file if "=" in line]
        config = next(v for k, v in lines if k == "ExecStart").split()[1]
        writable = [path.lstrip("-") for k, v in lines if k == "ReadWritePaths"
                    for path in v.split()]
        self.assertEqual(writable, [os.path.dirname(config)])
        self.assertEqual(writable, ["/etc/redoubt-server"])
        with open(os.path.join(SOURCE, "packaging", "debian", "redoubt-server.postinst"),
                  encoding="utf-8") as file:
            self.assertIn("chown redoubt:redoubt " + writable[0], file.read())

    def test_what_cannot_be_kept_ends_the_start(self):
        for line in ("user default on #00 ~* &* +@all", "loadmodule /nope.so",
                     "aclfile nope.acl"):
            with self.subTest(line):
                self.write("t.conf", line + "\n")
                self.assertEqual(self.run_one(program(), ["t.conf", "--port", "0"])[0], 1)


class Rewrite(unittest.TestCase):
    FILE = """# head
timeout 30
slave-priority 50
lua-time-limit 100


save 900 1
save 300 10
maxmemory 100mb
client-output-buffer-limit slave 256mb 64mb 60
# tail
hash-max-ziplist-entries 100
requirepass "a b"
"""

    def rewritten(self, which):
        with tempfile.TemporaryDirectory(prefix="redoubt-rewrite-") as folder:
            port = free_port()
            path = os.path.join(folder, "r.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.FILE)
            os.chmod(path, 0o600)
            process = subprocess.Popen([which, path, "--dir", folder, "--port", str(port)],
                                       stdout=subprocess.DEVNULL)
            try:
                texts = [self.change(port, path)]
                mode = os.stat(path).st_mode & 0o777
            finally:
                process.terminate()
                self.assertEqual(process.wait(600), 0)
            return texts[0].replace(folder, "DIR").replace(str(port), "PORT"), mode

    def change(self, port, path):
        def cli(*args):
            return ask_cli(port, *args).strip()
        wait_for(lambda: cli("PING") == b"PONG")
        self.assertEqual(cli("CONFIG", "REWRITE"), b"OK")
        set_all = ["timeout", "0", "save", "", "maxmemory", "1500", "maxmemory-clients", "5%",
                   "notify-keyspace-events", "KEA", "appendfsync", "always", "tls-ciphers", 'a"\n',
                   "client-output-buffer-limit", "pubsub 1mb 2kb 3", "shutdown-on-sigterm",
                   "save now", "proc-title-template", "x {title} y", "key-load-delay", "1"]
        self.assertEqual(cli("CONFIG", "SET", *set_all), b"OK")
        self.assertEqual(cli("CONFIG", "REWRITE"), b"OK")
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_comments_stay_and_values_are_those_that_redis_server_writes(self):
        ours, mode = self.rewritten(program())
        theirs, _ = of_reference("rewritten", self.rewritten)
        head = ours[: ours.index("# Generated by CONFIG REWRITE")]
        self.assertEqual(head.rstrip(), theirs[: theirs.index("# Generated")].rstrip())

        # redis-server also writes percentiles that have their default.
        def lines(text):
            return sorted(line for line in text.splitlines()
                          if line and not line.startswith("latency-tracking-info"))
        self.assertEqual(lines(ours), lines(theirs))
        self.assertEqual(mode, 0o600)

    def test_a_server_reads_what_the_other_wrote(self):
        with tempfile.TemporaryDirectory(prefix="redoubt-rewrite-") as folder:
            text, _ = of_reference("rewritten", self.rewritten)
            path = os.path.join(folder, "theirs.conf")
            port = free_port()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("DIR", folder).replace("PORT", str(port)))
            process = subprocess.Popen([program(), path], stdout=subprocess.PIPE)
            try:
                def get():
                    return ask_cli(port, "CONFIG", "GET", "maxmemory-clients")
                wait_for(lambda: get() == b"maxmemory-clients\n5%\n")
            finally:
                process.terminate()
                process.communicate(timeout=600)


class Process(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-process-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def start(self, *args, env=None):
        return subprocess.Popen(
            [program(), "--port", str(free_port()), "--dir", self.folder, "--logfile",
             self.path("log"), *args], env={**os.environ, **(env or {})})

    def test_the_version_is_printed_as_programs_read_it(self):
        out = subprocess.run([program(), "--version"], stdout=subprocess.PIPE, check=True).stdout
        self.assertRegex(out.decode(), r"^Redis server v=7\.0\.15 sha=\S+ malloc=\S+ bits=\d+ "
                         r"build=\S+ redoubt=\S+\n$")
        for letter in ("-v", "-V"):
            again = subprocess.run([program(), letter], stdout=subprocess.PIPE, check=True).stdout
            self.assertEqual(again, out)

    def test_words_after_an_option_that_needs_no_configuration_do_not_matter(self):
        for option in ("-v", "--version", "-h", "--help", "--check-system"):
            def run(which, *more, option=option):
                return subprocess.run([which, option, *more], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600,
                                      check=False)
            runs = run(program()), run(program(), "x", "--port")
            timeless = [without_clock(one.stdout) for one in runs]
            self.assertEqual(*timeless)
            self.assertEqual(runs[0].stderr, runs[1].stderr)
            theirs = of_reference(option, lambda which, run=run:
                                  run(which, "x", "--port").returncode)
            if option == "--check-system":
                self.assertEqual(runs[1].returncode, int(b"WARNING" in runs[1].stdout))
            if option != "--check-system" or b"WARNING" in timeless[1]:
                self.assertEqual(runs[1].returncode, theirs)

    def test_the_log_begins_as_that_of_redis_server_and_names_the_process(self):
        with Redoubt({"always-show-logo": "yes"}) as server:
            log = server.log
            pid = server.pid
        self.assertRegex(log, rf"(?s)^{pid}:C \d\d \w{{3}} \d{{4}} \d\d:\d\d:\d\d\.\d{{3}} # "
                         r"oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo\n.*"
                         rf" PID: {pid}\n.*{pid}:M .* # Server initialized\n.*"
                         rf"{pid}:M .* \* Ready to accept connections\n")

    def test_the_first_lines_of_a_replica_have_its_letter(self):
        with Redoubt({"replicaof": f"127.0.0.1 {free_port()}"}) as server:
            letters = {line.split(" ")[0].split(":")[1] for line in server.log.splitlines()
                       if "Configuration loaded" not in line and " PID: " not in line
                       and line.startswith(f"{server.pid}:") and ":C " not in line}
        self.assertEqual(letters, {"S"})

    def test_a_daemon_writes_its_pid_and_takes_it_away(self):
        starter = self.start("--daemonize", "yes", "--pidfile", self.path("pid"))
        self.assertEqual(starter.wait(600), 0)
        wait_for(lambda: "Ready to accept" in self.read("log"))
        pid = int(self.read("pid"))
        self.assertNotEqual(pid, starter.pid)
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: "bye bye" in self.read("log"))
        wait_for(lambda: not os.path.exists(self.path("pid")))

    def test_the_pid_file_goes_in_a_crash_and_when_loading_fails(self):
        for ending in (["DEBUG", "SEGFAULT"], ["DEBUG", "PANIC"]):
            for kind in (Redoubt, Redis):
                with self.subTest(kind=kind.name, ending=ending), \
                        tempfile.TemporaryDirectory() as d:
                    path, log = os.path.join(d, "pid"), os.path.join(d, "log")
                    port = free_port()
                    args = [kind().program(), "--daemonize", "yes", "--pidfile", path, "--logfile",
                            log, "--dir", d, "--port", str(port), "--enable-debug-command", "yes"]
                    self.assertEqual(subprocess.run(args, check=False).returncode, 0)

                    def connected(port=port):
                        with contextlib.suppress(OSError, ServerDied):
                            c = Client(("127.0.0.1", port))
                            return c if c.ask("PING")[0] == "+" else None
                    with contextlib.closing(wait_for(connected)) as c:
                        self.assertTrue(os.path.exists(path))
                        c.send(*ending)
                        self.assertTrue(c.closed())
                    wait_for(lambda path=path: not os.path.exists(path))

    def test_a_pid_file_of_another_process_stays(self):
        with open(self.path("dump.rdb"), "wb") as file:
            file.write(b"REDIS0010\x00\x03")  # loading it ends the process
        process = self.start("--pidfile", self.path("pid"))
        self.assertNotEqual(process.wait(600), 0)
        self.assertFalse(os.path.exists(self.path("pid")))
        os.unlink(self.path("dump.rdb"))
        process = self.start("--pidfile", self.path("pid"))
        wait_for(lambda: os.path.exists(self.path("pid")) and
                 self.read("pid") == f"{process.pid}\n")
        wait_for(lambda: self.read("log").count("Ready to accept") == 1)
        with open(self.path("pid"), "w", encoding="utf-8") as file:
            file.write("1\n")
        process.terminate()
        process.wait(600)
        self.assertEqual(self.read("pid"), "1\n")

    def test_systemd_is_notified_when_it_is_ready_and_when_it_stops(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.bind(self.path("notify"))
            notified.settimeout(600)
            process = self.start("--supervised", "auto", env={"NOTIFY_SOCKET": self.path("notify")})
            try:
                texts = [notified.recv(4096).decode() for _ in range(2)]
                process.terminate()
                texts.append(notified.recv(4096).decode())
            finally:
                process.kill()
                process.wait()
        self.assertIn("READY=1", "".join(texts[:2]).split("\n"))
        self.assertNotIn("READY=1", texts[0])
        self.assertEqual(texts[2], "STOPPING=1\n")

    def test_systemd_is_told_of_the_link_to_the_master(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified, Redoubt() as master:
            notified.bind(self.path("notify"))
            notified.settimeout(600)
            link = f"STATUS=Ready to accept connections. The link to the master 127.0.0.1:" \
                   f"{master.port} is "

            def wait_for_text(text):
                while notified.recv(4096).decode() != text:
                    pass
            process = self.start("--supervised", "systemd",
                                 "--replicaof", f"127.0.0.1 {master.port}",
                                 env={"NOTIFY_SOCKET": self.path("notify")})
            try:
                wait_for_text(link + "down\n")
                wait_for_text(link + "up\n")
                port = master.port
                master.kill()
                wait_for_text(link + "down\n")
                master.start_at(port)
                wait_for_text(link + "up\n")
                replica = master.info("replication")["slave0"]
                own = dict(part.split("=") for part in replica.split(","))["port"]
                with contextlib.closing(Client(("127.0.0.1", int(own)))) as client:
                    client.command("REPLICAOF", "NO", "ONE")
                wait_for_text("STATUS=Ready to accept connections\n")
            finally:
                process.kill()
                process.wait()

    def test_the_title_is_what_the_template_says(self):
        with Redoubt({"proc-title-template": "{title} at {port}"}) as server:
            c = server.client()

            def title():
                with open(f"/proc/{server.pid}/cmdline", "rb") as file:
                    return file.read().rstrip(b"\0").decode()
            self.assertRegex(title(), r"redoubt-server at \d+$")
            c.command("CONFIG", "SET", "proc-title-template", "short {server-mode}")
            self.assertEqual(title(), "short")

    def test_children_have_titles_of_their_own(self):
        with Redoubt({"proc-title-template": "{title} at {port}",
                      "rdb-key-save-delay": "10000000"}) as server:
            c = server.client()
            c.command("SET", "k", "v")

            def title():
                child = child_of(server)
                with open(f"/proc/{child}/cmdline", "rb") as file:
                    return file.read().rstrip(b"\0").decode()
            for command, name in (("BGSAVE", "redis-rdb-bgsave"),
                                  ("BGREWRITEAOF", "redis-aof-rewrite")):
                c.command(command)
                wait_for(lambda name=name: title() == f"{name} at {server.port}")
                os.kill(child_of(server), signal.SIGUSR1)
                wait_for(lambda: not child_of(server))

    def test_a_crash_is_reported_and_ends_by_its_signal(self):
        process = self.start()
        wait_for(lambda: "Ready to accept" in self.read("log"))
        process.send_signal(signal.SIGSEGV)
        self.assertEqual(process.wait(600), -signal.SIGSEGV)
        log = self.read("log")
        self.assertRegex(log, r"(?s)=== REDIS BUG REPORT START: Cut & paste starting from here ==="
                         r".*Redis 7\.0\.15 crashed by signal: 11, si_code: 0\n"
                         r".*Killed by PID: \d+, UID: \d+\n.*STACK TRACE.*Backtrace:\n.*server_run"
                         r".*=== REDIS BUG REPORT END")

    def test_without_a_crash_log_nothing_is_reported(self):
        process = self.start("--crash-log-enabled", "no")
        wait_for(lambda: "Ready to accept" in self.read("log"))
        process.send_signal(signal.SIGSEGV)
        self.assertEqual(process.wait(600), -signal.SIGSEGV)
        self.assertNotIn("BUG REPORT", self.read("log"))

    def test_a_report_has_the_sections_of_the_reference(self):
        sections = []
        with pair() as servers:
            for server in servers:
                with contextlib.suppress(Exception):
                    server.client().command("DEBUG", "SEGFAULT")
                server.process.wait(600)
                found = re.findall(r"^------ ([A-Z ]+) ------$", server.log, re.M)
                sections.append([name for name in found if name != "REGISTERS"])
            log = servers[0].log
        # The reference itself may crash once more while it tests its memory.
        upto = sections[1].index("FAST MEMORY TEST") + 1
        self.assertEqual(sections[0][:upto], sections[1][:upto])
        self.assertEqual(sections[0][upto:], ["DUMPING CODE AROUND EIP"])
        self.assertIn("Fast memory test PASSED", log)
        self.assertRegex(log, r"(?m)^list-compress-depth 0$")
        self.assertIn("(debugCommand+", log)
        self.assertRegex(log, r"dump of function \(hexdump of [1-9]\d* bytes\):\n[0-9a-f]{32}")

    def test_a_report_skips_the_memory_test_if_configured(self):
        with Redoubt({"crash-memcheck-enabled": "no"}) as server:
            with contextlib.suppress(Exception):
                server.client().command("DEBUG", "SEGFAULT")
            server.process.wait(600)
            self.assertNotIn("FAST MEMORY TEST", server.log)
            self.assertIn("BUG REPORT END", server.log)

    def test_the_port_of_another_ends_the_start(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            process = self.start("--bind", "127.0.0.1", "--port", str(taken.getsockname()[1]))
            self.assertEqual(process.wait(600), 1)
        self.assertRegex(self.read("log"), r"# Failed listening on port \d+ \(TCP\), aborting\.")


if __name__ == "__main__":
    unittest.main()
