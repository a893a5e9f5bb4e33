// @ts-check
import { receive, send } from "./screens.js";
import { showProblem, showToast } from "./view.js";

/**
 * @typedef {{ link: import("./link.js").Link, fileIndex: number, atSeconds: number }} Playing
 * @typedef {{
 *   playing: () => Playing | undefined,
 *   play: (handover: import("./screens.js").Handover) => void,
 * }} ScreenParts
 */

/**
 * Connects the buttons that send what plays here to another screen, or let another device send to this one.
 *
 * @param {import("./view.js").Elements} page
 * @param {ScreenParts} parts
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
      receiver = await receive((handover) => {
        stopReceiving();
        play(handover);
      });
      page.receiverCode.textContent = `${receiver.code.slice(0, 3)} ${receiver.code.slice(3)}`;
      page.receiver.hidden = false;
    } catch (error) {
      stopReceiving();
      showProblem(page, `Receiving is not possible: ${messageOf(error)}`);
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
      showToast(page, "Nothing plays here yet");
      return;
    }
    showToast(page, "Sending");
    try {
      await send(code, now);
      page.video.pause();
      page.sendForm.hidden = true;
      page.send.setAttribute("aria-expanded", "false");
      showToast(page, "It plays on the other screen now");
    } catch (error) {
      showToast(page, messageOf(error));
    }
  });
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
