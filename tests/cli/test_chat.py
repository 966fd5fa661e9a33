"""The interactive chat through a pseudo-terminal: history, Ctrl-C, Ctrl-D."""
import os
import pty
import select
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BINARY, INTERRUPTED, OK, model  # noqa: E402

TINY = model("tale-1m-f16.gguf")
PROMPT = b"> "


class Terminal:
    """A chat on a terminal of its own."""

    def __init__(self, *arguments):
        self.main, side = pty.openpty()
        self.process = subprocess.Popen([BINARY, "run", *arguments], stdin=side, stdout=side, stderr=side,
                                        start_new_session=True, close_fds=True,
                                        preexec_fn=lambda: self.take_terminal(side))
        os.close(side)
        self.seen = b""

    @staticmethod
    def take_terminal(side):
        import fcntl
        import termios
        fcntl.ioctl(side, termios.TIOCSCTTY, 0)  # so that Ctrl-C typed here becomes a signal

    def read_for(self, seconds):
        """What comes within some seconds, or until the terminal closes."""
        deadline, got = time.monotonic() + seconds, b""
        while time.monotonic() < deadline:
            if select.select([self.main], [], [], 0.05)[0]:
                try:
                    data = os.read(self.main, 65536)
                except OSError:  # the other side is gone
                    break
                if not data:
                    break
                got += data
        self.seen += got
        return got

    def cpu_ticks(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            return int(file.read().rsplit(")", 1)[1].split()[11])

    def send_signal(self, number):
        """Sends and waits until it has arrived: equal signals that wait count as one."""
        self.process.send_signal(number)
        while self.process.poll() is None:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
                pending = next(line for line in file if line.startswith("ShdPnd:"))
            if int(pending.split()[1], 16) == 0:
                return
            time.sleep(0.01)

    def read_some(self, timeout_s=60):
        """Something that is more than line ends."""
        deadline, got = time.monotonic() + timeout_s, b""
        while not got.strip():
            if time.monotonic() > deadline:
                raise AssertionError(f"nothing within {timeout_s} s")
            got += self.read_for(0.1)
        return got

    def read_until(self, what, timeout_s=60):
        """Everything up to and with `what`."""
        deadline, got = time.monotonic() + timeout_s, b""
        while not got.endswith(what) and what not in got[-400:]:
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what!r} within {timeout_s} s, got {got[-2000:]!r}")
            got += self.read_for(0.1)
        return got

    def type(self, data):
        os.write(self.main, data)

    def close(self, timeout_s=30):
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read_for(0.1)
        if self.process.poll() is None:
            self.process.kill()
            raise AssertionError("the chat did not end")
        os.close(self.main)
        return self.process.returncode


