"""redoubt doctor on Sentinels, on ours and on those of Redis, and on their files."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from fake_server import FakeServer, array, bulk  # noqa: E402
from sentinels import (  # noqa: E402
    FAILOVER_SECONDS, MASTER, Ours, Theirs, knows, lines_for, state, sut)
from server_under_test import wait_for  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
NOBODY = 65534
# What one host can never pass.
ONE_HOST = "sentinels-on-one-host,replicas-on-one-host,masters-on-one-host"


def examine(*args, **more):
    """The exit status, and the object."""
    done = subprocess.run([REDOUBT, "doctor", "--json", *args], capture_output=True, check=False,
                          **more)
    return done.returncode, json.loads(done.stdout)


class Case(unittest.TestCase):
    def enterContext(self, manager):  # unittest has it since Python 3.11
        entered = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return entered

    def checks(self, what, *args):
        url = what if isinstance(what, str) else f"redis://127.0.0.1:{what.port}"
        self.status, self.said = examine(url, *args)
        return {check["id"]: check for check in self.said["checks"]}

    def finds(self, checks, name, severity, text):
        check = checks[name]
        self.assertEqual((check["state"], check["severity"]), ("found", severity), check)
        self.assertIn(text, check["figure"])
        self.assertTrue(check["why"].endswith("."), check)
        self.assertTrue(check["fix"], check)

    def is_in_state(self, checks, state_word, *names):
        for name in names:
            self.assertEqual(checks[name]["state"], state_word, checks[name])

    def watched(self, kinds, n_replicas, quorum=2, more=""):
        master = self.enterContext(sut.Redis(dict(MASTER)))
        replicas = [self.enterContext(sut.Redis(dict(MASTER))) for _ in range(n_replicas)]
        for replica in replicas:
            replica.client().command("REPLICAOF", "127.0.0.1", master.port)
        for replica in replicas:
            wait_for(lambda r=replica: r.info("replication")["master_link_status"] == "up")
        watchers = [self.enterContext(kind(lines_for(master, quorum, more))) for kind in kinds]
        for w in watchers:
            wait_for(lambda w=w: knows(w, n_replicas, len(kinds) - 1), FAILOVER_SECONDS)
        return master, replicas, watchers


class Running(Case):
    def run_without_faults(self, kinds):
        _, _, watchers = self.watched(kinds, 1)
        for w in watchers:
            checks = self.checks(w, "--skip", ONE_HOST)
            self.assertEqual(self.status, 0, self.said)
            self.assertEqual(self.said["kind"], "sentinel")
            self.assertEqual([self.said[name] for name in
                              ("errors", "warnings", "notes", "not_examined")], [0] * 4)
            self.is_in_state(checks, "passed", "config-rewrite", "quorum", "few-sentinels",
                             "masters-differ", "quorums-differ", "epochs-differ", "no-candidate",
                             "tilt", "master-down", "sentinel-down", "unable-replica")
            self.is_in_state(checks, "does-not-apply", "script-missing")
            self.assertNotIn("maxmemory", checks)
            checks = self.checks(w)
            self.assertEqual(self.status, 1)
            self.finds(checks, "sentinels-on-one-host", "warning",
                       "mine: 3 of 3 Sentinels are on 127.0.0.1")
            self.finds(checks, "replicas-on-one-host", "warning",
                       "mine: the master and all replicas (1) are on 127.0.0.1")
            self.is_in_state(checks, "passed", "masters-on-one-host")

    def test_sentinels_without_faults(self):
        self.run_without_faults([Ours, Theirs, Ours])

    def test_the_text_names_a_sentinel(self):
        _, _, (w,) = self.watched([Ours], 0, 1)
        done = subprocess.run([REDOUBT, "doctor", f"redis://127.0.0.1:{w.port}"],
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)
        text = done.stdout.decode()
        self.assertIn(f"127.0.0.1:{w.port}: version 7.0.15, Sentinel\n", text)
        self.assertIn("\nerror no-candidate: mine has no replica\n    If the master fails", text)

    def run_quorum(self, kind):
        _, _, (w, other) = self.watched([kind, kind], 0, 2)
        checks = self.checks(w)
        self.finds(checks, "few-sentinels", "warning", "mine: 2 Sentinels")
        self.is_in_state(checks, "passed", "quorum", "sentinel-down")
        port = other.port
        other.kill()
        wait_for(lambda: b"s_down" in dict(zip(*[iter(
            w.client().command("SENTINEL", "SENTINELS", "mine")[0])] * 2))[b"flags"],
            FAILOVER_SECONDS)
        checks = self.checks(w)
        self.assertEqual(self.status, 1)
        self.finds(checks, "quorum", "error",
                   "mine: 1 of 2 Sentinels can be reached, quorum 2, majority 2")
        self.finds(checks, "sentinel-down", "warning", f"mine: 127.0.0.1:{port} for ")
        self.is_in_state(checks, "does-not-apply", "masters-differ")

    def test_a_quorum_that_cannot_be_reached(self):
        self.run_quorum(Ours)
        self.run_quorum(Theirs)

    def test_sentinels_that_disagree(self):
        _, _, (ours, theirs) = self.watched([Ours, Theirs], 0, 1)
        theirs.client().command("SENTINEL", "SET", "mine", "quorum", "2",
                                "down-after-milliseconds", "7000")
        other = f"127.0.0.1:{theirs.port}"
        checks = self.checks(ours)
        self.finds(checks, "quorums-differ", "warning", f"mine: quorum 1 here, 2 at {other}")
        self.finds(checks, "limits-differ", "note",
                   f"mine: down-after-milliseconds 1500 here, 7000 at {other}")
        self.is_in_state(checks, "passed", "masters-differ", "epochs-differ")
        theirs.client().command("SENTINEL", "REMOVE", "mine")
        checks = self.checks(ours)
        self.finds(checks, "masters-differ", "error", f"{other} does not watch mine")

    def test_a_sentinel_that_cannot_be_asked(self):
        _, _, (ours, theirs) = self.watched([Ours, Theirs], 0, 1)
        theirs.client().command("ACL", "SETUSER", "default", "-sentinel|masters")
        checks = self.checks(ours)
        self.is_in_state(checks, "not-examined", "masters-differ", "epochs-differ")
        self.assertIn(f"the Sentinel 127.0.0.1:{theirs.port}: NOPERM",
                      checks["masters-differ"]["figure"])

    def test_replicas_that_cannot_be_promoted(self):
        master, (a, b), (w,) = self.watched([Theirs], 2, 1)
        a.client().command("CONFIG", "SET", "replica-priority", "0")
        w.client().command("SENTINEL", "DEBUG", "info-period", "500")

        def replica_fields():
            return [dict(zip(r[::2], r[1::2])) for r in
                    w.client().command("SENTINEL", "REPLICAS", "mine")]
        wait_for(lambda: any(r[b"slave-priority"] == b"0" for r in replica_fields()),
                 FAILOVER_SECONDS)
        checks = self.checks(w)
        self.finds(checks, "unable-replica", "note",
                   f"mine: 127.0.0.1:{a.port} (replica-priority 0)")
        self.is_in_state(checks, "passed", "no-candidate", "master-down")
        b.kill()
        wait_for(lambda: any(b"s_down" in r[b"flags"] for r in replica_fields()),
                 FAILOVER_SECONDS)
        checks = self.checks(w)
        self.finds(checks, "unable-replica", "warning", f"127.0.0.1:{b.port} (down for ")
        self.finds(checks, "no-candidate", "error", f"127.0.0.1:{a.port} (replica-priority 0)")
        master.kill()
        wait_for(lambda: b"s_down" in state(w)[b"flags"], FAILOVER_SECONDS)
        checks = self.checks(w)
        self.finds(checks, "master-down", "error", f"mine: 127.0.0.1:{master.port} for ")

    def test_masters_on_one_host(self):
        _, _, (w,) = self.watched([Ours], 0, 1)
        w.client().command("SENTINEL", "MONITOR", "other", "127.0.0.1", "9", "1")
        checks = self.checks(w)
        self.finds(checks, "masters-on-one-host", "note", "2 of 2 masters are on 127.0.0.1")

    def run_scripts(self, kind):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "notify")
            with open(script, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\n")
            os.chmod(script, 0o755)
            _, _, (w,) = self.watched([kind], 0, 1,
                                      f"sentinel notification-script mine {script}\n")
            checks = self.checks(w)
            self.is_in_state(checks, "passed", "script-missing", "config-rewrite")
            os.chmod(script, 0o644)
            checks = self.checks(w)
            self.finds(checks, "script-missing", "error", f"cannot run {script} of mine: Perm")
            os.unlink(script)
            checks = self.checks(w)
            self.finds(checks, "script-missing", "error", f"cannot run {script} of mine: No such")
            os.unlink(w.path("sentinel.conf"))
            checks = self.checks(w)
            self.finds(checks, "config-rewrite", "error", "sentinel.conf: No such file")

    def test_scripts_and_the_file(self):
        self.run_scripts(Ours)
        self.run_scripts(Theirs)

    def test_tilt_and_texts_of_a_sentinel(self):
        info = (b"redis_version:6.0.0\r\nredis_mode:sentinel\r\nsentinel_tilt:1\r\n"
                b"sentinel_tilt_since_seconds:12\r\n")
        fields = (b"name", b"m\x1b[31m", b"ip", b"10.0.0.1", b"port", b"6379", b"flags",
                  b"s_down,master", b"quorum", b"1")

        def answer(args):
            if args[0].upper() == b"INFO":
                return bulk(info)
            if args[1].upper() == b"MASTERS":
                return array([array([bulk(f) for f in fields])])
            if args[1].upper() == b"MYID":
                return b"-ERR unknown sentinel subcommand\r\n"
            return array([])
        with FakeServer(answer) as server:
            checks = self.checks(f"redis://127.0.0.1:{server.port}")
            self.finds(checks, "tilt", "error", "sentinel_tilt:1 for 12 s")
            self.is_in_state(checks, "not-examined", "config-rewrite")
            done = subprocess.run([REDOUBT, "doctor", f"redis://127.0.0.1:{server.port}"],
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertNotIn(b"\x1b", done.stdout + done.stderr)


class Files(Case):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        os.chmod(folder, 0o755)
        self.folder = os.path.join(folder, "conf")
        os.mkdir(self.folder)

    def put(self, text, owner=0, folder_owner=0):
        path = os.path.join(self.folder, "sentinel.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        if os.geteuid() == 0:
            os.chown(path, owner, owner)
            os.chown(self.folder, folder_owner, folder_owner)
        return path

    OTHERS = ("sentinel known-sentinel m 10.0.0.5 26379 " + "b" * 40 + "\n"
              "sentinel known-sentinel m 10.0.0.6 26379 " + "c" * 40 + "\n")

    def test_a_file_without_faults(self):
        path = self.put("port 26379\nsentinel monitor m 10.0.0.1 6379 2\n" + self.OTHERS)
        checks = self.checks(path, "--skip", "sentinels-on-one-host")
        self.assertEqual(self.status, 0, self.said)
        self.assertEqual((self.said["kind"], self.said["name"]), ("sentinel-file", path))
        self.is_in_state(checks, "passed", "sentinel-config", "config-rewrite", "quorum",
                         "few-sentinels", "masters-on-one-host")
        self.assertNotIn("tilt", checks)

    def test_a_new_file_does_not_say_how_many_sentinels_there_are(self):
        path = self.put("sentinel monitor m 10.0.0.1 6379 2\n")
        checks = self.checks(path)
        self.assertEqual(self.status, 8, self.said)
        self.is_in_state(checks, "not-examined", "quorum", "few-sentinels")

    def test_faults_of_a_file(self):
        path = self.put("sentinel resolve-hostnames yes\nsentinel monitor m one.example 6379 5\n"
                        "sentinel monitor n one.example 6380 2\n"
                        "sentinel notification-script m /none\n"
                        "sentinel client-reconfig-script m notify\n" + self.OTHERS)
        checks = self.checks(path)
        self.assertEqual(self.status, 1)
        self.finds(checks, "quorum", "error",
                   "m: 3 of 3 Sentinels can be reached, quorum 5, majority 2")
        self.finds(checks, "script-missing", "error", "cannot run /none of m: No such file")
        self.finds(checks, "masters-on-one-host", "note", "2 of 2 masters are on one.example")
        path = self.put("sentinel monitor m 10.0.0.1 6379 2\n"
                        "sentinel client-reconfig-script m notify\n")
        checks = self.checks(path)
        self.is_in_state(checks, "not-examined", "script-missing")

    def test_a_wrong_line(self):
        for line, why in (("sentinel monitor m 10.0.0.1 x 2", "line 2: Invalid port number."),
                          ("sentinel monitor \"m", "line 2 has unbalanced quotes")):
            path = self.put("# a comment\n" + line + "\n")
            checks = self.checks(path)
            self.assertEqual(self.status, 1)
            self.finds(checks, "sentinel-config", "error", why)
            self.is_in_state(checks, "not-examined", "quorum", "masters-on-one-host")

    def test_a_file_that_cannot_be_replaced(self):
        if os.geteuid() != 0:
            self.fail("root is needed, to give the file to another user")
        path = self.put("sentinel monitor m 10.0.0.1 6379 2\n", NOBODY)
        checks = self.checks(path)
        self.finds(checks, "config-rewrite", "error",
                   f"user {NOBODY} cannot replace files in the folder {self.folder}: Permission")
        path = self.put("sentinel monitor m 10.0.0.1 6379 2\n", NOBODY, NOBODY)
        checks = self.checks(path)
        self.is_in_state(checks, "passed", "config-rewrite")
        os.chmod(path, 0o444)
        checks = self.checks(path)
        self.finds(checks, "config-rewrite", "error", f"user {NOBODY} cannot write the file {path}")

    def test_other_files(self):
        for text, status in (("maxmemory 1gb\n", 2), (None, 3)):
            path = self.put(text or "")
            if text is None:
                os.unlink(path)
            done = subprocess.run([REDOUBT, "doctor", path], capture_output=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)


if __name__ == "__main__":
    unittest.main()
