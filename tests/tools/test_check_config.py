"""redoubt check-config: says "ok" only if a backup would get its data and could store it."""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from archive_case import ArchiveCase  # noqa: E402
from redis_server import free_port  # noqa: E402


class CheckConfig(ArchiveCase):
    def source(self, server, user="", more=""):
        self.nightly(source=f"redis://{user}127.0.0.1:{server.port}", sealed=False, more=more)

    def checks(self, *args):
        """The names of the checks that failed, and the exit status."""
        found, status = self.json("check-config", *args)
        return [check["check"] for check in found["checks"] if not check["ok"]], status

    def test_what_the_user_of_a_server_may_do(self):
        server = self.server()
        server.command("SET", "key", "1")
        for user, rules in (("few", ("+ping", "+replconf")), ("psync", ("+psync", "+replconf")),
                            ("scan", ("~*", "+scan", "+dump", "+pttl", "+time", "+select",
                                      "+info", "+restore")),
                            ("blind", ("~*", "+scan", "+pttl", "+time", "+select", "+info"))):
            server.command("ACL", "SETUSER", user, "on", ">x", *rules)
        self.source(server, "few:x@")
        for tool in ("check-config", "backup"):
            self.fails(6, "psync", tool)
        self.assertIn(b"hint: the user's ACL", self.tool("check-config").stdout)
        self.source(server, "psync:wrong@")
        self.fails(6, "WRONGPASS", "check-config")
        self.source(server, "psync:x@")
        self.assertEqual(self.checks(), ([], 0))
        # Nothing was synchronized, or is about to be.
        info = server.command("INFO").decode()
        self.assertIn("sync_full:0", info)
        self.assertIn("connected_slaves:0", info)
        self.good("backup")
        self.source(server, "scan:x@", more="scan = yes\n")
        self.assertEqual(self.checks(), ([], 0))
        self.good("backup")
        self.source(server, "blind:x@", more="scan = yes\n")
        for tool in ("check-config", "backup"):
            self.fails(6, "dump", tool)

    def test_a_server_that_knows_no_replicas(self):
        hidden = "".join(f'rename-command {name} ""\n' for name in ("PSYNC", "SYNC", "REPLCONF"))
        server = self.server(include=self.write("hidden.conf", hidden))
        self.source(server)
        for tool in ("backup", "check-config"):
            done = self.fails(4, "SYNC", tool)
            self.assertIn(b"scan = yes", done.stderr + done.stdout)
        self.source(server, more="scan = yes\n")
        self.assertEqual(self.checks(), ([], 0))

    def test_a_cluster_without_a_master(self):
        node = self.server(cluster_enabled="yes", cluster_port=str(free_port()))
        self.source(node, more=f"cluster = yes\nspool = {self.spool}\n")
        self.fails(6, "slots", "check-config")
        node.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        self.assertEqual(self.checks(), ([], 0))
        self.write("file", "x")
        self.assertEqual(self.checks("--spool", self.path("file", "x")), (["spool"], 3))

    def test_a_folder_whose_log_cannot_be_read(self):
        """The snapshot there is not what the server would load."""
        self.nightly(sealed=False)
        os.mkdir(self.path("data"))
        shutil.copy(self.path("dump.rdb"), self.path("data", "dump.rdb"))
        self.nightly(source=self.path("data"), sealed=False)
        self.assertEqual(self.checks(), ([], 0))
        os.symlink("appendonlydir", self.path("data", "appendonlydir"))
        for tool in ("backup", "check-config"):
            self.fails(3, "appendonlydir", tool)
        os.unlink(self.path("data", "appendonlydir"))
        self.write("data/appendonly.aof", "")
        for tool in ("backup", "check-config"):
            self.fails(4, "before Redis 7.0", tool)
        os.unlink(self.path("data", "appendonly.aof"))
        os.unlink(self.path("data", "dump.rdb"))
        self.fails(3, "dump.rdb", "check-config")
        self.assertEqual(self.sets(), [])

    def test_settings_of_which_a_backup_would_complain(self):
        for more in ("compress = xz", "lock-wait = soon", "prune = perhaps", "scan = yes"):
            self.nightly(sealed=False, more=more + "\n")
            self.assertIn("settings", self.checks()[0], more)

    def test_every_value_that_would_fail_later_is_found(self):
        missing = self.path("missing", "file")
        for more, check, status in (
                ("archive-interval = 0s", "settings", 2),
                ("base-interval = 0s", "settings", 2),
                ("restore-time = soon", "settings", 2),
                ("lock-expire = 0s", "settings", 2),
                ("segment-size = 0", "settings", 2),
                ("key-index = maybe", "settings", 2),
                ("merge = maybe", "settings", 2),
                ("merge-grace = soon", "settings", 2),
                ("spool-size = much", "settings", 2),
                ("s3-instance-keys = perhaps", "settings", 2),
                ("s3-endpoint = ftp://host", "settings", 2),
                ("compress = gzip\ncompress-level = 12", "settings", 2),
                ("compress = gzip\ncompress-level = 0", "settings", 2),
                ("compress = zstd\ncompress-level = 20", "settings", 2),
                ("compress-level = 13", "settings", 2),
                ("compress-level = 13", "settings", 2),
                ("heartbeat-url = ftp://host/secret", "heartbeat", 2),
                ("heartbeat-failed-url = host/secret", "heartbeat", 2),
                (f"metrics-file = {missing}", "metrics-file", 3),
                (f"metrics-file = {self.folder}", "metrics-file", 3),
                (f"archive-metrics-file = {missing}", "archive-metrics-file", 3),
                ("heartbeat-url = http://", "heartbeat", 2),
                ("heartbeat-url = https:///secret", "heartbeat", 2),
                ("s3-endpoint = https://", "settings", 2),
                ("sentinel = host:99999", "settings", 2),
                ("sentinel = ,", "settings", 2),
                (f"sentinel = host\nsentinel-pass-file = {missing}", "settings", 3),
                ("metrics-file = x\narchive-metrics-file = x", "settings", 2),
                ("repository = ftp://host/path", "repository", 4)):
            self.nightly(sealed=False, more=more + "\n")
            self.assertEqual(self.checks(), ([check], status), more)
            self.assertNotIn(b"secret", self.tool("check-config").stdout)
        self.nightly(sealed=False, more=f"metrics-file = {self.path('m.prom')}\n"
                     "compress = gzip\ncompress-level = 9\nheartbeat-url = https://host/x\n")
        self.assertEqual(self.checks(), ([], 0))
        self.nightly(sealed=False, more="compress = gzip\ncompress-level = 12\n")
        self.fails(2, "from 1 to 9 for gzip", "backup")


if __name__ == "__main__":
    unittest.main()
