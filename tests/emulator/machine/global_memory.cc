#include "machine/global_memory.h"

#include <sys/mman.h>

#include "machine/fault.h"

namespace emu {

void GlobalMemory::add(uint64_t address, uint64_t bytes, std::string name, Tail tail) {
    good_end_ = good_start_ = 0;
    buffers_[address] = {bytes, std::move(name), tail};
}

void GlobalMemory::remove(uint64_t address) {
    good_end_ = good_start_ = 0;
    mapped_pages_.clear();
    buffers_.erase(address);
}

const std::pair<const uint64_t, GlobalMemory::Buffer>* GlobalMemory::find_at_or_below(
    uint64_t address) const {
    auto it = buffers_.upper_bound(address);
    return it == buffers_.begin() ? nullptr : &*std::prev(it);
}

uint64_t GlobalMemory::bytes_from(uint64_t address) const {
    const auto* entry = find_at_or_below(address);
    if (!entry || address >= entry->first + entry->second.bytes) return 0;
    return entry->first + entry->second.bytes - address;
}

void GlobalMemory::check(uint64_t address, uint64_t bytes, const char* what) const {
    if (address >= good_start_ && address + bytes <= good_end_) return;
    const auto* entry = find_at_or_below(address);
    const uint64_t end = entry ? entry->first + entry->second.bytes : 0;
    if (entry && address + bytes <= end) {
        good_start_ = entry->first;
        good_end_ = end;
        return;
    }
    const uint64_t reach = entry && entry->second.tail == Tail::kRedZone ? end + kRedZone : end;
    if (entry && address < reach)
        fault(
            "%s of %llu bytes at 0x%llx is out of bounds of '%s' (0x%llx, %llu bytes): %lld bytes behind its "
            "start",
            what, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address),
            entry->second.name.c_str(), static_cast<unsigned long long>(entry->first),
            static_cast<unsigned long long>(entry->second.bytes),
            static_cast<long long>(address - entry->first));
    if (is_strict || address < 4096)
        fault("%s of %llu bytes at 0x%llx touches no known buffer", what,
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address));
    for (uint64_t page = address / 4096; page <= (address + bytes - 1) / 4096; ++page) {
        auto [it, is_new] = mapped_pages_.try_emplace(page, false);
        unsigned char resident;
        if (is_new || !it->second)
            it->second = mincore(reinterpret_cast<void*>(page * 4096), 4096, &resident) == 0;
        if (!it->second)
            fault("%s at 0x%llx: the address is not mapped", what, static_cast<unsigned long long>(address));
    }
}

}  // namespace emu
