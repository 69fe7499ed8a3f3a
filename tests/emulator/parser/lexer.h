// Splits PTX text into tokens with line numbers. Comments vanish here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace emu {

struct Token {
    enum class Kind : unsigned char { kWord, kNumber, kString, kPunct, kEnd };
    Kind kind;
    std::string_view text;  // points into the PTX text
    int line;

    bool is(std::string_view expected) const { return text == expected && kind != Kind::kString; }
};

// Words keep their dots ("ld.global.v4.b32", ".reg"), percent signs and dollars.
std::vector<Token> tokenise(std::string_view text);

}  // namespace emu
