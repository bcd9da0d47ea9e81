"""Compares the lines that no test reached with the excuses for them.

    uncovered.py GCOVR_JSON EXCUSES

The first is what gcovr writes with --json, the second a page of Markdown with a heading for each
file and a table row for each function:

    ## base/worker.c

    | function | lines | why |
    |---|---|---|
    | `start` | 2 | a thread that cannot be started |

A function must not have more unreached lines than its row says, and a row must not exist where
every line is reached, unless it says that this is a matter of time. Rows name functions, because
numbers of lines change with every edit. Of other folders than those that are excused line by line,
enough lines must be reached.
"""

import bisect
import collections
import json
import re
import sys

HEADING = re.compile(r"^## (\S+\.[ch])$")
ROW = re.compile(r"^\| `(\w+)` \| (\d+) \| (.*\S) \|$")

BARS = {  # percent of the lines
    ("base", "rdb"): 95, ("aof",): 95, ("repl",): 95, ("engine",): 92, ("tools",): 95,
    # What unit tests reach without the tests of the programs. These bars may rise.
    ("json",): 80, ("data",): 54, ("stat",): 69, ("jobs",): 46, ("archive",): 76, ("chunks",): 71,
    ("client",): 46, ("rebuild",): 45, ("history",): 79, ("backup",): 31,
}
BY_LINE = ("base/", "rdb/", "aof/")


def shares(path):
    """(folders, percent of their lines that are reached, percent that is wanted); None: no bar"""
    counts = collections.defaultdict(lambda: [0, 0])
    with open(path, encoding="utf-8") as report:
        files = json.load(report)["files"]
    for file in files:
        for line in file["lines"]:
            if not line.get("gcovr/noncode"):
                count = counts[file["file"].split("/")[0]]
                count[0] += 1
                count[1] += line["count"] > 0
    rest = {(folder,): None for folder in sorted(counts.keys() - set().union(*BARS))}
    for folders, bar in {**BARS, **rest}.items():
        lines, reached = (sum(counts[folder][i] for folder in folders) for i in range(2))
        yield " ".join(folders), 100 * reached / max(lines, 1), bar


def unreached(path):
    """{(file, function): [line, ...]}; a line is of the function that begins last before it."""
    found = collections.defaultdict(list)
    with open(path, encoding="utf-8") as report:
        files = json.load(report)["files"]
    for file in files:
        functions = sorted((f["lineno"], f["name"]) for f in file["functions"])
        begins = [begin for begin, _ in functions]
        for line in file["lines"]:
            if line["count"] > 0 or line.get("gcovr/noncode"):
                continue
            at = bisect.bisect(begins, line["line_number"]) - 1
            name = functions[at][1] if at >= 0 else "-"
            found[file["file"], name].append(line["line_number"])
    return found


def excused(path):
    """{(file, function): (most, why)}"""
    excuses = {}
    file = None
    with open(path, encoding="utf-8") as page:
        for line in page:
            heading, row = HEADING.match(line), ROW.match(line)
            if heading:
                file = heading.group(1)
            elif row:
                excuses[file, row.group(1)] = int(row.group(2)), row.group(3)
    return excuses


def compare(found, excuses):
    for key in sorted(found.keys() | excuses.keys()):
        file, function = key
        if not file.startswith(BY_LINE):
            continue
        lines, (most, why) = found.get(key, []), excuses.get(key, (0, ""))
        if len(lines) > most:
            where = " ".join(map(str, lines))
            yield f"{file}: {function}: {len(lines)} lines unreached, {most} excused: {where}"
        elif not lines and "a matter of time" not in why:
            yield f"{file}: {function}: excused, but every line is reached"


def main():
    report, page = sys.argv[1:]
    complaints = list(compare(unreached(report), excused(page)))
    for folders, share, bar in shares(report):
        print(f"{folders}: {share:.1f} %" + (" (no bar)" if bar is None else ""))
        if bar is not None and share < bar:
            complaints.append(f"{folders}: {share:.1f} % of the lines are reached, not {bar} %")
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
