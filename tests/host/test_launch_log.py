"""What the launcher says of a first call when asked. No GPU."""

import re

import fake_device
from test_launch import environment  # noqa: F401


def test_opening_nvrtc_and_loading_print_their_times(environment):  # noqa: F811
    output = fake_device.run(
        """
fake.fake_set_current(0)
gemm(*operands(256, 512, 1024))
""",
        {**environment, "DG_JIT_PRINT_LOAD_TIME": "1"},
    )
    assert len(re.findall(r"deep_gemm load: NVRTC '.*libnvrtc.*': found and opened in [\d.]+ ms", output)) == 1, output
    assert len(re.findall(r"deep_gemm load: sm90_fp8_gemm_1d2d \w{64}: loaded on device 0 in [\d.]+ ms", output)) == 1, output
