"""Manual pages and completions know every tool and every option that --help shows."""

import os
import re
import subprocess

import tree

REDOUBT = os.environ["REDOUBT"]


def run(*args):
    done = subprocess.run([REDOUBT, *args], capture_output=True, text=True, check=True)
    return done.stdout


def tools():
    names = re.findall(r"^  ([a-z][a-z0-9-]+)  ", run("help"), re.M)
    return [name for name in names if name != "help"]


def options(text):
    """Long options of a help text: its table, or what every tool has."""
    table, _, common = text.partition("  every tool:")
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
            self.assertEqual(set(complete("redoubt", tool, "--")), set(own + common))
            self.assertEqual(complete("redoubt", tool, ""), [])  # a file
            self.assertEqual(complete("redoubt", "help", tool), [tool])
