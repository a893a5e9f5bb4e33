// @ts-check
import { openForm } from "../parts/dialog.js";
import { field, linesInput, linesOf, make, select } from "../parts/dom.js";
import { t } from "../parts/text.js";

/** What a broadcast can be made of: the label of its field, an example, and a hint. */
const SOURCES = {
  rtmp: [
    t("OBS or another RTMP encoder"),
    t("Listen on"),
    "rtmp://0.0.0.0:1935/live",
    t("OBS sends to this machine. The server URL and the stream key are shown after the start."),
  ],
  srt: [
    t("OBS or another encoder by SRT"),
    t("Address"),
    "srt://0.0.0.0:9000",
    t(
      "With 0.0.0.0, OBS or another encoder sends to this machine; its server URL is shown after the start. With another address, this machine connects to it. Needs ffmpeg on the engine's computer.",
    ),
  ],
  url: [
    t("A stream or file on the web"),
    t("Web address"),
    "https://example.org/live.m3u8",
    t("HTTP or HTTPS: MPEG-TS or HLS."),
  ],
  file: [t("A file of the engine's computer"), t("Absolute path"), "/videos/film.ts", t("An MPEG-TS file.")],
  udp: [
    t("MPEG-TS over UDP"),
    t("Listen on"),
    "udp://239.0.0.1:1234",
    t("A multicast group, or an address of this machine."),
  ],
  pattern: [t("Test pattern"), "", "", t("A moving picture with a clock.")],
};

/** @typedef {keyof typeof SOURCES} Kind */

/**
 * Opens the form that starts a broadcast.
 *
 * @param {import("../parts/api.js").EngineApi} api
 */
export function openStartForm(api) {
  const kinds = /** @type {Kind[]} */ (Object.keys(SOURCES));
  const kind = select(
    kinds.map((name) => /** @type {const} */ ([name, String(SOURCES[name][0])])),
    "rtmp",
  );
  const source = make("input", { type: "text", spellcheck: "false" });
  const sourceField = field("", source, " ");
  const hint = make("p", { class: "hint" });
  const title = make("input", { type: "text", maxlength: 200 });
  const logo = make("input", { type: "url", placeholder: "https://example.org/logo.png" });
  const name = make("input", { type: "text", maxlength: 100, spellcheck: "false" });
  const loop = check(t("Start the file again at its end"));
  const standby = check(t("Standby: go on air only while no other machine broadcasts with this key"));
  const isPrivate = check(t("Private: only relays may connect to this engine"));

  function showKind() {
    const [, label = "", example = "", text = ""] = SOURCES[/** @type {Kind} */ (kind.value)];
    sourceField.hidden = label === "";
    /** @type {HTMLElement} */ (sourceField.firstElementChild).textContent = label;
    source.placeholder = example;
    source.required = label !== "";
    const isUnchanged = ["", SOURCES.rtmp[2], SOURCES.srt[2]].includes(source.value);
    if (isUnchanged) source.value = kind.value === "rtmp" || kind.value === "srt" ? example : "";
    hint.textContent = text;
    loop.label.hidden = kind.value !== "file";
  }
  const more = furtherOptions();
  kind.addEventListener("change", showKind);
  showKind();
  openForm(
    t("Start a broadcast"),
    [
      field(t("Source"), kind),
      sourceField,
      hint,
      field(t("Title"), title, t("Viewers see it. If it is empty, the name is the title.")),
      field(t("Logo"), logo, t("The web address of an image.")),
      field(t("Name"), name, t("The same name continues the same stream with the same link.")),
      loop.label,
      isPrivate.label,
      standby.label,
      more.element,
    ],
    t("Start"),
    async () => {
      await api.call("broadcast_start", {
        source: kind.value === "pattern" ? undefined : source.value.trim(),
        test_pattern: kind.value === "pattern" || undefined,
        title: given(title),
        logo: given(logo),
        name: given(name),
        loop: (kind.value === "file" && loop.input.checked) || undefined,
        private: isPrivate.input.checked || undefined,
        standby: standby.input.checked || undefined,
        ...more.values(),
      });
    },
  );
}

/** The options that few broadcasts need, by the names of the command line. */
function furtherOptions() {
  const list = t("One on each line.");
  const text = () => make("input", { type: "text", maxlength: 4000, spellcheck: "false" });
  const number = () => make("input", { type: "number", min: 0, step: "any" });
  const lists = /** @type {const} */ ({
    category: [t("Categories"), linesInput(), list],
    language: [t("Languages"), linesInput(), t("Three letters, such as eng. One on each line.")],
    country: [t("Countries"), linesInput(), t("Two letters, such as us. One on each line.")],
    tracker: [t("Trackers"), linesInput(), list],
    relay: [t("Relays"), linesInput(), t("HOST:PORT of relays that viewers can use. One on each line.")],
    address: [
      t("Public addresses"),
      linesInput(),
      t("HOST:PORT at which viewers reach this machine. One on each line."),
    ],
    hls: [
      t("HLS copies"),
      linesInput(),
      t("Web addresses from which viewers load what peers deliver too late. One on each line."),
    ],
    variant: [
      t("Further sources"),
      linesInput(),
      t("The same programme in other qualities. One on each line."),
    ],
  });
  const texts = /** @type {const} */ ({
    description: [t("Description"), text(), undefined],
    renditions: [t("Qualities to encode"), text(), t("Such as 720p:3M,480p:1M. Needs ffmpeg.")],
    programmes: [t("Programmes of the source"), text(), t("Such as 1,2, if the source has several.")],
    successor: [
      t("Successor"),
      text(),
      t(
        "The path of the transport file of the stream that replaces this one. It revokes the key of this one.",
      ),
    ],
  });
  const bitrate = number();
  const upload = number();
  const rotate = check(t("Replace the key: viewers of the old link are sent to the new one for 30 days"));
  const element = make(
    "details",
    {},
    make("summary", {}, t("More options")),
    ...[...Object.values(texts), ...Object.values(lists)].map(([label, input, hint]) =>
      field(label, input, hint),
    ),
    field(t("Highest bit rate in Mbit/s"), bitrate, t("Empty: it is measured.")),
    field(t("Upload limit in Mbit/s"), upload, t("Empty: no limit.")),
    rotate.label,
  );
  // The buttons of the dialog cover the end of the form.
  element.addEventListener("toggle", () => element.open && element.scrollIntoView({ block: "start" }));
  const inMega = (/** @type {HTMLInputElement} */ { value }, /** @type {number} */ factor) =>
    Math.round(Number(value) * factor) || undefined;
  return {
    element,
    values: () => ({
      ...mapped(texts, ([, input]) => given(input)),
      ...mapped(lists, ([, input]) => linesOf(input)),
      bitrate: inMega(bitrate, 1e6),
      upload_limit: inMega(upload, 1e6 / 8),
      rotate: rotate.input.checked || undefined,
    }),
  };
}

/**
 * @template Value, Result
 * @param {Readonly<Record<string, Value>>} object
 * @param {(value: Value) => Result} convert
 * @returns {Record<string, Result>}
 */
function mapped(object, convert) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, convert(value)]));
}

/** @param {HTMLInputElement} input */
function given(input) {
  return input.value.trim() || undefined;
}

/** @param {string} text */
function check(text) {
  const input = make("input", { type: "checkbox" });
  return { input, label: make("label", { class: "check" }, input, ` ${text}`) };
}
