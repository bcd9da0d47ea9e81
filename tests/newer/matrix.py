"""Runs every job against every server, and writes the table.

usage: matrix.py ROOTS [--out docs/servers.md] [--json FILE] [--seed N] [--server NAME]...
                 [--job JOB]...

With --server or --job only these run, and the table is printed instead of written.
"""

import argparse
import datetime
import json
import signal
import sys

import account
import cells
import jobs
import page
import servers


def run_job(job, subjects):
    """The cell of a job of one server: with all data, and with that of 7.0 if it fails."""
    full, old = subjects
    cell = cells.of(jobs.RUN[job], full)
    if cell.state == "proved" or old is full:
        return cell
    return cells.both(cell, cells.of(jobs.RUN[job], old))


def make(kind, seed):
    """The server with all that it has, and with the types of 7.0 alone."""
    full = jobs.Subject(kind, seed, old=False)
    return full, (jobs.Subject(kind, seed, old=True) if full.features else full)


def run(kinds, wanted, seed):
    subjects = {kind.name: make(kind, seed) for kind in kinds}
    every = [s for pair in subjects.values() for s in dict.fromkeys(pair)]
    rows = {}
    for kind in kinds:
        full, old = subjects[kind.name]
        row = {}
        for job in wanted:
            if job == "convert to":
                row[job] = cells.of(jobs.convert_to, full, every)
            else:
                row[job] = run_job(job, (full, old))
            print(f"{kind.name}: {job}: {row[job].state} {row[job].compared} {row[job].reason}",
                  file=sys.stderr, flush=True)
        rows[kind.name] = row
    about = {name: {"keys": account.count(full.facts), "features": full.features}
             for name, (full, _) in subjects.items()}
    for subject in every:
        subject.close()
    return rows, about


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roots")
    parser.add_argument("--out")
    parser.add_argument("--json")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", action="append")
    parser.add_argument("--job", action="append", choices=cells.JOBS)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers end with their blocks
    kinds = [k for k in servers.find(args.roots) if not args.server or k.name in args.server]
    if not kinds:
        sys.exit(f"no server below {args.roots}")
    rows, about = run(kinds, args.job or cells.JOBS, args.seed)
    result = page.result(rows, about, datetime.date.today().isoformat(), args.seed)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    text = page.markdown(result)
    if args.out and not args.server and not args.job:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
