#!/usr/bin/env bash
# tools/format.sh [--check] [FILE...]: applies .clang-format (or checks it) to the C++ sources git knows.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
mode=(-i)
if [[ ${1:-} == --check ]]; then
    mode=(--dry-run -Werror)
    shift
fi
clang_format=$(command -v clang-format-19) || {
    echo "format: no clang-format-19; run scripts/setup.sh test" >&2
    exit 1
}
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
    mapfile -t files < <(git ls-files -co --exclude-standard -- '*.cc' '*.h' '*.inc')
fi
# A file can be listed by git and gone from the disk.
existing=()
for file in "${files[@]}"; do [[ -f $file ]] && existing+=("$file"); done
[[ ${#existing[@]} -eq 0 ]] || "$clang_format" "${mode[@]}" "${existing[@]}"
