// @ts-check

import { openLink } from "./dialog.js";
import { byId } from "./dom.js";
import { t } from "./text.js";

/** How long a message is shown. */
const SHOWN_MS = 2_500;

/**
 * Shows a short message that disappears by itself.
 *
 * @param {string} text
 */
export function showToast(text) {
  const toast = byId("toast", HTMLElement);
  toast.textContent = text;
  toast.hidden = false;
  setTimeout(() => {
    if (toast.textContent === text) toast.hidden = true;
  }, SHOWN_MS);
}

/**
 * Copies a text. Returns false if the browser does not allow it.
 *
 * @param {string} text
 */
export async function copyText(text) {
  // Only secure pages have a clipboard, which a page over plain HTTP from another device is not.
  if (navigator.clipboard === undefined) return false;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // The user refused the permission.
  }
}

/**
 * Copies a link, or shows it for copying by hand if the browser does not allow it.
 *
 * @param {string} text
 */
export async function copyLink(text) {
  if (await copyText(text)) showToast(t("Link copied"));
  else openLink(text);
}
