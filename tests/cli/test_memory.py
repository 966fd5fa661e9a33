"""The promise about memory: packed weights + KV cache + 10% + 64 MB, whatever a command does with the model."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BINARY, Expect, model  # noqa: E402

PEAK_OF = ("import json,resource,subprocess,sys; out = subprocess.run(sys.argv[1:], capture_output=True, check=True)"
           "; print(json.dumps([json.loads(out.stdout), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024]))")


class Memory(Expect, unittest.TestCase):
    def check(self, *arguments):
        done = subprocess.run([sys.executable, "-c", PEAK_OF, BINARY, *arguments, "--json"], capture_output=True,
                              check=True, timeout=300)
        row, peak_bytes = json.loads(done.stdout)
        memory = row["memory"]
        self.assertLessEqual(memory["weight_bytes"], 1.05 * memory["weight_file_bytes"])
        self.assertLess(abs(memory["peak_memory_bytes"] - peak_bytes), 16 << 20)
        self.assertEqual(memory["memory_limit_bytes"], int(1.1 * (memory["weight_bytes"] + memory["kv_bytes"]) + 64e6))
        self.assertLessEqual(peak_bytes, 1.1 * (memory["weight_bytes"] + memory["kv_bytes"]) + 64e6)

    def test_run(self):
        self.check("run", model("tale-7m-f16.gguf"), "-p", "Once", "-n", "8")

    # At 152k entries a row of logits takes 0.6 MB: scoring every position must not keep them all.
    def test_perplexity_with_a_large_vocabulary(self):
        with tempfile.TemporaryDirectory() as folder:
            text = os.path.join(folder, "text")
            with open(text, "w", encoding="utf-8") as file:
                file.write("And the king said to the fox, go and see what lies beyond the hill. " * 12)
            self.check("eval", "perplexity", "synthetic:qwen2.5-0.5b:Q4_0", "--text", text)

    def test_run_with_a_large_vocabulary(self):
        self.check("run", "synthetic:qwen2.5-0.5b:Q4_0", "-p", "a " * 600, "-n", "2")


if __name__ == "__main__":
    unittest.main()
