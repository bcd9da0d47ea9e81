"""Users: the configuration, the ACL file, who is disconnected, and that a refused command leaves no
trace; beside redis-server where both can answer. tests/oracle/test_acl_oracle.py has the random
users and commands."""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_under_test import (  # noqa: E402
    Client, Redis, Redoubt, free_port, of_reference, pair, program, wait_for)


def sha(password):
    return hashlib.sha256(password).hexdigest()


def shape(line, reply):
    """A reply about commands without their documentation and the order of flags: their names."""
    kind, content = reply
    if line.startswith("COMMAND INFO"):
        return [item[1] and item[1][0] for item in content]
    if line.startswith("COMMAND DOCS"):
        return content[::2]
    if line.startswith("LATENCY"):
        return content[:1]
    return kind, content


class Start(unittest.TestCase):
    """Configurations, good and bad, for both servers."""

    def run_one(self, which, conf, acl=None, port=0):
        """Its exit status and output. With port 0 it ends in any case."""
        with tempfile.TemporaryDirectory(prefix="redoubt-acl-") as folder:
            with open(os.path.join(folder, "t.conf"), "wb") as file:
                file.write(conf)
            if acl is not None:
                with open(os.path.join(folder, "users.acl"), "wb") as file:
                    file.write(acl)
            done = subprocess.run([which, "t.conf", "--port", str(port)], cwd=folder, timeout=600,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            return done.returncode, done.stdout.decode(errors="replace")

    REFUSED = (
        (b"user alice on +nope\n", None, "Error loading ACL rule '+nope' for the user named "
         "'alice': Unknown command or category name in ACL"),
        (b"user alice on nope\n", None, "Error in user declaration"),
        (b"user alice on\nuser alice off\n", None, "Error in user declaration 'alice': Duplicate "
         "user found. A user can only be defined once in config files"),
        (b"user alice on (+get\n", None, "Error in user declaration"),
        (b'user "al ice" on\n', None, "Spaces not allowed in ACL usernames"),
        (b"user\n", None, "Bad directive or wrong number of arguments"),
        (b"user alice on\naclfile users.acl\n", b"", "please define either an ACL file or declare"),
        (b"aclfile nope.acl\n", None, "Error loading ACLs, opening file 'nope.acl': No such file"),
        (b"aclfile users.acl\n", b"user a on\nuser a on\n",
         "WARNING: Duplicate user 'a' found on line 2. WARNING: ACL errors detected, no change"),
        (b"aclfile users.acl\n", b"# text\n",
         "users.acl:1 should start with user keyword followed by the username. WARNING"),
        (b"aclfile users.acl\n", b"user a nope +nope >x #0 -@nope\n",
         "users.acl:1: Syntax error. users.acl:1: Error in applying operation '+nope': Unknown "
         "command or category name in ACL. users.acl:1: Error in applying operation '-@nope': "
         "Unknown command or category name in ACL. WARNING"),
    )

    def test_what_is_wrong_ends_the_start_as_in_redis_server(self):
        for conf, acl, text in self.REFUSED:
            def run(which, conf=conf, acl=acl):
                return self.run_one(which, conf, acl, free_port())
            for name, (status, log) in (("redoubt-server", run(program())),
                                        ("redis-server", of_reference((conf, acl), run))):
                with self.subTest(f"{name} {conf} {acl}"):
                    self.assertEqual(status, 1)
                    self.assertIn(text, log)

    def test_an_unknown_parenthesis_in_the_file_ends_the_start(self):
        # redis-server reads beyond its rules here
        status, log = self.run_one(program(), b"aclfile users.acl\n", b"user a on (+get\n")
        self.assertEqual(status, 1)
        self.assertIn("users.acl:1: Unmatched parenthesis in selector definition.", log)

    def test_a_user_who_is_off_is_a_warning(self):
        log = self.run_one(program(), b"user alice +get\n")[1]
        self.assertIn("The user 'alice' is disabled (there is no 'on' modifier", log)


CONF = b"""
user alice on >secret "#%b" ~a* +@all -@dangerous (+get ~b*)
user "bob" on ">with\\x00nul" ">p w" +get allkeys
user off nopass
user default on >main ~* &* +@all
requirepass other
""" % sha(b"two").encode()


class Configuration(unittest.TestCase):
    def test_user_lines_are_users_and_config_rewrite_writes_them(self):
        found = self.found(program()) + of_reference(CONF, self.found)
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[3:], found[:3])
        self.assertEqual(len(found[2]), 5)

    def found(self, which):
        found = []
        with tempfile.TemporaryDirectory(prefix="redoubt-acl-") as folder:
            path, port = os.path.join(folder, "t.conf"), free_port()
            with open(path, "wb") as file:
                file.write(CONF)
            for start in range(2):  # the second one reads what the first one wrote
                process = subprocess.Popen([which, path, "--port", str(port), "--bind",
                                            "127.0.0.1"], cwd=folder,
                                           stdout=subprocess.DEVNULL)
                try:
                    found.append(self.look(port))
                finally:
                    process.kill()
                    process.wait()
            with open(path, "rb") as file:
                lines = [line for line in file.read().splitlines()
                         if line.startswith((b"user ", b"requirepass"))]
            found.append(sorted(b" ".join(sorted(line.split())) for line in lines))
        return found

    def look(self, port):
        def connect():
            try:
                return Client(("127.0.0.1", port))
            except OSError:
                return None
        c = wait_for(connect)
        self.assertEqual(c.ask("PING")[1], b"NOAUTH Authentication required.")
        answers = [c.ask("AUTH", user, password)[1] for user, password in (
            ("alice", "secret"), ("alice", "two"), ("alice", "x"), ("bob", b"with\x00nul"),
            ("bob", b"with"), ("bob", "p w"), ("off", "any"), ("default", "other"),
            ("unknown", "x"), ("default", "main"))]
        answers.append(sorted(b" ".join(sorted(line.split())) for line in c.command("ACL", "LIST")))
        answers.append(c.command("CONFIG", "GET", "requirepass"))
        self.assertEqual(c.command("CONFIG", "REWRITE"), b"OK")
        c.close()
        return answers

    def test_a_password_of_the_default_user_ends_protected_mode(self):
        # "-DENIED" needs a client that is not local; the rule is in CONFIG and ACL alike
        with Redoubt() as server:
            c = server.client()
            c.command("ACL", "SETUSER", "default", ">x")
            self.assertEqual(server.client().ask("PING")[1], b"NOAUTH Authentication required.")
            self.assertEqual(c.ask("PING"), ("+", b"PONG"))
            c.command("CONFIG", "SET", "requirepass", "y")
            self.assertEqual(server.client().ask("AUTH", "x")[0], "-")
            self.assertEqual(server.client().ask("AUTH", "y")[0], "+")
            c.command("CONFIG", "SET", "requirepass", "y")  # no change, so it stays
            c.command("ACL", "SETUSER", "default", "nopass")
            c.command("CONFIG", "SET", "requirepass", "y")
            self.assertEqual(server.client().ask("PING"), ("+", b"PONG"))


