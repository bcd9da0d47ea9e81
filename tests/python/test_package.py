"""The package redoubt: what it reads is what the tools print; damaged files raise Error; nothing
leaks. REDOUBT_EXTENSION is the extension that was built."""

import base64
import gc
import importlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE = os.environ["REDOUBT_SOURCE"]
FIXTURES = os.environ["REDOUBT_FIXTURES"]
REDOUBT = os.environ["REDOUBT"]

sys.path.insert(0, os.path.join(SOURCE, "tests", "support"))
import captures  # noqa: E402
import hexfile  # noqa: E402
import manifest  # noqa: E402


def package():
    """A folder with the package as it is installed."""
    folder = tempfile.mkdtemp()
    inner = os.path.join(folder, "redoubt")
    shutil.copytree(os.path.join(SOURCE, "python", "redoubt"), inner)
    shutil.copy(os.environ["REDOUBT_EXTENSION"], inner)
    return folder


PACKAGE = package()
unittest.addModuleCleanup(shutil.rmtree, PACKAGE)
sys.path.insert(0, PACKAGE)
redoubt = importlib.import_module("redoubt")


def run(*args):
    return subprocess.run([REDOUBT, *args], capture_output=True, check=False)


def fixtures():
    """(path, bytes) of every snapshot."""
    for row in manifest.read(FIXTURES).values():
        path = os.path.join(FIXTURES, row.path)
        if row.kind == "rdb-hex":
            yield row, hexfile.load(path)
        elif row.kind == "rdb":
            with open(path, "rb") as f:
                yield row, f.read()


