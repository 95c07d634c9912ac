import pytest

from gru_training.data.label_names import misspellings, spellings


def test_case_blanks_and_forms_of_numbers_are_spellings():
    counts = {"billing": 90, "BILLING": 3, " Billing": 5, "bug": 9, "1": 2, "1.0": 8, "nan": 4}
    assert spellings(counts) == [["billing", " Billing", "BILLING"], ["1.0", "1"]]
    assert spellings({"a": 1, "b": 2, "nan": 1, "NaN": 1}) == []


@pytest.mark.parametrize(
    ("rare", "frequent"),
    [
        ("billin", "billing"),  # one letter missing
        ("billling", "billing"),
        ("billimg", "billing"),
        ("cancle", "cancel"),  # two swapped
        ("BILLIN", "billing"),
    ],
)
def test_a_rare_label_one_letter_apart_may_be_a_misspelling(rare, frequent):
    assert misspellings({rare: 4, frequent: 100, "else": 100}) == [(rare, frequent)]


@pytest.mark.parametrize(
    "counts",
    [
        {"male": 500, "female": 500},
        {"billing in": 5, "billing out": 900},
        {"ward 1": 5, "ward 2": 900},  # only the numbers differ
        {"bug": 5, "bugs": 900},  # too short to tell
        {"cares": 90, "cases": 100},  # both are frequent
    ],
)
def test_labels_that_are_meant_are_left_alone(counts):
    assert misspellings(counts) == []