class File(unittest.TestCase):
    FIRST = b"user alice on nopass ~* +@all\nuser default on nopass ~* &* +@all\n"
    LATER = (b"user bob on >x\n\n  \nuser carl  off   +get\n", b"user bob on\nuser bob on\n",
             b"nope\n", b"user a b\n", b"user x on ( +get\t ~a* ) &c\n",
             b"user default on nopass ~* &* +@all\nuser x on +get (+set  ~a* &b)\n")

    def scene(self, server, path):
        c, alice, default = server.client(), server.client(), server.client()
        alice.command("AUTH", "alice", "any")
        out = []
        for text in self.LATER:
            with open(path, "wb") as file:
                file.write(text)
            out += [c.ask("ACL", "LOAD"), c.ask("ACL", "USERS"), c.ask("ACL", "LIST")]
        out += [alice.closed(), default.ask("PING")]
        c.command("ACL", "SETUSER", "y", "on", ">pw", "%R~a", "+@read")
        os.chmod(path, 0o600)
        out.append(c.ask("ACL", "SAVE"))

        def saved():
            with open(path, "rb") as file:
                return file.read(), os.listdir(os.path.dirname(path))
        out.append(server.measured(saved))
        os.rename(path, path + ".old")
        out.append(c.ask("ACL", "LOAD"))
        return out

    def test_load_and_save(self):
        said = []
        for kind in (0, 1):
            with tempfile.TemporaryDirectory(prefix="redoubt-acl-") as folder:
                path = os.path.join(folder, "users.acl")
                with open(path, "wb") as file:
                    file.write(self.FIRST)
                with pair({"aclfile": path}) as servers:
                    said.append(repr(self.scene(servers[kind], path)).replace(folder, "DIR"))
        self.assertEqual(*said)
        self.assertIn("user y on #30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4 "
                      "%R~a resetchannels -@all +@read", said[0])

    def test_saving_keeps_the_permissions_and_fails_as_a_whole(self):
        with tempfile.TemporaryDirectory(prefix="redoubt-acl-") as folder:
            path = os.path.join(folder, "users.acl")
            with open(path, "wb") as file:
                file.write(self.FIRST)
            os.chmod(path, 0o600)
            with Redoubt({"aclfile": path}) as server:
                c = server.client()
                self.assertEqual(c.command("ACL", "SAVE"), b"OK")
                self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
                os.rename(folder, folder + ".moved")
                try:
                    self.assertIn(b"There was an error trying to save the ACLs",
                                  c.ask("ACL", "SAVE")[1])
                finally:
                    os.rename(folder + ".moved", folder)
                self.assertEqual(os.listdir(folder), ["users.acl"])
                self.assertIn("Writing ACL file for ACL SAVE", server.log)

    def test_without_a_file_there_is_nothing_to_load(self):
        with pair() as servers:
            for args in (["ACL", "LOAD"], ["ACL", "SAVE"]):
                ours, theirs = (server.client().ask(*args) for server in servers)
                self.assertEqual(ours, theirs)


