#!/usr/bin/env python3
"""Writes the documentation as a static site: site.py OUT.

The pages are README.md, the Markdown pages of docs/, and the manual pages of the tools. Each page
lists all pages beside its text, and has a field that leads to search.html: the only page with
scripts, which search in the files of the site, from file:// too. Nothing is loaded from elsewhere.
A link to another file of the source is text.
"""

import glob
import html
import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*"
                    r"|(!?)\[([^\]]+)\]\(([^)\s]+)\)|\b(redoubt(?:-[a-z-]+)?)\((\d)\)")
MANUAL = re.compile(r"\\(.)|\*((?:\\.|[^*\\])+)\*|(?<!\w)_((?:\\.|[^_\\])+)_(?!\w)")
GROUPS = (("Guides", "guide/"), ("Tools", "man/"), ("Formats", "format/"), ("Project", ""))


def sources():
    """The page of the site for each source, relative to the root of the repository."""
    found = {"README.md": "index.html"}
    for path in sorted(glob.glob("docs/**/*.md", root_dir=ROOT, recursive=True)):
        found[path] = path[len("docs/"):-len(".md")] + ".html"
    for path in sorted(glob.glob("docs/man/*.scd", root_dir=ROOT)):
        found[path] = path[len("docs/"):-len(".scd")] + ".html"
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"):
        found[name + ".md"] = name.lower() + ".html"
    return found


class Renderer:
    def __init__(self, source, pages):
        self.source, self.pages = source, pages
        self.here = os.path.dirname(pages[source])
        self.ids = set()
        with open(os.path.join(ROOT, source), encoding="utf-8") as f:
            self.lines = f.read().splitlines()

    def to(self, page):
        return os.path.relpath(page, self.here or ".")

    def manual(self, name, section):
        for path in (f"docs/man/{name}.{section}.scd", f"docs/format/{name[8:]}.md",
                     f"docs/guide/{name[8:]}.md", f"docs/{name[8:]}.md"):
            if path in self.pages:
                return f'<a href="{self.to(self.pages[path])}">{name}({section})</a>'
        return f"{name}({section})"

    def link(self, picture, text, target):
        if re.match(r"https?:", target):
            return f'<a href="{html.escape(target)}">{self.inline(text)}</a>'
        path, _, part = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(self.source), path)) if path else ""
        if picture:
            return f'<img src="{self.to(os.path.basename(path))}" alt="{html.escape(text)}">'
        if path and os.path.isdir(os.path.join(ROOT, path)):
            path = os.path.join(path, "README.md")
        if path and path not in self.pages:
            return self.inline(text)
        href = (self.to(self.pages[path]) if path else "") + ("#" + part if part else "")
        return f'<a href="{href}">{self.inline(text)}</a>'

    def inline(self, text):
        parts, at = [], 0
        for found in INLINE.finditer(text):
            code, strong, emphasis, picture, words, target, page, section = found.groups()
            parts.append(html.escape(text[at:found.start()]))
            if code:
                parts.append(f"<code>{html.escape(code)}</code>")
            elif strong:
                parts.append(f"<strong>{html.escape(strong)}</strong>")
            elif emphasis:
                parts.append(f"<em>{html.escape(emphasis)}</em>")
            elif words:
                parts.append(self.link(picture, words, target))
            else:
                parts.append(self.manual(page, section))
            at = found.end()
        return "".join(parts) + html.escape(text[at:])

    def manual_inline(self, text):
        def one(found):
            plain, bold, under = found.groups()
            if plain:
                return plain
            word = html.escape(re.sub(r"\\(.)", r"\1", bold or under))
            return f"<strong>{word}</strong>" if bold else f"<em>{word}</em>"
        parts, at = [], 0
        for found in re.finditer(r"\*(redoubt[\w-]*)\*\((\d)\)", text):
            parts += [MANUAL.sub(one, html.escape(text[at:found.start()], quote=False)),
                      self.manual(*found.groups())]
            at = found.end()
        line = "".join(parts) + MANUAL.sub(one, html.escape(text[at:], quote=False))
        return re.sub(r"\+\+$", "<br>", line)

    def take(self, expression):
        taken = []
        while self.lines and re.match(expression, self.lines[0]):
            taken.append(self.lines.pop(0))
        return taken

    def heading(self, lower=0):
        marks, title = self.lines.pop(0).split(" ", 1)
        name = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        while name in self.ids:
            name += "-"
        self.ids.add(name)
        text = self.inline(title) if lower == 0 else html.escape(title)
        return f'<h{len(marks) + lower} id="{name}">{text}</h{len(marks) + lower}>'

    def code(self):
        self.lines.pop(0)
        body = "\n".join(self.take(r"(?!\s*```)"))
        self.lines.pop(0)
        return f'<pre tabindex="0"><code>{html.escape(body)}</code></pre>'

    def table(self):
        rows = [[self.inline(cell.strip().replace("\\|", "|")) for cell in
                 re.split(r"(?<!\\)\|", line.strip()[1:-1])] for line in self.take(r"\|")]
        lines = ["<tr>" + "".join(f"<{kind}>{cell}</{kind}>" for cell in row) + "</tr>"
                 for kind, row in [("th", rows[0])] + [("td", row) for row in rows[2:]]]
        return '<div class="table" tabindex="0"><table>' + "\n".join(lines) + "</table></div>"

    def items(self):
        lines = self.take(r"- |\d+\. |  +\S")
        kind = "ul" if lines[0].startswith("-") else "ol"
        items = re.split(r"(?:^|\n)(?:- |\d+\. )", "\n".join(lines))[1:]
        body = "".join(f"<li>{self.inline(' '.join(item.split()))}</li>" for item in items)
        return f"<{kind}>{body}</{kind}>"

    def markdown(self):
        while self.lines:
            line = self.lines[0]
            if re.match(r"#+ ", line):
                yield self.heading()
            elif line.lstrip().startswith("```"):
                yield self.code()
            elif line.startswith("|"):
                yield self.table()
            elif re.match(r"- |\d+\. ", line):
                yield self.items()
            elif not line.strip():
                self.lines.pop(0)
            else:
                text = [self.lines.pop(0)] + self.take(r"(?!\s*```|\||- |\d+\. |#)\s*\S")
                yield f"<p>{self.inline(' '.join(part.strip() for part in text))}</p>"

    def manual_page(self):
        yield f"<h1>{html.escape(self.lines.pop(0).split(' ')[0])}</h1>"
        while self.lines:
            line = self.lines[0]
            if re.match(r"#+ ", line):
                yield self.heading(lower=1)
            elif line.strip() == "```":
                yield self.code()
            elif line.startswith("\t"):
                body = " ".join(part.strip() for part in self.take(r"\t(?!\s*```)"))
                yield f'<div class="indented"><p>{self.manual_inline(body)}</p></div>'
            elif re.match(r"[\[|:\]][\[:<>=\-\] ]", line):
                cells = []
                for part in self.take(r"[\[|:\]]|   \S"):
                    if part.startswith("   "):
                        cells[-1] += " " + part.strip()
                    else:
                        cells.append(("<tr><td>" if part[0] in "[|]" else "<td>") +
                                     part[2:].strip())
                yield ('<div class="table" tabindex="0"><table>' +
                       "".join(re.match(r"(?:<tr>)?<td>", c).group() +
                               self.manual_inline(re.sub(r"^(?:<tr>)?<td>", "", c)) for c in cells)
                       + "</table></div>")
            elif not line.strip():
                self.lines.pop(0)
            else:
                text = [self.lines.pop(0)] + self.take(r"(?!#|\t|```|[\[|:\]][\[:<>=\-\] ])\s*\S")
                yield f"<p>{self.manual_inline(' '.join(part.strip() for part in text))}</p>"

    def title(self):
        manual = self.source.endswith(".scd")
        title = self.lines[0].split(" ")[0] if manual else self.lines[0].lstrip("# ")
        return title.replace("`", "")

    def body(self):
        return "\n".join(self.manual_page() if self.source.endswith(".scd") else self.markdown())


