"""What the tests of backups share: a folder with a configuration, and the tools run in it."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
SNAPSHOT = os.path.join(FIXTURES, "redis-7.0.15", "tiny.rdb")


class BackupCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-backup-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.repository = self.path("repo")
        self.config = self.path("redoubt.conf")
        self.key = self.path("key")

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, data):
        data = data if isinstance(data, bytes) else data.encode()
        with open(self.path(name), "wb") as out:
            out.write(data)
        return self.path(name)

    def read(self, *parts):
        with open(self.path(*parts), "rb") as file:
            return file.read()

    def configure(self, text):
        self.write("redoubt.conf", text)

    def make_key(self):
        self.good("seal", "--make-key", self.key)

    def nightly(self, source=None, sealed=True, more=""):
        """The configuration that most tests have: the one of the manual."""
        if sealed and not os.path.exists(self.key):
            self.make_key()
        if source is None:
            source = self.path("dump.rdb")
            if not os.path.exists(source):
                shutil.copy(SNAPSHOT, source)
        key = f"key-file = {self.key}\n" if sealed else ""
        self.configure(f"[nightly]\nsource = {source}\nrepository = {self.repository}\n{key}"
                       f"keep = hourly 48, daily 60\n{more}")

    def tool(self, name, *args, stdin=b"", env=None, preexec_fn=None):
        configured = name not in ("seal", "unseal") and "--config" not in args
        more = ["--config", self.config] if configured else []
        return subprocess.run([REDOUBT, name, *args, *more], input=stdin, capture_output=True,
                              env={**os.environ, **(env or {})}, preexec_fn=preexec_fn,
                              check=False)

    def good(self, name, *args, stdin=b""):
        done = self.tool(name, *args, stdin=stdin)
        self.assertEqual(done.returncode, 0, (done.stderr + done.stdout).decode(errors="replace"))
        return done.stdout

    def fails(self, status, text, name, *args, stdin=b"", preexec_fn=None):
        """Ends with this status, and says this on one of its outputs."""
        done = self.tool(name, *args, stdin=stdin, preexec_fn=preexec_fn)
        said = (done.stderr + done.stdout).decode(errors="replace")
        self.assertEqual(done.returncode, status, said)
        self.assertIn(text, said)
        return done

    def json(self, name, *args):
        done = self.tool(name, *args, "--json")
        return json.loads(done.stdout), done.returncode

    def sets(self, target="nightly"):
        """The sets that the repository lists, from old to new."""
        return [s for s in self.json("list")[0]["sets"] if s["target"] == target]

    def set_folder(self, target="nightly"):
        """The folder of the newest set."""
        return os.path.join(self.repository, target, "sets", self.sets(target)[-1]["id"])

    def object(self, target="nightly"):
        """The path of the first object of the newest set."""
        newest = self.sets(target)[-1]
        return os.path.join(self.set_folder(target), newest["files"][0]["object"])
