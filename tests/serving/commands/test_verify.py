"""What `gru-serve verify` says of a server's answers, true and false ones."""

import json
import math

import pytest

from gru_serving.__main__ import main
from tests.serving.commands.lying_server import CLASSES, EVIL, GOLDEN, GOOD, RAW, Liar, metadata
from tests.serving.strange_servers import web


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(
    ("predicted", "classes", "wanted"),
    [
        (GOOD["serving_default"], CLASSES, 0),
        ({**GOOD["serving_default"], "label": [EVIL]}, CLASSES, 1),
        ({**GOOD["serving_default"], "label": ["x" * 1_000_000]}, CLASSES, 1),
        ({**GOOD["serving_default"], "scores": [[math.nan, math.nan]]}, CLASSES, 1),
        ({**GOOD["serving_default"], "scores": [0.1]}, CLASSES, 3),
        ({**GOOD["serving_default"], "scores": [["a", "b"]]}, CLASSES, 3),
        ({"label": ["good"]}, CLASSES, 3),
        (GOOD["serving_default"], {"results": [[["bad", 0.1]], []]}, 3),
        (GOOD["serving_default"], {"results": [[["bad", 0.1], ["\ud800", 0.9]]]}, 3),
        (GOOD["serving_default"], {"results": [[["bad", 0.1], [EVIL, 0.9]]]}, 1),
        (GOOD["serving_default"], {"error": EVIL}, 3),
    ],
)  # fmt: skip
def test_verify(tmp_path, capsys, predicted, classes, wanted, form):
    version = tmp_path / "m" / "1"
    (version / "assets.extra").mkdir(parents=True)
    (version / "saved_model.pb").touch()
    (version / "assets.extra" / "golden.json").write_text(json.dumps(GOLDEN))
    predict = json.dumps({"outputs": predicted}).encode()
    with web(200, Liar(metadata=metadata(), predict=predict, classify=classes),
             "application/json") as (_, url):  # fmt: skip
        status = main(["verify", str(version), "--url", url, *form])
    printed, complained = capsys.readouterr()
    assert status == wanted, complained
    assert not RAW.search(printed + complained)
    assert complained.count("\n") == (wanted != 0)
    if form:
        assert json.loads(printed)["status"] == wanted
