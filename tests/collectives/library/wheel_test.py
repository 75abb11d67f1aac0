"""The wheel of the Python package: it holds the library and the Python files, and works from another folder. It is built where some
Python has scikit-build-core, and skipped elsewhere. Run with the repository's root, and a folder that keeps what is compiled.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

import python_runs

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
PACKAGE = ROOT / "collectives" / "library" / "python"


class Wheel(unittest.TestCase):
    def test_it_works_alone(self):
        python = python_runs.python_with("scikit_build_core, numpy, pip")
        if python is None:
            self.skipTest("no Python here has scikit-build-core, NumPy and pip; pip install scikit-build-core")
        with tempfile.TemporaryDirectory() as folder:
            built = subprocess.run([python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", folder,
                                    "--config-settings", f"build-dir={BUILD}", PACKAGE], capture_output=True,
                                   text=True, check=False)
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            (wheel,) = pathlib.Path(folder).glob("*.whl")
            self.assertRegex(wheel.name, r"\Apolyring-\d+\.\d+\.\d+-py3-none-linux_\w+\.whl\Z")
            with zipfile.ZipFile(wheel) as packed:
                names = {name for name in packed.namelist() if name.startswith("polyring/")}
                packed.extractall(f"{folder}/installed")
            files = {f"polyring/{path.name}" for path in (PACKAGE / "polyring").iterdir() if path.suffix in (".py", ".typed")}
            libraries = names - files
            self.assertIn("polyring/libpolyring.so.0", libraries)
            self.assertEqual(names & files, files)
            self.assertTrue(all(re.match(r"polyring/lib(polyring|fmt)\.so", name) for name in libraries), libraries)
            needed = subprocess.run(["ldd", f"{folder}/installed/polyring/libpolyring.so.0"], capture_output=True, text=True, check=True).stdout
            self.assertRegex(needed, rf"libfmt\.so\.\d+ => {folder}/installed/polyring/libfmt")
            os.environ.pop("POLYRING_LIBRARY", None)
            os.environ["PYTHONPATH"] = f"{folder}/installed"
            python_runs.run_ranks(self, python, "python_ranks.py", "meetings", 2)


if __name__ == "__main__":
    python_runs.end(unittest.main(verbosity=2, exit=False).result)
