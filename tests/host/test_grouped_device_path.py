"""The way of a grouped call to the driver, without a GPU, as test_device_path.py has it for dense ones."""

import pytest

from grouped_device_scenarios import SCENARIOS
from test_device_path import run_scenarios


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return run_scenarios(tmp_path_factory.mktemp("driver"), "grouped_device_scenarios.py")


@pytest.mark.parametrize("name", SCENARIOS)
def test_grouped_device_path(name, outcomes):
    assert outcomes[name] == "ok", outcomes[name]
