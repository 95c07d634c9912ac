"""Arrays of Arrow are those of `pa.array`, without pandas."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gru_training.tables.arrow_array import arrow_array

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], pa.string()),
        (["a", "", "Zoë 👍", "x" * 1000], pa.string()),
        (["a", None, ""] * 7, pa.string()),
        ([None], pa.string()),
        (np.array([1.5, np.nan, -0.0], np.float32), pa.float32()),
        (np.arange(12, dtype=np.float32)[::3], pa.float32()),
        (np.array([], np.float32), pa.float32()),
        (np.array([2**62, -1]), pa.int64()),
        (np.array([1.5, 2]), pa.float32()),
        ([1, None, -3], pa.int64()),
        ([2**63 - 1, 0], pa.int64()),
        ([1.5, None], pa.float64()),
        ([["a"], []], pa.list_(pa.string())),
    ],
)
def test_arrays_are_those_of_arrow(values, kind):
    found, expected = arrow_array(values, kind), pa.array(values, kind)
    found.validate(full=True)
    assert found.type == kind
    assert found.null_count == expected.null_count
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


def test_half_a_surrogate_pair_is_refused_as_by_arrow():
    with pytest.raises(UnicodeEncodeError):
        pa.array(["\ud83d"], pa.string())
    with pytest.raises(UnicodeEncodeError):
        arrow_array(["\ud83d"], pa.string())


def test_pandas_is_not_loaded():
    program = (
        "import sys; import numpy as np, pyarrow as pa\n"
        "from gru_training.tables.arrow_array import arrow_array\n"
        "arrow_array(['a', None], pa.string())\n"
        "arrow_array([1, None], pa.int64())\n"
        "arrow_array(np.ones(3, np.float32), pa.float32())\n"
        "assert 'pandas' not in sys.modules\n"
        "pa.array(['a'])\n"
        "print('pandas' in sys.modules)"
    )
    said = subprocess.check_output([sys.executable, "-c", program], cwd=REPOSITORY, text=True)
    assert said == "True\n"  # else this module has no purpose any more
