"""redoubt check-aof with files that are not logs, with changed line ends, with logs that are being
written, and with links and pipes in the folder of a log.

REDOUBT names the program.
"""

import gzip
import json
import os
import shutil
import socket
import stat
import subprocess
import tempfile
import unittest

REDOUBT = os.environ.get("REDOUBT", "redoubt")
REDOUBT = os.path.abspath(REDOUBT) if os.sep in REDOUBT else REDOUBT


def command(*args):
    parts = [a.encode() if isinstance(a, str) else a for a in args]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


SET = command("SET", "k", "v")
LOG = command("SELECT", "0") + b"".join(command("SET", f"key{i}", "v" * 20) for i in range(500))
SERVICES = b"# Network services\n#\n\ntcpmux\t1/tcp\t# TCP port multiplexer\n" + b"x 1/tcp\n" * 900


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-kinds-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def run_tool(self, *args, status=0, tool="check-aof"):
        run = subprocess.run([REDOUBT, tool, *args], stdin=subprocess.DEVNULL, timeout=600,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)
        self.assertEqual(run.returncode, status, (args, run.stdout, run.stderr))
        return run

    def report(self, *args, status=1):
        return json.loads(self.run_tool("--json", *args, status=status).stdout)

    def ids(self, report):
        return [f["id"] for f in report["findings"]]


class NotALog(Case):
    FILES = {
        "services": (SERVICES, b""),
        "zeros": (bytes(5000), b"zero bytes"),
        "utf16": (LOG.decode().encode("utf-16"), b"UTF-16"),
        "json": (b'{"db":0,"key":"a"}\n' * 50, b"JSON"),
        "gzip-twice": (gzip.compress(gzip.compress(LOG)), b"gzip"),
        "xz": (b"\xfd7zXZ\0" + bytes(range(256)), b"xz"),
        "tar": (b"log".ljust(257, b"\0") + b"ustar\x0000" + bytes(248), b"tar"),
        "capture": (b"RDCAPT\r\n" + bytes(range(200)), b"capture"),
        "replies": (b"+OK\r\n$3\r\nfoo\r\n:1\r\n", b"replies"),
        "star": (b"*" + bytes(range(256)) * 40, b""),
        "star-digit": (b"*7" + bytes(range(255, 0, -1)) * 40, b""),
        "one-command-cut": (SET[:-1], b""),
        "only-annotation": (b"#TS:1700000000\r\nnothing", b""),
        "html": (b"<!DOCTYPE html><html></html>\n", b"HTML"),
    }

    def test_a_broken_zstd_file_is_damaged_and_not_another_kind(self):
        packed = subprocess.run(["zstd", "-q", "-c"], input=LOG, stdout=subprocess.PIPE,
                                check=True).stdout
        sound = self.write("sound.aof.zst", packed)
        self.assertEqual(self.report(sound, status=0)["verdict"], "ok")
        middle = len(packed) // 2
        broken = packed[:middle] + bytes(b ^ 0xff for b in packed[middle:middle + 8]) + \
            packed[middle + 8:]
        for name, data in (("cut.zst", packed[:middle]), ("broken.zst", broken),
                           ("head.zst", packed[:4])):
            with self.subTest(name):
                path = self.write(name, data)
                self.assertIn(b"zstd: ", self.run_tool(path, status=1).stderr)
                error = self.report(path)["error"]
                self.assertIn(error["code"], ("truncated", "corrupt"))
                self.run_tool("--fix", "--yes", path, status=2)
                self.run_tool("--salvage", self.path("out"), path, status=1)
                self.assertEqual(self.read(name), data)
                self.assertFalse(os.path.exists(self.path("out")))
        path = self.write("second.zst", packed + packed[:middle])
        self.run_tool("--salvage", self.path("out"), path, status=8)
        self.assertEqual(self.read("out"), LOG)

    def test_each_kind_has_the_verdict_and_no_byte_is_cut(self):
        for name, (data, word) in self.FILES.items():
            with self.subTest(name):
                path = self.write(name, data)
                report = self.report(path)
                self.assertEqual(report["verdict"], "not-a-log")
                self.assertEqual(self.ids(report), ["not-a-log"])
                run = self.run_tool(path, status=1)
                self.assertIn(b": not a log\n", run.stdout)
                self.assertIn(word, run.stderr)
                for more in ((), ("--force",)):
                    run = self.run_tool("--fix", "--yes", "--no-copy", *more, path,
                                        status=2 if name == "gzip-twice" else 1)
                    self.assertEqual(self.read(name), data)
                    self.assertEqual(len(os.listdir(self.folder)), 1)
                self.run_tool("--salvage", self.path("out"), path, status=1)
                self.assertFalse(os.path.exists(self.path("out")))
                os.unlink(path)

    def test_an_empty_file_is_an_empty_log(self):
        self.assertEqual(self.report(self.write("a", b""), status=0)["verdict"], "ok")

    def test_a_log_whose_first_byte_is_damaged_is_still_a_log(self):
        report = self.report(self.write("a", b"!" + LOG[1:]))
        self.assertEqual(report["verdict"], "damaged")

    def test_the_first_command_of_a_file_that_the_manifest_names_may_be_torn(self):
        self.write("a.aof.1.incr.aof", SET[:-1])
        self.write("a.aof.manifest", b"file a.aof.1.incr.aof seq 1 type i\n")
        self.assertEqual(self.report(self.folder)["verdict"], "torn")
        self.run_tool("--fix", "--yes", self.folder)
        self.assertEqual(self.read("a.aof.1.incr.aof"), b"")

    def test_a_file_of_a_folder_that_is_not_a_log_makes_the_log_damaged(self):
        self.write("a.aof.1.incr.aof", SERVICES)
        self.write("a.aof.manifest", b"file a.aof.1.incr.aof seq 1 type i\n")
        report = self.report(self.folder)
        self.assertEqual((report["verdict"], report["files"][0]["verdict"]),
                         ("damaged", "not-a-log"))
        self.run_tool("--fix", "--yes", "--force", self.folder, status=1)
        self.assertEqual(self.read("a.aof.1.incr.aof"), SERVICES)


