"""The Python package: NumPy arrays between processes, errors, result files. Needs a Python with NumPy; without it all is skipped.

CTest sets PYTHONPATH, POLYRING_LIBRARY and POLYRING_MPIEXEC.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import python_runs

MPIEXEC = os.environ.get("POLYRING_MPIEXEC", "mpiexec")
RESULT = {"format": "polyring-result", "version": 1, "kind": "allreduce", "command": "polyring allreduce", "rows": [
    {"algorithm": "ring", "size_bytes": 1024, "time_us": {"median": 3.5, "samples": [3, 3.5, 4]}},
    {"algorithm": "mpi", "size_bytes": 1024, "time_us": {"median": 7.0, "samples": [7]}}]}


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = python_runs.python_with("numpy")
        if cls.python is None:
            raise unittest.SkipTest("no Python here has NumPy; install python3-numpy")

    def evaluate(self, code, **variables):
        return subprocess.run([self.python, "-B", "-c", code], env=os.environ | variables, capture_output=True, text=True, check=False, timeout=60)

    def test_arrays(self):
        python_runs.run_ranks(self, self.python, "python_ranks.py", "arrays", 3)

    def test_how_ranks_meet(self):
        python_runs.run_ranks(self, self.python, "python_ranks.py", "meetings", 2)

    def test_a_rank_that_is_killed(self):
        python_runs.run_ranks(self, self.python, "python_ranks.py", "killed", 3, killed=(2,))

    def test_mpi4py(self):
        python = python_runs.python_with("mpi4py")
        if python is None:
            self.skipTest("no Python here has mpi4py; install python3-mpi4py")
        ran = subprocess.run([MPIEXEC, "-n", "2", python, "-B", python_runs.HERE / "python_ranks.py", "mpi4py"], capture_output=True, text=True,
                             check=False, timeout=python_runs.TIME_LIMIT_S, stdin=subprocess.DEVNULL)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertEqual(sorted(re.findall(r"rank \d: all is well", ran.stdout)), [f"rank {rank}: all is well" for rank in range(2)])

    def test_its_version_is_the_librarys(self):
        ran = self.evaluate("import polyring; print(polyring.__version__, polyring.version())")
        self.assertRegex(ran.stdout, r"\A(\d+\.\d+\.\d+) \1\n\Z", ran.stderr)

    def test_a_library_that_cannot_be_opened(self):
        ran = self.evaluate("import polyring", POLYRING_LIBRARY="/nowhere/libpolyring.so")
        self.assertRegex(ran.stderr, r"ImportError: the library of Polyring cannot be opened \(/nowhere/libpolyring.so: .*\); install it, or name "
                                     r"libpolyring.so in POLYRING_LIBRARY\n\Z")

    def test_results_are_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "result.json")
            file.write_text(json.dumps(RESULT), encoding="utf-8")
            code = f"from polyring import results; rows = results.rows_of({str(file)!r}, {str(file)!r}); print(len(rows), rows[1])"
            ran = self.evaluate(code)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            for part in ("4 {", "'algorithm': 'mpi'", "'kind': 'allreduce'", f"'file': {str(file)!r}"):
                self.assertIn(part, ran.stdout)
            for text, says in {"{": "is not JSON", "[]": "is no result of Polyring", '{"format": "polyring-result", "version": 9, "rows": []}': "version 9"}.items():
                file.write_text(text, encoding="utf-8")
                self.assertIn(says, self.evaluate(code).stderr)

    def test_results_are_a_data_frame(self):
        python = python_runs.python_with("pandas")
        if python is None:
            self.skipTest("no Python here has pandas; install python3-pandas")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "result.json")
            file.write_text(json.dumps(RESULT), encoding="utf-8")
            code = f"import polyring; frame = polyring.read_results({str(file)!r}); print(frame.set_index('algorithm')['time_us.median'].to_dict())"
            ran = subprocess.run([python, "-B", "-c", code], capture_output=True, text=True, check=False, timeout=120)
            self.assertEqual(ran.stdout, "{'ring': 3.5, 'mpi': 7.0}\n", ran.stderr)


if __name__ == "__main__":
    python_runs.end(unittest.main(verbosity=2, exit=False).result)
