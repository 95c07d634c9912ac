"""Whole models as ONNX files: ONNX Runtime's GRU operator compared with Keras' own layer."""

import keras
import numpy as np
import pytest

import keras_gru
from keras_gru import GRUEncoder
from keras_gru.convert import GRUWeights, load_onnx, to_onnx_model
from tests.covering import covering
from tests.sequences_with_gaps import sequences_with_gaps

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

D, U = 5, 4
K = keras.layers
GRUS = [keras_gru.GRU, K.GRU]


def randomised(model):
    rng = np.random.default_rng(2)
    for weight in model.weights:
        if weight.dtype == "float32":
            weight.assign(
                rng.uniform(0.1, 0.6, size=weight.shape) * rng.choice([-1, 1], weight.shape)
            )
            if "variance" in weight.path:
                weight.assign(abs(weight))
    return model


def check(model, path, *inputs, tolerance=1e-5):
    """Write the file, run it in ONNX Runtime as a whole and row by row, compare with Keras."""
    randomised(model)
    to_onnx_model(model, path)
    session = onnxruntime.InferenceSession(str(path))
    names = [given.name for given in session.get_inputs()]
    for fed in (inputs, [x[:1] for x in inputs]):
        wanted = keras.tree.flatten(model(fed[0] if len(fed) == 1 else list(fed)))
        got = session.run(None, dict(zip(names, fed, strict=True)))
        assert len(got) == len(wanted)
        for ours, theirs in zip(wanted, got, strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=0, atol=tolerance)
    graph = onnx.load(path).graph
    idle = idle_nodes(graph)
    assert not idle
    return graph


def idle_nodes(graph):
    """Nodes that a runtime would run for nothing: neither a node nor the caller reads them."""
    bodies = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    read = {name for part in (graph, *bodies) for node in part.node for name in node.input}
    read |= {one.name for part in (graph, *bodies) for one in part.output}
    return [node.name for node in graph.node if read.isdisjoint(node.output)]


def operators(graph):
    return [node.op_type for node in graph.node]


@pytest.mark.parametrize("gru", GRUS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_sequences": True, "return_state": True},
        {"return_sequences": True, "return_state": True, "go_backwards": True},
        {"reset_after": False, "return_sequences": True},
        {"use_bias": False},
        {"activation": "relu", "recurrent_activation": "hard_sigmoid"},
        {"activation": "linear", "reset_after": False, "dropout": 0.3, "recurrent_dropout": 0.3},
    ],
)
def test_options(gru, options, tmp_path):
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, gru(U, **options)(inputs))
    graph = check(model, tmp_path / "m.onnx", sequences_with_gaps()[0])
    assert operators(graph).count("GRU") == 1
    assert not {"Loop", "Scan", "If"} & set(operators(graph))


@pytest.mark.parametrize("options", [{"update_gate": "replace"}, {"learn_initial_state": True}])
def test_options_of_our_own(options, tmp_path):
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, keras_gru.GRU(U, return_sequences=True, **options)(inputs))
    check(model, tmp_path / "m.onnx", sequences_with_gaps()[0])


@pytest.mark.parametrize(
    ("direction", "gru", "zero_output", "return_sequences"),
    covering(3, ["forward", "backward", "both"], GRUS, [False, True], [False, True]),
)
def test_masks_of_any_pattern(gru, direction, zero_output, return_sequences, tmp_path):
    x, mask = sequences_with_gaps()
    x, mask = np.concatenate([x, x[:2]]), np.concatenate([mask, mask[:2]])
    mask[3], mask[4, :5] = False, False  # an empty row, and one with padding on the left
    x[~mask] = 0
    layer = gru(
        U,
        return_sequences=return_sequences,
        return_state=True,
        go_backwards=direction == "backward",
        zero_output_for_mask=zero_output,
    )
    inputs = keras.Input((None, D))
    outputs = (K.Bidirectional(layer) if direction == "both" else layer)(K.Masking()(inputs))
    check(keras.Model(inputs, outputs), tmp_path / "m.onnx", x)


