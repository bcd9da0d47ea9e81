"""Fixtures that are written as annotated text; see hex.h for the form."""

import re

_TOKEN = re.compile(rb'\s+|#[^\n]*|"([^"\n]*)"|([0-9a-f]{2})(?=[\s"#]|[0-9a-f]{2}|$)')


def parse(text):
    out = bytearray()
    at = 0
    while at < len(text):
        m = _TOKEN.match(text, at)
        if m is None:
            line = text.count(b"\n", 0, at) + 1
            raise ValueError(f"line {line}: neither hex digits nor a string")
        if m.group(1) is not None:
            out += m.group(1)
        elif m.group(2) is not None:
            out += bytes.fromhex(m.group(2).decode())
        at = m.end()
    return bytes(out)


def load(path):
    with open(path, "rb") as f:
        try:
            return parse(f.read())
        except ValueError as e:
            raise ValueError(f"{path}: {e}") from None
