"""The comparison of a language model's training with that of Keras' layer, on tiny models."""

import re

import pytest

from benchmarks import language


@pytest.mark.long
def test_without_arguments_there_is_a_row_for_each_size(monkeypatch, capsys):
    tiny = {
        "few": language.Sizes(9, 4, 5, 1, 3, 4, 0),
        "many": language.Sizes(40, 4, 5, 2, 3, 4, 6),
    }
    monkeypatch.setattr(language, "SIZES", tiny)
    language.main(["--rounds", "2", "--steps", "3"])
    rows = capsys.readouterr().out.splitlines()[2:]
    row = r"\| {} \| [\d,]+ \| [\d,]+ \| \d+\.\d\d \(\d+\.\d\d, \d+\.\d\d\) \|"
    assert len(rows) == len(tiny)
    for name, line in zip(tiny, rows, strict=True):
        assert re.fullmatch(row.format(name), line)
    with pytest.raises(SystemExit):
        language.main(["--sizes", "none"])
