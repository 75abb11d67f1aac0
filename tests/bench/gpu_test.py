"""--device cuda of the commands that measure a collective."""

import itertools
import json
import os
import time

from gpus import GpuTest, slow, starts
from program import COLLECTIVES, NOT_AVAILABLE, PROGRAM, SANITIZED, TIMEOUT, USAGE, main

CUDA = 2
NCCL = 3
BELOW = 8
MISSING = 9
SMALL = ("-b", "4K", "-e", "64K", "-f", "16", "-n", 2)
ONE = ("-b", "4K", "-e", "4K", "-n", 2, "-w", 0)
LIMIT = ("-T", 3)


class Gpus(GpuTest):
    def fails(self, *words, code, ranks=0, naming=()):
        """Ends soon, with this code and sentences that name all of these."""
        begin = time.monotonic()
        ran = self.run_program(*words, ranks=ranks)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        self.assertLess(time.monotonic() - begin, 60)
        for name in naming:
            self.assertIn(name, ran.stderr)

    def test_version_says_what_is_loaded(self):
        self.assertRegex(self.succeed("--version"), r"CUDA +\d+\.\d+, 8 GPUs: software GPU\n")
        self.machine("driver none")
        self.assertRegex(self.succeed("--version"), r"CUDA +\d+\.\d+, loaded from .*no NVIDIA driver")
        os.environ["POLYRING_CUDA_PLUGIN"] = PROGRAM
        self.addCleanup(os.environ.pop, "POLYRING_CUDA_PLUGIN")
        self.assertRegex(self.succeed("--version"), r"CUDA +none: it cannot be loaded")

    def test_every_collective_with_threads_as_ranks(self):
        for collective in COLLECTIVES:
            with self.subTest(collective=collective):
                rows = self.result(collective, "-g", 3, "--device", "cuda", *SMALL)["rows"]
                self.assertEqual({row["implementation"] for row in rows}, {"polyring on streams over software GPU, peer memory"})

    def test_every_way_of_timing(self):
        for how, timing in ((("--timing", "osu"), "osu"), (("--timing", "back-to-back"), "back-to-back"), (("-z", 2), "blocking")):
            for words, ranks in starts(2, 3):
                rows = self.result("allreduce", *words, "--device", "cuda", "--algorithm", "ring,nccl", *how, *ONE, ranks=ranks)["rows"]
                self.assertEqual({row["timing"] for row in rows}, {timing})
                self.assertTrue(all(row["time_us"]["median"] > 0 for row in rows))

    def test_registered_buffers(self):
        words = ("allreduce", "-g", 3, "--device", "cuda", "--algorithm", "multi-ring,nccl", *SMALL)
        for number, kind in ((1, "registered"), (2, "symmetric")):
            result = self.result(*words, "-R", number)
            said = {row["implementation"] for row in result["rows"] if row["algorithm"] == "nccl"}
            self.assertRegex(" ".join(said), rf"^NCCL \S+, {kind} buffers$")
            self.assertIn("All calls, the vendors' too, used the same buffers, of our own allocator; only NCCL had its own.", result["notes"])
        self.machine("devices 3", "nccl version 2.18.5")
        self.fails(*words, "-R", 1, code=NOT_AVAILABLE, naming=("NCCL 2.18.5 has no registered memory", "leave -R out"))

    def test_graphs(self):
        words = ("allreduce", "--device", "cuda", "-G", 3)
        for start, ranks in starts(2, 3):
            result = self.result(*words, *start, "--algorithm", "multi-ring,ring,nccl", *ONE, ranks=ranks)
            self.assertEqual({row["timing"] for row in result["rows"]}, {"graph"})
            self.assertIn("The calls of a block were one CUDA graph, launched 3 times back to back.", result["notes"])
            self.assertTrue(all(row["time_us"]["median"] > 0 for row in result["rows"]))
        self.refused(*words, "--algorithm", "ring,mpi", *ONE, ranks=2, naming="mpi cannot be launched as a CUDA graph")
        self.refused(*words, *ONE, ranks=2, naming="name others with --algorithm")
        self.machine("peers none")
        os.environ["POLYRING_NCCL"] = "/no/such/libnccl.so"
        self.addCleanup(os.environ.pop, "POLYRING_NCCL")
        self.fails(*words, "-g", 2, "--algorithm", "ring", *ONE, code=NOT_AVAILABLE, naming=("calls of ring", "cannot be launched as a CUDA graph"))
        self.machine("devices 2")
        self.refused(*words, "-g", 2, "--timing", "osu", naming="--timing osu is one way of timing, and -G 3 another")

    def test_processes_beside_mpi_on_copies(self):
        rows = self.result("allreduce", "--device", "cuda", "--algorithm", "multi-ring,ring,mpi", *SMALL, ranks=3)["rows"]
        ours = {row["implementation"] for row in rows if row["algorithm"] != "mpi"}
        theirs = {row["implementation"] for row in rows if row["algorithm"] == "mpi"}
        self.assertEqual(ours, {"polyring on streams over software GPU, peer memory"})
        self.assertTrue(all(name.endswith(", copied to the host and back") for name in theirs), theirs)
        for collective in ("reduce-scatter", "allgather", "alltoall"):
            self.result(collective, "--device", "cuda", "--algorithm", "direct,mpi", *SMALL, ranks=3)

    def test_an_mpi_that_takes_gpu_memory(self):
        self.preload = os.environ["POLYRING_MPI_ON_GPUS"]
        for words, copied in ((("allreduce",), False), (("alltoall",), False), (("allreduce", "-d", "half"), True), (("allreduce", "-o", "avg"), True)):
            rows = self.result(*words, "--device", "cuda", "--algorithm", "mpi", "-b", "1K", "-e", "1K", "-n", 2, ranks=2)["rows"]
            how = ", copied to the host and back" if copied else ", on GPU memory"
            self.assertTrue(all(row["implementation"].endswith(how) for row in rows), rows)

    def accepted(self, *words, code=0, ranks=0, checks="gpu.copies,gpu.memory"):
        """The rows of checks of GPUs, by check."""
        ran = self.run_program("accept", "--checks", f"hosts.alike,{checks}", *words, "-J", "out.json", ranks=ranks)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        path = self.folder / "out.json"
        rows = [row for row in json.loads(path.read_text(encoding="utf-8"))["rows"] if row["check"] != "hosts.alike"]
        path.unlink()
        return rows

    def test_copies_are_shown_and_not_judged_by_rates(self):
        self.machine("devices 3", "no-peers 0 1")
        for words, ranks in starts(2, 2):
            rows = self.accepted(*words, ranks=ranks)
            self.assertEqual([(row["check"], row["verdict"], row["source"]) for row in rows],
                             [("gpu.copies", "shown", "emulated"), ("gpu.memory", "shown", "emulated")])
            for row, ways in zip(rows, (30, 3)):
                self.assertIn(f"Its 3 GPUs copied in {ways} ways, and what they copied was right in all of them. They are software", row["why"])

    def test_allreduces_of_acceptance(self):
        words = ("--device", "cuda", "--checks", "correct,host.allreduce,all.allreduce,train", "--budget", "12s")
        for start, ranks, algorithms in ((("-g", 2), 0, "ring"), ((), 2, "multi-ring,mpi")):
            ran = self.run_program("accept", *start, *words, "--algorithm", algorithms, "-J", "out.json", ranks=ranks)
            result = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
            (self.folder / "out.json").unlink()
            self.assertEqual(len([place["gpu"] for place in result["placement"]]), 2)
            self.assertIn({"name": "device", "value": "cuda", "source": "--device"}, result["inputs"])
            self.assertIn("with 2 ranks on GPUs", ran.stdout)
            rows = result["rows"]
            on_gpus = [row for row in rows if row.get("device") == "cuda"]
            self.assertEqual({row["source"] for row in on_gpus}, {"emulated"})
            verdicts = {name: {row["verdict"] for row in on_gpus if row["check"] == name} for name in ("correct", "host.allreduce", "all.allreduce")}
            self.assertEqual(verdicts, {"correct": {"pass"}, "host.allreduce": {"shown"}, "all.allreduce": {"shown"}}, ran.stdout + ran.stderr)
            self.assertEqual([row["subject"] for row in on_gpus if row["check"] == "all.allreduce"], algorithms.split(","))
            train = [row for row in rows if row["check"] == "train"]
            self.assertEqual([(row["verdict"], "device" in row) for row in train], [("missing", False)])
            self.assertIn("polyring train --device cuda", train[0]["remedy"])
        self.refused("accept", "-g", 9, "--device", "cuda", naming="8 GPUs for 9 ranks")
        self.refused("accept", "-g", 2, "--device", "cuda", "--gpus", "0,x", naming="'0,x' is no list of GPUs")

    def test_a_lost_gpu_is_named(self):
        self.machine("devices 2", "lost device 1 at operation 20")
        rows = self.accepted("-g", 2, code=NOT_AVAILABLE)
        self.assertEqual(rows[0]["verdict"], "error")
        self.assertIn("GPU 1 cannot", rows[0]["why"])

    def test_products_are_shown_and_not_judged_by_rates(self):
        self.machine("devices 3")
        for words, ranks in starts(2, 2):
            row, = self.accepted(*words, ranks=ranks, checks="gpu.compute")
            self.assertEqual((row["check"], row["verdict"], row["source"]), ("gpu.compute", "shown", "emulated"))
            self.assertIn("Its 3 GPUs multiplied matrices, and all of them computed right. They are software", row["why"])
            self.assertNotIn("TFLOP", json.dumps(row))

    def test_a_gpu_that_computes_wrong_is_named(self):
        """Product 2 is in the middle of others, whose results come over it."""
        for product in (2, 5):
            self.machine("devices 3", f"cublas device 1 wrong at product {product}")
            wrong, shown = self.accepted("-g", 2, code=BELOW, checks="gpu.compute")
            self.assertEqual((wrong["verdict"], shown["verdict"]), ("fail", "shown"))
            self.assertRegex(wrong["subject"], r"^GPU 1 of ")
            self.assertRegex(wrong["why"], r"^It computes wrong: 1 wrong element in the results of \d+ products\.$")
            self.assertIn("2 of them computed right", shown["why"])

    def test_no_product_without_cublas(self):
        os.environ["POLYRING_CUBLAS"] = "/no/such/libcublas.so"
        self.addCleanup(os.environ.pop, "POLYRING_CUBLAS")
        row, = self.accepted("-g", 2, code=MISSING, checks="gpu.compute")
        self.assertEqual(row["verdict"], "missing")
        self.assertIn("cuBLAS could not be loaded (/no/such/libcublas.so", row["why"])
        self.assertIn("POLYRING_CUBLAS", row["remedy"])

    def test_a_gpu_that_is_lost_while_it_multiplies_is_named(self):
        self.machine("devices 2", "lost device 1 at operation 12")
        row, = self.accepted("-g", 2, code=NOT_AVAILABLE, checks="gpu.compute")
        self.assertEqual(row["verdict"], "error")
        self.assertIn("GPU 1 cannot", row["why"])

    @slow
    def test_nccl_beside_ours(self):
        for words, ranks in ((("-g", 3), 0), ((), 3)):
            for collective in COLLECTIVES:
                rows = self.result(collective, *words, "--device", "cuda", "--algorithm", "nccl,direct", *SMALL, ranks=ranks)["rows"]
                self.assertEqual({row["implementation"] for row in rows if row["algorithm"] == "nccl"}, {"NCCL 2.28.9"})
        os.environ["NCCL_ALGO"] = "Ring"
        self.addCleanup(os.environ.pop, "NCCL_ALGO")
        rows = self.result("allreduce", "-g", 2, "--device", "cuda", "--algorithm", "nccl", *SMALL)["rows"]
        self.assertEqual({row["algorithm"] for row in rows}, {"nccl:ring"})

    def test_a_plug_in_without_nccl(self):
        os.environ["POLYRING_CUDA_PLUGIN"] = os.environ["POLYRING_CUDA_WITHOUT_NCCL"]
        self.addCleanup(os.environ.pop, "POLYRING_CUDA_PLUGIN")
        self.result("allreduce", "-g", 2, "--device", "cuda", "--algorithm", "multi-ring", *ONE)
        self.fails("allreduce", "-g", 2, "--device", "cuda", "--algorithm", "nccl", *ONE, code=NOT_AVAILABLE, naming=("there was no nccl.h",))

    @slow
    def test_nccl_that_cannot_be(self):
        words = ("allreduce", "--device", "cuda", "--algorithm", "nccl", *SMALL, *LIMIT)
        self.machine("devices 1")
        self.refused(*words, "-g", 2, "--share-gpu", naming="GPU", code=NOT_AVAILABLE)
        self.machine("nccl rank 1 hung start")
        self.fails(*words, "-g", 2, code=TIMEOUT, naming=("rank ", "ncclCommInit"))
        self.machine("nccl rank 1 failed operation 2")
        self.fails(*words, "-g", 2, code=NCCL, naming=("rank 1",))
        self.machine("nccl rank 1 hung operation 2")
        self.fails(*words, "-g", 2, code=TIMEOUT, naming=("rank ",))
        # With -G that one is in a graph.
        self.fails(*words, "-g", 2, "-G", 2, code=TIMEOUT, naming=("rank ", "has not ended within"))
        os.environ["POLYRING_NCCL"] = "/no/such/libnccl.so"
        self.addCleanup(os.environ.pop, "POLYRING_NCCL")
        self.refused(*words, "-g", 2, naming="/no/such/libnccl.so", code=NOT_AVAILABLE)

    def test_gpus_that_are_no_peers_have_nccl_or_the_host(self):
        self.machine("peers none")
        self.addCleanup(os.environ.pop, "POLYRING_NCCL", None)
        by_nccl = "polyring on streams over software GPU, NCCL 2.28.9"
        by_host = "polyring over software GPU, pinned memory and shared memory"
        for implementation, (words, ranks) in itertools.product((by_nccl, by_host), starts(3, 3)):
            ordered = implementation == by_host
            if ordered:
                os.environ["POLYRING_NCCL"] = "/no/such/libnccl.so"
            ran = self.run_program("allreduce", *words, "--device", "cuda", "--algorithm", "multi-ring", *SMALL, "-J", "out.json", ranks=ranks)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("GPUs of a host do not reach each other's memory", ran.stderr)
            result = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
            self.assertEqual({row["implementation"] for row in result["rows"]}, {implementation})
            self.assertEqual(any(note.startswith("The host ordered the steps of multi-ring") for note in result["notes"]), ordered)
            (self.folder / "out.json").unlink()

    @slow
    def test_which_gpus_ranks_take(self):
        self.machine("devices 2")
        words = ("allreduce", "--device", "cuda", *SMALL)
        self.refused(*words, "-g", 3, naming="2 GPUs for 3 ranks")
        self.refused(*words, ranks=3, naming="2 GPUs for 3 ranks")
        self.result(*words, "-g", 3, "--share-gpu")
        shared = self.result(*words, "--share-gpu", ranks=3)
        self.assertTrue(any("share a GPU in different processes" in note for note in shared["notes"]), shared["notes"])
        self.result(*words, "-g", 2, "--gpus", "1,0")
        self.refused(*words, "-g", 2, "--gpus", "1,2", naming="there is no GPU 2 for rank 0")
        self.refused(*words, "-g", 2, "--gpus", "1,1", naming="would have one GPU")
        self.refused(*words, "-g", 2, "--gpus", "1,x", naming="'1,x' is no list of GPUs")

    def test_machines_without_a_usable_gpu(self):
        words = ("allreduce", "-g", 2, "--device", "cuda", *SMALL)
        for lines, naming in ((("devices 0",), "no GPU can be seen"), (("driver none",), "no NVIDIA driver"),
                              (("driver 11.4",), "the NVIDIA driver is for CUDA up to 11.4")):
            self.machine(*lines)
            self.refused(*words, naming=naming, code=NOT_AVAILABLE)
        self.machine("devices 2")
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self.addCleanup(os.environ.pop, "CUDA_VISIBLE_DEVICES")
        self.refused(*words, naming="CUDA_VISIBLE_DEVICES", code=NOT_AVAILABLE)
        os.environ["POLYRING_CUDA_PLUGIN"] = "/no/such/plugin.so"
        self.addCleanup(os.environ.pop, "POLYRING_CUDA_PLUGIN")
        self.refused(*words, naming="there is no /no/such/plugin.so", code=NOT_AVAILABLE)

    def test_too_little_memory_is_said_before_the_run(self):
        self.machine("devices 2", "device * memory 64MiB")
        words = ("allreduce", "-g", 2, "--device", "cuda", "--algorithm", "ring")
        self.refused(*words, "-b", "48M", "-e", "48M", naming="of its GPU's memory are free")
        self.machine("devices 2", "failed allocation above 1MiB on device 1")
        self.fails(*words, "-b", "4M", "-e", "4M", code=NOT_AVAILABLE, naming=("rank 1", "GPU 1 has no"))

    def test_faults_end_the_job(self):
        """Before the first collective, where operation 9 is, and in a collective."""
        words = ("allreduce", "--device", "cuda", "--algorithm", "multi-ring", *SMALL[:-1], 20, *LIMIT)
        late = {9: ("rank ",), 90: ("rank 1 (",)}
        alone = (1, 4, 6, 7)
        if SANITIZED:
            late, alone = {90: late[90]}, (7,)
        for operation, naming in late.items():
            for start, ranks in starts(2, 2):
                with self.subTest(ranks=ranks, operation=operation):
                    self.machine("devices 2", f"lost device 1 at operation {operation}")
                    self.fails(*words, *start, ranks=ranks, code=CUDA, naming=("rank 1", "GPU 1"))
                    self.machine("devices 2", f"hung stream on device 1 at operation {operation}")
                    self.fails(*words, *start, ranks=ranks, code=TIMEOUT, naming=naming)
        # One rank alone: nobody else notices. In the set-up, a copy, and a collective.
        for operation in alone:
            with self.subTest(operation=operation):
                self.machine("devices 1", f"hung stream on device 0 at operation {operation}")
                self.fails("allreduce", "--device", "cuda", "-g", 1, "--algorithm", "ring", *ONE, "-T", 1, code=TIMEOUT, naming=("rank 0 (", "GPU 0 d", "nvidia-smi"))
        self.machine("devices 2", "killed at operation 9 on device 1")
        ran = self.run_program(*words, ranks=2)
        self.assertNotIn(ran.returncode, (0, USAGE), ran.stderr)


if __name__ == "__main__":
    main()
