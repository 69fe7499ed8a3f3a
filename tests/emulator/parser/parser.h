// PTX text -> Module. Anything unknown is a Fault that names the PTX line; nothing is guessed.
#pragma once

#include <memory>
#include <string>

#include "machine/program.h"

namespace emu {

std::unique_ptr<Module> parse_module(const std::string& ptx);

}  // namespace emu
