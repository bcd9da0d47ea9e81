"""Outputs: who may read them, and what may be sealed with a checksum."""

import os
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from rdb_text import STRING, Key, snapshot, string  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-outputs-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.input = self.path("in.rdb")
        self.out = self.path("out")
        self.write(self.input, snapshot([Key(b"k", STRING, b"v")]))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, path, data, mode=0o644):
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, mode)

    def run_tool(self, *args, status=0, umask=0o022, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        run = subprocess.run([REDOUBT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             timeout=600, check=False, umask=umask, **more)
        self.assertEqual(run.returncode, status, (args, run.stdout, run.stderr))
        return run


class Access(Case):
    def test_a_new_file_is_read_by_no_more_people_than_the_input(self):
        for mode, umask, want in ((0o600, 0o022, 0o600), (0o644, 0o022, 0o644),
                                  (0o640, 0o022, 0o640), (0o644, 0o077, 0o600),
                                  (0o666, 0o002, 0o664), (0o444, 0o022, 0o444),
                                  (0o604, 0, 0o604), (0o777, 0, 0o666)):
            os.chmod(self.input, mode)
            for args in (["convert", "--to", "rdb"], ["convert", "--to", "ndjson"], ["merge"],
                         ["stat", "--html", self.out]):
                more = [] if args[0] == "stat" else ["-o", self.out]
                with self.subTest(args=args, mode=oct(mode), umask=oct(umask)):
                    self.run_tool(*args, self.input, *more, umask=umask)
                    self.assertEqual(oct(mode_of(self.out)), oct(want))
                os.remove(self.out)

    def test_a_file_that_is_replaced_keeps_its_permissions_as_far_as_the_input_allows(self):
        for mode, before, want in ((0o644, 0o600, 0o600), (0o600, 0o644, 0o600),
                                   (0o644, 0o640, 0o640), (0o640, 0o604, 0o600)):
            self.write(self.out, b"before", before)
            os.chmod(self.input, mode)
            self.run_tool("convert", "--to", "rdb", self.input, "-o", self.out, "--force", umask=0)
            self.assertEqual(oct(mode_of(self.out)), oct(want), (oct(mode), oct(before)))

    def test_what_comes_through_a_pipe_is_for_its_owner(self):
        with open(self.input, "rb") as f:
            data = f.read()
        self.run_tool("convert", "--to", "rdb", "-", "-o", self.out, input=data, stdin=None)
        self.assertEqual(mode_of(self.out), 0o600)

    def test_the_narrowest_of_several_inputs_counts(self):
        other = self.path("other.rdb")
        self.write(other, snapshot([Key(b"l", STRING, b"v")]), 0o640)
        self.run_tool("merge", self.input, other, "-o", self.out)
        self.assertEqual(mode_of(self.out), 0o640)

    def test_owner_and_group(self):
        if os.geteuid() != 0:  # owners are root's to change: then the file is the user's
            self.run_tool("convert", "--to", "rdb", self.input, "-o", self.out)
            self.assertEqual(os.stat(self.out).st_uid, os.geteuid())
            return
        os.chown(self.input, 1234, 2345)
        os.chmod(self.input, 0o640)
        self.run_tool("convert", "--to", "rdb", self.input, "-o", self.out)
        st = os.stat(self.out)  # the group of the input, for it may read it
        self.assertEqual((st.st_gid, stat.S_IMODE(st.st_mode)), (2345, 0o640))
        os.chown(self.out, 3456, 4567)
        self.run_tool("convert", "--to", "rdb", self.input, "-o", self.out, "--force")
        st = os.stat(self.out)  # another group may not read what it could not read before
        self.assertEqual((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)), (3456, 4567, 0o600))

    def test_parts_of_a_split_and_their_folder(self):
        os.chmod(self.input, 0o640)
        self.run_tool("split", "--by", "db", self.input, "-o", self.out)
        self.assertEqual(mode_of(self.out), 0o700)
        for name in os.listdir(self.out):
            self.assertEqual(mode_of(os.path.join(self.out, name)), 0o640, name)

    def test_files_of_a_folder_that_shuts_others_out(self):
        log = self.path("log")
        os.mkdir(log)
        os.chmod(log, 0o700)
        self.write(os.path.join(log, "a.aof.manifest"), b"file a.aof.1.incr.aof seq 1 type i\n")
        self.write(os.path.join(log, "a.aof.1.incr.aof"),
                   b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n")
        self.run_tool("convert", "--to", "rdb", log, "-o", self.out)
        self.assertEqual(mode_of(self.out), 0o600)


def intset(*members, width=2, count=None):
    count = len(members) if count is None else count
    return struct.pack("<II", width, count) + b"".join(struct.pack("<h", m) for m in members)


def one_value(kind, packed, tail=b"\xff" + bytes(8), version=10):
    return (b"REDIS%04d" % version + b"\xfe\x00" + bytes([kind]) + string(b"k") + string(packed) +
            tail)


LISTPACK = b"\x09\x00\x00\x00\x01\x00\x01\x01\xff"
DAMAGED = {
    "an intset out of order": one_value(11, intset(3, 1)),
    "an intset with a wrong count": one_value(11, intset(1, 2, count=3)),
    "a listpack set with a wrong length": one_value(20, b"\x0a" + LISTPACK[1:], version=11),
    "a hash listpack with an odd number of elements": one_value(16, LISTPACK),
    "no checksum in this version": one_value(11, intset(3, 1), tail=b"\xff", version=4),
}


class Compressed(Case):
    """The programs of the formats decompress what the end of a name asks for."""

    PROGRAMS = {".gz": "gzip", ".lz4": "lz4", ".zst": "zstd"}

    def plain(self, program, path):
        return subprocess.run([program, "-dc", path], stdout=subprocess.PIPE, check=True,
                              stdin=subprocess.DEVNULL).stdout

    def test_the_end_of_the_name_chooses_the_compression(self):
        lines = self.run_tool("convert", "--to", "ndjson", self.input).stdout
        for end, program in self.PROGRAMS.items():
            with self.subTest(end):
                path = self.path("out.ndjson" + end)
                self.run_tool("convert", "--to", "ndjson", self.input, "-o", path)
                self.assertEqual(self.plain(program, path), lines)
                self.assertEqual(oct(mode_of(path)), oct(0o644))

    def test_snapshots_and_pages(self):
        with open(self.input, "rb") as f:
            data = f.read()
        for end, program in self.PROGRAMS.items():
            with self.subTest(end):
                merged, saved, page = (self.path(name + end) for name in ("m.rdb", "s.rdb", "p"))
                self.run_tool("merge", self.input, "-o", merged)
                self.assertTrue(self.plain(program, merged).startswith(b"REDIS"))
                self.run_tool("check-rdb", "--salvage", saved, self.input)
                self.assertEqual(self.plain(program, saved), data)
                self.run_tool("stat", "--html", page, self.input)
                self.assertTrue(self.plain(program, page).lower().startswith(b"<!doctype html>"))

    def test_a_format_before_the_compression_is_the_output_format(self):
        for name in ("rdb", "aof", "resp", "ndjson", "csv"):
            want = self.run_tool("convert", "--to", name, self.input).stdout
            for end in ("", ".gz"):
                path = self.path(f"by-name.{name}{end}")
                self.run_tool("convert", self.input, "-o", path)
                with self.subTest(path), open(path, "rb") as f:
                    self.assertEqual(self.plain("gzip", path) if end else f.read(), want)
        self.run_tool("convert", self.input, "-o", self.path("lines.JSONL"))
        for name in ("rdb", "out", "out.gz", "out.xrdb"):
            run = self.run_tool("convert", self.input, "-o", self.path(name), status=2)
            self.assertIn(b"missing output format", run.stderr)

    def test_other_tools_write_what_the_name_ends_in(self):
        """With -o; diff ends with status 1, because it finds a difference."""
        log, empty = self.path("in.aof"), self.path("empty.rdb")
        self.run_tool("convert", self.input, "-o", log)
        self.write(empty, snapshot([]))
        for tool, lines in ((("stat", "--csv", self.input), "csv"),
                            (("diff", "--ndjson", self.input, empty), "ndjson"),
                            (("show", "--ndjson", log), "ndjson")):
            status = int(tool[0] == "diff")
            want = self.run_tool(*tool, status=status).stdout
            tool = [word for word in tool if not word.startswith("--")]
            out, page = self.path(f"{tool[0]}.{lines}.gz"), self.path(f"{tool[0]}.html.zst")
            self.run_tool(*tool, "-o", out, status=status)
            self.assertEqual(self.plain("gzip", out), want)
            self.run_tool(*tool, "-o", out, status=2)
            self.run_tool(*tool, "-o", out, "--force", status=status)
            self.run_tool(*tool, "-o", page, status=status)
            self.assertTrue(self.plain("zstd", page).lower().startswith(b"<!doctype html>"))
        for tool in (("stat",), ("diff", empty)):
            run = self.run_tool(*tool, self.input, "-o", self.path("x"), status=2)
            self.assertIn(b"-o is for --", run.stderr)

    def test_an_output_that_is_not_complete_leaves_no_file(self):
        with open(self.input, "rb") as f:
            data = f.read()
        self.write(self.input, data[:-12])
        for end in self.PROGRAMS:
            self.run_tool("convert", self.input, "-o", self.path("out.rdb" + end), status=1)
        self.assertEqual(os.listdir(self.folder), ["in.rdb"])

    def test_sealed_files_are_not_compressed(self):
        key, sealed, opened = self.path("key"), self.path("in.rdb.gz"), self.path("out.rdb.gz")
        self.run_tool("seal", "--make-key", key)
        self.run_tool("seal", "--key-file", key, self.input, "-o", sealed)
        self.run_tool("unseal", "--key-file", key, sealed, "-o", opened)
        with open(self.input, "rb") as want, open(opened, "rb") as got:
            self.assertEqual(got.read(), want.read())


class Sealed(Case):
    def outputs(self):
        return (["convert", "--to", "rdb", "-o", self.out], ["merge", "-o", self.out],
                ["split", "--by", "db", "-o", self.out],
                ["convert", "--to", "resp", "--restore", "-o", self.out])

    def test_values_that_no_checksum_vouches_for_are_checked(self):
        for what, data in DAMAGED.items():
            self.write(self.input, data)
            for args in self.outputs():
                with self.subTest(what, args=args[0]):
                    run = self.run_tool(*args, self.input, status=1)
                    self.assertIn(b"checked", run.stderr)
                    self.assertIn(b'"k"', run.stderr)
                    self.assertFalse(os.path.exists(self.out))

    def test_also_from_standard_input(self):
        data = DAMAGED["an intset out of order"]
        self.write(self.input, data)
        for args in self.outputs():
            with self.subTest(args[0]):
                self.run_tool(*args, "-", status=1, input=data, stdin=None)
                with open(self.input, "rb") as f:
                    self.run_tool(*args, "-", status=1, stdin=f)
                self.assertFalse(os.path.exists(self.out))

    def test_sound_values_without_a_checksum_go_over(self):
        data = one_value(11, intset(1, 3))
        self.write(self.input, data)
        for i, args in enumerate(self.outputs()):
            args = [self.path(f"good{i}") if a == self.out else a for a in args]
            self.run_tool(*args, self.input)
            self.run_tool(*[a + "-pipe" if a == args[-1] else a for a in args], "-", input=data,
                          stdin=None)
        for name in ("good0", "good0-pipe", "good1", "good1-pipe"):
            run = self.run_tool("convert", "--to", "ndjson", self.path(name))
            self.assertIn(b'["1","3"]', run.stdout)

    def test_what_the_checksum_proves_wrong_is_not_sealed(self):
        self.write(self.input, one_value(11, intset(1, 3), tail=b"\xff" + b"\x01" * 8))
        for args in self.outputs():
            with self.subTest(args[0]):
                self.run_tool(*args, self.input, status=1)
                self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    unittest.main()
