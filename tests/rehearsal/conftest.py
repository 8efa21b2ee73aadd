"""Lets tests in the folders below import what is beside it: pytest puts the folder of a conftest file on the path."""
