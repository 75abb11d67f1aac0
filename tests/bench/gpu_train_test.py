"""polyring train --device cuda: kernels compute while allreduces go on, whoever carries them."""

import os

from gpus import GpuTest, slow
from program import NOT_AVAILABLE, TIMEOUT, USAGE, main

CUDA = 2

COMPUTE_MS = 10
STEPS = ("train", "--device", "cuda", "--compute-ms", COMPUTE_MS, "-n", 1, "--datatype", "half")
ACTIVITIES = {"computation", "kernels of allreduces", "copies host to device", "copies device to host", "copies device to device"}
LOOP = "a loop of arithmetic on all multiprocessors, since cuBLAS could not be loaded (/no/such"
LOADED = 390  # operations of a GPU: allreduces are checked, and kernels that compute are tried
TO_GPU, TO_HOST = "copies host to device", "copies device to host"


class GpuTrain(GpuTest):
    def without(self, variable):
        os.environ[variable] = "/no/such/library.so"
        self.addCleanup(os.environ.pop, variable, None)

    def steps(self, *words, algorithms, ranks=0, counts=(2,), buckets=None):
        """The rows and the notes of a run, after all that is true of every run."""
        result = self.result(*STEPS, "--algorithm", ",".join(algorithms), *words, ranks=ranks)
        rows = result["rows"]
        self.assertEqual([(row["gpus"], row["algorithm"]) for row in rows], [(count, name) for count in counts for name in algorithms])
        for row in rows:
            with self.subTest(algorithm=row["algorithm"]):
                self.check(row, buckets)
        return rows, " ".join(result["notes"])

    def check(self, row, buckets):
        compute, iteration = row["compute_ms"], row["iteration_ms"]["median"]
        self.assertGreater(compute, COMPUTE_MS / 20)  # however busy the machine was when the kernels were tried
        self.assertGreater(row["compute_slowdown"], 0)
        self.assertGreater(row["communication_ms"], 0)
        self.assertLessEqual(row["exposed_comm_ms"], iteration)
        self.assertAlmostEqual(row["exposed_comm_ms"] + compute * row["compute_slowdown"], iteration, delta=0.01 * iteration)
        self.assertNotAlmostEqual(compute, COMPUTE_MS, places=6)  # it is measured
        self.check_timeline(row, buckets)
        self.check_profile(row)

    def check_timeline(self, row, buckets):
        """Buckets come one after the other, none before its gradients are computed; the step takes as long as all of it."""
        computed = {span["label"]: span for span in row["timeline"] if span["lane"] == "compute"}
        travelled = [span for span in row["timeline"] if span["lane"] == "communication"]
        if buckets:
            self.assertEqual(len(travelled), buckets)
        self.assertEqual(set(computed), {"forward", "backward"})
        self.assertEqual(computed["backward"]["begin_ms"], computed["forward"]["end_ms"])
        free = computed["forward"]["end_ms"]
        if not row["overlap"]:
            free = computed["backward"]["end_ms"]
        for span in travelled:
            self.assertGreaterEqual(span["begin_ms"], free)
            free = span["end_ms"]
        free = max(free, computed["backward"]["end_ms"])  # the last bucket may be over before its stream is told of the end
        # The only step of the slowest rank; in the file there are fewer digits.
        self.assertGreaterEqual(row["iteration_ms"]["median"], free - 0.001)

    def check_profile(self, row):
        profile = row["gpu_profile"]
        *busy, idle = profile
        self.assertEqual((idle["activity"], idle["share"]), ("idle", None))
        self.assertLessEqual({share["activity"] for share in busy}, ACTIVITIES)
        self.assertAlmostEqual(sum(share["share"] for share in busy), 1, places=3)
        times = [share["time_ms"] for share in busy]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertTrue(all(share["calls"] > 0 for share in busy))
        self.assertIn("computation", {share["activity"] for share in busy})

    def activities(self, row):
        return {share["activity"]: share for share in row["gpu_profile"]}

    @slow
    def test_enqueued_calls_beside_products_of_matrices(self):
        """On several numbers of ranks."""
        rows, notes = self.steps("-g", 2, "--ranks", "1,2", "--bucket", "fused:16MiB", algorithms=("ring", "nccl"), counts=(1, 2))
        self.assertRegex(notes, r"products of (\d+) x \1 matrices of float16 by cuBLAS 13\.1\.0")
        self.assertIn("All times are by CUDA's events.", notes)
        for row in rows:
            self.assertEqual(self.activities(row).keys() - {"idle"}, {"computation", "kernels of allreduces"})
            self.assertEqual(self.activities(row)["kernels of allreduces"]["calls"], sum(span["lane"] == "communication" for span in row["timeline"]))

    @slow
    def test_the_host_orders_steps_and_copies_for_mpi_beside_a_loop(self):
        self.machine("peers none", "device * multiprocessors 4")
        self.without("POLYRING_NCCL")
        self.without("POLYRING_CUBLAS")
        rows, notes = self.steps("--bucket", "none", "--no-overlap", ranks=2, algorithms=("ring", "mpi"), buckets=1)
        self.assertIn(LOOP, notes)
        self.assertIn("The host ordered the steps of ring", notes)
        ring, mpi = map(self.activities, rows)
        for activity in ("kernels of allreduces", TO_GPU, TO_HOST):
            self.assertGreater(ring[activity]["calls"], 1)
        for way in (TO_GPU, TO_HOST):
            self.assertEqual(mpi[way]["calls"], 1)
        self.assertNotIn("kernels of allreduces", mpi)
        self.assertRegex(notes, r"With mpi on 2 ranks, copies between host and GPU are \d+ % of what the GPU of rank 0 does")

    def test_the_table_and_the_profile(self):
        out = self.succeed(*STEPS, "-g", 1, "--algorithm", "ring", "--bucket", "none")
        for column in ("slow-down", "communication", "exposed"):
            self.assertRegex(out, rf"(?m)^.*\b{column}\b")
        self.assertRegex(out, r"(?m)^ *ring +1 +\d+\.\d +[\d.]+ +\d+ +computation$")

    def test_what_cannot_be(self):
        words = ("train", "--compute-ms", 1, "-n", 1, "--algorithm", "ring", "-g", 2)
        self.refused(*words, "--gpus", "0,1", naming="--gpus names the GPUs for --device cuda; numbers of ranks are given by --ranks")
        self.machine("devices 1")
        self.refused(*words, "--device", "cuda", naming="1 GPU for 2 ranks")
        self.machine("devices 2", "device * memory 256MiB")
        self.refused(*words, "--device", "cuda", naming="of its GPU's memory are free", code=USAGE)
        self.machine("driver none")
        self.refused(*words, "--device", "cuda", naming="no NVIDIA driver", code=NOT_AVAILABLE)

    @slow
    def test_faults_end_the_job(self):
        words = ("train", "--device", "cuda", "-g", 2, "--compute-ms", 1, "-n", 1, "--algorithm", "ring", "--datatype", "half", "--bucket", "none", "-T", 3)
        for fault, code in (("lost device", CUDA), ("hung stream on device", TIMEOUT)):
            self.machine("devices 2", f"{fault} 1 at operation {LOADED}")
            ran = self.run_program(*words)
            self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
            self.assertIn("rank ", ran.stderr)


if __name__ == "__main__":
    main()
