// The texts a kernel author reads: where a fault happened, and who waits for whom in a deadlock.
#include "scheduler/scheduler.h"

namespace emu {
namespace {

const char* wait_name(Wait::Kind kind) {
    switch (kind) {
        case Wait::Kind::kMbarrier:
            return "mbarrier";
        case Wait::Kind::kNamedBarrier:
            return "named barrier";
        case Wait::Kind::kClusterBarrier:
            return "cluster barrier";
        case Wait::Kind::kTmem:
            return "tensor memory allocation";
        default:
            return "other lanes of its warp";
    }
}

std::string describe_instruction(const Launch& launch, const Instr& instr) {
    const std::string source = launch.module->describe_location(instr);
    return format("PTX line %d: %s%s%s", instr.line, launch.module->ptx_line(instr.line).c_str(),
                  source.empty() ? "" : "  <- ", source.c_str());
}

std::string describe_wait(const Launch& launch, const Wait& wait) {
    std::string text = format("    lanes 0x%08x wait for %s", wait.lanes, wait_name(wait.kind));
    if (wait.kind == Wait::Kind::kMbarrier) text += format(" 0x%x, parity %u", wait.object, wait.parity);
    if (wait.kind == Wait::Kind::kNamedBarrier) text += format(" %u", wait.object);
    if (wait.kind == Wait::Kind::kCollective) text += format(" 0x%08x", wait.object);
    return text + "\n      " + describe_instruction(launch, launch.kernel->code[wait.pc]) + "\n";
}

std::string describe_barriers(const Cta& cta) {
    std::string text;
    for (const auto& [offset, barrier] : cta.barriers)
        text += format(
            "    mbarrier 0x%x (initialised at PTX line %d): phase %u, pending %lld of %lld, tx %lld\n",
            offset, barrier.init_line, barrier.phase, static_cast<long long>(barrier.pending),
            static_cast<long long>(barrier.expected), static_cast<long long>(barrier.tx));
    for (size_t id = 0; id < cta.named.size(); ++id)
        if (cta.named[id].arrived)
            text += format("    named barrier %zu: %u of %u threads arrived (0: all)\n", id,
                           cta.named[id].arrived, cta.named[id].expected);
    return text;
}

}  // namespace

std::string describe_place(const Launch& launch, const Warp& warp, const Instr& instr, LaneMask lanes) {
    const Cta& cta = *warp.cta;
    return format("  kernel %s, CTA (%u,%u,%u) rank %u of its cluster, warp %d, lanes 0x%08x\n  ",
                  launch.kernel->name.c_str(), cta.id.x, cta.id.y, cta.id.z, cta.rank, warp.index, lanes) +
           describe_instruction(launch, instr);
}

std::string deadlock_report(const Launch& launch, const std::vector<std::unique_ptr<Cluster>>& clusters) {
    std::string text = "kernel " + launch.kernel->name + "\n";
    for (const auto& cluster : clusters)
        for (const auto& cta : cluster->ctas) {
            if (cta->has_exited()) continue;
            text += format("  CTA (%u,%u,%u), rank %u, %u threads live\n", cta->id.x, cta->id.y, cta->id.z,
                           cta->rank, cta->live_threads);
            for (const Warp& warp : cta->warps) {
                if (!warp.live()) continue;
                text += format("   warp %d: live 0x%08x, runnable 0x%08x\n", warp.index, warp.live(),
                               warp.runnable);
                for (const Wait& wait : warp.waits) text += describe_wait(launch, wait);
                if (warp.runnable) {
                    const auto pc = warp.pc[size_t(std::countr_zero(warp.runnable))];
                    text += "    runs at " + describe_instruction(launch, launch.kernel->code[pc]) + "\n";
                }
            }
            text += describe_barriers(*cta);
        }
    return text;
}

}  // namespace emu
