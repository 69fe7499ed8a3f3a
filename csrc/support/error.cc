#include "support/error.h"

#include <utility>

namespace deep_gemm {

void throw_error(std::string message) { throw Error(std::move(message)); }

}  // namespace deep_gemm
