// What a kernel author wants to know about a launch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace emu {

struct Stats {
    uint64_t warp_instructions = 0;
    uint64_t thread_instructions = 0;
    uint64_t mma_instructions = 0;
    uint64_t mma_macs = 0;
    uint64_t bulk_load_bytes = 0;
    uint64_t bulk_store_bytes = 0;
    uint64_t shared_accesses = 0;        // warp-wide loads and stores
    uint64_t shared_bank_conflicts = 0;  // extra wavefronts
    uint64_t uninitialised_reads = 0;    // cells of shared memory
    std::vector<std::string> timeline;   // barrier events, when traced

    std::string to_json() const;
};

}  // namespace emu
