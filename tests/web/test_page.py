"""The page of `./run web` in a headless Chromium, beside the program.

Run by `./run test --web`, which makes the page first (REDOUBT_PAGE). The page is opened from a
file, and files are given to it as a user gives them. What it says and writes is compared with the
program.
"""

import base64
import csv
import datetime
import gzip
import hashlib
import json
import os
import random
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import browser  # noqa: E402
import hexfile  # noqa: E402
import page_checks  # noqa: E402
import report_text  # noqa: E402

REDOUBT = os.environ["REDOUBT"]
PAGE = os.environ["REDOUBT_PAGE"]
FIXTURES = os.path.realpath(os.path.join(HERE, "..", "..", "fixtures"))
DAMAGED = 500
SEED = 20261129


def fixtures(*kinds):
    """(path, kind) of the fixtures of these kinds."""
    with open(os.path.join(FIXTURES, "MANIFEST.tsv"), encoding="utf-8") as file:
        return [(row["path"], row["kind"]) for row in csv.DictReader(file, delimiter="\t")
                if row["kind"] in kinds]


def content(path, kind="rdb"):
    if kind == "rdb-hex":
        return hexfile.load(os.path.join(FIXTURES, path))
    with open(os.path.join(FIXTURES, path), "rb") as file:
        return file.read()


def snapshots():
    return [(path.replace("/", "-"), content(path, kind))
            for path, kind in fixtures("rdb", "rdb-hex")]


def damaged(n):
    """Snapshots with flipped, missing, inserted and exchanged bytes."""
    chance = random.Random(SEED)
    sound = [content(p) for p, _ in fixtures("rdb") if not p.startswith(("damaged", "hand"))]
    sound = [data for data in sound if 100 < len(data) < 200000]
    for i in range(n):
        data = bytearray(chance.choice(sound))
        at = chance.randrange(9, len(data))
        how = chance.randrange(5)
        if how == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            del data[at:at + chance.randrange(1, 40)]
        elif how == 2:
            data[at:at] = chance.randbytes(chance.randrange(1, 40))
        elif how == 3:
            data[at:at + 16] = chance.randbytes(16)
        else:
            del data[at:]
        yield "damaged-%03d.rdb" % i, bytes(data)


