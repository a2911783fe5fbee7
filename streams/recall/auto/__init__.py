"""The strategy `auto`: few features of each candidate turn, summed by weights that stand in one file."""
