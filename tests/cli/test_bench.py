"""bench, synth and eval: documents and files, never speeds."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BAD_INPUT, BINARY, DOES_NOT_FIT, FAILED, INTERRUPTED, OK, Expect, frontier, model  # noqa: E402

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
            self.assertGreater(row["peak_memory_bytes"], 1 << 20)
            self.assertLessEqual(row["peak_memory_bytes"], row["memory_limit_bytes"])

    def test_batches_by_default(self):
        rows = self.json_lines_of(frontier("bench", "engine", TINY, "--prompt-tokens", "2", "--gen-tokens", "1",
                                           "--repeat", "1", "--warmup", "0", "--json"))
        self.assertEqual([(row["batch"], row["test"]) for row in rows],
                         [(batch, test) for batch in (1, 4, 16) for test in ("prefill", "decode")])

    def test_a_list_does_not_swallow_the_model(self):
        rows = self.json_lines_of(frontier("bench", "engine", "--prompt-tokens", "2", "--gen-tokens", "0", "--batch", "2",
                                           TINY, "--repeat", "1", "--json"))
        self.assertEqual([row["batch"] for row in rows], [2])

    def test_a_context_too_small(self):
        flags = ["bench", "engine", TINY, "--prompt-tokens", "16", "--gen-tokens", "4", "--depth", "0,8", "--repeat", "1",
                 "--batch", "1", "--json"]
        self.assert_error(frontier(*flags, "-c", "27"), DOES_NOT_FIT, "28", "27")
        self.assertEqual(len(self.json_lines_of(frontier(*flags, "-c", "28"))), 4)

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
            self.assertGreater(share["prefill_roofline_share"], 0)
            self.assertTrue(row["cached"])
            # A shorter measurement or one with fewer threads leaves it as it is.
            path = os.path.join(cache, "frontier", "roofline.json")
            with open(path, "rb") as file:
                kept = file.read()
            short = self.json_of(frontier("bench", "roofline", "-t", "1", "--seconds", "0.01", "--json", env=env))
            self.assertIs(short["cached"], False)
            shown = frontier("bench", "roofline", "-t", "1", "--seconds", "0.01", env=env)
            self.assertEqual((shown.status, shown.err), (OK, ""))
            self.assertIn("not kept", shown.out)
            self.assertNotIn("quota 0.00", shown.out)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), kept)
            # Between two measured counts a share would be a guess.
            document = json.loads(kept)
            document["bandwidth"] = [point for point in document["bandwidth"] if point["threads"] == 1]
            document["bandwidth"].append({**document["bandwidth"][-1], "threads": 5})
            with open(path, "w", encoding="utf-8") as file:
                json.dump(document, file)
            for threads in (1, 2, 5):
                row = json.loads(frontier("run", TINY, "--json", "-p", "a", "-n", "4", "--ignore-eos", "-t", threads, env=env).out)
                self.assertEqual(row["roofline_share"] is not None, row["threads"] in (1, 5), row["threads"])

    def test_an_interrupt_ends_it_without_a_result(self):
        with tempfile.TemporaryDirectory() as cache:
            process = subprocess.Popen([BINARY, "bench", "roofline", "--json"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env={**os.environ, "XDG_CACHE_HOME": cache})
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (INTERRUPTED, b""), err)
            self.assertEqual(os.listdir(cache), [])


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
            self.assert_error(outcome, BAD_INPUT, "no-such-shape")
            outcome = frontier("synth", "tiny-llama", os.path.join(folder, "missing", "x.gguf"))
            self.assert_error(outcome, FAILED, "x.gguf")
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
            self.assert_error(frontier("eval", "perplexity", TINY, "--text", file.name), BAD_INPUT, file.name,
                              "at least 1 token", "got 0")
            file.write("fox")  # three tokens of this vocabulary
            file.flush()
            self.assert_error(frontier("eval", "perplexity", TINY, "--text", file.name, "--method",
                                       "llama_perplexity_c512"), BAD_INPUT, file.name, "511", "got 3")

    def test_a_window_beyond_the_trained_context_is_a_warning(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("It is a truth universally acknowledged. ")
            file.flush()
            outcome = frontier("eval", "perplexity", "stories260K-f32", "--text", file.name, "--method",
                               "bos_window_1024", "--json")
            self.assertEqual(outcome.status, OK, outcome)
            self.assertEqual(outcome.err.count("\n"), 1, outcome)
            self.assertIn("1024", outcome.err)


if __name__ == "__main__":
    unittest.main()
