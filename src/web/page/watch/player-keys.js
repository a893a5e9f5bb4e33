// @ts-check

/** Seconds of one press of an arrow key. */
const SKIP_SECONDS = 10;
/** A channel number is complete after this time without another digit. */
const TYPING_MS = 1_500;
/** No list has more channels. */
const MAX_DIGITS = 5;

/**
 * @typedef {import("./view.js").Elements} Elements
 * @typedef {import("./player-controls.js").PlayerControls} PlayerControls
 * @typedef {{
 *   isPlaying: () => boolean, isChannel: () => boolean, stepChannel: (step: 1 | -1) => void,
 *   showChannel: (number: number) => void, playNextPart: () => void, stop: () => void,
 * }} KeyActions
 */

/**
 * Connects the keys of keyboards and remote controls with the player. While the focus is on a control, the arrows, Space and
 * Enter belong to it.
 *
 * @param {Elements} page
 * @param {PlayerControls} controls
 * @param {KeyActions} actions
 */
export function connectKeys(page, controls, actions) {
  const typed = connectDigits(page, actions);
  /** Keys that work on every control. @type {Record<string, () => void>} */
  const everywhere = {
    f: () => controls.toggleFullscreen(),
    m: () => controls.toggleSound(),
    i: () => controls.toggleStats(),
    t: () => (controls.isTheatre ? controls.leaveTheatre() : controls.enterTheatre()),
    k: () => controls.togglePlay(),
    n: actions.playNextPart,
    PageUp: () => actions.stepChannel(-1),
    PageDown: () => actions.stepChannel(1),
    ChannelUp: () => actions.stepChannel(-1),
    ChannelDown: () => actions.stepChannel(1),
    MediaPlayPause: () => controls.togglePlay(),
    MediaPlay: () => page.video.play().catch(() => {}),
    MediaPause: () => page.video.pause(),
    MediaStop: actions.stop,
    MediaRewind: () => controls.skip(-SKIP_SECONDS),
    MediaFastForward: () => controls.skip(SKIP_SECONDS),
  };
  /** Keys that work if no control has the focus. @type {Record<string, () => void>} */
  const onScreen = {
    " ": () => controls.togglePlay(),
    Enter: () => page.playPause.focus(),
    ArrowLeft: () => controls.skip(-SKIP_SECONDS),
    ArrowRight: () => controls.skip(SKIP_SECONDS),
    ArrowUp: () => (actions.isChannel() ? actions.stepChannel(-1) : controls.changeVolume(0.05)),
    ArrowDown: () => (actions.isChannel() ? actions.stepChannel(1) : controls.changeVolume(-0.05)),
  };
  /** Returns whether the theatre used the key. */
  const back = () => {
    if (!controls.isTheatre) return false;
    if (page.overlay.contains(document.activeElement)) controls.rest();
    else controls.leaveTheatre();
    return true;
  };
  document.addEventListener(
    "keydown",
    (event) => {
      const { key, target } = event;
      if (!actions.isPlaying() || event.ctrlKey || event.altKey || event.metaKey) return;
      if (!(target instanceof HTMLElement) || target.closest("dialog") || isTyping(target)) return;
      if (!page.stage.contains(target) && target !== document.body && !controls.isTheatre) return;
      let isUsed = true;
      const name = key.length === 1 ? key.toLowerCase() : key;
      if (["Escape", "GoBack", "BrowserBack"].includes(key)) isUsed = back();
      else if (/^\d$/.test(key) && actions.isChannel()) typed(key);
      else if (everywhere[name]) everywhere[name]();
      else if (onScreen[name] && !isControl(target)) onScreen[name]();
      else isUsed = false;
      controls.wake();
      if (isUsed) event.preventDefault();
      // Before the keys that move the focus through the page.
    },
    true,
  );
}

/** @param {HTMLElement} target */
function isTyping(target) {
  return target.matches("textarea, input:not([type=range], [type=checkbox])");
}

/** @param {HTMLElement} target */
function isControl(target) {
  return target.matches("button, a, input, select, summary");
}

/**
 * Collects the digits of a channel number, and shows them.
 *
 * @param {Elements} page
 * @param {KeyActions} actions
 */
function connectDigits({ typedChannel }, actions) {
  let digits = "";
  let timer = 0;
  return (/** @type {string} */ digit) => {
    digits = (digits + digit).slice(-MAX_DIGITS);
    typedChannel.textContent = digits;
    typedChannel.hidden = false;
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      typedChannel.hidden = true;
      const number = Number(digits);
      digits = "";
      if (number > 0) actions.showChannel(number);
    }, TYPING_MS);
  };
}

/**
 * Connects the media keys and the media display of the device.
 *
 * @param {PlayerControls} controls
 * @param {KeyActions} actions
 */
export function connectMediaSession(controls, actions) {
  if (!("mediaSession" in navigator)) return;
  const handlers = /** @type {const} */ ([
    ["seekbackward", () => controls.skip(-SKIP_SECONDS)],
    ["seekforward", () => controls.skip(SKIP_SECONDS)],
    ["previoustrack", () => actions.stepChannel(-1)],
    ["nexttrack", () => (actions.isChannel() ? actions.stepChannel(1) : actions.playNextPart())],
    ["stop", actions.stop],
  ]);
  for (const [action, handler] of handlers)
    try {
      navigator.mediaSession.setActionHandler(action, handler);
    } catch {
      // This browser does not know the action.
    }
}

/**
 * Tells the device what plays.
 *
 * @param {string} title
 * @param {string} icon URL of a picture; empty for none
 */
export function showMedia(title, icon) {
  if (!("mediaSession" in navigator)) return;
  const artwork = icon === "" ? [] : [{ src: new URL(icon, location.href).href }];
  navigator.mediaSession.metadata = new MediaMetadata({ title, artist: "Sluice", artwork });
}
