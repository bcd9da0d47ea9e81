"""`redoubt verify --sample`: a part each day, and a verdict about that part alone."""

import os
import unittest

from backup_case import BackupCase
from test_backup_chunks import snapshot


class Sample(BackupCase):
    def damage(self, path):
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))

    def sample(self, of, status=0):
        done, ended = self.json("verify", "--sample", f"1/{of}")
        self.assertEqual(ended, status, done)
        return done

    def test_sets_with_files(self):
        self.nightly()
        for _ in range(9):
            self.good("backup")
        done = self.sample(3)
        levels = {s["id"]: s["level"] for s in done["sets"]}
        self.assertEqual(done["sample"]["sets"], 9)
        self.assertEqual(done["sample"]["of"], 3)
        self.assertEqual(done["sample"]["sets_read"], list(levels.values()).count("digest"))
        self.assertTrue(all(s["good"] for s in done["sets"]))
        said = self.good("verify", "--sample", "1/3")
        self.assertIn(b"the others were only listed", said)
        for s in self.sets():
            path = os.path.join(self.repository, "nightly", "sets", s["id"],
                                s["files"][0]["object"])
            self.damage(path)
            found = self.sample(3, 1 if levels[s["id"]] == "digest" else 0)
            self.assertEqual(found["damaged"], levels[s["id"]] == "digest")
            self.damage(path)
        self.sample(3)
        path = os.path.join(self.repository, "nightly", "sets", s["id"], s["files"][0]["object"])
        os.truncate(path, 10)
        self.sample(1000, 1)

    def test_sets_in_chunks(self):
        self.nightly(more=f"store = chunks\nspool = {self.path('spool')}\n")
        for i in range(9):
            self.write("dump.rdb", snapshot(600, changed=range(i * 30)))
            self.good("backup")
        done = self.sample(2)["sample"]
        self.assertEqual(done["sets_read"], 0)
        self.assertEqual(done["packs"], 9)
        folder = self.path("repo", "nightly", "chunks")
        n_found = 0
        for name in sorted(os.listdir(folder)):
            self.damage(os.path.join(folder, name))
            found, status = self.json("verify", "--sample", "1/2")
            n_found += status == 1
            self.assertEqual(status == 1, len(found["chunks"]) > 0)
            self.damage(os.path.join(folder, name))
        self.assertEqual(n_found, done["packs_read"])
        self.good("verify")

    def test_options(self):
        self.nightly()
        for wrong in ("2/7", "1/1", "1/1001", "1/x", "7"):
            self.fails(2, "--sample must be", "verify", "--sample", wrong)
        self.fails(2, "cannot be combined", "verify", "--sample", "1/7", "--set", "latest")


if __name__ == "__main__":
    unittest.main()
