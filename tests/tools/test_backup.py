"""redoubt backup, list, verify, restore and prune, in a folder."""

import base64
import contextlib
import fcntl
import gzip
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

from backup_case import FIXTURES, REDOUBT, SNAPSHOT, BackupCase
from redis_server import RedisServer

BASE = "appendonly.aof.1.base.rdb"
INCR = "appendonly.aof.1.incr.aof"


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x20]))


class ConfigurationLines(BackupCase):
    def test_what_would_be_cut_is_refused(self):
        for line, text in (("keep = " + "x" * 192, "is longer than 198 bytes"),
                           ("keep = count 1\0", "has a NUL byte")):
            self.configure(f"[nightly]\nrepository = {self.repository}\n{line}\n")
            self.fails(2, f"line 3 {text}", "list")
            self.fails(2, "redoubt.conf", "list")
        os.mkdir(self.repository)
        self.configure(f"[nightly]\nrepository = {self.repository}\nhook-post = "
                       + "x" * 186 + "\n")
        self.fails(1, "has no set", "list")


class FromFiles(BackupCase):
    def test_a_snapshot_comes_back_as_it_was(self):
        for compress in ("none", "lz4", "gzip", "zstd"):
            for sealed in (False, True):
                with self.subTest(compress=compress, sealed=sealed):
                    shutil.rmtree(self.repository, ignore_errors=True)
                    self.nightly(sealed=sealed, more=f"compress = {compress}\n")
                    self.good("backup", "nightly")
                    self.good("verify", "nightly", "--level", "parse")
                    out = self.path(f"out-{compress}-{sealed}.rdb")
                    self.good("restore", "nightly", "--to", out)
                    self.assertEqual(bytes_of(out), bytes_of(SNAPSHOT))

    def test_what_is_not_sealed_is_an_ordinary_file(self):
        self.nightly(sealed=False, more="compress = gzip\n")
        self.good("backup")
        self.assertTrue(self.object().endswith("dump.rdb.gz"))
        self.assertEqual(gzip.decompress(bytes_of(self.object())), bytes_of(SNAPSHOT))

    def test_nothing_of_the_data_is_readable_in_a_sealed_set(self):
        self.nightly(more="compress = none\n")
        self.good("backup")
        self.assertNotIn(b"REDIS", bytes_of(self.object()))

    def test_files_are_private(self):
        self.nightly()
        self.good("backup")
        for folder, folders, files in os.walk(self.repository):
            for name in folders:
                mode = os.stat(os.path.join(folder, name)).st_mode
                self.assertEqual(stat.S_IMODE(mode), 0o700)
            for name in files:
                mode = os.stat(os.path.join(folder, name)).st_mode
                self.assertEqual(stat.S_IMODE(mode), 0o600)

    def test_the_manifest_says_what_the_set_is(self):
        self.nightly()
        self.good("backup")
        with open(os.path.join(self.set_folder(), "manifest.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        data = bytes_of(SNAPSHOT)
        entry = manifest["files"][0]
        self.assertEqual(entry["plain"]["bytes"], len(data))
        self.assertEqual(entry["plain"]["sha256"], hashlib.sha256(data).hexdigest())
        self.assertEqual(bytes.fromhex(entry["plain"]["crc64"])[::-1], data[-8:])
        stored = bytes_of(self.object())
        self.assertEqual(entry["stored"]["sha256"], hashlib.sha256(stored).hexdigest())
        self.assertEqual(manifest["server"], "redis 7.0.15")
        self.assertEqual(sum(db["keys"] for db in manifest["dbs"]), manifest["keys"])
        self.assertEqual(len(manifest["hmac"]), 64)

    def test_a_snapshot_that_is_damaged_never_becomes_a_set(self):
        self.nightly()
        self.good("backup")
        data = bytes_of(SNAPSHOT)
        flipped = data[:40] + bytes([data[40] ^ 1]) + data[41:]
        for bad in (data[:-1], flipped, data + b"x", b"", b"no"):
            self.write("dump.rdb", bad)
            self.assertEqual(self.tool("backup").returncode, 1)
            self.assertEqual(len(self.sets()), 1)
        self.assertEqual(len(os.listdir(os.path.join(self.repository, "nightly", "sets"))), 1)

    def test_every_flip_of_a_set_that_is_not_sealed_is_found_by_parse(self):
        self.nightly(sealed=False, more="compress = none\n")
        self.good("backup")
        path = self.object()
        for at in range(0, os.path.getsize(path), max(1, os.path.getsize(path) // 40)):
            flip(path, at)
            self.fails(1, "DAMAGED", "verify", "--level", "parse")
            flip(path, at)
        self.good("verify", "--level", "parse")

    def test_a_log_comes_back_as_it_was(self):
        with RedisServer({"appendonly": "yes"}) as server:
            for i in range(300):
                server.command("SET", f"k{i}", "x" * 50)
            self.nightly(source=os.path.join(server.dir, "appendonlydir"))
            self.good("backup")
            self.good("verify", "--level", "parse")
            self.good("restore", "--to", self.path("out"))
            folder = os.path.join(server.dir, "appendonlydir")
            for name in os.listdir(folder):
                self.assertEqual(self.read("out", "appendonlydir", name),
                                 bytes_of(os.path.join(folder, name)), name)

    def test_the_unfinished_end_of_a_log_is_left_out(self):
        folder = self.path("log")
        os.mkdir(folder)
        shutil.copy(SNAPSHOT, os.path.join(folder, BASE))
        whole = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n"
        self.write(f"log/{INCR}", whole + whole[:17])
        self.write("log/appendonly.aof.manifest", f"file {BASE} seq 1 type b\n"
                   f"file old.aof seq 1 type h\nfile {INCR} seq 1 type i\n")
        self.nightly(source=folder)
        self.good("backup")
        self.good("verify", "--level", "parse")
        self.good("restore", "--to", self.path("out"))
        self.assertEqual(self.read("out", "appendonlydir", INCR), whole)
        self.assertNotIn(b"old.aof", self.read("out", "appendonlydir", "appendonly.aof.manifest"))

    def test_a_log_that_is_damaged_never_becomes_a_set(self):
        folder = self.path("log")
        os.mkdir(folder)
        shutil.copy(SNAPSHOT, os.path.join(folder, BASE))
        whole = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n"
        self.write(f"log/{INCR}", whole + b"?" + whole * 100)
        self.write("log/appendonly.aof.manifest",
                   f"file {BASE} seq 1 type b\nfile {INCR} seq 1 type i\n")
        self.nightly(source=folder)
        self.fails(1, INCR, "backup")
        self.write(f"log/{INCR}", whole)
        self.write(f"log/{BASE}", b"")
        self.fails(1, BASE, "backup")
        shutil.copy(SNAPSHOT, os.path.join(folder, BASE))
        os.unlink(os.path.join(folder, INCR))
        self.fails(3, INCR, "backup")
        self.assertEqual(self.sets(), [])


class FromServers(BackupCase):
    def test_the_example_of_the_manual(self):
        with RedisServer({"repl-diskless-sync-delay": "0"}) as server:
            server.command("DEBUG", "POPULATE", "1000", "key", "100")
            server.command("SELECT", "3")
            server.command("SET", "a", "b", "EX", "1000")
            self.nightly(source=f"redis://127.0.0.1:{server.port}")
            self.good("backup", "nightly")
            listed = self.json("list", "nightly")[0]["sets"]
            self.assertEqual(len(listed), 1)
            self.assertEqual(listed[0]["keys"], 1001)
            self.assertEqual(listed[0]["dbs"], [{"db": 0, "keys": 1000, "expires": 0},
                                                {"db": 3, "keys": 1, "expires": 1}])
            self.assertEqual(len(listed[0]["replid"]), 40)
            self.good("verify", "nightly", "--level", "parse")
            out = self.path("out.rdb")
            self.good("restore", "nightly", "--to", out)
            before = server.command("DEBUG", "DIGEST")
            server.load(out)
            self.assertEqual(server.command("DEBUG", "DIGEST"), before)

    def test_a_server_loads_what_is_restored_as_a_log(self):
        self.nightly()
        self.good("backup")
        out = self.path("out")
        self.good("restore", "--to", out, "--layout", "aof")
        server = RedisServer({"appendonly": "yes", "appenddirname": "appendonlydir"})
        with server:
            server.stop()
            shutil.rmtree(os.path.join(server.dir, "appendonlydir"))
            shutil.copytree(os.path.join(out, "appendonlydir"),
                            os.path.join(server.dir, "appendonlydir"))
            server.start()
            self.assertTrue(server.databases())

    def test_a_server_that_is_not_there_is_a_network_error(self):
        self.nightly(source="redis://127.0.0.1:1")
        self.fails(6, "127.0.0.1:1", "backup")
        self.assertEqual(self.sets(), [])

    def test_a_password_is_in_no_output_and_no_manifest(self):
        self.nightly(source="redis://:s3cret@127.0.0.1:1")
        done = self.tool("backup", "--json")
        self.assertNotIn(b"s3cret", done.stdout + done.stderr)


class Damage(BackupCase):
    def setUp(self):
        super().setUp()
        self.nightly()
        self.good("backup")

    def test_every_byte_of_a_sealed_set_counts(self):
        """Some places of the object and of the manifest; tests/archive flips every byte."""
        for path in (self.object(), os.path.join(self.set_folder(), "manifest.json")):
            size = os.path.getsize(path)
            for at in {0, 7, 40, size // 3, size // 2, size - 20, size - 1}:
                flip(path, at)
                done = self.fails(1, "DAMAGED", "verify", "--level", "digest")
                flip(path, at)
                self.assertNotIn(b"Sanitizer", done.stderr)
        self.good("verify", "--level", "parse")
        self.assertEqual(self.sets()[0]["state"], "ok")

    def test_a_set_that_is_cut_or_missing_is_found_by_list(self):
        path = self.object()
        data = bytes_of(path)
        with open(path, "wb") as file:
            file.write(data[:-1])
        self.fails(1, "DAMAGED", "verify", "--level", "list")
        os.unlink(path)
        self.fails(1, "DAMAGED", "verify", "--level", "list")
        self.fails(2, "no good set", "restore", "--to", self.path("out.rdb"))
        self.assertFalse(os.path.exists(self.path("out.rdb")))

    def test_a_damaged_set_is_not_restored(self):
        path = self.object()
        flip(path, os.path.getsize(path) - 30)
        self.fails(1, "checksum", "restore", "--to", self.path("out.rdb"))
        self.assertFalse(os.path.exists(self.path("out.rdb")))
        self.assertEqual([n for n in os.listdir(self.folder) if "out" in n], [])

    def test_a_damaged_set_is_remembered_as_such(self):
        flip(self.object(), 200)
        self.fails(1, "DAMAGED", "verify")
        self.assertEqual(self.sets()[0]["state"], "damaged")
        self.fails(1, "no good set", "list", "--max-age", "1h")
        flip(self.object(), 200)
        self.good("verify")
        self.assertEqual(self.sets()[0]["state"], "ok")

    def test_a_manifest_that_is_forged_without_the_key_is_found(self):
        path = os.path.join(self.set_folder(), "manifest.json")
        text = bytes_of(path)
        body = re.sub(rb'"keys": \d+,\n "expires"', b'"keys": 77,\n "expires"', text)
        body = body[: body.rindex(b',\n "sha256"')]
        digest = hashlib.sha256(body).hexdigest().encode()
        hmac = text[text.rindex(b',\n "hmac"'):]
        with open(path, "wb") as file:
            file.write(body + b',\n "sha256": "' + digest + b'"' + hmac)
        self.fails(1, "not signed with this key", "verify", "--level", "list")

    def test_a_wrong_key_is_reported_and_not_as_damage(self):
        os.rename(self.key, self.path("old"))
        self.make_key()
        self.fails(2, "wrong key", "restore", "--to", self.path("out.rdb"))
        self.fails(2, "wrong key", "verify", "--level", "parse")
        self.assertEqual(self.sets()[0]["state"], "ok")
        self.write("key", self.read("key") + self.read("old"))
        self.good("verify", "--level", "parse")
        self.good("backup")
        self.assertEqual(len({s["key_id"] for s in self.sets()}), 2)


class Keys(BackupCase):
    def try_key(self, more, opens=True):
        self.nightly(sealed=False, more=more)
        self.good("backup")
        self.assertTrue(self.object().endswith(".sealed"))
        self.good("verify", "--set", "latest", "--level", "parse")

    def test_keys_come_from_files_and_commands_in_several_forms(self):
        key = bytes(range(3, 35))
        self.write("raw", key)
        self.write("hex", f"# the key\n\n{key.hex().upper()}\n")
        self.write("base64", base64.b64encode(key) + b"\n")
        for form in ("raw", "hex", "base64"):
            self.try_key(f"key-file = {self.path(form)}\n")
        self.try_key(f"key-command = cat {self.path('hex')}\n")
        self.nightly(sealed=False, more="key-command = yes\n")  # it has no end
        done = self.tool("backup")
        self.assertIn(b"it prints more than", done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len({s["key_id"] for s in self.sets()}), 1)

    def test_passphrases_come_from_files_and_commands(self):
        self.write("phrase", "correct horse battery\n")
        self.try_key(f"passphrase-file = {self.path('phrase')}\n")
        self.try_key("passphrase-command = echo correct horse battery\n")
        self.good("verify", "--level", "parse")
        self.nightly(sealed=False, more="passphrase-command = echo wrong\n")
        self.fails(2, "the given passphrase is wrong", "verify", "--level", "parse")

    def test_an_invalid_key_is_refused(self):
        self.write("bad", "hello\n")
        self.nightly(sealed=False, more=f"key-file = {self.path('bad')}\n")
        self.fails(2, "64 hexadecimal digits", "backup")
        self.nightly(sealed=False, more=f"key-file = {self.path('none')}\n")
        self.fails(3, "none", "backup")
        self.nightly(sealed=False, more="key-command = exit 3\n")
        self.fails(3, "backup: key-command: exit status 3", "backup")
        self.nightly(sealed=False, more="passphrase-command = true\n")
        self.fails(2, "empty", "backup")
        self.assertFalse(os.path.exists(self.repository))

    def test_a_stream_is_sealed_and_opened(self):
        self.make_key()
        data = os.urandom(200000)
        sealed = self.good("seal", "--key-file", self.key, stdin=data)
        self.assertEqual(self.good("unseal", "--key-file", self.key, stdin=sealed), data)
        self.fails(1, "ends before the last frame", "unseal", "--key-file", self.key,
                   "-o", self.path("out"), stdin=sealed[: 140 + 65556])
        self.assertFalse(os.path.exists(self.path("out")))
        self.fails(2, "no key is given", "seal", stdin=b"x")
        key_id = self.good("seal", "--key-id", "--key-file", self.key).strip()
        self.assertEqual(self.json("seal", "--key-id", "--key-file", self.key)[0]["key_ids"],
                         [key_id.decode()])
        self.assertEqual(len(key_id), 32)
        self.assertEqual(stat.S_IMODE(os.stat(self.key).st_mode), 0o600)

    def test_an_object_of_a_set_opens_by_its_name(self):
        self.nightly(more="compress = none\n")
        self.good("backup")
        name = os.path.relpath(self.object(), self.repository)
        plain = self.good("unseal", "--key-file", self.key, "--name", name, self.object())
        self.assertEqual(plain, bytes_of(SNAPSHOT))
        self.fails(1, "another object", "unseal", "--key-file", self.key, self.object())


class Configuration(BackupCase):
    def test_what_is_wrong_is_named_with_its_line(self):
        for text, said in (("[a]\nsauce = x\n", "sauce"), ("[a b]\nsource = x\n", "letters"),
                           ("[a]\nsource = x\nsource = y\n", "twice"),
                           ("[a]\nsource = x\nnonsense\n", "line 3"), ("", "no target"),
                           ("[a]\nsource = x\n", "no repository"),
                           ("[a]\nkeep =\n", "no value")):
            with self.subTest(text=text):
                self.configure(text)
                self.fails(2, said, "backup")

    def test_a_command_is_not_cut_by_a_comment(self):
        for key in ("hook-pre", "hook-post", "hook-failed", "key-command", "s3-key-command",
                    "passphrase-command"):
            for line in (f"{key} = true ; false", f"{key}\t: true\t;false\n",
                         f"{key}=echo = ;"):
                self.nightly(sealed=False, more=line)
                for tool in ("backup", "list", "check-config"):
                    self.fails(2, "line 5: a ; after a blank begins a comment", tool)
        self.nightly(sealed=False, more=f"hook-post = touch a; touch {self.path('b')} # ;\n")
        self.fails(2, "line 5", "backup")
        self.nightly(sealed=False, more=f"compress = lz4 ; fast\n;hook-pre = x ; y\n"
                     f"hook-post = true; touch {self.path('b')}\n")
        self.good("backup")
        self.assertTrue(os.path.exists(self.path("b")))

    def test_a_target_that_is_not_there_is_named(self):
        self.nightly()
        self.fails(2, "weekly", "backup", "weekly")
        self.fails(3, "nowhere", "backup", "--config", self.path("nowhere"))

    def test_options_take_the_place_of_the_file(self):
        self.nightly(sealed=False)
        other = self.path("other")
        self.good("backup", "--repository", other, "--compress", "none")
        self.assertFalse(os.path.exists(self.repository))
        self.assertTrue(os.path.exists(os.path.join(other, "nightly", "sets")))
        self.fails(2, "compress", "backup", "--compress", "best")

    def test_common_settings_come_before_the_sections(self):
        shutil.copy(SNAPSHOT, self.path("dump.rdb"))
        self.configure(f"repository = {self.repository}\nsource = {self.path('dump.rdb')}\n"
                       "[a]\ncompress = none\n[b]\n\ncompress = lz4\n")
        self.good("backup")
        self.assertEqual(len(self.sets("a")), 1)
        self.assertEqual(len(self.sets("b")), 1)

    def test_two_repositories_get_the_same_set(self):
        second = self.path("second")
        self.nightly(more=f"repository = {second}\n")
        self.good("backup")
        sets = self.sets()
        self.assertEqual(len(sets), 2)
        self.assertEqual(sets[0]["id"], sets[1]["id"])
        self.good("verify", "--level", "parse")
        shutil.rmtree(second)
        self.write("second", "a file")
        done = self.tool("backup")
        self.assertEqual(done.returncode, 8, done.stderr)
        self.assertEqual(len(os.listdir(os.path.join(self.repository, "nightly", "sets"))), 2)

    def test_check_config_says_what_is_wrong(self):
        self.nightly()
        self.good("check-config")
        found, status = self.json("check-config")
        self.assertEqual(status, 0)
        self.assertTrue(all(check["ok"] for check in found["checks"]))
        self.nightly(source="redis://127.0.0.1:1")
        self.fails(6, "source", "check-config")
        self.nightly(source=self.path("nothing"))
        self.fails(3, "nothing", "check-config")


class Runs(BackupCase):
    @contextlib.contextmanager
    def locked(self):
        """Another process has the lock of the target."""
        with open(os.path.join(self.repository, "nightly", "lock"), "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(b"redoubt backup, process 7 on somewhere")
            lock.flush()
            self.unlock = lambda: fcntl.flock(lock, fcntl.LOCK_UN)
            yield

    def test_a_second_run_reports_the_owner_of_the_lock(self):
        self.nightly()
        self.good("backup")
        with self.locked():
            self.fails(7, "process 7 on somewhere", "backup", "--lock-wait", "0s")
            self.fails(7, "process 7", "prune", "--confirm", "--lock-wait", "1s")
            self.good("list")
            self.good("verify")
        self.good("backup")
        self.fails(2, "lock-wait is not a time", "backup", "--lock-wait", "soon")

    def test_a_second_run_waits_until_the_first_has_ended(self):
        self.nightly(more="lock-wait = 30m\n")
        self.good("backup")
        self.good("backup")
        for command in (["backup"], ["prune", "--keep", "count 1", "--confirm"]):
            n = len(self.sets())
            with self.locked(), subprocess.Popen(
                    [REDOUBT, *command, "--config", self.config], stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE) as process:
                self.assertIn(b"nightly: waiting for another run", process.stderr.readline())
                self.assertEqual(len(self.sets()), n)
                self.unlock()
                self.assertEqual(process.wait(), 0)
            self.assertEqual(len(self.sets()), n + 1 if command == ["backup"] else 1)

    def test_two_runs_at_once_both_have_a_set(self):
        self.nightly(more="lock-wait = 30m\n")
        runs = [subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                                 stdout=subprocess.DEVNULL) for _ in range(3)]
        self.assertEqual([process.wait() for process in runs], [0, 0, 0])
        self.assertEqual(len(self.sets()), 3)
        self.good("verify", "--level", "parse")

    def test_what_an_interrupted_backup_left_is_removed(self):
        self.nightly()
        self.good("backup")
        left = os.path.join(self.repository, "nightly", "sets", "20200101T000000Z-00000000")
        os.mkdir(left)
        self.write(os.path.join(left, "dump.rdb"), "left")
        self.assertEqual(len(self.sets()), 1)
        self.good("verify")
        self.good("backup")
        self.assertFalse(os.path.exists(left))

    def test_a_run_that_is_killed_leaves_a_repository_that_is_sound(self):
        self.nightly(more="compress = none\n")
        source = os.path.join(FIXTURES, "redis-7.0.15", "tiny.rdb")
        shutil.copy(source, self.path("dump.rdb"))
        began = time.monotonic()
        self.good("backup")
        whole = time.monotonic() - began
        for i in range(25):
            process = subprocess.Popen([REDOUBT, "backup", "--config", self.config],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(whole * 1.2 * i / 25)
            process.kill()
            process.wait()
            self.good("verify", "--level", "digest")
        self.good("backup")
        ids = {s["id"] for s in self.sets()}
        self.assertEqual(ids, set(os.listdir(os.path.join(self.repository, "nightly", "sets"))))

    def test_a_full_disk_is_an_error_and_leaves_nothing(self):
        self.nightly(sealed=False, more="compress = none\n")
        self.good("backup")

        def small():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))

        done = subprocess.run([REDOUBT, "backup", "--config", self.config], capture_output=True,
                              preexec_fn=small, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(len(self.sets()), 1)
        self.good("verify")

    def test_hooks_run_and_know_what_happened(self):
        hook = 'echo "$REDOUBT_TARGET $REDOUBT_SET $REDOUBT_ERROR" >>' + self.path("said")
        self.nightly(more=f"hook-pre = echo pre >>{self.path('said')}\nhook-post = {hook}\n"
                     f"hook-failed = {hook}\n")
        self.good("backup")
        self.write("dump.rdb", "no")
        self.assertEqual(self.tool("backup").returncode, 1)
        lines = self.read("said").decode().splitlines()
        self.assertEqual(lines[0], "pre")
        self.assertEqual(lines[1].strip(), "nightly " + self.sets()[0]["id"])
        self.assertEqual(lines[2], "pre")
        self.assertIn("dump.rdb", lines[3])
        self.nightly(more="hook-pre = exit 9\n")
        self.fails(3, "exit status 9", "backup")
        self.assertEqual(len(self.sets()), 1)

    def test_figures_for_monitoring_are_written(self):
        self.nightly(more=f"metrics-file = {self.path('redoubt.prom')}\n")
        self.good("backup")

        def figures():
            text = self.read("redoubt.prom").decode()
            return {m[0]: float(m[1]) for m in
                    re.findall(r'^redoubt_backup_(\w+)\{target="nightly"\} (\S+)$', text, re.M)}

        first = figures()
        self.assertEqual(first["last_run_success"], 1)
        self.assertEqual(first["sets"], 1)
        self.assertGreater(first["last_success_bytes"], 0)
        self.write("dump.rdb", "no")
        self.assertEqual(self.tool("backup").returncode, 1)
        second = figures()
        self.assertEqual(second["last_run_success"], 0)
        self.assertEqual(second["last_success_timestamp_seconds"],
                         first["last_success_timestamp_seconds"])

    def test_one_target_that_fails_does_not_stop_the_others(self):
        shutil.copy(SNAPSHOT, self.path("dump.rdb"))
        self.configure(f"repository = {self.repository}\n[a]\nsource = {self.path('none')}\n"
                       f"[b]\nsource = {self.path('dump.rdb')}\n")
        found, status = self.json("backup")
        self.assertEqual(status, 8)
        self.assertEqual([s["ok"] for s in found["sets"]], [False, True])


class Listing(BackupCase):
    def test_an_old_backup_is_a_finding(self):
        self.nightly()
        self.good("backup")
        self.good("list", "--max-age", "25h")
        time.sleep(2)
        self.fails(1, "is", "list", "--max-age", "1s")
        self.fails(2, "--max-age", "list", "--max-age", "soon")

    def test_listing_and_pruning_need_no_key(self):
        self.nightly()
        self.good("backup")
        os.unlink(self.key)
        self.assertEqual(len(self.sets()), 1)
        self.good("list", "--max-age", "1h")
        self.good("prune", "--confirm")
        self.fails(3, "key", "verify")

    def test_a_repository_that_is_not_there_is_an_error(self):
        self.nightly()
        self.fails(3, "repo", "list")
        self.fails(3, "repo", "verify")
        self.fails(3, "repo", "prune")
        self.assertFalse(os.path.exists(self.repository))

    def test_nothing_to_verify_is_a_finding(self):
        self.nightly()
        os.mkdir(self.repository)
        self.fails(1, "no set", "verify")
        self.fails(2, "no good set", "restore", "--to", "x")


class Pruning(BackupCase):
    def test_sets_of_one_second_are_in_the_order_of_time(self):
        self.nightly(sealed=False)
        known = []
        for i in range(16):
            self.write("dump.rdb", bytes_of(SNAPSHOT) if i % 2 else
                       b"REDIS0009\xff" + bytes(8))
            self.good("backup")
            ids = [s["id"] for s in self.sets()]
            self.assertEqual(ids[:-1], known)
            known = ids
            self.good("restore", "--to", self.path("out.rdb"), "--force")
            self.assertEqual(self.read("out.rdb"), self.read("dump.rdb"))
        self.good("prune", "--keep", "count 1", "--confirm")
        self.assertEqual([s["id"] for s in self.sets()], known[-1:])

    def test_the_rules_decide_and_only_with_confirm(self):
        self.nightly(sealed=False)
        for _ in range(3):
            self.good("backup")
        ids = [s["id"] for s in self.sets()]
        self.assertIn(b"would remove 2", self.good("prune", "--keep", "count 1"))
        self.assertEqual(len(self.sets()), 3)
        self.good("prune", "--pin", ids[0])
        self.assertIn(b"removed 1 set", self.good("prune", "--keep", "count 1", "--confirm"))
        kept = [s["id"] for s in self.sets()]
        self.assertIn(ids[0], kept)
        self.assertEqual(len(kept), 2)
        self.good("prune", "--unpin", ids[0])
        self.good("prune", "--keep", "count 1", "--confirm")
        self.assertEqual(len(self.sets()), 1)
        self.good("verify")
        self.fails(2, "no such set", "prune", "--pin", "20000101")
        self.fails(2, "rule", "prune", "--keep", "often")

    def test_the_last_good_set_stays(self):
        self.nightly(sealed=False)
        self.good("backup")
        first = self.sets()[0]["id"]
        self.good("backup")
        flip(self.object(), 30)
        self.fails(1, "DAMAGED", "verify")
        self.good("prune", "--keep", "count 1", "--confirm")
        self.assertEqual([s["id"] for s in self.sets()], [first])

    def test_a_backup_prunes_where_the_caller_says_to(self):
        self.nightly(sealed=False, more="prune = yes\n")
        self.good("backup", "--keep", "count 2")
        for _ in range(3):
            self.good("backup", "--keep", "count 2")
        self.assertEqual(len(self.sets()), 2)


class Restoring(BackupCase):
    def setUp(self):
        super().setUp()
        self.nightly()
        self.good("backup")

    def test_nothing_is_replaced_without_force(self):
        out = self.write("out.rdb", "mine")
        self.fails(2, "out.rdb", "restore", "--to", out)
        self.assertEqual(self.read("out.rdb"), b"mine")
        self.good("restore", "--to", out, "--force")
        self.assertEqual(self.read("out.rdb"), bytes_of(SNAPSHOT))

    def test_a_folder_gets_a_dump_unless_a_log_would_hide_it(self):
        os.mkdir(self.path("data"))
        self.good("restore", "--to", self.path("data"))
        self.assertEqual(self.read("data", "dump.rdb"), bytes_of(SNAPSHOT))
        os.unlink(self.path("data", "dump.rdb"))
        os.mkdir(self.path("data", "appendonlydir"))
        self.write("data/appendonlydir/x", "")
        self.fails(2, "log already", "restore", "--to", self.path("data"))
        self.fails(2, "log already", "restore", "--to", self.path("data"), "--layout", "aof")

    def test_no_folder_stays_of_a_restore_that_failed(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        os.mkdir(self.path("mine"))
        for data in "mine", "new":
            to = ["--to", self.path(data), "--layout", "aof"]
            self.fails(3, "too large", "restore", *to, preexec_fn=limit)
            self.assertEqual(os.path.exists(self.path(data)), data == "mine")
        self.assertEqual(os.listdir(self.path("mine")), [])
        to = ["--to", self.path("new") + "/"]
        self.fails(3, "too large", "restore", *to, preexec_fn=limit)
        self.assertFalse(os.path.exists(self.path("new")))
        to = ["--to", self.path("new"), "--layout", "aof"]
        self.fails(1, "no key matches", "restore", *to, "--key", "no such key")
        self.assertFalse(os.path.exists(self.path("new")))

    def test_a_dry_run_writes_nothing(self):
        said = self.good("restore", "--to", self.path("out.rdb"), "--dry-run")
        self.assertIn(b"would be restored", said)
        self.assertFalse(os.path.exists(self.path("out.rdb")))

    def test_standard_output_gets_the_snapshot(self):
        self.assertEqual(self.good("restore", "--to", "-"), bytes_of(SNAPSHOT))

    def test_what_cannot_be_is_refused(self):
        self.fails(2, "--to", "restore")
        self.fails(2, "no good set", "restore", "--set", "1999", "--to", self.path("x"))

    def test_the_second_repository_helps_out(self):
        second = self.path("second")
        shutil.copytree(self.repository, second)
        self.nightly(more=f"repository = {second}\n")
        for folder, _, files in os.walk(self.repository):
            for name in files:
                if name.startswith("dump"):
                    flip(os.path.join(folder, name), 150)
        self.good("restore", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), bytes_of(SNAPSHOT))

    def test_verify_names_the_repository_if_there_are_several(self):
        second = self.path("second")
        self.assertNotIn(self.repository.encode(), self.good("verify"))
        shutil.copytree(self.repository, second)
        self.nightly(more=f"repository = {second}\n")
        flip(self.object(), 30)
        said = self.fails(1, "", "verify", "--level", "digest").stdout.decode()
        self.assertRegex(said, rf"nightly \S+ in {self.repository}: DAMAGED: ")
        self.assertRegex(said, rf"nightly \S+ in {second}: ok ")

    def test_a_repository_that_cannot_be_read_does_not_keep_others_from_being_verified(self):
        second, gone, damaged = self.path("second"), self.path("gone"), self.object()
        shutil.copytree(self.repository, second)
        for first, more in ((gone, [second]), (second, [gone]), (gone, [second, self.repository])):
            source = f"source = {self.path('dump.rdb')}\nkey-file = {self.key}\n"
            places = "".join(f"repository = {place}\n" for place in (first, *more))
            self.configure(f"[nightly]\n{source}{places}")
            done = self.fails(3, "gone", "verify")
            self.assertEqual(done.stdout.count(b": ok ("), len(more))
            self.assertEqual(done.stderr.count(b"gone"), 1, done.stderr)
            report = json.loads(self.fails(3, "gone", "verify", "--json").stdout)
            self.assertEqual((report["good"], report["damaged"]), (len(more), 0))
            self.assertEqual([e["target"] for e in report["errors"]], ["nightly"])
            self.assertIn(gone, json.dumps(report["errors"]))
            self.others(gone, more)
        flip(damaged, 30)  # damage takes precedence
        self.assertIn(b"DAMAGED", self.fails(1, "gone", "verify").stdout)

    def others(self, gone, more):
        """What list, prune and restore do where a repository cannot be read."""
        done = self.fails(3, "gone", "list")
        self.assertEqual(done.stdout.count(b" in " + self.folder.encode()), len(more))
        report = json.loads(self.fails(3, "gone", "list", "--json").stdout)
        self.assertEqual((len(report["sets"]), len(report["errors"])), (len(more), 1))
        self.fails(3, "gone", "list", "--html", self.path("page.html"), "--force")
        self.assertIn(gone.encode(), self.read("page.html"))
        done = self.fails(3, "gone", "prune", "--confirm")
        self.assertEqual(done.stdout.count(b"kept"), len(more))
        report = json.loads(self.fails(3, "gone", "prune", "--json").stdout)
        self.assertEqual([e["target"] for e in report["errors"]], ["nightly"])
        self.good("restore", "--force", "--to", self.path("out.rdb"))
        self.assertEqual(self.read("out.rdb"), bytes_of(SNAPSHOT))
        self.assertEqual(self.good("restore", "--to", "-"), bytes_of(SNAPSHOT))
        self.assertFalse(os.path.exists(gone))

    def test_a_target_without_its_key_does_not_keep_others_from_being_verified(self):
        source = f"source = {self.path('dump.rdb')}\nrepository = {self.repository}\n"
        self.configure(f"[first]\n{source}key-file = {self.path('no-key')}\n"
                       f"[nightly]\n{source}key-file = {self.key}\n")
        done = self.fails(3, "no-key", "verify", "--level", "parse")
        self.assertIn(b"nightly ", done.stdout)
        self.assertEqual(done.stderr.count(b"no-key"), 1, done.stderr)

    def test_a_set_without_seal_where_there_is_a_key_is_reported(self):
        for more in (f"passphrase-file = {self.write('phrase', 'a long phrase')}", None):
            shutil.rmtree(self.repository)
            self.nightly(sealed=False)
            self.good("backup")
            self.assertNotIn(b"not sealed", self.tool("verify").stderr)
            self.nightly(sealed=more is None, more=more or "")
            out = self.path("out.rdb")
            for args in (("list",), ("verify",), ("verify", "--level", "list"),
                         ("restore", "--force", "--to", out)):
                self.fails(1, "not", *args)
                self.fails(1, "--allow-unsealed", *args)
                self.good(*args, "--allow-unsealed")
            self.assertEqual(self.sets()[0]["state"], "unsealed")
            self.good("backup")
            self.assertNotIn(b"not sealed", self.tool("verify", "--set", "latest").stderr)
            self.assertNotIn(b"not sealed", self.tool("restore", "--force", "--to", out).stderr)


class Units(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_the_units_are_sound(self):
        source = os.path.join(os.environ["REDOUBT_SOURCE"], "docs", "systemd")
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(source):
                text = bytes_of(os.path.join(source, name)).decode()
                with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                    out.write(text.replace("/usr/bin/redoubt", REDOUBT))
            for name in os.listdir(source):
                unit = os.path.join(folder, name.replace("@", "@nightly"))
                shutil.copy(os.path.join(folder, name), unit)
                done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit],
                                      capture_output=True, check=False)
                self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))
