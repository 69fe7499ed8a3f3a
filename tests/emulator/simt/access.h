// From an address operand to checked host bytes.
#pragma once

#include "machine/state.h"
#include "parser/decode.h"

namespace emu {

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam };
enum class Use : uint8_t { kRead, kWrite, kAtomic, kNone };  // kNone: no shadow bookkeeping

// Bounds, alignment and shadow checks of one lane's access; the returned bytes are valid for `bytes`.
uint8_t* access(Exec& x, int lane, Space space, uint64_t address, uint32_t bytes, Use use);

// Shared memory at a cluster-wide shared address, bounds-checked.
struct SharedPlace {
    Cta* cta;
    uint32_t offset;
    uint8_t* bytes() const { return cta->smem.data() + offset; }
};
SharedPlace locate_shared(Exec& x, uint32_t address, uint32_t bytes, const char* what);

// The shared address in a slot of state space .shared or generic.
uint32_t to_shared_address(uint64_t address);

// Shadow bookkeeping for an access to a CTA's shared memory.
void shadow_shared(Exec& x, const SharedPlace& place, uint32_t bytes, Use use, const Accessor& who);

inline uint64_t address_of(Exec& x, const Operand& operand, int lane) {
    return x.slot(operand.slot)[lane] + static_cast<uint64_t>(operand.offset);
}

Space take_space(Decoder& d);  // .global .shared{::cta,::cluster} .local .param, else generic

}  // namespace emu
