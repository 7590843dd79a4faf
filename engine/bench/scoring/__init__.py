"""Whether answers are right: GSM8K by its last number, HumanEval by running what the model wrote."""
