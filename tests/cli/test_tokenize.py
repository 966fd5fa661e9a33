"""tokenize and detokenize: exact bytes in, ids and pieces out."""
import os
import random
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BAD_INPUT, OK, Expect, frontier, golden, model  # noqa: E402

TINY = model("tale-1m-f16.gguf")
FOLDER = model("tale-1m")
STORIES = model("stories260K-f32.gguf")


class Tokenize(Expect, unittest.TestCase):
    def ids(self, spec, *flags, stdin=b""):
        return self.json_of(frontier("tokenize", spec, "--json", *flags, stdin=stdin))["ids"]

    def test_golden_cases_in_both_formats(self):
        for case in golden()["tale_tokenizer_cases"]:
            for spec in (TINY, FOLDER):
                with self.subTest(text=case["text"], spec=spec):
                    # Empty text has no ids on the command line, although the tokenizer itself would give a BOS.
                    expected = case["ids"] if case["text"] else []
                    self.assertEqual(self.ids(spec, "-p", case["text"], "--parse-special"), expected)

    def test_empty_text_has_no_ids(self):
        for spec in (TINY, FOLDER, STORIES):
            self.assertEqual(self.ids(spec, "-f", "-"), [])
            self.assertEqual(self.ids(spec, "-p", "", "--no-special"), [])
            self.assertEqual(self.ids(spec, "-f", "-", "--no-special"), [])
            self.assertEqual(self.ids(spec, "-f", "/dev/stdin", "--no-special"), [])

    def test_control_tokens_in_text_count_only_when_asked(self):
        text = "<|user|>x"
        self.assertNotIn(2, self.ids(TINY, "-p", text))
        self.assertIn(2, self.ids(TINY, "-p", text, "--parse-special"))

    def test_standard_input_and_files_are_read_to_the_byte(self):
        for data in (b"line\n", b"line", b"\n", b"\r\n\t ", b"two\nlines\n\n", "caf\u00e9".encode(), b"a\0b"):
            with tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                from_file = self.ids(TINY, "-f", file.name)
            self.assertEqual(self.ids(TINY, "-f", "-", stdin=data), from_file)
            self.assertEqual(self.ids(TINY, "-f", "/dev/stdin", stdin=data), from_file)
            back = self.json_of(frontier("detokenize", TINY, "--json", *from_file[1:]))
            self.assertEqual(back["text"].encode(), data)

    def test_a_newline_at_the_end_is_a_token_of_its_own(self):
        self.assertNotEqual(self.ids(TINY, "-f", "-", stdin=b"line\n"), self.ids(TINY, "-f", "-", stdin=b"line"))

    def test_pieces_make_up_the_text(self):
        document = self.json_of(frontier("tokenize", TINY, "--json", "--no-special", "-p", "Once upon a time"))
        self.assertEqual(len(document["pieces"]), len(document["ids"]))
        self.assertEqual("".join(document["pieces"]), "Once upon a time")

    def test_round_trip_of_random_text(self):
        rng = random.Random(20)
        alphabet = "ab zE1\n\t.,'\u00e9\u4e2d\U0001f600\u0301"
        for spec in (TINY, FOLDER, STORIES):
            text = "".join(rng.choice(alphabet) for _ in range(400))
            ids = self.ids(spec, "-f", "-", "--no-special", stdin=text.encode())
            back = self.json_of(frontier("detokenize", spec, "--json", *ids))["text"]
            # SentencePiece puts a space before the text, which decoding takes away again.
            self.assertEqual(back, text)

    def test_no_ids_is_the_empty_text(self):
        self.assertEqual(self.json_of(frontier("detokenize", TINY, "--json"))["text"], "")

    def test_ids_outside_the_vocabulary(self):
        self.assert_error(frontier("detokenize", TINY, "4096"), BAD_INPUT, "4096")
        self.assertNotEqual(frontier("detokenize", TINY, "--", "-1").status, OK)

    def test_people_see_ids_too(self):
        outcome = frontier("tokenize", TINY, "--no-special", "-p", "Once")
        self.assertEqual(outcome.status, OK, outcome)
        for token in self.ids(TINY, "--no-special", "-p", "Once"):
            self.assertIn(str(token), outcome.out)

    def test_text_without_end_is_refused(self):
        self.assert_error(frontier("tokenize", TINY, "-f", "/dev/zero"), BAD_INPUT, "/dev/zero", "at most", "more")
        with tempfile.NamedTemporaryFile() as file:
            file.truncate((1 << 30) + 1)
            self.assert_error(frontier("tokenize", TINY, "-f", file.name), BAD_INPUT, file.name, "1073741825")
            self.assert_error(frontier("eval", "perplexity", TINY, "--text", file.name), BAD_INPUT, "1073741825")

    def test_large_text_is_read_to_the_byte(self):
        text = b"\n" * 4_300_000  # beyond the 4 MiB from which on the reader takes another path
        ids = self.ids(STORIES, "--no-special", stdin=text)
        self.assertEqual((len(ids), set(ids[1:])), (len(text) + 1, {13}))  # a space goes before the text

    def test_a_missing_text_file_is_named(self):
        self.assert_error(frontier("tokenize", TINY, "-f", "no-such.txt"), BAD_INPUT, "no-such.txt")


if __name__ == "__main__":
    unittest.main()
