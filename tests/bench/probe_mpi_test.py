"""probe under mpiexec: one probe on each host, gathered; a host whose probe fails is named, and nothing hangs."""

import json
import subprocess

from hosts import host_xml
from program import MPIEXEC, NOT_AVAILABLE, TIME_LIMIT_S, PROGRAM, ProgramTest, main


class ProbeUnderMpi(ProgramTest):
    def run_ranks(self, *words):
        return subprocess.run(
            [MPIEXEC, *words],
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S,
        )

    def test_ranks_of_one_host_are_one_host(self):
        alone = json.loads(self.succeed("probe", "--format", "json"))
        alone["hosts"][0].pop("allowed_cores", None)  # of that one process
        self.assertEqual(json.loads(self.succeed("probe", "--format", "json", ranks=3)), alone)
        self.assertEqual(alone["hosts"][0]["count"], 1)

    def test_a_probe_that_fails_is_named(self):
        # Polyring's hwloc alone shall find nothing, not that of mpiexec.
        ran = self.run_ranks("-n", "2", "env", "HWLOC_COMPONENTS=stop", PROGRAM, "probe")
        self.assertEqual(ran.returncode, NOT_AVAILABLE, ran.stdout + ran.stderr)
        self.assertEqual(ran.stdout, "")
        sentences = [line for line in ran.stderr.splitlines() if line.startswith("polyring: ")]
        self.assertEqual(len(sentences), 1, ran.stderr)
        self.assertIn("could not be probed: hwloc", sentences[0])

    def test_the_first_process_of_a_host_probes_it(self):
        def process(local_rank, *more):
            numbers = [f"{name}={local_rank}" for name in ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")]
            return ["-n", "1", "env", *numbers, *more, PROGRAM, "probe"]

        alone = self.succeed("probe")
        # hwloc finds nothing in the process that shall not look.
        for first, second in ((process(0), process(1, "HWLOC_COMPONENTS=stop")), (process(1, "HWLOC_COMPONENTS=stop"), process(0))):
            ran = self.run_ranks(*first, ":", *second)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertEqual(ran.stdout, alone)
        none = self.run_ranks(*process(1), ":", *process(2))
        self.assertEqual(none.returncode, NOT_AVAILABLE, none.stdout + none.stderr)
        self.assertIn("could not be probed: its launcher started no process as the first one there", none.stderr)

    def test_the_time_of_a_probe_is_limited(self):
        ran = self.run_program("probe", "--timeout", "1ns", ranks=2)
        self.assertEqual(ran.returncode, NOT_AVAILABLE, ran.stdout + ran.stderr)
        self.assertIn("did not end within", ran.stderr)

    def test_files_and_presets_are_one_processes_affair(self):
        (self.folder / "a.xml").write_text(host_xml("a"), encoding="utf-8")
        for words in (("--from", "a.xml"), ("--machine", "minsky")):
            self.assertEqual(self.succeed("probe", *words, ranks=2), self.succeed("probe", *words))
        self.refused("probe", "--timeout", "0", ranks=2, naming="--timeout")
        self.refused("probe", "--fabric", "missing.out", ranks=2, naming="missing.out")

    def test_a_rank_that_dies_ends_the_job(self):
        version = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True, check=True).stdout
        if "HYDRA" in version:
            self.skipTest("MPICH's mpiexec lets the others wait in MPI_Init for a process that never calls it")
        died = self.run_ranks("-n", "1", PROGRAM, "probe", ":", "-n", "1", "false")
        self.assertNotEqual(died.returncode, 0)


if __name__ == "__main__":
    main()
