"""Replay of published requests and answers of Azure against the embedded Azure."""
