"""A server's own account of all that it holds, by its own commands.

    facts = account.read(server)
    problems, keys = account.differences(facts, account.read(other))
    problems, keys = account.of_lines(facts, ndjson)

The form is that of the .json beside the fixtures (fixtures/README.md): types, values, expiries of
keys and fields, streams with groups, consumers and pending entries, vectors with attributes,
functions, in every database. A value of a module is what DUMP says. Nothing is read from a file.
"""

import hashlib
import json
import re

import facts as facts_of_files
import vectorset
from redis_server import ReplyError

KINDS = ("string", "list", "set", "zset", "hash", "stream", "vectorset")


def shown(data):
    return facts_of_files.shown(data)


def _pairs(flat):
    """The dict of a reply that is a flat array of names and values."""
    return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}


def _text(value):
    return value.decode() if isinstance(value, bytes) else value


def _string(server, key):
    return shown(server.command("GET", key))


def _list(server, key):
    return [shown(v) for v in server.command("LRANGE", key, 0, -1)]


def _set(server, key):
    return sorted(shown(v) for v in server.command("SMEMBERS", key))


def _zset(server, key):
    flat = server.command("ZRANGE", key, 0, -1, "WITHSCORES")
    return [[shown(flat[i]), flat[i + 1].decode(), facts_of_files.score_bits(flat[i + 1].decode())]
            for i in range(0, len(flat), 2)]


def _hash(server, key):
    flat = server.command("HGETALL", key)
    fields = flat[::2]
    expiries = [-1] * len(fields)
    if fields and server.has("HPEXPIRETIME"):
        expiries = server.command("HPEXPIRETIME", key, "FIELDS", len(fields), *fields)
    rows = []
    for field, value, ms in zip(fields, flat[1::2], expiries):
        rows.append([shown(field), shown(value)] + ([ms] if ms >= 0 else []))
    return sorted(rows)


def _owned(said):
    """The pending entries, whose name differs between versions."""
    return said["pel"] if "pel" in said else said["pending"]


def _pending(rows):
    return [[row[0].decode(), shown(row[1]), row[2], row[3]] for row in rows]


def _consumer(flat):
    said = _pairs(flat)
    made = {"name": shown(said["name"]), "seen_time_ms": said["seen-time"],
            "pending": [[r[0].decode(), r[1], r[2]] for r in _owned(said)]}
    if "active-time" in said:
        made["active_time_ms"] = said["active-time"]
    return made


def _group(flat):
    said = _pairs(flat)
    return {"name": shown(said["name"]), "last_id": said["last-delivered-id"].decode(),
            "entries_read": said["entries-read"], "pending": _pending(_owned(said)),
            "consumers": [_consumer(c) for c in said["consumers"]]}


def _entry(row):
    fields = row[1] or []
    return [row[0].decode(),
            [[shown(fields[i]), shown(fields[i + 1])] for i in range(0, len(fields), 2)]]


def _stream(server, key):
    said = _pairs(server.command("XINFO", "STREAM", key, "FULL", "COUNT", 0))
    made = {"entries": [_entry(e) for e in said["entries"]], "length": said["length"],
            "last_id": said["last-generated-id"].decode(),
            "max_deleted_entry_id": said["max-deleted-entry-id"].decode(),
            "entries_added": said["entries-added"],
            "recorded_first_entry_id": said["recorded-first-entry-id"].decode(),
            "groups": [_group(g) for g in said["groups"]]}
    idempotent = {n: _text(v) for n, v in said.items()
                  if n.startswith(("idmp", "pids", "iids")) and not isinstance(v, list)}
    if idempotent:
        made["idmp"] = idempotent
    return made


def _vectors(server, key):
    info = _pairs(server.command("VINFO", key))
    n = server.command("VCARD", key)
    rows = []
    for name in sorted(server.command("VRANDMEMBER", key, n)):
        raw = server.command("VEMB", key, name, "RAW")
        attributes = server.command("VGETATTR", key, name)
        rows.append([shown(name), [shown(v) if isinstance(v, bytes) else v for v in raw],
                     shown(attributes) if attributes is not None else None])
    return {"dim": server.command("VDIM", key), "card": n,
            "quantization": _text(info["quant-type"]), "elements": rows}


