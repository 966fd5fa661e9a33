"""The decoder in numpy and float64, straight from the papers: an oracle that shares no code with the engine.

Usage: reference_forward.py MODEL.gguf < JSON list of windows (each a list of token ids)
Reads F32 GGUF files. Prints the sum of negative log likelihoods over all tokens but the first of each window.
"""
import json
import struct
import sys

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


class Gguf:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 8
        tensors, entries = self.take("Q"), self.take("Q")
        self.metadata = {}
        for _ in range(entries):
            key = self.text()
            self.metadata[key] = self.value(self.take("I"))
        listed = []
        for _ in range(tensors):
            name = self.text()
            extents = [self.take("Q") for _ in range(self.take("I"))]
            kind, offset = self.take("I"), self.take("Q")
            assert kind == 0, f"{name}: expected F32"
            listed.append((name, extents, offset))
        base = (self.at + 31) // 32 * 32
        self.tensors = {
            name: np.frombuffer(self.data, np.float32, int(np.prod(extents)), base + offset)
            .reshape(extents[::-1]).astype(np.float64) for name, extents, offset in listed}

    def take(self, code):
        value, = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def text(self):
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            inner, count = self.take("I"), self.take("Q")
            return [self.value(inner) for _ in range(count)]
        return self.take(SCALARS[kind])


class Decoder:
    def __init__(self, file):
        self.arch = file.metadata["general.architecture"]
        self.weights = file.tensors

        def number(key, fallback=None):
            return file.metadata.get(f"{self.arch}.{key}", fallback)

        self.layers = number("block_count")
        self.heads = number("attention.head_count")
        self.kv_heads = number("attention.head_count_kv")
        self.head_dim = number("attention.key_length")
        self.eps = number("attention.layer_norm_rms_epsilon")
        self.window = number("attention.sliding_window", 0)
        self.inv_freq = number("rope.freq_base") ** (-np.arange(0, self.head_dim, 2) / self.head_dim)
        if "rope_freqs.weight" in self.weights:
            self.inv_freq = self.inv_freq / self.weights["rope_freqs.weight"]

    def norm(self, x, gain):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * gain

    def rotate(self, x):
        """x[n, heads, head_dim]; llama files pair neighbours, the others the two halves."""
        angle = np.arange(len(x))[:, None] * self.inv_freq
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        half = self.head_dim // 2
        first, second = slice(half), slice(half, None)
        if self.arch == "llama":
            first, second = slice(0, None, 2), slice(1, None, 2)
        out = np.empty_like(x)
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., first] * sin + x[..., second] * cos
        return out

    def project(self, x, layer, name):
        out = x @ self.weights[f"blk.{layer}.{name}.weight"].T
        bias = self.weights.get(f"blk.{layer}.{name}.bias")
        return out if bias is None else out + bias

    def attend(self, x, layer):
        n, group = len(x), self.heads // self.kv_heads
        q = self.project(x, layer, "attn_q").reshape(n, self.heads, self.head_dim)
        k = self.project(x, layer, "attn_k").reshape(n, self.kv_heads, self.head_dim)
        v = self.project(x, layer, "attn_v").reshape(n, self.kv_heads, self.head_dim)
        if self.arch == "qwen3":
            q = self.norm(q, self.weights[f"blk.{layer}.attn_q_norm.weight"])
            k = self.norm(k, self.weights[f"blk.{layer}.attn_k_norm.weight"])
        q, k = self.rotate(q), self.rotate(k)
        behind = np.arange(n)[:, None] - np.arange(n)[None]
        visible = (behind >= 0) & ((behind < self.window) if self.window else True)
        out = np.empty_like(q)
        for head in range(self.heads):
            scores = q[:, head] @ k[:, head // group].T / np.sqrt(self.head_dim)
            scores[~visible] = -np.inf
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = scores / scores.sum(-1, keepdims=True) @ v[:, head // group]
        return self.project(out.reshape(n, -1), layer, "attn_output")

    def logits(self, ids):
        x = self.weights["token_embd.weight"][ids]
        for layer in range(self.layers):
            x = x + self.attend(self.norm(x, self.weights[f"blk.{layer}.attn_norm.weight"]), layer)
            h = self.norm(x, self.weights[f"blk.{layer}.ffn_norm.weight"])
            gate = self.project(h, layer, "ffn_gate")
            x = x + self.project(gate / (1 + np.exp(-gate)) * self.project(h, layer, "ffn_up"), layer, "ffn_down")
        head = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return self.norm(x, self.weights["output_norm.weight"]) @ head.T


def main():
    decoder = Decoder(Gguf(sys.argv[1]))
    total = 0.0
    for ids in json.load(sys.stdin):
        rows = decoder.logits(np.array(ids))[:-1]
        log_sum = np.log(np.exp(rows - rows.max(-1, keepdims=True)).sum(-1)) + rows.max(-1)
        total += (log_sum - rows[np.arange(len(rows)), ids[1:]]).sum()
    print(repr(float(total)))


if __name__ == "__main__":
    main()
