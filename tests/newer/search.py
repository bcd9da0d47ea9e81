"""Searches in vector sets: redoubt-server beside the servers that wrote the sets.

usage: search.py ROOTS [SEED]      by hand; REDOUBT_SERVER is the program

A server fills small sets at random, in which its own search misses nothing. redoubt-server loads
its snapshot and must give the same answers: elements, scores to the last digit, attributes, links,
ranges, properties. Elements of the same score have no order. Servers since 8.2 add up long vectors
in another order on some processors, so that the last digits of their scores are their own.
"""

import collections
import struct
import sys

import data
import jobs
import servers

SETS = [(kind, dims) for kind in ("NOQUANT", "Q8", "BIN")
        for dims in (1, 2, 3, 4, 7, 8, 16, 33, 70)]


def fill(server, s):
    for kind, dims in SETS:
        key = f"{kind}:{dims}"
        for j in range(s.choice((1, 3, 20, 60))):
            more = ("SETATTR", '{"n":%d}' % j) if s.randrange(3) == 0 else ()
            server.command("VADD", key, "FP32", data.vector(s, dims), f"e{j}", kind, *more)
    for j in range(30):
        server.command("VADD", "reduced", "REDUCE", 5, "FP32", data.vector(s, 12), f"e{j}")
    return [f"{kind}:{dims}" for kind, dims in SETS] + ["reduced"]


def queries(server, s, key):
    dims = 12 if key == "reduced" else int(key.split(":")[1])
    names = server.command("VRANDMEMBER", key, 1000)
    n = len(names)
    vector = data.vector(s, dims)
    numbers = struct.unpack(f"<{dims}f", vector)
    yield ("VINFO", key)
    for by in (("ELE", s.choice(names)), ("FP32", vector), ("VALUES", dims, *numbers)):
        for count in (1, n // 2 + 1, n, n + 5):
            yield ("VSIM", key, *by, "WITHSCORES", "COUNT", count, "EF", 500)
        yield ("VSIM", key, *by, "COUNT", n, "WITHSCORES", "TRUTH")
        if server.kind.version >= (8, 0, 6):  # before, EPSILON had another scale
            yield ("VSIM", key, *by, "COUNT", n, "WITHSCORES", "EPSILON",
                   s.choice((0.05, 0.2, 0.45)), "TRUTH")
            yield ("VSIM", key, *by, "COUNT", n, "WITHSCORES", "WITHATTRIBS")
    for name in names[:4]:
        yield ("VLINKS", key, name)
        yield ("VLINKS", key, name, "WITHSCORES")
        yield ("VEMB", key, name)
        yield ("VEMB", key, name, "RAW")
    if server.has("vrange"):
        yield ("VRANGE", key, "-", "+")
        yield ("VRANGE", key, "[" + s.choice(names).decode(), "+", 5)
        yield ("VRANGE", key, "-", "(" + s.choice(names).decode(), -1)


def _ask(server, query):
    try:
        return server.command(*query)
    except servers.ReplyError as e:
        return f"error: {e}"


def _groups(reply, width):
    """The scores in their order, each with its elements in no order. The last score may have more
    elements than the reply has room for, so only its number of them is compared."""
    rows = [tuple(reply[i:i + width]) for i in range(0, len(reply), width)]
    by_score = collections.OrderedDict()
    for row in rows:
        by_score.setdefault(row[1], []).append(row)
    made = [(score, sorted(map(repr, group))) for score, group in by_score.items()]
    return made[:-1] + [(made[-1][0], len(made[-1][1]))] if made else []


def _rounded(reply, width):
    return sorted(round(float(score), 4) for score in reply[1::width])


def is_exact(kind, key):
    return kind.version < (8, 2) or (key != "reduced" and int(key.split(":")[1]) < 16)


def comparable(query, reply, exact):
    width = 3 if "WITHATTRIBS" in query else 2
    if isinstance(reply, list) and "WITHSCORES" in query and query[0] == "VSIM":
        return _groups(reply, width) if exact else _rounded(reply, width)
    if query[0] == "VLINKS" and "WITHSCORES" in query and not exact:
        return [_rounded(layer, 2) for layer in reply]
    if query[0] == "VINFO":
        return reply[:14] + reply[16:]  # the number of the set in its process
    return reply


def first(a, b):
    """The first difference between two replies."""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return next(f"[{i}] " + first(x, y) for i, (x, y) in enumerate(zip(a, b)) if x != y)
    return f"{b}, not {a}"


def compare(kind, seed):
    s, n, wrong = data.Source(seed), 0, []
    with servers.Server(kind) as server, servers.Server(jobs.OWN, {"redoubt-level": "8.6"}) as own:
        keys = fill(server, s)
        own.load(server.save())
        for key in keys:
            for query in queries(server, s, key):
                a, b = (comparable(query, _ask(x, query), is_exact(kind, key))
                        for x in (server, own))
                n += 1
                if a != b:
                    wrong.append(f"{query}: " + first(a, b))
    return n, wrong


def main(roots, seed="1"):
    failed = False
    for kind in servers.find(roots):
        if kind.family != "redis" or kind.version < (8, 0):
            continue
        n, wrong = compare(kind, int(seed))
        print(f"{kind.name}: {n} answers compared, {len(wrong)} differ")
        for text in wrong[:5]:
            print("   ", text[:600])
        failed |= bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