class Connections(unittest.TestCase):
    def scene(self, server, *changes):
        """Clients of several kinds; what each gets after the changes."""
        admin = server.client()
        admin.command("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all", "&a*", "&b", "&c*")
        clients = {}
        for name, args in (("plain", None), ("a1", ["SUBSCRIBE", "a1"]), ("b", ["SUBSCRIBE", "b"]),
                           ("c", ["PSUBSCRIBE", "c*"]), ("s", ["SSUBSCRIBE", "a1"]),
                           ("wait", ["BLPOP", "l", "0"]), ("multi", ["MULTI"])):
            client = server.client(3)
            client.command("AUTH", "u", "any")
            if args:
                client.send(*args)
                if name != "wait":
                    client.read()
            clients[name] = client
        clients["multi"].command("SET", "k", "v")
        replies = [admin.ask(*change) for change in changes]
        for name, client in clients.items():
            if name == "wait":
                replies.append((name, client.closed(0.2)))
            else:
                client_reply = self.last_words(client, "EXEC" if name == "multi" else "PING")
                replies.append((name, client_reply))
        replies.append(sorted(line.split(b"user=")[1].split()[0]
                              for line in admin.command("CLIENT", "LIST").splitlines()))
        return replies

    def last_words(self, client, word):
        try:
            return client.ask(word)
        except Exception as e:  # noqa: BLE001
            return type(e).__name__

    def both(self, *changes):
        with pair() as servers:
            ours, theirs = (self.scene(server, *changes) for server in servers)
        self.assertEqual(ours, theirs)
        return ours

    def test_a_user_who_is_deleted_loses_all_connections(self):
        said = self.both(["ACL", "DELUSER", "u"])
        self.assertEqual(said[-1], [b"default"])

    def test_subscribers_whose_channel_is_revoked_lose_theirs(self):
        said = dict(self.both(["ACL", "SETUSER", "u", "resetchannels", "&a*", "&c"])[1:-1])
        self.assertEqual(said["a1"], ("+", b"PONG"))
        self.assertEqual([said["b"], said["c"]], ["ServerDied", "ServerDied"])

    def test_more_channels_or_other_rules_disconnect_no_client(self):
        said = self.both(["ACL", "SETUSER", "u", "&d"], ["ACL", "SETUSER", "u", "-get", "off"],
                         ["ACL", "SETUSER", "u", "allchannels"])
        self.assertEqual(len(said[-1]), 8)

    def test_a_transaction_runs_under_the_rules_of_its_end(self):
        said = dict(self.both(["ACL", "SETUSER", "u", "-set"])[1:-1])
        self.assertIn(b"NOPERM ACLs rules changed between the moment", said["multi"][1][0][1])

    def test_who_deletes_its_own_user_still_gets_the_reply(self):
        with Redoubt() as server:
            c = server.client()
            c.command("ACL", "SETUSER", "u", "on", "nopass", "+@all")
            c.command("AUTH", "u", "x")
            self.assertEqual(c.ask("ACL", "DELUSER", "u"), (":", 1))
            self.assertTrue(c.closed())


