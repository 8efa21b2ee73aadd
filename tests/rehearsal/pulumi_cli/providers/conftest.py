"""Lets the tests below import what is beside this file: pytest puts the folder of a conftest file on the path."""
