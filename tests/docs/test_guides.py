"""The guides: every command is run on a machine with the redis-server of Debian, in the order of
the page, and prints what the page shows."""

import glob
import os
import re
import subprocess
import unittest

import page
import worlds
from machine import Machine

SOURCE = os.environ["REDOUBT_SOURCE"]
FOLDER = os.path.join(SOURCE, "docs", "guide")


def guides():
    return sorted(os.path.splitext(os.path.basename(path))[0]
                  for path in glob.glob(os.path.join(FOLDER, "*.md")))


def text_of(name):
    with open(os.path.join(FOLDER, name + ".md"), encoding="utf-8") as f:
        return f.read()


def shown_commands(text):
    """Commands of blocks that are not run: (tool, options)."""
    for block in page.plain_blocks(text):
        for words in re.findall(r"\bredoubt ([a-z][a-z-]+)([^\n|;&]*)", block):
            yield words[0], re.findall(r"(?<!\S)--[\w-]+", words[1])


class Guides(unittest.TestCase):
    def guide(self, name):
        with Machine() as machine:
            worlds.prepare(machine, name)
            machine.run(page.steps(text_of(name)))

    def test_every_guide_is_run(self):
        self.assertEqual(guides(), sorted(worlds.PAGES))
        for name in guides():
            self.assertTrue(any(isinstance(s, page.Command) for s in page.steps(text_of(name))),
                            f"{name}: no command that is run")

    def test_commands_that_are_only_shown_have_options_of_the_tool(self):
        for name in guides():
            for tool, options in shown_commands(text_of(name)):
                usage = subprocess.run([os.environ["REDOUBT"], tool, "--help"], check=True,
                                       capture_output=True, encoding="utf-8").stdout
                for option in options:
                    with self.subTest(guide=name, tool=tool):
                        self.assertRegex(usage, rf"{option}\b")

    def test_a_wrong_output_is_found(self):
        with Machine() as machine:
            right = "$ echo a b\na …\n$ false    # exit status 1"
            machine.run(page.steps(f"```console\n{right}\n```\n"))
            for wrong in ("$ echo a\nb", "$ echo a", "$ true\na", "$ false", "$ echo a\na\n…\nb"):
                with self.subTest(wrong), self.assertRaises(AssertionError):
                    machine.run(page.steps(f"```console\n{wrong}\n```\n"))


def _add(name):
    setattr(Guides, "test_the_commands_of_" + name.replace("-", "_"),
            lambda self: self.guide(name))


for _name in guides():
    _add(_name)
