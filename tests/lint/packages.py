"""The descriptions of packages agree with the build and name what exists."""

import glob
import os
import re
import unittest

import headers
import tree

SPEC = "packaging/redoubt.spec"
CONTAINER = "packaging/Containerfile"
ALPINE = "packaging/alpine/APKBUILD"
HOMEBREW = "packaging/homebrew/redoubt.rb"
CONTROL = "packaging/debian/control"
# What Debian's packages need beside the libraries, and what a bare system lacks.
TOOLS = {"debhelper-compat", "gcc", "libc6-dev", "meson", "ninja-build", "pkg-config", "scdoc"}


def version():
    return re.search(r"^  version: '([\d.]+)',$", tree.read("meson.build"), re.M)[1]


def build_packages(text):
    return set(re.findall(r"(?<![\w-])lib[\w.+-]+-dev|zlib1g-dev", text)) - TOOLS


class Packages(tree.Lint):
    def test_one_version(self):
        self.assertRegex(tree.read(SPEC), rf"(?m)^Version: +{re.escape(version())}$")
        self.assertRegex(tree.read("packaging/debian/changelog"),
                         rf"\Aredoubt \({re.escape(version())}\) ")
        self.assertRegex(tree.read(ALPINE), rf"(?m)^pkgver={re.escape(version())}$")
        self.assertIn(f"/redoubt-{version()}.tar.gz", tree.read(HOMEBREW))

    def test_what_they_name_exists(self):
        named = {"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"}
        for path in (SPEC, CONTAINER, ALPINE, HOMEBREW, "packaging/build", "packaging/static",
                     "packaging/release"):
            named.update(re.findall(r"(?:^|[\s\"/(])((?:docs|packaging|fixtures)/[\w@.*/-]+[\w*])",
                                    tree.read(path), re.M))
        self.assertGreater(len(named), 10)
        self.none([name for name in sorted(named)
                   if not glob.glob(os.path.join(tree.ROOT, name))])

    def test_each_needs_the_same_libraries(self):
        control = build_packages(tree.read(CONTROL).split("\n\n", maxsplit=1)[0])
        container = build_packages(tree.read(CONTAINER))
        run = re.search(r"packages_build=\((.*?)\)", tree.read("run"), re.S)[1]
        self.assertGreater(len(control), 6)
        self.assertEqual(container, control)
        self.assertEqual(build_packages(run), control)
        # other systems number no versions of interfaces and call some libraries otherwise
        stems = {re.sub(r"^lib|[\d.-]*-dev$|\d\.\d.*$", "", name) for name in control}
        names = {"ssl": "openssl", "zlib1g": "zlib", "curl4-openssl": "curl"}
        for path in ALPINE, HOMEBREW:
            text = tree.read(path)
            self.none([f"{path}: no {name}" for name in sorted(stems)
                       if names.get(name, name) not in text])

    def test_the_spec_needs_what_the_build_needs(self):
        used = set()
        for build in ("meson.build", "server/meson.build"):
            used.update(re.findall(r"dependency\([^)]*?'([a-z][\w.]+)'(?:, version|, static|\))",
                                   tree.read(build)))
        self.assertIn("foreach name : ['lua-5.1', 'lua51', 'lua']", tree.read("meson.build"))
        used = {"lua-5.1" if name == "lua5.1" else name for name in used} - {"threads"}
        spec = set(re.findall(r"pkgconfig\(([\w.-]+)\)", tree.read(SPEC)))
        self.assertIn("jemalloc-devel", tree.read(SPEC))
        self.assertEqual(spec, used)

    def test_debians_symbols_are_what_the_library_exports(self):
        """A new function is added with the version that first has it."""
        text = tree.read("packaging/debian/libredoubt0.symbols")
        named = set(re.findall(r"^ (\w+)@Base [\d.]+$", text, re.M))
        self.assertEqual(len(named) + 1, len(text.splitlines()))
        self.none([f"the symbols lack {name}" for name in sorted(headers.exported() - named)] +
                  [f"not exported: {name}" for name in sorted(named - headers.exported())])


if __name__ == "__main__":
    unittest.main()