def _module(server, key):
    """The payload of DUMP without its version and checksum, and however its strings are stored."""
    payload = server.command("DUMP", key)
    found = vectorset.items_of_payload(payload)
    if found is None:
        return {"dump": shown(payload[:-10])}
    return {"module": found[0],
            "items": [shown(item) if isinstance(item, bytes) else item for item in found[1]]}


READERS = {"string": _string, "list": _list, "set": _set, "zset": _zset, "hash": _hash,
           "stream": _stream, "vectorset": _vectors}


def _key(server, key):
    kind = server.command("TYPE", key).decode()
    ms = server.command("PEXPIRETIME", key)
    if kind == "none" or ms == -2:
        return None
    made = {"key": shown(key), "type": kind,
            "encoding": _text(server.command("OBJECT", "ENCODING", key)),
            "expire_ms": ms if ms >= 0 else None,
            "value": READERS.get(kind, _module)(server, key)}
    if len(key) > 512:
        made["key_hex"] = key.hex()
    try:
        digest = server.command("DEBUG", "DIGEST-VALUE", key)[0]
        made["digest"] = digest.decode()
    except ReplyError:
        pass
    return made


def _keys(server):
    cursor, found = b"0", set()
    while True:
        cursor, names = server.command("SCAN", cursor, "COUNT", 1000)
        found.update(names)
        if cursor == b"0":
            return sorted(found)


def _functions(server):
    made = []
    for row in server.command("FUNCTION", "LIST", "WITHCODE"):
        said = _pairs(row)
        names = sorted(_pairs(f)["name"].decode() for f in said["functions"])
        made.append({"library": said["library_name"].decode(), "engine": said["engine"].decode(),
                     "functions": names, "code_hex": said["library_code"].hex()})
    return sorted(made, key=lambda f: f["library"])


def read(server, databases=None):
    """All data of the server. Keys that expire meanwhile are not in it."""
    dbs = {}
    for db in server.databases() if databases is None else databases:
        server.command("SELECT", db)
        entries = [e for e in (_key(server, k) for k in _keys(server)) if e is not None]
        dbs[str(db)] = {"keys": len(entries),
                        "expires": sum(e["expire_ms"] is not None for e in entries),
                        "entries": entries}
    server.command("SELECT", 0)
    info = server.command("INFO", "server").decode()
    own = re.findall(r"^(?:valkey|redict|redis)_version:(\S+)", info, re.M)[-1]
    return {"server": server.kind.name if hasattr(server, "kind") else "redoubt-server",
            "server_version": own, "functions": _functions(server), "dbs": dbs}


def count(facts):
    return sum(len(content["entries"]) for content in facts["dbs"].values())


# ---- comparison ----


def _by_name(facts):
    return {(int(db), facts_of_files.key_bytes(e)): e
            for db, content in facts["dbs"].items() for e in content["entries"]}


def _without_times(stream):
    """A stream without what commands cannot say, or servers do not replicate: when a consumer was
    seen; consumers without pending entries (a Valkey replica lacks those that XREADGROUP made in
    vain); that nothing was deleted although pending entries name what was trimmed (XSETID takes no
    0-0; 0-1 is next); and how many producers and their ids are remembered, which the server forgets
    after IDMP-DURATION, some time later."""
    made = json.loads(json.dumps(stream))
    if "idmp" in made:
        made["idmp"] = {name: value for name, value in made["idmp"].items()
                        if name.startswith("idmp")}
    if made.get("max_deleted_entry_id") == "0-1":
        made["max_deleted_entry_id"] = "0-0"
    for group in made["groups"]:
        for consumer in group["consumers"]:
            consumer.pop("seen_time_ms")
            consumer.pop("active_time_ms", None)
        group["consumers"] = sorted((c for c in group["consumers"] if c["pending"]),
                                    key=lambda c: c["name"])
    return made


