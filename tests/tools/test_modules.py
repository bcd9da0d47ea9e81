"""Values of modules: shown by their published forms, opaque where they differ, always copied.

The snapshots are composed byte by byte from the forms that docs/format/modules.md describes.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fake_server import crc64  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def length(n):
    if n < 64:
        return bytes([n])
    if n < 1 << 14:
        return struct.pack(">H", 1 << 14 | n)
    return b"\x81" + struct.pack(">Q", n)


def uint(n):
    return b"\x02" + length(n)


def sint(n):
    return b"\x01" + length(n & (1 << 64) - 1)


def double(v):
    return b"\x04" + struct.pack("<d", v)


def string(s):
    s = s.encode() if isinstance(s, str) else s
    return b"\x05" + length(len(s)) + s


def integer_string(n):
    """A string that the server stored as an integer of 8 bits."""
    return b"\x05\xc0" + struct.pack("<b", n)


def value(name, version, items):
    ident = version
    for i, c in enumerate(name):
        ident |= LETTERS.index(c) << (58 - 6 * i)
    return b"\x81" + struct.pack(">Q", ident) + b"".join(items) + b"\x00"


def snapshot(values, version=11):
    body = b"".join(b"\x07" + length(len(k)) + k.encode() + v for k, v in values.items())
    return b"REDIS%04d" % version + b"\xfe\x00" + body + b"\xff" + bytes(8)


TREE = [uint(0x20), uint(5),
        uint(0x80), string("n"), uint(0x01),
        uint(0x80), string("list"), uint(0x40), uint(3),
        uint(0x08), sint(-5), uint(0x04), double(1.5), uint(0x40), uint(0),
        uint(0x80), string("s\u202e"), uint(0x02), string("t\"\n"),
        uint(0x80), string("yes"), uint(0x10), integer_string(1),
        uint(0x80), string("o"), uint(0x20), uint(1), uint(0x80), string("no"), uint(0x10),
        string("0")]
TREE_JSON = {"n": None, "list": [-5, 1.5, []], "s\u202e": "t\"\n", "yes": True,
             "o": {"no": False}}

BLOOM = [uint(3), uint(2), uint(1), uint(2),
         uint(100), double(0.01), uint(7), double(9.5), uint(1024), uint(10), string(bytes(128)),
         uint(2),
         uint(200), double(0.005), uint(8), double(10.5), uint(2048), uint(11), string(bytes(256)),
         uint(1)]

TIME_SERIES = [string("temp"), uint(86400000), uint(4096), uint(0), uint(1700000000000),
               double(21.5), uint(9), uint(2), uint(1), string("raw"), uint(10), double(0.5),
               uint(2), string("room"), string("1"), string("unit"), string("C"),
               uint(0), uint(1), uint(4096), string(bytes(64))]

VECTORS = [uint(2), uint(2), uint(1 | 16 << 8), uint(3),
           uint(4), string(bytes(32)),
           string("a"), string('{"y":1}'), string(b"\x01\x02"), uint(3), uint(1), uint(2), uint(3),
           string("b"), string(""), string(b"\x03\x04"), uint(0)]

# name, encoding version, items, what is shown without module, version and size
KNOWN = {
    "tree": ("ReJSON-RL", 0, TREE, {"kind": "JSON", "json": TREE_JSON}),
    "json2": ("ReJSON-RL", 2, [string('{"a": [1, 2]}'), uint(1), string("i"), string("p")],
              {"kind": "JSON", "json": {"a": [1, 2]}}),
    "json3": ("ReJSON-RL", 3, [string(' {"a" :\n"\u00e9\\u00e9 x\u202e",\t"b":[ ]} ')],
              {"kind": "JSON", "json": {"a": "\u00e9\u00e9 x\u202e", "b": []}}),
    "number": ("ReJSON-RL", 3, [integer_string(7)], {"kind": "JSON", "json": 7}),
    "no-json": ("ReJSON-RL", 3, [string("{]\n")], {"kind": "JSON", "json_text": "{]\n"}),
    "json4": ("ReJSON-RL", 4, [string(b"\x00\x01")], {"kind": "JSON", "opaque": True}),
    "bloom": ("MBbloom--", 4, BLOOM, {
        "kind": "Bloom filter", "items": 3, "n_filters": 2, "options": 1, "expansion": 2,
        "filters": [
            {"capacity": 100, "error_rate": 0.01, "hashes": 7, "bits_per_item": 9.5, "bits": 1024,
             "log2_bits": 10, "bytes": 128, "items": 2},
            {"capacity": 200, "error_rate": 0.005, "hashes": 8, "bits_per_item": 10.5,
             "bits": 2048, "log2_bits": 11, "bytes": 256, "items": 1}]}),
    "bloom0": ("MBbloom--", 0, [uint(1), uint(1), uint(100), double(0.01), uint(7), double(9.5),
                                string(bytes(119)), uint(1)], {
        "kind": "Bloom filter", "items": 1, "n_filters": 1,
        "filters": [{"capacity": 100, "error_rate": 0.01, "hashes": 7, "bits_per_item": 9.5,
                     "bytes": 119, "items": 1}]}),
    "cuckoo": ("MBbloomCF", 4, [uint(1), uint(512), uint(3), uint(1), uint(2), uint(20), uint(1),
                                uint(512), string(bytes(1024))], {
        "kind": "Cuckoo filter", "n_filters": 1, "buckets": 512, "items": 3, "deletes": 1,
        "bucket_size": 2, "max_iterations": 20, "expansion": 1,
        "filters": [{"buckets": 512, "bytes": 1024}]}),
    "cuckoo3": ("MBbloomCF", 3, [uint(1), uint(512), uint(3), string(bytes(1024))], {
        "kind": "Cuckoo filter", "n_filters": 1, "buckets": 512, "items": 3,
        "filters": [{"bytes": 1024}]}),
    "cms": ("CMSk-TYPE", 0, [uint(10), uint(5), uint(42), string(bytes(200))], {
        "kind": "count-min sketch", "width": 10, "depth": 5, "count": 42, "bytes": 200}),
    "topk": ("TopK-TYPE", 0, [uint(2), uint(8), uint(7), double(0.9), string(bytes(448)),
                              string(bytes(48)), string(b"foo\0"), string(b"\0")], {
        "kind": "top-k", "k": 2, "width": 8, "depth": 7, "decay": 0.9, "counter_bytes": 448,
        "heap_bytes": 48, "items": ["foo", ""]}),
    "tdigest": ("TDIS-TYPE", 0, [double(100), double(float("-inf")), double(9.5), sint(610),
                                 sint(2), sint(0), sint(1), double(2), double(0), double(1),
                                 double(9.5), double(1), double(1)], {
        "kind": "t-digest", "compression": 100, "min": "-inf", "max": 9.5, "capacity": 610,
        "merged_nodes": 2, "unmerged_nodes": 0, "compressions": 1, "merged_weight": 2,
        "unmerged_weight": 0, "means": [1, 9.5], "weights": [1, 1]}),
    "ts": ("TSDB-TYPE", 9, TIME_SERIES, {
        "kind": "time series", "series": "temp", "retention_ms": 86400000, "chunk_bytes": 4096,
        "options": 0, "last_ms": 1700000000000, "last_value": 21.5, "samples": 9,
        "duplicate_policy": 2, "source": "raw", "ignore_max_ms": 10, "ignore_max_difference": 0.5,
        "labels": [{"name": "room", "value": "1"}, {"name": "unit", "value": "C"}],
        "n_rules": 0}),
    "ts0": ("TSDB-TYPE", 0, [string("t"), uint(0), uint(360), uint(0), uint(0), uint(1), uint(5),
                             double(1)], {
        "kind": "time series", "series": "t", "retention_ms": 0, "chunk_bytes": 360, "labels": [],
        "n_rules": 0}),
    "vectors": ("vectorset", 0, VECTORS, {
        "kind": "vector set", "dimension": 2, "n_items": 2, "configuration": 4097,
        "input_dimension": 4, "projection_bytes": 32,
        "items": [{"name": "a", "attributes": '{"y":1}', "vector_bytes": 2},
                  {"name": "b", "attributes": "", "vector_bytes": 2}]}),
    "vectors0": ("vectorset", 0, [uint(2), uint(0), uint(0), uint(0)], {
        "kind": "vector set", "dimension": 2, "n_items": 0, "configuration": 0, "items": []}),
    "later": ("TSDB-TYPE", 10, [uint(1)], {"kind": "time series", "opaque": True}),
    "unknown": ("corpusMod", 1, [uint(1), string("x")], {}),
}


class Modules(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "modules.rdb")

    def write(self, values):
        with open(self.path, "wb") as f:
            f.write(snapshot({k: value(*v[:3]) for k, v in values.items()}))

    def run_tool(self, *args):
        run = subprocess.run([REDOUBT, *args], capture_output=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def lines(self, *options):
        out = self.run_tool("convert", "--to", "ndjson", *options, self.path)
        return [json.loads(line) for line in out.splitlines()]

    def test_values_are_shown_as_what_they_are(self):
        self.write(KNOWN)
        shown = {line["key"]: line["value"] for line in self.lines()}
        self.assertEqual(list(shown), list(KNOWN))
        for key, (name, version, items, want) in KNOWN.items():
            size = len(value(name, version, items))
            self.assertEqual(shown[key], {"module": name, "version": version, **want,
                                          "size": size}, key)

    def test_control_characters_in_documents_are_escaped(self):
        self.write(KNOWN)
        out = self.run_tool("convert", "--to", "ndjson", self.path).decode()
        self.assertNotRegex(out.replace("\n", ""), "[\x00-\x1f\x7f-\x9f\u202e]")
        self.assertIn("\u00e9", out)

    def test_strings_in_hex_leave_documents_as_json(self):
        self.write(KNOWN)
        shown = {bytes.fromhex(line["key"]).decode(): line["value"]
                 for line in self.lines("--strings=hex")}
        self.assertEqual(shown["json3"]["json"], KNOWN["json3"][3]["json"])
        self.assertEqual(shown["tree"]["json"], TREE_JSON)
        self.assertEqual(shown["vectors"]["items"][0]["name"], b"a".hex())

    def test_a_long_document_is_a_string(self):
        text = json.dumps(["x" * 1000] * 1100)
        self.write({"long": ("ReJSON-RL", 3, [string(text)])})
        line, = self.lines()
        self.assertEqual(line["value"]["json_text"], text)

    def test_deep_documents_do_not_end_the_program(self):
        deep = [uint(0x40), uint(1)] * 300 + [uint(0x01)]
        self.write({"deep": ("ReJSON-RL", 0, deep), "text": ("ReJSON-RL", 3, [
            string("[" * 300 + "]" * 300)]), "after": ("ReJSON-RL", 3, [string("1")])})
        deep, text, after = self.lines()
        self.assertTrue(deep["value"]["opaque"])
        self.assertEqual(text["value"]["json_text"], "[" * 300 + "]" * 300)
        self.assertEqual(after["value"]["json"], 1)

    def test_values_of_another_form_are_opaque_and_never_break_a_line(self):
        rng = random.Random(7)
        values, n = {}, 0
        for name, version, items, _ in KNOWN.values():
            for _ in range(60):
                changed = list(items)
                at = rng.randrange(len(changed))
                action = rng.randrange(4)
                if action == 0:
                    changed[at] = rng.choice([uint(rng.randrange(300)), double(2.5), sint(-1),
                                              string("\"{"), uint((1 << 64) - 1)])
                elif action == 1:
                    del changed[at:]
                elif action == 2:
                    del changed[at]
                else:
                    changed.insert(at, rng.choice(items))
                values[f"k{n}"] = (name, version, changed)
                n += 1
        self.write(values)
        lines = self.lines()
        self.assertEqual([line["key"] for line in lines], list(values))
        for line in lines:
            name, version, items = values[line["key"]]
            self.assertEqual(line["value"]["size"], len(value(name, version, items)))
        self.assertTrue(any("opaque" in line["value"] for line in lines))

    def test_stat_counts_them_by_type(self):
        self.write(KNOWN)
        reported = json.loads(self.run_tool("stat", "--json", self.path))
        found = {m["module"]: (m["kind"], m["keys"]) for m in reported["modules"]}
        self.assertEqual(found["ReJSON-RL"], ("JSON", 6))
        self.assertEqual(found["MBbloom--"], ("Bloom filter", 2))
        self.assertEqual(found["corpusMod"], (None, 1))
        self.assertEqual(sum(keys for _, keys in found.values()), len(KNOWN))
        text = self.run_tool("stat", self.path).decode()
        self.assertRegex(text, r"\n    JSON +6 ")
        self.assertRegex(text, r"\n    corpusMod +1 ")

    def test_types_beyond_the_table_are_counted_together(self):
        self.write({f"k{i}": (f"Module-{LETTERS[i]}0", 1, [uint(1)]) for i in range(40)})
        reported = json.loads(self.run_tool("stat", "--json", self.path))["modules"]
        self.assertEqual([m["keys"] for m in reported], [1] * 32 + [8])
        self.assertIsNone(reported[-1]["module"])

    def test_values_are_copied_byte_by_byte(self):
        self.write(KNOWN)
        with open(self.path, "rb") as f:
            given = f.read()
        copy = self.run_tool("convert", "--to", "rdb", self.path)
        self.assertEqual(copy[:-8], given[:-8])
        copy = self.run_tool("convert", "--to", "rdb", "--match", "bloom*", self.path)
        for key in ("bloom", "bloom0"):
            self.assertIn(value(*KNOWN[key][:3]), copy)


def ident(name, version):
    return value(name, version, [])[1:9]


class Salvage(unittest.TestCase):
    """A server refuses a whole file because of one type that it does not know, so salvage writes
    no value whose type may be damaged bytes."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, data=None):
        path = os.path.join(self.folder.name, name)
        if data is not None:
            with open(path, "wb") as f:
                f.write(data)
        return path

    def types(self, path):
        run = subprocess.run([REDOUBT, "convert", "--to", "ndjson", path], capture_output=True,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        return {line["key"]: (line["value"]["module"], line["value"]["version"])
                for line in lines if line["type"] == "module"}

    def salvage(self, data, *options):
        """What the report says, the types in the output, and those among the doubtful keys."""
        out, doubtful = self.path("out.rdb"), self.path("doubtful.rdb")
        if os.path.exists(doubtful):
            os.unlink(doubtful)
        run = subprocess.run([REDOUBT, "check-rdb", "--json", "--force", "--salvage", out,
                              "--doubtful", doubtful, *options, self.path("in.rdb", data)],
                             capture_output=True, check=False)
        self.assertIn(run.returncode, (0, 1, 8), run.stderr)
        said = json.loads(run.stdout)["files"][0]["salvage"]
        return said, self.types(out), self.types(doubtful) if os.path.exists(doubtful) else {}

    def test_no_type_is_invented(self):
        rng, found = random.Random(3), 0
        for name in ("redis-8.0.6/vectors.rdb", "redis-7.0.15/module.rdb"):
            with open(os.path.join(FIXTURES, name), "rb") as f:
                whole = f.read()
            types = set(self.types(os.path.join(FIXTURES, name)).values())
            for turn in range(30):
                at, n = rng.randrange(100, len(whole) - 100), rng.randrange(1, 30)
                new = (rng.randbytes(n), bytes(n), b"")[turn % 3]
                _, kept, _ = self.salvage(whole[:at] + new + whole[at + n:])
                self.assertLessEqual(set(kept.values()), types, (name, at, n))
                found += len(kept)
        self.assertGreater(found, 60)

    def test_a_damaged_type_is_left_out_by_name(self):
        names = [f"k{i}" for i in range(6)]
        data = snapshot({name: value("corpusMod", 1, [uint(5), string("x")]) for name in names})
        at = data.index(b"k3") + 3
        for changed, why in ((ident("corpusMoe", 1), "module-unknown"),
                             (ident("corpusMod", 2), "module-unknown"), (bytes(8), None)):
            said, kept, doubtful = self.salvage(data[:at] + changed + data[at + 8:-8] +
                                                bytes([1]) * 8)
            self.assertEqual(list(kept), [n for n in names if n != "k3"], changed)
            self.assertEqual(said["keys"], 5)
            if why is None:
                self.assertEqual([(d["key"], d["why"]) for d in said["dropped"]],
                                 [("k3", "module-unknown")])
                continue
            self.assertEqual(list(doubtful), ["k3"])
            self.assertEqual([(d["key"], d["left_out"]) for d in said["doubtful"]
                              if why in d["doubts"]], [("k3", True)])
            self.assertEqual(said["keys_left_out"], 1)

    def test_a_type_that_is_published_or_proved_stays(self):
        for other, kept in ((value("MBbloom--", 4, BLOOM), True),
                            (value("vectorset", 0, VECTORS), True),
                            (value("vectorset", 1, VECTORS), False),
                            (value("AAAAAAAAA", 9, [uint(1)]), False),
                            (value("corpusMod", 1, [uint(1)]), False)):
            data = snapshot({"a": value("TopK-TYPE", 0, []), "k": other})
            said, found, _ = self.salvage(data[:-8] + bytes([1]) * 8)
            self.assertEqual("k" in found, kept, other[:9])
            self.assertEqual(said["keys"], 1 + kept)
            number = b"\x81" + bytes(7) + b"\x09" in other
            _, found, _ = self.salvage(data)  # no checksum, and nothing else is wrong
            self.assertEqual("k" in found, not number, other[:9])

    def test_a_matching_checksum_proves_every_type(self):
        data = snapshot({"a": value("corpusMod", 1, [uint(1)]), "k": value("AAAAAAAAA", 9, [])})
        data = data[:-8] + struct.pack("<Q", crc64(data[:-8]))
        _, found, _ = self.salvage(data)
        self.assertEqual(found, {"a": ("corpusMod", 1), "k": ("AAAAAAAAA", 9)})
        wrong = bytearray(data)
        wrong[len(data) // 2] ^= 4  # the checksum says which byte
        _, found, _ = self.salvage(bytes(wrong))
        self.assertEqual(list(found), ["a", "k"])

    def test_records_beside_the_keys_prove_and_are_proved(self):
        def aux(name, version):
            return b"\xf7" + value(name, version, [])[:9] + b"\x02\x02" + b"\x05\x01x" + b"\x00"
        key = b"\x07\x01a" + value("corpusMod", 1, [uint(1)])
        plain = b"".join(b"\x00\x03k%02d\x01v" % i for i in range(20))
        for before, after, want, n in (((aux("corpusMod", 1),), key, ["a"], 1),
                                       ((aux("corpusMoe", 1),), key, [], 0),
                                       ((aux("corpusMod", 1),) * 2, b"", [], 2),
                                       ((aux("ft_index0", 25),), b"", [], 1)):
            data = (b"REDIS0011" + b"".join(before) + b"\xfe\x00" + plain + after + b"\xff"
                    + bytes([1]) * 8)
            said, found, _ = self.salvage(data)
            self.assertEqual(list(found), want, before)
            with open(self.path("out.rdb"), "rb") as f:
                self.assertEqual(f.read().count(before[0]), n)
            self.assertEqual([r["why"] for r in said["ranges"]], ["module-unknown"] * (n == 0))


if __name__ == "__main__":
    unittest.main()
