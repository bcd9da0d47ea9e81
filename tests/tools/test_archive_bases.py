"""When redoubt archive takes the sets from which its stream is replayed."""

import unittest

from archive_case import ArchiveCase
from capture_case import eventually


class Bases(ArchiveCase):
    def test_a_base_is_taken_when_replaying_would_take_too_long(self):
        metrics = self.path("metrics")
        server = self.server()
        self.archived(server.port, more="restore-time = 1s\n"
                      f"archive-metrics-file = {metrics}\n")
        running = self.start()
        running.says("snapshot received")
        self.wait_for(server)
        for n in 2, 3:
            running.said = b""
            for _ in range(100):
                if b"replaying the stream after the newest base would take" in running.said:
                    break
                server.command("EVAL", "for i = 1, 100000 do redis.call('SET', i % 1000, i) end",
                               "0")
                self.wait_for(server)
            eventually(f"there are {n} bases", lambda n=n: len(self.sets()) == n)
        self.wait_for(server)
        eventually("the time begins again",
                   lambda: b'replay_seconds{target="nightly"} 0' in self.read("metrics"))
        self.assertEqual(running.end(), 0)
        running = self.start()
        server.command("SET", "k", "1")
        self.wait_for(server)
        self.assertEqual(running.end(), 0)
        self.assertEqual(len(self.sets()), 3)


if __name__ == "__main__":
    unittest.main()
