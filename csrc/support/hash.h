// Hashes of a few integers, for tables in memory.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace deep_gemm {

constexpr uint64_t mix_hash(std::initializer_list<uint64_t> words) {
    uint64_t hash = 0;
    for (const uint64_t word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15 ^ hash >> 29;
    return hash ^ hash >> 32;
}

}  // namespace deep_gemm
