// The race detector and the proxy check. Every 4 bytes of memory carry a cell: who wrote it last and when,
// who has read it since. Two accesses race when neither knows of the other (vector clocks joined at
// barriers). So do those of two lanes of a warp to shared memory, unless all its lanes met between them: at
// __syncwarp, or at a barrier that they wait at together. Of a word's bytes and halves the last write alone
// is known, and no reader that came before a partial one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/clock.h"

namespace emu {

constexpr uint16_t kNoActor = 0xFFFF;
constexpr uint16_t kSeveralThreads = 0xFFFF;
constexpr uint16_t kNoThread = 0xFFFE;  // lanes are not told apart: asynchronous, or not in shared memory

struct Accessor {
    uint16_t actor = kNoActor;
    uint32_t time = 0;
    const Clock* knowledge = nullptr;
    int line = 0;
    bool is_async_proxy = false;
    bool is_atomic = false;
    bool must_be_initialised = false;  // bulk stores: the bytes leave the CTA
    uint16_t thread = 0;               // generic proxy: thread index in its CTA, for the proxy fence check
    uint16_t cta_rank = 0;
    uint32_t fence_count = 0;  // proxy fences this thread has executed
    uint32_t cluster = 0;      // serial number, tells clusters apart on global memory
    uint32_t meetings = 0;     // of all lanes of this thread's warp, so far
};

struct Cell {
    uint32_t write_time = 0;
    uint16_t write_actor = kNoActor;
    uint8_t initialised = 0;  // one bit a byte
    uint8_t write_mask = 0;   // bytes of the last write
    uint16_t writer_thread = 0;
    uint8_t writer_rank = 0;
    bool is_generic = false;  // last write by the generic proxy
    bool is_atomic = false;
    uint32_t writer_fences = 0;
    uint32_t read_set = 0;
    int32_t write_line = 0;
    uint32_t cluster = 0;
    uint32_t writer_meetings = 0;
};

// Sets of (actor, time, line, thread) of the readers since the last write, interned so that a tile shares
// one. Threads of a warp between two meetings are one entry.
class ReadSets {
  public:
    struct Entry {
        uint16_t actor;
        uint32_t time;
        int line;
        uint32_t cluster;
        uint16_t thread;
        uint32_t meetings;
    };
    ReadSets() { clear(); }
    void clear();
    uint32_t add(uint32_t set, const Entry& entry);
    const std::vector<Entry>& entries(uint32_t set) const { return sets_[set]; }

  private:
    struct Step {
        uint32_t from;
        Entry entry;
        uint32_t to;
    };
    std::vector<std::vector<Entry>> sets_;
    std::unordered_map<uint64_t, std::vector<Step>> steps_;
    Step last_{};
};

class Shadow {
  public:
    bool is_enabled = true;
    bool refuses_uninitialised = false;  // any read of it; otherwise only copies to global memory are refused
    uint64_t uninitialised_reads = 0;
    bool forgives_other_clusters = false;  // the kernel synchronises clusters by itself

    // `where` formats the place for a message: "shared memory offset 0x480 of CTA 1".
    struct Place {
        const char* space;
        uint32_t rank;
        uint64_t base;
    };
    void read(Cell* cells, uint64_t offset, uint32_t bytes, const Accessor& who, const Place& place);
    void write(Cell* cells, uint64_t offset, uint32_t bytes, const Accessor& who, const Place& place);
    // Cells of global memory, allocated by page; the range must not cross a page.
    Cell* global_page(uint64_t address);
    void read_global(uint64_t address, uint32_t bytes, const Accessor& who);
    void write_global(uint64_t address, uint32_t bytes, const Accessor& who);
    // A read that is checked against earlier writes but not remembered (TMA loads of whole tensors).
    void observe_global(uint64_t address, uint32_t bytes, const Accessor& who) const;
    // Whether a byte of global memory was written since the shadow was cleared.
    bool was_written(uint64_t address, uint32_t bytes) const;
    void clear_global() {
        pages_.clear();
        last_page_ = nullptr;
        last_key_ = ~uint64_t{0};
    }
    void clear_reads() { reads_.clear(); }
    // Proxy fences executed, by CTA rank and thread. Set by the machine.
    const std::vector<std::vector<uint32_t>>* fence_counts = nullptr;

    static constexpr uint64_t kPageBytes = 4096;

  private:
    bool is_ordered(uint16_t actor, uint32_t time, uint32_t cluster, const Accessor& who) const;
    void check_initialised(uint64_t offset, const Accessor& who, const Place& place);
    void check_proxy(const Cell& cell, uint64_t offset, const Accessor& who, const Place& place) const;
    ReadSets reads_;
    std::unordered_map<uint64_t, std::unique_ptr<Cell[]>> pages_;
    Cell* last_page_ = nullptr;
    uint64_t last_key_ = ~uint64_t{0};
};

}  // namespace emu
