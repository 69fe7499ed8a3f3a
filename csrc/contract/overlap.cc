#include "contract/overlap.h"

#include <utility>

#include <deep_gemm/base/math.h>

#include "support/describe.h"

namespace deep_gemm::contract {

namespace {

int64_t span(const RowBlock& x) {
    return (x.count - 1) * x.pitch + x.width;
}

// Whether bytes [begin, begin + width), relative to y's first byte, meet a row of `y`.
bool meets(int64_t begin, int64_t width, const RowBlock& y) {
    if (y.pitch == 0 || y.count == 1) return begin < y.width && begin + width > 0;
    // Rows j with j*pitch < begin + width and j*pitch + y.width > begin.
    const int64_t first = begin < y.width ? 0 : (begin - y.width) / y.pitch + 1;
    const int64_t last = begin + width <= 0 ? -1 : min_of((begin + width - 1) / y.pitch, y.count - 1);
    return first <= last;
}

// Blocks of one pitch: x starts `q` rows and `r` bytes after y.
bool overlap_same_pitch(const RowBlock& x, const RowBlock& y) {
    const int64_t delta = static_cast<int64_t>(x.begin - y.begin);  // >= 0
    const int64_t q = delta / x.pitch, r = delta % x.pitch;
    const bool row_to_row = r < y.width && q < y.count;
    const bool row_to_next = r + x.width > x.pitch && q + 1 < y.count;
    return row_to_row || row_to_next;
}

// The bytes of any rank from first to last.
RowBlock envelope(const TensorView& t) {
    int64_t last = 0;
    for (int i = 0; i < t.rank; ++i) last += (t.shape[i] - 1) * t.stride[i];
    const int64_t bytes = t.numel() == 0 ? 0 : (last + 1) * element_bytes(t.dtype);
    return {reinterpret_cast<uintptr_t>(t.data), bytes == 0 ? 0 : 1, bytes, 0};
}

int64_t num_matrices(const TensorView& t) {
    return t.rank == 3 ? t.shape[0] : 1;
}

// Matrix `i` of three dimensions; fewer are one matrix.
RowBlock matrix_block(const TensorView& t, int64_t i) {
    if (t.rank == 2) return row_block(t);
    TensorView matrix = t;
    matrix.rank = 2;
    if (t.rank == 1) {
        matrix.shape = {1, t.shape[0]};
        matrix.stride = {0, t.stride[0]};
    } else {
        matrix.data = static_cast<char*>(t.data) + i * t.stride[0] * element_bytes(t.dtype);
        matrix.shape = {t.shape[1], t.shape[2]};
        matrix.stride = {t.stride[1], t.stride[2]};
    }
    return row_block(matrix);
}

}  // namespace

RowBlock row_block(const TensorView& t) {
    const int64_t bytes = element_bytes(t.dtype);
    int64_t count = t.shape[0], length = t.shape[1], pitch = t.stride[0], step = t.stride[1];
    if (count > 1 && length > 1 && pitch < step) {
        std::swap(count, length);
        std::swap(pitch, step);
    }
    if (length == 0 || count == 0) return {reinterpret_cast<uintptr_t>(t.data), 0, 0, 0};
    const int64_t width = length > 1 ? ((length - 1) * step + 1) * bytes : bytes;
    return {reinterpret_cast<uintptr_t>(t.data), count, width, count > 1 ? pitch * bytes : 0};
}

bool overlap(const RowBlock& x, const RowBlock& y) {
    if (x.count == 0 || y.count == 0) return false;
    const RowBlock& low = x.begin <= y.begin ? x : y;
    const RowBlock& high = x.begin <= y.begin ? y : x;
    if (low.begin + static_cast<uint64_t>(span(low)) <= high.begin) return false;
    if (x.pitch == y.pitch && x.pitch >= max_of(x.width, y.width)) return overlap_same_pitch(high, low);
    const RowBlock& few = x.count <= y.count ? x : y;
    const RowBlock& many = x.count <= y.count ? y : x;
    for (int64_t i = 0; i < few.count; ++i) {
        const int64_t begin = static_cast<int64_t>(few.begin - many.begin) + i * few.pitch;
        if (meets(begin, few.width, many)) return true;
    }
    return false;
}

bool overlap(const TensorView& x, const TensorView& y) {
    if (x.rank == 2 && y.rank == 2) return overlap(row_block(x), row_block(y));
    if (!overlap(envelope(x), envelope(y))) return false;
    for (int64_t i = 0; i < num_matrices(x); ++i)
        for (int64_t j = 0; j < num_matrices(y); ++j)
            if (overlap(matrix_block(x, i), matrix_block(y, j))) return true;
    return false;
}

}  // namespace deep_gemm::contract
