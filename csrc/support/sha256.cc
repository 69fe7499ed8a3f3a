#include "support/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace deep_gemm {
namespace {

constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

uint32_t load_big_endian(const unsigned char* p) {
    return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

}  // namespace

void Sha256::compress(const unsigned char* block) {
    std::array<uint32_t, 64> w;
    for (int i = 0; i < 16; ++i) w[i] = load_big_endian(block + 4 * i);
    for (int i = 16; i < 64; ++i) {
        const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (int i = 0; i < 64; ++i) {
        const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
        const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<uint32_t, 8> round = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state_[i] += round[i];
}

void Sha256::update(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::size_t used = total_bytes_ % block_.size();
        const std::size_t taken = std::min(bytes.size(), block_.size() - used);
        std::memcpy(block_.data() + used, bytes.data(), taken);
        total_bytes_ += taken;
        bytes.remove_prefix(taken);
        if (used + taken == block_.size()) compress(block_.data());
    }
}

void Sha256::update_field(std::string_view bytes) {
    const uint64_t length = bytes.size();
    char prefix[8];
    for (int i = 0; i < 8; ++i) prefix[i] = static_cast<char>(length >> (8 * i));
    update({prefix, sizeof prefix});
    update(bytes);
}

std::string Sha256::finish() {
    const uint64_t total_bits = total_bytes_ * 8;
    constexpr std::size_t kLengthOffset = 56;
    std::string padding(1, static_cast<char>(0x80));
    const std::size_t used = (total_bytes_ + 1) % block_.size();
    padding.append((kLengthOffset + block_.size() - used) % block_.size(), '\0');
    for (int shift = 56; shift >= 0; shift -= 8) padding += static_cast<char>(total_bits >> shift);
    update(padding);
    std::string digest;
    for (const uint32_t word : state_) {
        for (int shift = 24; shift >= 0; shift -= 8) digest += static_cast<char>(word >> shift);
    }
    return digest;
}

std::string sha256(std::string_view bytes) {
    Sha256 hash;
    hash.update(bytes);
    return hash.finish();
}

std::string to_hex(std::string_view bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        hex += kDigits[byte >> 4];
        hex += kDigits[byte & 15];
    }
    return hex;
}

}  // namespace deep_gemm
