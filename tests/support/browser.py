"""A headless Chromium, driven through the WebDriver protocol of its own chromedriver.

    with Browser(390, 844, dark=True) as b:
        b.open("file:///…/page.html")
        b.run("return document.title")
        b.press("Enter")
        b.console()         # [] where nothing was complained about

The browser has a profile of its own and asks no network; both programs end with the block. They
meet at 127.0.0.1: a machine need not know the name localhost, by which chromedriver looks for a
browser that it starts itself.
"""

import base64
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

START_SECONDS = 600
START_TRIES = 3
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Backspace": "\ue003", "Tab": "\ue004",
        "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015",
        "Home": "\ue011", "End": "\ue010"}


class BrowserError(Exception):
    pass


class Browser:
    def __init__(self, width=1280, height=800, dark=False, more=()):
        self.size = width, height
        self.dark = dark
        self.more = more  # arguments of the browser
        self.folder = self.session = None
        self.programs = []

    def __enter__(self):
        """A browser that ends while it starts is started again: it is not what is tested."""
        for _ in range(START_TRIES - 1):
            try:
                return self._enter()
            except BrowserError:
                pass
        return self._enter()

    def _enter(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-browser-")
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _start(self):
        profile = os.path.join(self.folder, "profile")
        args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--disable-extensions",
                f"--user-data-dir={profile}", "--hide-scrollbars", "--remote-debugging-port=0",
                "--window-size=%d,%d" % self.size, *self.more]
        self._run("chromium", *args, "about:blank")
        log = self._run("chromedriver", "--port=0")
        debugger = self._port("chromium", os.path.join(profile, "DevToolsActivePort"), r"(\d+)\n")
        driver = self._port("chromedriver", log, r"started successfully on port (\d+)")
        self.url = f"http://127.0.0.1:{driver}"
        wish = {"browserName": "chrome",
                "goog:chromeOptions": {"debuggerAddress": f"127.0.0.1:{debugger}"},
                "goog:loggingPrefs": {"browser": "ALL"}}
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wish}})
        self.session = answer["sessionId"]
        self.emulate()

    def _run(self, program, *args):
        """Starts a program; where it writes what it has to say."""
        log = os.path.join(self.folder, program + ".log")
        with open(log, "wb") as out:
            self.programs.append(subprocess.Popen(
                [program, *args], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True, env={**os.environ, "HOME": self.folder}))
        return log

    def _port(self, program, path, pattern):
        """The port that a program says in a file where it can be asked."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and all(p.poll() is None for p in self.programs):
            if os.path.exists(path):
                with open(path, errors="replace") as f:
                    found = re.search(pattern, f.read())
                if found:
                    return int(found.group(1))
            time.sleep(0.05)
        said = []
        for log in sorted(glob.glob(os.path.join(self.folder, "*.log"))):
            with open(log, errors="replace") as f:
                said.append(f.read()[-1000:])
        raise BrowserError(f"{program} does not start: {[p.poll() for p in self.programs]} {said}")

    def emulate(self):
        """The size of the page, its colours, and that nothing moves."""
        width, height = self.size
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=width < 600)
        wishes = {"prefers-color-scheme": "dark" if self.dark else "light",
                  "prefers-reduced-motion": "reduce"}
        self.devtools("Emulation.setEmulatedMedia",
                      features=[{"name": n, "value": v} for n, v in wishes.items()])

    def close(self):
        if self.session is not None:
            try:
                self._call("DELETE", f"/session/{self.session}")
            except (OSError, BrowserError):
                pass
            self.session = None
        for process in self.programs:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        self.programs = []
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=600) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            raise BrowserError(e.read().decode(errors="replace")[:500]) from None

    def _ask(self, path, **body):
        return self._call("POST", f"/session/{self.session}{path}", body)

    def devtools(self, command, **params):
        return self._ask("/goog/cdp/execute", cmd=command, params=params)

    def open(self, url):
        self._ask("/url", url=url)

    def run(self, script, *args):
        """Runs a script in the page and gives what it returns."""
        return self._ask("/execute/sync", script=script, args=list(args))

    def run_async(self, script, *args):
        """Runs a script whose last argument is a function, and gives what it is called with."""
        self._ask("/timeouts", script=1000 * START_SECONDS)
        return self._ask("/execute/async", script=script, args=list(args))

    def in_frame(self, selector, script):
        """Runs a script in a frame of the page."""
        found = self._ask("/element", using="css selector", value=selector)
        self._ask("/frame", id=found)
        try:
            return self.run(script)
        finally:
            self._ask("/frame", id=None)

    def click(self, selector):
        """As a pointer does, in the middle of the first element that matches."""
        found = self._ask("/element", using="css selector", value=selector)
        self._ask(f"/element/{next(iter(found.values()))}/click")

    def press(self, *keys):
        for key in keys:
            value = KEYS.get(key, key)
            actions = [{"type": kind, "value": value} for kind in ("keyDown", "keyUp")]
            self._ask("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def wait(self, is_done):
        """Until something that the page began has happened."""
        end = time.monotonic() + START_SECONDS
        while not is_done():
            if time.monotonic() > end:
                raise BrowserError("it does not happen")
            time.sleep(0.05)

    def console(self):
        """What was logged since the last call: errors of scripts and of the policy among it."""
        return [entry["message"] for entry in self._ask("/se/log", type="browser")]

    def screenshot(self, whole=False):
        """A PNG."""
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])
