"""A folder includes only folders to its left; each foreign library is included in one place."""

import re

import tree

# Who may include the headers of a foreign library.
DOORS = {
    re.compile(r"<zlib\.h>"): {"base/zlib.c"},
    re.compile(r"<lz4\w*\.h>"): {"base/lz4.c"},
    re.compile(r"<zstd\w*\.h>"): {"base/zstd.c"},
    re.compile(r"<openssl/"): {"base/digest_openssl.c", "base/seal.c", "client/peer_tls.c",
                               "server/loop/tls.c"},
    re.compile(r"<expat\.h>"): {"archive/xml.c"},
    re.compile(r"<sqlite3\.h>"): {"jobs/sqlite_impl.h"},
    re.compile(r"<microhttpd\.h>"): {"tools/browse/http.c", "tools/metrics/http.c"},
    re.compile(r"<lua5\.1/(lua|lauxlib|lualib)\.h"): {"engine/script/vm_impl.h"},
}

# Folders that may be left out of a build, with the library that only they include.
OPTIONAL = {"<uv.h>": "server/"}

# What may name the server as a whole; below, code sees the struct of its own layer.
WHOLE = re.compile(r"^(server/surface/|server/main\.c$)")

# State outside of the structs, by file and number: that of the process (its log, title, settings of
# the system, signals, the program's only server), texts and buffers that are valid until the next
# call, and what is computed once from the table of commands.
STATICS = {
    "server/main.c": 2,
    "server/durable/persist/persist.c": 1,
    "server/durable/replication/link.c": 1,
    "server/loop/daemon.c": 3,
    "server/loop/daemon_system.c": 2,
    "server/loop/heap.c": 1,
    "server/loop/log.c": 1,
    "server/session/client/parse.c": 1,
    "server/session/dispatch/script.c": 1,
    "server/surface/observe/crash.c": 7,
    "server/surface/observe/crash_details.c": 1,
}
STATIC = re.compile(
    r"^ *static (?!const\b|inline\b|_Noreturn\b|struct \w+ \*?\w+\()"
    r"(?:[\w *]+(?:\[\w*\])*(?:;| =.*)|struct (?:\w+ )?\{.*)\s*$"
)

# An error is recognised by its code or its reason.
BY_TEXT = re.compile(r"\b(?:str\w*cmp|strstr|strcasestr|memcmp|memmem)\s*\([^;]*"
                     r"\b(?:err|why|said|error|failure)(?:->|\.)text\b")

# What a library must not do on its own initiative: heap past base/mem.h, clock, chance, printing,
# the environment, ending the process.
FORBIDDEN = re.compile(
    r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup|asprintf|time|gettimeofday|"
    r"clock_gettime|rand|random|getrandom|"
    r"printf|fprintf|vprintf|puts|putchar|perror|exit|_exit|abort|"
    r"getenv|setlocale)\s*\("
)
EXCUSED = {
    "base/mem.c": {"malloc", "calloc", "realloc", "free"},  # it is the door
    "base/sink_file.c": {"getrandom"},  # unpredictable names of temporary files
    "backup/keeper.c": {"_exit"},  # its process
    "backup/system.c": {"clock_gettime", "getrandom", "getenv", "_exit"},  # the one place for it
    "capture/clock.c": {"clock_gettime"},  # the times of what arrives
    "client/peer.c": {"clock_gettime"},  # the timeouts of connections
    "data/spool.c": {"getenv"},  # $TMPDIR
    "engine/mem.c": {"abort"},  # out of memory without a handler
}


# The layers of the server, the lowest first. Sub-folders belong to the layer of their folder.
SERVER = ("settings", "loop", "session", "durable", "surface")

# Folders of one layer of the server that include each other. A pair that is gone from the sources
# must go from here, too.
MUTUAL = {
    ("durable", "durable/persist"),
    ("durable", "durable/replication"),
    ("durable/persist", "durable/replication"),
    ("session", "session/acl"),
    ("session", "session/client"),
    ("session", "session/dispatch"),
    ("session/acl", "session/client"),
    ("session/client", "session/dispatch"),
    ("session/client", "session/tracking"),
    ("session/dispatch", "session/tracking"),
    ("surface", "surface/cmd"),
    ("surface", "surface/observe"),
    ("surface/cmd", "surface/observe"),
}


def pairs(under):
    """(folder, included folder) below a folder, with the number of includes."""
    found = {}
    for path in tree.files(".c", ".h", under=under):
        own = path.rpartition("/")[0][len(under) + 1 :]
        for _, name in tree.includes(path):
            other = name.strip('"').rpartition("/")[0]
            if name[0] != '"' or not other.startswith(under + "/"):
                continue
            other = other[len(under) + 1 :]
            if own and other != own:
                found[own, other] = found.get((own, other), 0) + 1
    return found


def layer(folder):
    return SERVER.index(folder.split("/")[0])


def upward(found):
    return {(a, b) for a, b in found if layer(b) > layer(a)}


