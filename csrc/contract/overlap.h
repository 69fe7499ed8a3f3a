// Whether two strided blocks of memory share a byte.
#pragma once

#include <cstdint>

#include "support/tensor_view.h"

namespace deep_gemm::contract {

// `count` rows of `width` bytes, `pitch` bytes apart (pitch >= 0).
struct RowBlock {
    uint64_t begin;
    int64_t count, width, pitch;
};

// The bytes of a rank-2 tensor; rows run along the smaller stride. Where that stride is not 1, the gaps
// within a row count as part of it.
RowBlock row_block(const TensorView& t);

// Exact, column slices of one buffer included; no loop where the pitches agree.
bool overlap(const RowBlock& x, const RowBlock& y);

// Tensors of one to three dimensions; those of three matrix by matrix, where their outlines meet at all.
bool overlap(const TensorView& x, const TensorView& y);

}  // namespace deep_gemm::contract
