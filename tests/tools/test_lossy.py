"""--lossy of convert and merge: everything that is not in the output is named, with the reason.

On standard error the first omissions and the counts by reason, with --json every one of them.
"""

import json
import os
import subprocess
import tempfile
import unittest

REDOUBT = os.environ.get("REDOUBT", "redoubt")
LATER = 4102444800000
STREAM = {"entries": [], "length": 0, "last_id": "0-0", "groups": []}


def redoubt(tool, *args, stdin=None):
    return subprocess.run([REDOUBT, tool, *args], input=stdin, capture_output=True, check=False)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="redoubt-lossy-")
        self.addCleanup(self.dir.cleanup)
        self.out = os.path.join(self.dir.name, "out")

    def snapshot(self, lines, name="in.rdb"):
        path = os.path.join(self.dir.name, name)
        text = "\n".join(json.dumps(line) for line in lines).encode()
        run = redoubt("convert", "--to", "rdb", "-", "-o", path, "--force", stdin=text)
        self.assertEqual(run.returncode, 0, run.stderr)
        return path

    def reported(self, tool, *args):
        run = redoubt(tool, "--json", "--lossy", *args, "-o", self.out, "--force")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout), run.stderr.decode()


def hash_line(name, field="f"):
    return {"db": 0, "key": name, "type": "hash", "value": {field: "v", "kept": "v"},
            "field_expire_ms": {field: LATER}}


class Convert(Case):
    def test_every_key_is_named_for_every_target(self):
        path = self.snapshot([hash_line("h"), {"db": 2, "key": "s", "type": "stream",
                                               "value": STREAM},
                              {"db": 2, "key": "t", "type": "string", "value": "x"}])
        lacks = {
            ("rdb", "--rdb-version", "8"): ("expiry of a field: RDB version 8 (Redis 4.0) has none",
                                            "stream: RDB version 8 (Redis 4.0) has none"),
            ("resp", "--for", "redis-4.0"): ("expiry of a hash field: the server has no HPEXPIREAT",
                                             "stream: the server has no XADD"),
            ("resp", "--restore", "--for", "redis-4.0"): (
                "expiry of a field: RDB version 8 (Redis 4.0) has none",
                "stream: RDB version 8 (Redis 4.0) has none"),
        }
        for target, (field, stream) in lacks.items():
            with self.subTest(target):
                reported, text = self.reported("convert", "--to", *target, path)
                self.assertEqual(reported["left_out"], 2)
                self.assertEqual(reported["omitted"], [
                    {"what": "field-expiry", "reason": field, "db": 0, "key": "h", "type": "hash",
                     "element": "f"},
                    {"what": "key", "reason": stream, "db": 2, "key": "s", "type": "stream"}])
                self.assertEqual(reported["omitted_by_reason"], [
                    {"what": "field-expiry", "reason": field, "count": 1},
                    {"what": "key", "reason": stream, "count": 1}])
                self.assertIn(f'omitted: expiry of field "f" of hash "h" in db 0: {field}\n', text)
                self.assertIn(f'omitted: stream "s" in db 2: {stream}\n', text)
                self.assertIn(f"omitted: 1 hash field expiry ({field})\n", text)
                self.assertIn(f"omitted: 1 key ({stream})\n", text)

    def test_a_hint_names_the_option_and_what_it_would_omit(self):
        path = self.snapshot([hash_line("h")])
        run = redoubt("convert", "--to", "rdb", "--for", "redis-7.0", path, "-o", self.out)
        self.assertEqual(run.returncode, 4)
        self.assertIn(b"expiry of a field: RDB version 10 (Redis 7.0) has none", run.stderr)
        self.assertIn(b"hint: --lossy omits what redis-7.0 cannot hold, here this hash field "
                      b"expiry, and names each omission\n", run.stderr)

    def test_nothing_omitted_is_an_empty_list(self):
        path = self.snapshot([{"db": 0, "key": "s", "type": "string", "value": "x"}])
        reported, text = self.reported("convert", "--to", "rdb", "--rdb-version", "7", path)
        self.assertEqual((reported["left_out"], reported["omitted"], reported["omitted_by_reason"]),
                         (0, [], []))
        self.assertEqual(text, "")

    def test_the_first_names_are_shown_and_the_others_counted(self):
        path = self.snapshot([hash_line(f"h{i}") for i in range(1234)])
        _, text = self.reported("convert", "--to", "rdb", "--rdb-version", "11", path)
        lines = text.splitlines()
        self.assertEqual(len(lines), 12)
        for i in range(10):
            self.assertIn(f'of hash "h{i}" in db 0: ', lines[i])
        self.assertTrue(lines[10].endswith("omitted: … and 1,224 more"), lines[10])
        self.assertIn("omitted: 1,234 hash field expiries (", lines[11])

    def test_names_cannot_control_the_terminal(self):
        path = self.snapshot([hash_line("h\x1b[2J\u009b\u202e", "f\n\x1b")])
        reported, text = self.reported("convert", "--to", "rdb", "--rdb-version", "11", path)
        self.assertNotRegex(text.replace("\n", ""), "[\x00-\x1f\x7f-\x9f\u202e]")
        self.assertEqual((reported["omitted"][0]["key"], reported["omitted"][0]["element"]),
                         ("h\x1b[2J\u009b\u202e", "f\n\x1b"))

    def test_a_file_in_parts_on_two_threads_is_reported_in_its_order(self):
        # More than 1 MiB, and more omissions than fit in the memory of the sort.
        keys = [f"key:{i:06}" for i in range(40000)]
        path = self.snapshot([hash_line(key) for key in keys])
        self.assertGreater(os.path.getsize(path), 1 << 20)
        reported, text = self.reported("convert", "--to", "resp", "--for", "redis-7.0", path)
        self.assertEqual([o["key"] for o in reported["omitted"]], keys)
        self.assertEqual(reported["left_out"], len(keys))
        shown = [line for line in text.splitlines() if "of hash" in line]
        self.assertEqual([f'"{key}"' in line for key, line in zip(keys, shown)], [True] * 10)
        self.assertEqual([r["count"] for r in reported["omitted_by_reason"]], [len(keys)])


class Merge(Case):
    def test_an_omission_names_its_input(self):
        a = self.snapshot([hash_line("a")], "a.rdb")
        b = self.snapshot([hash_line("b"), hash_line("c")], "b.rdb")
        reported, text = self.reported("merge", "--rdb-version", "11", a, b)
        self.assertEqual([(o["file"], o["key"]) for o in reported["omitted"]],
                         [(a, "a"), (b, "b"), (b, "c")])
        self.assertEqual(reported["left_out"], 3)
        self.assertIn(f'of hash "b" in db 0 of {b}: expiry', text)
        self.assertIn("omitted: 3 hash field expiries (", text)


if __name__ == "__main__":
    unittest.main()
