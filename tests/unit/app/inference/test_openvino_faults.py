"""What the graphs have in place of that which OpenVINO computes wrongly, in the installed version."""

import pytest

from tests.support.openvino_faults import FAULTS


@pytest.mark.parametrize("fault", FAULTS)
def test_the_form_of_the_graphs_gives_the_right_numbers(fault):
    _, form = FAULTS[fault]
    assert form.wrong() == 0
