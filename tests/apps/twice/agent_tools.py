from agent.tools import tool


@tool(read_only=True)
def calculate(expression: str) -> str:
    """Clash with the calculator that ships.

    Args:
        expression: Anything.
    """
    return expression
