"""All seeds of a run at once: simulator, learner and batches in one compiled program."""
