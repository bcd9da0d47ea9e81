"""A report page in a headless Chromium, and the options that write it."""

import os
import shutil
import tempfile
import unittest

import browser


class PageCase(unittest.TestCase):
    """A class makes its page once, with make(); each case opens it again."""

    dark = False
    size = (1280, 800)

    @classmethod
    def make(cls):
        """Writes the page to cls.path; cls.folder is for its sources."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="redoubt-page-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.path = os.path.join(cls.folder, "report.html")
        cls.make()
        cls.browser = browser.Browser(*cls.size, dark=cls.dark).__enter__()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.open("file://" + self.path)

    def texts(self, selector):
        return self.browser.run("return [...document.querySelectorAll(arguments[0])].map("
                                "e => e.textContent)", selector)


class OutputCases:
    """For a test case with self.folder, self.page, and run_tool(*args), which returns the exit
    status, standard output and error."""

    done = 0  # the exit status of a tool that has written the page

    def test_an_existing_page_needs_force(self):
        with open(self.page, "w", encoding="ascii") as file:
            file.write("mine")
        self.assertEqual(self.run_tool("--html", self.page)[0], 2)
        with open(self.page, encoding="ascii") as file:
            self.assertEqual(file.read(), "mine")
        self.assertEqual(self.run_tool("--html", self.page, "--force"), (self.done, "", ""))
        status, out, _ = self.run_tool("--html", "-")
        self.assertEqual((status, out[:15]), (self.done, "<!doctype html>"))

    def test_a_page_that_cannot_be_written_is_an_error(self):
        status, _, err = self.run_tool("--html", os.path.join(self.folder, "missing", "page.html"))
        self.assertEqual(status, 3)
        self.assertIn("missing/page.html", err)
