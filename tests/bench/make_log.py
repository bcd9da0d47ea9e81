#!/usr/bin/env python3
"""An append-only log as a busy server writes it: small commands on all types, values of 10 to 500
bytes, a transaction now and then, a change of database, annotations of time.

usage: make_log.py [--mb N] [--collections] >FILE

With --collections, most of it is about streams, hashes and sorted sets, small and large, and the
data set is about as large as the log; without, keys are overwritten often.
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


WORDS = [w.encode() for w in (
    "amber anchor autumn basin birch bridge canyon cedar cliff cloud copper coral delta ember "
    "falcon fern forest garnet glacier harbor hazel island ivory jasper lagoon lantern maple "
    "meadow mesa mist orchid pebble pine prairie quartz ravine reef ridge river saffron sage "
    "shore silver slate spring spruce stone storm thunder tide timber valley willow").split()]
FIELDS = (b"name", b"mail", b"city", b"street", b"age", b"created", b"visits", b"status", b"score",
          b"plan")


class Pool:
    """Random numbers and words; both are cheaper here than from the modules."""

    def __init__(self, seed):
        self.random = random.Random(seed).random
        self.words = b" ".join([WORDS[self.below(len(WORDS))] for _ in range(1 << 16)])

    def below(self, n):
        return int(self.random() * n)

    def text(self, most):
        n = 4 + self.below(most)
        at = self.below(len(self.words) - n)
        return self.words[at:at + n]


def add_to_stream(pool, i):
    name = b"events:%d" % pool.below(2000)
    if i % 39 == 0:
        return command(b"XGROUP", b"CREATE", name, b"group:%d" % i, b"0-0", b"MKSTREAM")
    entry = b"%d-0" % (1_700_000_000_000 + i * 7)
    if i % 21 == 0:
        return command(b"XADD", name, b"MAXLEN", b"5000", entry, b"alert", pool.text(60))
    return command(b"XADD", name, entry, b"sensor", b"%d" % pool.below(50), b"value",
                   b"%.1f" % (pool.random() * 100), b"unit", b"C", b"note", pool.text(60))


def set_fields(pool, i):
    kind = pool.below(8)
    if kind == 0:
        return command(b"HSET", b"index:%d" % pool.below(20), b"article:%d" % (i * 7919 % 10**7),
                       pool.text(160))
    key = b"profile:%d" % pool.below(10**6)
    if kind == 1:
        return command(b"HINCRBY", key, b"hits", b"%d" % pool.below(10))
    args = [b"HSET" if kind > 2 else b"HMSET", key]
    for field in FIELDS[:2 + pool.below(len(FIELDS) - 1)]:
        args += (field, b"%d" % pool.below(10**6) if pool.random() < 0.4 else pool.text(40))
    return command(*args)


def set_scores(pool, i):
    kind = pool.below(8)
    if kind == 0:
        return command(b"ZADD", b"timeline:%d" % pool.below(20), b"%.3f" % (pool.random() * 1e9),
                       b"post:%d:%d" % (i, pool.below(10**6)))
    key = b"board:%d" % pool.below(10**5)
    if kind == 1:
        return command(b"ZINCRBY", key, b"%d" % pool.below(100), b"player:%d" % pool.below(100))
    if kind == 2:
        return command(b"ZREM", key, b"player:%d" % pool.below(100))
    args = [b"ZADD", key]
    for _ in range(1 + pool.below(4)):
        args += (b"%.2f" % (pool.random() * 1000), b"player:%d" % pool.below(100))
    return command(*args)


def collections(size):
    """Streams, hashes and sorted sets in equal parts; every tenth command is another one."""
    pool, rng = Pool(1), random.Random(1)
    kinds = (add_to_stream, set_fields, set_scores)
    written = i = 0
    while written < size:
        parts = [b"#TS:%d\r\n" % (1_700_000_000 + i // BLOCK_COMMANDS), command("SELECT", 0)]
        for _ in range(BLOCK_COMMANDS):
            i += 1
            parts.append(write(rng) if i % 10 == 0 else kinds[i % 3](pool, i))
        piece = b"".join(parts)
        yield piece
        written += len(piece)


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
    parser.add_argument("--collections", action="store_true")
    args = parser.parse_args()
    for piece in (collections if args.collections else log)(args.mb * 1e6):
        sys.stdout.buffer.write(piece)


if __name__ == "__main__":
    main()
