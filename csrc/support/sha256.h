// SHA-256 (FIPS 180-4), dependency-free. For naming and verifying cache entries, not for secrets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace deep_gemm {

inline constexpr std::size_t kSha256Bytes = 32;

class Sha256 {
  public:
    // Appends raw bytes.
    void update(std::string_view bytes);
    // Appends a length (8 bytes, little endian) and the bytes: sequences of fields never collide by
    // concatenation.
    void update_field(std::string_view bytes);
    // The digest of everything appended. Call once.
    std::string finish();  // kSha256Bytes raw bytes

  private:
    void compress(const unsigned char* block);

    std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> block_{};
    uint64_t total_bytes_ = 0;
};

std::string sha256(std::string_view bytes);  // raw bytes
std::string to_hex(std::string_view bytes);  // lower case

}  // namespace deep_gemm
