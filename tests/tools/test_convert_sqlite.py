"""redoubt convert --to sqlite: every value of every fixture is found again by query."""

import base64
import contextlib
import json
import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import hexfile  # noqa: E402
import manifest  # noqa: E402
import test_modules  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")


def run(*args, feed=None):
    return subprocess.run([REDOUBT, *args], capture_output=True, input=feed, check=False)


def raw(cell):
    """The bytes of a cell: text is UTF-8."""
    return cell.encode() if isinstance(cell, str) else cell


def b64(cell):
    return None if cell is None else base64.b64encode(raw(cell)).decode()


def number(score):
    """A score as lines have it."""
    if score is None:
        return "nan"
    if score in (float("inf"), float("-inf")):
        return "inf" if score > 0 else "-inf"
    return score


def stream_id(ms, seq):
    return f"{ms % (1 << 64)}-{seq % (1 << 64)}"


class Database:
    """What a database has, as lines of JSON with --strings base64 have it."""

    def __init__(self, path):
        self.db = sqlite3.connect(path)

    def close(self):
        self.db.close()

    def rows(self, sql, *args):
        return self.db.execute(sql, args).fetchall()

    def string(self, key):
        (row,) = self.rows("SELECT value FROM strings WHERE key = ?", key)
        return b64(row[0])

    def list(self, key):
        return [b64(v) for v, in
                self.rows("SELECT value FROM list_elements WHERE key = ? ORDER BY id", key)]

    def set(self, key):
        return [b64(v) for v, in
                self.rows("SELECT member FROM set_members WHERE key = ? ORDER BY id", key)]

    def zset(self, key):
        return [[b64(m), number(s)] for m, s in
                self.rows("SELECT member, score FROM zset_members WHERE key = ? ORDER BY id", key)]

    def array(self, key):
        return [[p, b64(v)] for p, v in
                self.rows("SELECT position, value FROM array_items WHERE key = ? ORDER BY id", key)]

    def hash(self, key):
        found = {}
        for field, value, path in self.rows(
                "SELECT field, value, path FROM hash_fields WHERE key = ? ORDER BY id", key):
            into = found if path is None else found.setdefault(b64(path), {})
            into[b64(field)] = b64(value)
        return found

    def field_expiries(self, key):
        return {b64(field): ms for field, ms in self.rows(
            "SELECT field, expire_ms FROM hash_fields WHERE key = ? AND expire_ms IS NOT NULL",
            key)}

    def groups(self, key, keeps_read):
        found = []
        for name, ms, seq, read in self.rows(
                "SELECT name, last_ms, last_seq, entries_read FROM stream_groups WHERE key = ? "
                "ORDER BY id", key):
            group = {"name": b64(name), "last_id": stream_id(ms, seq)}
            if keeps_read:
                group["entries_read"] = read
            pending = self.rows(
                "SELECT ms, seq, entry_id, consumer, delivery_ms, delivery_count, nacked FROM "
                "stream_pending WHERE key = ? AND group_name = ? ORDER BY id", key, name)
            group["pending"] = [{"id": entry, "consumer": b64(c), "delivery_ms": when,
                                 "delivery_count": count}
                                for _, _, entry, c, when, count, _ in pending]
            for ms, seq, entry, *_ in pending:
                assert entry == stream_id(ms, seq)
            group["consumers"] = []
            for consumer, seen, active in self.rows(
                    "SELECT name, seen_ms, active_ms FROM stream_consumers WHERE key = ? AND "
                    "group_name = ? ORDER BY id", key, name):
                group["consumers"].append({"name": b64(consumer), "seen_ms": seen})
                if active is not None:
                    group["consumers"][-1]["active_ms"] = active
            nacked = [row[2] for row in pending if row[6]]
            if nacked:
                group["nacked"] = nacked
            found.append(group)
        return found

    def producers(self, key):
        found = {}
        for name, iid, ms, seq in self.rows(
                "SELECT name, iid, ms, seq FROM stream_producers WHERE key = ? ORDER BY id", key):
            ids = found.setdefault(b64(name), [])
            if iid is not None:
                ids.append([b64(iid), stream_id(ms, seq)])
        return [{"name": name, "ids": ids} for name, ids in found.items()]

    def stream(self, key, encoding):
        ((length, last, first_ms, first_seq, del_ms, del_seq, added, duration, most, iids,
          duplicates),) = self.rows(
            "SELECT length, last_id, first_ms, first_seq, max_deleted_ms, max_deleted_seq, "
            "entries_added, idmp_duration, idmp_max_size, iids_added, iids_duplicates "
            "FROM streams WHERE key = ?", key)
        entries = []
        for entry, name, n in self.rows(
                "SELECT id, entry_id, n_fields FROM stream_entries WHERE key = ? ORDER BY id", key):
            fields = self.rows("SELECT field, value FROM stream_fields WHERE entry = ? AND "
                               "key = ? ORDER BY id", entry, key)
            assert len(fields) == n
            entries.append({"id": name, "fields": [[b64(f), b64(v)] for f, v in fields]})
        value = {"entries": entries, "length": length, "last_id": last}
        if first_ms is not None:
            value |= {"first_id": stream_id(first_ms, first_seq),
                      "max_deleted_id": stream_id(del_ms, del_seq), "entries_added": added}
        value["groups"] = self.groups(key, encoding != "stream_listpacks")
        if duration is not None:
            value["idmp"] = {"duration": duration, "max_size": most,
                             "producers": self.producers(key), "iids_added": iids,
                             "iids_duplicates": duplicates}
        return value

    def value(self, key, kind, encoding):
        if kind == "stream":
            return self.stream(key, encoding)
        return {"string": self.string, "list": self.list, "set": self.set, "zset": self.zset,
                "hash": self.hash, "array": self.array}[kind](key)

    def lines(self):
        """(line without module values and slots, module or None)"""
        for key, db, name, kind, encoding, expire, idle, freq, meta in self.rows(
                "SELECT id, db, name, type, encoding, expire_ms, idle_s, freq, metadata FROM keys "
                "ORDER BY id"):
            line = {"db": db, "key": b64(name), "type": kind, "encoding": encoding}
            if expire is not None:
                line["expire_ms"] = expire
            if idle is not None:
                line["idle_s"] = idle
            if freq is not None:
                line["freq"] = freq
            if meta is not None:
                line["key_meta"] = meta.hex()
            module = None
            if kind == "module":
                (module,) = self.rows("SELECT module, version, value, json, decoded FROM modules "
                                      "WHERE key = ?", key)
            else:
                line["value"] = self.value(key, kind, encoding)
                expiries = self.field_expiries(key) if kind == "hash" else {}
                if expiries:
                    line["field_expire_ms"] = expiries
            yield line, module


