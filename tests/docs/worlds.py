"""What has happened on the machine before a guide begins: one function for each page."""

import json
import os


def resp(words):
    """A command as logs and clients write it."""
    words = [str(word).encode() for word in words]
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def shop(users=500):
    """The commands that fill a small shop."""
    yield ("RPUSH", "queue:mail", *(f"job {n}: send the newsletter" for n in range(400)))
    for n in range(users):
        plan = "free" if n % 5 else "paid"
        yield ("HSET", f"user:{n}", "name", f"user number {n}", "plan", plan,
               "mail", f"{n * 7919 % 1000}@example.org")
        yield ("SET", f"session:{n * 104729 % 99991:05}",
               f"token-{n * 7907 % 65521:05}-of-user-{n}", "PXAT", 4102444800000)


def send(machine, commands):
    """To the server of the machine, which runs."""
    with open(machine.path("run", "commands"), "wb") as f:
        f.writelines(resp(words) for words in commands)
    machine.shell(f"redis-cli --pipe <{f.name}")


def snapshot(machine, name, commands):
    """The dataset of the commands as a snapshot in the current folder, the same bytes each time."""
    with open(machine.path("run", "commands"), "wb") as f:
        f.writelines(resp(words) for words in commands)
    machine.shell(f"redoubt convert --quiet --from aof --to rdb --rdb-version 10 {f.name} "
                  f"-o {name}")
    return machine.path("home", name)


def into_place(machine, path):
    """Moves a snapshot to where the server of the system loads it."""
    machine.shell(f"mv {path} /var/lib/redis/dump.rdb; chmod 660 /var/lib/redis/dump.rdb; "
                  f"chown redis:redis /var/lib/redis/dump.rdb")


def overwrite(path, offset, data):
    with open(path, "r+b") as f:
        f.seek(offset)
        f.write(data)


def corrupt_rdb(machine):
    snapshot(machine, "older.rdb", shop(498))
    path = snapshot(machine, "dump.rdb", shop())
    overwrite(path, 30010, b"garbage from a bad disk")
    into_place(machine, path)


def torn_aof(machine):
    """A server that was killed while it wrote, and later a bad block in the middle of its log."""
    machine.configure("appendonly yes", "save ''", "aof-load-truncated no")
    machine.start()
    send(machine, shop(200))
    machine.stop()
    machine.shell("cp -r /var/lib/redis/appendonlydir bad-block; "
                  "chown -R $(id -u):$(id -g) bad-block")
    name = "appendonly.aof.1.incr.aof"
    overwrite(machine.path("home/bad-block", name), 30010, b"garbage from a bad disk")
    path = machine.path("var/lib/redis/appendonlydir", name)
    os.truncate(path, os.path.getsize(path) - 30)


def undo_flushall(machine):
    machine.configure("appendonly yes", "save ''")
    machine.start()
    send(machine, shop(200))
    machine.redis("FLUSHALL")
    send(machine, [("SET", "page:views", 17), ("INCR", "page:views"),
                   ("HSET", "user:1000", "name", "a new user")])


def restore(machine):
    snapshot(machine, "backup.rdb", shop(100))
    machine.configure("save 3600 1")
    machine.start()
    machine.redis("SET", "old", "data")


def backup(machine):
    machine.configure("save 3600 1")
    machine.start()
    send(machine, shop(100))


def debug_replication(machine):
    machine.configure("save ''")
    machine.start()
    send(machine, [("SET", "page:views", 17), *shop(100)])
    machine.shell("mkdir replica; redis-server --port 6380 --dir replica --daemonize yes --save '' "
                  "--replicaof '127.0.0.1 6379' --replica-read-only no >/dev/null")
    # The page shows both ends of the link.
    machine.shell("until redis-cli -p 6380 INFO replication | grep -q master_link_status:up && "
                  "redis-cli INFO replication | grep -q state=online; do sleep 0.02; done; "
                  "redis-cli -p 6380 SET config:theme dark; "
                  "redis-cli -p 6380 HSET user:7 plan paid")
    machine.shell("while sleep 0.1; do redis-cli SET page:views 17; done >/dev/null 2>&1 &")