class TextMode(Case):
    TEXT = LOG + command("SET", "lines", "a\r\nb\r\n") + command("SET", "lf", "a\nb\n\n")

    def test_changed_line_ends_are_recognised_and_never_cut(self):
        for mode, data in (("lf", self.TEXT.replace(b"\r\n", b"\n")),
                           ("crlf", self.TEXT.replace(b"\n", b"\r\n"))):
            path = self.write(mode, data)
            report = self.report(path)
            self.assertEqual((report["verdict"], self.ids(report)), ("damaged", ["text-mode"]))
            self.assertEqual(report["files"][0]["text_mode"], mode)
            self.run_tool("--fix", "--yes", "--force", path, status=1)
            self.assertEqual(self.read(mode), data)

    def test_salvage_gives_every_byte_back(self):
        annotated = b"#TS:1700000000\r\n" + self.TEXT
        for log in (self.TEXT, annotated):
            for data in (log.replace(b"\r\n", b"\n"), log.replace(b"\n", b"\r\n")):
                out = self.run_tool("--salvage", "out", "--force", self.write("a", data))
                self.assertEqual(self.read("out"), log)
                self.assertIn(b" restored", out.stdout)

    def test_in_a_folder_too(self):
        self.write("a.aof.1.incr.aof", self.TEXT.replace(b"\r\n", b"\n"))
        self.write("a.aof.manifest", b"file a.aof.1.incr.aof seq 1 type i\n")
        self.run_tool("--salvage", "out", self.folder)
        self.assertEqual(self.read("out/a.aof.1.incr.aof"), self.TEXT)

    def test_what_cannot_be_known_is_lost_and_reported(self):
        mixed = command("SET", "mixed", "a\r\nb\nc")
        data = (SET + mixed + SET).replace(b"\r\n", b"\n")
        run = self.run_tool("--salvage", "out", self.write("a", data), status=8)
        self.assertEqual(self.read("out"), SET + SET)
        self.assertIn(b"  lost ", run.stdout)

    def test_every_prefix_ends_without_a_crash(self):
        log = SET + command("SET", "lines", "a\r\nb") + SET
        for data in (log.replace(b"\r\n", b"\n"), log.replace(b"\n", b"\r\n")):
            for n in range(1, len(data), 7):
                path = self.write("a", data[:n])
                run = subprocess.run([REDOUBT, "check-aof", "--salvage", "out", "--force", path],
                                     cwd=self.folder, capture_output=True, timeout=600)
                self.assertIn(run.returncode, (0, 1, 8), run.stderr)


