# For developers; ./run and ./test need no make.
.PHONY: build test bench bench-all bench-native soak format tidy

build:
	@scripts/setup.sh build
	@test -f build/release/build.ninja || cmake --preset release
	@ninja -C build/release

test:
	@./test

# The claims about speed, each as a ratio to llama.cpp measured in the same run (needs Node 20 and the npm registry): one
# sequence of Q4_0 and Q8_0, several sequences and the cold start of Q4_0. BENCH_FLAGS: see bench/compare.py --help.
bench:
	@bench/compare_llama_cpp.sh $(BENCH_FLAGS)

# Two more types, busy neighbours, two engines at once, too many threads.
bench-all:
	@bench/compare_llama_cpp.sh --rows all --models $(foreach type,Q4_0 Q8_0 Q4_K_M BF16,tinyllama-1.1b:$(type)) \
	    $(BENCH_FLAGS)

# Beside binaries of your own: make bench-native BENCH_FLAGS='--llama-bench PATH --name NAME'
bench-native: build
	@bench/compare.py $(BENCH_FLAGS)

# Hours, not minutes: every test under both sanitizers, the long versions of the tests, ten minutes a fuzzer.
soak:
	@./test --soak

format:
	@tools/format.sh

tidy:
	@scripts/setup.sh build test dev
	@tools/tidy.sh
