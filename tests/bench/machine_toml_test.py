"""--machine FILE.toml and what-ifs: described clusters from the file to the table."""

import json
import re
import unittest
from pathlib import Path

from program import SANITIZED, ProgramTest, main

CLUSTER = """\
name = "new cluster"
hosts = 64
sockets = 2
gpus = { count = 4, product = "P100" }
nics = { count = 2, rate = "100Gb/s", kind = "infiniband" }
fabric = { hosts_per_leaf = 16, oversubscription = 2 }
"""


class MachineToml(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "new.toml").write_text(CLUSTER, encoding="utf-8")
        self.new = ("--machine", "new.toml")

    def scale(self, *words):
        self.succeed("scale", *words, "--gpus", "4,64", "--algorithm", "multi-ring", "--batch", "32", "-J", "scale.json")
        result = json.loads((self.folder / "scale.json").read_text(encoding="utf-8"))
        (self.folder / "scale.json").unlink()
        return result

    def efficiency(self, *words):
        return self.scale(*words)["rows"][-1]["efficiency"]

    def test_is_shown_and_drawn(self):
        text = self.succeed("probe", *self.new)
        self.assertIn("new cluster: 64 hosts, 256 ranks", text)
        self.assertIn("4 P100-SXM2 a host [as stated in new.toml:4]", text)
        self.assertIn("leaves of 16 hosts are oversubscribed 2:1, with 194 GB/s to the spine [as stated in new.toml:6]", text)
        self.assertRegex(self.succeed("probe", "--machine", "./new.toml", "--format", "matrix"), r"(?m)^gpu3 +NV20 +NV20 +NV20 +X ")
        self.succeed("probe", *self.new, "--picture", "new.svg")
        self.assertIn("described by new.toml", (self.folder / "new.svg").read_text(encoding="utf-8"))

    def test_scales_as_a_machine_of_its_name(self):
        result = self.scale(*self.new)
        self.assertEqual({row["machine"] for row in result["rows"]}, {"new cluster"})
        self.assertIn("as stated in new.toml:5", json.dumps(result["inputs"]))
        further = "new cluster has 64 hosts; rows of more than 256 GPUs take further hosts to be like these."
        self.assertNotIn(further, result["notes"])
        words = ("scale", *self.new, "--gpus", "256,512", "--algorithm", "nccl", "--batch", "32", "--format", "json")
        self.assertIn(further, json.loads(self.succeed(*words))["notes"])

    def test_several_machines_are_compared_in_one_table(self):
        words = ("scale", "--machine", "dgx-h100", "--machine", "dgx-a100", "--gpus", "8,16", "--algorithm", "multi-ring")
        result = json.loads(self.succeed(*words, "--format", "json"))
        self.assertEqual([(row["machine"], row["gpus"]) for row in result["rows"]],
                         [("dgx-h100", 8), ("dgx-h100", 16), ("dgx-a100", 8), ("dgx-a100", 16)])
        self.assertEqual(len(result["notes"]), len(set(result["notes"])))
        self.assertIn("Efficiency and speedup are over one GPU that computes alone.", result["notes"])
        for name in ("dgx-h100", "dgx-a100"):
            said = [note.split(": ")[1] for note in result["notes"] if note.startswith(f"{name}: ")]
            self.assertEqual(said, ["Modelled", "Computation", "Chosen"])
        for row in result["rows"]:
            self.assertLessEqual(row["efficiency_low"], row["efficiency"])
            self.assertLessEqual(row["efficiency"], row["efficiency_high"])
        self.refused(*words, "--name", "x", naming="--name is for one machine")
        self.refused("probe", "--machine", "minsky", "--machine", "ac922", naming="--machine")
        self.refused("scale", "--machine", "dgx-h100", "--machine", "minsky", "--gpus", "8", "--without", "gpu0-nvswitch0",
                     naming="--machine minsky: unknown device 'gpu0-nvswitch0'; did you mean gpu0?")
        self.refused("scale", "--machine", "dgx-h100", "--machine", "minsky", "--gpus", "8", "--without", "mlx5_2",
                     naming="; --without and other what-ifs change all machines that are compared")
        (self.folder / "other.toml").write_text(CLUSTER, encoding="utf-8")
        self.refused("scale", *self.new, "--machine", "other.toml", "--gpus", "4", "--batch", "32", naming="two of the machines are called 'new cluster'; give one of them another name")

    @unittest.skipIf(SANITIZED, "takes a minute under a sanitizer; the plain build runs it")
    def test_every_preset_has_a_table_by_default(self):
        names = re.search(r"A machine known by name: (.*?);", self.succeed("scale", "--help"), re.DOTALL)[1].replace("\n", " ").split(",")
        self.assertGreater(len(names), 15)
        for name in names:
            with self.subTest(name=name):
                rows = json.loads(self.succeed("scale", "--machine", name.strip(), "--algorithm", "multi-ring", "--format", "json"))["rows"]
                self.assertGreater(len(rows), 3)
                for row in rows:
                    self.assertTrue(0 < row["efficiency_low"] <= row["efficiency"] <= row["efficiency_high"] <= 1, row)
        self.refused("scale", "--machine", "dgx-h100", "--model", "gpt3-175b", naming="a replica needs 48 GPUs at least, as pipeline=6")

    def test_plans_of_a_file_run_here(self):
        text = self.succeed("allreduce", "-g", "4", "--plan-for", "new.toml", "-b", "4K", "-e", "4K", "-n", "1", "-w", "0", "--algorithm", "multi-ring")
        self.assertIn("those for 4 ranks of new.toml", text)
        self.assertIn("256 ranks on 64 hosts (new cluster)", self.succeed("plan", *self.new))

    def test_what_ifs_change_any_machine_and_are_said(self):
        self.assertLess(self.efficiency(*self.new, "--nics", "1"), self.efficiency(*self.new))
        for machine in (self.new, ("--machine", "minsky")):
            half = self.scale(*machine, "--nics", "1x50Gb/s", "--without", "gpu0-gpu1")
            self.assertLess(half["rows"][-1]["efficiency"], self.efficiency(*machine))
            notes = "\n".join(half["notes"])
            self.assertIn("NICs of a host: 1 of 6.25 GB/s in place of 2 of 12.1 GB/s", notes)
            self.assertIn("left out: one link of gpu0 - gpu1", notes)
            self.assertIn("asked for by --nics 1x50Gb/s", json.dumps(half["inputs"]))
        dgx = ("--machine", "dgx-h100", "--oversubscription", "2", "--gpus-per-host", "4", "--without", "leaf-uplink")
        plan = self.succeed("plan", *dgx)
        for said in ("4 of 8 GPUs of a host are used\n", "leaves of 32 hosts are oversubscribed 2:1, with 6.21 TB/s", "127 of 128 uplinks of each leaf are left"):
            self.assertIn(said, plan)

    def test_what_ifs_of_a_probed_machine(self):
        (self.folder / "node.json").write_text(self.succeed("probe", "--machine", "dgx1-v100", "--format", "json"), encoding="utf-8")
        host = json.loads(self.succeed("probe", "--from", "node.json", "--without", "mlx5_2", "--gpus-per-host", "6", "--format", "json"))
        self.assertEqual(len(host["hosts"][0]["gpus"]), 6)
        self.assertEqual([nic["ports"][0]["up"] for nic in host["hosts"][0]["nics"]], [True, True, False, True])
        self.assertEqual(host["asked"], ["6 of 8 GPUs of a host are used", "left out: mlx5_2, 3 of 4 NICs remain"])

    def test_examples_of_the_manual(self):
        text = (Path(__file__).parents[2] / "docs" / "machines.md").read_text(encoding="utf-8")
        examples = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
        self.assertEqual(len(examples), 2)
        for example in examples:
            (self.folder / "new.toml").write_text(example, encoding="utf-8")
            self.assertIn("oversubscribed 2:1", self.succeed("probe", *self.new))
        listed = re.findall(r"`([^`]+)`", text.split("| modules |")[1].split("\n\n")[0])
        (self.folder / "new.toml").write_text('gpus = { count = 1, product = "none" }', encoding="utf-8")
        known = self.refused("probe", *self.new).strip().split("choose from ")[1].split(", ")
        self.assertEqual({*listed, "GB200"}, set(known))

    def test_bad_files_are_refused_with_their_line(self):
        for line, sentence in {
            'gpus = { count = 8, product = "H10O" }': "bad.toml:2: unknown GPU 'H10O'; did you mean h100? choose from",
            'gpus = { count = 8, product = "P100", nvlink = 4 }': "bad.toml:2: P100-SXM2 has NVLink 1; write nvlink = 1, or leave it out",
            "gpus = [": "bad.toml:2: this is not TOML",
            "hosts = 4": "bad.toml:2: 4 hosts have no NICs to reach each other",
        }.items():
            (self.folder / "bad.toml").write_text("# mine\n" + line + "\n", encoding="utf-8")
            for words in (("probe",), ("plan",), ("scale", "--compute-ms", "1")):
                self.refused(*words, "--machine", "bad.toml", naming=sentence)
        self.refused("probe", "--machine", "absent.toml", naming="absent.toml")
        self.refused("probe", "--machine", "absent.tom", naming="unknown machine 'absent.tom'")


if __name__ == "__main__":
    main()
