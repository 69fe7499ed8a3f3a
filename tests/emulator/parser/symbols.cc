#include "parser/symbols.h"

namespace emu {
namespace {

using R = SpecialRegister;
const std::unordered_map<std::string, R>& special_registers() {
    static const std::unordered_map<std::string, R> table = {
        {"%tid.x", R::kTidX},
        {"%tid.y", R::kTidY},
        {"%tid.z", R::kTidZ},
        {"%ntid.x", R::kNtidX},
        {"%ntid.y", R::kNtidY},
        {"%ntid.z", R::kNtidZ},
        {"%ctaid.x", R::kCtaidX},
        {"%ctaid.y", R::kCtaidY},
        {"%ctaid.z", R::kCtaidZ},
        {"%nctaid.x", R::kNctaidX},
        {"%nctaid.y", R::kNctaidY},
        {"%nctaid.z", R::kNctaidZ},
        {"%laneid", R::kLaneId},
        {"%warpid", R::kWarpId},
        {"%nwarpid", R::kNwarpId},
        {"%smid", R::kSmId},
        {"%nsmid", R::kNsmId},
        {"%gridid", R::kGridId},
        {"%clusterid.x", R::kClusterIdX},
        {"%clusterid.y", R::kClusterIdY},
        {"%clusterid.z", R::kClusterIdZ},
        {"%nclusterid.x", R::kNclusterIdX},
        {"%nclusterid.y", R::kNclusterIdY},
        {"%nclusterid.z", R::kNclusterIdZ},
        {"%cluster_ctaid.x", R::kClusterCtaidX},
        {"%cluster_ctaid.y", R::kClusterCtaidY},
        {"%cluster_ctaid.z", R::kClusterCtaidZ},
        {"%cluster_nctaid.x", R::kClusterNctaidX},
        {"%cluster_nctaid.y", R::kClusterNctaidY},
        {"%cluster_nctaid.z", R::kClusterNctaidZ},
        {"%cluster_ctarank", R::kClusterCtaRank},
        {"%cluster_nctarank", R::kClusterNctaRank},
        {"%lanemask_eq", R::kLaneMaskEq},
        {"%lanemask_lt", R::kLaneMaskLt},
        {"%lanemask_le", R::kLaneMaskLe},
        {"%lanemask_gt", R::kLaneMaskGt},
        {"%lanemask_ge", R::kLaneMaskGe},
        {"%clock", R::kClock},
        {"%clock64", R::kClock64},
        {"%globaltimer", R::kGlobalTimer},
        {"%dynamic_smem_size", R::kDynamicSmemSize},
        {"%total_smem_size", R::kTotalSmemSize},
        {"%is_explicit_cluster", R::kIsExplicitCluster},
    };
    return table;
}

}  // namespace

void FunctionSymbols::declare(const std::string& name, ScalarType type) {
    const bool wide = type == ScalarType::kB128;
    scopes_[current_].names[name] = {new_slot(wide ? 2 : 1), type, wide};
}

const Symbol* FunctionSymbols::find(const std::string& name) const {
    for (int scope = current_; scope >= 0; scope = scopes_[scope].parent)
        if (auto it = scopes_[scope].names.find(name); it != scopes_[scope].names.end()) return &it->second;
    return nullptr;
}

int FunctionSymbols::symbol_slot(SlotInit::Kind kind, uint64_t value) {
    auto [it, is_new] = inits_.try_emplace({static_cast<int>(kind), value}, 0);
    if (is_new) {
        it->second = new_slot();
        kernel_.inits.push_back({it->second, kind, value});
    }
    return it->second;
}

int FunctionSymbols::constant(uint64_t value) {
    return symbol_slot(SlotInit::Kind::kConstant, value);
}

int FunctionSymbols::special(const std::string& name) {
    auto it = special_registers().find(name);
    return it == special_registers().end()
               ? -1
               : symbol_slot(SlotInit::Kind::kSpecial, static_cast<uint64_t>(it->second));
}

int FunctionSymbols::find_label(const std::string& name, int scope) const {
    for (; scope >= 0; scope = scopes_[scope].parent)
        if (auto it = scopes_[scope].labels.find(name); it != scopes_[scope].labels.end()) return it->second;
    return -1;
}

}  // namespace emu
