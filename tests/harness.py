"""Runs the frontier binary for the Python tests. FRONTIER_BIN names it; by default the release build's."""
import json
import os
import signal
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = os.path.join(ROOT, "models")
BINARY = os.environ.get("FRONTIER_BIN", os.path.join(ROOT, "build", "release", "frontier"))
GOLDEN_PATH = os.path.join(ROOT, "tests", "golden", "golden.json")
VALID_TEXT = os.path.join(ROOT, "tests", "golden", "valid.txt")
ALL_ISAS = ["scalar", "avx2", "avx512", "amx"]

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and children inherit that

OK, FAILED, USAGE, BAD_INPUT, DOES_NOT_FIT, INTERRUPTED = 0, 1, 2, 3, 4, 130


def model(name):
    return os.path.join(MODELS, name)


def golden():
    with open(GOLDEN_PATH, encoding="utf-8") as file:
        return json.load(file)


class Outcome:
    def __init__(self, command, status, out, err):
        self.command, self.status, self.out, self.err = command, status, out, err

    def __str__(self):
        return f"{' '.join(self.command)}\n  exit {self.status}\n  stdout {self.out[:2000]!r}\n  stderr {self.err[:2000]!r}"


def frontier(*arguments, stdin=b"", timeout_s=300, prefix=(), env=None):
    """Runs `frontier ARGUMENTS` to its end; prefix: a command to run it under."""
    command = [*prefix, BINARY, *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, check=False,
                          env={**os.environ, **(env or {})})
    err = done.stderr.decode("utf-8", "replace")
    if prefix and prefix[0].startswith("qemu"):  # qemu's own remarks about features it does not emulate
        err = "".join(line for line in err.splitlines(keepends=True) if not line.startswith("qemu-"))
    return Outcome([str(part) for part in command], done.returncode, done.stdout.decode("utf-8", "replace"), err)


def host_isas():
    """What --isa takes on this machine; the others exit 2."""
    names = []
    for isa in ALL_ISAS:
        outcome = frontier("run", model("tale-1m-f16.gguf"), "-p", "x", "-n", "1", "--json", "--isa", isa)
        if outcome.status == OK:
            names.append(isa)
    return names


class Expect:
    """Assertions on outcomes, mixed into unittest.TestCase."""

    def json_of(self, outcome):
        """One JSON document alone on stdout, nothing on stderr, exit 0."""
        self.assertEqual(outcome.status, OK, outcome)
        self.assertEqual(outcome.err, "", outcome)
        self.assertEqual(outcome.out.count("\n"), 1, outcome)
        self.assertTrue(outcome.out.endswith("\n"), outcome)
        return json.loads(outcome.out)

    def json_lines_of(self, outcome):
        self.assertEqual(outcome.status, OK, outcome)
        return [json.loads(line) for line in outcome.out.splitlines()]

    def assert_error(self, outcome, status, *words):
        """Exit status, nothing on stdout, exactly one line on stderr, and it names what it should."""
        self.assertEqual(outcome.status, status, outcome)
        self.assertEqual(outcome.out, "", outcome)
        self.assertEqual(outcome.err.count("\n"), 1, outcome)
        self.assertTrue(outcome.err.endswith("\n"), outcome)
        for word in words:
            self.assertIn(word, outcome.err)
