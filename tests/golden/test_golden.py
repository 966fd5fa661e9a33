"""The goldens of tests/golden/golden.json through the binary: ids, greedy continuations and perplexity.

The reference path (scalar, f32) must give every greedy token. Every other path must agree up to the first step whose
two best logits lie closer than the tolerance under which golden.json was made (first_close_step).
"""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import VALID_TEXT, Expect, frontier, golden, host_isas, model  # noqa: E402

GOLDEN = golden()
SOAK = bool(os.environ.get("FRONTIER_SOAK"))
# How far the engine's own rounding may move a perplexity: the contract for every instruction set at equal weights.
PERPLEXITY_TOLERANCE = 0.001


def specs(entry):
    return [model(file.rstrip("/")) for file in entry["files"].values()]


class Greedy(Expect, unittest.TestCase):
    def greedy(self, spec, prompt, *flags):
        return self.json_of(frontier("run", spec, "--json", "--temperature", "0", "-n", "32", "--ignore-eos",
                                     "--parse-special", "-p", prompt["prompt"], *flags))

    def test_reference_path_gives_every_token(self):
        for name, entry in GOLDEN["models"].items():
            for spec in specs(entry):
                for prompt in entry["prompts"]:
                    with self.subTest(model=name, spec=spec, prompt=prompt["prompt"]):
                        row = self.greedy(spec, prompt, "--isa", "scalar", "--dtype", "f32")
                        self.assertEqual(row["prompt_tokens"], len(prompt["ids"]))
                        self.assertEqual(row["token_ids"], prompt["greedy_ids"])
                        self.assertEqual(row["text"], prompt["greedy_text"])
                        self.assertEqual(row["completion_tokens"], 32)
                        self.assertEqual((row["isa"], row["compute_type"]), ("scalar", "f32"))

    def test_every_isa_agrees_up_to_the_first_close_step(self):
        for isa in host_isas():
            for name, entry in GOLDEN["models"].items():
                for spec in specs(entry):
                    for prompt in entry["prompts"]:
                        with self.subTest(isa=isa, model=name, spec=spec, prompt=prompt["prompt"]):
                            row = self.greedy(spec, prompt, "--isa", isa)
                            close = prompt["first_close_step"]
                            steps = 32 if close is None else close
                            self.assertEqual(row["token_ids"][:steps], prompt["greedy_ids"][:steps])
                            self.assertEqual(row["isa"], isa)

    def test_deterministic_and_thread_counts(self):
        entry = GOLDEN["models"]["tale-1m"]
        counts = range(1, min(3, len(os.sched_getaffinity(0))) + 1)  # more are not started, with a warning
        for prompt in entry["prompts"][:3]:
            rows = [self.greedy(specs(entry)[0], prompt, "--deterministic", "--threads", n) for n in counts]
            self.assertEqual(len({row["logits_hash"] for row in rows}), 1)
            self.assertEqual(len({tuple(row["token_ids"]) for row in rows}), 1)
            self.assertNotEqual(rows[0]["isa"], "amx")  # whose bits depend on how many tokens share a step


class Perplexity(Expect, unittest.TestCase):
    def perplexity(self, spec, method, *flags, text=VALID_TEXT, timeout_s=600):
        return self.json_of(frontier("eval", "perplexity", spec, "--json", "--text", text, "--method", method, *flags,
                                     timeout_s=timeout_s))

    def test_whole_text(self):
        """Every method on the smaller model in both formats; the larger one once, all of it in the soak."""
        for name, entry in GOLDEN["models"].items():
            for method, expected in entry.get("perplexity", {}).items():
                for spec in specs(entry):
                    if name == "tale-7m" and not SOAK and (method, spec[-5:]) != ("bos_window_512", ".gguf"):
                        continue
                    with self.subTest(model=name, method=method, spec=spec):
                        row = self.perplexity(spec, method)
                        self.assertEqual(row["tokens_scored"], expected["tokens_scored"])
                        self.assertLess(abs(row["perplexity"] / expected["ppl"] - 1), PERPLEXITY_TOLERANCE)

    @unittest.skipUnless(SOAK, "minutes of scalar arithmetic: FRONTIER_SOAK")
    def test_reference_path_on_the_whole_text(self):
        """The reference is what every other path is held to, so it is held to the independent figures more tightly:
        they are f32 sums by PyTorch, ours f64, over some 10^4 tokens."""
        for name, entry in GOLDEN["models"].items():
            for method, expected in entry.get("perplexity", {}).items():
                if name == "tale-7m" and method != "bos_window_512":
                    continue
                with self.subTest(model=name, method=method):
                    row = self.perplexity(specs(entry)[0], method, "--isa", "scalar", "--dtype", "f32",
                                          "--kv-type", "f32", timeout_s=3600)
                    self.assertEqual(row["tokens_scored"], expected["tokens_scored"])
                    self.assertLess(abs(row["perplexity"] / expected["ppl"] - 1), 1e-4)

    def test_every_isa_agrees_with_the_reference_on_a_part(self):
        with open(VALID_TEXT, "rb") as file:
            data = file.read(12000)
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            file.write(data[:data.rindex(b"\n") + 1])
            file.flush()
            spec = model("tale-1m-f16.gguf")
            reference = self.perplexity(spec, "bos_window_512", "--isa", "scalar", "--dtype", "f32", text=file.name)
            for isa in host_isas():
                with self.subTest(isa=isa):
                    row = self.perplexity(spec, "bos_window_512", "--isa", isa, text=file.name)
                    self.assertEqual(row["tokens_scored"], reference["tokens_scored"])
                    self.assertLess(abs(row["perplexity"] / reference["perplexity"] - 1), PERPLEXITY_TOLERANCE)


if __name__ == "__main__":
    unittest.main()
