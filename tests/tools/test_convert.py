"""redoubt convert, compared with what the servers said of their own files.

The program is $REDOUBT, the files are under $REDOUBT_FIXTURES: every NAME.rdb that has a NAME.json.
"""

import functools
import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import facts  # noqa: E402
import hexfile  # noqa: E402
from no_leaks import NO_LEAKS  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")

REDIS_VERSIONS = (6, 7, 8, 9, 10, 11, 12)
VALKEY_VERSION = 80


def described_snapshots():
    """Paths of the snapshots whose contents a server described, without the suffix."""
    for folder, _, names in sorted(os.walk(FIXTURES)):
        for name in sorted(names):
            stem = os.path.join(folder, name[:-4])
            if name.endswith(".rdb") and os.path.exists(stem + ".json"):
                yield stem


def name_of(stem):
    return os.path.relpath(stem, FIXTURES)


def convert(*args, stdin=None, env=None):
    return subprocess.run(
        [REDOUBT, "convert", *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=600, env=env,
    )


@functools.cache
def of_fixture(*args):
    """convert() of a fixture to standard output; many cases compare with the same."""
    return convert(*args)


@functools.cache
def of_copy(data, *args):
    """convert() of a snapshot that was made here: many are the same file."""
    return convert(*args, "-", stdin=data, env=NO_LEAKS)


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def version_of(path):
    """("redis" or "valkey", version) from the first nine bytes."""
    with open(path, "rb") as f:
        magic = f.read(9)
    if magic.startswith(b"VALKEY"):
        return "valkey", int(magic[6:])
    return "redis", int(magic[5:])


def stream_as_of(value, version):
    """A stream as an older version keeps it."""
    value = dict(value)
    if version < 10:
        for name in ("first_id", "max_deleted_id", "entries_added"):
            value.pop(name, None)
    groups = []
    for group in value["groups"]:
        group = dict(group)
        if version < 10:
            group.pop("entries_read", None)
        if version < 11:
            group["consumers"] = [
                {k: v for k, v in c.items() if k != "active_ms"} for c in group["consumers"]
            ]
        groups.append(group)
    value["groups"] = groups
    return value


def data_of(line, version):
    """What must survive of a line: not the encoding, not the order where a type has none, and of
    the rest what `version` knows."""
    line = {k: v for k, v in line.items() if k not in ("encoding", "slot")}
    if version < 9:
        line.pop("idle_s", None)
        line.pop("freq", None)
    if line["type"] == "set":
        line["value"] = sorted(line["value"])
    elif line["type"] == "zset":
        line["value"] = sorted([m, facts.score_bits(s)] for m, s in line["value"])
    elif line["type"] == "stream":
        line["value"] = stream_as_of(line["value"], version)
    elif line["type"] == "module":
        # A string in it may be stored in fewer bytes.
        line["value"] = {k: v for k, v in line["value"].items() if k != "size"}
    return line


def check_left_out(case, stem, messages):
    """Lines and tables name what they have no place for, and say nothing else."""
    reported = facts.load(stem + ".json")
    beside = bool(reported.get("functions") or reported.get("module_aux"))
    case.assertEqual(b"omitted: " in messages, beside)
    for line in messages.splitlines():
        case.assertRegex(line, b"warning: omitted: .*(function|module|\xe2\x80\xa6 and)")


class Reports(unittest.TestCase):
    """Files with a .json: everything in it is in the lines, and nothing else."""

    maxDiff = None

    def check(self, form, env=None):
        n = 0
        for stem in described_snapshots():
            with self.subTest(name_of(stem)):
                reported = facts.load(stem + ".json")
                run = convert("--to", "ndjson", f"--strings={form}", stem + ".rdb", env=env)
                self.assertEqual(run.returncode, 0, run.stderr)
                check_left_out(self, stem, run.stderr)
                lines, meta = facts.read_lines(run.stdout)
                self.assertEqual(meta, [])
                problems = facts.Compare(reported, form).run(lines)
                self.assertEqual(problems[:10], [])
                n += 1
        self.assertGreater(n, 10)

    def test_lines_have_what_the_server_had_as_utf8(self):
        self.check("utf8")

    def test_lines_have_what_the_server_had_in_hex(self):
        self.check("hex")

    def test_lines_have_what_the_server_had_in_base64(self):
        self.check("base64", NO_LEAKS)

    def test_meta_lines_tell_version_aux_fields_and_functions(self):
        for stem in described_snapshots():
            with self.subTest(name_of(stem)):
                reported = facts.load(stem + ".json")
                run = of_fixture("--to", "ndjson", "--meta", stem + ".rdb")
                self.assertEqual(run.returncode, 0, run.stderr)
                lines, meta = facts.read_lines(run.stdout)
                dialect, version = version_of(stem + ".rdb")
                self.assertEqual(meta[0], {"rdb": {"version": version, "dialect": dialect}})
                self.assertEqual(facts.Compare(reported, "utf8").run(lines)[:10], [])
                self.functions(reported, meta)
                self.aux(reported, meta)

    def functions(self, reported, meta):
        names = ("function", "function_pre_ga")
        got = sorted(facts.DECODE["utf8"](m[n]) for m in meta for n in names if n in m)
        want = sorted(bytes.fromhex(f["code_hex"]) for f in reported.get("functions", []))
        self.assertEqual(got, want)

    def aux(self, reported, meta):
        aux = {}
        for m in meta:
            aux.update(m.get("aux", {}))
        for name in ("redis-ver", "valkey-ver"):
            if name in aux:
                self.assertEqual(aux[name], reported["server_version"])
        if "replication" in reported:
            self.assertEqual(aux["repl-id"], reported["replication"]["replid"])
            self.assertEqual(aux["repl-offset"], str(reported["replication"]["offset"]))
        records = [m["module_aux"] for m in meta if "module_aux" in m]
        self.assertEqual(bool(records), bool(reported.get("module_aux")))
        for record in records:
            # The module is called testrdb, its type test__rdb.
            self.assertEqual((record["module"], record["version"]), ("test__rdb", 1))
            self.assertIn(record["when"], (1, 2))

    def test_slots_are_those_the_server_counted(self):
        n = 0
        for stem in described_snapshots():
            reported = facts.load(stem + ".json")
            run = of_fixture("--to", "ndjson", stem + ".rdb") if reported.get("slots") else None
            if run is None or b'"slot":' not in run.stdout:
                continue
            with self.subTest(name_of(stem)):
                got = {}
                for line in facts.read_lines(run.stdout)[0]:
                    keys, expires = got.get(str(line["slot"]), (0, 0))
                    got[str(line["slot"])] = (keys + 1, expires + ("expire_ms" in line))
                want = {s: (c["keys"], c["expires"]) for s, c in reported["slots"].items()}
                self.assertEqual(got, want)
                n += 1
        self.assertGreater(n, 0)


class Copied(unittest.TestCase):
    """Snapshots into snapshots."""

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.out = os.path.join(self.dir.name, "out.rdb")

    def lines_of(self, path):
        if path.startswith(FIXTURES):
            run = of_fixture("--to", "ndjson", path)
        else:
            run = of_copy(contents(path), "--to", "ndjson")
        self.assertEqual(run.returncode, 0, run.stderr)
        return facts.read_lines(run.stdout)[0]

    def assert_same_data(self, a, b, version):
        key = lambda line: (line["db"], line["key"])  # noqa: E731
        a = sorted((data_of(line, version) for line in a), key=key)
        b = sorted((data_of(line, version) for line in b), key=key)
        self.assertEqual([key(line) for line in a], [key(line) for line in b])
        for x, y in zip(a, b):
            self.assertEqual(x, y)

    def test_a_copy_in_its_own_version_is_the_same_file(self):
        for stem in described_snapshots():
            with self.subTest(name_of(stem)):
                run = convert("--to", "rdb", stem + ".rdb", "-o", self.out, "--force")
                self.assertEqual((run.returncode, run.stderr), (0, b""))
                with open(self.out, "rb") as f, open(stem + ".rdb", "rb") as g:
                    self.assertTrue(f.read() == g.read(), "the copy differs")

    def test_a_file_written_anew_holds_the_same_data(self):
        for stem in described_snapshots():
            dialect, version = version_of(stem + ".rdb")
            if version < REDIS_VERSIONS[0] or self.has_old_function(stem):
                continue
            with self.subTest(name_of(stem)):
                run = convert("--to", "rdb", "--rewrite", stem + ".rdb", "-o", self.out, "--force")
                self.assertEqual((run.returncode, run.stderr), (0, b""))
                self.assertEqual(version_of(self.out), (dialect, version))
                before, after = self.lines_of(stem + ".rdb"), self.lines_of(self.out)
                self.assert_same_data(before, after, version)

    def to_version(self, stem, dialect, version, *more):
        path = stem + ".rdb"
        if os.path.exists(self.out):
            os.unlink(self.out)
        run = convert("--to", "rdb", "--dialect", dialect, "--rdb-version", str(version), path,
                      "-o", self.out, *more)
        if run.returncode == 0:
            self.assertEqual(version_of(self.out), (dialect, version))
            known = min(version, version_of(path)[1])
            self.assert_same_data(self.lines_of(path), self.lines_of(self.out), known)
            self.and_back(path, known)
            return True
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertEqual(os.listdir(self.dir.name), [])
        # A refusal says which key, or which record that is not a key's.
        names = [b'"', b"function", b"module"]
        self.assertTrue(any(n in run.stderr for n in names), run.stderr)
        return False

    def and_back(self, path, known):
        """From the version that was made to that of the file before: what both know is there."""
        dialect, version = version_of(path)
        if version < REDIS_VERSIONS[0]:
            return
        run = of_copy(contents(self.out), "--to", "rdb", "--dialect", dialect, "--rdb-version",
                      str(version))
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        back = of_copy(run.stdout, "--to", "ndjson")
        self.assertEqual(back.returncode, 0, back.stderr)
        self.assert_same_data(self.lines_of(path), facts.read_lines(back.stdout)[0], known)

    def test_only_an_older_version_refuses_and_all_others_get_the_same_data(self):
        """Files of one name are from many servers: each goes to two versions, which take turns."""
        done = refused = 0
        for i, stem in enumerate(described_snapshots()):
            dialect, version = version_of(stem + ".rdb")
            may_refuse = dialect != "redis" or self.has_old_function(stem)
            for target in sorted({REDIS_VERSIONS[(i + j) % len(REDIS_VERSIONS)] for j in (0, 4)}):
                with self.subTest(f"{name_of(stem)} to {target}"):
                    if self.to_version(stem, "redis", target):
                        done += 1
                    else:
                        self.assertTrue(may_refuse or target < version)
                        refused += 1
        self.assertGreater(done, 10)
        self.assertGreater(refused, 0)

    def test_valkey_gets_the_same_data_or_a_refusal(self):
        for stem in described_snapshots():
            with self.subTest(name_of(stem)):
                self.to_version(stem, "valkey", VALKEY_VERSION)

    def has_old_function(self, stem):
        """A function in the form of a release candidate, which no target takes."""
        return b'"function_pre_ga"' in of_fixture("--to", "ndjson", "--meta", stem + ".rdb").stdout

    def test_a_function_of_a_release_candidate_is_refused_or_left_out(self):
        path = os.path.join(FIXTURES, "redis-7.0-rc1", "functions.rdb")
        run = convert("--to", "rdb", "--rewrite", path, "-o", self.out)
        self.assertEqual(run.returncode, 4)
        self.assertIn(b"function", run.stderr)
        self.assertEqual(os.listdir(self.dir.name), [])
        run = convert("--to", "rdb", "--rewrite", "--lossy", path, "-o", self.out)
        self.assertEqual(run.returncode, 0)
        self.assertIn(b"omitted: 3 functions", run.stderr)


class Behaviour(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.path = os.path.join(self.dir.name, "in.rdb")
        self.out = os.path.join(self.dir.name, "out")

    def write(self, *parts, version=b"REDIS0010"):
        """A snapshot without checksum: magic, database 0, parts, end."""
        with open(self.path, "wb") as f:
            f.write(version + b"\xfe\x00" + b"".join(parts) + b"\xff" + b"\0" * 8)
        return self.path

    def test_bytes_that_are_not_utf8_are_lone_surrogates(self):
        self.write(b"\x00\x01k", b"\x07\xff\xc3\xa9\"\n\xe2\x82")
        run = convert("--to", "ndjson", self.path)
        self.assertEqual(run.returncode, 0, run.stderr)
        value = run.stdout.split(b'"value":')[1]
        self.assertEqual(value, b'"\\udcff\xc3\xa9\\"\\n\\udce2\\udc82"}\n')

    def test_a_line_has_its_members_in_the_documented_order(self):
        self.write(b"\xfc" + (4102444800000).to_bytes(8, "little"), b"\xf9\x07", b"\x00\x01k\x01v")
        run = convert("--to", "ndjson", self.path)
        self.assertEqual(
            run.stdout,
            b'{"db":0,"key":"k","type":"string","encoding":"string",'
            b'"expire_ms":4102444800000,"freq":7,"value":"v"}\n',
        )

    def test_scores_that_are_not_numbers_are_strings_and_minus_zero_keeps_its_sign(self):
        scores = (float("inf"), float("-inf"), -0.0, 0.1, 1e300, 5e-324)
        body = b"".join(bytes([1, 97 + i]) + struct.pack("<d", s) for i, s in enumerate(scores))
        self.write(b"\x05\x01z", bytes([len(scores)]), body)
        run = convert("--to", "ndjson", self.path)
        self.assertEqual(
            run.stdout.split(b'"value":')[1],
            b'[["a","inf"],["b","-inf"],["c",-0.0],["d",0.1],["e",1e+300],["f",5e-324]]}\n',
        )

    def test_long_strings_stream_through_whole(self):
        text = ("é€😀abc" * 200000).encode()
        head = b"\x80" + len(text).to_bytes(4, "big")
        for shift in range(4):
            self.write(b"\x00" + bytes([shift]) + b"k" * shift, head + text)
            run = convert("--to", "ndjson", self.path)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertTrue(run.stdout.endswith(b'"value":"' + text + b'"}\n'), shift)

    def test_damage_is_named_with_file_and_offset_and_leaves_no_output(self):
        self.write(b"\x00\x01k\x01v", b"\x08\x01x")
        for target in ("ndjson", "rdb"):
            run = convert("--to", target, self.path, "-o", self.out)
            self.assertIn(run.returncode, (1, 4))
            first = run.stderr.decode().splitlines()[0]
            self.assertTrue(first.startswith(f"redoubt convert: {self.path}: "), first)
            self.assertIn("at byte 16 (0x10)", first)
            self.assertEqual(os.listdir(self.dir.name), ["in.rdb"])

    def test_a_version_says_whose_it_is(self):
        self.write(b"\x00\x01k\x01v")
        for options, magic in (
            (("--rdb-version", "80"), b"VALKEY080"),
            (("--rdb-version", "12"), b"REDIS0012"),
            (("--dialect", "valkey"), b"VALKEY080"),
            (("--dialect", "redis"), b"REDIS0010"),
            ((), b"REDIS0010"),
        ):
            run = convert("--to", "rdb", *options, self.path)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(run.stdout[:9], magic)
        for options in (("--rdb-version", "5"), ("--rdb-version", "16"), ("--rdb-version", "90")):
            run = convert("--to", "rdb", *options, self.path)
            self.assertEqual(run.returncode, 4, (options, run.stderr))
            self.assertEqual(run.stdout, b"")

    def test_a_server_says_version_and_dialect(self):
        self.write(b"\x00\x01k\x01v")
        for server, magic in (
            ("redis-2.8", b"REDIS0006"), ("redis-3.0", b"REDIS0006"), ("redis-3.2", b"REDIS0007"),
            ("redis-4.0", b"REDIS0008"), ("redis-5.0", b"REDIS0009"), ("redis-6.0", b"REDIS0009"),
            ("redis-6.2", b"REDIS0009"), ("redis-7.0", b"REDIS0010"), ("redis-7.2", b"REDIS0011"),
            ("redis-7.4", b"REDIS0012"), ("redis-8.0", b"REDIS0012"), ("valkey-7.2", b"REDIS0011"),
            ("valkey-8", b"REDIS0011"), ("valkey-9", b"VALKEY080"), ("valkey-8.1", b"REDIS0011"),
            ("Redis-6.2.16", b"REDIS0009"), ("redis-8.4", b"REDIS0012"),
            ("valkey-9.0.1", b"VALKEY080"), ("redis-8.6", b"REDIS0013"),
            ("redis-8.8", b"REDIS0014"), ("redis-8.10.2", b"REDIS0015"),
            ("valkey-9.2", b"VALKEY081"),
        ):
            run = convert("--to", "rdb", "--for", server, self.path)
            self.assertEqual((run.returncode, run.stdout[:9], run.stderr), (0, magic, b""), server)
        for server in ("redis-9", "redis-7", "valkey-9.3", "redis-6.2.", "keydb-6.2",
                       "redis-6.2.1.0"):
            run = convert("--to", "rdb", "--for", server, self.path)
            self.assertEqual((run.returncode, run.stdout), (2, b""), server)
            self.assertIn(b'"%s" is not a known server: redis-2.8, 3.0' % server.encode(),
                          run.stderr)
        for options in (("--for", "valkey-8", "--rdb-version", "11"),
                        ("--for", "valkey-8", "--dialect", "valkey"),
                        ("--dialect", "valkey", "--rdb-version", "11")):
            run = convert("--to", "rdb", *options, self.path)
            self.assertEqual((run.returncode, run.stdout), (2, b""), options)
        self.assertIn(b"for Valkey 8 use --for valkey-8", run.stderr)
        run = convert("--to", "rdb", "--dialect", "valkey", self.path)
        self.assertIn(b"means Valkey 9 and later: for Valkey 8 use --for valkey-8", run.stderr)

    def test_commands_that_a_server_lacks_are_refused(self):
        lines = {
            "HPEXPIREAT": b'{"db":0,"key":"h","type":"hash","value":{"f":"v"},'
                          b'"field_expire_ms":{"f":4102444800000}}\n',
            "XADD": b'{"db":0,"key":"x","type":"stream","value":{"entries":[{"id":"1-0",'
                    b'"fields":[["a","b"]]}],"length":1,"last_id":"1-0","groups":[]}}\n',
        }
        cases = (("redis-7.2", "HPEXPIREAT"), ("valkey-8", "HPEXPIREAT"), ("redis-4.0", "XADD"),
                 ("redis-7.4", None), ("valkey-9", None))
        for server, lacks in cases:
            for command, line in lines.items():
                for target in ("resp", "aof"):
                    run = convert("--to", target, "--for", server, "--from", "ndjson", "-",
                                  stdin=line)
                    if command != lacks and not (server == "redis-4.0"):
                        self.assertEqual(run.returncode, 0, (server, command, run.stderr))
                        self.assertIn(command.encode(), run.stdout)
                        continue
                    self.assertEqual(run.returncode, 4, (server, command, run.stderr))
                    self.assertIn(f"the server has no {command}".encode(), run.stderr)
                    self.assertIn(f"what {server} cannot hold".encode(), run.stderr)
                    self.assertIn(b" in db 0", run.stderr)
                    run = convert("--to", target, "--for", server, "--lossy", "--from", "ndjson",
                                  "-", stdin=line)
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.assertIn(b"omitted: 1 ", run.stderr)
                    self.assertNotIn(command.encode(), run.stdout)

    def test_a_file_that_ends_early_is_a_finding(self):
        with open(self.path, "wb") as f:
            f.write(b"REDIS0010\xfe\x00\x00\x01k")
        run = convert("--to", "ndjson", self.path, "-o", self.out)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn(b"truncated at byte", run.stderr)
        self.assertEqual(os.listdir(self.dir.name), ["in.rdb"])

    def test_a_wrong_checksum_is_a_finding(self):
        with open(self.path, "wb") as f:
            f.write(b"REDIS0010\xfe\x00\x00\x01k\x01v\xff" + b"\x01" * 8)
        for target in ("ndjson", "rdb"):
            run = convert("--to", target, self.path, "-o", self.out)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn(b"checksum", run.stderr)
            self.assertEqual(os.listdir(self.dir.name), ["in.rdb"])

    def test_a_target_must_be_named(self):
        self.write()
        self.assertEqual(convert(self.path).returncode, 2)
        self.assertEqual(convert("--to", "xml", self.path).returncode, 2)

    def test_options_of_the_other_target_are_refused(self):
        self.write()
        for target, options in (
            ("ndjson", ("--lossy",)),
            ("ndjson", ("--rewrite",)),
            ("ndjson", ("--rdb-version", "10")),
            ("ndjson", ("--dialect", "redis")),
            ("csv", ("--for", "redis-7.0")),
            ("rdb", ("--meta",)),
            ("rdb", ("--strings=hex",)),
            ("rdb", ("--restore",)),
            ("ndjson", ("--replace",)),
            ("csv", ("--max-elements", "3")),
            ("csv", ("--meta",)),
            ("resp", ("--meta",)),
            ("resp", ("--rewrite",)),
            ("resp", ("--strings=hex",)),
        ):
            run = convert("--to", target, *options, self.path)
            self.assertEqual((run.returncode, run.stdout), (2, b""), options)
            self.assertIn(options[0].split("=")[0].encode(), run.stderr)

    def test_json_reports_how_much_was_converted(self):
        self.write(b"\x00\x01k\x01v")
        run = convert("--to", "ndjson", "--json", self.path, "-o", self.out)
        self.assertEqual(run.returncode, 0, run.stderr)
        reported = json.loads(run.stdout)
        self.assertEqual((reported["tool"], reported["keys"], reported["left_out"]),
                         ("convert", 1, 0))
        self.assertEqual((reported["bytes"], reported["format"]),
                         (os.path.getsize(self.out), "ndjson"))
        self.assertNotIn("version", reported)
        self.assertEqual(convert("--to", "ndjson", "--json", self.path).returncode, 2)
        run = convert("--for", "redis-6.2", "--json", self.path, "-o", self.out + ".rdb")
        reported = json.loads(run.stdout)
        self.assertEqual((reported["format"], reported["dialect"], reported["version"]),
                         ("rdb", "redis", 9))

    def test_an_existing_output_is_refused_without_force(self):
        self.write(b"\x00\x01k\x01v")
        with open(self.out, "wb") as f:
            f.write(b"old")
        run = convert("--to", "ndjson", self.path, "-o", self.out)
        self.assertEqual(run.returncode, 2, run.stderr)
        with open(self.out, "rb") as f:
            self.assertEqual(f.read(), b"old")
        run = convert("--to", "ndjson", self.path, "-o", self.out, "--force")
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(self.out, "rb") as f:
            self.assertTrue(f.read().startswith(b'{"db":0,'))

    def test_gzip_and_standard_input_are_read_as_they_are(self):
        self.write(b"\x00\x01k\x01v")
        plain = convert("--to", "ndjson", self.path).stdout
        with open(self.path, "rb") as f:
            data = f.read()
        packed = self.path + ".gz"
        with gzip.open(packed, "wb") as f:
            f.write(data)
        self.assertEqual(convert("--to", "ndjson", packed).stdout, plain)
        self.assertEqual(convert("--to", "ndjson", "-", stdin=data).stdout, plain)
        self.assertEqual(convert("--to", "rdb", "-", stdin=data).stdout, data)

    def test_what_the_target_cannot_hold_is_refused_by_name_or_left_out_and_counted(self):
        self.write(
            b"\x00\x01a\x01v",
            # Type 24: least expiry, one field.
            b"\x18\x02h1" + (4102444800000).to_bytes(8, "little") + b"\x01\x01\x01f\x01v",
            version=b"REDIS0012",
        )
        run = convert("--to", "rdb", "--rdb-version", "11", self.path, "-o", self.out)
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn(b'"h1"', run.stderr)
        self.assertFalse(os.path.exists(self.out))
        run = convert("--to", "rdb", "--rdb-version", "11", "--lossy", self.path, "-o", self.out)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(b"omitted: 1 ", run.stderr)
        lines = facts.read_lines(convert("--to", "ndjson", self.out).stdout)[0]
        self.assertEqual(lines[0]["key"], "a")


class Damaged(unittest.TestCase):
    """Whatever is wrong with a file: an answer that names it, and no output."""

    def inputs(self):
        for folder in ("damaged", "broken", "hand"):
            for at, _, names in sorted(os.walk(os.path.join(FIXTURES, folder))):
                for name in sorted(names):
                    path = os.path.join(at, name)
                    if name.endswith(".rdb"):
                        with open(path, "rb") as f:
                            yield path, f.read()
                    elif name.endswith(".hex"):
                        yield path, hexfile.load(path)

    def check(self, *options):
        n = 0
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out")
            for path, data in self.inputs():
                with self.subTest(os.path.relpath(path, FIXTURES)):
                    run = convert(*options, "-", "-o", out, stdin=data)
                    two = b"another snapshot follows" in run.stderr
                    self.assertIn(run.returncode, (2,) if two else (0, 1, 4), run.stderr)
                    if run.returncode == 0:
                        self.assertEqual(os.listdir(folder), ["out"])
                        os.unlink(out)
                    else:
                        self.assertEqual(os.listdir(folder), [])
                        said = [line for line in run.stderr.splitlines()
                                if b"is read as far as its types are known" not in line]
                        self.assertTrue(
                            said[0].startswith(b"redoubt convert: standard input: "), run.stderr
                        )
                    n += 1
        self.assertGreater(n, 100)

    def test_lines_of_damaged_files(self):
        self.check("--to", "ndjson", "--meta")

    def test_copies_of_damaged_files(self):
        self.check("--to", "rdb")

    def test_damaged_files_written_anew(self):
        self.check("--to", "rdb", "--rewrite", "--lossy")


class Filters(unittest.TestCase):
    """Which keys go over, by the options that all tools share."""

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.path = os.path.join(self.dir.name, "in.rdb")
        passed = b"\xfc" + (1000).to_bytes(8, "little")
        later = b"\xfc" + (4102444800000).to_bytes(8, "little")
        with open(self.path, "wb") as f:
            f.write(
                b"REDIS0012\xfe\x00\xfb\x03\x02"
                + b"\x00\x06user:1\x01v"
                + passed + b"\x00\x06user:2\x01v"
                + later + b"\x02\x05tmp:1\x01\x01m"
                + b"\xfe\x07\x01\x06list:1\x01\x01e"
                + b"\xff" + b"\0" * 8
            )

    def keys(self, *options):
        run = convert("--to", "ndjson", *options, self.path)
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        lines = [line["key"] for line in facts.read_lines(run.stdout)[0]]
        # The same keys go into a snapshot.
        out = os.path.join(self.dir.name, "out.rdb")
        run = convert("--to", "rdb", *options, self.path, "-o", out, "--force")
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        run = convert("--to", "ndjson", out)
        self.assertEqual([line["key"] for line in facts.read_lines(run.stdout)[0]], lines)
        return lines

    def test_each_option_keeps_what_it_names(self):
        everything = ["user:1", "user:2", "tmp:1", "list:1"]
        for options, want in (
            ((), everything),
            (("--db", "7"), ["list:1"]),
            (("--match", "*:1"), ["user:1", "tmp:1", "list:1"]),
            (("--match-regex", "^(tmp|list):"), ["tmp:1", "list:1"]),
            (("--type", "string"), ["user:1", "user:2"]),
            (("--prefix", "user:"), ["user:1", "user:2"]),
            (("--slot", "0-16383"), everything),
            (("--expired",), ["user:2"]),
            (("--no-expired",), ["user:1", "tmp:1", "list:1"]),
            (("--not", "--db", "7"), ["user:1", "user:2", "tmp:1"]),
            (("--type", "string", "--type", "list"), ["user:1", "user:2", "list:1"]),
            (("--type", "string", "--not", "--match", "*:2"), ["user:1"]),
        ):
            with self.subTest(options):
                self.assertEqual(self.keys(*options), want)

    def test_conditions_that_make_no_sense_are_refused(self):
        for options in (("--db", "x"), ("--type", "table"), ("--slot", "16384"), ("--not",),
                        ("--match-regex", "(")):
            run = convert("--to", "ndjson", self.path, *options)
            self.assertEqual(run.returncode, 2, (options, run.stderr))

    def test_a_snapshot_without_all_its_keys_has_no_sizes(self):
        run = convert("--to", "rdb", "--type", "set", self.path)
        self.assertNotIn(b"\xfb", run.stdout)
        run = convert("--to", "rdb", self.path)
        self.assertIn(b"\xfb\x03\x02", run.stdout)


class ByHand(unittest.TestCase):
    """fixtures/hand: layouts of servers that this suite has no file of."""

    def lines(self, name, *more):
        path = os.path.join(FIXTURES, "hand", name + ".hex")
        run = convert("--to", "ndjson", *more, "-", stdin=hexfile.load(path))
        self.assertEqual(run.returncode, 0, run.stderr)
        return facts.read_lines(run.stdout)

    def test_an_array_has_its_items_by_index(self):
        (line,), _ = self.lines("type-28-array")
        self.assertEqual(line["type"], "array")
        self.assertEqual(line["value"], [[0, "text"], [1, "-5"], [7, "2.5"], [8, "s"]])

    def test_a_hash_of_valkey_has_the_expiry_of_its_field(self):
        (line,), _ = self.lines("valkey-22-hash")
        self.assertEqual(line["value"], {"f1": "v1", "f2": "v2"})
        self.assertEqual(line["field_expire_ms"], {"f1": 4102444800000})

    def test_a_hash_of_a_release_candidate_has_the_expiry_of_its_field(self):
        (line,), _ = self.lines("type-22-redis")
        self.assertEqual(line["value"], {"f1": "v1", "f2": "v2"})
        self.assertEqual(line["field_expire_ms"], {"f1": 4102444800000})

    def test_an_entry_that_was_given_back_has_no_consumer(self):
        (line,), _ = self.lines("type-27-stream")
        group = line["value"]["groups"][0]
        self.assertEqual([p["consumer"] for p in group["pending"]], ["c", None])
        self.assertEqual(group["nacked"], ["2-0"])

    def test_a_stream_has_the_ids_of_its_producers(self):
        (line,), _ = self.lines("type-26-stream")
        idmp = line["value"]["idmp"]
        self.assertEqual(idmp["producers"], [{"name": "p1", "ids": [["i1", "1-0"], ["i2", "2-0"]]}])
        self.assertEqual((idmp["duration"], idmp["max_size"]), (100, 50))
        self.assertEqual((idmp["iids_added"], idmp["iids_duplicates"]), (2, 1))
        (line,), _ = self.lines("type-26-stream-bare")
        self.assertEqual(line["value"]["idmp"]["producers"], [])

    def test_slots_come_from_the_record_and_from_the_aux_field(self):
        for name in ("redis-244-slot-info", "valkey-aux-slot-info"):
            (line,), _ = self.lines(name)
            self.assertEqual(line["slot"], 12706)

    def test_each_server_gets_the_sizes_of_slots_in_its_own_form(self):
        path = os.path.join(FIXTURES, "valkey-9.1.2", "cluster.rdb")
        forms = {"valkey-9": b"\xfa\x09slot-info\x070,1,0,0", "valkey-8": b"\x09slot-info\x050,1,0",
                 "redis-8.0": b"\xf4\x00\x01\x00", "redis-7.2": b""}
        for server, form in forms.items():
            run = convert("--to", "rdb", "--for", server, path)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(form, run.stdout, server)
            self.assertEqual(b"slot-info" in run.stdout, b"slot-info" in form, server)
            again = subprocess.run([REDOUBT, "check-rdb", "--json", "-"], input=run.stdout,
                                   capture_output=True, check=False)
            self.assertEqual(again.returncode, 0, again.stdout)

    def test_a_slot_in_a_line_makes_no_sizes_of_slots(self):
        # Servers allocate by these sizes, which a line does not know.
        line = {"db": 0, "key": "k", "slot": 12706, "type": "string", "value": "v"}
        other = {**line, "key": "a", "slot": 15495}
        text = "".join(json.dumps(each) + "\n" for each in (line, other)).encode()
        for target in ((), ("--rdb-version", "12"), ("--dialect", "valkey"),
                       ("--dialect", "redis", "--rdb-version", "11")):
            run = convert("--to", "rdb", *target, "--from", "ndjson", "-", stdin=text)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertNotIn(b"slot-info", run.stdout)
            self.assertNotIn(b"\xf4", run.stdout[:30])
            reported = subprocess.run([REDOUBT, "check-rdb", "--json", "-"], input=run.stdout,
                                  capture_output=True, check=False)
            file = json.loads(reported.stdout)["files"][0]
            self.assertEqual((reported.returncode, file["keys"], file["slots"]), (0, 2, 0), target)


if __name__ == "__main__":
    unittest.main()
