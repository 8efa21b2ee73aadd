"""An adversarial world for the decision core of a rotation: random histories of small clusters, and the rules that each must keep."""
