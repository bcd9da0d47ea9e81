"""fixtures/MANIFEST.tsv: what each fixture is, what is expected of it, and its digest.

usage: manifest.py FIXTURES    writes the list again, and keeps what is expected
"""

import hashlib
import os
import sys

NAME = "MANIFEST.tsv"
COLUMNS = ("path", "written by", "kind", "expected", "sha256")


class Row:
    def __init__(self, path, writer, kind, expected, sha256):
        self.path = path
        self.writer = writer
        self.kind = kind
        self.expected = expected
        self.sha256 = sha256

    def line(self):
        return "\t".join((self.path, self.writer, self.kind, self.expected, self.sha256)) + "\n"


def read(folder):
    """Rows by path, in the order of the file."""
    rows = {}
    with open(os.path.join(folder, NAME), encoding="ascii") as f:
        if tuple(f.readline().rstrip("\n").split("\t")) != COLUMNS:
            raise ValueError(f"{NAME}: the first line does not name the columns")
        for line in f:
            row = Row(*line.rstrip("\n").split("\t"))
            if row.path in rows:
                raise ValueError(f"{NAME}: {row.path} is there twice")
            rows[row.path] = row
    return rows


def paths(folder):
    """Every file below the folder that belongs into the list, in its order."""
    found = []
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.relpath(os.path.join(at, name), folder)
            if path not in (NAME, "README.md"):
                found.append(path)
    return sorted(found)


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def writer_of(path):
    top = path.split(os.sep)[0]
    if top == "hand" or os.path.basename(path).startswith("hand-"):
        return "hand"
    return {"broken": "hand", "damaged": "edited"}.get(top, top)


def kind_of(path):
    name = os.path.basename(path)
    if name.endswith(".hex"):
        return "rdb-hex"
    if name == "bus.bin":
        return "bus"
    if name.endswith((".json", ".tsv", ".manifest", ".bin", ".rdb")):
        word = name.rsplit(".", 1)[1]
        return {"json": "facts", "tsv": "facts", "bin": "capture"}.get(word, word)
    return "aof"


def is_judged(path):
    """Whether the list says what the readers make of the file."""
    return kind_of(path) in ("rdb", "rdb-hex", "aof", "manifest")


def made(folder, known):
    rows = []
    for path in paths(folder):
        expected = "-"
        if is_judged(path):
            expected = known[path].expected if path in known else "?"
        sha256 = digest(os.path.join(folder, path))
        rows.append(Row(path, writer_of(path), kind_of(path), expected, sha256))
    return rows


def write(folder, rows):
    with open(os.path.join(folder, NAME), "w", encoding="ascii") as f:
        f.write("\t".join(COLUMNS) + "\n")
        f.writelines(row.line() for row in rows)


def main(folder):
    known = read(folder) if os.path.exists(os.path.join(folder, NAME)) else {}
    write(folder, made(folder, known))


if __name__ == "__main__":
    main(sys.argv[1])
