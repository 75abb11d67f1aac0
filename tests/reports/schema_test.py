"""Results validate against reports/result.schema.json, damaged ones don't, and polyring's reader agrees.

usage: schema_test.py EXAMPLES_PROGRAM SCHEMA
"""

import copy
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import jsonschema
except ImportError:
    print(f"skipped: {sys.executable} has no jsonschema (install python3-jsonschema)")
    sys.exit(77)

PROGRAM, SCHEMA = sys.argv[1:3]
KINDS = ("allreduce", "train", "scale", "tune", "accept")


MAY_BE_ABSENT = ("feed_GBps", "limit", "rails", "bottleneck", "global_batch", "strategy", "bubble", "conditions", "timing", "trend", "expected_us",
                 "least_clock_MHz", "most_clock_MHz", "leaves", "rounds", "ended", "published_run", "framework", "combinations", "widest_unknown", "title")


def damaged_objects(whole):
    """Copies of an object, each with one fault: a key missing, of a wrong type, or negative."""
    for key, value in whole.items():
        if key not in MAY_BE_ABSENT:
            yield f"{key} missing", {k: v for k, v in whole.items() if k != key}
        yield f"{key} of a wrong type", {**whole, key: "text" if isinstance(value, (dict, list)) else [{}]}
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"{key} negative", {**whole, key: -1}


def at(document, path):
    for key in path:
        document = document[key]
    return document


def replaced(document, path, value):
    document = copy.deepcopy(document)
    at(document, path[:-1])[path[-1]] = value
    return document


def damaged_documents(whole):
    paths = [["rows", 1], ["inputs", 0], ["placement", 0], ["conditions", 1], ["leaves", 0], ["rounds"]]
    paths += [["rows", 1, key] for key in ("time_us", "iteration_ms")]
    paths += [["rows", 1, "timeline", 2]]
    for path in paths:
        try:
            part = at(whole, path)
        except (KeyError, IndexError):
            continue
        if isinstance(part, dict):
            for fault, damaged in damaged_objects(part):
                yield f"{path}: {fault}", replaced(whole, path, damaged)
    yield "partial without saying how much", {**whole, "partial": True}
    for key in whole.keys() - {"partial", *MAY_BE_ABSENT}:
        yield f"{key} missing", {k: v for k, v in whole.items() if k != key}
    if "nodes" in whole["rows"][1]:
        yield "no whole number of nodes", replaced(whole, ["rows", 1, "nodes"], 1.5)
        yield "no node", replaced(whole, ["rows", 1, "nodes"], 0)
    if "published_run" in whole["rows"][1]:
        yield "a published run without its efficiency", replaced(whole, ["rows", 1, "published_efficiency"], None)
    yield "unknown source", replaced(whole, ["rows", 1, "source"], "guessed")
    yield "unknown kind", {**whole, "kind": "latency"}
    yield "newer version", {**whole, "version": 2}
    yield "another format", {**whole, "format": "other"}
    yield "environment of numbers", {**whole, "environment": {"OMP_NUM_THREADS": 1}}
    for kind in KINDS:
        if kind != whole["kind"]:
            yield f"rows of {whole['kind']} as {kind}", {**whole, "kind": kind}


class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        schema = json.loads(Path(SCHEMA).read_text(encoding="utf-8"))
        jsonschema.Draft7Validator.check_schema(schema)
        cls.validator = jsonschema.Draft7Validator(schema)
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([PROGRAM, "write", cls.folder.name], check=True)
        cls.examples = [json.loads((Path(cls.folder.name) / f"{kind}.json").read_text(encoding="utf-8"))
                        for kind in (*KINDS, "published")]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def verdicts_of_reader(self, documents):
        """What polyring says of each: "ok", or a sentence."""
        paths = []
        for index, document in enumerate(documents):
            paths.append(Path(self.folder.name) / f"damaged-{index}.json")
            paths[-1].write_text(json.dumps(document), encoding="utf-8")
        run = subprocess.run([PROGRAM, "check", *paths], check=True, capture_output=True, text=True)
        return run.stdout.splitlines()

    def test_what_polyring_writes_is_valid(self):
        for example in self.examples:
            self.validator.validate(example)
            self.validator.validate({**example, "rows": []})
        self.assertEqual(self.verdicts_of_reader(self.examples), ["ok"] * len(self.examples))

    def test_every_damage_is_refused_by_schema_and_reader(self):
        for example in self.examples:
            faults, documents = zip(*damaged_documents(example))
            self.assertGreater(len(faults), 50)
            for fault, document, verdict in zip(faults, documents, self.verdicts_of_reader(documents), strict=True):
                with self.subTest(kind=example["kind"], fault=fault):
                    self.assertFalse(self.validator.is_valid(document))
                    self.assertNotEqual(verdict, "ok")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
