"""redoubt check-rdb --salvage: corrections that the checksum proves, and filters."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import report_text  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURE = os.path.join(os.environ["REDOUBT_FIXTURES"], "redis-7.0.15", "tiny.rdb")


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="redoubt-correction-")
        self.addCleanup(self.dir.cleanup)
        self.out = os.path.join(self.dir.name, "out.rdb")
        with open(FIXTURE, "rb") as f:
            self.sound = f.read()

    def salvage(self, data, *args):
        path = os.path.join(self.dir.name, "in.rdb")
        with open(path, "wb") as f:
            f.write(data)
        run = subprocess.run([REDOUBT, "check-rdb", "--salvage", self.out, "--force", *args, path],
                             capture_output=True, check=False)
        run.stdout = report_text.unwrapped(run.stdout.decode()).encode()
        return run

    def in_json(self, data):
        run = self.salvage(data, "--json")
        return run.returncode, json.loads(run.stdout)["files"][0]


class Correction(Case):
    def test_one_wrong_byte_is_corrected_and_named(self):
        for at in [*range(0, len(self.sound), 37), len(self.sound) - 1]:
            wrong = bytearray(self.sound)
            wrong[at] ^= 1 << at % 8
            status, file = self.in_json(bytes(wrong))
            reported = file["salvage"]
            self.assertEqual((status, reported["keys"], reported["keys_doubtful"],
                              reported["bytes_lost"]), (8, 9, 0, 0), at)
            self.assertEqual(reported["corrected"],
                             {"kind": "byte", "offset": at, "from": wrong[at],
                              "to": self.sound[at]})
            self.assertTrue(reported["proved"])
            self.assertTrue(reported["out"]["verified"] and reported["out"]["sealed"])
            self.assertLessEqual(file["damage_offset"], at)
        line = f"byte {at} ({at:#x}) is {wrong[at]:#04x} and must be {self.sound[at]:#04x}, "
        self.assertIn(line, self.salvage(bytes(wrong)).stdout.decode())

    def test_without_an_output_the_wrong_byte_is_named(self):
        at = self.sound.index(b"redis-ver") + 2
        wrong = bytearray(self.sound)
        wrong[at] ^= 1
        path = os.path.join(self.dir.name, "in.rdb")
        with open(path, "wb") as f:
            f.write(wrong)
        run = subprocess.run([REDOUBT, "check-rdb", path], capture_output=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"wrong byte {at} ({at:#x}) is {wrong[at]:#04x} and must be "
                      f"{self.sound[at]:#04x}, as the checksum proves", run.stdout.decode())
        self.assertIn("hint: --salvage OUT writes the file with the wrong byte corrected",
                      run.stderr.decode())
        run = subprocess.run([REDOUBT, "check-rdb", "--json", path], capture_output=True,
                             check=False)
        reported = json.loads(run.stdout)["files"][0]["salvage"]
        self.assertEqual(reported["corrected"], {"kind": "byte", "offset": at,
                                             "from": wrong[at], "to": self.sound[at]})

    def check_misplaced(self, wrong, corrected, without, line, hint):
        """The report without and with OUT, which is that of the sound file."""
        path = os.path.join(self.dir.name, "in.rdb")
        with open(path, "wb") as f:
            f.write(wrong)
        run = subprocess.run([REDOUBT, "check-rdb", path], capture_output=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"  {without:10} {line}, as the checksum proves\n",
                      report_text.unwrapped(run.stdout.decode()))
        self.assertIn(f"hint: --salvage OUT writes the file {hint}", run.stderr.decode())
        run = self.salvage(wrong)
        self.assertEqual(run.returncode, 8)
        self.assertIn(f"  corrected  {line}, as the checksum proves\n", run.stdout.decode())
        with open(self.out, "rb") as f:
            saved = f.read()
        self.salvage(self.sound)
        with open(self.out, "rb") as f:
            self.assertEqual(f.read(), saved)
        status, file = self.in_json(wrong)
        reported = file["salvage"]
        self.assertEqual((status, reported["keys"], reported["keys_doubtful"],
                          reported["bytes_lost"]), (8, 9, 0, 0))
        self.assertEqual(reported["corrected"], corrected)
        self.assertTrue(reported["proved"] and reported["out"]["verified"])

    def test_bytes_that_were_written_twice_are_left_out(self):
        at = self.sound.index(b"\xfe\x00\xfb") - 4
        self.check_misplaced(self.sound[:at + 16] + self.sound[at:],
                             {"kind": "inserted", "offset": at, "length": 16}, "inserted",
                             f"the 16 bytes at byte {at} ({at:#x}) are not part of the snapshot",
                             "without the inserted bytes")

    def test_one_byte_that_was_inserted_is_left_out(self):
        at = self.sound.index(b"redis-ver") + 3
        self.check_misplaced(self.sound[:at] + b"~" + self.sound[at:],
                             {"kind": "inserted", "offset": at, "length": 1}, "inserted",
                             f"the 1 byte at byte {at} ({at:#x}) is not part of the snapshot",
                             "without the inserted bytes")

    def test_exchanged_blocks_are_put_back(self):
        a, b, size = 64, 160, 32
        wrong = bytearray(self.sound)
        wrong[a:a + size], wrong[b:b + size] = wrong[b:b + size], wrong[a:a + size]
        self.check_misplaced(bytes(wrong),
                             {"kind": "exchanged", "offset": a, "length": size, "other": b},
                             "exchanged", f"the {size} bytes at byte {a} ({a:#x}) and at byte {b} "
                             f"({b:#x}) are in each other's place",
                             "with both blocks in their places")

    def test_two_wrong_bytes_are_not_corrected(self):
        wrong = bytearray(self.sound)
        wrong[100] ^= 1
        wrong[-1] ^= 1
        _, file = self.in_json(bytes(wrong))
        self.assertIsNone(file["salvage"]["corrected"])
        self.assertFalse(file["salvage"]["proved"])


class Trailing(Case):
    def test_records_after_an_end_that_is_proved_are_not_of_the_file(self):
        end = len(self.sound)
        first_key = self.sound.index(b"\xfe\x00\xfb")
        self.in_json(self.sound)
        with open(self.out, "rb") as f:
            want = f.read()
        for tail in (b"\n", bytes(64), self.sound, self.sound[first_key:],
                     self.sound[first_key:-9]):
            status, file = self.in_json(self.sound + tail)
            reported = file["salvage"]
            wanted = 0 if tail in (b"\n", bytes(64)) else 8  # which may be data
            self.assertEqual((status, reported["keys"], reported["keys_doubtful"],
                              reported["bytes_lost"], reported["ranges"]), (wanted, 9, 0, 0, []))
            self.assertTrue(reported["proved"])
            self.assertEqual((file["end"], file["trailing"]), (end, len(tail)))
            with open(self.out, "rb") as f:
                self.assertEqual(f.read(), want)

    def test_a_second_snapshot_is_not_left_out_without_a_word(self):
        path = os.path.join(os.path.dirname(self.out), "two.rdb")
        with open(path, "wb") as f:
            f.write(2 * self.sound)
        run = subprocess.run([REDOUBT, "check-rdb", "--salvage", self.out, path],
                             capture_output=True, check=False)
        self.assertEqual(run.returncode, 8, run.stdout)
        self.assertIn(b"which begin like another snapshot", run.stdout)
        self.assertIn(b"bytes after the snapshot are left out", run.stdout)
        self.assertNotIn(b"no bytes are lost", run.stdout)

    def test_a_repeated_transfer_that_was_appended_is_saved(self):
        begun = self.sound[:150]
        status, file = self.in_json(begun + self.sound)
        self.assertEqual((status, file["salvage"]["keys"], file["salvage"]["transfer"]["before"],
                          file["salvage"]["transfer"]["before_length"]), (8, 9, "snapshot", 150))
        self.assertTrue(file["salvage"]["proved"])
        run = self.salvage(begun + self.sound)
        self.assertIn(b"an unfinished snapshot before it is left out", run.stdout)
        self.assertNotIn(b"no bytes are lost", run.stdout)

    def test_an_end_that_is_not_proved_is_no_end_if_records_follow(self):
        first_key = self.sound.index(b"\xfe\x00\xfb")
        for data in (self.sound[:first_key] + b"\xff" + self.sound[first_key:-1] + b"\0",
                     self.sound[:-1] + b"\0" + self.sound):
            _, file = self.in_json(data)
            self.assertGreater(len(file["salvage"]["ranges"]), 0)
            self.assertEqual(file["salvage"]["keys"], 9)


class Filters(Case):
    """Filters that exclude every key do not look like success."""

    def check_nothing(self, data, status=1):
        run = self.salvage(data, "--match", "no such key")
        self.assertEqual(run.returncode, status, run.stdout)
        self.assertIn(b"no key matches the filter: nothing was saved", run.stdout)
        self.assertFalse(os.path.exists(self.out))
        run = self.salvage(data, "--json", "--match", "no such key")
        self.assertEqual(run.returncode, status)
        reported = json.loads(run.stdout)["files"][0]["salvage"]
        self.assertEqual((reported["out"], reported["nothing_matched"]), (None, True))
        self.assertFalse(os.path.exists(self.out))

    def test_in_a_sound_file(self):
        self.check_nothing(self.sound)

    def test_in_damaged_files(self):
        self.check_nothing(self.sound[:-40])
        wrong = bytearray(self.sound)
        wrong[150] ^= 1
        self.check_nothing(bytes(wrong))

    def test_an_output_that_exists_is_kept(self):
        with open(self.out, "wb") as f:
            f.write(b"kept")
        self.assertEqual(self.salvage(self.sound, "--match", "no such key").returncode, 1)
        with open(self.out, "rb") as f:
            self.assertEqual(f.read(), b"kept")

    def test_a_key_that_matches_is_saved(self):
        run = self.salvage(self.sound, "--json", "--type", "hash")
        reported = json.loads(run.stdout)["files"][0]["salvage"]
        self.assertEqual((run.returncode, reported["out"]["keys"]), (0, 1))
        self.assertNotIn("nothing_matched", reported)


if __name__ == "__main__":
    unittest.main()
