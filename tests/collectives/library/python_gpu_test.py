"""The Python package on GPUs: arrays with __cuda_array_interface__, CUDA streams, errors. On the software GPU, whose libcudart.so
POLYRING_CUDART names. Needs a Python with NumPy; without it all is skipped.

CTest sets PYTHONPATH and POLYRING_LIBRARY, and how the software GPU is found.
"""

import os
import subprocess
import unittest

import python_runs


class OnGpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = python_runs.python_with("numpy")
        if cls.python is None:
            raise unittest.SkipTest("no Python here has NumPy; install python3-numpy")

    def test_arrays(self):
        python_runs.run_ranks(self, self.python, "python_gpu_ranks.py", "arrays", 2)

    def test_host_memory_beside_gpus(self):
        python_runs.run_ranks(self, self.python, "python_gpu_ranks.py", "host", 2)

    def test_a_rank_that_ends(self):
        python_runs.run_ranks(self, self.python, "python_gpu_ranks.py", "ended", 2, killed=(1,))

    def test_no_plug_in(self):
        code = "import polyring; polyring.Communicator.from_id(polyring.unique_id(), 0, 1, gpu=0)"
        ran = subprocess.run([self.python, "-B", "-c", code], env=os.environ | {"POLYRING_CUDA_PLUGIN": "/nowhere/plugin.so"}, capture_output=True,
                             text=True, check=False, timeout=60)
        self.assertRegex(ran.stderr, r"Error: GPUs cannot be used: there is no /nowhere/plugin.so; name Polyring's plug-in for CUDA in "
                                     r"POLYRING_CUDA_PLUGIN, or create the communicator for host memory\n\Z")


if __name__ == "__main__":
    python_runs.end(unittest.main(verbosity=2, exit=False).result)
