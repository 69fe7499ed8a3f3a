#include "plan/kernel_source.h"

namespace deep_gemm::plan {

KernelSource source_of(const KernelTemplate& kernel, const std::string& fields, int threads) {
    return {kernel.entry,
            fmt::format("#include <{}>\n\n"
                        "constexpr deep_gemm::{} kConfig{{\n{}}};\n\n"
                        "extern \"C\" __global__ void __launch_bounds__({}, 1)\n"
                        "{}(const __grid_constant__ deep_gemm::{} args) {{\n"
                        "    deep_gemm::{}<kConfig>(args);\n}}\n",
                        kernel.header, kernel.config_type, fields, threads, kernel.entry, kernel.args_type,
                        kernel.function)};
}

}  // namespace deep_gemm::plan
