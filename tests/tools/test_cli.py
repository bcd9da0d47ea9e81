"""The manners that every tool shares: help, usage errors, names, JSON, streams, signals."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import tempfile
import unittest

REDOUBT = os.environ["REDOUBT"]


def run(*args, argv0=None, env=None, **more):
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE")}
    clean.update(env or {})
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.run(
        [argv0 or REDOUBT, *args],
        executable=REDOUBT,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=clean,
        check=False,
        timeout=600,
        **more,
    )


def tools():
    names = re.findall(r"^  ([a-z][a-z0-9-]+)  ", run("help").stdout, re.M)
    return [name for name in names if name != "help"]


# Their arguments are targets of the configuration.
OF_TARGETS = ("archive", "backup", "browse", "check-config", "copy", "list", "pause",
              "prune", "restore", "resume", "unlock", "verify")


def in_bash(script, *args):
    return subprocess.run(
        ["bash", "-c", script, "bash", REDOUBT, *args],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )


class Help(unittest.TestCase):
    def check_screen(self, done, height=24):
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertLessEqual(len(lines), height, done.stdout)
        self.assertLessEqual(max(map(len, lines)), 80, done.stdout)

    def test_the_main_help_is_a_line_for_each_tool(self):
        self.check_screen(run("help"), len(tools()) + 12)
        self.assertEqual(run("help").stdout, run("--help").stdout)

    def test_every_tools_help_fits_a_screen_and_ends_with_an_example(self):
        self.assertTrue(tools())
        for tool in tools():
            with self.subTest(tool=tool):
                done = run(tool, "--help")
                self.check_screen(done)
                self.assertIn(f"usage: redoubt {tool} ", done.stdout)
                self.assertRegex(done.stdout, rf"\nExample:\n  .*\bredoubt {tool} .*\n$")
                self.assertEqual(run("help", tool).stdout, done.stdout)

    def test_help_all_describes_what_help_only_names(self):
        seen = set()
        for tool in tools():
            brief = re.search(r"(?m)^  also:((?:.*\n)(?: {3}.*\n)*)", run(tool, "--help").stdout)
            whole = run(tool, "--help-all").stdout
            for name in re.findall(r"(?<!\S)--[\w-]+", brief[1] if brief else ""):
                with self.subTest(tool=tool, name=name):
                    self.assertRegex(whole, rf"(?m)^ {{2,6}}(?:-\w, )?{name}\b\S*"
                                            r"(?: +|\n {20,})\S")
                    seen.add((tool, name))
        self.assertIn(("check-aof", "--no-copy"), seen)
        self.assertGreater(len(seen), 50)

    def test_help_with_json_is_still_help(self):
        for tool in tools():
            with self.subTest(tool=tool):
                self.assertEqual(run(tool, "--json", "--help").stdout, run(tool, "-h").stdout)

    def test_version(self):
        done = run("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^redoubt \d+\.\d+\.\d+\n$")
        for tool in tools():
            self.assertEqual(run(tool, "--version").stdout, done.stdout)
            self.assertEqual(run(tool, "-V").stdout, done.stdout)
        self.assertEqual(run("-V").stdout, done.stdout)
        self.assertEqual(run("help", "-V").stdout, done.stdout)

    def test_the_tool_version_prints_features_and_libraries(self):
        done = run("version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith(run("--version").stdout))
        out = json.loads(run("version", "--json").stdout)
        self.assertEqual("redoubt " + out["version"] + "\n", run("--version").stdout)
        self.assertEqual(out["features"]["rdb_versions"]["valkey"]["min"], 80)
        self.assertIn("zstd", out["features"]["compression"])
        self.assertEqual(out["features"]["repositories"], ["folder", "sftp", "s3", "gs", "azure",
                                                           "webdav"])
        self.assertIs(out["features"]["heartbeats"], True)
        self.assertIs(out["features"]["static"], False)
        self.assertEqual(set(out["libraries"]), {"zlib", "liblz4", "libzstd", "libcrypto",
                                                 "libssl", "libcurl", "inih", "lua5.1",
                                                 "sqlite3", "libmicrohttpd"})
        for name, version in out["libraries"].items():
            self.assertRegex(version, r"^\d+\.\d+|^r?\d+$", name)
            self.assertIn(f"{name} {version}", done.stdout)


class Usage(unittest.TestCase):
    def check_refused(self, done, *words):
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        for word in words:
            self.assertIn(word, done.stderr)

    def test_without_a_tool_the_tools_are_listed(self):
        done = run()
        self.check_refused(done, "usage: redoubt TOOL", "check-rdb")
        self.assertEqual(done.stderr, run("--help").stdout)

    def test_a_file_instead_of_a_tool(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, data, tool in (("dump.rdb", b"REDIS0011", "check-rdb"),
                                     ("empty", b"", "check-rdb"),
                                     ("a.aof", b"*1\r\n$4\r\nPING\r\n", "check-aof"),
                                     ("a.manifest", b"file a seq 1 type i\n", "check-aof")):
                path = os.path.join(folder, name)
                with open(path, "wb") as f:
                    f.write(data)
                self.check_refused(run(path), f'missing tool: "{path}" is a file',
                                   f"hint: redoubt {tool} {path}\n")
            self.check_refused(run(folder), f"hint: redoubt check-aof {folder}\n")
            self.check_refused(run(path + "x"), "unknown tool", "hint: redoubt --help")

    def test_an_output_without_an_input(self):
        self.check_refused(run("check-rdb", "--salvage", "dump.rdb"),
                           "missing argument: FILE; dump.rdb is the OUT of --salvage")

    def test_an_empty_file_is_empty(self):
        with tempfile.NamedTemporaryFile() as f:
            done = run("check-rdb", f.name)
            self.assertEqual(done.returncode, 1)
            self.assertIn("the input is empty", done.stderr)
            self.assertNotIn("ends here", done.stdout + done.stderr)

    def test_an_unknown_tool_is_reported_the_nearest(self):
        self.check_refused(run("hlep"), 'unknown tool "hlep"', "did you mean help?")
        self.check_refused(run("help", "nothing-like-it"), "unknown tool")

    def test_control_bytes_of_the_command_line_are_escaped(self):
        self.check_refused(run("\x1b[31m"), r'"\x1b[31m"')

    def test_an_unknown_option(self):
        for tool in tools():
            with self.subTest(tool=tool):
                lead = f"redoubt {tool}: unknown option"
                self.check_refused(run(tool, "--qiet"), f"{lead} --qiet; did you mean --quiet?")
                self.check_refused(run(tool, "--xyzzy-plugh=1"), f"{lead} --xyzzy-plugh\n")
                self.check_refused(run(tool, "-~"), f"{lead} -~\n")
                self.check_refused(run(tool, "--json=yes"), "option --json takes no value")
                self.check_refused(run(tool, "--color"), "option --color requires")
                self.check_refused(run(tool, "--color=blue"),
                                   '--color: "blue" is not one of auto, always')

    def test_a_missing_argument(self):
        for tool in tools():
            if tool in ("demo", "version"):  # they need none
                continue
            with self.subTest(tool=tool):
                self.check_refused(run(tool), f"redoubt {tool}: ")

    def test_a_range_of_times_that_ends_before_it_begins(self):
        for tool, begin in (("history", "since"), ("undo", "from"), ("show", "from"),
                            ("replay", "from")):
            with self.subTest(tool=tool):
                args = [tool, "x", f"--{begin}", "2026-01-02T00:00:00Z", "--until"]
                self.check_refused(run(*args, "2026-01-01T23:59:59Z"),
                                   f"--until (2026-01-01T23:59:59Z) is before --{begin} "
                                   "(2026-01-02T00:00:00Z)")
                self.assertNotIn("is before", run(*args, "2026-01-02T00:00:00Z").stderr)

    def test_a_usage_error_is_reported_in_json_too(self):
        for tool in tools():
            with self.subTest(tool=tool):
                done = run(tool, "--xyzzy-plugh", "--json")
                reported = json.loads(done.stdout)
                self.assertEqual(done.returncode, 2)
                self.assertEqual((reported["redoubt"], reported["tool"]), (1, tool))
                self.assertEqual((reported["error"]["code"], reported["exit_status"]), ("usage", 2))

    def test_a_missing_file_is_an_io_error_with_its_name(self):
        for tool in tools():
            # They read no file that is named so.
            if tool in ("capture", "demo", "migrate", "version", *OF_TARGETS):
                continue
            with self.subTest(tool=tool):
                args = {
                    "blame": ["k", "--in"],
                    "cluster": ["nodes-conf"],
                    "convert": ["--to", "ndjson"],
                    "diff": ["no-such-file.rdb"],
                    "history": ["k", "--in"],
                    "seal": ["--key-command", "echo " + 64 * "0"],
                    "split": ["--by", "db", "-o", "no-such-folder/out"],
                    "undo": ["--command", "1:1", "--to", "redis://127.0.0.1:1", "--in"],
                    "unseal": ["--key-command", "echo " + 64 * "0"],
                }.get(tool, [])
                after = ["redis://127.0.0.1:1"] if tool == "replay" else []
                done = run(tool, *args, "no-such-file.rdb", *after)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("no-such-file.rdb", done.stderr)
                self.assertIn("No such file", done.stderr)


class Names(unittest.TestCase):
    def test_a_link_is_the_tool(self):
        for name in ("check-rdb", "/usr/bin/check-rdb", "./check-rdb"):
            done = run("--help", argv0=name)
            self.assertEqual((done.returncode, done.stdout), (0, run("check-rdb", "-h").stdout))

    def test_a_servers_name_is_the_compatible_mode(self):
        for name in ("redis-check-rdb", "valkey-check-rdb"):
            done = run("no-such-file.rdb", argv0=name)
            self.assertEqual(done.returncode, 1)


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.long = os.path.join(cls.folder, "long.aof")
        with open(cls.long, "wb") as file:
            file.write(b"*1\r\n$4\r\nPING\r\n" * 20000)

    def test_a_closed_stdout_is_an_io_error(self):
        done = in_bash('"$1" help >&-')
        self.assertEqual(done.returncode, 3)
        self.assertIn("standard output", done.stderr)

    def test_a_full_stdout_is_an_io_error(self):
        done = in_bash('"$1" help >/dev/full')
        self.assertEqual(done.returncode, 3)
        self.assertIn("No space left", done.stderr)

    def test_what_is_lost_before_the_end_is_an_io_error(self):
        done = in_bash('"$1" show "$2" >/dev/full', self.long)
        self.assertEqual(done.returncode, 3)
        self.assertIn("standard output: not all output could be written", done.stderr)

    def test_nor_is_one_that_went_away_where_sigpipe_is_ignored(self):
        done = in_bash('trap "" PIPE; set -o pipefail; "$1" show "$2" | head -1', self.long)
        self.assertEqual((done.returncode, done.stderr), (3, ""))

    def test_a_reader_that_went_away_is_not_worth_a_word(self):
        done = in_bash('set -o pipefail; { sleep 0.2; "$1" help; } | true')
        self.assertEqual((done.returncode, done.stderr), (128 + 13, ""))

    def test_nothing_is_coloured_in_a_pipe_unless_asked_for(self):
        plain = run("hlep").stderr
        self.assertNotIn("\x1b", plain)
        forced = run("hlep", env={"CLICOLOR_FORCE": "1"}).stderr
        self.assertIn("\x1b[31m", forced)
        self.assertEqual(re.sub(r"\x1b\[\d+m", "", forced), plain)
        self.assertEqual(run("hlep", env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}).stderr, plain)

    def test_color_on_the_command_line_wins(self):
        for tool in tools():
            with self.subTest(tool=tool):
                env = {"NO_COLOR": "1"}
                self.assertIn("\x1b[31m", run(tool, "--color=always", "-~", env=env).stderr)
                env = {"CLICOLOR_FORCE": "1"}
                self.assertNotIn("\x1b", run(tool, "--color=never", "-~", env=env).stderr)


class Foreign(unittest.TestCase):
    """A file of another kind, where a snapshot was expected."""

    KINDS = [
        (b"\xfd7zXZ\x00\x00\x04", "it is compressed with xz"),
        (b"BZh91AY&SY", "it is compressed with bzip2"),
        (b"PK\x03\x04" + bytes(30), "it is compressed with zip"),
        (b"*1\r\n$4\r\nPING\r\n", "append-only log: use redoubt check-aof"),
        (b"#TS:1700000000\r\n*1\r\n$4\r\nPING\r\n", "append-only log: use redoubt check-aof"),
        (b"file a.1.base.rdb seq 1 type b\n", "manifest of an append-only log"),
        (b'{"db":0,"key":"a","type":"string","value":"b"}\n', "JSON lines: use redoubt convert"),
    ]

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "file")

    def test_the_hint_says_what_it_looks_like_and_who_reads_it(self):
        for data, words in self.KINDS:
            with open(self.path, "wb") as file:
                file.write(data)
            with self.subTest(words):
                done = run("check-rdb", self.path)
                self.assertEqual(done.returncode, 4)
                self.assertRegex(done.stderr, f"hint: .*{words}")
                self.assertIn("another kind of file: ", done.stdout)
                if "compressed" in words:
                    self.assertRegex(run("stat", self.path).stderr, f"hint: .*{words}")

    def test_a_tool_does_not_point_to_itself(self):
        with open(self.path, "wb") as file:
            file.write(b"*1\r\nPING\r\n")
        self.assertNotIn("looks like", run("check-aof", self.path).stderr)

    def test_a_damaged_snapshot_is_one_for_check_rdb(self):
        with open(self.path, "wb") as file:
            file.write(b"REDIS0011\xfe\x00\x00\x01k\xc3\x05\x05" + bytes(4))
        for args in (["convert", "--to", "csv"], ["stat"], ["split", "--by", "db", "-o",
                     os.path.join(self.folder, "out")], ["diff", self.path]):
            with self.subTest(args[0]):
                self.assertIn("hint: use redoubt check-rdb for details",
                              run(*args, self.path).stderr)
        for args in (["check-rdb"], ["check-aof"]):
            self.assertNotIn("check-rdb for details", run(*args, self.path).stderr)

    def test_what_looks_like_nothing_has_no_hint(self):
        with open(self.path, "wb") as file:
            file.write(b"Dear diary, ")
        self.assertNotIn("hint", run("check-rdb", self.path).stderr)

    def test_a_hint_looks_at_the_argument_and_not_at_the_name_that_is_printed(self):
        # An error prints the first name with an escape sequence: that is the second name.
        named, printed = (os.path.join(self.folder, name) for name in ("\x01.rdb", "\\x01.rdb"))
        for path, data in ((named, b"Dear diary, "), (printed, b"\xfd7zXZ\x00\x00\x04")):
            with open(path, "wb") as file:
                file.write(data)
        self.assertIn("\\x01.rdb", run("stat", named).stderr)
        self.assertNotIn("hint", run("stat", named).stderr)
        self.assertIn("hint: it is compressed with xz", run("stat", printed).stderr)
        os.replace(printed, named)
        self.assertIn("hint: it is compressed with xz", run("stat", named).stderr)

    def test_a_file_of_a_folder_has_no_hint_of_a_file_elsewhere(self):
        log = os.path.join(self.folder, "log")
        os.mkdir(log)
        for path, data in ((os.path.join(log, "a.manifest"), b"file a.1.base.rdb seq 1 type b\n"),
                           (os.path.join(log, "a.1.base.rdb"), b"Dear diary, "),
                           (os.path.join(self.folder, "a.1.base.rdb"), b"\xfd7zXZ\x00\x00\x04")):
            with open(path, "wb") as file:
                file.write(data)
        done = subprocess.run([REDOUBT, "stat", "log"], cwd=self.folder, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("a.1.base.rdb", done.stderr)
        self.assertNotIn("xz", done.stderr)

    def test_a_pipe_is_not_read_again(self):
        # More than the first look takes: what is left begins like a log, too.
        done = in_bash('"$1" stat <(head -c 1000000 /dev/zero | tr "\\0" "*")')
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("looks like", done.stderr)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.empty = os.path.join(self.folder, "empty.rdb")
        with open(self.empty, "wb") as file:
            file.write(b"REDIS0011\xff" + bytes(8))  # a snapshot without keys or checksum

    def tearDown(self):
        shutil.rmtree(self.folder)

    def test_an_existing_output_is_refused_without_force(self):
        out = os.path.join(self.folder, "out.rdb")
        with open(out, "w", encoding="ascii") as file:
            file.write("mine")
        command = ["convert", "--to", "rdb", self.empty, "-o", out]
        done = run(*command)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("hint: use --force to replace it", done.stderr)
        with open(out, encoding="ascii") as file:
            self.assertEqual(file.read(), "mine")
        self.assertEqual(run(*command, "--force").returncode, 0)
        with open(out, "rb") as file:
            self.assertTrue(file.read().startswith(b"REDIS"))

    def end_by_signal(self, number, status):
        out = os.path.join(self.folder, "out.rdb")
        with subprocess.Popen(
            [REDOUBT, "convert", "--to", "rdb", "-", "-o", out],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Under nohup the tests ignore SIGHUP, and so would the tool.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        ) as process:
            process.stdin.write(b"REDIS0011\xfe\x00")
            process.stdin.flush()
            # The output is open before the process waits for the rest of its input.
            for _ in range(3000):
                if self.has_open_in_folder(process.pid):
                    break
                time.sleep(0.02)
            self.assertTrue(self.has_open_in_folder(process.pid))
            self.assertEqual(os.listdir(self.folder), ["empty.rdb"])
            process.send_signal(number)
            self.assertEqual(process.wait(600), status)
        self.assertEqual(os.listdir(self.folder), ["empty.rdb"])

    def has_open_in_folder(self, pid):
        """Whether the process has a file open there, also one without a name."""
        folder = f"/proc/{pid}/fd"
        try:
            links = [os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)]
        except OSError:
            return False
        return any(os.path.dirname(link) == self.folder for link in links)

    def test_each_signal_has_its_status_and_leaves_nothing(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129),
                               (signal.SIGKILL, -9)):
            with self.subTest(number):
                self.end_by_signal(number, status)

    def test_progress_as_json_ends_at_the_size_of_the_file(self):
        done = run("sum", "--progress=json", self.empty)
        lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        size = os.path.getsize(self.empty)
        self.assertEqual(lines[0], {"progress": {"bytes": 0, "total": size}})
        self.assertEqual(lines[-1], {"progress": {"bytes": size, "total": size}})

    def test_a_progress_bar_is_cleared_at_the_end_and_never_drawn_unasked(self):
        bar = run("sum", "-q", "--progress=always", self.empty).stderr
        self.assertIn("100 %", bar)
        self.assertTrue(bar.endswith("\x1b[K"), bar)
        self.assertEqual(run("sum", "-q", self.empty).stderr, "")

    def test_json_on_a_full_stdout_is_an_io_error(self):
        done = in_bash('"$1" sum --json "$2" >/dev/full', self.empty)
        self.assertEqual(done.returncode, 3)
        self.assertIn("No space left", done.stderr)
