"""Every directive either does something or says that it does nothing; and what would lose data or
open a door where it is passed over ends the start."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import (  # noqa: E402
    Redoubt, ReplyError, pair, program, wait_for)

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# These read, print, check or write a value; none of them acts on it.
NO_READERS = {"server/settings/settings.c", "server/settings/item.c", "server/settings/special.c",
              "server/settings/file.c", "server/settings/settings.h", "server/settings/table.h",
              "server/surface/config/unused.c", "server/surface/config/rewrite.c",
              "server/surface/config/apply.c", "server/surface/observe/info.c",
              "server/surface/cmd/config.c", "engine/config.c", "engine/config.h"}

# Directives with a reader elsewhere: file, and what reads it.
ELSEWHERE = {
    "activedefrag": ("server/settings/item.c", "Active defragmentation cannot be enabled"),
    "dir": ("server/settings/special.c", "chdir(words[0])"),
    "latency-tracking-info-percentiles": ("server/surface/observe/info.c",
                                          "settings.latency_tracking_info_percentiles"),
    "redoubt-level": ("server/session/sessions.c", "settings_level(&loop->settings)"),
    "requirepass": ("server/session/acl/file.c", "settings_password(s)"),
    "sanitize-dump-payload": ("engine/cmd/dump.c", "sanitize_dump"),
}


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def directives():
    """Name to field, of the table."""
    table = text_of(os.path.join(SOURCE, "server", "settings", "table.h")).replace("\\\n", " ")
    return {name: field for field, name in re.findall(r'X\((\w+),\s*"([^"]+)"', table)}


def declared():
    """The directives that are declared to have no effect."""
    rows = text_of(os.path.join(SOURCE, "server", "surface", "config", "unused.c"))
    return set(re.findall(r'^    \{"([a-z_-]+)", ', rows, re.M))


def sources(folder):
    for kind in ("c", "h"):
        for path in glob.glob(os.path.join(SOURCE, folder, "**", "*." + kind), recursive=True):
            if os.path.relpath(path, SOURCE) not in NO_READERS:
                yield text_of(path)


def other_value(name, value):
    """A value that is not the default."""
    words = {"repl-diskless-load": "swapdb"}
    if name in words:
        return words[name]
    if value in ("yes", "no"):
        return "no" if value == "yes" else "yes"
    if re.fullmatch(r"-?\d+", value):
        return str(int(value) + 1)
    return value + "x"


class Table(unittest.TestCase):
    @staticmethod
    def elsewhere(name):
        path, words = ELSEWHERE.get(name, (None, None))
        return path is not None and words in text_of(os.path.join(SOURCE, path))

    def test_every_directive_has_a_reader_or_a_row_that_says_it_has_none(self):
        server, engine = "\n".join(sources("server")), "\n".join(sources("engine"))
        rows, wrong = declared(), {}
        self.assertGreater(len(rows), 8)
        table = directives()
        self.assertGreater(len(table), 170)
        self.assertEqual(rows - set(table), set())
        for name, field in table.items():
            read = re.search(r"(?:settings(?:\.|->)|\bs->)%s(?:_host|_len)?\b" % field, server) \
                or re.search(r"(?:\.|->)%s\b" % field, engine) or self.elsewhere(name)
            if bool(read) == (name in rows):
                wrong[name] = "row and reader" if read else "no row and no reader"
        self.assertEqual(wrong, {})


class Warnings(unittest.TestCase):
    def values(self, client):
        got = {}
        for name in sorted(declared()):
            reply = client.command("CONFIG", "GET", name)
            got[name] = reply[1].decode()
        return got

    def warned(self, server):
        return re.findall(r"Warning: the directive '([^']+)' has no effect: .+\.", server.log)

    def test_config_set_warns_of_each_that_leaves_its_default(self):
        with Redoubt() as server:
            client = server.client()
            self.assertEqual(self.warned(server), [])
            fixed = set()
            for name, value in self.values(client).items():
                before = len(self.warned(server))
                try:
                    client.command("CONFIG", "SET", name, other_value(name, value))
                except ReplyError as e:
                    self.assertRegex(str(e), "immutable|TLS", name)
                    fixed.add(name)
                    continue
                self.assertEqual(self.warned(server)[before:], [name])
                client.command("CONFIG", "SET", name, value)
                self.assertEqual(len(self.warned(server)), before + 1, name)
            self.assertLess(len(fixed), 12)

    def test_a_start_warns_of_each_that_is_not_its_default(self):
        with Redoubt() as server:
            values = self.values(server.client())
        options = {name: other_value(name, value) for name, value in values.items()}
        with Redoubt(options) as server:
            self.assertEqual(sorted(self.warned(server)), sorted(options))
        with Redoubt(values) as server:
            self.assertEqual(self.warned(server), [])


class Fatal(unittest.TestCase):
    REFUSED = (
        ("loadmodule /nope.so", "modules"),
    )

    def run_with(self, lines):
        with tempfile.TemporaryDirectory(prefix="redoubt-fatal-") as folder:
            path = os.path.join(folder, "t.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(lines + "\n")
            done = subprocess.run([program(), path, "--port", "0"], cwd=folder, timeout=600,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            return done.returncode, done.stdout.decode()

    def test_what_would_be_passed_over_at_a_price_ends_the_start(self):
        for lines, word in self.REFUSED:
            with self.subTest(lines):
                status, log = self.run_with(lines)
                self.assertEqual(status, 1)
                self.assertRegex(log, rf"(?:Fatal error|Can't load).*{word}")

    def test_on_the_command_line_too(self):
        done = subprocess.run([program(), "--port", "0", "--loadmodule", "/nope.so"],
                              timeout=600, stdout=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"modules", done.stdout)


class Replicas(unittest.TestCase):
    def test_writes_want_the_replicas_that_are_set(self):
        with pair({"min-replicas-to-write": "1"}) as servers:
            clients = [server.client() for server in servers]
            def ask(*args):
                ours, theirs = (client.ask(*args) for client in clients)
                self.assertEqual(ours, theirs, args)
                return ours
            self.assertEqual(ask("SET", "k", "v"),
                             ("-", b"NOREPLICAS Not enough good replicas to write."))
            for args in (["GET", "k"], ["PING"], ["MULTI"], ["SET", "k", "v"], ["EXEC"], ["MULTI"],
                         ["GET", "k"], ["EXEC"], ["DEL", "k"], ["PUBLISH", "c", "m"],
                         ["CONFIG", "SET", "min-replicas-max-lag", "0"], ["SET", "k", "v"],
                         ["CONFIG", "SET", "min-slaves-max-lag", "10"], ["INCR", "n"],
                         ["CONFIG", "SET", "min-slaves-to-write", "0"], ["SET", "k", "w"],
                         ["GET", "k"]):
                ask(*args)


class Enough(unittest.TestCase):
    def test_dynamic_hz_follows_the_number_of_clients(self):
        with Redoubt({"hz": "1", "dynamic-hz": "yes"}) as server:
            clients = [server.client() for _ in range(402)]
            self.assertGreater(int(self.hz(server, lambda n: n > 1)), 1)
            clients[0].command("CONFIG", "SET", "dynamic-hz", "no")
            self.assertEqual(int(self.hz(server, lambda n: n == 1)), 1)

    @staticmethod
    def hz(server, condition):
        return wait_for(lambda: next((v for v in [server.info("server")["hz"]]
                                      if condition(int(v))), None))


if __name__ == "__main__":
    unittest.main()
