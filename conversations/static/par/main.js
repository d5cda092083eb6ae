/* Starts the chat page. */

import { Chat } from "./chat.js";
import { ConversationList } from "./conversations.js";
import { listenForSidebar } from "./sidebar.js";

const page = document.getElementById("main");
listenForSidebar(document.getElementById("sidebar-button"), document.getElementById("sidebar"));
const chat = new Chat(page, new ConversationList(document.querySelector(".conversations")));
if (matchMedia("(pointer: fine)").matches && document.activeElement === document.body) chat.composer.focus();
