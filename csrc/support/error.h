// Every refusal is an Error whose text says which argument, what was expected, what came and what to do.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace deep_gemm {

class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

[[noreturn]] void throw_error(std::string message);

}  // namespace deep_gemm

// A check without a message does not compile.
#define DG_CHECK(condition, message, ...)                                                \
    do {                                                                                 \
        if (!(condition)) [[unlikely]]                                                   \
            ::deep_gemm::throw_error(::fmt::format(message __VA_OPT__(, ) __VA_ARGS__)); \
    } while (false)
