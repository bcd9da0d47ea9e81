"""What `redoubt convert --to resp` writes is taken by a real server, and compared inside it.

A fixture that it loads is turned into commands, which redis-cli --pipe
sends to the server when it is empty; it must then hold the same dataset, and so with --restore.
"""

import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
import redis_server  # noqa: E402
import test_writer_oracle as writer  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
FIXTURES = os.environ.get("REDOUBT_FIXTURES", "fixtures")
MAX_ELEMENTS = 64
MAX_BYTES = 64 * 1024


def convert(*args):
    run = subprocess.run([REDOUBT, "convert", *args], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, timeout=600)
    return run.returncode, run.stdout, run.stderr.decode(errors="replace")


def commands(data):
    """The commands of a stream of RESP, as lists of bytes."""
    at, found = 0, []

    def line():
        nonlocal at
        end = data.index(b"\r\n", at)
        text, at = data[at:end], end + 2
        return text

    while at < len(data):
        head = line()
        assert head[:1] == b"*", head
        args = []
        for _ in range(int(head[1:])):
            size = int(line()[1:])
            args.append(data[at:at + size])
            assert data[at + size:at + size + 2] == b"\r\n"
            at += size + 2
        found.append(args)
    return found


def units(args):
    """Elements of a command that has many."""
    per = {b"RPUSH": 1, b"SADD": 1, b"ZADD": 2, b"HSET": 2}.get(args[0])
    return (len(args) - 2) // per if per else 0


def timeless(info):
    """XINFO STREAM FULL without when consumers were last seen and active, which no command sets."""
    if not isinstance(info, (list, tuple)):
        return info
    out, skip = [], False
    for item in info:
        if skip:
            skip = False
        elif item in (b"seen-time", b"active-time"):
            skip = True
        else:
            out.append(timeless(item))
    return out


def content(server):
    """Of a dataset, what commands make."""
    out = writer.content(server)
    for db in server.databases():
        server.command("SELECT", db)
        for key in server.command("KEYS", "*"):
            if server.command("TYPE", key) != b"stream":
                continue
            info = server.command("XINFO", "STREAM", key, "FULL", "COUNT", 0)
            info = timeless(writer.without_layout(info))
            # Of an empty stream in an old form the server has made up a first entry; and of none
            # deleted it is not known any more, once one was.
            info = [pair for pair in info if pair[1] not in (b"0-0", b"0-1") and
                    (pair[0] != b"recorded-first-entry-id" or server.command("XLEN", key))]
            out[db, key] = out[db, key][:2] + [info]
    server.command("SELECT", 0)
    return out


class Commands(writer.ServerCase):
    out_name = "out.resp"

    def send(self, data):
        return subprocess.run([redis_server.program("cli"), "-p", str(self.server.port), "--pipe"],
                              input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=600)

    def pipe(self, data):
        self.server.command("FLUSHALL")
        self.server.command("FUNCTION", "FLUSH")
        run = self.send(data)
        self.assertEqual((run.returncode, b"errors: 0," in run.stdout), (0, True), run.stdout)

    def assert_small(self, data):
        for args in commands(data):
            size = sum(len(a) + 5 + len(str(len(a))) for a in args)
            n = units(args)
            self.assertLessEqual(n, MAX_ELEMENTS)
            if n > 1:
                self.assertLessEqual(size, MAX_BYTES + 64)

    def check(self, path, *args):
        """False where it is about something that no command makes."""
        want = content(self.server)
        # As a server, it reads the first snapshot of a file with more in it.
        status, data, text = convert("--to", "resp", "--input-format", "rdb", *args, path)
        if "damaged" in path and (status == 1 or (status == 4 and "out of order" in text)):
            return False
        self.assertEqual((status, text), (0, ""))
        self.assert_small(data)
        minus_zero = writer.has_minus_zero(self.server)
        self.pipe(data)
        got = content(self.server)
        for name in want.keys() | got.keys():
            if name != "digest" or not minus_zero:
                self.assertEqual(want.get(name), got.get(name), name)
        return True

    def each(self, *args):
        n = 0
        for path, _ in writer.snapshots():
            if path.endswith(os.path.join("redis-7.0-rc1", "functions.rdb")):
                continue  # its functions have a form that only that server reads; refused, rightly
            if not self.loads(path):
                continue
            with self.subTest(os.path.relpath(path, FIXTURES)):
                n += self.check(path, *args)
        self.assertGreater(n, 40)

    def test_commands_rebuild_what_the_server_loads(self):
        self.each()

    def test_payloads_rebuild_what_the_server_loads(self):
        self.each("--restore")

    def test_small_commands_rebuild_it_too(self):
        self.each("--max-elements", "3", "--max-bytes", "100")

    def test_newer_files_become_commands_for_this_server(self):
        n = 0
        for args in ([], ["--restore"]):
            for folder, _, names in sorted(os.walk(FIXTURES)):
                for name in sorted(names):
                    path = os.path.join(folder, name)
                    if not name.endswith(".rdb") or not os.path.exists(path[:-4] + ".json"):
                        continue
                    with open(path, "rb") as f:
                        if int(f.read(9)[-3:]) <= writer.RDB_VERSION or name == "module.rdb":
                            continue
                    with self.subTest(f"{os.path.relpath(path, FIXTURES)} {args}"):
                        self.newer(path, args)
                        n += 1
        self.assertGreater(n, 20)

    def newer(self, path, args):
        out = os.path.join(self.dir.name, "out.rdb")
        status, _, text = convert("--to", "rdb", "--for", "redis-7.0", "--lossy", path, "-o", out,
                                  "--force")
        self.assertEqual(status, 0, text)
        self.server.load(out)
        want = content(self.server)
        status, data, text = convert("--to", "resp", "--for", "redis-7.0", "--lossy", *args, path)
        self.assertEqual(status, 0, text)
        self.pipe(data)
        got = content(self.server)
        for name in want.keys() | got.keys():
            self.assertEqual(want.get(name), got.get(name), name)

    def test_existing_keys_are_replaced_when_asked(self):
        path = os.path.join(FIXTURES, "redis-7.0.15", "tiny.rdb")
        for args in ([], ["--restore"]):
            self.assertTrue(self.loads(path))
            want = content(self.server)
            _, data, _ = convert("--to", "resp", "--replace", *args, path)
            self.pipe(data)
            self.assertIn(b"errors: 0,", self.send(data).stdout)
            self.assertEqual(content(self.server), want)


if __name__ == "__main__":
    unittest.main()
