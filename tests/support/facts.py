"""What servers said about their own files: reads the .json beside a snapshot and holds a converted
snapshot against it.

Byte strings there are lower-case hex; those over 512 bytes are "sha256:LENGTH:DIGEST".
"""

import base64
import hashlib
import json
import struct

DECODE = {
    "utf8": lambda s: s.encode("utf-8", "surrogateescape"),
    "hex": bytes.fromhex,
    "base64": lambda s: base64.b64decode(s, validate=True),
}

# How far off a time may be that the server reported only as "so long ago" or "so long left".
APPROXIMATE_MS = 3000


def same_bytes(fact, data):
    """Whether `data` is the byte string that a fact stands for."""
    if fact.startswith("sha256:"):
        _, length, digest = fact.split(":")
        return len(data) == int(length) and hashlib.sha256(data).hexdigest() == digest
    return bytes.fromhex(fact) == data


def shown(data):
    """The fact that stands for a byte string."""
    if len(data) <= 512:
        return data.hex()
    return f"sha256:{len(data)}:{hashlib.sha256(data).hexdigest()}"


def key_bytes(entry):
    return bytes.fromhex(entry.get("key_hex", entry["key"]))


def load(path):
    with open(path, encoding="ascii") as f:
        return json.load(f)


def read_lines(output):
    """The objects of NDJSON, those of keys and those of --meta apart. A field that an object has
    twice is an error: Python would keep the last and hide it."""

    def pairs(items):
        made = dict(items)
        if len(made) != len(items):
            raise ValueError("a name occurs twice in one object")
        return made

    keys, meta = [], []
    for line in output.decode("utf-8").split("\n")[:-1]:
        made = json.loads(line, object_pairs_hook=pairs)
        (keys if "db" in made else meta).append(made)
    if output and not output.endswith(b"\n"):
        raise ValueError("the last line has no end")
    return keys, meta


def score_bits(score):
    if isinstance(score, str):
        score = float(score)
    return struct.pack(">d", float(score)).hex()


