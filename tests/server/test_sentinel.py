"""redoubt-server as a Sentinel: beside redis-sentinel, with masters of both kinds, and its
commands and its configuration compared with those of redis-sentinel."""

import functools
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "support")]
import certificates  # noqa: E402
import recorded  # noqa: E402
import server_under_test as sut  # noqa: E402
from persistence import Faulty  # noqa: E402
from sentinels import (  # noqa: E402
    FAILOVER_SECONDS, MASTER, Ours, Theirs, address, knows, lines_for, state)
from server_under_test import ReplyError, wait_for  # noqa: E402

RECORD = recorded.Answers("server-sentinel")


class ByName(Ours):
    """Started by the name of the link."""

    def more(self):
        return []

    def command_line(self):
        link = self.path("redoubt-sentinel")
        if not os.path.lexists(link):
            os.symlink(self.program(), link)
        return [link]


def follows(server, port):
    """A Sentinel that moves a server closes the connections of its clients."""
    try:
        return server.info("replication").get("master_port") == str(port)
    except sut.ServerDied:
        return False


class WithFaults(Faulty, Ours):
    pass


class Names(unittest.TestCase):
    """A master that is known by its name, while no name server answers."""

    def test_a_lookup_that_lasts_does_not_stop_the_sentinel(self):
        with sut.Redoubt(dict(MASTER)) as master, WithFaults(
                "sentinel resolve-hostnames yes\n"
                f"sentinel monitor mine one-address.test {master.port} 1\n"
                "sentinel down-after-milliseconds mine 1000\n") as s:
            wait_for(lambda: b"disconnected" not in state(s)[b"flags"])
            silent = os.path.join(s.faults, "lookup")
            with open(silent, "w", encoding="utf-8"):
                pass
            port = master.port
            master.terminate()
            wait_for(lambda: state(s)[b"flags"].startswith(b"s_down,o_down,master"))
            self.assertNotIn("+tilt", s.log)
            master.start_at(port)
            wait_for(lambda: state(s)[b"flags"] == b"master", FAILOVER_SECONDS)
            os.unlink(silent)


