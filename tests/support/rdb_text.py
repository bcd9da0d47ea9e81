"""Writes small snapshots for tests: whatever is asked for, also what no server would write.

    with open(path, "wb") as f:
        f.write(snapshot([Key(b"k", STRING, b"v", db=1, expire_ms=4102444800000)]))
"""

import struct
from typing import Any, NamedTuple, Optional

STRING, LIST, SET, ZSET, HASH = 0, 1, 2, 5, 4


class Key(NamedTuple):
    name: bytes
    type: int
    value: Any  # bytes; lists of bytes; (member, score) or (field, value) pairs
    db: int = 0
    expire_ms: Optional[int] = None


def length(n):
    if n < 64:
        return bytes([n])
    if n < 16384:
        return bytes([0x40 | n >> 8, n & 255])
    return b"\x80" + struct.pack(">I", n)


def string(s):
    return length(len(s)) + s


def value(key):
    if key.type == STRING:
        return string(key.value)
    out = length(len(key.value))
    for item in key.value:
        if key.type in (LIST, SET):
            out += string(item)
        elif key.type == ZSET:
            out += string(item[0]) + struct.pack("<d", item[1])
        else:
            out += string(item[0]) + string(item[1])
    return out


def snapshot(keys, version=10, aux=(), functions=(), magic=b"REDIS", tail=None):
    """Without a checksum, which 0 stands for; databases in the order of the keys."""
    out = bytearray(magic + b"%0*d" % (9 - len(magic), version))
    for name, text in aux:
        out += b"\xfa" + string(name) + string(text)
    for code in functions:
        out += b"\xf5" + string(code)
    db = None
    for key in keys:
        if key.db != db:
            out += b"\xfe" + length(key.db)
            db = key.db
        if key.expire_ms is not None:
            out += b"\xfc" + struct.pack("<q", key.expire_ms)
        out += bytes([key.type]) + string(key.name) + value(key)
    return bytes(out + (tail if tail is not None else b"\xff" + bytes(8)))
