"""redoubt archive: the stream in the repository, and the moments that it gives back."""

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import test_capture_hosts  # noqa: E402
from archive_case import ArchiveCase  # noqa: E402
from capture_case import Load, Proxy, Running, acknowledged, encode, eventually  # noqa: E402
from captures import command  # noqa: E402
from redis_server import RedisServer  # noqa: E402
from test_backup import bytes_of, flip  # noqa: E402


class Moments(ArchiveCase):
    def test_every_moment_has_the_data_that_the_master_had(self):
        server = self.server()
        self.archived(server.port, more="base-interval = 1s\n")
        running = self.start()
        running.says("snapshot received")
        found = self.moments(server, 12, pause=0.12)
        self.wait_for(server)
        server.command("SET", "later", "1")
        self.wait_for(server)
        eventually("there is a second base", lambda: len(self.sets()) > 1)
        self.assertEqual(running.end(), 0)
        for offset, ms, digest in found:
            self.check(digest, "--target-offset", str(offset))
            self.check(digest, "--target-time", str(ms))

    def test_offsets_between_many_batches(self):
        n = int(os.environ.get("REDOUBT_ARCHIVE_OFFSETS", "25"))
        server = self.server()
        self.archived(server.port, more="base-interval = 5s\nsegment-size = 200kb\n")
        running = self.start()
        running.says("snapshot received")
        found = self.moments(server, n, seed=3)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        for offset, _, digest in found:
            self.check(digest, "--at-offset", str(offset))
        print(f"# {len(found)} offsets, {len(self.segments())} segments, {len(self.sets())} sets",
              flush=True)

    def test_keys_that_have_expired_since_are_restored(self):
        server = self.server()
        server.command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        self.archived(server.port)
        running = self.start()
        running.says("snapshot received")
        self.load(server, [encode("SET", "short", "1", "PX", 1), encode("SET", "long", "2")])
        offset, digest = self.moment(server)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))

    def test_a_restore_ends_before_a_command(self):
        server = self.server(repl_ping_replica_period="3600")
        server.command("SET", "a", "1")
        self.archived(server.port)
        running = self.start()
        running.says("snapshot received")
        offset, digest = self.moment(server)
        server.command("FLUSHALL")
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        # A SELECT of 23 bytes comes first, then the FLUSHALL.
        self.check(digest, "--before-command", str(offset + 23))
        self.fails(2, "no command begins at offset", "restore", "--to", self.path("out.rdb"),
                   "--before-command", str(offset + 24))

    def wait_for_a_time(self, server):
        """A machine that was busy all the time may have delayed every command."""
        def is_known():
            self.moments(server, 1)
            self.wait_for(server)
            return "from_time" in self.streams()[0]
        eventually("a time is known", is_known)

    def test_a_moment_that_cannot_be_proved_is_refused_with_what_can(self):
        server = self.server()
        self.archived(server.port)
        running = self.start()
        running.says("snapshot received")
        self.wait_for_a_time(server)
        self.assertEqual(running.end(), 0)
        stream = self.streams()[0]
        out = self.path("out.rdb")
        for when, near in (("2001-01-01", "from_time"), ("2100-01-01", "to_time")):
            self.fails(2, f"nearest known moment: {stream[near]}", "restore", "--to", out,
                       "--target-time", when)
        self.fails(2, f"nearest archived offset: {stream['to_offset']}", "restore", "--to", out,
                   "--target-offset", str(stream["to_offset"] + 1))
        for args in (("--target-offset", "x"), ("--before-command", "-1"),
                     ("--target-offset", "1", "--target-time", "5")):
            self.assertEqual(self.tool("restore", "--to", out, *args).returncode, 2)
        self.assertFalse(os.path.exists(out))

    def test_a_dry_run_names_the_objects(self):
        server = self.server()
        self.archived(server.port)
        running = self.start()
        running.says("snapshot received")
        self.moments(server, 3, pause=0.5)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        found = self.streams()[0]
        reported, status = self.json("restore", "--to", self.path("out.rdb"), "--dry-run",
                                 "--target-offset", str(found["to_offset"]))
        self.assertEqual(status, 0)
        self.assertEqual(reported["offset"], found["to_offset"])
        names = [os.path.join(self.repository, "nightly", "stream", o)
                 for o in reported["objects"][1:]]
        self.assertEqual(names, self.segments())
        self.assertFalse(os.path.exists(self.path("out.rdb")))

    def test_a_transaction_is_whole_or_not_there(self):
        server = self.server()
        self.archived(server.port)
        running = self.start()
        running.says("snapshot received")
        server.command("SET", "a", "0")
        offset, before = self.moment(server)
        self.load(server, [encode("MULTI"), encode("INCR", "a"), encode("INCR", "b"),
                           encode("EXEC")])
        end, after = self.moment(server)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        inside = offset + len(encode("MULTI")) + len(encode("INCR", "a"))
        self.check(before, "--target-offset", str(inside))
        self.check(after, "--target-offset", str(end))


