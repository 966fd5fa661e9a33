"""Damaged and lying model files through the binary: exit 3 and one line, never a crash or a hang."""
import json
import os
import random
import shutil
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BAD_INPUT, DOES_NOT_FIT, OK, Expect, frontier, model  # noqa: E402

TINY = model("tale-1m-f16.gguf")
FOLDER = model("tale-1m")
SOAK = bool(os.environ.get("FRONTIER_SOAK"))
LIMIT = ("prlimit", "--as=8589934592")  # a declared count must not be allocated: 8 GiB of addresses are plenty


def read(path):
    with open(path, "rb") as file:
        return file.read()


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


class Hostile(Expect, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def generate(self, path):
        return frontier("run", path, "-p", "Once", "-n", "2", "--threads", "1", prefix=LIMIT, timeout_s=60)

    def assert_refused(self, path, *words):
        self.assert_error(self.generate(path), BAD_INPUT, os.path.basename(path), *words)

    def copy_folder(self):
        path = os.path.join(self.folder, "hf")
        shutil.copytree(FOLDER, path)
        for name in os.listdir(path):
            os.chmod(os.path.join(path, name), 0o644)
        return path

    def edit_config(self, path, **changes):
        config_path = os.path.join(path, "config.json")
        config = json.loads(read(config_path))
        config.update(changes)
        self.write("hf/config.json", json.dumps(config).encode())

    def test_every_cut_of_a_gguf_file(self):
        data = read(TINY)
        for i in range(64):
            self.assert_refused(self.write("cut.gguf", data[:len(data) * i // 64]))

    def test_every_cut_of_a_safetensors_file(self):
        path = self.copy_folder()
        data = read(os.path.join(path, "model.safetensors"))
        for i in range(64):
            self.write("hf/model.safetensors", data[:len(data) * i // 64])
            self.assert_error(self.generate(path), BAD_INPUT, "model.safetensors")

    def test_cuts_of_json_files(self):
        for name in ("config.json", "tokenizer.json"):
            path = self.copy_folder()
            data = read(os.path.join(path, name))
            for i in range(0, 64, 7):
                self.write("hf/" + name, data[:len(data) * i // 64])
                self.assert_error(self.generate(path), BAD_INPUT, name)
            shutil.rmtree(path)

    def test_not_a_model(self):
        self.assert_refused(self.write("empty.gguf", b""))
        self.assert_refused(self.write("zeros.gguf", bytes(4096)))
        self.assert_refused(self.write("text.gguf", b"hello\n" * 100))
        self.assert_refused(self.write("version.gguf", b"GGUF" + struct.pack("<IQQ", 77, 0, 0)), "77")
        self.assert_refused(self.write("nothing/readme.txt", b"x")[:-len("/readme.txt")])

    def test_absurd_counts(self):
        huge = (1 << 63) + 5
        for tensors, keys in ((huge, 0), (0, huge), (1 << 40, 1), (1, 1 << 40)):
            self.assert_refused(self.write("counts.gguf", b"GGUF" + struct.pack("<IQQ", 3, tensors, keys)))
        for length in (huge, 1 << 40):
            header = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
            self.assert_refused(self.write("key.gguf", header + struct.pack("<Q", length) + b"abc"))
            value = gguf_string("a") + struct.pack("<IIQ", 9, 8, length)  # an array of strings
            self.assert_refused(self.write("array.gguf", header + value))

    def test_absurd_dimensions_in_config_json(self):
        path = self.copy_folder()
        for change in ({"hidden_size": 1 << 40}, {"hidden_size": -1}, {"hidden_size": "wide"}, {"hidden_size": 255},
                       {"num_hidden_layers": 1 << 40}, {"num_hidden_layers": 0}, {"num_attention_heads": 0},
                       {"num_attention_heads": 3}, {"num_key_value_heads": 7}, {"vocab_size": 1 << 50},
                       {"rms_norm_eps": "small"}, {"architectures": ["NoSuchForCausalLM"], "model_type": "no-such"}):
            with self.subTest(change=change):
                self.edit_config(path, **{**json.loads(read(os.path.join(FOLDER, "config.json"))), **change})
                self.assert_error(self.generate(path), BAD_INPUT)

    def test_missing_files_of_a_folder(self):
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            path = self.copy_folder()
            os.remove(os.path.join(path, name))
            self.assert_error(self.generate(path), BAD_INPUT)
            shutil.rmtree(path)

    def test_a_missing_shard_is_named(self):
        path = self.copy_folder()
        os.rename(os.path.join(path, "model.safetensors"), os.path.join(path, "model-00001-of-00002.safetensors"))
        index = {"metadata": {}, "weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors",
                                                "model.embed_tokens.weight": "model-00002-of-00002.safetensors"}}
        self.write("hf/model.safetensors.index.json", json.dumps(index).encode())
        self.assert_error(self.generate(path), BAD_INPUT, "model-00002-of-00002.safetensors")

    def test_nan_weights_name_the_tensor(self):
        data = bytearray(read(TINY))
        middle = len(data) // 2 & ~31  # an F16 matrix fills the middle of the file, 2-byte aligned
        data[middle:middle + 2] = struct.pack("<H", 0x7E00)
        self.assert_refused(self.write("nan.gguf", bytes(data)), ".weight")

    def test_flipped_bytes(self):
        """A changed byte may go unnoticed or be refused; the process never dies of it."""
        rng = random.Random(64)
        data = read(TINY)
        header = 110_000  # the metadata, where damage has structure to hit
        for i in range(2000 if SOAK else 60):
            damaged = bytearray(data)
            for _ in range(rng.choice((1, 1, 4, 16))):
                damaged[rng.randrange(header if i % 4 else len(data))] = rng.randrange(256)
            outcome = self.generate(self.write("flipped.gguf", bytes(damaged)))
            self.assertIn(outcome.status, (OK, BAD_INPUT, DOES_NOT_FIT), outcome)
            if outcome.status != OK:
                self.assertEqual(outcome.err.count("\n"), 1, outcome)

    def test_inspect_and_tokenize_refuse_the_same_files(self):
        path = self.write("cut.gguf", read(TINY)[:5000])
        for command in (["inspect", path], ["tokenize", path, "-p", "x"], ["detokenize", path, "5"],
                        ["eval", "perplexity", path, "--text", __file__], ["bench", "engine", path]):
            self.assert_error(frontier(*command), BAD_INPUT, "cut.gguf")


if __name__ == "__main__":
    unittest.main()
