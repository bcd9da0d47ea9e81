"""The page of `redoubt list --html` in a headless Chromium."""

import os
import re
import stat
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import browser  # noqa: E402
from backup_case import BackupCase  # noqa: E402

ELSEWHERE = re.compile(r"https?://|<[a-z]+[^<>]*\ssrc=|<link[^>]*href=\"(?!data:)|url\(|@import")
EVIL = "</script><img src=x onerror=document.title='taken'>"
REPLID = "a" * 40
SECOND = 1000


def snapshot(offset):
    """An empty one of a master that was at this offset."""
    def text(data):
        return b"\x80" + struct.pack(">I", len(data)) + data

    fields = {"redis-ver": EVIL, "repl-id": REPLID, "repl-offset": str(offset)}
    aux = b"".join(b"\xfa" + text(k.encode()) + text(v.encode()) for k, v in fields.items())
    return b"REDIS0010" + aux + b"\xff" + bytes(8)


class Page(BackupCase):
    """Three sets, of which one is pinned and one damaged; two streams and the gap between them."""

    size = (1280, 800)
    dark = False
    number = 3
    browser = None

    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser(*cls.size, dark=cls.dark).__enter__()
        cls.addClassCleanup(cls.browser.close)

    def segment(self, run, number, start, end, first_ms, latest_ms):
        name = f"{number:08}-{start}-{end}-{first_ms}-{latest_ms}.seg.sealed"
        folder = os.path.join(self.repository, "nightly", "stream", run, f"00000001-{REPLID}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "wb"):
            pass

    def setUp(self):
        super().setUp()
        source = self.path("dump.rdb")
        self.nightly(source=source)
        os.mkdir(self.repository)
        for i in range(self.number):
            self.write("dump.rdb", snapshot(100 + i))
            self.good("backup")
        if self.number:
            ids = [s["id"] for s in self.sets()]
            self.good("prune", "--pin", ids[0])
            os.unlink(self.object_of(ids[1]))
            at = self.sets()[0]["begin_ms"]
            run = "20261101T000000Z-00000001"
            self.segment(run, 1, 100, 200, at, at + 60 * SECOND)
            self.segment(run, 2, 200, 300, at + 60 * SECOND, at + 120 * SECOND)
            self.segment("20261102T000000Z-00000002", 1, 400, 500, at + 300 * SECOND,
                         at + 600 * SECOND)
        self.page = self.path("page.html")
        done = self.tool("list", "--html", self.page)
        self.assertEqual(done.returncode, 0 if self.number else 1, done.stderr)
        self.browser.open("file://" + self.page)

    def object_of(self, set_id):
        return os.path.join(self.repository, "nightly", "sets", set_id, "dump.rdb.lz4.sealed")

    def run_script(self, script, *args):
        return self.browser.run(script, *args)

    def points(self):
        return self.run_script(
            "return [...document.querySelectorAll('.point')].map(p => p.className)")

    def rows(self, table):
        return self.run_script(
            "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map("
            "r => [...r.cells].map(c => c.textContent))", table)

    def focused(self):
        return self.run_script("return document.activeElement.dataset.id || ''")

    def no_complaint(self):
        self.assertEqual(self.browser.console(), [])


class Desk(Page):
    def test_it_shows_sets_streams_and_gaps(self):
        self.no_complaint()
        self.assertEqual(self.points(), ["point pinned", "point damaged", "point ok"])
        figures = self.run_script(
            "return [...document.querySelectorAll('#figures dd')].map(d => d.firstChild.data)")
        self.assertEqual((figures[0], figures[3]), ("2", "1"))
        self.assertEqual(sorted(row[2] for row in self.rows("#sets")),
                         ["damaged", "good", "good, pinned"])
        self.assertIn("missing", "".join(row[3] for row in self.rows("#sets")))
        kinds = self.run_script("return [...document.querySelectorAll('.spans span')].map("
                                "s => s.className)")
        self.assertEqual(kinds, ["baseless", "covered", "baseless", "gap"])
        streams = self.rows("#streams")
        self.assertEqual([row[3] for row in streams], ["400 to 500", "gap", "100 to 300"])
        self.assertEqual(streams[1][2], "3 min")

    def test_nothing_comes_from_elsewhere_and_nothing_of_the_data_runs(self):
        page = self.read("page.html").decode()
        self.assertEqual(ELSEWHERE.findall(page), [])
        self.assertIn("default-src 'none'", page)
        self.assertNotIn("unsafe-inline", page)
        self.assertEqual(page.count("<script"), 2)
        self.assertNotIn("innerHTML", page)
        self.assertNotIn("taken", self.run_script("return document.title"))
        self.assertEqual(self.run_script("return document.querySelectorAll('img').length"), 0)
        kept = EVIL.replace(" ", "")[:31]  # of the name of a release
        self.assertIn(f"redis {kept}", [row[8] for row in self.rows("#sets")])
        self.no_complaint()

    def test_a_repository_that_cannot_be_read_is_named(self):
        gone = self.path("gone")
        self.nightly(source=self.path("dump.rdb"), more=f"repository = {gone}\n")
        self.fails(3, "gone", "list", "--html", self.page, "--force")
        self.browser.open("file://" + self.page)
        self.assertEqual(len(self.points()), 3)
        unread = self.run_script("const s = document.querySelector('#unread-section');"
                                 "return s.hidden ? '' : s.textContent")
        self.assertIn(f"nightly: {gone}", unread)
        self.no_complaint()

    def test_it_works_without_a_mouse(self):
        ids = [s["id"] for s in self.sets()]
        for _ in range(20):
            self.browser.press("Tab")
            if self.focused():
                break
        self.assertEqual(self.focused(), ids[2])
        stops = self.run_script("return document.querySelectorAll('.point[tabindex=\"0\"]').length")
        self.assertEqual(stops, 1)
        self.browser.press("ArrowLeft")
        self.assertEqual(self.focused(), ids[1])
        about = self.run_script("return document.querySelector('#about').textContent")
        self.assertIn("damaged", about)
        self.browser.press("Home")
        self.assertEqual(self.focused(), ids[0])
        self.browser.press("Enter")
        self.assertEqual(self.run_script("return document.activeElement.tagName"), "TR")
        self.assertEqual(self.focused(), ids[0])
        self.no_complaint()

    def test_sets_are_searched_filtered_and_sorted(self):
        self.run_script("""
            const state = document.querySelector("#state");
            state.value = "damaged";
            state.dispatchEvent(new Event("change"));""")
        self.assertEqual(len(self.rows("#sets")), 1)
        self.run_script("""
            const search = document.querySelector("#search");
            search.value = "no such set";
            search.dispatchEvent(new Event("input"));""")
        self.assertEqual(self.rows("#sets"), [])
        self.assertFalse(self.run_script("return document.querySelector('#none').hidden"))
        self.run_script("""
            for (const id of ["state", "search"]) document.getElementById(id).value = "";
            document.querySelector("#state").dispatchEvent(new Event("change"));""")
        self.browser.click("#sets thead th:nth-child(3) button")
        self.assertEqual([row[2] for row in self.rows("#sets")],
                         ["damaged", "good", "good, pinned"])

    def test_a_page_is_not_replaced_and_only_for_its_owner(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.page).st_mode), 0o600)
        self.fails(2, "--force", "list", "--html", self.page)
        self.good("list", "--html", self.page, "--force")
        self.fails(2, "cannot be used together", "list", "--html", self.page, "--json")


class Phone(Page):
    size = (360, 740)
    dark = True

    def test_it_is_narrow_and_dark(self):
        wide = self.run_script("return document.documentElement.scrollWidth - innerWidth")
        self.assertLessEqual(wide, 0)
        colours = self.run_script("""
            const style = getComputedStyle(document.body);
            return [style.backgroundColor, style.color];""")
        back, ink = (sum(map(int, re.findall(r"\d+", c)[:3])) for c in colours)
        self.assertLess(back, 150)
        self.assertGreater(ink, 600)
        self.no_complaint()


class Nothing(Page):
    number = 0

    def test_a_page_without_sets_opens(self):
        self.no_complaint()
        self.assertEqual(self.points(), [])
        self.assertFalse(self.run_script("return document.querySelector('#none').hidden"))


if __name__ == "__main__":
    unittest.main()
