// Checked access to tensor memory.
#pragma once

#include "simt/access.h"

namespace emu {

struct TmemAddress {
    uint32_t lane, column;
};
// Bits 23..16: lane; 15..0: column. Bits above are ignored (scale-factor ids are passed there by some
// kernels).
inline TmemAddress tmem_address(uint64_t bits) {
    return {uint32_t(bits >> 16) & 0x7F, uint32_t(bits) & 0xFFFF};
}

// Faults unless [column, column + count) is allocated in the CTA.
void check_allocated(Cta& cta, uint32_t column, uint32_t count, const char* what);
// Shadow bookkeeping for columns of the 32-lane parts whose bits are set.
struct TmemRange {
    Cta& cta;
    uint32_t parts, column, count;
};
void shadow_tmem(Exec& x, const TmemRange& range, Use use, const Accessor& who);
// Accessors of tcgen05 operations: ld and st of a warp, and asynchronous mma and cp.
Accessor tmem_accessor(Exec& x, uint32_t time);
Accessor tensor_accessor(Exec& x, uint32_t time, const Clock& view);
// All tcgen05 instructions of a kernel must use one cta_group.
void check_cta_group(Exec& x, int group);
void decode_tmem_load(Decoder& d);
void decode_tmem_store(Decoder& d);
void decode_tmem_copy(Decoder& d);
void decode_tensor_mma(Decoder& d);
int take_cta_group(Decoder& d);

}  // namespace emu
