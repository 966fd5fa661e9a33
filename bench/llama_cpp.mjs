// Measures llama.cpp (npm package node-llama-cpp) on a GGUF file; prints one JSON line for each number of sequences.
//
//   node llama_cpp.mjs MODEL.gguf --threads 2 --prompt-tokens 512 --gen-tokens 64 --sequences 1 --repeat 1
//   node llama_cpp.mjs MODEL.gguf --threads 2 --text "a prompt"     prints the first token after it, and ends
//
// Run from a folder where node-llama-cpp is installed: ES modules look for packages beside the file, so
// compare_llama_cpp.sh copies this one there. One warm-up, then --repeat measurements: the caller alternates.
// 0 prompt tokens or 0 generated tokens leave that half out.
import { parseArgs } from "node:util";
import { getLlama, LlamaLogLevel } from "node-llama-cpp";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    threads: { type: "string", default: "1" },
    "prompt-tokens": { type: "string", default: "512" },
    "gen-tokens": { type: "string", default: "64" },
    sequences: { type: "string", default: "1" },
    repeat: { type: "string", default: "1" },
    text: { type: "string" },
  },
});
const [modelPath] = positionals;
const [threads, promptTokens, genTokens, repeat] = ["threads", "prompt-tokens", "gen-tokens", "repeat"].map((name) =>
  Number(values[name])
);
const sequenceCounts = values.sequences.split(",").map(Number);
if (!modelPath || promptTokens === 1 || !(promptTokens + genTokens > 0) ||
    ![threads, repeat, ...sequenceCounts].every((n) => n >= 1)) {
  console.error("error: usage: llama_cpp.mjs MODEL.gguf, with a prompt of 0 or at least 2 tokens and 0 or more generated");
  process.exit(2);
}

const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath });
// Ordinary ids, below every vocabulary used here.
const idCount = Math.min(20000, model.fileInfo.metadata.tokenizer.ggml.tokens.length - 10);

function createContext(sequences, contextSize) {
  return model.createContext({ sequences, contextSize, batchSize: 512, threads, flashAttention: true });
}

async function generate(sequence, lastToken, tokens) {
  let generated = 0;
  for await (const token of sequence.evaluate([lastToken], { temperature: 0, yieldEogToken: true })) {
    if (++generated >= tokens) return token;
  }
  throw new Error(`generation ended after ${generated} of ${tokens} tokens`);
}

// All sequences at once: what they ask for in one turn of the event loop is decoded as one batch.
async function measure(sequences, offset) {
  // Different ids for each sequence and each time, so that no prefix is reused.
  const prompts = sequences.map((_, s) =>
    Array.from({ length: Math.max(promptTokens, 1) }, (_, i) => 10 + ((i * 7919 + s * 104729 + offset) % idCount))
  );
  await Promise.all(sequences.map((sequence) => sequence.clearHistory()));
  const start = performance.now();
  if (promptTokens > 0) {
    await Promise.all(sequences.map((one, s) => one.evaluateWithoutGeneratingNewTokens(prompts[s].slice(0, -1))));
  }
  const between = performance.now();
  if (genTokens > 0) await Promise.all(sequences.map((one, s) => generate(one, prompts[s].at(-1), genTokens)));
  const end = performance.now();
  return {
    prefill: (1000 * sequences.length * (promptTokens - 1)) / (between - start),
    decode: (1000 * sequences.length * genTokens) / (end - between),
  };
}

if (values.text !== undefined) {
  const tokens = model.tokenize(values.text);
  const context = await createContext(1, tokens.length + 64);
  const sequence = context.getSequence();
  if (tokens.length > 1) await sequence.evaluateWithoutGeneratingNewTokens(tokens.slice(0, -1));
  console.log(model.detokenize([await generate(sequence, tokens.at(-1), 1)]));
  process.exit(0);
}
for (const count of sequenceCounts) {
  const context = await createContext(count, promptTokens + genTokens + 64);
  const sequences = Array.from({ length: count }, () => context.getSequence());
  await measure(sequences, 17);
  const samples = [];
  for (let i = 0; i < repeat; ++i) samples.push(await measure(sequences, 4099 * (i + 1)));
  console.log(JSON.stringify({
    version: llama.llamaCppRelease.release,
    threads: context.currentThreads,
    sequences: count,
    prefill_tokens_per_s: promptTokens > 0 ? samples.map((sample) => sample.prefill) : null,
    decode_tokens_per_s: genTokens > 0 ? samples.map((sample) => sample.decode) : null,
  }));
  await context.dispose();
}
process.exit(0); // node-llama-cpp keeps handles open
