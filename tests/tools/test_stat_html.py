"""The page of `redoubt stat --html` in a headless Chromium: it opens, works, and runs no key."""

import csv
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import browser  # noqa: E402
import page_checks  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
EVIL = b"<script>document.title='taken'</script>"
IMAGE = b"<img src=x onerror=document.title='taken'>:1"
CLOSING = b"</script><b>:\xff\x1b[31m\xe2\x80\xae"
ELSEWHERE = re.compile(r"https?://|<[a-z]+[^<>]*\ssrc=|<link[^>]*href=\"(?!data:)|url\(|@import")


def string(data):
    return b"\x80" + struct.pack(">I", len(data)) + data


MODULE_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def module(name, kind):
    """A key whose value is of a module and has no contents."""
    number = 0
    for c in kind:
        number = number << 6 | MODULE_CHARS.index(c)
    return b"\x07" + string(name) + b"\x81" + struct.pack(">Q", number << 10) + b"\x00"


def snapshot(keys, more=b""):
    """Strings, by database: {db: {name: length}}; every third expires. Then `more`."""
    out = [b"REDIS0010"]
    for db, names in sorted(keys.items()):
        out.append(b"\xfe" + bytes([db]))
        for i, (name, length) in enumerate(names.items()):
            if i % 3 == 2:
                out.append(b"\xfc" + struct.pack("<q", 4102444800000))
            out.append(b"\x00" + string(name) + string(b"v" * length))
    return b"".join(out) + more + b"\xff" + bytes(8)


def names():
    keys = {b"user:%d" % i: 2000 for i in range(60)}
    keys.update({b"user:profile:%d" % i: 1500 for i in range(40)})
    keys.update({b"cache:%d" % i: 3000 for i in range(10)})
    keys.update({EVIL: 900, IMAGE: 9000, CLOSING: 8000, b"": 5})
    return keys


class Page(unittest.TestCase):
    keys = {0: names()}
    end = b""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="redoubt-stat-")
        cls.path = os.path.join(cls.folder, "report.html")
        source = os.path.join(cls.folder, "dump <b>.rdb")
        with open(source, "wb") as file:
            file.write(snapshot(cls.keys, cls.end))
        subprocess.run([REDOUBT, "stat", "--html", cls.path, *cls.more(), source], check=True,
                       timeout=600)

    @classmethod
    def more(cls):
        """Arguments before the snapshot."""
        return []

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)


class Text(Page):
    """What can be said without a browser."""

    def setUp(self):
        with open(self.path, encoding="utf-8") as file:
            self.page = file.read()

    def test_nothing_is_fetched_from_elsewhere(self):
        self.assertEqual(ELSEWHERE.findall(self.page), [])

    def test_no_key_can_end_the_element_around_it(self):
        self.assertEqual(self.page.count("<script"), 2)
        self.assertEqual(self.page.count("</script>"), 2)
        self.assertIn("\\u003cscript>document", self.page)

    def test_the_page_is_one_file_with_a_policy(self):
        self.assertTrue(self.page.startswith("<!doctype html>"))
        self.assertTrue(self.page.endswith("</html>\n"))
        self.assertIn("default-src 'none'", self.page)
        self.assertNotIn("innerHTML", self.page)


def a_list(name, element, n):
    return b"\x01" + string(name) + bytes([n]) + string(element) * n


class OfTwoTypes(Page):
    """A prefix with keys of two types, the lists larger."""

    keys = {0: {b"mix:s%d" % i: 100 for i in range(100)}}
    end = b"".join(a_list(b"mix:l%d" % i, b"e" * 50, 10) for i in range(100))

    def test_the_keys_that_are_not_shown_have_the_colours_of_their_types(self):
        with browser.Browser(1280, 800) as page:
            page.open("file://" + self.path)
            rest = dict(page.run("""
                return [...document.querySelectorAll(".part.rest > span")].map(
                    e => [e.querySelector("b").textContent, e.style.backgroundColor]);"""))
            shown = page.run("""
                return [...document.querySelectorAll(".part:not(.rest) > span")].map(
                    e => e.style.backgroundColor);""")
        self.assertEqual(sorted(rest), ["100 other string keys", "80 other list keys"])
        self.assertEqual(set(shown), {rest["80 other list keys"]})
        self.assertNotEqual(*rest.values())


