// The numbers of a device that planning needs. Identity, SM count and shared memory come from the driver;
// speeds come from here, never from the driver, so that a plan made without a GPU is the plan of the real
// run.
#pragma once

#include <cstdint>

namespace deep_gemm::plan {

struct ArchSpec {
    int major = 9, minor = 0;
    int sm_count = 132;           // all of the device's SMs: decides what changes bits
    int usable_sms = 132;         // set_num_sms: decides only the grid
    int smem_per_block = 232448;  // opt-in limit, bytes
    double clock_ghz = 1.98;      // of a short kernel, before the power limit bites
    double dram_tb_per_s = 4.6;   // as the estimates need it: a device-to-device copy draws 4.2
    double l2_tb_per_s = 13;      // L2 to SMs at `clock_ghz`, once per cluster; requests of neighbouring SMs are merged
    double l2_mb = 50;            // capacity
    double sustained_ghz = 1.8;   // the clock of kernels of 0.1 ms and more, as the estimates need it
    bool operator==(const ArchSpec&) const = default;
};

// The H200 of docs/benchmarks, for plans printed without a device.
inline constexpr ArchSpec kH200{};

// Clusters of a size that are resident at once. SMs come in groups of 16 and 18, which pairs fill; four CTAs
// leave SMs over: on 132 SMs, 22 clusters were seen to run together and 32 were not.
inline int resident_clusters(int sms, int cluster) {
    constexpr int kPair = 2;
    constexpr double kFilledByLarger = 0.85;
    const double usable = cluster <= kPair ? sms : sms * kFilledByLarger;
    return usable < cluster ? 1 : int(usable) / cluster;
}

}  // namespace deep_gemm::plan
