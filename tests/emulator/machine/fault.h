// A fault is the emulator's only error: an illegal program, or an instruction it does not know.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace emu {

inline std::string vformat(const char* pattern, va_list args) {
    va_list copy;
    va_copy(copy, args);
    const int length = std::vsnprintf(nullptr, 0, pattern, copy);
    va_end(copy);
    std::string text(static_cast<size_t>(length), '\0');
    std::vsnprintf(text.data(), text.size() + 1, pattern, args);
    return text;
}

[[gnu::format(printf, 1, 2)]] inline std::string format(const char* pattern, ...) {
    va_list args;
    va_start(args, pattern);
    std::string text = vformat(pattern, args);
    va_end(args);
    return text;
}

class Fault : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Stops the launch. The scheduler adds the warp, the PTX line and the source line to the message.
[[noreturn, gnu::format(printf, 1, 2)]] inline void fault(const char* pattern, ...) {
    va_list args;
    va_start(args, pattern);
    std::string text = vformat(pattern, args);
    va_end(args);
    throw Fault(text);
}

}  // namespace emu
