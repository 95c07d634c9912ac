"""Checks of a caller's inputs, with the error texts of an Assert in TensorFlow's graph."""

from dataclasses import dataclass
from typing import Any

from gru_serving.preprocessing.description import SharedStep, Step, Values
from gru_serving.preprocessing.operations import failed, tensors


@dataclass(frozen=True)
class RequireShape(Step, kind="require_shape"):
    """Refuses another number of axes, or another size of a fixed axis.

    Servers do not compare inputs with the signature, and a single column would be broadcast over
    all.

    Attributes:
        source: Value that is checked.
        sizes: Sizes of its axes; None for any.
    """

    source: str
    sizes: tuple[int | None, ...]

    def numpy(self, values: Values) -> None:
        """Compare the shape."""
        shape = values[self.source].shape
        if len(shape) != len(self.sizes) or any(
            wanted is not None and size != wanted
            for size, wanted in zip(shape, self.sizes, strict=True)
        ):
            raise failed(f"{self._said}{', '.join(map(str, shape))}]")

    def graph(self, values: Values) -> None:
        """Compare the shape."""
        import tensorflow as tf

        value = values[self.source]
        # The shape is hidden from graph optimizers, which would otherwise fold the check to true.
        hidden = tf.raw_ops.PlaceholderWithDefault(input=value, shape=tf.TensorShape(None))
        fed = tf.shape(hidden)
        fits = tf.equal(tf.size(fed), len(self.sizes))
        for axis, size in enumerate(self.sizes):
            if size is not None:  # of too few axes there is nothing to compare, nor to fail on
                fits &= tf.reduce_all(tf.equal(fed[axis : axis + 1], size))
        got = tf.strings.reduce_join(tf.strings.as_string(fed), separator=", ")
        tensors().require(values, self.source, fits, lambda: [self._said, got, "]"])

    @property
    def _said(self) -> str:
        expected = ", ".join("?" if size is None else str(size) for size in self.sizes)
        return f"{self.source}: expected shape [{expected}], got ["


@dataclass(frozen=True)
class RequireRows(SharedStep, kind="require_rows"):
    """Refuses another number of rows than the history has.

    Attributes:
        source: Value that is checked.
        history: History.
    """

    source: str
    history: str = "history"

    def do(self, values: Values, ops: Any) -> None:
        """Compare the rows."""
        rows, got = (ops.shape(values[name])[0] for name in (self.history, self.source))
        said = f"{self.source}: expected a row for each of the ", f" of {self.history}, got "
        ops.require(values, self.source, got == rows, lambda: [said[0], rows, said[1], got])


@dataclass(frozen=True)
class RequireSteps(SharedStep, kind="require_steps"):
    """Refuses histories with too few steps.

    Attributes:
        source: History (B, T, ...).
        least: Least number of steps.
    """

    source: str
    least: int

    def do(self, values: Values, ops: Any) -> None:
        """Count the steps."""
        length = ops.shape(values[self.source])[1]
        said = f"{self.source}: expected at least {self.least} steps, got "
        ops.require(values, self.source, length >= self.least, lambda: [said, length])


@dataclass(frozen=True)
class RequireFinite(SharedStep, kind="require_finite"):
    """Refuses infinite values.

    Attributes:
        source: Value that is checked.
    """

    source: str

    def do(self, values: Values, ops: Any) -> None:
        """Check the values."""
        if ops.whole(values[self.source]):
            return
        said = f"{self.source}: expected finite numbers, or NaN where missing, got infinity"
        none = ops.all(~ops.isinf(values[self.source]))
        ops.require(values, self.source, none, lambda: [said])


@dataclass(frozen=True)
class RequireSome(SharedStep, kind="require_some"):
    """Refuses histories without any value.

    Attributes:
        source: Histories (B, T).
    """

    source: str

    def do(self, values: Values, ops: Any) -> None:
        """Check the values."""
        empty = ops.all(ops.isnan(values[self.source]), axis=1)
        ops.require(
            values,
            self.source,
            ops.all(~empty),
            lambda: [f"{self.source}: row ", ops.first(empty)[0], " has no value; expected at "
                     "least one"],
        )  # fmt: skip


@dataclass(frozen=True)
class RequireValues(SharedStep, kind="require_values"):
    """Refuses windows in which a column that is read has no value.

    Attributes:
        source: Windows (B, T, C) of the steps read.
        columns: Numbers of the columns that are read.
        names: Names of these columns.
    """

    source: str
    columns: tuple[int, ...]
    names: tuple[str, ...]

    def do(self, values: Values, ops: Any) -> None:
        """Check the values."""
        read = values[self.source]
        if ops.whole(read):
            return
        empty = ops.take(ops.all(ops.isnan(read), axis=1), self.columns)

        def said() -> list[Any]:
            row, column = ops.first(empty)
            name, steps = ops.take(ops.texts(self.names), column), ops.shape(read)[1]
            return ["history: row ", row, " has no value of column ", name,
                    " in the steps read, the last ", steps,
                    "; expected at least one that is not NaN"]  # fmt: skip

        ops.require(values, self.source, ops.all(~empty), said)
