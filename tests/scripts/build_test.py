"""Runs scripts/build, with the real CMake, on a project that only looks for CUDA; the toolkit is a stand-in."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
# No toolkit nor header of this machine is found.
PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(some LANGUAGES NONE)
foreach(paths CMAKE_SYSTEM_PATH CMAKE_ENVIRONMENT_PATH SYSTEM_ENVIRONMENT_PATH)
  set(CMAKE_FIND_USE_${paths} OFF)
endforeach()
include(scripts/cmake/Cuda.cmake)
"""


class Build(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        shutil.copy(ROOT / "CMakePresets.json", self.root)
        (self.root / "CMakeLists.txt").write_text(PROJECT)
        self.toolkit = self.root / "toolkit"
        for part in ("bin", "include", "lib64"):
            (self.toolkit / part).mkdir(parents=True)
        for file in ("include/cuda_runtime_api.h", "lib64/libcudart.so.13"):
            (self.toolkit / file).touch()
        self.release("13.0")

    def release(self, number):
        nvcc = self.toolkit / "bin/nvcc"
        nvcc.write_text(f"#!/bin/sh\necho Cuda compilation tools, release {number}, V{number}.1\n")
        nvcc.chmod(0o755)

    def build(self, preset, must_run):
        environment = {**os.environ, "POLYRING_MUST_RUN": must_run, "CUDAToolkit_ROOT": str(self.toolkit), "NCCL_HOME": "", "CONDA_PREFIX": ""}
        return subprocess.run([self.root / "scripts/build", preset], env=environment, capture_output=True, text=True, check=False, timeout=60)

    def succeeds(self, preset, must_run, says):
        ran = self.build(preset, must_run)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn(says, ran.stdout)
        return ran.stdout

    def fails(self, preset, must_run, says):
        ran = self.build(preset, must_run)
        self.assertNotEqual(ran.returncode, 0, ran.stdout)
        self.assertIn(says, " ".join(ran.stderr.split()))  # CMake breaks lines

    def test_a_folder_without_cuda_is_configured_again_where_gpus_must_run(self):
        for preset in ("release", "asan"):
            with self.subTest(preset=preset):
                self.release("11.8")
                self.succeeds(preset, "slurm", "-- CUDA: skipped, ")
                self.assertNotIn("Configuring", self.succeeds(preset, "slurm", ""))
                for _ in range(2):  # what was skipped is remembered
                    self.fails(preset, "slurm gpu", "POLYRING_MUST_RUN names gpu, so that CUDA may not be skipped: ")
                self.release("13.0")
                (self.toolkit / "include/nccl.h").touch()
                self.succeeds(preset, "slurm gpu", "-- CUDA: 13.0, ")
                self.assertNotIn("Configuring", self.succeeds(preset, "slurm gpu", ""))

    def test_gpus_that_must_run_need_the_header_of_nccl(self):
        self.succeeds("release", "", "-- NCCL: skipped, no nccl.h found; NCCL will not be available")
        for _ in range(2):
            self.fails("release", "gpu", "POLYRING_MUST_RUN names gpu, so that NCCL may not be skipped: no nccl.h found")
        (self.toolkit / "include/nccl.h").touch()
        self.succeeds("release", "gpu", f"-- NCCL: its header found in {self.toolkit}/include")


if __name__ == "__main__":
    unittest.main(verbosity=2)
