"""polyring completion: what each shell offers for some command lines."""

import re
import shutil
import subprocess
import unittest

from program import SUBCOMMANDS, ProgramTest, main

FILES = "(files)"
BASH = 'source ./bash; compopt() { echo "(files)"; }; COMP_LINE=$1 COMP_POINT=${#1}; _polyring; printf "%s\\n" "${COMPREPLY[@]}"'


class Completion(ProgramTest):
    def setUp(self):
        super().setUp()
        for shell in ("bash", "zsh", "fish"):
            (self.folder / shell).write_text(self.succeed("completion", shell), encoding="utf-8")

    def run_shell(self, shell, *arguments):
        if not shutil.which(shell):
            self.skipTest(f"no {shell} here")
        ran = subprocess.run([shell, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, check=False, timeout=60, env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin"})
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return ran.stdout

    def bash(self, line):
        return self.run_shell("bash", "--norc", "-c", BASH, "bash", line).split()

    def fish(self, line):
        offered = self.run_shell("fish", "--no-config", "-c", "source ./fish; complete -C $argv[1]", line)
        return [entry.split("\t")[0] for entry in offered.splitlines()]

    def names(self, *words):
        """Those that a usage error lists."""
        listed = self.refused(*words, "xx").split("choose from ")[1].split(", ")
        return [name for name in listed if "NAME" not in name]

    def test_bash(self):
        machines = self.names("probe", "--machine")
        for line, offered in {
            "polyring al": ["allreduce", "allgather", "alltoall"],
            "polyring help prob": ["probe"],
            "polyring probe --m": ["--machine"],
            "polyring probe --machine ": [FILES, *machines],  # or a file that describes one
            "polyring probe --machine=": [FILES, *machines],
            "polyring probe --machine dgx-h1": [FILES, "dgx-h100"],
            "polyring allreduce --algorithm ": self.names("allreduce", "--algorithm"),
            "polyring allreduce -b 8 --algorithm mpi,mult": ["mpi,multi-ring"],
            "polyring allreduce --algorithm gloo:ring-": ["ring-chunked"],  # the rest of the word, as bash sees it
            "polyring allreduce -d dou": ["double"],
            "polyring allreduce --minbytes ": [],
            "polyring verify --collective a": ["allreduce", "allgather", "alltoall"],
            "polyring probe --from ": [FILES],
            "polyring probe --from=x": [FILES],
            "polyring report ": [FILES],
            "polyring compare ": [FILES],
            "polyring compare x.json --chart ": [FILES],
            "polyring report x.json --o": ["--out", "--overlay"],
            "polyring launch -H a -- ": [FILES],
            "polyring completion z": ["zsh"],
        }.items():
            with self.subTest(line=line):
                self.assertEqual(sorted(set(self.bash(line)) - {""}), sorted(offered))

    def test_bash_has_all_that_help_shows(self):
        self.assertEqual(set(self.bash("polyring ")), {*SUBCOMMANDS, "help", "--help", "--version"})
        for name in SUBCOMMANDS:
            shown = re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)", self.succeed(name, "--help").split("Example:")[0])
            self.assertLessEqual(set(shown), set(self.bash(f"polyring {name} --")), name)

    def test_fish(self):
        self.run_shell("fish", "--no-execute", "./fish")
        self.assertEqual(sorted(self.fish("polyring al")), ["allgather", "allreduce", "alltoall"])
        self.assertEqual(sorted(self.fish("polyring probe --machine ")), sorted(self.names("probe", "--machine")))
        self.assertEqual(self.fish("polyring allreduce -d dou"), ["double"])
        self.assertIn("fish", self.fish("polyring probe --from "))  # a file
        self.assertEqual(self.fish("polyring allreduce --minbytes "), [])

    def test_zsh(self):
        self.assertIn("_sequence compadd - multi-ring ", (text := (self.folder / "zsh").read_text()))
        self.assertRegex(text, r" mpi\\:all")  # a colon ends what is to be done
        self.run_shell("zsh", "-n", "./zsh")

    def test_the_shell_must_be_known(self):
        self.refused("completion", naming="shell is required")
        self.refused("completion", "csh", naming="choose from bash, zsh, fish")


if __name__ == "__main__":
    main()
