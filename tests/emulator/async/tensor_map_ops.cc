// tensormap.replace and fence.proxy.tensormap's companions; clusterlaunchcontrol.
#include "parser/decode.h"
#include "simt/families.h"

namespace emu {
namespace {

void decode_tensormap(Decoder& d) {
    d.refuse("tensormap.replace is not supported: our maps are made on the host");
}
void decode_launch_control(Decoder& d) {
    d.refuse("clusterlaunchcontrol is not supported");
}

}  // namespace

FamilyTable tensor_map_families() {
    return {{"tensormap", decode_tensormap}, {"clusterlaunchcontrol", decode_launch_control}};
}

}  // namespace emu