class Failover(unittest.TestCase):
    """Masters and replicas of both kinds, Sentinels of both kinds."""

    def watched(self, kinds, servers):
        """Servers, the first of them the master, and Sentinels that know all of them."""
        running = [self.enterContext(kind(dict(MASTER))) for kind in servers]
        for replica in running[1:]:
            replica.client().command("REPLICAOF", "127.0.0.1", running[0].port)
        for replica in running[1:]:
            wait_for(lambda r=replica: r.info("replication")["master_link_status"] == "up")
        watchers = [self.enterContext(kind(lines_for(running[0]))) for kind in kinds]
        for w in watchers:
            wait_for(lambda w=w: knows(w, len(running) - 1, len(kinds) - 1), FAILOVER_SECONDS)
        return running, watchers

    def enterContext(self, manager):  # unittest has it since Python 3.11
        entered = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return entered

    def moved(self, watchers, old):
        """The port of the new master, once all Sentinels agree."""
        def new():
            found = {tuple(address(w) or ()) for w in watchers}
            return found.pop() if len(found) == 1 and (
                b"127.0.0.1", b"%d" % old) not in found else None
        return int(wait_for(new, FAILOVER_SECONDS, 0.1)[1])

    def check(self, kinds, servers):
        running, watchers = self.watched(kinds, servers)
        by_port = {server.port: server for server in running}
        master = running[0]
        running[0].client().command("SET", "k", "before")
        events = watchers[0].client()
        events.command("SUBSCRIBE", "+switch-master")
        old_port = master.port
        master.fixed_port = old_port
        master.kill()
        port = self.moved(watchers, old_port)
        self.assertIn(port, by_port)
        self.assertNotEqual(port, old_port)
        new = by_port[port]
        wait_for(lambda: new.info("replication")["role"] == "master", FAILOVER_SECONDS)
        self.assertEqual(new.client().command("GET", "k"), b"before")
        self.assertEqual(events.read()[1][2],
                         ("$", b"mine 127.0.0.1 %d 127.0.0.1 %d" % (old_port, port)))
        for server in running:
            if server not in (master, new):
                wait_for(lambda s=server: follows(s, port), FAILOVER_SECONDS, 0.1)
        master.start()
        wait_for(lambda: follows(master, port), FAILOVER_SECONDS, 0.1)
        for w in watchers:
            self.assertEqual(state(w)[b"config-epoch"], state(watchers[0])[b"config-epoch"])

    def test_ours_fail_over_masters_of_both_kinds(self):
        self.check([Ours, Ours, ByName], [sut.Redoubt, sut.Redis, sut.Redoubt])

    def test_ours_and_redis_sentinel_agree(self):
        self.check([Ours, Theirs, Ours], [sut.Redis, sut.Redoubt, sut.Redis])

    def test_two_of_redis_sentinel_and_one_of_ours_agree(self):
        self.check([Theirs, Ours, Theirs], [sut.Redis, sut.Redis])

    def test_users_on_both_sides_have_only_what_is_needed(self):
        login = {**MASTER, "masteruser": "app", "masterauth": "pw"}
        servers = [self.enterContext(kind(dict(login))) for kind in (sut.Redis, sut.Redoubt)]
        for server in servers:
            c = server.client()
            c.command("ACL", "SETUSER", "app", "on", ">pw", "+psync", "+replconf", "+ping")
            c.command("ACL", "SETUSER", "watch", "on", ">pw", "&*", "+ping", "+info", "+multi",
                      "+exec", "+subscribe", "+publish", "+slaveof", "+config|rewrite",
                      "+client|setname", "+client|kill", "+script|kill", "+role")
        old, new = servers
        new.client().command("REPLICAOF", "127.0.0.1", old.port)
        wait_for(lambda: new.info("replication")["master_link_status"] == "up")
        for server in servers:
            server.client().command("ACL", "SETUSER", "default", "off")
        users = ("user default on nopass -@all +ping +sentinel|master "
                 "+sentinel|get-master-addr-by-name\n"
                 "user peer on >pw &* -@all +ping +client|setname +publish "
                 "+sentinel|is-master-down-by-addr\n"
                 "sentinel sentinel-user peer\nsentinel sentinel-pass pw\n"
                 "sentinel auth-user mine watch\nsentinel auth-pass mine pw\n")
        watchers = [self.enterContext(kind(lines_for(old, 2, users))) for kind in (Ours, Theirs)]
        for w in watchers:
            wait_for(lambda w=w: knows(w, 1, 1), FAILOVER_SECONDS)
        old_port = old.port
        old.kill()
        self.assertEqual(self.moved(watchers, old_port), new.port)

    def test_a_failover_by_hand_needs_no_dead_master(self):
        running, (w,) = self.watched([Ours], [sut.Redoubt, sut.Redoubt])
        c = w.client()
        wait_for(lambda: c.ask("SENTINEL", "FAILOVER", "mine") == ("+", b"OK"), 60, 0.1)
        with self.assertRaisesRegex(ReplyError, "^INPROG Failover already in progress$"):
            c.command("SENTINEL", "FAILOVER", "mine")
        self.assertEqual(self.moved([w], running[0].port), running[1].port)


# ---- compared with redis-sentinel ----

