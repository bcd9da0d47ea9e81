"""redoubt capture beside a real master: not a byte missing, whatever happens to either of them."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import certificates  # noqa: E402
import redis_server  # noqa: E402
from capture_case import (  # noqa: E402
    REDOUBT, CaptureCase, Load, Proxy, acknowledged, eventually)
from fake_server import FakeServer  # noqa: E402
from redis_server import ReplyError, RedisServer, free_port  # noqa: E402

LONG = bool(os.environ.get("REDOUBT_LONG"))


class Stream(CaptureCase):
    def test_what_is_captured_is_the_master(self):
        for ack in ("received", "written", "synced"):
            with self.subTest(ack=ack):
                self.out = os.path.join(self.folder, ack)
                master = self.server()
                master.command("SET", "before", "1")
                running = self.start(self.url(master), "-o", self.out, "--ack", ack, "--json")
                eventually("it is there", lambda: self.acked(master) >= 0)
                load = Load(master.port)
                load.start()
                eventually("it has written", lambda: load.n >= 20)
                load.stop()
                self.wait_for(master)
                acknowledged(master)
                status, out, err = running.end()
                self.assertEqual(status, 143, err)
                reported = json.loads(out)
                self.assertEqual([e["event"] for e in reported["events"]], ["full", "snapshot"])
                target = reported["targets"][0]
                self.assertEqual(target["received"], target["synced"])
                self.assertGreaterEqual(target["synced"], self.offset(master) - 50)
                self.assertGreater(target["commands"], 200)
                self.check_same(master)

    def test_a_command_of_megabytes(self):
        master = self.server()
        self.start(self.url(master), "-o", self.out)
        eventually("it is there", lambda: self.acked(master) >= 0)
        for n in range(3):
            master.command("SET", "big%d" % n, b"x" * (9 << 20))
        self.wait_for(master)
        self.check_same(master)

    def test_a_replica_with_another_database_selected(self):
        master = self.server()
        replica = self.server()
        replica.command("REPLICAOF", "127.0.0.1", master.port)
        eventually("it follows", lambda: b"link_status:up" in replica.command("INFO"))
        master.command("SELECT", 5)
        master.command("SET", "a", 1)
        eventually("it has it", lambda: b"db5" in replica.command("INFO", "keyspace"))
        self.start(self.url(replica), "-o", self.out)
        eventually("it is there", lambda: self.acked(replica) >= 0)
        master.command("SET", "b", 2)
        acknowledged(master)
        self.wait_for(replica)
        self.check_same(master)

    def test_a_unix_socket_and_a_user_who_may_nothing_else(self):
        path = os.path.join(self.folder, "socket")
        master = self.server(unixsocket=path)
        master.command("ACL", "SETUSER", "cap", "on", ">s3cret-word", "+psync", "+replconf",
                       "+ping")
        with open(os.path.join(self.folder, "pass"), "w") as f:
            f.write("s3cret-word\n")
        self.start(f"unix://{path}", "--user", "cap", "--pass-file", f.name, "-o", self.out)
        eventually("it is there", lambda: self.acked(master) >= 0)
        master.command("SET", "a", 1)
        self.wait_for(master)
        self.check_same(master)


class Tls(CaptureCase):
    def test_a_master_after_tls_and_a_client_with_a_certificate(self):
        certificates.make(self.folder)
        port = free_port()
        names = {"cert": "server.crt", "key": "server.key", "ca_cert": "ca.crt"}
        master = self.server(tls_port=str(port), tls_auth_clients="yes", **{
            f"tls_{option}_file": os.path.join(self.folder, name)
            for option, name in names.items()})
        url = f"rediss://127.0.0.1:{port}"
        trust = ["--cacert", os.path.join(self.folder, "ca.crt")]
        mine = ["--cert", os.path.join(self.folder, "client.crt"),
                "--tls-key", os.path.join(self.folder, "client.key")]
        for args in ([], trust):
            _, err = self.run_capture(url, "-o", self.out, *args, status=6)
            self.assertIn("hint: ", err)
        master.command("SET", "big", b"x" * 9000000)
        running = self.start(url, "-o", self.out, *trust, *mine)
        eventually("it is there", lambda: self.acked(master) >= 0)
        load = Load(master.port)
        load.start()
        time.sleep(0.5)
        load.stop()
        self.wait_for(master)
        self.assertEqual(running.end()[0], 143)
        self.check_same(master)
        path = os.path.join(self.folder, "x.rdb")
        out, _ = self.run_capture(url, "--rdb-only", path, *trust, *mine)
        self.assertIn("verified", out)


class Cuts(CaptureCase):
    def test_killed_again_and_again(self):
        master = self.server()
        load = Load(master.port, pause=0.002)
        load.start()
        for n in range(50 if LONG else 6):
            running = self.start(self.url(master), "-o", self.out, "--segment-size", "1mb")
            eventually("it is there", lambda: self.acked(master) >= 0)
            time.sleep(load.random.random() * 0.4)
            running.kill()
        running = self.start(self.url(master), "-o", self.out, "--json")
        eventually("it is there", lambda: self.acked(master) >= 0)
        load.stop()
        self.wait_for(master)
        status, out, err = running.end()
        self.assertEqual(status, 143, err)
        target = json.loads(out)["targets"][0]
        self.assertEqual((target["full_syncs"], target["partial_syncs"]), (0, 1))
        self.assertEqual(target["chapter"], 1)
        self.check_same(master)

    def test_a_network_that_cuts_delays_and_throttles(self):
        master = self.server()
        with Proxy(master.port) as proxy:
            running = self.start(f"redis://127.0.0.1:{proxy.port}", "-o", self.out, "--json")
            eventually("it is there", lambda: self.acked(master) >= 0)
            load = Load(master.port, pause=0.005)
            load.start()
            for n in range(20 if LONG else 5):
                proxy.pause, proxy.piece = ((0, 1 << 16), (0.01, 1 << 12), (0.002, 333))[n % 3]
                sent = proxy.sent
                eventually("some of the stream comes", lambda: proxy.sent > sent + 2000)
                proxy.cut()
            proxy.pause, proxy.piece = 0, 1 << 16
            proxy.cut()
            load.stop()
            self.wait_for(master)
            status, out, err = running.end()
        self.assertEqual(status, 143, err)
        target = json.loads(out)["targets"][0]
        self.assertEqual(target["full_syncs"], 1)
        self.assertGreaterEqual(target["partial_syncs"], 3)
        self.check_same(master)

    def test_cut_while_the_snapshot_comes(self):
        master = self.server(rdbcompression="no")
        master.command("EVAL", "for i=1,20000 do redis.call('set',i,string.rep('x',300)) end", 0)
        with Proxy(master.port) as proxy:
            proxy.pause, proxy.piece = 0.02, 1 << 14
            running = self.start(f"redis://127.0.0.1:{proxy.port}", "-o", self.out, "--json")
            eventually("a part is there", lambda: proxy.sent > 500000)
            self.assertTrue([n for n in os.listdir(self.out) if n.endswith(".part")])
            proxy.pause, proxy.piece = 0, 1 << 16
            proxy.cut()
            eventually("it is there", lambda: self.acked(master) >= 0)
            master.command("SET", "a", 1)
            self.wait_for(master)
            status, out, err = running.end()
        self.assertEqual(json.loads(out)["targets"][0]["full_syncs"], 2, err)
        self.assertEqual([n for n in os.listdir(self.out) if n.endswith(".part")], [])
        self.check_same(master)

    def test_a_replica_that_was_promoted_goes_on(self):
        master, replica = self.server(), self.server()
        replica.command("REPLICAOF", "127.0.0.1", master.port)
        eventually("it follows", lambda: b"link_status:up" in replica.command("INFO"))
        with Proxy(master.port) as proxy:
            running = self.start(f"redis://127.0.0.1:{proxy.port}", "-o", self.out, "--json")
            eventually("it is there", lambda: b"connected_slaves:2" in master.command("INFO"))
            for n in range(100):
                master.command("INCR", "n")
            acknowledged(master, 2)
            replica.command("REPLICAOF", "NO", "ONE")
            proxy.target = replica.port
            proxy.cut()
            replica.command("SET", "after", "1")
            eventually("it is there", lambda: self.acked(replica) >= 0)
            self.wait_for(replica)
            status, out, err = running.end()
        reported = json.loads(out)["targets"][0]
        self.assertEqual((reported["full_syncs"], reported["partial_syncs"], reported["chapter"]),
                         (1, 1, 2))
        self.assertEqual([s[2] for s in self.segments()], ["1", "2"], err)
        self.check_same(replica)

    def test_a_master_that_starts_again(self):
        master = self.server()
        master.command("SET", "old", 1)
        with Proxy(master.port) as proxy:
            running = self.start(f"redis://127.0.0.1:{proxy.port}", "-o", self.out, "--json")
            eventually("it is there", lambda: self.acked(master) >= 0)
            master.command("SAVE")
            proxy.deaf = True
            master.stop()
            time.sleep(0.5)
            master.start()
            proxy.target, proxy.deaf = master.port, False
            eventually("it is there again", lambda: self.acked(master) >= 0)
            master.command("SET", "new", 2)
            self.wait_for(master)
            status, out, err = running.end()
        self.assertEqual(status, 143, err)
        reported = json.loads(out)
        self.assertIn("lost", [e["event"] for e in reported["events"]])
        self.check_same(master)


class Ends(CaptureCase):
    def test_duration(self):
        master = self.server()
        began = time.monotonic()
        out, _ = self.run_capture(self.url(master), "-o", self.out, "--duration", "1")
        self.assertGreater(time.monotonic() - began, 0.9)
        self.assertRegex(out, r"out: 127\.0\.0\.1:\d+, \d+ commands? and .* of stream, now at off")

    def test_until_offset_ends_after_the_command_that_reaches_it(self):
        master = self.server(repl_ping_replica_period="3600")
        running = self.start(self.url(master), "-o", self.out, "--until-offset", "200")
        eventually("it is there", lambda: self.acked(master) >= 0)
        for n in range(20):
            master.command("SET", "key", n)
        status, out, err = running.end(None)
        self.assertEqual(status, 0, err)
        stream = self.dump("stream")
        start = int(self.segments()[0][4])
        self.assertGreaterEqual(start + len(stream), 200)
        last = stream.rindex(b"*3\r\n")
        self.assertLess(start + last, 200)
        # Where it is after that already there is nothing to do, not even a master is needed.
        self.run_capture("redis://127.0.0.1:1", "-o", self.out, "--until-offset", "200")
        self.assertEqual(self.dump("stream"), stream)

    def test_a_transaction_is_not_parted_by_an_offset(self):
        master = self.server(repl_ping_replica_period="3600")
        running = self.start(self.url(master), "-o", self.out, "--until-offset", "100")
        eventually("it is there", lambda: self.acked(master) >= 0)
        script = "for i=1,20 do redis.call('set','key',i) end"
        master.command("EVAL", script, 0)
        self.assertEqual(running.end(None)[0], 0)
        self.assertTrue(self.dump("stream").endswith(b"$4\r\nEXEC\r\n"))

    def test_the_oldest_segments_go(self):
        master = self.server()
        sizes = ["--segment-size", "256kb", "--max-size", "1mb"]
        self.start(self.url(master), "-o", self.out, *sizes)
        eventually("it is there", lambda: self.acked(master) >= 0)
        load = Load(master.port)
        load.start()
        eventually("there were many", lambda: int(sorted(
            n for n in os.listdir(self.out) if n.endswith(".seg"))[-1].split("-")[0]) > 8)
        load.stop()
        self.wait_for(master)
        size = sum(os.path.getsize(os.path.join(self.out, n)) for n in os.listdir(self.out))
        self.assertLess(size, 1300000)
        self.assertGreater(int(self.segments()[0][0].split("-")[0]), 1)

    def test_two_do_not_write_one_folder(self):
        master = self.server()
        first = self.start(self.url(master), "-o", self.out)
        eventually("it is there", lambda: self.acked(master) >= 0)
        _, err = self.run_capture(self.url(master), "-o", self.out, status=7)
        self.assertIn('another process writes this capture: "redoubt", '
                      f"process {first.process.pid}\n", err)


class Refusals(CaptureCase):
    def test_a_master_whose_disk_is_full_gives_its_stream(self):
        """It answers PING with an error then, and can send a snapshot that is not on its disk."""
        master = self.server(repl_diskless_sync="yes", save="3600 1",
                             enable_protected_configs="yes")
        master.command("SET", "a", 1)
        folder = os.path.join(self.folder, "gone")
        os.mkdir(folder)
        master.command("CONFIG", "SET", "dir", folder)
        os.rmdir(folder)
        master.command("BGSAVE")
        eventually("it has failed", lambda: b"rdb_last_bgsave_status:err" in master.command("INFO"))
        with self.assertRaisesRegex(ReplyError, "MISCONF"):
            master.command("PING")
        self.start(self.url(master), "-o", self.out)
        eventually("it is there", lambda: self.acked(master) >= 0)
        self.check_same(master)

    def test_no_server_is_there(self):
        for args in (["-o", self.out], ["--rdb-only", self.out]):
            _, err = self.run_capture("redis://127.0.0.1:1", *args, status=6)
            self.assertIn("Connection refused", err)
            self.assertIn("hint: no server listens there", err)

    def test_a_master_that_is_not_there_yet_can_be_waited_for(self):
        with Proxy(0) as proxy:
            proxy.deaf = True
            self.run_capture(f"redis://127.0.0.1:{proxy.port}", "-o", self.out, status=6)
            running = self.start(f"redis://127.0.0.1:{proxy.port}", "-o", self.out, "--wait")
            time.sleep(0.5)
            master = self.server()
            proxy.target, proxy.deaf = master.port, False
            eventually("it is there", lambda: self.acked(master) >= 0)
            self.assertEqual(running.end(signal.SIGINT)[0], 130)

    def test_a_wrong_password(self):
        master = self.server()
        master.command("CONFIG", "SET", "requirepass", "the-right-one")
        for args in (["-o", self.out], ["--rdb-only", self.out + ".rdb"]):
            for secret in (None, "the-wrong-one"):
                env = {"REDISCLI_AUTH": secret or ""}
                out, err = self.run_capture(self.url(master), *args, status=6, env=env)
                self.assertIn("hint: ", err)
                self.assertNotIn("the-wrong-one", out + err)
        self.assertFalse(os.path.exists(self.out + ".rdb"))

    def test_secrets_are_not_seen(self):
        master = self.server()
        master.command("CONFIG", "SET", "requirepass", "hidden-word")
        metrics = os.path.join(self.folder, "metrics")
        url = f"redis://:hidden-word@127.0.0.1:{master.port}"
        running = self.start(url, "-o", self.out, "--json", "-vv", "--metrics", metrics)
        eventually("the figures are there", lambda: os.path.exists(metrics))
        with open(f"/proc/{running.process.pid}/cmdline", "rb") as f:
            self.assertNotIn(b"hidden-word", f.read())
        with open(metrics) as f:
            seen = f.read()
        self.assertRegex(seen, r'redoubt_capture_up\{target="127\.0\.0\.1:\d+",folder="\."\} 1\n')
        _, out, err = running.end()
        self.assertNotIn("hidden-word", out + err + seen)

    def test_usage(self):
        for args in (["redis://h"], ["redis://h", "-o", "x", "--rdb-only", "y"], ["-o", "x"],
                     ["redis://h/3", "-o", "x"], ["redis://h", "-n", "1", "-o", "x"],
                     ["dump.rdb", "-o", "x"], ["redis://h", "-h", "i", "-o", "x"],
                     ["redis://h", "--sentinel", "s", "-o", "x"],
                     ["redis://h", "-o", "x", "--duration", "soon"],
                     ["redis://h", "-o", "x", "--until-offset", "-1"],
                     ["redis://h", "-o", "x", "--functions-only"],
                     ["redis://h", "-o", "x", "--cluster", "--until-offset", "7"]):
            with self.subTest(args=args):
                self.run_capture(*args, status=2)
        self.assertFalse(os.path.exists("x"))

    def test_a_server_that_is_not_a_master(self):
        for reply, status in ((b"-ERR unknown command 'PSYNC'\r\n", 4), (b"nonsense\r\n", 6),
                              (b"-NOPERM this user has no permissions\r\n", 6)):
            def answer(args, reply=reply):
                return reply if args[0] in (b"PSYNC", b"SYNC") else b"+OK\r\n"
            with FakeServer(answer) as server:
                self.run_capture(f"redis://127.0.0.1:{server.port}", "-o", self.out, status=status)


class Snapshot(CaptureCase):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.folder, "dump.rdb")

    def check_loads(self, path, master):
        with RedisServer() as server:
            server.load(path)
            self.assertEqual(server.command("DEBUG", "DIGEST"), master.command("DEBUG", "DIGEST"))

    def test_a_file_and_standard_output(self):
        for diskless in ("yes", "no"):
            with self.subTest(diskless=diskless):
                master = self.server(repl_diskless_sync=diskless)
                master.command("EVAL", "for i=1,9999 do redis.call('set',i,i) end", 0)
                file = self.file + diskless
                out, _ = self.run_capture(self.url(master), "--rdb-only", file)
                self.assertRegex(out, r"9,999 keys, 0 libraries, verified\n$")
                self.check_loads(file, master)
                piped = subprocess.run([REDOUBT, "capture", self.url(master), "--rdb-only", "-"],
                                       stdout=subprocess.PIPE, timeout=600).stdout
                with open(file, "rb") as f:
                    data = f.read()
                # The same but for the time of the snapshot: nothing in front, no mark after.
                self.assertEqual(len(piped), len(data))
                self.assertEqual((piped[:9], piped[-9:-8]), (data[:9], b"\xff"))
                with open(file, "wb") as f:
                    f.write(piped)
                self.check_loads(file, master)

    def test_an_existing_file_stays_unless_forced(self):
        master = self.server()
        with open(self.file, "wb") as f:
            f.write(b"x" * 100000)
        self.run_capture(self.url(master), "--rdb-only", self.file, status=2)
        self.assertEqual(os.path.getsize(self.file), 100000)
        out, _ = self.run_capture(self.url(master), "--rdb-only", self.file, "--force", "--json")
        reported = json.loads(out)
        self.assertEqual((reported["bytes"], reported["verified"]),
                         (os.path.getsize(self.file), True))
        self.check_loads(self.file, master)

    def test_the_object_names_the_place_the_server_and_the_digests(self):
        master = self.server()
        master.command("SET", "k", "v")
        out, _ = self.run_capture(self.url(master), "--rdb-only", self.file, "--json")
        got = json.loads(out)
        info = dict(line.split(":", 1) for line in
                    master.command("INFO", "replication").decode().splitlines() if ":" in line)
        self.assertEqual(got["replid"], info["master_replid"])
        self.assertLessEqual(got["offset"], int(info["master_repl_offset"]))
        with open(self.file, "rb") as f:
            data = f.read()
        self.assertEqual((got["server"], got["server_version"]), redis_server.installed())
        self.assertEqual(b"%04d" % got["rdb_version"], data[5:9])
        self.assertEqual(got["sha256"], hashlib.sha256(data).hexdigest())
        self.assertEqual(got["crc64"], f"{int.from_bytes(data[-8:], 'little'):016x}")

    def test_functions_alone(self):
        master = self.server()
        master.command("SET", "a", 1)
        master.command("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f',"
                       "function() return 7 end)")
        out, _ = self.run_capture(self.url(master), "--rdb-only", self.file, "--functions-only")
        self.assertRegex(out, "0 keys, 1 library, verified")
        with RedisServer() as server:
            server.load(self.file)
            self.assertEqual(server.command("FCALL", "f", 0), 7)
            self.assertEqual(server.command("DBSIZE"), 0)

    def test_a_cut_leaves_nothing(self):
        master = self.server(rdbcompression="no")
        master.command("EVAL", "for i=1,20000 do redis.call('set',i,string.rep('x',300)) end", 0)
        for how in ("cut", signal.SIGTERM):
            with self.subTest(how=how), Proxy(master.port) as proxy:
                proxy.pause, proxy.piece = 0.02, 1 << 14
                running = self.start(f"redis://127.0.0.1:{proxy.port}", "--rdb-only", self.file)
                eventually("a part is there", lambda: proxy.sent > 500000)
                if how == "cut":
                    proxy.cut()
                    status, _, err = running.end(None)
                    self.assertEqual(status, 6, err)
                    self.assertIn("closed the connection", err)
                else:
                    self.assertEqual(running.end(how)[0], 143)
                self.assertEqual(os.listdir(self.folder), [])

    def test_a_damaged_snapshot_gets_no_name(self):
        master = self.server(repl_diskless_sync="no")
        master.command("SET", "key", "value" * 9)
        self.run_capture(self.url(master), "--rdb-only", self.file)
        with open(self.file, "rb") as f:
            data = bytearray(f.read())
        os.unlink(self.file)
        data[data.index(b"key")] ^= 1
        header = b"+FULLRESYNC %s 0\r\n$%d\r\n" % (b"a" * 40, len(data))

        def answer(args):
            return header + bytes(data) if args[0] == b"PSYNC" else b"+OK\r\n"
        with FakeServer(answer) as server:
            url = f"redis://127.0.0.1:{server.port}"
            _, err = self.run_capture(url, "--rdb-only", self.file, status=1)
            self.assertRegex(err, "checksum")
            self.run_capture(url, "-o", self.out, status=1)
        self.assertEqual(os.listdir(self.folder), ["out"])
        self.assertEqual(os.listdir(self.out), ["capture.lock"])


class Progress(CaptureCase):
    def test_lag_is_reported(self):
        master = self.server()
        _, err = self.run_capture(self.url(master), "-o", self.out, "--duration", "3",
                                  "--progress=json")
        lines = [json.loads(n) for n in err.splitlines() if n.startswith('{"progress":{"bytes":')]
        reported = [n["progress"] for n in lines if "lag_ms" in n["progress"]]
        self.assertGreaterEqual(len(reported), 2, err)
        self.assertEqual((reported[-1]["links"], reported[-1]["up"]), (1, 1))
        self.assertLess(reported[-1]["lag_ms"], 60000)
        _, err = self.run_capture(self.url(master), "-o", self.out, "--duration", "2",
                                  "--progress=always")
        self.assertTrue(re.search(r"/s  lag \d+ bytes, \d+\.\d s  .* on disk", err), err)


if __name__ == "__main__":
    unittest.main()
