#!/usr/bin/env python3
"""Per-ISA objects must not define weak symbols.

  tools/check_symbols.py BUILD_DIR

An inline function compiled with -mavx512f in one object is a weak symbol, and the linker may pick that copy for code
that runs on every CPU, which then dies of an illegal instruction. So no object under kernels/<isa>/ other than the
baseline's may define one.
"""
import glob
import os
import subprocess
import sys

# scalar/ is compiled with the baseline's flags: its weak symbols are harmless.
ISA_FOLDERS = ("avx2", "avx512", "amx")


def main():
    if len(sys.argv) != 2:
        print("usage: tools/check_symbols.py BUILD_DIR", file=sys.stderr)
        return 2
    objects = []
    for isa in ISA_FOLDERS:
        objects += glob.glob(os.path.join(sys.argv[1], "src", "kernels", "**", isa, "**", "*.o"), recursive=True)
    if not objects:
        print(f"no objects of src/kernels/<isa>/ under {sys.argv[1]}: build first", file=sys.stderr)
        return 1
    bad = 0
    for path in sorted(objects):
        listing = subprocess.run(["nm", "--defined-only", "--demangle", path], capture_output=True, text=True, check=True)
        for line in listing.stdout.splitlines():
            kind = line[17:18]
            # W, V: weak; u: unique global. DW.ref.* only points at the exception personality: data, no code.
            if kind in "WVu" and "DW.ref." not in line:
                print(f"{path}: weak symbol {line[19:]}")
                bad += 1
    if bad:
        print(f"{bad} weak symbols", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
