"""The environment of a run that need not search for leaks, since it does once more what another run
of the same test program does. The search is much of the time of a short run."""

import os

NO_LEAKS = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
