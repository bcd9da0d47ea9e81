#!/usr/bin/env python3
"""Commands that make a data set for benchmarks, as RESP.

usage: make_mixed.py [--mb N] [--seed N] [KIND…] | redis-cli --pipe

N is about how many MB (10^6 bytes) the snapshot will have; without KIND it is a mixture of all of
them. The same arguments give the same bytes; the server then adds times to the pending entries of
streams, and its own order of keys. The text is of made-up words, as frequent as words are, and LZF
makes about half of it.
"""

import argparse
import itertools
import random
import sys

SEED = 20240501
POOL = 4 << 20  # bytes of text, and of noise, that values are cut from
BATCH = 256 << 10
BIG = 200000  # elements of a big collection
EXPIRE_MS = 4102444800000  # the year 2100
ONE_IN = 8  # keys that expire

FIELDS = ("name", "mail", "city", "street", "age", "created", "visits", "status", "score", "lang",
          "referrer", "plan", "phone", "note", "updated", "flags")


def bulk(data):
    return b"$%d\r\n%b\r\n" % (len(data), data)


def command(*args):
    return b"*%d\r\n" % len(args) + b"".join([bulk(arg) for arg in args])


def head(n, *args):
    """The beginning of a command of n arguments, of which these are the first."""
    return b"*%d\r\n" % n + b"".join([bulk(arg) for arg in args])


