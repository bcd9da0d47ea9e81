"""The site that `./run docs` writes: complete, links work, Chromium shows it."""

import html.parser
import os
import re
import subprocess
import sys
import tempfile
import unittest

from browser import Browser

SOURCE = os.environ["REDOUBT_SOURCE"]


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.opened = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [attrs[name] for name in ("href", "src") if name in attrs]
        if "id" in attrs:
            assert attrs["id"] not in self.ids, attrs["id"]
            self.ids.add(attrs["id"])


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="redoubt-site-")
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([sys.executable, os.path.join(SOURCE, "docs", "site", "site.py"),
                        cls.folder.name], check=True)
        cls.pages = {}
        for folder, _, names in os.walk(cls.folder.name):
            for name in names:
                if name.endswith(".html"):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        cls.pages[path] = Links(file.read())

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    def test_every_page_of_the_documentation_is_there(self):
        for folder in ("guide", "format", "man"):
            for name in os.listdir(os.path.join(SOURCE, "docs", folder)):
                page = os.path.splitext(name)[0] + ".html"
                self.assertIn(self.path(folder, page), self.pages)

    def test_every_link_leads_somewhere(self):
        wrong = []
        for path, page in self.pages.items():
            for link in page.links:
                if re.match(r"https?:|data:", link):
                    continue
                target, _, part = link.partition("#")
                to = os.path.normpath(os.path.join(os.path.dirname(path), target)) \
                    if target else path
                if not os.path.isfile(to) or part and part not in self.pages[to].ids:
                    wrong.append(f"{os.path.relpath(path, self.folder.name)}: {link}")
        self.assertEqual(wrong, [])

    def test_every_page_can_be_reached(self):
        found, waiting = {self.path("search.html")}, [self.path("index.html")]
        while waiting:
            path = waiting.pop()
            if path in found:
                continue
            found.add(path)
            for link in self.pages[path].links:
                to = os.path.normpath(os.path.join(os.path.dirname(path), link.split("#")[0]))
                if to in self.pages:
                    waiting.append(to)
        self.assertEqual(found | {self.path("index.html")}, set(self.pages))

    def test_nothing_is_loaded_from_elsewhere(self):
        for path in self.pages:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.assertNotRegex(text, r"<(?:img|link|script|form)[^>]*https?:")
            self.assertEqual("<script" in text, path == self.path("search.html"))
        with open(self.path("search.js"), encoding="utf-8") as file:
            self.assertNotRegex(file.read(), r"https?:|fetch\(|XMLHttp|import|innerHTML")

    def test_every_page_lists_all_pages_and_marks_itself(self):
        for path, page in self.pages.items():
            here = {os.path.normpath(os.path.join(os.path.dirname(path), link.split("#")[0]))
                    for link in page.links}
            self.assertEqual(set(self.pages) - here - {self.path("search.html")}, set(), path)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read().count('aria-current="page"'),
                                 path != self.path("search.html"))

    def test_a_word_is_found_without_a_server(self):
        with Browser() as browser:
            def search(words):
                browser.open("file://" + self.path("guide", "backup.html"))
                browser.run("document.querySelector('input').value = arguments[0];"
                            "document.querySelector('form').requestSubmit()", words)
                browser.wait(lambda: browser.run(
                    "return location.pathname.endsWith('search.html') && "
                    "document.querySelector('#count:not(:empty)') != null"))
                return (browser.run("return document.getElementById('count').innerText"),
                        browser.run("return [...document.querySelectorAll('#found a')]"
                                    ".map(a => [a.innerText, a.getAttribute('href')])"))
            said, found = search("Torn AOF")
            self.assertEqual(said, f"{len(found)} sections")
            self.assertIn("guide/torn-aof.html#only-the-end-is-torn", [href for _, href in found])
            self.assertTrue(browser.run(
                "return [...document.querySelectorAll('mark')].some(m => m.innerText == 'AOF')"))
            for _, href in found:
                page, _, part = href.partition("#")
                self.assertIn(part, self.pages[self.path(page)].ids | {""})
            self.assertEqual(search("<b>nowhere</b>"), ("No section has <b>nowhere</b>.", []))
            self.assertEqual(browser.console(), [])

    def test_a_browser_shows_it_on_a_narrow_screen_too(self):
        with Browser(390, 844) as browser:
            for name in ("index.html", "guide/corrupt-rdb.html", "exit-status.html",
                         "man/redoubt-check-rdb.1.html"):
                with self.subTest(name):
                    browser.open("file://" + self.path(name))
                    self.assertTrue(browser.run("return document.querySelector('h1').innerText"))
                    self.assertLessEqual(
                        browser.run("return document.documentElement.scrollWidth"), 390)
                    self.assertEqual(browser.run(
                        "return [...document.images].filter(i => !i.naturalWidth).length"), 0)
            self.assertEqual(browser.console(), [])
