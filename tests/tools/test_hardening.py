"""How a build of the defaults compiles and links, seen in a program made with its command lines.

The tests themselves run in a build with sanitizers, which has none of them.
"""

import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import unittest

SOURCE = os.environ["REDOUBT_SOURCE"]

# Its stack has a buffer, and its copy has a size that the compiler knows.
PROGRAM = """\
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[16];
    strcpy(text, argv[argc - 1]);
    return printf("%s\\n", text) < 0;
}
"""

ET_DYN = 3
PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 2, 3, 0x6474E551, 0x6474E552
PF_X = 1
DT_FLAGS, DT_FLAGS_1 = 30, 0x6FFFFFFB
DF_BIND_NOW, DF_1_NOW = 8, 1


class Elf:
    """The headers of a 64-bit program."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.order = "<" if self.data[5] == 1 else ">"
        self.kind = self.read("H", 16)[0]
        offset = self.read("Q", 32)[0]
        size, count = self.read("HH", 54)
        self.segments = {}
        for i in range(count):
            kind, flags, at = self.read("IIQ", offset + i * size)
            length = self.read("Q", offset + i * size + 32)[0]
            self.segments[kind] = (flags, at, length)

    def read(self, form, offset):
        return struct.unpack_from(self.order + form, self.data, offset)

    def dynamic(self):
        _, at, length = self.segments[PT_DYNAMIC]
        return dict(self.read("qQ", at + i) for i in range(0, length, 16))

    def binds_now(self):
        tags = self.dynamic()
        return bool(tags.get(DT_FLAGS, 0) & DF_BIND_NOW or tags.get(DT_FLAGS_1, 0) & DF_1_NOW)


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", check=False, timeout=600, **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(command)}:\n{done.stdout}")
    return done.stdout


class Build:
    """A build folder, and the command lines of the program `redoubt` in it."""

    def __init__(self, folder, *options, **environment):
        self.folder = folder
        run("meson", "setup", folder, SOURCE, "-Dtests=disabled", "-Ddocs=disabled", *options,
            env={**os.environ, **environment})

    def compiler(self):
        with open(os.path.join(self.folder, "compile_commands.json"), encoding="utf-8") as f:
            command = next(step["command"] for step in json.load(f)
                           if step["file"].endswith("tools/main.c"))
        command = shlex.split(command)
        return command[:command.index("-MD")]

    def linker(self):
        with open(os.path.join(self.folder, "build.ninja"), encoding="utf-8") as f:
            line = re.search(r"^build tools/redoubt: .*?^ LINK_ARGS = (.*?)$", f.read(),
                             re.M | re.S)[1]
        return [arg for arg in shlex.split(line)
                if re.match(r"-pie|-no-pie|-static-pie|-f|-Wl,-[zO]|-Wl,--as-needed", arg)]

    def make(self, name):
        """A program with these command lines."""
        source = os.path.join(self.folder, name + ".c")
        with open(source, "w", encoding="ascii") as f:
            f.write(PROGRAM)
        program = os.path.join(self.folder, name)
        run(*self.compiler(), "-c", source, "-o", program + ".o", cwd=self.folder)
        run("cc", program + ".o", "-o", program, *self.linker())
        return program


class Hardening(unittest.TestCase):
    def build(self, *options, **environment):
        folder = tempfile.mkdtemp(prefix="redoubt-hardening-")
        self.addCleanup(shutil.rmtree, folder)
        return Build(folder, *options, **environment)

    def check_program(self, build, *, fortified):
        program = build.make("copy")
        elf = Elf(program)
        self.assertEqual(elf.kind, ET_DYN)
        self.assertIn(PT_INTERP, elf.segments)
        self.assertIn(PT_GNU_RELRO, elf.segments)
        self.assertTrue(elf.binds_now())
        self.assertEqual(elf.segments[PT_GNU_STACK][0] & PF_X, 0)
        self.assertIn(b"__stack_chk_fail", elf.data)
        self.assertEqual(b"__strcpy_chk" in elf.data, fortified)
        done = subprocess.run([program, "x" * 100], capture_output=True, check=False)
        self.assertLess(done.returncode, 0)

    def test_the_default_build(self):
        build = self.build()
        self.check_program(build, fortified=True)
        with tempfile.TemporaryDirectory() as folder:
            can = subprocess.run(["cc", "-fcf-protection", "-x", "c", "-c", "/dev/null", "-o",
                                  os.path.join(folder, "empty.o")], capture_output=True,
                                 check=False).returncode == 0
        self.assertEqual("-fcf-protection" in build.compiler(), can)

    def test_a_build_without_optimization(self):
        build = self.build("--buildtype=debug")
        self.assertNotIn("_FORTIFY_SOURCE", " ".join(build.compiler()))
        self.check_program(build, fortified=False)

    def test_the_choice_of_the_builder_counts(self):
        build = self.build("--buildtype=release", CFLAGS="-O2 -D_FORTIFY_SOURCE=1")
        given = [arg for arg in build.compiler() if "_FORTIFY_SOURCE" in arg]
        self.assertEqual(given, ["-D_FORTIFY_SOURCE=1"])
        self.check_program(build, fortified=True)

    def test_programs_with_sanitizers_have_fixed_addresses(self):
        build = self.build("-Db_sanitize=address,undefined", "-Db_lundef=false")
        self.assertEqual([arg for arg in build.linker() if "pie" in arg], ["-no-pie"])
        self.assertNotIn("_FORTIFY_SOURCE", " ".join(build.compiler()))

    def test_static_programs_can_be_loaded_anywhere(self):
        build = self.build("-Dstatic=true", "-Dremote=disabled")
        self.assertEqual([arg for arg in build.linker() if "pie" in arg], ["-static-pie"])


if __name__ == "__main__":
    unittest.main()
