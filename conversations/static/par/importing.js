// Sends a file of conversations, says how far it is, and what became of it.

const form = document.getElementById("import");
const progress = document.getElementById("progress");
const bar = progress.querySelector("progress");
const words = document.getElementById("progress-text");
const result = document.getElementById("result");
const button = form.querySelector("button");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const file = form.elements.file.files[0];
  if (!file) return;
  if (file.size > Number(form.dataset.largest)) {
    show([`This file is too large. If it is a zip archive, try the conversations.json inside of it.`], true);
    return;
  }
  busy(true);
  try {
    show(outcome(await send(file)), false);
    form.reset();
  } catch (error) {
    show([error.message], true);
  } finally {
    busy(false);
  }
});

/** Sends the file and returns the answer; throws an Error in words for people. */
function send(file) {
  const query = form.elements.agent.value ? `?agent=${encodeURIComponent(form.elements.agent.value)}` : "";
  const request = new XMLHttpRequest(); // fetch does not tell how much of a body is sent
  request.open("POST", `${form.dataset.basePath}/imports${query}`);
  request.setRequestHeader("Content-Type", file.name.endsWith(".zip") ? "application/zip" : "application/json");
  request.setRequestHeader("X-CSRFToken", form.elements.csrfmiddlewaretoken.value);
  request.responseType = "json";
  request.upload.addEventListener("progress", (event) => {
    if (!event.lengthComputable) return;
    bar.value = (100 * event.loaded) / event.total;
    say("Sending the file…");
  });
  request.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    say("Reading the file…");
  });
  return new Promise((resolve, reject) => {
    request.addEventListener("load", () => {
      if (request.status === 200 && request.response) resolve(request.response);
      else reject(new Error(refusal(request.status, request.response?.error)));
    });
    request.addEventListener("error", () => reject(new Error("The file could not be sent. Try again in a moment.")));
    request.send(file);
  });
}

function refusal(status, error) {
  if (error?.code === "IMPORT_INVALID") return `This file cannot be imported, and nothing of it was. ${error.message}`;
  if (status === 413) return "This file is too large for the server.";
  if (status === 401) return "You are not signed in any more. Sign in again.";
  return error ? error.message : "Something went wrong. Try again in a moment.";
}

function outcome(answer) {
  const lines = [
    counted(answer.created, "new conversation"),
    counted(answer.updated, "conversation with something new", "conversations with something new"),
    counted(answer.unchanged, "conversation that was here already", "conversations that were here already"),
    counted(answer.empty, "conversation in which nothing was said", "conversations in which nothing was said"),
  ].filter(Boolean);
  const said = [lines.length ? `${lines.join(", ")}.` : "There is no conversation in this file."];
  if (answer.modelStatesDropped) {
    said.push("What models had kept for themselves was not taken over, since this site did not write it into the file.");
  }
  if (answer.created + answer.updated > 0) said.push(link(answer.conversations.at(-1)));
  return said;
}

function counted(number, one, many = `${one}s`) {
  return number ? `${number} ${number === 1 ? one : many}` : "";
}

function link(id) {
  const made = document.createElement("a");
  made.href = form.dataset.conversationPath.replace("00000000-0000-0000-0000-000000000000", id);
  made.textContent = "Open the last of them";
  return made;
}

function show(lines, problem) {
  result.className = problem ? "problem" : "";
  result.replaceChildren(
    ...lines.map((line) => {
      const paragraph = document.createElement("p");
      paragraph.append(line);
      return paragraph;
    }),
  );
  result.focus();
}

function say(text) {
  if (words.textContent !== text) words.textContent = text;
}

function busy(on) {
  button.disabled = on;
  progress.hidden = !on;
  form.setAttribute("aria-busy", String(on));
  if (on) {
    bar.value = 0;
    say("Sending the file…");
    result.className = "";
    result.replaceChildren();
  }
}
