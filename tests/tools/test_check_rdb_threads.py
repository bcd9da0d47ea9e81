"""The threads of redoubt check-rdb.

REDOUBT names the program.
"""

import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_check_rdb import REDOUBT, CheckRdbTest, pair, rdb  # noqa: E402


class Threads(CheckRdbTest):
    def setUp(self):
        super().setUp()
        self.data = rdb(b"\xfe\x00", *(pair(b"%06d" % i) for i in range(200000)))

    def count(self, args, want):
        """How many threads a check has whose input has not ended; waits for `want`."""
        with subprocess.Popen([REDOUBT, "check-rdb", *args, "-"], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL) as process:
            process.stdin.write(self.data[:-100])
            process.stdin.flush()
            tasks = f"/proc/{process.pid}/task"
            end = time.monotonic() + 60
            while len(os.listdir(tasks)) != want and time.monotonic() < end:
                time.sleep(0.01)
            n = len(os.listdir(tasks))
            process.stdin.write(self.data[-100:])
            process.stdin.close()
            self.assertEqual(process.wait(), 0)
        return n

    def test_as_many_as_asked_for_or_one_for_each_processor(self):
        processors = len(os.sched_getaffinity(0))
        for args, want in (((), min(processors, 8)), (("--threads", "1"), 1),
                           (("--threads=5",), 5 if processors > 1 else 1), (("--quick",), 1)):
            self.assertEqual(self.count(args, want), want, args)

    def test_the_number_is_between_1_and_32(self):
        name = self.write("f.rdb", self.data)
        for number in ("0", "33", "many"):
            status, out, err = self.check("--threads", number, name)
            self.assertEqual((status, out), (2, ""))
            self.assertIn("--threads", err)
        self.assertEqual(self.check("--threads", "32", name)[0], 0)


if __name__ == "__main__":
    unittest.main()
