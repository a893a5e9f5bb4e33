// @ts-check
import { problemText } from "./api.js";
import { make } from "./dom.js";
import { t } from "./text.js";

/**
 * Creates the form in which the user enters the access token on a device that has none.
 *
 * @param {import("./api.js").EngineApi} api
 * @param {() => void} rightsChanged runs when the token is accepted
 */
export function tokenForm(api, rightsChanged) {
  const token = make("input", {
    type: "password",
    autocomplete: "off",
    "aria-label": t("Access token"),
    required: true,
  });
  const problem = make("p", { class: "problem", role: "alert", hidden: true });
  const form = make("form", { class: "row" }, token, make("button", { type: "submit" }, t("Enable editing")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await api.useToken(token.value);
      rightsChanged();
    } catch (error) {
      problem.textContent = problemText(error);
      problem.hidden = false;
    }
  });
  return make(
    "div",
    { class: "token-form" },
    make(
      "p",
      {},
      t(
        "The access token keeps guests on your network from changing the engine. On the engine's computer, open this page, copy the access token (Control room → Access), and paste it here once:",
      ),
    ),
    form,
    problem,
  );
}
