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


EXAMPLES = os.path.join(SOURCE, "docs", "example")
LISTED = 'string "a"\nlist "l\\x1b1"\n'

# An example in a comment: a line that announces it, and an indented block.
EXAMPLE = re.compile(r"^ \* Example: [^\n]*\n \*\n((?: \*(?:     [^\n]*)?\n)+)", re.M)


def header_examples(include):
    """Yields (header, number, code) of each example in the headers below a folder."""
    for folder in sorted(os.listdir(include)):
        for name in sorted(os.listdir(os.path.join(include, folder))):
            with open(os.path.join(include, folder, name), encoding="utf-8") as file:
                for number, match in enumerate(EXAMPLE.finditer(file.read()), 1):
                    lines = [line[7:] for line in match.group(1).splitlines()]
                    yield f"{folder}/{name}", number, lines


def as_program(header, code):
    """An example is the body of main(); its includes come first."""
    includes = [line for line in code if line.startswith("#include")]
    body = [line for line in code if not line.startswith("#include")]
    return "\n".join([f"#include <{header}>", "#include <stdio.h>", *includes, "",
                      "int main(void)", "{", *body, "return 0;", "}", ""])


def run(*command, env=None, cwd=None):
    done = subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
        check=False,
        timeout=600,
        cwd=cwd,
    )
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


# What a build without the server finds, by its name in pkg-config and its name in README.
DEPENDENCIES = {
    "zlib": "zlib", "liblz4": "liblz4", "libzstd": "libzstd", "libcrypto": "libcrypto",
    "libssl": "libssl", "libcurl": "libcurl", "lua5.1": "Lua 5.1", "inih": "inih",
    "libmicrohttpd": "libmicrohttpd",
}


