"""Models of TensorFlow Lite: `model.tflite` in a version's directory."""
