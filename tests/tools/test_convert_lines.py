"""redoubt convert: lines of JSON back into snapshots, tables of keys, and commands.

The program is $REDOUBT, the files are under $REDOUBT_FIXTURES. A real server takes the commands in
tests/oracle.
"""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import test_convert as basics  # noqa: E402
from no_leaks import NO_LEAKS  # noqa: E402

convert, of_fixture = basics.convert, basics.of_fixture
FORMS = ("utf8", "hex", "base64")
PIECE = 1 << 16


def line(**members):
    return (json.dumps({"db": 0, **members}, separators=(",", ":")) + "\n").encode()


def measured(argv):
    """The exit status of a program and the most memory that it had, in bytes."""
    pid = os.posix_spawn(argv[0], argv, os.environ)
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10


def joined(data):
    """Commands, with those in a row that add to one collection joined."""
    at, found = 0, []
    while at < len(data):
        args = []
        end = data.index(b"\r\n", at)
        count, at = int(data[at + 1:end]), end + 2
        for _ in range(count):
            end = data.index(b"\r\n", at)
            size = int(data[at + 1:end])
            args.append(data[end + 2:end + 2 + size])
            at = end + 2 + size + 2
        if args[0] in (b"RPUSH", b"SADD", b"ZADD", b"HSET") and found[-1][:2] == args[:2]:
            found[-1] += args[2:]
        else:
            found.append(args)
    return found


def without_slots(lines):
    """A snapshot made of lines names no slots: the sizes that belong to them are not known."""
    return re.sub(rb',"slot":[0-9]+', b"", lines)


