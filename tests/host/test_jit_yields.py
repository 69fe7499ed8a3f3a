"""Which FP32 instructions of a cubin yield: what a source says, and nothing else, is what the image does."""

import struct

import pytest
from jit_support import ENTRY, kernel, load_extension, run

_C = load_extension()

FMUL, FFMA = 0x220, 0x223
COUNTED = {"FFMA": FFMA, "FMUL": FMUL}
SCHEDULING = ((1 << 4) - 1) << 122 | 1 << 109  # bits of an instruction: operands to reuse, does not yield

SHAPES = [
    ("FFMA", (4096, 4096, 7168), {}),
    ("FFMA", (4096, 576, 7168), {}),
    ("FFMA", (1, 4096, 7168), {}),
    ("FMUL", (4096, 4096, 7168), {"recipe": (1, 1, 128)}),
]


def printed(shape, arguments):
    choice = _C.plan_fp8_gemm(*shape, **arguments)
    return _C.print_fp8_gemm_source(choice["config"])


def code_of(image, entry):
    """(offset, size) of an entry's code, by the section table."""
    table, size, count, names = struct.unpack_from("<Q10xHHH", image, 0x28)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + i * size) for i in range(count)]
    for name, _, _, _, offset, length, *_ in sections:
        start = sections[names][4] + name
        if image[start : image.index(b"\0", start)] == f".text.{entry}".encode():
            return offset, length
    raise AssertionError(f"no code of {entry}")


def instructions(image, entry):
    offset, length = code_of(image, entry)
    return [int.from_bytes(image[i : i + 16], "little") for i in range(offset, offset + length, 16)]


def stall(word):
    return word >> 105 & 15


def concerned(word, *opcodes):
    """Without a predicate, and no stall that must yield to last."""
    return word & 0xFFF in opcodes and word >> 12 & 15 == 7 and 0 < stall(word) < 12


@pytest.mark.parametrize("kind, shape, arguments", SHAPES)
def test_every_nth_yields_and_only_scheduling_changes(kind, shape, arguments):
    source = printed(shape, arguments)
    line, plain = source["text"].split("\n", 1)
    assert line.startswith(f"//! yields: {kind} ") and "//!" not in plain
    every = int(line.rsplit(" ", 1)[1])
    assert every > 1
    entry = source["entry"]
    told, _, _ = _C.jit_build(entry, source["text"], 9, 0)
    untold, _, _ = _C.jit_build(entry, plain, 9, 0)
    offset, length = code_of(untold, entry)
    assert (told[:offset], told[offset + length :]) == (untold[:offset], untold[offset + length :])
    counted = 0
    for after, before in zip(instructions(told, entry), instructions(untold, entry)):
        if not concerned(after, FMUL, FFMA):
            assert after == before
            continue
        assert after & ~SCHEDULING == before & ~SCHEDULING
        is_counted = concerned(after, COUNTED[kind])
        counted += is_counted
        assert (after >> 109 & 1 == 0) == (is_counted and counted % every == 0)
    assert counted > every


def registers(word):
    """The registers of an FMUL or FFMA: destination, sources by slot."""
    sources = [word >> bit & 255 for bit in ((24, 32, 64) if word & 0xFFF == FFMA else (24, 32))]
    return word >> 16 & 255, sources


@pytest.mark.parametrize("kind, shape, arguments", SHAPES)
def test_operands_are_marked_for_reuse_where_the_next_instruction_reads_the_same_register(kind, shape, arguments):
    source = printed(shape, arguments)
    words = instructions(_C.jit_build(source["entry"], source["text"], 9, 0)[0], source["entry"])
    marked = 0
    for word, following in zip(words, words[1:]):
        if not concerned(word, FMUL, FFMA):
            continue
        expected = 0
        if word >> 109 & 1 == 1 and stall(word) <= 2 and following & 0xFFF in (FMUL, FFMA) and following >> 12 & 15 == 7:
            (written, sources), (_, next_sources) = registers(word), registers(following)
            for slot, (mine, theirs) in enumerate(zip(sources, next_sources)):
                expected |= (mine == theirs and mine not in (written, 255)) << slot
        assert word >> 122 & 15 == expected
        marked += expected != 0
    assert marked > 0


def forged(image, entry, stalls):
    """The image with every unconditional FFMA stalling for `stalls` cycles, and yielding."""
    offset, length = code_of(image, entry)
    code = bytearray(image)
    for place in range(offset, offset + length, 16):
        word = int.from_bytes(image[place : place + 16], "little")
        if concerned(word, FFMA):
            word = word & ~(15 << 105 | 1 << 109) | stalls << 105
            code[place : place + 16] = word.to_bytes(16, "little")
    return bytes(code)


@pytest.mark.parametrize("stalls, kept", [(0, True), (1, False), (11, False), (12, True), (15, True)])
def test_stalls_of_0_and_of_12_and_more_are_left_alone(stalls, kept):
    """Ragged 64x32 tiles have such an FFMA, ahead of a branch on a predicate that takes 12 cycles."""
    source = printed((4096, 576, 7168), {})
    image, _, _ = _C.jit_build(source["entry"], source["text"].split("\n", 1)[1], 9, 0)
    before = forged(image, source["entry"], stalls)
    after, _ = _C.jit_apply_yields(before, source["entry"], "//! yields: FFMA 1000\n")
    offset, length = code_of(image, source["entry"])
    pairs = [(int.from_bytes(after[i : i + 16], "little"), int.from_bytes(before[i : i + 16], "little")) for i in range(offset, offset + length, 16)]
    ffma = [(new, old) for new, old in pairs if old & 0xFFF == FFMA and old >> 12 & 15 == 7 and stall(old) == stalls]
    assert len(ffma) > 100
    assert all((new == old) == kept for new, old in ffma)


