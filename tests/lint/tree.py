"""The files of the repository, as the lint tests see them."""

import os
import re
import unittest

ROOT = os.environ.get("REDOUBT_SOURCE") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", "..")
)
BUILD = os.environ.get("REDOUBT_BUILD", "")

# The folders with our own C code; each may include the folders to its left.
LAYERS = {
    "base": {"base"},
    "rdb": {"base", "rdb"},
    "aof": {"base", "rdb", "aof"},
    "repl": {"base", "rdb", "repl"},
    "engine": {"base", "rdb", "engine"},
    "archive": {"base", "rdb", "aof", "repl", "json", "archive"},
    "cluster": {"base", "cluster"},
    "sentinel": {"base", "sentinel"},
    "json": {"base", "json"},
    "data": {"base", "rdb", "json", "data"},
    "stat": {"base", "rdb", "data", "stat"},
    "jobs": {"base", "rdb", "engine", "json", "data", "stat", "jobs"},
    "chunks": {"base", "rdb", "data", "archive", "chunks"},
    "client": {"base", "rdb", "repl", "client"},
    "rebuild": {"base", "rdb", "aof", "repl", "engine", "rebuild"},
    "history": {"base", "rdb", "aof", "repl", "engine", "rebuild", "history"},
    "capture": {"base", "rdb", "repl", "data", "client", "rebuild", "capture"},
    "backup": {"base", "rdb", "aof", "repl", "data", "archive", "chunks", "client",
               "rebuild", "history", "capture", "backup"},
    "server": {"base", "rdb", "aof", "repl", "engine", "archive", "client", "sentinel",
               "cluster", "server"},
    "tools": {"base", "rdb", "aof", "repl", "engine", "archive", "chunks", "backup", "client",
              "rebuild", "history", "json", "data", "stat", "jobs", "capture", "cluster",
              "sentinel", "server", "tools"},
}

# The libraries below server/ and tools/.
LIBRARIES = ("base", "rdb", "aof", "repl", "engine", "archive", "backup", "client", "rebuild",
             "history", "capture", "cluster", "sentinel", "json", "data", "stat",
             "jobs", "chunks")

SKIPPED = {".git", ".cache", "__pycache__", "build", "node_modules"}


def files(*endings, under=""):
    """Paths relative to the root, with `/`, of all files with one of these endings."""
    found = []
    for folder, folders, names in os.walk(os.path.join(ROOT, under)):
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED and not os.path.exists(os.path.join(folder, name, "build.ninja"))
        )
        for name in sorted(names):
            if name.endswith(endings):
                found.append(os.path.relpath(os.path.join(folder, name), ROOT))
    return found


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def without_comments(text):
    """C source with comments and string literals blanked, lines kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)

    def blank(match):
        return '""' if match.group(0)[0] == '"' else "\n" * match.group(0).count("\n")

    return pattern.sub(blank, text)


def includes(path):
    """Yields (line number, "name" or <name>) of each include."""
    for number, line in enumerate(read(path).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<][^">]+[">])', line)
        if match:
            yield number, match.group(1)


class Lint(unittest.TestCase):
    def none(self, wrong):
        """Fails with one line for each thing that is wrong."""
        if wrong:
            self.fail("\n" + "\n".join(wrong))
