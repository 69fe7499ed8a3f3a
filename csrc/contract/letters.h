// Tensors whose dimensions have letters: the extents of an expression, and its operands as a batched GEMM sees them.
#pragma once

#include <array>
#include <string_view>

#include "contract/output.h"
#include "support/tensor_view.h"

namespace deep_gemm::contract {

// "bhr,hdr->bhd" and what its letters are to a GEMM; `group` counts matrices of A and B, and of D unless they are summed.
struct Contraction {
    std::string_view expression;
    char group, m, n, k;
    Grouping grouping;  // kBatched or kBatchSum

    constexpr std::string_view a() const { return expression.substr(0, 3); }
    constexpr std::string_view b() const { return expression.substr(4, 3); }
    constexpr std::string_view d() const { return expression.substr(9); }
    std::string_view m_letter() const { return letter(m); }
    std::string_view n_letter() const { return letter(n); }
    std::string_view k_letter() const { return letter(k); }

    // The same memory as [G, M, K], [G, N, K], and [G, M, N] or [M, N].
    TensorView a_view(const TensorView& t) const { return ordered(t, a(), {group, m, k}); }
    TensorView b_view(const TensorView& t) const { return ordered(t, b(), {group, n, k}); }
    TensorView d_view(const TensorView& t) const {
        return grouping == Grouping::kBatched ? ordered(t, d(), {group, m, n}) : t;
    }

  private:
    std::string_view letter(char c) const { return expression.substr(expression.find(c), 1); }
    static TensorView ordered(const TensorView& t, std::string_view letters, const std::array<char, 3>& order);
};

// A letter and how many elements along it share a scaling factor.
struct Granularity {
    char letter;
    int elements;
};

// What each letter counts; who first has a letter fixes it.
class Extents {
  public:
    int64_t of(char letter) const { return values_[static_cast<unsigned char>(letter)]; }
    // Rank, extents below 2^31, and those of letters that are fixed already.
    void check(const TensorView& t, std::string_view name, std::string_view letters);
    // The shape of an operand's factors.
    void check_factors(const TensorView& t, std::string_view name, std::string_view letters, const Granularity& k,
                       const Granularity& mn) const;

  private:
    std::array<int64_t, 128> values_ = unknown();
    static std::array<int64_t, 128> unknown() {
        std::array<int64_t, 128> values;
        values.fill(-1);
        return values;
    }
};

// C has D's dtype and shape, and is D itself or shares no byte with it.
void check_c_of(const TensorView& c, const TensorView& d, const Contraction& row, const Extents& extents);

}  // namespace deep_gemm::contract
