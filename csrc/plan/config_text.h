// Configs and shapes as text: enum names, one-line descriptions, kernel source.
#pragma once

#include <string>
#include <string_view>

#include <deep_gemm/base/types.h>

namespace deep_gemm::plan {

// Words for people and dictionaries: "per_block", "dense", "mn", "bf16".
std::string_view text_of(ScaleGranularity value);
std::string_view text_of(Grouping value);
std::string_view text_of(Major value);
std::string_view text_of(Dtype value);

// The same in C++, as seen from the namespace: "Grouping::kDense".
std::string_view source_word(ScaleGranularity value);
std::string_view source_word(Grouping value);
std::string_view source_word(Major value);
std::string_view source_word(Dtype value);

// The value a word names; an Error lists the words there are. `field` is what the message calls it.
void parse(std::string_view field, std::string_view word, ScaleGranularity& value);
void parse(std::string_view field, std::string_view word, Grouping& value);
void parse(std::string_view field, std::string_view word, Major& value);
void parse(std::string_view field, std::string_view word, Dtype& value);

}  // namespace deep_gemm::plan
