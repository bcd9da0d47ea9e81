"""Makes the picture of README: the page of `redoubt stat --html` for a shop, in Chromium.

usage: screenshot.py OUT.png, with REDOUBT naming the program. Then reduce the number of colors:
pngquant --speed 1 64 --force --output OUT.png OUT.png
"""

import os
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "../support")]

from browser import Browser
from worlds import resp

WIDTH, HEIGHT = 1000, 1090
NOW = 1795000000  # the time of the report


def shop():
    """The commands that fill a shop with the usual prefixes."""
    for n in range(6000):
        yield ("HSET", f"user:{n}", "name", f"user number {n}", "mail", f"user{n}@example.org",
               "plan", "free" if n % 5 else "paid", "since", NOW - n * 9000)
        yield ("SET", f"session:{n * 104729 % 999983:06}", f"{n * 7919:048x}",
               "EX", 3600 + n * 13 % 86400)
    for n in range(4000):
        yield ("SET", f"cache:page:{n}", f"<h1>Page {n}</h1>" * (1 + n % 9))
        yield ("SET", f"cache:image:{n}", f"{n:0300}", "EX", 600 + n % 3000)
    for n in range(1500):
        yield ("HSET", f"cart:{n}", *(w for i in range(1 + n % 17) for w in (f"item:{i}", i)))
        yield ("SADD", f"tag:{n}", *(f"product {i * 31 % 997}" for i in range(n % 40 + 1)))
    yield ("RPUSH", "queue:mail", *(f"send the newsletter to user {n}" for n in range(20000)))
    yield ("ZADD", "leaderboard:week", *(word for n in range(20000)
                                        for word in (n * 37 % 9973, f"user:{n}")))
    yield ("HSET", "cart:999999", *(w for n in range(30000) for w in (f"item:{n}", n % 9)))


def main(out):
    redoubt = os.environ["REDOUBT"]
    with tempfile.TemporaryDirectory(prefix="redoubt-screenshot-") as folder:
        log, page = os.path.join(folder, "shop.aof"), os.path.join(folder, "page.html")
        with open(log, "wb") as f:
            f.writelines(resp(words) for words in shop())
        snapshot = os.path.join(folder, "shop.rdb")
        subprocess.run([redoubt, "convert", "--to", "rdb", "--for", "redis-7.0", log, "-o",
                        snapshot], check=True)
        subprocess.run([redoubt, "stat", "--html", page, "shop.rdb"], cwd=folder, check=True)
        with Browser(WIDTH, HEIGHT) as browser:
            browser.open("file://" + page)
            picture = browser.screenshot()
    with open(out, "wb") as f:
        f.write(picture)


if __name__ == "__main__":
    main(sys.argv[1])
