"""The page of `redoubt show --html` in a headless Chromium."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import page_checks  # noqa: E402
from page_case import OutputCases, PageCase  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
START = 1700000000
EVIL = b"</script><script>document.title='taken'</script>:\x1b[31m\xe2\x80\xae\xff"


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def log(seconds, times=True):
    """Two commands a second; 100 in second 50; none from 100 to 159."""
    out = [command(b"SELECT", b"0")]
    for s in range(seconds):
        if 100 <= s < 160:
            continue
        if times:
            out.append(b"#TS:%d\r\n" % (START + s))
        for i in range(100 if s == 50 else 2):
            out.append(command(b"SET", b"user:%d" % i, b"v" * 20))
    out.append(command(b"DEL", EVIL))
    return b"".join(out)


class Page(PageCase):
    data = log(300)

    @classmethod
    def make(cls):
        source = os.path.join(cls.folder, "log <b>.aof")
        with open(source, "wb") as file:
            file.write(cls.data)
        subprocess.run([REDOUBT, "show", "--html", cls.path, source], check=True, timeout=600)


class Desk(Page):
    def test_it_shows_totals_gaps_and_bursts(self):
        self.assertEqual(self.texts("#figures dd")[0].split(" ")[0][:3], "580")
        self.assertIn("log <b>.aof", self.browser.run("return document.title"))
        slow = " ".join(self.texts("#slow p"))
        self.assertIn("100 commands in 1 s from 2023-11-14 22:14:10 UTC", slow)
        self.assertIn("No command for 60 s from 2023-11-14 22:15:00 UTC.", slow)
        self.assertEqual(self.texts("#commands tbody th"), ["SET", "DEL", "SELECT"])
        self.assertEqual(self.texts("#prefixes tbody th")[0], "user:")
        self.assertEqual(self.browser.console(), [])

    def test_a_second_is_chosen_and_shows_its_commands(self):
        self.browser.click("#slow button")
        lines = self.texts("#lines li")
        self.assertEqual(len(lines), 20)
        self.assertIn('"SET" "user:0"', lines[0])
        self.assertEqual(self.texts("#chosen-count"), ["the first 20 of 100 commands"])

    def test_it_goes_without_a_mouse(self):
        for _ in range(12):
            self.browser.press("Tab")
            if self.browser.run("return document.activeElement.closest('#time') !== null"):
                break
        self.browser.press("ArrowRight", "End", "Enter")
        self.assertIn("</script>", " ".join(self.texts("#lines li")))
        self.assertEqual(self.browser.run("return document.title").split(" ")[0], "log")
        self.browser.press("Home", "Enter")
        self.assertIn('"SET" "user:0"', self.texts("#lines li")[0])
        self.assertEqual(self.browser.console(), [])

    def test_one_command_or_prefix_is_shown_over_time(self):
        self.browser.run("""
            const only = document.querySelector("#only");
            only.value = [...only.options].find(o => o.textContent === "DEL").value;
            only.dispatchEvent(new Event("change"));""")
        bars = self.texts("#time button")
        titles = self.browser.run("return [...document.querySelectorAll('#time button')].map("
                                  "b => b.title)")
        self.assertEqual(len(bars), len(titles))
        self.assertTrue(titles[-1].endswith(": 1 command"))
        self.assertTrue(titles[0].endswith(": 0 commands"))

    def test_names_are_harmless_and_saved(self):
        self.browser.devtools("Browser.setDownloadBehavior", behavior="allow",
                              downloadPath=self.folder)
        self.browser.click("#prefixes-csv")
        path = os.path.join(self.folder, "log_b_.aof-prefixes.csv")
        self.browser.wait(lambda: os.path.exists(path) and os.path.getsize(path) > 0)
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["prefix", "commands", "keys", "bytes", "share"])
        self.assertIn("</script><script>document.title='taken'</script>:", [r[0] for r in rows])
        self.assertNotIn("taken", self.browser.run("return document.title"))
        self.assertEqual(self.browser.console(), [])

    def test_everybody_can_use_it(self):
        self.browser.click("#slow button")
        self.assertEqual(page_checks.findings(self.browser), [])


class Phone(Page):
    size = (360, 740)
    dark = True

    def test_it_fits_and_everybody_can_use_it(self):
        wide = self.browser.run("return document.documentElement.scrollWidth - innerWidth")
        self.assertLessEqual(wide, 0)
        self.browser.click("#slow button")
        self.assertEqual(page_checks.findings(self.browser), [])
        self.assertEqual(self.browser.console(), [])


class WithoutTimes(Page):
    data = log(10, times=False)

    def test_it_has_the_totals(self):
        self.assertEqual(self.texts("#commands tbody th"), ["SET", "DEL", "SELECT"])
        self.assertTrue(self.browser.run("return document.querySelector('#time-section').hidden"))
        self.assertEqual(self.browser.console(), [])


class Long(Page):
    data = b"".join(b"#TS:%d\r\n" % (START + s) + command(b"SET", b"<%d>:" % s, b"\xff" * 60) * 3
                    for s in range(0, 20000))

    def test_a_long_log_stays_below_1_mb(self):
        self.assertLess(os.path.getsize(self.path), 1000000)
        foot = self.texts("#foot")[0]
        self.assertIn("its smallest part is 8 s", foot)
        self.assertIn("“all others”", foot)
        self.assertEqual(self.browser.console(), [])


class Options(OutputCases, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-show-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = os.path.join(self.folder, "log.aof")
        self.page = os.path.join(self.folder, "page.html")
        with open(self.log, "wb") as file:
            file.write(log(5))

    def test_an_existing_page_is_reported_before_the_log_is_read(self):
        with open(self.page, "w", encoding="ascii"):
            pass
        run = subprocess.run([REDOUBT, "show", "--html", self.page,
                              os.path.join(self.folder, "missing.aof")],
                             capture_output=True, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn(b"already exists", run.stderr)

    def run_tool(self, *args):
        run = subprocess.run([REDOUBT, "show", *args, self.log], capture_output=True, check=False,
                             timeout=600)
        return run.returncode, run.stdout.decode(), run.stderr.decode()

    def test_other_outputs_are_refused(self):
        for option in ("--stats", "--json", "--count", "--follow", "--ndjson", "--tail=3",
                       "--after=1"):
            with self.subTest(option=option):
                self.assertEqual(self.run_tool("--html", self.page, option)[0], 2)
                self.assertFalse(os.path.exists(self.page))

    def test_filters_apply_and_no_match_writes_nothing(self):
        self.assertEqual(self.run_tool("--html", self.page, "--command", "DEL")[0], 0)
        with open(self.page, encoding="utf-8") as file:
            self.assertIn('"commands":1,', file.read())
        os.remove(self.page)
        self.assertEqual(self.run_tool("--html", self.page, "--command", "XADD")[0], 1)
        self.assertFalse(os.path.exists(self.page))


if __name__ == "__main__":
    unittest.main()
