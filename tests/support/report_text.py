"""Reports as they were before their lines were broken to fit 80 columns."""

import re

COLUMNS = 80
# What a line of two blanks begins with if it is not a rest: a label, or the place of a record.
BEGIN = re.compile(r"[a-z]+(?: [a-z]+)?  |unverified |\d+ \(0x[0-9a-f]+\)  ")
WORD = re.compile(r'\S*"(?:\\.|[^"\\])*"\S*|\S+(?: \(0x\S+)?')


def unwrapped(text):
    """A line is the rest of the one before it if it begins with what did not fit there."""
    lines, width = [], 0
    for line in text.split("\n"):
        rest = line.lstrip(" ")
        indent = len(line) - len(rest)
        word = WORD.match(rest)
        is_rest = indent == 13 or indent == 2 and not BEGIN.match(rest)
        if lines and word and is_rest and width + 1 + len(word[0]) > COLUMNS:
            lines[-1] += " " + rest
        else:
            lines.append(line)
        width = len(line)
    return "\n".join(lines)