def mutual(found):
    return {(a, b) for a, b in found if a < b and (b, a) in found and layer(a) == layer(b)}


class Layers(tree.Lint):
    def test_a_layer_of_the_server_includes_lower_layers_only(self):
        found = upward(pairs("server"))
        self.none([f"{a} includes {b}" for a, b in sorted(found)])

    def test_only_the_highest_layer_sees_the_whole_server(self):
        wrong = []
        for path in tree.files(".c", ".h", under="server"):
            text = tree.without_comments(tree.read(path))
            if not WHOLE.match(path) and re.search(r"\bstruct server\b", text):
                wrong.append(path)
        self.none(wrong)

    def test_the_state_of_a_server_is_in_its_structs(self):
        wrong = []
        for path in tree.files(".c", under="server"):
            text = tree.without_comments(tree.read(path))
            found = [line for line in text.splitlines() if STATIC.match(line)]
            if len(found) != STATICS.get(path, 0):
                wrong += [f"{path}: {line.strip()}" for line in found] or [f"{path}: nothing"]
        self.none(wrong)

    def test_folders_of_one_layer_of_the_server_do_not_include_each_other(self):
        found = mutual(pairs("server"))
        self.none([f"{a} and {b} include each other" for a, b in sorted(found - MUTUAL)])
        self.none([f"{a} and {b} are clean: remove them here" for a, b in sorted(MUTUAL - found)])

    def test_a_folder_includes_only_folders_to_its_left(self):
        wrong = []
        for folder, allowed in tree.LAYERS.items():
            for path in tree.files(".c", ".h", under=folder):
                for number, name in tree.includes(path):
                    first = name.strip('"').split("/")[0]
                    if name[0] == '"' and (first not in allowed or "/" not in name):
                        wrong.append(f"{path}:{number}: {name}")
        self.none(wrong)

    def test_private_folders_are_included_by_their_library_and_its_tests_only(self):
        wrong = []
        for path in tree.files(".c", ".h"):
            parts = path.split("/")
            own = parts[1] if parts[0] == "tests" else parts[0]
            for number, name in tree.includes(path):
                inner = name.strip('"').split("/")
                private = name[0] == '"' and len(inner) > 2 and inner[0] in tree.LIBRARIES
                if private and own not in (inner[0], "fuzz", "bench"):
                    wrong.append(f"{path}:{number}: {name}")
        self.none(wrong)

    def test_public_headers_do_not_include_private_ones(self):
        wrong = []
        for path in tree.files(".h"):
            if path.count("/") != 1 or path.split("/")[0] not in tree.LIBRARIES:
                continue
            for number, name in tree.includes(path):
                if name[0] == '"' and name.count("/") > 1:
                    wrong.append(f"{path}:{number}: {name}")
        self.none(wrong)

    def test_foreign_libraries_are_included_in_one_place_each(self):
        wrong = []
        for folder in tree.LAYERS:
            for path in tree.files(".c", ".h", under=folder):
                for number, name in tree.includes(path):
                    for pattern, doors in DOORS.items():
                        if pattern.match(name) and path not in doors:
                            wrong.append(f"{path}:{number}: {name}")
        self.none(wrong)

    def test_no_error_is_recognised_by_its_text(self):
        wrong = []
        for folder in tree.LAYERS:
            for path in tree.files(".c", ".h", under=folder):
                for match in BY_TEXT.finditer(tree.without_comments(tree.read(path))):
                    wrong.append(f"{path}: {match.group(0)}")
        self.none(wrong)

    def test_what_may_be_missing_is_included_by_its_folder_only(self):
        wrong = []
        for folder in tree.LAYERS:
            for path in tree.files(".c", ".h", under=folder):
                for number, name in tree.includes(path):
                    if not path.startswith(OPTIONAL.get(name, "")):
                        wrong.append(f"{path}:{number}: {name}")
        self.none(wrong)

    def test_libraries_do_not_print_exit_read_the_clock_or_pass_by_the_allocator(self):
        wrong = []
        for folder in tree.LIBRARIES:
            for path in tree.files(".c", ".h", under=folder):
                text = tree.without_comments(tree.read(path))
                for number, line in enumerate(text.splitlines(), 1):
                    for match in FORBIDDEN.finditer(line):
                        if match.group(1) not in EXCUSED.get(path, ()):
                            wrong.append(f"{path}:{number}: {match.group(1)}()")
        self.none(wrong)


def show():
    """Prints which folder of the server includes which, and how often."""
    found = pairs("server")
    up, both = upward(found), mutual(found)
    for a, b in sorted(found):
        mark = "^" if (a, b) in up else "=" if tuple(sorted((a, b))) in both else " "
        print(f"{mark} {a} -> {b}: {found[a, b]}")
    print(f"{len(up)} include a higher layer (^), {len(both)} pairs of a layer each other (=)")


if __name__ == "__main__":
    show()
