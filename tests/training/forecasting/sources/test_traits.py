"""Static covariates of series, from a file."""

import gzip

import numpy as np
import pytest

from gru_training.errors import ConfigError, DataError, ForeignDataError
from gru_training.forecasting.config import SeriesConfig
from gru_training.forecasting.data import read_traits

TEXT = """unique_id,size,kind,brand,constant,rare
a,10,food,x,1,p
b,20,food,y,1,q
c,30,toys,x,1,r
d,,toys,,1,s
f,99,toys,x,1,t
"""


def write(folder, text=TEXT):
    path = folder / "products.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_numbers_are_standardised_and_categories_told_apart(tmp_path):
    traits = read_traits(write(tmp_path), None, ["c", "a", "b", "d", "e"])
    assert traits.names == ("size", "kind", "brand")  # the rest is constant, or of one series each
    assert traits.absent == ("e",)
    size = (np.array([30.0, 10, 20]) - 20) / np.std([10, 20, 30])
    np.testing.assert_allclose(traits.values[:, 0], [*size, 0, 0])
    kinds = traits.values[:, 1:3]  # of two each; which comes first does not matter
    np.testing.assert_allclose(np.sort(kinds, axis=1)[:4], [[-0.5, 0.5]] * 4)
    np.testing.assert_allclose(kinds[1], kinds[2])
    np.testing.assert_allclose(kinds[0], kinds[3])
    np.testing.assert_allclose(kinds[0], -kinds[1])
    np.testing.assert_allclose(kinds[4], 0)
    brand = traits.values[:, 3]  # x; of y there is one series, and of d none is known
    np.testing.assert_allclose(brand, [1 / 3, 1 / 3, -2 / 3, 0, 0])
    assert traits.values.shape == (5, 4)


def test_what_is_no_file_of_series_is_named(tmp_path):
    with pytest.raises(ForeignDataError, match=r"--static: .* names of the series \(unique_id"):
        read_traits(write(tmp_path, "product,size\na,1\n"), None, ["a"])
    assert read_traits(write(tmp_path, "product,size\na,1\nb,2\n"), "product", "ab").names == (
        "size",
    )
    with pytest.raises(DataError, match=r"line 3.*expected each series once, got 'a' again"):
        read_traits(write(tmp_path, "unique_id,size\na,1\na,2\n"), None, ["a"])
    with pytest.raises(ConfigError, match="--static needs known inputs"):
        SeriesConfig(static=tmp_path / "products.csv")
