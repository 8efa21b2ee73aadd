"""ARM over HTTPS: the embedded Azure for the official clients."""
