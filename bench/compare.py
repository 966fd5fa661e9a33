#!/usr/bin/env python3
"""Alternates Frontier and a peer on one file and prints medians, spread and the ratio of each pair.

A ratio is taken within a pair, whose two runs are neighbours in time: what drifts on the machine drifts for both.
Raw samples are appended to build/bench/samples.jsonl.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

PROMPT_TOKENS, GEN_TOKENS = 512, 64
RATES = ("prefill_tokens_per_s", "decode_tokens_per_s")


def lines_of(command, cwd=None):
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"compare: {' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measure_frontier(options):
    rows = lines_of([options.frontier, "bench", "engine", options.model, "--json", "--threads", str(options.threads),
                     "--prompt-tokens", str(PROMPT_TOKENS), "--gen-tokens", str(GEN_TOKENS), "--batch", "1",
                     "--repeat", "1"])
    return {f"{row['test']}_tokens_per_s": row["tokens_per_s"] for row in rows}


def measure_peer(options):
    return lines_of(["node", options.peer, options.model, str(options.threads), str(PROMPT_TOKENS), str(GEN_TOKENS)],
                    cwd=os.path.dirname(options.peer))[-1]


def spread(values):
    return f"{statistics.median(values):8.1f}  ({min(values):.1f} to {max(values):.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--frontier", required=True)
    parser.add_argument("--peer", required=True)
    options = parser.parse_args()
    ours, theirs = [], []
    log = os.path.join(os.path.dirname(options.model), "samples.jsonl")
    for pair in range(options.pairs):
        # Whoever runs first may find a cooler or a busier machine: take turns at that too.
        order = [(ours, measure_frontier), (theirs, measure_peer)]
        for samples, measure in order if pair % 2 == 0 else reversed(order):
            samples.append(measure(options))
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps({"model": os.path.basename(options.model), "threads": options.threads, "pair": pair,
                                   "frontier": ours[-1], "llama.cpp": theirs[-1]}) + "\n")
    print(f"{os.path.basename(options.model)}, {options.threads} threads, {options.pairs} pairs, "
          f"prompt {PROMPT_TOKENS}, generated {GEN_TOKENS}")
    for rate in RATES:
        mine, other = [row[rate] for row in ours], [row[rate] for row in theirs]
        ratios = [a / b for a, b in zip(mine, other)]
        print(f"  {rate.split('_')[0]:<8} tokens/s   frontier {spread(mine)}   llama.cpp {spread(other)}   "
              f"ratio {statistics.median(ratios):.2f}  ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
