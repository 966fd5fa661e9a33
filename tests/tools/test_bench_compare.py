"""bench/compare.py: what engines print is understood, the statistics and the table are right, failures leave a reason."""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
sys.path.insert(0, BENCH)
import compare  # noqa: E402
import engines  # noqa: E402
import table  # noqa: E402

BATCHED_TABLE = """main: n_kv_max = 2048

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|    32 |     32 |    4 |    256 |    0.001 |  6932.41 |    0.001 |  3868.47 |    0.002 |  5484.46 |
|    32 |     32 |   16 |   1024 |    3.137 |    10.20 |    0.578 |    27.70 |    3.715 |    12.92 |
"""

# Stands for every engine: its first argument decides. Speeds come from SPEED; FAIL_FROM fails from that call on; each
# call is written to CALLS.
FAKE_ENGINE = """#!{python}
import json, os, sys
name, folder = os.path.basename(sys.argv[0]), os.path.dirname(os.path.abspath(sys.argv[0]))
arguments = sys.argv[1:]
with open(os.path.join(folder, "calls"), "a+") as calls:
    calls.write(name + " " + " ".join(arguments) + "\\n")
    calls.seek(0)
    count = sum(line.startswith(name + " ") for line in calls)
def value(flag): return arguments[arguments.index(flag) + 1]
if name == "broken":
    sys.exit("first line\\nerror: unknown | type\\nlast line")
if name == "late" and count > 2:
    os.kill(os.getpid(), 9)
if name in ("bench", "late"):
    print("a word before")
    print(json.dumps([dict(build_commit="abc", n_prompt=p, n_gen=n, samples_ts=[1, s, 1000]) for p, n, s in
                      ((int(value("-p")), 0, 50), (0, int(value("-n")), 10))], indent=2))
elif arguments[:2] == ["bench", "roofline"]:
    print(json.dumps(dict(machine="fake", threads=2, read_gb_per_s=20.0 + count, avx2_int8_tops=0.4, bandwidth=[])))
elif arguments[:2] == ["bench", "engine"]:
    if "unreadable" in arguments[2]: sys.exit("error: unreadable")
    if value("--repeat") != "1":  # the one that others run beside
        import time; time.sleep(60)
    threads = int(value("--threads"))
    for batch in map(int, value("--batch").split(",")):
        for test, speed in (("prefill", 100), ("decode", 20)):
            if value("--prompt-tokens" if test == "prefill" else "--gen-tokens") == "0": continue
            print(json.dumps(dict(test=test, batch=batch, tokens_per_s=speed * threads, isa="avx2", compute_type="int8",
                                  gflops=200.0, gb_per_s=11.0 if test == "decode" else None, version="0")))
elif arguments[0] == "synth":
    open(arguments[2], "w").close()
else:
    print("token")
"""


def sample(value):
    return {"value": value}


class Parsing(unittest.TestCase):
    def test_frontier(self):
        row = {"test": "decode", "batch": 4, "tokens_per_s": 3.5, "gflops": 1.0}
        self.assertEqual(engines.parse_frontier("noise\n" + json.dumps(row) + "\n"), {("decode", 4): row})

    def test_npm_takes_the_median(self):
        line = {"version": "v1", "threads": 2, "sequences": 16, "prefill_tokens_per_s": [1, 9, 3],
                "decode_tokens_per_s": [4]}
        rates = engines.parse_npm(json.dumps(line))
        self.assertEqual({key: rate["tokens_per_s"] for key, rate in rates.items()},
                         {("prefill", 16): 3, ("decode", 16): 4})
        self.assertEqual(list(engines.parse_npm(json.dumps({**line, "prefill_tokens_per_s": None}))), [("decode", 16)])

    def test_llama_bench(self):
        rows = [{"n_prompt": 512, "n_gen": 0, "samples_ts": [1.0, 2.0, 9.0], "build_commit": "c"},
                {"n_prompt": 0, "n_gen": 64, "samples_ts": [7.0], "build_commit": "c"}]
        rates = engines.parse_llama_bench("ggml: a line\n" + json.dumps(rows, indent=2))
        self.assertEqual(rates, {("prefill", 1): {"tokens_per_s": 2.0, "version": "c"},
                                 ("decode", 1): {"tokens_per_s": 7.0, "version": "c"}})

    def test_batched_bench(self):
        rates = engines.Native.parse(BATCHED_TABLE)
        self.assertEqual(rates["decode", 4]["tokens_per_s"], 3868.47)
        self.assertEqual(rates["prefill", 16]["tokens_per_s"], 10.20)
        self.assertEqual(len(rates), 4)

    def test_reason_is_one_line_about_the_error(self):
        self.assertEqual(engines.reason_of("a\nError: no such type\n    at line 3\nNode v20\n", 1),
                         "exit 1: Error: no such type")
        self.assertEqual(engines.reason_of("a\nb\n", -11), "signal 11: b")
        self.assertEqual(engines.reason_of("", 2), "exit 2")


