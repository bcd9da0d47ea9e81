"""The kinds of data whose memory is measured: the same keys each time, as lines of JSON.

    for name, lines in memory_kinds.all():      # "string int", [{"db": 0, "key": …}, …]
"""

import json
import random

FAR_MS = 4102444800000
START_MS = 1700000000000


def _key(i, name, kind, value, ttl=False):
    made = {"db": 0, "key": f"{name}:{i:06}", "type": kind, "value": value}
    if ttl:
        made["expire_ms"] = FAR_MS + i
    return made


def _words(rng, n, longest=16):
    return ["%x" % rng.getrandbits(4 * rng.randrange(1, longest)) + f"-{j}" for j in range(n)]


def _strings(rng):
    for n in (2000, 2500, 3500):
        yield f"string int {n}", [_key(i, "n", "string", str(1000000 + i)) for i in range(n)]
    for n in (1500, 2700):
        yield f"string int ttl {n}", [_key(i, "session", "string", str(70000 + i), True)
                                      for i in range(n)]
    for size in (5, 12, 20, 30, 44, 60, 100, 1000):
        n = 1500 if size < 1000 else 500
        for ttl in (False, True):
            name = f"string {size}" + (" ttl" if ttl else "")
            yield name, [_key(i, "user", "string", "v" * size, ttl) for i in range(n)]
    names = [rng.randrange(1, 90) for _ in range(1500)]
    yield "string long names", [_key(i, "k" * n, "string", "abc") for i, n in enumerate(names)]
    yield "string long names ttl", [_key(i, "k" * n, "string", "abc", True)
                                    for i, n in enumerate(names)]
    yield "string mixed", [_key(i, "m", "string", "x" * rng.randrange(1, 120), i % 3 == 0)
                           for i in range(1500)]


def _lists(rng):
    yield "list small", [_key(i, "l", "list", _words(rng, 8)) for i in range(800)]
    yield "list small ttl", [_key(i, "l", "list", _words(rng, 5), True) for i in range(900)]
    yield "list large", [_key(i, "l", "list", _words(rng, 5000)) for i in range(4)]
    yield "list plain", [_key(i, "l", "list", ["a" * 10000, "b"] * 5) for i in range(6)]


def _sets(rng):
    yield "set intset", [_key(i, "t", "set", [str(j * 1000 + i) for j in range(100)])
                         for i in range(400)]
    yield "set intset 64", [_key(i, "t", "set", [str(10**12 + j * 7 + i) for j in range(30)])
                            for i in range(500)]
    yield "set listpack", [_key(i, "t", "set", _words(rng, 20)) for i in range(500)]
    for n, keys in ((200, 25), (700, 8), (6000, 1)):
        yield f"set table {n}", [_key(i, "t", "set", _words(rng, n)) for i in range(keys)]
    yield "set table long", [_key(i, "t", "set", [w + "y" * 60 for w in _words(rng, 300)])
                             for i in range(8)]


def _scored(words):
    return [[w, i / 4] for i, w in enumerate(words)]


def _zsets(rng):
    yield "zset listpack", [_key(i, "z", "zset", _scored(_words(rng, 20))) for i in range(500)]
    for n, keys in ((200, 25), (1000, 6), (6000, 1)):
        yield f"zset table {n}", [_key(i, "z", "zset", _scored(_words(rng, n)))
                                  for i in range(keys)]


def _pairs(rng, n, size):
    return {f"field{j}": "%0*x" % (size, rng.getrandbits(4 * size)) for j in range(n)}


def _hashes(rng):
    yield "hash small", [_key(i, "h", "hash", _pairs(rng, 3, 5)) for i in range(1000)]
    yield "hash small ttl", [_key(i, "h", "hash", _pairs(rng, 3, 5), True) for i in range(1000)]
    yield "hash listpack", [_key(i, "h", "hash", _pairs(rng, 30, 12)) for i in range(250)]
    for n, size, keys in ((600, 8, 8), (100, 80, 25), (6000, 12, 1), (300, 200, 6)):
        yield f"hash table {n} {size}", [_key(i, "h", "hash", _pairs(rng, n, size))
                                         for i in range(keys)]


def _with_ttls(key, every):
    fields = list(key["value"])
    key["field_expire_ms"] = {f: FAR_MS + i for i, f in enumerate(fields) if i % every == 0}
    return key


def _field_ttls(rng):
    for n, every, keys in ((3, 1, 800), (30, 3, 200), (600, 1, 8), (600, 4, 8), (6000, 2, 1)):
        yield f"field ttl {n} {every}", [_with_ttls(_key(i, "e", "hash", _pairs(rng, n, 10)), every)
                                         for i in range(keys)]


def _stream(rng, n, groups=0, pending=0, step=5000):
    ms, entries = START_MS, []
    for j in range(n):
        ms += rng.randrange(1, step)
        entries.append({"id": f"{ms}-{j % 3}", "fields": [["name", str(rng.randrange(10**6))],
                                                          ["text", "t" * rng.randrange(80)]]})
    last = entries[-1]["id"]
    return {"entries": entries, "length": n, "last_id": last, "first_id": entries[0]["id"],
            "max_deleted_id": "0-0", "entries_added": n,
            "groups": [_group(f"group{g}", entries[:pending], last) for g in range(groups)]}


def _group(name, entries, last):
    pending = [{"id": e["id"], "consumer": ("ann", "bob")[i % 2], "delivery_ms": START_MS,
                "delivery_count": 1} for i, e in enumerate(entries)]
    consumers = [{"name": n, "seen_ms": START_MS, "active_ms": START_MS} for n in ("ann", "bob")]
    return {"name": name, "last_id": last, "entries_read": None, "pending": pending,
            "consumers": consumers}


def _streams(rng):
    for n, keys in ((1, 500), (10, 250), (150, 25), (3000, 2)):
        yield f"stream {n}", [_key(i, "x", "stream", _stream(rng, n)) for i in range(keys)]
    for n, groups, pending, keys in ((10, 1, 0, 150), (200, 1, 100, 15), (1500, 3, 400, 2),
                                     (1500, 1, 1500, 2)):
        yield f"stream {n} {groups} {pending}", [
            _key(i, "x", "stream", _stream(rng, n, groups, pending)) for i in range(keys)]
    yield "stream dense", [_key(i, "x", "stream", _stream(rng, 2000, 1, 1000, 4)) for i in range(2)]


def all():
    for family in (_strings, _lists, _sets, _zsets, _hashes, _field_ttls, _streams):
        rng = random.Random(family.__name__)
        yield from family(rng)


def text(lines, head=True):
    """As convert reads them, for a server since 7.2."""
    first = [{"rdb": {"version": 12, "dialect": "redis"}}] if head else []
    return "".join(json.dumps(line, separators=(",", ":")) + "\n"
                   for line in first + lines).encode()


# The form of snapshots for each server, and its name for --for of stat.
FORMATS = {"redis-7": "redis-7.0", "redis-8": "redis-8.0", "valkey-8": "valkey-8",
           "valkey-9": "valkey-9", "redict": "redis-7.2"}
WORDS = {"redis-8.6.3": "redis-8.6", "redict-7.3.6": "redis-7.2"}


def target(server):
    return next(word for name, word in FORMATS.items() if server.startswith(name))


def word(server):
    """Where stat does not know the version, one with the same layout."""
    return WORDS.get(server, server)


def is_for(name, format):
    """Whether snapshots of this form can have the kind."""
    return not name.startswith("field ttl") or format in ("redis-8.0", "valkey-9")
