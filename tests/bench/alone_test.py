"""Processes that a launcher of another MPI has started, so that each is a world of its own: rank 0 says so, once."""

import os
import shutil
import subprocess

from program import MPIEXEC, TIME_LIMIT_S, PROGRAM, ProgramTest, main

MPI = 10
WORDS = ("allreduce", "-b", "8", "-e", "8", "-n", "1", "-w", "0", "--algorithm", "ring")
OPEN_MPI = "HYDRA" not in subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True, check=True).stdout
OTHERS = ("mpiexec.mpich", "mpiexec.hydra") if OPEN_MPI else ("mpiexec.openmpi", "mpirun.openmpi")


class Alone(ProgramTest):
    def start(self, variables, *before):
        return subprocess.run(
            [*before, PROGRAM, *WORDS], cwd=self.folder, env={**os.environ, **variables}, timeout=TIME_LIMIT_S,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )

    def told(self, ran, launcher, processes):
        self.assertEqual(ran.returncode, MPI, ran.stdout + ran.stderr)
        sentences = [line for line in ran.stderr.splitlines() if line.startswith("polyring: ")]
        self.assertEqual(len(sentences), 1, ran.stderr)
        self.assertIn(f"{launcher} has started {processes} processes, but each of them runs alone", sentences[0])
        self.assertIn("built with Open MPI" if OPEN_MPI else "built with MPICH", sentences[0])
        self.assertNotIn("busbw", ran.stdout)

    def test_for_real(self):
        other = next(filter(None, map(shutil.which, OTHERS)), None)
        if not other:
            self.skipTest(f"there is no {OTHERS[0]} here")
        self.told(self.start({}, other, "-n", "3"), "MPICH's kind" if OPEN_MPI else "Open MPI's mpirun", 3)

    def test_by_what_launchers_say(self):
        pmi = lambda rank: {"PMI_RANK": str(rank), "PMI_SIZE": "4"}
        open_mpi = lambda rank: {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "4"}
        launched, name = (pmi, "MPICH's kind") if OPEN_MPI else (open_mpi, "Open MPI's mpirun")
        self.told(self.start(launched(0)), name, 4)
        other = self.start(launched(2))
        self.assertEqual((other.returncode, other.stdout), (0, ""), other.stderr)
        self.assertNotIn("polyring", other.stderr)

    def test_a_step_of_slurms(self):
        self.told(self.start({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4"}), "srun", 4)

    def test_one_process_in_an_allocation_is_well(self):
        # The shell of salloc, a batch script, and a step of one task.
        for more in ({}, {"SLURM_PROCID": "0"}, {"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1"}):
            with self.subTest(more=more):
                ran = self.start({"SLURM_NTASKS": "4", "SLURM_TASKS_PER_NODE": "2(x2)", **more})
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn("busbw", ran.stdout)

    def test_one_rank_of_mpiexec_is_well(self):
        ran = self.start({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, MPIEXEC, "-n", "1")
        self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    main()