@contextlib.contextmanager
def stored(data):
    """(path of a file with these bytes, path for a database)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in.rdb")
        with open(path, "wb") as f:
            f.write(data)
        yield path, os.path.join(folder, "keys.db")


@contextlib.contextmanager
def converted(data, *args):
    """The database of a snapshot."""
    with stored(data) as (path, out):
        done = run("convert", *args, path, "-o", out)
        assert done.returncode == 0, done.stderr
        database = Database(out)
        try:
            yield database
        finally:
            database.close()


def lines_of(text):
    for line in text.splitlines():
        line = json.loads(line)
        line.pop("slot", None)
        yield line


def fixtures():
    """(path, bytes) of every snapshot."""
    for row in manifest.read(FIXTURES).values():
        path = os.path.join(FIXTURES, row.path)
        if row.kind == "rdb-hex":
            yield row.path, hexfile.load(path)
        elif row.kind == "rdb":
            with open(path, "rb") as f:
                yield row.path, f.read()


class Fixtures(unittest.TestCase):
    maxDiff = None

    def compare_module(self, line, found):
        module, version, value, text, decoded = found
        self.assertEqual((module, version), (line["value"]["module"], line["value"]["version"]))
        self.assertEqual(len(value), line["value"]["size"])
        known = "value" if "kind" in line["value"] else None
        self.assertEqual(decoded, int(text is not None))
        if text is not None:
            self.assertEqual(json.loads(text), line["value"])
        elif known is not None:
            self.assertTrue(line["value"]["opaque"])

    def compare(self, text, database, plain):
        n = 0
        for line, (found, module) in zip(lines_of(text), database.lines(), strict=True):
            n += 1
            if module is not None:
                self.compare_module(plain[n - 1], module)
                line.pop("value")
            self.assertEqual(found, line)
        return n

    def test_every_value_is_found_again(self):
        keys = kinds = 0
        for name, data in fixtures():
            with self.subTest(name), stored(data) as (path, out):
                lines = run("convert", "--to", "ndjson", "--strings", "base64", path)
                done = run("convert", "--to", "sqlite", path, "-o", out)
                self.assertEqual(done.returncode, lines.returncode, done.stderr)
                if done.returncode != 0:
                    self.assertFalse(os.path.exists(out))
                    self.assertEqual(os.listdir(os.path.dirname(path)), ["in.rdb"])
                    self.assertEqual(done.stderr, lines.stderr)
                    continue
                plain = run("convert", "--to", "ndjson", path)
                database = Database(out)
                self.assertEqual(database.rows("PRAGMA integrity_check"), [("ok",)])
                keys += self.compare(lines.stdout, database, list(lines_of(plain.stdout)))
                kinds += 1
                database.close()
        self.assertGreater(kinds, 100)
        self.assertGreater(keys, 2000)

    def test_memory_and_sizes_are_those_of_stat(self):
        compared = 0
        for name, data in fixtures():
            with self.subTest(name), stored(data) as (path, out):
                if run("convert", "--to", "sqlite", path, "-o", out).returncode != 0:
                    continue
                rows = run("stat", "--csv", "--exact", path)
                self.assertEqual(rows.returncode, 0, rows.stderr)
                database = Database(out)
                found = database.rows("SELECT type, memory, elements FROM keys ORDER BY id")
                expected = []
                for row in rows.stdout.decode(errors="replace").splitlines()[1:]:
                    cells = row.rsplit(",", 5)
                    expected.append((row.split(",")[1], int(cells[1]), int(cells[3])))
                self.assertEqual([r for r in found if r[0] != "module"],
                                 [r for r in expected if r[0] != "module"])
                compared += len(found)
                database.close()
        self.assertGreater(compared, 2000)

    def test_what_is_beside_the_keys_is_kept(self):
        kinds = set()
        for name, data in fixtures():
            with self.subTest(name), stored(data) as (path, out):
                if run("convert", path, "-o", out).returncode != 0:
                    continue
                meta = [json.loads(line) for line in
                        run("convert", "--to", "ndjson", "--meta", path).stdout.splitlines()]
                database = Database(out)
                rows = database.rows("SELECT kind, name, value FROM records ORDER BY id")
                kinds.update(kind for kind, _, _ in rows)
                aux = [next(iter(m["aux"].items())) for m in meta if "aux" in m]
                self.assertEqual(
                    [(raw(n).decode(errors="surrogateescape"),
                      raw(v).decode(errors="surrogateescape"))
                     for kind, n, v in rows if kind == "aux"], aux)
                code = [m["function"] for m in meta if "function" in m]
                self.assertEqual([raw(v).decode(errors="surrogateescape")
                                  for kind, _, v in rows if kind == "function"], code)
                self.assertEqual(
                    [n for kind, n, _ in rows if kind == "module-aux"],
                    [m["module_aux"]["module"] for m in meta if "module_aux" in m])
                for kind, _, value in rows:
                    if kind in ("module-aux", "slot-import"):
                        self.assertIsInstance(value, bytes)
                        self.assertIn(value, data)
                version = meta[0]["rdb"]
                self.assertEqual(rows[0], ("rdb", version["dialect"], str(version["version"])))
                database.close()
        self.assertLessEqual({"rdb", "aux", "function", "module-aux", "slot-import"}, kinds)


def snapshot(lines):
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    done = run("convert", "--input-format", "ndjson", "--to", "rdb", "-", feed=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


def surrogates(data):
    return data.decode("utf-8", "surrogateescape")


class Values(unittest.TestCase):
    def test_text_is_text_and_bytes_are_bytes(self):
        values = [b"", b"plain", "gr\u00fc\u00df dich \u20ac \U0001f600".encode(), b"nul\0inside",
                  b"\xff\xfe", b"12345", b"-1", b"long " * 40000, b"\x80" * 200000,
                  "\u00e4".encode() * 100000, b"a" + "\u20ac".encode() * 70000, b"\xed\xa0\x80",
                  b"\xc0\x80", b"\xf4\x90\x80\x80", b"eight by" * 3 + b"\xe2\x82"]
        data = snapshot({"db": 0, "key": f"k{i}", "type": "string", "value": surrogates(v)}
                        for i, v in enumerate(values))
        with converted(data) as database:
            for i, value in enumerate(values):
                with self.subTest(i):
                    ((cell,),) = database.rows(
                        "SELECT value FROM strings_named WHERE name = ?", f"k{i}")
                    self.assertEqual(raw(cell), value)
                    try:
                        is_text = b"\0" not in value and value.decode() is not None
                    except UnicodeDecodeError:
                        is_text = False
                    self.assertEqual(isinstance(cell, str), is_text)

    def test_long_fields_and_values_in_every_order(self):
        sizes = (3, 70000, 200000)
        hashes = {f"{a}/{b}": (surrogates(bytes([97 + a % 7]) * a),
                               surrogates(bytes([128 + b % 7]) * b))
                  for a in sizes for b in sizes}
        data = snapshot({"db": 0, "key": key, "type": "hash", "encoding": "hashtable",
                         "value": {"first": "1", field: value, "last": "2"}}
                        for key, (field, value) in hashes.items())
        with converted(data) as database:
            for key, (field, value) in hashes.items():
                rows = database.rows("SELECT field, value FROM hash_fields_named WHERE name = ?",
                                     key)
                self.assertEqual([(raw(f), raw(v)) for f, v in rows],
                                 [(b"first", b"1"),
                                  (field.encode("utf-8", "surrogateescape"),
                                   value.encode("utf-8", "surrogateescape")), (b"last", b"2")])

    def test_scores(self):
        scores = {"a": 1.5, "b": "inf", "c": "-inf", "d": -3, "e": 1e300, "f": 0.1}
        data = snapshot([{"db": 3, "key": "z", "type": "zset",
                          "value": [[m, s] for m, s in scores.items()]}])
        with converted(data) as database:
            found = dict(database.rows("SELECT member, score FROM zset_members_named WHERE db = 3"))
            self.assertEqual(found, {m: float(s) for m, s in scores.items()})

    def test_ids_of_streams_beyond_the_signed_numbers(self):
        top = (1 << 64) - 1
        data = snapshot([{"db": 0, "key": "s", "type": "stream", "value": {
            "entries": [{"id": f"{top}-{top}", "fields": [["f", "v"]]}], "length": 1,
            "last_id": f"{top}-{top}", "groups": []}}])
        with converted(data) as database:
            self.assertEqual(database.rows("SELECT entry_id FROM stream_entries_named"),
                             [(f"{top}-{top}",)])
            self.assertEqual(database.rows("SELECT last_id FROM streams"), [(f"{top}-{top}",)])

    def test_slots(self):
        data = snapshot({"db": 0, "key": key, "type": "string", "value": "v"}
                        for key in ("foo", "{user}1", "{user}2"))
        with converted(data) as database:
            slots = dict(database.rows("SELECT name, slot FROM keys"))
            self.assertEqual(slots["foo"], 12182)
            self.assertEqual(slots["{user}1"], slots["{user}2"])

    def test_a_document_may_say_of_itself_what_it_wants(self):
        """Only a value of a module that has no known form is not decoded."""
        texts = ('{"opaque":true}', '{"a":1,"opaque":true}', '{"a":{"opaque":true}}')
        values = {text: test_modules.value("ReJSON-RL", 3, [test_modules.string(text)])
                  for text in texts}
        values["other"] = test_modules.value("ReJSON-RL", 4, [test_modules.string(b"\0")])
        with converted(test_modules.snapshot(values)) as database:
            rows = database.rows("SELECT name, decoded, json FROM modules_named")
            self.assertEqual([row[:2] for row in rows],
                             [(text, 1) for text in texts] + [("other", 0)])
            for name, _, text in rows[:-1]:
                self.assertEqual(json.loads(text)["json"], json.loads(name))
            self.assertIsNone(rows[-1][2])

    def test_the_rows_of_a_key_are_found_without_reading_the_table(self):
        data = snapshot({"db": 0, "key": f"h{i}", "type": "hash", "value": {"f": str(i)}}
                        for i in range(100))
        with converted(data) as database:
            plan = database.rows("EXPLAIN QUERY PLAN SELECT * FROM hash_fields_named "
                                 "WHERE name = 'h7'")
            steps = [row[3] for row in plan]
            self.assertEqual([step.split()[0] for step in steps], ["SCAN", "SEARCH"])
            self.assertEqual(database.rows("SELECT value FROM hash_fields_named WHERE name='h7'"),
                             [("7",)])


class Parts(unittest.TestCase):
    """A file of 1 MiB or more is converted in parts, a pipe is not: the same rows."""

    def many(self):
        rng = random.Random(17)
        for i in range(30000):
            shape = i % 6
            line = {"db": i // 20000, "key": f"key:{i}"}
            texts = [f"{rng.random()}" * rng.choice((1, 1, 9)) for _ in range(rng.randrange(1, 5))]
            if i % 7000 == 5:
                texts = [f"m{n}" * 40000 for n in range(3)]
            if shape == 0:
                line |= {"type": "string", "value": texts[0]}
            elif shape == 1:
                line |= {"type": "list", "value": texts}
            elif shape == 2:
                line |= {"type": "set", "encoding": "hashtable", "value": texts}
            elif shape == 3:
                line |= {"type": "zset", "value": [[t, n] for n, t in enumerate(texts)]}
            elif shape == 4:
                line |= {"type": "hash", "value": {t: str(n) for n, t in enumerate(texts)}}
            else:
                line |= {"type": "stream", "value": {
                    "entries": [{"id": f"{n + 1}-0", "fields": [["f", t]]}
                                for n, t in enumerate(texts)],
                    "length": len(texts), "last_id": f"{len(texts)}-0", "groups": []}}
            if i % 5 == 0:
                line["expire_ms"] = 4102444800000 + i
            yield line

    def test_the_same_rows(self):
        data = snapshot(self.many())
        self.assertGreater(len(data), 2 << 20)
        tables = ("keys", "strings", "list_elements", "set_members", "zset_members", "hash_fields",
                  "streams", "stream_entries", "stream_fields", "records")
        with converted(data) as parts, tempfile.TemporaryDirectory() as folder:
            piped = run("convert", "--to", "sqlite", "-", feed=data)
            self.assertEqual(piped.returncode, 0, piped.stderr)
            with open(os.path.join(folder, "piped.db"), "wb") as f:
                f.write(piped.stdout)
            whole = Database(f.name)
            for database in (parts, whole):
                self.assertEqual(database.rows("PRAGMA integrity_check"), [("ok",)])
            for table in tables:
                self.assertEqual(parts.rows(f"SELECT * FROM {table} ORDER BY id"),
                                 whole.rows(f"SELECT * FROM {table} ORDER BY id"), table)
            whole.close()


class Output(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "in.rdb")
        with open(self.path, "wb") as f:
            f.write(snapshot([{"db": 0, "key": "k", "type": "string", "value": "v"}]))

    def out(self, name="keys.db"):
        return os.path.join(self.folder.name, name)

    def test_the_name_chooses_the_format(self):
        for name in ("a.db", "a.sqlite", "a.DB"):
            self.assertEqual(run("convert", self.path, "-o", self.out(name)).returncode, 0)
            with open(self.out(name), "rb") as f:
                self.assertEqual(f.read(16), b"SQLite format 3\0")

    def test_an_output_that_exists_stays(self):
        with open(self.out(), "wb") as f:
            f.write(b"mine")
        done = run("convert", self.path, "-o", self.out())
        self.assertEqual(done.returncode, 2)
        with open(self.out(), "rb") as f:
            self.assertEqual(f.read(), b"mine")
        self.assertEqual(run("convert", "--force", self.path, "-o", self.out()).returncode, 0)
        self.assertEqual(sqlite3.connect(self.out()).execute(
            "SELECT value FROM strings").fetchall(), [("v",)])

    def test_only_who_reads_the_input_reads_the_output(self):
        os.chmod(self.path, 0o600)
        self.assertEqual(run("convert", self.path, "-o", self.out()).returncode, 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.out()).st_mode), 0o600)

    def test_a_compressed_output(self):
        self.assertEqual(run("convert", self.path, "-o", self.out("a.db.gz")).returncode, 0)
        subprocess.run(["gzip", "-d", self.out("a.db.gz")], check=True)
        self.assertEqual(sqlite3.connect(self.out("a.db")).execute(
            "SELECT name, value FROM strings_named").fetchall(), [("k", "v")])

    def test_a_full_disk(self):
        done = run("convert", "--to", "sqlite", self.path, "-o", "/dev/full")
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"No space left", done.stderr)

    def test_a_file_that_may_not_grow(self):
        with open(self.path, "wb") as f:
            f.write(snapshot([{"db": 0, "key": "k", "type": "string", "value": "v" * 3000000}]))
        done = subprocess.run(["sh", "-c", f'ulimit -f 900; trap "" XFSZ; exec "{REDOUBT}" convert '
                               f'"{self.path}" -o "{self.out()}"'], capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(b"File too large", done.stderr)
        self.assertEqual(os.listdir(self.folder.name), ["in.rdb"])

    def test_filters_and_json(self):
        done = run("convert", "--json", "--match", "k", self.path, "-o", self.out())
        about = json.loads(done.stdout)
        self.assertEqual((about["keys"], about["format"], about["bytes"]),
                         (1, "sqlite", os.path.getsize(self.out())))
        self.assertEqual(run("convert", "--match", "x", self.path,
                             "-o", self.out("b.db")).returncode, 1)
        self.assertFalse(os.path.exists(self.out("b.db")))

    def test_a_log(self):
        log = self.out("appendonly.aof")
        with open(log, "wb") as f:
            for words in (("SET", "a", "1"), ("HSET", "h", "f", "v"), ("INCR", "a")):
                f.write(b"*%d\r\n" % len(words)
                        + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
        done = run("convert", log, "-o", self.out())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sqlite3.connect(self.out()).execute(
            "SELECT value FROM strings").fetchall(), [("2",)])


if __name__ == "__main__":
    unittest.main()
