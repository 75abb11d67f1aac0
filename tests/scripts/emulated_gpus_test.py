"""Collectives on software GPUs of emulated hosts: a process for each GPU, which reaches the others of its host by IPC, and those of the
other host by NCCL's double or through host memory. Skipped where hosts cannot be emulated.
"""

import json
import os

from emulated import PROGRAM, TIMEOUT, EmulateTest, main, shape

BELOW = 8
ALLREDUCES = "multi-ring,ring,halving-doubling,recursive-doubling,direct,one-shot,tree,chain-tree,parameter-server,nccl,mpi"
# Each type meets another operation. Not all sizes divide by the ranks.
CASES = (("float", "sum", "10012"), ("double", "min", "8"), ("half", "avg", "10006"), ("bfloat16", "prod", "6"),
         ("int32", "max", "64K"), ("int64", "sum", "40"), ("half", "sum", "64K"), ("float", "avg", "20"))


class EmulatedGpus(EmulateTest):
    def setUp(self):
        super().setUp()
        for name in ("POLYRING_SOFTWARE_GPU", "POLYRING_NCCL"):
            self.addCleanup(os.environ.pop, name, None)
        self.machine("devices 2", "delays seed 5 up-to 20us one-in 8")

    def machine(self, *lines):
        """What each host's GPUs are from now on."""
        path = self.folder / "gpu.plan"
        path.write_text("".join(f"{line}\n" for line in lines))
        os.environ["POLYRING_SOFTWARE_GPU"] = str(path)

    def ways(self, command, *words):
        """Measures on 2 hosts x 2 GPUs, where all must be right. Returns the ways of our algorithms."""
        result = self.measure(command, shape(2, 2, "1gbit"), "--device", "cuda", "-n", "1", "-w", "0", *words)
        self.assertEqual(result["versions"]["gpu"], "software GPU")
        for row in result["rows"]:
            self.assertEqual((row["wrong"], row["ranks"], row["nodes"]), (0, 4, 2), row)
        names = {row["algorithm"] for row in result["rows"]}
        self.assertEqual(names, set(words[words.index("--algorithm") + 1].split(",")))
        return {row["algorithm"]: row["implementation"] for row in result["rows"] if row["implementation"].startswith("polyring")}

    def test_every_algorithm_has_the_hosts_bits(self):
        for kind, operation, size in CASES:
            with self.subTest(kind=kind, operation=operation, size=size):
                ways = self.ways("allreduce", "--algorithm", ALLREDUCES, "-d", kind, "-o", operation, "-b", size, "-e", size, "--payload", "special")
                self.assertRegex(ways["multi-ring"], r"^polyring on streams over software GPU, peer memory and NCCL ")

    def test_other_collectives(self):
        for command in ("reduce-scatter", "allgather", "alltoall"):
            self.ways(command, "--algorithm", "direct,pairwise,nccl,mpi", "-b", "20K", "-e", "20K")

    def test_through_the_host(self):
        os.environ["POLYRING_NCCL"] = "/no/such/libnccl.so"
        for peers, inside in ((), "peer memory inside hosts, "), (("peers none",), ""):
            self.machine("devices 2", "delays seed 5 up-to 20us one-in 8", *peers)
            ways = self.ways("allreduce", "--algorithm", "multi-ring,ring,direct,tree", "-b", "10012", "-e", "10012")
            self.assertEqual(set(ways.values()), {f"polyring over software GPU, {inside}pinned memory and shared memory and MPI"})

    def test_acceptance_of_each_pair_of_hosts(self):
        result = self.measure("accept", shape(2, 2, "1gbit"), "--device", "cuda", "--checks", "correct,host.allreduce,pairs.allreduce", "--budget", "20s")
        self.assertEqual(len({(place["host"], place["gpu"]) for place in result["placement"]}), 4)
        rows = {check: [row for row in result["rows"] if row["check"] == check] for check in ("correct", "host.allreduce", "pairs.allreduce")}
        self.assertEqual({row["verdict"] for row in rows["correct"]}, {"pass"})
        self.assertEqual([row["verdict"] for row in rows["host.allreduce"] + rows["pairs.allreduce"]], 3 * ["shown"])
        self.assertEqual({(row["device"], row["source"]) for row in result["rows"]}, {("cuda", "emulated")})

    def test_a_rank_whose_nccl_hangs_is_named_with_its_host(self):
        self.machine("devices 2", "nccl rank 3 hung operation 2")
        code, output, errors = self.run_job(
            shape(2, 2, "1gbit"), PROGRAM, "allreduce", "--device", "cuda", "--algorithm", "nccl", "-b", "1K", "-e", "1K", "-T", "3")
        self.assertEqual(code, TIMEOUT, output + errors)
        self.assertRegex(errors, r"(?m)^polyring: rank \d on node[01] \(GPU [01]\): .* has not ended within 3.00 s")

    def test_a_gpu_that_computes_wrong_is_named_with_its_host(self):
        self.machine("devices 2", "rank 2 cublas device 1 wrong at product 3")
        code, output, errors = self.run_job(shape(2, 2, "1gbit"), PROGRAM, "accept", "--checks", "gpu.compute")
        self.assertEqual(code, BELOW, output + errors)
        self.assertRegex(output, r"FAIL +gpu.compute, GPU 1 of node1: It computes wrong: 1 wrong element in the results of \d+ products\.")
        self.assertRegex(output, r"shown +gpu.compute, node0: Its 2 GPUs multiplied matrices, and all of them computed right\.")


if __name__ == "__main__":
    main()
