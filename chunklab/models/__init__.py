"""The models that the lessons run on: local by default, OpenAI's with a key."""
