"""The table of servers shows "proved" only where something was compared, and the accounts that it
compares differ wherever a value does."""

import copy
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import account  # noqa: E402
import cells  # noqa: E402
import facts as facts_of_files  # noqa: E402
import page  # noqa: E402

FIXTURES = os.environ["REDOUBT_FIXTURES"]
SOURCE = os.environ["REDOUBT_SOURCE"]
SAMPLE = os.path.join(FIXTURES, "redis-7.0.15", "mixed.json")


def places(value, path=()):
    """The path of each plain value in a tree."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in items:
        if isinstance(part, (dict, list)):
            yield from places(part, (*path, name))
        else:
            yield (*path, name)


def changed(value, path):
    made = copy.deepcopy(value)
    at = made
    for name in path[:-1]:
        at = at[name]
    old = at[path[-1]]
    at[path[-1]] = old + 1 if isinstance(old, int) else (old or "") + "00"
    return made


def row(cell):
    return {job: cell for job in cells.JOBS}


def written(rows):
    about = {name: {"keys": 1, "features": []} for name in rows}
    return page.markdown(page.result(rows, about, "2026-01-01", 1))


class Cells(unittest.TestCase):
    def test_nothing_compared_is_never_proved(self):
        for n in (0, -1):
            with self.assertRaises(cells.NothingCompared):
                cells.Cell("proved", n)
            cell = cells.of(lambda n=n: n)
            self.assertEqual((cell.state, cell.compared), ("failed", 0))
        with self.assertRaises(cells.NothingCompared):
            cells.same([], 0)

    def test_a_number_that_is_missing_is_a_failure(self):
        self.assertEqual(cells.of(lambda: None).state, "failed")

    def test_a_difference_is_a_failure_with_its_reason(self):
        cell = cells.of(lambda: cells.same(["key k: another list"], 100))
        self.assertEqual(cell.state, "failed")
        self.assertIn("another list", cell.reason)

    def test_a_failure_needs_a_reason(self):
        for state in ("failed", "not possible"):
            with self.assertRaises(ValueError):
                cells.Cell(state)

    def test_old_data_alone_proves_nothing_of_a_server(self):
        whole, old = cells.Cell("failed", 0, "no field expiry"), cells.Cell("proved", 5)
        cell = cells.both(whole, old)
        self.assertEqual(cell.state, "failed")
        self.assertIn("no field expiry", cell.reason)


class Page(unittest.TestCase):
    def test_a_job_that_did_not_run_is_in_the_table(self):
        text = written({"redis-8.0.2": {}})
        for job in cells.JOBS:
            self.assertIn(f"| {job} | not run |", text)

    def test_a_result_that_compared_nothing_makes_no_page(self):
        rows = {"redis-8.0.2": row(cells.Cell("proved", 3))}
        made = page.result(rows, {"redis-8.0.2": {"keys": 1, "features": []}}, "2026-01-01", 1)
        made["servers"]["redis-8.0.2"]["jobs"]["read"]["compared"] = 0
        with self.assertRaises(cells.NothingCompared):
            page.markdown(made)

    def test_reasons_are_below_the_table(self):
        rows = {"valkey-9.1.2": {**row(cells.Cell("proved", 7)),
                                 "replay": cells.Cell("failed", 0, "one | key differs")}}
        text = written(rows)
        self.assertIn("| replay | failed (1) |", text)
        self.assertIn("1. Valkey 9.1.2, replay: failed. one \\| key differs", text)

    def test_the_page_in_docs_has_every_job(self):
        with open(os.path.join(SOURCE, "docs", "servers.md"), encoding="utf-8") as file:
            text = file.read()
        for job in cells.JOBS:
            self.assertIn(f"| {job} | ", text)
            self.assertNotIn(f"| {job} | 0 ", text)


class Accounts(unittest.TestCase):
    def setUp(self):
        self.facts = {**facts_of_files.load(SAMPLE), "functions": []}

    def test_an_account_is_equal_to_itself(self):
        problems, keys = account.differences(self.facts, copy.deepcopy(self.facts))
        self.assertEqual(problems, [])
        self.assertEqual(keys, account.count(self.facts))
        self.assertGreater(keys, 0)

    def test_every_change_of_a_value_is_found(self):
        """In each key, one place after the other: all of the small ones, some of the large."""
        entries = self.facts["dbs"]["0"]["entries"]
        for entry in entries:
            value = entry["value"]
            paths = list(places({"v": value})) if not isinstance(value, str) else [("v",)]
            for path in paths[::max(1, len(paths) // 50)]:
                if entry["type"] == "zset" and path[-1] == 1:
                    continue  # the text of a score; its bits are compared
                if path[-1] == "radix_tree_keys":
                    continue  # nodes of the server, not data
                other = {**entry, "value": changed({"v": value}, path)["v"]}
                self.assertIsNotNone(account.difference(entry, other, True), (entry["key"], path))
            self.assertIsNotNone(account.difference(entry, {**entry, "expire_ms": 5}, True))

    def test_missing_and_added_keys_are_found(self):
        other = copy.deepcopy(self.facts)
        gone = other["dbs"]["0"]["entries"].pop()
        problems, keys = account.differences(self.facts, other)
        self.assertEqual(len(problems), 1)
        self.assertEqual(keys, account.count(self.facts) - 1)
        other["dbs"]["3"] = {"entries": [gone]}
        self.assertEqual(len(account.differences(self.facts, other)[0]), 2)

    def test_functions_are_part_of_an_account(self):
        other = {**self.facts, "functions": [{"library": "l", "code_hex": "00"}]}
        self.assertEqual(account.differences(self.facts, other)[0], ["functions differ"])


if __name__ == "__main__":
    unittest.main()
