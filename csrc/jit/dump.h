// Copies for people beside a cache entry: source, PTX, disassembly. Asked for by settings, never read back.
#pragma once

#include <string>

#include "jit/compiler.h"

namespace deep_gemm::jit {

// DG_JIT_DEBUG: keeps the source beside the entry. The copy's path, or empty if it is off or cannot be
// written.
std::string dump_source(const std::string& folder, const Job& job);

// DG_JIT_DUMP_PTX is on and this kernel's PTX is not there: only compiling again can give it.
bool wants_ptx_dump(const std::string& folder, const std::string& digest);
void dump_ptx(const std::string& folder, const std::string& digest, const std::string& ptx);

// DG_JIT_DUMP_SASS: disassembles the image beside its entry, if a disassembler is found; says so if not.
void dump_sass(const std::string& folder, const Image& image);

}  // namespace deep_gemm::jit
