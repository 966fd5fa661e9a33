"""bench, synth and eval: documents and files, never speeds."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BAD_INPUT, DOES_NOT_FIT, FAILED, OK, USAGE, Expect, frontier, model  # noqa: E402

TINY = model("tale-1m-f16.gguf")


class BenchEngine(Expect, unittest.TestCase):
    def test_one_line_per_point(self):
        outcome = frontier("bench", "engine", TINY, "--prompt-tokens", "16", "--gen-tokens", "4", "--batch", "1,2",
                           "--depth", "0,8", "--repeat", "3", "--json")
        rows = self.json_lines_of(outcome)
        points = {(row["test"], row["batch"], row["depth"]) for row in rows}
        self.assertEqual(points, {(test, batch, depth) for test in ("prefill", "decode") for batch in (1, 2)
                                  for depth in (0, 8)})
        self.assertEqual(len(rows), 8)
        for row in rows:
            self.assertEqual(len(row["samples"]), 3)
            self.assertEqual(row["tokens_per_s"], sorted(row["samples"])[1])  # the median
            for field in ("roofline_share", "weight_type", "compute_type", "kv_type", "isa", "threads"):
                self.assertIn(field, row)

    def test_longer_than_the_trained_context_is_a_warning(self):
        outcome = frontier("bench", "engine", TINY, "--prompt-tokens", "1100", "--gen-tokens", "2", "--repeat", "1",
                           "--batch", "1", "--json")
        self.assertEqual(outcome.status, OK, outcome)
        self.assertEqual(len(outcome.out.splitlines()), 2)
        self.assertIn("context", outcome.err)


class BenchRoofline(Expect, unittest.TestCase):
    def test_measures_once_and_gives_runs_their_share(self):
        with tempfile.TemporaryDirectory() as cache:
            env = {"XDG_CACHE_HOME": cache}
            row = json.loads(frontier("bench", "roofline", "--json", env=env, timeout_s=600).out)
            self.assertGreater(row["read_gb_per_s"], 0)
            self.assertTrue([key for key in row if key.endswith("tflops") or key.endswith("gflops")])
            share = self.json_of(frontier("run", TINY, "--json", "-p", "a", "-n", "4", "--ignore-eos", env=env))
            self.assertGreater(share["roofline_share"], 0)


class Synth(Expect, unittest.TestCase):
    def test_the_file_holds_the_weights_of_the_shape(self):
        with tempfile.TemporaryDirectory() as folder:
            for spec in ("tiny-llama", "tiny-llama:Q4_0", "tiny-qwen2:Q8_0", "tiny-qwen3:BF16"):
                path = os.path.join(folder, spec.replace(":", "-") + ".gguf")
                outcome = frontier("synth", spec, path)
                self.assertEqual(outcome.status, OK, outcome)
                flags = ["--json", "-p", "Once", "-n", "4", "--temperature", "0", "--ignore-eos"]
                from_file = self.json_of(frontier("run", path, *flags))
                direct = self.json_of(frontier("run", "synthetic:" + spec, *flags))
                self.assertEqual(from_file["token_ids"], direct["token_ids"])
                self.assertEqual(from_file["logits_hash"], direct["logits_hash"])
                self.assertEqual(from_file["weight_type"], direct["weight_type"])

    def test_deterministic(self):
        with tempfile.TemporaryDirectory() as folder:
            contents = []
            for name in ("a.gguf", "b.gguf"):
                path = os.path.join(folder, name)
                self.assertEqual(frontier("synth", "tiny-llama:Q4_0", path).status, OK)
                with open(path, "rb") as file:
                    contents.append(file.read())
            self.assertEqual(contents[0], contents[1])

    def test_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "x.gguf")
            outcome = frontier("synth", "no-such-shape", out)
            self.assertIn(outcome.status, (USAGE, BAD_INPUT))
            self.assert_error(outcome, outcome.status, "no-such-shape")
            outcome = frontier("synth", "tiny-llama", os.path.join(folder, "missing", "x.gguf"))
            self.assertIn(outcome.status, (FAILED, BAD_INPUT))
            self.assert_error(outcome, outcome.status, "x.gguf")
            self.assertEqual(os.listdir(folder), [])

    def test_a_model_that_does_not_fit(self):
        # A limit on addresses stands in for a small machine.
        outcome = frontier("run", "synthetic:llama-3.1-8b:F32", "-p", "a", "-n", "1",
                           prefix=("prlimit", "--as=4000000000"))
        self.assert_error(outcome, DOES_NOT_FIT)


class EvalPerplexity(Expect, unittest.TestCase):
    def test_fields_and_methods(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("It is a truth universally acknowledged. " * 120)
            file.flush()
            for method in ("bos_window_512", "bos_window_1024", "llama_perplexity_c512"):
                row = self.json_of(frontier("eval", "perplexity", TINY, "--text", file.name, "--method", method, "--json"))
                self.assertGreater(row["perplexity"], 1)
                self.assertGreater(row["tokens_scored"], 0)
                for field in ("nll", "weight_type", "compute_type", "kv_type", "isa", "threads"):
                    self.assertIn(field, row)

    def test_a_text_too_short(self):
        with tempfile.NamedTemporaryFile("w") as file:
            self.assert_error(frontier("eval", "perplexity", TINY, "--text", file.name), BAD_INPUT, "text")


if __name__ == "__main__":
    unittest.main()