class Statistics(unittest.TestCase):
    def test_share_is_of_the_limit_that_binds(self):
        limits = {"read_gb_per_s": 40.0, "avx2_int8_tops": 0.5, "avx2_f32_tflops": 0.2}
        row = {"isa": "avx2", "compute_type": "int8", "gflops": 100.0, "gb_per_s": 10.0, "test": "decode", "batch": 1}
        self.assertAlmostEqual(table.share_of_limit(row, limits), 0.25)
        self.assertAlmostEqual(table.share_of_limit({**row, "gflops": 400.0}, limits), 0.25)
        self.assertAlmostEqual(table.share_of_limit({**row, "gflops": 400.0, "batch": 4}, limits), 0.8)
        self.assertAlmostEqual(table.share_of_limit({**row, "batch": 4}, limits), 0.25)
        self.assertAlmostEqual(table.share_of_limit({**row, "test": "prefill", "gb_per_s": None}, limits), 0.2)
        # Without a measured bf16 peak the products are those of f32.
        bf16 = {**row, "test": "prefill", "compute_type": "bf16"}
        self.assertAlmostEqual(table.share_of_limit(bf16, limits), 0.5)
        self.assertAlmostEqual(table.share_of_limit(bf16, {**limits, "avx2_bf16_tflops": 0.4}), 0.25)
        self.assertIsNone(table.share_of_limit(bf16, {"read_gb_per_s": 40.0}))

    def test_limits_are_the_larger_of_both_measurements(self):
        self.assertEqual(table.largest_limits([{"a": 1.0, "b": 5.0, "machine": "x"}, {"a": 2.0, "b": 4.0}]),
                         {"a": 2.0, "b": 5.0})

    def test_ratios_are_taken_within_pairs(self):
        pairs = [{"us": {"x, tokens/s": sample(10)}, "p": {"x, tokens/s": sample(5)}},
                 {"us": {"x, tokens/s": sample(30)}, "p": {"x, tokens/s": sample(10)}},
                 {"us": {"x, tokens/s": sample(50)}, "p": {}}]
        self.assertEqual(table.ratios_to(pairs, "us", "p", "x, tokens/s"), [2, 3])
        times = [{"us": {"start, s": sample(0.5)}, "p": {"start, s": sample(2.0)}}]
        self.assertEqual(table.ratios_to(times, "us", "p", "start, s"), [4])

    def test_better_peer(self):
        def pairs(metric, *values):
            return [{"p": {metric: sample(a)}, "q": {metric: sample(b)}} for a, b in values]
        rates = pairs("x, tokens/s", (1, 2), (9, 3), (1, 2))
        self.assertEqual(table.better_peer(rates, ["p", "q"], "x, tokens/s"), "q")
        self.assertEqual(table.better_peer(pairs("x, s", (1, 2)), ["p", "q"], "x, s"), "p")
        self.assertIsNone(table.better_peer(rates, ["r"], "x, tokens/s"))

    def test_spread(self):
        self.assertEqual(table.spread([12.34]), "12.3")
        self.assertEqual(table.spread([0.5, 2000.0, 12.34]), "12.3 (0.50 to 2000)")


class Order(unittest.TestCase):
    def test_every_other_turn_is_swapped_and_the_results_are_not(self):
        for turn, order in ((0, ["a", "b"]), (1, ["b", "a"])):
            calls = []

            def call(name, log=calls):
                log.append(name)
                return name
            self.assertEqual(compare.in_turn(turn, lambda: call("a"), lambda: call("b")), ("a", "b"))
            self.assertEqual(calls, order)

    def test_flags_of_several_native_peers(self):
        options = compare.parse_options(["--llama-bench", "x/bench -rtr 1", "--name", "ik", "--llama-bench", "y",
                                         "--llama-cli", "z -no-cnv"])
        self.assertEqual(options.natives, [{"llama_bench": ["x/bench", "-rtr", "1"], "name": "ik"},
                                           {"llama_bench": ["y"], "llama_cli": ["z", "-no-cnv"], "name": "native 2"}])

    def test_usage_errors(self):
        for arguments in (["--rows", "single,nothing"], ["--pairs", "0"], ["--batches", "4,x"], ["--batches", "0"],
                          ["--name", "Frontier"]):
            with self.subTest(arguments=arguments), contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertRaises(SystemExit, compare.parse_options, arguments)
                self.assertIn(arguments[0], said.getvalue())


