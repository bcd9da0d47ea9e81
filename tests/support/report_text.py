"""Reports as they were before their lines were broken to fit 80 columns."""

import re

COLUMNS = 80
WORD = re.compile(r'\S*"(?:\\.|[^"\\])*"\S*|\S+(?: \(0x\S+)?')


def unwrapped(text):
    """A line is the rest of the one before it if it begins with what did not fit there."""
    lines, width = [], 0
    for line in text.split("\n"):
        rest = line.lstrip(" ")
        indent = len(line) - len(rest)
        word = WORD.match(rest)
        if lines and word and indent in (2, 13) and width + 1 + len(word[0]) > COLUMNS:
            lines[-1] += " " + rest
        else:
            lines.append(line)
        width = len(line)
    return "\n".join(lines)
