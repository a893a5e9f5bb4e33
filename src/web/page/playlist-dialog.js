// @ts-check
import { problemText } from "./api.js";
import { action, make } from "./playlist-dom.js";

/**
 * Opens a dialog: the browser keeps the focus in it, closes it with Escape, and gives the focus back.
 *
 * @param {string} title
 * @param {...Node} content
 * @returns {{ close: () => void, problem: (error: unknown) => void }}
 */
export function openDialog(title, ...content) {
  const message = make("p", { class: "problem", role: "alert", hidden: true });
  const heading = make("h2", { id: "dialog-title" }, make("bdi", {}, title.slice(0, MAX_TITLE)));
  const dialog = make("dialog", { "aria-labelledby": "dialog-title" }, heading, ...content, message);
  const focused = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (focused instanceof HTMLElement && focused.isConnected) focused.focus();
  });
  // A click beside it, on the veil, closes it; the veil counts as the dialog itself.
  dialog.addEventListener("click", ({ target, clientX, clientY }) => {
    if (target !== dialog || (clientX === 0 && clientY === 0)) return;
    const { left, right, top, bottom } = dialog.getBoundingClientRect();
    if (clientX < left || clientX > right || clientY < top || clientY > bottom) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return {
    close: () => dialog.close(),
    problem(error) {
      message.textContent = problemText(error);
      message.hidden = false;
    },
  };
}

/** Longer titles are cut where they are a heading. */
const MAX_TITLE = 200;

/**
 * A form in a dialog. It stays open, with what went wrong, until `submit` has done its work.
 *
 * @param {string} title
 * @param {readonly Node[]} fields
 * @param {string} label of the button that submits
 * @param {() => unknown} submit
 */
export function openForm(title, fields, label, submit) {
  const button = make("button", { type: "submit", class: "primary" }, label);
  const form = make(
    "form",
    { class: "fields", autocomplete: "off" },
    ...fields,
    make(
      "div",
      { class: "dialog-buttons" },
      action("Cancel", () => dialog.close()),
      button,
    ),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    try {
      await submit();
      dialog.close();
    } catch (error) {
      dialog.problem(error);
    } finally {
      button.disabled = false;
    }
  });
  const dialog = openDialog(title, form);
  return dialog;
}

/**
 * Asks before something that cannot be undone.
 *
 * @param {string} title
 * @param {string} text
 * @param {string} label of the button that does it
 * @param {() => unknown} work
 */
export function confirmFirst(title, text, label, work) {
  const doIt = action(
    label,
    async () => {
      try {
        await work();
        dialog.close();
      } catch (error) {
        dialog.problem(error);
      }
    },
    "danger",
  );
  const buttons = make(
    "div",
    { class: "dialog-buttons" },
    action("Cancel", () => dialog.close()),
    doIt,
  );
  const dialog = openDialog(title, make("p", {}, text), buttons);
}

/**
 * A link to copy by hand, selected already: browsers give the clipboard to secure pages only.
 *
 * @param {string} text
 */
export function openLink(text) {
  const input = make("input", { type: "text", value: text, readonly: true, "aria-label": "Link" });
  const close = action("Close", () => dialog.close());
  const dialog = openDialog("Copy this", input, make("div", { class: "dialog-buttons" }, close));
  input.focus();
  input.select();
}
