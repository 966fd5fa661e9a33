"""What reaches the terminal and the streams: failed writes, escaped text, one short line for every error."""
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BAD_INPUT, BINARY, FAILED, INTERRUPTED, OK, USAGE, Expect, frontier, model  # noqa: E402

TINY = model("tale-1m-f16.gguf")
EVIL = "a\x1b[31mb\x07\x7f\u009bc\u202ed\u2066\u200e\u2028e\nf"
SHOWN = r"a\x1b[31mb\x07\x7f\u009bc\u202ed\u2066\u200e\u2028e\x0af"
PRINTING = [["--help"], ["--version"], ["run", "--help"], ["list"], ["list", "--json"], ["inspect", TINY],
            ["inspect", TINY, "--json"], ["tokenize", TINY, "-p", "x"], ["detokenize", TINY, "300"],
            ["run", TINY, "-p", "x", "-n", "2"], ["run", TINY, "-p", "x", "-n", "2", "--json"]]


def gguf_string(data):
    return struct.pack("<Q", len(data)) + data


def renamed(name):
    """The tiny model with another general.name; its weights are displaced."""
    with open(TINY, "rb") as file:
        data = file.read()
    key = gguf_string(b"general.name") + struct.pack("<I", 8)
    at = data.index(key) + len(key)
    length = struct.unpack("<Q", data[at:at + 8])[0]
    return data[:at] + gguf_string(name) + data[at + 8 + length:] + bytes(4096)  # enough wherever the data starts


class Streams(Expect, unittest.TestCase):
    def test_a_full_disk_is_an_error_of_every_command(self):
        for arguments in PRINTING:
            with self.subTest(arguments=arguments), open("/dev/full", "wb") as full:
                done = subprocess.run([BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=full,
                                      stderr=subprocess.PIPE, check=False)
                self.assertEqual(done.returncode, FAILED)
                self.assertEqual(done.stderr, b"frontier: error: stdout: No space left on device\n")

    def test_a_closed_stdout_is_an_error(self):
        for arguments in PRINTING:
            with self.subTest(arguments=arguments):
                outcome = frontier(*arguments, prefix=["sh", "-c", 'exec "$0" "$@" >&-'])
                self.assert_error(outcome, FAILED, "stdout: Bad file descriptor")

    def test_a_closed_stdin_is_an_error(self):
        self.assert_error(frontier("tokenize", TINY, prefix=["sh", "-c", 'exec "$0" "$@" <&-']), BAD_INPUT,
                          "standard input")

    def test_a_reader_that_leaves_ends_the_program_as_usual(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([BINARY, "list"], stdout=writer, stderr=subprocess.PIPE, check=False)
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))


class Visible(Expect, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def assert_visible(self, text):
        self.assertIsNone(next((c for c in text if c != "\n" and not c.isprintable()), None), repr(text))

    def test_names_in_files(self):
        path = os.path.join(self.folder, "m.gguf")
        with open(path, "wb") as file:
            file.write(renamed(EVIL.encode() + b"\xff caf\xc3\xa9"))
        outcome = frontier("inspect", path)
        self.assertEqual(outcome.status, OK, outcome)
        self.assertIn(SHOWN + r"\xff caf" + "\u00e9", outcome.out)
        self.assert_visible(outcome.out)
        name = self.json_of(frontier("inspect", path, "--json"))["config"]["name"]
        self.assertTrue(name.startswith(EVIL), name)

    def test_file_names(self):
        name = EVIL.encode() + b"\xff.gguf"
        shutil.copy(TINY, os.path.join(self.folder.encode(), name))
        listed = frontier("list", env={"FRONTIER_MODELS": self.folder})
        self.assertIn(SHOWN + r"\xff", listed.out)
        self.assert_visible(listed.out)
        self.assertTrue(any(EVIL in row["name"] for row in self.json_of(
            frontier("list", "--json", env={"FRONTIER_MODELS": self.folder}))["models"]))
        made = frontier("synth", "tiny-llama", os.path.join(self.folder, EVIL))
        self.assertIn(SHOWN, made.out)
        self.assert_visible(made.out)

    def test_errors(self):
        for arguments in (["inspect", EVIL + "/"], ["tokenize", TINY, "-f", EVIL], [EVIL], ["list", "--" + EVIL],
                          ["list", EVIL]):
            outcome = frontier(*arguments)
            self.assertIn(outcome.status, (USAGE, BAD_INPUT), outcome)
            self.assertEqual(outcome.err.count("\n"), 1, outcome)
            self.assert_visible(outcome.err)

    def test_long_errors_lose_their_middle(self):
        for long in ("x" * 100000, "\u4e2d" * 30000):
            outcome = frontier("tokenize", TINY, "-f", long + "END")
            self.assert_error(outcome, BAD_INPUT, long[:80], " ... ", "END: cannot be opened: File name too long")
            self.assertLess(len(outcome.err.encode()), 520)
            self.assertNotIn("\ufffd", outcome.err)

    def test_generated_text_is_left_alone(self):
        token = self.json_of(frontier("tokenize", TINY, "--json", "--no-special", "-p", "\x1b"))["ids"]
        self.assertEqual(frontier("detokenize", TINY, *token).out, "\x1b")
        self.assertNotIn("\x7f", frontier("tokenize", TINY, "-p", "\x7f").out)


class Commands(Expect, unittest.TestCase):
    def test_what_is_no_command_is_named_with_those_there_are(self):
        for arguments in (["bogus"], ["doctor", "x"], ["bogus", "--help"], ["--bogus"]):
            self.assert_error(frontier(*arguments), USAGE, f"'{arguments[0]}'", "run", "tokenize", "eval")
        self.assert_error(frontier("bench", "bogus"), USAGE, "'bogus'", "roofline, engine")
        self.assert_error(frontier(), USAGE, "run", "none")

    def test_an_empty_value_is_empty_text(self):
        self.assertEqual(self.json_of(frontier("tokenize", TINY, "--prompt=", "--json"))["ids"], [])
        self.assert_error(frontier("bench", "engine", TINY, "--batch=", "--json"), USAGE, "--batch")
        # The value of a flag is text, whatever it looks like.
        document = self.json_of(frontier("tokenize", TINY, "-p", "--prompt=", "--json", "--no-special"))
        self.assertEqual("".join(document["pieces"]), "--prompt=")

    def test_an_empty_model_is_not_the_default(self):
        for arguments in (["run", "", "-p", "x"], ["run", "--model=", "-p", "x"], ["inspect", ""],
                          ["detokenize", "-m", "", "5"]):
            self.assert_error(frontier(*arguments), USAGE, "MODEL")


class Synth(Expect, unittest.TestCase):
    """Whatever ends the writing of a model, nothing is left of it."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "m.gguf")

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Gigabytes, of which only the beginning is written before the signal.
            process = subprocess.Popen([BINARY, "synth", "llama-3.2-1b:Q8_0", self.path], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            self.addCleanup(process.kill)
            part = f"{self.path}.part{process.pid}"
            while process.poll() is None and not (os.path.exists(part) and os.path.getsize(part) > 0):
                pass
            for _ in range(3):
                process.send_signal(number)
            out, err = process.communicate()
            self.assertEqual((process.returncode, out, err), (INTERRUPTED, b"", b"frontier: error: interrupted\n"))
            self.assertEqual(os.listdir(self.folder), [])

    def test_a_limit_on_file_sizes(self):
        outcome = frontier("synth", "tiny-llama", self.path, prefix=["prlimit", "--fsize=100000"])
        self.assert_error(outcome, FAILED, "m.gguf: File too large")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