class Compare:
    """Holds the lines of one converted snapshot against the facts; collects what differs."""

    def __init__(self, facts, form):
        self.facts = facts
        self.decode = DECODE[form]
        self.problems = []
        self.where = ""
        # Before 4.0 a server did not write a key whose expiry had passed.
        self.saves_living = facts["server_version"].split(".")[0] in ("2", "3")

    def say(self, what, want, got):
        self.problems.append(f"{self.where}: {what}: expected {want!r}, got {got!r}")

    def same(self, what, want, got):
        if want != got:
            self.say(what, want, got)

    def near(self, what, want, got, approximate):
        if approximate and isinstance(got, int) and want is not None:
            if abs(want - got) <= APPROXIMATE_MS:
                return
        self.same(what, want, got)

    def run(self, lines):
        wanted = {}
        for db, content in self.facts["dbs"].items():
            for entry in content["entries"]:
                if not (self.saves_living and entry.get("expired_at_save")):
                    wanted[int(db), key_bytes(entry)] = entry
        seen = set()
        for line in lines:
            name = line["db"], self.decode(line["key"])
            self.where = f"db {name[0]} key {name[1][:60]!r}"
            if name in seen:
                self.problems.append(f"{self.where}: given twice")
            elif name not in wanted:
                self.problems.append(f"{self.where}: the server had no such key")
            else:
                self.key(wanted[name], line)
            seen.add(name)
        for db, name in wanted.keys() - seen:
            self.problems.append(f"db {db} key {name[:60]!r}: missing")
        return self.problems

    def key(self, entry, line):
        kinds = ("string", "list", "set", "zset", "hash", "stream")
        kind = entry["type"] if entry["type"] in kinds else "module"
        self.same("type", kind, line["type"])
        self.near("expire_ms", entry["expire_ms"], line.get("expire_ms"),
                  entry.get("expire_is_approximate"))
        self.same("idle_s", entry.get("idle_s"), line.get("idle_s"))
        self.same("freq", entry.get("freq"), line.get("freq"))
        if kind == line["type"]:
            getattr(self, kind)(entry, line)

    def string(self, entry, line):
        data = self.decode(line["value"])
        if not same_bytes(entry["value"], data):
            self.say("value", entry["value"], shown(data))

    def list(self, entry, line):
        self.same("elements", entry["value"], [shown(self.decode(v)) for v in line["value"]])

    def set(self, entry, line):
        self.same("members", entry["value"], sorted(shown(self.decode(v)) for v in line["value"]))

    def zset(self, entry, line):
        want = [[member, bits] for member, _, bits in entry["value"]]
        got = [[shown(self.decode(m)), score_bits(s)] for m, s in line["value"]]
        if line["encoding"] == "skiplist":
            # A file has the members of a skip list backwards, or in the order of a hash table.
            want.sort()
            got.sort()
        self.same("members", want, got)

    def hash(self, entry, line):
        expires = {self.decode(f): ms for f, ms in line.get("field_expire_ms", {}).items()}
        got = []
        for field, value in line["value"].items():
            field = self.decode(field)
            row = [shown(field), shown(self.decode(value))]
            if field in expires:
                row.append(expires.pop(field))
            got.append(row)
        self.same("fields", entry["value"], sorted(got, key=lambda row: row[0]))
        self.same("expiries of fields that are not there", {}, expires)

    def module(self, entry, line):
        value = line["value"]
        self.same("module", entry["type"], value["module"])
        if not isinstance(value["size"], int) or value["size"] < 10:
            self.say("size of the module's value", "a number of bytes", value["size"])

    def stream(self, entry, line):
        want, got = entry["value"], line["value"]
        entries = [
            [e["id"], [[shown(self.decode(f)), shown(self.decode(v))] for f, v in e["fields"]]]
            for e in got["entries"]
        ]
        self.same("entries", want["entries"], entries)
        for ours, theirs in (
            ("length", "length"),
            ("last_id", "last_id"),
            ("max_deleted_id", "max_deleted_entry_id"),
            ("entries_added", "entries_added"),
            ("first_id", "recorded_first_entry_id"),
        ):
            self.same(ours, want.get(theirs), got.get(ours))
        about = want.get("times_are_approximate", entry.get("times_are_approximate", False))
        about = about or any(g.get("times_are_approximate") for g in want["groups"])
        self.same("number of groups", len(want["groups"]), len(got["groups"]))
        groups = {self.decode(g["name"]): g for g in got["groups"]}
        for group in want["groups"]:
            name = bytes.fromhex(group["name"])
            if name not in groups:
                self.say("group", name, sorted(groups))
            else:
                self.group(group, groups[name], about)

    def group(self, want, got, about):
        self.same("last_id of a group", want["last_id"], got["last_id"])
        self.same("entries_read in the line", "entries_read" in want, "entries_read" in got)
        self.same("entries_read", want.get("entries_read"), got.get("entries_read"))
        pending = [
            [p["id"], shown(self.decode(p["consumer"])), p["delivery_ms"], p["delivery_count"]]
            for p in got["pending"]
        ]
        self.rows("pending", want["pending"], pending, 2, about)
        consumers = {self.decode(c["name"]): c for c in got["consumers"]}
        self.same("number of consumers", len(want["consumers"]), len(got["consumers"]))
        for consumer in want["consumers"]:
            name = bytes.fromhex(consumer["name"])
            if name not in consumers:
                self.say("consumer", name, sorted(consumers))
                continue
            ours = consumers[name]
            self.near("seen_ms", consumer["seen_time_ms"], ours["seen_ms"], about)
            self.same("active_ms", consumer.get("active_time_ms"), ours.get("active_ms"))
            owned = [[p[0], p[2], p[3]] for p in pending if p[1] == consumer["name"]]
            self.rows("pending of a consumer", consumer["pending"], owned, 1, about)

    def rows(self, what, want, got, time_at, about):
        """Rows that are equal but for a time that may be approximate."""
        if len(want) != len(got):
            self.say(f"number of {what}", len(want), len(got))
            return
        for a, b in zip(want, got):
            self.near(f"time in {what}", a[time_at], b[time_at], about)
            self.same(what, a[:time_at] + a[time_at + 1:], b[:time_at] + b[time_at + 1:])
