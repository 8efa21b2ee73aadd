"""Documented restrictions of Azure as a table: value, bound, error code, message and source."""