COMMANDS = """\
SENTINEL CKQUORUM m
SENTINEL CKQUORUM x
SENTINEL DEBUG
SENTINEL DEBUG ping-period 900
SENTINEL DEBUG foo 3
SENTINEL DEBUG ping-period x
SENTINEL DEBUG ping-period
SENTINEL CONFIG GET *
SENTINEL CONFIG GET foo
SENTINEL CONFIG SET foo bar
SENTINEL CONFIG SET resolve-hostnames maybe
SENTINEL CONFIG SET announce-port 70000000
SENTINEL CONFIG SET sentinel-user u
SENTINEL CONFIG GET sentinel-*
SENTINEL CONFIG GET
SENTINEL CONFIG
SENTINEL MASTER x
SENTINEL MASTERS x
SENTINEL REPLICAS x
SENTINEL SENTINELS x
SENTINEL SLAVES
SENTINEL SENTINELS m
SENTINEL FAILOVER x
SENTINEL FAILOVER m
SENTINEL MONITOR m 127.0.0.1 1 1
SENTINEL MONITOR m2 nohost 1 1
SENTINEL MONITOR m2 127.0.0.1 99999999 1
SENTINEL MONITOR m2 127.0.0.1 99999 1
SENTINEL MONITOR m2 127.0.0.1 1 0
SENTINEL MONITOR m2 127.0.0.1 x 0
SENTINEL MONITOR m2 127.0.0.1 1 1
SENTINEL GET-MASTER-ADDR-BY-NAME m2
SENTINEL REMOVE m2
SENTINEL REMOVE m2
SENTINEL SET m foo bar
SENTINEL SET m quorum 0
SENTINEL SET m quorum
SENTINEL SET m down-after-milliseconds x
SENTINEL SET m notification-script /nope
SENTINEL SET m client-reconfig-script /nope
SENTINEL SET m rename-command a
SENTINEL SET m rename-command CONFIG CFG
SENTINEL SET m known-slave 1
SENTINEL SET m quorum 2 auth-pass secret
SENTINEL RESET no*
SENTINEL RESET
SENTINEL RESET *
SENTINEL GET-MASTER-ADDR-BY-NAME x
SENTINEL GET-MASTER-ADDR-BY-NAME m
SENTINEL SIMULATE-FAILURE HELP
SENTINEL SIMULATE-FAILURE foo
SENTINEL SIMULATE-FAILURE
SENTINEL SIMULATE-FAILURE crash-after-election crash-after-promotion
SENTINEL SIMULATE-FAILURE crash-after-promotion foo
SENTINEL SIMULATE-FAILURE crash-after-election HELP crash-after-promotion
SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 PORT 0 *
SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 9 0 *
SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 xx 0 *
SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 xx *
SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 0
SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 PORT 7 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 PORT 7 bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
SENTINEL PENDING-SCRIPTS
SENTINEL INFO-CACHE x
SENTINEL INFO-CACHE
SENTINEL FLUSHCONFIG
SENTINEL foo
SENTINEL
PUBLISH foo bar
PUBLISH __sentinel__:hello bar
MULTI
SELECT 0
GET x
CONFIG GET port
MONITOR
RESET
DEBUG SLEEP 0
SHUTDOWN foo
PING
PING hello
ROLE
ROLE x
ACL WHOAMI
ACL LIST
ACL CAT keyspace
ACL GETUSER default
ACL SETUSER u +get
ACL SETUSER u on nopass +sentinel|myid
AUTH wrong password
CLIENT SETNAME n
CLIENT GETNAME
COMMAND COUNT
COMMAND GETKEYS SENTINEL x y z
SUBSCRIBE +sdown
INFO nothing
"""


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def sections(text):
    """The names of sections and fields."""
    return [line.split(":")[0] for line in text.decode().splitlines()
            if line.split(":")[0] not in ("redoubt_version",)]


