"""The page of `redoubt diff --html` in a headless Chromium."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import page_checks  # noqa: E402
from page_case import OutputCases, PageCase  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
EVIL = b"</script><script>document.title='taken'</script>:\x1b[31m\xe2\x80\xae\xff"


def log(*commands):
    return b"".join(
        b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
        for words in ((b"SELECT", b"0"), *commands))


def sets(names, value=b"v"):
    return [(b"SET", name, value) for name in names]


SAME = sets(b"same:%d" % i for i in range(40))
A = log(*SAME, *sets(b"gone:%d" % i for i in range(30)), *sets((b"user:1",), b"Ada"),
        (b"HSET", b"cart:1", b"tea", b"1", b"jam", b"2"), (b"SET", b"t", b"1"),
        (b"SET", b"plain", b"x"))
B = log(*SAME, *sets(b"new:%d" % i for i in range(3)), *sets((b"user:1",), b"Eva"),
        (b"HSET", b"cart:1", b"tea", b"5", b"ham", b"2"), (b"RPUSH", b"t", b"1"),
        (b"SET", b"plain", b"x"), (b"PEXPIREAT", b"plain", b"4102444800000"),
        (b"SET", EVIL, b"x"))


class Page(PageCase):
    a, b = A, B
    options = ("--values",)
    status = 1

    @classmethod
    def make(cls):
        cls.sources = [os.path.join(cls.folder, name) for name in ("old <b>.aof", "new.aof")]
        for source, data in zip(cls.sources, (cls.a, cls.b)):
            with open(source, "wb") as file:
                file.write(data)
        done = subprocess.run([REDOUBT, "diff", *cls.options, "--html", cls.path, *cls.sources],
                              capture_output=True, check=False, timeout=600)
        if (done.returncode, done.stdout, done.stderr) != (cls.status, b"", b""):
            raise AssertionError(done)

    def data(self):
        with open(self.path, encoding="utf-8", errors="surrogatepass") as file:
            return json.loads(re.search(r'id="data">(.*?)</script>', file.read(), re.S).group(1))


class Desk(Page):
    def test_it_shows_the_totals(self):
        self.assertEqual(self.texts("h1"), ["38 different keys"])
        figures = self.texts("#figures dd")
        self.assertTrue(figures[2].startswith("34"), figures)
        self.assertTrue(figures[3].startswith("4type 1, expiry 1, value 2"), figures)
        self.assertIn("old <b>.aof", self.browser.run("return document.title"))
        self.assertEqual(self.browser.console(), [])

    def test_prefixes_have_their_counts(self):
        rows = [[cell for cell in row.split("\n")] for row in self.browser.run(
            "return [...document.querySelectorAll('#prefixes tbody tr')].map("
            "r => [...r.cells].map(c => c.textContent).join('\\n'))")]
        self.assertEqual(rows[0], ["gone:", "30", "0", "0", "30"])
        self.assertEqual(rows[1], ["new:", "0", "3", "0", "3"])
        self.assertEqual(rows[2], ["no prefix", "0", "0", "2", "2"])
        self.assertEqual(len(rows), 6)

    def test_the_data_is_that_of_json(self):
        done = subprocess.run([REDOUBT, "diff", "--json", *self.options, *self.sources],
                              capture_output=True, check=False, timeout=600)
        report = json.loads(done.stdout.decode(errors="surrogatepass"))
        data = self.data()
        self.assertEqual(data["differences"], report["differences"])
        for name in ("keys", "only", "different", "different_type", "different_value"):
            self.assertEqual(data[name], report[name])

    def test_a_kind_and_a_name_are_chosen(self):
        self.browser.click('#kinds [data-kind="both"]')
        self.assertEqual(self.texts("#keys tbody th"), ["cart:1", "plain", "t", "user:1"])
        what = self.texts("#keys .what p")
        self.assertEqual(what[0], "value: 2 and 2 parts, 1 different, 1 only in A, 1 only in B")
        self.assertEqual(what[1], "expiry: none and 2100-01-01 00:00 UTC")
        self.assertEqual(what[2], "type: string and list")
        parts = self.texts("#keys .parts li")
        self.assertIn("field “tea”: “1” and “5”", parts)
        self.assertIn("field “ham” only in B: “2”", parts)
        self.assertIn("A: “Ada”", parts)
        self.browser.run("""
            document.querySelector("#find").value = "use";
            document.querySelector("#find").dispatchEvent(new Event("input"));""")
        self.assertEqual(self.texts("#keys tbody th"), ["user:1"])
        self.assertEqual(self.texts("#keys-about"), ["1 key"])

    def test_more_keys_are_shown_on_request(self):
        self.assertEqual(len(self.texts("#keys tbody tr")), 20)
        self.browser.click("#keys-more")
        self.assertEqual(len(self.texts("#keys tbody tr")), 38)

    def test_names_are_harmless_and_saved(self):
        self.browser.devtools("Browser.setDownloadBehavior", behavior="allow",
                              downloadPath=self.folder)
        self.browser.click("#keys-csv")
        path = os.path.join(self.folder, "old_b_.aof-new.aof-keys.csv")
        self.browser.wait(lambda: os.path.exists(path))
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["key", "db", "type", "difference"])
        self.assertEqual(len(rows), 39)
        self.assertNotIn("taken", self.browser.run("return document.title"))
        self.assertEqual(self.browser.console(), [])

    def test_everybody_can_use_it(self):
        self.assertEqual(page_checks.findings(self.browser), [])


class Phone(Page):
    size = (360, 740)
    dark = True

    def test_it_fits_and_everybody_can_use_it(self):
        wide = self.browser.run("return document.documentElement.scrollWidth - innerWidth")
        self.assertLessEqual(wide, 0)
        self.assertEqual(page_checks.findings(self.browser), [])
        self.assertEqual(self.browser.console(), [])


class Same(Page):
    b = A
    status = 0

    def test_it_says_so(self):
        self.assertEqual(self.texts("h1"), ["The same data"])
        self.assertFalse(self.browser.run("return document.querySelector('#same').hidden"))
        self.assertTrue(self.browser.run("return document.querySelector('#keys-section').hidden"))
        self.assertEqual(self.browser.console(), [])


class Many(Page):
    """More keys and prefixes than there is room for."""
    a = log(*sets(b"<%d>:%d" % (i, i) for i in range(20000)), *sets((b"both",), b"1"))
    b = log(*sets((b"both",), b"2"))

    def test_the_page_stays_below_1_mb_and_says_what_is_left_out(self):
        self.assertLess(os.path.getsize(self.path), 1000000)
        self.assertEqual(self.texts("h1"), ["20,001 different keys"])
        data = self.data()
        self.assertEqual(sum(sum(row[1:]) for row in data["by_prefix"]), 20001)
        self.assertIsNone(data["by_prefix"][-1][0])
        self.assertEqual(data["differences"][-1]["key"], "both")
        self.assertIn("room for", self.texts("#keys-about")[0])
        self.assertIn("of 20,001 keys", self.texts("#keys-about")[0])
        self.assertIn("The page has the first keys of each kind.", self.texts("#foot")[0])
        self.assertEqual(self.browser.console(), [])


class Options(OutputCases, unittest.TestCase):
    done = 1

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-diff-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.page = os.path.join(self.folder, "page.html")
        self.sides = [os.path.join(self.folder, name) for name in ("a.aof", "b.aof")]
        for path, data in zip(self.sides, (A, B)):
            with open(path, "wb") as file:
                file.write(data)

    def test_an_existing_page_is_reported_before_the_inputs_are_read(self):
        with open(self.page, "w", encoding="ascii"):
            pass
        missing = os.path.join(self.folder, "missing.rdb")
        run = subprocess.run([REDOUBT, "diff", "--html", self.page, missing, missing],
                             capture_output=True, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn(b"already exists", run.stderr)

    def run_tool(self, *args):
        run = subprocess.run([REDOUBT, "diff", *args, *self.sides], capture_output=True,
                             check=False, timeout=600)
        return run.returncode, run.stdout.decode(), run.stderr.decode()

    def test_other_outputs_are_refused(self):
        for option in ("--json", "--ndjson", "--all"):
            with self.subTest(option=option):
                self.assertEqual(self.run_tool("--html", self.page, option)[0], 2)
                self.assertFalse(os.path.exists(self.page))
        self.assertEqual(self.run_tool("--force")[0], 2)

    def test_no_match_writes_nothing(self):
        self.assertEqual(self.run_tool("--html", self.page, "--prefix", "nothing")[0], 1)
        self.assertFalse(os.path.exists(self.page))

    def test_others_cannot_read_what_they_could_not_read_before(self):
        for path, mode in zip(self.sides, (0o644, 0o600)):
            os.chmod(path, mode)
        self.assertEqual(self.run_tool("--html", self.page)[0], 1)
        self.assertEqual(os.stat(self.page).st_mode & 0o777, 0o600)


if __name__ == "__main__":
    unittest.main()
