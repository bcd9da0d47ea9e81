"""The page of `redoubt history --html` in a headless Chromium."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import page_checks  # noqa: E402
from captures import Capture, command  # noqa: E402
from page_case import OutputCases, PageCase  # noqa: E402
from rdb_text import snapshot  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
EVIL = b"</script><script>document.title='taken'</script>:\x1b[31m\xe2\x80\xae\xff"
STREAM = [command("SELECT", 0), command("HSET", EVIL, "a", "1", EVIL, EVIL),
          command("HSET", EVIL, "a", "2"), command("PING"), command("PING"),
          command("HDEL", EVIL, EVIL), command("DEL", EVIL), command("RPUSH", EVIL, "x", "y")]


class Page(PageCase):
    stream = STREAM
    keys = [EVIL]

    @classmethod
    def make(cls):
        path = Capture(os.path.join(cls.folder, "capture")).begin(snapshot([]),
                                                                  b"".join(cls.stream))
        monitor = os.path.join(cls.folder, "monitor")
        with open(monitor, "w", encoding="ascii") as f:
            for at in (1, 9999999999):
                f.write("%d.000000 [0 9.9.9.9:9] \"ping\"\n" % at)
        subprocess.run([REDOUBT, "history", *cls.keys, "--in", path, "--monitor-file", monitor,
                        "--html", cls.path], check=True, timeout=600)

    def version(self):
        return self.texts("#summary")[0]


class Desk(Page):
    def test_it_shows_the_last_version_and_every_other(self):
        self.assertEqual(self.texts("#figures dd")[0][:1], "5")
        self.assertEqual(self.version(), "created: list of 2 elements, by unknown")
        self.assertEqual(self.texts("#value li"), ['[0] "x"', '[1] "y"'])
        self.assertEqual(self.texts("#changes li"), ['+ [0] "x"', '+ [1] "y"'])
        self.browser.click("#before")
        self.assertEqual(self.version(), "removed, by unknown")
        self.assertEqual(self.texts("#no-value"), ["The key does not exist."])
        self.browser.click("#before")
        self.browser.click("#before")
        self.assertEqual(self.version(), "changed: hash of 2 fields, 1 changed, by unknown")
        self.assertEqual(self.texts("#changes li"), ['- "a" "1"', '+ "a" "2"'])
        self.assertIn('"HSET" "</script><script>document.title=\'taken\'</script>:\\x1b[31m',
                      self.texts("#commands li")[0])
        self.assertEqual(self.browser.console(), [])

    def test_it_goes_without_a_mouse(self):
        for _ in range(8):
            self.browser.press("Tab")
            if self.browser.run("return document.activeElement.id") == "slider":
                break
        self.browser.press("Home")
        self.assertEqual(self.version(), "created: hash of 2 fields, by unknown")
        self.browser.press("ArrowRight", "ArrowRight")
        self.assertEqual(self.version(), "changed: hash of 1 field, 1 removed, by unknown")
        self.browser.press("End")
        self.assertEqual(self.version(), "created: list of 2 elements, by unknown")
        self.assertEqual(self.browser.console(), [])

    def test_the_line_is_a_time_line(self):
        at = self.browser.run("return [...document.querySelectorAll('#line span')].map("
                              "e => Math.round(parseFloat(e.style.left)))")
        self.assertEqual(at, [0, 17, 67, 83, 100])

    def test_names_are_harmless(self):
        self.assertTrue(self.browser.run("return document.title").startswith("</script>"))
        self.assertIn("\\x1b[31m\\u202e\\xff", self.texts("#title")[0])
        self.assertEqual(self.browser.console(), [])

    def test_everybody_can_use_it(self):
        self.browser.click("#before")
        self.browser.click("#before")
        self.assertEqual(page_checks.findings(self.browser), [])


class Phone(Page):
    size = (360, 740)
    dark = True

    def test_it_fits_and_everybody_can_use_it(self):
        wide = self.browser.run("return document.documentElement.scrollWidth - innerWidth")
        self.assertLessEqual(wide, 0)
        self.browser.click("#before")
        self.browser.click("#before")
        self.assertEqual(page_checks.findings(self.browser), [])
        self.assertEqual(self.browser.console(), [])


class Long(Page):
    stream = [command("HSET", "k%d" % (i % 2), "<field %d>" % i, "<" * 300) for i in range(4000)]
    keys = ["k0", "k1"]

    def test_a_long_history_stays_below_1_mb(self):
        self.assertLess(os.path.getsize(self.path), 1000000)
        foot = self.texts("#foot")[0]
        self.assertIn("of 4,000 versions", foot)
        self.assertIn("Values are shown for the last versions only", foot)
        self.assertIn("k1 changed: hash of 2,000 fields, 1 added", self.version())
        self.assertEqual(len(self.texts("#value li")), 101)
        self.browser.press("Tab", "Tab")
        self.browser.run("const s = document.getElementById('slider'); s.value = 1;"
                         "s.dispatchEvent(new Event('input'))")
        self.assertIn("This value is not on this page", self.texts("#no-value")[0])
        self.assertEqual(self.browser.console(), [])


class Thousand(Page):
    stream = [command("SET", "k", "value %d" % i) for i in range(1000)]
    keys = ["k"]

    def test_a_thousand_versions_are_whole(self):
        self.assertLess(os.path.getsize(self.path), 1000000)
        self.assertEqual(self.texts("#foot p"), ["Made by redoubt history."])
        self.assertIn("1,000 of 1,000", self.texts("#about")[0])


class Output(OutputCases, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.page = os.path.join(self.folder, "page.html")
        self.log = os.path.join(self.folder, "log.aof")
        with open(self.log, "wb") as f:
            f.write(command("SELECT", 0) + command("SET", "k", "v"))

    def run_tool(self, *args):
        done = subprocess.run([REDOUBT, "history", "k", "--in", self.log, "--no-index", *args],
                              capture_output=True, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_contradictions(self):
        self.assertEqual(self.run_tool("--html", self.page, "--json")[0], 2)


if __name__ == "__main__":
    unittest.main()
