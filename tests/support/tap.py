"""Runs a unittest file and reports each case in the Test Anything Protocol.

usage: tap.py FILE.py

A skipped case is a failure, and so are a file without cases and one that cannot be loaded:
`./run test` has installed all that the tests need.
"""

import importlib.util
import os
import sys
import traceback
import unittest


def name_of(test):
    return test.id().split(".", 1)[-1]


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.bad = 0

    def line(self, name, word, detail=""):
        self.n += 1
        print(f"{word} {self.n} - {name.replace('#', '')}", flush=True)
        for line in detail.splitlines():
            line = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line)
            print(f"# {line}", flush=True)

    def bad_line(self, name, detail):
        self.bad += 1
        self.line(name, "not ok", detail)

    def _bad(self, test, err):
        self.bad_line(name_of(test), self._exc_info_to_string(err, test))

    def addSuccess(self, test):
        self.line(name_of(test), "ok")

    def addFailure(self, test, err):
        self._bad(test, err)

    def addError(self, test, err):
        self._bad(test, err)

    def addSkip(self, test, reason):
        self.bad_line(name_of(test), f"skipped: {reason}")

    def addExpectedFailure(self, test, err):
        self._bad(test, err)

    def addUnexpectedSuccess(self, test):
        self.bad_line(name_of(test), "a failure was expected")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._bad(subtest, err)


def run(path):
    result = TapResult()
    print("TAP version 13")
    try:
        load(path).run(result)
        if result.n == 0:
            result.bad_line(path, "the file has no tests")
    except (Exception, SystemExit):
        result.bad_line(path, traceback.format_exc())
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
    sys.exit(run(sys.argv[1]))