class Fix(Case):
    def test_a_torn_command_and_zeros_are_cut_without_force(self):
        for tail in (SET[:-2], bytes(9000), b"junk"):
            self.write("a", LOG + tail)
            self.run_tool("--fix", "--yes", "--no-copy", "a")
            self.assertEqual(self.read("a"), LOG)

    def test_more_than_a_thousandth_wants_force(self):
        data = LOG + b"y" * 300
        self.write("a", data)
        run = self.run_tool("--fix", "--yes", "a", status=2)
        self.assertIn(b"--force", run.stderr)
        self.assertIn(b"300 of", run.stderr)
        self.assertEqual((self.read("a"), os.listdir(self.folder)), (data, ["a"]))
        self.assertIn(b"--yes --force", self.run_tool("--fix", "--dry-run", "a", status=1).stderr)
        self.run_tool("--fix", "--yes", "--force", "a")
        self.assertEqual(self.read("a"), LOG)

    def test_more_than_a_mebibyte_wants_force(self):
        torn = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000000\r\n" + b"v" * (1024 * 1024 + 1)
        self.write("a", LOG + torn)
        self.run_tool("--fix", "--yes", "a", status=2)
        self.run_tool("--fix", "--yes", "--force", "a")
        self.assertEqual(self.read("a"), LOG)


class Written(Case):
    def test_a_log_that_a_process_has_open_is_not_torn(self):
        for tail in (SET[:-2], command("MULTI") + SET):
            data = LOG + tail
            self.write("a", data)
            with open(self.path("a"), "ab"):
                report = self.report("a")
                self.assertEqual((report["verdict"], self.ids(report)),
                                 ("being-written", ["being-written"]))
                self.assertIn(b"being written", self.run_tool("a", status=1).stdout)
                self.run_tool("--fix", "--yes", "--force", "a", status=7)
                self.assertEqual(self.read("a"), data)
            self.assertEqual(self.report("a")["verdict"], "torn")

    def test_damage_is_damage_also_when_a_process_writes(self):
        self.write("a", LOG + b"junk")
        with open(self.path("a"), "ab"):
            self.assertEqual(self.report("a")["verdict"], "torn")


class Links(Case):
    """Only regular files of the folder are opened, and no link is followed."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("log"))
        self.write("outside", LOG + b"junk")
        self.write("log/a.aof.manifest", b"file a.aof.1.incr.aof seq 1 type i\n")

    def tools(self):
        for args in (("check-aof", "log"), ("check-aof", "--fix", "--yes", "--force", "log"),
                     ("check-aof", "--salvage", "out", "log"), ("show", "log"),
                     ("check-aof", "--truncate-to-offset", "0", "--yes", "log"),
                     ("convert", "--to", "resp", "log"), ("stat", "log")):
            run = subprocess.run([REDOUBT, *args], cwd=self.folder, capture_output=True,
                                 stdin=subprocess.DEVNULL, timeout=600)
            yield args, run

    def test_a_link_is_not_followed(self):
        os.symlink("../outside", self.path("log", "a.aof.1.incr.aof"))
        for args, run in self.tools():
            self.assertEqual(run.returncode, 3, (args, run.stderr))
            self.assertIn(b"symbolic link", run.stderr)
        self.assertEqual(self.read("outside"), LOG + b"junk")

    def test_a_pipe_a_socket_and_a_device_are_not_read(self):
        def device(path):
            if os.geteuid() == 0:
                os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero
            else:
                os.mkfifo(path)
        path = self.path("log", "a.aof.1.incr.aof")
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        for make in os.mkfifo, server.bind, device:
            make(path)
            for args, run in self.tools():
                self.assertEqual(run.returncode, 3, (args, run.stderr))
            os.unlink(path)

    def test_a_link_that_is_named_is_read_but_not_cut(self):
        os.symlink("outside", self.path("link"))
        self.run_tool("link", status=1)
        run = self.run_tool("--fix", "--yes", "--force", "link", status=3)
        self.assertIn(b"symbolic link", run.stderr)
        self.assertEqual(self.read("outside"), LOG + b"junk")

    def test_a_manifest_that_is_a_link_is_not_followed_in_a_folder(self):
        os.rename(self.path("log/a.aof.manifest"), self.path("manifest"))
        os.symlink("../manifest", self.path("log", "a.aof.manifest"))
        self.run_tool("log", status=3)

    def test_under_the_servers_name_too(self):
        os.symlink(REDOUBT, self.path("redis-check-aof"))
        os.symlink("../outside", self.path("log", "a.aof.1.incr.aof"))
        run = subprocess.run([self.path("redis-check-aof"), "--fix", "log/a.aof.manifest"],
                             input=b"y\n", cwd=self.folder, capture_output=True, timeout=600)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertEqual(self.read("outside"), LOG + b"junk")


class Missing(Case):
    def test_a_missing_base_is_missing(self):
        self.write("a.aof.1.incr.aof", LOG)
        manifest = b"file a.aof.1.base.rdb seq 1 type b\nfile a.aof.1.incr.aof seq 1 type i\n"
        self.write("a.aof.manifest", manifest)
        self.assertEqual(self.report(".")["verdict"], "missing")
        run = self.run_tool(".", status=1)
        self.assertIn(b"the base file is missing", run.stdout)
        self.assertNotIn(b"corrupt", run.stderr)
        self.run_tool("--fix-manifest", "--yes", ".", status=1)
        self.assertEqual(self.read("a.aof.manifest"), manifest)
        self.run_tool("--fix-manifest", "--yes", "--force", ".", status=1)
        self.assertEqual(self.read("a.aof.manifest"), b"file a.aof.1.incr.aof seq 1 type i\n")

    def test_without_an_incremental_file_no_manifest_is_written(self):
        self.write("a.aof.1.base.rdb", b"REDIS0010\xff" + bytes(8))
        self.run_tool("--fix-manifest", "--yes", ".", status=1)
        self.assertFalse(os.path.exists(self.path("a.aof.manifest")))


class ServersName(Case):
    """What the servers' tool says of a manifest that servers refuse, with the line."""

    REFUSED = (
        (b"file a seq 1 type i\nfile b seq 1 type i\n",
         b"Found a non-monotonic sequence number", 2),
        (b"file a seq 1 type i\n\n", b"Invalid AOF manifest file format", 2),
        (b"file a seq 1 ty\n", b"Invalid AOF manifest file format", 1),
        (b'file "a seq 1 type i\n', b"Invalid AOF manifest file format", 1),
        (b"file a seq 1 type x\n", b"Unknown AOF file type", 1),
        (b"file a/b seq 1 type i\n", b"File can't be a path, just a filename", 1),
        (b"file a seq 1 type b\nfile b seq 2 type b\n",
         b"Found duplicate base file information", 2),
        (b"file a seq 1 type i", b"The AOF manifest file contains too long line", None),
        (b"file a" + b"a" * 1100 + b" seq 1 type i\n",
         b"The AOF manifest file contains too long line", None),
    )

    def test_manifests_that_servers_refuse(self):
        os.symlink(REDOUBT, self.path("redis-check-aof"))
        for data, words, line in self.REFUSED:
            with self.subTest(data):
                self.write("m", data)
                run = subprocess.run([self.path("redis-check-aof"), "m"], cwd=self.folder,
                                     capture_output=True, timeout=600)
                self.assertEqual(run.returncode, 1)
                self.assertIn(b"\n*** FATAL AOF MANIFEST FILE ERROR ***\n", run.stdout)
                self.assertIn(b"# " + words + b"\n", run.stdout)
                reported = b"Reading the manifest file, at line %d\n" % (line or 0)
                self.assertEqual(reported in run.stdout, line is not None)


