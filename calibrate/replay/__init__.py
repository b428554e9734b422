"""A trace served by a real engine under the scheduler, on the wall clock."""
