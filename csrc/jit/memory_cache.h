// Images of this process by digest; concurrent requests for one digest run one build.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "jit/jit.h"

namespace deep_gemm::jit::memory_cache {

using ImagePtr = std::shared_ptr<const Image>;

// The image of `digest`, else what `make` returns, which is kept. While `make` runs, other callers with the
// same digest wait for its outcome, an exception included; a failure is not kept. No lock is held while
// `make` runs.
ImagePtr find_or_make(const std::string& digest, const std::function<ImagePtr()>& make);

void drop(const std::string& digest);
void clear();

}  // namespace deep_gemm::jit::memory_cache
