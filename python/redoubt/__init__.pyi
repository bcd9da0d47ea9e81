import os
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional, Union

_Path = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]
_Buffer = Union[bytes, bytearray, memoryview]

__version__: str
library_version: str

class Error(Exception):
    code: str
    reason: str
    offset: Optional[int]
    inner: Optional[int]
    errno: int
    origin: str
    context: list[str]

class Module(NamedTuple):
    name: str
    version: int

class Key(NamedTuple):
    db: int
    name: bytes
    type: str
    encoding: str
    expires_ms: Optional[int]
    idle_s: Optional[int]
    freq: Optional[int]
    size: Optional[int]
    # bytes; list[bytes]; set[bytes]; list[tuple[bytes, float]]; dict[bytes, bytes] (of a path hash:
    # dict[bytes, dict[bytes, bytes]]); dict[int, bytes]; dict[str, Any] of a stream; Module; None
    value: Any
    field_expires_ms: Optional[dict[bytes, int]]
    offset: int

class Command(NamedTuple):
    args: tuple[bytes, ...]
    db: int
    time_s: Optional[int]
    file: str
    offset: int
    number: int
    in_multi: bool

class CaptureCommand(NamedTuple):
    args: tuple[bytes, ...]
    db: int
    time_us: int
    chapter: int
    offset: int
    in_multi: bool

class Finding(NamedTuple):
    word: str
    severity: str
    offset: Optional[int]
    db: int
    key: Optional[bytes]
    text: str

class Verdict(NamedTuple):
    sound: bool
    error: Optional[Error]
    dialect: Optional[str]
    version: Optional[int]
    checksum: str
    keys: int
    expires: int
    errors: int
    warnings: int
    findings: list[Finding]
    end: Optional[int]

class Loss(NamedTuple):
    kind: str
    start: Optional[int]
    end: Optional[int]
    why: str
    key: Optional[bytes]

class Salvage(NamedTuple):
    keys: int
    keys_partial: int
    keys_dropped: int
    keys_doubted: int
    keys_left_out: int
    ranges: int
    bytes_lost: int
    first_loss: Optional[int]
    proved: bool
    corrected: bool
    losses: list[Loss]

def open(path: _Path, *, values: bool = True) -> Iterator[Key]: ...
def read(data: _Buffer, *, values: bool = True) -> Iterator[Key]: ...
def log(path: _Path) -> Iterator[Command]: ...
def capture(path: _Path, *, program: str = "redoubt") -> Iterator[CaptureCommand]: ...
def check(path: _Path, *, quick: bool = False, max_findings: int = 1000) -> Verdict: ...
def salvage(path: _Path, out: Optional[_Path] = None, *, partial: bool = False,
            strict: bool = False, replace: bool = False) -> Salvage: ...
