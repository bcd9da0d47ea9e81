"""Every command of redis-server, with many kinds of wrong arguments, has the same reply here,
unless docs/compatibility.md says that it is not supported; and what COMMAND, CONFIG and INFO list
is the same."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import pair, wait_for  # noqa: E402

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# They close the connection, end the server, block it, answer nothing, or answer by chance or time.
APART = {"shutdown", "quit", "monitor", "psync", "sync", "subscribe", "psubscribe", "ssubscribe",
         "unsubscribe", "punsubscribe", "sunsubscribe", "client|reply", "client|pause",
         "replicaof", "slaveof", "time", "lastsave", "lolwut", "randomkey", "acl|genpass", "hello",
         "reset", "info", "client|id", "client|info", "client|list", "memory|stats",
         "memory|doctor", "memory|malloc-stats", "latency|doctor", "latency|graph", "command",
         "command|docs", "command|info", "role", "acl|log", "latency|histogram", "slowlog|get",
         "debug", "spop", "srandmember", "zrandmember", "hrandfield", "memory|usage", "save",
         "bgsave", "bgrewriteaof"}

# With a number at their end, which is a time or a count, they may wait.
BLOCKING = {"blpop", "brpop", "blmove", "brpoplpush", "bzpopmin", "bzpopmax", "blmpop", "bzmpop",
            "xread", "xreadgroup", "wait"}

ARGUMENTS = [[], ["x"], ["x", "1"], ["1", "x"], ["x", "x", "x"], ["1", "1"], ["0", "0", "0"],
             ["x", "", "x", "x"], ["-1", "nan", "5"]]


def documented():
    """The commands of the table of what is not supported."""
    with open(os.path.join(SOURCE, "docs", "compatibility.md"), encoding="utf-8") as file:
        table = file.read().split("## Not supported")[1].split("##")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name.lower() for row in rows for name in re.findall(r"`([A-Z_ ]+)`", row)}


def names_of(items):
    for item in items:
        yield item[0].decode()
        yield from names_of(item[9])


def unordered(reply):
    kind, content = reply
    return (kind, sorted(content, key=repr)) if isinstance(content, list) else reply


class Walk(unittest.TestCase):
    def test_commands_with_wrong_arguments_reply_alike(self):
        missing, differ, n = documented(), {}, 0
        # What takes long or expires depends on the load of the machine.
        settings = {"enable-debug-command": "yes", "slowlog-log-slower-than": "-1"}
        with pair(settings) as servers:
            clients = [server.client(3) for server in servers]
            names = list(names_of(clients[1].command("COMMAND")))
            for name in names:
                words = name.split("|")
                if name in APART or words[-1] == "help":
                    continue
                for client in clients:
                    client.command("FLUSHALL")
                for more in ARGUMENTS:
                    if name in BLOCKING and more and more[-1].isdigit():
                        continue
                    said = [unordered(c.ask(*words, *more)) for c in clients]
                    n += 1
                    if said[0] != said[1] and not {words[0], " ".join(words)} & missing:
                        differ[" ".join([*words, *more])] = said
        self.assertEqual(differ, {})
        self.assertGreater(n, 2000)

    def test_debug_subcommands_reply_alike(self):
        calls = [["HTSTATS-KEY", "k", "full"], ["ZIPLIST", "l"], ["STRINGMATCH-LEN", "x", "x"],
                 ["STRINGMATCH-TEST"], ["STRINGMATCH-TEST", "x"], ["CLUSTERLINK", "a", "b", "c"],
                 ["CLUSTERLINK", "KILL", "x"], ["CLUSTERLINK", "KILL", "to", "x"],
                 ["LISTPACK", "l"], ["LISTPACK", "k"], ["QUICKLIST", "k"], ["QUICKLIST"],
                 ["HTSTATS", "99"], ["HTSTATS", "x"], ["HTSTATS-KEY", "k"], ["DIGEST-VALUE", "k"],
                 ["DIGEST", "x"], ["POPULATE", "x"], ["POPULATE", "2", "p", "x"], ["PROTOCOL", "x"],
                 ["REPLYBUFFER", "x", "y"], ["QUICKLIST-PACKED-THRESHOLD", "5gb"], ["SLEEP", "x"],
                 ["RESTART", "x"], ["CRASH-AND-RECOVER", "x"], ["RELOAD", "x"], ["ERROR", "EX y"],
                 ["CLIENT-EVICTION"], ["CHANGE-REPL-ID", "x"], ["NOSUCH"], ["HELP", "x"]]
        with pair({"enable-debug-command": "yes"}) as servers:
            said = []
            for server in servers:
                c = server.client()
                c.command("SET", "k", "v")
                c.command("ZADD", "l", "1", "m")
                said.append([(call, c.ask("DEBUG", *call)) for call in calls])
            for ours, theirs in zip(*said):
                self.assertEqual(ours, theirs)

    def test_lolwut_reads_its_numbers(self):
        with pair() as servers:
            for args in (["x"], ["5", "x"], ["5", "1", "1", "x"], ["5", "1", "1", "1", "x"],
                         ["6", "x"], ["6", "1", "x"], ["6", "1", "1", "x"], ["7", "x"]):
                said = [server.client().ask("LOLWUT", "VERSION", *args) for server in servers]
                self.assertEqual(*(reply[0] for reply in said), args)
                if said[0][0] == "-":
                    self.assertEqual(*said)

    def test_a_module_cannot_be_loaded(self):
        calls = [["LOAD", "/x"], ["LOADEX", "/x"], ["LOADEX", "/x", "ARGS", "1"], ["UNLOAD", "x"],
                 ["LIST"]]
        with pair({"enable-module-command": "yes"}) as servers:
            said = [[server.client().ask("MODULE", *call) for call in calls] for server in servers]
            self.assertEqual(*said)

    def test_the_lists_of_commands_directives_and_fields_are_the_same(self):
        with pair() as servers:
            said = []
            for server in servers:
                c = server.client()
                said.append((sorted(c.command("COMMAND", "LIST")),
                             sorted(c.command("CONFIG", "GET", "*")[::2]),
                             sorted(set(server.info("everything")) - {"redoubt_version"}),
                             sorted(c.command("ACL", "CAT"))))
            for ours, theirs in zip(*said):
                self.assertEqual(ours, theirs)

    def test_every_client_command_of_one_node_works(self):
        with pair() as servers:
            said = []
            for server in servers:
                a, b = server.client(3), server.client(2)
                out = [a.ask("SSUBSCRIBE", "ch"), b.ask("SPUBLISH", "ch", "m"), a.read(),
                       b.ask("PUBSUB", "SHARDCHANNELS"), b.ask("PUBSUB", "SHARDNUMSUB", "ch"),
                       a.ask("SUNSUBSCRIBE", "ch"), b.ask("CLIENT", "NO-EVICT", "on"),
                       b.ask("MULTI"), b.ask("SET", "k", "v"), b.ask("RESET"), b.ask("GET", "k"),
                       a.ask("CLIENT", "TRACKING", "on"), a.ask("RESET"),
                       a.ask("CLIENT", "TRACKINGINFO")]
                for word in ("SKIP", "OFF"):
                    b.send("CLIENT", "REPLY", word)
                    b.send("PING")
                    out.append(b.ask("CLIENT", "REPLY", "ON"))
                said.append(out)
            self.assertEqual(*said)

    def replies(self, c, *calls):
        """What is read up to the reply of the last call, which is an ECHO."""
        for call in calls:
            c.send(*call)
        c.send("ECHO", "end")
        out = []
        while not out or out[-1] != ("$", b"end"):
            out.append(c.read())
        return out

    def test_client_reply_skips_what_is_answered_later(self):
        calls = [
            [("RESET",)], [("BLPOP", "none", "0.02")],
            [("XREAD", "BLOCK", "20", "STREAMS", "s", "$")],
            [("WAIT", "1", "20")], [("BLPOP", "list", "0")],
            [("CLIENT", "REPLY", "SKIP"), ("PING",)],
            [("MULTI",), ("PING",), ("EXEC",)], [("SUBSCRIBE", "ch"), ("UNSUBSCRIBE", "ch")],
            [("DEBUG", "PROTOCOL", "push")],
            [("CLIENT", "PAUSE", "30", "WRITE"), ("SET", "k", "v")],
            [("QUIT_", "x")], [("EVAL", "return 1", "0")],
            [("BLMOVE", "list", "l2", "LEFT", "LEFT", "1")]]
        with pair() as servers:
            said = []
            for server in servers:
                other = server.client()
                out = []
                for call in calls:
                    c = server.client(3)
                    other.command("RPUSH", "list", "a")
                    out.append((call, self.replies(c, ("CLIENT", "REPLY", "SKIP"), *call)))
                    c.close()
                for call in (("RESET",), ("DEBUG", "PROTOCOL", "push"), ("BLPOP", "none", "0.02")):
                    c = server.client(3)
                    out.append((call, self.replies(c, ("CLIENT", "REPLY", "OFF"), call,
                                                   ("CLIENT", "REPLY", "ON"))))
                    c.close()
                c = server.client()
                for argv in (("CLIENT", "REPLY", "SKIP"), ("BLPOP", "none", "0")):
                    c.send(*argv)
                wait_for(lambda o=other: b"cmd=blpop" in o.command("CLIENT", "LIST"))
                lines = other.command("CLIENT", "LIST").split(b"\n")
                number = [line.split()[0][3:] for line in lines if b"=blpop" in line][0]
                other.command("CLIENT", "UNBLOCK", number, "ERROR")
                out.append(self.replies(c))
                said.append(out)
            self.assertEqual(*said)


if __name__ == "__main__":
    unittest.main()
