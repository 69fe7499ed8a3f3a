// Parses the body of an entry: scopes, registers, variables, labels, instructions.
#pragma once

#include <string>
#include <vector>

#include "machine/program.h"
#include "parser/token_stream.h"

namespace emu {

struct Variable {
    std::string name;
    ScalarType type = ScalarType::kNone;
    uint32_t align = 1;
    uint64_t bytes = 0;  // zero for an unsized extern array
    std::vector<uint8_t> initial;
};

struct SharedVariable {
    Variable variable;
    bool is_dynamic;
};

// Everything after the state space: ".align 16 .b8 name[64] = {..}" up to but without ',' or ')', or with its
// ';'.
Variable parse_variable_declaration(TokenStream& tokens);

void parse_body(TokenStream& tokens, Module& module, Kernel& kernel,
                const std::vector<SharedVariable>& module_shared);

}  // namespace emu
