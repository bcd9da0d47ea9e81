"""redoubt capture --monitor beside a real master: history and blame name the clients."""

import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from capture_case import CaptureCase, Load, Proxy, eventually  # noqa: E402
from test_who import Client  # noqa: E402


class Monitor(CaptureCase):
    def recordings(self):
        return sorted(n for n in os.listdir(self.out) if n.endswith(".monitor"))

    def begin(self, master, *args, url=None):
        running = self.start(url or self.url(master), "-o", self.out, "--monitor", *args, "--json")
        eventually("it is there", lambda: self.acked(master) >= 0)
        eventually("it records", self.recordings)
        eventually("it watches", lambda: b"flags=O" in master.command("CLIENT", "LIST"))
        time.sleep(1.5)
        return running

    def client(self, master):
        client = Client(master.port)
        self.addCleanup(client.close)
        return client

    def end(self, running, master):
        """What the capture said."""
        self.wait_for(master)
        time.sleep(1.2)
        status, out, err = running.end()
        self.assertEqual(status, 143, err)
        return json.loads(out)["events"]

    def clients(self, key):
        out, _ = self.run_tool("history", key, "--in", self.out, "--json")
        return [v["client"] for v in map(json.loads, out.splitlines()) if "commands" in v]

    def run_tool(self, *args, expect=0):
        done = subprocess.run([os.environ["REDOUBT"], *args], capture_output=True, check=False)
        self.assertEqual(done.returncode, expect, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def test_two_clients_transactions_scripts_and_blocked_pops(self):
        master = self.server()
        waiting = self.client(master)
        waiting.send("BLPOP", "before", "0")
        running = self.begin(master)
        a, b = self.client(master), self.client(master)
        a.command("SET", "k", "1")
        b.command("INCRBYFLOAT", "k", "1.5")
        a.command("MULTI")
        b.command("APPEND", "k", "x")
        a.command("APPEND", "k", "x")
        a.command("APPEND", "k", "y")
        a.command("EXEC")
        b.command("EVAL", "redis.call('SET', KEYS[1], 'z\\n')", "1", "k")
        a.command("SET", "k", "v", "EX", "1000")
        b.command("GETDEL", "k")
        a.send("BLPOP", "l", "0")
        time.sleep(0.2)
        b.command("RPUSH", "l", "x", "y")
        b.command("LPOP", "l")
        b.command("RPUSH", "before", "x")
        self.end(running, master)
        self.assertEqual(self.clients("k"), [a.address, b.address, b.address, a.address,
                                             b.address, a.address, b.address])
        versions = self.clients("l")
        self.assertEqual(versions[0], b.address)
        self.assertEqual(set(versions[1:]) - {None, a.address, b.address}, set())
        self.assertEqual(self.clients("before"), [b.address, waiting.address])
        out, _ = self.run_tool("check-aof", self.out)
        self.assertIn("a sound capture", out)

    def test_nothing_is_recorded_without_the_option(self):
        master = self.server()
        running = self.start(self.url(master), "-o", self.out)
        eventually("it is there", lambda: self.acked(master) >= 0)
        master.command("SET", "k", "1")
        self.wait_for(master)
        self.assertNotIn(b"flags=O", master.command("CLIENT", "LIST"))
        running.end()
        self.assertEqual(self.recordings(), [])

    def test_where_it_is_refused_the_capture_goes_on(self):
        master = self.server()
        master.command("ACL", "SETUSER", "cap", "on", ">secret", "+psync", "+replconf", "+ping")
        running = self.start(self.url(master), "-o", self.out, "--monitor", "--json", "--user",
                             "cap", "-a", "secret")
        eventually("it is there", lambda: self.acked(master) >= 0)
        time.sleep(0.5)
        master.command("SET", "k", "1")
        self.wait_for(master)
        status, out, _ = running.end()
        self.assertEqual(status, 143)
        said = [e["text"] for e in json.loads(out)["events"] if e["event"] == "monitor"]
        self.assertEqual(len(said), 1)
        self.assertIn("NOPERM", said[0])
        self.assertEqual(self.recordings(), [])
        self.check_same(master)

    def test_without_the_list_of_clients_pops_are_unknown(self):
        master = self.server()
        master.command("ACL", "SETUSER", "cap", "on", ">secret", "+psync", "+replconf", "+ping",
                       "+monitor")
        running = self.begin(master, "--user", "cap", "-a", "secret")
        a = self.client(master)
        a.command("RPUSH", "l", "x", "y")
        a.command("LPOP", "l")
        self.end(running, master)
        self.assertEqual(self.clients("l"), [a.address, None])

    def test_lost_connections_are_gaps(self):
        master = self.server()
        with Proxy(master.port) as proxy:
            running = self.begin(master, url=f"redis://127.0.0.1:{proxy.port}")
            a = self.client(master)
            a.command("SET", "k", "1")
            time.sleep(3)
            proxy.deaf = True
            proxy.cut()
            a.command("SET", "k", "2")
            time.sleep(0.5)
            proxy.deaf = False
            eventually("it records again",
                       lambda: b"flags=O" in master.command("CLIENT", "LIST"))
            time.sleep(3)
            a.command("SET", "k", "3")
            events = self.end(running, master)
        said = [e["text"] for e in events if e["event"] == "monitor"]
        self.assertEqual(len(said), 3)
        self.assertIn("is not recorded", said[1])
        self.assertEqual(self.clients("k"), [a.address, None, a.address])

    def test_killed_and_continued(self):
        master = self.server()
        running = self.begin(master)
        a = self.client(master)
        a.command("SET", "k", "1")
        time.sleep(2)
        running.kill()
        a.command("SET", "k", "2")
        running = self.begin(master)
        time.sleep(1)
        a.command("SET", "k", "3")
        self.end(running, master)
        self.assertGreaterEqual(len(self.recordings()), 2)
        self.assertEqual(self.clients("k"), [a.address, None, a.address])
        self.run_tool("check-aof", self.out)

    def test_it_rotates_and_is_removed_with_the_segments(self):
        master = self.server()
        running = self.begin(master, "--segment-size", "1mb", "--keep-size", "6mb")
        load = Load(master.port)
        load.start()
        eventually("segments are removed",
                   lambda: not os.path.exists(os.path.join(self.out, self.recordings()[0]))
                   or int(self.recordings()[0][:8]) > 1)
        eventually("some more", lambda: int(self.recordings()[-1][:8]) > 8)
        load.stop()
        self.end(running, master)
        segments = sorted(int(n[:8]) for n in os.listdir(self.out) if n.endswith(".seg"))
        self.assertGreaterEqual(int(self.recordings()[0][:8]), segments[0])
        size = sum(os.path.getsize(os.path.join(self.out, n)) for n in os.listdir(self.out))
        self.assertLess(size, 9 << 20)
        self.run_tool("check-aof", self.out)

    def test_damage_is_found(self):
        master = self.server()
        running = self.begin(master)
        a = self.client(master)
        for i in range(5):
            a.command("SET", "k", i)
            time.sleep(0.3)
        self.end(running, master)
        path = os.path.join(self.out, self.recordings()[0])
        with open(path, "rb") as f:
            good = f.read()
        self.assertEqual(self.clients("k"), [a.address] * 5)
        for at in (3, 20, 100, 150, len(good) // 2, len(good) - 60, len(good) - 3):
            with open(path, "wb") as f:
                f.write(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
            named = [c for c in self.clients("k") if c is not None]
            self.assertEqual(set(named) - {a.address}, set())
            if at < len(good) - 56:
                self.run_tool("check-aof", self.out, expect=1)
        with open(path, "wb") as f:
            f.write(good[:-100])
        self.run_tool("check-aof", self.out)


if __name__ == "__main__":
    unittest.main()
