"""run --live: a status line in the last row of a terminal, and the terminal as it was afterwards."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BINARY, INTERRUPTED, OK, frontier, model  # noqa: E402

TINY = model("tale-1m-f16.gguf")
PROMPT = "Once upon a time"
SEQUENCE = re.compile(r"\x1b(?:([78DM])|\[([0-9;]*)([A-Za-z]))")


class Screen:
    """As much of a VT100 as the program uses; anything else is an error."""

    def __init__(self, rows, cols):
        self.cells = [[" "] * cols for _ in range(rows)]
        self.rows, self.cols, self.top, self.bottom = rows, cols, 0, rows - 1
        self.row = self.col = 0
        self.saved = (0, 0)

    def line(self, row):
        return "".join(self.cells[row]).rstrip()

    def down(self):
        if self.row == self.bottom:
            del self.cells[self.top]
            self.cells.insert(self.bottom, [" "] * self.cols)
        elif self.row < self.rows - 1:
            self.row += 1

    def control(self, single, numbers, final):
        values = [int(number) for number in numbers.split(";") if number] if numbers else []
        if single == "7":
            self.saved = (self.row, self.col)
        elif single == "8":
            self.row, self.col = self.saved
        elif single == "D":
            self.down()
        elif final == "A":
            self.row = max(0, self.row - (values[0] if values else 1))
        elif final == "H":
            self.row, self.col = min(values[0], self.rows) - 1, min(values[1], self.cols) - 1
        elif final == "K":
            for col in range(0 if values == [2] else self.col, self.cols):
                self.cells[self.row][col] = " "
        elif final == "r":
            self.top, self.bottom = (values[0] - 1, values[1] - 1) if values else (0, self.rows - 1)
            self.row = self.col = 0
        else:
            raise AssertionError(f"unexpected sequence {single!r} {numbers!r} {final!r}")

    def feed(self, text):
        at = 0
        while at < len(text):
            found = SEQUENCE.match(text, at)
            if found:
                self.control(found[1], found[2], found[3])
                at = found.end()
                continue
            character = text[at]
            at += 1
            if character == "\n":
                self.down()
            elif character == "\r":
                self.col = 0
            else:
                if self.col == self.cols:
                    self.col = 0
                    self.down()
                self.cells[self.row][self.col] = character
                self.col += 1


def resize(terminal, rows, cols):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def on_terminal(arguments, rows=12, cols=200, meanwhile=None, term="xterm", prompt=PROMPT):
    """Exit status and everything that appeared. meanwhile(text, process, terminal) is called after every read."""
    terminal, other = pty.openpty()
    resize(terminal, rows, cols)
    process = subprocess.Popen([BINARY, "run", TINY, "--temperature", "0", "--ignore-eos", *arguments,
                                *(["-p", prompt] if prompt else [])],
                               stdin=subprocess.DEVNULL, stdout=other, stderr=subprocess.DEVNULL,
                               env={**os.environ, "TERM": term})
    os.close(other)
    shown = b""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
        if meanwhile:
            meanwhile(shown, process, terminal)
    os.close(terminal)
    return process.wait(timeout=60), shown.decode("utf-8", "replace")


class Live(unittest.TestCase):
    def assert_given_back(self, shown, screen):
        self.assertGreater(shown.rindex("\x1b[r"), shown.rindex(f"\x1b[1;{screen.rows - 1}r"))
        self.assertEqual((screen.top, screen.bottom), (0, screen.rows - 1))
        self.assertEqual(screen.line(screen.rows - 1), "")

    def test_the_last_row_shows_the_speed_and_is_given_back(self):
        # Long enough for several redraws, ten a second, on any machine.
        length = ["-n", "3500", "-c", "4096"]
        plain = frontier("run", TINY, "-p", PROMPT, "--temperature", "0", "--ignore-eos", *length).out
        for start_row in (0, 11):  # at the top, and where text already fills the terminal
            status, shown = on_terminal(["--live", *length])
            self.assertEqual(status, OK)
            screen = Screen(12, 200)
            screen.feed("\r\n" * start_row + PROMPT)
            statuses, column = set(), None
            for piece in re.split(r"(?<=\x1b8)", shown):
                screen.feed(piece)
                statuses.add(screen.line(11))
                column = screen.col if column is None else column
            self.assertEqual(column, len(PROMPT))  # reserving the row moved nothing
            self.assertTrue([line for line in statuses if "tokens/s" in line and "GB/s" in line], statuses)
            self.assertTrue([line for line in statuses if "prompt tokens" in line], statuses)
            self.assert_given_back(shown, screen)
            bare = SEQUENCE.sub("", re.sub(r"\x1b7\x1b\[12;1H\x1b\[2K.*?\x1b8", "", shown)).replace("\r", "")
            self.assertEqual(bare, plain)

    def test_an_interrupt_gives_the_row_back(self):
        sent = []

        def interrupt(shown, process, _):
            if b"tokens/s" in shown and not sent:
                sent.extend([process.send_signal(signal.SIGINT), process.send_signal(signal.SIGINT)])
        status, shown = on_terminal(["--live", "-n", "1000000", "-c", "1000000"], meanwhile=interrupt)
        self.assertEqual(status, INTERRUPTED)
        screen = Screen(12, 200)
        screen.feed(shown)
        self.assert_given_back(shown, screen)

    def test_an_interrupted_prefill_shows_only_what_is_known(self):
        sent = []

        def interrupt(shown, process, _):
            if b"prompt tokens" in shown and not sent:
                sent.append(process.send_signal(signal.SIGINT))
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("word " * 60000)
            file.flush()
            status, shown = on_terminal(["--live", "--stats", "-f", file.name, "-n", "1", "-c", "100000"],
                                        meanwhile=interrupt, prompt=None)
        self.assertEqual(status, INTERRUPTED)
        self.assertIn("load ", shown)
        for word in ("TTFT", "unknown", "| logits", "tokens/s"):
            self.assertNotIn(word, shown)

    def test_an_error_gives_the_row_back(self):
        status, shown = on_terminal(["--live", "-c", "4"])  # the prompt does not fit
        self.assertEqual(status, 4)
        screen = Screen(12, 200)
        screen.feed(shown)
        self.assert_given_back(shown, screen)

    def test_follows_the_size_of_the_terminal(self):
        sizes = [(9, 60)]

        def shrink(shown, _, terminal):
            if b"tokens/s" in shown and sizes:
                resize(terminal, *sizes.pop())
        status, shown = on_terminal(["--live", "-n", "2000", "-c", "4096"], meanwhile=shrink)
        self.assertEqual(status, OK)
        self.assertIn("\x1b[1;8r", shown)
        after = shown[shown.index("\x1b[1;8r"):]
        lines = re.findall(r"\x1b\[9;1H\x1b\[2K([^\x1b]*)\x1b8", after)
        self.assertTrue(lines)
        self.assertLess(max(map(len, lines)), 60)
        screen = Screen(9, 60)
        screen.feed(after)
        self.assert_given_back(shown, screen)

    def test_no_effect_where_there_is_no_terminal_to_use(self):
        flags = ["-p", PROMPT, "--temperature", "0", "--ignore-eos", "-n", "20"]
        with_flag, without = frontier("run", TINY, "--live", *flags), frontier("run", TINY, *flags)
        self.assertEqual((with_flag.status, with_flag.out, with_flag.err), (OK, without.out, without.err))
        for arguments, term, rows in ((["--json"], "xterm", 12), ([], "dumb", 12), ([], "xterm", 2)):
            status, shown = on_terminal(["--live", "-n", "20", *arguments], term=term, rows=rows)
            self.assertEqual(status, OK)
            self.assertNotIn("\x1b", shown)


if __name__ == "__main__":
    unittest.main()
