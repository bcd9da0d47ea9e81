"""What is slow to free is freed on another thread, and counted as redis-server counts it."""

import unittest

from server_under_test import Redoubt, Reference, wait_for

KINDS = [Redoubt, Reference]  # later versions count other things


class LazyFree(unittest.TestCase):
    def steps(self, config=None):
        """Yields (client, is(n)): n keys were freed elsewhere so far, and none is left to free."""
        for kind in KINDS:
            with kind(config) as server:

                def freed(n, server=server):
                    def is_so():
                        memory = server.info("memory")
                        return memory["lazyfree_pending_objects"] == "0" and memory[
                            "lazyfreed_objects"
                        ] == str(n)

                    wait_for(is_so)

                yield server.client(), freed

    def fill(self, c, *keys):
        for key in keys:
            c.command("SADD", key, *[f"member-{i}" for i in range(1000)])

    def test_unlink_and_flushes_that_are_asynchronous(self):
        for c, freed in self.steps():
            self.fill(c, "a", "b", "c")
            c.command("SET", "long", "x" * 1000000)
            self.assertEqual(c.command("UNLINK", "a", "long"), 2)
            freed(1)
            c.command("DEL", "b")
            freed(1)
            c.command("FLUSHDB", "ASYNC")
            freed(2)
            c.command("DEBUG", "POPULATE", 1000)
            c.command("FLUSHALL", "ASYNC")
            freed(1002)
            self.assertEqual(c.command("DBSIZE"), 0)
            self.fill(c, "a")
            c.command("FLUSHALL", "SYNC")
            freed(1002)
            c.command("CONFIG", "RESETSTAT")
            freed(0)

    def test_each_setting_has_its_ways(self):
        for c, freed in self.steps():
            n = 0
            for setting, command in [
                ("user-del", ["DEL", "k"]),
                ("server-del", ["SET", "k", 1]),
                ("server-del", ["RENAME", "other", "k"]),
                ("expire", ["PEXPIRE", "k", 1]),
                ("user-flush", ["FLUSHDB"]),
            ]:
                name = "lazyfree-lazy-" + setting
                c.command("FLUSHALL", "SYNC")
                self.fill(c, "k")
                c.command("SET", "other", 1)
                c.command("CONFIG", "SET", name, "yes")
                c.command(*command)
                n += 2 if command[0] == "FLUSHDB" else 1
                freed(n)
                c.command("CONFIG", "SET", name, "no")

    def test_memory_goes_down_and_writes_continue_meanwhile(self):
        for c, freed in self.steps():
            for i in range(50):
                c.command("SADD", "big", *range(i * 4000, i * 4000 + 4000))
            full = int(c.command("MEMORY", "STATS")[3])
            c.command("UNLINK", "big")
            for i in range(100):
                c.command("RPUSH", "next", *range(1000))
            freed(1)
            self.assertEqual(c.command("LLEN", "next"), 100000)
            c.command("DEL", "next")
            self.assertLess(int(c.command("MEMORY", "STATS")[3]), full - 1000000)


if __name__ == "__main__":
    unittest.main()