class InBrowser(Page):
    size = (1280, 800)
    dark = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = browser.Browser(*cls.size, dark=cls.dark).__enter__()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.open("file://" + self.path)

    def tiles(self):
        return self.browser.run(
            "return [...document.querySelectorAll('.tile')].map(t => t.dataset.name || '')")

    def crumbs(self):
        return self.browser.run(
            "return [...document.querySelectorAll('#crumbs button')].map(b => b.textContent)")

    def focused(self):
        return self.browser.run("return document.activeElement.dataset.name || ''")

    def rows(self):
        return self.browser.run(
            "return [...document.querySelectorAll('#keys th.key')].map(c => c.textContent)")

    def type_into(self, selector, text):
        self.browser.run("""
            const field = document.querySelector(arguments[0]);
            field.value = arguments[1];
            field.dispatchEvent(new Event("input"));""", selector, text)


class Desk(InBrowser):
    def test_it_opens_with_its_charts_and_without_complaints(self):
        self.assertEqual(self.browser.console(), [])
        self.assertIn("dump <b>.rdb", self.browser.run("return document.title"))
        self.assertIn("user:", self.tiles())
        for part in ("#figures div", "#types li", "#expiry li", "#sizes tbody tr"):
            n = self.browser.run("return document.querySelectorAll(arguments[0]).length", part)
            self.assertGreater(n, 0, part)
        self.assertGreater(self.browser.run("return document.querySelector('#map').clientHeight"),
                           200)

    def test_tiles_fill_the_map_in_proportion(self):
        boxes = self.browser.run("""
            const map = document.querySelector("#map").getBoundingClientRect();
            return [...document.querySelectorAll(".tile")].map(t => {
                const b = t.getBoundingClientRect();
                return b.width * b.height / (map.width * map.height);
            });""")
        self.assertAlmostEqual(sum(boxes), 1, delta=0.02)

    def test_a_click_enters_a_prefix_and_the_crumbs_lead_back(self):
        self.browser.click("[data-name='user:']")
        self.assertEqual(self.crumbs(), ["All keys", "user:"])
        self.assertIn("user:profile:", self.tiles())
        self.assertTrue(all(row.startswith("user:") for row in self.rows()))
        self.browser.click("[data-name='user:profile:']")
        self.assertEqual(self.crumbs(), ["All keys", "user:", "profile:"])
        self.assertTrue(all(row.startswith("user:profile:") for row in self.rows()))
        self.browser.click("#crumbs button")
        self.assertEqual(self.crumbs(), ["All keys"])
        self.assertEqual(self.browser.console(), [])

    def test_all_of_it_goes_without_a_mouse(self):
        for _ in range(20):
            self.browser.press("Tab")
            if self.focused():
                break
        first = self.focused()
        self.assertEqual(first, "user:")
        stops = self.browser.run("return document.querySelectorAll('.tile[tabindex=\"0\"]').length")
        self.assertEqual(stops, 1)
        self.browser.press("ArrowRight")
        self.assertNotEqual(self.focused(), first)
        self.browser.press("Home", "Enter")
        self.assertEqual(self.crumbs(), ["All keys", "user:"])
        self.browser.press("Escape")
        self.assertEqual((self.crumbs(), self.focused()), (["All keys"], "user:"))
        self.browser.press("Enter", "Backspace")
        self.assertEqual(self.crumbs(), ["All keys"])

    def test_keys_are_text(self):
        self.type_into("#search", "taken")
        self.assertEqual(sorted(self.rows()), sorted([EVIL.decode(), IMAGE.decode()]))
        self.type_into("#search", "</script>")
        self.assertIn("</script><b>:\\xff\\x1b[31m\\u202e", self.rows())
        self.assertNotIn("taken", [self.browser.run("return document.title")])
        made = self.browser.run("return document.querySelectorAll('b b, td b, th b, img').length")
        self.assertEqual(made, 0)
        self.assertEqual(self.browser.console(), [])

    def test_the_table_is_searched_and_sorted(self):
        self.type_into("#search", "CACHE:")
        self.assertEqual(len(self.rows()), 10)
        self.browser.click("#keys thead th:first-child button")
        self.assertEqual(self.rows(), sorted(self.rows()))
        self.type_into("#search", "no such key")
        self.assertEqual(self.rows(), [])
        self.assertFalse(self.browser.run("return document.querySelector('#none').hidden"))

    def place(self):
        """What the sections about the place show: its name, types, classes of expiry, sizes."""
        return self.browser.run("""
            const texts = part => [...document.querySelectorAll(part)].map(e => e.textContent);
            return [document.querySelector(".here").textContent, texts("#types .name"),
                    texts("#expiry .name"), document.querySelectorAll("#spread li").length];""")

    def test_types_expiry_sizes_and_keys_follow_the_place(self):
        self.assertEqual(self.place()[:3], ["", ["string"], ["later", "never"]])
        self.browser.click("[data-name='cache:']")
        here, types, expiry, sizes = self.place()
        self.assertEqual((here, types), ("cache:", ["string"]))
        self.assertEqual((expiry, sizes), (["later", "never"], 1))
        self.assertEqual(len(self.rows()), 10)
        count = self.browser.run("return document.querySelector('#keys-count').textContent")
        self.assertEqual(count, "10 of 10 keys")
        self.browser.click("#crumbs button")
        self.browser.click("[data-name='user:']")
        self.assertEqual(len(self.rows()), 20)
        count = self.browser.run("return document.querySelector('#keys-count').textContent")
        self.assertEqual(count, "20 of 100 keys")

    def test_keys_are_grouped_by_pattern(self):
        self.browser.click("#by [data-value='pattern']")
        self.browser.click("[data-name='user:']")
        self.assertEqual(set(self.tiles()), {"user:{n}", "user:profile:"})
        self.browser.click("[data-name='user:{n}']")
        self.assertEqual(self.crumbs(), ["All keys", "user:", "{n}"])
        self.assertEqual(len(self.rows()), 20)
        self.assertTrue(all(re.fullmatch(r"user:\d+", row) for row in self.rows()))
        self.assertEqual(self.browser.console(), [])

    def test_the_page_says_what_it_was_made_of_and_with(self):
        foot = self.browser.run("return document.querySelector('#foot').textContent")
        self.assertRegex(foot, r"Made at \d{4}-\d\d-\d\d .* by redoubt \d+\.\d+\.\d+ .*"
                               r"dump <b>.rdb")

    def test_findings_are_there(self):
        found = self.browser.run("return document.querySelector('#findings').textContent")
        self.assertIn("of the memory never expires", found)
        self.assertIn("Set an expiry", found)

    def test_tables_are_saved_as_csv(self):
        folder = os.path.join(self.folder, "saved")
        os.makedirs(folder, exist_ok=True)
        self.browser.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        self.browser.click("#keys-csv")
        name = os.path.join(folder, "dump_b_.rdb-keys.csv")
        self.browser.wait(lambda: os.path.exists(name))
        with open(name, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["key", "type", "memory", "elements", "longest_element",
                                   "expires"])
        self.assertEqual(len(rows), 1 + len(self.keys[0]))
        keys = {row[0] for row in rows}
        self.assertIn("</script><b>:\\xff\\x1b[31m\\xe2\\x80\\xae", keys)
        self.browser.click("#groups-csv")
        name = os.path.join(folder, "dump_b_.rdb-prefixes.csv")
        self.browser.wait(lambda: os.path.exists(name))
        with open(name, encoding="utf-8") as file:
            self.assertIn('"user:",100,', file.read())
        self.assertEqual(self.browser.console(), [])

    def test_everybody_can_use_it(self):
        self.assertEqual(page_checks.findings(self.browser), [])
        self.browser.click("#by [data-value='pattern']")
        self.browser.click("[data-name='user:']")
        self.assertEqual(page_checks.findings(self.browser), [])


