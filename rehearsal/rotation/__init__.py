"""Simulation of a rotation: the production decision core against a modelled fleet, in virtual time."""
