"""What the demo model says."""

from __future__ import annotations

from collections.abc import Iterator

TOUR_REASONING = (
    "There is no real model behind this answer. I should say so, show what the page can do, and tell how a model is "
    "connected."
)

TOUR = """\
# Hello, I am the demo agent

I am **not a language model**: my answers are written in advance, I need no key and no network. I am here so that you \
can try everything around a model.

## What you can try

- Watch an answer, and the reasoning before it, appear as it is written.
- Ask *“What time is it, and what is 17 * 23?”* and I call two tools.
- Ask me to *“Send a postcard to a friend”*: that tool waits until **you** approve it.
- Ask me to *“Tell me a long story”*, then press **Stop**, or reload the page and see it go on.

## What happened to this answer

| Step | What the site did |
|---|---|
| Start | opened an execution of its own, which does not end when you close this page |
| Stream | sent each piece as one event with a number, so that none is lost |
| End | stored the turn as a revision of this conversation |

## Connect a real model

With an OpenAI key, put it into the environment before the start:

```sh
export OPENAI_API_KEY=sk-...
make run
```

Any other server is added by hand, in the admin or with:

```sh
.venv/bin/python manage.py add_agent helper --tools --protocol openai-chat \\
    --base-url http://127.0.0.1:8080/v1 --model NAME
```

A tool is a typed Python function in a file named `agent_tools.py`:

```python
from agent.tools import tool

@tool(read_only=True)
def double(number: int) -> int:
    \"\"\"Double a number.\"\"\"
    return 2 * number
```

I call any tool that is offered to me when you ask like this: `Use double number=21`
"""

TOOLS_REASONING = "This asks for something that I cannot know by myself. There are tools for it."
POSTCARD_REASONING = "A postcard goes out to somebody else, so a person has to agree first. I prepare it and ask."
POSTCARD = "I have written a postcard. It is sent only if you approve it.\n\n"
POSTCARD_TEXT = "Greetings from the demo agent! The weather is deterministic and the view is fine."
FILES_REASONING = "There are files with this message. I cannot look into them and should say so."
FILES = (
    "Your files have come with the message. I am not a language model and cannot look into them: a real model gets "
    "pictures as pictures, and what stands in texts and PDFs as text."
)
STORY_REASONING = "Somebody has time, or wants to try the Stop button. A long story then, told at a reading pace."
STORY_OPENING = """\
# The keeper of the quiet light

*(A long story, written by a small program. Press Stop whenever you like.)*

"""

_WINDS = ("north", "west", "south-west", "east", "south", "north-east", "north-west")
_SHIPS = (
    "a grain barge with a patched sail",
    "two fishing boats, close together",
    "a steamer that was late again",
    "nobody at all",
    "a yacht whose crew was singing",
)
_CHORES = (
    "polished the great lens until the room looked back at her",
    "oiled the clockwork and listened to its even beat",
    "mended the net that kept the gulls from the gallery",
    "counted the matches, as the handbook asked, and found one too many",
    "wrote a letter to her brother and did not send it",
    "baked a loaf that the damp air would not let rise",
    "repainted the third step, which nobody but her had ever used",
    "wound the spare clock, although it had no hands",
    "read the same page of the almanac twice and liked it better",
    "tried a tune on the foghorn, very softly",
    "measured the depth at the pier and wrote the number down",
)
_THOUGHTS = (
    "A light, she thought, is a promise that you make to people whom you will never meet.",
    "It was not loneliness, she decided, if the sea answered every sentence.",
    "Somewhere behind the horizon someone looked up, and that was enough.",
)


def story(nights: int) -> Iterator[str]:
    """Yield the story, a paragraph for each night."""
    yield STORY_OPENING
    for night in range(1, nights + 1):
        wind, ship = _WINDS[night % len(_WINDS)], _SHIPS[night % len(_SHIPS)]
        first, second = _CHORES[night % len(_CHORES)], _CHORES[(night * 3 + 1) % len(_CHORES)]
        thought = _THOUGHTS[night % len(_THOUGHTS)]
        yield (
            f"**Night {night}.** The wind came from the {wind}, and before dark the keeper {first}. When the lamp was "
            f"lit, its beam went round once every {night % 4 + 8} seconds, as it had done since the tower was built. "
            f"Towards midnight she saw {ship}, and put a mark into the book. Later she {second}. {thought}\n\n"
        )
    yield "In the morning the relief boat came. *The end.*\n"
