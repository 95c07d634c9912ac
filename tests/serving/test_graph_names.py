import time

import pytest

from gru_serving.errors import from_code, without_node_names

ASSERTED = (
    "assertion failed: [history: expected shape [?, 4], got [1 2]] [Condition x == y did not hold "
    "element-wise:] [x (strided_slice:0) = ] [2] [y (assert_equal_1/y:0) = ] [4]"
)


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        (
            f"{ASSERTED}\n\t [[{{{{function_node __inference_a_25}}}}{{{{node Assert/Assert}}}}]]",
            "assertion failed: [history: expected shape [?, 4], got [1 2]] [Condition x == y did "
            "not hold element-wise:] [x = ] [2] [y = ] [4]",
        ),
        (
            "Input to reshape is a tensor with 2 values, but the requested shape has 8\n"
            "\t [[{{node StatefulPartitionedCall/Reshape}}]]",
            "Input to reshape is a tensor with 2 values, but the requested shape has 8",
        ),
        (
            "{{function_node __wrapped__IteratorGetNext_output_types_1_device_/job:localhost}} "
            "corrupted record at 7 [Op:IteratorGetNext] name: ",
            "corrupted record at 7",
        ),
        (
            "2 root error(s) found.\n  (0) INVALID_ARGUMENT: {{function_node __inference_f_9}} no "
            "number: zz\n\t [[{{node StringToNumber}}]]\n\t [[StatefulPartitionedCall/_7]]\n"
            "  (1) INVALID_ARGUMENT: {{function_node __inference_f_9}} no number: zz\n"
            "\t [[{{node StringToNumber}}]]\n0 successful operations.\n0 derived errors ignored.",
            "no number: zz",
        ),
        (
            "1 root error(s) found.\n  (0) Not found: a\n0 successful operations.\n"
            "0 derived errors ignored.",
            "a",
        ),
        ("no such key [[1, 2], [3, 4]]", "no such key [[1, 2], [3, 4]]"),
        ("{{template}} of the user's own", "{{template}} of the user's own"),
    ],
)
def test_names_of_nodes_are_left_out_and_nothing_else(message, plain):
    assert without_node_names(message) == plain
    assert from_code(3, message).message == plain


@pytest.mark.parametrize(
    "piece", [" ", "\n", "[[", "{{node ", "[x (", "\n\t [[", "{{", "1 root error(s) "]
)
def test_long_messages_take_no_long_time(piece):
    started = time.process_time()
    without_node_names("{{node a}}" + piece * 300_000)
    assert time.process_time() - started < 2
