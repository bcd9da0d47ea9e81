"""The files that `ninja install` installs, and a program that is built and run with them."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ["REDOUBT_SOURCE"]
BUILD = os.environ["REDOUBT_BUILD"]
SANITIZE = os.environ.get("REDOUBT_SANITIZE", "none")


def run(*command, env=None):
    done = subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
        check=False,
        timeout=120,
    )
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.folder)
        options = json.loads(run("meson", "introspect", "--buildoptions", BUILD))
        cls.options = {option["name"]: option["value"] for option in options}
        cls.prefix = cls.folder + cls.options["prefix"]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def path(self, *parts):
        return os.path.join(self.prefix, *parts)

    def flags(self, *args):
        """pkg-config, with the folder before everything that it names."""
        pc = self.path(self.options["libdir"], "pkgconfig")
        env = {"PKG_CONFIG_PATH": pc, "PKG_CONFIG_SYSROOT_DIR": self.folder}
        return shlex.split(run("pkg-config", *args, "redoubt", env=env))

    def test_the_program_has_its_links(self):
        version = run(self.path("bin", "redoubt"), "--version")
        self.assertRegex(version, r"^redoubt \d")
        for name in ("check-rdb", "check-aof"):
            self.assertEqual(os.readlink(self.path("bin", name)), "redoubt")

    def test_headers_keep_their_folders_and_private_ones_stay_away(self):
        include = self.path("include", "redoubt")
        self.assertTrue(os.path.exists(os.path.join(include, "rdb", "reader.h")))
        self.assertEqual(sorted(os.listdir(include)), ["aof", "base", "rdb", "repl"])
        for folder in os.listdir(include):
            for name in os.listdir(os.path.join(include, folder)):
                with open(os.path.join(include, folder, name), encoding="utf-8") as file:
                    self.assertNotIn("private to", file.readline())

    def test_every_installed_header_compiles_where_it_lies(self):
        include = self.path("include", "redoubt")
        for folder in os.listdir(include):
            for name in os.listdir(os.path.join(include, folder)):
                header = os.path.join(include, folder, name)
                run("cc", *self.flags("--cflags"), "-fsyntax-only", "-x", "c", header)

    def test_manual_pages_are_installed(self):
        pages = os.listdir(self.path(self.options["mandir"], "man1"))
        written = os.listdir(os.path.join(SOURCE, "docs", "man"))
        self.assertEqual(sorted(pages), sorted(page[: -len(".scd")] for page in written))

    def test_the_example_in_the_documents_builds_and_runs(self):
        program = os.path.join(self.folder, "list_keys")
        sanitize = [] if SANITIZE == "none" else [f"-fsanitize={SANITIZE}"]
        source = os.path.join(SOURCE, "docs", "example", "list_keys.c")
        flags = self.flags("--cflags", "--libs")
        run("cc", "-Wall", "-Werror", *sanitize, source, *flags, "-o", program)
        snapshot = os.path.join(self.folder, "two.rdb")
        with open(snapshot, "wb") as file:
            file.write(b"REDIS0011\x00\x01a\x01x\x01\x03l\x1b1\x01\x01y\xff" + bytes(8))
        libraries = {"LD_LIBRARY_PATH": self.path(self.options["libdir"])}
        self.assertEqual(run(program, snapshot, env=libraries), 'string "a"\nlist "l\\x1b1"\n')

    def test_the_example_is_short(self):
        with open(os.path.join(SOURCE, "docs", "example", "list_keys.c"), encoding="utf-8") as file:
            self.assertLessEqual(len(file.readlines()), 40)

    def test_the_versions_agree(self):
        with open(os.path.join(SOURCE, "meson.build"), encoding="utf-8") as file:
            version = re.search(r"version: '([\d.]+)'", file.read()).group(1)
        self.assertEqual(run(self.path("bin", "redoubt"), "--version"), f"redoubt {version}\n")
        self.assertEqual(self.flags("--modversion"), [version])
