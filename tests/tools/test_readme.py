"""The commands of README.md print what it shows, and its links lead somewhere."""

import os
import re
import sys
import unittest

SOURCE = os.environ["REDOUBT_SOURCE"]
sys.path.append(os.path.join(SOURCE, "tests", "docs"))

import page  # noqa: E402
import worlds  # noqa: E402
from machine import Machine  # noqa: E402

PICTURE_MAX = 100 * 1024


def text():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        return file.read()


class Readme(unittest.TestCase):
    def test_every_command_prints_what_is_shown(self):
        steps = page.steps(text())
        self.assertGreater(len(steps), 5)
        with Machine() as machine:
            worlds.readme(machine)
            machine.run(steps)

    def test_every_page_that_is_linked_is_there(self):
        links = re.findall(r"\]\(([^):#]+)\)", text())
        self.assertTrue(links)
        for link in links:
            self.assertTrue(os.path.exists(os.path.join(SOURCE, link)), link)

    def test_every_guide_is_linked(self):
        for name in worlds.PAGES:
            self.assertIn(f"(docs/guide/{name}.md)", text())

    def test_the_table_of_programs_is_the_one_that_the_guide_shows(self):
        with open(os.path.join(SOURCE, "docs/guide/comparison.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| a? ?(?:snapshot|log|keys|two).*", file.read(), re.M)
        self.assertGreater(len(rows), 5)
        for row in rows:
            self.assertIn(row, text())

    def test_the_figures_of_speed_are_those_of_the_page(self):
        rows = re.findall(r"^\| .* \| [a-z-]+: ([\d.]+) \| (?:[a-z-]+: )?([\d.]+) \| ([\d.]+)x \|$",
                          text(), re.M)
        self.assertEqual(len(rows), 6)
        with open(os.path.join(SOURCE, "docs", "performance.md"), encoding="utf-8") as file:
            lines = [{cell.strip(" x") for cell in line.split("|")} for line in file]
        for row in rows:
            self.assertTrue(any(set(row) <= line for line in lines), row)

    def test_the_picture_is_small(self):
        path = os.path.join(SOURCE, "docs", "report.png")
        self.assertLess(os.path.getsize(path), PICTURE_MAX)
        with open(path, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_the_two_commands_are_the_first_of_the_section_on_building(self):
        building = text().split("\n## Build\n")[1].split("\n## ")[0]
        self.assertEqual(re.findall(r"^\./run \S+", building, re.M),
                         ["./run check-rdb", "./run test"])
