// Tensor memory of one CTA: 128 lanes x 512 columns of 32 bits, with its allocation map.
#pragma once

#include <cstdint>
#include <vector>

namespace emu {

struct Tmem {
    static constexpr uint32_t kLanes = 128;
    static constexpr uint32_t kColumns = 512;
    static constexpr uint32_t kPoison = 0x7FFFDEADu;  // a NaN that says where it came from

    std::vector<uint32_t> words;            // [column][lane]; empty until the first alloc
    std::vector<uint8_t> written;           // same shape
    std::vector<uint16_t> owner;            // per column: serial of the allocation, 0 when free
    uint16_t allocations = 0;
    bool has_relinquished = false;

    void create() {
        if (!words.empty()) return;
        words.assign(kLanes * kColumns, kPoison);
        written.assign(kLanes * kColumns, 0);
        owner.assign(kColumns, 0);
    }
    static uint32_t index(uint32_t lane, uint32_t column) { return column * kLanes + lane; }
};

}  // namespace emu
