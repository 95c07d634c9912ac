"""Looking inside recurrent layers: gates over time, gradients through time, parameter counts.

    activity = gates_over_time(layer, inputs, mask=mask)    # z, r, g and state at every step
    plot_gates(activity).savefig("gates.png")
    flow = gradient_flow(layer, inputs)                     # how far back a gradient reaches
    flows = compare_gradient_flow(*adding_problem(steps=100))
    plot_gradient_flow(flows).savefig("flow.png")
    print(parameter_table(features=100, units=256))

The plots need matplotlib, which the extra `plot` installs.
"""

from keras_gru.introspection.flow import (
    GradientFlow,
    ParameterCount,
    adding_problem,
    compare_gradient_flow,
    gradient_flow,
    parameter_counts,
    parameter_table,
    plot_gradient_flow,
    state_jacobians,
)
from keras_gru.introspection.states import GateActivity, gates_over_time, plot_gates

__all__ = [
    "GateActivity",
    "GradientFlow",
    "ParameterCount",
    "adding_problem",
    "compare_gradient_flow",
    "gates_over_time",
    "gradient_flow",
    "parameter_counts",
    "parameter_table",
    "plot_gates",
    "plot_gradient_flow",
    "state_jacobians",
]
