"""What scale, plan and verify print, against tests/golden/bench. POLYRING_UPDATE_GOLDEN=1 writes the files anew."""

import os

from program import GOLDEN, SANITIZED, ProgramTest, main

TABLES = {
    "scale-minsky": "scale --machine minsky",
    "scale-minsky-ideal": "scale --machine minsky --ideal --algorithm multi-ring,ring,halving-doubling,tree,parameter-server",
    "scale-h100-bert": "scale --machine dgx-h100 --model bert-large --gpus 8,256 --baseline nccl",
    "scale-h100-best": "scale --machine dgx-h100 --model llama3-8b --gpus 64 --algorithm nccl --strategy best",
    "scale-mi300x": "scale --machine mi300x --gpus 8,64",
    "scale-minsky-one-rail": "scale --machine minsky --rails 1",
    "scale-minsky-overlap": "scale --machine minsky --overlap --bucket fused:64MiB",
    "scale-minsky-jitter": "scale --machine minsky --algorithm multi-ring --jitter 5%",
    "scale-minsky-fed": "scale --machine minsky --algorithm multi-ring,parameter-server --filesystem 2GB/s --nvme 100MB/s",
    "scale-minsky-explained": "scale --machine minsky --algorithm multi-ring --gpus 4,256 --explain",
    "scale-published": "scale --published",
    "scale-minsky-hybrid": "scale --machine minsky --algorithm multi-ring --gpus 64 --strategy data=64 "
    "--strategy data=16,pipeline=4 --strategy inter-model=64",
    "plan-minsky-256": "plan --machine minsky --ranks 256 --dims 4x8x8",
    "scale-minsky-in-network": "scale --machine minsky --algorithm multi-ring,in-network --gpus 4,64,256 --explain",
    "scale-minsky-strong": "scale --machine minsky --algorithm multi-ring --gpus 4..64 --global-batch 2048 --explain",
    "plan-dgx1-v100-explained": "plan --machine dgx1-v100 --size 256MB --explain",
    "plan-minsky-explained": "plan --machine minsky --ranks 16 --size 256MB --explain",
    "plan-dgx-a100-ring-explained": "plan --machine dgx-a100 --ranks 16 --algorithm ring --explain",
    "verify-2x2": "verify --dims 2x2",
    "verify-reduce-scatter-2x2": "verify --collective reduce-scatter --dims 2x2",
    "verify-alltoall-2x2": "verify --collective alltoall --dims 2x2 --count 1001",
}
if SANITIZED:
    del TABLES["scale-published"]  # a minute or two of simulation; bench_compare_published_test has it under sanitizers, too


class Tables(ProgramTest):
    maxDiff = None

    def test_golden(self):
        for name, words in TABLES.items():
            with self.subTest(name=name):
                text = self.succeed(*words.split())
                path = GOLDEN / f"{name}.txt"
                if os.environ.get("POLYRING_UPDATE_GOLDEN"):
                    GOLDEN.mkdir(exist_ok=True)
                    path.write_text(text, encoding="utf-8")
                self.assertEqual(text, path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
