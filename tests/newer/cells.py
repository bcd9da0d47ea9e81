"""The cells of the table: what is known of a job with a server.

A cell is "proved" only with the number of things that were compared, and that number is not 0.
"""

import dataclasses
import re

from redis_server import ServerDied

JOBS = ("read", "check", "salvage", "convert to", "load into", "capture", "replay", "backup",
        "archive", "restore into", "replica of", "master of")

STATES = ("proved", "failed", "not possible", "not run")


class NothingCompared(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Cell:
    state: str
    compared: int = 0
    reason: str = ""

    def __post_init__(self):
        if self.state not in STATES:
            raise ValueError(self.state)
        if self.state == "proved" and self.compared <= 0:
            raise NothingCompared("nothing was compared")
        if self.state in ("failed", "not possible") and not self.reason:
            raise ValueError(f"{self.state} without a reason")


class Failure(Exception):
    """The job failed; the text is the reason."""


class Impossible(Exception):
    """The job cannot be done with this server; the text is the reason."""


NOT_RUN = Cell("not run")


def of(job, *args):
    """Runs a job, which returns how many things it compared. Whatever ends it is in the cell."""
    try:
        return Cell("proved", job(*args))
    except Impossible as e:
        return Cell("not possible", 0, short(e))
    except NothingCompared:
        return Cell("failed", 0, "nothing was compared")
    except ServerDied as e:
        return Cell("failed", 0, short(_end_of_log(str(e))))
    except Exception as e:  # noqa: BLE001: a fault of the tools ends a job in many ways
        return Cell("failed", 0, short(e) or type(e).__name__)


def _end_of_log(text):
    """The warnings of a server's log, which say why it ended."""
    lines = [line.split(" # ", 1)[1] for line in text.splitlines() if " # " in line]
    return "the server ended: " + ("; ".join(lines[-2:]) or "its log gives no reason")


def short(error):
    """A reason without what differs from run to run: folders and ports."""
    error = re.sub(r"\S*/redoubt-newer-\w+/", "", str(error))
    error = re.sub(r"127\.0\.0\.1:\d+", "the server", error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " / ".join(lines[:3])
    return text if len(text) <= 300 else text[:297] + "..."


def same(problems, compared):
    """The number of things that were compared, if they are the same."""
    if problems:
        more = f" (and {len(problems) - 2} more)" if len(problems) > 2 else ""
        raise Failure("; ".join(problems[:2]) + more)
    if compared <= 0:
        raise NothingCompared("nothing was compared")
    return compared


def both(all_data, old_data):
    """The cell of a job that ran with all data, and again with that of Redis 7.0 alone."""
    if all_data.state == "proved":
        return all_data
    what = "proved" if old_data.state == "proved" else f"{old_data.state}, {old_data.reason}"
    return Cell(all_data.state, 0, f"{all_data.reason}. With the types of 7.0 alone: {what}")
