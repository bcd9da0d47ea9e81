"""What someone who can write to a repository, but has no key, puts into it."""

import hashlib
import json
import os
import re
import shutil
import unittest

from backup_case import SNAPSHOT, BackupCase

SET = "20990101T000000Z-00000001"
SEGMENT = ("20261101T000000Z-00000001/00000001-" + 40 * "a" +
           "/00000001-100-200-1000-2000.seg")


def with_digest(body, rest=b""):
    """A manifest with the SHA-256 that anybody can compute."""
    return body + b',\n "sha256": "' + hashlib.sha256(body).hexdigest().encode() + b'"' + rest


class Forged(BackupCase):
    def setUp(self):
        super().setUp()
        self.nightly()
        self.good("backup")
        self.out = self.path("out.rdb")

    def manifest(self):
        return os.path.join(self.set_folder(), "manifest.json")

    def rewrite(self, change):
        """Replaces the text before the SHA-256, and the HMAC after it."""
        path = self.manifest()
        text = self.read(path)
        at = text.rindex(b',\n "sha256"')
        body, hmac = change(text[:at], text[text.rindex(b',\n "hmac"'):])
        with open(path, "wb") as file:
            file.write(with_digest(body, hmac))

    def test_a_manifest_that_cannot_be_used_does_not_keep_others_from_being_verified(self):
        first = os.path.join(self.repository, "nightly", "sets", "20000101T000000Z-00000000")
        good, status = self.json("verify")
        self.assertEqual((status, len(good["streams"])), (0, 1))
        for text, code in ((with_digest(b'{"format": 99', b"}\n"), 4), (bytes(64 << 20), 5)):
            os.makedirs(first, exist_ok=True)
            self.write(os.path.join(first, "manifest.json"), text)
            report, status = self.json("verify")
            self.assertEqual((status, report["good"]), (code, good["good"]))
            self.assertEqual(report["streams"], good["streams"])

    def test_a_manifest_that_was_changed(self):
        changes = {
            "changed": lambda body, hmac: (re.sub(rb'"keys": \d+', b'"keys": 99', body), hmac),
            "zeros": lambda body, hmac: (body, re.sub(rb"[0-9a-f]{64}", 64 * b"0", hmac)),
            "removed": lambda body, hmac: (body, b"}\n"),
            "no key": lambda body, hmac: (re.sub(rb'"key_id": "\w+"', b'"key_id": ""', body),
                                          b"}\n"),
        }
        intact = self.read(self.manifest())
        path = self.manifest()
        for name, change in changes.items():
            with self.subTest(name):
                self.rewrite(change)
                self.fails(2, "no good set", "restore", "--to", self.out)
                newest = os.path.basename(os.path.dirname(path))
                self.fails(1, "sign", "restore", "--to", self.out, "--set", newest)
                self.fails(1, "sign", "verify", "--level", "list")
                self.fails(1, "sign", "list")
                self.assertFalse(os.path.exists(self.out))
                with open(path, "wb") as file:
                    file.write(intact)
        shutil.rmtree(os.path.join(self.repository, "nightly", "marks"))
        self.good("restore", "--to", self.out)
        self.assertEqual(json.loads(self.good("list", "--json"))["sets"][0]["signature"], "valid")

    def test_an_older_set_is_not_taken_without_a_word(self):
        self.good("backup")
        self.rewrite(lambda body, hmac: (body + b" ", hmac))
        done = self.tool("restore", "--to", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"1 newer set of nightly left out", done.stderr)
        self.assertIn(b"not signed with this key", done.stderr)

    def test_a_set_of_another_target_with_the_same_passphrase(self):
        self.write("phrase", "a long phrase\n")
        shutil.rmtree(self.repository)
        common = f"repository = {self.repository}\npassphrase-file = {self.path('phrase')}\n"
        other = self.write("other.rdb", self.read(SNAPSHOT))
        self.configure(f"[nightly]\nsource = {self.path('dump.rdb')}\n{common}"
                       f"[weekly]\nsource = {other}\n{common}")
        self.good("backup")
        self.good("verify", "--level", "parse")
        self.good("restore", "weekly", "--to", self.out)
        weekly, nightly = self.set_folder("weekly"), self.set_folder("nightly")
        shutil.rmtree(nightly)
        shutil.copytree(weekly, os.path.join(os.path.dirname(nightly), os.path.basename(weekly)))
        newest = os.path.basename(weekly)
        text = "the manifest belongs to the target weekly"
        self.fails(1, text, "restore", "nightly", "--force", "--to", self.out, "--set", newest)
        self.fails(2, "no good set", "restore", "nightly", "--force", "--to", self.out)
        self.fails(1, text, "verify", "nightly", "--level", "list")
        self.fails(1, text, "list", "nightly")

    def put_unsealed(self):
        """A set and a segment that are not sealed, as someone without the key makes them."""
        self.write("forged.rdb", self.read(SNAPSHOT))
        self.configure(f"[nightly]\nsource = {self.path('forged.rdb')}\n"
                       f"repository = {self.path('theirs')}\n")
        self.good("backup")
        theirs = os.path.join(self.path("theirs"), "nightly", "sets")
        [made] = os.listdir(theirs)
        folder = os.path.join(self.repository, "nightly", "sets", SET)
        shutil.copytree(os.path.join(theirs, made), folder)
        path = os.path.join(folder, "manifest.json")
        text = self.read(path).replace(made.encode(), SET.encode())
        with open(path, "wb") as file:
            file.write(with_digest(text[: text.rindex(b',\n "sha256"')], b"}\n"))
        segment = os.path.join(self.repository, "nightly", "stream", SEGMENT)
        os.makedirs(os.path.dirname(segment))
        with open(segment, "wb") as file:
            file.write(b"x")
        self.nightly()

    def test_what_is_not_sealed_is_refused_by_all_tools(self):
        good = self.sets()[0]["id"]
        self.put_unsealed()
        done = self.fails(1, "REFUSED", "verify", "--level", "digest")
        self.assertIn(SEGMENT.encode(), done.stdout)
        self.assertIn(f"{good}: ok".encode(), done.stdout)
        done = self.fails(1, "not sealed", "list")
        self.assertIn(b"1 segment of the stream is not sealed", done.stderr)
        done = self.fails(0, "1 newer set of nightly left out", "restore", "--to", self.out)
        self.assertIn(good.encode(), done.stderr + done.stdout)
        self.fails(1, "--allow-unsealed", "restore", "--force", "--to", self.out, "--set", SET)
        self.fails(2, "left out: not sealed", "restore", "--force", "--to", self.out,
                   "--target-time", "1970-01-01T00:00:01Z")
        self.good("restore", "--force", "--to", self.out, "--set", SET, "--allow-unsealed")

    def mark_damaged(self, name):
        marks = os.path.join(self.repository, "nightly", "marks")
        os.makedirs(marks, exist_ok=True)
        with open(os.path.join(marks, name + ".damaged"), "wb"):
            pass

    def test_no_forged_mark_makes_prune_remove_a_good_set(self):
        self.good("backup")
        self.good("backup")
        oldest, older, newest = (s["id"] for s in self.sets()[-3:])
        self.mark_damaged(newest)
        self.good("prune", "--keep", "count 1", "--confirm")
        # The older one is the newest that is certainly good.
        self.assertEqual([s["id"] for s in self.sets()], [older, newest])
        self.good("restore", "--force", "--to", self.out, "--set", newest)
        # A set that is old enough goes, marked or not.
        self.mark_damaged(older)
        self.good("verify", "--set", newest)
        self.good("prune", "--keep", "count 1", "--confirm")
        self.assertEqual([s["id"] for s in self.sets()], [newest])
        self.assertNotIn(oldest, os.listdir(os.path.join(self.repository, "nightly", "sets")))

    def test_a_mark_of_damage_is_named_and_verify_removes_it(self):
        """Marks are not signed: everybody who can write to the store can make one."""
        self.good("backup")
        older, newest = (s["id"] for s in self.sets()[-2:])
        self.mark_damaged(newest)
        done = self.tool("restore", "--force", "--to", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"1 newer set of nightly left out; {newest}: verify found damage".encode(),
                      done.stderr)
        self.assertIn(older.encode(), done.stdout + done.stderr)
        self.assertEqual([s["state"] for s in self.sets()[-2:]], ["ok", "damaged"])
        self.good("verify")
        self.assertEqual([s["state"] for s in self.sets()[-2:]], ["ok", "ok"])
        done = self.tool("restore", "--force", "--to", self.out)
        self.assertNotIn(b"left out", done.stderr)

    def test_no_forged_set_makes_prune_remove_a_good_one(self):
        good = self.sets()[0]["id"]
        self.put_unsealed()
        os.rename(os.path.join(self.repository, "nightly", "sets", SET), self.path("forged"))
        forged = f"{good[:-1]}{'1' if good[-1] != '1' else '2'}"
        folder = os.path.join(self.repository, "nightly", "sets", forged)
        shutil.copytree(self.path("forged"), folder)
        path = os.path.join(folder, "manifest.json")
        text = self.read(path).replace(SET.encode(), forged.encode())
        text = re.sub(rb'"begin_ms": (\d+)', b'"begin_ms": 4000000000000', text)
        with open(path, "wb") as file:
            file.write(with_digest(text[: text.rindex(b',\n "sha256"')], b"}\n"))
        config = self.read("redoubt.conf").replace(b"hourly 48, daily 60", b"count 1")
        self.write("redoubt.conf", config)
        done = self.tool("prune", "--confirm", "--json")
        kept = {s["id"]: s["why"] for s in json.loads(done.stdout)["sets"] if s["keep"]}
        self.assertIn("count", kept[good])
        self.assertEqual(kept[forged], ["not proved"])
        self.good("restore", "--force", "--to", self.out, "--set", good)
        done = self.good("prune", "--json", "--allow-unsealed")
        self.assertFalse([s["keep"] for s in json.loads(done)["sets"] if s["id"] == good][0])


if __name__ == "__main__":
    unittest.main()