@pytest.mark.parametrize("merge_mode", ["concat", "sum", "ave", "mul", None])
def test_bidirectional_is_one_node(merge_mode, tmp_path):
    inputs = keras.Input((None, D))
    layer = K.Bidirectional(keras_gru.GRU(U, return_sequences=True), merge_mode=merge_mode)
    graph = check(keras.Model(inputs, layer(inputs)), tmp_path / "m.onnx", sequences_with_gaps()[0])
    assert operators(graph).count("GRU") == 1


def test_directions_that_differ_are_two_nodes(tmp_path):
    inputs = keras.Input((None, D))
    layer = K.Bidirectional(
        K.GRU(U, return_sequences=True),
        backward_layer=K.GRU(U, return_sequences=True, reset_after=False, go_backwards=True),
    )
    graph = check(keras.Model(inputs, layer(inputs)), tmp_path / "m.onnx", sequences_with_gaps()[0])
    assert operators(graph).count("GRU") == 2


@pytest.mark.parametrize("bidirectional", [False, True])
def test_encoder_between_states(bidirectional, tmp_path):
    width = U * (1 + bidirectional)
    inputs, *states = keras.Input((None, D)), keras.Input((width,)), keras.Input((width,))
    encoder = GRUEncoder(U, num_layers=2, bidirectional=bidirectional, return_state=True)
    model = keras.Model([inputs, *states], encoder(inputs, initial_state=states))
    rng = np.random.default_rng(4)
    fed = [rng.normal(size=(3, width)).astype("float32") for _ in states]
    check(model, tmp_path / "m.onnx", sequences_with_gaps()[0], *fed)


def test_a_model_of_many_layers(tmp_path):
    """Tokens and features; convolution, pooling, normalisation, merging, a nested model."""
    tokens, values = keras.Input((6,), dtype="int32"), keras.Input((6, D))
    embedded = K.Embedding(11, 4, mask_zero=True)(tokens)
    read = K.Bidirectional(keras_gru.GRU(U, return_sequences=True))(embedded)
    read = K.LayerNormalization()(K.Dropout(0.2)(read))
    pooled = K.GlobalAveragePooling1D()(read)
    hidden = K.Conv1D(8, 3, padding="causal", activation="relu")(values)
    hidden = K.MaxPooling1D(2)(K.BatchNormalization()(hidden))
    inner = keras.Sequential([keras.Input((3, 8)), K.GRU(8), K.Dense(8, activation="silu")])
    read_values = inner(hidden)
    together = K.Add()([pooled, read_values])
    spread = K.TimeDistributed(K.Dense(3, activation="softmax"))(K.RepeatVector(4)(together))
    flat = K.Reshape((2, 6))(K.Flatten()(spread))
    outputs = [K.Concatenate()([flat, flat]), pooled]
    rng = np.random.default_rng(5)
    ids = rng.integers(1, 11, (3, 6)).astype("int32")
    ids[0, 3:] = 0
    x = rng.normal(size=(3, 6, D)).astype("float32")
    check(keras.Model([tokens, values], outputs), tmp_path / "m.onnx", ids, x)


