"""The examples in the comments of headers call what exists, with its number of arguments.

The examples of installed headers are whole programs, which tests/tools/test_install.py builds and
runs. Those of other headers show the order of calls, with words in the place of conditions.
"""

import re

import tree

CALL = re.compile(r"(?<![\w.>])([a-z]\w*|[A-Z][A-Z0-9_]*)\(")
OURS = re.compile(
    r"^(?:rd|resp|rdb|aof|repl|engine|archive|backup|client|rebuild|history|cli|peer)_"
)


def arguments(text, at):
    """The arguments from the position after "(", or None where ")" is missing. "..." stands for any
    number."""
    depth, found, one, quote = 0, [], "", ""
    while at < len(text):
        c = text[at]
        if quote:
            if c == "\\":
                one += c
                at += 1
                c = text[at:at + 1]
            elif c == quote:
                quote = ""
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}" and depth > 0:
            depth -= 1
        elif c == ")":
            return found + [one.strip()] if one.strip() or found else []
        elif c == "," and depth == 0:
            found.append(one.strip())
            one = ""
            at += 1
            continue
        one += c
        at += 1
    return None


def declarations():
    """For each function and macro of the headers: the numbers of arguments, or None for any."""
    known = {}
    for path in tree.files(".h"):
        text = tree.without_comments(tree.read(path))
        for match in re.finditer(r"^#define (\w+)\(([^)]*)\)", text, re.M):
            names = [n for n in match.group(2).split(",") if n.strip()]
            known[match.group(1)] = None if "..." in match.group(2) else {len(names)}
        plain = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
        for match in re.finditer(r"\b([a-z]\w*)\(", plain):
            given = arguments(plain, match.end())
            if given is None or not re.search(r"[\w*]\s*$", plain[:match.start()]):
                continue
            n = 0 if given in ([], ["void"]) else len(given)
            if "..." in given:
                known[match.group(1)] = None
            elif known.get(match.group(1), set()) is not None:
                known.setdefault(match.group(1), set()).add(n)
    # The rows of the command table declare these.
    for path in tree.files(".c", under="engine/cmd"):
        for name in re.findall(r"^void (engine_cmd_\w+)\(", tree.read(path), re.M):
            known[name] = {1}
    return known


def examples(text):
    """Yields (line number, text) of each indented block of a comment."""
    for comment in re.finditer(r"/\*.*?\*/", text, re.S):
        first = text.count("\n", 0, comment.start()) + 1
        block, begin = [], 0
        for number, line in enumerate(comment.group(0).splitlines() + [""], first):
            match = re.match(r"\s*\*(     +\S.*)", line)
            if match:
                begin = begin if block else number
                block.append(match.group(1))
            elif block:
                yield begin, "\n".join(block)
                block = []


class Examples(tree.Lint):
    def test_their_calls_are_those_of_the_headers(self):
        known, wrong, calls = declarations(), [], 0
        for path in tree.files(".h"):
            for number, text in examples(tree.read(path)):
                for match in CALL.finditer(text):
                    name = match.group(1)
                    given = arguments(text, match.end())
                    if given is None or (name not in known and not OURS.match(name)):
                        continue
                    line = number + text.count("\n", 0, match.start())
                    calls += 1
                    if name not in known:
                        wrong.append(f"{path}:{line}: {name}() is not declared")
                    elif known[name] and len(given) not in known[name] and given != [] and \
                            not any("..." in one or "…" in one for one in given):
                        wanted = " or ".join(map(str, sorted(known[name])))
                        wrong.append(f"{path}:{line}: {name}() has {wanted} arguments, "
                                     f"not {len(given)}")
        self.assertGreater(calls, 500)
        self.none(wrong)
