"""Runs the ranks of a test of the package `polyring`, each in a process of a Python that has what the test needs."""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TIME_LIMIT_S = 180
SKIPPED = 77  # for CTest


@functools.cache
def python_with(module):
    """A Python that has it: the one that POLYRING_TORCH_PYTHON names, this one, Debian's. None where there is none."""
    for python in (os.environ.get("POLYRING_TORCH_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def start(python, script, *words, **variables):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.Popen([python, "-B", HERE / script, *map(str, words)], env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run_ranks(test, python, script, what, ranks, killed=()):
    """Each rank must end well, and say so; those of `killed` end before, in silence."""
    with tempfile.TemporaryDirectory() as folder:
        processes = [start(python, script, what, rank, ranks, f"{folder}/store") for rank in range(ranks)]
        try:
            outputs = [process.communicate(timeout=TIME_LIMIT_S)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
    for rank, (process, output) in enumerate(zip(processes, outputs)):
        with test.subTest(rank=rank):
            if rank not in killed:
                test.assertEqual(process.returncode, 0, output)
                test.assertIn(f"rank {rank}: all is well", output)


def end(result):
    """Of unittest.main()."""
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.testsRun <= len(result.skipped) else 0)
