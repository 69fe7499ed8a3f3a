// Tensor memory of one CTA: 128 lanes x 512 columns of 32 bits, with its allocation map and shadow cells.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "machine/shadow.h"

namespace emu {

struct Tmem {
    static constexpr uint32_t kLanes = 128;
    static constexpr uint32_t kColumns = 512;
    static constexpr uint32_t kPartLanes = 32;        // a warp reaches one part of 32 lanes
    static constexpr uint32_t kPoison = 0x7FFFDEADu;  // a NaN that says where it came from

    std::vector<uint32_t> words;    // [column][lane]; empty until the first alloc
    std::vector<Cell> cells;        // [part][column]
    std::vector<uint16_t> owner;    // per column: serial of the allocation, 0 when free
    std::vector<uint32_t> base_of;  // per allocation serial: first column
    std::deque<uint32_t> promised;  // bases that the peer CTA's cta_group::2 alloc has reserved here
    bool has_relinquished = false;

    void create() {
        if (!words.empty()) return;
        words.assign(kLanes * kColumns, kPoison);
        cells.assign(kLanes / kPartLanes * kColumns, Cell{});
        owner.assign(kColumns, 0);
        base_of.assign(1, 0);
    }
    uint32_t& word(uint32_t lane, uint32_t column) { return words[column * kLanes + lane]; }
};

}  // namespace emu
