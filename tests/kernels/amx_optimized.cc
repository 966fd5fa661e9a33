// The AMX kernels once more, at an optimisation level that the build states (see CMakeLists.txt) whatever the build
// type: instructions that the compiler did not know to touch memory went wrong at some levels and not at others.
#include "kernels/amx/matmul_tiles.cc"