class Times(ArchiveCase):
    """An hour of traffic in a moment: a capture with times of its own is shipped."""

    def ship(self, stream, step_us=1000000, at=1700000000, segment=3000, go_on=None):
        run = "20231114T221320Z-0000002a"
        os.mkdir(self.spool)
        with open(self.path("stream.resp"), "wb") as out:
            out.write(stream)
        with RedisServer() as empty:
            empty.command("SAVE")
            shutil.copy(empty.rdb, self.path("empty.rdb"))
        make = os.environ["REDOUBT_MAKE_CAPTURE"]
        folder = os.path.join(self.spool, run)
        status = os.spawnv(os.P_WAIT, make,
                           [make, folder, "a", "0", self.path("empty.rdb"), str(at * 1000000),
                            str(step_us), self.path("stream.resp"), str(segment)])
        self.assertEqual(status, 0)
        if go_on is not None:
            with open(self.path("more.resp"), "wb") as out:
                out.write(go_on[0])
            status = os.spawnv(os.P_WAIT, make,
                               [make, folder, "a", "0", "-", str(go_on[1] * 1000000), str(step_us),
                                self.path("more.resp"), str(segment)])
            self.assertEqual(status, 0)
        self.archived(1)
        running = self.start()
        eventually("the set is there", lambda: len(self.sets()) > 0)
        self.assertEqual(running.end(), 0)

    def test_every_second_has_its_data(self):
        n = int(os.environ.get("REDOUBT_ARCHIVE_SECONDS", "40"))
        load = Load(0, seed=7)
        stream, digests = [command("SELECT", 0)], [None]
        with RedisServer() as server:
            for i in range(n):
                stream.append(command("SET", f"k{load.random.randrange(50)}", i))
                server.command("SET", *[p for p in stream[-1].split(b"\r\n")[4:7:2]])
                digests.append(server.command("DEBUG", "DIGEST"))
        self.ship(b"".join(stream + [command("PING")]))
        self.assertGreater(len(self.segments()), 0)
        for i in range(1, n + 1):
            self.check(digests[i], "--at", str(1700000000 + i))
        # The PING proves the second of the last SET, and nothing proves that of the PING.
        self.fails(2, "is not known", "restore", "--to", self.path("x.rdb"), "--target-time",
                   str(1700000000 + n + 1))

    def test_a_clock_that_went_back_is_not_guessed_at(self):
        first = b"".join(command("SET", "a", i) for i in range(20))
        second = b"".join(command("SET", "b", i) for i in range(20))
        self.ship(first, go_on=(second, 1700000010))
        self.fails(2, "was set back", "restore", "--to", self.path("x.rdb"), "--target-time",
                   "1700000015")
        self.good("restore", "--to", self.path("x.rdb"), "--target-time", "1700000005")
        self.good("restore", "--to", self.path("y.rdb"), "--target-time", "1700000025")


