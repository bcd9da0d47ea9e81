"""Runs a unittest file and reports each case in the Test Anything Protocol.

usage: tap.py FILE.py    (or in a file: `if __name__ == "__main__": tap.main()`)
"""

import importlib.util
import os
import sys
import unittest


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.bad = 0

    def _line(self, test, word, note="", detail=""):
        self.n += 1
        name = test.id().split(".", 1)[-1].replace("#", "")
        print(f"{word} {self.n} - {name}{note}", flush=True)
        for line in detail.splitlines():
            line = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line)
            print(f"# {line}", flush=True)

    def _bad(self, test, err):
        self.bad += 1
        self._line(test, "not ok", detail=self._exc_info_to_string(err, test))

    def addSuccess(self, test):
        self._line(test, "ok")

    def addFailure(self, test, err):
        self._bad(test, err)

    def addError(self, test, err):
        self._bad(test, err)

    def addSkip(self, test, reason):
        self._line(test, "ok", note=f" # SKIP {reason}")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._bad(subtest, err)


def run(suite):
    result = TapResult()
    print("TAP version 13")
    suite.run(result)
    print(f"1..{result.n}", flush=True)
    return 1 if result.bad else 0


def load(path):
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


if __name__ == "__main__":
    sys.exit(run(load(sys.argv[1])))
