"""Ask an agent of a site and answer its questions: `python -m examples.ask_a_site "Send a postcard to Ada"`.

The site's address is in PAR_URL (by default that of `make run`), a token of `manage.py create_token` in PAR_TOKEN.
"""

import os
import sys

from conversations.client import ApprovalRequested, Client, ParError, TextDelta, TextLost, ToolEnded


def main() -> None:
    words = " ".join(sys.argv[1:]) or "What is 17 * 23?"
    with Client(os.environ.get("PAR_URL", "http://127.0.0.1:8000"), os.environ["PAR_TOKEN"]) as client:
        run = client.start("demo", words)
        for event in run:
            match event:
                case TextDelta():
                    print(event.text, end="", flush=True)
                case ToolEnded():
                    print(f"[{event.name}: {event.text}]")
                case TextLost():
                    print(f"\n[lost by the server: {event.text}]")
                case ApprovalRequested():
                    print(f"\n{event.name} {event.arguments}\nApprove? [y/N]", flush=True)
                    if sys.stdin.readline().strip().lower() == "y":
                        run.approve()
                    else:
                        run.reject()
        print("\n" + run.result().outcome.type)


try:
    main()
except ParError as error:
    sys.exit(str(error))
