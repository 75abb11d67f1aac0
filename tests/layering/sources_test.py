"""Shows that sources.py catches what it is there for, on small trees made for it."""

import pathlib
import subprocess
import tempfile
import unittest

import sources


def faults_of(files):
    """The faults of a tree with these files: path to text."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return sources.faults(root)


class Layers(unittest.TestCase):
    def test_downwards_is_allowed(self):
        self.assertEqual(
            faults_of(
                {
                    "collectives/schedule/plan.hpp": '#pragma once\n#include "topology/cluster.hpp"\n#include <vector>\n',
                    "simulation/price.cpp": '#include "collectives/schedule/schedule.hpp"\n#include "simulation/price.hpp"\n',
                    "bench/commands/plan.cpp": '#include "reports/table.hpp"\n#include "simulation/price.hpp"\n',
                    "reports/table.hpp": '#pragma once\n#include "base/units.hpp"\n#include "base/error.hpp"\n',
                    "tests/bench/a.cpp": '#include "bench/main.hpp"\n',
                }
            ),
            [],
        )

    def test_every_upward_or_sideways_include_is_caught(self):
        for folder, below in sources.ALLOWED.items():
            for target in set(sources.ALLOWED) - below - {folder}:
                with self.subTest(folder=folder, target=target):
                    found = faults_of({f"{folder}/a.cpp": f'// A file.\n  # include "{target}/b.hpp"\n'})
                    self.assertEqual(found, [f'{folder}/a.cpp:2: {folder}/ must not know "{target}/b.hpp"'])

    def test_what_links_the_library_does_not_link_the_prober(self):
        for box in ("collectives/schedule", "collectives/runtime"):
            found = faults_of({f"{box}/deep/a.cpp": '#include "topology/inventory/probe.hpp"\n'})
            self.assertEqual(found, [f'{box}/deep/a.cpp:1: {box}/ must not know "topology/inventory/probe.hpp"'])

    def test_the_library_knows_of_gpus_by_their_interface_alone(self):
        self.assertEqual(faults_of({"collectives/library/c/a.cpp": '#include "collectives/cuda/gpu.hpp"\n'}), [])
        self.assertEqual(faults_of({"collectives/library/c/a.cpp": '#include "collectives/cuda/memory.hpp"\n'}),
                         ['collectives/library/c/a.cpp:1: collectives/library/ may include only collectives/cuda/gpu.hpp of '
                          'collectives/cuda/, not "collectives/cuda/memory.hpp"'])
        self.assertEqual(faults_of({"bench/micro/a.cpp": '#include "collectives/cuda/memory.hpp"\n'}), [])

    def test_every_file_is_in_a_box(self):
        self.assertEqual(len(faults_of({"collectives/a.cpp": '#include "base/units.hpp"\n'})), 1)

    def test_includes_start_at_the_root(self):
        self.assertEqual(len(faults_of({"topology/a.cpp": '#include "units.hpp"\n'})), 1)
        self.assertEqual(len(faults_of({"topology/deep/a.cpp": '#include "../units.hpp"\n'})), 1)


class Strays(unittest.TestCase):
    def faults_of_tracked(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, content in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(content)
            git = ["git", "-C", folder]
            subprocess.run([*git, "init", "--quiet"], check=True)
            subprocess.run([*git, "add", "--all"], check=True)
            (root / "untracked.whl").write_bytes(b"")
            return sources.faults(root)

    def test_what_belongs_here(self):
        self.assertEqual(self.faults_of_tracked({"README.md": b"", "docs/images/a.png": b"\xff", "tests/fuzz/seeds/units/1": b"\xff"}), [])

    def test_a_file_at_the_top(self):
        self.assertEqual(self.faults_of_tracked({"a.whl": b""}), ["a.whl: nothing of that name belongs at the top"])

    def test_an_object_file(self):
        self.assertEqual(self.faults_of_tracked({"base/a.o": b"\x7fELF\xff"}), ["base/a.o: is not text"])


class Names(unittest.TestCase):
    def test_two_types_of_one_name_are_caught(self):
        headers = {
            "base/a.hpp": "#pragma once\nstruct Both {\n  struct Inner {};\n};\nstruct Early;\n",
            "bench/b.hpp": "#pragma once\nclass Both final : public Early {\n};\nenum class Inner { one };\n",
            "tests/c.hpp": "#pragma once\nstruct Both {};\n",
        }
        self.assertEqual(faults_of(headers), ["bench/b.hpp: Both is also defined in base/a.hpp: give it another name"])


class Confinement(unittest.TestCase):
    def test_library_headers_stay_in_their_files(self):
        for header in ("CLI/CLI.hpp", "hwloc.h", "hwloc/plugins.h", "mpi.h", "nccl.h", "nvml.h"):
            with self.subTest(header=header):
                for quotes in ("<>", '""'):
                    text = f"#include {quotes[0]}{header}{quotes[1]}\n"
                    self.assertEqual(len(faults_of({"collectives/schedule/algorithms/ring.cpp": text})), 1)

    def test_their_own_files_may_include_them(self):
        for header, places in sources.CONFINED.items():
            for place in places:
                name = place.replace("*", "_owner.cpp")
                once = "#pragma once\n" if name.endswith(".hpp") else ""
                self.assertEqual(faults_of({name: f"{once}#include <{header.replace('*', 'distances')}>\n"}), [])


class Alone(unittest.TestCase):
    def test_a_source_includes_its_own_header_first(self):
        header = {"models/a.hpp": "#pragma once\n"}
        self.assertEqual(faults_of({**header, "models/a.cpp": '// A model.\n#include "models/a.hpp"\n\n#include <vector>\n'}), [])
        for text in ('#include <vector>\n#include "models/a.hpp"\n', "#include <vector>\n", "int a;\n"):
            with self.subTest(text=text):
                self.assertEqual(
                    faults_of({**header, "models/a.cpp": text}), ['models/a.cpp: must include its own "models/a.hpp" first']
                )

    def test_every_header_may_be_included_twice(self):
        self.assertEqual(faults_of({"models/a.hpp": "// Says #pragma once.\n"}), ["models/a.hpp: has no #pragma once"])


class Phrases(unittest.TestCase):
    def test_listed_phrases_are_caught(self):
        for line in ("all but for one", "rings, of which one is", "the order as NCCL has it", "Hosts are alike."):
            with self.subTest(line=line):
                for name in ("README.md", "base/a.hpp", "docs/a.md", "scripts/a", "tests/a.hpp", "tests/CMakeLists.txt"):
                    self.assertEqual(len(faults_of({name: f"#pragma once\n// {line}\n"})), 1)

    def test_recorded_text_keeps_its_words(self):
        self.assertEqual(faults_of({"tests/golden/a": "Hosts are alike.\n"}), [])

    def test_others_are_not(self):
        self.assertEqual(faults_of({"README.md": "either of which may be empty; the flows of which class; what is likely\n"}), [])


class Length(unittest.TestCase):
    def test_a_long_file_is_caught(self):
        most = "\n" * sources.MAX_LINES
        self.assertEqual(faults_of({"topology/a.cpp": most}), [])
        self.assertEqual(len(faults_of({"topology/a.cpp": most + "\n"})), 1)
        self.assertEqual(len(faults_of({"scripts/a.py": most + "\n"})), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
