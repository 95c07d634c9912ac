"""Support tickets: train a classifier on a table, look at it, label new tickets, export it.

Run it as `python docs/examples/tickets.py`; the run goes to `runs/`. Replace `made_up_tickets` by
`pd.read_csv("tickets.csv")`: any table with a column of texts and one of labels will do.
"""

import numpy as np
import pandas as pd

from gru_training import TextClassifier

PHRASES = {
    "billing": ["charged twice", "refund my invoice", "the card was declined", "wrong amount"],
    "login": ["password reset", "locked out of my account", "no code arrives", "cannot sign in"],
    "delivery": ["parcel never came", "tracking shows nothing", "wrong address", "box is broken"],
}


def made_up_tickets(rows: int) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    labels = draw.choice(list(PHRASES), rows)
    bodies = [f"Hello, {' and '.join(draw.choice(PHRASES[each], 2))}. Please help, no. {number}"
              for number, each in enumerate(labels)]  # fmt: skip
    return pd.DataFrame({"id": range(rows), "body": bodies, "category": labels})


if __name__ == "__main__":
    tickets = made_up_tickets(600)
    new = tickets.tail(100)
    classifier = TextClassifier(epochs=4, units=16, batch_size=32, name="tickets")
    classifier.fit(tickets.head(500), text="body", label="category")
    measured = classifier.evaluate(new)
    print(f"accuracy {measured['accuracy']:.1%}, macro F1 {measured['macro_f1']:.3f}")
    print(new[["id", "body"]].join(classifier.predict_frame(new)).head().to_string())
    print("report", classifier.report().path)
    print("export", classifier.export("models/tickets"))
