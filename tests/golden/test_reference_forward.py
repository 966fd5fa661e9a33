"""Every architecture against the numpy oracle of reference_forward.py, on random weights, where a slip of any operand,
bias, norm, rotation, window or scaling moves the likelihood far more than rounding does."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import VALID_TEXT, Expect, frontier  # noqa: E402

ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference_forward.py")
PYTHON = "/usr/bin/python3"  # Debian's, the one with python3-numpy
TEXT_BYTES = 700  # some 400 tokens: far beyond tiny-mistral's window of 48
WINDOW_TOKENS = 512
# Mean over some 400 tokens. f32 rounding (6e-8) over 3 layers of sums of up to 768 terms moves a logit of size 1 by
# about 1e-6 and the mean by less; measured up to 4e-8. Leaving out the smallest operand moves it by more than 1e-3.
TOLERANCE_NLL = 2e-6
# The ordinary path keeps K and V in f16 (relative rounding 2.4e-4); measured up to 3e-5.
TOLERANCE_NLL_F16_KV = 2e-4
SHAPES = ["tiny-llama", "tiny-llama3", "tiny-mistral", "tiny-qwen2", "tiny-qwen3"]


class ReferenceForward(Expect, unittest.TestCase):
    def windows(self, path, text):
        """As bos_window_512 cuts: each window starts with BOS where the model wants one."""
        ids = self.json_of(frontier("tokenize", path, "-f", text, "--no-special", "--json"))["ids"]
        special = self.json_of(frontier("tokenize", path, "-f", text, "--json"))["ids"]
        bos = special[:len(special) - len(ids)]
        step = WINDOW_TOKENS - len(bos)
        return [bos + ids[i:i + step] for i in range(0, len(ids), step)]

    def oracle(self, path, windows):
        done = subprocess.run([PYTHON, ORACLE, path], input=json.dumps(windows), capture_output=True, text=True,
                              check=True)
        return float(done.stdout) / sum(len(window) - 1 for window in windows)

    def nll(self, path, text, *flags):
        row = self.json_of(frontier("eval", "perplexity", path, "--text", text, "--method", "bos_window_512", "--json",
                                    *flags))
        return row["nll"], row["tokens_scored"]

    def test_every_architecture(self):
        with tempfile.TemporaryDirectory() as folder:
            text = os.path.join(folder, "text.txt")
            with open(VALID_TEXT, "rb") as source, open(text, "wb") as out:
                out.write(source.read(TEXT_BYTES))
            for shape in SHAPES:
                with self.subTest(shape=shape):
                    path = os.path.join(folder, shape + ".gguf")
                    self.assertEqual(frontier("synth", shape + ":F32", path).status, 0)
                    windows = self.windows(path, text)
                    expected = self.oracle(path, windows)
                    exact, tokens = self.nll(path, text, "--isa", "scalar", "--dtype", "f32", "--kv-type", "f32")
                    self.assertEqual(tokens, sum(len(window) - 1 for window in windows))
                    self.assertLess(abs(exact - expected), TOLERANCE_NLL)
                    ordinary, _ = self.nll(path, text)
                    self.assertLess(abs(ordinary - expected), TOLERANCE_NLL_F16_KV)
                    # The same weights without the file.
                    self.assertEqual(self.nll(f"synthetic:{shape}:F32", text)[0], ordinary)


if __name__ == "__main__":
    unittest.main()
