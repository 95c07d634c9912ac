"""The built wheel in an environment of its own: bare, as a client, with the layer, with all."""

import json

import numpy as np
import pytest

from tests.packaging.fresh_environment import requirement, uv
from tests.serving.servers import running

pytestmark = pytest.mark.wheel
HEAVY = {"tensorflow", "keras", "pandas", "scikit-learn", "starlette", "matplotlib"}
X = np.random.default_rng(27).normal(size=(5, 3)).astype("float32")
B = np.arange(5, dtype="float32")[:, None]
Y = X @ np.array([[1, 2], [3, 4], [5, 6]], "float32") + B  # what the server's model computes
ASK = f"""
import json, sys, warnings
from pathlib import Path

warnings.simplefilter("error")
import numpy as np
import gru_serving
from gru_serving.client import connect

assert Path(sys.prefix) in Path(gru_serving.__file__).parents, gru_serving.__file__
x, b = np.array({X.tolist()}, "float32"), np.array({B.tolist()}, "float32")
with connect(ADDRESS) as client:
    y = client.predict({{"x": x, "b": b}}, "affine")["y"]
assert "tensorflow" not in sys.modules
print(json.dumps(y.tolist()))
"""


def test_base(environment):
    """It can be imported, prints its help, and names the extra for everything else."""
    base = environment()
    assert HEAVY.isdisjoint(base.packages())
    base.python("import gru_serving, gru_serving.errors, gru_training")
    assert base.run("gru-serve", "--help").stdout.startswith("usage: gru-serve COMMAND")
    base.asks_for("train", "gru-train", "sentiment")
    base.asks_for("serve", "gru-serve", "serve", "--port=1")
    base.asks_for("client", "gru-serve", "predict", "a text")
    base.asks_for("train", "gru-serve", "export", "runs/none", "--to", "models")
    for module, extra in (("keras_gru", "layer"), ("gru_serving.client", "client")):
        done = base.run("python", "-c", f"import {module}")
        assert done.stderr.endswith(f"install it with pip install 'keras-gru[{extra}]'\n")


def test_client(environment, affine, tmp_path):
    """Asks a server of this checkout over both transports, in Python and on the command line."""
    client = environment("client")
    assert HEAVY.isdisjoint(client.packages())
    body = {"inputs": {"x": X.tolist(), "b": B.tolist()}}
    (client.work / "ask.json").write_text(json.dumps(body))
    flags = ("--model_name=affine", f"--model_base_path={affine}")
    with running(tmp_path / "log", *flags) as server:
        for url in (server.rest, f"grpc://{server.grpc}"):
            answer = json.loads(client.python(ASK.replace("ADDRESS", repr(url))))
            np.testing.assert_allclose(answer, Y, rtol=1e-5)
            asked = ("--url", url, "--model", "affine", "--json", "ask.json", "--output", "json")
            done = client.run("gru-serve", "predict", *asked)
            assert done.returncode == 0, done.stderr
            rows = [row["y"] for row in json.loads(done.stdout)["predictions"]]
            np.testing.assert_allclose(rows, Y, rtol=1e-5)
    client.asks_for("serve", "gru-serve", "inspect", str(affine))
    client.asks_for(
        "tables", "gru-serve", "predict", "--model=m", "--data=in.csv", "--output=out.csv"
    )
    client.asks_for("train", "gru-train", "sentiment")


@pytest.mark.slow
def test_layer(environment):
    """A small model is fitted, saved and loaded; a picture needs another extra."""
    layer = environment("layer")
    assert {"pandas", "httpx", "matplotlib"}.isdisjoint(layer.packages())
    printed = layer.python(
        "import keras, numpy as np\n"
        "from keras_gru import GRU\n"
        "from keras_gru.introspection import gates_over_time, plot_gates\n"
        "x = np.random.default_rng(0).normal(size=(64, 6, 2)).astype('float32')\n"
        "model = keras.Sequential([keras.Input((6, 2)), GRU(8), keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\n"
        "history = model.fit(x, x.sum((1, 2))[:, None], epochs=5, verbose=0)\n"
        "assert history.history['loss'][-1] < history.history['loss'][0]\n"
        "model.save('small.keras')\n"
        "loaded = keras.models.load_model('small.keras')\n"
        "np.testing.assert_array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))\n"
        "try:\n"
        "    plot_gates(gates_over_time(model.layers[0], x))\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    assert printed.endswith("pip install 'keras-gru[plot]'\n")
    layer.succeeds("python", "-m", "keras_gru", "trace", "good_movie")
    layer.add("plot")
    layer.python(
        "import numpy as np\n"
        "from keras_gru import GRU\n"
        "from keras_gru.introspection import gates_over_time, plot_gates\n"
        "plot_gates(gates_over_time(GRU(4), np.ones((1, 3, 2), 'float32'))).savefig('gates.png')\n"
    )
    assert (layer.work / "gates.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_all(environment):
    """Every module can be imported, and no package lacks another."""
    everything = environment("all")
    everything.python(
        "import importlib, pkgutil\n"
        "for name in ('keras_gru', 'gru_training', 'gru_serving'):\n"
        "    package = importlib.import_module(name)\n"
        "    for found in pkgutil.walk_packages(package.__path__, f'{name}.'):\n"
        "        importlib.import_module(found.name)\n"
    )
    uv("pip", "check", "--python", everything.folder)


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["interop", "docs", "dev"])
def test_the_extras_for_contributors_can_be_installed(environment, extra):
    base = environment()
    uv(*base.install, "--dry-run", requirement(extra))
