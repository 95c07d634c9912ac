"""Converted weights in PyTorch's own layer."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gru import GRU, GRUEncoder
from keras_gru.convert import (
    GRUWeights,
    from_pytorch,
    load_pytorch,
    pytorch_state_dict,
    to_pytorch,
)
from tests.keras_gru.convert.random_weights import (
    CLOSE,
    D,
    U,
    oracle_states,
    random_weights,
    sequences,
    swap_z_and_r,
)


class TestPyTorch:
    def module(self, num_layers=1, bidirectional=False, bias=True, seed=0, batch_first=True):
        torch = pytest.importorskip("torch")
        module = torch.nn.GRU(
            D, U, num_layers, bias=bias, batch_first=batch_first, bidirectional=bidirectional
        )
        rng = np.random.default_rng(seed)
        module.load_state_dict(
            {
                name: torch.from_numpy(rng.normal(size=value.shape).astype("float32"))
                for name, value in module.state_dict().items()
            }
        )
        return module

    def run(self, module, x):
        torch = pytest.importorskip("torch")
        if not module.batch_first:
            x = np.swapaxes(x, 0, 1)
        with torch.no_grad():
            outputs, final = module(torch.from_numpy(np.ascontiguousarray(x)))
        outputs = outputs.numpy()
        return (outputs if module.batch_first else np.swapaxes(outputs, 0, 1)), final.numpy()

    @pytest.mark.parametrize("batch_first", [True, False])
    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    def test_in(self, update_gate, bias, batch_first):
        module = self.module(bias=bias, batch_first=batch_first)
        layer = GRU(U, update_gate=update_gate, use_bias=bias, return_sequences=True)
        load_pytorch(layer, module)
        np.testing.assert_allclose(layer(sequences()), self.run(module, sequences())[0], **CLOSE)

    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("update_gate", ["keep", "replace"])
    def test_out(self, update_gate, bias):
        torch = pytest.importorskip("torch")
        weights = random_weights(True, update_gate, bias)
        module = self.module(bias=bias)
        module.load_state_dict({k: torch.from_numpy(v) for k, v in to_pytorch(weights).items()})
        np.testing.assert_allclose(
            self.run(module, sequences())[0], oracle_states(weights, sequences()), **CLOSE
        )

    def test_bidirectional_layer(self):
        module = self.module(bidirectional=True)
        layer = keras.layers.Bidirectional(GRU(U, return_sequences=True))
        load_pytorch(layer, module)
        np.testing.assert_allclose(layer(sequences()), self.run(module, sequences())[0], **CLOSE)
        back = pytorch_state_dict(layer)
        for name, value in module.state_dict().items():
            np.testing.assert_array_equal(back[name], value.numpy())

    def test_cell_and_parameters_that_require_gradients(self):
        torch = pytest.importorskip("torch")
        cell = torch.nn.GRUCell(D, U)
        x = sequences()[:, :1]
        with torch.no_grad():
            wanted = cell(torch.from_numpy(x[:, 0])).numpy()
        layer, loaded = GRU(U), GRU(U)
        from_pytorch(dict(cell.named_parameters())).assign_to(layer)
        load_pytorch(loaded, cell)
        for one in (layer, loaded):
            np.testing.assert_allclose(one(x), wanted, **CLOSE)
        half = {name: value.to(torch.bfloat16) for name, value in cell.named_parameters()}
        assert from_pytorch(half).kernel.dtype == np.float32

    @pytest.mark.parametrize("name", ["weight_ih_l0", "weight_hh_l0"])
    def test_reparametrised_modules_lack_a_weight(self, name):
        torch = pytest.importorskip("torch")
        normed, pruned = self.module(), self.module()
        torch.nn.utils.parametrizations.weight_norm(normed, name)
        prune = pytest.importorskip("torch.nn.utils.prune")
        prune.l1_unstructured(pruned, name, amount=0.3)
        for module in (normed, pruned):
            for target in (GRU(U), GRUEncoder(U)):
                with pytest.raises(ValueError, match=rf"missing: \['{name}'\].*{name}"):
                    load_pytorch(target, module)
                assert not target.built
        prune.remove(pruned, name)
        layer = GRU(U, return_sequences=True)
        load_pytorch(layer, pruned)
        np.testing.assert_allclose(layer(sequences()), self.run(pruned, sequences())[0], **CLOSE)

    def test_bfloat16_layer(self):
        torch = pytest.importorskip("torch")
        layer = GRU(U, dtype="bfloat16", recurrent_initializer="glorot_uniform")
        layer.build((None, None, D))
        arrays = pytorch_state_dict(layer)
        self.module().load_state_dict({k: torch.from_numpy(v) for k, v in arrays.items()})
        wanted = tf.cast(layer.cell.kernel, "float32")[:, :U]
        np.testing.assert_array_equal(arrays["weight_ih_l0"].T[:, U : 2 * U], wanted)

    def test_swapped_gates_and_unconverted_update_gate_show(self):
        """Negative controls: the comparison must fail."""
        module = self.module()
        weights = from_pytorch(module.state_dict())
        wanted, _ = self.run(module, sequences())
        np.testing.assert_allclose(oracle_states(weights, sequences()), wanted, **CLOSE)
        unconverted = GRUWeights(
            weights.kernel, weights.recurrent_kernel, weights.bias, True, "replace"
        )
        for wrong in (swap_z_and_r(weights), unconverted):
            assert np.max(np.abs(oracle_states(wrong, sequences()) - wanted)) > 0.05

    def test_other_layers_or_directions(self):
        module = self.module(num_layers=2)
        layer = GRU(U)
        with pytest.raises(ValueError, match=r"same layers and directions.*\(1, 'forward'\)"):
            load_pytorch(layer, module)
        assert not layer.built
        with pytest.raises(ValueError, match=r"units=5.*units=6"):
            load_pytorch(GRU(6), self.module())
