"""The fused sequence: weights, one step, the loop, its backward pass, and the paths it runs on."""
