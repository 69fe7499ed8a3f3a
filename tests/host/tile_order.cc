// Divisors and the order of tiles, on the host: every quotient against the division, every tile once, by both kinds of raster.
// Says on standard output what it compared; the first mismatch ends it.
#include <deep_gemm/schedule/raster.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <utility>

namespace deep_gemm {
namespace {

constexpr uint32_t kEnd = 1u << 31;  // of the numbers that a Divisor takes

[[noreturn]] void fail(const char* what, uint32_t a, uint32_t b) {
    std::printf("%s: %u, %u\n", what, a, b);
    std::exit(1);
}

uint64_t compare_quotients(uint32_t value) {
    const Divisor divisor = divisor_of(value);
    uint64_t compared = 0;
    const auto compare = [&](uint64_t n) {
        if (n >= kEnd) return;
        if (divisor.quotient(uint32_t(n)) != uint32_t(n) / value) fail("quotient", uint32_t(n), value);
        ++compared;
    };
    const uint64_t last = (kEnd - 1) / value;
    for (uint64_t n = 0; n < 100; ++n) compare(n), compare(kEnd - 1 - n);
    for (uint64_t i = 1; i < 64; ++i)
        for (const uint64_t multiple : {i * value, (last - std::min(last, i)) * value, last / i * value})
            compare(multiple - 1), compare(multiple), compare(multiple + 1);
    return compared;
}

void compare_rasters(uint32_t m_tiles, uint32_t n_tiles, const RasterOrder& planned) {
    const RasterArgs args = raster_over(planned, m_tiles, n_tiles);
    const auto host = raster_of_matrix<1, 1>(args, m_tiles, n_tiles);
    const auto device = raster_on_device(args, m_tiles, n_tiles);
    std::set<std::pair<uint32_t, uint32_t>> seen;
    for (uint32_t i = 0; i < host.size(); ++i) {
        const TileCoord a = host.tile(i), b = device.tile(i);
        if (a.m_idx != b.m_idx || a.n_idx != b.n_idx) fail("rasters differ", i, args.group);
        if (a.m_idx >= m_tiles || a.n_idx >= n_tiles) fail("outside", i, args.group);
        seen.insert({a.m_idx, a.n_idx});
    }
    if (seen.size() != host.size()) fail("tiles left out", m_tiles, n_tiles);
    if (host.divisors.all.value != host.size()) fail("size", m_tiles, n_tiles);
}

}  // namespace
}  // namespace deep_gemm

int main() {
    using namespace deep_gemm;
    uint64_t quotients = 0, rasters = 0;
    for (uint32_t value = 1; value < 5000; ++value) quotients += compare_quotients(value);
    for (int bit = 2; bit < 31; ++bit)
        for (const uint32_t value : {(1u << bit) - 1, 1u << bit, (1u << bit) + 1, 3u << (bit - 2)})
            quotients += compare_quotients(value);
    quotients += compare_quotients(kEnd - 1);
    for (const uint32_t m : {1u, 2u, 7u, 8u, 9u, 23u})
        for (const uint32_t n : {1u, 3u, 8u, 15u, 16u, 33u})
            for (const uint32_t group : {1u, 3u, 8u, 40u})
                for (const bool along_n : {false, true}) compare_rasters(m, n, {group, along_n}), ++rasters;
    std::printf("%llu quotients, %llu rasters\n", static_cast<unsigned long long>(quotients),
                static_cast<unsigned long long>(rasters));
}