def _first_difference(a, b, path=""):
    """Where two values differ first, as "groups/0/last_id: X, not Y"; None where they do not. What
    one of two servers cannot have does not differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        pairs = [(name, a[name], b[name]) for name in a if name in b]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = [(i, x, y) for i, (x, y) in enumerate(zip(a, b))]
    elif isinstance(a, list) and isinstance(b, list):
        return f"{path or 'all'}: {len(b)} elements, not {len(a)}"
    else:
        return None if a == b else f"{path or 'all'}: {str(b)[:60]}, not {str(a)[:60]}"
    for name, x, y in pairs:
        found = _first_difference(x, y, f"{path}/{name}" if path else str(name))
        if found is not None:
            return found
    return None


def _value(entry, times):
    value = entry["value"]
    if entry["type"] == "stream" and not times:
        return _without_times(value)
    if entry["type"] == "zset":
        return [[member, bits] for member, _, bits in value]
    return value


def difference(want, got, times):
    """What differs in a key, or None."""
    if want["type"] != got["type"]:
        return f"{got['type']}, not {want['type']}"
    if want["expire_ms"] != got["expire_ms"]:
        return f"expires at {got['expire_ms']}, not {want['expire_ms']}"
    found = _first_difference(_value(want, times), _value(got, times))
    return None if found is None else f"another {want['type']}, {found}"


def differences(want, got, times=True, functions=True):
    """What differs between two accounts, and how many keys were compared. `times`: also when
    consumers were seen, which no server replicates."""
    a, b = _by_name(want), _by_name(got)
    problems = []
    for name in sorted(a.keys() | b.keys()):
        where = f"db {name[0]} key {name[1][:60]!r}"
        if name not in b:
            problems.append(f"{where}: missing ({a[name]['type']})")
        elif name not in a:
            problems.append(f"{where}: not in the server")
        else:
            found = difference(a[name], b[name], times)
            if found is not None:
                problems.append(f"{where}: {found}")
    if functions and want["functions"] != got["functions"]:
        problems.append("functions differ")
    return problems, len(a.keys() & b.keys())


class _Lines(facts_of_files.Compare):
    """NDJSON with the types that the files of older servers do not have."""

    def key(self, entry, line):
        if entry["type"] != "vectorset":
            super().key(entry, line)
            return
        self.same("type", "module", line["type"])
        self.same("module", "vectorset", line["value"].get("module"))
        for name, member in (("dimensions", "dim"), ("elements", "card")):
            if name in line["value"]:
                self.same(name, entry["value"][member], line["value"][name])

    def stream(self, entry, line):
        super().stream(entry, line)
        said, ours = entry["value"].get("idmp"), line["value"].get("idmp")
        if said is None or ours is None:
            return
        for theirs, name in (("idmp-duration", "duration"), ("idmp-maxsize", "max_size"),
                             ("iids-added", "iids_added"), ("iids-duplicates", "iids_duplicates")):
            self.same(name, said.get(theirs), ours.get(name))
        self.same("producers", said.get("pids-tracked"), len(ours["producers"]))
        self.same("ids of producers", said.get("iids-tracked"),
                  sum(len(p["ids"]) for p in ours["producers"]))


def of_lines(want, output):
    """Holds the output of `convert --to ndjson --meta` against an account: problems, and how many
    keys were compared."""
    lines, meta = facts_of_files.read_lines(output)
    problems = _Lines(want, "utf8").run(lines)
    code = sorted(f["code_hex"] for f in want["functions"])
    ours = sorted(m["function"].encode("utf-8", "surrogateescape").hex()
                  for m in meta if "function" in m)
    if code != ours:
        problems.append(f"functions: {len(code)} expected, {len(ours)} in the lines, or other code")
    return problems, len(lines)


def digest(facts):
    """One digest of all values, for a report."""
    plain = {str(name): [e["type"], e["expire_ms"], e["value"]]
             for name, e in _by_name(facts).items()}
    return hashlib.sha256(json.dumps([plain, facts["functions"]], sort_keys=True)
                          .encode()).hexdigest()
