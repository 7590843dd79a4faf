"""About five hundred tokens of varied text: what the draft's rounding must preserve is measured on it.

Written for this purpose. Prose, dialogue, code, sums and Chinese, because a model uses other inputs for each.
"""

from __future__ import annotations

from engine.text.tokenizer import Tokenizer

TOKENS = 640  # at most: more text would not change the averages

SAMPLE_TEXT = """The harbour was quiet when Anna opened the shop, and the first boats were only small shapes in mist.
She swept the floor, set the kettle on the stove, and wrote the day's prices on the board beside the door: bread, milk,
apples, two kinds of cheese. People in the town said that the winter would be long. In general, a long winter means
more letters, more visitors, and less fish; however, nobody could explain why that should be so.

"Did you sleep well?" asked Tom, shaking the rain from his coat.
"Not really," she said. "I kept thinking about the question you asked me yesterday. What would you do if it were yours?"
"I would sell it, of course. But first, I'd find out what it is worth."

Here are three things that help you learn a new skill:
1. **Practise every day.** Ten minutes are better than nothing at all.
2. **Ask for advice.** Other people see mistakes that you do not notice.
3. **Rest.** Sleep is when the brain sorts what it has seen.

def mean_of_squares(values: list[float]) -> float:
    \"\"\"Return the mean of the squared values, or 0.0 for an empty list.\"\"\"
    if not values:
        return 0.0
    total = sum(value * value for value in values)
    return total / len(values)

for (int i = 0; i < count; i++) { printf("%d: %s\\n", i, names[i]); }

A train leaves at 9:15 and travels 240 km at 80 km per hour. It needs 240 / 80 = 3 hours, so it arrives at 12:15. If a
ticket costs $12.50 and a family buys 4 of them, they pay 4 * 12.50 = $50. With x + 7 = 19, x = 19 - 7 = 12.

Water is a molecule made of two hydrogen atoms and one oxygen atom. Between 1850 and 1900 many cities in Europe and
the United States built pipes and filters, which reduced diseases such as cholera. The government of each country is
responsible for the quality of its water; scientists measure it, and the results are published every year.

今天早上天气很好，我和朋友一起去公园散步。我们谈到了学习、工作和未来的计划。他问我：“你最喜欢哪一本书？”我想了很久，
然后告诉他，一本好书可以改变一个人的生活。

Dear Ms. Lopez, thank you for your message of 3 May. I am sorry to hear that the parcel has not arrived. Could you
please send me the order number and your address? We will answer within two days. Kind regards, the service team.
"""


def sample_ids(tokenizer: Tokenizer | None, vocabulary: int) -> tuple[int, ...]:
    """The text as token ids below `vocabulary`; () for a model without a tokenizer."""
    if tokenizer is None:
        return ()
    return tuple(token for token in tokenizer.encode_prompt(SAMPLE_TEXT)[:TOKENS] if token < vocabulary)