class Source:
    """Where values come from."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.random = self.rng.random
        self.words = self._words(3000)
        self.text_pool = self._text()
        self.json_pool = self._json()
        self.noise_pool = self.rng.randbytes(POOL)

    def _words(self, n):
        heads = ("b", "br", "c", "d", "f", "g", "gr", "k", "l", "m", "n", "p", "pl", "r", "s", "st",
                 "t", "tr", "v", "w")
        tails = ("a", "ae", "al", "an", "e", "en", "er", "i", "in", "ing", "o", "on", "or",
                 "u", "us")
        words = set()
        while len(words) < n:
            n_parts = self.rng.choice((1, 2, 2, 2, 3, 3))
            parts = [self.rng.choice(heads) + self.rng.choice(tails) for _ in range(n_parts)]
            words.add("".join(parts))
        return sorted(sorted(words), key=lambda w: (len(w) + self.rng.random() * 6, w))

    def _text(self):
        weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(self.words))))
        chosen = self.rng.choices(self.words, cum_weights=weights, k=POOL // 4)
        return " ".join(chosen).encode()[:POOL]

    def _json(self):
        records, size = [], 0
        while size < POOL:
            record = b'{"id":%d,"kind":"%b","title":"%b","price":%.2f,"tags":["%b","%b"],' % (
                self.number(0, 10**7), self.word(), self.text(self.size(10, 60)),
                self.random() * 100, self.word(), self.word())
            record += b'"created":%d,"stock":%d,"visible":%b}\n' % (
                self.number(1600000000, 1700000000), self.number(0, 200),
                b"true" if self.random() < 0.8 else b"false")
            records.append(record)
            size += len(record)
        return b"".join(records)[:POOL]

    def number(self, low, high):
        """Cheaper than randrange()."""
        return low + int(self.random() * (high - low))

    def size(self, low, high):
        """Small ones are more frequent than large ones."""
        r = self.random()
        return low + int(r * r * r * (high - low))

    def text(self, n):
        at = int(self.random() * (POOL - n))
        return self.text_pool[at:at + n]

    def json(self, n):
        at = int(self.random() * (POOL - n))
        return self.json_pool[at:at + n]

    def noise(self, n):
        at = int(self.random() * (POOL - n))
        return self.noise_pool[at:at + n]

    def word(self):
        r = self.random()
        return self.words[int(r * r * len(self.words))].encode()

    def expiry(self, key):
        if self.random() * ONE_IN >= 1:
            return b""
        at = b"%d" % (EXPIRE_MS + self.number(0, 10**9))
        return command(b"PEXPIREAT", key, at)


# Each kind is a generator without end of pieces of RESP.


def mset(src, name, value, n=64):
    for first in itertools.count(0, n):
        keys = [b"%b:%d" % (name, first + i) for i in range(n)]
        parts = [head(1 + 2 * n, b"MSET")]
        for i, key in enumerate(keys):
            parts += (bulk(key), bulk(value(first + i)))
        parts += [src.expiry(key) for key in keys]
        yield b"".join(parts)


def strings_text(src):
    def value(i):
        if i % 1000 == 999:
            return src.json(src.size(32 << 10, 1 << 20))
        if i % 3 == 0:
            return src.text(src.size(60, 6000))
        return src.json(src.size(60, 6000))

    return mset(src, b"page", value)


def strings_random(src):
    def value(i):
        if i % 1000 == 999:
            return src.noise(src.size(32 << 10, 1 << 20))
        return src.noise(src.size(16, 3000))

    return mset(src, b"session:token", value)


def strings_short(src):
    def value(i):
        kind = i % 4
        if kind == 0:
            return b"%d" % src.number(0, 1000)
        if kind == 1:
            return b"%d" % src.number(-(1 << 31), 1 << 33)
        if kind == 2:
            return src.word()
        return src.text(src.number(4, 40))

    return mset(src, b"counter", value)


def hashes_small(src):
    fields = [bulk(name.encode()) for name in FIELDS]
    for i in itertools.count():
        key = b"user:%d" % i
        n = src.number(4, len(FIELDS) + 1)
        parts = [head(2 + 2 * n, b"HSET", key)]
        for field in fields[:n]:
            r = src.random()
            value = b"%d" % (r * 1e6) if r < 0.4 else src.text(4 + int(r * 40))
            parts += (field, bulk(value))
        yield b"".join(parts) + src.expiry(key)


def zsets_small(src):
    for i in itertools.count():
        key = b"board:%d" % i
        n = src.number(4, 80)
        parts = [head(2 + 2 * n, b"ZADD", key)]
        for member in range(n):
            r = src.random() * 1000
            score = b"%d" % r if member % 3 else b"%.2f" % r
            parts += (bulk(score), bulk(b"player:%d" % (r * 1000)))
        yield b"".join(parts) + src.expiry(key)


def lists_small(src):
    for i in itertools.count():
        key = b"queue:%d" % i
        n = src.number(3, 60)
        parts = [head(2 + n, b"RPUSH", key)]
        for _ in range(n):
            r = src.random()
            parts.append(bulk(b"%d" % (r * 1e7) if r < 0.3 else src.text(8 + int(r * 80))))
        yield b"".join(parts) + src.expiry(key)


def sets_small(src):
    for i in itertools.count():
        key = b"tags:%d" % i
        n = src.number(3, 60)
        if i % 2:
            top = 1000 << (i % 5 * 8)
            members = [b"%d" % src.number(0, top) for _ in range(n)]
        else:
            members = [src.word() for _ in range(n)]
        yield command(b"SADD", key, *members) + src.expiry(key)


def chunks(src, name, verb, width, element):
    """Big collections, in commands of 500 elements of `width` arguments each."""
    for i in itertools.count():
        key = b"%b:%d" % (name, i)
        for first in range(0, BIG, 500):
            parts = [head(2 + 500 * width, verb, key)]
            for at in range(first, first + 500):
                parts += element(at)
            yield b"".join(parts)
        yield src.expiry(key)


def hash_big(src):
    return chunks(src, b"index", b"HSET", 2, lambda at: (
        bulk(b"article:%d" % (at * 7919)), bulk(src.text(src.size(8, 200)))))


def zset_big(src):
    return chunks(src, b"timeline", b"ZADD", 2, lambda at: (
        bulk(b"%.3f" % (src.random() * 1e9)), bulk(b"post:%d:%d" % (at, src.random() * 1e6))))


def set_big(src):
    return chunks(src, b"seen", b"SADD", 1, lambda at: (
        bulk(b"%d:%b" % (at, src.noise(8).hex().encode())),))


def list_big(src):
    return chunks(src, b"log", b"RPUSH", 1, lambda at: (bulk(src.text(src.size(10, 300))),))


def streams(src):
    fields = [bulk(name) for name in (b"sensor", b"value", b"unit", b"note")]
    for i in itertools.count():
        key = b"events:%d" % i
        begin = head(11, b"XADD", key)
        ms = 1700000000000
        for first in range(0, src.size(500, 20000), 100):
            parts = []
            for at in range(100):
                ms += src.number(1, 5000)
                parts += (begin, bulk(b"%d-%d" % (ms, at)),
                          fields[0], bulk(b"%d" % src.number(0, 50)),
                          fields[1], bulk(b"%.1f" % (src.random() * 100)), fields[2],
                          b"$1\r\nC\r\n", fields[3], bulk(src.text(src.size(4, 60))))
            yield b"".join(parts)
        yield groups(src, key) + src.expiry(key)


def groups(src, key):
    parts = []
    for group in range(src.number(0, 4)):
        name = b"group:%d" % group
        parts.append(command(b"XGROUP", b"CREATE", key, name, b"0"))
        for consumer in range(src.number(1, 5)):
            parts.append(command(b"XREADGROUP", b"GROUP", name, b"worker:%d" % consumer, b"COUNT",
                                 b"%d" % src.number(1, 60), b"STREAMS", key, b">"))
    return b"".join(parts)


# For each kind its share of the mixture, and how many bytes a snapshot of Redis 7.0.15 has for one
# byte of the commands, measured with 20 MB.
KINDS = {
    "strings-text": (strings_text, 22, 0.61),
    "strings-random": (strings_random, 8, 0.98),
    "strings-short": (strings_short, 8, 0.60),
    "hashes-small": (hashes_small, 16, 0.72),
    "zsets-small": (zsets_small, 8, 0.50),
    "lists-small": (lists_small, 8, 0.72),
    "sets-small": (sets_small, 5, 0.45),
    "hash-big": (hash_big, 8, 0.86),
    "zset-big": (zset_big, 5, 0.59),
    "set-big": (set_big, 4, 0.79),
    "list-big": (list_big, 4, 0.65),
    "streams": (streams, 4, 0.23),
}


def batches(pieces):
    held, size = [], 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= BATCH:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def limited(pieces, size):
    for piece in pieces:
        yield piece
        size -= len(piece)
        if size <= 0:
            return


def resp(mb, kinds=(), seed=SEED):
    """The commands, in pieces of some 100 KiB that end where a command does."""
    kinds = list(kinds) or list(KINDS)
    total = sum(KINDS[kind][1] for kind in kinds)
    src = Source(seed)
    for db, kind in enumerate(kinds):
        make, share, shrink = KINDS[kind]
        yield command(b"SELECT", b"%d" % (db % 4))
        yield from batches(limited(make(src), mb * 1e6 * share / total / shrink))


def main():
    parser = argparse.ArgumentParser(description="Writes commands that make a data set, as RESP.")
    parser.add_argument("--mb", type=float, default=350, help="about the size of the snapshot")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=" ".join(KINDS))
    args = parser.parse_args()
    for kind in args.kinds:
        if kind not in KINDS:
            parser.error(f"no such kind: {kind}")
    try:
        for piece in resp(args.mb, args.kinds, args.seed):
            sys.stdout.buffer.write(piece)
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    return 0


if __name__ == "__main__":
    sys.exit(main())
