// @ts-check
/**
 * Takes files that are dropped on the page, and shows meanwhile that it does.
 *
 * @param {HTMLElement} overlay
 * @param {(file: File) => void} drop
 */
export function listenForDrops(overlay, drop) {
  window.addEventListener("dragover", (event) => {
    event.preventDefault();
    overlay.hidden = false;
  });
  window.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) overlay.hidden = true;
  });
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    overlay.hidden = true;
    const file = event.dataTransfer?.files[0];
    if (file !== undefined) drop(file);
  });
}

/** Returns a random id. `crypto.randomUUID` exists only on secure pages. */
export function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
