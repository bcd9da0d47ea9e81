"""Backups in a store that speaks the protocol of S3 and checks signatures."""

import os
import random
import signal
import subprocess
import threading
import time

from backup_case import REDOUBT, SNAPSHOT
from redis_server import RedisServer
from s3_case import S3Case
from s3_server import Fault


class InS3(S3Case):
    def test_a_set_goes_there_and_comes_back(self):
        self.good("backup")
        self.assertTrue(all(k.startswith("some/where/nightly/") for k in self.s3.objects))
        self.assertEqual(len(self.sets()), 1)
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out.rdb"))
        with open(SNAPSHOT, "rb") as file:
            self.assertEqual(self.read("out.rdb"), file.read())
        self.assertNotIn("some/where/nightly/lock", self.s3.objects)
        self.good("prune", "--pin", "latest")
        self.assertEqual(self.sets()[0]["state"], "pinned")

    def manifests_read_by(self, *tool):
        del self.s3.requests[:]
        self.good(*tool)
        return len([r for r in self.s3.requests if r[0] == "GET" and "manifest.json" in r[1]])

    def test_many_sets_are_listed_from_a_catalogue(self):
        for _ in range(18):
            self.good("backup")
        catalogue, = [k for k in self.s3.objects if "/catalogue/" in k]
        listed, whole = self.json("list"), self.s3.objects[catalogue]
        self.assertEqual(len(listed[0]["sets"]), 18)
        self.assertEqual(self.manifests_read_by("list"), 2)
        self.assertEqual(self.manifests_read_by("restore", "--to", self.path("out.rdb")), 2)
        self.assertEqual(self.manifests_read_by("prune"), 2)
        self.assertGreaterEqual(self.manifests_read_by("verify", "--level", "list"), 18)
        # What the store has, counts.
        self.s3.objects[catalogue] = whole[:len(whole) // 2]
        self.assertEqual(self.json("list"), listed)
        del self.s3.objects[catalogue]
        self.assertEqual(self.json("list"), listed)
        self.s3.objects[catalogue] = whole
        for part in "manifest.json", "dump.rdb.sealed":
            name = next(k for k in sorted(self.s3.objects) if k.endswith(part))
            before = self.s3.objects[name]
            self.s3.objects[name] = before[:-1] + b"?"
            damaged = [s for s in self.sets() if not s["good"]]
            self.assertEqual(len(damaged), int(part == "manifest.json"))
            del self.s3.objects[name]
            self.assertEqual(len([s for s in self.sets() if s["good"]]), 17)
            self.s3.objects[name] = before
        self.assertEqual(self.json("list"), listed)

    def test_the_rate_is_limited(self):
        """Of 6 MB, at 3 MB a second. curl may send the first bytes at once."""
        data = self.big(6 << 20)
        took = {}
        for rate in "3mb", "1gb":
            for tool in ("backup",), ("restore", "--to", self.path("out.rdb"), "--force"):
                began = time.monotonic()
                self.good(*tool, "--limit-rate", rate)
                took[tool[0], rate] = time.monotonic() - began
        self.assertEqual(self.read("out.rdb"), data)
        for tool in "backup", "restore":
            self.assertGreater(took[tool, "3mb"], 1.0, took)
        self.fails(2, "limit-rate", "backup", "--limit-rate", "0")

    def test_large_objects_go_in_parts_and_come_in_ranges(self):
        data = self.big()
        self.good("backup")
        parts = [r for r in self.s3.requests if "partNumber" in r[1]]
        self.assertEqual(len(parts), 3)
        self.assertEqual(self.s3.uploads, {})
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), data)

    def test_requests_are_repeated_when_the_store_fails_for_a_while(self):
        self.big()
        self.s3.faults = lambda method, path, n: (503, None, "cut", None, None)[n % 5]
        self.good("backup")
        self.good("verify", "--level", "parse")

    def test_an_upload_that_is_given_up_leaves_no_parts(self):
        self.big()
        self.s3.faults = lambda method, path, n: 403 if "partNumber=2" in path else None
        self.fails(6, "SlowDown", "backup")
        self.assertEqual(self.s3.uploads, {})
        self.assertEqual(self.sets(), [])

    def test_each_repository_is_read_once(self):
        self.good("backup")
        for command in (["list", "--json"], ["list", "--html", self.path("page.html")],
                        ["verify", "--level", "list", "--json"]):
            before = len(self.s3.requests)
            self.good(*command)
            read = [r[1] for r in self.s3.requests[before:] if r[0] == "GET"]
            self.assertEqual(len(read), len(set(read)), read)

    def test_json_is_complete_if_a_segment_cannot_be_read(self):
        self.good("backup")
        name = (f"20261101T000000Z-00000001/00000001-{40 * 'a'}/"
                "00000001-100-200-1000-2000.seg.sealed")
        self.s3.objects[f"some/where/nightly/stream/{name}"] = b"x"
        self.s3.faults = lambda method, path, n: 403 if method == "GET" and ".seg" in path else None
        report, status = self.json("verify")
        self.assertEqual(status, 6)
        self.assertEqual([s.get("good") for s in report["streams"]], [None])
        self.assertEqual(len(report["errors"]), 1)

    def test_settings_that_make_no_sense_are_refused(self):
        for name, value in (("s3-style", "round"), ("s3-endpoint", "host"),
                            ("s3-endpoint", "http://host/"), ("repository", "s3://"),
                            ("repository", "s3://vault/"), ("s3-region", 200 * "x"),
                            ("repository", "ftp://host/x")):
            done = self.tool("list", f"--{name}", value)
            self.assertIn(done.returncode, (2, 4), (name, done.stderr))
        self.write("s3key", "only-one-line\n")
        self.fails(2, "two lines", "list")

    def test_a_list_of_many_pages_is_read_to_its_end(self):
        self.s3.page = 2
        for _ in range(3):
            self.good("backup")
        self.assertEqual(len(self.sets()), 3)
        self.good("prune", "--keep", "count 1", "--confirm")
        self.assertEqual(len(self.sets()), 1)
        self.good("verify")

    def test_the_bucket_may_be_a_part_of_the_hosts_name(self):
        self.repository = "s3://vault"
        self.nightly(more=f"s3-endpoint = http://localhost:{self.s3.port}\ns3-style = host\n"
                     f"s3-key-file = {self.path('s3key')}\n")
        self.good("backup")
        self.assertTrue(all(k.startswith("nightly/") for k in self.s3.objects))

    def test_a_wrong_secret_is_reported_and_not_retried(self):
        self.use("", secret="wrong")
        self.fails(6, "does not accept the access key", "backup")
        self.assertLess(len(self.s3.requests), 4)
        self.assertNotIn("wrong", self.tool("backup").stderr.decode())

    def test_keys_come_from_the_environment_or_a_command(self):
        self.nightly(more=f"s3-endpoint = {self.s3.url}\n")
        self.fails(2, "no access key", "backup")
        env = {"AWS_ACCESS_KEY_ID": self.s3.access_key, "AWS_SECRET_ACCESS_KEY": self.s3.secret_key,
               "AWS_SESSION_TOKEN": "a/token+"}
        done = self.tool("backup", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.s3.requests[-1][2]["x-amz-security-token"], "a/token+")
        self.nightly(more=f"s3-endpoint = {self.s3.url}\n"
                     f"s3-key-command = cat {self.path('s3key')}\ns3-sse = AES256\n")
        self.good("backup")
        puts = [r for r in self.s3.requests if r[0] == "PUT"]
        self.assertEqual(puts[-1][2]["x-amz-server-side-encryption"], "AES256")

    def test_a_store_that_is_not_there_is_a_network_error(self):
        self.use("")
        self.nightly(more="s3-endpoint = http://127.0.0.1:1\n"
                     f"s3-key-file = {self.path('s3key')}\n")
        self.fails(6, "s3://vault", "list")

    def test_a_lock_is_respected_and_that_of_a_dead_process_is_taken_over(self):
        self.big()
        started, held = threading.Event(), threading.Event()

        def stop(method, path, n):
            if method == "PUT" and "partNumber=2" in path and not held.is_set():
                started.wait()
                os.kill(process.pid, signal.SIGSTOP)
                held.set()

        self.s3.faults = stop
        process = subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        started.set()
        while not held.wait(0.05):
            self.assertIsNone(process.poll())
        self.s3.faults = None
        self.fails(7, f"process {process.pid} on", "backup", "--lock-wait", "0s")
        process.kill()
        process.wait()
        self.assertEqual(self.sets(), [])
        self.good("backup")
        self.assertEqual(len(self.sets()), 1)

    def test_a_backup_that_is_cut_at_any_request_leaves_a_sound_repository(self):
        self.good("backup")
        n_requests = len(self.s3.requests)
        for stop in range(1, n_requests + 1):
            self.s3.requests.clear()
            self.s3.faults = lambda method, path, n, stop=stop: 403 if n >= stop else None
            before = {k for k in self.s3.objects if k.endswith("manifest.json")}
            done = self.tool("backup")
            after = {k for k in self.s3.objects if k.endswith("manifest.json")}
            self.assertEqual(done.returncode == 0, after != before, (stop, done.stderr))
            self.assertIn(done.returncode, (0, 6))
            self.s3.faults = None
            self.s3.objects.pop("some/where/nightly/lock", None)
            self.good("verify", "--level", "digest")
        self.good("backup")
        folders = {k.split("/")[4] for k in self.s3.objects if "/sets/" in k}
        self.assertEqual(folders, {s["id"] for s in self.sets()})

    def test_check_config_says_whether_the_store_honours_conditions(self):
        self.assertIn(b"exclusive s3://", self.good("check-config"))
        self.s3.conditions = False
        self.fails(4, "If-None-Match", "check-config")
        report, status = self.json("check-config")
        self.assertEqual(status, 4)
        self.assertEqual([c["check"] for c in report["checks"] if not c["ok"]], ["exclusive"])
        self.assertEqual(list(self.s3.objects), [])

    def test_a_store_that_protects_all_but_locks_from_removal(self):
        self.s3.faults = lambda method, path, n: (
            403 if method == "DELETE" and "/nightly/locks/" not in path else None)
        for _ in range(2):
            self.good("check-config")
            self.good("backup")
        self.assertEqual([k for k in self.s3.objects if "/locks/" in k], [])
        self.good("verify", "--level", "parse")
        self.fails(6, "DELETE", "prune", "--confirm", "--keep", "count 1")
        self.assertEqual(len(self.sets()), 2)
        self.good("restore", "--to", self.path("out.rdb"))

    def test_an_answer_that_is_lost_does_not_lose_the_set(self):
        """The store has the object, but its answer does not arrive, and what is repeated is
        refused."""
        self.big(9 << 20)
        for fault in ("lost", Fault(500, b"", done=True)):
            for part in ("manifest.json", "uploadId=", "lock"):
                with self.subTest(fault=fault, part=part):
                    done = []

                    def once(method, path, n, part=part, fault=fault, done=done):
                        if done or part not in path or "partNumber" in path or \
                                method not in ("PUT", "POST"):
                            return None
                        done.append(n)
                        return fault

                    self.s3.faults = once
                    before = len(self.sets())
                    self.good("backup")
                    self.assertEqual(len(done), 1)
                    self.s3.faults = None
                    self.assertEqual(len(self.sets()), before + 1)
                    self.assertEqual(self.s3.uploads, {})
            self.good("verify")

    def test_an_object_with_other_bytes_is_not_taken_for_the_own_one(self):
        def other(method, path, n):
            if method == "PUT" and "manifest.json" in path:
                self.s3.objects[path.split("/", 2)[2]] = b"{}"

        self.s3.faults = other
        self.fails(3, "already exists", "backup")

    def test_prefixes_are_encoded(self):
        for prefix in ("a%20b", "a b", "a&b=c", "a+b", "M\u00fcnchen/\u6771\u4eac", "a;b", "q?x#y",
                       "$'\"<>"):
            with self.subTest(prefix=prefix):
                self.s3.objects.clear()
                self.repository = "s3://vault/" + prefix
                self.nightly(more=f"s3-endpoint = {self.s3.url}\n"
                             f"s3-key-file = {self.path('s3key')}\n")
                where = ("--repository", self.repository, "nightly")
                self.good("backup", *where)
                self.assertEqual({k.split("/nightly/")[0] for k in self.s3.objects}, {prefix})
                report, status = self.json("list", *where)
                self.assertEqual((status, len(report["sets"])), (0, 1))
                self.good("verify", *where)
        for prefix in ("..", "a/../b", "./a", "a//b", "/a", "a\x01b", "a\x7f"):
            with self.subTest(prefix=prefix):
                self.fails(2, "prefix", "list", "--repository", "s3://vault/" + prefix, "nightly")

    def test_uploads_that_an_interrupted_run_left_are_removed(self):
        self.s3.page = 1
        mine = [f"some/where/nightly/{name}" for name in ("sets/x/dump.rdb", "sets/y/dump.rdb")]
        others = ["some/where/weekly/sets/x/dump.rdb", "some/where/nightly/stream/r/c/s.seg",
                  "some/where/nightly2/sets/z/dump.rdb"]
        for i, key in enumerate(mine + others):
            self.s3.uploads[f"old/{i}+"] = (key, {1: b"x"})
        self.good("backup")
        self.assertEqual([key for key, _ in self.s3.uploads.values()], others)
        # A store that does not list them does not fail the backup.
        self.s3.faults = lambda method, path, n: 403 if "uploads" in path else None
        self.good("backup")

    def test_with_a_spool_the_server_does_not_wait_for_a_slow_upload(self):
        """The first part is held back until the server is free."""
        server = RedisServer({"save": "", "repl-diskless-sync": "yes",
                              "repl-diskless-sync-delay": "0"})
        self.enter(server)
        server.command("SET", "k", random.Random(1).randbytes(20 << 20))
        self.nightly(source=f"redis://127.0.0.1:{server.port}",
                     more=f"s3-endpoint = {self.s3.url}\ns3-key-file = {self.path('s3key')}\n"
                     f"compress = none\nspool = {self.path('spool')}\n")
        free = threading.Event()

        def wait_for_server(method, path, n):
            if method == "PUT" and "partNumber=1" in path:
                for _ in range(600):
                    info = server.command("INFO").decode()
                    if "rdb_bgsave_in_progress:0" in info and "connected_slaves:0" in info:
                        free.set()
                        break
                    time.sleep(0.1)

        self.s3.faults = wait_for_server
        self.good("backup")
        self.assertTrue(free.is_set(), "the server was held until the upload ended")
        self.assertEqual(os.listdir(self.path("spool")), [])
        self.assertEqual(os.stat(self.path("spool")).st_mode & 0o777, 0o700)
        self.good("verify", "--level", "parse")
        self.assertEqual(self.sets()[0]["keys"], 1)
