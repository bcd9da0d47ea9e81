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
import tempfile
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

def log(path):
    """An iterator of the commands of a log: a file, a manifest, or the folder of one.

    A snapshot at the beginning of a log is verified, not returned: open() reads it.
    """
    path = os.fsdecode(path)
    if os.path.isdir(path):
        manifests = [name for name in os.listdir(path) if name.endswith(".manifest")]
        if len(manifests) != 1:
            raise ValueError(f"{path}: {len(manifests)} manifests, not one")
        path = os.path.join(path, manifests[0])
    return log_file(path, os.path.basename(path), manifest=path.endswith(".manifest"))


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
    with tempfile.TemporaryFile() as messages, \
         subprocess.Popen([program, "show", "--ndjson", "--", os.fspath(path)],
                          stdout=subprocess.PIPE, stderr=messages) as done:
        try:
            for line in done.stdout:
                entry = json.loads(line)
                if "command" in entry:
                    yield _command(entry)
            if done.wait() not in (0, 8):
                messages.seek(0)
                text = messages.read().decode(errors="replace").strip()
                raise Error(text.splitlines()[0] if text else f"{program} show failed")
        finally:
            done.kill()
