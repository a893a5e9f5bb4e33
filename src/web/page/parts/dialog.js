// @ts-check
import { problemText } from "./api.js";
import { action, make } from "./dom.js";
import { t } from "./text.js";

/**
 * Opens a modal dialog. The browser keeps the focus in it and closes it with Escape; then the focus returns.
 *
 * @param {string} title
 * @param {...(Node | undefined)} content
 * @returns {{ close: () => void, onClose: (work: () => void) => void, problem: (error: unknown) => void }}
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
  // A click on the backdrop, which counts as a click on the dialog element, closes the dialog.
  dialog.addEventListener("click", ({ target, clientX, clientY }) => {
    if (target !== dialog || (clientX === 0 && clientY === 0)) return;
    const { left, right, top, bottom } = dialog.getBoundingClientRect();
    if (clientX < left || clientX > right || clientY < top || clientY > bottom) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return {
    close: () => dialog.close(),
    onClose: (work) => dialog.addEventListener("close", work),
    problem(error) {
      message.textContent = problemText(error);
      message.hidden = false;
    },
  };
}

/** Longer titles are cut in the heading of a dialog. */
const MAX_TITLE = 200;

/**
 * Opens a form in a dialog. If `submit` fails, the dialog stays open and shows the error.
 *
 * @param {string} title
 * @param {readonly Node[]} fields
 * @param {string} label label of the submit button
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
      action(t("Cancel"), () => dialog.close()),
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
 * Asks the user to confirm an action that cannot be undone.
 *
 * @param {string} title
 * @param {string | Node} text
 * @param {string} label label of the button that confirms
 * @param {() => unknown} work
 */
export function confirmFirst(title, text, label, work) {
  const confirm = action(
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
    action(t("Cancel"), () => dialog.close()),
    confirm,
  );
  const dialog = openDialog(title, typeof text === "string" ? make("p", {}, text) : text, buttons);
}

/**
 * Shows a link, selected for copying by hand, because only secure pages have a clipboard.
 *
 * @param {string} text
 */
export function openLink(text) {
  const input = make("input", { type: "text", value: text, readonly: true, "aria-label": t("Link") });
  const close = action(t("Close"), () => dialog.close());
  const dialog = openDialog(t("Copy this link"), input, make("div", { class: "dialog-buttons" }, close));
  input.focus();
  input.select();
}
