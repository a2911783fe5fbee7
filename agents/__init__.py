"""Wiring: Faust apps, one short loop per step, executors, and the command line."""
