// einsum and fp8_einsum: contractions as GEMMs over batches.
#pragma once

#include "contract/einsum.h"

namespace deep_gemm::ops {

using contract::EinsumCall;
using contract::Fp8EinsumCall;

// contract -> problem -> plan -> jit -> launch on CUDA tensors, the reference on CPU tensors; one launch. Asynchronous on the
// call's stream; throw Error before anything is written or launched. Thread-safe. The first call of a config compiles.
void einsum(const EinsumCall& call);
void fp8_einsum(const Fp8EinsumCall& call);

}  // namespace deep_gemm::ops
