"""The tables of a run of ./run bench as a page of Markdown."""

import datetime
import re

HEAD = """\
# Performance

This page is what `{command}` printed. It measures Redoubt and the
programs that are installed beside it on the same files in the same run; they take turns. Times are
in seconds, the best of the runs. "cpu" is the time of all threads, "MiB" the most memory that was
resident. A ratio says how many times as fast Redoubt is; below 1 it is slower. "met" and "missed"
compare the figures with the limits that the project sets itself.

| setting | value |
|---|---|
| date | {date} |
| processor | {processor}, {processors} in use |
| kernel | Linux {kernel} |
| Redoubt | {redoubt} |
| beside it | {peers} |

Figures of other machines differ, ratios less so. To get yours: `./run bench --page performance.md`.
"""


def best(cell):
    """Of "best/median" the best."""
    match = re.fullmatch(r"([\d.,]+)/[\d.,]+", cell)
    return match[1] if match else cell


def row(cells):
    return "| " + " | ".join(best(str(cell)).replace("|", "\\|") for cell in cells) + " |"


def page(about, tables):
    """tables: (title, rows), the heads first."""
    facts = dict(about, date=datetime.date.today().isoformat(),
                 peers=", ".join(about["peers"]))
    parts = [HEAD.format(**facts)]
    for title, (heads, *rows) in tables:
        lines = [row(heads), "|" + "---|" * len(heads), *map(row, rows)]
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)
