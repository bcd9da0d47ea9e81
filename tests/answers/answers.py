"""Tries all answers of the stores in tests/tools/test_store_answers.py, in many processes, because
most of them wait. Ends with 1 if a run lost something or did not say the truth.

    answers.py [--only STORE:TOOL,...] [--requests FIRST-LAST] [--sample K/N] [--processes N]
               [--seconds S]

Without --only: everything, what can lose most first. With --sample: the K-th of N parts, each with
answers at all requests. After S seconds nothing more is begun; each line says how many answers of
how many were tried.
"""

import argparse
import multiprocessing
import os
import queue
import sys
import time
import traceback

os.environ["REDOUBT_STORE_SHARE"] = "1"  # OfSFTP has all its answers then
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "tools"), os.path.join(TESTS, "support")]
import test_store_answers as table  # noqa: E402

STORES = {"s3": table.OfS3, "azure": table.OfAzure, "sftp": table.OfSFTP,
          "webdav": table.OfWebDAV}
ORDER = ("s3:archive", "sftp:prune", "sftp:archive", "s3:prune", "azure:archive",
         "azure:prune", "webdav:prune", "webdav:archive") + tuple(
    f"{store}:{tool}" for tool in ("backup", "restore", "verify", "list") for store in STORES)


def work(part, args, end, job, results):
    """Every N-th answer of one tool, from `part` on. The results: ("all", answers, requests),
    ("tried", seconds), ("failed", text), and ("end",)."""
    store, name = job.split(":")
    case = STORES[store]("test_every_run_says_the_truth")
    try:
        case.setUp()
        tool, options, after = next(t for t in case.tools() if t[0] == name)
        n = case.requests_of(tool, options, after)
        pairs = [(at, fault) for at, fault in case.combinations(tool, n)
                 if args.first <= at <= args.last]
        pairs = pairs[args.part - 1::args.parts]
        results.put(("all", len(pairs), n))
        for at, fault in pairs[part::args.processes]:
            if time.monotonic() > end:
                break
            begun = time.monotonic()
            try:
                case.try_one(tool, options, after, at, fault)
            except Exception:  # pylint: disable=broad-except
                results.put(("failed", f"{job}, request {at}, {fault}\n{traceback.format_exc()}"))
            results.put(("tried", time.monotonic() - begun))
    except Exception:  # pylint: disable=broad-except
        results.put(("failed", f"{job}\n{traceback.format_exc()}"))
    finally:
        case.doCleanups()
        results.put(("end",))


def run(job, args, end):
    """Returns how many answers failed."""
    results = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(part, args, end, job, results))
               for part in range(args.processes)]
    begun, tried, failed, total, longest = time.monotonic(), 0, 0, (0, 0), 0
    for worker in workers:
        worker.start()
    left = len(workers)
    while left > 0:
        try:
            kind, *what = results.get(timeout=10)
        except queue.Empty:
            if any(worker.is_alive() for worker in workers):
                continue
            print(f"FAILED {job}: {left} processes ended before their work", flush=True)
            failed += left
            break
        if kind == "all":
            total = max(total, tuple(what))
        elif kind == "tried":
            tried, longest = tried + 1, max(longest, what[0])
            if tried % 500 == 0:
                print(f"# {job}: {tried} of {total[0]}, {failed} failed", flush=True)
        elif kind == "failed":
            failed += 1
            print(f"FAILED {what[0]}", flush=True)
        else:
            left -= 1
    for worker in workers:
        worker.join()
    print(f"{job}: {tried} of {total[0]} answers at {total[1]} requests, {failed} failed, "
          f"{time.monotonic() - begun:.0f} s, the longest {longest:.1f} s", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default=",".join(ORDER))
    parser.add_argument("--requests", default="1-1000000")
    parser.add_argument("--sample", default="1/1")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    args = parser.parse_args()
    args.first, args.last = map(int, args.requests.split("-"))
    args.part, args.parts = map(int, args.sample.split("/"))
    end = time.monotonic() + args.seconds
    failed = 0
    for job in args.only.split(","):
        if time.monotonic() < end:
            failed += run(job, args, end)
        else:
            print(f"{job}: not tried", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
