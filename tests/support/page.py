"""The commands of a documentation page, and what the page says that they print.

A page has fenced blocks:

    ```console
    $ redoubt check-rdb dump.rdb    # exit status 1
    dump.rdb: damaged at byte …
    ```

A command begins with "$ " and continues on lines that begin with "> ". The lines below it are its
output, on both streams. "…" is any text within a line; a line that is only "…" is any number of
lines. A command that fails says so in a comment at its end. A block whose first line names a file
after the language, as in "```ini /etc/redoubt/redoubt.conf", is that file. Blocks without a
language are not run.
"""

import difflib
import re

FENCE = re.compile(r"^(```+)([^\n]*)\n(.*?)^\1[ ]*$", re.M | re.S)
STATUS = re.compile(r"# exit status (\d+)$")


class Command:
    def __init__(self, text, output):
        self.text = text
        self.output = output
        found = STATUS.search(text)
        self.status = int(found.group(1)) if found else 0


class File:
    def __init__(self, path, text):
        self.path = path
        self.text = text


def console(block):
    """Yields the commands of one console block."""
    text, output = None, []
    for line in block.splitlines():
        if line.startswith("$ "):
            if text is not None:
                yield Command(text, output)
            text, output = line[2:], []
        elif line.startswith("> ") and text is not None and not output:
            text += "\n" + line[2:]
        else:
            if text is None:
                raise ValueError(f"output without a command: {line}")
            output.append(line)
    if text is not None:
        yield Command(text, output)


def steps(markdown):
    """The commands and files of a page, in order."""
    found = []
    for _, info, body in FENCE.findall(markdown):
        words = info.split()
        if words == ["console"]:
            found += console(body)
        elif len(words) == 2:
            found.append(File(words[1], body))
    return found


def plain_blocks(markdown):
    """What is shown and not run."""
    return [body for _, info, body in FENCE.findall(markdown) if not info.strip()]


# Reports break their lines to fit a terminal. Where depends on the names of files, which are longer
# here than on the machine of the page.
WRAP = re.compile(r"\n(?:\\ ){13}(?!\\ )|\n(?:\\ ){2}(?!\\ )|(?<!\\ )\\ (?!\\ )")
BREAK = r"(?: |\n {2}|\n {13})"


def pattern(lines):
    """A regular expression for the lines of an output."""
    parts = []
    for line in lines:
        if line == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append("[^\n]*?".join(re.escape(p) for p in line.rstrip().split("…")) + "\n")
    return WRAP.sub(lambda _: BREAK, "".join(parts))


def difference(lines, printed):
    """None where a command printed these lines, else a text that shows the difference."""
    printed = [line.rstrip() for line in printed.splitlines()]
    if re.fullmatch(pattern(lines), "".join(line + "\n" for line in printed)):
        return None
    return "\n".join(difflib.unified_diff(lines, printed, "page", "printed", lineterm="", n=99))
