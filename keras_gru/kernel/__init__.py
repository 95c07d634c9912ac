"""The mathematics of the layer: equations, the loop over steps, its passes, and how they run."""
