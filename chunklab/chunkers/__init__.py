"""The chunkers, one method a file."""
