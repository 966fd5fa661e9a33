#!/usr/bin/env bash
# tools/tidy.sh [FILE.cc...]: clang-tidy over src/ (or the files named), with the flags of the release build.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
build=${FRONTIER_TIDY_BUILD:-build/release}
[[ -f $build/compile_commands.json ]] || cmake --preset release >/dev/null
command -v clang-tidy-19 >/dev/null || {
    echo "tidy: no clang-tidy-19; run scripts/setup.sh dev" >&2
    exit 1
}
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
    mapfile -t files < <(git ls-files -- 'src/*.cc')
fi
printf '%s\0' "${files[@]}" |
    xargs -0 -P "$(nproc)" -n 4 clang-tidy-19 -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option