class Chat(unittest.TestCase):
    def chat(self, *arguments):
        terminal = Terminal(*arguments)
        self.addCleanup(lambda: terminal.process.poll() is None and terminal.process.kill())
        return terminal

    def test_a_turn_and_the_end_of_input(self):
        terminal = self.chat(TINY, "--temperature", "0", "-n", "12")
        terminal.read_until(PROMPT)
        terminal.type(b"What comes next? The fox looked up at the grapes.\n")
        answer = terminal.read_until(b"\n" + PROMPT)
        self.assertGreater(len(answer), 60)
        terminal.type(b"\x04")
        self.assertEqual(terminal.close(), OK)

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        # An answer that would take minutes: the scalar reference, no end token, a large context.
        terminal = self.chat(model("tale-7m-f16.gguf"), "--isa", "scalar", "--dtype", "f32", "--ignore-eos", "-n",
                             "900", "--temperature", "0", "--threads", "1")
        terminal.read_until(PROMPT)
        terminal.type(b"Tell me a story.\n")
        terminal.read_until(b"story.\r\n")
        terminal.read_some()  # the answer has begun
        terminal.type(b"\x03")
        terminal.read_until(b"\n" + PROMPT)
        self.assertIsNone(terminal.process.poll())
        terminal.type(b"\x03")  # at the prompt it only starts a new line
        terminal.read_until(PROMPT)
        self.assertIsNone(terminal.process.poll())
        terminal.type(b"And then?\n")  # the chat goes on
        terminal.read_until(b"then?\r\n")
        terminal.read_some()
        terminal.type(b"\x03")
        terminal.read_until(b"\n" + PROMPT)
        terminal.type(b"/exit\n")
        self.assertEqual(terminal.close(), OK)

    def slow_chat(self):
        """A chat whose prefill of a long line takes far longer than this test needs to send signals."""
        terminal = self.chat(model("tale-7m-f16.gguf"), "--isa", "scalar", "--dtype", "f32", "--threads", "1")
        terminal.read_until(PROMPT)
        terminal.type(b"the quick brown fox " * 30 + b"\n")
        terminal.read_until(b"fox \r\n")
        began = terminal.cpu_ticks()
        while terminal.cpu_ticks() < began + 20:  # far more than reading a line takes: the answer is being computed
            time.sleep(0.01)
        return terminal

    def test_any_number_of_ctrl_c_only_stops_the_answer(self):
        terminal = self.slow_chat()
        for _ in range(5):
            terminal.send_signal(signal.SIGINT)
        terminal.read_until(b"\n" + PROMPT)
        self.assertIsNone(terminal.process.poll())
        terminal.type(b"/exit\n")
        self.assertEqual(terminal.close(), OK)

    def test_sigterm_and_sighup_end_the_chat(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            terminal = self.chat(TINY)
            terminal.read_until(PROMPT)
            terminal.process.send_signal(number)
            self.assertEqual(terminal.close(), INTERRUPTED)
        terminal = self.slow_chat()
        terminal.process.send_signal(signal.SIGTERM)
        self.assertEqual(terminal.close(), INTERRUPTED)

    def test_unknown_commands_are_not_sent_to_the_model(self):
        terminal = self.chat(TINY, "-n", "4")
        terminal.read_until(PROMPT)
        terminal.type(b"/bogus\n")
        answer = terminal.read_until(b"\n" + PROMPT)
        self.assertIn(b"/bogus: no such command", answer)
        self.assertIn(b"/clear", answer)
        self.assertNotIn(b"TTFT", answer)
        terminal.type(b"/etc/passwd is a path\n")  # text
        self.assertIn(b"TTFT", terminal.read_until(b"\n" + PROMPT))
        terminal.type(b"/exit \n")
        self.assertEqual(terminal.close(), OK)

    def test_a_line_that_the_terminal_cuts_is_not_used(self):
        terminal = self.chat(TINY, "-n", "4")
        terminal.read_until(PROMPT)
        terminal.type(b"y" * 5000 + b"\n")
        answer = terminal.read_until(b"\n" + PROMPT)
        self.assertIn(b"4095 bytes", answer)
        self.assertNotIn(b"TTFT", answer)
        terminal.type(b"\x04")
        self.assertEqual(terminal.close(), OK)

    def test_history_grows_until_cleared(self):
        """The prompt of the second turn holds the first one: its size is in the figures."""
        def prompt_sizes(*lines):
            terminal = self.chat(TINY, "--temperature", "0", "-n", "4")
            terminal.read_until(PROMPT)
            transcript = b""
            for line in lines:
                terminal.type(line + b"\n")
                transcript += terminal.read_until(b"\n" + PROMPT)
            terminal.type(b"\x04")
            self.assertEqual(terminal.close(), OK)
            return transcript
        # The same question after /clear gets the same answer as the first time (greedy); without it, it need not.
        cleared = prompt_sizes(b"Who is there?", b"/clear", b"Who is there?")
        answers = cleared.replace(b"\r\n", b"\n").split(b"Who is there?\n")
        self.assertEqual(answers[1].split(b"\n")[0], answers[2].split(b"\n")[0])


if __name__ == "__main__":
    unittest.main()