def plain(value):
    """A value as a line of JSON has it, with strings in base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        text = repr(value)
        return text if text in ("inf", "-inf", "nan") else value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, set):
        return sorted(plain(item) for item in value)
    if isinstance(value, dict):
        return {key if isinstance(key, str) else plain(key): plain(item)
                for key, item in value.items()}
    return value


def expected(line):
    """The value of a line, as far as the package has it."""
    value = line["value"]
    if line["type"] == "set":
        return sorted(set(value))
    if line["type"] == "array":
        return dict(value)
    if line["type"] == "stream":
        value.pop("idmp", None)
        value["entries"] = [[entry["id"], entry["fields"]] for entry in value["entries"]]
        for group in value["groups"]:
            group.setdefault("entries_read", None)
            nacked = set(group.pop("nacked", ()))
            for pending in group["pending"]:
                if pending["id"] in nacked:
                    pending["nacked"] = True
    return value


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, data, name="dump.rdb"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return path


class Snapshots(Case):
    maxDiff = None

    def compare(self, key, line):
        self.assertEqual((key.db, plain(key.name), key.type, key.encoding),
                         (line["db"], line["key"], line["type"], line["encoding"]))
        self.assertEqual((key.expires_ms, key.idle_s, key.freq),
                         (line.get("expire_ms"), line.get("idle_s"), line.get("freq")))
        if key.type == "module":
            self.assertEqual((key.value.version, key.size),
                             (line["value"]["version"], line["value"]["size"]))
            return
        self.assertEqual(plain(key.value) if key.type != "array" else
                         {index: plain(item) for index, item in key.value.items()},
                         expected(line))
        self.assertEqual(plain(key.field_expires_ms), line.get("field_expire_ms"))

    def test_the_values_of_all_fixtures(self):
        files = keys = 0
        for row, data in fixtures():
            with self.subTest(row.path):
                path = self.file(data)
                lines = run("convert", "--to", "ndjson", "--strings", "base64", path)
                found, error = [], None
                try:
                    for key in redoubt.open(path):
                        found.append(key)
                except redoubt.Error as e:
                    error = e
                text = lines.stderr.decode()
                if re.search("after the snapshot|follows? the snapshot|a log follows", text):
                    continue  # the tools also look at what follows
                self.assertEqual(error is None, lines.returncode == 0, text)
                if error is not None:
                    self.assertIn(error.reason, text)
                    offset = re.search(r"at byte (\d+)", text)
                    self.assertEqual(error.offset, int(offset[1]) if offset else error.offset)
                    continue
                rows = [json.loads(line) for line in lines.stdout.splitlines()]
                self.assertEqual(len(found), len(rows))
                for key, line in zip(found, rows):
                    self.compare(key, line)
                files += 1
                keys += len(found)
                self.assertEqual([(k.db, k.name, k.value) for k in
                                  redoubt.open(path, values=False)],
                                 [(k.db, k.name, None) for k in found])
        self.assertGreater(files, 100)
        self.assertGreater(keys, 2000)

    def test_bytes_and_compressed_files(self):
        path = os.path.join(FIXTURES, "redis-7.0.15", "cluster.rdb")
        with open(path, "rb") as f:
            data = f.read()
        whole = list(redoubt.open(path))
        self.assertGreater(len(whole), 10)
        for form in (data, bytearray(data), memoryview(data)):
            self.assertEqual(list(redoubt.read(form)), whole)
        subprocess.run(["gzip", "-k", self.file(data)], check=True)
        self.assertEqual(list(redoubt.open(os.path.join(self.folder, "dump.rdb.gz"))), whole)
        self.assertEqual(list(redoubt.open(os.fsencode(path))), whole)

    def test_an_error_says_where_and_why(self):
        path = os.path.join(FIXTURES, "redis-7.0.15", "cluster.rdb")
        with open(path, "rb") as f:
            data = f.read()
        keys = redoubt.read(data[:len(data) // 2])
        with self.assertRaises(redoubt.Error) as caught:
            list(keys)
        error = caught.exception
        self.assertEqual((error.code, error.offset, error.inner, error.errno),
                         ("truncated", len(data) // 2, None, 0))
        self.assertIn("ends here", error.reason)
        self.assertIn("truncated at byte", str(error))
        self.assertIsInstance(error.context, list)
        self.assertEqual(list(keys), [])
        with self.assertRaises(redoubt.Error) as caught:
            redoubt.open(os.path.join(self.folder, "missing"))
        self.assertEqual((caught.exception.code, caught.exception.errno), ("io", 2))
        self.assertIn("missing", caught.exception.origin)

    def test_wrong_arguments(self):
        for call in (lambda: redoubt.open(7), redoubt.open, lambda: redoubt.read("text"),
                     lambda: redoubt.open("a", value=True), lambda: redoubt.check(None),
                     lambda: redoubt.salvage("a", 5), lambda: type(redoubt.read(b""))()):
            with self.assertRaises(TypeError):
                call()

    def test_other_threads_run_during_a_check(self):
        path = self.file(b"")
        os.remove(path)
        os.mkfifo(path)
        ran = []
        checker = threading.Thread(target=lambda: ran.append(redoubt.check(path).sound))
        reader = threading.Thread(target=lambda: ran.append(len(list(redoubt.open(path)))))
        for thread in (checker, reader):
            thread.start()  # waits until the pipe is written
            with open(os.path.join(FIXTURES, "redis-7.0.15", "cluster.rdb"), "rb") as f:
                data = f.read()
            with open(path, "wb") as pipe:
                pipe.write(data)
            thread.join()
        self.assertEqual(ran, [True, len(list(redoubt.read(data)))])


class Verdicts(Case):
    def test_verdicts_are_those_of_check_rdb(self):
        n = 0
        for row, data in fixtures():
            with self.subTest(row.path):
                path = self.file(data)
                verdict = redoubt.check(path)
                tool = json.loads(run("check-rdb", "--json", path).stdout)["files"][0]
                self.assertEqual(verdict.keys, tool["keys"]["total"]
                                 if isinstance(tool["keys"], dict) else tool["keys"])
                expected_offset = re.search(r"@(\d+)", row.expected)
                if row.expected.startswith("ok"):
                    self.assertIsNone(verdict.error)
                elif expected_offset and verdict.error is not None:
                    self.assertEqual(verdict.error.offset, int(expected_offset[1]))
                self.assertEqual(verdict.sound, verdict.error is None and verdict.errors == 0)
                n += 1
        self.assertGreater(n, 200)

    def test_a_salvage_is_that_of_check_rdb(self):
        n = 0
        for row, data in fixtures():
            if n == 60 or row.expected.startswith("ok"):
                continue
            with self.subTest(row.path):
                path = self.file(data)
                ours = os.path.join(self.folder, "ours.rdb")
                theirs = os.path.join(self.folder, "theirs.rdb")
                run("check-rdb", "--salvage", theirs, "--force", path)
                if not os.path.exists(theirs):
                    continue
                result = redoubt.salvage(path, ours, replace=True)
                with open(ours, "rb") as a, open(theirs, "rb") as b:
                    self.assertEqual(a.read(), b.read())
                self.assertEqual(len(list(redoubt.open(ours))), result.keys)
                self.assertEqual(sum(loss.kind == "range" for loss in result.losses),
                                 result.ranges)
                self.assertEqual(redoubt.salvage(path), result)
                os.remove(theirs)
                n += 1
        self.assertGreater(n, 40)

    def test_a_compressed_file_is_refused(self):
        """It is not damaged, which a salvage of its bytes would say."""
        path = os.path.join(FIXTURES, "redis-7.0.15", "cluster.rdb")
        with open(self.folder + "/dump.rdb.gz", "wb") as f:
            subprocess.run(["gzip", "-c", path], check=True, stdout=f)
        for out in (None, self.folder + "/out.rdb"):
            with self.assertRaises(redoubt.Error) as caught:
                redoubt.salvage(self.folder + "/dump.rdb.gz", out)
            self.assertEqual(caught.exception.code, "unsupported")
            self.assertIn("compressed", caught.exception.reason)
        self.assertEqual(os.listdir(self.folder), ["dump.rdb.gz"])

    def test_an_output_that_exists_stays(self):
        path = os.path.join(FIXTURES, "redis-7.0.15", "cluster.rdb")
        out = self.file(b"mine", "out")
        with self.assertRaises(redoubt.Error):
            redoubt.salvage(path, out)
        with open(out, "rb") as f:
            self.assertEqual(f.read(), b"mine")


class Logs(Case):
    def commands(self, path):
        shown = run("show", "--ndjson", path)
        return [entry for entry in map(json.loads, shown.stdout.splitlines())
                if "command" in entry]

    def compare(self, path):
        expected_rows = [(tuple(a.encode("utf-8", "surrogateescape") for a in entry["command"]),
                          entry["db"], entry.get("time_s"), entry["file"], entry["offset"],
                          entry["number"], entry["multi"]) for entry in self.commands(path)]
        found = [(c.args, c.db, c.time_s, c.file, c.offset, c.number, c.in_multi)
                 for c in redoubt.log(path)]
        return found, expected_rows

    def test_the_logs_of_a_server(self):
        n = 0
        for folder in ("redis-7.0.15", "valkey-8.1.1", "redis-8.0.2"):
            top = os.path.join(FIXTURES, folder)
            for name in sorted(os.listdir(top)):
                path = os.path.join(top, name, "appendonlydir")
                if not os.path.isdir(path):
                    path = os.path.join(top, name)
                if not name.endswith(".aof.d") or run("check-aof", path).returncode != 0:
                    continue
                with self.subTest(path):
                    found, rows = self.compare(path)
                    self.assertEqual(found, rows)
                    n += len(found)
        self.assertGreater(n, 20)

    def test_a_quoted_name_and_what_is_refused(self):
        log = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\xff\x00\r\n"
        self.file(log, "a b.incr.aof")
        for text in (b'file "a b.incr.aof" seq 1 type i\n',
                     b'# x\nseq 1 type i file "a\\x20b.incr.aof"\r\n'):
            path = self.file(text, "a.manifest")
            self.assertEqual([c.args for c in redoubt.log(path)], [(b"SET", b"a", b"\xff\x00")])
            self.assertEqual([c.args for c in redoubt.log(self.folder)],
                             [(b"SET", b"a", b"\xff\x00")])
        for text, offset in ((b"file ../x seq 1 type i\n", 5), (b"nothing\n", 0),
                             (b"# x\n\nfile a seq 1 type i\n", 4)):
            with self.assertRaises(redoubt.Error) as caught:
                list(redoubt.log(self.file(text, "a.manifest")))
            self.assertEqual((caught.exception.code, caught.exception.offset),
                             ("corrupt", offset))
        for folder in (FIXTURES, self.folder + "/nothing"):
            with self.assertRaises((ValueError, redoubt.Error)):
                list(redoubt.log(folder))

    def test_a_torn_log(self):
        commands = redoubt.log(self.file(b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nDEL\r\n$1\r\n", "a.aof"))
        self.assertEqual(next(commands).args, (b"PING",))
        with self.assertRaises(redoubt.Error) as caught:
            next(commands)
        self.assertEqual((caught.exception.code, caught.exception.offset), ("truncated", 31))

    def test_a_capture(self):
        world = captures.Capture(os.path.join(self.folder, "capture"))
        world.begin(None, b"".join(captures.USUAL))
        path = world.path
        found = list(redoubt.capture(path, program=REDOUBT))
        rows = [entry for entry in self.commands(path)]
        self.assertEqual([(c.args, c.db, c.time_us, c.offset) for c in found],
                         [(tuple(a.encode() for a in r["command"]), r["db"], r["time_us"],
                           r["offset"]) for r in rows])
        self.assertGreater(len(found), 5)
        with self.assertRaises(FileNotFoundError):
            next(redoubt.capture(path, program="/nothing/here"))
        with self.assertRaises(redoubt.Error):
            list(redoubt.capture(self.folder + "/nothing", program=REDOUBT))


def damaged(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        kind = rng.randrange(4)
        at = rng.randrange(len(data) or 1)
        if kind == 0 and data:
            data[at] = rng.randrange(256)
        elif kind == 1 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at:at + rng.randrange(1, 40)]
        else:
            data[at:at] = rng.randbytes(rng.randrange(1, 12))
    return bytes(data[:rng.randrange(len(data) + 1)] if rng.random() < 0.1 else data)


class Damage(Case):
    def test_ten_thousand_damaged_files(self):
        rng = random.Random(40)
        sources = [data for _, data in fixtures() if 20 < len(data) < 5000]
        self.assertGreater(len(sources), 100)
        errors = 0
        for i in range(10000):
            data = damaged(rng, sources[i % len(sources)])
            try:
                for _ in redoubt.read(data):
                    pass
            except redoubt.Error as e:
                errors += 1
                self.assertTrue(e.code and e.reason)
                self.assertTrue(e.offset is None or e.offset <= len(data), e)
        self.assertGreater(errors, 5000)

    def test_verdicts_of_damaged_files(self):
        rng = random.Random(41)
        sources = [data for _, data in fixtures() if 20 < len(data) < 3000]
        for i in range(300):
            path = self.file(damaged(rng, sources[i % len(sources)]))
            verdict = redoubt.check(path)
            self.assertEqual(verdict.sound, verdict.error is None and verdict.errors == 0)
            try:
                self.assertGreaterEqual(redoubt.salvage(path).keys, 0)
            except redoubt.Error as e:
                self.assertTrue(e.reason)

    def test_damaged_logs(self):
        rng = random.Random(42)
        log = b"".join(captures.USUAL) + b"#TS:1700000000\r\n" + b"".join(captures.USUAL)
        errors = 0
        for _ in range(1000):
            try:
                for command in redoubt.log(self.file(damaged(rng, log), "a.aof")):
                    self.assertIsInstance(command.args, tuple)
            except redoubt.Error as e:
                errors += 1
                self.assertIsNotNone(e.offset)
        self.assertGreater(errors, 300)


def resident():
    with open("/proc/self/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])


class Leaks(Case):
    def work(self, sources, path, log):
        for data in sources:
            for source in (data, data[:len(data) * 2 // 3]):
                try:
                    next(redoubt.read(source, values=False), None)  # freed before its end
                    list(redoubt.read(source))
                except redoubt.Error:
                    pass
        redoubt.check(path)
        redoubt.salvage(path)
        list(redoubt.log(log))
        for call in (redoubt.open, redoubt.check, redoubt.salvage):
            with self.assertRaises(redoubt.Error):
                call(path + ".missing")

    def test_nothing_is_left(self):
        sources = [data for row, data in fixtures()
                   if row.path.startswith(("redis-8", "valkey-9", "hand")) and len(data) < 20000]
        self.assertGreater(len(sources), 20)
        path = self.file(sources[0][:-20])
        log = self.file(b"".join(captures.USUAL), "a.aof")
        for _ in range(3):
            self.work(sources, path, log)
        gc.collect()
        blocks, memory = sys.getallocatedblocks(), resident()
        for _ in range(12):
            self.work(sources, path, log)
        gc.collect()
        self.assertLess(sys.getallocatedblocks() - blocks, 100)
        self.assertLess(resident() - memory, 8 << 10)


class Readme(Case):
    def test_the_examples(self):
        """Each block is run in a folder with these files, and prints what follows it."""
        with open(os.path.join(SOURCE, "python", "README.md"), encoding="utf-8") as f:
            text = f.read()
        lines = [{"db": 0, "key": "user:1", "type": "hash",
                  "value": {"name": "Ada", "plan": "paid"}},
                 {"db": 0, "key": "queue", "type": "list", "value": ["a", "b"]},
                 {"db": 0, "key": "hits", "type": "string", "value": "17",
                  "expire_ms": 4102444800000}]
        self.file("".join(json.dumps(line) + "\n" for line in lines).encode(), "lines")
        for name, args in (("dump.rdb", ()), ("many.rdb", ())):
            done = run("convert", "--input-format", "ndjson", "--to", "rdb", *args,
                       os.path.join(self.folder, "lines"), "-o", os.path.join(self.folder, name))
            self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "dump.rdb"), "rb") as f:
            data = f.read()
        self.file(data[:-12] + b"garbage!" + data[-4:], "damaged.rdb")
        self.file(b"".join(captures.USUAL), "appendonly.aof")
        captures.Capture(os.path.join(self.folder, "capture")).begin(None,
                                                                     b"".join(captures.USUAL))
        blocks = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.S)
        self.assertGreater(len(blocks), 4)
        self.assertEqual(len(blocks), text.count("```python"))
        bin_folder = os.path.join(self.folder, "bin")
        os.mkdir(bin_folder)
        os.symlink(REDOUBT, os.path.join(bin_folder, "redoubt"))
        env = {**os.environ, "PYTHONPATH": PACKAGE,
               "PATH": bin_folder + os.pathsep + os.environ["PATH"]}
        for code, output in blocks:
            done = subprocess.run([sys.executable, "-c", code], cwd=self.folder, env=env,
                                  capture_output=True, encoding="utf-8", check=False)
            self.assertEqual((done.stdout, done.stderr, done.returncode), (output, "", 0), code)

    def test_the_hints_name_what_exists(self):
        with open(os.path.join(PACKAGE, "redoubt", "__init__.pyi"), encoding="utf-8") as f:
            text = f.read()
        for name in redoubt.__all__:
            self.assertRegex(text, rf"(?m)^(def|class) {name}\b|^{name}:")
        for kind in ("Key", "Command", "Finding", "Verdict", "Loss", "Salvage", "Module"):
            fields = re.search(rf"class {kind}\(NamedTuple\):\n((?:    .*\n)+)", text)[1]
            names = re.findall(r"^    (\w+):", fields, re.M)
            self.assertEqual(len(names), getattr(redoubt, kind).n_fields, kind)
            for name in names:
                self.assertTrue(hasattr(getattr(redoubt, kind), name), f"{kind}.{name}")


if __name__ == "__main__":
    unittest.main()
