"""One real work of scripts/race, quickly, with the build that is tested: do its options still fit polyring's?

Environment, set by CTest: POLYRING_PROGRAM, POLYRING_MPIEXEC.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
NOT_AVAILABLE = 5


class Quick(unittest.TestCase):
    def test_a_work_on_this_host(self):
        version = subprocess.run([os.environ["POLYRING_MPIEXEC"], "--version"], capture_output=True, text=True, check=False)
        mpi = "mpich" if "HYDRA" in version.stdout else "openmpi"
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(
                [ROOT / "scripts/race", "--quick", "--only", "host-1M", "--out", "race",
                 f"--{mpi}-program", os.environ["POLYRING_PROGRAM"]],
                cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=200,
            )
            self.assertEqual(ran.returncode, NOT_AVAILABLE, ran.stdout + ran.stderr)  # for the other MPI
            result = json.loads((pathlib.Path(folder) / "race/race.json").read_text())
        self.assertEqual((result["wrong"], result["failed"]), ([], []))
        contests = {(contest["launch"], contest["placement"]): contest for contest in result["works"][0]["contests"]}
        launches = ["mpich"] if mpi == "mpich" else ["openmpi", "openmpi-no-cma"]
        if not any(sentence.startswith("gloo: ") for sentence in result["left_out"]):
            launches.insert(0, "gloo")
        self.assertEqual(sorted(contests), sorted((launch, place) for launch in launches for place in ("in-place", "out-of-place")))
        for (launch, _), contest in contests.items():
            contenders = [contender["algorithm"] for contender in contest["contenders"]]
            library = "gloo" if launch == "gloo" else "mpi"
            self.assertEqual("mpi" in contenders, library == "mpi")
            self.assertEqual({name.split(":")[0] for name in contenders}, {library})
            self.assertGreater(len(contenders), 3)
            self.assertGreater(contest["time_us"]["median"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
