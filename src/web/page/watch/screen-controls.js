// @ts-check
import { problemText } from "../parts/api.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";
import { receive, send } from "./screens.js";
import { showProblem } from "./view.js";

/**
 * @typedef {{ link: import("../parts/link.js").Link, fileIndex: number, atSeconds: number }} Playing
 * @typedef {{
 *   playing: () => Playing | undefined,
 *   play: (handover: import("../parts/link.js").Handover) => void,
 * }} ScreenOptions
 */

/**
 * Connects the buttons “Send to a screen” and “Receive”.
 *
 * @param {import("./view.js").Elements} page
 * @param {ScreenOptions} options
 */
export function connectScreens(page, { playing, play }) {
  /** @type {import("./screens.js").Receiver | undefined} */
  let receiver;

  const stopReceiving = () => {
    receiver?.close();
    receiver = undefined;
    page.receiver.hidden = true;
    page.receive.disabled = false;
  };
  page.receiverStop.addEventListener("click", stopReceiving);
  page.receive.addEventListener("click", async () => {
    page.receive.disabled = true;
    try {
      const accept = (/** @type {import("../parts/link.js").Handover} */ handover) => {
        stopReceiving();
        play(handover);
      };
      const expired = () => {
        stopReceiving();
        showToast(t("The code has expired. Choose “Receive” again"));
      };
      receiver = await receive(accept, expired);
      page.receiverCode.textContent = `${receiver.code.slice(0, 4)} ${receiver.code.slice(4)}`;
      page.receiver.hidden = false;
    } catch (error) {
      stopReceiving();
      showProblem(page, t("This page cannot receive: {problem}", { problem: problemText(error) }));
    }
  });

  page.send.addEventListener("click", () => {
    page.sendForm.hidden = !page.sendForm.hidden;
    page.send.setAttribute("aria-expanded", String(!page.sendForm.hidden));
    if (!page.sendForm.hidden) page.sendCode.focus();
  });
  page.sendForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    const now = playing();
    const code = page.sendCode.value.replace(/\D/g, "");
    if (now === undefined) {
      showToast(t("Start playback first"));
      return;
    }
    showToast(t("Sending"));
    try {
      await send(code, now);
      page.video.pause();
      page.sendForm.hidden = true;
      page.send.setAttribute("aria-expanded", "false");
      showToast(t("Now playing on the other screen"));
    } catch (error) {
      showToast(problemText(error));
    }
  });
}
