// @ts-check
import { problemText } from "../parts/api.js";
import { openDialog } from "../parts/dialog.js";
import { action, make } from "../parts/dom.js";
import { t } from "../parts/text.js";

/** The name of the chosen profile in this browser. */
const STORED = "sluice-profile";
/** As at the engine. */
const MAX_NAME = 64;

/** Returns the profile of this browser; empty for the one without a name. */
function chosenProfile() {
  try {
    return localStorage.getItem(STORED) ?? "";
  } catch {
    return ""; // The browser forbids it.
  }
}

/**
 * Connects the button that chooses the profile, whose films the user continues.
 *
 * @param {HTMLButtonElement} button
 * @param {import("./resume.js").Resume} resume
 * @param {() => void} changed
 */
export function connectProfiles(button, resume, changed) {
  const label = (/** @type {string} */ profile) => profile || t("Everyone");
  const show = () => {
    button.textContent = t("Profile: {name}", { name: label(resume.profile) });
  };
  resume.profile = chosenProfile();
  show();
  button.addEventListener("click", async () => {
    const name = make("input", {
      type: "text",
      maxlength: MAX_NAME,
      autocomplete: "off",
      placeholder: t("Name of a new profile"),
      "aria-label": t("Name of a new profile"),
    });
    const list = make("div", { class: "sheet" });
    const form = make("form", { class: "row" }, name, make("button", { type: "submit" }, t("Add")));
    const close = action(t("Close"), () => dialog.close());
    const dialog = openDialog(
      t("Choose a profile"),
      make("p", { class: "soft" }, t("Each profile continues its own films, on every device.")),
      list,
      form,
      make("div", { class: "dialog-buttons" }, close),
    );
    /** @param {string} profile */
    const choose = (profile) => {
      try {
        localStorage.setItem(STORED, profile);
      } catch {
        // The choice holds until the page is closed.
      }
      resume.profile = profile;
      show();
      changed();
      dialog.close();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (name.value.trim() !== "") choose(name.value.trim());
    });
    try {
      const names = new Set(["", ...(await resume.profiles()), resume.profile]);
      list.append(
        ...[...names].map((profile) => {
          const choice = action(label(profile), () => choose(profile));
          choice.setAttribute("aria-pressed", String(profile === resume.profile));
          return choice;
        }),
      );
    } catch (error) {
      dialog.problem(problemText(error));
    }
  });
}
