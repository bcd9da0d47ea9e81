"""Sizes, words and lists: what every source file must keep to."""

import os
import re
import shutil
import subprocess

import tree

FUNCTION_MAX = 100
FILE_MAX = 800

# Written in parts, so that this file does not find itself.
LATER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
# A path of one machine. A template of mkdtemp() in the folder for temporary files is allowed.
MACHINE = re.compile(r"(?<![\w./-])/(wo" + r"rk/|home/\w|ro" + r"ot/|tmp/(?!\S*XXXXXX))")

# A pointer into a struct that a call returned: it is gone at the end of the expression. Criterion
# keeps a pointer to the text, too.
GONE = re.compile(r"(?:\breturn|[^=!<>]=)\s[^;{}]*\)\.s(?:\s+:\s[^;()]*)?;|"
                  r"\bcr_\w+_str_\w+\([^;]*\)\.s,[^;]*;")

CLANG_FORMAT = 14
TEXTS = (".c", ".h", ".py", ".sh", ".md", ".scd", ".build", ".txt", ".yml", ".hex", ".tsv")


def functions(text):
    """Yields (first line, number of lines) of each function: a brace alone at the left margin."""
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            yield start, number - start + 1
            start = None


class Sources(tree.Lint):
    def test_functions_are_at_most_100_lines(self):
        wrong = []
        for path in tree.files(".c", ".h"):
            for line, length in functions(tree.read(path)):
                if length > FUNCTION_MAX:
                    wrong.append(f"{path}:{line}: {length} lines")
        self.none(wrong)

    def test_files_are_at_most_800_lines(self):
        lengths = {path: tree.read(path).count("\n") for path in tree.files(".c", ".h", ".py")}
        self.none([f"{p}: {n} lines" for p, n in lengths.items() if n > FILE_MAX])

    def test_what_fuzzing_found_is_in_archives(self):
        """Named seeds are files; the thousands of others are packed (tests/fuzz/corpus.py)."""
        folders = os.path.join(tree.ROOT, "tests", "fuzz", "corpus")
        hashes = re.compile(r"[0-9a-f]{40}$")
        self.none([os.path.join(folder, name) for folder, _, names in os.walk(folders)
                   for name in names if hashes.match(name)])

    def test_nothing_is_left_for_later(self):
        wrong = []
        for path in tree.files(".c", ".h", ".py", "meson.build"):
            for number, line in enumerate(tree.read(path).splitlines(), 1):
                if LATER.search(line):
                    wrong.append(f"{path}:{number}: {line.strip()}")
        self.none(wrong)

    def test_every_source_is_built(self):
        listed = set()
        for build in tree.files("meson.build"):
            folder = os.path.dirname(build)
            text = tree.read(build)
            for name in re.findall(r"'([\w./-]+\.c)'", text):
                listed.add(os.path.normpath(os.path.join(folder, name)))
            for prefix in re.findall(r"'(\w+_)@0@\.c'", text):
                for name in re.findall(r"^\s+'(\w+)',", text, re.M):
                    listed.add(os.path.join(folder, f"{prefix}{name}.c"))
        if '"web/wasm"' in tree.read("web/build.py"):  # all files of the folder
            listed.update(tree.files(".c", under="web/wasm"))
        self.none([path for path in tree.files(".c") if path not in listed])

    def test_nothing_is_listed_twice_in_a_build_file(self):
        wrong = []
        for build in tree.files("meson.build"):
            names = re.findall(r"^ +'([\w./-]+\.(?:c|h|py))',$", tree.read(build), re.M)
            wrong += [f"{build}: {name}" for name in sorted(set(names)) if names.count(name) > 1]
        self.none(wrong)

    def test_no_paths_of_a_machine_appear(self):
        wrong = []
        for path in tree.files(*TEXTS) + ["run"]:
            for number, line in enumerate(tree.read(path).splitlines(), 1):
                if MACHINE.search(line):
                    wrong.append(f"{path}:{number}: {line.strip()}")
        self.none(wrong)

    def test_no_pointer_outlives_the_text_that_a_call_returned(self):
        wrong = []
        for path in tree.files(".c", ".h"):
            text = tree.without_comments(tree.read(path))
            for match in GONE.finditer(text):
                wrong.append(f"{path}:{text.count(chr(10), 0, match.end()) + 1}: {match.group(0)}")
        self.none(wrong)

    def test_lines_are_at_most_100_columns_without_blanks_at_the_end(self):
        wrong = []
        for path in tree.files(".c", ".h", ".py", "meson.build") + ["run"]:
            for number, line in enumerate(tree.read(path).splitlines(), 1):
                if len(line) > 100 or line != line.rstrip() or "\t" in line:
                    wrong.append(f"{path}:{number}: {line.strip()[:60]}")
        self.none(wrong)

    def test_clang_format_changes_nothing(self):
        """Version 14 wrote these files; others have another opinion of some lines. Where it is not
        installed, the mechanical rules above are the check."""
        program = shutil.which("clang-format")
        version = program and subprocess.run([program, "--version"], stdout=subprocess.PIPE,
                                             text=True, check=True).stdout
        if not version or f"version {CLANG_FORMAT}." not in version:
            return
        paths = tree.files(".c", ".h")
        done = subprocess.run(
            ["clang-format", "--dry-run", *paths],
            cwd=tree.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [line for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line]
        self.none(sorted({line.split(":")[0] for line in lines}))
