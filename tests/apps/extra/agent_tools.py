from agent.tools import tool


@tool(read_only=True)
def extra_tool(text: str) -> str:
    """Say something.

    Args:
        text: What to say.
    """
    return text
