"""frontier run: the JSON document, limits of a generation, streams and interrupts."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BAD_INPUT, BINARY, INTERRUPTED, OK, USAGE, Expect, frontier, golden, model  # noqa: E402

TINY = model("tale-1m-f16.gguf")
FOLDER = model("tale-1m")
GREEDY = ["--temperature", "0", "--json"]
FIELDS = ["text", "token_ids", "prompt_tokens", "completion_tokens", "finish_reason", "ttft_ms", "prefill_tokens_per_s",
          "prefill_gflops", "prefill_roofline_share", "decode_tokens_per_s", "weight_gb_per_s", "roofline_share", "logits_hash", "weight_type", "compute_type",
          "kv_type", "isa", "threads"]


class Run(Expect, unittest.TestCase):
    def generate(self, *arguments, stdin=b"", spec=TINY):
        return self.json_of(frontier("run", spec, *GREEDY, *arguments, stdin=stdin))

    def test_fields(self):
        row = self.generate("-p", "Once upon a time", "-n", "12")
        for field in FIELDS:
            self.assertIn(field, row)
        self.assertEqual(row["completion_tokens"], len(row["token_ids"]))
        self.assertEqual(row["weight_type"], "F16")
        self.assertRegex(row["logits_hash"], r"^[0-9a-f]{16}$")
        for rate in ("ttft_ms", "prefill_tokens_per_s", "prefill_gflops", "decode_tokens_per_s", "weight_gb_per_s"):
            self.assertGreater(row[rate], 0)

    def test_shares_are_null_until_the_machine_is_measured(self):
        with tempfile.TemporaryDirectory() as empty:
            row = self.json_of(frontier("run", TINY, *GREEDY, "-p", "a", "-n", "4", env={"XDG_CACHE_HOME": empty}))
        self.assertIsNone(row["roofline_share"])
        self.assertIsNone(row["prefill_roofline_share"])

    def test_the_bundled_model_is_the_default(self):
        row = self.json_of(frontier("run", *GREEDY, "-p", "Once upon a time", "-n", "4"))
        named = self.json_of(frontier("run", "tale-7m-f16", *GREEDY, "-p", "Once upon a time", "-n", "4"))
        self.assertEqual(row["token_ids"], named["token_ids"])
        self.assertEqual(row["logits_hash"], named["logits_hash"])

    def test_same_weights_in_either_format_give_the_same_tokens(self):
        prompt = golden()["models"]["tale-1m"]["prompts"][1]["prompt"]
        # The F16 file rounds a few weights (3e-8), so the hash of the logits may differ; the text may not.
        texts = {self.generate("-p", prompt, "-n", "8", "--ignore-eos", "--isa", "scalar", "--dtype", "f32",
                               spec=spec)["text"] for spec in (TINY, FOLDER)}
        self.assertEqual(len(texts), 1)

    def test_max_tokens(self):
        for n in (1, 5):
            row = self.generate("-p", "The king", "-n", n, "--ignore-eos")
            self.assertEqual((row["completion_tokens"], row["finish_reason"]), (n, "length"))
        row = self.generate("-p", "The king", "-n", "0")
        self.assertEqual((row["completion_tokens"], row["text"]), (0, ""))

    def test_the_context_ends_a_generation(self):
        row = self.json_of(frontier("run", TINY, *GREEDY, "-p", "The king", "-n", "-1", "--ignore-eos", "--ctx", "64"))
        self.assertLessEqual(row["prompt_tokens"] + row["completion_tokens"], 65)
        self.assertGreaterEqual(row["prompt_tokens"] + row["completion_tokens"], 64)

    def test_stop_strings_never_reach_the_text(self):
        whole = self.generate("-p", "Once upon a time", "-n", "40", "--ignore-eos")["text"]
        for begin, end in ((3, 5), (6, 14), (10, 11)):  # inside a token, across tokens, one character
            stop = whole[begin:end]
            row = self.generate("-p", "Once upon a time", "-n", "40", "--ignore-eos", "--stop", stop)
            self.assertEqual(row["text"], whole[:whole.index(stop)])
            self.assertEqual(row["finish_reason"], "stop")

    def test_seed(self):
        flags = ["-p", "Once", "-n", "24", "--ignore-eos", "--temperature", "1", "--json"]
        first = self.json_of(frontier("run", TINY, *flags, "--seed", "7"))
        again = self.json_of(frontier("run", TINY, *flags, "--seed", "7"))
        other = self.json_of(frontier("run", TINY, *flags, "--seed", "8"))
        self.assertEqual(first["token_ids"], again["token_ids"])
        self.assertEqual(first["logits_hash"], again["logits_hash"])
        self.assertNotEqual(first["token_ids"], other["token_ids"])

    def test_narrow_sampling_is_greedy(self):
        greedy = self.generate("-p", "Once", "-n", "8", "--ignore-eos")["token_ids"]
        for narrow in (["--top-k", "1"], ["--top-p", "0.000001"], ["--min-p", "1"]):
            row = self.json_of(frontier("run", TINY, "--json", "-p", "Once", "-n", "8", "--ignore-eos", "--temperature",
                                        "1.5", "--seed", "3", *narrow))
            self.assertEqual(row["token_ids"], greedy, narrow)

    def test_llama_cpp_spellings(self):
        row = self.json_of(frontier("run", "-m", TINY, "-c", "128", "-t", "1", "--temp", "0", "-n", "4", "-p", "Once",
                                    "--json"))
        self.assertEqual(row["threads"], 1)
        self.assertEqual(row["token_ids"], self.generate("-p", "Once", "-n", "4")["token_ids"])

    def test_prompt_from_file_and_standard_input(self):
        text = "The fox looked\nup \n"
        expected = self.generate("-p", text, "-n", "4")
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            rows = [self.generate("-f", file.name, "-n", "4"), self.generate("-f", "-", "-n", "4", stdin=text.encode()),
                    self.generate("-f", "/dev/stdin", "-n", "4", stdin=text.encode())]
        for row in rows:
            self.assertEqual((row["prompt_tokens"], row["token_ids"]), (expected["prompt_tokens"], expected["token_ids"]))
        self.assert_error(frontier("run", TINY, "-f", "no-such-file", "-n", "1"), BAD_INPUT, "no-such-file")

    def test_text_alone_off_a_terminal(self):
        outcome = frontier("run", TINY, "--temperature", "0", "-p", "Once upon a time", "-n", "16", "--ignore-eos")
        self.assertEqual((outcome.status, outcome.err), (OK, ""))
        self.assertIn(self.generate("-p", "Once upon a time", "-n", "16", "--ignore-eos")["text"], outcome.out)

    def test_an_interrupt_ends_a_single_run_with_130(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([BINARY, "run", "synthetic:tiny-llama", "-p", "x", "-n", "100000000", "--ctx",
                                        "1000000", "--ignore-eos", "--temperature", "1"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertTrue(process.stdout.read(1))  # it generates
            time.sleep(0.2)
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
            self.assertEqual(process.returncode, INTERRUPTED, err)
            self.assertLessEqual(err.count(b"\n"), 1)

    def test_logprobs(self):
        row = self.generate("-p", "Once", "-n", "3", "--ignore-eos", "--logprobs", "4")
        self.assertEqual(len(row["logprobs"]), 3)
        for token, entry in zip(row["token_ids"], row["logprobs"]):
            self.assertEqual(entry["id"], token)
            self.assertEqual(len(entry["top"]), 4)
            self.assertEqual(entry["top"][0]["id"], token)  # greedy: the chosen token is the best
            values = [other["logprob"] for other in entry["top"]]
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertLessEqual(entry["logprob"], 0)

    def test_an_empty_standard_input_is_an_empty_prompt(self):
        row = self.json_of(frontier("run", TINY, "--json", "-n", "1", "--ignore-eos"))
        self.assertEqual((row["prompt_tokens"], row["completion_tokens"]), (1, 1))  # the BOS

    def test_a_terminal_is_no_prompt_for_json(self):
        terminal, other = os.openpty()
        try:
            done = subprocess.run([BINARY, "run", TINY, "--json"], stdin=other, capture_output=True, check=False, timeout=60)
        finally:
            os.close(terminal)
            os.close(other)
        self.assertEqual((done.returncode, done.stdout), (USAGE, b""))
        self.assertIn(b"--json: needs a prompt", done.stderr)

    def test_time_to_the_first_token_counts_from_the_text(self):
        # The prefill's rate starts with its first forward pass, TTFT with the text: turning 60 kB into tokens lies
        # between, and no tokenizer does 300 MB/s.
        row = self.generate("-p", "word " * 12000, "-n", "1", "-c", "20000")
        prefill_ms = 1000 * row["prompt_tokens"] / row["prefill_tokens_per_s"]
        self.assertGreater(row["ttft_ms"] - prefill_ms, 0.2)

    def test_a_dtype_without_effect_is_a_warning(self):
        for spec, dtype, warns in (("synthetic:tiny-llama:Q4_0", "bf16", True), ("synthetic:tiny-llama:Q4_0", "f16", True),
                                   ("synthetic:tiny-llama:Q4_0", "f32", False), ("synthetic:tiny-llama:BF16", "bf16", False)):
            outcome = frontier("run", spec, "-p", "a", "-n", "1", "--dtype", dtype, "--json")
            self.assertEqual(outcome.status, OK, outcome)
            self.assertEqual(outcome.err.count("\n"), int(warns), outcome)
            self.assertEqual("--dtype" in outcome.err and "Q4_0" in outcome.err, warns, outcome)


class ModelDefaults(Expect, unittest.TestCase):
    def run_with(self, **fields):
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(FOLDER):
                shutil.copy(os.path.join(FOLDER, name), folder)
            with open(os.path.join(folder, "generation_config.json"), "w", encoding="utf-8") as file:
                json.dump(fields, file)
            return frontier("run", folder, "-p", "Once", "-n", "8", "--ignore-eos", "--seed", "3", "--model-defaults", "--json")

    def test_values_no_sampler_takes_name_file_and_field(self):
        for field, value in (("top_p", -1), ("top_k", -2), ("temperature", -0.5), ("temperature", 1000), ("min_p", 1.5),
                             ("repetition_penalty", 0), ("repetition_penalty", -2)):
            with self.subTest(field=field):
                self.assert_error(self.run_with(**{field: value}), BAD_INPUT, "generation_config.json", field, str(value))

    def test_usual_values_for_off(self):
        def ids(**fields):
            return self.json_of(self.run_with(temperature=1.5, **fields))["token_ids"]
        self.assertEqual(ids(top_k=-1, top_p=0.0), ids(top_k=0, top_p=1.0))
        self.assertEqual(ids(top_k=0, top_p=1.5), ids(top_k=0, top_p=1.0))
        self.assertNotEqual(ids(top_k=0, top_p=1.0), ids(top_k=1, top_p=1.0))

    def test_a_template_that_renders_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(FOLDER):
                shutil.copy(os.path.join(FOLDER, name), folder)
            with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as file:
                file.write("{# nothing #}")
            self.assert_error(frontier("run", folder, "--chat", "-p", "Hi", "-n", "1"), BAD_INPUT, "chat template")
            with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as file:
                file.write("{{ ")
            outcome = frontier("run", folder, "--chat", "-p", "Hi", "-n", "1")
            self.assert_error(outcome, BAD_INPUT, "chat template")
            self.assertEqual(outcome.err.count("chat template"), 1, outcome)


if __name__ == "__main__":
    unittest.main()
