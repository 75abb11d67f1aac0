"""Plans on GPUs: calibrate, tune and the choice among plans. The GPUs are software, on a machine that hwloc reads from a file.
Open MPI's mpirun reads that file, too, and finds one core: ranks are threads where the file is used."""

import json
import os

from gpus import GpuTest
from hosts import FIXTURES
from program import main

MACHINE = FIXTURES / "cascaded_switches.v2.xml"  # of two GPUs
SIZES = ("-b", "4K", "-e", "1M", "-f", "16", "-n", 2, "-w", 0)
ONE = ("-b", "4K", "-e", "4K", "-n", 2, "-w", 0)


class GpuPlans(GpuTest):
    def setUp(self):
        super().setUp()
        os.environ["HWLOC_XMLFILE"] = str(MACHINE)
        self.addCleanup(os.environ.pop, "HWLOC_XMLFILE", None)
        self.machine("devices 2", "device 0 pci 0000:03:00.0", "device 1 pci 0000:06:00.0")

    def run_on_gpus(self, *words):
        return self.result("allreduce", "-g", 2, "--device", "cuda", *words)

    def keep(self, name, result, **versions):
        """A file with this result, as of real GPUs unless said otherwise."""
        result["versions"].update({"gpu": "NVIDIA P100"} | versions)
        for row in result["rows"]:
            row["source"] = "measured"
        (self.folder / name).write_text(json.dumps(result), encoding="utf-8")

    def measured_on_the_host(self, name):
        self.succeed("allreduce", "-g", 2, *SIZES, "--algorithm", "multi-ring,ring", "-J", name)

    def without_nccl(self):
        os.environ["POLYRING_NCCL"] = "/no/such/libnccl.so"
        self.addCleanup(os.environ.pop, "POLYRING_NCCL", None)

    def test_the_result_says_which_gpu_a_rank_had(self):
        words = ("--gpus", "1,0", "--algorithm", "multi-ring", *ONE)
        result = self.run_on_gpus(*words)
        self.assertEqual([place["gpu"] for place in result["placement"]], ["0000:06:00.0", "0000:03:00.0"])
        gpus = result["machine"]["hosts"][0]["gpus"]
        self.assertEqual([gpu["pci"] for gpu in gpus], ["0000:03:00.0", "0000:06:00.0"])
        self.assertNotIn("follow rules", " ".join(result["notes"]))
        del os.environ["HWLOC_XMLFILE"]
        for command in (("allreduce", *words), ("train", "--gpus", "1,0", "--compute-ms", 1, "-n", 1, "--bucket", "none", "--algorithm", "multi-ring")):
            result = self.result(*command, "--device", "cuda", ranks=2)
            self.assertEqual([place["gpu"] for place in result["placement"]], ["0000:06:00.0", "0000:03:00.0"])

    def test_links_that_are_not_known_have_no_price(self):
        for lines, words, why in ((("devices 2",), (), "has no GPU 0000:"),
                                  (("devices 1", "device 0 pci 0000:03:00.0"), ("--share-gpu",), "ranks share GPU 0000:03:00.0")):
            self.machine(*lines)
            notes = " ".join(self.run_on_gpus(*words, "--algorithm", "multi-ring", *ONE)["notes"])
            self.assertRegex(notes, f"Plans follow rules, and not the links between the GPUs: this job: .*{why}")

    def calibrate(self, *words):
        self.succeed("calibrate", *words, "-J", "calibration.json")
        path = self.folder / "calibration.json"
        return json.loads(path.read_text(encoding="utf-8"))

    def test_calibrates_the_links_between_gpus(self):
        self.keep("gpus.json", self.run_on_gpus("--algorithm", "multi-ring,ring,nccl", *SIZES))
        kept = self.calibrate("gpus.json")
        self.assertEqual((kept["device"], [link["link"] for link in kept["links"]]), ("cuda", ["pcie"]))
        self.assertEqual(kept["fitted"]["points"], 3 * 2 * 2, "of NCCL's calls, too")
        self.assertEqual(kept["fitted_to"], ["gpus.json: 2 GPUs on 1 host"])
        notes = " ".join(self.run_on_gpus("--algorithm", "multi-ring", *ONE, "--calibration", "calibration.json")["notes"])
        self.assertIn("least price on this machine as calibrated", notes)
        for ranks in (1, 2):
            self.refused("allreduce", "-g", ranks, "--calibration", "calibration.json", *ONE, naming="holds for data on GPUs, and these are in host memory")
        host = json.loads(self.succeed("probe", "--from", MACHINE, "--format", "json"))
        self.succeed("plan", "--from", MACHINE, "--calibration", "calibration.json")
        machine = host["hosts"][0]
        machine["gpus"] = []
        machine["links"] = [link for link in machine["links"] if not any(end.startswith("gpu") for end in (link["from"], link["to"]))]
        (self.folder / "host.json").write_text(json.dumps(host), encoding="utf-8")
        self.succeed("train", "-g", 2, "--compute-ms", 1, "-n", 1, "--bucket", "none", "--algorithm", "multi-ring", "-J", "train.json")
        for command in (("plan", "--from", "host.json"), ("scale", "--from-run", "train.json")):
            self.refused(*command, "--calibration", "calibration.json", naming="holds for data on GPUs")

    def test_a_calibration_of_host_memory_is_not_for_gpus(self):
        self.measured_on_the_host("host.json")
        self.assertEqual(self.calibrate("host.json")["device"], "cpu")
        self.refused("allreduce", "-g", 2, "--device", "cuda", "--calibration", "calibration.json", *ONE,
                     naming="holds for data in host memory, and these are on GPUs")

    def test_what_cannot_calibrate_links_is_refused(self):
        result = self.run_on_gpus("--algorithm", "multi-ring,ring", *SIZES)
        self.measured_on_the_host("host.json")
        self.keep("gpus.json", result)
        self.refused("calibrate", "gpus.json", "--check", "host.json", naming="'gpus.json' were on GPUs and those of 'host.json' in host memory")
        self.refused("calibrate", "host.json", "gpus.json", naming="'gpus.json' were on GPUs and those of 'host.json' in host memory")
        self.keep("software.json", result, gpu="software GPU")
        self.refused("calibrate", "software.json", naming="'software.json' was made on GPUs that are software for tests")
        for place in result["placement"]:
            del place["gpu"]
        self.keep("old.json", result)
        self.refused("calibrate", "old.json", naming="'old.json' does not say which GPU each rank had")
        self.keep("nccl.json", self.run_on_gpus("--algorithm", "nccl", *ONE))
        self.refused("calibrate", "nccl.json", naming="only of vendors' calls or of steps that the host ordered")
        self.without_nccl()
        self.machine("devices 2", "device 0 pci 0000:03:00.0", "device 1 pci 0000:06:00.0", "peers none")
        self.keep("by_host.json", self.run_on_gpus("--algorithm", "multi-ring", *ONE))
        self.refused("calibrate", "by_host.json", naming="only of vendors' calls or of steps that the host ordered")

    def tuned(self):
        return json.loads((self.folder / "tuned.json").read_text(encoding="utf-8"))

    def test_tunes_plans_on_gpus(self):
        file = ("--tuned", "tuned.json")
        tune = ("tune", "-b", "4K", "-e", "4K", "-n", 2, *file)
        self.succeed(*tune, "-g", 2, "--device", "cuda")
        self.succeed(*tune, "-g", 2)
        document = self.tuned()
        places = [(choice["device"], choice["transport"]) for choice in document["choices"]]
        self.assertEqual(places, [("cuda", "software GPU, peer memory"), ("cpu", "shared memory")])
        for choice in document["choices"]:
            choice.update(is_default=False, patterns="ring", lanes={"cuda": 3, "cpu": 2}[choice["device"]])
        (self.folder / "tuned.json").write_text(json.dumps(document), encoding="utf-8")
        allreduce = ("allreduce", "-g", 2, "--algorithm", "multi-ring", *ONE, *file)
        self.assertEqual({row["lanes"] for row in self.result(*allreduce, "--device", "cuda")["rows"]}, {3})
        self.succeed(*allreduce, "-J", "host.json")
        self.assertEqual({row["lanes"] for row in json.loads((self.folder / "host.json").read_text(encoding="utf-8"))["rows"]}, {2})
        document["choices"] = document["choices"][:1]
        (self.folder / "tuned.json").write_text(json.dumps(document), encoding="utf-8")
        ran = self.run_program(*allreduce)
        self.assertIn("nothing in 'tuned.json' is for 2 ranks", ran.stderr)

    def test_tune_says_what_is_not_there(self):
        self.refused("tune", "-g", 3, "--device", "cuda", naming="2 GPUs for 3 ranks")
        self.refused("tune", "-g", 2, "--device", "cuda", "--gpus", "0,5", naming="there is no GPU 5")
        self.refused("tune", "--device", "cuda", naming="one rank has nothing to reduce across")
        os.environ["POLYRING_CUDA_PLUGIN"] = "/no/such/plugin.so"
        self.addCleanup(os.environ.pop, "POLYRING_CUDA_PLUGIN")
        self.refused("tune", "-g", 2, "--device", "cuda", naming="there is no /no/such/plugin.so", code=5)


if __name__ == "__main__":
    main()
