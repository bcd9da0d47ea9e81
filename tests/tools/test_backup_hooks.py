"""What follows a backup: hooks and figures, also if it failed before it began."""

import os
import re
import unittest

from backup_case import BackupCase


class After(BackupCase):
    def follow(self, more=""):
        self.nightly(sealed=False, more=f"metrics-file = {self.path('redoubt.prom')}\n"
                     f"hook-failed = echo \"$REDOUBT_ERROR\" >> {self.path('said')}\n{more}")

    def figures(self):
        text = self.read("redoubt.prom").decode()
        found = re.findall(r'^redoubt_backup_(\w+)\{target="nightly"\} (\S+)$', text, re.M)
        self.assertEqual(text.count("\n"), 3 * len(found), text)
        return {name: float(value) for name, value in found}

    def unlike(self, before):
        """The figures that changed, without the time of the run."""
        now = self.figures()
        del now["last_run_timestamp_seconds"]
        return {name: now[name] for name in now if now[name] != before[name]}

    def test_a_key_or_a_repository_that_is_missing_is_a_failure_like_others(self):
        self.follow()
        self.good("backup")
        good = self.figures()
        self.assertEqual((good["last_run_success"], good["sets"]), (1, 1))
        self.follow(more=f"key-file = {self.path('none')}\n")
        self.fails(3, "none", "backup")
        self.assertEqual(self.unlike(good), {"last_run_success": 0})
        os.rename(self.repository, self.path("away"))
        self.write("repo", "a file")
        self.follow()
        self.fails(3, "repo", "backup")
        self.assertEqual(self.unlike(good), {"last_run_success": 0})
        said = self.read("said").decode().splitlines()
        self.assertEqual(len(said), 2, said)
        self.assertIn("none: cannot open", said[0])
        self.assertIn("repo: ", said[1])

    def test_without_earlier_figures_there_are_none_of_the_sets(self):
        self.write("repo", "a file")
        self.follow()
        self.fails(3, "repo", "backup")
        self.assertEqual(sorted(self.figures()), ["last_run_success", "last_run_timestamp_seconds"])

    def test_a_copy_that_is_missing_is_a_failure(self):
        self.write("file", "x")
        self.follow(more=f"repository = {self.path('file', 'no')}\n")
        self.assertEqual(self.tool("backup").returncode, 8)
        figures = self.figures()
        self.assertEqual((figures["last_run_success"], figures["sets"]), (0, 1))


if __name__ == "__main__":
    unittest.main()
