// Process-wide options that a call changes (never the environment). One 8-byte word: a snapshot is consistent
// and costs one load, so a plan cache can use it as part of its key.
#pragma once

#include <cstdint>

namespace deep_gemm {

struct RuntimeOptions {
    uint16_t num_sms = 0;           // 0: all of the device's SMs
    uint16_t block_m_multiple = 1;  // a hint, which the planner does not follow yet
    uint16_t block_n_multiple = 1;
    uint8_t tc_util = 0;   // percent; 0 means 100
    bool pdl : 1 = false;  // programmatic dependent launch
    bool ignore_compile_dims : 1 = false;
    bool compile_only : 1 = false;  // build kernels, launch nothing
    uint8_t unused : 5 = 0;         // no padding: the word is compared as a whole

    bool operator==(const RuntimeOptions&) const = default;
};
static_assert(sizeof(RuntimeOptions) == 8);

// The options now. Read them once at the top of a call; never inside planning.
RuntimeOptions runtime_options();

// Each setter refuses a bad value with an Error and leaves the old one in place.
void set_num_sms(int64_t count,
                 int64_t device_total);  // 0...device_total; a total of 0 is unknown and not checked
void set_tc_util(int64_t percent);       // 0...100
void set_block_size_multiple_of(int64_t m, int64_t n);  // 1...65535 each

enum class Switch : uint8_t { kOff, kOn };
void set_pdl(Switch pdl);
void set_ignore_compile_dims(Switch ignore);
void set_compile_mode(int64_t mode);  // 0: build and launch, 1: build only

}  // namespace deep_gemm
