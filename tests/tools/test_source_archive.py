"""The archive of the sources that packaging/build makes: what is committed, the same each time."""

import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import unittest

SOURCE = os.environ["REDOUBT_SOURCE"]


class Archive(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-archive-")
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "tree")
        for name in "meson.build", "packaging/build", "packaging/debian/changelog":
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, name), self.path(name))
        self.git("init", "-q")
        self.git("add", ".")
        self.git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x")

    def path(self, name):
        return os.path.join(self.root, name)

    def git(self, *args):
        subprocess.run(["git", *args], cwd=self.root, check=True)

    def archive(self, name):
        """The path of the archive made into a folder of this name."""
        out = os.path.join(os.path.dirname(self.root), name)
        done = subprocess.run([self.path("packaging/build"), out, "--sources"],
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return os.path.join(out, next(f for f in os.listdir(out) if f.endswith(".tar.gz")))

    @staticmethod
    def read(path):
        with open(path, "rb") as f:
            return f.read()

    def test_it_has_what_is_committed_and_nothing_else(self):
        with open(self.path("dump.rdb"), "wb") as f:
            f.write(b"REDIS0011")
        with open(self.path("meson.build"), "ab") as f:
            f.write(b"# not committed\n")
        with tarfile.open(self.archive("out")) as tar:
            members = {member.name.partition("/")[2]: member for member in tar if member.isfile()}
            self.assertEqual(sorted(members),
                             ["meson.build", "packaging/build", "packaging/debian/changelog"])
            text = tar.extractfile(members["meson.build"]).read()
            self.assertNotIn(b"not committed", text)
            for member in members.values():
                self.assertEqual((member.uid, member.gid, member.uname), (0, 0, ""))

    def test_the_same_commit_gives_the_same_bytes(self):
        first = self.read(self.archive("first"))
        later = time.time() + 1000
        os.utime(self.path("meson.build"), (later, later))
        os.chmod(self.path("meson.build"), 0o600)
        self.assertEqual(self.read(self.archive("second")), first)

    def test_an_unpacked_archive_gives_itself(self):
        path = self.archive("first")
        first = self.read(path)
        shutil.rmtree(self.root)
        subprocess.run(["tar", "-C", os.path.dirname(self.root), "-xzf", path], check=True)
        unpacked = os.path.basename(path).removesuffix(".tar.gz")
        os.rename(os.path.join(os.path.dirname(self.root), unpacked), self.root)
        again = self.archive("second")
        with tarfile.open(again) as a, tarfile.open(path) as b:
            self.assertEqual(a.getnames(), b.getnames())
        self.assertNotEqual(first, b"")


if __name__ == "__main__":
    unittest.main()
