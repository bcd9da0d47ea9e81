"""Commands and replies as bytes, and when two replies are the same.

A reply is parsed into a tuple of its type and its content: ("$", b"text"), (":", 1), ("*", [...]),
("%", [(key, value), ...]), ("-", b"ERR ..."), and ("$", None) for null.
"""


class Incomplete(Exception):
    """The reply continues after the end of the buffer."""


def as_bytes(arg):
    return arg if isinstance(arg, bytes) else str(arg).encode()


def encode(argv):
    parts = [b"*%d\r\n" % len(argv)]
    for arg in argv:
        parts.append(b"$%d\r\n%b\r\n" % (len(arg), arg))
    return b"".join(parts)


def _line(buf, pos):
    end = buf.find(b"\r\n", pos)
    if end < 0:
        raise Incomplete
    return bytes(buf[pos:end]), end + 2


def _text(buf, pos, length):
    if length < 0:
        return None, pos
    end = pos + length
    if len(buf) < end + 2:
        raise Incomplete
    return bytes(buf[pos:end]), end + 2


def parse(buf, pos=0):
    """(reply, position after it)"""
    head, pos = _line(buf, pos)
    kind, rest = head[:1].decode("latin-1"), head[1:]
    if kind in "$=!":
        text, pos = _text(buf, pos, int(rest))
        return (kind, text), pos
    if kind == ":":
        return (kind, int(rest)), pos
    if kind in "*~>":
        if rest == b"-1":
            return (kind, None), pos
        items = []
        for _ in range(int(rest)):
            item, pos = parse(buf, pos)
            items.append(item)
        return (kind, items), pos
    if kind == "%":
        pairs = []
        for _ in range(int(rest)):
            key, pos = parse(buf, pos)
            value, pos = parse(buf, pos)
            pairs.append((key, value))
        return (kind, pairs), pos
    if kind in "+-,#_(":
        return (kind, rest), pos
    raise ValueError(f"not a reply: {head!r}")


def parse_commands(data):
    """Of a log: a list of argv."""
    out, pos = [], 0
    while pos < len(data):
        (_, items), pos = parse(data, pos)
        out.append([text for _, text in items])
    return out


def with_databases(data, db):
    """Commands of a log as (database, argv), without SELECT; and the database at its end."""
    out = []
    for argv in parse_commands(data):
        if argv[0].upper() == b"SELECT" and len(argv) == 2:
            db = int(argv[1])
        else:
            out.append((None if argv[0] in (b"MULTI", b"EXEC") else db, argv))
    return out, db


# ---- comparing ----

PAIRS = {"HGETALL", "CONFIG|GET"}
SCANS = {"SCAN", "SSCAN", "HSCAN", "ZSCAN"}


def sorted_reply(reply, pairs=False):
    """The same for replies whose arrays, sets and maps differ in order alone."""
    kind, content = reply
    if not isinstance(content, list):
        return reply
    if kind == "%":
        items = [(sorted_reply(k), sorted_reply(v)) for k, v in content]
    else:
        items = [sorted_reply(item) for item in content]
        if pairs and kind == "*":
            items = list(zip(items[::2], items[1::2]))
    return kind, sorted(items, key=repr)


def shape(reply):
    """What is left when texts and numbers are by chance."""
    kind, content = reply
    if isinstance(content, list):
        if kind == "%":
            return kind, [(shape(k), shape(v)) for k, v in content]
        return kind, [shape(item) for item in content]
    if kind in "-+" or content is None:
        return reply
    return (kind,)


def _same_scan(argv, ours, theirs):
    if ours[0] != "*" or theirs[0] != "*":
        return ours == theirs
    at_once = all(reply[1][0] == ("$", b"0") for reply in (ours, theirs))
    begins = b"0" in argv[1:3]
    pairs = argv[0].upper() in (b"HSCAN", b"ZSCAN")
    if at_once and begins:
        return sorted_reply(ours[1][1], pairs) == sorted_reply(theirs[1][1], pairs)
    return len(ours[1]) == len(theirs[1])


def names_of(argv):
    """What a command may be called in the tables of families: "XINFO" and "XINFO|STREAM"."""
    name = argv[0].decode("latin-1").upper()
    return {name, f"{name}|{argv[1].decode('latin-1').upper()}"} if len(argv) > 1 else {name}


def same(argv, ours, theirs, unordered, random):
    names = names_of(argv)
    if ours == theirs:
        return True
    if names & SCANS:
        return _same_scan(argv, ours, theirs)
    if names & random:
        return shape(ours) == shape(theirs)
    if names & unordered:
        pairs = bool(names & PAIRS)
        return sorted_reply(ours, pairs) == sorted_reply(theirs, pairs)
    return False


# ---- commands as redis-cli has them ----

_PLAIN = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             b"_-+.,:;/*()[]{}<>=!$%&|~^?@")
_ESCAPES = {10: b"\\n", 13: b"\\r", 9: b"\\t", 7: b"\\a", 8: b"\\b", 34: b'\\"', 92: b"\\\\"}
_UNESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}


def quote(arg):
    if arg and all(c in _PLAIN for c in arg):
        return arg.decode()
    out = b""
    for c in arg:
        if c in _ESCAPES:
            out += _ESCAPES[c]
        else:
            out += bytes([c]) if 32 <= c < 127 else b"\\x%02x" % c
    return '"' + out.decode() + '"'


def _unquote(line, i):
    out = b""
    while line[i:i + 1] != b'"':
        if i >= len(line):
            raise ValueError("unbalanced quotes: " + line.decode())
        if line[i:i + 2] == b"\\x":
            out += bytes([int(line[i + 2:i + 4], 16)])
            i += 4
        elif line[i:i + 1] == b"\\":
            out += _UNESCAPES.get(line[i + 1:i + 2], line[i + 1:i + 2])
            i += 2
        else:
            out += line[i:i + 1]
            i += 1
    return out, i + 1


def split(line):
    """The arguments of a line, as bytes."""
    line = as_bytes(line).strip()
    argv, i = [], 0
    while i < len(line):
        if line[i:i + 1] == b" ":
            i += 1
        elif line[i:i + 1] == b'"':
            arg, i = _unquote(line, i + 1)
            argv.append(arg)
        else:
            end = line.find(b" ", i)
            end = len(line) if end < 0 else end
            argv.append(line[i:end])
            i = end
    return argv
