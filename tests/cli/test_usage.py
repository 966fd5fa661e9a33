"""Exit codes, help, and the commands that only read files."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BAD_INPUT, DOES_NOT_FIT, OK, USAGE, Expect, frontier, host_isas, model  # noqa: E402

TINY = model("tale-1m-f16.gguf")
COMMANDS = [["run"], ["tokenize"], ["detokenize"], ["inspect"], ["list"], ["synth"], ["bench"], ["bench", "roofline"],
            ["bench", "engine"], ["eval"], ["eval", "perplexity"]]


class Usage(Expect, unittest.TestCase):
    def test_help_of_every_command(self):
        for command in [[], *COMMANDS]:
            outcome = frontier(*command, "--help")
            self.assertEqual(outcome.status, OK, outcome)
            self.assertIn("--help", outcome.out)
            self.assertEqual(outcome.err, "")

    def test_version(self):
        outcome = frontier("--version")
        self.assertEqual(outcome.status, OK, outcome)
        self.assertRegex(outcome.out, r"\d+\.\d+\.\d+")

    def test_wrong_usage_is_exit_2_and_one_line(self):
        for arguments in (
                [], ["fly"], ["run", "--no-such-flag"], ["run", TINY, "-p", "a", "-n", "many"],
                ["run", TINY, "-p", "a", "-f", "b"], ["run", TINY, "-p", "a", "--temperature", "-1"],
                ["run", TINY, "-p", "a", "--top-p", "nan"], ["run", TINY, "-p", "a", "--threads", "-3"],
                ["run", TINY, "-p", "a", "--dtype", "f8"], ["run", TINY, "-p", "a", "--kv-type", "f7"],
                ["run", TINY, "-p", "a", "--log-level", "loud"], ["synth"], ["synth", "tiny-llama"], ["bench"],
                ["bench", "engine", TINY, "--batch", "0"], ["bench", "engine", TINY, "--batch", "1,x"],
                ["eval"], ["eval", "perplexity", TINY],
                ["eval", "perplexity", TINY, "--text", "x", "--method", "guess"], ["detokenize", TINY, "one"]):
            with self.subTest(arguments=arguments):
                self.assert_error(frontier(*arguments), USAGE)

    def test_numbers_are_whole_and_within_their_bounds(self):
        huge = "99999999999999999999"
        wrong = {"-n": ["", "-2", huge, "1.5", " 3", "0x10"], "-c": ["", "-5", "2147483648", "9223372036854775807", huge],
                 "-t": ["", "-1", "1025", huge], "--temperature": ["", "-0.1", "101", "nan", "inf", "1,5"],
                 "--top-k": ["", "-2", "2147483648"], "--top-p": ["", "0", "1.01", "-1", "nan"],
                 "--min-p": ["", "-0.1", "1.1"], "--repeat-penalty": ["", "0", "-1", "101"],
                 "--presence-penalty": ["", "101"], "--frequency-penalty": ["", "-101"],
                 "--seed": ["", "-1", "-4", "18446744073709551616", huge], "--logprobs": ["", "-1", "21"],
                 "--stop-id": ["", "-7", huge], "--logit-bias": ["", "5", "5=", "=1", "5=nan", "5=inf", "1=2x"]}
        names = {"-n": "--max-tokens", "-c": "--ctx", "-t": "--threads"}
        for flag, values in wrong.items():
            for value in values:
                with self.subTest(flag=flag, value=value):
                    self.assert_error(frontier("run", TINY, "-p", "a", flag, value), USAGE,
                                      names.get(flag, flag) + ": expected", f"got '{value}'")
        for flag in ("--stop-id", "--logit-bias"):
            value = "9999999" if flag == "--stop-id" else "9999999=1"
            self.assert_error(frontier("run", TINY, "-p", "a", flag, value), USAGE, flag, "9999999", "vocabulary")
        for command, flag in (("engine", "--repeat"), ("engine", "--prompt-tokens"), ("engine", "--seed"),
                              ("roofline", "--seconds"), ("roofline", "--threads"), ("engine", "--batch"),
                              ("engine", "--depth")):
            for value in ("", "-1", huge):
                self.assert_error(frontier("bench", command, flag, value), USAGE, flag + ": expected", f"got '{value}'")

    def test_numbers_at_their_bounds_are_taken(self):
        row = self.json_of(frontier("run", TINY, "-p", "a", "-n", "2147483647", "-c", "40", "--ignore-eos", "--json",
                                    "--seed", "18446744073709551615", "--top-k", "-1", "--top-p", "1", "-t", "01",
                                    "--stop-id", "0", "--logit-bias", "5=-inf"))
        self.assertEqual((row["seed"], row["threads"]), (18446744073709551615, 1))
        self.assertEqual(row["finish_reason"], "context")

    def test_more_threads_than_can_run_are_not_started(self):
        cpus = len(os.sched_getaffinity(0))
        shown = frontier("run", TINY, "-p", "a", "-n", "2", "--json", "--threads", str(cpus + 1))
        self.assertLessEqual(json.loads(shown.out)["threads"], cpus)
        self.assertRegex(shown.err, rf"--threads {cpus + 1}: \d+ can run at once here")

    def test_control_tokens_in_the_text_need_plain_text(self):
        for chat in (["--chat"], ["--system", "x"]):
            self.assert_error(frontier("run", TINY, "-p", "a", "--parse-special", *chat), USAGE, "--parse-special", "--chat")

    def test_unavailable_isa_is_named(self):
        self.assert_error(frontier("run", TINY, "-p", "a", "-n", "1", "--isa", "sse9"), USAGE, "isa")
        self.assert_error(frontier("run", TINY, "-p", "a", "-n", "1", env={"FRONTIER_ISA": "sse9"}), USAGE, "isa")
        missing = sorted({"avx2", "avx512", "amx"} - set(host_isas()))
        for isa in missing:
            self.assert_error(frontier("run", TINY, "-p", "a", "-n", "1", "--isa", isa), USAGE, "isa", isa)

    def test_isa_is_the_one_that_runs(self):
        for isa in host_isas():
            row = self.json_of(frontier("run", TINY, "-p", "a", "-n", "1", "--json", "--isa", isa))
            self.assertEqual(row["isa"], isa)
            row = self.json_of(frontier("run", TINY, "-p", "a", "-n", "1", "--json", env={"FRONTIER_ISA": isa}))
            self.assertEqual(row["isa"], isa)

    def test_unknown_model_names_what_was_asked(self):
        for spec in ("no-such-model", "/no/such/file.gguf", "synthetic:nothing-1b", "synthetic:tiny-llama:Q9_9"):
            self.assert_error(frontier("run", spec, "-p", "a"), BAD_INPUT, spec.split(":")[-1])

    def test_does_not_fit(self):
        self.assert_error(frontier("run", TINY, "-p", "hello " * 600, "-n", "1", "--ctx", "64"), DOES_NOT_FIT, "64")


class ReadingCommands(Expect, unittest.TestCase):
    def test_list(self):
        rows = self.json_of(frontier("list", "--json"))
        names = {row["name"]: row for row in rows["models"]}
        for name in ("tale-7m", "tale-7m-f16", "tale-1m", "tale-1m-f16", "stories260K-f32"):
            self.assertIn(name, names)
            self.assertIn(name, frontier("list").out)
        self.assertEqual([name for name, row in names.items() if row["default"]], ["tale-7m-f16"])
        self.assertEqual(names["tale-7m-f16"]["parameters"], 7344384)

    def test_shapes_are_listed_where_they_are_used(self):
        shapes = frontier("synth", "--help").out
        for name in ("tinyllama-1.1b", "llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "qwen2.5-0.5b", "qwen2.5-1.5b",
                     "qwen2.5-7b", "qwen3-0.6b", "qwen3-4b", "qwen3-8b", "mistral-7b", "tiny-llama", "tiny-qwen2",
                     "tiny-qwen3", "Q4_0", "Q8_0"):
            self.assertIn(name, shapes)

    def test_inspect_says_the_same_of_both_formats(self):
        gguf = self.json_of(frontier("inspect", TINY, "--json"))
        folder = self.json_of(frontier("inspect", model("tale-1m"), "--json"))
        self.assertEqual(gguf["format"], "gguf")
        self.assertEqual(folder["format"], "huggingface")
        for document in (gguf, folder):
            self.assertEqual(document["architecture"], "llama")
            self.assertEqual(document["parameters"], 1115008)
        names = {tensor["name"] for tensor in gguf["tensors"]}
        self.assertEqual(names, {tensor["name"] for tensor in folder["tensors"]})
        self.assertIn("blk.2.ffn_down.weight", names)

    def test_inspect_for_people(self):
        outcome = frontier("inspect", TINY, "--tensors")
        self.assertEqual(outcome.status, OK, outcome)
        for word in ("llama", "F16", "4096", "token_embd.weight"):
            self.assertIn(word, outcome.out)


if __name__ == "__main__":
    unittest.main()
