"""What tables of scale and plan say in words: strategies, units, frameworks, jitter, switches, the bound."""

import csv
import io
import json
import re
from pathlib import Path

from program import ProgramTest, main

OWN_STEP = Path(__file__).resolve().parent.parent / "fuzz" / "seeds" / "step" / "own.json"
H100 = ("--machine", "dgx-h100")
GPT = (*H100, "--model", "gpt2-xl", "--batch", "4", "--algorithm", "nccl")


class ScaleWords(ProgramTest):
    def scale(self, *words):
        return json.loads(self.succeed("scale", *words, "--format", "json"))

    def notes(self, *words):
        return "\n".join(self.scale(*words)["notes"])

    def rates(self, *words):
        return list(csv.DictReader(io.StringIO(self.succeed("scale", *words, "--format", "csv"))))

    def test_explain_names_strategies_in_the_order_of_the_table(self):
        text = self.succeed("scale", *GPT, "--gpus", "16,32", "--strategy", "zero=3", "--strategy", "zero=1", "--explain")
        order = re.findall(r"(?m)^nccl +(data=\S+) +(\d+) ", text.split("busy longest")[1])
        wanted = [("data=16,zero=3", "16"), ("data=16,zero=1", "16"), ("data=32,zero=3", "32"), ("data=32,zero=1", "32")]
        self.assertEqual(order, wanted)
        both = self.succeed("scale", *H100, "--machine", "minsky", "--gpus", "8", "--algorithm", "ring", "--explain")
        self.assertEqual(len(re.findall(r"(?m)^dgx-h100 +ring ", both)), 2)

    def test_csv_names_what_is_counted(self):
        for model, samples in (("resnet50", "images"), ("bert-large", "sequences")):
            words = (*H100, "--model", model, "--gpus", "8", "--algorithm", "nccl")
            (row,) = self.rates(*words)
            rate = self.scale(*words)["rows"][0]["images_per_second"]
            self.assertEqual((row["samples"], float(row["samples_per_second"])), (samples, rate))
            self.assertEqual(row["images_per_second"], row["samples_per_second"] if samples == "images" else "")
        train = ("train", "-g", "2", "-n", "1", "--step", str(OWN_STEP), "--algorithm", "ring")
        text = self.succeed(*train, "--wide")
        self.assertIn("samples/s", text)
        self.assertNotIn("images/s", text)
        (row,) = csv.DictReader(io.StringIO(self.succeed(*train, "--format", "csv")))
        self.assertEqual((row["samples"], row["images_per_second"]), ("samples", ""))
        self.assertGreater(float(row["samples_per_second"]), 0)

    def test_the_best_strategies_are_a_table_of_the_format(self):
        best = ("scale", *GPT, "--gpus", "16", "--strategy", "best")
        blocks = self.succeed(*best, "--format", "markdown").split("\n\n")
        tables = [block.splitlines() for block in blocks if block.startswith("|")]
        self.assertEqual([table[0].split(" | ")[0] for table in tables], ["| algorithm", "| strategy"])
        for table in tables:
            self.assertRegex(table[1], r"^(\| :?---:? )+\|$")
            self.assertTrue(all(line.startswith("| ") for line in table))
        text = self.succeed(*best)
        self.assertRegex(text, r"(?m)^strategy +step +to best")
        self.assertEqual(text.count("The best strategies on 16 GPUs of dgx-h100 with nccl"), 1)
        (note,) = (note for note in self.scale(*best[1:])["notes"] if "The best strategies" in note)
        self.assertRegex(note, r"\(\d+ simulated\), .*: \S+ in [^;]*? \(\+0\.0 %: computing ")
        self.assertNotIn("\n", note)
        self.assertNotIn("The best strategies", self.succeed(*best, "--quiet"))

    def test_rows_say_how_their_gradients_leave(self):
        for strategy, bucket, overlap in (("zero=1", "per-block", True), ("zero=3", "per-block", True), ("pipeline=2", "none", False),
                                          ("pipeline=2,zero=1", "none", False), ("pipeline=2,zero=2", "per-block", True), ("data=16", "fused:25MiB", True)):
            with self.subTest(strategy):
                result = self.scale(*GPT, "--gpus", "16", "--strategy", strategy)
                (row,) = result["rows"]
                self.assertEqual((row["bucket"], row["overlap"]), (bucket, overlap))
                words = "communication overlaps the backward pass" if overlap else "no overlap"
                self.assertIn(f"buckets {bucket}, {words};", result["notes"][0])
        self.assertIn("buckets and overlap as each row says", self.notes(*GPT, "--gpus", "16", "--strategy", "zero=1", "--strategy", "pipeline=2"))

    def test_the_framework_has_the_buckets_that_are_used(self):
        words = (*H100, "--gpus", "16", "--algorithm", "nccl")
        self.assertIn("Framework ddp: PyTorch's DistributedDataParallel; buckets of 25MiB, beside the backward pass; --explain", self.notes(*words))
        self.assertIn("; buckets of 100MiB, beside the backward pass (as asked; its own: buckets of 25MiB, beside the backward pass); --explain",
                      self.notes(*words, "--bucket", "fused:100MiB"))
        self.assertIn("; buckets of 25MiB, after the backward pass (as asked; its own: ", self.notes(*words, "--no-overlap"))
        self.assertIn("Framework caffe: Caffe with IBM's DDL; all gradients at once, after the backward pass; --explain", self.notes(*words, "--framework", "caffe"))

    def test_jitter_that_is_asked_for_counts_without_a_framework(self):
        words = (*H100, "--gpus", "16", "--algorithm", "nccl", "--ideal")
        self.assertIn("no stragglers, links", self.notes(*words))
        notes = self.notes(*words, "--jitter", "5%")
        self.assertIn("no stragglers but those of --jitter, links", notes)
        self.assertIn("Jitter: lognormal, 5 %", notes)

    def test_switches_of_ethernet_are_not_known_to_reduce(self):
        for machine, kind in (("p100-roce", "RoCE"), ("aws-p5", "EFA"), ("ethernet", "Ethernet")):
            notes = self.notes("--machine", machine, "--gpus", "16", "--algorithm", "in-network", "--compute-ms", "100")
            self.assertRegex(notes, rf"these NICs are {kind}.*'s, and switches of Ethernet mostly cannot reduce: .*SHARP.*Quantum")
        self.assertNotIn("mostly cannot", self.notes(*H100, "--gpus", "16", "--algorithm", "in-network"))

    def test_what_ifs_are_told_from_what_is_there(self):
        for ratio in ("2", "2:1"):
            notes = self.notes(*H100, "--gpus", "16", "--algorithm", "ring", "--oversubscription", ratio)
            self.assertIn("As asked: leaves of 32 hosts are oversubscribed 2:1, with 6.21 TB/s to the spine.", notes)

    def test_plan_and_probe_have_one_bound(self):
        """Of what is used together: no NVLinks and PCIe at once."""
        for machine, ranks in (("dgx-h100", 8), ("dgx1-v100", 8), ("dgx-h100", 32), ("mi300x", 8)):
            plan = self.succeed("plan", "--machine", machine, "--ranks", str(ranks), "--size", "1GiB", "--format", "csv")
            (row,) = csv.DictReader(io.StringIO(plan))
            expected = json.loads(self.succeed("probe", "--machine", machine, "--gpus", str(ranks), "--expect", "--format", "json"))["expected"]
            (bound,) = (each for each in expected["bounds"] if each["where"] in ("together" if ranks > 8 else f"inside {machine}",))
            busbw = 2**30 / float(row["bound_us"]) * 1e6 * 2 * (ranks - 1) / ranks / 1e9
            self.assertAlmostEqual(busbw, bound["busbw_GBps"], delta=1e-6 * busbw)
            self.assertLessEqual(float(row["bound_us"]), float(row["modelled_us"]) * (1 + 1e-9))

    def test_superchips_reach_their_nics_over_c2c(self):
        def reached(machine):
            (value,) = (each["value"] for each in self.scale("--machine", machine, "--gpus", "144", "--algorithm", "nccl")["inputs"]
                        if each["name"].startswith("part of the rate of InfiniBand"))
            return float(value.split()[0])

        self.assertEqual(reached("gh200"), 79.7)


if __name__ == "__main__":
    main()