class WithoutServer(unittest.TestCase):
    """A build with -Dserver=disabled, where pkg-config knows what README lists and nothing else."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.build = os.path.join(self.folder, "build")
        known = os.path.join(self.folder, "pkgconfig")
        os.mkdir(known)
        for folder in run("pkg-config", "--variable", "pc_path", "pkg-config").strip().split(":"):
            for name in os.listdir(folder) if os.path.isdir(folder) else ():
                if not re.match(r"libuv|jemalloc", name):
                    os.symlink(os.path.join(folder, name), os.path.join(known, name))
        self.env = {"PKG_CONFIG_LIBDIR": known}

    def configure(self, *options):
        return run("meson", "setup", self.build, SOURCE, "-Dtests=disabled", "-Ddocs=disabled",
                   *options, env=self.env)

    def test_needs_neither_libuv_nor_jemalloc(self):
        self.configure("-Dserver=disabled")
        targets = json.loads(run("meson", "introspect", "--targets", self.build))
        names = {target["name"] for target in targets}
        self.assertLessEqual({"redoubt"}, names)
        self.assertFalse([name for name in names if "server" in name])
        found = json.loads(run("meson", "introspect", "--dependencies", self.build))
        found = {dependency["name"] for dependency in found}
        self.assertLessEqual(set(DEPENDENCIES), found)
        self.assertFalse(found & {"libuv", "jemalloc"})
        with open(os.path.join(self.build, "build.ninja"), encoding="utf-8") as file:
            self.assertNotRegex(file.read(), r"-luv|libuv|jemalloc")

    def test_the_server_needs_libuv(self):
        with self.assertRaisesRegex(AssertionError, "libuv"):
            self.configure("-Dserver=enabled")

    def rename_lua(self, new, change=lambda text: text):
        """pkg-config knows Lua by this name only."""
        known = self.env["PKG_CONFIG_LIBDIR"]
        with open(os.path.join(known, "lua5.1.pc"), encoding="utf-8") as file:
            text = file.read()
        for name in os.listdir(known):
            if name.startswith("lua"):
                os.unlink(os.path.join(known, name))
        with open(os.path.join(known, new + ".pc"), "w", encoding="utf-8") as file:
            file.write(change(text))

    def test_lua_has_other_names_elsewhere(self):
        for name in "lua-5.1", "lua51", "lua":
            with self.subTest(name):
                self.setUp()
                self.rename_lua(name)
                self.configure("-Dserver=disabled")

    def test_another_lua_is_refused(self):
        def newer(text):
            return re.sub(r"(?m)^Version:.*$", "Version: 5.4.6", text)

        self.rename_lua("lua", newer)
        with self.assertRaisesRegex(AssertionError, "5.4.6"):
            self.configure("-Dserver=disabled")

    def test_the_readme_names_the_dependencies(self):
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
            readme = file.read()
        for name in (*DEPENDENCIES.values(), "libuv", "jemalloc", "scdoc", "Criterion"):
            self.assertIn(name, readme)


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

    def test_units_name_the_installed_programs(self):
        units = self.path("lib", "systemd", "system")
        self.assertEqual(sorted(os.listdir(units)),
                         ["redoubt-archive@.service", "redoubt-backup@.service",
                          "redoubt-backup@.timer", "redoubt-server.service"])
        programs = []
        for name in os.listdir(units):
            with open(os.path.join(units, name), encoding="utf-8") as file:
                programs += re.findall(r"^Exec\w+=(\S+)", file.read(), re.M)
        self.assertEqual(len(programs), 4)
        for program in programs:
            self.assertTrue(program.startswith(self.options["prefix"] + "/"), program)
            self.assertTrue(os.path.exists(self.folder + program), program)
        with open(self.path("lib", "sysusers.d", "redoubt.conf"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^u redoubt ")

    def test_headers_keep_their_folders_and_private_ones_stay_away(self):
        include = self.path("include", "redoubt")
        self.assertTrue(os.path.exists(os.path.join(include, "rdb", "reader.h")))
        self.assertEqual(sorted(os.listdir(include)), ["aof", "base", "rdb", "repl"])
        for folder in os.listdir(include):
            for name in os.listdir(os.path.join(include, folder)):
                with open(os.path.join(include, folder, name), encoding="utf-8") as file:
                    self.assertNotIn("private to", file.readline())

    def test_every_installed_header_compiles_in_place(self):
        include = self.path("include", "redoubt")
        for folder in os.listdir(include):
            for name in os.listdir(os.path.join(include, folder)):
                header = os.path.join(include, folder, name)
                run("cc", *self.flags("--cflags"), "-fsyntax-only", "-x", "c", header)

    def test_manual_pages_are_installed(self):
        pages = {number: os.listdir(self.path(self.options["mandir"], f"man{number}"))
                 for number in (1, 5, 7)}
        written = [page[: -len(".scd")] for page in os.listdir(os.path.join(SOURCE, "docs", "man"))]
        self.assertEqual(sorted(pages[1]), sorted(page for page in written if page.endswith(".1")))
        self.assertIn("redoubt.7", pages[7])
        for number, folder in ((5, "format"), (7, "guide")):
            for page in os.listdir(os.path.join(SOURCE, "docs", folder)):
                name = page[: -len(".md")]
                if name != "README":
                    self.assertIn(f"redoubt-{name}.{number}", pages[number])

    def compile(self, compiler, source, name, *flags):
        program = os.path.join(self.folder, name)
        sanitize = [] if SANITIZE == "none" else [f"-fsanitize={SANITIZE}"]
        run(*compiler, "-Wall", "-Wextra", "-Werror", *sanitize, source, *flags, "-o", program)
        return program

    def libraries(self):
        return {"LD_LIBRARY_PATH": self.path(self.options["libdir"])}

    def write_snapshot(self, folder):
        path = os.path.join(folder, "dump.rdb")
        with open(path, "wb") as file:
            file.write(b"REDIS0011\x00\x01a\x01x\x01\x03l\x1b1\x01\x01y\xff" + bytes(8))
        return path

    def test_the_example_in_c_builds_and_runs(self):
        flags = self.flags("--cflags", "--libs")
        program = self.compile(["cc"], os.path.join(EXAMPLES, "list_keys.c"), "list_keys", *flags)
        snapshot = self.write_snapshot(self.folder)
        self.assertEqual(run(program, snapshot, env=self.libraries()), LISTED)

    def test_the_example_in_c_plus_plus_builds_and_runs(self):
        flags = self.flags("--cflags", "--libs")
        source = os.path.join(EXAMPLES, "count_keys.cpp")
        program = self.compile(["c++", "-std=c++11"], source, "count_keys", *flags)
        snapshot = self.write_snapshot(self.folder)
        self.assertEqual(run(program, snapshot, env=self.libraries()), "list 1 3\nstring 1 2\n")
        with open(snapshot, "r+b") as file:
            file.truncate(15)
        with self.assertRaisesRegex(AssertionError, "dump.rdb: truncated at byte 15"):
            run(program, snapshot, env=self.libraries())

    def test_the_example_in_python_runs(self):
        snapshot = self.write_snapshot(self.folder)
        library = self.path(self.options["libdir"], "libredoubt.so")
        env = {"LIBREDOUBT": library}
        if "address" in SANITIZE:  # its runtime must be loaded first, and python3 itself leaks
            env["LD_PRELOAD"] = run("cc", "-print-file-name=libasan.so").strip()
            env["ASAN_OPTIONS"] = "detect_leaks=0"
        listed = run("python3", os.path.join(EXAMPLES, "list_keys.py"), snapshot, env=env)
        self.assertEqual(listed, "string b'a'\nlist b'l\\x1b1'\n")

    def test_pkg_config_serves_static_linking(self):
        """With a folder that has the static library only; the system's libraries are shared."""
        static = os.path.join(self.folder, "static")
        os.makedirs(static, exist_ok=True)
        library = self.path(self.options["libdir"], "libredoubt.a")
        shutil.copy(library, static)
        flags = [flag for flag in self.flags("--static", "--cflags", "--libs")
                 if flag != "-L" + self.path(self.options["libdir"])]
        program = self.compile(["cc"], os.path.join(EXAMPLES, "list_keys.c"), "list_keys_static",
                               "-L" + static, *flags)
        self.assertEqual(run(program, self.write_snapshot(self.folder)), LISTED)
        self.assertNotIn("libredoubt", run("readelf", "-d", program))

    def test_the_shared_library_needs_few_others(self):
        library = self.path(self.options["libdir"], "libredoubt.so")
        needed = re.findall(r"NEEDED.*\[lib(\w+)\.so", run("readelf", "-d", library))
        self.assertLessEqual({"z", "lz4", "zstd", "crypto"}, set(needed))
        self.assertLessEqual(set(needed), {"z", "lz4", "zstd", "crypto", "m", "c", "asan", "ubsan",
                                           "tsan", "pthread"})

    def test_every_example_of_the_headers_builds_and_runs(self):
        folder = os.path.join(self.folder, "examples")
        os.makedirs(os.path.join(folder, "appendonlydir"), exist_ok=True)
        self.write_snapshot(folder)
        with open(os.path.join(folder, "appendonly.aof"), "wb") as file:
            file.write(b"*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n")
        with open(os.path.join(folder, "appendonlydir", "appendonly.aof.manifest"), "wb") as file:
            file.write(b"file appendonly.aof.1.incr.aof seq 1 type i\n")
        flags = self.flags("--cflags", "--libs")
        n_examples = 0
        for header, number, code in header_examples(self.path("include", "redoubt")):
            with self.subTest(header=header, example=number):
                name = header.replace("/", "_").replace(".h", f"_{number}")
                source = os.path.join(folder, name + ".c")
                with open(source, "w", encoding="utf-8") as file:
                    file.write(as_program(header, code))
                program = self.compile(["cc"], source, name, *flags)
                run(program, env=self.libraries(), cwd=folder)
                n_examples += 1
        self.assertGreaterEqual(n_examples, 25)

    def test_every_installed_header_has_an_example(self):
        include = self.path("include", "redoubt")
        headers = {os.path.join(folder, name) for folder in os.listdir(include)
                   for name in os.listdir(os.path.join(include, folder))}
        self.assertEqual({header for header, _, _ in header_examples(include)}, headers)

    def test_code_in_comments_of_headers_is_an_example(self):
        """A statement in a comment that nothing compiles may be wrong."""
        wrong = []
        include = self.path("include", "redoubt")
        for folder in os.listdir(include):
            for name in os.listdir(os.path.join(include, folder)):
                with open(os.path.join(include, folder, name), encoding="utf-8") as file:
                    text = EXAMPLE.sub("", file.read())
                wrong += [f"{folder}/{name}: {line}" for line in
                          re.findall(r"^ \*     .*(?:;|\) \{)$", text, re.M)]
        self.assertEqual(wrong, [])

    def test_the_example_is_short(self):
        with open(os.path.join(SOURCE, "docs", "example", "list_keys.c"), encoding="utf-8") as file:
            self.assertLessEqual(len(file.readlines()), 40)

    def test_the_versions_agree(self):
        with open(os.path.join(SOURCE, "meson.build"), encoding="utf-8") as file:
            version = re.search(r"version: '([\d.]+)'", file.read()).group(1)
        self.assertEqual(run(self.path("bin", "redoubt"), "--version"), f"redoubt {version}\n")
        self.assertEqual(self.flags("--modversion"), [version])
