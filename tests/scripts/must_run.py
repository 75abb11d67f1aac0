"""Tests that need what not every machine has: a browser, Slurm, leave to emulate hosts. They are skipped without it, and fail
where POLYRING_MUST_RUN names their kind, as in .ci/run: nobody would notice there that they no longer run.
"""

import os
import unittest


def must_run(kind):
    return kind in os.environ.get("POLYRING_MUST_RUN", "").split()


def skip(kind, why):
    """Ends the test; `kind` is one that scripts/test knows."""
    if must_run(kind):
        raise AssertionError(f"POLYRING_MUST_RUN names {kind}, so that this may not be skipped: {why}")
    raise unittest.SkipTest(why)
