"""What objects in S3 are given beside their bytes: a storage class, tags, and a lock; a repository
at another service, and in Google Cloud Storage."""

import datetime
import time

from s3_case import S3Case
from s3_server import S3Server


class Props(S3Case):
    def given(self, part):
        """What the objects with `part` in their names were given: the same for all."""
        found = [p for key, p in self.s3.props.items() if part in key]
        self.assertTrue(found, part)
        self.assertEqual(found.count(found[0]), len(found), found)
        return found[0]

    def test_sets_and_chunks_have_the_class_and_the_tags(self):
        self.use("s3-storage-class = STANDARD_IA\ns3-tags = team=data & more,cost/centre=4+2\n")
        self.fails(2, "s3-tags", "backup")
        self.use("s3-storage-class = STANDARD_IA\ns3-tags = team=data @ x,cost/centre=4+2\n")
        self.good("backup")
        self.good("backup", "--store", "chunks")
        for part in ("nightly/sets/", ".pack"):
            self.assertEqual(self.given(part), {
                "x-amz-storage-class": "STANDARD_IA",
                "x-amz-tagging": "team=data%20%40%20x&cost%2Fcentre=4%2B2"})
        self.assertEqual(self.given("/locks/"), {})
        self.good("verify")

    def test_what_is_kept_is_locked(self):
        self.big()
        self.use("s3-object-lock = compliance 30d\n")
        before = datetime.datetime.now(datetime.timezone.utc)
        self.good("backup")
        whole = [p for key, p in self.s3.props.items() if "nightly/sets/" in key]
        self.assertEqual(len(whole), 2)  # in parts, and the manifest
        for given in whole:
            self.assertEqual(given["x-amz-object-lock-mode"], "COMPLIANCE")
            until = datetime.datetime.fromisoformat(
                given["x-amz-object-lock-retain-until-date"].replace("Z", "+00:00"))
            days = (until - before).total_seconds() / 86400
            self.assertAlmostEqual(days, 30, delta=0.1)
        self.assertEqual(self.given("/locks/"), {})
        self.good("prune", "--pin", "latest")
        self.assertEqual(self.given("/marks/"), {})
        self.good("verify")

    def test_a_repository_may_be_at_another_service(self):
        other = self.enter(S3Server())
        other.access_key, other.secret_key = "OTHER", "secret"
        self.write("otherkey", f"{other.access_key}\n{other.secret_key}\n")
        self.use("repository = offsite\n[repository offsite]\nrepository = s3://vault/some/where\n"
                 f"s3-endpoint = {other.url}\ns3-key-file = {self.path('otherkey')}\n"
                 "s3-tags = far=yes\n")
        self.good("check-config")
        self.good("backup")
        both = self.s3.objects, other.objects
        for objects in both:
            self.assertEqual(len([key for key in objects if "nightly/sets/" in key]), 2)
        self.assertEqual({p.get("x-amz-tagging") for key, p in other.props.items()
                          if "nightly/sets/" in key}, {"far=yes"})
        self.assertEqual(self.given("nightly/sets/"), {})
        self.good("verify")
        self.s3.objects.clear()
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), self.read("dump.rdb"))
        self.good("prune", "--keep", "count 1", "--confirm")

    def test_values_that_cannot_work_are_refused(self):
        for text, what in (("s3-object-lock = 30d", "s3-object-lock must be"),
                           ("s3-object-lock = compliance", "s3-object-lock must be"),
                           ("s3-object-lock = compliance 0s", "s3-object-lock must be"),
                           ("s3-object-lock = legal 30d", "s3-object-lock must be"),
                           ("s3-storage-class = DEEP_ARCHIVE", "cannot be read at once"),
                           ("s3-storage-class = a b", "s3-storage-class must be"),
                           ("s3-tags = team", "s3-tags must be"),
                           ("s3-tags = =x", "s3-tags must be"),
                           ("s3-tags = " + ",".join(f"k{i}=v" for i in range(11)), "at most 10"),
                           (f"s3-tags = {'k' * 129}=v", "s3-tags must be")):
            with self.subTest(text=text):
                self.use(text + "\n")
                status = 4 if "ARCHIVE" in text else 2
                self.fails(status, what, "check-config")
                self.fails(status, what, "backup")
        self.assertEqual(self.s3.objects, {})


class InGoogle(S3Case):
    scheme = "gs"

    def test_a_set_in_parts_goes_there_and_comes_back(self):
        data = self.big()
        self.use("s3-storage-class = COLDLINE\ns3-object-lock = governance 1d\n")
        self.good("check-config")
        self.good("backup")
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), data)
        sets = {key for key in self.s3.objects if "nightly/sets/" in key}
        self.assertEqual(len(sets), 2)  # nothing with a name for a while
        for key in sets:
            self.assertEqual(self.s3.props[key]["x-goog-storage-class"], "COLDLINE")
            self.assertEqual(self.s3.props[key]["x-goog-object-lock-mode"], "GOVERNANCE")
        self.good("prune", "--keep", "count 1", "--confirm")

    def test_what_was_not_copied_is_removed_after_a_day(self):
        data = self.big()
        self.s3.faults = lambda method, path, n: (
            "cut" if method == "PUT" and path.endswith("dump.rdb.sealed") else
            503 if method == "DELETE" and path.endswith(".new") else None)
        self.assertNotEqual(self.tool("backup").returncode, 0)
        self.s3.faults = None
        left = [key for key in self.s3.objects if key.endswith(".new")]
        self.assertEqual(len(left), 1)
        self.assertEqual(self.s3.props[left[0]], {})
        self.s3.times.update({key: time.time() - 90000 for key in left})
        self.good("backup")
        self.assertEqual([key for key in self.s3.objects if key.endswith(".new")], [])
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), data)

    def test_an_object_is_not_replaced(self):
        self.big()
        found = []

        def put_before(method, path, _):
            if method == "PUT" and path.endswith("dump.rdb.sealed") and not found:
                found.append(path)
                key = path.partition("/vault/")[2]
                self.s3.objects[key] = b"of another one"

        self.s3.faults = put_before
        self.fails(3, "exists", "backup")
        self.assertEqual(self.s3.objects[found[0].partition("/vault/")[2]], b"of another one")
        self.assertEqual(self.sets(), [])

    def test_the_answer_to_the_copy_is_lost(self):
        data = self.big()
        self.s3.faults = lambda method, path, n: (
            "lost" if method == "PUT" and path.endswith("dump.rdb.sealed") and not
            self.s3.props.get("lost") and not self.s3.props.update(lost={}) else None)
        self.good("backup")
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), data)

    def test_what_it_does_not_have_is_refused(self):
        for text in ("s3-tags = a=b", "s3-sse = AES256", "s3-instance-keys = yes"):
            with self.subTest(text=text):
                self.use(text + "\n")
                self.fails(4, "Google Cloud Storage", "backup")
        self.nightly(more=f"s3-endpoint = {self.s3.url}\n")
        self.fails(2, "a key for HMAC", "backup")
