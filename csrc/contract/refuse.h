// The one way a contract says no.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "support/error.h"

namespace deep_gemm::contract {

// Throws "<argument>: expected <text>"; `text` goes on ", got <what came>; <what to do>".
template <typename... Args>
[[noreturn]] void refuse(std::string_view argument, fmt::format_string<Args...> text, Args&&... args) {
    throw_error(fmt::format("{}: expected {}", argument, fmt::format(text, std::forward<Args>(args)...)));
}

}  // namespace deep_gemm::contract
