"""Writes into a guide what its commands print now, where it differs: rewrite.py PAGE.

The environment is that of the tests. Replace the parts that vary by "…" in the result.
"""

import os
import sys

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "../support")]

import page
import worlds
from machine import Machine


def main(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    name = os.path.splitext(os.path.basename(path))[0]
    at = 0
    with Machine() as machine:
        worlds.prepare(machine, name.lower())
        for step, output, status in machine.printed(page.steps(text)):
            command = "$ " + step.text.replace("\n", "\n> ") + "\n"
            at = text.index(command, at) + len(command)
            if page.difference(step.output, output) is not None:
                old = "".join(line + "\n" for line in step.output)
                text = text[:at] + output + text[at + len(old):]
            if status != step.status:
                print(f"exit status {status}: {step.text}", file=sys.stderr)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main(sys.argv[1])
