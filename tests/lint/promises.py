"""SECURITY.md: each promise names tests, and the tests are there."""

import os
import re

import tree


def rows():
    """Promise and tests of each row."""
    found = []
    for line in tree.read("SECURITY.md").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 2 and cells[0] not in ("promise", "vulnerability",
                                                                             "---"):
            found.append((cells[0], re.findall(r"`([^`]+)`", cells[1])))
    return found


def test_files():
    for folder, _, names in os.walk(os.path.join(tree.ROOT, "tests")):
        for name in names:
            if name.endswith((".c", ".py")):
                yield os.path.join(folder, name)


class Promises(tree.Lint):
    def test_every_promise_names_a_test(self):
        promises = rows()
        self.assertGreater(len(promises), 10)
        self.none([promise for promise, tests in promises if not tests])

    def test_every_test_that_is_named_is_there(self):
        files = list(test_files())
        names = {os.path.basename(path) for path in files}
        texts = []
        for path in files:
            with open(path, encoding="utf-8") as f:
                texts.append(f.read())
        every = "\n".join(texts)
        wrong = []
        for _, tests in rows():
            for test in tests:
                pattern = rf"def {test}\(|Test\(\w+, {test}[,)]"
                if test not in names and not re.search(pattern, every):
                    wrong.append(f"SECURITY.md: {test}")
        self.none(wrong)
