"""redoubt capture and replay with redoubt-server in the place of redis-server.

The cases are those of test_capture.py and test_replay.py that need no other program and are quick.
"""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import test_capture  # noqa: E402
import test_replay  # noqa: E402
from capture_case import CaptureCase  # noqa: E402
from redis_server import RedisServer  # noqa: E402


class Ours:
    """All servers of the class are redoubt-server."""

    @classmethod
    def setUpClass(cls):
        RedisServer.program = os.environ["REDOUBT_SERVER"]
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        RedisServer.program = None


class Capture(Ours, CaptureCase):
    test_stream = test_capture.Stream.test_what_is_captured_is_the_master
    test_replica = test_capture.Stream.test_a_replica_with_another_database_selected
    test_user = test_capture.Stream.test_a_unix_socket_and_a_user_who_may_nothing_else
    test_promoted = test_capture.Cuts.test_a_replica_that_was_promoted_goes_on
    test_restarted = test_capture.Cuts.test_a_master_that_starts_again


class Whole(Ours, test_replay.Whole):
    pass


class Places(Ours, test_replay.Places):
    pass


class Room(Ours, test_replay.Room):
    pass


class Errors(Ours, test_replay.Errors):
    pass


if __name__ == "__main__":
    unittest.main()
