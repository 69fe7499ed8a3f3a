#include "parser/lexer.h"

#include <cctype>

#include "machine/fault.h"

namespace emu {
namespace {

bool is_word_start(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool is_word(char c) {
    return is_word_start(c) || std::isdigit(static_cast<unsigned char>(c));
}

class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}

    std::vector<Token> run() {
        while (skip_blank(), at_ < text_.size()) tokens_.push_back(next());
        tokens_.push_back({Token::Kind::kEnd, "", line_});
        return std::move(tokens_);
    }

  private:
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    void skip_blank() {
        while (at_ < text_.size()) {
            if (peek() == '\n') {
                ++line_;
                ++at_;
            } else if (std::isspace(static_cast<unsigned char>(peek())) || peek() == '\0')
                ++at_;
            else if (peek() == '/' && peek(1) == '/')
                while (at_ < text_.size() && peek() != '\n') ++at_;
            else if (peek() == '/' && peek(1) == '*')
                skip_block_comment();
            else
                return;
        }
    }

    void skip_block_comment() {
        for (at_ += 2; at_ < text_.size() && !(peek() == '*' && peek(1) == '/'); ++at_)
            if (peek() == '\n') ++line_;
        at_ += 2;
    }

    Token next() {
        const size_t start = at_;
        const char c = peek();
        if (c == '"') {
            for (++at_; at_ < text_.size() && peek() != '"'; ++at_)
                if (peek() == '\\') ++at_;
            ++at_;
            return {Token::Kind::kString, text_.substr(start + 1, at_ - start - 2), line_};
        }
        if (std::isdigit(static_cast<unsigned char>(c))) {
            while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '.') ++at_;
            return {Token::Kind::kNumber, text_.substr(start, at_ - start), line_};
        }
        if (is_word_start(c)) {
            // "::" belongs to a word when an identifier follows: .shared::cta, .L1::no_allocate
            while (is_word(peek()) || (peek() == ':' && peek(1) == ':' && is_word(peek(2))))
                at_ += peek() == ':' ? 2 : 1;
            return {Token::Kind::kWord, text_.substr(start, at_ - start), line_};
        }
        ++at_;
        return {Token::Kind::kPunct, text_.substr(start, 1), line_};
    }

    std::string_view text_;
    std::vector<Token> tokens_;
    size_t at_ = 0;
    int line_ = 1;
};

}  // namespace

std::vector<Token> tokenise(std::string_view text) {
    return Lexer(text).run();
}

}  // namespace emu
