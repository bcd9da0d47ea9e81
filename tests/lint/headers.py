"""Each header compiles alone, and the shared library exports exactly their declarations."""

import os
import re
import subprocess

import tree

PREFIXES = re.compile(r"^(rd|resp|rdb|aof|repl)_")


def compile_header(path, *flags):
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, *flags, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    done = subprocess.run(
        [*command, "-I", tree.ROOT, "-x", "c", "-"],
        input=f'#include "{path}"\n#include "{path}"\nint main(void);\n',
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


class Headers(tree.Lint):
    def test_every_header_compiles_alone_and_twice(self):
        errors = [compile_header(path, "-std=c11", "-D_GNU_SOURCE")
                  for folder in tree.LAYERS for path in tree.files(".h", under=folder)]
        self.none([error for error in errors if error])

    def test_public_headers_need_no_feature_macro_in_the_compilers_own_mode(self):
        errors = []
        for folder in tree.LIBRARIES:
            for path in tree.files(".h", under=folder):
                if path.count("/") == 1:
                    errors.append(compile_header(path, "-std=gnu17"))
        self.none([error for error in errors if error])

    def test_guards_are_named_after_the_path(self):
        wrong = []
        for folder in tree.LAYERS:
            for path in tree.files(".h", under=folder):
                guard = re.sub(r"\W", "_", path).upper()
                if f"#ifndef {guard}\n#define {guard}\n" not in tree.read(path):
                    wrong.append(f"{path}: {guard}")
        self.none(wrong)

    def test_the_shared_library_exports_only_prefixed_names(self):
        library = os.path.join(tree.BUILD, "libredoubt.so")
        names = subprocess.run(
            ["nm", "-D", "--defined-only", "--format=posix", library],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")
        names = [line.split()[0].split("@")[0] for line in names if line]
        self.assertTrue(names)
        self.none([name for name in names if not PREFIXES.match(name)])
