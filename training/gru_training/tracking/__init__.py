"""Following trainings in TensorBoard, MLflow and Weights & Biases; knows no task."""
