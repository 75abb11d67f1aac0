"""scripts/measure_step: models that are the catalogue's, times and order of gradients, the file, and what it refuses.

Needs PyTorch, by the Python that POLYRING_TORCH_PYTHON names, by this one or by Debian's; without it most is skipped, or fails where
POLYRING_MUST_RUN names `torch`. POLYRING_PROGRAM, set by CTest, is the program that reads the files.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import must_run

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
SCRIPT = ROOT / "scripts" / "measure_step"
PROGRAM = os.environ.get("POLYRING_PROGRAM")
NOT_AVAILABLE, USAGE = 5, 6
SLEEP_MS = 50
TIME_LIMIT_S = 120

# A model whose backward pass sleeps between its two layers, and functions that return what is no model and batch.
OWN = f"""
import time
import torch
from torch.nn import functional

class Sleep(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        time.sleep({SLEEP_MS / 1e3})
        return gradient

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = torch.nn.Embedding(7, 5)
        self.first = torch.nn.Linear(5, 5)
        self.second = torch.nn.Linear(5, 5)

    def forward(self, tokens, labels):
        x = Sleep.apply(torch.relu(self.first(self.shared(tokens))))
        return functional.cross_entropy(functional.linear(self.second(x), self.shared.weight), labels)

def make(batch):
    return Net(), (torch.randint(7, (batch,)), torch.randint(7, (batch,)))

def no_loss(batch):
    return torch.nn.Linear(5, 3), (torch.randn(batch, 5),)

def unused(batch):
    net, arguments = make(batch)
    net.third = torch.nn.Linear(2, 2)
    return net, arguments

def nothing(batch):
    return None
"""


def has_torch(python):
    return bool(python) and subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0


@functools.cache
def torch_python():
    """A Python that has PyTorch; None where there is none."""
    candidates = (os.environ.get("POLYRING_TORCH_PYTHON"), sys.executable, "/usr/bin/python3")
    return next((python for python in candidates if has_torch(python)), None)


class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_script(self, *words, python=sys.executable, **variables):
        return subprocess.run([python, "-B", SCRIPT, *words], cwd=self.folder, env=os.environ | variables, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)

    def refused(self, *words, naming, code=USAGE, **how):
        ran = self.run_script(*words, **how)
        self.assertEqual((ran.returncode, ran.stdout), (code, ""), ran.stderr)
        self.assertRegex(ran.stderr, r"\Ameasure_step: [^\n]*\n\Z")
        self.assertIn(naming, ran.stderr)


class WithoutPyTorch(Script):
    def test_it_says_what_to_do(self):
        (self.folder / "torch.py").write_text("raise ImportError('it is hidden')\n", encoding="utf-8")
        self.refused("--model", "resnet50", naming="has no PyTorch (it is hidden); start this script with a Python that has it, or run scripts/setup --torch",
                     code=NOT_AVAILABLE, PYTHONPATH=str(self.folder))

    def test_help_has_examples(self):
        ran = self.run_script("--help")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("scripts/measure_step --model resnet50 --batch 64 -J step.json", ran.stdout)

    def test_bad_options(self):
        for words, naming in {
            ("--batch", "0"): "needs a number, 1 to 1048576, not '0'",
            ("--batch", "9" * 40): "--batch",
            ("--iterations", "0"): "--iterations",
            ("--precision", "half"): "--precision",
            ("--device", "tpu"): "--device",
            ("--model", "vgg16", "--module", "x.py:make"): "--module",
            ("-J", "missing/step.json"): "there is no folder 'missing'",
            ("-J", "."): "is a folder",
        }.items():
            with self.subTest(words=words):
                self.refused(*words, naming=naming)


class WithPyTorch(Script):
    @classmethod
    def setUpClass(cls):
        if torch_python() is None:
            must_run.skip("torch", "no Python here has PyTorch; run scripts/setup --torch")

    def setUp(self):
        super().setUp()
        (self.folder / "own.py").write_text(OWN, encoding="utf-8")

    def run_script(self, *words, **how):
        return super().run_script(*words, **{"python": torch_python()} | how)

    def measure(self, *words):
        ran = self.run_script(*words, "-J", "step.json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran, json.loads((self.folder / "step.json").read_text(encoding="utf-8"))

    def polyring(self, *words):
        return subprocess.run([PROGRAM, *words], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=TIME_LIMIT_S)

    def test_a_model_of_ones_own(self):
        """Lower bounds alone: how busy the machine is does not matter."""
        ran, step = self.measure("--module", "own.py:make", "--batch", "4", "-n", "1", "-w", "0", "--device", "cpu")
        self.assertIn("own.py:make, batch 4, single precision", ran.stdout)
        self.assertIn("written to 'step.json'\n", ran.stdout)
        self.assertEqual((step["schema"], step["version"], step["model"], step["own_model"]), ("polyring-step", 1, "own.py:make", True))
        self.assertEqual(step["parameters"], 7 * 5 + 2 * (5 * 5 + 5))
        ready = {gradient["name"]: gradient["ready"] for gradient in step["gradients"]}
        self.assertEqual(list(ready.values()), sorted(ready.values()))
        self.assertEqual(set(list(ready)[:2]), {"second.weight", "second.bias"})
        self.assertEqual(list(ready)[-1], "shared.weight", "the sum of two parts is ready with the last of them")
        self.assertGreaterEqual((ready["first.weight"] - ready["second.weight"]) * step["backward_ms"]["median"], 0.98 * SLEEP_MS)

    def test_an_existing_file_is_kept(self):
        (self.folder / "step.json").write_text("mine", encoding="utf-8")
        ran = self.run_script("--module", "own.py:make", "-n", "1", "-w", "0", "--precision", "mixed", "--device", "cpu", "-J", "step.json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("written to 'step.json.1', since 'step.json' exists\n", ran.stdout)
        self.assertEqual((self.folder / "step.json").read_text(encoding="utf-8"), "mine")
        self.assertEqual(json.loads((self.folder / "step.json.1").read_text(encoding="utf-8"))["type"], "bfloat16")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["own.py", "step.json", "step.json.1"])

    def test_what_is_no_model(self):
        for module, naming in {
            "own.py:no_loss": "does not return its loss",
            "own.py:unused": "third.weight gets no gradient",
            "own.py:nothing": "does not return a model and a tuple",
            "own.py:none": "has no function none",
            "missing.py:make": "there is no file 'missing.py'",
            "own.py": "is not of the form FILE.py:FUNCTION",
        }.items():
            with self.subTest(module=module):
                self.refused("--module", module, "-J", "step.json", "--device", "cpu", naming=naming)
        self.refused("--model", "resnet5", naming="unknown model 'resnet5'; choose from resnet50, ")
        self.assertFalse((self.folder / "step.json").exists())

    def test_models_are_those_of_the_catalogue(self):
        """The reader refuses a file whose gradients are not those of the model by name and elements."""
        listing = "import json, sys; sys.path.insert(0, sys.argv[1]); from stepping import catalogue; " \
                  "print(json.dumps({name: catalogue.parameters_of(name) for name in catalogue.CATALOGUE}))"
        ran = subprocess.run([torch_python(), "-B", "-c", listing, ROOT / "scripts"], capture_output=True, text=True, check=True)
        models = json.loads(ran.stdout)
        known = self.polyring("scale", "--machine", "minsky", "--model", "none").stderr.split("choose from ")[1]
        self.assertEqual(sorted(models), sorted(known.strip().split(", ")))
        for name, parameters in models.items():
            with self.subTest(model=name):
                self.assertNotIn("measured for", self.scaled(name, parameters).stderr)
        name, elements = models["vgg16"][3]
        refused = self.scaled("vgg16", [*models["vgg16"][:3], [name, elements + 1], *models["vgg16"][4:]])
        self.assertEqual(refused.returncode, USAGE)
        self.assertIn(f"its {name} has {elements + 1} elements, not {elements}", refused.stderr)

    def scaled(self, name, parameters):
        """What scale says of a step of the model with these gradients. A model that does not fit is refused after they are checked."""
        time = {"median": 10.0}
        gradients = [{"name": parameter, "elements": elements, "ready": (i + 1) / len(parameters)} for i, (parameter, elements) in enumerate(parameters)]
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({
            "schema": "polyring-step", "version": 1, "created": "2026-03-01T12:00:00Z", "model": name, "own_model": False, "batch": 1, "precision": "mixed",
            "device_name": "none", "parameters": sum(elements for _, elements in parameters), "forward_ms": time, "backward_ms": time, "optimizer_ms": time,
            "gradients": gradients}), encoding="utf-8")
        ran = self.polyring("scale", "--machine", "minsky", "--model", name, "--step", path, "--gpus", "4", "--algorithm", "ring")
        self.assertIn(ran.returncode, (0, USAGE), ran.stderr)
        return ran

    def test_scale_reads_what_was_measured(self):
        self.measure("--model", "resnet50", "--batch", "1", "-n", "1", "-w", "0", "--device", "cpu")
        ran = self.polyring("scale", "--machine", "minsky", "--step", "step.json", "--gpus", "4,8", "--algorithm", "ring")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout + ran.stderr, r"are measured with batch 1 in single precision on .* \(step\.json of 20\d\d-")


if __name__ == "__main__":
    unittest.main(verbosity=2)