class Folders(Case):
    """A folder that is not the folder of a log gets the hint that helps."""

    def runs(self):
        for args in (("check-aof", "f"), ("convert", "--to", "resp", "f"), ("stat", "f"),
                     ("show", "f"), ("diff", "f", "f")):
            yield args, subprocess.run([REDOUBT, *args], cwd=self.folder, capture_output=True,
                                       stdin=subprocess.DEVNULL, timeout=600)

    def fails(self, word):
        for args, run in self.runs():
            self.assertNotEqual(run.returncode, 0, args)
            self.assertIn(word, run.stderr, args)

    def test_an_empty_folder(self):
        os.mkdir(self.path("f"))
        self.fails(b"empty")

    def test_a_folder_from_before_redis_7(self):
        os.mkdir(self.path("f"))
        self.write("f/appendonly.aof", LOG)
        self.write("f/dump.rdb", b"REDIS0009\xff" + bytes(8))
        for args, run in self.runs():
            self.assertEqual(run.returncode, 0, (args, run.stderr))

    def test_a_folder_with_a_snapshot_alone(self):
        os.mkdir(self.path("f"))
        self.write("f/dump.rdb", b"REDIS0009\xff" + bytes(8))
        self.fails(b"f/dump.rdb")

    def test_a_folder_with_snapshots_of_other_names(self):
        os.mkdir(self.path("f"))
        self.write("f/monday.rdb", b"REDIS0009\xff" + bytes(8))
        self.fails(b"redoubt check-rdb f")

    def test_a_capture_without_a_segment_is_not_sound(self):
        os.mkdir(self.path("f"))
        self.write("f/00000001-1500.seg", b"RDCAPT\r\n")
        run = self.run_tool("f", status=2)
        self.assertIn(b"the capture is empty", run.stderr)


if __name__ == "__main__":
    unittest.main()