class Back(unittest.TestCase):
    maxDiff = 2000

    def there_and_back(self, stem, form):
        first = convert("--to", "ndjson", "--strings", form, stem + ".rdb")
        dialect, _ = basics.version_of(stem + ".rdb")
        made = convert("--to", "rdb", "--from", "ndjson", "--strings", form,
                       *(["--for", "valkey-9"] if dialect == "valkey" else []), "-",
                       stdin=first.stdout)
        if made.returncode == 4:
            self.assertIn(b"the value of a module", made.stderr)
            self.assertIn(b"while reading module", made.stderr)
            return False
        self.assertEqual((made.returncode, made.stderr), (0, b""))
        again = convert("--to", "ndjson", "--strings", form, "-", stdin=made.stdout, env=NO_LEAKS)
        self.assertEqual((again.returncode, again.stderr), (0, b""))
        self.assertTrue(without_slots(first.stdout) == again.stdout, "the lines differ")
        return True

    def test_lines_read_back_give_the_same_lines(self):
        """Each file in one form: the same contents are there from many servers."""
        n = 0
        for i, stem in enumerate(basics.described_snapshots()):
            form = FORMS[i % len(FORMS)]
            with self.subTest(f"{basics.name_of(stem)} in {form}"):
                n += self.there_and_back(stem, form)
        self.assertGreater(n, 30)

    def test_lines_about_the_file_are_read_back(self):
        n = 0
        for stem in basics.described_snapshots():
            _, version = basics.version_of(stem + ".rdb")
            first = of_fixture("--to", "ndjson", "--meta", stem + ".rdb")
            if version < 6 or b'"module' in first.stdout or b"pre_ga" in first.stdout:
                continue
            with self.subTest(basics.name_of(stem)):
                made = convert("--to", "rdb", "-", stdin=first.stdout)
                self.assertEqual((made.returncode, made.stderr), (0, b""))
                again = convert("--to", "ndjson", "--meta", "-", stdin=made.stdout, env=NO_LEAKS)
                self.assertTrue(without_slots(first.stdout) == without_slots(again.stdout),
                                "the lines differ")
                n += 1
        self.assertGreater(n, 10)

    def test_lines_become_commands_as_the_snapshot_does(self):
        for stem in basics.described_snapshots():
            lines = of_fixture("--to", "ndjson", stem + ".rdb")
            if b'"type":"module"' in lines.stdout or b'"fields":' in lines.stdout:
                continue
            with self.subTest(basics.name_of(stem)):
                direct = convert("--to", "resp", "--lossy", stem + ".rdb")
                by_lines = convert("--to", "resp", "--from", "ndjson", "--lossy", "-",
                                   stdin=lines.stdout)
                self.assertEqual(by_lines.returncode, 0, by_lines.stderr)
                if b"FUNCTION" not in direct.stdout:
                    same = joined(direct.stdout) == joined(by_lines.stdout)
                    self.assertTrue(same, "the commands differ")

    def test_members_may_come_in_any_order_and_the_writer_may_choose_the_encoding(self):
        text = (b'{ "value" : ["b" ,\n "a"], "type": "x"}')
        run = convert("--to", "rdb", "-", stdin=text)
        self.assertEqual(run.returncode, 1)
        text = b'{"type":"hash","key":"k","field_expire_ms":{"b":7},"value":{"a":"1","b":"2"}}'
        run = convert("--to", "rdb", "-", stdin=text)
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        run = convert("--to", "ndjson", "-", stdin=run.stdout)
        self.assertEqual(json.loads(run.stdout)["value"], {"a": "1", "b": "2"})
        self.assertEqual(json.loads(run.stdout)["field_expire_ms"], {"b": 7})

    def test_a_stream_need_not_say_what_its_entries_say(self):
        entries = [{"id": i, "fields": [["f", "v"]]} for i in ("1-1", "7-3")]
        numbers = {"length": 2, "last_id": "7-3"}
        offsets = {"first_id": "1-1", "max_deleted_id": "0-0", "entries_added": 2}
        for encoding, rest in (("stream_listpacks", numbers),
                               ("stream_listpacks_2", {**numbers, **offsets}),
                               ("stream_listpacks_3", {**numbers, **offsets})):
            reported = {"entries": entries, **rest, "groups": []}
            for left_out in [{name} for name in rest] + [{"groups"}, set(rest)]:
                said = {k: v for k, v in reported.items() if k not in left_out}
                with self.subTest(encoding=encoding, left_out=left_out):
                    made = convert("--to", "rdb", "-", stdin=line(
                        key="s", type="stream", encoding=encoding, value=said))
                    self.assertEqual((made.returncode, made.stderr), (0, b""))
                    again = convert("--to", "ndjson", "-", stdin=made.stdout)
                    self.assertEqual(json.loads(again.stdout)["value"], reported)

    def test_escapes_of_any_json_writer_are_read(self):
        text = b'{"key":"\\u006b","type":"string","value":"\\ud83d\\ude00\\/\\udcff\\u0000\\n"}'
        run = convert("--to", "ndjson", "-", stdin=text)
        self.assertEqual(run.stdout.split(b'"value":')[1],
                         '"😀/\\udcff\\u0000\\n"}\n'.encode())

    def test_what_is_wrong_is_named_with_its_line_and_byte(self):
        good = line(key="k", type="string", value="v")
        for bad, what, status in (
            (b"[1]", b"'{' expected", 1),
            (b'{"db":0,"key":"k"}', b"key without a value", 1),
            (b'{"key":"k","type":"set","nodes":3}', b"unknown member", 1),
            (b'{"key":"k","type":"strong","value":"v"}', b"unknown type", 1),
            (b'{"key":"k","type":"set","encoding":"skiplist","value":[]}', b"unknown encoding", 1),
            (b'{"key":"k","type":"set","encoding":"intset","value":["a"]}', b"no integer", 1),
            (b'{"key":"k","type":"zset","value":[["a","x"]]}', b"score expected", 1),
            (b'{"key":"k","type":"string","value":"\\ud800x"}', b"unpaired surrogate", 1),
            (b'{"key":"k","type":"string","value":"\x01"}', b"control character", 1),
            (b'{"key":"k","type":"string","value":"v', b"is cut off", 1),
            (b'{"key":"k","type":"hash","value":{"a":"1"},"field_expire_ms":{"b":1}}',
             b"names a field that is not", 1),
            (b'{"key":"k","type":"module","value":{}}', b"the value of a module", 4),
            (b'{"db":99999999999999999999}', b"not a 64-bit number", 1),
        ):
            run = convert("--to", "rdb", "-", stdin=good + bad)
            self.assertEqual(run.returncode, status, (bad, run.stderr))
            self.assertIn(what, run.stderr)
            if b"expiry" not in what and b"no integer" not in what:
                self.assertIn(b"line 2", run.stderr)

    def test_a_line_of_any_length_needs_little_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "in.ndjson")
            for encoding in ("quicklist2", "linkedlist"):
                with open(path, "wb") as f:
                    f.write(b'{"key":"k","type":"list","encoding":"%s","value":["0"'
                            % encoding.encode())
                    for i in range(45):
                        f.write(b"".join(b',"an element, number %d"' % (i * 9999 + j)
                                         for j in range(PIECE)))
                    f.write(b"]}\n")
                self.assertGreater(os.path.getsize(path), 76 << 20)
                argv = [shutil.which(basics.REDOUBT), "convert", "--to", "rdb", path, "-o",
                        os.path.join(folder, "out.rdb"), "--force"]
                status, memory = measured(argv)
                self.assertEqual(status, 0)
                self.assertLess(memory, 64 << 20)

    def test_long_strings_come_back_whole(self):
        text = "é\\\n" * 2000000
        for members in ({"type": "string", "value": text},
                        {"type": "list", "value": ["a", text, "b"]},
                        {"type": "zset", "value": [[text, 1.5]]},
                        {"type": "hash", "value": {text: "v", "f": text}}):
            first = line(key="k", **members)
            run = convert("--to", "rdb", "-", stdin=first)
            self.assertEqual((run.returncode, run.stderr), (0, b""))
            run = convert("--to", "ndjson", "-", stdin=run.stdout)
            self.assertEqual(json.loads(run.stdout)["value"], members["value"])


