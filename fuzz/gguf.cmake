frontier_fuzzer(gguf DEPENDS frontier_formats)