class Compared(unittest.TestCase):
    def begun(self, server):
        server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        return server

    def alike(self, question, ask):
        """The lines of ask(kind) for ours and for redis-sentinel 7.0.15, or its record."""
        ours = ask(Ours)
        self.assertEqual(ours, RECORD.get(question, lambda: ask(Theirs)), question)
        return ours

    def one(self, kind):
        """With a master."""
        master = self.begun(sut.Redis(dict(MASTER)))
        return self.begun(kind(f"sentinel monitor m 127.0.0.1 {master.port} 1\n")), master

    def both(self):
        """Each with a master of its own: they do not find each other."""
        self.masters = [self.begun(sut.Redis(dict(MASTER))) for _ in range(2)]
        return [self.begun(kind(f"sentinel monitor m 127.0.0.1 {master.port} 1\n"))
                for kind, master in zip((Ours, Theirs), self.masters)]

    def answers_of(self, kind):
        s, master = self.one(kind)
        lines = []
        for line in COMMANDS.splitlines():
            sort, content = s.client().ask(*line.replace("PORT", str(master.port)).split())
            content = sorted(content) if line == "ACL CAT keyspace" else content
            lines.append(line + ": " + re.sub(rf"\b{master.port}\b", "PORT", f"{sort} {content}"))
        return lines + [s.info("sentinel")["sentinel_simulate_failure_flags"]]

    def test_the_commands_answer_alike(self):
        self.alike("commands", self.answers_of)

    def fields_of(self, kind):
        s, _ = self.one(kind)
        wait_for(lambda: state(s, "m")[b"runid"])
        lines = []
        for proto in (2, 3):
            lines += sections(s.client(proto).command("INFO", "sentinel"))
            report = s.client(proto).command("SENTINEL", "MASTER", "m")
            lines += [name.decode() for name in (report if proto == 3 else report[::2])]
            lines += [str(item) for item in s.client().ask("HELLO", proto)[1]
                      if item[0] not in (":", ("$", b"id"))]
        return lines + [line for line in sections(s.client().command("INFO")) if line[:1] == "#"]

    def test_info_and_reports_have_the_same_fields(self):
        self.alike("fields", self.fields_of)

    def table_of(self, kind):
        c = self.one(kind)[0].client()
        lines = []
        for name in sorted(c.command("COMMAND", "LIST")):
            info = c.command("COMMAND", "INFO", name)[0]
            info[2], info[6], info[7] = [sorted(info[i]) for i in (2, 6, 7)]
            info[9] = sorted([sub[0], sub[1], sorted(sub[2]), sorted(sub[6])] for sub in info[9])
            lines.append(str(info))
        return lines

    def test_the_same_commands_exist(self):
        self.alike("table", self.table_of)

    def events_of(self, watcher, act):
        """What it publishes while act() runs, without ports, ids and process ids."""
        listener = watcher.client()
        listener.command("PSUBSCRIBE", "*")
        names = act()
        found = []
        while not listener.nothing(1):
            _, (_, _, (_, channel), (_, text)) = listener.read()
            found.append(f"{channel.decode()} {text.decode()}")
        text = "\n".join(found)
        for port, name in names.items():
            text = re.sub(rf"\b{port}\b", name, text)
        return re.sub(r"\b[0-9a-f]{40}\b", "ID", text).splitlines()

    def events_of_failover(self, kind):
        master, good, never = [self.begun(sut.Redis(dict(MASTER))) for _ in range(3)]
        never.client().command("CONFIG", "SET", "replica-priority", "0")
        for replica in (good, never):
            replica.client().command("REPLICAOF", "127.0.0.1", master.port)
        for replica in (good, never):
            wait_for(lambda r=replica: r.info("replication")["master_link_status"] == "up")
        with kind(lines_for(master, 1, "sentinel client-reconfig-script mine /bin/true\n")) as w:
            wait_for(lambda: knows(w, 2, 0), FAILOVER_SECONDS)

            def act():
                port = master.port
                master.kill()
                wait_for(lambda: b"+sdown slave" in
                         w.log.encode().partition(b"+switch-master")[2], FAILOVER_SECONDS)
                c = w.client()
                c.command("SENTINEL", "SET", "mine", "quorum", "1", "parallel-syncs", "2")
                c.command("SENTINEL", "MONITOR", "other", "127.0.0.1", "9", "3")
                c.command("SENTINEL", "REMOVE", "other")
                c.command("SENTINEL", "RESET", "mine")
                return {port: "MASTER", good.port: "GOOD", never.port: "NEVER"}
            events = self.events_of(w, act)
            # The replicas are found again in any order.
            end = events.index("+reset-master master mine 127.0.0.1 GOOD") + 1
            return events[:end]

    def test_the_events_of_a_failover_are_the_same(self):
        ours = self.alike("failover", self.events_of_failover)
        self.assertIn("+switch-master mine 127.0.0.1 MASTER 127.0.0.1 GOOD", ours)

    # Host and id of the one that says hello, the epoch, the master, its port and its epoch.
    HELLOS = (("10.0.0.5", "a", 0, "m", 9, 0), ("10.0.0.5", "a", 0, "n", 9, 0),
              ("10.0.0.6", "a", 0, "m", 9, 0), ("10.0.0.6", "b", 0, "m", 9, 0),
              ("10.0.0.6", "b", 3, "m", 9, 0), ("10.0.0.6", "b", 4, "m", 10, 4),
              ("10.0.0.7", "a", 4, "m", 9, 4), ("10.0.0.7", "a", 5, "m", 9, 5),
              ("10.0.0.7", "a", 5, "other", 9, 5), ("no-host", "c", 6, "m", 9, 6))

    def events_of_hellos(self, kind):
        lines = "".join(f"sentinel monitor {name} 127.0.0.1 9 2\n"
                        f"sentinel down-after-milliseconds {name} 600000\n" for name in "mn")
        with kind(lines) as w:
            def act():
                c = w.client()
                for host, own_id, epoch, name, port, config_epoch in self.HELLOS:
                    c.command("PUBLISH", "__sentinel__:hello",
                              f"{host},26379,{own_id * 40},{epoch},{name},127.0.0.1,{port},"
                              f"{config_epoch}")
                return {}
            events = self.events_of(w, act)
            return events + sorted(x for x in w.file.splitlines() if "known-sentinel" in x)

    def test_hello_messages_have_the_same_effect(self):
        ours = self.alike("hellos", self.events_of_hellos)
        for name in ("address-switch", "address-update", "invalid-addr"):
            self.assertTrue(any(e.startswith(f"+sentinel-{name} ") for e in ours), ours)

    def events_of_script(self, text, millis, kind):
        with kind("sentinel deny-scripts-reconfig no\nsentinel monitor m 127.0.0.1 9 1\n"
                  "sentinel down-after-milliseconds m 600000\n") as w:
            path = w.path("script")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, stat.S_IRWXU)
            c = w.client()
            c.command("SENTINEL", "DEBUG", "script-retry-delay", "1", "script-max-runtime", millis)

            def act():
                c.command("SENTINEL", "SET", "m", "notification-script", path)
                c.command("SENTINEL", "SET", "m", "notification-script", "")
                wait_for(lambda: w.info("sentinel")["sentinel_scripts_queue_length"] == "0",
                         FAILOVER_SECONDS)
                return {}
            events = self.events_of(w, act)
            return sorted(re.sub(r"(-script-timeout \S+) \d+", r"\1 PID",
                                 e.replace(path, "SCRIPT")) for e in events)

    def test_scripts_fail_alike(self):
        for text, millis in (("#!/no/such/program\n", "60000"),
                              ("exit 0\n", "60000"),
                              ("#!/bin/sh\nexit 3\n", "60000"),
                              ("#!/bin/sh\nexit 1\n", "60000"),
                              ("#!/bin/sh\nkill -9 $$\n", "60000"),
                              ("#!/bin/sh\n[ -e $0.ran ] && exit 0\ntouch $0.ran\nsleep 60\n",
                               "500")):
            ours = self.alike(text, functools.partial(self.events_of_script, text, millis))
            self.assertGreater(len(ours), 2, text)

    # Lines that say what is so without them.
    DEFAULTS = ("# names\n"
                "sentinel announce-hostnames no\n"
                "sentinel resolve-hostnames no\n"
                "\n"
                "sentinel deny-scripts-reconfig yes\n"
                "sentinel monitor m 127.0.0.1 9 2\n"
                "sentinel down-after-milliseconds m 30000\n"
                "sentinel parallel-syncs m 1\n"
                "sentinel failover-timeout m 180000\n"
                "sentinel announce-ip 127.0.0.2\n")

    def file_of(self, kind):
        with kind(self.DEFAULTS) as w:
            lines = []
            for line in ("FLUSHCONFIG", "CONFIG SET resolve-hostnames yes",
                         "CONFIG SET announce-hostnames yes", "CONFIG SET resolve-hostnames no",
                         "SET m parallel-syncs 3"):
                w.client().command("SENTINEL", *line.split())
                lines += [line, *(x for x in w.file.splitlines()
                                  if x.startswith(("#", "sentinel ")))]
            return re.sub(r"\b[0-9a-f]{40}\b", "ID", "\n".join(lines)).splitlines()

    def test_lines_with_defaults_stay_where_they_are(self):
        self.alike("defaults", self.file_of)

    def test_ours_reads_the_file_of_redis_sentinel_and_the_other_way_round(self):
        ours, theirs = self.both()
        for s in (ours, theirs):
            s.client().command("SENTINEL", "SET", "m", "down-after-milliseconds", "4000")
            s.client().command("SENTINEL", "CONFIG", "SET", "announce-port", "7777")
            s.client().command("SENTINEL", "CONFIG", "SET", "announce-ip", "127.0.0.2")
            s.client().command("SENTINEL", "CONFIG", "SET", "sentinel-user", "u")
            s.client().command("SENTINEL", "SET", "m", "auth-user", "app", "auth-pass", "secret")
            s.terminate()
        files = [s.path("sentinel.conf") for s in (ours, theirs)]
        texts = [read(name) for name in files]
        watched = [str(master.port) for master in self.masters]
        mine = [sorted(line.replace(f" {port} ", " PORT ") for line in text.splitlines()
                       if line.startswith("sentinel ") and not line.startswith("sentinel myid"))
                for text, port in zip(texts, watched)]
        self.assertEqual(*mine)
        for name, text, port in zip(files, reversed(texts), (ours.port, theirs.port)):
            other = theirs.port if port == ours.port else ours.port
            with open(name, "w", encoding="utf-8") as f:
                f.write(text.replace(f"port {other}\n", f"port {port}\n"))
        ids = [text.split("myid ")[1].split()[0] for text in texts]
        for s, own in zip((ours, theirs), reversed(ids)):
            s.start()
            c = s.client()
            self.assertEqual(c.command("SENTINEL", "MYID").decode(), own)
            self.assertEqual(state(s, "m")[b"down-after-milliseconds"], b"4000")


