"""Compares the engine with a redis-server 7.0.15 by random commands.

    engine_world.py --family list --seed 7 --commands 200000
    engine_world.py --case tests/oracle/engine_cases/NAME.txt
    engine_world.py --server build/server/server/redoubt-server --family list

Both get the same commands at the same time, which advances only in jumps that both see.
Compared are replies, what goes to the log (the server's append-only file and the engine's effects),
keyspace events, what clients get that waited, and every 1,000 commands DEBUG DIGEST and the
encoding and expiry of every key.

A family is a module in tests/oracle/families/ (names with _ in front are helpers) with

    def commands(rng):       generator of commands: lists of bytes, str or numbers
    UNORDERED = {"SMEMBERS"} whose reply may come in any order ("XINFO|GROUPS" for subcommands)
    RANDOM = {"SPOP"}        whose reply is by chance: only its shape is compared, and what it
                             changed is made equal afterwards
    SESSIONS = 3             how many clients send the commands (3 by default)
    CONFIGS = [{...}]        settings to choose from for an epoch, beside the usual and small ones
    EVENTS = "g$l"           the classes of keyspace events that are compared (all by default)

Among the commands there may be directives, for the world: ["@session", n] (the next commands come
from this client, until the next such; one that is blocked is left waiting and another takes its
place), ["@time", us] (the clock continues; it does now and then anyway), ["@unblock", n, "ERROR"?]
and ["@close", n].

Commands come in epochs, each of which begins with an empty server, so that a difference can be
played again and made small. What is printed then is a file for tests/oracle/engine_cases/.
"""

import argparse
import glob
import hashlib
import importlib.util
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import engine_peers  # noqa: E402
import server_shell  # noqa: E402
from engine_compare import Item, Mismatch, Rules, Setup, World  # noqa: E402
from engine_peers import Died  # noqa: E402
from engine_resp import quote, split  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CHECK_EVERY = 1000
CHUNK = 100
MAX_WAITING = 5
MINIMISE_SECONDS = 60
LONG = 20  # items of a script; the reason is repeated after a longer one

SMALL = {
    "hash-max-listpack-entries": 5, "hash-max-listpack-value": 10, "set-max-intset-entries": 5,
    "zset-max-listpack-entries": 5, "zset-max-listpack-value": 10, "list-max-listpack-size": 3,
    "list-compress-depth": 1, "stream-node-max-entries": 4, "hll-sparse-max-bytes": 200,
}
EVENT_LETTERS = "g$lshzxetmn"


