"""redoubt convert of a snapshot that is made in parts, on two threads: the same bytes, the same
errors and the same counts as in one piece.

A file of 1 MiB or more is converted in parts; a pipe never is.
"""

import json
import os
import random
import re
import subprocess
import tempfile
import unittest

REDOUBT = os.environ.get("REDOUBT", "redoubt")
TARGETS = (
    ("ndjson",),
    ("ndjson", "--meta", "--strings", "base64"),
    ("csv",),
    ("resp",),
    ("resp", "--max-elements", "7", "--max-bytes", "500", "--replace"),
    ("resp", "--restore"),
    ("aof", "--rdb-version", "6", "--lossy"),
    ("resp", "--restore", "--rdb-version", "9", "--lossy"),
    ("ndjson", "--type", "hash", "--db", "3", "--db", "0"),
    ("resp", "--not", "--match", "*1*"),
)


def values(rng):
    """(type, encoding, value) of all shapes, most of them small."""
    def text(most):
        kind = rng.random()
        if kind < 0.3:
            return str(rng.randrange(-10 ** rng.randrange(1, 19), 10 ** rng.randrange(1, 19)))
        if kind < 0.4:
            return "".join(chr(rng.choice((0, 34, 92, 10, 0xe4, 0x20ac, 0x1f600, 65)))
                           for _ in range(rng.randrange(most)))
        return "".join(rng.choice("abcdefgh ") for _ in range(rng.randrange(most)))

    def texts(n, most):
        return list(dict.fromkeys(text(most) for _ in range(n)))

    def score():
        return rng.choice((0, 1, -2, 0.5, 1e300, -1e-7, 3.14, rng.random()))

    for i in range(5200):
        n = rng.choice((1, 3, 30)) if i % 100 else 2000
        shape = i % 13
        if shape < 4:
            yield "string", "string", text(2000 if i % 200 else 300000)
        elif shape < 6:
            yield "list", rng.choice(("quicklist2", "linkedlist")), [text(90) for _ in range(n)]
        elif shape < 8:
            yield "set", rng.choice(("listpack", "hashtable")), texts(n, 40)
        elif shape == 8:
            yield "set", "intset", sorted({str(rng.randrange(1 << rng.choice((14, 30, 60))))
                                           for _ in range(n)}, key=int)
        elif shape < 11:
            pairs = sorted(((score(), m) for m in texts(n, 20)))
            yield "zset", rng.choice(("listpack", "skiplist")), [[m, s] for s, m in pairs]
        else:
            yield "hash", rng.choice(("listpack", "hashtable")), {f: text(60)
                                                                  for f in texts(n, 20)}


def lines():
    """A line for each key, in several databases, and what is beside them."""
    rng = random.Random(20261122)
    yield {"rdb": {"version": 12, "dialect": "redis"}}
    yield {"aux": {"redis-ver": "7.4.0"}}
    yield {"function": "#!lua name=parts\nredis.register_function('f', function() end)"}
    for i, (kind, encoding, value) in enumerate(values(rng)):
        line = {"db": i // 1100, "key": f"key:{i}", "type": kind, "encoding": encoding,
                "value": value}
        if i % 5 == 0:
            line["expire_ms"] = 4102444800000 + i
        if i % 1500 == 1499:
            # Alone longer than a part, and than what is kept of one.
            line.update(type="list", encoding="linkedlist", value=["v" * 90 + str(k)
                                                                   for k in range(14000)])
        # What has no order in the file has none in the lines.
        yield {name: line[name] for name in ("db", "key", "type", "encoding", "expire_ms", "value")
               if name in line}


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="redoubt-parts-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = os.path.join(cls.folder.name, "in.rdb")
        text = "".join(json.dumps(line) + "\n" for line in lines())
        run = subprocess.run([REDOUBT, "convert", "--to", "rdb", "--from", "ndjson", "-", "-o",
                              cls.path], input=text.encode(), stderr=subprocess.PIPE, check=False)
        assert run.returncode == 0, run.stderr
        with open(cls.path, "rb") as f:
            cls.data = f.read()
        assert len(cls.data) > 2 << 20

    def both(self, data, *args):
        """(status, output, errors) in parts and in one piece."""
        path = os.path.join(self.folder.name, "now.rdb")
        with open(path, "wb") as f:
            f.write(data)
        found = []
        for name, stdin in ((path, None), ("-", data)):
            run = subprocess.run([REDOUBT, "convert", "--to", *args, name], input=stdin,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600,
                                 check=False)
            # A file can be looked at again, and then there is a hint; a pipe cannot.
            hint = b"  hint: use redoubt check-rdb for details and to save intact keys\n"
            reported = run.stderr.replace(hint, b"") if stdin is None else run.stderr
            found.append((run.returncode, run.stdout,
                          reported.replace(path.encode(), b"standard input")))
        return found

    def same(self, data, *args):
        parts, whole = self.both(data, *args)
        self.assertEqual(parts[0], whole[0], parts[2])
        self.assertEqual(parts[2], whole[2])
        # Of what a failure follows, buffers keep more or less.
        n = min(len(parts[1]), len(whole[1])) if parts[0] else None
        self.assertTrue(parts[1][:n] == whole[1][:n], f"{len(parts[1])}, {len(whole[1])} bytes")
        return parts


