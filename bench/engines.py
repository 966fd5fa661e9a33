"""The engines that compare.py measures: their commands, what they print, and the processes they run in."""
import contextlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 3600  # of one command: ends what hangs
ENDLESS = 10000   # repetitions that outlast any measurement
COLD_TEXT = "The quick brown fox jumps over"
CPUS = sorted(os.sched_getaffinity(0))
# Spins on one CPU until its parent is gone, however the parent ended.
SPIN = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
while os.getppid() == int(sys.argv[2]):
    for _ in range(1000000): pass
"""


class Failed(Exception):
    """An engine gave no figure; the text says why."""


# What engines print, as {(test, sequences): {"tokens_per_s": ..., ...}}. Pure functions.

def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def parse_frontier(text):
    return {(row["test"], row["batch"]): row for row in json_lines(text)}


def parse_npm(text):
    return {(test, line["sequences"]): {"tokens_per_s": statistics.median(line[f"{test}_tokens_per_s"]),
                                        "version": line["version"], "threads": line["threads"]}
            for line in json_lines(text) for test in ("prefill", "decode") if line[f"{test}_tokens_per_s"]}


def parse_llama_bench(text):
    """llama-bench -o json: a list, possibly behind other output."""
    rows = json.loads(text[text.index("[\n"):])
    return {("prefill" if row["n_prompt"] else "decode", 1): {"tokens_per_s": statistics.median(row["samples_ts"]),
                                                              "version": row["build_commit"]} for row in rows}


def parse_batched_bench(text):
    """llama-batched-bench: a Markdown table with a header, possibly behind other output."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]
    header = next(line for line in lines if "S_TG t/s" in line)
    rows = [dict(zip(header, line)) for line in lines if line[0].isdigit()]
    return {(test, int(row["B"])): {"tokens_per_s": float(row[column])}
            for row in rows for test, column in (("prefill", "S_PP t/s"), ("decode", "S_TG t/s"))}


def reason_of(stderr, status):
    """One line of what a failed process said: the last that speaks of an error, or else the last."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    what = f"signal {-status}" if status < 0 else f"exit {status}"
    return f"{what}: {(errors or lines)[-1][:160]}" if lines else what


# Processes.

@contextlib.contextmanager
def started(command, cwd=None):
    """A process that does not outlive the block, and the files that take its standard output and error: pipes could fill
    up and stop it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd)
        except OSError as error:
            raise Failed(str(error)) from error
        try:
            yield child, out, err
        finally:
            stop([child])


def text_of(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def run(command, cwd=None, beside=None):
    """Standard output of a command, which runs beside another that is killed at its end."""
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(started(beside, cwd)) if beside else None
        child, out, err = stack.enter_context(started(command, cwd))
        try:
            status = child.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"ran past {TIMEOUT_S} s") from error
        if status != 0:
            raise Failed(reason_of(text_of(err), status))
        if other and other[0].poll() is not None:
            raise Failed("the engine beside it ended first, " + reason_of(text_of(other[2]), other[0].returncode))
        return text_of(out)


def stop(children):
    for child in children:
        if child.poll() is None:
            child.kill()
        child.wait()


@contextlib.contextmanager
def busy_cpus():
    """One spinning process pinned to each CPU, at the priority of the engines."""
    children = []
    try:
        for cpu in CPUS:
            children.append(subprocess.Popen([sys.executable, "-c", SPIN, str(cpu), str(os.getpid())]))
        time.sleep(0.5)  # until they spin
        yield
    finally:
        stop(children)


class Engine:
    """Commands that measure, and the parser of what they print. `ran` collects the commands of a sample."""
    cwd, version = None, ""

    def __init__(self, name):
        self.name, self.ran = name, []

    def run(self, command, beside=None):
        self.ran += [shlex.join(one) for one in (command, beside) if one]
        return run(command, self.cwd, beside)

    def rates(self, *arguments, beside_itself=False):
        """What parse() returns; beside_itself: while a second one does the same over and over."""
        beside = self.rates_command(*arguments, repeat=ENDLESS) if beside_itself else None
        try:
            rates = self.parse(self.run(self.rates_command(*arguments), beside))
        except (ValueError, KeyError, StopIteration) as error:
            raise Failed(f"unexpected output: {error!r}") from error
        for sample in rates.values():
            self.version = sample.get("version", self.version)
        return rates


class Frontier(Engine):
    def __init__(self, binary):
        super().__init__("Frontier")
        self.binary, self.parse = binary, parse_frontier

    def rates_command(self, model, threads, prompt, gen, batches=(1,), repeat=1):
        return [self.binary, "bench", "engine", model, "--json", "--threads", str(threads), "--prompt-tokens",
                str(prompt), "--gen-tokens", str(gen), "--batch", ",".join(map(str, batches)), "--repeat", str(repeat)]

    def cold_command(self, model, threads):
        return [self.binary, "run", model, "-p", COLD_TEXT, "-n", "1", "--temperature", "0", "-t", str(threads)]


class Npm(Engine):
    def __init__(self, script):
        super().__init__("llama.cpp (npm)")
        self.script, self.cwd, self.parse = os.path.abspath(script), os.path.dirname(os.path.abspath(script)), parse_npm

    def rates_command(self, model, threads, prompt, gen, batches=(1,), repeat=1):
        return ["node", self.script, model, "--threads", str(threads), "--prompt-tokens", str(prompt), "--gen-tokens",
                str(gen), "--sequences", ",".join(map(str, batches)), "--repeat", str(repeat)]

    def cold_command(self, model, threads):
        return ["node", self.script, model, "--threads", str(threads), "--text", COLD_TEXT]


class Native(Engine):
    """The tools of llama.cpp and its forks, as the user built them. Tools that were not named fail their rows."""

    def __init__(self, name, tools):
        super().__init__(name)
        self.tools = tools

    def tool(self, name):
        if name not in self.tools:
            raise Failed(f"no --{name.replace('_', '-')} given")
        return self.tools[name]

    def rates_command(self, model, threads, prompt, gen, batches=(1,), repeat=1):
        if tuple(batches) == (1,):
            return [*self.tool("llama_bench"), "-m", model, "-t", str(threads), "-p", str(prompt), "-n", str(gen), "-r",
                    str(repeat), "-o", "json"]
        return [*self.tool("llama_batched_bench"), "-m", model, "-t", str(threads), "-c",
                str(max(batches) * (prompt + gen)), "-b", "2048", "-ub", "512", "-npp", str(prompt), "-ntg", str(gen),
                "-npl", ",".join(map(str, batches))]

    @staticmethod
    def parse(text):
        return parse_batched_bench(text) if "S_TG t/s" in text else parse_llama_bench(text)

    def cold_command(self, model, threads):
        return [*self.tool("llama_cli"), "-m", model, "-p", COLD_TEXT, "-n", "1", "--temp", "0", "-t", str(threads)]
