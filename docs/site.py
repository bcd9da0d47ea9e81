#!/usr/bin/env python3
"""Writes the documentation as a static site: site.py OUT.

The pages are README.md, the Markdown pages of this folder, and the manual pages of the tools. No
page has scripts or loads anything from elsewhere. A link to another file of the source is text.
"""

import glob
import html
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*"
                    r"|(!?)\[([^\]]+)\]\(([^)\s]+)\)|\b(redoubt(?:-[a-z-]+)?)\((\d)\)")
MANUAL = re.compile(r"\\(.)|\*((?:\\.|[^*\\])+)\*|(?<!\w)_((?:\\.|[^_\\])+)_(?!\w)")
STYLE = """
:root { color-scheme: light dark; --line: #8884; --code: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 0 auto; padding: 1rem; }
nav { border-bottom: 1px solid var(--line); padding-bottom: .5rem; }
nav a { margin-right: 1rem; }
pre { background: var(--code); padding: .75rem; border-radius: .25rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
code { background: var(--code); padding: 0 .2em; overflow-wrap: anywhere; }
pre code { background: none; padding: 0; }
.table { overflow-x: auto; }
table { border-collapse: collapse; }
td, th { border: 1px solid var(--line); padding: .25rem .5rem; text-align: left;
  vertical-align: top; }
img { max-width: 100%; height: auto; }
h1, h2, h3 { line-height: 1.2; }
"""


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

    def heading(self):
        marks, title = self.lines.pop(0).split(" ", 1)
        name = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        while name in self.ids:
            name += "-"
        self.ids.add(name)
        return f'<h{len(marks)} id="{name}">{self.inline(title)}</h{len(marks)}>'

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
                marks, title = self.lines.pop(0).split(" ", 1)
                yield f"<h{len(marks) + 1}>{html.escape(title)}</h{len(marks) + 1}>"
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

    def page(self):
        manual = self.source.endswith(".scd")
        title = self.lines[0].split(" ")[0] if manual else self.lines[0].lstrip("# ")
        title = title.replace("`", "")
        body = "\n".join(self.manual_page() if manual else self.markdown())
        nav = "".join(f'<a href="{self.to(page)}">{name}</a>' for name, page in
                      (("Redoubt", "index.html"), ("All pages", "pages.html")))
        return document(title, self.to("style.css"), nav, body)


def document(title, style, nav, body):
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<link rel="icon" href="data:,">\n<link rel="stylesheet" href="{style}">\n'
            f"<title>{html.escape(title)}</title>\n</head>\n<body>\n<nav>{nav}</nav>\n"
            f"<main>\n{body}\n</main>\n</body>\n</html>\n")


def write(out, name, text):
    path = os.path.join(out, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main(out):
    pages = sources()
    for source, name in pages.items():
        write(out, name, Renderer(source, pages).page())
    rows = "".join(f'<li><a href="{name}">{html.escape(name[:-5])}</a></li>'
                   for name in sorted(pages.values()))
    write(out, "pages.html", document("All pages", "style.css", '<a href="index.html">Redoubt</a>',
                                      f"<h1>All pages</h1>\n<ul>{rows}</ul>"))
    write(out, "style.css", STYLE.lstrip())
    shutil.copy(os.path.join(HERE, "report.png"), out)


if __name__ == "__main__":
    main(sys.argv[1])
