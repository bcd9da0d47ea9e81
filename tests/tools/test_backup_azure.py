"""Backups in a store that speaks the protocol of Azure Blob Storage and checks signatures."""

import json
import os
import random

from azure_server import AzureServer, error_text, service
from backup_case import SNAPSHOT, BackupCase
from s3_server import Fault


class InAzure(BackupCase):
    def setUp(self):
        super().setUp()
        self.azure = AzureServer()
        self.azure.__enter__()
        self.addCleanup(self.azure.__exit__, None, None, None)
        self.use()

    def use(self, more="", key=None, secret="azure-key-file"):
        self.write("secret", f"{key or self.azure.key}\n")
        self.repository = "azure://redis/vault/some/where"
        self.nightly(more=f"azure-endpoint = {self.azure.endpoint}\n"
                     f"{secret} = {self.path('secret')}\ncompress = none\n" + more)

    def big(self, size=20 << 20):
        """A snapshot that takes several blocks."""
        blob = random.Random(1).randbytes(size)
        name = self.write("big.rdb", b"REDIS0011\xfe\x00\x00\x01k\x80" + size.to_bytes(4, "big") +
                          blob + b"\xff" + bytes(8))
        os.rename(name, self.path("dump.rdb"))
        with open(self.path("dump.rdb"), "rb") as file:
            return file.read()

    def test_a_set_goes_there_and_comes_back(self):
        self.good("backup")
        self.assertTrue(all(k.startswith("some/where/nightly/") for k in self.azure.objects))
        self.assertEqual(len(self.sets()), 1)
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out.rdb"))
        with open(SNAPSHOT, "rb") as file:
            self.assertEqual(self.read("out.rdb"), file.read())
        self.assertEqual([k for k in self.azure.objects if "lock" in k], [])
        self.assertIn(b"exclusive azure://redis", self.good("check-config"))
        self.azure.conditions = False
        self.fails(4, "If-None-Match", "check-config")

    def test_large_objects_go_in_blocks_and_come_in_ranges(self):
        data = self.big()
        self.good("backup")
        sizes = [int(r[2]["Content-Length"]) for r in self.azure.requests if "comp=block&" in r[1]
                 or r[1].endswith("comp=block")]
        self.assertEqual(sizes[:2], [8 << 20, 8 << 20])
        self.assertEqual(len(sizes), 3)
        self.assertEqual(self.azure.blocks, {})
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), data)
        ids = {r[1] for r in self.azure.requests if "comp=block" in r[1]}
        self.good("backup")
        again = {r[1] for r in self.azure.requests if "comp=block" in r[1]} - ids
        self.assertFalse({i.split("blockid=")[-1] for i in ids if "blockid" in i} &
                         {i.split("blockid=")[-1] for i in again})

    def test_requests_are_repeated_when_the_store_fails_for_a_while(self):
        self.big()
        self.azure.faults = lambda method, path, n: (503, None, "cut", None, None)[n % 5]
        self.good("backup")
        self.good("verify", "--level", "parse")

    def test_an_upload_that_is_given_up_is_no_object(self):
        self.big()
        refused = Fault(403, error_text("AuthorizationFailure"), service("AuthorizationFailure"))
        count = []

        def second(method, path, n):
            count.extend([n] if "comp=block" in path else [])
            return refused if count[1:] == [n] else None

        self.azure.faults = second
        self.fails(6, "AuthorizationFailure", "backup")
        self.assertEqual(self.sets(), [])
        self.assertEqual([k for k in self.azure.objects if "/sets/" in k], [])

    def test_an_answer_that_is_lost_does_not_lose_the_set(self):
        self.big(9 << 20)
        for fault in ("lost", Fault(500, b"", done=True)):
            for part in ("manifest.json", "comp=blocklist", "lock"):
                with self.subTest(fault=fault, part=part):
                    done = []

                    def once(method, path, n, part=part, fault=fault, done=done):
                        if done or part not in path or method != "PUT":
                            return None
                        done.append(n)
                        return fault

                    self.azure.faults = once
                    before = len(self.sets())
                    self.good("backup")
                    self.assertEqual(len(done), 1)
                    self.azure.faults = None
                    self.assertEqual(len(self.sets()), before + 1)
            self.good("verify")

    def test_an_object_with_other_bytes_is_not_taken_for_the_own_one(self):
        def other(method, path, n):
            if method == "PUT" and "manifest.json" in path:
                self.azure.objects[path.split("/", 3)[3]] = b"{}"

        self.azure.faults = other
        self.fails(3, "already exists", "backup")

    def test_a_list_of_many_pages_is_read_to_its_end(self):
        self.azure.page = 2
        for _ in range(3):
            self.good("backup")
        self.assertEqual(len(self.sets()), 3)
        self.good("prune", "--keep", "count 1", "--confirm")
        self.assertEqual(len(self.sets()), 1)
        self.good("verify")

    def test_lists_that_are_not_whole_are_refused(self):
        self.good("backup")
        begin, end = b"<EnumerationResults>", b"</EnumerationResults>"
        row = (b"<Blob><Name>%s</Name><Properties><Content-Length>1</Content-Length></Properties>"
               b"</Blob>")
        for body, text in (
                (begin + b"<Blobs>", "not a whole EnumerationResults|cannot be read"),
                (begin + b"<Blobs/>" + end, "whether it is complete"),
                (begin + b"<Blobs>" + row % b"elsewhere/x" + b"</Blobs><NextMarker/>" + end,
                 "not asked for"),
                (begin + b"<Blobs><Blob><Name>some/where/nightly/x</Name></Blob></Blobs>"
                 b"<NextMarker/>" + end, "no size"),
                (begin + b"<Blobs/><NextMarker>" + b"x" * 2000 + b"</NextMarker>" + end,
                 "too long"),
                (begin + b"<Blobs/><NextMarker>again</NextMarker>" + end, "repeats a position")):
            with self.subTest(text=text):
                self.azure.faults = lambda method, path, n, body=body: (
                    Fault(200, body, service()) if "comp=list" in path else None)
                done = self.tool("list")
                self.assertEqual(done.returncode, 6, done.stderr)
                self.assertRegex(done.stderr.decode(), text)
        # The page of a portal is no list, and a proxy knows no objects.
        html = b"<html><body>Please log in</body></html>"
        self.azure.faults = lambda method, path, n: Fault(200, html)
        self.fails(6, "not as Azure does", "list")

    def test_folders_of_the_store_are_no_objects(self):
        self.good("backup")
        self.azure.folders = ["some/where/nightly/sets"]
        self.azure.faults = None
        self.assertEqual(len(self.sets()), 1)

    def test_a_wrong_key_is_reported_and_not_retried(self):
        self.use(key="AAAA")
        done = self.tool("backup")
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(b'"AuthenticationFailed"', done.stderr)
        self.assertNotIn(b"MAC", done.stderr)
        self.assertNotIn(b"clock", done.stderr)
        self.assertLess(len(self.azure.requests), 4)
        self.fails(6, '"AuthenticationFailed", "it is so"', "list")
        for key in ("not base64!", "AAA", "====", ""):
            self.write("secret", key + "\n")
            self.assertEqual(self.tool("backup").returncode, 2)

    def test_a_clock_that_is_off_is_named(self):
        self.azure.clock = 3600
        self.fails(6, "the clock of this host differs", "backup")
        self.azure.clock = 0
        detail = "<AuthenticationErrorDetail>Signature not valid in the specified time frame"
        self.azure.faults = lambda method, path, n: Fault(
            403, error_text("AuthenticationFailed", detail + "</AuthenticationErrorDetail>"),
            service("AuthenticationFailed"))
        self.fails(6, "not valid at this time", "list")

    def test_a_shared_access_signature_takes_the_place_of_the_key(self):
        self.azure.sas = "sv=2021-08-06&sp=rwdl&sig=c2VjcmV0%2B%3D"
        self.use(key="?" + self.azure.sas, secret="azure-sas-file")
        self.good("backup")
        self.assertEqual(len(self.sets()), 1)
        self.good("restore", "--to", self.path("out.rdb"))
        self.write("sas", self.azure.sas)
        self.use()
        self.good("list", "--azure-sas-file", self.path("sas"))
        self.use(key="?" + self.azure.sas, secret="azure-sas-file")
        self.azure.sas += "x"
        done = self.tool("backup")
        self.assertEqual(done.returncode, 6)
        self.assertIn(b"AuthenticationFailed", done.stderr)
        self.assertNotIn(b"c2VjcmV0", done.stderr)
        self.use(key="sv=a#b", secret="azure-sas-file")
        self.fails(2, "parameters of a URL", "list")
        self.use(secret="azure-sas-file", more=f"azure-key-file = {self.path('secret')}\n")
        self.fails(2, "only one of azure-sas-file and azure-key-file", "list")
        self.use()
        self.fails(2, "azure://ACCOUNT/CONTAINER/PREFIX", "list", "--repository",
                   "azure://redis/vault/x?sig=hidden")
        self.assertNotIn(b"hidden", self.tool("list", "--repository",
                                              "azure://redis/vault/x?sig=hidden").stderr)

    def test_the_key_comes_from_the_environment(self):
        self.nightly(more=f"azure-endpoint = {self.azure.endpoint}\n")
        self.fails(2, "AZURE_STORAGE_KEY", "backup")
        done = self.tool("backup", env={"AZURE_STORAGE_KEY": self.azure.key})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_settings_that_make_no_sense_are_refused(self):
        for name, value in (("azure-endpoint", "host"), ("azure-endpoint", "http://host/"),
                            ("repository", "azure://"), ("repository", "azure://redis"),
                            ("repository", "azure://redis/vault/"),
                            ("repository", "azure://Redis/vault"),
                            ("repository", "azure://redis/va.ult"),
                            ("repository", "azure://redis/vault/a//b"),
                            ("repository", "azure://redis/" + 70 * "x")):
            done = self.tool("list", f"--{name}", value)
            self.assertEqual(done.returncode, 2, (name, value, done.stderr))

    def test_prefixes_are_encoded(self):
        for prefix in ("a%20b", "a&b=c", "a+b", "M\u00fcnchen/\u6771\u4eac", "$'\"<>"):
            with self.subTest(prefix=prefix):
                self.azure.objects.clear()
                where = ("--repository", "azure://redis/vault/" + prefix)
                self.good("backup", *where)
                self.assertEqual({k.split("/nightly/")[0] for k in self.azure.objects}, {prefix})
                listed = json.loads(self.good("list", "--json", *where))
                self.assertEqual(len(listed["sets"]), 1)
                self.good("verify", *where)

    def test_a_container_that_is_missing_is_no_empty_one(self):
        self.fails(6, "ContainerNotFound", "list", "--repository", "azure://redis/other")
        self.good("backup")
        self.azure.faults = lambda method, path, n: 404 if "manifest" in path else None
        done = self.tool("verify")
        self.assertNotIn(done.returncode, (0, 1), done.stderr)
        short = Fault(416, error_text("InvalidRange"), service("InvalidRange"))
        self.azure.faults = lambda method, path, n: (
            short if method == "GET" and "manifest" in path else None)
        self.fails(6, "less than it reported", "verify")
        self.azure.faults = None
        self.good("verify")
