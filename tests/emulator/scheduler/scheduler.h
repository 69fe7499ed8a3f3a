// Runs a grid: admits clusters, gives warps their turns, drains asynchronous work, detects deadlock.
#pragma once

#include "machine/state.h"

namespace emu {

// A fault with its place: warp, PTX line, source line.
class LocatedFault : public Fault {
  public:
    using Fault::Fault;
};

// Throws LocatedFault. Statistics are in launch.stats afterwards.
void run_grid(Launch& launch);

// Runs the warp until its quantum ends or no lane is runnable. Returns instructions executed.
int run_warp(Launch& launch, Warp& warp, int quantum);

// Prepares a cluster for its place in the grid; reuses its memory.
void start_cluster(Launch& launch, Cluster& cluster, uint32_t index, uint32_t serial);

std::string describe_place(const Launch& launch, const Warp& warp, const Instr& instr, LaneMask lanes);
std::string deadlock_report(const Launch& launch, const std::vector<std::unique_ptr<Cluster>>& clusters);

}  // namespace emu