# ---- files, users, scripts ----

class Alone(unittest.TestCase):
    def run_once(self, text, mode=0o644, folder_mode=0o755, name="s.conf"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            if text is not None:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
            args = [sut.program(), *([path] if text is not None else []), "--sentinel"]
            p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder,
                               timeout=60, check=False)
            return p.returncode, p.stdout.decode()

    def test_a_wrong_line_is_shown_with_its_number(self):
        status, out = self.run_once("port 0\nsentinel monitor m 127.0.0.1 1 1\n"
                                    "sentinel down-after-milliseconds zz 1\n")
        self.assertEqual(status, 1)
        self.assertIn("Reading the configuration file, at line 3\n"
                      ">>> 'sentinel down-after-milliseconds zz 1'\n"
                      "No such master with specified name.\n", out)

    def test_without_a_file_it_does_not_start(self):
        status, out = self.run_once(None)
        self.assertEqual(status, 1)
        self.assertIn("Sentinel needs config file on disk to save state. Exiting...", out)

    def test_a_server_refuses_lines_of_a_sentinel(self):
        p = subprocess.run([sut.program(), "--sentinel-x", "1"], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=60, check=False)
        self.assertEqual(p.returncode, 1)
        with Ours("") as w:
            self.assertEqual(w.info("server")["redis_mode"], "sentinel")
        with sut.Redoubt() as server:
            with self.assertRaisesRegex(ReplyError, "unknown command 'SENTINEL'"):
                server.client().command("SENTINEL", "MASTERS")
            self.assertNotIn(b"sentinel", server.client().command("COMMAND", "LIST"))

    def test_the_state_survives_a_kill(self):
        with Ours("sentinel monitor m 127.0.0.1 9 1\n") as w:
            own = w.client().command("SENTINEL", "MYID")
            ask = ("SENTINEL", "IS-MASTER-DOWN-BY-ADDR", "127.0.0.1", "9", "5")
            self.assertEqual(w.client().command(*ask, "a" * 40), [0, b"a" * 40, 5])
            w.kill()
            w.start()
            self.assertEqual(w.client().command("SENTINEL", "MYID"), own)
            # It does not vote a second time.
            self.assertEqual(w.client().command(*ask, "b" * 40), [0, b"*", 0])
            self.assertEqual(w.client().command(*ask[:-1], "6", "b" * 40), [0, b"b" * 40, 6])

    def test_a_vote_that_cannot_be_saved_is_not_given(self):
        with Ours("sentinel monitor m 127.0.0.1 9 1\n") as w:
            os.rename(w.path("sentinel.conf"), w.path("kept"))
            os.mkdir(w.path("sentinel.conf"))
            ask = ("SENTINEL", "IS-MASTER-DOWN-BY-ADDR", "127.0.0.1", "9", "5", "a" * 40)
            self.assertEqual(w.client().command(*ask), [0, b"*", 0])
            with self.assertRaisesRegex(ReplyError, "^ERR Failed to save config file. Check "):
                w.client().command("SENTINEL", "FLUSHCONFIG")
            self.assertIn("WARNING: Sentinel was not able to save the new configuration", w.log)
            os.rmdir(w.path("sentinel.conf"))
            os.rename(w.path("kept"), w.path("sentinel.conf"))
            wait_for(lambda: w.client().command(*ask) == [0, b"a" * 40, 5])

    def test_passwords_of_masters_and_sentinels(self):
        for line in ("sentinel sentinel-pass for-sentinels\n", ""):  # requirepass is for both
            self.check_passwords("requirepass for-sentinels\n" + line)

    def check_passwords(self, more):
        with sut.Redoubt({"requirepass": "for-servers"}) as master:
            lines = lines_for(master, 1, more + "sentinel auth-pass mine for-servers\n")
            with Ours(lines) as a, Ours(lines) as b:
                def known(w):
                    c = w.client()
                    c.command("AUTH", "for-sentinels")
                    reply = c.command("SENTINEL", "MASTER", "mine")
                    fields = dict(zip(reply[::2], reply[1::2]))
                    others = c.command("SENTINEL", "SENTINELS", "mine")
                    return (fields[b"flags"] == b"master" and len(others) == 1 and
                            dict(zip(others[0][::2], others[0][1::2]))[b"flags"] == b"sentinel")
                wait_for(lambda: known(a), FAILOVER_SECONDS, 0.1)
                wait_for(lambda: known(b), FAILOVER_SECONDS, 0.1)
                with self.assertRaisesRegex(ReplyError, "^NOAUTH"):
                    a.client().command("SENTINEL", "MASTERS")

    def test_users_may_be_limited_to_some_subcommands(self):
        rules = "user default off\nuser app on >pw +sentinel|get-master-addr-by-name +ping\n"
        with Ours(rules + "sentinel monitor m 127.0.0.1 9 1\n") as w:
            c = w.client()
            c.command("AUTH", "app", "pw")
            self.assertEqual(c.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m"),
                             [b"127.0.0.1", b"9"])
            with self.assertRaisesRegex(ReplyError, "^NOPERM"):
                c.command("SENTINEL", "MASTERS")
            self.assertIn("user app on #", w.file)

    def test_scripts_are_run(self):
        with sut.Redoubt() as master, Ours("") as w:
            script, out = w.path("notify"), w.path("notified")
            with open(script, "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\necho \"$@\" >> {out}\n")
            os.chmod(script, stat.S_IRWXU)
            w.terminate()
            with open(w.path("sentinel.conf"), "a", encoding="utf-8") as f:
                f.write(lines_for(master, 1, f"sentinel notification-script mine {script}\n"))
            w.start()
            master.kill()
            def text():
                return read(out) if os.path.exists(out) else ""
            wait_for(lambda: f"+sdown master mine 127.0.0.1 {master.port}\n" in text(),
                     FAILOVER_SECONDS)
            wait_for(lambda: w.client().command("SENTINEL", "PENDING-SCRIPTS") == [],
                     FAILOVER_SECONDS)

    def test_connections_use_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            certificates.make(folder)
            path = lambda name: os.path.join(folder, name)  # noqa: E731
            tls = {"tls-ca-cert-file": path("ca.crt"), "tls-cert-file": path("server.crt"),
                   "tls-key-file": path("server.key"), "tls-client-cert-file": path("client.crt"),
                   "tls-client-key-file": path("client.key"), "tls-replication": "yes"}
            with sut.Redoubt({**tls, "tls-port": str(sut.free_port())}) as master:
                def lines(port):
                    return "".join(f"{name} {value}\n" for name, value in tls.items()) + (
                        f"tls-port {port}\n"
                        f"sentinel monitor mine 127.0.0.1 {master.config['tls-port']} 1\n")
                with Ours(lines(sut.free_port())) as a, Ours(lines(sut.free_port())) as b:
                    def known(w):
                        others = w.client().command("SENTINEL", "SENTINELS", "mine")
                        return state(w)[b"flags"] == b"master" and [
                            dict(zip(o[::2], o[1::2]))[b"flags"] for o in others] == [b"sentinel"]
                    wait_for(lambda: known(a), FAILOVER_SECONDS, 0.1)
                    wait_for(lambda: known(b), FAILOVER_SECONDS, 0.1)

    def test_a_failure_can_be_simulated(self):
        with sut.Redoubt() as master, sut.Redoubt() as replica, Ours(lines_for(master, 1)) as w:
            replica.client().command("REPLICAOF", "127.0.0.1", master.port)
            wait_for(lambda: state(w)[b"num-slaves"] == b"1", FAILOVER_SECONDS)
            c = w.client()
            c.command("SENTINEL", "SIMULATE-FAILURE", "CRASH-AFTER-ELECTION")
            wait_for(lambda: c.ask("SENTINEL", "FAILOVER", "mine")[0] == "+", FAILOVER_SECONDS,
                     0.2)
            self.assertEqual(w.wait_end(), 99)

    def test_a_stopped_process_is_in_tilt(self):
        with Ours("sentinel monitor m 127.0.0.1 9 1\n") as w:
            w.process.send_signal(signal.SIGSTOP)
            time.sleep(3)
            w.process.send_signal(signal.SIGCONT)
            wait_for(lambda: w.info("sentinel")["sentinel_tilt"] == "1", 20)
            self.assertIn("+tilt #tilt mode entered", w.log)


if __name__ == "__main__":
    unittest.main()
