# For developers; ./run and ./test need no make.
.PHONY: build test bench soak format tidy

build:
	@scripts/setup.sh build
	@test -f build/release/build.ninja || cmake --preset release
	@ninja -C build/release

test:
	@./test

# The claims about speed, each as a ratio to a peer measured in the same run (needs Node 20 and the npm registry).
bench:
	@bench/compare_llama_cpp.sh

# Hours, not minutes: every test under both sanitizers, the long versions of the tests, ten minutes a fuzzer.
soak:
	@./test --soak

format:
	@tools/format.sh

tidy:
	@scripts/setup.sh build test dev
	@tools/tidy.sh
