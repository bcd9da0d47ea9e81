#!/usr/bin/env python3
"""A snapshot with one huge list, written to a pipe as fast as it is read.

usage: make_giant.py [--mb N] [--form quicklist2|list] >PIPE

The list is as Redis 7.0 saves it (nodes of 8 KiB with packed elements, now and then a large element
in a node of its own), or as servers before 3.2 did (element after element). N is about how many MiB
it has; 4096 by default. The checksum is right: a block of nodes repeats, and the checksum of a
repetition follows from that of the block without touching its bytes.
"""

import argparse
import contextlib
import fcntl
import os
import random
import sys

NODE = 8 << 10
BLOCK_NODES = 128
PIPE = 1 << 20
POLY = 0x95AC9329AC4BC9B5  # of CRC-64/Jones, the bits reversed


def _table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (POLY if crc & 1 else 0)
        table.append(crc)
    return table


TABLE = _table()


def crc64(crc, data):
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc


# What zeros make of a checksum is linear: a matrix of 64 columns, each a number of 64 bits.


def _times(matrix, vector):
    result = 0
    for column in matrix:
        if vector & 1:
            result ^= column
        vector >>= 1
    return result


def _product(a, b):
    return [_times(a, column) for column in b]


def _zeros(n):
    """The matrix of n bytes of zero."""
    power = [TABLE[(1 << bit) & 0xFF] ^ ((1 << bit) >> 8) for bit in range(64)]
    result = [1 << bit for bit in range(64)]
    while n:
        if n & 1:
            result = _product(power, result)
        power = _product(power, power)
        n >>= 1
    return result


def crc64_repeated(crc, block, n):
    """crc64(crc, block * n)."""
    shift, add = _zeros(len(block)), crc64(0, block)
    while n:
        if n & 1:
            crc = _times(shift, crc) ^ add
        add ^= _times(shift, add)
        shift = _product(shift, shift)
        n >>= 1
    return crc


def length(n):
    if n < 1 << 6:
        return bytes([n])
    if n < 1 << 14:
        return bytes([0x40 | n >> 8, n & 0xFF])
    if n < 1 << 32:
        return b"\x80" + n.to_bytes(4, "big")
    return b"\x81" + n.to_bytes(8, "big")


def string(data):
    return length(len(data)) + data


def element(rng):
    return b"%08d " % rng.randrange(10**8) + rng.randbytes(rng.randrange(8, 25)).hex().encode()


def listpack(rng):
    """Elements of fewer than 64 bytes, each with its length before and its size after."""
    entries, size = [], 7
    while size < NODE - 64:
        text = element(rng)
        entries.append(bytes([0x80 | len(text)]) + text + bytes([1 + len(text)]))
        size += len(entries[-1])
    head = size.to_bytes(4, "little") + len(entries).to_bytes(2, "little")
    return head + b"".join(entries) + b"\xff"


def quicklist2_block(rng):
    """(bytes, how many nodes): packed nodes, and a plain one that is larger."""
    nodes = [b"\x02" + string(listpack(rng)) for _ in range(BLOCK_NODES - 1)]
    nodes.append(b"\x01" + string(rng.randbytes(3 * NODE)))
    return b"".join(nodes), len(nodes)


def list_block(rng):
    elements, size = [], 0
    while size < BLOCK_NODES * NODE:
        elements.append(string(element(rng)))
        size += len(elements[-1])
    return b"".join(elements), len(elements)


FORMS = {"quicklist2": (10, 18, quicklist2_block), "list": (6, 1, list_block)}


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


def write(fd, mb, form):
    version, type_id, make_block = FORMS[form]
    block, n_nodes = make_block(random.Random(1))
    repeats = -(-(mb << 20) // len(block))  # rounded up
    begin = b"REDIS%04d\xfe\x00" % version + bytes([type_id]) + string(b"giant")
    begin += length(n_nodes * repeats)
    write_all(fd, begin)
    for _ in range(repeats):
        write_all(fd, block)
    crc = crc64_repeated(crc64(0, begin), block, repeats)
    write_all(fd, b"\xff" + crc64(crc, b"\xff").to_bytes(8, "little"))


def main():
    parser = argparse.ArgumentParser(description="Writes a snapshot with one huge list.")
    parser.add_argument("--mb", type=int, default=4096, help="about how many MiB")
    parser.add_argument("--form", choices=sorted(FORMS), default="quicklist2")
    args = parser.parse_args()
    if os.isatty(1):
        parser.error("refusing to write binary data to a terminal")
    with contextlib.suppress(OSError):  # no pipe, or no more allowed: slower, nothing else
        fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, PIPE)
    try:
        write(1, args.mb, args.form)
    except BrokenPipeError:
        return 141
    return 0


if __name__ == "__main__":
    sys.exit(main())
