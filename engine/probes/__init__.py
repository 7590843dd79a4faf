"""What the machine's memory, processors and cards are doing. No torch, no Qt; no card makes it raise."""
