"""Client-side caching of redoubt-server beside redis-server 7.0.15: clients in every mode of CLIENT
TRACKING, in RESP2 and RESP3, with and without redirection, run random commands; after each command
every client must have the same messages, at the same place among its replies. Runs for
REDOUBT_ORACLE_SECONDS (10)."""

import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import side_by_side  # noqa: E402
from server_under_test import wait_for  # noqa: E402

CLIENTS = ["c0", "c1", "c2", "c3"]
RECEIVERS = ["r0", "r1"]  # of redirected messages; they change nothing
KEYS = ["a", "ab", "abc", "b", "x", ""]
PREFIXES = ["a", "ab", "b", "", "zz"]

LINES = """
GET K
MGET K K
SET K V
SET K V GET
SET K V PX 1
DEL K K
UNLINK K
INCR K
LPUSH K V
LRANGE K 0 -1
LPOP K
LMOVE K K LEFT RIGHT
SADD K V
SMEMBERS K
SINTERSTORE K K K
ZADD K 1 V
ZRANGE K 0 -1
HSET K f V
HGET K f
EXISTS K K
TTL K
EXPIRE K 100
PERSIST K
RENAME K K
COPY K K REPLACE
SORT K ALPHA STORE K
STRLEN K
GETEX K PX 1
GETEX K
GETDEL K
TYPE K
DUMP nope
XADD K * f v
XLEN K
OBJECT ENCODING K
TOUCH K
SELECT 0
SELECT 1
MOVE K 1
SWAPDB 0 1
FLUSHALL
FLUSHDB
FLUSHALL ASYNC
PING
MULTI
EXEC
DISCARD
WATCH K
PUBLISH ch V
CLIENT CACHING yes
CLIENT CACHING no
CLIENT GETREDIR
CLIENT TRACKINGINFO
CLIENT TRACKING off
""".strip().splitlines()


class Side(side_by_side.Side):
    """Messages are part of the comparison, at the position where they arrived."""

    def ask(self, name, *args):
        client = self.clients[name]
        client.send(*args)
        return self.until_reply(client)

    def until_reply(self, client):
        got = []
        while True:
            got.append(client.read())
            if not self.is_message(got[-1]):
                return got

    @staticmethod
    def is_message(reply):
        kind, content = reply
        if kind == ">":
            return content[0][1] in (b"message", b"invalidate", b"tracking-redir-broken")
        return kind == "*" and bool(content) and content[0] == ("$", b"message")

    def messages_of(self, name):
        """What came without a question; the reply to PING is the end of it. The second one brings
        what the first has pushed before it."""
        return self.ask(name, "PING")


