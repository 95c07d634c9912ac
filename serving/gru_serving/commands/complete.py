"""`gru-serve complete`: continue a text with a language model, token by token."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gru_serving.client.streaming import StreamingSession
from gru_serving.commands.connection_arguments import (
    add_target_arguments,
    check_texts,
    connect_as_told,
    run_asking,
    target_of,
)
from gru_serving.commands.terminal import (
    command_parser,
    safe_json,
    safe_text,
)
from gru_serving.errors import InvalidArgument, Unknown

_EXAMPLES = """examples:
  gru-serve complete --model reviews "The film was"
  gru-serve complete --model reviews --url localhost:8500 --temperature 0.7 --seed 3 "The film was"
  gru-serve complete --model reviews --temperature 0 --max-tokens 20 ""

The model is one of gru-train language. Each token is drawn here, on the client's side, from those
that the signature `step` names as likely; the same seed gives the same text on the same version.
The text ends where the model ends it, or after --max-tokens. An empty text begins a document.
"""
END = "[END]"
"""The token with which a language model ends a document."""
UNKNOWN = "[UNK]"
"""The token that stands for all tokens that a language model does not know."""
_STEP_OUTPUTS = ("next_token", "next_text", "log_probability")


class Piece(NamedTuple):
    """One token of a completion."""

    token: str
    text: str
    """Text that the token adds."""
    log_probability: float
    """Log-probability of the token given all before it, in nats, under the model's own
    distribution.
    """


def main(argv: Sequence[str]) -> int:
    """Complete a text; returns 0, or as `gru-serve verify` 2 or 3 for an error."""
    parser = command_parser(
        "complete",
        "Continue a text, token by token, with a served language model.",
        _EXAMPLES,
    )
    parser.add_argument("text", metavar="TEXT", help="beginning of the text")
    add_target_arguments(parser)
    group = parser.add_argument_group("drawing")
    group.add_argument(
        "--temperature", type=float, default=1.0, help="below 1 likelier tokens are drawn more "
        "often; 0 takes the likeliest (default: 1)",
    )  # fmt: skip
    group.add_argument("--top-k", type=int, metavar="K", help="draw from the K likeliest tokens")
    group.add_argument(
        "--top-p", type=float, default=1.0, metavar="SHARE",
        help="draw from the likeliest tokens that have this probability together (default: 1)",
    )  # fmt: skip
    group.add_argument("--seed", type=int, default=0, help="seed of the draws (default: 0)")
    group.add_argument(
        "--max-tokens",
        type=int,
        default=100,
        metavar="N",
        help="largest number of tokens to add (default: 100)",
    )
    parser.add_argument(
        "--output",
        choices=("text", "json"),
        default="text",
        help="form of the answer (default: %(default)s)",
    )
    return run_asking(parser, argv, _complete)


def completion(
    session: StreamingSession, text: str, sampler: NextTokenSampler, most: int
) -> Iterator[Piece]:
    """Continue a text until the model ends the document or `most` tokens are there.

    Args:
        session: Session at the beginning of a document.
        text: Beginning of the document.
        sampler: Sampler that draws the tokens.
        most: Tokens.

    Raises:
        InvalidArgument: The model is no language model.
        ServingError: The server's error.
    """
    fed = text
    for _ in range(most):
        tokens, texts, values = _next_tokens(session.feed(fed).outputs)
        chosen = sampler.choose(tokens, values)
        fed = tokens[chosen]
        if fed == END:
            return
        yield Piece(fed, texts[chosen], float(values[chosen]))


def _next_tokens(outputs: Mapping[str, np.ndarray]) -> tuple[list[str], list[str], np.ndarray]:
    """Return the K next tokens of a step, the text that each adds, and their logarithms, (K,).

    Raises:
        InvalidArgument: The step names no next tokens.
        Unknown: The outputs do not have the form of a language model's.
    """
    if not set(_STEP_OUTPUTS) <= outputs.keys():
        raise InvalidArgument(
            "expected a language model, whose signature step gives "
            f"{', '.join(_STEP_OUTPUTS)}; got {', '.join(sorted(outputs))}"
        )
    tokens, texts, values = (np.asarray(outputs[name]) for name in _STEP_OUTPUTS)
    fits = tokens.shape == texts.shape == values.shape and values.ndim == 2 and values.size
    if not fits or values.dtype.kind != "f" or not np.isfinite(values).all():
        shapes = {name: list(np.shape(outputs[name])) for name in _STEP_OUTPUTS}
        raise Unknown(
            f"the server's answer: expected next tokens with as many finite numbers; got {shapes}"
        )
    return _strings(tokens[0]), _strings(texts[0]), values[0]


def _strings(values: np.ndarray) -> list[str]:
    return [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in values]


def _complete(arguments: argparse.Namespace) -> int:
    check_texts([arguments.text], "text")
    if arguments.max_tokens < 1:
        raise InvalidArgument(f"--max-tokens must be at least 1, got {arguments.max_tokens}")
    sampler = NextTokenSampler(
        arguments.temperature, arguments.top_k, arguments.top_p, arguments.seed
    )
    with connect_as_told(arguments) as client:
        metadata = client.metadata(arguments.model, **target_of(arguments))
        step = metadata.signatures.get("step")
        if step is None or not set(_STEP_OUTPUTS) <= step.outputs.keys():
            raise InvalidArgument(
                f"--model {arguments.model}: expected a language model, as gru-train language "
                "trains; got one that names no next tokens"
            )
        session = StreamingSession(
            client,
            arguments.model,
            version=arguments.version,
            label=arguments.label,
            patience=arguments.timeout,
        )
        pieces = completion(session, arguments.text, sampler, arguments.max_tokens)
        if arguments.output == "json":
            for piece in pieces:
                print(safe_json(json.dumps(piece._asdict(), ensure_ascii=False)), flush=True)
            return 0
        first = list(itertools.islice(pieces, 1))  # asked for here: an error is to stand alone
        _write(arguments.text)
        begun = bool(arguments.text)
        for piece in itertools.chain(first, pieces):
            _write(piece.text if begun else piece.text.removeprefix(" "))
            begun = True
        print()
    return 0


def _write(text: str) -> None:
    """Write a part of a text with line breaks as such and other control characters escaped."""
    print("\n".join(map(safe_text, text.split("\n"))), end="", flush=True)


class NextTokenSampler:
    """Draws tokens; the draws are the same for the same seed and probabilities.

    Args:
        temperature: Log-probabilities are divided by it; 0 takes the likeliest token.
        top_k: Number of the likeliest tokens to draw from; None for all that are named.
        top_p: Probability that the likeliest tokens to draw from have together (Holtzman et al.
            2020, arXiv:1904.09751).
        seed: Seed of the draws.

    Raises:
        InvalidArgument: A setting is out of range.
    """

    def __init__(
        self,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        seed: int = 0,
    ) -> None:
        if not 0 <= temperature < float("inf"):
            raise InvalidArgument(f"temperature must be a number from 0, got {temperature}")
        if top_k is not None and top_k < 1:
            raise InvalidArgument(f"top_k must be at least 1, got {top_k}")
        if not 0 < top_p <= 1:
            raise InvalidArgument(f"top_p must be above 0 and at most 1, got {top_p}")
        if seed < 0:
            raise InvalidArgument(f"seed must be at least 0, got {seed}")
        self._temperature, self._top_k, self._top_p = temperature, top_k, top_p
        self._rng = np.random.default_rng(seed)

    def choose(self, tokens: Sequence[str], log_probabilities: np.ndarray) -> int:
        """Choose the place of the next token; unknown tokens are never chosen.

        Args:
            tokens: K of them.
            log_probabilities: (K,) natural logarithms.

        Raises:
            InvalidArgument: Every token is unknown.
        """
        known = np.array([place for place, token in enumerate(tokens) if token != UNKNOWN], int)
        if not len(known):
            raise InvalidArgument(f"expected a token to go on with, got {list(tokens)}")
        values = np.asarray(log_probabilities, np.float64)[known]
        order = np.argsort(-values, kind="stable")[: self._top_k]
        if self._temperature == 0:
            return int(known[order[0]])
        scaled = values[order] / self._temperature
        shares = np.exp(scaled - scaled.max())
        shares /= shares.sum()
        # All tokens until the sum of their shares reaches top_p, including the one that reaches it.
        reached = np.cumsum(shares)
        count = int(np.searchsorted(reached, self._top_p * (1 - 1e-12))) + 1
        reached = reached[:count]
        drawn = np.searchsorted(reached, self._rng.random() * reached[-1], side="right")
        return int(known[order[min(int(drawn), len(reached) - 1)]])
