/* Starts the search page, which works without. */

import { ConversationList } from "./conversations.js";
import { listenForSidebar } from "./sidebar.js";

listenForSidebar(document.getElementById("sidebar-button"), document.getElementById("sidebar"));
new ConversationList(document.querySelector(".conversations"));
