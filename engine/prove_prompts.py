"""The built-in prompts of a proof: short, varied, and answered at some length by most models."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProofPrompt:
    """A first question and the name that reports call it by."""

    name: str
    text: str


PROMPTS = (
    ProofPrompt("chat", "Hello! What should I see on my first day in Lisbon?"),
    ProofPrompt("story", "Write a story about a lighthouse keeper who finds a letter."),
    ProofPrompt("code", "Write a Python function that merges two sorted lists."),
    ProofPrompt("sql", "Write an SQL query for the ten customers with most orders."),
    ProofPrompt("maths", "A train goes 180 km in 2.5 hours. How far in 4 hours? Think step by step."),
    ProofPrompt("numbers", "Write the numbers from 1 to 60, each with its square."),
    ProofPrompt("chinese", "请用中文介绍一下长城的历史。"),
    ProofPrompt("german", "Erkläre in einfachen Worten, wie ein Regenbogen entsteht."),
    ProofPrompt("list", "List twenty animals, each with the sound it makes."),
    ProofPrompt("json", "Give three books as a JSON array with title, author and year."),
    ProofPrompt("repetition", "Repeat this sentence ten times: The quick brown fox jumps."),
    ProofPrompt("signs", "Draw a small house with the characters / \\ | _ and add emoji 🏠🌳."),
)

FOLLOW_UPS = ("Go on.", "Say the same in other words.", "Why? Give an example.", "Now make it shorter.")