RULES = [
    ((1, 576, 7168), {}, "FFMA 5"),
    ((1, 32768, 512), {}, "FFMA 6"),
    ((1, 7168, 2048), {}, None),
    ((64, 24576, 1536), {}, None),
    ((128, 24576, 1536), {}, None),
    ((512, 4096, 7168), {}, "FFMA 6"),
    ((4096, 4096, 7168), {}, "FFMA 6"),
    ((4096, 24576, 1536), {}, "FFMA 5"),
    ((4096, 576, 7168), {}, "FFMA 3"),
    ((4096, 4096, 7168), {"recipe": (1, 1, 128)}, "FMUL 2"),
    ((64, 4096, 7168), {"recipe": (1, 1, 128)}, "FMUL 3"),
    ((7168, 2048, 2048), {"recipe": (1, 1, 128), "grouping": "k_grouped", "num_groups": 16, "d_dtype": "f32"}, "FMUL 2"),
    ((1024, 6144, 7168), {"grouping": "masked", "num_groups": 32, "expected_m": 192}, "FFMA 8"),
    ((192, 6144, 7168), {"grouping": "masked", "num_groups": 32}, "FFMA 5"),
    ((6144, 6144, 7168), {"grouping": "psum", "num_groups": 32}, None),
    ((32768, 6144, 7168), {"grouping": "contiguous", "num_groups": 4}, None),
]


@pytest.mark.parametrize("shape, arguments, rule", RULES)
def test_rules_of_the_planner(shape, arguments, rule):
    first = printed(shape, arguments)["text"].split("\n", 1)[0]
    assert first == f"//! yields: {rule}" if rule else first.startswith("#include")


def test_the_line_means_nothing_for_ptx():
    assert _C.jit_build(ENTRY, "//! yields: nonsense\n" + kernel(), 9, 0, "ptx")[0] == _C.jit_build(ENTRY, kernel(), 9, 0, "ptx")[0]


def test_the_rule_is_in_the_digest():
    assert _C.jit_digest(ENTRY, "//! yields: FFMA 6\n" + kernel(), 9, 0) != _C.jit_digest(ENTRY, "//! yields: FFMA 5\n" + kernel(), 9, 0)


@pytest.mark.parametrize("said", ["FFMA", "FFMA ", "FFMA 0", "FFMA -1", "FFMA 2 x", "FADD 2", "FP32 2", "", "FFMA 65537", "FMUL 2.5", "ffma 2", "FFMA 2 ", "FFMA 2\r"])
def test_a_rule_said_wrongly_is_refused(said):
    with pytest.raises(RuntimeError, match="source: expected '//! yields: FFMA n' or '//! yields: FMUL n' with n from 1 to 65536 as its first line, got"):
        _C.jit_build(ENTRY, f"//! yields: {said}\n{kernel()}", 9, 0)


@pytest.mark.parametrize("ahead", ["\n", " ", "#define A 1\n", "// first\n"])
def test_only_the_first_line_says_it(ahead):
    text = ahead + "//! yields: nonsense\n" + kernel()
    image, _, _ = _C.jit_build(ENTRY, text, 9, 0)
    assert _C.jit_apply_yields(image, ENTRY, text) == (image, 0)


FUSED = """extern "C" __global__ void scale_by(float* x) {
    for (int i = 0; i < 8; ++i) x[i] = __fmaf_rn(x[i + 8], x[i + 16], x[i + 24]);
}
"""


def test_only_sm90_is_told():
    for major, told in ((9, True), (10, False)):
        images = [_C.jit_build(ENTRY, rule + FUSED, major, 0)[0] for rule in ("//! yields: FFMA 1\n", "//! yields: FFMA 1000\n")]
        assert (images[0] != images[1]) == told


def test_a_rule_that_concerns_no_instruction_is_reported(tmp_path):
    done = run('_C.jit_build(ENTRY, "//! yields: FFMA 2\\n" + kernel(), 9, 0)', DG_JIT_CACHE_DIR=tmp_path)
    assert f"kernel '{ENTRY}': its source says which instructions yield, and no such instruction was found" in done.err


def test_what_is_no_cubin_of_the_entry_stays_as_it_is():
    rule = "//! yields: FFMA 2\n"
    source = printed((4096, 576, 7168), {})
    image, _, _ = _C.jit_build(source["entry"], source["text"], 9, 0)
    assert _C.jit_apply_yields(image, source["entry"], rule)[1] > 100
    assert _C.jit_apply_yields(image, "other", rule) == (image, 0)
    for junk in (b"", b"\x7fELF", image[:64], b"x" * 5000, b"\x7fELF" + b"\xff" * 5000):
        assert _C.jit_apply_yields(junk, source["entry"], rule) == (junk, 0)


def test_damaged_cubins_change_in_nothing_but_scheduling_if_at_all():
    """Each field of header and section table full of ones, and files cut off anywhere."""
    source = printed((1, 576, 7168), {})
    image, _, _ = _C.jit_build(source["entry"], source["text"].split("\n", 1)[1], 9, 0)
    table, size, count, _ = struct.unpack_from("<Q10xHHH", image, 0x28)
    damaged = [image[:place] + b"\xff\xff\xff\xff" + image[place + 4 :] for place in [*range(4, 64, 2), *range(table, table + size * count, 4)]]
    damaged += [image[:length] for length in range(0, len(image), 97)]
    applied = 0
    for before in damaged:
        after, concerned_count = _C.jit_apply_yields(before, source["entry"], "//! yields: FFMA 2\n")
        assert len(after) == len(before) and (concerned_count > 0 or after == before)
        applied += concerned_count > 0
    assert 0 < applied < len(damaged)
