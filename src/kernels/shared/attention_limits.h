// What every attention kernel relies on; the backend refuses models beyond it.
#pragma once

namespace frontier {

// Bounds the stack of the scalar kernel (4 KB of doubles). Known decoders use 64 to 256.
inline constexpr int kMaxAttentionHeadDim = 512;

}  // namespace frontier
