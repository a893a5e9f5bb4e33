// @ts-check
/**
 * Takes files that are dropped on the page while a place of it is visible, and shows meanwhile that it does.
 *
 * @param {HTMLElement} overlay
 * @param {HTMLElement} place
 * @param {(file: File) => void} drop
 */
export function listenForDrops(overlay, place, drop) {
  const isActive = () => place.offsetParent !== null;
  window.addEventListener("dragover", (event) => {
    event.preventDefault();
    overlay.hidden = !isActive();
  });
  window.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) overlay.hidden = true;
  });
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    overlay.hidden = true;
    const file = event.dataTransfer?.files[0];
    if (file !== undefined && isActive()) drop(file);
  });
}
