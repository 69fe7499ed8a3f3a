// Handlers that apply one function to every lane.
#pragma once

#include "machine/state.h"

namespace emu {

template <class T, class F>
Step unary(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t* a = x.slot(i.a);
    for_lanes(mask, [&](int l) { d[l] = to_bits(F{}(from_bits<T>(a[l]))); });
    return Step::kNext;
}

template <class T, class F>
Step binary(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b);
    for_lanes(mask, [&](int l) { d[l] = to_bits(F{}(from_bits<T>(a[l]), from_bits<T>(b[l]))); });
    return Step::kNext;
}

template <class T, class F>
Step ternary(Exec& x, const Instr& i, LaneMask mask) {
    uint64_t* d = x.slot(i.d);
    const uint64_t *a = x.slot(i.a), *b = x.slot(i.b), *c = x.slot(i.c);
    for_lanes(mask, [&](int l) {
        d[l] = to_bits(F{}(from_bits<T>(a[l]), from_bits<T>(b[l]), from_bits<T>(c[l])));
    });
    return Step::kNext;
}

}  // namespace emu
