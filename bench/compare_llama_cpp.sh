#!/usr/bin/env bash
# Frontier beside llama.cpp (npm node-llama-cpp): builds, installs the peer into build/bench/peer, measures.
#   bench/compare_llama_cpp.sh [ARGUMENTS OF bench/compare.py]
# FRONTIER_BENCH_PEER names a folder where node-llama-cpp is installed already.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
source "$root/scripts/common.sh"
work=$root/build/bench
peer=${FRONTIER_BENCH_PEER:-$work/peer}
[[ " $* " != *" --help "* && " $* " != *" -h "* ]] || exec python3 "$root/bench/compare.py" --help
command -v npm >/dev/null && [[ $(node -p 'process.versions.node.split(".")[0]') -ge 20 ]] || {
    echo "compare: the peer needs Node 20 or newer with npm; bench/compare.py measures without it" >&2
    exit 1
}

"$root/scripts/setup.sh" build test
[[ -f $root/build/release/build.ninja ]] || quietly "Configuring" "$work/configure.log" configure release
quietly "Building" "$work/build.log" ninja -C "$root/build/release" frontier
mkdir -p "$peer"
if [[ ! -d $peer/node_modules/node-llama-cpp ]]; then
    echo '{"private": true}' >"$peer/package.json"
    quietly "Installing the peer" "$work/npm.log" npm install --prefix "$peer" --ignore-scripts --no-audit --no-fund \
        node-llama-cpp@3 @node-llama-cpp/linux-x64
fi
cp "$root/bench/llama_cpp.mjs" "$peer/"
exec python3 "$root/bench/compare.py" --npm "$peer/llama_cpp.mjs" "$@"