def test_sentences_of_words(tmp_path):
    """TimeDistributed around a model with a GRU and its own mask."""
    word = keras.Sequential(
        [keras.Input((6,), dtype="int32"), K.Embedding(11, 4, mask_zero=True), keras_gru.GRU(U)]
    )
    inputs = keras.Input((3, 6), dtype="int32")
    outputs = K.Dense(2)(keras_gru.GRU(U)(K.TimeDistributed(word)(inputs)))
    ids = np.random.default_rng(6).integers(0, 11, (2, 3, 6)).astype("int32")
    check(keras.Model(inputs, outputs), tmp_path / "m.onnx", ids)


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (lambda: keras_gru.GRU(U, zoneout=0.2, name="mine"), "'mine' must have zoneout=0"),
        (lambda: keras_gru.GRU(U, layer_norm=True, name="mine"), "'mine' has 1 weights"),
        (lambda: keras_gru.GRU(U, return_gates=True, name="mine"), "'mine' must have return_gates"),
        (lambda: K.GRU(U, activation="elu", name="mine"), "activation among"),
        (lambda: K.LSTM(U, name="mine"), "'mine' cannot be written as ONNX. Received: a .*LSTM"),
        (lambda: K.Dense(U, activation="gelu", name="mine"), "activation of layer 'mine'"),
        (lambda: K.Lambda(lambda x: x + 1, name="mine"), "'mine' cannot be written"),
        (lambda: K.GRU(U, name="mine", dtype="mixed_float16"), "'mine' must have the dtype policy"),
        (lambda: K.Bidirectional(K.LSTM(U), name="mine"), "'mine' must hold GRUs"),
        (lambda: lambda x: K.Dropout(0.5, name="mine")(x, training=True), "'mine' must be called"),
    ],
)
def test_what_onnx_cannot_say_is_refused_by_name(layer, told, tmp_path):
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, layer()(inputs))
    with pytest.raises(ValueError, match=told):
        to_onnx_model(model, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize(
    "mask", [lambda: K.Embedding(11, D, mask_zero=True), K.Masking], ids=["ids", "values"]
)
def test_models_that_were_loaded(mask, tmp_path):
    """Such a model contains the operations that compute masks explicitly."""
    embeds = isinstance(mask(), K.Embedding)
    x, there = sequences_with_gaps()
    x[~there] = 0
    ids = np.where(there, np.random.default_rng(8).integers(1, 11, there.shape), 0).astype("int32")
    inputs = keras.Input((7,), dtype="int32") if embeds else keras.Input((7, D))
    hidden = K.Bidirectional(keras_gru.GRU(U, return_sequences=True))(mask()(inputs))
    hidden = K.GlobalAveragePooling1D()(
        K.Dropout(0.1)(keras_gru.GRU(3, return_sequences=True)(hidden))
    )
    keras.Model(inputs, hidden).save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    check(loaded, tmp_path / "m.onnx", ids if embeds else x)


def test_a_mask_of_its_own(tmp_path):
    inputs, mask = keras.Input((None, D)), keras.Input((None,), dtype="bool")
    outputs = K.GRU(U, return_sequences=True)(inputs, mask=mask)
    check(keras.Model([inputs, mask], outputs), tmp_path / "m.onnx", *sequences_with_gaps())


def test_models_that_are_no_graph_are_refused(tmp_path):
    class Halved(keras.Model):
        def call(self, x):
            return super().call(x) / 2

    inputs = keras.Input((None, D))
    for model in (keras.Sequential([K.GRU(3)]), Halved(inputs, K.GRU(3)(inputs))):
        with pytest.raises(ValueError, match="must be a Sequential or functional model"):
            to_onnx_model(model, tmp_path / "m.onnx")


def test_weights_of_a_whole_file(tmp_path):
    inputs = keras.Input((None, D))
    first = keras_gru.GRU(U, return_sequences=True, reset_after=False, name="first")
    second = K.Bidirectional(K.GRU(3), name="second")
    model = randomised(keras.Model(inputs, second(first(inputs))))
    to_onnx_model(model, tmp_path / "m.onnx")
    loaded = load_onnx(tmp_path / "m.onnx")
    assert [len(directions) for directions in loaded.values()] == [1, 2]
    wanted = [first, second.forward_layer, second.backward_layer]
    got = [weights for directions in loaded.values() for weights in directions]
    for layer, weights in zip(wanted, got, strict=True):
        original = GRUWeights.of(layer)
        assert weights.reset_after == original.reset_after
        for name in ("kernel", "recurrent_kernel", "bias"):
            np.testing.assert_array_equal(getattr(weights, name), getattr(original, name))


def test_files_without_a_gru_are_refused(tmp_path):
    model = keras.Sequential([keras.Input((3,)), K.Dense(2)])
    to_onnx_model(model, tmp_path / "m.onnx")
    with pytest.raises(ValueError, match=r"must hold a GRU node\. Received: nodes \['Add', 'Id"):
        load_onnx(tmp_path / "m.onnx")
