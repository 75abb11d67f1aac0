"""polyring.torch with the PyTorch that is here: the backend, the hook, and what becomes of the others when a rank ends.

Needs PyTorch, by the Python that POLYRING_TORCH_PYTHON names, by this one or by Debian's; without it all is skipped, or fails where
POLYRING_MUST_RUN names `torch`. CTest sets PYTHONPATH and POLYRING_LIBRARY.
"""

import pathlib
import subprocess
import sys
import unittest

import python_runs

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "tests" / "scripts"))
import must_run  # noqa: E402


class WithPyTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = python_runs.python_with("torch")
        if cls.python is None:
            must_run.skip("torch", "no Python here has PyTorch; run scripts/setup --torch")

    def test_collectives(self):
        python_runs.run_ranks(self, self.python, "torch_ranks.py", "collectives", 3)

    def test_training_has_gloos_losses(self):
        python_runs.run_ranks(self, self.python, "torch_ranks.py", "training", 2)

    def test_a_rank_that_ends(self):
        python_runs.run_ranks(self, self.python, "torch_ranks.py", "failure", 3, killed=(2,))

    def test_the_example(self):
        """A real ResNet-18 on 4 processes."""
        ran = subprocess.run([self.python, "-B", ROOT / "docs/examples/train_resnet.py", "--ranks", "4", "--steps", "2", "--batch", "2"],
                             capture_output=True, text=True, check=False, timeout=python_runs.TIME_LIMIT_S, stdin=subprocess.DEVNULL)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        for method in ("gloo", "polyring, hook", "polyring, backend"):
            self.assertRegex(ran.stdout, rf"(?m)^{method} .*\d images/s")
        self.assertIn("These are too few steps to compare: give --steps 6 or more.\n", ran.stdout)
        self.assertRegex(ran.stdout, r"(?m)^The losses of the first 3 steps differ from gloo's by at most [0-9.e-]+ of theirs\.$")

    def test_the_example_refuses_what_cannot_be(self):
        for words, says in {("--ranks", "0"): "--ranks: needs a number", ("--image", "32"): "--image: needs a number, 64 to 1024", ("--batch", "x"): "--batch"}.items():
            ran = subprocess.run([self.python, "-B", ROOT / "docs/examples/train_resnet.py", *words], capture_output=True, text=True, check=False,
                                 timeout=60, stdin=subprocess.DEVNULL)
            self.assertEqual((ran.returncode, ran.stdout), (6, ""), ran.stderr)
            self.assertIn(says, ran.stderr)


if __name__ == "__main__":
    python_runs.end(unittest.main(verbosity=2, exit=False).result)
