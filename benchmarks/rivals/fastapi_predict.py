"""The usual first attempt: FastAPI around `model.predict`."""

import os

import keras
import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

import keras_gru  # noqa: F401  (registers the layer)

model = keras.saving.load_model(os.environ["KERAS_FILE"])
app = FastAPI()


class Request(BaseModel):
    """Rows of tokens."""

    instances: list[list[int]]


@app.post("/predict")
async def predict(request: Request) -> dict[str, list[list[float]]]:
    """One request at a time: with several threads `predict` only becomes slower."""
    tokens = np.array(request.instances, np.int32)
    return {"predictions": model.predict(tokens, verbose=0).tolist()}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), access_log=False)
