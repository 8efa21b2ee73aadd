"""ARM over HTTPS: the embedded Azure as the official clients meet it."""