class Whole(Case):
    def test_every_target_is_the_same(self):
        for args in TARGETS:
            with self.subTest(args):
                status, out, _ = self.same(self.data, *args)
                self.assertEqual(status, 0)
                self.assertGreater(len(out), 100)

    def test_a_file_on_standard_input_is_read_from_its_position(self):
        path = os.path.join(self.folder.name, "after.rdb")
        with open(path, "wb") as f:
            f.write(b"x" * 1000 + self.data)
        with open(path, "rb", buffering=0) as f:
            f.seek(1000)
            run = subprocess.run([REDOUBT, "convert", "--to", "resp", "-"], stdin=f,
                                 stdout=subprocess.PIPE, check=True)
        self.assertTrue(run.stdout == self.same(self.data, "resp")[1])

    def test_counts_are_those_of_all_parts(self):
        out = os.path.join(self.folder.name, "out")
        args = ("--to", "resp", "--json", "--force", "-o", out)
        found = []
        for name, stdin in ((self.path, None), ("-", self.data)):
            run = subprocess.run([REDOUBT, "convert", *args, name], input=stdin,
                                 stdout=subprocess.PIPE, check=True)
            found.append(json.loads(run.stdout))
        for name in ("keys", "bytes", "left_out"):
            self.assertEqual(found[0][name], found[1][name])
        self.assertEqual(found[0]["keys"], 5200)

    def test_records_between_and_after_the_keys(self):
        """A function between keys, attributes that are apart from their key, a slot's name."""
        end = self.data.rindex(b"\xff", 0, len(self.data) - 8)
        middle = re.search(rb"\xfe\x02(?:\xfc.{8})?.\x08key:2200", self.data, re.S).start()
        function = b"\xf5\x05#!lua"
        apart = b"\xfc" + (4102444800123).to_bytes(8, "little") + b"\xfa\x01a\x01b"
        slot = b"\xfa\x09slot-info\x0577,1,"
        for extra in (function, apart, slot):
            for at in (end, middle):
                data = self.data[:at] + extra + self.data[at:-8] + bytes(8)
                for args in (TARGETS[0], TARGETS[1], TARGETS[3], TARGETS[5]):
                    with self.subTest((extra, at == end, args)):
                        self.same(data, *args)


class Damaged(Case):
    def test_it_ends_early(self):
        rng = random.Random(7)
        for args in (TARGETS[0], TARGETS[3], TARGETS[2]):
            for _ in range(6):
                data = self.data[:rng.randrange(1 << 20, len(self.data))]
                with self.subTest((args, len(data))):
                    self.assertNotEqual(self.same(data, *args)[0], 0)

    def test_a_byte_is_another(self):
        rng = random.Random(8)
        broken = 0
        for i in range(45):
            data = bytearray(self.data)
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            with self.subTest(i):
                broken += self.same(bytes(data), *TARGETS[i % 6])[0] != 0
        self.assertGreater(broken, 10)


if __name__ == "__main__":
    unittest.main()
