import re

import pytest

from app.telemetry.stages import Stages


def test_the_header_has_milliseconds_in_order_of_the_longest_image_and_metrics_have_all():
    observed = []
    stages = Stages(observe=lambda stage, seconds: observed.append((stage, seconds)))
    assert stages.server_timing == ""
    stages.add("decode", 10.0, 10.0125)
    stages.add("queue", 10.0125, 10.0125)
    assert stages.server_timing == "decode;dur=12.50, queue;dur=0.00"
    for seconds in (0.5, 2.0, 1.0):
        stages.add("decode", 0.0, seconds)
    assert stages.server_timing == "decode;dur=2000.00, queue;dur=0.00"
    assert observed[2:] == [("decode", 0.5), ("decode", 2.0), ("decode", 1.0)]
    with pytest.raises(KeyError), stages.time("store"):  # a stage that raises is timed too
        raise KeyError
    assert observed[-1][0] == "store"
    assert re.search(r", store;dur=\d+\.\d\d$", stages.server_timing)