class Replies(unittest.TestCase):
    def test_commands_and_their_errors_reply_alike(self):
        calls = [["CAT", "nosuch"], ["CAT", "a", "b"], ["GENPASS", "x"], ["GENPASS", "0"],
                 ["GENPASS", "4097"], ["GENPASS", "1", "2"], ["SETUSER", "a b"],
                 ["DRYRUN", "no", "x"],
                 ["SETUSER", "u\0", "on"], ["SETUSER", "u", "skip-sanitize-payload"],
                 ["GETUSER", "u"], ["SETUSER", "u", "sanitize-payload"], ["GETUSER", "u"],
                 ["GETUSER", "nosuch"], ["LOG", "x"], ["LOG", "-1"], ["LOG", "0"],
                 ["LOG", "1", "2"], ["LOG", "RESET"], ["DELUSER", "default"],
                 ["SETUSER", "u", "~a", "&b", "+set"],
                 ["DRYRUN", "u", "nosuch"], ["DRYRUN", "u", "set"],
                 ["DRYRUN", "u", "set", "b", "1"],
                 ["DRYRUN", "u", "set", "a", "1"], ["DRYRUN", "u", "get", "a"],
                 ["SETUSER", "u", "+publish"], ["DRYRUN", "u", "publish", "c", "m"],
                 ["DRYRUN", "u", "publish", "b", "m"], ["NOSUCH"]]
        with pair() as servers:
            clients = [server.client() for server in servers]
            for call in calls:
                self.assertEqual(*(c.ask("ACL", *call) for c in clients), call)
            for name in clients[1].command("ACL", "CAT"):
                self.assertEqual(*(sorted(c.command("ACL", "CAT", name)) for c in clients), name)


