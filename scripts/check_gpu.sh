#!/usr/bin/env bash
# Everything that needs a GPU, in one go, into one folder: correctness first, each part with a time limit of its own.
#   scripts/check_gpu.sh [FOLDER]     (default: build/gpu; the extension must be built)
# Times, from an idle H200: about 4 minutes. Timings come last and alone.
set -uo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-build/gpu}")
mkdir -p "$out"
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}  # many processes at once: threads that wait for a core spin

part() { # name, seconds, command...: runs it, keeps its output, says how it ended
    local name=$1 limit=$2
    shift 2
    timeout "$limit" "$@" > "$out/$name.txt" 2>&1
    printf '%-12s exit %-3d after %4d s   %s\n' "$name" $? "$SECONDS" "$(grep -v '^$' "$out/$name.txt" | tail -n 1 | cut -c1-120)"
}

gpu_tests() { part "$1" 240 python -m pytest -q -m gpu -p no:cacheprovider "${@:2}"; }

part cold 120 python scripts/cold_call.py
gpu_tests dense tests/kernels/test_fp8_gemm.py &
gpu_tests grouped tests/kernels/test_m_grouped_fp8.py tests/kernels/test_grouped_fp8_gemm.py &
gpu_tests bf16 tests/kernels/test_bf16_gemm.py tests/kernels/test_grouped_bf16_gemm.py &
gpu_tests host tests/host/test_utils_math.py tests/host/test_utils_layout.py tests/host/test_testing.py &
gpu_tests k_grouped tests/kernels/test_k_grouped_gemm.py &
gpu_tests rest tests/kernels --ignore tests/kernels/test_fp8_gemm.py --ignore tests/kernels/test_m_grouped_fp8.py \
    --ignore tests/kernels/test_grouped_fp8_gemm.py --ignore tests/kernels/test_k_grouped_gemm.py \
    --ignore tests/kernels/test_bf16_gemm.py --ignore tests/kernels/test_grouped_bf16_gemm.py &
if command -v compute-sanitizer > /dev/null; then
    part memcheck 240 compute-sanitizer --tool memcheck --error-exitcode 9 python scripts/small_problems.py &
    DG_JIT_FOR_RACECHECK=1 part racecheck 240 compute-sanitizer --tool racecheck --error-exitcode 9 python scripts/small_problems.py &
fi
part emulator 240 python tests/emulator/replay.py --record --file "$out/h200.json" &
part digests 120 python tests/emulator/library_digests.py --device cuda --file "$out/h200_library.json" &
wait
part host_time 60 python scripts/host_time.py --json "$out/host_time.json"
part bench 240 python scripts/bench.py --out "$out/fp8_dense.json"
part bench_bf16 240 python scripts/bench.py --rounds 9 --shapes scripts/shapes/bf16_dense.json --out "$out/bf16_dense.json"
part bench_moe 240 python scripts/bench_grouped.py --out "$out/m_grouped.json"
part bench_k 120 python scripts/bench_k_grouped.py