class Table(unittest.TestCase):
    def test_every_key_has_a_row(self):
        n = 0
        for stem in basics.described_snapshots():
            with self.subTest(basics.name_of(stem)):
                lines = of_fixture("--to", "ndjson", stem + ".rdb").stdout.split(b"\n")[:-1]
                run = convert("--to", "csv", stem + ".rdb")
                self.assertEqual(run.returncode, 0, run.stderr)
                basics.check_left_out(self, stem, run.stderr)
                rows = list(csv.reader(io.StringIO(run.stdout.decode(), newline="")))
                self.assertEqual(",".join(rows[0]), "db,key,type,encoding,elements,bytes,expire_ms")
                self.assertEqual(len(rows), len(lines) + 1)
                for row, text in zip(rows[1:], lines):
                    self.row(row, json.loads(text))
                n += len(lines)
        self.assertGreater(n, 100)

    def row(self, row, reported):
        self.assertEqual(json.loads(f'"{row[1]}"'), reported["key"])
        self.assertEqual([row[0], row[2], row[3]],
                         [str(reported["db"]), reported["type"], reported["encoding"]])
        self.assertEqual(row[6], str(reported.get("expire_ms", "")))
        value = reported["value"]
        if reported["type"] in ("list", "set", "zset", "hash"):
            self.assertEqual(int(row[4]), len(value))
        elif reported["type"] == "stream":
            self.assertEqual(int(row[4]), len(value["entries"]))


class Commands(unittest.TestCase):
    def test_what_commands_cannot_make_is_refused_or_left_out(self):
        n = 0
        for stem in basics.described_snapshots():
            if os.path.basename(stem) != "module":
                continue
            run = convert("--to", "resp", stem + ".rdb")
            self.assertEqual(run.returncode, 4)
            self.assertIn(b"module", run.stderr)
            run = convert("--to", "resp", "--lossy", stem + ".rdb")
            self.assertEqual(run.returncode, 0)
            self.assertIn(b"omitted:", run.stderr)
            n += 1
        self.assertGreater(n, 0)

    def test_a_long_element_goes_through_in_pieces(self):
        text = b"x" * 3000000
        lines = line(key="k", type="list", value=["a", text.decode(), "b"])
        run = convert("--to", "resp", "-", stdin=lines)
        want = [[b"SELECT", b"0"], [b"RPUSH", b"k", b"a"], [b"RPUSH", b"k", text],
                [b"RPUSH", b"k", b"b"]]
        resp = b"".join(b"*%d\r\n" % len(c) + b"".join(b"$%d\r\n%b\r\n" % (len(a), a) for a in c)
                        for c in want)
        self.assertTrue(run.stdout == resp, run.stdout[:100])

    def test_fields_that_expire_are_reported_and_refused_where_the_server_has_none(self):
        lines = line(key="k", type="hash", value={"a": "1", "b": "2"}, field_expire_ms={"b": 77})
        run = convert("--to", "resp", "-", stdin=lines)
        self.assertEqual(joined(run.stdout)[-1],
                         [b"HPEXPIREAT", b"k", b"77", b"FIELDS", b"1", b"b"])
        run = convert("--to", "resp", "--rdb-version", "10", "-", stdin=lines)
        self.assertEqual(run.returncode, 4)
        self.assertIn(b'hash "k"', run.stderr)
        run = convert("--to", "resp", "--rdb-version", "10", "--lossy", "-", stdin=lines)
        self.assertEqual(run.returncode, 0)
        self.assertIn(b"omitted: 1 hash field expiry", run.stderr)


if __name__ == "__main__":
    unittest.main()