class Refused(unittest.TestCase):
    def test_a_refused_command_leaves_no_trace(self):
        with Redoubt({"appendonly": "yes", "appendfsync": "always"}) as server:
            admin, c = server.client(), server.client()
            admin.command("SET", "a", "1")
            admin.command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            admin.command("SET", "gone", "1", "PX", "1")
            time.sleep(0.01)
            admin.command("ACL", "SETUSER", "u", "on", "nopass", "%R~a", "+@all", "-flushall")
            c.command("AUTH", "u", "x")
            digest, log = admin.command("DEBUG", "DIGEST"), self.log_bytes(server)
            dirty = server.info()["rdb_changes_since_last_save"]
            for args in (["SET", "a", "2"], ["SET", "b", "1"], ["GET", "gone"], ["FLUSHALL"],
                         ["COPY", "a", "b"], ["RENAME", "a", "b"], ["SORT", "a", "STORE", "b"],
                         ["GETEX", "a", "PERSIST"], ["EXPIRE", "a", "1"], ["DEL", "a"]):
                reply = c.ask(*args)
                self.assertTrue(reply[1].startswith(b"NOPERM "), (args, reply))
            c.command("MULTI")
            self.assertIn(b"NOPERM", c.ask("SET", "a", "3")[1])
            self.assertIn(b"EXECABORT", c.ask("EXEC")[1])
            self.assertEqual(admin.command("DEBUG", "DIGEST"), digest)
            self.assertEqual(self.log_bytes(server), log)
            self.assertEqual(server.info()["rdb_changes_since_last_save"], dirty)

    def log_bytes(self, server):
        folder = server.path("appendonlydir")
        return [open(os.path.join(folder, name), "rb").read()
                for name in sorted(os.listdir(folder)) if name.endswith(".aof")]

    def test_statistics_and_the_log_name_the_refusal(self):
        with pair() as servers:
            said = []
            for server in servers:
                admin, c = server.client(), server.client()
                admin.command("ACL", "SETUSER", "u", "on", ">x", "+get", "+hello", "~a")
                out = [c.ask("AUTH", "u", "y"), c.ask("auth", "u", "x"),
                       c.ask("HELLO", "3", "AUTH", "u", "z")]
                c.ask("CLIENT", "SETNAME", "me")
                for args in (["SET", "a", "1"], ["GET", "b"], ["MULTI"], ["GET", "c"], ["EXEC"],
                             ["GET", "b"]):
                    out.append(c.ask(*args))
                info = server.info("all")
                out.append({key: value.split("usec=")[0] + value.split("rejected_calls=")[-1]
                            for key, value in info.items()
                            if key in ("cmdstat_set", "cmdstat_get", "errorstat_NOPERM",
                                       "errorstat_WRONGPASS", "errorstat_EXECABORT")})
                for entry in admin.command("ACL", "LOG"):
                    fields = dict(zip(entry[::2], entry[1::2]))
                    self.assertLess(float(fields.pop(b"age-seconds")), 60)
                    what = fields.pop(b"client-info").decode()
                    self.assertRegex(what, r"^id=\d+ addr=127.0.0.1:\d+ .* user=\w+ redir=-1")
                    out.append((fields, re.findall(r" cmd=(\S+)", what)))
                for args in (["NOSUCH"], ["CONFIG", "NOSUCH"], ["SET", "a", "1"]):
                    c.ask(*args)
                    what = admin.command("CLIENT", "LIST").decode()
                    out.append(re.findall(r" name=me .* cmd=(\S+)", what))
                said.append(out)
            self.assertEqual(*said)

    def test_scripts_run_under_the_rules_of_their_caller(self):
        with pair() as servers:
            said = []
            for server in servers:
                admin, c = server.client(), server.client()
                admin.command("RPUSH", "a-list", "1")
                admin.command("SET", "w1", "5")
                admin.command("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', "
                              "function(keys, args) return redis.call(unpack(args)) end)")
                admin.command("ACL", "SETUSER", "u", "on", "nopass", "~a*", "&ch", "+@all", "-set")
                c.command("AUTH", "u", "x")
                digest = admin.command("DEBUG", "DIGEST")
                out = []
                for args in (["set", "a", "1"], ["get", "a"], ["get", "b"], ["del", "b"],
                             ["publish", "ch", "m"], ["publish", "other", "m"],
                             ["sort", "a-list", "by", "w*"], ["sort", "a-list", "get", "#"],
                             ["acl", "whoami"], ["nope"]):
                    out.append(c.ask("EVAL", "return redis.call(unpack(ARGV))", "0", *args))
                    out.append(c.ask("EVAL", "return redis.pcall(unpack(ARGV)).err", "0", *args)
                               if args[0] != "sort" else None)
                    out.append(c.ask("FCALL", "f", "0", *args))
                    out.append(c.ask("EVAL", "return redis.acl_check_cmd(unpack(ARGV))", "0",
                                     *args))
                out.append(c.ask("EVAL", "return 1", "1", "b"))
                out.append(admin.command("DEBUG", "DIGEST") == digest)
                for entry in admin.command("ACL", "LOG"):
                    out.append(entry[:10])
                said.append(out)
            self.assertEqual(*said)

    def test_monitor_and_the_slow_log_hide_passwords(self):
        with Redoubt({"slowlog-log-slower-than": "0"}) as server:
            watcher, c = server.client(), server.client()
            watcher.command("MONITOR")
            c.command("ACL", "SETUSER", "u", "on", ">swordfish")
            c.command("AUTH", "u", "swordfish")
            c.ask("AUTH", "swordfish")
            c.ask("HELLO", "3", "AUTH", "u", "swordfish")
            server.client().command("SET", "end", "1")
            seen = b""
            while b'"end"' not in seen:
                seen += watcher._line()
            slow = repr(server.client().command("SLOWLOG", "GET", "100"))
            self.assertNotIn(b"swordfish", seen)
            self.assertNotIn("swordfish", slow + server.log)

    def test_a_renamed_command_keeps_its_rules(self):
        with pair({"rename-command": ["set", "put"]}) as servers:
            said = []
            for server in servers:
                c = server.client()
                out = [c.ask("ACL", "SETUSER", "u", "on", "nopass", "~*", "-put"),
                       c.ask("ACL", "SETUSER", "u", "on", "nopass", "~*", "+set"),
                       c.ask("AUTH", "u", "x"), c.ask("put", "a", "1"), c.ask("set", "a", "1"),
                       c.ask("get", "a")]
                said.append(out)
            self.assertEqual(*said)

    def test_the_command_table_has_the_names_of_clients(self):
        lines = [f"COMMAND {ask}" for ask in (
            "INFO get", "INFO lies", "INFO set", "INFO cfg|get", "INFO config|get", "INFO cfg get",
            "INFO lies get set mget", "DOCS lies", "DOCS get", "DOCS set", "DOCS cfg|get",
            "DOCS config|get", "COUNT", "GETKEYS get a", "GETKEYS lies a", "GETKEYS set a b",
            "GETKEYSANDFLAGS lies a", "GETKEYS cfg get a", "LIST FILTERBY PATTERN lies")]
        lines += ["LATENCY HISTOGRAM lies", "LATENCY HISTOGRAM get", "lies a", "get a"]
        args = ["--rename-command", "get", "lies", "--rename-command", "set", "",
                "--rename-command", "config", "cfg"]
        with pair(args=args) as servers:
            said = [[shape(line, s.client().ask(*line.split())) for line in lines]
                    for s in servers]
            for line, *replies in zip(lines, *said):
                with self.subTest(line):
                    self.assertEqual(*replies)
            listed = [{bytes(item[1]) for item in s.client().ask("COMMAND", "LIST")[1]}
                      for s in servers]
            self.assertEqual(*listed)
            counted = [len(s.client().ask("COMMAND")[1]) for s in servers]
            self.assertEqual(*counted)

    def test_hints_and_help_name_a_command_as_it_was_called(self):
        names = (("config", "cfg"), ("object", "obj"), ("xinfo", "xi"), ("client", "c"))
        args = [x for two in names for x in ("--rename-command", *two)]
        for kind in (Redoubt, Redis):
            with kind(args=args) as server:
                c = server.client()
                for name in ("cfg", "Obj", "xi", "c"):
                    hint = b"ERR unknown subcommand 'x'. Try %s HELP." % name.upper().encode()
                    self.assertEqual(c.ask(name, "x"), ("-", hint))
                    first = c.command(name, "help")[0]
                    self.assertEqual(first.split(b" <")[0], name.upper().encode())


if __name__ == "__main__":
    unittest.main()