def memory_analysis(machine):
    machine.configure("save ''")
    machine.start()
    send(machine, shop(100))
    machine.shell("redoubt capture --quiet --rdb-only last-week.rdb redis://127.0.0.1:6379")
    # While the child that made the snapshot lives, tables do not grow, and take less memory.
    machine.shell("until redis-cli INFO persistence | grep -q rdb_bgsave_in_progress:0; "
                  "do sleep 0.02; done")
    send(machine, (("SET", f"cache:{n:04}", f"a part of a page, number {n:04}")
                   for n in range(1000)))
    send(machine, [("HSET", "cart:1", *(word for n in range(3000)
                                        for word in (f"item:{n:05}", f"the amount is {n:05}")))])


def migrate(machine):
    machine.configure("save ''", "repl-diskless-sync-delay 0")
    machine.start()
    send(machine, shop())


def migrate_versions(machine):
    path = snapshot(machine, "shop.rdb", shop(100))
    row = {"db": 0, "key": "cart:7", "type": "hash", "value": {"tea": "2", "cake": "1"},
           "field_expire_ms": {"cake": 4102444800000}}
    machine.shell(f"echo '{json.dumps(row)}' >cart.ndjson; "
                  "redoubt convert --to rdb --for redis-8.0 cart.ndjson -o cart.rdb; "
                  f"redoubt merge --quiet {path} cart.rdb -o newer.rdb; "
                  "cp fixtures/redis-7.2.5/module.rdb .")


def try_redoubt_server(machine):
    machine.configure("save ''", "maxmemory 100mb")
    machine.start()
    send(machine, shop(100))


def sentinel(machine):
    machine.configure("save ''")
    machine.start()
    send(machine, shop(100))


def latency(machine):
    machine.configure("save ''")
    machine.start()
    send(machine, shop(100))
    machine.redis("EVAL", "for i = 1, 3e7 do end", "0")


def monitoring(machine):
    path = snapshot(machine, "dump.rdb", shop(100))
    machine.shell(f"head -c 9000 {path} >cut.rdb; redoubt seal --make-key /etc/redoubt/key; "
                  "mkdir -p /var/lib/prometheus/node-exporter; cp dump.rdb /var/lib/redis/; "
                  "cat >/etc/redoubt/redoubt.conf <<END\n"
                  "[nightly]\nsource = /var/lib/redis/dump.rdb\nrepository = /var/backups/redis\n"
                  "key-file = /etc/redoubt/key\n"
                  "metrics-file = /var/lib/prometheus/node-exporter/redoubt-nightly.prom\n"
                  "[weekly]\nsource = /var/lib/redis/dump.rdb\n"
                  "repository = /var/backups/redis\nEND\n"
                  "redoubt backup nightly --quiet")


def kubernetes(machine):
    snapshot(machine, "dump.rdb", shop(100))
    machine.shell("redoubt seal --make-key /etc/redoubt/key; cp dump.rdb /var/lib/redis/; "
                  "cat >/etc/redoubt/redoubt.conf <<END\n"
                  "[nightly]\nsource = /var/lib/redis/dump.rdb\nrepository = /var/backups/redis\n"
                  "key-file = /etc/redoubt/key\nEND\n"
                  "redoubt backup nightly --quiet")


def comparison(machine):
    path = snapshot(machine, "dump.rdb", shop())
    machine.shell("cp dump.rdb cut.rdb; truncate -s -20 cut.rdb")
    overwrite(path, 30010, b"garbage from a bad disk")
    machine.configure("appendonly yes", "save ''")
    machine.start()
    send(machine, shop(200))
    machine.stop()
    name = "appendonly.aof.1.incr.aof"
    machine.shell(f"cp /var/lib/redis/appendonlydir/{name} log.aof")
    overwrite(machine.path("home/log.aof"), 30010, b"garbage from a bad disk")
    machine.start()


