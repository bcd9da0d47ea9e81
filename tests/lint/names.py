"""A name leads to its file: functions, prefixes and structs."""

import os
import re

import headers
import tree

# Pairs of a header and a source, of functions that are defined elsewhere than the rules say. The
# list only shrinks.
ELSEWHERE = "tests/lint/names.txt"

# Prefixes that two folders use, beside that of a tool that has the name of its library. The list
# only shrinks.
SHARED_PREFIXES = {
    "aof": {"aof", "tools/check_aof"},
    "check": {"tools/check_aof", "tools/check_rdb"},
    "client": {"client", "server/session"},
    "info": {"server/durable", "server/surface"},
    "latency": {"server/loop", "server/surface"},
    "peer": {"server/surface", "tools/cli"},
    "server": {"server/surface", "tools/input"},
}

DEFINITION = re.compile(r"^(?!static\b|typedef\b|#|\})\w[\w\s*]*?\b(\w+)\s*\([^;{}]*?\)\s*"
                        r"(?:__attribute__\(\(.*?\)\)\s*)?\n\{", re.M)
TAG = re.compile(r"^(?:struct|enum|union) (\w+)\s*(?::[^{]*)?\{", re.M)


def collect(ending, names_of):
    """Where each name is: a dict of sets of paths."""
    found = {}
    for folder in tree.LAYERS:
        for path in tree.files(ending, under=folder):
            for name in names_of(path):
                found.setdefault(name, set()).add(path)
    return found


def defined(path):
    return DEFINITION.findall(tree.without_comments(tree.read(path)))


def declared(path):
    return [name for name, _ in headers.declared(path)]


def tags(path):
    return TAG.findall(tree.without_comments(tree.read(path)))


def belongs(header, source):
    """Whether functions of the header may be defined in the source.

    X.h: X.c or X_PART.c, beside it or in a private folder beside it. A header that the files of a
    folder share (NAME_impl.h, FOLDER.h, those of a tool): any source beside it."""
    folder, stem = os.path.dirname(header), os.path.basename(header)[:-2]
    if (stem.endswith("_impl") or stem == os.path.basename(folder)
            or re.match(r"tools/\w+/", header)):
        return os.path.dirname(source) == folder
    place, name = os.path.dirname(source), os.path.basename(source)[:-2]
    return (folder in (place, os.path.dirname(place))
            and (name == stem or name.startswith(stem + "_")))


def elsewhere():
    """The pairs of a header and a source that do not belong together, with a function of each."""
    sources, found = collect(".c", defined), {}
    for name, paths in collect(".h", declared).items():
        for header in paths - {"tools/tools.h"}:
            library = header.split("/", 1)[0] + "/"
            homes = sorted(path for path in sources.get(name, ()) if path.startswith(library))
            if homes and not any(belongs(header, source) for source in homes):
                found[header, homes[0]] = name
    return found


def owner(path):
    """The folder that a prefix belongs to: a library, a layer of the server, a tool."""
    parts = path.split("/")
    return "/".join(parts[:2] if parts[0] in ("server", "tools") else parts[:1])


def prefixes():
    """The folders of each prefix of functions; a tool shares that of the library or job of its
    name."""
    found, known = {}, set(tree.LIBRARIES)
    known.update(os.path.basename(path)[:-2] for path in tree.files(".h", under="jobs"))
    for name, paths in collect(".h", declared).items():
        prefix = name.split("_", 1)[0]
        for folder in map(owner, paths):
            if folder != f"tools/{prefix}" or prefix not in known:
                found.setdefault(prefix, set()).add(folder)
    return {prefix: folders for prefix, folders in found.items() if len(folders) > 1}


class Names(tree.Lint):
    def test_a_function_is_defined_in_the_source_of_its_header(self):
        allowed = {tuple(line.split()) for line in tree.read(ELSEWHERE).splitlines()}
        found = elsewhere()
        self.none([f"{header}: {name}() is defined in {source}"
                   for (header, source), name in sorted(found.items())
                   if (header, source) not in allowed])
        self.none([f"{header} and {source} are clean: remove them from {ELSEWHERE}"
                   for header, source in sorted(allowed - set(found))])

    def test_a_prefix_belongs_to_one_folder(self):
        found = prefixes()
        self.none([f"{prefix}_ is a prefix in {', '.join(sorted(folders))}"
                   for prefix, folders in sorted(found.items())
                   if not folders <= SHARED_PREFIXES.get(prefix, set())])
        self.none([f"{prefix}_ belongs to one folder: remove it here"
                   for prefix in sorted(set(SHARED_PREFIXES) - set(found))])

    def test_no_two_headers_have_structs_of_one_name(self):
        self.none([f"{tag} is in {', '.join(sorted(paths))}"
                   for tag, paths in sorted(collect(".h", tags).items()) if len(paths) > 1])


if __name__ == "__main__":
    for pair in sorted(elsewhere()):
        print(*pair)
