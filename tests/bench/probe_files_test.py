"""probe --from on every real machine's hwloc file, in every format. Skipped without POLYRING_TOPOLOGIES."""

import json
import os
import unittest
from pathlib import Path

from program import ProgramTest, main

TOPOLOGIES = os.environ.get("POLYRING_TOPOLOGIES")


@unittest.skipUnless(TOPOLOGIES, "POLYRING_TOPOLOGIES is not set")
class ProbeFiles(ProgramTest):
    def test_every_file_in_every_format(self):
        files = sorted((Path(TOPOLOGIES) / "hwloc").glob("*.xml"))
        self.assertGreater(len(files), 0)
        for path in files:
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
        for path in sorted((Path(TOPOLOGIES) / "hwloc").glob("*.xml")):
            with self.subTest(path=path.name):
                document = self.succeed("probe", "--from", path, "--format", "json")
                (self.folder / "again.json").write_text(document, encoding="utf-8")
                self.assertEqual(self.succeed("probe", "--from", "again.json", "--format", "json"), document)


if __name__ == "__main__":
    main()
