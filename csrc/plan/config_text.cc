#include "plan/config_text.h"

#include <map>
#include <span>

#include "plan/fp8_gemm.h"
#include "plan/kernel_table.h"
#include "plan/yields.h"
#include "support/error.h"

namespace deep_gemm::plan {

namespace {

template <typename Enum>
struct Word {
    Enum value;
    std::string_view text;    // in dictionaries and messages
    std::string_view source;  // in C++
};

constexpr Word<ScaleGranularity> kGranularityWords[] = {
    {ScaleGranularity::kPerRow, "per_row", "ScaleGranularity::kPerRow"},
    {ScaleGranularity::kPerBlock, "per_block", "ScaleGranularity::kPerBlock"},
};
constexpr Word<Grouping> kGroupingWords[] = {
    {Grouping::kDense, "dense", "Grouping::kDense"},
    {Grouping::kContiguous, "contiguous", "Grouping::kContiguous"},
    {Grouping::kMasked, "masked", "Grouping::kMasked"},
    {Grouping::kPsum, "psum", "Grouping::kPsum"},
    {Grouping::kBatched, "batched", "Grouping::kBatched"},
    {Grouping::kBatchSum, "batch_sum", "Grouping::kBatchSum"},
    {Grouping::kKGrouped, "k_grouped", "Grouping::kKGrouped"},
};
constexpr Word<Major> kMajorWords[] = {{Major::kK, "k", "Major::kK"}, {Major::kMn, "mn", "Major::kMn"}};
// Only what a GEMM writes.
constexpr Word<Dtype> kDtypeWords[] = {{Dtype::kBf16, "bf16", "Dtype::kBf16"},
                                       {Dtype::kF32, "f32", "Dtype::kF32"}};

std::span<const Word<ScaleGranularity>> words_of(ScaleGranularity) {
    return kGranularityWords;
}
std::span<const Word<Grouping>> words_of(Grouping) {
    return kGroupingWords;
}
std::span<const Word<Major>> words_of(Major) {
    return kMajorWords;
}
std::span<const Word<Dtype>> words_of(Dtype) {
    return kDtypeWords;
}

template <typename Enum>
Word<Enum> word_of(Enum value) {
    for (const Word<Enum>& word : words_of(value))
        if (word.value == value) return word;
    return {value, "another", "?"};
}

template <typename Enum>
void parse_word(std::string_view field, std::string_view text, Enum& value) {
    std::string known;
    for (const Word<Enum>& word : words_of(value)) {
        if (word.text == text) {
            value = word.value;
            return;
        }
        known += fmt::format("{}'{}'", known.empty() ? "" : ", ", word.text);
    }
    throw_error(fmt::format("{}: expected one of {}, got '{}'", field, known, text));
}

std::string describe_refusals(const std::vector<Rejection>& rejected) {
    struct Count {
        int number = 0;
        const Rejection* first = nullptr;
    };
    std::map<std::string, Count> kinds;
    for (const Rejection& rejection : rejected) {
        Count& count = kinds[rejection.reason.substr(0, rejection.reason.find(':'))];
        if (count.number++ == 0) count.first = &rejection;
    }
    std::string text;
    for (const auto& [kind, count] : kinds)
        text += fmt::format("  {:4} refused, e.g. {}: {}\n", count.number, describe(count.first->config),
                            count.first->reason);
    return text;
}

}  // namespace

std::string_view text_of(ScaleGranularity value) {
    return word_of(value).text;
}
std::string_view text_of(Grouping value) {
    return word_of(value).text;
}
std::string_view text_of(Major value) {
    return word_of(value).text;
}
std::string_view text_of(Dtype value) {
    return word_of(value).text;
}

std::string_view source_word(ScaleGranularity value) {
    return word_of(value).source;
}
std::string_view source_word(Grouping value) {
    return word_of(value).source;
}
std::string_view source_word(Major value) {
    return word_of(value).source;
}
std::string_view source_word(Dtype value) {
    return word_of(value).source;
}

void parse(std::string_view field, std::string_view word, ScaleGranularity& value) {
    parse_word(field, word, value);
}
void parse(std::string_view field, std::string_view word, Grouping& value) {
    parse_word(field, word, value);
}
void parse(std::string_view field, std::string_view word, Major& value) {
    parse_word(field, word, value);
}
void parse(std::string_view field, std::string_view word, Dtype& value) {
    parse_word(field, word, value);
}

std::string describe(const Fp8GemmShape& shape) {
    return fmt::format("m={} n={} k={}{}", shape.m, shape.n, shape.k, describe(shape.groups));
}

std::string describe(const Fp8GemmConfig& c) {
    const bool grouped = c.grouping != Grouping::kDense;
    return fmt::format(
        "{}x{}x{} stages={} warpgroups={} accumulators={} parts={} kblocks={} boxes={} cluster={}x{} sfb={} "
        "d={}{}{}{}{}{}",
        c.block_m, c.block_n, kBlockK, c.num_stages, c.num_math_warpgroups, c.num_accumulators, c.n_parts,
        c.k_blocks, c.store_boxes, c.cluster_m, c.cluster_n, text_of(c.sfb_granularity), text_of(c.d_dtype),
        c.c_is_d ? " +=" : c.has_c ? " +c" : "", c.ragged_n ? " ragged" : "", grouped ? " " : "", grouped ? text_of(c.grouping) : "",
        c.head_unit != 0 ? fmt::format(" heads={}", c.head_unit) : "");
}

std::string describe(const Fp8GemmPlan& plan) {
    return fmt::format("{:8.2f} us  {}  grid={} smem={} bands={}{}", plan.estimate_us, describe(plan.config),
                       plan.grid, plan.smem_bytes, plan.raster.group, plan.raster.bands_along_n ? "n" : "m");
}

std::string describe(const Fp8GemmChoice& choice) {
    constexpr std::size_t kShown = 5;
    std::string text = fmt::format("picked {}\n", describe(choice.best));
    for (std::size_t i = 0; i < choice.runners_up.size() && i < kShown; ++i)
        text += fmt::format("  then {}\n", describe(choice.runners_up[i]));
    if (choice.runners_up.size() > kShown)
        text += fmt::format("  {:4} more feasible\n", choice.runners_up.size() - kShown);
    return text + describe_refusals(choice.rejected);
}

KernelSource print_source(const Fp8GemmConfig& config, const ArchSpec& arch) {
    const Fp8GemmKernel& kernel = kernel_for(config.sfb_granularity, config.d_dtype, arch);
    KernelSource source =
        source_of({kernel.header, kernel.function, kernel.entry, "Fp8GemmConfig", "Fp8GemmArgs"}, config);
    source.text.insert(0, yield_line(config));
    return source;
}

}  // namespace deep_gemm::plan
