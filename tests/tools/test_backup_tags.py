"""Tags of sets: backup --tag, list --tag, and the rule of prune."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from backup_case import BackupCase  # noqa: E402


class BackupTags(BackupCase):
    def setUp(self):
        super().setUp()
        self.nightly()

    def back_up(self, *tags):
        args = [arg for tag in tags for arg in ("--tag", tag)]
        report, status = self.json("backup", *args)
        self.assertEqual(status, 0, report)
        return report["sets"][0]

    def listed(self, *tags):
        args = [arg for tag in tags for arg in ("--tag", tag)]
        return [found["id"] for found in self.json("list", *args)[0]["sets"]]

    def test_sets_are_found_by_their_tags(self):
        plain = self.back_up()
        self.assertEqual(plain["tags"], {})
        one = self.back_up("release=7.2", "before-upgrade")
        self.assertEqual(one["tags"], {"release": "7.2", "before-upgrade": ""})
        two = self.back_up("release=8.0 \u2013 \u00fc")
        self.assertEqual(self.listed(), [plain["id"], one["id"], two["id"]])
        self.assertEqual(self.listed("release"), [one["id"], two["id"]])
        self.assertEqual(self.listed("release=7.2"), [one["id"]])
        self.assertEqual(self.listed("release", "before-upgrade"), [one["id"]])
        self.assertEqual(self.listed("releas"), [])
        said = self.good("list").decode()
        self.assertIn("release=7.2, before-upgrade", said)
        self.assertIn("release=8.0 \u2013 \u00fc", said)
        for found in self.json("list")[0]["sets"]:
            if found["id"] == one["id"]:
                self.assertEqual(found["tags"], one["tags"])

    def test_tags_are_signed(self):
        made = self.back_up("release=7.2")
        path = os.path.join("repo", "nightly", "sets", made["id"], "manifest.json")
        text = self.read(path).replace(b"7.2", b"7.3")
        self.write(path, text)
        self.fails(1, "manifest", "list")

    def test_tags_that_are_none_are_refused_before_the_backup(self):
        for wrong in ("", "=x", "a b", ".a", "a=\x1b[31m", "n" * 65, "n=" + "v" * 257, "a/b"):
            self.fails(2, "tag", "backup", "--tag", wrong)
        self.fails(2, "more than 32 tags", "backup",
                   *(arg for i in range(33) for arg in ("--tag", f"t{i}")))
        self.assertEqual(self.listed(), [])

    def test_prune_keeps_sets_with_a_tag(self):
        one = self.back_up("release=7.2")
        two = self.back_up("release=8.0")
        self.back_up("other")
        last = self.back_up()
        self.good("prune", "--confirm", "--keep", "count 1, tag release")
        self.assertEqual(self.listed(), [one["id"], two["id"], last["id"]])
        self.good("prune", "--confirm", "--keep", "count 1, tag release=8.0")
        self.assertEqual(self.listed(), [two["id"], last["id"]])
        report, status = self.json("prune", "--keep", "count 1, tag release")
        self.assertEqual(status, 0)
        why = {found["id"]: found["why"] for found in report["sets"]}
        self.assertEqual(why[two["id"]], ["tag"])
        self.good("prune", "--confirm", "--keep", "count 1")
        self.assertEqual(self.listed(), [last["id"]])
        self.fails(2, "tag", "prune", "--keep", "tag a/b")
        self.fails(2, "invalid rule", "prune", "--keep", "tag")

    def test_a_copy_has_the_tags(self):
        made = self.back_up("release=7.2")
        there = self.path("there")
        text = self.read("redoubt.conf").decode()
        self.configure(text + "\n" + text.replace("[nightly]", "[there]").replace(
            self.repository, there))
        self.good("copy", "nightly", "there")
        found = self.json("list", "there")[0]["sets"]
        self.assertEqual(found[0]["tags"], made["tags"])


if __name__ == "__main__":
    unittest.main()
