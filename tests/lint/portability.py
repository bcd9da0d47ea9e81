"""The libraries, tools and server compile with the headers of another C library, musl."""

import concurrent.futures
import json
import os
import shlex
import subprocess
import unittest

import tree

# What meson.build finds in glibc only.
OF_GLIBC = ("-DRD_HAVE_MALLINFO2", "-DRD_HAVE_EXECINFO")
FOLDERS = (*tree.LIBRARIES, "server", "tools")


def headers_of_libraries():
    """Where zlib and the others are: after musl's own headers, never before them."""
    machine = subprocess.run(["cc", "-print-multiarch"], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.strip()
    return ["-idirafter", "/usr/include", "-idirafter", f"/usr/include/{machine}"]


def our_sources():
    """Each source with the arguments that select headers and conditional parts."""
    with open(os.path.join(tree.BUILD, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    found = {}
    for command in commands:
        path = os.path.relpath(os.path.join(tree.BUILD, command["file"]), tree.ROOT)
        if path.split(os.sep)[0] in FOLDERS and path.endswith(".c"):
            found[path] = [arg for arg in shlex.split(command["command"])
                           if arg.startswith(("-I", "-D", "-std")) and arg not in OF_GLIBC and
                           arg != "-I/usr/include"]
    return found


class Portability(tree.Lint):
    def test_every_source_compiles_with_the_headers_of_musl(self):
        sources = our_sources()
        self.assertGreater(len(sources), 300)
        also = headers_of_libraries()

        def errors(path):
            done = subprocess.run(
                ["musl-gcc", "-fsyntax-only", "-Werror=implicit-function-declaration",
                 *sources[path], *also, os.path.join(tree.ROOT, path)],
                cwd=tree.BUILD, capture_output=True, text=True, check=False)
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            return lines[:3] if done.returncode != 0 else []

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            self.none([line for lines in pool.map(errors, sources) for line in lines])


if __name__ == "__main__":
    unittest.main()
