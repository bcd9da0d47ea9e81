"""Going back in time in a log: what is not known is refused, and nothing is passed over.

REDOUBT names the program.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest

REDOUBT = os.environ.get("REDOUBT", "redoubt")


def command(*args):
    parts = [a.encode() if isinstance(a, str) else a for a in args]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


def rdb(ctime=None):
    aux = b""
    if ctime is not None:
        text = str(ctime).encode()
        aux = b"\xfa\x05ctime" + bytes([len(text)]) + text
    return b"REDIS0010" + aux + b"\xfe\x00\x00\x04base\x011\xff" + bytes(8)


def at(second):
    return b"#TS:%d\r\n" % second


SELECT, SET, FLUSH = command("SELECT", "0"), command("SET", "k", "v"), command("FLUSHALL")


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redoubt-back-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = os.path.join(self.folder, "out")

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def log(self, incr, base=None):
        """A log with or without a base; its path."""
        lines = b""
        if base is not None:
            kind = "rdb" if base[:5] == b"REDIS" else "aof"
            self.write(f"a.1.base.{kind}", base)
            lines = b"file a.1.base.%s seq 1 type b\n" % kind.encode()
        self.write("a.1.incr.aof", incr)
        return self.write("a.manifest", lines + b"file a.1.incr.aof seq 1 type i\n")

    def run_tool(self, *args, status=0):
        run = subprocess.run([REDOUBT, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, timeout=600)
        self.assertEqual(run.returncode, status, (args, run.stdout, run.stderr))
        return run

    def keys(self, *args, status=0):
        run = self.run_tool("convert", "--to", "ndjson", *args, status=status)
        return sorted(json.loads(line)["key"] for line in run.stdout.splitlines())


class UntilTime(Case):
    def refused(self, log, time, word):
        """By every tool, with nothing written."""
        for args in (("convert", "--to", "rdb", "-o", self.out),
                     ("convert", "--to", "ndjson"),
                     ("check-aof", "--yes", "--truncate-to-timestamp")):
            more = () if args[0] == "check-aof" else ("--until-time",)
            run = self.run_tool(*args, *more, str(time), log, status=2)
            self.assertIn(word, run.stderr, args)
            self.assertFalse(os.path.exists(self.out))
        left = [n for n in os.listdir(self.folder) if "redoubt-save" in n]
        self.assertEqual(left, [])

    def test_without_annotations_it_is_refused_and_the_setting_is_named(self):
        self.refused(self.log(SELECT + SET + FLUSH), 100, b"aof-timestamp-enabled")
        self.refused(self.log(SELECT + SET + FLUSH, rdb(10)), 100, b"aof-timestamp-enabled")
        self.refused(self.write("one.aof", SELECT + SET + FLUSH), 100, b"aof-timestamp-enabled")

    def test_a_base_that_is_later_is_refused(self):
        later = b"the base is from 1970-01-01T00:00:20Z"
        self.refused(self.log(at(30) + SELECT + SET, rdb(20)), 15, later)
        self.refused(self.log(at(30) + SET, at(20) + SELECT + SET), 15, later)
        self.refused(self.write("one.aof", rdb(20) + at(30) + SELECT + SET), 15,
                     b"the base is from")

    def test_a_base_that_does_not_say_when_it_was_made(self):
        log = self.log(at(30) + SELECT + SET, rdb())
        self.refused(log, 15, b"does not record its time")
        self.assertEqual(self.keys("--until-time", "30", log), ["base", "k"])

    def test_between_base_and_first_annotation_it_is_the_base(self):
        log = self.log(at(30) + SELECT + SET, rdb(10))
        self.assertEqual(self.keys("--until-time", "15", log), ["base"])

    def test_annotations_that_begin_later_than_that(self):
        log = self.log(SELECT + SET + at(30) + FLUSH, rdb(10))
        self.refused(log, 15, b"no time")
        self.assertEqual(self.keys("--until-time", "29", self.log(at(20) + SELECT + SET + at(30) +
                                                                  FLUSH, rdb(10))), ["base", "k"])

    def test_a_log_that_begins_later(self):
        self.refused(self.log(at(30) + SELECT + SET), 15,
                     b"the log begins at 1970-01-01T00:00:30Z, later than 1970-01-01T00:00:15Z")

    def test_annotations_that_end_before_it(self):
        log = self.log(at(20) + SELECT + SET, rdb(10))
        run = self.run_tool("convert", "--to", "resp", "--until-time", "1000", log)
        self.assertIn(b"the log ends before that time", run.stderr)


class Show(Case):
    def test_times_that_a_log_does_not_have(self):
        log = self.log(SELECT + SET + FLUSH)
        for option in ("--from", "--until"):
            run = self.run_tool("show", option, "100", log, status=2)
            self.assertIn(b"aof-timestamp-enabled", run.stderr)
        run = self.run_tool("show", "--until", "100", self.log(SELECT + at(30) + SET))
        self.assertIn(b"1 command has no time", run.stderr)


class UntilOffset(Case):
    def test_a_place_after_the_end_is_a_mistake(self):
        one = self.write("one.aof", SELECT + SET)
        size = len(SELECT + SET)
        self.assertEqual(self.keys("--until-offset", str(size), one), ["k"])
        run = self.run_tool("convert", "--to", "resp", "--until-offset", str(size + 1), one,
                            status=2)
        self.assertIn(b"%d" % size, run.stderr)
        log = self.log(SELECT + SET)
        self.run_tool("convert", "--to", "resp", "--until-offset", f"a.1.incr.aof:{size + 1}",
                      log, status=2)
        self.run_tool("convert", "--to", "resp", "--until-offset", f"a.1.incr.aof:{size}", log)

    def test_a_place_inside_of_the_snapshot_is_a_mistake(self):
        log = self.log(SELECT + SET, rdb(10))
        run = self.run_tool("convert", "--to", "resp", "--until-offset", "a.1.base.rdb:3", log,
                            status=2)
        self.assertIn(b"snapshot", run.stderr)
        one = self.write("one.aof", rdb(10) + SELECT + SET)
        self.run_tool("convert", "--to", "resp", "--until-offset", "3", one, status=2)
        self.assertEqual(self.keys("--until-offset", str(len(rdb(10))), one), ["base"])


class Errors(Case):
    def test_a_command_that_fails_is_status_8_with_its_offset(self):
        log = self.write("a.aof", SELECT + SET + command("LPUSH", "k", "x"))
        place = b"a.aof at byte %d: WRONGTYPE" % len(SELECT + SET)
        for args in (("convert", "--to", "rdb", "-o", self.out), ("stat",)):
            self.assertIn(place, self.run_tool(*args, log, status=8).stderr)
        self.assertTrue(os.path.exists(self.out))
        run = self.run_tool("stat", "--json", log, status=8)
        self.assertEqual(json.loads(run.stdout)["exit_status"], 8)


CODE = "#!lua name=mylib\nredis.register_function('f', function() return 1 end)\n"
OTHER = "#!lua name=other\nredis.register_function('g', function() return 2 end)\n"
LONG = ("#!lua name=long\n" + "-- a comment\n" * 3000 +
        "redis.register_function('h', function(k) return redis.call('incr', k[1]) end)\n")


class Functions(Case):
    def libraries(self, log, status=0):
        self.run_tool("convert", "--to", "rdb", "--force", "-o", self.out, log, status=status)
        self.run_tool("check-rdb", self.out)
        out = self.run_tool("convert", "--to", "resp", self.out).stdout
        return out.count(b"\r\nFUNCTION\r\n"), out

    def test_they_are_loaded_and_come_back(self):
        load = command("FUNCTION", "LOAD", CODE) + command("FUNCTION", "LOAD", LONG)
        log = self.write("a.aof", SELECT + load + SET)
        n, out = self.libraries(log)
        self.assertEqual(n, 2)
        self.assertIn(CODE.encode(), out)
        self.assertIn(LONG.encode(), out)
        self.run_tool("stat", log)
        self.run_tool("diff", log, self.out)
        self.run_tool("split", "--by", "db", "-o", self.out + ".d", log)
        self.run_tool("merge", "-o", self.out + ".m", log,
                      self.write("b.aof", command("SET", "z", "1")))

    def test_replace_delete_and_flush(self):
        load = command("FUNCTION", "LOAD", CODE)
        again = command("FUNCTION", "LOAD", "REPLACE", CODE + "-- new\n")
        other = command("function", "load", OTHER)
        for more, want in ((again, 1), (other, 2),
                           (other + command("FUNCTION", "DELETE", "mylib"), 1),
                           (command("FUNCTION", "FLUSH"), 0),
                           (command("FUNCTION", "FLUSH", "ASYNC") + other, 1)):
            n, out = self.libraries(self.write("a.aof", SELECT + load + more))
            self.assertEqual(n, want, more)
            self.assertEqual(b"-- new" in out, more == again)

    def test_what_a_server_would_refuse_is_status_8(self):
        load = command("FUNCTION", "LOAD", CODE)
        for bad, word in ((load, b"already exists"),
                          (command("FUNCTION", "DELETE", "x"), b"not found"),
                          (command("FUNCTION", "LOAD", "no head"), b"metadata"),
                          (command("FUNCTION", "RESTORE", "junk"), b"payload")):
            log = self.write("a.aof", SELECT + load + bad)
            run = self.run_tool("stat", log, status=8)
            self.assertIn(b"at byte %d" % len(SELECT + load), run.stderr)
            self.assertIn(word, run.stderr)

    def test_scripts_that_are_only_loaded_change_nothing(self):
        log = self.write("a.aof", SELECT + command("SCRIPT", "LOAD", "return 1") +
                         command("SCRIPT", "FLUSH") + SET)
        self.assertEqual(self.keys(log), ["k"])

    def test_code_runs_and_its_commands_take_effect(self):
        write = "redis.call('set', KEYS[1], ARGV[1])"
        sha = hashlib.sha1(write.encode()).hexdigest()
        log = self.write("a.aof", SELECT + SET +
                         command("EVAL", write, "1", "a", "1") +
                         command("EVALSHA", sha, "1", "b", "1") +
                         command("FUNCTION", "LOAD", LONG) + command("FCALL", "h", "1", "c") +
                         command("EVAL", "redis.call('publish', 'x', 'y')", "0"))
        self.assertEqual(sorted(self.keys(log)), ["a", "b", "c", "k"])

    def test_scripts_of_old_servers_see_sets_in_order_and_the_same_chance(self):
        script = ("redis.call('rpush', 'l', unpack(redis.call('smembers', 's'))) "
                  "redis.call('rpush', 'r', math.random(1000000))")
        members = [f"m{i:03}" for i in range(300)]
        log = self.write("a.aof", SELECT + command("SADD", "s", *reversed(members)) +
                         command("EVAL", script, "0") + command("EVAL", script, "0"))
        out = self.run_tool("convert", "--to", "ndjson", log).stdout.decode()
        values = {key["key"]: key["value"] for key in map(json.loads, out.splitlines())
                  if "key" in key}
        self.assertEqual(values["l"], members + members)
        self.assertEqual(values["r"], ["170829"] * 2)

    def values(self, log, status=0):
        out = self.run_tool("convert", "--to", "ndjson", log, status=status).stdout.decode()
        return {key["key"]: key["value"] for key in map(json.loads, out.splitlines())
                if "key" in key}

    def test_scripts_of_old_servers_do_not_write_after_chance(self):
        write = "redis.pcall('rpush', 'l', '%s') "
        for chance in ("randomkey", "time", "srandmember', 's", "scan', '0", "lastsave"):
            script = write % "before" + f"redis.call('{chance}') " + write % "after"
            log = self.write("a.aof", SELECT + SET + command("EVAL", script, "0"))
            self.assertEqual(self.values(log)["l"], ["before"], chance)
        script = write % "a" + "redis.call('get', 'k') redis.call('dbsize') " + write % "b"
        log = self.write("a.aof", SELECT + SET + command("EVAL", script, "0"))
        self.assertEqual(self.values(log)["l"], ["a", "b"])

    def test_scripts_of_old_servers_stay_scripts_once_they_wrote(self):
        ask = "redis.call('rpush', 'l', tostring(redis.replicate_commands())) "
        log = self.write("a.aof", SELECT + command("EVAL", ask + ask, "0"))
        self.assertEqual(self.values(log)["l"], ["true", "false"])

    def test_a_script_in_a_transaction_has_its_own_multi_and_exec(self):
        multi, done = command("MULTI"), command("EXEC")
        log = self.write("a.aof", SELECT + multi + command("RPUSH", "l", "a") + multi +
                         command("RPUSH", "l", "b") + done + command("RPUSH", "l", "c") + done)
        self.assertEqual(self.values(log), {"l": ["a", "b", "c"]})
        self.assertEqual(self.run_tool("stat", log).stderr, b"")
        self.assertIn(b"redis.replicate_commands()", self.run_tool("check-aof", log).stdout)

    def test_a_script_that_fails_has_failed_on_the_server_too(self):
        for script in ("error('no')", "redis.call('set', 'a', '1') redis.call('incr', 'k')"):
            log = self.write("a.aof", SELECT + SET + command("EVAL", script, "0"))
            self.assertEqual(self.run_tool("stat", log).stderr, b"")

    def test_a_script_that_cannot_run_is_counted(self):
        for cmd in (command("EVALSHA", "0" * 40, "0"), command("EVAL", "(", "0"),
                    command("EVAL", "redis.call('set', 'a', redis.call('info'))", "0")):
            log = self.write("a.aof", SELECT + SET + cmd)
            run = self.run_tool("stat", log, status=8)
            self.assertIn(b"at byte %d" % len(SELECT + SET), run.stderr)

    def test_scripts_in_a_snapshot_are_found_by_their_digest(self):
        short = b"redis.call('set', KEYS[1], 'short')"
        long = b"redis.call('set', KEYS[1], 'long') --" + b"x" * 300000
        aux = b"".join(b"\xfa\x03lua\x80" + len(code).to_bytes(4, "big") + code
                       for code in (short, b"no (", long))
        calls = b"".join(command("EVALSHA", hashlib.sha1(code).hexdigest(), "1", name)
                         for code, name in ((short, "a"), (long, "b")))
        log = self.log(SELECT + calls, b"REDIS0009" + aux + b"\xff" + bytes(8))
        self.assertEqual(self.values(log), {"a": "short", "b": "long"})

    def test_save_in_a_log_of_2_6_changes_nothing(self):
        self.assertEqual(self.keys(self.write("a.aof", SELECT + SET + command("SAVE"))), ["k"])


if __name__ == "__main__":
    unittest.main()
