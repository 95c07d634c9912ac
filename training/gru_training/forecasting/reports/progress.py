"""What a training says of its choices while it runs."""

from collections.abc import Collection, Sequence

from rich.console import Console

from gru_training.forecasting.combination.plan import Plan
from gru_training.forecasting.combination.share import Share
from gru_training.forecasting.data import ForecastingData
from gru_training.forecasting.sources.sets import PARTS


def show_data(data: ForecastingData, shown: Collection[str], console: Console) -> None:
    """Say what is trained on; notes that were shown already are left out."""
    series, shape = data.series, data.shape
    console.print(
        f"data {series.name}: {len(series):,} rows every {series.frequency}, "
        f"{shape.channels} columns, {len(shape.targets)} of them forecast "
        f"{shape.horizon} steps ahead from {shape.lookback}",
        markup=False,
        highlight=False,
    )
    windows = ", ".join(f"{len(data.windows(part)):,} {part}" for part in PARTS)
    split = "published borders" if data.published else "split by time"
    console.print(f"windows: {windows} ({split})", markup=False, highlight=False)
    for note in series.notes:
        if note in shown:
            continue
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False)


def show_plan(plan: Plan, console: Console) -> None:
    """Say what was chosen on validation windows before the networks are trained."""
    if not plan.combines:
        return
    settings = plan.config.data
    if len(plan.transforms) > 1:
        tried = ", ".join(f"{name} {error:.4f}" for name, error in plan.transforms)
        console.print(
            f"transform: {settings.transform} ({plan.criterion} of the simple forecasters on the "
            f"validation windows: {tried})",
            markup=False,
            highlight=False,
        )
    segments = f", in segments of {plan.config.model.segment}"
    console.print(
        f"look-back: {settings.lookback} steps; the networks read {plan.network_lookback}"
        f"{segments if plan.config.model.architecture == 'segment' else ''}",
        markup=False,
        highlight=False,
    )


def show_shares(shares: Sequence[Share], criterion: str, console: Console) -> None:
    """Say how well each part validates by what the weights follow, and what it weighs."""
    if not shares:
        return
    width = max(len(share.name) for share in shares)
    console.print(
        f"\n{'part':{width}}  weight  {criterion}, validation", style="bold", soft_wrap=True
    )
    for share in sorted(shares, key=lambda share: share.validation_loss):
        weight = f"{share.weight:.2f}" if share.weight else "-"
        console.print(
            f"{share.name:{width}}  {weight:>6}  {share.validation_loss:.4f}  {share.detail}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
