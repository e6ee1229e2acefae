"""Causal memory for robot policies, as a ROS 2 package."""

from pkgutil import extend_path

# colcon installs the generated `trace_memory_ros.msg` beside an editable checkout;
# extending the path lets one import see both.
__path__ = extend_path(__path__, __name__)

__version__ = "0.1.0"
