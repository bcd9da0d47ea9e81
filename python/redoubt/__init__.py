"""Reads the files of Redis and Valkey: snapshots, append-only logs and captures.

    import redoubt

    for key in redoubt.open("dump.rdb"):
        print(key.name, key.type, key.value)
    print(redoubt.check("dump.rdb").sound)
"""

import json
import os
import shutil
import subprocess
from typing import NamedTuple

from ._redoubt import (Command, Error, Finding, Key, Loss, Module, Salvage, Verdict, check, keys,
                       library_version, log_file, salvage)

__all__ = ["CaptureCommand", "Command", "Error", "Finding", "Key", "Loss", "Module", "Salvage",
           "Verdict", "capture", "check", "library_version", "log", "open", "read", "salvage"]
__version__ = library_version


def open(path, *, values=True):  # pylint: disable=redefined-builtin
    """An iterator of the keys of a snapshot; values=False is faster and leaves out the values."""
    return keys(path, values=values)


def read(data, *, values=True):
    """The same for the bytes of a snapshot."""
    return keys(data, data=True, values=values)


# ---- logs ----

def _words(line):
    """The words of a line of a manifest, quoted as in redis.conf."""
    words = []
    at = 0
    while True:
        while at < len(line) and line[at] in " \t\r\n":
            at += 1
        if at == len(line):
            return words
        end = at
        if line[at] == '"':
            end += 1
            while end < len(line) and line[end] != '"':
                end += 2 if line[end] == "\\" else 1
            text = line[at + 1:end]
            words.append(text.encode("latin-1", "backslashreplace").decode("unicode_escape")
                         .encode("latin-1").decode("utf-8", "surrogateescape"))
            at = end + 1
        else:
            while end < len(line) and line[end] not in " \t\r\n":
                end += 1
            words.append(line[at:end])
            at = end


def _files(manifest):
    """The names in a manifest, in the order in which servers read them."""
    found = []
    with io_open(manifest, encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            if line.startswith("#") or not line.strip():
                continue
            words = _words(line)
            pairs = dict(zip([word.lower() for word in words[::2]], words[1::2]))
            if "file" not in pairs or "type" not in pairs:
                raise ValueError(f"{manifest}: a line that names no file: {line.strip()!r}")
            if os.path.basename(pairs["file"]) != pairs["file"]:
                raise ValueError(f"{manifest}: a file in another folder: {pairs['file']!r}")
            found.append((pairs["type"], pairs["file"]))
    return ([name for kind, name in found if kind == "b"]
            + [name for kind, name in found if kind == "i"])


def _parts(path):
    """(path, name) of each file of a log: a file, a manifest, or the folder of one."""
    path = os.fspath(path)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if os.path.isdir(path):
        manifests = [name for name in os.listdir(path) if name.endswith(".manifest")]
        if len(manifests) != 1:
            raise ValueError(f"{path}: {len(manifests)} manifests, not one")
        path = os.path.join(path, manifests[0])
    if path.endswith(".manifest"):
        folder = os.path.dirname(path)
        for name in _files(path):
            yield os.path.join(folder, name), name
    else:
        yield path, os.path.basename(path)


def log(path):
    """An iterator of the commands of a log: a file, a manifest, or the folder of one.

    A snapshot at the beginning of a log is verified, not returned: open() reads it.
    """
    for part, name in _parts(path):
        yield from log_file(part, name)


# ---- captures ----

class CaptureCommand(NamedTuple):
    """A command of a replication stream that `redoubt capture` or `archive` recorded."""

    args: tuple
    db: int
    time_us: int
    chapter: int
    offset: int
    in_multi: bool


def _command(entry):
    args = tuple(arg.encode("utf-8", "surrogateescape") for arg in entry["command"])
    return CaptureCommand(args, entry["db"], entry["time_us"], entry["chapter"], entry["offset"],
                          entry["multi"])


def capture(path, *, program="redoubt"):
    """An iterator of the commands of the folder of a capture, which the program `redoubt` reads."""
    if shutil.which(program) is None:
        raise FileNotFoundError(f"the program {program} reads captures, and is not installed")
    with subprocess.Popen([program, "show", "--ndjson", "--", os.fspath(path)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        try:
            for line in done.stdout:
                entry = json.loads(line)
                if "command" in entry:
                    yield _command(entry)
            text = done.stderr.read().decode(errors="replace").strip()
            if done.wait() not in (0, 8):
                raise Error(text.splitlines()[0] if text else f"{program} show failed")
        finally:
            done.kill()


from builtins import open as io_open  # noqa: E402  pylint: disable=wrong-import-position