def families():
    """name: module of all families there are."""
    folder = os.environ.get("REDOUBT_FAMILIES", os.path.join(HERE, "families"))
    sys.path.insert(0, folder)
    out = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.py"))):
        name = os.path.basename(path)[:-3]
        if name.startswith("_"):
            continue
        spec = importlib.util.spec_from_file_location("family_" + name, path)
        out[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(out[name])
    return out


# ---- scripts: an epoch as text ----

def script(setup, items, about):
    lines = ["# " + line for line in about.splitlines()]
    lines += [f"@config {name} {value}" for name, value in sorted(setup.config.items())]
    if setup.events:
        lines.append(f"@events {setup.events}")
    used = {item.session for item in items}
    lines += [f"@proto {n} 3" for n, proto in sorted(setup.protos.items())
              if proto == 3 and n in used]
    session = 0
    for item in items:
        if not item.directive and item.session != session:
            session = item.session
            lines.append(f"@session {session}")
        lines.append(" ".join(quote(arg) for arg in item.argv))
    if len(items) > LONG:
        lines += ["# " + line for line in about.splitlines()]
    return "\n".join(lines) + "\n"


def read_script(text):
    """(Setup, items)"""
    setup, items, session = Setup(), [], 0
    for line in text.splitlines():
        argv = split(line) if not line.startswith("#") else []
        if not argv:
            continue
        words = [arg.decode("latin-1") for arg in argv]
        if words[0] == "@config":
            setup.config[words[1]] = words[2]
        elif words[0] == "@events":
            setup.events = words[1]
        elif words[0] == "@proto":
            setup.protos[int(words[1])] = int(words[2])
        elif words[0] == "@session":
            session = int(words[1])
        else:
            items.append(Item(session, argv))
    return setup, items


# ---- playing ----

def attempt(world, setup, items, check_every):
    """Plays an epoch; None, or why it went wrong. Peers that died are started again."""
    try:
        world.begin(setup)
        world.play(items, check_every)
        return None
    except Mismatch as e:
        return e
    except Died as e:
        return crashed(world, e, len(items), items[-1].name if items else "")


def crashed(world, died, index, name):
    world.close()
    world.peers.restart_shell()
    if world.peers.server.process.poll() is not None:
        world.peers.restart_server()
    return Mismatch("crash", index, name, died, "")


def minimise(world, setup, items, found, seconds=MINIMISE_SECONDS):
    """Fewer items with the same kind of difference in the same command; and that difference, or
    None where it does not come again."""
    end = time.monotonic() + seconds
    data = found.kind in ("digest", "encoding", "pexpiretime")

    def bad(some):
        e = attempt(world, setup, some, len(some) + 1)
        alike = e is not None and e.kind == found.kind and (data or e.name == found.name)
        return e if alike else None

    items = items[:found.index + 1]
    first = bad(items)
    if first is None:
        return items, None
    found, size = first, (len(items) + 1) // 2
    while size > 0 and time.monotonic() < end:
        at = 0
        while at < len(items) and time.monotonic() < end:
            fewer = items[:at] + items[at + size:]
            e = bad(fewer) if fewer else None
            if e is None:
                at += size
            else:
                items, found = fewer[:e.index + 1], e
        size //= 2
    return items, found


class Failure(Exception):
    """A difference; the text is a script that shows it."""


class Runner:
    """Epochs of one family from one seed."""

    def __init__(self, world, name, module, seed):
        self.world = world
        self.name = name
        self.module = module
        self.seed = seed
        self.rng = random.Random(f"world {name} {seed}")
        self.source = self._source()
        self.n = 0
        self.skipped = {}
        self.digests = []  # of the items

    def digest(self, n):
        """Of the first items."""
        return hashlib.sha256(b"".join(self.digests[:n])).hexdigest()

    def _source(self):
        while True:
            n = 0
            for argv in self.module.commands(random.Random(f"{self.name} {self.seed} {self.n}")):
                n += 1
                yield Item(0, argv)
            if n == 0:
                raise ValueError(f"family {self.name} has no commands")

    def _setup(self):
        rng = self.rng
        config = rng.choice([{}, SMALL, *getattr(self.module, "CONFIGS", [])])
        events = ""
        if rng.random() < 0.5:
            letters = getattr(self.module, "EVENTS", EVENT_LETTERS)
            events = "".join(c for c in letters if rng.random() < 0.8)
        return Setup(config, events, {n: rng.choice([2, 3]) for n in range(64)})

    def run(self, n_commands, deadline=None, least=0):
        """Plays about that many commands. Stops at the deadline (of time.monotonic()), but not
        before `least` commands."""
        goal = self.n + n_commands
        while self.n < goal and (deadline is None or time.monotonic() < deadline):
            self._epoch(min(self.rng.choice([300, 2000, 2000, 8000]), goal - self.n), deadline)
        if self.n < least:
            self.run(least - self.n)

    def _epoch(self, length, deadline):
        setup, items, checked = self._setup(), [], 0
        self.session = None
        try:
            self.world.begin(setup)
            while len(items) < length and (deadline is None or time.monotonic() < deadline):
                chunk = [self._next() for _ in range(min(CHUNK, length - len(items)))]
                chunk += self._relief()
                items += chunk
                self.digests += [hashlib.sha256(repr((item.session, item.argv)).encode()).digest()
                                 for item in chunk]
                self.world.play(chunk, base=len(items) - len(chunk))
                if len(items) - checked >= CHECK_EVERY:
                    checked = len(items)
                    self.world.compare_data(len(items) - 1, items[-1].name)
            if items:
                self.world.compare_data(len(items) - 1, items[-1].name)
            self.n += len(items)
        except Mismatch as e:
            self._fail(setup, items, e)
        except Died as e:
            self._fail(setup, items, crashed(self.world, e, len(items), items[-1].name))

    def _next(self):
        rng = self.rng
        if rng.random() < 0.01:
            return Item(0, [b"@time", rng.choice([1000, 2000, 500_000, 1_000_000, 60_000_000])])
        while True:
            item = next(self.source)
            if item.name == "@SESSION":
                self.session = int(item.argv[1])
                continue
            missing = self.world.missing(item.argv)
            if not missing:
                break
            self.skipped[item.name] = self.skipped.get(item.name, 0) + 1
            if sum(self.skipped.values()) > 1000 + 100 * (self.n + 100):
                raise ValueError(f"the engine lacks commands: {sorted(self.skipped)}")
        if not item.directive:
            item.session = self._choose()
        return item

    def _choose(self):
        """The session of the next command: as the family says, or a random one for a while."""
        blocked = self.world.blocked
        if self.session is not None:
            wanted = self.session
        else:
            if self.rng.random() < 0.03:
                self.mine = self.rng.randrange(getattr(self.module, "SESSIONS", 3))
            wanted = getattr(self, "mine", 0)
        return next(n for n in range(wanted, wanted + 100) if n not in blocked)

    def _relief(self):
        """Sessions that wait for too long: their time passes, or another session ends it."""
        blocked = sorted(self.world.blocked)
        if len(blocked) < MAX_WAITING:
            return []
        n = self.rng.choice(blocked)
        return [Item(0, self.rng.choice([
            [b"@time", 10_000_000], [b"@unblock", n], [b"@unblock", n, "ERROR"], [b"@close", n]]))]

    def _fail(self, setup, items, found):
        about = f"family {self.name}, seed {self.seed}, command {self.n + found.index}: {found}"
        few, smaller = minimise(self.world, setup, items, found)
        about += f"\nwhen small: {smaller}" if smaller else "\nit did not come again"
        raise Failure(script(setup, few, about))


def play_case(world, path):
    """A script of engine_cases/; raises Mismatch or Died. Data is compared after every command."""
    with open(path) as f:
        setup, items = read_script(f.read())
    e = attempt(world, setup, items, 1)
    if e is not None:
        raise e


def main():
    parser = argparse.ArgumentParser(description="Compares the engine with redis-server 7.0.15.")
    parser.add_argument("--family", action="append", help="all by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=20000)
    parser.add_argument("--case", action="append", help="play a script instead")
    parser.add_argument("--shell", help="the engine's shell")
    parser.add_argument("--server", help="redoubt-server, to be compared instead of the engine")
    parser.add_argument("-o", "--output", help="where to write the script of a difference")
    args = parser.parse_args()
    modules = families()
    peers = server_shell.ServerPeers(args.server) if args.server else engine_peers.Peers(args.shell)
    with peers:
        world = World(peers, Rules(modules.values()))
        try:
            for path in args.case or []:
                play_case(world, path)
                print(f"{path}: equal")
            for name in args.family or ([] if args.case else modules):
                run_family(world, name, modules[name], args.seed, args.commands)
        except (Mismatch, Failure) as e:
            if args.output and isinstance(e, Failure):
                with open(args.output, "w") as f:
                    f.write(str(e))
            print(e)
            return 1
        finally:
            world.close()
    return 0


def run_family(world, name, module, seed, n_commands):
    began = time.monotonic()
    runner = Runner(world, name, module, seed)
    runner.run(n_commands)
    seconds = time.monotonic() - began
    lacking = f"; not there yet: {' '.join(sorted(runner.skipped))}" if runner.skipped else ""
    print(f"{name}: seed {seed}, {runner.n} commands equal, {seconds:.1f} s{lacking}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
