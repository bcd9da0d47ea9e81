"""Migrations that are killed at random moments: tests/kills/migrate ROUNDS SEED KIND.

A source that is killed and started again has a new history, so the copy begins again (--recopy).
"""

import os
import sys

import migrate_kills
from migrate_kills import Cluster, ClusterWriter, MigrateKills, Server, Writer

LOG = {"appendonly": "yes", "appendfsync": "everysec", "repl-diskless-sync-delay": "0",
       "repl-backlog-size": "64mb"}


def gather(servers, own=b"redoubt:migrate:"):
    """The data of database 0 of the masters among the servers."""
    data = {}
    for server in servers:
        if b"role:master" not in server.command("INFO", "replication"):
            continue
        for key in server.command("KEYS", "*"):
            if not key.startswith(own):
                data[key] = migrate_kills.value(server.command, key)
    return data


def compare(sources, targets):
    """The keys whose values differ, and the number of all."""
    a, b = gather(sources), gather(targets)
    differ = [(key, a.get(key), b.get(key)) for key in sorted(a.keys() | b.keys())
              if a.get(key) != b.get(key)]
    return differ, len(a)


def run(kills, sources, targets, victims, rounds, writers):
    source, target = sources[0].url, targets[0].url
    try:
        for writer in writers:
            writer.start()
        kills.run(source, target, rounds, victims)
        done = kills.finish(source, target)
        differ, n = compare(sources, targets) if done.returncode in (0, 1) else (["?"], 0)
        for server in sources:
            server.command("CLIENT", "UNPAUSE")
        for writer in writers:
            writer.stop()
        return done, differ, n, kills.counts, kills.output(), sum(w.n for w in writers)
    finally:
        for writer in writers:
            writer.over.set()
        kills.close()


def writers_of(server, seed):
    return [Writer(lambda: [server.port], seed + i) for i in range(3)]


def single(rounds, seed, say):
    with Server(LOG) as source, Server(LOG) as target:
        kills = MigrateKills(os.environ["REDOUBT"], seed, say, ["--recopy"])
        victims = {"tool": kills.kill, "target": target.crash, "source": source.crash,
                   "both": lambda: (kills.kill(), target.crash()),
                   "connections": lambda: target.command("CLIENT", "KILL", "TYPE", "normal",
                                                         "SKIPME", "yes"),
                   "links": lambda: source.command("CLIENT", "KILL", "TYPE", "replica")}
        return run(kills, [source], [target], victims, rounds, writers_of(source, seed))


def to_cluster(rounds, seed, say):
    """A server to a cluster of three masters with a replica each, of which masters are killed and
    replaced by their replicas."""
    cluster = Cluster(3, 3, seed)
    with Server(LOG) as source:
        try:
            kills = MigrateKills(os.environ["REDOUBT"], seed, say)
            victims = {"tool": kills.kill, "failover": cluster.kill_master,
                       "restart": cluster.crash, "move": cluster.move_slots,
                       "links": lambda: source.command("CLIENT", "KILL", "TYPE", "replica")}
            return run(kills, [source], cluster.nodes, victims, rounds,
                       writers_of(source, seed))
        finally:
            cluster.close()


def harm(cluster, word):
    """What is done to a cluster."""
    return {word + " failover": cluster.kill_master, word + " restart": cluster.crash,
            word + " move": cluster.move_slots}


def from_cluster(rounds, seed, say, moves=True):
    """A cluster to a server."""
    cluster = Cluster(3, 3, seed)
    with Server(LOG) as target:
        try:
            kills = MigrateKills(os.environ["REDOUBT"], seed, say, ["--recopy"])
            victims = {"tool": kills.kill, "target": target.crash, **harm(cluster, "source")}
            del victims["source restart"]
            if not moves:
                del victims["source move"]
            return run(kills, cluster.nodes, [target], victims, rounds,
                       [ClusterWriter(cluster, seed + i) for i in range(2)])
        finally:
            cluster.close()


def between_clusters(rounds, seed, say):
    """A cluster to another one."""
    source, target = Cluster(3, 3, seed), None
    try:
        target = Cluster(2, 2, seed + 1)
        kills = MigrateKills(os.environ["REDOUBT"], seed, say, ["--recopy"])
        victims = {"tool": kills.kill, **harm(source, "source"), **harm(target, "target")}
        del victims["source restart"]
        return run(kills, source.nodes, target.nodes, victims, rounds,
                   [ClusterWriter(source, seed + i) for i in range(2)])
    finally:
        source.close()
        if target is not None:
            target.close()


KINDS = {"single": single, "to-cluster": to_cluster, "from-cluster": from_cluster,
         "failovers": lambda *args: from_cluster(*args, moves=False),
         "between-clusters": between_clusters}


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    kind = sys.argv[3] if len(sys.argv) > 3 else "single"
    done, differ, keys, counts, output, n = KINDS[kind](rounds, seed, print)
    print(output[-3000:])
    print(done.returncode, done.stdout.decode(), done.stderr.decode())
    print(f"{rounds} rounds, {n} writes, {keys} keys, {len(differ)} differ, {counts}")
    for found in differ[:5]:
        print(*found, sep="\n  ")
    sys.exit(done.returncode != 0 or bool(differ))


if __name__ == "__main__":
    main()
