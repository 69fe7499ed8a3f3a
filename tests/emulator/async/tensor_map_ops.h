// Maps in global memory that this grid has published itself.
#pragma once

#include "machine/state.h"
#include "parser/decode.h"

namespace emu {

enum class MapFence : uint8_t { kAcquire, kOther };

// fence.proxy.tensormap::generic: the rest of its qualifiers and operands.
void decode_map_fence(Decoder& d, MapFence kind);

// A thread starts a copy through the map at a global address; `reader` lasts as long as the copy. Faults if
// the grid has written the map and this thread has not acquired it since. Remembers the read: a map rewritten
// before the copy is known to be complete is a race.
void check_map_use(Exec& x, uint64_t address, int lane, const Accessor& reader);

}  // namespace emu
