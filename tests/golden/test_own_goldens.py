"""The project's own goldens through its own plugin: figures that were worked out apart from this code.

``make test`` also checks every golden below fixtures/golden (``pytest --golden fixtures/golden``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from nvprof_tools.golden.assertions import Golden


@pytest.mark.golden("fixtures/golden/p9_gw2")
def test_the_published_contradiction_resolved(golden: Golden) -> None:
    """Brackets 100 %, kernels 63.6 %, SMs active 56.4 %; pinning 107.4 of 2,044.5 ms in the sections."""
    golden.assert_rung("timeline_bracket", above=0.998)
    golden.assert_rung("mutex_held", above=0.984, below=0.988)
    golden.assert_rung("kernel_busy", above=0.634, below=0.638)
    golden.assert_rung("sm_active", above=0.562, below=0.566)
    golden.assert_share("host_register", above=0.0520, below=0.0530)
    golden.assert_share("mutex_wait", above=0.3674, below=0.3684)
    golden.assert_budget("unattributed", "= 0 ms")


@pytest.mark.golden("fixtures/golden/sim_w2")
def test_pinning_idles_a_third_of_a_device(golden: Golden) -> None:
    """Device view: host_register 135.3 of 350.0 ms, kernel 71.7."""
    golden.assert_share("host_register", of="devices", above=0.385, below=0.388)
    golden.assert_share("kernel", of="devices", above=0.203, below=0.206)


@pytest.mark.golden("fixtures/golden/p9_gw2_second_proof")
def test_hidden_names_keep_their_stages(golden: Golden) -> None:
    (device,) = golden.attribution.devices
    assert {"ntt", "msm", "pointwise"} == set(device.stages)
    assert sum(device.stages.values()) == device.categories["kernel"]
