// What 1-D bulk copies and TMA tensor copies share: groups, destinations, shadow bookkeeping.
#pragma once

#include "async/engine.h"
#include "parser/decode.h"
#include "simt/access.h"

namespace emu {

// Runs f(lane) for the lanes of the mask. Bulk instructions are per thread; usually one lane is active.
// A store or reduction reads shared memory until its group has been waited for.
void submit_store(Exec& x, std::function<void()> operation);

// The barrier that a load signals, in the window of `cta` at the offset of the operand.
struct Signal {
    uint32_t offset;   // of the mbarrier in the CTA's window
    uint32_t address;  // as given
};
Signal load_signal(Exec& x, const Operand& operand, int lane);

// Writes bulk data to shared memory on behalf of the barrier at `signal_offset` of `signal_cta`.
struct BulkWriter {
    Exec x;
    Clock knowledge;  // of the issuer at issue
    Cta* signal_cta;
    uint32_t signal_offset;
    void write(const SharedPlace& place, const void* data, uint32_t bytes);
    void complete(int64_t bytes);
};

// Element-wise reduction of global memory: memory = memory op value.
enum class Reduction : uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };
void reduce_bytes(uint8_t* memory, const uint8_t* value, uint32_t bytes, Reduction op, ScalarType type);
Reduction take_reduction(Decoder& d);

// Accessor of a bulk store of this warp: reads of shared memory, writes of global memory.
Accessor store_accessor(Exec& x, const Clock& knowledge);

}  // namespace emu
