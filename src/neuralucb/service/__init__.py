"""A decision service: features in, decisions out, rewards whenever they come; over a journal or a database."""
