"""What a step costs: from the shape of a batch to nanoseconds."""
