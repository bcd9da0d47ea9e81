#!/usr/bin/env python3
"""Makes a manual page of a Markdown page of this folder, through scdoc.

usage: md2man.py SCDOC NAME SECTION PAGE.md OUT

It knows what the pages use: headings, paragraphs, lists, tables, blocks of code, code, emphasis and
links. A link to another page becomes a reference to its manual page.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)\s]+)\)"
                    r"|\b(redoubt(?:-[a-z-]+)?)\((\d)\)")


COLUMNS = 6  # that fit a terminal


def manual_page(path):
    """The manual page that is made of a file, as (name, section), or None."""
    path = os.path.relpath(path, HERE)
    folder, name = os.path.split(path)
    stem, ending = os.path.splitext(name)
    if ending != ".md" or stem in ("README", "ARCHITECTURE"):
        return None
    sections = {"format": 5, "guide": 7, "": 7}
    return (f"redoubt-{stem}", sections[folder]) if folder in sections else None


def escaped(text):
    return re.sub(r"([\\_*~]|\+(?=\+))", r"\\\1", text)


class Page:
    def __init__(self, path):
        self.folder = os.path.dirname(os.path.abspath(path))
        with open(path, encoding="utf-8") as f:
            self.lines = f.read().splitlines()
        self.out = []

    def reference(self, text, target):
        if re.match(r"https?:", target):
            return f"{self.inline(text)} ({escaped(target)})"
        page = manual_page(os.path.join(self.folder, target.split("#")[0] or "."))
        if page is None:
            return self.inline(text)
        manual = f"*{page[0]}*({page[1]})"
        named = text.strip("`") in (os.path.basename(target), target)
        return manual if named else f"{self.inline(text)} ({manual})"

    def inline(self, text):
        parts, at = [], 0
        for found in INLINE.finditer(text):
            code, strong, emphasis, link, target, page, section = found.groups()
            parts.append(escaped(text[at:found.start()]))
            if code or strong:
                parts.append(f"*{escaped(code or strong)}*")
            elif emphasis:
                parts.append(f"_{escaped(emphasis)}_")
            elif link:
                parts.append(self.reference(link, target))
            else:
                parts.append(f"*{page}*({section})")
            at = found.end()
        line = "".join(parts) + escaped(text[at:])
        return re.sub(r"^([#.|\[\]-])", r"\\\1", line)

    def take(self, pattern):
        """The lines from here on that match."""
        taken = []
        while self.lines and re.match(pattern, self.lines[0]):
            taken.append(self.lines.pop(0))
        return taken

    def table(self):
        rows = [[cell.strip().replace("\\|", "|") for cell in
                 re.split(r"(?<!\\)\|", line.strip()[1:-1])] for line in self.take(r"\|")]
        head, rows = rows[0], rows[2:]
        if len(head) > COLUMNS:
            self.wide_table(head, rows)
            return
        for number, row in enumerate([[f"**{cell}**" if cell else "" for cell in head]] + rows):
            marks = ("[[ ", ":[ ") if number == 0 else ("|  ", ":  ")
            self.out += [marks[column > 0] + (self.inline(cell) or "-")
                         for column, cell in enumerate(row)]
        self.out.append("")

    def wide_table(self, head, rows):
        """A list for each row: a terminal has no room for so many columns."""
        for row in rows:
            self.out += [f"*{escaped(row[0])}*", ""]
            self.out += [f"- *{escaped(name)}*: {self.inline(cell)}"
                         for name, cell in zip(head[1:], row[1:]) if cell not in ("", "-")]
            self.out.append("")

    def items(self):
        for item in re.split(r"\n(?=- |\d+\. )", "\n".join(self.take(r"- |\d+\. |  +\S"))):
            mark, text = re.match(r"(-|\d+\.) (.*)", item, re.S).groups()
            self.out.append(("- " if mark == "-" else ". ") + self.inline(" ".join(text.split())))
        self.out.append("")

    def code(self):
        self.lines.pop(0)
        body = self.take(r"(?!```)")
        self.lines.pop(0)
        self.out += ["```", *body, "```", ""]

    def heading(self, name, first):
        marks, title = self.lines.pop(0).split(" ", 1)
        plain = title.replace("`", "").replace("*", "")
        if first:
            self.out += ["# NAME", "", f"{name} - {escaped(plain)}", "", "# DESCRIPTION", ""]
        elif marks == "##":
            self.out += ["# " + escaped(plain.upper()), ""]
        else:
            self.out += ["## " + escaped(plain), ""]

    def scdoc(self, name, section):
        self.out = [f"{name}({section})", ""]
        first = True
        while self.lines:
            line = self.lines[0]
            if line.startswith("#"):
                self.heading(name, first)
                first = False
            elif line.startswith("```"):
                self.code()
            elif line.startswith("|"):
                self.table()
            elif re.match(r"- |\d+\. ", line):
                self.items()
            elif not line.strip():
                self.lines.pop(0)
            else:
                text = " ".join(part.strip() for part in
                                self.take(r"(?!```|\||- |\d+\. |#)\s*\S"))
                self.out += [self.inline(text), ""]
        return "\n".join(self.out) + "\n# SEE ALSO\n\n*redoubt*(1), *redoubt*(7)\n"


def main(scdoc, name, section, source, out):
    text = Page(source).scdoc(name, section)
    done = subprocess.run([scdoc], input=text, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        sys.exit(f"{source}: {done.stderr}")
    with open(out, "w", encoding="utf-8") as f:
        f.write(done.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
