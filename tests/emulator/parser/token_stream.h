// A cursor over tokens with the few moves a recursive-descent parser needs.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "machine/fault.h"
#include "parser/lexer.h"

namespace emu {

class TokenStream {
  public:
    explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

    const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
    const Token& next() {
        const Token& t = peek();
        if (at_ + 1 < tokens_.size()) ++at_;
        return t;
    }
    bool at_end() const { return peek().kind == Token::Kind::kEnd; }
    bool accept(std::string_view text) {
        if (!peek().is(text)) return false;
        next();
        return true;
    }
    int line() const { return peek().line; }

    void expect(std::string_view text) {
        if (!accept(text))
            fault("PTX line %d: expected '%s', found '%s'", line(), std::string(text).c_str(),
                  std::string(peek().text).c_str());
    }
    std::string word() {
        if (peek().kind != Token::Kind::kWord)
            fault("PTX line %d: expected a name, found '%s'", line(), std::string(peek().text).c_str());
        return std::string(next().text);
    }
    int64_t integer() {
        const bool negative = accept("-");
        if (peek().kind != Token::Kind::kNumber)
            fault("PTX line %d: expected a number, found '%s'", line(), std::string(peek().text).c_str());
        const auto value = static_cast<int64_t>(std::strtoull(std::string(next().text).c_str(), nullptr, 0));
        return negative ? -value : value;
    }
    void skip_balanced(std::string_view open, std::string_view close) {
        expect(open);
        for (int depth = 1; depth > 0 && !at_end();) {
            const Token& t = next();
            if (t.is(open)) ++depth;
            if (t.is(close)) --depth;
        }
    }
    void skip_past(std::string_view text) {
        while (!at_end() && !next().is(text)) {
        }
    }

  private:
    std::vector<Token> tokens_;
    size_t at_ = 0;
};

}  // namespace emu
