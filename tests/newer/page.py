"""docs/servers.md from the result of a run."""

import dataclasses

import cells

HEAD = """# Servers

What Redoubt does with real servers. `tests/newer/run` wrote this page: it fills every server with
random data of each type that the server has, does each job with it, and compares the result with
the server's own account: all databases, keys, values, expiries of keys and fields, streams with
groups, consumers and pending entries, vectors and functions, read with commands of the server.

A job is *proved* only if keys were compared and none differed.
"""

MEANINGS = {
    "read": "the snapshot as JSON lines is equal to the account",
    "check": "the snapshot is sound, with this number of keys",
    "salvage": "the server loads what was saved of a damaged snapshot, and it is equal",
    "convert to": "the server loads the snapshots of all servers in this table, converted for "
                  "it, and the data is equal; a snapshot with data that it cannot hold is refused",
    "load into": "commands, and payloads of RESTORE, that `convert` writes are sent to the server; "
                 "of data with values of modules only the payloads",
    "capture": "random writes are captured; a server that loads the rebuilt snapshot is equal",
    "replay": "the capture is replayed into another server",
    "backup": "a backup of the running server is verified, restored and loaded",
    "archive": "random writes are archived; six moments are restored and loaded",
    "restore into": "a backup is restored into a running server",
    "replica of": "redoubt-server is its replica during random writes, with a cut",
    "master of": "it is a replica of redoubt-server during random writes, with a cut",
}


def result(rows, about, date, seed):
    """What is written as JSON. Every job is in every row, run or not."""
    made = {"date": date, "seed": seed, "servers": {}}
    for name, row in rows.items():
        made["servers"][name] = {
            **about[name],
            "jobs": {job: dataclasses.asdict(row.get(job, cells.NOT_RUN)) for job in cells.JOBS}}
    return made


def _cell(said, notes, where):
    cell = cells.Cell(said["state"], said["compared"], said["reason"])  # it refuses what is not so
    if cell.state == "proved":
        return f"proved: {cell.compared:,}"
    if not cell.reason:
        return cell.state
    notes.append((where, cell))
    return f"{cell.state} ({len(notes)})"


def _escaped(text):
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def markdown(made):
    notes = []
    names = list(made["servers"])
    lines = [HEAD, f"Last run: {made['date']}, seed {made['seed']}.", ""]
    for part in (names[:5], names[5:]):
        if not part:
            continue
        lines.append("| job | " + " | ".join(_title(n) for n in part) + " |")
        lines.append("|---|" + "---|" * len(part))
        for job in cells.JOBS:
            row = [_cell(made["servers"][n]["jobs"][job], notes, f"{_title(n)}, {job}")
                   for n in part]
            lines.append(f"| {job} | " + " | ".join(row) + " |")
        lines.append("")
    lines += ["The number is how many keys were compared. One in parentheses is that of a reason.",
              ""]
    lines += _notes(notes)
    lines += _about(made, names)
    return "\n".join(lines) + "\n"


def _title(name):
    family, version = name.split("-")
    return f"{family.capitalize() if family != 'redict' else 'redict'} {version}"


def _notes(notes):
    if not notes:
        return ["Nothing is unproved.", ""]
    lines = ["## What is not proved", ""]
    for i, (where, cell) in enumerate(notes, 1):
        lines.append(f"{i}. {where}: {cell.state}. {_escaped(cell.reason)}")
    return lines + [""]


def _about(made, names):
    lines = ["## The jobs", "", "| job | what is compared |", "|---|---|"]
    lines += [f"| {job} | {MEANINGS[job]} |" for job in cells.JOBS]
    lines += ["", "## The data", "", "| server | keys | beyond the types of Redis 7.0 |",
              "|---|---|---|"]
    for name in names:
        about = made["servers"][name]
        more = ", ".join(about["features"]) or "-"
        lines.append(f"| {_title(name)} | {about['keys']} | {more} |")
    return lines
