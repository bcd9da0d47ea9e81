"""Vector sets as module values (docs/format/modules.md), read independently of the tools.

    for key, value in vectorset.restored(commands):     # of convert --to resp --restore
        value.nodes[0]["version"]                        # 0 or 1
"""

import dataclasses
import struct

TYPE_MODULE_2 = 7
NAME = bytes.fromhex("bde72da2bb1eb400")


@dataclasses.dataclass
class Value:
    dim: int
    config: int
    projection: tuple  # the dimension of the input, the matrix; or None
    nodes: list        # of dicts, in the order of the value

    def elements(self):
        """What users see of it, and the graph, without what only later forms have."""
        return [{k: v for k, v in n.items() if k not in ("version", "worst")} for n in self.nodes]

    def versions(self):
        return {n["version"] for n in self.nodes}


def _decompressed(data, size):
    """LZF: runs of bytes, and copies of what came before."""
    out, at = bytearray(), 0
    while at < len(data):
        control, at = data[at], at + 1
        if control < 32:
            out += data[at:at + control + 1]
            at += control + 1
            continue
        n = control >> 5
        if n == 7:
            n, at = n + data[at], at + 1
        start = len(out) - ((control & 31) << 8 | data[at]) - 1
        at += 1
        for i in range(n + 2):
            out.append(out[start + i])
    assert len(out) == size, "a compressed string of another size"
    return bytes(out)


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        assert self.at <= len(self.data), "the value is too short"
        return self.data[self.at - n:self.at]

    def length(self):
        first = self.take(1)[0]
        if first < 0x40:
            return first
        if first < 0x80:
            return (first & 0x3f) << 8 | self.take(1)[0]
        return int.from_bytes(self.take(4 if first == 0x80 else 8), "big")

    def number(self):
        assert self.length() == 2, "no unsigned number"
        return self.length()

    def string(self):
        assert self.length() == 5, "no string"
        return self.text()

    def text(self):
        first = self.data[self.at]
        if first == 0xc3:
            self.at += 1
            packed, size = self.length(), self.length()
            return _decompressed(self.take(packed), size)
        if first >= 0xc0:
            self.at += 1
            return b"%d" % int.from_bytes(self.take(1 << (first & 3)), "little", signed=True)
        return self.take(self.length())


def _floats(number):
    return struct.unpack("<ff", struct.pack("<Q", number))


def _node(r, has_attributes):
    node = {"name": r.string(), "attributes": r.string() if has_attributes else b"",
            "vector": r.string()}
    numbers = [r.number() for _ in range(r.number())]
    node["id"], level = numbers[:2]
    node["version"] = level >> 24
    at, node["layers"], node["worst"] = 2, [], []
    for _ in range((level & 0xff) + 1):
        n, room = numbers[at:at + 2]
        node["layers"].append((room, numbers[at + 2:at + 2 + n]))
        at += 2 + n
        if node["version"] > 0:
            node["worst"].append(numbers[at])
            at += 1
    node["length"], node["range"] = _floats(numbers[at])
    assert at + 1 == len(numbers), f"{len(numbers)} numbers, not {at + 1}"
    return node


def parse(data):
    """A value, after its id."""
    r = _Reader(data)
    dim, n, config, flags = (r.number() for _ in range(4))
    projection = (r.number(), r.string()) if flags & 1 else None
    nodes = [_node(r, flags & 2) for _ in range(n)]
    assert r.take(1) == b"\0" and r.at == len(data), "bytes after the value"
    return Value(dim, config, projection, nodes)


def _length(n):
    return b"\x81" + struct.pack(">Q", n)


def _number(n):
    return b"\x02" + _length(n)


def _string(text):
    return b"\x05" + _length(len(text)) + text


def _place(node):
    numbers = [node["id"], len(node["layers"]) - 1 | node["version"] << 24]
    for i, (room, links) in enumerate(node["layers"]):
        numbers += [len(links), room, *links] + node["worst"][i:i + 1]
    numbers += struct.unpack("<Q", struct.pack("<ff", node["length"], node["range"]))
    return b"".join(_number(n) for n in [len(numbers), *numbers])


def composed(value):
    """The bytes of a value with its id."""
    has_attributes = any(n["attributes"] for n in value.nodes)
    flags = (value.projection is not None) | has_attributes << 1
    made = [_number(n) for n in (value.dim, len(value.nodes), value.config, flags)]
    if value.projection is not None:
        made += [_number(value.projection[0]), _string(value.projection[1])]
    for node in value.nodes:
        made += [_string(node["name"])] + [_string(node["attributes"])] * has_attributes
        made += [_string(node["vector"]), _place(node)]
    return b"\x81" + NAME + b"".join(made) + b"\0"


def commands(data):
    """Commands as the protocol has them, as lists of bytes."""
    at = 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        made, n, at = [], int(data[at + 1:end]), end + 2
        for _ in range(n):
            end = data.index(b"\r\n", at)
            size = int(data[at + 1:end])
            made.append(data[end + 2:end + 2 + size])
            at = end + 4 + size
        yield made


def of_payload(payload):
    """The vector set in a payload of DUMP; None: it is another value."""
    if payload[0] != TYPE_MODULE_2 or payload[1:2] != b"\x81" or payload[2:10] != NAME:
        return None
    return parse(payload[10:-10])


def items_of_payload(payload):
    """The id and the items of the value of any module in a payload of DUMP, which may have its
    strings compressed or not. None: it is another value."""
    if payload[0] != TYPE_MODULE_2:
        return None
    r, items = _Reader(payload[1:-10]), []
    ident = r.length()
    while (opcode := r.length()) != 0:
        if opcode == 5:
            items.append(r.text())
        elif opcode in (3, 4):
            items.append(r.take(4 if opcode == 3 else 8).hex())
        else:
            items.append(r.length())
    assert r.at == len(r.data), "bytes after the value"
    return ident, items


def restored(data):
    """The vector sets among commands, by their keys."""
    found = {}
    for command in commands(data):
        if command[0] == b"RESTORE":
            value = of_payload(command[3])
            if value is not None:
                found[command[1]] = value
    return found