class Changes(InBrowser):
    """Two snapshots."""

    keys = {0: {**names(), **{b"new:%d" % i: 700 for i in range(9)}}}
    end = module(b"filter", "MBbloom--") + module(b"other", "minexyz--")

    @classmethod
    def more(cls):
        old = os.path.join(cls.folder, "old.rdb")
        with open(old, "wb") as file:
            file.write(snapshot({0: {**names(), b"gone:1": 5000, EVIL + b":1": 3}}, cls.end))
        return [old]

    def changed(self):
        return self.browser.run("""
            return [...document.querySelectorAll("#changes tbody tr")].map(
                row => [row.cells[0].textContent, row.cells[1].textContent]);""")

    def test_the_format_is_named_and_modules_are_listed_by_type(self):
        text = "return document.querySelector(arguments[0]).textContent"
        self.assertEqual(self.browser.run(text, "#sub"), "RDB version 10 (Redis 7.0)")
        names = self.browser.run(
            "return [...document.querySelectorAll('#encodings .name')].map(e => e.textContent)")
        self.assertEqual(sorted(names), ["Bloom filter", "module minexyz--", "string"])

    def test_what_is_new_and_what_is_gone_is_listed(self):
        rows = dict(map(tuple, self.changed()))
        self.assertEqual(rows["new:"], "new")
        self.assertEqual(rows["gone:"], "gone")
        self.assertNotIn("cache:", rows)
        self.browser.click("#changes-by [data-value='pattern']")
        rows = dict(map(tuple, self.changed()))
        self.assertEqual(rows["new:{n}"], "new")
        self.browser.click("#changes-by [data-value='type']")
        self.assertEqual([row[0] for row in self.changed()], ["string"])
        self.assertIn("old.rdb",
                      self.browser.run("return document.querySelector('#sub-old').textContent"))
        self.assertEqual(self.browser.console(), [])

    def test_everybody_can_use_it(self):
        self.assertEqual(page_checks.findings(self.browser), [])


