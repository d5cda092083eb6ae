/* Requests to the site in the name of whoever is signed in. */

import { Refused } from "./socket.js";

/* What tells the site that a request comes from one of its pages. */
export const token = () => document.querySelector("[name=csrfmiddlewaretoken]").value;

/* Return the JSON of the answer, null where there is none; throws `Refused`. */
export async function call(method, address, body) {
  const headers = { "X-CSRFToken": token() };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(address, { method, headers, body: body && JSON.stringify(body) });
  } catch {
    throw new Refused("NOT_CONNECTED", "There is no connection to the server.");
  }
  if (answer.status === 204) return null;
  const data = await answer.json().catch(() => null);
  if (!answer.ok || data === null) {
    throw new Refused(data?.error?.code ?? "INTERNAL_ERROR", data?.error?.message ?? "");
  }
  return data;
}
