"""redoubt doctor: each finding on a server that has the fault, and none on one that has not."""

import json
import os
import shutil
import subprocess
import threading
import time
import unittest

from backup_case import FIXTURES, REDOUBT, BackupCase
from fake_server import FakeServer, array, bulk
import redis_server
from redis_server import RedisServer
from s3_server import S3Server

PATIENCE = 600  # seconds for what a server does in its own time

# A disk that needs seconds for an fsync of the background thread, and a kernel that needs half a
# second for a fork.
SLOW = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

int fdatasync(int fd)
{
    if (gettid() != getpid())
        sleep(3);
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

pid_t fork(void)
{
    usleep(600000);
    return ((pid_t (*)(void))dlsym(RTLD_NEXT, "fork"))();
}
"""

GOOD = {
    "save": "60 1",
    "appendonly": "yes",
    "maxmemory": "50mb",
    "requirepass": "secret",
    "masterauth": "secret",
    "repl-diskless-sync-delay": "1",
    "min-replicas-to-write": "1",
}


def poll(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it does not happen")
        time.sleep(0.02)


class Authenticated(RedisServer):
    """A server with a password."""

    def _connect(self):
        super()._connect()
        self.command("AUTH", self.config["requirepass"])


def info(server):
    text = server.command("INFO").decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


class DoctorCase(BackupCase):
    def examine(self, *args, env=None):
        """The exit status, and the checks by their ids."""
        done = subprocess.run([REDOUBT, "doctor", "--json", *args], capture_output=True,
                              env={**os.environ, **(env or {})}, check=False)
        self.said = json.loads(done.stdout)
        self.assertEqual(self.said["tool"], "doctor")
        return done.returncode, {check["id"]: check for check in self.said["checks"]}

    def url(self, server):
        return f"redis://127.0.0.1:{server.port}"

    def finds(self, checks, name, severity, text=""):
        check = checks[name]
        self.assertEqual(check["state"], "found", check)
        self.assertEqual(check["severity"], severity, check)
        self.assertIn(text, check["figure"])
        self.assertTrue(check["why"].endswith("."), check)
        self.assertTrue(check["fix"], check)

    def is_in_state(self, checks, state, *names):
        for name in names:
            self.assertEqual(checks[name]["state"], state, checks[name])

    def follow(self, replica, master):
        replica.command("REPLICAOF", "127.0.0.1", master.port)
        poll(lambda: info(master).get("slave0", "").find("state=online") > 0)
        poll(lambda: info(replica)["master_link_status"] == "up")


class Settings(DoctorCase):
    """One server whose settings change."""

    def setUp(self):
        super().setUp()
        self.server = RedisServer()
        self.server.__enter__()
        self.addCleanup(self.server.close)

    def with_settings(self, *args, **settings):
        for name, value in settings.items():
            self.server.command("CONFIG", "SET", name.replace("_", "-"), value)
        return self.examine(self.url(self.server), *args)

    def test_a_server_without_persistence(self):
        status, checks = self.with_settings()
        self.assertEqual(status, 1)
        self.finds(checks, "no-persistence", "warning", "no save point, appendonly no, 0 replicas")
        self.finds(checks, "maxmemory", "warning", "maxmemory 0")
        _, checks = self.with_settings(save="60 1", maxmemory="50mb")
        self.is_in_state(checks, "passed", "no-persistence", "maxmemory")

    def test_the_wanted_recovery_point(self):
        _, checks = self.with_settings("--rpo", "60s", save="3600 1 60 100")
        self.finds(checks, "rpo", "warning", "up to 1 h 0 min of changes; --rpo is 1 min 0 s")
        self.assertIn('save "30 1"', checks["rpo"]["fix"])
        _, checks = self.with_settings("--rpo", "60s", save="60 100")
        self.finds(checks, "rpo", "warning", "no save point is triggered by a single change")
        _, checks = self.with_settings("--rpo", "60s", save="30 1")
        self.is_in_state(checks, "passed", "rpo")
        _, checks = self.with_settings("--rpo", "10s", appendonly="yes", appendfsync="everysec")
        self.is_in_state(checks, "passed", "rpo")
        _, checks = self.with_settings("--rpo", "1s")
        self.finds(checks, "rpo", "warning", "up to 2.0 s")
        self.assertIn("appendfsync always", checks["rpo"]["fix"])
        _, checks = self.with_settings("--rpo", "10s", appendfsync="no")
        self.finds(checks, "rpo", "warning", "up to 35 s")

    def test_settings_that_give_up_durability(self):
        names = ("stop-writes-off", "fsync-off", "fsync-off-in-rewrite")
        _, checks = self.with_settings(save="60 1", appendonly="yes")
        self.is_in_state(checks, "passed", *names)
        status, checks = self.with_settings(stop_writes_on_bgsave_error="no", appendfsync="no",
                                            no_appendfsync_on_rewrite="yes")
        self.assertEqual(status, 1)
        for name in names:
            self.finds(checks, name, "warning", "-on-" if name != "fsync-off" else "appendfsync no")

    def test_saves_and_rewrites_that_fail(self):
        self.with_settings(save="3600 1", appendonly="yes")
        poll(lambda: info(self.server)["aof_rewrite_in_progress"] == "0")
        shutil.rmtree(self.server.dir)
        self.server.command("SET", "k", "v")
        for command in ("BGSAVE", "BGREWRITEAOF"):
            try:
                self.server.command(command)
            except Exception:  # the folder of the log is missing
                pass
            poll(lambda: info(self.server)["rdb_bgsave_in_progress"] == "0")
        poll(lambda: info(self.server)["aof_last_bgrewrite_status"] == "err")
        _, checks = self.examine(self.url(self.server))
        self.finds(checks, "last-save-failed", "error", "1 change since the last snapshot")
        self.finds(checks, "last-rewrite-failed", "error", "aof_last_bgrewrite_status:err")
        self.is_in_state(checks, "not-examined", "disk-room")

    def test_memory(self):
        used = int(info(self.server)["used_memory"])
        total = int(info(self.server)["total_system_memory"])
        _, checks = self.with_settings(maxmemory=total // 100 * 90)
        self.finds(checks, "fork-headroom", "warning", "maxmemory is")
        self.assertIn("CONFIG SET maxmemory", checks["fork-headroom"]["fix"])
        _, checks = self.with_settings(maxmemory=used * 101 // 100)
        self.finds(checks, "memory-full", "error", "of maxmemory, maxmemory-policy noeviction")
        self.is_in_state(checks, "passed", "fork-headroom", "evicted-keys")
        self.with_settings(maxmemory="3mb", maxmemory_policy="allkeys-lru", save="60 100000")
        for i in range(50):
            self.server.command("SET", f"k{i}", "x" * 100000)
        _, checks = self.examine(self.url(self.server))
        self.finds(checks, "evicted-keys", "warning", "maxmemory-policy allkeys-lru")
        _, checks = self.with_settings(save="")
        self.is_in_state(checks, "does-not-apply", "evicted-keys")

    def test_room_on_the_disk(self):
        _, checks = self.examine(self.url(self.server))
        self.is_in_state(checks, "passed", "disk-room")
        disk = os.statvfs(self.server.dir)
        with open(self.server.rdb, "wb") as file:
            file.truncate(disk.f_bavail * disk.f_frsize + (1 << 40))
        _, checks = self.examine(self.url(self.server))
        self.finds(checks, "disk-room", "error", f"free in {self.server.dir}")
        _, checks = self.examine(self.server.dir, "--skip", "snapshot-damaged")
        self.finds(checks, "disk-room", "error", "a snapshot or rewrite may need")

    def test_replicas_that_are_missing_or_not_in_sync(self):
        _, checks = self.with_settings(min_replicas_to_write="1")
        self.finds(checks, "writes-refused", "error", "min-replicas-to-write 1, good replicas 0")
        self.with_settings(min_replicas_to_write="0", repl_diskless_sync_delay="3600")
        waiting = RedisServer()
        with waiting:
            waiting.command("REPLICAOF", "127.0.0.1", self.server.port)
            poll(lambda: "wait_bgsave" in info(self.server).get("slave0", ""))
            _, checks = self.examine(self.url(self.server))
            self.finds(checks, "replica-lag", "warning", "1 of 1 replicas are not in sync")
            self.finds(checks, "no-persistence", "error", "1 replica")
            _, checks = self.examine(self.url(waiting))
            self.finds(checks, "replica-down", "error", "master_link_status:down")

    def test_who_may_connect(self):
        _, checks = self.with_settings(protected_mode="no")
        self.is_in_state(checks, "passed", "open-to-all")
        _, checks = self.with_settings(bind="0.0.0.0", protected_mode="yes")
        self.is_in_state(checks, "passed", "open-to-all")
        _, checks = self.with_settings(protected_mode="no")
        self.finds(checks, "open-to-all", "error", 'bind "0.0.0.0", protected-mode no')
        self.server.command("ACL", "SETUSER", "default", ">secret")
        _, checks = self.examine(self.url(self.server).replace("//", "//:secret@"))
        self.is_in_state(checks, "passed", "open-to-all")
        self.server.command("ACL", "SETUSER", "default", "nopass")

    def test_the_kernel(self):
        _, checks = self.examine(self.url(self.server))
        with open("/proc/sys/vm/overcommit_memory", encoding="ascii") as file:
            mode = file.read().strip()
        self.assertEqual(checks["overcommit"]["figure"], f"vm.overcommit_memory = {mode}")
        self.is_in_state(checks, "passed" if mode == "1" else "found", "overcommit")
        self.assertNotEqual(checks["huge-pages"]["state"], "not-examined")
        self.assertNotEqual(checks["swapped-out"]["state"], "not-examined")

    def test_checks_that_are_skipped(self):
        status, checks = self.with_settings("--skip", "host,files,maxmemory", save="60 1")
        self.assertEqual(status, 0, self.said)
        self.is_in_state(checks, "skipped", "overcommit", "huge-pages", "disk-room", "maxmemory")
        done = self.plain(self.url(self.server), "--skip", "hosts")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b'no check or group has the name "hosts"', done.stderr)

    def plain(self, *args):
        return subprocess.run([REDOUBT, "doctor", *args], capture_output=True, check=False)

    def test_the_text(self):
        done = self.plain(self.url(self.server), "--skip", "host")
        self.assertEqual(done.returncode, 1)
        text = done.stdout.decode()
        self.assertIn(f"version {redis_server.installed()[1]}, master\n", text)
        self.assertIn("\nwarning maxmemory: maxmemory 0\n    Without a limit", text)
        self.assertIn("\n    fix: CONFIG SET maxmemory ", text)
        self.assertRegex(text, r"\n\d+ passed, 0 errors, 2 warnings, 0 notes, 0 not examined, \d")
        quiet = self.plain(self.url(self.server), "--skip", "host", "-q").stdout.decode()
        self.assertEqual(len(quiet.splitlines()), 2)
        full = self.plain(self.url(self.server), "--skip", "host", "-v").stdout.decode()
        self.assertIn("skipped overcommit: --skip\n", full)
        self.assertIn("does-not-apply replica-down: the server is a master\n", full)

    def test_a_server_that_refuses_config(self):
        self.server.command("ACL", "SETUSER", "watch", "on", ">pw", "+info", "+ping")
        url = self.url(self.server).replace("//", "//watch:pw@")
        status, checks = self.examine(url, "--skip", "host")
        self.assertEqual(status, 8, self.said)
        self.is_in_state(checks, "not-examined", "no-persistence", "maxmemory", "disk-room")
        self.assertIn("NOPERM", checks["maxmemory"]["figure"])
        self.is_in_state(checks, "passed", "last-save-failed", "slow-fork", "evicted-keys")
        self.server.command("ACL", "SETUSER", "watch", "-info")
        done = self.plain(url)
        self.assertEqual(done.returncode, 6)
        self.assertNotIn(b"pw", done.stdout + done.stderr)


class Faults(DoctorCase):
    def test_a_log_that_cannot_be_written(self):
        small = ("sh", "-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "sh")
        with RedisServer({"appendonly": "yes"}, wrap=small) as server:
            def failed():
                try:
                    server.command("SET", "k", "x" * 20000)
                except Exception:
                    pass
                return info(server)["aof_last_write_status"] == "err"
            poll(failed)
            _, checks = self.examine(self.url(server))
            self.finds(checks, "log-write-failed", "error", "aof_last_write_status:err")

    def test_a_slow_disk_and_a_slow_fork(self):
        source, library = self.write("slow.c", SLOW), self.path("slow.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        slow = ("env", f"LD_PRELOAD={library}")
        with RedisServer({"appendonly": "yes", "appendfsync": "everysec"}, wrap=slow) as server:
            def delayed():
                server.command("SET", "k", "v")
                return info(server)["aof_delayed_fsync"] != "0"
            server.command("BGSAVE")
            poll(delayed)
            _, checks = self.examine(self.url(server))
            self.finds(checks, "fsync-delays", "warning", "aof_delayed_fsync:")
            self.finds(checks, "slow-fork", "warning", "the last fork took 0.")

    def test_a_replica_with_faults(self):
        settings = {"repl-diskless-sync-delay": "0", "repl-timeout": "5",
                    "repl-diskless-sync": "no", "requirepass": "secret"}
        with Authenticated(settings) as master, RedisServer({"masterauth": "secret"}) as replica:
            self.follow(replica, master)
            _, checks = self.examine(self.url(master).replace("//", "//:secret@"))
            self.finds(checks, "repl-timeout", "warning", "repl-timeout 5, repl-ping-replica")
            self.finds(checks, "diskless-sync", "note", "repl-diskless-sync no")
            self.finds(checks, "min-replicas", "note", "min-replicas-to-write 0")
            self.finds(checks, "masterauth", "warning", "masterauth is not set")
            self.assertNotIn("secret", json.dumps(self.said))
            replica.command("CONFIG", "SET", "replica-read-only", "no")
            _, checks = self.examine(self.url(replica))
            self.finds(checks, "replica-writable", "warning", "replica-read-only no")
            master.stop()
            poll(lambda: info(replica)["master_link_status"] == "down")
            _, checks = self.examine(self.url(replica))
            self.finds(checks, "replica-down", "error", "master_link_status:down for")

    def test_traffic_that_the_buffers_cannot_hold(self):
        settings = {"repl-diskless-sync-delay": "0", "repl-backlog-size": "16kb",
                    "client-output-buffer-limit": "replica 1mb 0 0"}
        with RedisServer(settings) as master, RedisServer() as replica:
            for i in range(20):
                master.command("SET", f"k{i}", "v")
            self.follow(replica, master)
            master.command("CONFIG", "SET", "rdb-key-save-delay", "120000")
            poll(lambda: info(master)["rdb_bgsave_in_progress"] == "0")
            master.command("BGSAVE")
            poll(lambda: int(info(master)["rdb_last_bgsave_time_sec"]) >= 2)
            end = threading.Event()

            def write():
                while not end.is_set():
                    master.command("SET", "k0", "x" * 100000)
                    master.command("WAIT", "1", "10000")
            writer = threading.Thread(target=write)
            writer.start()
            try:
                _, checks = self.examine(self.url(master))
            finally:
                end.set()
                writer.join()
            self.finds(checks, "backlog-size", "warning", "16.0 KiB, traffic")
            self.assertIn("CONFIG SET repl-backlog-size", checks["backlog-size"]["fix"])
            self.finds(checks, "replica-buffer", "warning", "the limit of replicas is 1.0 MiB")

    def test_a_server_without_faults(self):
        with Authenticated(GOOD) as master, Authenticated(GOOD) as replica:
            self.follow(replica, master)
            master.command("SET", "k", "v")
            for server in (master, replica):
                status, checks = self.examine(self.url(server).replace("//", "//:secret@"),
                                              "--skip", "host", "--rpo", "5s")
                self.assertEqual(status, 0, self.said)
                self.assertEqual([self.said[name] for name in
                                  ("errors", "warnings", "notes", "not_examined")], [0] * 4)
            self.assertEqual(checks["replica-down"]["state"], "passed")

    def answer(self, more="", config=()):
        """A server as a hosted one, or of a later version, may be."""
        text = (b"redis_version:8.2.0\r\nrole:slave\r\nmaster_link_status:up\r\n"
                b"used_memory:1000\r\nmaster_last_io_seconds_ago:3\r\n"
                b"connected_slaves:0\r\n" + more.encode())

        def answer(args):
            if args[0].upper() == b"INFO":
                return bulk(text)
            if args[0].upper() == b"CONFIG" and config:
                return array([bulk(word) for word in config])
            return b"+PONG\r\n" if args[0].upper() == b"PING" else b"-ERR unknown command\r\n"
        return FakeServer(answer)

    def test_what_this_version_of_redis_cannot_show(self):
        config = (b"repl-diskless-load", b"flush-before-load")
        with self.answer(config=config) as server:
            status, checks = self.examine(self.url(server))
            self.finds(checks, "diskless-load", "warning", "flush-before-load")
            self.is_in_state(checks, "does-not-apply", "maxmemory")
            self.is_in_state(checks, "not-examined", "overcommit", "fork-headroom", "disk-room")
        lag = ("connected_slaves:2\r\nslave0:ip=10.0.0.1,port=1,state=online,offset=1,lag=1\r\n"
               "slave1:ip=10.0.0.2,port=1,state=online,offset=1,lag=77\r\n")
        with self.answer(lag.replace("connected_slaves:2\r\n", "")) as server:
            _, checks = self.examine(self.url(server))
            self.is_in_state(checks, "passed", "replica-lag")
        text = lag.encode() + b"role:master\r\nredis_version:7.0.0\r\nmaster_repl_offset:5\r\n"

        def answer(args):
            return bulk(text) if args[0].upper() == b"INFO" else b"-ERR unknown command\r\n"
        with FakeServer(answer) as server:
            status, checks = self.examine(self.url(server))
            self.assertEqual(status, 1)
            self.finds(checks, "replica-lag", "warning", "10.0.0.2 for 1 min 17 s")
            self.is_in_state(checks, "not-examined", "open-to-all", "masterauth", "backlog-size")
            self.assertIn("cannot be read: ERR unknown command", checks["min-replicas"]["figure"])

    def test_text_of_a_server_does_not_reach_the_terminal(self):
        with self.answer("rdb_last_bgsave_status:\x1b[31mbad\r\n") as server:
            done = subprocess.run([REDOUBT, "doctor", self.url(server)], capture_output=True,
                                  check=False)
            self.assertEqual(done.returncode, 1)
            self.assertNotIn(b"\x1b", done.stdout + done.stderr)

    def test_a_server_that_closes_the_connection(self):
        with FakeServer(lambda args: None) as server:
            done = subprocess.run([REDOUBT, "doctor", self.url(server)], capture_output=True,
                                  check=False)
            self.assertEqual(done.returncode, 6)


class Folders(DoctorCase):
    def setUp(self):
        super().setUp()
        self.data = self.path("data")
        os.mkdir(self.data)

    def put(self, name, data):
        path = os.path.join(self.data, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def put_snapshot(self):
        with open(os.path.join(FIXTURES, "redis-7.0.15", "tiny.rdb"), "rb") as file:
            return self.put("dump.rdb", file.read())

    def test_an_empty_folder(self):
        status, checks = self.examine(self.data)
        self.assertEqual(status, 1)
        self.finds(checks, "no-data", "error", "neither a snapshot nor a log")

    def test_a_sound_snapshot_and_a_damaged_one(self):
        path = self.put_snapshot()
        status, checks = self.examine(self.data)
        self.assertEqual(status, 0, self.said)
        self.is_in_state(checks, "passed", "snapshot-damaged", "disk-room", "leftovers")
        self.is_in_state(checks, "does-not-apply", "log-damaged")
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) - 3)
        status, checks = self.examine(self.data)
        self.assertEqual(status, 1)
        self.finds(checks, "snapshot-damaged", "error", "dump.rdb: truncated at byte")

    def test_an_unknown_version_is_not_damage(self):
        with open(self.put_snapshot(), "r+b") as file:
            file.write(b"REDIS0099")
        status, checks = self.examine(self.data)
        self.assertEqual(status, 8)
        self.is_in_state(checks, "not-examined", "snapshot-damaged")

    def test_logs(self):
        with RedisServer({"appendonly": "yes"}) as server:
            for i in range(20):
                server.command("SET", f"k{i}", "v")
            server.command("CONFIG", "SET", "appendfsync", "always")
            server.command("SET", "last", "v")
            _, checks = self.examine(server.dir)
            self.is_in_state(checks, "passed", "log-damaged", "no-data")
            shutil.copytree(os.path.join(server.dir, "appendonlydir"),
                            os.path.join(self.data, "appendonlydir"))
        incr = os.path.join(self.data, "appendonlydir", "appendonly.aof.1.incr.aof")
        for folder in (self.data, os.path.dirname(incr)):
            status, checks = self.examine(folder)
            self.assertEqual(status, 0, self.said)
        base = incr.replace("incr.aof", "base.rdb")
        with open(base, "rb") as file:
            whole = file.read()
        open(base, "wb").close()
        status, checks = self.examine(self.data)
        self.assertEqual(status, 1)
        self.finds(checks, "log-damaged", "error", "damaged: it is empty")
        with open(base, "wb") as file:
            file.write(whole)
        with open(incr, "r+b") as file:
            file.truncate(os.path.getsize(incr) - 2)
        status, checks = self.examine(self.data)
        self.assertEqual(status, 1)
        self.finds(checks, "log-damaged", "error", "torn: ")
        os.unlink(incr)
        _, checks = self.examine(self.data)
        self.finds(checks, "log-damaged", "error", "missing: ")

    def test_a_log_of_an_old_server(self):
        self.put("appendonly.aof", b"*1\r\n$4\r\nPING\r\n")
        status, checks = self.examine(self.data)
        self.assertEqual(status, 0, self.said)
        self.put("appendonly.aof", b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI")
        os.utime(os.path.join(self.data, "appendonly.aof"), (1, 1))
        _, checks = self.examine(self.data)
        self.finds(checks, "log-damaged", "error", "torn: ")

    def test_a_folder_that_is_not_the_folder_of_one_log(self):
        os.mkdir(os.path.join(self.data, "appendonlydir"))
        for name in ("a", "b"):
            self.put(f"appendonlydir/{name}.manifest", b"file a.1.incr.aof seq 1 type i\n")
        _, checks = self.examine(self.data)
        self.finds(checks, "log-damaged", "error", "several manifests")
        for name in ("a", "b"):
            os.unlink(os.path.join(self.data, "appendonlydir", name + ".manifest"))
        self.put("appendonlydir/00000001-1.seg", b"x")
        _, checks = self.examine(self.data)
        self.finds(checks, "log-damaged", "error", "holds a capture")

    def test_leftovers(self):
        self.put_snapshot()
        path = self.put("temp-123.rdb", b"x" * 5000)
        status, checks = self.examine(self.data)
        self.assertEqual(status, 0, self.said)
        os.utime(path, (1, 1))
        status, checks = self.examine(self.data)
        self.finds(checks, "leftovers", "warning", "1 file of 4.9 KiB")
        self.finds(checks, "leftovers", "warning", "temp-123.rdb (4.9 KiB)")

    def test_leftovers_of_every_kind_are_named(self):
        self.put_snapshot()
        os.mkdir(os.path.join(self.data, "appendonlydir"))
        for name in ("temp-1745.123.rdb", "temp-rewriteaof-bg-9.aof",
                     "appendonlydir/temp-appendonly.aof.manifest"):
            path = self.put(name, b"x" * 10)
            _, checks = self.examine(self.data)
            self.is_in_state(checks, "passed", "leftovers")
            os.utime(path, (1, 1))
            _, checks = self.examine(self.data)
            self.finds(checks, "leftovers", "warning", name + " (10 bytes)")
            os.unlink(path)

    def test_a_link_in_the_folder_is_not_followed(self):
        os.symlink("/dev/zero", os.path.join(self.data, "dump.rdb"))
        _, checks = self.examine(self.data)
        self.finds(checks, "no-data", "error")

    def test_a_folder_that_is_missing(self):
        done = subprocess.run([REDOUBT, "doctor", self.path("none")], capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 3)

    def test_the_age_of_backups(self):
        self.put_snapshot()
        os.mkdir(self.repository)
        self.nightly(source=os.path.join(self.data, "dump.rdb"))
        target = (self.data, "--config", self.config, "--target", "nightly")
        status, checks = self.examine(*target)
        self.assertEqual(status, 1)
        self.finds(checks, "backup-age", "error", "no good set of nightly")
        self.good("backup", "nightly")
        status, checks = self.examine(*target)
        self.assertEqual(status, 0, self.said)
        self.is_in_state(checks, "passed", "backup-age")
        self.finds(checks, "backup-elsewhere", "note", "nightly are folders on the host")
        self.is_in_state(checks, "does-not-apply", "backup-sealed")
        folder = os.path.dirname(self.set_folder())
        newest = os.path.basename(self.set_folder())
        os.rename(os.path.join(folder, newest), os.path.join(folder, "2020" + newest[4:]))
        status, checks = self.examine(*target)
        self.finds(checks, "backup-age", "error")
        shutil.rmtree(self.repository)
        status, checks = self.examine(*target)
        self.assertEqual(status, 8)
        self.is_in_state(checks, "not-examined", "backup-age")
        done = self.tool("doctor", self.data, "--target", "weekly")
        self.assertEqual(done.returncode, 2)

    def test_backups_in_a_store(self):
        self.put_snapshot()
        with S3Server() as s3:
            self.write("s3key", f"{s3.access_key}\n{s3.secret_key}\n")
            self.repository = "s3://vault/redis"
            for sealed, state in ((False, "found"), (True, "passed")):
                self.nightly(source=os.path.join(self.data, "dump.rdb"), sealed=sealed,
                             more=f"s3-endpoint = {s3.url}\ns3-key-file = {self.path('s3key')}\n")
                self.good("backup")
                _, checks = self.examine(self.data, "--config", self.config, "--target", "nightly")
                self.is_in_state(checks, "passed", "backup-elsewhere")
                self.is_in_state(checks, state, "backup-sealed")

    def test_the_source_of_a_target(self):
        with Authenticated(GOOD) as server:
            self.write("password", "secret\n")
            os.mkdir(self.repository)
            self.nightly(source=self.url(server), more=f"pass-file = {self.path('password')}\n")
            status, checks = self.examine("--config", self.config, "--target", "nightly")
            self.assertEqual(status, 1)
            self.assertEqual(self.said["name"], f"127.0.0.1:{server.port}")
            self.finds(checks, "backup-age", "error")
            self.is_in_state(checks, "passed", "no-persistence")


if __name__ == "__main__":
    unittest.main()
