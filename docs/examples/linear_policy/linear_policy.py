"""Joint targets that are linear in the robot's state and in what the memory says."""

import numpy as np

from trace_memory_ros import ConditionShape


class LinearPolicy:
    """targets = weight @ [state, vector] + bias; made of a checkpoint's options and `policy.` tensors."""

    def __init__(self, options, tensors):
        self.action_names = tuple(options["action_names"])
        self.condition = ConditionShape(**options["condition"])
        self.weight, self.bias = tensors["weight"].numpy(), tensors["bias"].numpy()
        wanted = (len(self.action_names), len(self.bias))
        if self.weight.shape[0] != wanted[0] or wanted[0] != wanted[1]:
            raise ValueError(f"{wanted[0]} actions, weight of {self.weight.shape}, bias of {wanted[1]}: train again")

    def reset(self):
        """Nothing is remembered here: that is what the memory is for."""

    def act(self, observation, condition):
        """This tick's targets; policy_node has compared the condition's shape with `self.condition`."""
        seen = np.concatenate([observation.state, condition.vector])
        return (self.weight @ seen + self.bias).astype(np.float32)
