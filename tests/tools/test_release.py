"""The archive of the sources that packaging/build makes: what is committed, the same each time. And
the files that packaging/release makes of it; the static programs are left to ./run release."""

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import unittest

SOURCE = os.environ["REDOUBT_SOURCE"]


class Sources(unittest.TestCase):
    """A repository with some files of ours."""

    files = "meson.build", "packaging/build", "packaging/debian/changelog"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-archive-")
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "tree")
        for name in self.files:
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, name), self.path(name))
        self.git("init", "-q")
        self.git("add", ".")
        self.git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x")

    def path(self, name):
        return os.path.join(self.root, name)

    def git(self, *args):
        subprocess.run(["git", *args], cwd=self.root, check=True)

    @staticmethod
    def read(path):
        with open(path, "rb") as f:
            return f.read()


class Archive(Sources):
    def archive(self, name):
        """The path of the archive made into a folder of this name."""
        out = os.path.join(os.path.dirname(self.root), name)
        done = subprocess.run([self.path("packaging/build"), out, "--sources"],
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return os.path.join(out, next(f for f in os.listdir(out) if f.endswith(".tar.gz")))

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


class Release(Sources):
    files = Sources.files + ("packaging/release", "packaging/sbom", "CHANGELOG.md",
                             "packaging/homebrew/redoubt.rb", "packaging/alpine/APKBUILD",
                             "packaging/alpine/redoubt-server.pre-install")

    def setUp(self):
        super().setUp()
        self.above = os.path.dirname(self.root)
        self.env = {**os.environ, "GNUPGHOME": os.path.join(self.above, "gnupg")}
        os.mkdir(self.env["GNUPGHOME"], 0o700)

    def release(self, name, *args):
        """Where the files are, and what was said."""
        out = os.path.join(self.above, name)
        done = subprocess.run([self.path("packaging/release"), os.path.join(self.above, "builds"),
                               out, "--sources", *args], capture_output=True, check=False,
                              env=self.env)
        return out, done

    def made(self, name, *args):
        out, done = self.release(name, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {f: self.read(os.path.join(out, f)) for f in os.listdir(out)}

    def refused(self, reason, *args):
        out, done = self.release("refused", *args)
        self.assertEqual(done.returncode, 1)
        self.assertIn(reason, done.stderr)
        self.assertFalse(os.path.exists(out) and "SHA256SUMS" in os.listdir(out))

    def test_the_files_agree_with_each_other(self):
        made = self.made("out")
        archive = next(name for name in made if name.endswith(".tar.gz"))
        version = archive.removeprefix("redoubt-").removesuffix(".tar.gz")
        self.assertEqual(set(made), {archive, f"redoubt-{version}.spdx.json", "NOTES.md",
                                     "SHA256SUMS", "redoubt.rb", "APKBUILD",
                                     "redoubt-server.pre-install"})
        sums = dict(line.split()[::-1] for line in made["SHA256SUMS"].decode().splitlines())
        self.assertEqual(sums, {name: hashlib.sha256(data).hexdigest()
                                for name, data in made.items() if name != "SHA256SUMS"})
        parts = json.loads(made[f"redoubt-{version}.spdx.json"])["packages"]
        self.assertEqual([(p["packageFileName"], p["versionInfo"]) for p in parts],
                         [(archive, version)])
        self.assertEqual(parts[0]["checksums"][0]["checksumValue"], sums[archive])
        self.assertIn(f'sha256 "{sums[archive]}"', made["redoubt.rb"].decode())
        self.assertIn(f"{hashlib.sha512(made[archive]).hexdigest()}  {archive}\n",
                      made["APKBUILD"].decode())
        notes = made["NOTES.md"].decode()
        section = f"\n## {version} ".join(self.read(self.path("CHANGELOG.md")).decode()
                                         .split(f"\n## {version} ")[1:])
        self.assertTrue(notes.startswith(f"# Redoubt {version}\n"))
        self.assertIn(notes.splitlines()[2], section)
        self.assertNotIn("\n## ", notes)

    def test_it_is_the_same_in_another_folder_and_signed_by_the_named_key(self):
        first = self.made("first")
        subprocess.run(["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key",
                        "Release <release@example.org>"], env=self.env, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(subprocess.run, ["gpgconf", "--kill", "all"], env=self.env, check=False)
        second = self.made("second", "--key", "release@example.org")
        self.assertIn("SHA256SUMS.asc", second)
        sums = os.path.join(self.above, "second", "SHA256SUMS")
        verify = ["gpg", "--batch", "--verify", sums + ".asc", sums]
        subprocess.run(verify, env=self.env, check=True, capture_output=True)
        del second["SHA256SUMS.asc"]
        self.assertEqual(second, first)
        with open(sums, "ab") as f:
            f.write(b"0")
        done = subprocess.run(verify, env=self.env, capture_output=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_what_it_refuses(self):
        self.refused(b"gpg has no key nobody", "--key", "nobody")
        with open(self.path("dump.rdb"), "wb") as f:
            f.write(b"REDIS0011")
        self.refused(b"changes that are not committed")
        os.unlink(self.path("dump.rdb"))
        os.mkdir(os.path.join(self.above, "refused"))
        with open(os.path.join(self.above, "refused", "file"), "wb") as f:
            f.write(b"1")
        self.refused(b"is not empty")


if __name__ == "__main__":
    unittest.main()
