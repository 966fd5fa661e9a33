"""The binary on emulated CPUs: it starts, picks the instruction set that CPU has, and gives the golden tokens."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import USAGE, Expect, frontier, golden, model  # noqa: E402

CPUS = {"Nehalem": "scalar", "Haswell": "avx2"}
MODELS = {"tale-1m": "tale-1m-f16.gguf", "stories260K": "stories260K-f32.gguf"}


class Emulated(Expect, unittest.TestCase):
    def run_on(self, cpu, *arguments):
        return frontier(*arguments, prefix=("qemu-x86_64", "-cpu", cpu), timeout_s=600)

    def test_goldens(self):
        for cpu, isa in CPUS.items():
            for name, file in MODELS.items():
                for prompt in golden()["models"][name]["prompts"][:3]:
                    close = prompt["first_close_step"]
                    for flags, steps in ((["--isa", "scalar", "--dtype", "f32"], 16),
                                         ([], 16 if close is None else min(16, close))):
                        with self.subTest(cpu=cpu, model=name, prompt=prompt["prompt"], flags=flags):
                            row = self.json_of(self.run_on(
                                cpu, "run", model(file), "--json", "--temperature", "0", "-n", "16", "--ignore-eos",
                                "--threads", "2", "-p", prompt["prompt"], *flags))
                            self.assertEqual(row["isa"], "scalar" if flags else isa)
                            self.assertEqual(row["token_ids"][:steps], prompt["greedy_ids"][:steps])

    def test_an_instruction_set_the_cpu_lacks_is_refused(self):
        for cpu, isa in (("Nehalem", "avx2"), ("Nehalem", "avx512"), ("Haswell", "avx512"), ("Haswell", "amx")):
            outcome = self.run_on(cpu, "run", model("stories260K-f32.gguf"), "-p", "x", "-n", "1", "--isa", isa)
            self.assert_error(outcome, USAGE, "isa", isa)

    def test_quantised_weights(self):
        """The integer path gives the same tokens on every instruction set."""
        rows = [self.json_of(self.run_on(cpu, "run", "synthetic:tiny-llama:Q4_0", "--json", "--temperature", "0", "-n",
                                         "8", "--ignore-eos", "-p", "Once", "--threads", "2")) for cpu in CPUS]
        rows.append(self.json_of(frontier("run", "synthetic:tiny-llama:Q4_0", "--json", "--temperature", "0", "-n", "8",
                                          "--ignore-eos", "-p", "Once")))
        self.assertEqual(rows[0]["token_ids"], rows[1]["token_ids"])
        self.assertEqual(rows[0]["token_ids"], rows[2]["token_ids"])


if __name__ == "__main__":
    unittest.main()
