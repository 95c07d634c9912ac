"""How printed numbers and calculations are judged."""

import json

import numpy as np
import pytest

from keras_gru.teaching.worked_example import (
    AGREES,
    CARRIED,
    DIFFERS,
    WorkedExample,
    evaluate,
    judge_calculation,
    load_example,
)


@pytest.mark.parametrize(
    ("calculation", "status"),
    [
        (["0.2*0.8 + 0.1*0.3", "0.16 + 0.03", "0.19"], AGREES),
        (["0.2*0.83 + 0.1*0.36", "0.17 + 0.04", "0.21"], AGREES),
        (["0.2*0.83 + 0.1*0.36", "0.17 + 0.04", "0.20"], AGREES),
        (["0.2*0.83 + 0.1*0.36", "0.17 + 0.04", "0.22"], DIFFERS),
        (["0.2*0.8 + 0.0*3.0", "0.16", "0.17"], DIFFERS),
        (["0.2*0.83 - 0.1*0.36", "0.17 - 0.04", "0.13"], AGREES),
        (["0.2*0.83 - 0.1*0.36", "0.17 + 0.04", "0.13"], DIFFERS),
        (["tanh(0.3)", "0.291"], AGREES),
        (["tanh(0.3)", "0.292"], DIFFERS),
    ],
)
def test_calculations_are_judged_stage_by_stage(calculation, status):
    assert judge_calculation({"where": "here", "calculation": calculation}).status == status


def test_a_slip_is_told_from_carried_rounding():
    fields = json.loads(json.dumps(load_example("good_movie").content["network"]))
    claims = [
        {"where": "a", "step": 0, "quantity": "z", "printed": [0.574, 0.550, 0.599]},
        {"where": "b", "step": 0, "quantity": "add", "printed": [0.426, 0.450, 0.402]},
        {"where": "c", "step": 1, "quantity": "g", "printed": [0.242, 0.137, 0.411]},
        {"where": "d", "step": 1, "quantity": "a_g", "printed": [0.247, 0.138, 0.437]},
        {"where": "e", "step": 1, "quantity": "rh", "printed": [0.073, 0.050, 0.025]},
    ]
    example = WorkedExample({"name": "x", "network": fields, "claims": claims})
    assert [v.status for v in example.verdicts] == [AGREES, DIFFERS, CARRIED, CARRIED, AGREES]


def test_unknown_example_is_named():
    with pytest.raises(KeyError, match=r"expected one of activation_tables, .*, got 'bad_movie'"):
        load_example("bad_movie")
    claim = {"where": "a", "step": 0, "quantity": "z", "printed": [0.5]}
    content = {
        "name": "x",
        "network": load_example("good_movie").content["network"],
        "claims": [claim],
    }
    with pytest.raises(
        ValueError, match=r"x: a: z: expected printed values of shape \(3,\), got \(1,\)"
    ):
        _ = WorkedExample(content).verdicts


@pytest.mark.parametrize(
    "text", ["__import__('os')", "z.real", "lambda: 1", "z[1:2]", "True", "z[z]", "1 +"]
)
def test_expressions_are_arithmetic_only(text):
    with pytest.raises(ValueError, match="expression: expected"):
        evaluate(text, {"z": np.ones(3)})