class Whole(unittest.TestCase):
    """The whole program with engines that print fixed figures."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("frontier", "bench", "broken", "late"):
            path = self.path(name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(FAKE_ENGINE.replace("{python}", sys.executable))
            os.chmod(path, 0o755)

    def path(self, name):
        return os.path.join(self.folder, name)

    def compare(self, *arguments):
        return subprocess.run([sys.executable, os.path.join(BENCH, "compare.py"), "--frontier", self.path("frontier"),
                               "--work", self.path("work"), "--pairs", "2", *arguments], capture_output=True, text=True,
                              check=False, timeout=120)

    def samples(self):
        with open(self.path("work/samples.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_table_of_two_peers_one_of_which_fails(self):
        done = self.compare("--models", "shape:T", "--rows", "single,cold", "--llama-bench", self.path("bench"),
                            "--name", "A", "--llama-bench", self.path("broken"), "--name", "B")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("read_gb_per_s 21 and ", done.stdout)
        rows = {line.split(" | ")[1]: line.strip("| ").split(" | ") for line in done.stdout.splitlines()
                if line.startswith("| shape-T")}
        # The fake is called for limits first, so the last measurement is larger than 21 GB/s; prefill's limit is fixed.
        self.assertEqual(rows["prefill 512, tokens/s"][2:5], ["200.0 (200.0 to 200.0)", "50%", "50.0 (50.0 to 50.0)"])
        self.assertEqual(rows["prefill 512, tokens/s"][5], "failed: exit 1: error: unknown / type")
        self.assertEqual(rows["decode 64, tokens/s"][6], "4.00 (4.00 to 4.00), A")
        self.assertIn("failed: no --llama-cli given", rows["whole process to its first token, s"])
        with open(self.path("calls"), encoding="utf-8") as calls:
            order = [line.split()[0] for line in calls if " -p 512" in line or "--prompt-tokens 512" in line]
        self.assertEqual(order, ["frontier", "bench", "broken", "bench", "frontier"])
        logged = self.samples()
        self.assertEqual([one.get("failed") is not None for one in logged if one["row"] == "single"],
                         [False, False, True, False, False])
        self.assertEqual(logged[0]["limits"]["machine"], "fake")
        self.assertIn("--prompt-tokens 512", logged[0]["commands"][0])

    def test_shares_of_the_undisturbed_rate(self):
        done = self.compare("--models", self.path("m.gguf"), "--rows", "neighbour,pair,oversubscribed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| m | decode beside a busy process per core, % of undisturbed | 100.0 (100.0 to 100.0) |",
                      done.stdout)
        for test in ("prefill", "decode"):
            self.assertIn(f"| m | {test} beside a second engine, % of alone | 100.0 (100.0 to 100.0) |", done.stdout)
        cpus = len(engines.CPUS)  # the fake's rate is proportional to its threads
        expected = 100 * 2 * cpus / max(cpus, 2)
        self.assertIn(f"| m | decode with {2 * cpus} threads, % of the best | {table.number(expected)} (", done.stdout)

    def test_a_peer_that_fails_late_keeps_its_figures_and_says_so(self):
        done = self.compare("--models", self.path("m.gguf"), "--rows", "single", "--llama-bench", self.path("late"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| 50.0; failed: signal 9 |", done.stdout)

    def test_our_own_failure_fails_the_run(self):
        done = self.compare("--models", self.path("unreadable.gguf"), self.path("m.gguf"), "--rows", "single")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| unreadable | single | failed: exit 1: error: unreadable |", done.stdout)
        self.assertIn("| m | decode 64, tokens/s | 40.0 (40.0 to 40.0) |", done.stdout)
        os.remove(self.path("frontier"))
        done = self.compare("--models", self.path("m.gguf"), "--rows", "single")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("compare: ", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


class Processes(unittest.TestCase):
    def test_busy_processes_end_with_an_error(self):
        children = []
        real = engines.subprocess.Popen

        def remember(*arguments, **keywords):
            children.append(real(*arguments, **keywords))
            return children[-1]
        engines.subprocess.Popen = remember
        try:
            with self.assertRaises(KeyboardInterrupt), engines.busy_cpus():
                self.assertEqual([child.poll() for child in children], [None] * len(engines.CPUS))
                raise KeyboardInterrupt
        finally:
            engines.subprocess.Popen = real
        self.assertNotIn(None, [child.poll() for child in children])

    def test_busy_processes_end_with_a_killed_parent(self):
        parent = subprocess.Popen([sys.executable, "-c", "import engines, time\nwith engines.busy_cpus():\n"
                                   "    print('busy', flush=True)\n    time.sleep(60)"], cwd=BENCH,
                                  stdout=subprocess.PIPE)
        self.assertEqual(parent.stdout.readline(), b"busy\n")
        parent.kill()
        # The spinning children hold the other end of the pipe: it closes when the last of them is gone.
        self.assertEqual(parent.stdout.read(), b"")
        parent.stdout.close()
        parent.wait()

    def test_what_runs_beside_ends_with_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            beside = ["sh", "-c", f"echo $$ >{folder}/pid; exec sleep 600"]
            wait = ["sh", "-c", f"until test -s {folder}/pid; do sleep 0.01; done; cat {folder}/pid"]
            pid = int(engines.run(wait, beside=beside))
            self.assertRaises(ProcessLookupError, os.kill, pid, 0)
            with self.assertRaisesRegex(engines.Failed, "nosuchprogram"):
                engines.run(["./nosuchprogram"], beside=beside)
            with self.assertRaisesRegex(engines.Failed, "ended first, exit 3: no memory"):
                engines.run(["sh", "-c", f"until test -e {folder}/end; do sleep 0.01; done; sleep 0.5"],
                            beside=["sh", "-c", f"echo no memory >&2; touch {folder}/end; exit 3"])


if __name__ == "__main__":
    unittest.main()
