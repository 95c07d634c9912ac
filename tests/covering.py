"""Fewer cases than a full product that still meet every combination of a few parameters."""

import itertools


def covering(strength, *parameters):
    """Cases in which any `strength` parameters take all combinations of their values.

    A fault that needs the interplay of at most that many parameters is met by one of the cases.
    They are chosen greedily from the full product, always the same ones.

    Args:
        strength: 2 for pairs, 3 for triples.
        parameters: The values of each.

    Returns:
        Tuples with a value of each parameter.
    """
    groups = list(itertools.combinations(range(len(parameters)), strength))

    def met(case):
        return {(group, tuple(case[i] for i in group)) for group in groups}

    cases = list(itertools.product(*(range(len(values)) for values in parameters)))
    left = set().union(*map(met, cases))
    chosen = []
    while left:
        best = max(cases, key=lambda case: len(met(case) & left))
        left -= met(best)
        chosen.append(tuple(values[i] for values, i in zip(parameters, best, strict=True)))
    return chosen
