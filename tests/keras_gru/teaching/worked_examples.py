"""The worked examples by name, as their tests use them."""

from keras_gru.teaching.worked_example import load_examples

EXAMPLES = {example.name: example for example in load_examples()}
WITH_NETWORK = [name for name, example in EXAMPLES.items() if example.network() is not None]


def names_at(found, claim):
    steps, totals = found
    at = claim.get("step")
    return totals if at is None else steps[at]
