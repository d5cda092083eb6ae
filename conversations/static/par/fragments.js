/* Copies of the page's templates: the very fragments that the server uses for stored messages. */

export function fragment(name) {
  return document.getElementById(`template-${name}`).content.firstElementChild.cloneNode(true);
}

/* Say something to people who listen to the page. */
export function announce(text) {
  const place = document.getElementById("announcer");
  place.textContent = "";
  requestAnimationFrame(() => (place.textContent = text));
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