class Listener(socketserver.ThreadingTCPServer):
    """Takes the place of the network: counts what connects."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self):
        self.seen = []
        super().__init__(("127.0.0.1", 0), None)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client_address):
        request.settimeout(5)
        try:
            self.seen.append(request.recv(200))
        except OSError:
            self.seen.append(b"")


class InBrowser(unittest.TestCase):
    size = (1280, 900)
    dark = False

    @classmethod
    def setUpClass(cls):
        cls.listener = Listener()
        cls.addClassCleanup(cls.listener.server_close)
        cls.addClassCleanup(cls.listener.shutdown)
        more = ("--proxy-server=127.0.0.1:%d" % cls.listener.server_address[1],
                "--proxy-bypass-list=<-loopback>;127.0.0.1", "--disable-component-update",
                "--disable-sync", "--disable-default-apps", "--no-pings")
        cls.browser = browser.Browser(*cls.size, dark=cls.dark, more=more).__enter__()
        cls.addClassCleanup(cls.browser.close)
        cls.folder = tempfile.mkdtemp(prefix="redoubt-page-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def setUp(self):
        self.browser.open("file://" + PAGE)
        self.browser.console()

    def give(self, *paths, into="#files"):
        """Chooses files, as the dialog of the browser does."""
        root = self.browser.devtools("DOM.getDocument")["root"]["nodeId"]
        node = self.browser.devtools("DOM.querySelector", nodeId=root, selector=into)["nodeId"]
        self.browser.devtools("DOM.setFileInputFiles", nodeId=node, files=list(paths))

    def file(self, name, data):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(data)
        return path

    def text(self, selector):
        return self.browser.run(
            "const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", selector)

    def wait_for(self, selector):
        self.browser.wait(lambda: self.browser.run(
            "return document.querySelector(arguments[0]) !== null", selector))

    def verdict(self):
        self.wait_for("#panel section[data-status]")
        return self.text("#headline")

    def tool(self, args, files, outputs=()):
        """What a tool gives in the page: (status, text, errors, {output: bytes})."""
        script = """
        const [args, files, outputs, done] = arguments;
        const un = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
        const list = files.map(([path, data]) => ({path, file: new File([un(data)], path)}));
        const to64 = async blob => {
          const bytes = new Uint8Array(await blob.arrayBuffer());
          let text = "";
          for (let i = 0; i < bytes.length; i += 8192)
            text += String.fromCharCode(...bytes.subarray(i, i + 8192));
          return btoa(text);
        };
        runHere({args, sources: [{files: list}], outputs}, {}).done.then(async result => {
          const made = {};
          for (const name of outputs)
            if (result.made["/" + name]) made[name] = await to64(result.made["/" + name]);
          done({...result, made});
        });
        """
        given = [[name, base64.b64encode(data).decode()] for name, data in files]
        answer = self.browser.run_async(script, list(args), given, list(outputs))
        self.assertNotIn("failed", answer, (args, answer))
        made = {name: base64.b64decode(data) for name, data in answer["made"].items()}
        return answer["status"], answer["text"], answer["error"], made

    def program(self, args, files, outputs=()):
        """The same of the program."""
        with tempfile.TemporaryDirectory(prefix="redoubt-beside-") as folder:
            for name, data in files:
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "wb") as out:
                    out.write(data)
            done = subprocess.run([REDOUBT, *args], cwd=folder, capture_output=True, timeout=600,
                                  stdin=subprocess.DEVNULL)
            made = {}
            for name in outputs:
                path = os.path.join(folder, name)
                if os.path.exists(path):
                    with open(path, "rb") as file:
                        made[name] = file.read()
        decode = lambda raw: raw.decode("utf-8", "replace")  # noqa: E731
        return done.returncode, decode(done.stdout), decode(done.stderr), made

    def same(self, args, files, outputs=()):
        here = self.tool(args, files, outputs)
        there = self.program(args, files, outputs)
        self.assertEqual(here, there, (args, files[0][0]))
        return there


class Text(unittest.TestCase):
    def setUp(self):
        with open(PAGE, encoding="utf-8") as file:
            self.page = file.read()

    def test_the_page_is_one_file_that_may_ask_for_nothing(self):
        self.assertIn("default-src 'none'", self.page)
        self.assertIn("connect-src 'none'", self.page)
        self.assertNotIn("'unsafe-inline'", self.page)
        self.assertNotIn("innerHTML", self.page)
        head = self.page.split('id="worker"')[0]
        self.assertNotRegex(head, r"https?://|<[a-z]+[^<>]*\ssrc=|url\(|@import")


class Same(InBrowser):
    """The tools of the page are those of the program."""

    def test_verdicts_and_salvage_of_all_fixtures(self):
        statuses = set()
        for name, data in snapshots():
            statuses.add(self.same(["check-rdb", name], [(name, data)])[0])
            self.same(["check-rdb", "--json", "--salvage", "out.rdb", name], [(name, data)],
                      ["out.rdb"])
        self.assertEqual(statuses, {0, 1, 4})

    def test_verdicts_and_salvage_of_damaged_snapshots(self):
        found = saved = 0
        for name, data in damaged(DAMAGED):
            status, _, _, made = self.same(["check-rdb", "--salvage", "out.rdb", name],
                                           [(name, data)], ["out.rdb"])
            found += status != 0
            saved += len(made)
        self.assertGreater(found, DAMAGED // 2)
        self.assertGreater(saved, DAMAGED // 2)

    def test_compressed_snapshots(self):
        plain = content("redis-7.0.15/mixed.rdb")
        packed = {"a.rdb.gz": gzip.compress(plain)}
        for end, command in (("lz4", ["lz4", "-c"]), ("zst", ["zstd", "-c", "-q"])):
            packed["a.rdb." + end] = subprocess.run(command, input=plain, capture_output=True,
                                                    check=True).stdout
        for name, data in packed.items():
            self.assertEqual(self.same(["check-rdb", name], [(name, data)])[0], 0)
            self.same(["check-rdb", name], [(name, data[:len(data) // 2])])

    def test_logs(self):
        for path, _ in fixtures("aof"):
            name = os.path.basename(path)
            self.same(["check-aof", name], [(name, content(path))])

    def test_keys_and_statistics(self):
        for path, _ in fixtures("rdb"):
            if path.startswith(("redis-7.0.15", "valkey-9", "redis-8.6")):
                files = [("a.rdb", content(path))]
                self.same(["convert", "--to", "ndjson", "--meta", "a.rdb"], files)
                self.same(["stat", "--json", "--now", "1795000000", "a.rdb"], files)

    def test_a_file_that_is_larger_than_what_is_kept_in_memory(self):
        keys = b"".join(b"\x00\x08k%07d\x80" % i + (100000).to_bytes(4, "big") + bytes(
            [i & 255]) * 100000 for i in range(400))
        end = b"\xff" + bytes(8)
        data = b"REDIS0009" + keys[:30000000] + b"\x00\xff" * 500 + keys[30000000:] + end
        args = ["check-rdb", "--salvage", "out.rdb", "a.rdb"]
        status, text, _, made = self.program(args, [("a.rdb", data)], ["out.rdb"])
        self.assertGreater(len(made["out.rdb"]), 39000000)
        self.give(self.file("a.rdb", data))
        self.wait_for("#panel section[data-status]")
        here = self.browser.run_async("""
            const [args, done] = arguments;
            runHere({args, sources: [current], outputs: ["out.rdb"]}, {}).done.then(async r => {
              const bytes = await r.made["/out.rdb"].arrayBuffer();
              const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
              done([r.status, r.text, [...sum].map(b => b.toString(16).padStart(2, "0")).join("")]);
            });""", args)
        self.assertEqual(here, [status, text, hashlib.sha256(made["out.rdb"]).hexdigest()])


class Use(InBrowser):
    """What a user does."""

    def sent(self):
        """Requests, without those of the browser itself, which asks its maker for updates. The
        page does not contain the name of that host."""
        with open(PAGE, encoding="utf-8") as file:
            self.assertNotIn("googleapis.com", file.read())
        return [seen for seen in self.listener.seen
                if b"google" not in seen.split(b"\r\n")[0].split(b"?")[0]]

    def test_no_request_leaves(self):
        self.give(self.file("dump.rdb", content("redis-7.0.15/mixed.rdb")))
        self.assertIn("sound", self.verdict())
        self.browser.click("#tab-contents")
        self.wait_for("#panel iframe")
        self.assertEqual(self.browser.run(
            "return performance.getEntriesByType('resource').filter("
            "  e => !/^(blob|data):/.test(e.name)).map(e => e.name)"), [])
        blocked = self.browser.run_async(
            "const done = arguments[0];"
            "fetch('http://redoubt.test/').then(() => done('sent'), () => done('refused'))")
        self.assertEqual(blocked, "refused")
        self.assertEqual(self.sent(), [])
        # The listener would have seen it:
        other = self.file("other.html", b"<img src=http://redoubt.test/seen>")
        self.browser.open("file://" + other)
        self.browser.wait(self.sent)
        self.assertIn(b"redoubt.test/seen", self.sent()[0])
        self.listener.seen.clear()

    def test_a_damaged_file_is_judged_saved_and_opened_again(self):
        data = content("damaged/cut-tiny-263.rdb")
        self.give(self.file("dump.rdb", data))
        self.assertIn("dump.rdb", self.verdict())
        self.browser.click("#salvage")
        self.wait_for("#saved[data-status] a[download]")
        link = self.browser.run("const a = document.querySelector('#saved a[download]');"
                                "return [a.download, a.href.slice(0, 5)]")
        self.assertEqual(link, ["dump.saved.rdb", "blob:"])
        self.browser.run("document.querySelector('#saved button').click()")
        self.browser.wait(lambda: "dump.saved.rdb" in self.text("#sources"))
        self.wait_for("#panel section[data-status]")
        self.assertEqual(self.browser.console(), [])

    def test_a_report_is_shown_in_whole_lines(self):
        data = content("damaged/cut-tiny-263.rdb")
        name = "a-name-%s.rdb" % "that-is-long-" * 5
        self.give(self.file(name, data))
        self.verdict()
        text = self.program(["check-rdb", name], [(name, data)])[1]
        lines = report_text.unwrapped(text).splitlines()
        self.assertLess(len(lines), len(text.splitlines()))
        facts = [line for line in lines if line.startswith("  ")]
        first, last = [line for line in lines if not line.startswith("  ")]
        shown = self.browser.run(
            "return ['#headline', '#panel dt', '#panel dd', '#panel .note'].map("
            "  s => [...document.querySelectorAll(s)].map(e => e.innerText))")
        self.assertEqual(shown, [[first], [line[2:12].strip() for line in facts],
                                 [line[13:] for line in facts], [last]])

    def test_the_report_of_stat_is_shown_and_works(self):
        self.give(self.file("dump.rdb", content("redis-7.0.15/mixed.rdb")))
        self.verdict()
        self.browser.click("#tab-contents")
        self.wait_for("#panel iframe")
        self.browser.wait(lambda: self.browser.in_frame(
            "#panel iframe", "return document.querySelectorAll('.figure').length") > 0)
        self.assertEqual(self.browser.console(), [])

    def view(self, name, ready):
        """Opens a view, and waits until a script gives true."""
        self.browser.run("document.getElementById(arguments[0]).click()", "tab-" + name)
        self.browser.wait(lambda: self.browser.run("return " + ready))

    def note(self, name, begins):
        return f"document.getElementById('{name}')?.innerText.startsWith('{begins}: ')"

    def test_keys_are_found_and_their_values_shown(self):
        self.give(self.file("dump.rdb", content("redis-7.0.15/mixed.rdb")))
        self.verdict()
        self.view("keys", self.note("keys-note", "Keys"))
        self.assertEqual(self.text("#keys-note"), "Keys: 62")
        self.browser.run("document.getElementById('key-search').value = 'zulu:26'")
        self.browser.run("document.querySelector('#panel form').requestSubmit()")
        self.browser.wait(lambda: self.text("#keys-note") == "Keys: 1")
        self.browser.run("document.querySelector('#keys details').open = true")
        self.browser.wait(lambda: "00000000  2d ee 66 91 e3" in self.text("#keys"))
        self.assertIn("expires 2130-", self.text("#keys"))
        self.assertEqual(self.browser.console(), [])

    def test_the_groups_of_a_stream_are_shown(self):
        data = content("redis-7.2.5/streams.rdb")
        text = self.program(["convert", "--to", "ndjson", "a.rdb"], [("a.rdb", data)])[1]
        streams = [key for key in map(json.loads, text.splitlines()) if key["type"] == "stream"]
        stream = next(key for key in streams
                      if any(group["pending"] for group in key["value"]["groups"]))
        group = next(group for group in stream["value"]["groups"] if group["pending"])
        self.give(self.file("dump.rdb", data))
        self.verdict()
        self.view("keys", self.note("keys-note", "Keys"))
        self.browser.run("[...document.querySelectorAll('#keys details')].find("
                         "  e => e.querySelector('.name').innerText === arguments[0]).open = true",
                         stream["key"])
        self.browser.wait(lambda: "Group " + group["name"] in self.text("#keys"))
        rows = self.browser.run("return [...document.querySelectorAll('#keys tbody tr')].map("
                                "  e => [...e.children].map(cell => cell.innerText))")

        def moment(ms):
            when = datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc)
            return when.strftime("%Y-%m-%d %H:%M:%S.") + "%03dZ" % (ms % 1000)

        def shown(name):
            return name.replace("\0", "\\x00")

        for p in group["pending"]:
            self.assertIn([p["id"], moment(p["delivery_ms"]), str(p["delivery_count"]),
                           shown(p["consumer"])], rows)
        for c in group["consumers"]:
            active = moment(c["active_ms"]) if c["active_ms"] >= 0 else "never"
            self.assertIn([shown(c["name"]), moment(c["seen_ms"]), active], rows)
        self.assertEqual(self.browser.console(), [])

    def test_a_log_shows_its_commands_and_the_data_before_one(self):
        root = os.path.join(FIXTURES, "redis-7.0.15", "aof-multi.aof.d", "appendonlydir")
        self.give(root, into="#folder")
        self.assertIn("sound", self.verdict())
        self.view("commands", self.note("commands-note", "Commands"))
        self.assertEqual(self.text("#commands-note"), "Commands: 194")
        self.browser.run("document.querySelectorAll('#commands .small')[5].click()")
        self.wait_for("#commands a[download='appendonlydir.before-6.rdb']")
        self.browser.run("document.getElementById('marked').click()")
        self.browser.wait(lambda: self.text("#commands-note") == "Commands: 1")
        self.assertIn("removes", self.text("#commands .marked"))
        self.view("time", "document.querySelector('#panel iframe') !== null")
        self.assertEqual(self.browser.console(), [])

    def test_two_files_are_compared(self):
        self.give(self.file("a.rdb", content("redis-7.0.15/mixed.rdb")))
        self.verdict()
        self.give(self.file("b.rdb", content("redis-7.0.15/lists.rdb")))
        self.browser.wait(lambda: "b.rdb" in self.text("#sources"))
        self.verdict()
        self.view("compare", "document.getElementById('compare') !== null")
        self.browser.run("document.getElementById('compare').click()")
        self.wait_for("#panel iframe")
        self.browser.wait(lambda: "bigelems" in self.browser.in_frame(
            "#panel iframe", "return document.body.innerText"))
        self.assertEqual(self.browser.console(), [])

    def test_cancel(self):
        data = b"REDIS0009" + b"\x00\x01k\x80" + (900000000).to_bytes(4, "big")
        path = self.file("long.rdb", data)
        os.truncate(path, 900000000)
        self.give(path)
        self.browser.wait(lambda: "No damage found so far" in self.text("#headline"))
        self.browser.press("Escape")
        self.browser.wait(lambda: "Cancelled" in self.text("#panel"))
        self.assertTrue(self.browser.run("return document.getElementById('job').hidden"))

    def test_everybody_can_use_it(self):
        self.assertEqual(page_checks.findings(self.browser), [])
        self.give(self.file("dump.rdb", content("damaged/cut-tiny-263.rdb")))
        self.verdict()
        self.assertEqual(page_checks.findings(self.browser), [])
        self.browser.run("document.getElementById('tab-verdict').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "tab-contents")


class Served(InBrowser):
    """The page of redoubt browse. It asks only the address that it came from."""

    def setUp(self):
        """Not the page from a file."""

    def serve(self, *args):
        self.listener.seen.clear()
        process = subprocess.Popen([REDOUBT, "browse", "--page", PAGE, *args], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.url = process.stdout.readline().strip()
        self.assertRegex(self.url, r"^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/$")
        self.browser.open(self.url)
        self.browser.console()
        return process

    def test_a_damaged_file_and_its_salvage(self):
        data = content("damaged/cut-tiny-263.rdb")
        self.serve(self.file("dump.rdb", data))
        self.assertIn("truncated", self.verdict())
        _, text, _, _ = self.program(["check-rdb", "dump.rdb"], [("dump.rdb", data)])
        self.assertIn(self.verdict(), " ".join(text.split()))
        self.browser.run("document.getElementById('salvage').click()")
        self.wait_for("#saved a[download]")
        self.assertEqual(self.browser.console(), [])
        own = self.url.split("/")[2].encode()
        self.assertFalse([seen for seen in self.listener.seen if own in seen])

    def test_a_folder(self):
        os.makedirs(os.path.join(self.folder, "data"), exist_ok=True)
        self.file("data/dump.rdb", content("redis-7.0.15/tiny.rdb"))
        self.file("data/notes.txt", b"private")
        self.serve(os.path.join(self.folder, "data"))
        self.verdict()
        self.assertIn("data/dump.rdb", self.text("#sources"))
        self.assertNotIn("notes", self.text("main"))

    def test_restore_points(self):
        rdb = self.file("dump.rdb", content("redis-7.0.15/tiny.rdb"))
        key = os.path.join(self.folder, "key")
        conf = self.file("redoubt.conf", (
            f"[nightly]\nsource = {rdb}\nrepository = {self.folder}/repo\nkey-file = {key}\n"
        ).encode())
        for command in (["seal", "--make-key", key], ["backup", "nightly", "--config", conf],
                        ["backup", "nightly", "--config", conf]):
            subprocess.run([REDOUBT, *command], check=True, capture_output=True)
        process = self.serve("nightly", "--config", conf)
        self.browser.wait(lambda: self.browser.run(
            "return document.querySelectorAll('#served-list button').length") == 2)
        self.assertEqual(page_checks.findings(self.browser), [])
        self.browser.run("document.querySelector('#served-list button').click()")
        self.assertNotIn("damaged", self.verdict())
        self.assertEqual(self.browser.console(), [])
        process.kill()
        process.wait()
        self.browser.run("document.querySelectorAll('#served-list button')[1].click()")
        self.browser.wait(lambda: "does it still run?" in self.text("#served"))

    def test_another_page_gets_nothing(self):
        """A page of another origin, also one in a frame."""
        self.serve(self.file("dump.rdb", content("redis-7.0.15/tiny.rdb")))
        self.verdict()
        page = self.file("evil.html", b"<!doctype html><p>evil")
        self.browser.open("file://" + page)
        for script in ("fetch(url).then(r => r.text())",
                       "fetch(url, {mode: 'no-cors'}).then(r => r.text())",
                       "new Promise((ok, no) => { const s = document.createElement('script');"
                       " s.src = url; s.onload = ok; s.onerror = () => no(Error('no'));"
                       " document.head.append(s); })"):
            answer = self.browser.run_async(
                "const [url, done] = arguments; " + script +
                ".then(text => done('got ' + text), e => done('refused'))", self.url + "file/0")
            self.assertIn(answer, ("refused", "got "), script)


class Dark(Use):
    dark = True


class Narrow(Use):
    size = (390, 844)

    def test_nothing_is_wider_than_the_page(self):
        self.give(self.file("a-%s.rdb" % ("name" * 20), content("damaged/cut-tiny-263.rdb")))
        self.verdict()
        self.assertEqual(self.browser.run(
            "const e = document.documentElement; return e.scrollWidth - e.clientWidth"), 0)


if __name__ == "__main__":
    unittest.main()
