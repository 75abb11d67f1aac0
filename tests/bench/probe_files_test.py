"""probe --from on every real machine's file, in every format. Skipped without POLYRING_TOPOLOGIES."""

import json
import os
import unittest
from pathlib import Path

from program import ProgramTest, main

TOPOLOGIES = os.environ.get("POLYRING_TOPOLOGIES")


def files():
    """All but fabrics, which are no machines."""
    return sorted(path for folder in ("hwloc", "nccl", "rccl", "smi") for path in (Path(TOPOLOGIES) / folder).iterdir())


@unittest.skipUnless(TOPOLOGIES, "POLYRING_TOPOLOGIES is not set")
class ProbeFiles(ProgramTest):
    def test_every_file_in_every_format(self):
        self.assertGreater(len(files()), 0)
        for path in files():
            with self.subTest(path=path.name):
                host = json.loads(self.succeed("probe", "--from", path, "--format", "json"))["hosts"][0]
                text = self.succeed("probe", "--from", path)
                matrix = self.succeed("probe", "--from", path, "--format", "matrix")
                for gpu in host["gpus"]:
                    self.assertIn(gpu["name"], text)
                    self.assertIn(gpu["name"], matrix)
                for nic in host["nics"]:
                    self.assertIn(nic["name"], text)

    def test_its_json_is_read_again(self):
        for path in files():
            with self.subTest(path=path.name):
                document = self.succeed("probe", "--from", path, "--format", "json")
                (self.folder / "again.json").write_text(document, encoding="utf-8")
                self.assertEqual(self.succeed("probe", "--from", "again.json", "--format", "json"), document)

    def test_nccls_format_is_read_again(self):
        for path in files():
            with self.subTest(path=path.name):
                document = self.succeed("probe", "--from", path, "--format", "nccl-xml")
                (self.folder / "again.xml").write_text(document, encoding="utf-8")
                once = self.succeed("probe", "--from", "again.xml", "--format", "nccl-xml")
                (self.folder / "again.xml").write_text(once, encoding="utf-8")
                self.assertEqual(self.succeed("probe", "--from", "again.xml", "--format", "nccl-xml"), once)


if __name__ == "__main__":
    main()
