"""What has happened on the machine before a guide begins: one function for each page."""

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


def offsite_backup(machine):
    machine.configure("save 3600 1")
    machine.start()
    send(machine, shop(100))


PAGES = {
    "corrupt-rdb": corrupt_rdb,
    "offsite-backup": offsite_backup,
    "restore": restore,
    "torn-aof": torn_aof,
    "undo-flushall": undo_flushall,
}


def prepare(machine, name):
    PAGES[name](machine)
