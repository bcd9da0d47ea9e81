"""The completion for bash, in bash: tools, options without duplicates, and values."""

import os
import subprocess
import unittest

REDOUBT = os.environ.get("REDOUBT", "redoubt")
SCRIPT = os.path.join(os.environ["REDOUBT_SOURCE"], "docs", "completion", "redoubt.bash")


def complete(*words):
    """What bash offers for the last word."""
    script = ('redoubt() { "$REDOUBT" "$@"; }; . "$1"; shift; COMP_WORDS=("$@"); '
              'COMP_CWORD=$(($# - 1)); _redoubt; printf "%s\\n" "${COMPREPLY[@]}"')
    run = subprocess.run(["bash", "-c", script, "bash", SCRIPT, *words], capture_output=True,
                         check=True, env={**os.environ, "REDOUBT": REDOUBT})
    return run.stdout.decode().split()


class Completion(unittest.TestCase):
    def test_tools(self):
        self.assertEqual(complete("redoubt", "che"), ["check-aof", "check-config", "check-rdb"])
        self.assertIn("stat", complete("redoubt", "help", ""))

    def test_options_come_once_and_without_former_names(self):
        for tool in ("convert", "diff", "capture", "show", "stat", "check-rdb", "check-aof",
                     "doctor", "merge", "sum"):
            found = complete("redoubt", tool, "--")
            self.assertEqual(len(found), len(set(found)), found)
            self.assertIn("--json", found)
        self.assertIn("--input-format", complete("redoubt", "convert", "--in"))
        self.assertEqual(complete("redoubt", "convert", "--from"), [])
        for tool, former, name in (("split", "--prefix-s", "--separator"),
                                   ("capture", "--metrics", "--metrics-file"),
                                   ("capture", "--master", "--master-name"),
                                   ("diff", "--max", "--max-differences")):
            self.assertNotIn(former, complete("redoubt", tool, former))
            self.assertIn(name, complete("redoubt", tool, name[:-1]))
        self.assertEqual(complete("redoubt", "convert", "--until"), ["--until-offset", "--until"])

    def test_values(self):
        formats = ["rdb", "aof", "resp", "ndjson", "csv", "sqlite"]
        self.assertEqual(complete("redoubt", "convert", "--to", ""), formats)
        self.assertEqual(complete("redoubt", "convert", "--to", "="), formats)
        self.assertEqual(complete("redoubt", "convert", "--to", "=", "r"), ["rdb", "resp"])
        self.assertIn("valkey-9", complete("redoubt", "convert", "--for", "v"))
        self.assertEqual(complete("redoubt", "stat", "--color", "n"), ["never"])
        self.assertEqual(complete("redoubt", "split", "--type", "s"), ["string", "set", "stream"])

    def test_a_value_that_is_not_known_is_a_file(self):
        self.assertEqual(complete("redoubt", "convert", "--output", ""), [])
        self.assertEqual(complete("redoubt", "check-rdb", ""), [])


if __name__ == "__main__":
    unittest.main()
