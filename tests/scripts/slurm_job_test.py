"""scripts/slurm/accept.sbatch with a stand-in for srun: what it starts, and how it ends."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
COMMANDS = ("probe", "allreduce", "accept")


class SlurmJob(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        (self.folder / "srun").write_text("""#!/bin/sh
            echo "$*" >>calls
            for command in probe allreduce accept; do
              case "$*" in *" $command "*) eval "exit \\${CODE_$command:-0}" ;; esac
            done
        """)
        (self.folder / "srun").chmod(0o755)

    def run_job(self, *options, **environment):
        """The exit code, and what was started."""
        environment = {"PATH": f"{self.folder}:/usr/bin:/bin", "SLURM_JOB_ID": "7", **environment}
        ran = subprocess.run([ROOT / "scripts/slurm/accept.sbatch", *options], cwd=self.folder, env=environment, check=False,
                             stderr=subprocess.DEVNULL, timeout=60)
        return ran.returncode, (self.folder / "calls").read_text().splitlines()

    def test_probes_measures_and_accepts(self):
        code, calls = self.run_job("--budget", "20 min")
        results = self.folder / "polyring-7"
        self.assertEqual((code, calls), (0, [
            "--kill-on-bad-exit=0 polyring probe --format json",
            f"--kill-on-bad-exit=0 polyring allreduce -b 8 -e 256M -f 4 -J {results}/allreduce.json",
            f"--kill-on-bad-exit=0 polyring accept --budget 20 min -J {results}/accept.json",
        ]))

    def test_in_a_container(self):
        code, calls = self.run_job(POLYRING_IMAGE="registry.example.com#polyring:1", POLYRING="/opt/polyring", POLYRING_ALLREDUCE="-n 5")
        here = self.folder
        container = f"--container-image=registry.example.com#polyring:1 --container-mounts={here}:{here} --container-workdir={here}"
        self.assertEqual(code, 0)
        self.assertIn(f"{container} /opt/polyring allreduce -n 5 -J", calls[1])
        self.assertTrue(all(container in call for call in calls))

    def test_goes_on_after_a_failure_and_tells_it(self):
        for failing, expected in (({"accept": 8}, 8), ({"probe": 5, "allreduce": 4}, 5), ({"probe": 5, "accept": 9}, 9)):
            with self.subTest(failing=failing):
                (self.folder / "calls").unlink(missing_ok=True)
                code, calls = self.run_job(**{f"CODE_{command}": str(number) for command, number in failing.items()})
                self.assertEqual(code, expected)
                self.assertEqual([next(command for command in COMMANDS if f" {command} " in call) for call in calls], list(COMMANDS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
