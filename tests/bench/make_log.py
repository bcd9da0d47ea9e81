#!/usr/bin/env python3
"""An append-only log as a busy server writes it: small commands on all types, values of 10 to 500
bytes, a transaction now and then, a change of database, annotations of time.

usage: make_log.py [--mb N] >FILE
"""

import argparse
import random
import sys

BLOCKS = 8
BLOCK_COMMANDS = 40_000


def command(*args):
    words = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def value(rng):
    return rng.randbytes(rng.choice((5, 8, 16, 30, 60, 250))).hex().encode()


def write(rng):
    key = rng.randrange(10**7)
    kind = rng.randrange(8)
    if kind < 3:
        return command("SET", f"user:{key}", value(rng))
    if kind == 3:
        return command("HSET", f"session:{key}", "seen", key * 7, "agent", value(rng))
    if kind == 4:
        return command("ZADD", f"board:{key % 1000}", rng.random() * 1000, f"player:{key}")
    if kind == 5:
        return command("RPUSH", f"queue:{key % 100}", value(rng))
    if kind == 6:
        return command("PEXPIREAT", f"user:{key}", 1_800_000_000_000 + key)
    return command("INCRBY", f"count:{key % 5000}", rng.randrange(100))


def block(seed):
    rng = random.Random(seed)
    parts = [command("SELECT", seed % 3)]
    for i in range(BLOCK_COMMANDS):
        if i % 50 == 0:
            parts += [command("MULTI"), write(rng), write(rng), command("EXEC")]
        else:
            parts.append(write(rng))
    return b"".join(parts)


def log(size):
    """Whole blocks until there are `size` bytes."""
    blocks = [block(seed) for seed in range(BLOCKS)]
    written = i = 0
    while written < size:
        yield b"#TS:%d\r\n" % (1_700_000_000 + i) + blocks[i % BLOCKS]
        written += len(blocks[i % BLOCKS])
        i += 1


def main():
    parser = argparse.ArgumentParser(add_help=True)
    parser.add_argument("--mb", type=float, default=650)
    args = parser.parse_args()
    for piece in log(args.mb * 1e6):
        sys.stdout.buffer.write(piece)


if __name__ == "__main__":
    main()
