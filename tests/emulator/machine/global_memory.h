// Device memory is host memory. Known buffers are checked; those allocated here carry a red zone behind them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace emu {

class GlobalMemory {
  public:
    enum class Tail : uint8_t { kUnknown, kRedZone };
    void add(uint64_t address, uint64_t bytes, std::string name, Tail tail);
    void remove(uint64_t address);
    // Faults when the access leaves the buffer it starts in or falls into a red zone; in strict mode also
    // when it starts in no known buffer, otherwise when the page is not mapped.
    void check(uint64_t address, uint64_t bytes, const char* what) const;
    // Extent of the buffer that holds the address: bytes from the address to its end, 0 when unknown.
    uint64_t bytes_from(uint64_t address) const;
    bool is_strict = false;
    static constexpr uint64_t kRedZone = 4096;

  private:
    struct Buffer {
        uint64_t bytes;
        std::string name;
        Tail tail;
    };
    const std::pair<const uint64_t, Buffer>* find_at_or_below(uint64_t address) const;
    std::map<uint64_t, Buffer> buffers_;
    mutable uint64_t good_start_ = 0, good_end_ = 0;  // last buffer that passed
    mutable std::map<uint64_t, bool> mapped_pages_;
};

}  // namespace emu
