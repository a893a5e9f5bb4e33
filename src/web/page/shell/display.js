// @ts-check
import { openDialog } from "../parts/dialog.js";
import { action, field, make, select } from "../parts/dom.js";
import { chooseLanguage, chosenLanguage, LANGUAGES } from "../parts/language.js";
import { t } from "../parts/text.js";

/** The choices of the user, as attributes of the document: `data-theme` and `data-size`. */
const STORED = "sluice-display";

/** @typedef {{ theme?: string, size?: string }} Display */

/** The names of televisions and their sticks in user agents: they have the pixels of a desktop, but are seen from the sofa. */
const TELEVISION = /TV\b|Web0S|BRAVIA|VIDAA|\bAFT[A-Z]|CrKey/;

/** Applies the user's choices of colours and size. */
export function applyDisplay() {
  const { theme = "", size = "" } = stored();
  const { dataset } = document.documentElement;
  dataset.theme = theme;
  dataset.size = size || (TELEVISION.test(navigator.userAgent) ? "large" : "");
}

/** Opens the dialog for language, colours and size. */
export function openDisplay() {
  const now = stored();
  const language = select([["", t("As the browser")], ...LANGUAGES], chosenLanguage());
  const theme = select(
    [
      ["", t("As the device")],
      ["light", t("Light")],
      ["dark", t("Dark")],
    ],
    now.theme ?? "",
  );
  const size = select(
    [
      ["", t("As the screen")],
      ["large", t("Large, for a television")],
    ],
    now.size ?? "",
  );
  const change = () => {
    store({ theme: theme.value, size: size.value });
    applyDisplay();
  };
  theme.addEventListener("change", change);
  size.addEventListener("change", change);
  language.addEventListener("change", () => chooseLanguage(language.value));
  const dialog = openDialog(
    t("Display"),
    make(
      "div",
      { class: "fields" },
      field(t("Language"), language),
      field(t("Colours"), theme),
      field(t("Size"), size),
    ),
    make(
      "div",
      { class: "dialog-buttons" },
      action(t("Close"), () => dialog.close()),
    ),
  );
}

/** @returns {Display} */
function stored() {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? "{}");
  } catch {
    return {}; // The browser forbids it, or another program wrote it.
  }
}

/** @param {Display} display */
function store(display) {
  try {
    localStorage.setItem(STORED, JSON.stringify(display));
  } catch {
    // The choice holds until the page is closed.
  }
}
