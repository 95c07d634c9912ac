"""Trackers of a training: TensorBoard, MLflow, Weights & Biases; the same for all tasks."""
