"""Files of the one server in the other, and the words about damaged ones."""

import glob
import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from persistence import AOF, fill  # noqa: E402
from server_under_test import (Redis, Redoubt, ReplyError, ServerDied,  # noqa: E402
                               of_reference, reference_tape, wait_for)


def digest(server):
    return server.client().command("DEBUG", "DIGEST")


def reference_digest(folder, config):
    """What redis-server makes of a folder that another server left."""
    with Redis(config) as theirs:
        theirs.kill()
        copy_data(folder, theirs.dir)
        theirs.start()
        return digest(theirs)


def copy_data(source, target):
    for name in (AOF, "dump.rdb", "appendonly.aof"):
        have, put = os.path.join(source, name), os.path.join(target, name)
        if os.path.isdir(put):
            shutil.rmtree(put)
        elif os.path.exists(put):
            os.unlink(put)
        if os.path.isdir(have):
            shutil.copytree(have, put)
        elif os.path.exists(have):
            shutil.copy(have, put)


class Folder:
    """The files of a server that does not run."""

    def __init__(self, folder):
        self.dir = folder

    def path(self, *names):
        return os.path.join(self.dir, *names)


def contents(server):
    """{name: bytes} of what copy_data() copies."""
    found = {}
    for folder in ("", AOF):
        for name in os.listdir(server.path(folder)) if os.path.isdir(server.path(folder)) else []:
            path = server.path(folder, name)
            if os.path.isfile(path) and (folder or name in ("dump.rdb", "appendonly.aof")):
                with open(path, "rb") as f:
                    found[os.path.join(folder, name)] = f.read()
    return found


def words(log):
    """Of a log what both servers must say."""
    skip = ("RDB age", "RDB memory usage", "This is redoubt", "oO0OoO0O", "Redis version=",
            "Configuration loaded", "monotonic clock", "Running mode", "WARNING", "Server init",
            "[additional info]", "'redoubt check-rdb")
    lines = []
    for line in log.splitlines():
        m = re.match(r"\d+:([MC]) \d+ \w+ \d+ [\d:.]+ (.*)", line)
        if not m or any(word in line for word in skip):
            continue
        text = re.sub(r"[\d.]+ seconds", "T seconds", m.group(2))
        text = re.sub(r"reading offset \d+, function at \S+ ->", "reading ->", text)
        lines.append(text)
    return lines


class Files(unittest.TestCase):
    def there_and_back(self, config, act):
        """What ours wrote, redis-server loads; what it wrote of that, ours loads and writes."""
        with Redis(config) as theirs, Redoubt(config) as ours:
            for server in (theirs, ours):
                c = server.client()
                fill(c)
                act(server, c)
                c.command("SET", "after", "1")
                c.command("DEL", "s:5")
            want = digest(theirs)
            for server in (theirs, ours):
                server.terminate()
            self.assertEqual(reference_digest(ours.dir, config), want)
            copy_data(theirs.dir, ours.dir)
            ours.start()
            ours.client().command("CONFIG", "SET", "appendonly", "no", "save", "")
            self.assertEqual(ours.client().command("SAVE"), b"OK")
            self.assertEqual(reference_digest(ours.dir, {"appendonly": "no"}), want)

    def rewrite(self, server, c):
        c.command("BGREWRITEAOF")
        wait_for(lambda: "AOF rewrite finished successfully" in server.log)

    def test_a_snapshot(self):
        self.there_and_back({"save": "3600 1"}, lambda server, c: None)

    def test_a_snapshot_without_compression_and_checksum(self):
        config = {"save": "3600 1", "rdbcompression": "no", "rdbchecksum": "no"}
        self.there_and_back(config, lambda server, c: None)

    def test_a_log(self):
        self.there_and_back({"appendonly": "yes"}, lambda server, c: None)

    def test_a_log_with_times(self):
        config = {"appendonly": "yes", "aof-timestamp-enabled": "yes"}
        self.there_and_back(config, lambda server, c: None)

    def test_a_log_that_was_rewritten(self):
        self.there_and_back({"appendonly": "yes"}, self.rewrite)

    def test_a_log_whose_base_is_commands(self):
        config = {"appendonly": "yes", "aof-use-rdb-preamble": "no"}
        self.there_and_back(config, self.rewrite)

    def test_a_log_that_was_turned_on_meanwhile(self):
        with Redoubt({"appendonly": "no"}) as ours:
            c = ours.client()
            fill(c)
            c.command("CONFIG", "SET", "appendonly", "yes")
            wait_for(lambda: "AOF rewrite finished successfully" in ours.log)
            c.command("SET", "after", "1")
            ours.kill()
            want = reference_digest(ours.dir, {"appendonly": "yes"})
        with Redis({"appendonly": "no"}) as theirs:
            c = theirs.client()
            fill(c)
            c.command("SET", "after", "1")
            self.assertEqual(digest(theirs), want)


