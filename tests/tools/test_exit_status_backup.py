"""docs/exit-status.md, the table of the backup tools: every cell is provoked.

REDOUBT names the program.
"""

import fcntl
import glob
import os
import re
import shutil
import subprocess
import time
import unittest

from backup_case import REDOUBT, BackupCase
from captures import command
from redis_server import RedisServer
from test_exit_status import master_with, rows_after

STATUSES = list(range(10))


def table():
    """Tool -> status -> text of the cell, "-" where the tool never ends with it."""
    return rows_after("backup tool")


class BackupCells(BackupCase):
    def setUp(self):
        super().setUp()
        self.nightly()
        self.missing = self.path("missing")

    def ends(self, status, *args, stdin=b""):
        done = self.tool(*args, stdin=stdin)
        said = (done.stderr + done.stdout).decode(errors="replace")
        self.assertEqual(done.returncode, status, (args, said))
        if status != 0:
            self.assertTrue(said, "it must say why")

    def backed_up(self):
        self.good("backup", "nightly")

    def damaged(self):
        """A set with one wrong byte in its object."""
        self.backed_up()
        path = self.object()
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))

    def unreachable(self):
        self.nightly(source="redis://127.0.0.1:1")

    def locked(self, *args):
        """Another process has the lock of the target."""
        self.backed_up()
        with open(os.path.join(self.repository, "nightly", "lock"), "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(b"redoubt backup, process 7 on somewhere")
            lock.flush()
            self.ends(7, *args)

    # ---- backup ----

    def case_backup_0(self):
        self.ends(0, "backup", "nightly")

    def case_backup_1(self):
        with open(self.path("dump.rdb"), "r+b") as file:
            file.truncate(20)
        self.ends(1, "backup", "nightly")

    def case_backup_2(self):
        self.ends(2, "backup", "weekly")

    def case_backup_3(self):
        self.nightly(source=self.missing)
        self.ends(3, "backup", "nightly")

    def case_backup_4(self):
        with open(self.path("dump.rdb"), "r+b") as file:
            file.write(b"REDIS0099")
        self.ends(4, "backup", "nightly")

    def case_backup_6(self):
        self.unreachable()
        self.ends(6, "backup", "nightly")

    def case_backup_7(self):
        self.locked("backup", "nightly", "--lock-wait", "0s")

    def case_backup_8(self):
        with open(self.config, "a", encoding="utf-8") as file:
            file.write(f"[other]\nsource = {self.missing}\nrepository = {self.repository}\n"
                       f"key-file = {self.key}\n")
        self.ends(8, "backup")

    def case_backup_9(self):
        self.backed_up()
        self.good("pause", "nightly")
        self.ends(9, "backup", "nightly")

    # ---- pause, resume ----

    def case_pause_0(self):
        self.backed_up()
        self.ends(0, "pause", "nightly")

    def case_pause_2(self):
        self.ends(2, "pause", "weekly")
        self.ends(2, "pause")

    def case_pause_3(self):
        self.ends(3, "pause", "nightly")

    def case_pause_4(self):
        self.unsupported("pause", "nightly")

    def case_resume_0(self):
        self.backed_up()
        self.ends(0, "resume", "nightly")

    def case_resume_2(self):
        self.ends(2, "resume", "weekly")

    def case_resume_3(self):
        self.ends(3, "resume", "nightly")

    def case_resume_4(self):
        self.unsupported("resume", "nightly")

    # ---- doctor ----

    def case_doctor_0(self):
        self.backed_up()
        self.ends(0, "doctor", self.folder)

    def case_doctor_1(self):
        os.unlink(self.path("dump.rdb"))
        self.ends(1, "doctor", self.folder, "--skip", "backup")

    def case_doctor_2(self):
        self.ends(2, "doctor", self.folder, "--target", "weekly")

    def case_doctor_3(self):
        self.ends(3, "doctor", self.missing)

    def case_doctor_6(self):
        self.ends(6, "doctor", "redis://127.0.0.1:1")

    def case_doctor_8(self):
        self.ends(8, "doctor", self.folder)

    # ---- list ----

    def case_list_0(self):
        self.backed_up()
        self.ends(0, "list", "nightly")

    def case_list_1(self):
        os.makedirs(self.repository)
        self.ends(1, "list", "nightly", "--max-age", "1h")
        self.ends(1, "list", "nightly")

    def case_list_2(self):
        self.ends(2, "list", "weekly")

    def case_list_3(self):
        self.ends(3, "list", "nightly")

    # ---- verify ----

    def unsupported(self, *args):
        self.ends(4, *args, "--repository", "ftp://host/path")

    def case_list_4(self):
        self.unsupported("list", "nightly")

    def case_verify_0(self):
        self.backed_up()
        self.ends(0, "verify", "nightly", "--level", "parse")

    def case_verify_1(self):
        self.damaged()
        self.ends(1, "verify", "nightly", "--level", "digest")

    def case_verify_2(self):
        self.ends(2, "verify", "nightly", "--level", "most")

    def case_verify_3(self):
        self.ends(3, "verify", "nightly")

    # ---- restore ----

    def case_verify_4(self):
        self.unsupported("verify", "nightly")

    def case_restore_0(self):
        self.backed_up()
        self.ends(0, "restore", "nightly", "--to", self.path("out.rdb"))

    def case_restore_1(self):
        self.damaged()
        self.ends(1, "restore", "nightly", "--to", self.path("out.rdb"))
        self.assertFalse(os.path.exists(self.path("out.rdb")))

    def case_restore_2(self):
        self.backed_up()
        self.ends(2, "restore", "nightly", "--to", self.path("dump.rdb"))

    def case_restore_3(self):
        self.ends(3, "restore", "nightly", "--to", self.path("out.rdb"))

    def log_with(self, *words):
        """The set is a log with this command, which does not fit the data."""
        name = "appendonly.aof.1.incr.aof"
        os.mkdir(self.path("log"))
        self.write(os.path.join("log", name), command("SET", "text", "x") + command(*words))
        self.write("log/appendonly.aof.manifest", f"file {name} seq 1 type i\n")
        self.nightly(source=self.path("log"))
        self.backed_up()

    def case_restore_4(self):
        self.log_with("NOPE.SET", "key", "$", "1")
        self.ends(4, "restore", "nightly", "--to", self.path("out.rdb"))

    def case_restore_8(self):
        self.log_with("LPUSH", "text", "1")
        self.ends(8, "restore", "nightly", "--to", self.path("out.rdb"))

    def case_restore_6(self):
        self.backed_up()
        self.ends(6, "restore", "nightly", "--to", "redis://127.0.0.1:1")

    # ---- archive ----

    def archive(self, url, *args):
        self.nightly(source=url, more=f"spool = {self.path('spool')}\n")
        return ("archive", "nightly", *args)

    def bases(self):
        return glob.glob(os.path.join(self.repository, "nightly", "sets", "*", "manifest.json"))

    def stopped(self, status, away=False):
        """A run that is ended by SIGTERM when it has the stream."""
        if away:
            self.repository = self.path("away", "repository")
        with RedisServer({"repl-diskless-sync-delay": "0"}) as server:
            args = self.archive(f"redis://127.0.0.1:{server.port}")
            with subprocess.Popen([REDOUBT, *args, "--config", self.config],
                                  stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
                for line in process.stderr:
                    if b"snapshot received" in line:
                        break
                server.command("SET", "a", "b")
                acked = 0
                while not acked:
                    acked = server.command("WAIT", "1", "1000")
                while status == 0 and not self.bases():  # without a base it ends with 8
                    time.sleep(0.05)
                process.terminate()
                process.stderr.read()
            self.assertEqual(process.returncode, status)

    def case_archive_0(self):
        self.stopped(0)

    def case_archive_1(self):
        with master_with(b"REDIS0010\xfe\x00\x00\x01k\xff" + bytes(8)) as master:
            self.ends(1, *self.archive(f"redis://127.0.0.1:{master.port}"))

    def case_archive_2(self):
        self.ends(2, "archive", "weekly")

    def case_archive_3(self):
        self.ends(3, *self.archive("redis://127.0.0.1:1", "--spool", self.path("no", "spool")))

    def case_archive_4(self):
        self.ends(4, *self.archive(self.path("dump.rdb")))

    def case_archive_6(self):
        with RedisServer() as server:
            self.ends(6, *self.archive(f"redis://unknown:wrong@127.0.0.1:{server.port}"))

    def case_archive_7(self):
        args = self.archive("redis://127.0.0.1:1")
        folder = os.path.join(self.repository, "nightly", "stream")
        os.makedirs(folder)
        with open(os.path.join(folder, "lock"), "w+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.ends(7, *args)

    def case_archive_8(self):
        self.stopped(8, away=True)

    # ---- prune ----

    def case_prune_0(self):
        self.backed_up()
        self.ends(0, "prune", "nightly", "--confirm")

    def case_prune_2(self):
        self.ends(2, "prune", "nightly", "--keep", "often")

    def case_prune_3(self):
        self.ends(3, "prune", "nightly")

    def case_prune_4(self):
        self.unsupported("prune", "nightly", "--confirm")

    def case_prune_7(self):
        self.locked("prune", "nightly", "--confirm", "--lock-wait", "0s")

    # ---- copy ----

    def offsite(self, more="lock-wait = 0s\n", sealed=True):
        """A second target, to which sets are copied."""
        text = self.read("redoubt.conf").decode()
        key = f"key-file = {self.key}\n" if sealed else ""
        self.configure(text + f"[offsite]\nrepository = {self.path('offsite')}\n" + key + more)

    def case_copy_0(self):
        self.backed_up()
        self.offsite()
        self.ends(0, "copy", "nightly", "offsite")

    def case_copy_1(self):
        self.damaged()
        self.offsite()
        self.ends(1, "copy", "nightly", "offsite")

    def case_copy_2(self):
        self.backed_up()
        self.offsite(sealed=False)
        self.ends(2, "copy", "nightly", "offsite")
        self.ends(2, "copy", "nightly", "nowhere")
        self.ends(2, "copy", "nightly")

    def case_copy_3(self):
        self.offsite()
        self.ends(3, "copy", "nightly", "offsite")

    def case_copy_4(self):
        self.offsite()
        text = self.read("redoubt.conf").decode()
        self.configure(text.replace(self.path("offsite"), "ftp://somewhere/offsite"))
        self.good("backup", "nightly")
        self.ends(4, "copy", "nightly", "offsite")

    def case_copy_7(self):
        self.backed_up()
        self.offsite()
        self.good("copy", "nightly", "offsite")
        with open(self.path("offsite", "offsite", "lock"), "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(b"redoubt backup, process 7 on somewhere")
            lock.flush()
            self.ends(7, "copy", "nightly", "offsite")

    def case_copy_8(self):
        self.damaged()
        self.backed_up()
        self.offsite()
        self.ends(8, "copy", "nightly", "offsite")

    # ---- unlock ----

    def case_unlock_0(self):
        self.backed_up()
        self.ends(0, "unlock", "nightly", "--confirm")

    def case_unlock_2(self):
        self.ends(2, "unlock", "nightly", "--force")

    def case_unlock_3(self):
        self.ends(3, "unlock", "nightly")

    def case_unlock_4(self):
        self.unsupported("unlock", "nightly")

    def case_unlock_7(self):
        self.locked("unlock", "nightly", "--confirm")

    # ---- check-config ----

    def case_check_config_0(self):
        self.ends(0, "check-config", "nightly")

    def case_check_config_2(self):
        self.ends(2, "check-config", "weekly")

    def case_check_config_3(self):
        self.nightly(source=self.missing)
        self.ends(3, "check-config", "nightly")

    def case_check_config_4(self):
        self.unsupported("check-config", "nightly")

    def case_check_config_6(self):
        self.unreachable()
        self.ends(6, "check-config", "nightly")

    # ---- seal and unseal ----

    def sealed(self):
        return self.good("seal", "--key-file", self.key, stdin=b"text")

    def case_seal_0(self):
        self.ends(0, "seal", "--key-file", self.key, stdin=b"text")

    def case_seal_2(self):
        self.ends(2, "seal", stdin=b"text")

    def case_seal_3(self):
        self.ends(3, "seal", "--key-file", self.key, self.missing)

    def case_unseal_0(self):
        self.ends(0, "unseal", "--key-file", self.key, stdin=self.sealed())

    def case_unseal_1(self):
        self.ends(1, "unseal", "--key-file", self.key, stdin=self.sealed()[:-1])

    def case_unseal_2(self):
        self.ends(2, "unseal", stdin=self.sealed())

    def case_unseal_3(self):
        self.ends(3, "unseal", "--key-file", self.key, self.missing)

    def test_cells(self):
        cells = table()
        self.assertEqual(len(cells), 14)
        for tool, row in cells.items():
            self.assertEqual(sorted(row), STATUSES)
            for status, text in row.items():
                case = getattr(self, f"case_{tool.replace('-', '_')}_{status}", None)
                with self.subTest(tool=tool, status=status):
                    if text == "-":
                        self.assertIsNone(case, "the table has no such cell")
                        continue
                    self.assertTrue(len(text) > 3)
                    self.assertIsNotNone(case, "a cell without a case")
                    self.doCleanups()
                    self.setUp()
                    case()

    def test_no_case_is_beside_the_table(self):
        cells = table()
        for name in dir(self):
            match = re.fullmatch(r"case_(\w+)_(\d+)", name)
            if match:
                self.assertNotEqual(cells[match[1].replace("_", "-")][int(match[2])], "-", name)

    def test_help_names_these_tools(self):
        help_text = subprocess.run([REDOUBT, "help"], capture_output=True, check=True).stdout
        for tool in table():
            self.assertIn(f"  {tool} ".encode(), help_text)


if __name__ == "__main__":
    unittest.main()
