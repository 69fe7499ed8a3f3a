// tensormap.replace (PTX ISA 9.7.9.27), tensormap.cp_fenceproxy and fence.proxy.tensormap (9.7.13): maps that
// the device makes. A map is changed in shared memory, published in global memory, and acquired by each
// thread that copies through it. Not verified on silicon: real maps are opaque, so what a changed field means
// is taken from the ISA text. clusterlaunchcontrol is refused.
#include "async/tensor_map_ops.h"

#include <cstring>

#include "async/tensor_map.h"
#include "simt/access.h"
#include "simt/families.h"
#include "simt/gather.h"

namespace emu {
namespace {

constexpr uint32_t kMapBytes = sizeof(TensorMap);

enum Field : int { kAddress, kDim, kStride };

uint64_t thread_key(const Exec& x, int lane) {
    return uint64_t{x.cluster.serial} << 32 | uint64_t{x.cta.rank} << 16 | uint64_t(x.thread(lane));
}

SharedPlace map_place(Exec& x, uint64_t address, const char* what) {
    if (address % 128)
        fault("%s: the map at 0x%llx is not 128-byte aligned", what,
              static_cast<unsigned long long>(address));
    const SharedPlace place = locate_shared(x, to_shared_address(address), kMapBytes, what);
    if (place.cta != &x.cta) fault("%s of a map in another CTA", what);
    return place;
}

void check_map(const TensorMap& map, uint64_t address) {
    if (map.magic != TensorMap::kMagic)
        fault("there is no tensor map at 0x%llx", static_cast<unsigned long long>(address));
}

void change(TensorMap& map, Field field, uint64_t dimension, uint64_t value) {
    const auto number = static_cast<unsigned long long>(value);
    if (field == kAddress) {
        if (value == 0 || value % 16)
            fault("tensormap.replace: the address 0x%llx is not 16-byte aligned", number);
        map.base = value;
        return;
    }
    if (dimension >= map.rank - uint64_t(field == kStride))
        fault("tensormap.replace: dimension %llu of a map of rank %d",
              static_cast<unsigned long long>(dimension), map.rank);
    if (field == kDim) {
        if (value == 0) fault("tensormap.replace: a dimension of 0 elements");
        map.dims_minus_one[dimension] = uint32_t(value - 1);
        return;
    }
    if (value % 16 || value >= uint64_t{1} << 40)
        fault("tensormap.replace: the stride %llu is no multiple of 16 below 2^40", number);
    map.strides[dimension] = value;
}

Step replace(Exec& x, const Instr& i, LaneMask mask) {
    const auto field = static_cast<Field>(i.mode);
    for_lanes(mask, [&](int lane) {
        const uint64_t address = address_of(x, i.operands[0], lane);
        const SharedPlace place = map_place(x, address, "tensormap.replace");
        shadow_shared(x, place, kMapBytes, Use::kRead, x.accessor(lane));
        TensorMap map;
        std::memcpy(static_cast<void*>(&map), place.bytes(), kMapBytes);
        check_map(map, address);
        const uint64_t dimension = field == kAddress ? 0 : x.slot(i.operands[1].slot)[lane];
        uint64_t value = x.slot(i.operands.back().slot)[lane];
        if (field == kDim) value = uint32_t(value);
        change(map, field, dimension, value);
        shadow_shared(x, place, kMapBytes, Use::kWrite, x.accessor(lane));
        std::memcpy(place.bytes(), static_cast<const void*>(&map), kMapBytes);
    });
    return Step::kNext;
}

Step publish(Exec& x, const Instr& i, LaneMask mask) {
    return aligned(x, mask, [&](LaneMask lanes) {
        const int lane = std::countr_zero(lanes);
        const uint64_t target =
            x.uniform(i.operands[0].slot, lanes, "destination") + uint64_t(i.operands[0].offset);
        const uint64_t source =
            x.uniform(i.operands[1].slot, lanes, "source") + uint64_t(i.operands[1].offset);
        if (x.uniform(i.operands[2].slot, lanes, "size") != kMapBytes)
            fault("tensormap.cp_fenceproxy: a size other than 128");
        if (target % 128) fault("tensormap.cp_fenceproxy: the destination is not 128-byte aligned");
        const SharedPlace place = map_place(x, source, "tensormap.cp_fenceproxy");
        for_lanes(lanes, [&](int reader) { shadow_shared(x, place, kMapBytes, Use::kRead, x.accessor(reader)); });
        TensorMap map;
        std::memcpy(static_cast<void*>(&map), place.bytes(), kMapBytes);
        check_map(map, source);
        x.launch.memory->check(target, kMapBytes, "tensormap.cp_fenceproxy");
        if (x.launch.shadow.is_enabled) x.launch.shadow.write_global(target, kMapBytes, x.accessor(lane));
        std::memcpy(reinterpret_cast<void*>(target), static_cast<const void*>(&map), kMapBytes);
        ++x.launch.map_versions[target];
        ++x.launch.progress;
    });
}

Step acquire_map(Exec& x, const Instr& i, LaneMask mask) {
    for_lanes(mask, [&](int lane) {
        const uint64_t address = address_of(x, i.operands[0], lane);
        if (uint32_t(x.slot(i.operands[1].slot)[lane]) != kMapBytes)
            fault("fence.proxy.tensormap: a size other than 128");
        if (address % 128) fault("fence.proxy.tensormap: the map is not 128-byte aligned");
        const auto published = x.launch.map_versions.find(address);
        if (published == x.launch.map_versions.end())
            fault("fence.proxy.tensormap: nothing was published at 0x%llx",
                  static_cast<unsigned long long>(address));
        x.launch.acquired_maps[{address, thread_key(x, lane)}] = published->second;
    });
    return Step::kNext;
}

void decode_replace(Decoder& d) {
    d.require("tile");
    const int field = d.take_one({"global_address", "global_dim", "global_stride"});
    if (field < 0) d.refuse("only global_address, global_dim and global_stride of a map can be replaced");
    d.require("shared::cta");
    d.require("b1024");
    d.require(field == kDim ? "b32" : "b64");
    d.instr.mode = uint32_t(field);
    const size_t operands = field == kAddress ? 2 : 3;
    d.expect_operands(operands, operands);
    d.no_destination();
    d.set(replace);
}

void decode_tensormap(Decoder& d) {
    if (d.take("replace")) return decode_replace(d);
    d.require("cp_fenceproxy");
    for (const char* qualifier : {"global", "shared::cta", "tensormap::generic", "release"})
        d.require(qualifier);
    d.require_one({"cta", "cluster", "gpu", "sys"});
    d.require("sync");
    d.require("aligned");
    d.expect_operands(3, 3);
    d.no_destination();
    d.set(publish);
}

void decode_launch_control(Decoder& d) {
    d.refuse("clusterlaunchcontrol is not supported");
}

}  // namespace

void decode_map_fence(Decoder& d, MapFence kind) {
    if (kind != MapFence::kAcquire)
        d.refuse(
            "a map is released by tensormap.cp_fenceproxy, and acquired by "
            "fence.proxy.tensormap::generic.acquire");
    d.require_one({"cta", "cluster", "gpu", "sys"});
    d.expect_operands(2, 2);
    d.no_destination();
    d.set(acquire_map);
}

void check_map_use(Exec& x, uint64_t address, int lane, const Accessor& reader) {
    const auto published = x.launch.map_versions.find(address);
    if (published == x.launch.map_versions.end()) {
        if (x.launch.shadow.is_enabled && x.launch.shadow.was_written(address, kMapBytes))
            fault("the tensor map at 0x%llx was written by this grid and never published",
                  static_cast<unsigned long long>(address));
        return;
    }
    const auto acquired = x.launch.acquired_maps.find({address, thread_key(x, lane)});
    if (acquired == x.launch.acquired_maps.end() || acquired->second != published->second)
        fault(
            "missing fence.proxy.tensormap::generic.acquire: thread %d copies through the map at 0x%llx, "
            "which it has not "
            "acquired since it was published",
            x.thread(lane), static_cast<unsigned long long>(address));
    if (!x.launch.shadow.is_enabled) return;
    Accessor who = reader;
    who.is_async_proxy = false;  // of the tensormap proxy, which the fence above has ordered
    x.launch.shadow.read_global(address, kMapBytes, who);
}

FamilyTable tensor_map_families() {
    return {{"tensormap", decode_tensormap}, {"clusterlaunchcontrol", decode_launch_control}};
}

}  // namespace emu
