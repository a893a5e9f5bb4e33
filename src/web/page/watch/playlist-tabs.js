// @ts-check
import { t } from "../parts/text.js";
/**
 * Connects tabs with their panels, with arrow keys as the ARIA Authoring Practices describe.
 *
 * @param {HTMLElement} bar
 * @param {(name: string) => void} opened
 */
export function connectTabs(bar, opened) {
  const tabs = /** @type {HTMLElement[]} */ ([...bar.querySelectorAll("[role=tab]")]);
  const nameOf = (/** @type {HTMLElement} */ tab) => tab.dataset.tab ?? "";

  /** @param {HTMLElement} chosen */
  function show(chosen) {
    for (const tab of tabs) {
      const isChosen = tab === chosen;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      const panel = document.getElementById(tab.getAttribute("aria-controls") ?? "");
      if (panel) panel.hidden = !isChosen;
    }
    chosen.scrollIntoView({ block: "nearest", inline: "nearest" });
    opened(nameOf(chosen));
  }

  for (const tab of tabs) tab.addEventListener("click", () => show(tab));
  bar.addEventListener("keydown", (event) => {
    const shown = tabs.filter((tab) => !tab.hidden);
    const at = shown.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const steps = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = shown[at + steps];
    if (at < 0 || steps === 0 || next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    next.focus();
    show(next);
  });

  return {
    /** @param {string} name */
    open(name) {
      const tab = tabs.find((each) => nameOf(each) === name);
      if (tab) show(tab);
    },
    /**
     * @param {string} name
     * @param {boolean} hasProblem
     */
    mark(name, hasProblem) {
      const tab = tabs.find((each) => nameOf(each) === name);
      tab?.classList.toggle("has-problem", hasProblem);
      if (hasProblem) tab?.setAttribute("aria-description", t("has a problem"));
      else tab?.removeAttribute("aria-description");
    },
    /** @param {readonly string[]} names the tabs that this device may use */
    allow(names) {
      for (const tab of tabs) tab.hidden = !names.includes(nameOf(tab));
      const chosen = tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
      if (chosen?.hidden !== false && tabs[0]) show(tabs[0]);
    },
  };
}