class Many(unittest.TestCase):
    """More names, and longer ones, than a page has room for."""

    def test_a_page_stays_below_1_mb_and_says_what_it_leaves_out(self):
        with tempfile.TemporaryDirectory(prefix="redoubt-stat-") as folder:
            source, page = os.path.join(folder, "dump.rdb"), os.path.join(folder, "page.html")
            keys = {}
            for i in range(12000):
                keys[b"<%d>:" % (i % 3000) + b"<" * (i % 200) + b":\xff\x00%d" % i] = i % 900
            with open(source, "wb") as file:
                file.write(snapshot({0: keys, 1: keys}))
            subprocess.run([REDOUBT, "stat", "--html", page, source], check=True, timeout=600)
            self.assertLess(os.path.getsize(page), 1000000)
            with browser.Browser() as window:
                window.open("file://" + page)
                foot = window.run("return document.querySelector('#foot').textContent")
                self.assertIn("no room for", foot)
                self.assertIn("smaller prefixes are not on this page", foot)
                self.assertEqual(window.console(), [])


class Phone(InBrowser):
    size = (360, 740)
    dark = True

    def test_nothing_is_wider_than_the_screen(self):
        wide = self.browser.run("return document.documentElement.scrollWidth - innerWidth")
        self.assertLessEqual(wide, 0)

    def test_a_touch_sorts_a_table(self):
        self.browser.click("#keys thead th:first-child button")
        self.assertEqual(self.rows(), sorted(self.rows()))
        self.assertEqual(self.browser.console(), [])

    def test_a_touch_enters_a_prefix(self):
        self.browser.click("[data-name='user:']")
        self.assertEqual(self.crumbs(), ["All keys", "user:"])
        self.assertEqual(self.browser.console(), [])

    def colours(self, selector):
        """The sums of red, green and blue: of the background, and of the text."""
        colours = self.browser.run("""
            const style = getComputedStyle(document.querySelector(arguments[0]));
            return [style.backgroundColor, style.color];""", selector)
        return (sum(map(int, re.findall(r"\d+", c)[:3])) for c in colours)

    def test_it_is_dark_where_the_reader_wants_it(self):
        back, ink = self.colours("body")
        self.assertLess(back, 150)
        self.assertGreater(ink, 600)

    def test_on_paper_it_is_light_and_without_controls(self):
        self.addCleanup(self.browser.emulate)
        self.browser.devtools("Emulation.setEmulatedMedia", media="print", features=[
            {"name": "prefers-color-scheme", "value": "dark"}])
        for selector in ("body", "section"):
            back, ink = self.colours(selector)
            self.assertGreater(back, 700)
            self.assertLess(ink, 200)
        shown = self.browser.run("""
            return [...document.querySelectorAll("input, select, .more")]
                .filter(e => e.offsetParent !== null).map(e => e.outerHTML);""")
        self.assertEqual(shown, [])

    def test_everybody_can_use_it(self):
        self.assertEqual(page_checks.findings(self.browser), [])


class SeveralDatabases(InBrowser):
    keys = {0: names(), 3: {b"job:%d" % i: 4000 for i in range(30)}}

    def test_databases_are_the_level_above_prefixes(self):
        self.assertEqual(set(self.tiles()), {"db 0", "db 3"})
        self.browser.click("[data-name='db 3']")
        self.assertEqual(self.crumbs(), ["All keys", "db 3"])
        self.assertIn("job:", self.tiles())
        types = self.browser.run("return document.querySelectorAll('#types li').length")
        self.assertEqual((types, len(self.rows())), (1, 20))
        self.assertEqual(self.browser.console(), [])


class Nothing(InBrowser):
    keys = {}

    def test_a_page_without_keys_opens(self):
        self.assertEqual(self.browser.console(), [])
        self.assertEqual(self.tiles(), [])


if __name__ == "__main__":
    unittest.main()
