// Measures llama.cpp (npm package node-llama-cpp) on a GGUF file and prints one JSON line.
//
//   node llama_cpp.mjs MODEL.gguf THREADS PROMPT_TOKENS GEN_TOKENS
//
// Run from a folder where node-llama-cpp is installed: ES modules look for packages beside the file, so
// compare_llama_cpp.sh copies this one there. One warm-up, one measurement: the caller repeats and alternates.
import { getLlama, LlamaLogLevel } from "node-llama-cpp";

const [modelPath, ...numbers] = process.argv.slice(2);
const [threads, promptTokens, genTokens] = numbers.map(Number);
if (!modelPath || !(threads > 0) || !(promptTokens > 1) || !(genTokens > 0)) {
  console.error("usage: node llama_cpp.mjs MODEL.gguf THREADS PROMPT_TOKENS GEN_TOKENS");
  process.exit(2);
}

const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({
  contextSize: promptTokens + genTokens + 64,
  batchSize: 512,
  threads,
  flashAttention: true,
});
const sequence = context.getSequence();

async function measure(offset) {
  // Ordinary ids, below every vocabulary used here; different ones each time, so that no prefix is reused.
  const prompt = Array.from({ length: promptTokens }, (_, i) => 10 + ((i * 7919 + offset) % 20000));
  await sequence.clearHistory();
  let start = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(0, -1));
  const prefillSeconds = (performance.now() - start) / 1000;
  start = performance.now();
  let generated = 0;
  for await (const _ of sequence.evaluate([prompt.at(-1)], { temperature: 0, yieldEogToken: true })) {
    if (++generated >= genTokens) break;
  }
  const decodeSeconds = (performance.now() - start) / 1000;
  return {
    prefill_tokens_per_s: (promptTokens - 1) / prefillSeconds,
    decode_tokens_per_s: generated / decodeSeconds,
  };
}

await measure(17);
console.log(JSON.stringify({ engine: "llama.cpp", threads, ...(await measure(4099)) }));
process.exit(0); // node-llama-cpp keeps handles open