CUT = b"*3\r\n$3\r\nSET\r\n$3\r\nab"
SET = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
MULTI = b"*1\r\n$5\r\nMULTI\r\n"


class Damage(unittest.TestCase):
    """The same damaged folder is given to both; they say the same, and start or do not."""

    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.mkdtemp(prefix="redoubt-kept-")
        cls.addClassCleanup(shutil.rmtree, cls.kept)
        os.mkdir(os.path.join(cls.kept, AOF))
        for name, data in reference_tape().kept("files", cls.written).items():
            with open(os.path.join(cls.kept, name), "wb") as f:
                f.write(data)

    @classmethod
    def written(cls):
        """Files of redis-server."""
        with Redis({"appendonly": "yes", "save": "3600 1"}) as server:
            c = server.client()
            c.command("SET", "k", "v")
            c.command("BGREWRITEAOF")
            wait_for(lambda: "AOF rewrite finished successfully" in server.log)
            c.command("SET", "k2", "v2")
            server.terminate()
            return contents(server)

    def reference(self, config, damage):
        """As one(), of redis-server 7.0.15."""
        with tempfile.TemporaryDirectory(prefix="redoubt-damaged-") as folder:
            copy_data(self.kept, folder)
            damaged = Folder(folder)
            damage(damaged)
            question = config, sorted(contents(damaged).items())
        return of_reference(question, lambda _: self.one(Redis, config, damage))

    def one(self, kind, config, damage):
        with kind({"appendonly": "yes", "logfile": "log", **config}) as server:
            server.kill()
            copy_data(self.kept, server.dir)
            os.unlink(server.path("log"))
            damage(server)
            try:
                server.start()
                started = True
                server.kill()
            except ServerDied:
                started = False
                self.assertEqual(server.process.wait(), 1)
            with open(server.path("log")) as f:
                return started, words(f.read())

    def both(self, damage, starts, config=None):
        theirs = self.reference(config or {}, damage)
        ours = self.one(Redoubt, config or {}, damage)
        self.assertEqual(ours, theirs)
        self.assertEqual(ours[0], starts)
        return ours[1]

    def put(self, name, data, mode="wb"):
        def act(server):
            with open(server.path(name), mode) as f:
                f.write(data)
        return act

    INCR = os.path.join(AOF, "appendonly.aof.2.incr.aof")
    BASE = os.path.join(AOF, "appendonly.aof.2.base.rdb")
    MANIFEST = os.path.join(AOF, "appendonly.aof.manifest")

    def test_a_log_that_ends_inside_a_command(self):
        self.both(self.put(self.INCR, CUT, "ab"), True)

    def test_the_same_when_that_is_not_allowed(self):
        said = self.both(self.put(self.INCR, CUT, "ab"), False, {"aof-load-truncated": "no"})
        self.assertIn("Unexpected end of file reading the append only file", said[-1])

    def test_a_log_that_ends_inside_a_transaction(self):
        self.both(self.put(self.INCR, MULTI + SET, "ab"), True)

    def test_a_script_in_a_transaction_has_its_own_multi_and_exec(self):
        """Redis 3.2 writes them where the script calls redis.replicate_commands()."""
        exec_ = b"*1\r\n$4\r\nEXEC\r\n"
        log = MULTI + SET + MULTI + SET + exec_ + SET + exec_ + SET
        damage = self.put(self.INCR, log, "ab")
        theirs, ours = self.reference({}, damage), self.one(Redoubt, {}, damage)
        self.assertTrue(theirs[0] and ours[0])
        # redis-server 7.0 reports the inner MULTI and the outer EXEC as errors, and ignores them.
        self.assertEqual(ours[1], [line for line in theirs[1] if "== CRITICAL ==" not in line])

    def test_damage_in_the_middle(self):
        said = self.both(self.put(self.INCR, b"hello\r\n" + SET, "ab"), False)
        self.assertIn("Bad file format reading the append only file", said[-1])

    def test_unknown_commands(self):
        self.both(self.put(self.INCR, b"*1\r\n$5\r\nMULTX\r\n", "ab"), False)

    def test_commands_that_fail(self):
        self.both(self.put(self.INCR, b"*2\r\n$4\r\nINCR\r\n$2\r\nk2\r\n", "ab"), True)

    def test_bases_that_are_cut_or_missing(self):
        self.both(lambda server: os.truncate(server.path(self.BASE), 100), False)
        self.both(lambda server: os.unlink(server.path(self.BASE)), False)

    def test_an_empty_base_that_must_be_a_snapshot(self):
        """redis-server 7.0.15 starts without the data of the base."""
        damage = self.put(self.BASE, b"")
        self.assertTrue(self.reference({}, damage)[0])
        started, said = self.one(Redoubt, {}, damage)
        self.assertFalse(started)
        self.assertIn("appendonly.aof.2.base.rdb", said[-1])

    def test_manifests(self):
        for text in ("", "\n", "file a seq\n", "file a seq 2 type i\nfile b seq 1 type i\n",
                     "file a seq 2 type b\nfile b seq 1 type b\n", "file a seq 2 type z\n",
                     "fileX a seq 2 type b\n", "file " + "a" * 2000 + " seq 1 type b\n",
                     "file x/a seq 2 type b\n"):
            with self.subTest(text[:40]):
                self.both(self.put(self.MANIFEST, text.encode()), False)

    def test_a_log_of_before_7_0(self):
        def old(server):
            shutil.rmtree(server.path(AOF))
            self.put("appendonly.aof", SET + SET)(server)
        self.both(old, True)

    def test_snapshots(self):
        no = {"appendonly": "no"}
        with open(os.path.join(self.kept, "dump.rdb"), "rb") as f:
            whole = f.read()
        broken = whole[:-1] + bytes([whole[-1] ^ 1])
        for data in (whole[:-12], broken, b"", b"REDIS0099\xff" + bytes(8), b"RADIS0010"):
            with self.subTest(data[:12]):
                self.both(self.put("dump.rdb", data), False, no)
        self.both(lambda server: None, True, no)

    def test_a_transaction_that_is_torn_inside_a_command_is_cut_off_as_a_whole(self):
        """redis-server 7.0.15 cuts after the MULTI, and the next start throws away what came."""
        with Redoubt({"appendonly": "yes"}) as ours:
            ours.kill()
            copy_data(self.kept, ours.dir)
            size = os.path.getsize(ours.path(self.INCR))
            self.put(self.INCR, MULTI + SET + CUT, "ab")(ours)
            ours.start()
            self.assertEqual(os.path.getsize(ours.path(self.INCR)), size)
            ours.client().command("SET", "new", "1")
            ours.restart()
            self.assertEqual(ours.client().command("GET", "new"), b"1")
            self.assertIsNone(ours.client().command("GET", "a"))

    def test_commands_after_a_snapshot_are_cut_after_it(self):
        """redis-server 7.0.15 empties the file when the first command is torn."""
        with Redoubt({"appendonly": "yes"}) as ours:
            ours.kill()
            copy_data(self.kept, ours.dir)
            shutil.rmtree(ours.path(AOF))
            os.rename(ours.path("dump.rdb"), ours.path("appendonly.aof"))
            self.put("appendonly.aof", CUT, "ab")(ours)
            ours.start()
            ours.restart()
            self.assertEqual(ours.client().command("GET", "k"), b"v")

    def test_a_file_with_another_after_it_is_not_cut(self):
        with Redoubt({"appendonly": "yes"}) as ours:
            ours.kill()
            copy_data(self.kept, ours.dir)
            shutil.copy(ours.path(self.INCR), ours.path(AOF, "appendonly.aof.3.incr.aof"))
            self.put(self.MANIFEST, b"file appendonly.aof.3.incr.aof seq 3 type i\n", "ab")(ours)
            self.put(self.INCR, CUT, "ab")(ours)
            size = os.path.getsize(ours.path(self.INCR))
            with self.assertRaises(ServerDied):
                ours.start()
            self.assertIn("the truncated file is not the last file", ours.log)
            self.assertEqual(os.path.getsize(ours.path(self.INCR)), size)


