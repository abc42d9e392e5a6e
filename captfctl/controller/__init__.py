"""What a control loop is made of: informers, work queues, workers."""
