#include "machine/shadow.h"

#include "machine/fault.h"

namespace emu {
namespace {

// Whether x says what y does.
bool covers(const ReadSets::Entry& x, const ReadSets::Entry& y) {
    return x.actor == y.actor && x.time == y.time && x.cluster == y.cluster && x.meetings == y.meetings &&
           (x.thread == y.thread || x.thread == kSeveralThreads);
}

bool is_shared(const Shadow::Place& place) {
    return place.space[0] == 's';
}

ReadSets::Entry last_write(const Cell& cell, const Shadow::Place& place) {
    const bool tells_lanes = is_shared(place) && cell.is_generic;
    return {cell.write_actor,
            cell.write_time,
            cell.write_line,
            cell.cluster,
            tells_lanes ? cell.writer_thread : kNoThread,
            cell.writer_meetings};
}

ReadSets::Entry read_by(const Accessor& who, const Shadow::Place& place) {
    if (!is_shared(place) || who.is_async_proxy)
        return {who.actor, who.time, who.line, who.cluster, kNoThread, 0};
    return {who.actor, who.time, who.line, who.cluster, who.thread, who.meetings};
}

// Within a warp, program order is of each lane alone: what converged lanes do in order today, the language
// does not promise. Two that store the same value race, too.
void check_lanes(const ReadSets::Entry& earlier, const char* did, uint64_t offset, const char* does,
                 const Accessor& who, const Shadow::Place& place) {
    if (who.is_async_proxy || earlier.thread == kNoThread || earlier.thread == who.thread) return;
    if (earlier.actor != who.actor || earlier.cluster != who.cluster || earlier.meetings != who.meetings)
        return;
    const std::string lanes =
        earlier.thread == kSeveralThreads ? "several threads" : "thread " + std::to_string(earlier.thread);
    fault(
        "lanes of a warp race: %s 0x%llx (CTA %u) %s at PTX line %d by %s and %s at PTX line %d by thread %u "
        "without __syncwarp between them",
        place.space, static_cast<unsigned long long>(place.base + offset), place.rank, did, earlier.line,
        lanes.c_str(), does, who.line, who.thread);
}

uint8_t byte_mask(uint64_t cell, uint64_t offset, uint64_t end) {
    uint8_t mask = 0xF;
    if (offset > cell * 4) mask = static_cast<uint8_t>(mask & (0xF << (offset - cell * 4)));
    if (end < cell * 4 + 4) mask = static_cast<uint8_t>(mask & (0xF >> (cell * 4 + 4 - end)));
    return mask;
}

}  // namespace

void ReadSets::clear() {
    sets_.assign(1, {});
    steps_.clear();
    last_ = {~0u, {}, 0};
}

uint32_t ReadSets::add(uint32_t set, const Entry& entry) {
    if (last_.from == set && last_.entry.thread == entry.thread && covers(last_.entry, entry))
        return last_.to;
    if (!sets_[set].empty() && covers(sets_[set].back(), entry)) return set;
    const uint64_t key = (uint64_t{set} << 32) ^ (uint64_t{entry.actor} << 48) ^ entry.time ^
                         (uint64_t{entry.cluster} << 20) ^ (uint64_t{entry.thread} << 36) ^
                         (uint64_t{entry.meetings} << 12);
    std::vector<Step>& bucket = steps_[key];
    for (const Step& step : bucket)
        if (step.from == set && step.entry.thread == entry.thread && covers(step.entry, entry)) {
            last_ = step;
            return step.to;
        }
    std::vector<Entry> next;
    Entry now = entry;
    for (const Entry& old : sets_[set]) {
        const bool is_replaced = old.actor == entry.actor && old.cluster == entry.cluster &&
                                 (old.thread == kNoThread) == (entry.thread == kNoThread);
        if (!is_replaced)
            next.push_back(old);
        else if (old.meetings == entry.meetings && old.thread != entry.thread)
            now.thread = kSeveralThreads;
    }
    next.push_back(now);
    sets_.push_back(std::move(next));
    last_ = {set, entry, static_cast<uint32_t>(sets_.size() - 1)};
    bucket.push_back(last_);
    return last_.to;
}

bool Shadow::is_ordered(uint16_t actor, uint32_t time, uint32_t cluster, const Accessor& who) const {
    if (actor == kNoActor) return true;
    if (cluster != who.cluster) return forgives_other_clusters;
    return (actor == who.actor && !who.is_async_proxy) || time <= (*who.knowledge)[actor];
}

// Fresh shared memory holds NaN patterns, so that what is computed from it shows. Kernels do read it on
// purpose, for rows and columns that they clip later; storing it to global memory is always a mistake.
void Shadow::check_initialised(uint64_t offset, const Accessor& who, const Place& place) {
    if (!is_shared(place)) return;
    ++uninitialised_reads;
    if (!who.must_be_initialised && !refuses_uninitialised) return;
    fault("read of uninitialised shared memory: offset 0x%llx of CTA %u, PTX line %d",
          static_cast<unsigned long long>(offset), place.rank, who.line);
}

// A generic write must be followed by fence.proxy.async of the same thread before the async proxy touches it.
void Shadow::check_proxy(const Cell& cell, uint64_t offset, const Accessor& who, const Place& place) const {
    if (!who.is_async_proxy || !cell.is_generic || !fence_counts || cell.cluster != who.cluster) return;
    if ((*fence_counts)[cell.writer_rank][cell.writer_thread] > cell.writer_fences) return;
    fault(
        "missing fence.proxy.async: %s offset 0x%llx of CTA %u was written through the generic proxy at PTX "
        "line %d by thread %u, "
        "and is accessed through the async proxy at PTX line %d",
        place.space, static_cast<unsigned long long>(offset), place.rank, cell.write_line, cell.writer_thread,
        who.line);
}

void Shadow::read(Cell* cells, uint64_t offset, uint32_t bytes, const Accessor& who, const Place& place) {
    const uint64_t end = offset + bytes;
    for (uint64_t i = offset / 4; i * 4 < end; ++i) {
        Cell& cell = cells[i];
        const uint8_t mask = byte_mask(i, offset, end);
        if ((cell.initialised & mask) != mask) check_initialised(i * 4, who, place);
        if (cell.write_mask & mask) {
            const bool both_atomic = who.is_atomic && cell.is_atomic;
            if (!both_atomic && !is_ordered(cell.write_actor, cell.write_time, cell.cluster, who))
                fault(
                    "data race: %s 0x%llx (CTA %u) written at PTX line %d and read at PTX line %d without a "
                    "barrier between them",
                    place.space, static_cast<unsigned long long>(place.base + i * 4), place.rank,
                    cell.write_line, who.line);
            if (!both_atomic) check_lanes(last_write(cell, place), "written", i * 4, "read", who, place);
            check_proxy(cell, i * 4, who, place);
        }
        cell.read_set = reads_.add(cell.read_set, read_by(who, place));
    }
}

void Shadow::write(Cell* cells, uint64_t offset, uint32_t bytes, const Accessor& who, const Place& place) {
    const uint64_t end = offset + bytes;
    uint32_t checked = 0;
    for (uint64_t i = offset / 4; i * 4 < end; ++i) {
        Cell& cell = cells[i];
        const uint8_t mask = byte_mask(i, offset, end);
        const bool both_atomic = who.is_atomic && cell.is_atomic;
        if ((cell.write_mask & mask) && !both_atomic &&
            !is_ordered(cell.write_actor, cell.write_time, cell.cluster, who))
            fault(
                "data race: %s 0x%llx (CTA %u) written at PTX line %d and again at PTX line %d without a "
                "barrier between them",
                place.space, static_cast<unsigned long long>(place.base + i * 4), place.rank, cell.write_line,
                who.line);
        if ((cell.write_mask & mask) && !both_atomic)
            check_lanes(last_write(cell, place), "written", i * 4, "written again", who, place);
        if (cell.read_set != checked && mask == 0xF && !both_atomic) {
            for (const ReadSets::Entry& reader : reads_.entries(cell.read_set)) {
                if (!is_ordered(reader.actor, reader.time, reader.cluster, who))
                    fault(
                        "data race: %s 0x%llx (CTA %u) read at PTX line %d and overwritten at PTX line %d "
                        "without a barrier "
                        "between them",
                        place.space, static_cast<unsigned long long>(place.base + i * 4), place.rank,
                        reader.line, who.line);
                check_lanes(reader, "read", i * 4, "overwritten", who, place);
            }
            checked = cell.read_set;
        }
        if ((cell.write_mask & mask) && who.is_async_proxy) check_proxy(cell, i * 4, who, place);
        cell = {who.time,
                who.actor,
                static_cast<uint8_t>(cell.initialised | mask),
                mask,
                who.thread,
                static_cast<uint8_t>(who.cta_rank),
                !who.is_async_proxy,
                who.is_atomic,
                who.fence_count,
                0,
                who.line,
                who.cluster,
                who.meetings};
    }
}

Cell* Shadow::global_page(uint64_t address) {
    const uint64_t key = address / kPageBytes;
    if (key == last_key_) return last_page_;
    auto& page = pages_[key];
    if (!page) page = std::make_unique<Cell[]>(kPageBytes / 4);
    last_key_ = key;
    return last_page_ = page.get();
}

void Shadow::read_global(uint64_t address, uint32_t bytes, const Accessor& who) {
    while (bytes > 0) {
        const auto part = static_cast<uint32_t>(std::min<uint64_t>(bytes, kPageBytes - address % kPageBytes));
        read(global_page(address), address % kPageBytes, part, who,
             {"global memory", who.cta_rank, address - address % kPageBytes});
        address += part;
        bytes -= part;
    }
}

void Shadow::observe_global(uint64_t address, uint32_t bytes, const Accessor& who) const {
    if (pages_.empty()) return;
    for (uint64_t at = address & ~uint64_t{3}; at < address + bytes; at += 4) {
        const auto page = pages_.find(at / kPageBytes);
        if (page == pages_.end()) {
            at |= kPageBytes - 4;
            continue;
        }
        const Cell& cell = page->second[at % kPageBytes / 4];
        if (!is_ordered(cell.write_actor, cell.write_time, cell.cluster, who))
            fault(
                "data race: global memory 0x%llx written at PTX line %d and read at PTX line %d without a "
                "barrier between them",
                static_cast<unsigned long long>(at), cell.write_line, who.line);
    }
}

bool Shadow::was_written(uint64_t address, uint32_t bytes) const {
    for (uint64_t at = address & ~uint64_t{3}; at < address + bytes; at += 4) {
        const auto page = pages_.find(at / kPageBytes);
        if (page != pages_.end() && page->second[at % kPageBytes / 4].write_actor != kNoActor) return true;
    }
    return false;
}

void Shadow::write_global(uint64_t address, uint32_t bytes, const Accessor& who) {
    while (bytes > 0) {
        const auto part = static_cast<uint32_t>(std::min<uint64_t>(bytes, kPageBytes - address % kPageBytes));
        write(global_page(address), address % kPageBytes, part, who,
              {"global memory", who.cta_rank, address - address % kPageBytes});
        address += part;
        bytes -= part;
    }
}

}  // namespace emu
