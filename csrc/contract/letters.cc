#include "contract/letters.h"

#include <fmt/format.h>

#include <deep_gemm/base/math.h>

#include <span>
#include <string>
#include <vector>

#include "contract/expect.h"
#include "contract/overlap.h"
#include "contract/refuse.h"

namespace deep_gemm::contract {

namespace {

std::string dims_text(std::string_view letters) {
    std::string text;
    for (const char letter : letters) text += fmt::format("{}{}", text.empty() ? "[" : ", ", letter);
    return text + "]";
}

bool is_same(const TensorView& x, const TensorView& y) {
    bool same = x.data == y.data;
    for (int i = 0; i < x.rank; ++i) same = same && (x.shape[i] <= 1 || x.stride[i] == y.stride[i]);
    return same;
}

}  // namespace

TensorView Contraction::ordered(const TensorView& t, std::string_view letters, const std::array<char, 3>& order) {
    TensorView view = t;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::size_t from = letters.find(order[i]);
        view.shape[i] = t.shape[from];
        view.stride[i] = t.stride[from];
    }
    return view;
}

void Extents::check(const TensorView& t, std::string_view name, std::string_view letters) {
    expect(t, name).rank(static_cast<int>(letters.size()), dims_text(letters)).extents_fit();
    std::vector<Extent> extents;
    for (std::size_t i = 0; i < letters.size(); ++i) {
        int64_t& value = values_[static_cast<unsigned char>(letters[i])];
        if (value < 0) value = t.shape[i];
        extents.push_back({value, letters.substr(i, 1)});
    }
    expect(t, name).shape(extents, "a letter of the expression counts the same wherever it stands");
}

void Extents::check_factors(const TensorView& t, std::string_view name, std::string_view letters, const Granularity& k,
                            const Granularity& mn) const {
    expect(t, name).rank(static_cast<int>(letters.size()), dims_text(letters));
    std::vector<std::string> words;
    std::vector<Extent> extents;
    words.reserve(letters.size());
    for (std::size_t i = 0; i < letters.size(); ++i) {
        const int share = letters[i] == k.letter ? k.elements : letters[i] == mn.letter ? mn.elements : 1;
        words.push_back(share == 1 ? std::string(letters.substr(i, 1)) : fmt::format("ceil({}/{})", letters[i], share));
        extents.push_back({ceil_div<int64_t>(of(letters[i]), share), words.back()});
    }
    expect(t, name).shape(extents, "factors follow their operand, one per 128 along the letter that is summed");
}

void check_c_of(const TensorView& c, const TensorView& d, const Contraction& row, const Extents& extents) {
    std::vector<Extent> wanted;
    for (std::size_t i = 0; i < row.d().size(); ++i) wanted.push_back({extents.of(row.d()[i]), row.d().substr(i, 1)});
    expect(c, "c")
        .rank(d.rank, dims_text(row.d()))
        .dtype({d.dtype}, "c has the dtype of d; convert one of them")
        .shape(wanted, "c has the shape of d");
    expect(row.d_view(c), "c").tma_addressable(row.n_letter());
    if (!is_same(c, d) && overlap(row.d_view(c), row.d_view(d)))
        refuse("c", "d itself (same address, shape and strides) or memory apart from d, got a partial overlap with d (c strides "
               "{}, d strides {}); clone c",
               strides_text(c), strides_text(d));
}

}  // namespace deep_gemm::contract
