// Clocks carried by flags in memory: a release stores what its warp knows, an acquire of the same word takes
// it.
#pragma once

#include <unordered_map>

#include "machine/state.h"
#include "parser/decode.h"

namespace emu {

class SyncWords {
  public:
    void release(Warp& warp, uint64_t address) { emu::release(warp, clocks_[address]); }
    void acquire(Warp& warp, uint64_t address) {
        if (auto it = clocks_.find(address); it != clocks_.end()) emu::acquire(warp, it->second);
    }

  private:
    std::unordered_map<uint64_t, Clock> clocks_;
};

SyncWords& sync_words(Cluster& cluster);
void decode_st_async(Decoder& d);  // async/bulk.cc
void decode_red_async(Decoder& d);

}  // namespace emu
