"""check-aof --salvage and --fix-manifest on damaged copies of fixtures.

REDOUBT names the program.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import report_text  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
FIXTURES = os.environ["REDOUBT_FIXTURES"]
WHOLE = os.path.join(FIXTURES, "damaged", "aofdir-whole", "appendonlydir")
MANIFEST = "appendonly.aof.manifest"
FIRST = "appendonly.aof.2.incr.aof"


class SalvageTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = os.path.join(self.folder, "log")
        self.out = os.path.join(self.folder, "out")
        shutil.copytree(WHOLE, self.log)
        for root, _, names in os.walk(self.log):
            os.chmod(root, 0o755)
            for name in names:
                os.chmod(os.path.join(root, name), 0o644)

    def read(self, name, folder=None):
        with open(os.path.join(folder or self.log, name), "rb") as f:
            return f.read()

    def write(self, name, data):
        with open(os.path.join(self.log, name), "wb") as f:
            f.write(data)

    def run_tool(self, *args, expect=0, text=""):
        done = subprocess.run([REDOUBT, *args], input=text.encode(), capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return report_text.unwrapped(done.stdout.decode()), done.stderr.decode()

    def commands(self, path):
        out, _ = self.run_tool("show", "--ndjson", path)
        entries = [json.loads(line) for line in out.splitlines()]
        return [(e["file"], e["db"], e["command"]) for e in entries if "command" in e]


def command(*args):
    return b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a.encode()) for a in args)


def sets(first, last):
    return b"".join(command("SET", f"k:{i}", f"value-{i}") for i in range(first, last))


class OneFile(SalvageTest):
    """What disks that were full, crashes and editors leave."""

    def salvage(self, data, expect=8):
        path = os.path.join(self.folder, "one.aof")
        self.out = os.path.join(self.folder, "saved.aof")
        with open(path, "wb") as f:
            f.write(data)
        out, self.said = self.run_tool("check-aof", "--force", "--salvage", self.out, path,
                                       expect=expect)
        with open(self.out, "rb") as f:
            return f.read(), [line for line in out.splitlines() if line.startswith("  lost")]

    def test_all_that_follows_a_short_write_is_saved(self):
        select = command("SELECT", "0")
        multi = command("MULTI") + command("SET", "t1", "x")
        for torn in (b"*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$300\r\n" + b"A" * 12,
                     multi + b"*3\r\n$3\r\nSET\r\n$2\r\nt2\r\n$90\r\n" + b"B" * 5,
                     b"*3\r\n$3\r\nSET\r\n$2\r\nt2\r\n$9000\r\n", b"*", b"*3\r\n$", b"#TS:17"):
            saved, lost = self.salvage(select + sets(0, 50) + torn + sets(50, 100))
            self.assertEqual(saved, select + sets(0, 50) + sets(50, 100), torn)
            self.assertEqual(len(lost), 1)
            self.assertIn(f"[{len(select + sets(0, 50))}, ", lost[0])

    def test_a_length_that_fits_by_chance_is_not_silent(self):
        torn = b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$%d\r\nAAAA" % (4 + len(sets(0, 3)) - 2)
        saved, lost = self.salvage(sets(0, 9) + torn + sets(0, 3) + sets(20, 30))
        self.assertEqual(saved, sets(0, 9) + torn + sets(0, 3) + sets(20, 30))
        self.assertEqual(lost, [])
        self.assertIn("ends with whole commands", self.said)

    def test_a_transaction_with_a_discard_is_left_out(self):
        """Servers keep it open: what follows would be lost."""
        begun = command("MULTI") + command("SET", "t", "x") + command("DISCARD")
        saved, lost = self.salvage(sets(0, 9) + begun + sets(9, 20))
        self.assertEqual(saved, sets(0, 20))
        self.assertEqual(len(lost), 1)
        self.assertIn("DISCARD", lost[0])

    def test_lines_about_losses_are_true(self):
        before, after = command("SELECT", "0") + sets(0, 20), sets(20, 25)
        [line] = self.salvage(before + bytes(60) + command("SELECT", "3") + after)[1]
        self.assertNotIn("SELECT", line)
        [line] = self.salvage(before + bytes(60) + after)[1]
        self.assertIn("SELECT may be lost", line)
        [line] = self.salvage(before + b"\n" + after)[1]
        self.assertIn("no command", line)
        self.assertNotIn("SELECT", line)


class Salvage(SalvageTest):
    def test_a_sound_folder_comes_out_as_it_was(self):
        self.run_tool("check-aof", "--salvage", self.out, self.log)
        self.assertEqual(sorted(os.listdir(self.out)), sorted(os.listdir(self.log)))
        for name in os.listdir(self.log):
            self.assertEqual(self.read(name), self.read(name, self.out), name)

    def test_one_damaged_command_is_left_out(self):
        before = self.commands(self.log)
        data = self.read(FIRST)
        at = data.index(b"$3\r\nSET")
        self.write(FIRST, data[:at] + b"$7" + data[at + 2:])
        out, _ = self.run_tool("check-aof", "--salvage", self.out, self.log, expect=8)
        self.assertIn("verified", out)
        self.assertIn(f'"{FIRST}" [', out)
        after = self.commands(self.out)
        self.assertEqual(len(after), len(before) - 1)
        self.assertTrue(all(c in before for c in after))

    def test_what_was_in_the_output_stays_if_it_cannot_be_completed(self):
        name = sorted(n for n in os.listdir(self.log) if n.endswith(".incr.aof"))[-1]
        os.rename(os.path.join(self.log, name), os.path.join(self.folder, "elsewhere"))
        os.symlink("../elsewhere", os.path.join(self.log, name))
        os.mkdir(self.out)
        self.run_tool("check-aof", "--salvage", self.out, self.log, expect=3)
        self.assertEqual(os.listdir(self.out), [])
        for old in (FIRST, name):
            with open(os.path.join(self.out, old), "wb") as f:
                f.write(b"older")
        self.run_tool("check-aof", "--force", "--salvage", self.out, self.log, expect=3)
        self.assertEqual(sorted(os.listdir(self.out)), sorted([FIRST, name]))
        self.assertEqual(self.read(FIRST, self.out), b"older")

    def test_a_base_of_zeros_is_lost_from_its_first_byte(self):
        base = next(n for n in os.listdir(self.log) if n.endswith(".base.rdb"))
        self.write(base, bytes(300))
        out, _ = self.run_tool("check-aof", "--salvage", self.out, self.log, expect=8)
        self.assertIn("[0, 300)", out)
        self.run_tool("check-aof", "--fix", "--yes", self.log, expect=1)
        self.write(base, bytes(9))
        out, _ = self.run_tool("check-aof", "--force", "--salvage", self.out, self.log, expect=8)
        self.assertNotIn("no bytes are lost", out)

    def test_json_lists_what_was_lost(self):
        data = self.read(FIRST)
        self.write(FIRST, data[:1000] + bytes(100) + data[1100:])
        out, _ = self.run_tool("check-aof", "--json", "--salvage", self.out, self.log, expect=8)
        salvage = json.loads(out)["salvage"]
        self.assertTrue(salvage["verified"])
        [loss] = [x for x in salvage["losses"] if x["kind"] == "range"]
        self.assertEqual(loss["file"], FIRST)
        self.assertLessEqual(loss["from"], 1000)
        self.assertGreaterEqual(loss["to"], 1100)

    def test_a_log_with_an_empty_file_is_salvaged(self):
        """Every log between a rewrite and the next write."""
        name = "appendonly.aof.9.incr.aof"
        self.write(name, b"")
        self.write(MANIFEST, self.read(MANIFEST) + b"file %s seq 9 type i\n" % name.encode())
        self.write(FIRST, self.read(FIRST).replace(b"$", b"%", 1))
        self.run_tool("check-aof", "--salvage", self.out, self.log, expect=8)
        self.assertEqual(self.read(name, self.out), b"")
        self.assertIn(name.encode(), self.read(MANIFEST, self.out))

    def test_an_empty_snapshot_is_lost_not_kept(self):
        base = next(name for name in os.listdir(self.log) if name.endswith(".base.rdb"))
        self.write(base, b"")
        out, _ = self.run_tool("check-aof", self.log, expect=1)
        self.assertIn("a snapshot never is", out)
        self.run_tool("check-aof", "--fix", "--yes", self.log, expect=1)
        self.run_tool("convert", "--to", "rdb", "-o", self.out + ".rdb", self.log, expect=1)
        self.assertFalse(os.path.exists(self.out + ".rdb"))
        out, _ = self.run_tool("check-aof", "--salvage", self.out, self.log, expect=8)
        self.assertIn("the snapshot is lost", out)
        self.assertNotIn(base.encode(), self.read(MANIFEST, self.out))

    def test_an_output_without_its_manifest_is_not_left(self):
        """A file that is there, but cannot be read, after one that can."""
        name = "appendonly.aof.9.incr.aof"
        os.mkdir(os.path.join(self.log, name))
        self.write(MANIFEST, self.read(MANIFEST) + b"file %s seq 9 type i\n" % name.encode())
        self.run_tool("check-aof", "--salvage", self.out, self.log, expect=3)
        self.assertFalse(os.path.exists(self.out))
        os.mkdir(self.out)
        self.run_tool("check-aof", "--salvage", self.out, self.log, expect=3)
        self.assertEqual(os.listdir(self.out), [])

    def test_a_missing_file_is_reported(self):
        os.unlink(os.path.join(self.log, FIRST))
        out, _ = self.run_tool("check-aof", "--salvage", self.out, self.log, expect=8)
        self.assertIn("missing", out)
        self.assertNotIn(FIRST.encode(), self.read(MANIFEST, self.out))

    def test_a_damaged_manifest_is_made_anew(self):
        lines = self.read(MANIFEST).splitlines(True)
        broken = [b"".join(reversed(lines)), lines[0] + lines[0] + lines[1], b"",
                  b"".join(lines)[:-20], b"\0" * 50, lines[0] + lines[2] + lines[1],
                  lines[0] + b"file x seq\n" + lines[1] + lines[2]]
        for i, text in enumerate(broken):
            with self.subTest(text=text):
                self.write(MANIFEST, text)
                self.run_tool("check-aof", "--salvage", self.out + str(i), self.log, expect=8)
                self.assertEqual(self.commands(self.out + str(i)), self.commands(WHOLE))

    def test_a_folder_that_is_not_empty_is_refused(self):
        os.mkdir(self.out)
        with open(os.path.join(self.out, "mine"), "w") as f:
            f.write("x")
        self.run_tool("check-aof", "--salvage", self.out, self.log, expect=2)
        self.assertEqual(os.listdir(self.out), ["mine"])
        self.run_tool("check-aof", "--force", "--salvage", self.out, self.log)

    def test_the_log_itself_is_never_written_over(self):
        before = {name: self.read(name) for name in os.listdir(self.log)}
        one = os.path.join(self.log, FIRST)
        link = os.path.join(self.folder, "link")
        os.symlink(self.log, link)
        for out, path in ((self.log, self.log), (link, self.log), (one, one)):
            self.run_tool("check-aof", "--force", "--salvage", out, path, expect=2)
        self.assertEqual(before, {name: self.read(name) for name in os.listdir(self.log)})

    def test_one_file_becomes_one_file(self):
        for path in glob.glob(os.path.join(FIXTURES, "damaged", "aof-*.aof")):
            out = self.out + os.path.basename(path)
            done = subprocess.run([REDOUBT, "check-aof", "--salvage", out, path],
                                  capture_output=True, check=False)
            self.assertIn(done.returncode, (0, 8), path)
            self.assertIn(b": verified\n", done.stdout, path)

    def test_only_one_change_at_a_time(self):
        self.run_tool("check-aof", "--fix", "--salvage", self.out, self.log, expect=2)


class FixManifest(SalvageTest):
    def saved(self):
        return glob.glob(os.path.join(self.log, MANIFEST + ".redoubt-save-*"))

    def test_a_lost_manifest_is_written_as_it_was(self):
        before = self.read(MANIFEST)
        os.unlink(os.path.join(self.log, MANIFEST))
        self.run_tool("check-aof", "--yes", "--fix-manifest", self.log)
        self.assertEqual(self.read(MANIFEST), before)
        self.assertEqual(self.saved(), [])

    def test_a_broken_manifest_is_kept_beside_the_new_one(self):
        before = self.read(MANIFEST)
        self.write(MANIFEST, before[10:])
        out, _ = self.run_tool("check-aof", "--yes", "--fix-manifest", self.log)
        self.assertEqual(self.read(MANIFEST), before)
        [saved] = self.saved()
        self.assertEqual(self.read(os.path.basename(saved)), before[10:])
        for name in ("appendonly.aof.2.base.rdb", FIRST, "appendonly.aof.3.incr.aof"):
            self.assertIn(f'"{name}": ', out)

    def test_the_new_manifest_has_the_mode_of_the_old_one(self):
        path = os.path.join(self.log, MANIFEST)
        os.chmod(path, 0o600)
        self.write(MANIFEST, b"broken\n")
        done = subprocess.run([REDOUBT, "check-aof", "--fix-manifest", "--yes", self.log],
                              capture_output=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        for name in (MANIFEST, *self.saved()):
            mode = os.stat(os.path.join(self.log, name)).st_mode & 0o777
            self.assertEqual(mode, 0o600, name)

    def test_it_asks_and_takes_no_for_an_answer(self):
        self.write(MANIFEST, b"broken")
        self.run_tool("check-aof", "--fix-manifest", self.log, expect=1)
        self.assertEqual(self.read(MANIFEST), b"broken")
        self.run_tool("check-aof", "--fix-manifest", self.log, text="y\n")
        self.run_tool("check-aof", self.log)

    def test_a_dry_run_changes_nothing(self):
        self.write(MANIFEST, b"broken")
        self.run_tool("check-aof", "--dry-run", "--fix-manifest", self.log)
        self.assertEqual(self.read(MANIFEST), b"broken")

    def test_json_has_every_file_and_why(self):
        os.unlink(os.path.join(self.log, FIRST))
        out, _ = self.run_tool("check-aof", "--json", "--yes", "--fix-manifest", self.log, expect=1)
        report = json.loads(out)
        uses = {f["name"]: f["use"] for f in report["files"]}
        self.assertEqual(uses[FIRST], "missing")
        self.assertEqual(uses["appendonly.aof.2.base.rdb"], "base")
        self.assertTrue(report["done"])

    def test_one_file_has_no_manifest(self):
        first = os.path.join(self.log, FIRST)
        self.run_tool("check-aof", "--yes", "--fix-manifest", first, expect=2)


if __name__ == "__main__":
    unittest.main()
