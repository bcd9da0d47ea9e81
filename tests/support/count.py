"""Counts the results of `meson test`: every case that a test program reports counts by itself.

usage: count.py FOLDER    (the meson-logs of a build; prints what failed and why, then
                           `N passed, N failed`, and exits 1 when anything failed)

A skipped case counts as failed: `./run test` has installed all that the tests need.
"""

import glob
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

SKIPPED = re.compile(r"^ok\b.*# *skip", re.I)


def log(folder, ending):
    """The log of the last run, whose name has that of a wrapper in it."""
    found = glob.glob(os.path.join(folder, "testlog*" + ending))
    if not found:
        sys.exit("no test ran\n0 passed, 0 failed")
    return max(found, key=os.path.getmtime)


def cases(folder):
    """Yields (program, outcome), the outcome passed or failed."""
    with open(log(folder, ".junit.xml"), encoding="utf-8", errors="replace") as file:
        # What a test printed is in the log as it was; XML has no place for control characters.
        text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "?", file.read())
    root = ElementTree.fromstring(text.encode("utf-8"))
    for suite in root.iter("testsuite"):
        for case in suite.iter("testcase"):
            bad = any(case.find(name) is not None for name in ("failure", "error", "skipped"))
            program = case.get("classname", "").partition(".")[2] or case.get("name")
            yield program, "failed" if bad else "passed"


def runs(folder):
    """Yields (program, outcome, what it wrote to stdout)."""
    with open(log(folder, ".json"), encoding="utf-8", errors="replace") as file:
        for line in file:
            run = json.loads(line)
            name = run["name"].split(" / ")[-1].split(":")[-1]
            yield name, run["result"], run.get("stdout", "")


def print_failures(program, output):
    """Prints each failed or skipped case with the lines that the program wrote about it."""
    shown = False
    for line in output.splitlines():
        skipped = SKIPPED.match(line)
        ok = line.startswith("ok") and not skipped
        if skipped or line.startswith("not ok") or (shown and not ok):
            shown = True
            print(f"{program}: {line}")
        elif ok:
            shown = False


def main():
    folder = sys.argv[1]
    counts = {"passed": 0, "failed": 0}
    failed_programs = set()
    for program, outcome in cases(folder):
        counts[outcome] += 1
        if outcome == "failed":
            failed_programs.add(program)
    for program, result, output in runs(folder):
        print_failures(program, output)
        # A program that crashed, timed out or ran no case may have reported no failed case: it
        # counts as one.
        if result != "OK" and program not in failed_programs:
            counts["failed"] += 1
            print(f"{program}: {result.lower()}")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
