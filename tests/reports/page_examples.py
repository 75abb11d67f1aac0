"""Reports for the tests of the page: of examples, of 64 hosts, and of results whose names are hostile."""

import functools
import json
import os
import subprocess
from pathlib import Path

ATTACK = "<script>document.title='owned'</script><img src=x onerror=console.log(1)>\"'&amp;{{ 7*7 }}{% raw %}\x1b[2J\u202e"
LONG = "x" * 300
KINDS = ("allreduce", "train", "scale", "tune", "accept")


class Examples:
    def __init__(self, program, presets, folder):
        self.program, self.folder = program, Path(folder)
        subprocess.run([program, "write", folder], check=True)
        subprocess.run([program, "write-large", folder], check=True)
        machines = self.folder / "machines"
        machines.mkdir()
        subprocess.run([presets, machines], check=True)
        for name in ("allreduce64", "accept64"):
            self.changed(name, name, lambda result: result.update(machine=json.loads((machines / "dgx-a100.json").read_text())))

    def changed(self, name, other, change):
        """The example `name`, changed, as a file of another name."""
        path = self.folder / f"{name}.json"
        result = json.loads(path.read_text(encoding="utf-8"))
        change(result)
        (self.folder / f"{other}.json").write_text(json.dumps(result), encoding="utf-8")

    def report(self, name, *results, without=""):
        """The folder, and what was said. `without`: a module of Python's that is not there; charts take seconds."""
        folder, modules = self.folder / name, self.folder / "without" / without
        environment = dict(os.environ)
        if without:
            modules.mkdir(parents=True, exist_ok=True)
            (modules / f"{without}.py").write_text("raise ImportError('not here')\n")
            environment["PYTHONPATH"] = str(modules)
        files = [self.folder / f"{result}.json" for result in results]
        ran = subprocess.run([self.program, "report", folder, *files], check=True, capture_output=True, text=True, env=environment)
        return folder, ran.stdout

    @functools.cached_property
    def all_kinds(self):
        return self.report("all", *KINDS)[0]

    @functools.cached_property
    def large(self):
        return self.report("large", "accept64", "allreduce64", "scale64", "train64")[0]

    @functools.cached_property
    def published(self):
        return self.report("published", "published")[0]

    @functools.cached_property
    def hostile(self):
        """A report in which every text that comes from outside is an attack or very long."""
        def spoil(result):
            result.update(command=f"polyring {ATTACK} {LONG}", title=f"{ATTACK} {LONG}", notes=[ATTACK, LONG], versions={ATTACK: LONG}, commit=ATTACK[:60],
                          placement=[{"rank": 0, "host": ATTACK}, {"rank": 1, "host": LONG}],
                          inputs=[{"name": ATTACK, "value": LONG, "source": ATTACK}])
            for row in result["rows"]:
                for key in ("machine", "model", "published_run", "framework", "subject", "why", "remedy", "unit", "quantity", "threshold_source"):
                    if row.get(key):
                        row[key] = f"{ATTACK} {LONG} {row[key]}"
                if "hosts" in row:
                    row["hosts"] = [f"{host} {ATTACK}" for host in row["hosts"]]
                for span in row.get("timeline", []):
                    span["label"] = ATTACK
        kinds = (*KINDS[1:], "published")
        for kind in kinds:
            self.changed(kind, f"hostile-{kind}", spoil)
        return self.report("hostile", *(f"hostile-{kind}" for kind in kinds))[0]
