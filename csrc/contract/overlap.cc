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

}  // namespace deep_gemm::contract