def install(machine):
    for name, variable in (("source", "REDOUBT_SOURCE"), ("build", "REDOUBT_BUILD")):
        os.symlink(os.environ[variable], machine.path("home", name))
    snapshot(machine, "dump.rdb", shop(100))


def readme(machine):
    snapshot(machine, "backup.rdb", shop(100))
    corrupt_rdb(machine)
    machine.shell("cp /var/lib/redis/dump.rdb .; rm /var/lib/redis/dump.rdb")
    undo_flushall(machine)
    machine.stop()
    machine.shell("cp -r /var/lib/redis/appendonlydir log; cp -r log appendonlydir; "
                  "rm -r /var/lib/redis/appendonlydir")
    overwrite(machine.path("home/appendonlydir/appendonly.aof.1.incr.aof"), 30010,
              b"garbage from a bad disk")
    machine.shell("cp backup.rdb /var/lib/redis/dump.rdb; "
                  "chown redis:redis /var/lib/redis/dump.rdb")
    machine.configure("save ''")
    machine.start()


def scripting_with_json(machine):
    snapshot(machine, "dump.rdb", shop(100))
    snapshot(machine, "shop-1.rdb", shop(20))
    snapshot(machine, "shop-2.rdb", shop(30))


def query_with_sql(machine):
    snapshot(machine, "yesterday.rdb", shop(100))
    orders = [("XADD", "orders", f"{n + 1}-0", "user", f"user:{n}", "total", 17 + n)
              for n in range(5)]
    snapshot(machine, "dump.rdb", [
        *shop(100), *[("HSET", f"user:{n}", "name", f"user number {n}", "plan",
                       "free" if n % 5 else "paid", "mail", f"{n * 7919 % 1000}@example.org")
                      for n in range(100, 120)],
        *[("SET", f"draft:{n}", f"text {n}") for n in range(60, 140)],
        ("RPUSH", "queue:mail", *["job: remind"] * 100), *orders,
        ("XGROUP", "CREATE", "orders", "billing", "0-0"),
        ("XCLAIM", "orders", "billing", "worker-1", 0, "1-0", "TIME", 1700000000000, "RETRYCOUNT",
         1, "FORCE", "JUSTID", "LASTID", "2-0"),
        ("XCLAIM", "orders", "billing", "worker-1", 0, "2-0", "TIME", 1700000000000, "RETRYCOUNT",
         1, "FORCE", "JUSTID", "LASTID", "2-0")])


def who_changed_this_key(machine):
    machine.configure("appendonly yes", "aof-timestamp-enabled yes", "save ''")
    machine.start()
    send(machine, [("HSET", "cart:10", "apple", 1)])
    # The lines of the first second of a recording prove nothing.
    machine.shell("(until ls capture/*.monitor; do sleep 0.05; done; sleep 2; "
                  "redis-cli HSET cart:9 apple 2 pear 1; redis-cli HINCRBY cart:9 apple -1; "
                  "redis-cli HSET cart:10 plum 3; redis-cli DEL cart:9) >/dev/null 2>&1 &")


PAGES = {
    "backup": backup,
    "comparison": comparison,
    "corrupt-rdb": corrupt_rdb,
    "debug-replication": debug_replication,
    "install": install,
    "kubernetes": kubernetes,
    "latency": latency,
    "memory-analysis": memory_analysis,
    "migrate": migrate,
    "migrate-versions": migrate_versions,
    "monitoring": monitoring,
    "query-with-sql": query_with_sql,
    "restore": restore,
    "scripting-with-json": scripting_with_json,
    "torn-aof": torn_aof,
    "sentinel": sentinel,
    "try-redoubt-server": try_redoubt_server,
    "undo-flushall": undo_flushall,
    "who-changed-this-key": who_changed_this_key,
}


def prepare(machine, name):
    if name == "readme":
        readme(machine)
    else:
        PAGES[name](machine)