def document(name, title, body, titles, scripts=()):
    """A page with the list of all pages. titles: of each page by its name, in order."""
    def to(page):
        return os.path.relpath(page, os.path.dirname(name) or ".")

    def entry(page):
        here = ' aria-current="page"' if page == name else ""
        return f'<li><a href="{to(page)}"{here}>{html.escape(titles[page])}</a></li>'
    left, lists = list(titles), []
    for group, folder in GROUPS:
        lists.append(f"<h2>{group}</h2>\n<ul>\n" + "\n".join(
            entry(page) for page in left if page.startswith(folder)) + "\n</ul>\n")
        left = [page for page in left if not page.startswith(folder)]
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<link rel="icon" href="data:,">\n<link rel="stylesheet" href="{to("style.css")}">\n'
            f"<title>{html.escape(title)}</title>\n</head>\n<body>\n"
            f'<header><a href="{to("index.html")}">Redoubt</a>'
            f'<a class="to-pages" href="#pages">All pages</a>'
            f'<form action="{to("search.html")}" role="search"><input type="search" name="q" '
            f'aria-label="Words to search for"><button>Search</button></form></header>\n'
            f'<div class="page">\n<main>\n{body}\n</main>\n'
            f'<nav id="pages" aria-label="All pages">\n{"".join(lists)}</nav>\n</div>\n' +
            "".join(f'<script src="{script}"></script>\n' for script in scripts) +
            "</body>\n</html>\n")


def sections(name, title, body):
    """What search.js searches: [page, title, id of the section, heading, text]."""
    parts = re.split(r'<h\d(?: id="([^"]*)")?>(.*?)</h\d>', body)
    for name_of, heading, text in zip(parts[1::3], parts[2::3], parts[3::3]):
        plain = []
        for part in (heading, text):
            part = re.sub(r"</?(?:a|code|em|strong)\b[^>]*>", "", part)
            plain.append(" ".join(html.unescape(re.sub(r"<[^>]*>", " ", part)).split()))
        yield [name, title, name_of or "", *plain]


def write(out, name, text):
    path = os.path.join(out, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main(out):
    pages = sources()
    renderers = {name: Renderer(source, pages) for source, name in pages.items()}
    titles = {name: renderer.title() for name, renderer in renderers.items()}
    index = []
    for name, renderer in renderers.items():
        body = renderer.body()
        index += sections(name, titles[name], body)
        write(out, name, document(name, titles[name], body, titles))
    write(out, "search-index.js", "const sections = " + json.dumps(index, ensure_ascii=False) +
          ";\n")
    write(out, "search.html", document(
        "search.html", "Search", '<h1>Search</h1>\n<p id="count" role="status"></p>\n'
        '<ol id="found"></ol>', titles, ("search-index.js", "search.js")))
    for name in ("style.css", "search.js"):
        shutil.copy(os.path.join(HERE, name), out)
    shutil.copy(os.path.join(ROOT, "docs", "report.png"), out)


if __name__ == "__main__":
    main(sys.argv[1])
