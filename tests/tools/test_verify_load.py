"""redoubt verify --level load: a server loads the sets, and nothing of it remains."""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from backup_case import FIXTURES, REDOUBT, BackupCase
import redis_server
from redis_server import RedisServer
from test_backup_cluster import ClusterCase

SERVER = os.environ["REDOUBT_SERVER"]
REDIS = redis_server.program()
PATIENCE = 600


class VerifyLoad(BackupCase):
    def setUp(self):
        super().setUp()
        self.tmp = self.path("tmp")
        os.mkdir(self.tmp)

    def verify(self, *args, server=SERVER):
        """The result for the newest set, and the exit status."""
        done = subprocess.run(
            [REDOUBT, "verify", "nightly", "--config", self.config, "--level", "load", "--server",
             server, "--json", "--set", "latest", *args],
            capture_output=True, check=False, env={**os.environ, "TMPDIR": self.tmp})
        self.assertEqual(os.listdir(self.tmp), [], "something remains")
        self.said = done.stdout.decode() + done.stderr.decode()
        sets = json.loads(done.stdout)["sets"]
        return sets[0] if sets else None, done.returncode

    def backed_up(self, fill, config=None, source="dump.rdb", **more):
        """A set of what `fill` writes to a server; returns the number of its keys."""
        with RedisServer({"databases": "40", **(config or {})}) as server:
            server.command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            fill(server)
            if source == "dump.rdb":
                server.command("SAVE")
            self.nightly(source=os.path.join(server.dir, source), **more)
            self.good("backup", "nightly")

    def fill(self, server):
        for i in range(50):
            server.command("SET", f"k{i}", "v")
        server.command("SELECT", "33")
        server.command("RPUSH", "list", "a", "b")
        for i in range(7):
            server.command("SET", f"e{i}", "v", "PX", "1")
        time.sleep(0.01)

    def test_a_snapshot_with_keys_that_have_expired(self):
        self.backed_up(self.fill)
        for server, name in ((SERVER, "redoubt "), (REDIS, " ".join(redis_server.installed()))):
            found, status = self.verify(server=server)
            self.assertEqual(status, 0, self.said)
            self.assertTrue(found["good"] and found["loaded"])
            self.assertEqual(found["keys"], 58)
            self.assertTrue(found["server"].startswith(name), found)

    def test_a_log(self):
        self.backed_up(self.fill, config={"appendonly": "yes", "appendfilename": "other.aof"},
                       source="appendonlydir")
        for server in (SERVER, REDIS):
            found, status = self.verify(server=server)
            self.assertEqual(status, 0, self.said)
            self.assertEqual(found["keys"], 58)

    def test_the_text_and_the_default_server(self):
        self.backed_up(self.fill, sealed=False)
        shutil.copy(REDOUBT, self.path("redoubt"))
        os.symlink(SERVER, self.path("redoubt-server"))
        done = subprocess.run([self.path("redoubt"), "verify", "--config", self.config, "--level",
                               "load"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout.decode(), r": ok \(load into redoubt [0-9.]+, 58 keys\)\n")

    def test_a_server_that_is_too_old(self):
        self.nightly(source=os.path.join(FIXTURES, "redis-8.6.3", "r13.rdb"))
        self.good("backup", "nightly")
        found, status = self.verify(server=REDIS)
        self.assertEqual(status, 1, self.said)
        self.assertFalse(found["good"] or found["loaded"])
        self.assertEqual(found["server"].lower(), " ".join(redis_server.installed()))
        self.assertIn("Can't handle RDB format version 13", found["error"]["text"])
        self.assertEqual(self.sets()[-1]["state"], "ok", "one server's refusal is not damage")

    def test_a_server_with_other_keys(self):
        self.backed_up(self.fill)
        script = self.write("other", f'#!/bin/sh\nrm dump.rdb\nexec "{REDIS}" "$@"\n')
        os.chmod(script, 0o700)
        found, status = self.verify(server=script)
        self.assertEqual(status, 1, self.said)
        self.assertIn("has 0 keys in database 0, the backup has 50", found["error"]["text"])

    def test_damage_is_found_before_a_server_starts(self):
        self.backed_up(self.fill, sealed=False, more="compress = none\n")
        with open(self.object(), "r+b") as file:
            file.seek(20)
            file.write(b"xxx")
        found, status = self.verify(server="/none")
        self.assertEqual(status, 1)
        self.assertFalse(found["good"])

    def test_programs_that_are_not_servers(self):
        self.backed_up(self.fill)
        for program, text in (("/none", "cannot be started"), ("false", "is not a server"),
                              ("ls", "is not a server: ")):
            _, status = self.verify(server=program)
            self.assertEqual(status, 3, self.said)
            self.assertIn(text, self.said)
        for command in (f'exec "{REDIS}" --unknown-setting yes', """cat <<'END'; exit 1
7:C 28 Nov 2026 10:00:00.000 * Redis version=8.0.2, bits=64, pid=7, just started
7:M 28 Nov 2026 10:00:00.000 # Unresolved Configuration(s) Detected:
7:M 28 Nov 2026 10:00:00.000 # >>> 'a-setting yes'
7:M 28 Nov 2026 10:00:00.000 # Module Configuration detected without loadmodule directive
END"""):
            script = self.write("picky", f"#!/bin/sh\n{command}\n")
            os.chmod(script, 0o700)
            _, status = self.verify(server=script)
            self.assertEqual(status, 3, self.said)
            self.assertIn("refuses its settings", self.said)

    def test_nothing_remains_after_a_signal(self):
        """The server does not listen, so that the tool waits for it."""
        self.backed_up(self.fill)
        script = self.write("silent", f'#!/bin/sh\necho $$ > "{self.path("pid")}.new"\n'
                            f'mv "{self.path("pid")}.new" "{self.path("pid")}"\n'
                            f'exec "{REDIS}" --port 0\n')
        os.chmod(script, 0o700)
        for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([REDOUBT, "verify", "--config", self.config, "--level", "load",
                                   "--server", script], stderr=subprocess.DEVNULL,
                                  env={**os.environ, "TMPDIR": self.tmp}) as process:
                self.poll(lambda: os.path.exists(self.path("pid")))
                pid = int(self.read("pid"))
                process.send_signal(number)
                process.wait()
            self.assertEqual(process.returncode, -9 if number == signal.SIGKILL else 128 + number)
            self.poll(lambda: not os.path.exists(f"/proc/{pid}") and not os.listdir(self.tmp))
            os.unlink(self.path("pid"))

    def poll(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, "it does not happen")
            time.sleep(0.01)


class OfCluster(ClusterCase):
    def test_the_snapshot_of_each_master_is_loaded(self):
        nodes = self.cluster()
        self.fill(nodes, 10)
        self.clustered(nodes)
        self.good("backup", "nightly")
        done = self.tool("verify", "nightly", "--level", "load", "--server", SERVER, "--json")
        self.assertTrue(done.stdout, done.stderr)
        found = json.loads(done.stdout)["sets"][0]
        self.assertEqual(done.returncode, 0, found)
        self.assertEqual(found["keys"], 30)
        done = self.tool("verify", "nightly", "--level", "load", "--server", SERVER)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
