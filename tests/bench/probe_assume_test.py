"""--assume of probe, plan and scale: rates for what the files leave open, marked wherever they are shown."""

import json
import os
import re
import unittest
from pathlib import Path

from program import ProgramTest, main

TOPOLOGIES = os.environ.get("POLYRING_TOPOLOGIES")

# nvidia-smi topo -m without -L: numbers of NVLinks, no speed at all.
MATRIX = """\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity
GPU0\tX\tNV4\tSYS\tPIX\t0-55\t0
GPU1\tNV4\tX\tPIX\tSYS\t56-111\t1
NIC0\tSYS\tPIX\tX\tSYS
NIC1\tPIX\tSYS\tSYS\tX
  NIC0: mlx5_0
  NIC1: mlx5_1
"""
ALL = ("--assume", "nic=ndr,pcie=gen5x16,nvlink=25GB/s,socket=20GB/s")


class Assume(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "node07.txt").write_text(MATRIX, encoding="utf-8")
        self.node = ("--from", "node07.txt")

    def host(self, *words):
        document = json.loads(self.succeed("probe", *words, "--format", "json"))
        return document["hosts"][0], document

    def test_fills_what_the_file_leaves_open(self):
        before, _ = self.host(*self.node)
        self.assertTrue(all(link["GBps"] is None for link in before["links"]))
        host, document = self.host(*self.node, *ALL)
        rates = {"pcie": 63.015, "nvlink": 100, "socket-bus": 20}
        for link in host["links"]:
            self.assertAlmostEqual(link["GBps"], rates[link["kind"]], 2)
            self.assertIs(link["assumed"], True)
        for nic in host["nics"]:
            self.assertEqual([(port["up"], round(port["GBps"], 1), port["assumed"]) for port in nic["ports"]], [(True, 48.5, True)])
        self.assertIn({"fact": "25.0 GB/s of each of 4 NVLinks", "source": "assumed by --assume nvlink=25GB/s"}, host["citations"])
        self.assertIn("20.0 GB/s of the bus between processors", document["asked"][0])

    def test_marks_are_shown_and_kept(self):
        text = self.succeed("probe", *self.node, *ALL)
        self.assertIn("nvlink 100 GB/s assumed\n", text)
        self.assertRegex(text, r"port 1 up 48\.5 GB/s assumed")
        self.assertIn("63.0 GB/s of each of 6 PCIe links [assumed by --assume pcie=gen5x16]", text)
        for form in ("matrix", "paths"):
            self.assertRegex(self.succeed("probe", *self.node, *ALL, "--format", form), r"(?m)^  assumed: 48\.5 GB/s of each of 2 NIC ports, ")
        self.assertIn("Some speeds are assumed", self.succeed("probe", *self.node, *ALL, "--format", "nccl-xml"))
        self.assertIn("  assumed: ", self.succeed("probe", *self.node, *ALL, "--expect", "--hosts", "2"))
        host, document = self.host(*self.node, *ALL)
        (self.folder / "again.json").write_text(json.dumps(document), encoding="utf-8")
        again, as_asked = self.host("--from", "again.json")
        self.assertEqual((again, as_asked["asked"]), (host, document["asked"]))

    def test_plan_and_scale_have_times_then(self):
        plan = self.succeed("plan", *self.node, *ALL, "--ranks", "4")
        self.assertIn("modelled time", plan)
        self.assertRegex(plan, r"(?m)^assumed: 48\.5 GB/s of each of 2 NIC ports, 63\.0 GB/s of each of 6 PCIe links, ")
        scale = ("scale", *self.node, "--gpus", "4", "--compute-ms", "100", "--explain")
        self.refused(*scale, naming="give it by --assume")
        text = self.succeed(*scale, *ALL, "-J", "scale.json")
        self.assertRegex(text, r"25\.0 GB/s of each of 4 NVLinks +assumed by --assume nvlink=25GB/s")
        notes = json.loads((self.folder / "scale.json").read_text(encoding="utf-8"))["notes"]
        self.assertTrue(any(note.startswith("assumed: 48.5 GB/s of each of 2 NIC ports") for note in notes), notes)

    def test_plan_in_other_formats_says_the_same(self):
        words = ("plan", *self.node, *ALL, "--rails", "1", "--ranks", "4", "--format")
        for form in ("json", "csv"):
            result = self.run_program(*words, form)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stderr, r"(?m)^assumed: 48\.5 GB/s of each of 2 NIC ports, ")
            self.assertRegex(result.stderr, r"(?m)^1 of 2 NICs is used: ")
            self.assertNotIn("assumed", result.stdout)
        self.assertRegex(self.succeed(*words, "markdown"), r"(?m)\n\nassumed: 48\.5 GB/s .*\n\n1 of 2 NICs is used: ")

    def test_rails_need_a_rate(self):
        self.refused("probe", *self.node, "--rails", "1", naming="1 rail was asked for, but no NIC of machine 'node07' is known to be up; say what they carry by --assume nic=400Gb/s, ")
        self.succeed("probe", *self.node, "--rails", "1", "--assume", "nic=400Gb/s")

    def test_rates_in_people_s_words(self):
        for words, rate in (("nic=EDR", "12.1 GB/s"), ("nic=qdr", "4.00 GB/s"), ("nic=100GbE", "12.5 GB/s"), ("nic=400Gb/s", "50.0 GB/s"),
                            ("pcie=gen3x16", "15.8 GB/s"), ("PCIe=Gen4x8", "15.8 GB/s"), ("pcie=64GB/s", "64.0 GB/s"), ("pcie=gen6x16", "121 GB/s")):
            with self.subTest(words=words):
                self.assertIn(f"assumed: {rate} of each of ", self.succeed("probe", *self.node, "--assume", words))
        self.assertIn("7.88 GB/s of each of 6 PCIe", self.succeed("probe", *self.node, "--assume", "nic=hdr", "--assume", "pcie=gen3x8"))

    def test_what_the_file_tells_wins(self):
        document = json.loads(self.succeed("probe", *self.node, "--format", "json"))
        document["hosts"][0]["nics"][0]["ports"] = [{"number": 1, "up": True, "GBps": 12.5}]
        document["hosts"][0]["nics"][1]["ports"] = [{"number": 1, "up": True, "GBps": None}]
        (self.folder / "some.json").write_text(json.dumps(document), encoding="utf-8")
        host, _ = self.host("--from", "some.json", "--assume", "nic=ndr")
        self.assertEqual([round(nic["ports"][0]["GBps"], 1) for nic in host["nics"]], [12.5, 48.5])
        self.assertEqual(["assumed" in nic["ports"][0] for nic in host["nics"]], [False, True])
        # One kind of host needs it, the other does not.
        other = json.loads(json.dumps(document))
        other["hosts"][0]["name"] = "node08"
        other["hosts"][0]["nics"][1]["ports"][0]["GBps"] = 12.5
        (self.folder / "other.json").write_text(json.dumps(other), encoding="utf-8")
        _, both = self.host("--from", "some.json", "other.json", "--assume", "nic=ndr")
        self.assertEqual(both["asked"], ["node07: assumed: 48.5 GB/s of the NIC port"])

    def test_mistakes(self):
        for words, naming in (("nic", "'nic' is not KEY=RATE; write it as nic=400Gb/s"), ("nic=", "--assume nic ''"), ("nic=0GB/s", "above 0"),
                              ("nic=400GB/s", "more than any NIC port carries; 1 GB/s is 8 Gb/s"), ("pci=gen3x16", "'pci'; did you mean pcie?"),
                              ("pcie=gen9x16", "write gen1 to gen6"), ("pcie=gen5x3", "8 or 16 lanes"), ("pcie=gen5", "gen5x16"), ("pcie=genx16", "gen5x16"),
                              ("pcie=64", "above 0"), ("nic=ndrr", "did you mean ndr?"), ("nic=ndr,NIC=hdr", "--assume has nic twice"),
                              ("c2c=450GB/s", "no NVLink-C2C is known here; leave c2c= out")):
            self.refused("probe", *self.node, "--assume", words, naming=naming)
        for command in ("probe", "plan", "scale"):
            self.refused(command, "--machine", "minsky", "--assume", "nic=ndr", naming="the rate of every NIC port is known; leave nic= out")
        self.refused("scale", "--from-run", "x.json", "--assume", "nic=ndr", naming="--assume")
        (self.folder / "net.out").write_text("", encoding="utf-8")
        self.refused("probe", "--fabric", "net.out", "--assume", "nic=ndr", naming="--assume is for hosts")

    def test_nvlinks_that_nobody_counted(self):
        document = json.loads(self.succeed("probe", *self.node, "--format", "json"))
        for link in document["hosts"][0]["links"]:
            link.pop("count", None)
        (self.folder / "some.json").write_text(json.dumps(document), encoding="utf-8")
        self.refused("plan", "--from", "some.json", "--assume", "nvlink=25GB/s", naming="nothing tells how many there are in NVLink gpu0 - gpu1")

    @unittest.skipUnless(TOPOLOGIES, "POLYRING_TOPOLOGIES is not set")
    def test_real_machines(self):
        sierra = Path(TOPOLOGIES) / "hwloc" / "flux-core-sierra.xml"
        text = self.succeed("probe", "--from", sierra, "--assume", "nic=edr,pcie=gen4x8")
        self.assertEqual(len(re.findall(r"port 1 up 12\.1 GB/s assumed", text)), 2)
        self.assertIn("package0 - package1  socket-bus 64.0 GB/s\n", text)
        # The fabric knows what the file does not: then nothing is left to assume of ports.
        self.node = ("--from", "a08-p1-dgx-04-c01.txt", "--fabric", Path(TOPOLOGIES) / "fabric" / "topograph-ibnetdiscover-example.out")
        (self.folder / "a08-p1-dgx-04-c01.txt").write_text(MATRIX.replace("mlx5_1", "mlx5_5"), encoding="utf-8")
        text = self.succeed("probe", *self.node)
        self.assertRegex(text, r"(?m)mlx5_5 .*, infiniband, port 1 up 48\.5 GB/s$")
        self.assertIn("rates of InfiniBand ports of mlx5_0 and mlx5_5 [ibnetdiscover 'topograph-ibnetdiscover-example.out']", text)
        self.refused("probe", *self.node, "--assume", "nic=ndr", naming="the rate of every NIC port is known")
        dgx = Path(TOPOLOGIES) / "smi" / "dgx1-v100-topo-m.txt"
        self.assertIn("modelled time", self.succeed("plan", "--from", dgx, "--assume", "nvlink=25GB/s"))


if __name__ == "__main__":
    main()