class World(side_by_side.World):
    side = Side

    def __init__(self, case, servers, seed):
        super().__init__(case, servers, seed)
        for name in ["admin", *CLIENTS, *RECEIVERS]:
            self.open(name)
        self.ask("admin", "DEBUG", "SET-ACTIVE-EXPIRE", "0")
        self.ids = {name: self.ask(name, "CLIENT", "ID")[-1][1] for name in RECEIVERS}

    def same_ids(self):
        def newest(side):
            side.open("admin")
            return side.ask("admin", "CLIENT", "ID")[-1][1]
        ids = [newest(side) for side in self.sides]
        while ids[0] != ids[1]:
            late = int(ids[0] > ids[1])
            ids[late] = newest(self.sides[late])

    def normal(self, args, replies):
        """A receiver gets the messages of several clients in the order of the client list, which
        the cron of redis-server rotates."""
        *messages, (kind, content) = replies
        if args[0] in ("SMEMBERS", "EXEC") and isinstance(content, list):
            content = sorted(content, key=repr)
        if args[0] == "XADD":
            content = b""
        if args[0] == "EXEC" and content:
            content = len(content)
        return sorted(messages, key=repr) + [(kind, content)]

    def line(self):
        r = self.random
        return [{"K": lambda: r.choice(KEYS), "V": lambda: r.choice(["1", "2"])}.get(
            word, lambda: word)() for word in r.choice(LINES).split()]

    def everyone(self):
        for name in [*CLIENTS, *RECEIVERS]:
            self.ask(name, "PING")

    def run_line(self):
        line = self.line()
        self.ask(self.random.choice(CLIENTS), *line)
        if "PX" in line or line[0] == "EXEC":
            time.sleep(0.004)  # the key has expired in both
        self.everyone()

    def track(self):
        r = self.random
        name = r.choice(CLIENTS)
        args = ["on"]
        if r.random() < 0.4:
            args.append("BCAST")
            for _ in range(r.choice([0, 1, 1])):  # redis-server answers twice if two overlap
                args += ["PREFIX", r.choice(PREFIXES)]
        elif r.random() < 0.4:
            args.append(r.choice(["OPTIN", "OPTOUT"]))
        if r.random() < 0.3:
            args.append("NOLOOP")
        if r.random() < 0.4:
            args += ["REDIRECT", str(self.ids[r.choice(RECEIVERS)])]
        if r.random() < 0.5:
            self.ask(name, "CLIENT", "TRACKING", "off")
        self.ask(name, "CLIENT", "TRACKING", *args)
        self.ask(name, "CLIENT", "TRACKINGINFO")

    def change_protocol(self):
        self.ask(self.random.choice([*CLIENTS, *RECEIVERS]), "HELLO",
                 self.random.choice(["2", "3", "3"]))

    def subscribe(self):
        name = self.random.choice(RECEIVERS)
        self.ask(name, self.random.choice(["SUBSCRIBE", "SUBSCRIBE", "UNSUBSCRIBE"]),
                 "__redis__:invalidate")

    def leave(self):
        name = self.random.choice([*CLIENTS, *RECEIVERS])
        if self.random.random() < 0.5:
            self.ask(name, "RESET")
            return
        self.note(name, ("leaves",))
        self.open(name)
        if name in RECEIVERS:
            self.ids[name] = self.ask(name, "CLIENT", "ID")[-1][1]

    def block(self):
        """One client waits for a list, and another one fills it."""
        waits, fills = self.random.sample(CLIENTS, 2)
        key, other = self.random.sample(KEYS, 2)
        command = self.random.choice([["BLPOP", key, "0"],
                                      ["BLMOVE", key, other, "LEFT", "LEFT", "0"]])
        for name in (waits, fills):
            self.ask(name, "DISCARD")
            self.ask(name, "SELECT", "0")
        self.ask("admin", "DEL", key)
        if self.ask(waits, "GET", "nope")[-1][0] == "-":  # it has subscribed in RESP2
            return
        self.everyone()
        self.note(waits, tuple(command))
        for side in self.sides:
            side.clients[waits].send(*command)
        for side in self.sides:
            wait_for(lambda side=side: side.server.info("clients")["blocked_clients"] == "1", 10)
        if self.ask(fills, "RPUSH", key, "1", "2")[-1][0] == "-":
            self.ask("admin", "RPUSH", key, "1", "2")
        said = [side.until_reply(side.clients[waits]) for side in self.sides]
        if said[0] != said[1]:
            self.fail(*said)
        self.everyone()

    def figures(self):
        said = []
        for side in self.sides:
            info = side.server.info("clients", "stats")
            said.append({k: v for k, v in info.items() if k.startswith("tracking_")})
        if said[0] != said[1]:
            self.fail(*said)

    def steps(self):
        return [(self.run_line, 80), (self.track, 8), (self.change_protocol, 3),
                (self.subscribe, 3), (self.leave, 2), (self.block, 2),
                (self.figures, 2)]


class Tracking(side_by_side.Random):
    world = World

    def test_random_clients_get_the_same_messages(self):
        self.compare()


if __name__ == "__main__":
    unittest.main()
