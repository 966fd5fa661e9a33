"""--pack-cache: the second start maps what the first packed, and nothing that happens to the file changes a result."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BAD_INPUT, BINARY, OK, USAGE, Expect, frontier, model  # noqa: E402

SAME = ("text", "token_ids", "logits_hash")


class PackCache(Expect, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.model = os.path.join(self.folder, "model.gguf")
        shutil.copy(model("tale-1m-f16.gguf"), self.model)
        os.chmod(self.model, 0o644)
        self.cache = os.path.join(self.folder, "cache", "frontier", "packed")
        self.env = {"XDG_CACHE_HOME": os.path.join(self.folder, "cache")}

    def run_model(self, *flags, spec=None, env=None, prefix=()):
        return frontier("run", spec or self.model, "-p", "Once upon a time", "-n", "8", "--temperature", "0", "--json",
                        *flags, env={**self.env, **(env or {})}, prefix=prefix)

    def start(self, outcome, *flags, warning=None, **options):
        """Runs with the cache; it must say `outcome`, compute the same as without, and warn only as expected."""
        done = self.run_model("--pack-cache", *flags, **options)
        self.assertEqual(done.status, OK, done)
        row = json.loads(done.out)
        self.assertEqual(row["pack_cache"], outcome, done)
        if warning is None:
            self.assertEqual(done.err, "", done)
        else:
            self.assertEqual(done.err.count("\n"), 1, done)
            self.assertIn(warning, done.err)
        plain = self.json_of(self.run_model(*flags, **options))
        self.assertEqual(plain["pack_cache"], "off")
        self.assertEqual({key: row[key] for key in SAME}, {key: plain[key] for key in SAME})
        self.assertEqual(row["memory"]["weight_bytes"], plain["memory"]["weight_bytes"])
        self.assertLessEqual(row["memory"]["peak_memory_bytes"], row["memory"]["memory_limit_bytes"])
        return row

    def files(self):
        return [os.path.join(self.cache, name) for name in sorted(os.listdir(self.cache))]

    def test_the_second_start_uses_what_the_first_packed(self):
        self.start("written")
        self.assertEqual(len(self.files()), 1)
        self.assertEqual(stat.S_IMODE(os.stat(self.files()[0]).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.cache).st_mode), 0o700)
        self.start("used")
        self.start("used", "--threads", "1")
        self.start("used", "--isa", "scalar", "--dtype", "f32")  # one layout for every instruction set
        self.start("written", "--dtype", "bf16")  # other panels, a file of their own
        self.start("used", "--dtype", "bf16")
        self.assertEqual(len(self.files()), 2)
        self.start("used")

    def test_off_by_default_and_by_environment(self):
        self.json_of(self.run_model())
        self.assertFalse(os.path.exists(self.cache))
        row = self.json_of(self.run_model(env={"FRONTIER_PACK_CACHE": "1"}))
        self.assertEqual(row["pack_cache"], "written")
        row = self.json_of(self.run_model(env={"FRONTIER_PACK_CACHE": "0"}))
        self.assertEqual(row["pack_cache"], "off")
        self.assert_error(self.run_model(env={"FRONTIER_PACK_CACHE_GB": "many"}), USAGE, "many")

    def test_hugging_face_folders(self):
        folder = os.path.join(self.folder, "hf")
        shutil.copytree(model("tale-1m"), folder)
        self.start("written", spec=folder)
        self.start("used", spec=folder)
        self.start("used", spec=folder + "/")
        os.utime(os.path.join(folder, "model.safetensors"), ns=(1, 1))
        self.start("written", spec=folder, warning="another state")

    def test_nothing_to_keep(self):
        self.assertEqual(self.json_of(self.run_model("--pack-cache", "--no-repack"))["pack_cache"], "off")
        row = self.json_of(self.run_model("--pack-cache", spec="synthetic:qwen2.5-0.5b:Q4_0"))
        self.assertEqual(row["pack_cache"], "off")

    def test_damage_is_found_and_mended(self):
        self.start("written")
        path = self.files()[0]
        with open(path, "rb") as file:
            whole = file.read()
        flipped = bytearray(whole)
        flipped[len(whole) // 3] ^= 1
        trailer = bytearray(whole)
        trailer[-1] ^= 1
        for damaged in (flipped, trailer, whole[:-1], whole[:len(whole) // 2], b"", b"frontier" * 1000):
            with open(path, "wb") as file:
                file.write(damaged)
            self.start("written", warning=path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), whole)
            self.start("used")

    def test_a_changed_model_is_packed_anew(self):
        self.start("written")
        os.utime(self.model, ns=(1, 1))
        self.start("written", warning="another state")
        self.start("used")
        # A weight changes in place, and the times of the file are put back.
        before = os.stat(self.model)
        first = self.run_model("--pack-cache")
        with open(self.model, "r+b") as file:
            file.seek(-4096, os.SEEK_END)
            block = file.read(4096)
            file.seek(-4096, os.SEEK_END)
            file.write(bytes(byte ^ 0x80 if i % 2 else byte for i, byte in enumerate(block)))  # signs of f16 weights
        os.utime(self.model, ns=(before.st_atime_ns, before.st_mtime_ns))
        row = self.start("written", warning="another state")
        self.assertNotEqual(row["logits_hash"], json.loads(first.out)["logits_hash"])

    def test_where_it_cannot_be_kept_the_run_goes_on(self):
        self.start("unavailable", "--pack-cache-gb", "0", warning="limit of the cache")
        limited = self.run_model("--pack-cache", prefix=("prlimit", "--fsize=100000"))
        self.assertEqual((limited.status, json.loads(limited.out)["pack_cache"]), (OK, "unavailable"), limited)
        self.assertIn("not kept", limited.err)
        self.assertEqual(self.files(), [])
        os.chmod(self.cache, 0o777)
        self.start("unavailable", warning="only this user")
        os.rmdir(self.cache)
        self.start("unavailable", warning="not kept", env={"XDG_CACHE_HOME": "/proc/nowhere"})

    def test_two_processes_at_once(self):
        command = [BINARY, "run", self.model, "-p", "a", "-n", "2", "--json", "--pack-cache"]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env={**os.environ, **self.env}) for _ in range(4)]
        for process in processes:
            out, err = process.communicate(timeout=120)
            self.assertEqual((process.returncode, err), (OK, b""))
            self.assertIn(json.loads(out)["pack_cache"], ("written", "used"))
        self.start("used")
        self.assertEqual(len(self.files()), 1)

    def test_a_cut_while_it_is_mapped_ends_in_an_error(self):
        self.start("written")
        # The model is loaded before the prompt is read from standard input.
        with subprocess.Popen([BINARY, "run", self.model, "-n", "8", "--log-level", "info", "--pack-cache"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, **self.env}) as process:
            self.assertIn(b"packed weights mapped", process.stderr.readline())
            os.truncate(self.files()[0], 0)
            _, err = process.communicate(b"Once", timeout=120)
        self.assertEqual(process.returncode, BAD_INPUT, err)
        self.assertIn(os.path.basename(self.files()[0]).encode(), err)
        self.assertIn(b"cut short", err)


if __name__ == "__main__":
    unittest.main()