class Going(ArchiveCase):
    def test_what_a_killed_run_left_is_shipped_by_the_next(self):
        server = self.server()
        self.archived(server.port)
        load = Load(server.port)
        load.start()
        for _ in range(4):
            running = self.start()
            running.says("offset")
            time.sleep(0.7)
            running.kill()
        running = self.start()
        running.says("resuming at offset")
        load.stop()
        offset, digest = self.moment(server)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))
        self.assertEqual(len(self.streams()), 1)
        self.good("verify", "--level", "parse")
        self.assertNotIn(b"gap", running.said)

    def test_cuts_of_the_network_leave_no_gap(self):
        server = self.server()
        with Proxy(server.port) as proxy:
            self.archived(proxy.port)
            running = self.start()
            running.says("snapshot received")
            load = Load(server.port, pause=0.01)
            load.start()
            for _ in range(6):
                time.sleep(0.15)
                proxy.cut()
            load.stop()
            offset, digest = self.moment(server)
            self.wait_for(server)
            self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))
        self.assertEqual(len(self.streams()), 1)

    def test_a_failover_is_followed(self):
        master, replica = self.server(), self.server()
        replica.command("REPLICAOF", "127.0.0.1", master.port)
        eventually("it follows", lambda: b"link_status:up" in replica.command("INFO"))
        with Proxy(master.port) as proxy:
            self.archived(proxy.port)
            running = self.start()
            running.says("snapshot received")
            first = self.moments(master, 2)
            eventually("it has all", lambda: self.offset(replica) >= self.offset(master))
            self.wait_for(master)
            master.stop()
            replica.command("REPLICAOF", "NO", "ONE")
            proxy.target = replica.port
            proxy.cut()
            running.says("under a new id")
            second = self.moments(replica, 2)
            self.wait_for(replica)
            self.assertEqual(running.end(), 0)
        for offset, _, digest in first + second:
            self.check(digest, "--target-offset", str(offset))
        self.assertEqual(len(self.streams()), 1)

    def answers(self, server):
        return test_capture_hosts.Sentinel.answers(self, server)

    def test_sentinels_name_the_master(self):
        master, replica = self.server(), self.server()
        replica.command("REPLICAOF", "127.0.0.1", master.port)
        eventually("it follows", lambda: b"link_status:up" in replica.command("INFO"))
        sentinel = test_capture_hosts.Sentinel.sentinel(self, master)
        eventually("it knows the replica", lambda: b"slaves=1" in sentinel.command("INFO"))
        self.archived(1, more=f"sentinel = 127.0.0.1:{sentinel.port}\nmaster-name = mine\n"
                      "base-interval = 1s\n")
        text = bytes_of(self.config).decode().replace("source = redis://127.0.0.1:1\n", "")
        self.configure(text)
        running = self.start()
        running.says("snapshot received")
        first = self.moments(master, 2)
        eventually("it has all", lambda: self.offset(replica) >= self.offset(master))
        self.wait_for(master)
        master.stop()
        running.says("connected to the new master")
        running.says("under a new id")
        n = len(self.sets())
        replica._connect()  # the sentinel has closed the connections of clients
        second = self.moments(replica, 2, seed=4)
        self.wait_for(replica)
        eventually("a base of the new master", lambda: len(self.sets()) > n)
        self.assertEqual(running.end(), 0)
        for offset, _, digest in first + second:
            self.check(digest, "--target-offset", str(offset))

    def test_snapshots_that_are_cut_are_no_gap_and_nothing_is_restorable(self):
        """A master whose snapshots never arrive to their end."""
        def serve(listener):
            while True:
                client = listener.accept()[0]
                with client, client.makefile("rb") as lines:
                    for line in lines:
                        if line.startswith(b"PSYNC"):
                            client.sendall(b"+FULLRESYNC " + 40 * b"a" + b" 1\r\n$999\r\nREDIS")
                            break
                        if line.startswith((b"PING", b"REPLCONF")):
                            client.sendall(b"+PONG\r\n" if line.startswith(b"PING") else b"+OK\r\n")

        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        self.archived(listener.getsockname()[1])
        running = self.start("nightly", "--json")
        running.says("3 snapshots in a row did not arrive to their end")
        self.assertIn(b"client-output-buffer-limit", running.said)
        self.assertEqual(running.end(), 8)
        self.assertIn(b"no set is a base", running.said)
        self.assertNotIn(b"gap", running.said)
        report = json.loads(running.process.stdout.read())
        self.assertEqual((report["restorable"], report["gaps"], report["bases"]), (False, 0, 0))

    def test_a_gap_begins_a_new_base_and_is_reported(self):
        server = self.server()
        self.archived(server.port, more=f"archive-metrics-file = {self.path('m.prom')}\n")
        running = self.start()
        running.says("snapshot received")
        before = self.moments(server, 2)
        self.wait_for(server)
        server.stop()
        port = server.port
        server.port = port
        server._spawn()
        self.assertTrue(server._wait())
        running.says("gap")
        running.says("snapshot received")
        after = self.moments(server, 2, seed=5)
        self.wait_for(server)
        eventually("both have a set", lambda: all(s["bases"] for s in self.streams()))
        self.assertEqual(running.end(), 0)
        self.assertEqual(len(self.streams()), 2)
        self.check(before[-1][2], "--target-offset", str(before[-1][0]), "--set",
                   self.sets()[0]["id"])
        self.check(after[-1][2], "--target-offset", str(after[-1][0]), "--set",
                   self.sets()[-1]["id"])
        self.assertIn(b'redoubt_archive_gaps_total{target="nightly"} 1', self.read("m.prom"))

    def test_a_repository_that_is_away_is_waited_for(self):
        server = self.server()
        self.repository = self.path("away", "repo")
        self.archived(server.port)
        running = self.start()
        running.says("trying again")
        offset = self.moments(server, 2, pause=0.6)[-1][0]
        os.mkdir(self.path("away"))
        running.says("accepts segments again")
        eventually("all is there", lambda: self.shipped(offset))
        eventually("the base is there", lambda: self.sets())
        self.assertEqual(running.end(), 0)

    def test_a_repository_that_stays_away_leaves_the_spool(self):
        server = self.server()
        self.repository = self.path("away", "repo")
        self.archived(server.port)
        running = self.start()
        running.says("trying again")
        offset, _, digest = self.moments(server, 2, pause=0.6)[-1]
        self.assertEqual(running.end(), 8)
        self.assertIn(b"the next run ships them", running.said)
        os.mkdir(self.path("away"))
        running = self.start()
        eventually("all is there", lambda: os.path.isdir(self.repository) and
                   self.shipped(offset) and self.sets())
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))

    def stopped_with_a_full_spool(self):
        """Ends a run that could not upload; returns the segments of the spool and the last moment.
        """
        server = self.server()
        repository, self.repository = self.repository, self.path("away", "repo")
        self.archived(server.port, more="segment-size = 10kb\n")
        running = self.start()
        running.says("trying again")
        for i in range(30):
            server.command("SET", f"k{i}", 4000 * "x")
            acknowledged(server)
        moment = self.moments(server, 1)[0]
        acknowledged(server)
        self.assertEqual(running.end(), 8)
        self.repository = repository
        self.archived(server.port)
        return sorted(glob.glob(os.path.join(self.spool, "*", "*.seg"))), moment

    def test_a_segment_that_cannot_be_uploaded_stays_in_the_spool(self):
        """A level that the compression does not have does not make it an uploaded one."""
        spooled, moment = self.stopped_with_a_full_spool()
        running = self.start("nightly", "--compress", "gzip", "--compress-level", "12")
        eventually("it says so", lambda: b"level" in running.said or
                   running.process.poll() is not None)
        self.assertNotEqual(running.end(), 0)
        self.assertEqual([p for p in spooled if not os.path.exists(p)], [])
        self.ships_all(moment)

    def ships_all(self, moment):
        """The next run uploads what is in the spool, and the moment comes back."""
        running = self.start()
        running.says("offset")  # one that is stopped before that has not looked at the spool
        offset, _, digest = moment
        eventually("all is there", lambda: os.path.isdir(self.repository) and
                   self.shipped(offset) and self.sets())
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))

    def test_a_segment_stays_in_the_spool_unless_the_repository_has_its_data(self):
        """An object with the right name and other data was not uploaded from this spool."""
        spooled, moment = self.stopped_with_a_full_spool()
        copies = {path: self.read(path) for path in spooled}
        self.ships_all(moment)
        first, second = self.segments()[:2]
        sound = self.read(second)
        for wrong in (b"", sound[:-1] + bytes([sound[-1] ^ 1]), self.read(first)):
            for path, data in copies.items():
                self.write(path, data)
            self.write(second, wrong)
            running = self.start()
            self.assertEqual(running.wait(), 1)
            self.assertIn(b"in the place of a segment of the spool", running.said)
            self.assertIn(b"move it away", running.said)
            self.assertTrue(os.path.exists(spooled[1]))
        self.write(second, sound)
        self.ships_all(moment)

    def forks(self, server):
        text = server.command("INFO", "stats").decode()
        return int(text.split("total_forks:")[1].split()[0])

    def bogus(self, after):
        """Someone puts an old segment under the name of a later one."""
        last = self.segments()[-1]
        number, start, end, rest = os.path.basename(last).split("-", 3)
        name = f"{int(number) + after:08}-{end}-{2 * int(end) - int(start) + 1}-{rest}"
        path = os.path.join(os.path.dirname(last), name)
        shutil.copy(last, path)
        return path

    def test_a_bogus_segment_under_the_next_number_is_a_finding(self):
        """The service ends: it neither tries for ever nor makes the master fork."""
        server = self.server()
        self.archived(server.port)
        running = self.start()
        self.moments(server, 1)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        bogus, forks = self.bogus(1), self.forks(server)
        for _ in range(2):
            running = self.start()
            server.command("INCR", "n")
            self.assertEqual(running.wait(), 1, running.said)
            self.assertIn(b"in the place of a segment of the spool", running.said)
            self.assertIn(os.path.basename(bogus).encode(), running.said)
        self.assertEqual(self.forks(server), forks)
        os.remove(bogus)
        far = self.bogus(1000)
        running = self.start()
        offset, _, digest = self.moments(server, 1)[0]
        eventually("all is there", lambda: self.shipped(offset))
        self.assertEqual(running.end(), 0, running.said)
        self.assertEqual(self.forks(server), forks)
        self.check(digest, "--target-offset", str(offset))
        os.remove(far)

    def test_a_repository_with_a_bogus_segment_does_not_keep_the_stream_from_others(self):
        server = self.server()
        other = self.path("other")
        self.archived(server.port, more=f"repository = {other}\n")
        running = self.start()
        self.moments(server, 1)
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        bogus = self.bogus(1)
        running = self.start()
        offset, _, digest = self.moments(server, 1)[0]
        running.says("nothing more is uploaded there")
        self.assertEqual(running.end(), 8)
        os.remove(bogus)
        self.check(digest, "--target-offset", str(offset), "--repository", other)
        self.ships_all((offset, None, digest))

    def test_a_spool_that_cannot_be_read_is_not_an_empty_one(self):
        server = self.server()
        self.archived(server.port)
        running = self.start("nightly", "--json")
        running.says("snapshot received")
        eventually("the base is there", self.sets)
        blocked = glob.glob(os.path.join(self.spool, "*"))[0] + "/00009999-999999999.seg"
        os.mkdir(blocked)
        running.says("the spool cannot be read")
        running.process.send_signal(15)
        self.assertIsNone(json.loads(running.process.stdout.read())["waiting"])
        self.assertEqual(running.wait(), 8)
        self.assertIn(b"is not known", running.said)
        os.rmdir(blocked)
        self.ships_all(self.moments(server, 1)[0])

    def test_a_damaged_segment_of_the_spool_is_kept_aside(self):
        """It is in no repository: what is intact in it may be all that there is."""
        spooled, _ = self.stopped_with_a_full_spool()
        data = bytearray(self.read(spooled[1]))
        data[len(data) // 2] ^= 1
        self.write(spooled[1], bytes(data))
        running = self.start()
        running.says("left out")
        eventually("a later one is there", lambda: any("/00000003-" in s for s in self.segments()))
        running.end()
        self.assertEqual(self.read(spooled[1] + ".damaged"), bytes(data))
        self.assertFalse(any("/00000002-" in s for s in self.segments()))

    def test_a_snapshot_stays_in_the_spool_until_all_repositories_have_it(self):
        """A repository that was away gets the same base; the other one does not get it again."""
        server = self.server()
        away = self.path("away", "repo")
        self.archived(server.port, more=f"repository = {away}\n")
        running = self.start()
        manifest = os.path.join(self.repository, "nightly", "sets", "*", "manifest.json")
        eventually("one has the base", lambda: glob.glob(manifest))
        running.says("away")
        snapshots = glob.glob(os.path.join(self.spool, "*", "*.rdb"))
        self.assertEqual(len(snapshots), 1)
        os.mkdir(self.path("away"))
        eventually("the other one has it, too", lambda: not os.path.exists(snapshots[0]))
        offset, _, digest = self.moments(server, 1)[0]
        eventually("all is there", lambda: self.shipped(offset))
        self.assertEqual(running.end(), 0)
        for where in (self.repository, away):
            self.assertEqual(len(os.listdir(os.path.join(where, "nightly", "sets"))), 1)
            self.check(digest, "--target-offset", str(offset), "--repository", where)

    def test_a_full_spool_is_a_gap_and_a_new_base(self):
        server = self.server()
        self.repository = self.path("away", "repo")
        self.archived(server.port, more="spool-size = 200kb\nsegment-size = 50kb\n")
        running = self.start()
        running.says("trying again")
        for i in range(200):
            server.command("SET", f"k{i}", "x" * 4000)
        time.sleep(1.5)
        os.mkdir(self.path("away"))
        running.says("accepts segments again")
        for i in range(3):
            server.command("SET", f"later{i}", "x")
            time.sleep(1.1)
        self.wait_for(server)
        offset, digest = self.moment(server)
        eventually("a base", lambda: any(s["bases"] for s in self.streams()))
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        self.check(digest, "--target-offset", str(offset))

    def test_a_second_run_is_refused(self):
        server = self.server()
        self.archived(server.port)
        running = self.start()
        running.says("snapshot received")
        self.fails(7, "another process writes this capture", "archive", "nightly")
        self.fails(7, "locked by \"redoubt archive, process", "archive", "nightly", "--spool",
                   self.path("other"))
        # Another lock: at most that of the base set, for which a backup waits.
        self.good("backup", "nightly", "--lock-wait", "30m")
        eventually("both sets are there", lambda: len(self.sets()) == 2)
        self.assertEqual(running.end(), 0)

    def test_nothing_is_taken_from_a_spool_that_another_process_writes(self):
        server = self.server()
        own = os.path.join(self.spool, "20261129T000000Z-00000001")
        os.makedirs(own)
        capture = Running(f"redis://127.0.0.1:{server.port}", "-o", own)
        self.addCleanup(capture.kill)
        eventually("the snapshot is there", lambda: glob.glob(os.path.join(own, "*.rdb")))
        # As long as no sentinel answers, the archiver has no stream of its own.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.archived(server.port, more=f"sentinel = 127.0.0.1:{silent.getsockname()[1]}\n")
            text = bytes_of(self.config).decode()
            self.configure(text.replace(f"source = redis://127.0.0.1:{server.port}\n", ""))
            running = self.start()
            eventually("it ends or takes a set",
                       lambda: running.process.poll() is not None or self.sets())
        self.assertEqual(self.sets(), [])
        self.assertEqual(running.wait(), 7)
        self.assertIn(b"another process writes this capture", running.said)
        self.assertEqual(len(glob.glob(os.path.join(own, "*.rdb"))), 1)
        self.assertEqual(capture.end()[0], 143)

    def test_the_last_bytes_are_shipped_at_the_end(self):
        server = self.server()
        self.archived(server.port, more="archive-interval = 1h\n".replace("archive-interval", "#"))
        self.configure(bytes_of(self.config).decode().replace("= 1s", "= 1h"))
        running = self.start("nightly", "--json")
        running.says("snapshot received")
        eventually("the base is there", self.sets)
        offset, _, digest = self.moments(server, 3)[-1]
        acknowledged(server)
        running.process.send_signal(15)
        reported = json.loads(running.process.stdout.read())
        self.assertEqual(running.wait(), 0)
        self.assertEqual((reported["waiting"], reported["gaps"]), (0, 0))
        self.assertGreaterEqual(reported["offset"], offset)
        self.check(digest, "--target-offset", str(offset))

    def test_figures_for_monitoring_are_written(self):
        server = self.server()
        self.archived(server.port, more=f"archive-metrics-file = {self.path('m.prom')}\n")
        running = self.start()
        running.says("snapshot received")
        server.command("SET", "a", "b")
        self.wait_for(server)

        def figure(name):
            for line in self.read("m.prom").decode().splitlines():
                if line.startswith(f"redoubt_archive_{name}{{"):
                    return float(line.split()[-1])
            return None

        offset = self.offset(server)
        eventually("the figures follow", lambda: os.path.exists(self.path("m.prom")) and
                   (figure("shipped_offset") or 0) >= offset and figure("bases_total") == 1)
        self.assertEqual((figure("up"), figure("repository_up"), figure("gaps_total")), (1, 1, 0))
        self.assertLess(figure("rpo_seconds"), 30)
        self.assertEqual(running.end(), 0)


class Contents(ArchiveCase):
    def setUp(self):
        super().setUp()
        self.master = self.server()
        for i in range(50):
            self.master.command("SET", f"user:{i}", i)
        self.master.command("SELECT", "3")
        self.master.command("SET", "user:1*", "x")
        self.master.command("SELECT", "0")

    def archive(self, sealed=True, more=""):
        self.archived(self.master.port, sealed=sealed, more=more)
        running = self.start()
        running.says("snapshot received")
        self.master.command("SET", "page:1", "y")
        self.at = str(self.offset(self.master))
        self.wait_for(self.master)
        self.assertEqual(running.end(), 0)

    def keys(self, path):
        with RedisServer() as server:
            server.load(path)
            found = []
            for db in server.databases():
                server.command("SELECT", db)
                found += [(db, k.decode()) for k in server.command("KEYS", "*")]
            return sorted(found)

    def test_filters_and_versions(self):
        self.archive()
        out = self.path("out.rdb")
        for args, keys in ((("--prefix", "page:"), [(0, "page:1")]),
                           (("--key", "user:1*"), [(3, "user:1*")]),
                           (("--match", "user:4?"), [(0, f"user:4{i}") for i in range(10)]),
                           (("--db", "3"), [(3, "user:1*")])):
            with self.subTest(args=args):
                self.good("restore", "--to", out, "--force", "--target-offset", self.at, *args)
                self.assertEqual(self.keys(out), keys)
        self.good("restore", "--to", out, "--force", "--prefix", "user:2")
        self.assertEqual(len(self.keys(out)), 11)
        self.good("restore", "--to", out, "--force", "--target-offset", self.at, "--rdb-version",
                  "9")
        self.assertEqual(bytes_of(out)[:9], b"REDIS0009")
        self.good("restore", "--to", out, "--force", "--rdb-version", "80")
        self.assertEqual(bytes_of(out)[:9], b"VALKEY080")
        self.fails(1, "nothing", "restore", "--to", self.path("no.rdb"), "--key", "none")
        self.assertFalse(os.path.exists(self.path("no.rdb")))

    def test_a_server_that_runs_gets_the_data(self):
        self.archive()
        digest = self.master.command("DEBUG", "DIGEST")
        with RedisServer() as other:
            url = f"redis://127.0.0.1:{other.port}"
            self.good("restore", "--to", url, "--target-offset", self.at)
            self.assertEqual(other.command("DEBUG", "DIGEST"), digest)
            self.fails(2, "not empty\n  hint: --force replaces", "restore", "--to", url)
            other.command("SET", "mine", "1")
            other.command("SET", "page:1", "changed")
            self.good("restore", "--to", url, "--force", "--target-offset", self.at, "--prefix",
                      "page:")
            self.assertEqual(other.command("GET", "page:1"), b"y")
            self.assertEqual(other.command("GET", "mine"), b"1")
        self.fails(6, "127.0.0.1:1", "restore", "--to", "redis://:s3cret@127.0.0.1:1")
        done = self.tool("restore", "--json", "--dry-run", "--to", "redis://:s3cret@127.0.0.1:1")
        self.assertNotIn(b"s3cret", done.stdout + done.stderr)

    def test_a_server_with_a_log_loads_a_moment(self):
        self.archive()
        digest = self.master.command("DEBUG", "DIGEST")
        out = self.path("out")
        self.good("restore", "--to", out, "--layout", "aof", "--target-offset", self.at)
        server = RedisServer({"appendonly": "yes", "appenddirname": "appendonlydir"})
        with server:
            server.stop()
            shutil.rmtree(os.path.join(server.dir, "appendonlydir"))
            shutil.copytree(os.path.join(out, "appendonlydir"),
                            os.path.join(server.dir, "appendonlydir"))
            server.start()
            self.assertEqual(server.command("DEBUG", "DIGEST"), digest)

    def flip_bytes(self, path):
        size = os.path.getsize(path)
        for at in {0, 1, size - 60, size - 1, *range(0, size, max(1, size // 8))}:
            flip(path, at)
            self.fails(1, "DAMAGED", "verify", "--level", "digest")
            flip(path, at)
        whole = bytes_of(path)
        for cut in (0, 1, size // 2, size - 1):
            os.truncate(path, cut)
            self.fails(1, "DAMAGED", "verify", "--level", "digest")
            with open(path, "wb") as out:
                out.write(whole)

    def flip_name(self, path):
        top = os.path.join(self.repository, "nightly", "stream")
        name = os.path.relpath(path, top).encode()
        # The id of the run is not in a segment that is stored as it is.
        first = name.index(b"/") + 1 if path.endswith(".seg") else 0
        for at in range(first, len(name), 11):
            other = bytearray(name)
            other[at] ^= 1 << at % 6
            if other[at] in b"/\0" or name[at] in b"/":
                continue
            renamed = os.path.join(top.encode(), bytes(other))
            os.renames(path, renamed)
            self.fails(1, "DAMAGED", "verify", "--level", "digest")
            os.renames(renamed, path)

    def test_every_byte_of_a_segment_and_of_its_name_counts(self):
        for sealed, compress in ((True, "lz4"), (False, "lz4"), (False, "gzip"),
                                 (False, "zstd"), (False, "none")):
            with self.subTest(sealed=sealed, compress=compress):
                shutil.rmtree(self.repository, ignore_errors=True)
                shutil.rmtree(self.spool, ignore_errors=True)
                self.archive(sealed, f"compress = {compress}\n")
                self.good("verify", "--level", "digest")
                path = self.segments()[0]
                self.flip_bytes(path)
                self.flip_name(path)
                self.good("verify", "--level", "parse")

    def test_what_decompresses_to_the_same_bytes_is_found(self):
        self.archive(False)
        path = self.segments()[0]
        whole = bytes_of(path)
        plain = subprocess.run(["lz4", "-d"], input=whole, capture_output=True, check=True).stdout
        again = subprocess.run(["lz4", "-1"], input=plain, capture_output=True, check=True).stdout
        for stored in (again, again + whole[-40:], whole + b"\x5d\x2a\x4d\x18" + bytes(4)):
            with open(path, "wb") as out:
                out.write(stored)
            self.fails(1, "DAMAGED", "verify", "--level", "digest")

    def test_a_damaged_segment_is_not_replayed(self):
        self.archive()
        for path in self.segments():  # the last one may have only what came after the moment
            flip(path, os.path.getsize(path) - 30)
        self.fails(1, "", "restore", "--to", self.path("out.rdb"), "--target-offset", self.at)
        self.assertFalse(os.path.exists(self.path("out.rdb")))

    def test_nothing_of_the_stream_is_readable_when_it_is_sealed(self):
        self.archive()
        for path in self.segments():
            self.assertNotIn(b"page:1", bytes_of(path))
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

    def test_the_stream_goes_with_the_sets_that_need_it(self):
        self.archived(self.master.port, more="base-interval = 1s\n")
        running = self.start()
        for i in range(3):
            self.master.command("SET", "a", i)
            eventually("one more set", lambda: len(self.sets()) > i)
            self.wait_for(self.master)
        self.assertEqual(running.end(), 0)
        offset, digest = self.moment(self.master)
        n = len(self.segments())
        self.configure(bytes_of(self.config).decode().replace("hourly 48, daily 60", "count 1"))
        self.assertIn(b"segment", self.good("prune"))
        self.assertEqual(len(self.segments()), n)
        self.good("prune", "--confirm")
        self.assertLess(len(self.segments()), n)
        end = self.streams()[0]
        self.assertEqual(end["from_offset"], self.sets()[0]["offset"])
        self.check(digest, "--target-offset", str(min(offset, end["to_offset"])))
        self.good("verify", "--level", "parse")


if __name__ == "__main__":
    unittest.main()
