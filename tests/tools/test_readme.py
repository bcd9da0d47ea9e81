"""The examples in README.md print what they say."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ["REDOUBT_SOURCE"]


def examples():
    """Yields (command, output) of every command in a console block."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        blocks = re.findall(r"^```console\n(.*?)^```", file.read(), re.M | re.S)
    for block in blocks:
        for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            yield command, output


class Readme(unittest.TestCase):
    def test_there_are_examples(self):
        self.assertTrue(list(examples()))

    def test_every_example_prints_what_is_written(self):
        # In a folder of their own: what an example writes does not stay.
        folder = tempfile.mkdtemp(prefix="redoubt-readme-")
        self.addCleanup(shutil.rmtree, folder)
        os.symlink(os.path.join(SOURCE, "fixtures"), os.path.join(folder, "fixtures"))
        for command, output in examples():
            with self.subTest(command=command):
                done = subprocess.run(
                    command.replace("./run", '"$REDOUBT"'),
                    shell=True,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    encoding="utf-8",
                    check=False,
                )
                self.assertEqual(done.stdout, output)

    def test_every_page_that_is_linked_is_there(self):
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
            links = re.findall(r"\]\(([^):#]+)\)", file.read())
        self.assertTrue(links)
        for link in links:
            self.assertTrue(os.path.exists(os.path.join(SOURCE, link)), link)
