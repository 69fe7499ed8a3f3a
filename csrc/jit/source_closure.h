// All headers that a source can see: what NVRTC gets from memory, and what the digest covers. One and the
// same set.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace deep_gemm::jit {

struct Header {
    std::string name;  // as included: "deep_gemm/base/types.h"
    std::string text;
    std::string hash;  // SHA-256 of the text, raw
    std::vector<std::string> includes;
};

using Closure = std::vector<std::shared_ptr<const Header>>;  // by rising name

// The folder that holds `deep_gemm/`. Headers are read once each; setting a root, the same one too, reads
// them again.
void set_header_root(std::string path);
std::string header_root();

// Headers that `text` includes as <deep_gemm/...>, directly or not, whatever the conditions around the
// #include. Throws Error on a missing header, and on an #include that could reach a file outside the closure.
Closure source_closure(std::string_view text);

}  // namespace deep_gemm::jit