class WhatIsLoadedCanBeSaved(unittest.TestCase):
    """What 7.0 has no form for comes from files of other versions. It must not keep the server from
    saving, and a save that fails would refuse every write (MISCONF)."""

    @staticmethod
    def files():
        folder = os.environ.get("REDOUBT_FIXTURES") or os.path.join(
            os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures")
        kinds = re.compile(r"(redis-7|redis-unstable|valkey|hand)[^/]*/[^/]*"
                           r"(hash-ttl|module|functions|streams|lru|mixed)\.rdb$")
        found = sorted(path for path in glob.glob(os.path.join(folder, "*", "*.rdb"))
                       if kinds.search(path) and os.path.getsize(path) < 1 << 20)
        return found

    def loaded(self, path, config=None):
        server = Redoubt({"aof-use-rdb-preamble": "no", **(config or {})})
        server.dir = tempfile.mkdtemp(prefix="redoubt-test-")
        shutil.copy(path, server.path("dump.rdb"))
        return server

    def check(self, path):
        server = self.loaded(path)
        try:
            try:
                server.start()
            except ServerDied:
                return False  # a file that is refused at the start, which says why
            self.assertEqual(server.client().ask("SAVE"), ("+", b"OK"))
            self.assertEqual(server.client().command("BGSAVE"), b"Background saving started")
            wait_for(lambda: server.info("persistence")["rdb_bgsave_in_progress"] == "0")
            self.assertEqual(server.info("persistence")["rdb_last_bgsave_status"], "ok")
            before = digest(server)
            server.restart()
            wait_for(lambda: digest(server) == before)
            server.client().command("CONFIG", "SET", "appendonly", "yes")
            wait_for(lambda: "rewrite_in_progress:0" in
                     server.client().command("INFO", "persistence").decode())
            base = server.path("appendonlydir", "appendonly.aof.1.base.aof")
            wait_for(lambda: os.path.isfile(base))
            server.kill()
            server.config["appendonly"] = "yes"
            server.start()
            wait_for(lambda: digest(server) == before)
            return True
        finally:
            server.close()
            server.complain()

    def test_whatever_is_loaded_is_saved_and_rewritten(self):
        files = self.files()
        self.assertGreater(len(files), 10)
        done = []
        for path in files:
            with self.subTest(os.path.join(*path.split(os.sep)[-2:])):
                if self.check(path):
                    done.append(path)
        self.assertGreater(len(done), 10)
        for kind in ("module", "functions", "hash-ttl"):
            self.assertTrue(any(kind in path for path in done), kind)

    def test_the_log_says_which_version_can_load_it(self):
        path = next(p for p in self.files() if p.endswith("redis-7.4-rc1/hash-ttl.rdb"))
        server = self.loaded(path)
        try:
            server.start()
            self.assertEqual(server.client().ask("SAVE"), ("+", b"OK"))
            self.assertIn("RDB version 12", server.log)
            with open(server.path("dump.rdb"), "rb") as f:
                self.assertEqual(f.read(9), b"REDIS0012")
            server.client().command("FLUSHALL")
            server.client().command("SAVE")
            with open(server.path("dump.rdb"), "rb") as f:
                self.assertEqual(f.read(9), b"REDIS0010")
        finally:
            server.close()
            server.complain()


class Locked(unittest.TestCase):
    """One log is for one server."""

    LOG = {"appendonly": "yes"}

    def second(self, first, config):
        """A server on the folder of the first; it has a folder of its own to write to."""
        second = Redoubt(config, args=["--dir", first.dir], wait=False)
        return second

    def test_a_second_server_on_the_log_does_not_start(self):
        with Redoubt(self.LOG) as first:
            c = first.client()
            c.command("SET", "k", "v")
            before = sorted(os.listdir(first.path(AOF)))
            with self.second(first, self.LOG) as second:
                self.assertEqual(second.process.wait(600), 1)
                self.assertIn("another server is using the log appendonly.aof", second.log)
            self.assertEqual(sorted(os.listdir(first.path(AOF))), before)
            c.command("BGREWRITEAOF")
            wait_for(lambda: "rewrite finished successfully" in first.log)
            first.kill()
            first.start()
            self.assertEqual(first.client().command("GET", "k"), b"v")

    def test_logs_of_two_servers_with_different_names_can_share_a_folder(self):
        with Redoubt(self.LOG) as first:
            with self.second(first, {**self.LOG, "appendfilename": "other.aof"}) as second:
                self.assertTrue(second._wait())
                for number, server in enumerate((first, second)):
                    c = server.client()
                    c.command("SET", "k", number)
                    c.command("BGREWRITEAOF")
                    wait_for(lambda: "rewrite finished successfully" in server.log)
                    server.restart()
                    self.assertTrue(server._wait())
                    self.assertEqual(server.client().command("GET", "k"), b"%d" % number)

    def test_a_log_that_is_turned_on_later_is_locked_as_well(self):
        with Redoubt(self.LOG) as first:
            with self.second(first, {"appendonly": "no"}) as second:
                self.assertTrue(second._wait())
                with self.assertRaisesRegex(ReplyError, "^ERR CONFIG SET failed"):
                    second.client().command("CONFIG", "SET", "appendonly", "yes")
                first.kill()
                second.client().command("CONFIG", "SET", "appendonly", "yes")

    def test_the_lock_goes_with_the_process_also_while_a_child_writes(self):
        with Redoubt({**self.LOG, "rdb-key-save-delay": "200000"}) as server:
            c = server.client()
            c.command("DEBUG", "POPULATE", 1000)
            c.command("BGREWRITEAOF")
            wait_for(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "1")
            server.kill()
            server.config["rdb-key-save-delay"] = "0"
            server.start()
            self.assertEqual(server.client().command("DBSIZE"), 0)


if __name__ == "__main__":
    unittest.main()
