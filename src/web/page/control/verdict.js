// @ts-check
import { make } from "../parts/dom.js";
import { t } from "../parts/text.js";

/** The card at the top of a page of the Control room: one verdict with its level, and what follows from it. */
export class VerdictCard {
  element = make("section", { class: "card verdict", "aria-live": "polite" });

  /** Shows that the verdict is being made. */
  check() {
    this.element.className = "card verdict";
    this.element.replaceChildren(make("p", { class: "soft" }, t("Checking …")));
  }

  /**
   * @param {"ok" | "note" | "warn" | "fail"} level
   * @param {string} title
   * @param {readonly (Node | string | undefined)[]} content
   */
  show(level, title, ...content) {
    this.element.className = `card verdict is-${level}`;
    this.element.replaceChildren(
      make("span", { class: "health-sign", "aria-hidden": "true" }),
      make("div", {}, make("h2", {}, title), ...content),
    );
  }
}
