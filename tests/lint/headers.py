"""Every header compiles alone; the installed ones agree with the library and the documents."""

import os
import re
import subprocess

import tree

PREFIXES = re.compile(r"^(redoubt|rd|resp|rdb|aof|repl)_")
# Contracts that every installed header states, and that not every header needs.
CONTRACTS = ("Threads:",)


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


def installed():
    """The headers that meson.build of each library installs, as paths."""
    found = []
    for folder in ("base", "rdb", "aof", "repl"):
        text = tree.read(f"{folder}/meson.build")
        names = re.search(rf"{folder}_headers = \[(.*?)\]", text, re.S).group(1)
        found += [f"{folder}/{name}" for name in re.findall(r"'([\w.]+)'", names)]
    return found


def documented():
    """The headers in the table of ARCHITECTURE.md."""
    text = tree.read("docs/ARCHITECTURE.md")
    table = text.split("### The installed headers", 1)[1].split("\n#", 1)[0]
    return re.findall(r"`((?:base|rdb|aof|repl)/\w+\.h)`", table.split("Not installed", 1)[0])


def declared(path):
    """The functions that a header declares and does not define."""
    text = tree.without_comments(tree.read(path))
    text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    text = text.replace('extern "" {', "")
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", ";", text)
    names = []
    for statement in re.split(r"[;{}]", text):
        statement = " ".join(statement.split())
        match = re.match(r"[\w\s*]+?\b(\w+)\s*\(", statement)
        if match and not statement.startswith(("typedef", "static", "enum {", "struct {")):
            names.append((match.group(1), statement.startswith("RD_API ")))
    return names


def exported():
    library = os.path.join(tree.BUILD, "libredoubt.so")
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", library],
        capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[0].split("@")[0] for line in lines}


def preprocessed():
    """All installed headers with their macros expanded."""
    source = "".join(f'#include "{path}"\n' for path in installed())
    compiler = os.environ.get("CC", "cc").split()
    done = subprocess.run([*compiler, "-E", "-P", "-I", tree.ROOT, "-x", "c", "-"],
                          input=source, capture_output=True, text=True, check=True)
    return done.stdout


def numbers():
    """Yields (name, number or None) of each enumerator of the enums that have a name."""
    known = {}
    one = re.compile(r"\b((?:RD|RESP|RDB|AOF|REPL)_\w+)\s*(?:=\s*('.'|[^,]+))?,?")
    for body in re.findall(r"\benum \w+\s*\{([^}]*)\}", preprocessed()):
        for name, value in one.findall(body):
            value = value.strip()
            if re.fullmatch(r"'.'", value):
                known[name] = ord(value[1])
            else:
                known[name] = known.get(value, int(value) if value.isdigit() else None)
            yield name, known[name]


def sized():
    """The structs of installed headers that begin with their size."""
    return {name for path in installed()
            for name in re.findall(r"^struct (\w+) \{\n\s*size_t size;", tree.read(path), re.M)}


def bodies(text):
    """The function bodies of a source: from a brace alone at the left margin to the next."""
    return re.findall(r"^\{\n(.*?)^\}", text, re.M | re.S)


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

    def test_a_name_says_what_a_header_is_private_to(self):
        self.none([path for path in tree.files(".h") if re.search(r"(^|[/_])priv\.h$", path)])


