"""redoubt diff and a server that changes, lies or breaks while it is read: a fake one."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fake_server import FakeServer, array, bulk, dump  # noqa: E402
from rdb_text import STRING, Key, snapshot  # noqa: E402

REDOUBT = os.environ.get("REDOUBT", "redoubt")
LATER = 4102444800000


def text(value):
    return dump(b"\0" + bytes([len(value)]) + value)


class Story:
    """What a server holds. Each value is a payload, or a list of (payload, expiry before, expiry
    after) for one question after the other."""

    def __init__(self, keys, scans=None, old=False, info=b"db0:keys=1", **answers):
        self.keys = keys
        self.scans = scans or [list(keys)]
        self.old = old
        self.info = info
        self.answers = {name.encode().replace(b"_", b" "): a for name, a in answers.items()}
        self.asked = {}

    def turn(self, name):
        reported = self.keys.get(name)
        if not isinstance(reported, list):
            return (reported, -1 if reported else -2, -1 if reported else -2)
        n = self.asked.get(name, 0) // 2
        return reported[min(n, len(reported) - 1)]

    def expiry(self, name):
        n = self.asked.get(name, 0)
        at = self.turn(name)[1 + n % 2]
        self.asked[name] = n + 1
        return at

    def __call__(self, args):
        command = args[0].upper()
        for name in (command, b" ".join(args[:2]).upper()):
            if name in self.answers:
                return self.answers[name]
        if command == b"SCAN":
            n = int(args[1])
            last = n + 1 >= len(self.scans)
            return array([bulk(b"0" if last else b"%d" % (n + 1)),
                          array([bulk(key) for key in self.scans[n]])])
        if command == b"DUMP":
            return bulk(self.turn(args[1])[0])
        if command == b"PEXPIRETIME" and self.old:
            return b"-ERR unknown command 'PEXPIRETIME'\r\n"
        if command in (b"PEXPIRETIME", b"PTTL"):
            return b":%d\r\n" % self.expiry(args[1])
        if command == b"TIME":
            return array([bulk(b"%d" % (LATER // 1000)), bulk(b"0")])
        if command == b"INFO":
            return bulk(b"# Keyspace\r\n" + self.info + b"\r\n")
        return b"-ERR unknown command '%s'\r\n" % args[0]


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redoubt-diff-")
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "a.rdb")

    def diff(self, story, keys=(), *args, status=0):
        with open(self.file, "wb") as f:
            f.write(snapshot(list(keys)))
        with FakeServer(story) as server:
            url = f"redis://127.0.0.1:{server.port}"
            run = subprocess.run([REDOUBT, "diff", *args, self.file, url], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, timeout=600)
            self.seen = server.seen
        self.assertEqual(run.returncode, status, (run.stdout, run.stderr))
        self.err = run.stderr.decode()
        return run.stdout.decode()


class Changing(Case):
    def test_a_key_that_is_named_twice_is_one(self):
        story = Story({b"a": text(b"1"), b"b": text(b"2")}, scans=[[b"a", b"b"], [b"a"], [b"b"]])
        out = self.diff(story, [Key(b"a", STRING, b"1"), Key(b"b", STRING, b"2")])
        self.assertIn("2 and 2 keys", out)

    def test_what_was_read_later_counts(self):
        story = Story({b"a": [(text(b"1"), -1, -1), (text(b"2"), -1, -1)]}, scans=[[b"a"], [b"a"]])
        self.diff(story, [Key(b"a", STRING, b"2")])

    def test_keys_that_went_away_are_reported_and_not_compared(self):
        story = Story({b"a": text(b"1")}, scans=[[b"gone", b"a"]])
        reported = json.loads(self.diff(story, [Key(b"a", STRING, b"1")], "--json"))
        self.assertEqual(reported["gone"], [0, 1])
        self.assertIn("1 key disappeared", self.err)

    def test_an_expiry_that_moves_is_read_again(self):
        story = Story({b"a": [(text(b"1"), LATER, -1), (text(b"2"), -1, LATER), (None, LATER, -2),
                              (text(b"3"), LATER, LATER)]})
        self.diff(story, [Key(b"a", STRING, b"3", 0, LATER)], status=1)  # gone at the third time
        story = Story({b"a": [(text(b"1"), LATER, -1), (text(b"2"), -1, LATER),
                              (text(b"3"), LATER, LATER)]})
        self.diff(story, [Key(b"a", STRING, b"3", 0, LATER)])

    def test_an_expiry_that_keeps_changing_is_reported(self):
        story = Story({b"a": [(text(b"1"), LATER, LATER + 1)]})
        reported = json.loads(self.diff(story, [Key(b"a", STRING, b"1", 0, LATER)], "--json"))
        self.assertEqual(reported["changing"], [0, 1])
        self.assertIn("the expiry of 1 key changed", self.err)

    def test_expiries_of_old_servers_are_near_enough(self):
        story = Story({b"a": [(text(b"1"), 5000, 4999)]}, old=True)
        self.diff(story, [Key(b"a", STRING, b"1", 0, LATER + 5900)])
        self.assertIn("up to 1000 ms are ignored", self.err)
        self.diff(Story(story.keys, old=True), [Key(b"a", STRING, b"1", 0, LATER + 6100)], status=1)


class Asking(Case):
    def test_only_what_the_filter_may_want_is_asked_for(self):
        story = Story({b"a:1": text(b"1"), b"b:1": text(b"2")},
                      info=b"db0:keys=2\r\ndb7:keys=1", SELECT=b"+OK\r\n")
        self.diff(story, [Key(b"a:1", STRING, b"1"), Key(b"c", STRING, b"1")], "--prefix", "a:",
                  "--db", "0")
        self.assertEqual([args for args in self.seen if args[0] == b"DUMP"], [[b"DUMP", b"a:1"]])
        self.assertNotIn([b"SELECT", b"7"], self.seen)

    def test_after_long_values_fewer_are_asked_for(self):
        long = dump(b"\0\x80" + (1 << 20).to_bytes(4, "big") + b"x" * (1 << 20))
        names = [b"%03d" % i for i in range(100)]
        story = Story({name: long for name in names}, old=True)
        self.diff(story, [Key(name, STRING, b"x" * (1 << 20)) for name in names], "--fast")
        # An old server is asked for its clock at the beginning of each turn.
        turns = [0]
        for args in self.seen:
            if args[0] == b"TIME":
                turns.append(0)
            turns[-1] += args[0] == b"DUMP"
        self.assertEqual(turns[1:7], [32, 16, 8, 4, 2, 2])

    def test_one_database_is_asked_for_by_n_or_the_url(self):
        story = Story({b"a": text(b"1")}, SELECT=b"+OK\r\n")
        self.diff(story, [Key(b"a", STRING, b"1", 5)], "-n", "5")
        self.assertIn([b"SELECT", b"5"], self.seen)
        self.assertNotIn(b"INFO", [args[0] for args in self.seen])


class Strange(Case):
    def refused(self, story, word, status=6):
        self.diff(story, status=status)
        self.assertIn("redoubt diff: 127.0.0.1:", self.err)
        self.assertIn(word, self.err)

    def test_types_that_are_not_known_are_reported(self):
        story = Story({b"a": text(b"1"), b"new": dump(b"\x63abc")})
        reported = json.loads(self.diff(story, [Key(b"a", STRING, b"1")], "--json", status=8))
        self.assertEqual(reported["not_compared"], [0, 1])
        self.assertIn('"new" in db 0', self.err)

    def test_versions_that_are_not_known_are_refused(self):
        self.refused(Story({b"a": dump(b"\0\1x", 79)}), "version 79", 4)

    def test_payloads_that_are_damaged_are_refused(self):
        good = text(b"hello")
        self.refused(Story({b"a": good[:3] + b"?" + good[4:]}), "checksum")
        self.refused(Story({b"a": b"short"}), "too short")

    def test_each_payload_may_have_the_version_that_its_value_needs(self):
        value = b"\0\1x"
        keys = [Key(b"a", STRING, b"x"), Key(b"b", STRING, b"x"), Key(b"c", STRING, b"x")]
        for versions in ((10, 12, 13), (13, 10, 12), (80, 10, 11), (10, 80, 11), (14, 15, 13)):
            with self.subTest(versions=versions):
                payloads = (dump(value, version) for version in versions)
                self.diff(Story(dict(zip((b"a", b"b", b"c"), payloads))), keys)

    def test_types_are_those_of_the_version_of_their_own_payload(self):
        new = dump(b"\x16\0", 11)  # 22 in a version that ends at 21
        story = Story({b"a": dump(b"\0\1x", 12), b"b": new})
        reported = json.loads(self.diff(story, [Key(b"a", STRING, b"x")], "--json", status=8))
        self.assertEqual(reported["not_compared"], [0, 1])

    def test_versions_whose_types_differ_are_refused(self):
        value = b"\0\1x"
        for versions in ((12, 80), (80, 13), (14, 16), (16, 15)):
            with self.subTest(versions=versions):
                a, b = (dump(value, version) for version in versions)
                self.refused(Story({b"a": a, b"b": b}), "different versions")

    def test_a_value_that_is_not_what_its_frame_says_is_damage(self):
        self.diff(Story({b"a": dump(b"\0\5hel")}), status=1)
        self.assertIn("truncated", self.err)

    def test_replies_that_make_no_sense(self):
        for name, reply in (("SCAN", b"+OK\r\n"), ("SCAN", b"*1\r\n:1\r\n"), ("DUMP", b":1\r\n"),
                            ("DUMP", b"*1\r\n:1\r\n"), ("INFO", b"HTTP/1.1 400\r\n"),
                            ("SCAN", array([bulk(b"9" * 40), array([])])),
                            ("FUNCTION", bulk(b"x")), ("FUNCTION", b"+OK\r\n")):
            with self.subTest(name=name, reply=reply):
                self.diff(Story({b"a": text(b"1")}, **{name: reply}), status=6)

    def test_the_connection_breaks(self):
        for name in ("SCAN", "DUMP", "INFO", "PEXPIRETIME"):
            with self.subTest(name=name):
                self.refused(Story({b"a": text(b"1")}, **{name: None}), "closed the connection")
        whole = bulk(text(b"hello"))
        for n in range(1, len(whole)):
            with self.subTest(n=n):
                self.refused(Story({b"a": text(b"1")}, DUMP=(whole[:n], None)),
                             "closed the connection")

    def test_what_the_server_refuses_is_reported_with_a_hint(self):
        for name, word, hint in (
                ("SCAN", "NOPERM this user", "ACL"), ("DUMP", "NOPERM this user", "ACL"),
                ("INFO", "NOAUTH Authentication", "REDISCLI_AUTH"),
                ("DUMP", "MOVED 1 h:1", "cluster"), ("INFO", "LOADING Redis", "later"),
                ("INFO", "DENIED Redis", "protected")):
            with self.subTest(word=word):
                self.refused(Story({b"a": text(b"1")}, **{name: b"-%s\r\n" % word.encode()}), word)
                self.assertIn(hint, self.err)

    def test_control_bytes_of_a_server_do_not_reach_a_terminal(self):
        self.refused(Story({}, INFO=b"-ERR \x1b[31m\x07\r\n"), "\\x1b")
        self.assertNotIn("\x1b", self.err)

    def test_functions_that_may_not_be_read_are_not_compared(self):
        story = Story({}, FUNCTION=b"-NOPERM no\r\n")
        self.diff(story)
        self.assertIn("functions are not compared", self.err)


if __name__ == "__main__":
    unittest.main()
