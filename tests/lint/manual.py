"""Manual pages and completions know every tool and every option that --help shows."""

import os
import re
import subprocess
import sys

import tree

sys.path.append(os.path.join(tree.ROOT, "docs"))
import md2man  # noqa: E402

REDOUBT = os.environ["REDOUBT"]


# The page of each tool's objects; the others are described in their manual pages.
BACKUP = ("archive", "backup", "copy", "list", "pause", "prune", "restore", "resume", "unlock",
          "verify")
JSON_PAGES = {
    **{tool: f"{tool}-json" for tool in ("capture", "check-aof", "check-rdb", "cluster",
                                         "convert", "diff", "doctor", "replay", "show", "split",
                                         "stat", "sum")},
    **{tool: "backup-json" for tool in BACKUP},
    "merge": "convert-json",
}

# A member that is written by name: json_put_uint(json, "name", ...), put_pair(json, "name", ...).
MEMBER = re.compile(r'\b(?:json_)?(?:put_\w+|key)\(\s*[^,"()]*(?:\([^()]*\))?,\s*"(\w+)"')


def run(*args):
    done = subprocess.run([REDOUBT, *args], capture_output=True, text=True, check=True)
    return done.stdout


def tools():
    names = re.findall(r"^  ([a-z][a-z0-9-]+)  ", run("help"), re.M)
    return [name for name in names if name != "help"]


def server_options(text):
    """Those that the help leaves to the main page: they are the same for each tool."""
    page = tree.read("docs/man/redoubt.1.scd").partition("# SERVERS")[2].partition("\n# ")[0]
    names = re.findall(r"\*(--[\w-]+)\*[=,\n]", page)
    return set(names) - {"--tls-key", "--match"} if "\n  a server: " in text else set()


def options(text):
    """Long options of a help text: its table, or what every tool has."""
    table, _, common = text.partition("  every tool:")
    table = re.sub(r"\n  a server: .*", "", table)
    table, _, brief = table.partition("  also: ")
    own = re.findall(r"^ {2,6}(?:-\w, )?(--[\w-]+)", table, re.M)
    own += re.findall(r"--[\w-]+", brief)
    return own, re.findall(r"--[\w-]+", common.partition("\n\n")[0])


def complete(*words):
    """What bash would offer for the last word."""
    script = f"""
        redoubt() {{ "$REDOUBT" "$@"; }}
        . "{tree.ROOT}/docs/completion/redoubt.bash"
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _redoubt
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    command = ["bash", "-c", script, "bash", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def pages():
    """Every manual page that is installed, as (name, section), with its source for scdoc."""
    found = {}
    for path in tree.files(".scd", under="docs/man"):
        name, section = os.path.basename(path)[:-4].rsplit(".", 1)
        found[name, int(section)] = tree.read(path)
    for path in tree.files(".md", under="docs"):
        path = os.path.join(tree.ROOT, path)
        page = md2man.manual_page(path)
        if page is not None:
            found[page] = md2man.Page(path).scdoc(*page)
    return found


class Manual(tree.Lint):
    def test_every_tool_has_a_page_that_names_its_options(self):
        wrong = []
        for tool in tools():
            path = f"docs/man/redoubt-{tool}.1.scd"
            if not os.path.exists(os.path.join(tree.ROOT, path)):
                wrong.append(f"{path} is missing")
                continue
            page = tree.read(path)
            own, _ = options(run(tool, "--help"))
            wrong += [f"{path}: {name}" for name in own if name not in page]
        self.none(wrong)

    def test_pages_name_no_option_that_the_tool_has_not(self):
        wrong = []
        for tool in tools():
            path = f"docs/man/redoubt-{tool}.1.scd"
            if not os.path.exists(os.path.join(tree.ROOT, path)):
                continue
            own, common = options(run(tool, "--help"))
            own += server_options(run(tool, "--help"))
            written = re.findall(r"^\*(?:-\w\*, \*)?(--[\w-]+)", tree.read(path), re.M)
            wrong += [f"{path}: {name}" for name in written if name not in own + common]
        self.none(wrong)

    def test_the_main_page_names_the_common_options_and_every_tool(self):
        page = tree.read("docs/man/redoubt.1.scd")
        for tool in tools():
            self.assertIn(f"redoubt-{tool}", page)
            for name in options(run(tool, "--help"))[1]:
                self.assertIn(name, page)

    def test_the_completion_for_bash_offers_every_tool_and_option(self):
        self.assertEqual(set(complete("redoubt", "")), {"help", "--help", "--version", *tools()})
        for tool in tools():
            own, common = options(run(tool, "--help"))
            self.assertEqual(set(complete("redoubt", tool, "--")),
                             set(own + common) | server_options(run(tool, "--help")))
            self.assertEqual(complete("redoubt", tool, ""), [])  # a file
            self.assertEqual(complete("redoubt", "help", tool), [tool])

    def test_every_member_of_an_object_is_described(self):
        wrong = []
        for tool, name in JSON_PAGES.items():
            code = re.findall(r"```.*?```|`[^`]+`", tree.read(f"docs/format/{name}.md"), re.S)
            described = set(re.findall(r"\w+", " ".join(code)))
            for path in tree.files(".c", under="tools/" + tool.replace("-", "_")):
                if os.path.basename(path) == "html.c":
                    continue  # the data of a page is read by its own script only
                members = set(MEMBER.findall(tree.read(path)))
                wrong += [f"{path}: {member} is not in docs/format/{name}.md"
                          for member in sorted(members - described)]
        self.none(wrong)

    def test_pages_refer_to_pages_that_are_installed(self):
        found = pages()
        wrong = []
        for page, text in found.items():
            wrong += [f"{page}: {name}({section})" for name, section in
                      re.findall(r"\*(redoubt[\w-]*)\*\((\d)\)", text)
                      if (name, int(section)) not in found]
        self.none(wrong)

    def test_manual_pages_do_not_name_files_of_the_source(self):
        self.none([f"{path}: {name}" for path in tree.files(".scd", under="docs/man")
                   for name in re.findall(r"docs/[\w./-]+|[\w-]+\.md\b", tree.read(path))])

    def test_every_page_is_in_the_build_file(self):
        build = tree.read("docs/meson.build")
        listed = re.findall(r"^  '([\w.-]+)',", build, re.M)
        listed += ["compatibility", "exit-status", "performance", "servers"]
        for name, section in pages():
            short = name.replace("redoubt-", "", 1)
            self.assertTrue({f"{name}.{section}", short} & set(listed) or
                            f"'{name}.{section}'" in build, f"{name}({section})")

    def test_the_overview_names_every_page(self):
        overview = tree.read("docs/man/redoubt.7.scd")
        self.none([f"{name}({section})" for name, section in pages()
                   if f"*{name}*({section})" not in overview and name != "redoubt"])
