"""`redoubt copy`: sets from one repository to another, of all kinds and with other keys."""

import glob
import os
import random
import shutil
import unittest

from backup_case import BackupCase
from s3_server import S3Server
from test_backup_chunks import snapshot


class Copy(BackupCase):
    def setUp(self):
        super().setUp()
        self.other = self.path("other-key")
        self.store = "store = chunks\n"

    def use(self, store=None, sealed=True, to="", keys=None):
        """The targets nightly and offsite, each with a key of its own."""
        self.store = self.store if store is None else store
        self.nightly(sealed=sealed, more=self.store + f"spool = {self.path('spool')}\n")
        if keys is None:
            if not os.path.exists(self.other):
                self.good("seal", "--make-key", self.other)
            keys = f"key-file = {self.other}\n"
        text = self.read("redoubt.conf").decode()
        repository = to or f"repository = {self.path('offsite')}\n"
        self.configure(text + "[offsite]\n" + repository + keys)

    def back_up(self, data):
        self.write("dump.rdb", data)
        self.good("backup", "nightly")
        return self.sets()[-1]["id"]

    def copies(self, *args, status=0):
        """What became of each set, from old to new."""
        done, ended = self.json("copy", "nightly", "offsite", *args)
        self.assertEqual(ended, status, done)
        return done["sets"]

    def expect(self, ident, data, target="offsite"):
        self.good("restore", target, "--set", ident, "--to", self.path("out.rdb"), "--force")
        self.assertEqual(self.read("out.rdb"), data)

    def packs(self):
        return sorted(glob.glob(self.path("offsite", "offsite", "chunks", "*.pack")))

    def test_sets_in_chunks_with_another_key(self):
        self.use()
        datas = [snapshot(9000, changed=range(i * 7, i * 50)) for i in range(3)]
        datas.append(snapshot(9000, order=3, changed={1}))
        ids = [self.back_up(data) for data in datas[:3]]
        first = self.copies()
        self.assertEqual([s["state"] for s in first], ["copied"] * 3)
        self.assertEqual(first[0]["chunks_sent"], first[0]["chunks"])
        self.assertLess(first[1]["bytes"], first[0]["bytes"] / 5)
        self.assertLess(first[1]["chunks_sent"], first[1]["chunks"])
        ids.append(self.back_up(datas[3]))
        self.assertEqual([s["state"] for s in self.copies()], ["there"] * 3 + ["copied"])
        for ident, data in zip(ids, datas):
            self.expect(ident, data)
        self.good("verify", "offsite", "--level", "parse")
        self.assertEqual([s["id"] for s in self.sets("offsite")], ids)
        self.good("restore", "offsite", "--key", "key:77", "--to", self.path("key.rdb"))
        self.good("prune", "offsite", "--keep", "count 1", "--confirm")
        self.expect(ids[-1], datas[-1])

    def test_a_set_without_changes_has_a_pack_of_its_own(self):
        self.use()
        data = snapshot(3000)
        ids = [self.back_up(data) for _ in range(3)]
        self.assertEqual([s["state"] for s in self.copies()], ["copied"] * 3)
        names = [os.path.basename(p) for p in self.packs()]
        self.assertEqual({n.split(".")[0] for n in names}, set(ids))
        for ident in ids:
            self.expect(ident, data)

    def test_an_interrupted_copy_is_continued(self):
        self.use()
        data = snapshot(9000)
        ident = self.back_up(data)
        first = self.copies()[0]
        shutil.rmtree(self.path("offsite", "offsite", "sets"))
        again = self.copies()[0]
        self.assertEqual(again["chunks_sent"], 0)
        self.assertEqual(again["chunks_resumed"], first["chunks"])
        self.assertEqual(again["state"], "copied")
        self.expect(ident, data)
        self.good("verify", "offsite", "--level", "parse")

    def test_what_an_interrupted_copy_sent_is_proved(self):
        self.use()
        self.back_up(snapshot(9000))
        self.copies()
        shutil.rmtree(self.path("offsite", "offsite", "sets"))
        pack = max(self.packs(), key=os.path.getsize)
        with open(pack, "r+b") as file:
            file.seek(30000)
            byte = file.read(1)[0]
            file.seek(30000)
            file.write(bytes([byte ^ 1]))
        failed = self.copies(status=1)[0]
        self.assertEqual(failed["state"], "failed")
        self.assertIn("reading back", str(failed["error"]))
        self.assertEqual(self.sets("offsite"), [])
        os.unlink(pack)
        self.assertEqual(self.copies()[0]["state"], "copied")

    def test_sets_as_files(self):
        for sealed, keys in ((True, None), (False, ""), (True, f"key-file = {self.key}\n")):
            shutil.rmtree(self.repository, ignore_errors=True)
            shutil.rmtree(self.path("offsite"), ignore_errors=True)
            self.use(store="", sealed=sealed, keys=keys)
            data = snapshot(500)
            ident = self.back_up(data)
            os.mkdir(self.path("offsite"))
            self.assertEqual(self.copies("--dry-run")[0]["state"], "would be copied")
            self.assertEqual(os.listdir(self.path("offsite")), [])
            self.assertEqual(self.copies()[0]["state"], "copied")
            self.expect(ident, data)
            self.good("verify", "offsite")
            self.assertEqual(self.copies()[0]["state"], "there")

    def test_to_the_other_repositories_of_a_target(self):
        for store in ("", "store = chunks\n"):
            shutil.rmtree(self.repository, ignore_errors=True)
            second = self.path("second" + store[:5])
            self.nightly(more=store + f"spool = {self.path('spool')}\n")
            data = snapshot(700)
            self.write("dump.rdb", data)
            self.good("backup")
            ident = self.sets()[-1]["id"]
            self.nightly(more=store + f"repository = {second}\n")
            self.good("copy", "nightly")
            shutil.rmtree(self.repository)
            self.expect(ident, data, "nightly")
        self.nightly()
        self.good("backup")
        self.fails(2, "name another target", "copy", "nightly")

    def test_a_log(self):
        self.use()
        folder = self.path("appendonlydir")
        os.mkdir(folder)
        incr = b"".join(b"*3\r\n$3\r\nSET\r\n$5\r\nk%04d\r\n$1\r\nv\r\n" % i for i in range(500))
        self.write("appendonlydir/appendonly.aof.1.incr.aof", incr)
        self.write("appendonlydir/appendonly.aof.manifest",
                   b"file appendonly.aof.1.incr.aof seq 1 type i\n")
        self.configure(self.read("redoubt.conf").decode().replace(self.path("dump.rdb"), folder))
        self.good("backup", "nightly")
        self.assertEqual(self.copies()[0]["state"], "copied")
        self.good("restore", "offsite", "--to", self.path("out/"))
        self.assertEqual(self.read("out", "appendonlydir", "appendonly.aof.1.incr.aof"), incr)

    def test_what_is_damaged_is_not_copied(self):
        self.use()
        self.back_up(snapshot(3000))
        other = self.back_up(snapshot(40, changed=range(40)))
        name = [s for s in self.sets() if s["id"] == other][0]["files"][0]["object"]
        path = os.path.join(self.repository, "nightly", "sets", other, name)
        with open(path, "r+b") as file:
            file.seek(100)
            file.write(b"XXXX")
        states = self.copies(status=8)
        self.assertEqual([s["state"] for s in states], ["copied", "failed"])
        self.assertEqual(len(self.sets("offsite")), 1)
        self.assertEqual([s["state"] for s in self.copies("--set", states[0]["id"])], ["there"])

    def test_to_s3(self):
        with S3Server() as s3:
            self.write("s3key", f"{s3.access_key}\n{s3.secret_key}\n")
            self.use(to=f"repository = s3://vault/there\ns3-endpoint = {s3.url}\n"
                        f"s3-key-file = {self.path('s3key')}\n")
            data = snapshot(9000, order=random.Random(1).randrange(9))
            ident = self.back_up(data)
            self.assertEqual(self.copies()[0]["state"], "copied")
            begin = len(s3.requests)
            self.assertEqual(self.copies()[0]["state"], "there")
            self.assertEqual([r for r in s3.requests[begin:] if ".pack" in r[1]], [])
            self.expect(ident, data)


if __name__ == "__main__":
    unittest.main()
