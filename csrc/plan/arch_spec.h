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
    double clock_ghz = 1.7;       // sustained under load
    double dram_tb_per_s = 4.2;   // measured device-to-device copy
    double l2_tb_per_s = 7.5;     // L2 to SMs; 128-row tiles with 2-CTA multicast were seen to draw 7.4
    double l2_mb = 50;            // capacity
    double fp8_tflops = 1450;     // under the power limit; 1,492 is the best dense product seen
    bool operator==(const ArchSpec&) const = default;
};

// The H200 of docs/benchmarks, for plans printed without a device.
inline constexpr ArchSpec kH200{};

}  // namespace deep_gemm::plan
