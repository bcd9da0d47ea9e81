"""What the programs of Redis 7.0.15 did, for systems that have others.

    answers = recorded.Answers("check-aof")
    answer = answers.get(question, ask)

The question is anything for which repr() differs; the answer is anything that JSON holds. Where the
programs of 7.0.15 are installed, ask() is called, and the record must have the same; elsewhere the
answer is that of the record. An answer with addresses or process numbers is not `stable`: it must
only be in the record. On a machine that has the programs,

    REDOUBT_RECORD=yes

in the environment of the whole test file writes the record again, in tests/recorded/, and

    REDOUBT_RECORD=play

tests with the record alone, as other systems do.
"""

import atexit
import hashlib
import json
import lzma
import os

import redis_server

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recorded")
VERSION = redis_server.REFERENCE[1]


def digest(data):
    return hashlib.sha256(data).hexdigest()[:32]


def is_live():
    """Whether 7.0.15 is here and asked."""
    return redis_server.is_reference() and os.environ.get("REDOUBT_RECORD") != "play"


def is_recording():
    return is_live() and os.environ.get("REDOUBT_RECORD") == "yes"


def chance_is_allowed():
    """Whether tests may do something else each time: with a server that is not recorded."""
    return is_live() and not is_recording()


class Record:
    """What is known: anything that JSON holds. `live`: 7.0.15 is here."""

    def __init__(self, name):
        self.path = os.path.join(FOLDER, f"{name}-{VERSION}.json.xz")
        self.live, self.recording = is_live(), is_recording()
        self.known = {}
        if self.recording:
            atexit.register(self.save)
        else:
            with lzma.open(self.path, "rt", encoding="utf-8") as f:
                self.known = json.load(f)

    def save(self):
        os.makedirs(FOLDER, exist_ok=True)
        with lzma.open(self.path, "wt", encoding="utf-8") as f:
            json.dump(self.known, f, sort_keys=True, separators=(",", ":"))


class Answers(Record):
    def get(self, question, ask, stable=True):
        key = digest(repr(question).encode("utf-8", "surrogateescape"))
        if self.recording:
            self.known[key] = ask()
        if key not in self.known:
            raise AssertionError(f"{self.path} has no answer: record it again (recorded.py)")
        answer = self.known[key]
        if not self.live or self.recording:
            return answer
        asked = ask()
        if stable and answer != asked:
            raise AssertionError(f"{self.path} differs from the program: record it again")
        return asked
