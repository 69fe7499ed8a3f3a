#include "machine/stats.h"

#include "machine/fault.h"

namespace emu {

std::string Stats::to_json() const {
    auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
    return format(
        "{\"warp_instructions\": %llu, \"thread_instructions\": %llu, \"mma_instructions\": %llu, "
        "\"mma_macs\": %llu, "
        "\"bulk_load_bytes\": %llu, \"bulk_store_bytes\": %llu, \"shared_accesses\": %llu, "
        "\"shared_bank_conflicts\": %llu, \"uninitialised_reads\": %llu}",
        number(warp_instructions), number(thread_instructions), number(mma_instructions), number(mma_macs),
        number(bulk_load_bytes), number(bulk_store_bytes), number(shared_accesses),
        number(shared_bank_conflicts), number(uninitialised_reads));
}

}  // namespace emu
