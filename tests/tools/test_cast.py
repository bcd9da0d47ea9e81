"""docs/example/who-changed-this-key.cast is what docs/cast.py records now, apart from the times."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["REDOUBT_SOURCE"]


def read(path):
    """The first line, and the events."""
    with open(path, encoding="utf-8") as file:
        head, *events = [json.loads(line) for line in file]
    return head, events


def masked(path):
    """What is on the screen, with words for the times and places of the recording."""
    head, events = read(path)
    text = "".join(text for _, _, text in events)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "DATE", text)
    return head, re.sub(r"\b1:\d+", "PLACE", text)


class Cast(unittest.TestCase):
    maxDiff = None

    def test_it_is_as_the_program_records_it(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "new.cast")
            subprocess.run([sys.executable, os.path.join(SOURCE, "docs", "cast.py"), out],
                           check=True)
            kept = os.path.join(SOURCE, "docs", "example", "who-changed-this-key.cast")
            self.assertEqual(masked(out), masked(kept))

    def test_it_fits_its_terminal(self):
        head, events = read(os.path.join(SOURCE, "docs", "example", "who-changed-this-key.cast"))
        self.assertEqual(head["version"], 2)
        text = "".join(text for _, _, text in events)
        for line in re.sub(r"\x1b\[[0-9;]*m", "", text).split("\r\n"):
            self.assertLessEqual(len(line), head["width"])
        self.assertEqual([w for w, _, _ in events], sorted(w for w, _, _ in events))


if __name__ == "__main__":
    unittest.main()
