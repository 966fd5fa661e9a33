#!/usr/bin/env bash
# Frontier beside llama.cpp (npm node-llama-cpp): the same synthetic GGUF files, the same threads, alternating runs.
#   bench/compare_llama_cpp.sh [PAIRS]      default 5; more pairs, narrower spread
# FRONTIER_BENCH_MODELS (default "tinyllama-1.1b:Q4_0 tinyllama-1.1b:Q8_0"), FRONTIER_BENCH_THREADS (default: physical
# cores). Nothing else should run meanwhile. Files stay in build/bench for the next time.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
source "$root/scripts/common.sh"
pairs=${1:-5}
[[ $pairs =~ ^[0-9]+$ && $pairs -ge 1 ]] || {
    echo "compare: PAIRS: expected a positive number, got '$pairs'" >&2
    exit 2
}
models=${FRONTIER_BENCH_MODELS:-tinyllama-1.1b:Q4_0 tinyllama-1.1b:Q8_0}
threads=${FRONTIER_BENCH_THREADS:-$(lscpu -p=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)}
work=$root/build/bench
command -v npm >/dev/null && [[ $(node -p 'process.versions.node.split(".")[0]') -ge 20 ]] || {
    echo "compare: the peer needs Node 20 or newer with npm" >&2
    exit 1
}

"$root/scripts/setup.sh" build test
[[ -f $root/build/release/build.ninja ]] || quietly "Configuring" "$work/configure.log" configure release
quietly "Building" "$work/build.log" ninja -C "$root/build/release" frontier
mkdir -p "$work/peer"
cp "$root/bench/llama_cpp.mjs" "$work/peer/"
if [[ ! -d $work/peer/node_modules/node-llama-cpp ]]; then
    echo '{"private": true}' >"$work/peer/package.json"
    quietly "Installing the peer" "$work/npm.log" npm install --prefix "$work/peer" --ignore-scripts --no-audit \
        --no-fund node-llama-cpp@3 @node-llama-cpp/linux-x64
fi

for model in $models; do
    file=$work/${model//:/-}.gguf
    [[ -f $file ]] || quietly "Writing $file" "$work/synth.log" "$root/build/release/frontier" synth "$model" "$file"
    python3 "$root/bench/compare.py" --pairs "$pairs" --threads "$threads" --model "$file" \
        --frontier "$root/build/release/frontier" --peer "$work/peer/llama_cpp.mjs"
done
