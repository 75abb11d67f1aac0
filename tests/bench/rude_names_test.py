"""Names in files may hold what a terminal obeys, lines that look like ours, and Markdown: they are shown, and do nothing."""

import json
import unicodedata

from hosts import fabric
from program import ProgramTest, main

LINE = "polyring: all is well"
RUDE = f"x\x1b[2J\x1b]0;title\x07\x7f\u009b31m\u202e\n{LINE}\n\r\ty"
MARKDOWN = "**x** [link](http://evil) <script> | `code`\n# Heading"
SCALE = ("scale", "--gpus", "4", "--bucket", "none", "--gpu", "P100", "--batch", "32")


class RudeNames(ProgramTest):
    def shown(self, text):
        """Nothing in it is obeyed, and no line is what a name made."""
        hidden = [letter for letter in text if letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp")]
        self.assertEqual(hidden, [], text)
        self.assertNotIn(LINE, text.splitlines(), text)

    def probed(self, *words):
        text = self.succeed("probe", *words)
        self.assertIn("all is well", text)
        self.shown(text)

    def machine(self):
        """A file of probe's in which all texts of a kind are rude."""
        document = json.loads(self.succeed("probe", "--machine", "minsky", "--format", "json"))
        host = document["hosts"][0]
        host["model"] = host["packages"][0]["model"] = RUDE
        host["remarks"] = [RUDE]
        host["citations"] = [{"fact": RUDE, "source": RUDE}]
        old = host["nics"][0]["name"]
        host["nics"][0]["name"] = RUDE
        for link in host["links"]:
            for end in ("from", "to"):
                link[end] = RUDE if link[end] == old else link[end]
        for gpu in host["gpus"]:
            gpu["model"] = f"P100 {RUDE}"
        host["name"] = document["name"] = RUDE
        path = self.folder / "rude.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def test_json(self):
        path = self.machine()
        for words in ((), ("--format", "matrix"), ("--format", "paths"), ("--format", "json"), ("--expect",)):
            with self.subTest(words=words):
                self.probed("--from", path, *words)
        for words in (("plan", "--explain"), (*SCALE, "--explain")):
            with self.subTest(words=words):
                ran = self.run_program(*words, "--from", path)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.shown(ran.stdout)
                self.shown(ran.stderr)

    def test_nccl(self):
        text = self.succeed("probe", "--machine", "minsky", "--format", "nccl-xml")
        rude = "".join(f"&#{ord(letter)};" for letter in RUDE)
        (self.folder / "rude.xml").write_text(text.replace("mlx5_0", rude), encoding="utf-8")
        self.probed("--from", "rude.xml")

    def test_a_fabric(self):
        rude = RUDE.replace("\n", "")
        (self.folder / "net.out").write_text(fabric(2, 2).replace("node0", rude), encoding="utf-8")
        self.shown(self.succeed("probe", "--fabric", "net.out"))

    def test_mistakes(self):
        for words in (("probe", "--from", RUDE), ("plan", "--machine", RUDE), ("report", RUDE), (RUDE,), ("probe", f"--{RUDE}")):
            with self.subTest(words=words):
                self.refused(*words)
                self.shown(self.run_program(*words).stderr)

    def test_names_of_files(self):
        text = self.succeed(*SCALE, "--machine", "minsky", "-J", "o\x1b[2J.json")
        self.assertIn("Written to o␛[2J.json\n", text)
        self.shown(text)

    def test_results(self):
        self.succeed(*SCALE, "--machine", "minsky", "-J", "out.json")
        document = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
        document["command"] = f"polyring `a` ``b`` {MARKDOWN}"
        document["notes"] = [MARKDOWN, RUDE]
        document["versions"] = {"mpi": MARKDOWN}
        document["placement"] = [{"rank": 0, "host": MARKDOWN}]
        document["inputs"] = [{"name": MARKDOWN, "value": RUDE, "source": MARKDOWN}]
        for row in document["rows"]:
            row["machine"] = row["model"] = MARKDOWN
        (self.folder / "out.json").write_text(json.dumps(document), encoding="utf-8")
        ran = self.run_program("report", "out.json", "--out", "r")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.shown(ran.stderr)
        text = (self.folder / "r/report.md").read_text(encoding="utf-8")
        self.shown(text)
        outside = "\n".join(line for line in text.splitlines() if not line.startswith("- command: ```"))
        for markup in ("**x**", "[link](", "<script>", "| `", "\n# Heading"):
            self.assertNotIn(markup, outside)
        self.assertIn("- command: ``` polyring `a` ``b`` **x** [link](http://evil) <script> | `code` # Heading ```\n", text)
        self.assertIn("- note: \\*\\*x\\*\\* \\[link\\](http://evil) &lt;script> \\| \\`code\\` # Heading\n", text)


if __name__ == "__main__":
    main()
