// The M at which a planner's choice changes.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/group_shape.h"
#include "support/error.h"

namespace deep_gemm::plan {

// The first M that runs `config` after another one.
template <typename Config>
struct BreakPoint {
    int64_t m;
    Config config;
};

// The configs that `choose(shape)` picks for m in [m_min, m_max]: one entry for m_min, one for each m at
// which the choice changes. Exact: choices are constant between the values of planning_m, each of which is
// looked at.
template <typename Shape, typename Choose>
auto break_points(Shape shape, int64_t m_min, int64_t m_max, const Choose& choose) {
    DG_CHECK(1 <= m_min && m_min <= m_max, "m range: expected 1 <= m_min <= m_max, got {} and {}", m_min,
             m_max);
    std::vector<BreakPoint<decltype(choose(shape))>> points;
    for (int64_t m = m_min; m <= m_max; m = planning_m(m) + 1) {
        shape.m = m;
        const auto config = choose(shape);
        if (points.empty() || !(points.back().config == config)) points.push_back({m, config});
    }
    return points;
}

}  // namespace deep_gemm::plan
