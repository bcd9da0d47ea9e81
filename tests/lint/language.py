"""Prose uses plain technical English: the words in the list below have a plainer form.

The lint reads comments, messages, documents and identifiers. It cannot judge a sentence; it catches
the habits that made earlier texts hard to read.
"""

import re

import tree

ENDINGS = (".c", ".h", ".py", ".md", ".scd", ".build", ".conf", ".html", ".js", ".css", ".bash",
           ".fish", ".ini", ".service", ".timer")
OWN = "tests/lint/language.py"
QUOTES = "docs/servers.md"  # what servers and tools said; its own words are in tests/newer/page.py

# (what is found, what to write instead)
WORDS = [
    (r"(?<!write-)(?<!write_)\bbehind\b", "after, below, or left over"),
    (r"(?<!write)_behind(?![a-z])", "after"),
    (r"\bwhoever\b", "name the caller, the user or the program"),
    (r"\bunless told\b", "by default"),
    (r"(?<![Tt]here )\b(?:is|are|was|were|be) no "
     r"(?!longer\b|more\b|less\b|fewer\b|later\b|larger\b)[a-z]+",
     "is not a"),
    (r"\bwhat (?:stands|comes)\b", "the bytes, records or commands at that position"),
    (r"\bstands? (?:in|at|on|before|beside|behind|there|by|for itself|between|under)\b",
     "is in, is at"),
    (r"\bstood\b", "was"),
    (r"\bstands?\b(?! for\b)", "is, is stored, comes"),
    (r"\btells\b", "reports, says which"),
    (r"\btells? (?:of|what|how|that|which|whether|where|people|programs|its|the|a|all)\b",
     "reports, gives, says which"),
    (r"\b(?:is|are|was|were|be) told\b", "is reported, is given, is documented"),
    (r"\b(?:some|no)body\b", "name the client, the caller or the user"),
    (r"\banew\b", "again"),
    (r"\b(?:be|is|are) had\b", "is available"),
    (r"\bheld against\b|\bholds? .{0,30} against each other\b", "compared with"),
    (r"\bmend(?:s|ed|ing)?\b|\bmend_", "repair or recover"),
    (r"\bgoes on\b(?! and off)|\bgo on\b", "continues, resumes"),
    (r"\bis silent since\b", "no data for"),
    (r"\b[Hh]is (?:input|output|session|answers?|client|own)\b", "its"),
    (r"\bas it stands\b|\bas they stand\b", "unchanged"),
    (r"\bin front of\b", "before"),
    (r"\bsays so of itself\b", "declares it"),
    (r"\b(?:is|are) there already\b", "already exists"),
    (r"\bis silently? gone\b|\bhas gone\b|\bwhat is gone\b", "is missing, was removed, is closed"),
    (r"\bwhere it is told\b|_told\b|\btold_|\btell_", "report, log or print"),
    (r"\bbytes are not those\b|\bis not what was written\b", "checksum or digest mismatch"),
    (r"^static [^=;]*\b(?:take|tell|give|keep|hold|get|see|show)\(",
     "a verb with its object, such as take_event"),
    (r"\bkeepsake|\bstranger|\bhabits\b|\bhollow\b|\bclues\b", "a name for what it is"),
]
PATTERNS = [(re.compile(pattern), instead) for pattern, instead in WORDS]


class Language(tree.Lint):
    def test_texts_use_plain_words(self):
        wrong = []
        paths = [p for p in tree.files(*ENDINGS) + ["run"] if not p.startswith("fixtures/")]
        for path in paths:
            if path in (OWN, QUOTES):
                continue
            for number, line in enumerate(tree.read(path).splitlines(), 1):
                for pattern, instead in PATTERNS:
                    found = pattern.search(line)
                    if found:
                        wrong.append(f"{path}:{number}: \"{found.group(0)}\": {instead}")
        self.none(wrong)
