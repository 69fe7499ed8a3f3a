// atom and red (PTX ISA 9.7.13). Every atomic also carries clocks: treated as acquire and release, which can
// hide a race that a relaxed atomic leaves open but reports none that is not there.
#include <cmath>
#include <cstring>

#include "simt/access.h"
#include "simt/families.h"
#include "simt/sync_words.h"
#include "tensor/formats.h"

namespace emu {
namespace {

using T = ScalarType;

enum class Atomic : uint8_t { kAnd, kOr, kXor, kExch, kAdd, kInc, kDec, kMin, kMax, kCas };

struct AtomicOp {
    Atomic op;
    T type;
    Space space;
    int vector;
    uint32_t bytes;
};

template <class I>
uint64_t integer_op(Atomic op, uint64_t old_bits, uint64_t b_bits) {
    const I a = from_bits<I>(old_bits), b = from_bits<I>(b_bits);
    switch (op) {
        case Atomic::kAnd:
            return to_bits(I(a & b));
        case Atomic::kOr:
            return to_bits(I(a | b));
        case Atomic::kXor:
            return to_bits(I(a ^ b));
        case Atomic::kExch:
            return to_bits(b);
        case Atomic::kAdd:
            return to_bits(I(std::make_unsigned_t<I>(a) + std::make_unsigned_t<I>(b)));
        case Atomic::kInc:
            return to_bits(I(std::make_unsigned_t<I>(a) >= std::make_unsigned_t<I>(b) ? 0 : a + 1));
        case Atomic::kDec:
            return to_bits(
                I(a == 0 || std::make_unsigned_t<I>(a) > std::make_unsigned_t<I>(b) ? b : I(a - 1)));
        case Atomic::kMin:
            return to_bits(std::min(a, b));
        default:
            return to_bits(std::max(a, b));
    }
}

uint64_t half_op(Atomic op, uint64_t a, uint64_t b, const FloatFormat& f) {
    const float x = decode_float(a & 0xFFFF, f), y = decode_float(b & 0xFFFF, f);
    return encode_float(op == Atomic::kAdd   ? double(x) + y
                        : op == Atomic::kMin ? std::fmin(x, y)
                                             : std::fmax(x, y),
                        f, Rounding::kNearestEven, Overflow::kToInfinity);
}

uint64_t apply(const AtomicOp& op, uint64_t a, uint64_t b) {
    switch (op.type) {
        case T::kF32:
            return to_bits(canonical(from_bits<float>(a) + from_bits<float>(b)));
        case T::kF64:
            return to_bits(from_bits<double>(a) + from_bits<double>(b));
        case T::kF16:
            return half_op(op.op, a, b, kF16);
        case T::kBF16:
            return half_op(op.op, a, b, kBF16);
        case T::kF16x2:
            return half_op(op.op, a, b, kF16) | half_op(op.op, a >> 16, b >> 16, kF16) << 16;
        case T::kBF16x2:
            return half_op(op.op, a, b, kBF16) | half_op(op.op, a >> 16, b >> 16, kBF16) << 16;
        case T::kS32:
            return integer_op<int32_t>(op.op, a, b);
        case T::kS64:
            return integer_op<int64_t>(op.op, a, b);
        default:
            return op.bytes == 8   ? integer_op<uint64_t>(op.op, a, b)
                   : op.bytes == 2 ? integer_op<uint16_t>(op.op, a, b)
                                   : integer_op<uint32_t>(op.op, a, b);
    }
}

// mode 1: red (no result). Operands: atom d, [a], b {, c}; red [a], b.
Step atomic(Exec& x, const Instr& i, LaneMask mask) {
    const auto& op = i.as<AtomicOp>();
    const bool is_red = i.mode & 1;
    const Operand& where = i.operands[is_red ? 0 : 1];
    const Operand& value = i.operands[is_red ? 1 : 2];
    for_lanes(mask, [&](int l) {
        uint8_t* bytes =
            access(x, l, op.space, address_of(x, where, l), op.bytes * uint32_t(op.vector), Use::kAtomic);
        SyncWords& words = sync_words(x.cluster);
        words.acquire(x.warp, reinterpret_cast<uint64_t>(bytes));
        words.release(x.warp, reinterpret_cast<uint64_t>(bytes));
        for (int k = 0; k < op.vector; ++k) {
            uint64_t old = 0;
            std::memcpy(&old, bytes + k * op.bytes, op.bytes);
            const uint64_t b = x.slot(op.vector == 1 ? value.slot : value.elements[size_t(k)])[l];
            uint64_t next;
            if (op.op == Atomic::kCas)
                next = low_bits(old, int(op.bytes)) == low_bits(b, int(op.bytes))
                           ? x.slot(i.operands[3].slot)[l]
                           : old;
            else if (op.op == Atomic::kExch)
                next = b;
            else
                next = apply(op, old, b);
            std::memcpy(bytes + k * op.bytes, &next, op.bytes);
            if (!is_red) {
                const Operand& d = i.operands[0];
                x.slot(op.vector == 1 ? d.slot : d.elements[size_t(k)])[l] = old;
            }
        }
    });
    return Step::kNext;
}

enum class Result : uint8_t { kReturned, kDropped };
void decode_atomic(Decoder& d, Result result) {
    const bool is_red = result == Result::kDropped;
    if (is_red && d.has("async")) return decode_red_async(d);
    AtomicOp op{};
    d.take_one({"relaxed", "acquire", "release", "acq_rel"});
    const int scope = d.take_one({"cta", "cluster", "gpu", "sys"});
    if (scope < 0 || scope >= 2) d.kernel.uses_gpu_scope_sync = true;
    op.space = take_space(d);
    d.take_cache_hints();
    d.take("noftz");
    op.op = static_cast<Atomic>(
        d.require_one({"and", "or", "xor", "exch", "add", "inc", "dec", "min", "max", "cas"}));
    op.vector = d.take_vector();
    op.type = d.require_type();
    op.bytes = uint32_t(type_bytes(op.type));
    if (op.bytes > 8) d.refuse("128-bit atomics are not supported");
    d.instr.mode = is_red;
    if (is_red) d.no_destination();
    d.keep(op);
    d.set(atomic);
}
void decode_atom(Decoder& d) {
    decode_atomic(d, Result::kReturned);
}
void decode_red(Decoder& d) {
    decode_atomic(d, Result::kDropped);
}

}  // namespace

FamilyTable atomic_families() {
    return {{"atom", decode_atom}, {"red", decode_red}};
}

}  // namespace emu