class Installed(tree.Lint):
    def test_the_documents_list_the_installed_headers(self):
        self.assertEqual(sorted(documented()), sorted(installed()))

    def test_installed_headers_include_installed_headers_only(self):
        public = set(installed())
        wrong = []
        for path in installed():
            for number, name in tree.includes(path):
                if name[0] == '"' and name.strip('"') not in public:
                    wrong.append(f"{path}:{number}: {name}")
        self.none(wrong)

    def test_the_shared_library_exports_what_installed_headers_declare_and_nothing_else(self):
        names = [name for path in installed() for name, _ in declared(path)]
        self.assertGreater(len(names), 100)
        self.assertEqual(len(names), len(set(names)))
        self.none([name for name in names if not PREFIXES.match(name)])
        self.none([f"declared, not exported: {name}" for name in sorted(set(names) - exported())] +
                  [f"exported, not declared: {name}" for name in sorted(exported() - set(names))])

    def test_rd_api_marks_the_functions_of_installed_headers_only(self):
        public = set(installed())
        wrong = [f"{path}: {name} without RD_API"
                 for path in installed() for name, marked in declared(path) if not marked]
        for path in tree.files(".h", ".c"):
            code = tree.without_comments(tree.read(path))
            if path not in public and re.search(r"\bRD_API\b", code):
                wrong.append(f"{path}: RD_API")
        self.none(wrong)

    def test_installed_headers_are_c_plus_plus_too(self):
        source = "".join(f'#include "{path}"\n' for path in installed())
        source += "".join(f"struct {name} {name}_made = {name.upper()}();\n"
                          for name in sorted(sized()))
        compiler = os.environ.get("CXX", "c++").split()
        done = subprocess.run(
            [*compiler, "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
             "-I", tree.ROOT, "-x", "c++", "-"],
            input=source, capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        self.none([path for path in installed() if declared(path)
                   and tree.read(path).count('extern "C" {') != 1])

    def test_installed_headers_state_their_contracts(self):
        wrong = []
        for path in installed():
            comment = tree.read(path).split("*/", 1)[0]
            wrong += [f"{path}: {word}" for word in CONTRACTS if f" * {word} " not in comment]
        self.none(wrong)

    def test_enums_have_written_numbers_that_never_move(self):
        """A number of tests/lint/numbers.txt is for ever; a new name is added there."""
        frozen = dict(line.split() for line in tree.read("tests/lint/numbers.txt").splitlines())
        found = {name: str(number) for name, number in numbers()}
        self.assertGreater(len(found), 200)
        self.maxDiff = None
        self.assertEqual(found, frozen)

    def test_structs_of_options_and_results_begin_with_their_size(self):
        wrong = []
        for path in installed():
            text = tree.read(path)
            for name in re.findall(r"^struct (\w+_(?:opts|result)) \{", text, re.M):
                if name not in sized():
                    wrong.append(f"{path}: struct {name} has no size")
            for name in re.findall(r"^struct (\w+) \{\n\s*size_t size;", text, re.M):
                if f"\n#define {name.upper()}(...) RD_SIZED({name}, __VA_ARGS__)\n" not in text:
                    wrong.append(f"{path}: struct {name} has no macro")
        self.none(wrong)

    def test_other_structs_say_who_allocates_them(self):
        """Programs allocate those that are "Open"; the comment has the reason."""
        wrong = []
        one = re.compile(r"(/\*(?:(?!\*/).)*\*/\n)?^struct (\w+) \{", re.M | re.S)
        for path in installed():
            for comment, name in one.findall(tree.read(path)):
                words = " ".join(comment.replace("\n *", " ").split())
                if name not in sized() and not re.search(
                        r"\bOpen[:,] |Only the library allocates|\bOpen, because", words):
                    wrong.append(f"{path}: struct {name}")
        self.none(wrong)

    def test_structs_with_a_size_are_made_by_their_macro(self):
        """A size that is forgotten is an error only when the code runs."""
        names = "|".join(sorted(sized()))
        bare = re.compile(rf"\(struct (?:{names})\) ?\{{|"
                          rf"\bstruct (?:{names}) \w+(?:\[\w*\])? = \{{(?!\s*\{{?\.size = )")
        unset = re.compile(rf"^\s+struct (?:{names}) \w+;", re.M)
        wrong = []
        for path in tree.files(".c", ".h"):
            text = tree.without_comments(tree.read(path))
            wrong += [f"{path}: {found}" for found in bare.findall(text)]
            if path.startswith(("tools/", "server/", "archive/", "client/", "rebuild/", "engine/")):
                wrong += [f"{path}: {found.strip()}" for body in bodies(text)
                          for found in unset.findall(body)]
        self.none(wrong)

    def test_no_number_belongs_to_two_findings(self):
        found = {}
        for name, number in numbers():
            if re.match(r"RDB_FINDING_|RDB_NOTE_|AOF_FINDING_|AOF_MANIFEST_", name):
                found.setdefault(number, []).append(name)
        self.none([" ".join(names) for names in found.values() if len(names) > 1])

    def test_the_version_of_the_headers_is_that_of_the_project(self):
        project = re.search(r"version: '([\d.]+)'", tree.read("meson.build")).group(1)
        text = tree.read("base/api.h")
        parts = [re.search(rf"REDOUBT_VERSION_{part}\s+(\d+)", text).group(1)
                 for part in ("MAJOR", "MINOR", "PATCH")]
        string = re.search(r'REDOUBT_VERSION_STRING\s+"([^"]+)"', text).group(1)
        self.assertEqual([".".join(parts), string], [project, project])
