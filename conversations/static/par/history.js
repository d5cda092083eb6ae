/* Starts the page that lists the revisions of a conversation. */

import { localise } from "./conversations.js";
import { listenForRevisions } from "./revisions.js";

const page = document.getElementById("main");
listenForRevisions(page);
for (const time of page.querySelectorAll("time")) localise(time);
