/** The journeys of users through the web app, as data: `journeys.test.ts` makes them in Chromium. */

/** One step: what the user does, or what the user then sees. */
export type Step =
  /** Presses keys one after another. */
  | { readonly press: string }
  /** Presses one key until the element has the focus. */
  | { readonly reach: string; readonly by: string }
  /** Types into the focused field, after removing its text. */
  | { readonly type: string }
  | { readonly click: string }
  /** An element is visible. */
  | { readonly see: string }
  /** No such element is visible. */
  | { readonly gone: string }
  /** An element has the focus. */
  | { readonly focused: string }
  /** Chooses an option, by its value. */
  | { readonly choose: string; readonly option: string }
  /** The value of a field contains the text; the field is named by CSS. */
  | { readonly value: string; readonly has: string }
  /** Loads the page again. */
  | { readonly reload: true }
  /** Calls a control method with parameters; its result must contain the text. */
  | { readonly call: string; readonly with?: Readonly<Record<string, string>>; readonly has?: string }
  /** A file is chosen in an input. */
  | { readonly file: string; readonly path: string };

/** How the user operates the page. */
export type Device = "keys" | "touch" | "tv";

/** A journey begins at a route of the app. */
export interface Journey {
  readonly name: string;
  readonly device: Device;
  readonly at: string;
  readonly steps: readonly Step[];
}

/** The pages of the app, and an element that each shows when it is ready. */
export const PAGES: Readonly<Record<string, string>> = {
  // On a phone the rows exist only when the user scrolls to them.
  watch: "#playlist-count",
  studio: "#studio h1",
  "control/overview": "#control .verdict h2",
  "control/downloads": "#control .download-form",
  "control/network": "#control .verdict h2",
  "control/health": ".health-rows li",
  "control/storage": "#control .figures",
  "control/logs": "#control .log",
  "control/access": "#control .card",
  "control/settings": ".setting",
};

/** Texts that the test fills in: the link of the film, and its infohash. */
export const MAGNET = "{magnet}";
export const INFOHASH = "{infohash}";

const RIGHT = { press: "ArrowRight" } as const;
const ENTER = { press: "Enter" } as const;
const dialog = (text: string) => `dialog button:text-is("${text}")`;

/** Every page is opened by every device; these are further ones. */
export const JOURNEYS: readonly Journey[] = [
  {
    name: "a pasted magnet link plays with the keyboard only",
    device: "keys",
    at: "watch",
    steps: [
      { reach: "#link", by: "Tab" },
      { type: MAGNET },
      ENTER,
      { see: "#stage" },
      { see: "#status:text('Playing')" },
      { reach: "#stop", by: "Tab" },
      ENTER,
      { gone: "#stage" },
    ],
  },
  {
    name: "a text that is no link is refused next to the field",
    device: "keys",
    at: "watch",
    steps: [{ reach: "#link", by: "Tab" }, { type: "nothing" }, ENTER, { see: "#problem:text('neither')" }],
  },
  {
    name: "the search of the playlist finds a channel, and Enter plays it",
    device: "keys",
    at: "watch",
    steps: [
      { reach: "#playlist-search", by: "Tab" },
      { type: "our film" },
      { see: "#playlist-count:text-is('1 item')" },
      { reach: ".item-play", by: "Tab" },
      ENTER,
      { see: "#stage video" },
      { press: "Escape" },
      { reach: "#stop", by: "Tab" },
      ENTER,
      { gone: "#stage" },
    ],
  },
  {
    name: "a star is set with the keyboard, and the favourites filter finds it",
    device: "keys",
    at: "watch",
    steps: [
      { reach: "#playlist-search", by: "Tab" },
      { type: "channel 7" },
      { see: "#playlist-count:text-is('1 item')" },
      { reach: ".item-star", by: "Tab" },
      ENTER,
      { see: ".item-star[aria-pressed=true]" },
      { call: "playlist_get", with: { is_favorite: "1" }, has: "Channel 7" },
    ],
  },
  {
    name: "the menu of an item closes with Escape and returns the focus",
    device: "keys",
    at: "watch",
    steps: [
      { reach: ".item-more", by: "Tab" },
      ENTER,
      { see: "dialog" },
      { press: "Escape" },
      { gone: "dialog" },
      { focused: ".item-more" },
    ],
  },
  {
    name: "a profile is added, and the engine keeps its films",
    device: "keys",
    at: "watch",
    steps: [
      { reach: "#profile", by: "Shift+Tab" },
      ENTER,
      { see: "dialog button:text-is('Everyone')" },
      { reach: "dialog input", by: "Tab" },
      { type: "Anna" },
      ENTER,
      { gone: "dialog" },
      { see: "#profile:text-is('Profile: Anna')" },
      {
        call: "watched_set",
        with: {
          ...{ profile: "Anna", infohash: INFOHASH, file_index: "0", title: "Her film" },
          ...{ link: "item:1", position: "40", duration: "600" },
        },
      },
      { call: "watched_get_profiles", has: '["Anna"]' },
      { reach: "#profile", by: "Shift+Tab" },
      ENTER,
      { click: "dialog button:text-is('Everyone')" },
      { gone: ".home-card:has-text('Her film')" },
      { reach: "#profile", by: "Shift+Tab" },
      ENTER,
      { click: "dialog button:text-is('Anna')" },
      { see: ".home-card:has-text('Her film')" },
    ],
  },
  {
    name: "Display changes the colours, and Escape leaves it",
    device: "keys",
    at: "watch",
    steps: [
      { reach: "#display", by: "Tab" },
      ENTER,
      { see: "dialog select" },
      { press: "Tab" },
      { press: "End" },
      { press: "Escape" },
      { gone: "dialog" },
      { focused: "#display" },
    ],
  },
  {
    name: "a download is added, its files are chosen, and it is complete",
    device: "keys",
    at: "control/downloads",
    steps: [
      { reach: ".download-form input", by: "Tab" },
      { type: MAGNET },
      ENTER,
      { see: "dialog .file-list li:nth-child(2)" },
      { reach: ".file-list li:nth-child(2) input", by: "Tab" },
      { press: "Space" },
      { see: "dialog p:text('1 of 2 files')" },
      { reach: dialog("Download"), by: "Tab" },
      ENTER,
      { gone: "dialog" },
      { see: ".download small:text('Complete')" },
      { call: "download_list", has: '"files":[[0,0]]' },
    ],
  },
  {
    name: "a download gets a limit, which the transfer then has",
    device: "keys",
    at: "control/downloads",
    steps: [
      { reach: ".download button:text-is('Limit…')", by: "Tab" },
      ENTER,
      { see: "dialog input[type=number]" },
      { reach: "dialog input[type=number]", by: "Tab" },
      { type: "500" },
      ENTER,
      { gone: "dialog" },
    ],
  },
  {
    name: "a download is deleted only after a confirmation",
    device: "touch",
    at: "control/downloads",
    steps: [
      { click: ".download button:text-is('Delete')" },
      { click: dialog("Cancel") },
      { see: ".download" },
      { click: ".download button:text-is('Delete')" },
      { click: dialog("Delete") },
      { gone: ".download" },
      { call: "download_list", has: "[]" },
    ],
  },
  {
    name: "a torrent file becomes a download",
    device: "touch",
    at: "control/downloads",
    steps: [
      { file: "#control input[type=file]", path: "films.torrent" },
      { see: "dialog .file-list" },
      { click: dialog("Download") },
      // No tracker and no peer is known.
      { see: ".download small:text('Downloading')" },
      { click: ".download button:text-is('Pause')" },
      { see: ".download small:text('Paused')" },
      { call: "download_delete", with: { infohash: INFOHASH } },
      { gone: ".download" },
    ],
  },
  {
    name: "Network shows one verdict and leads to the setting that changes it",
    device: "keys",
    at: "control/network",
    steps: [
      { see: ".verdict h2" },
      { see: "#control h2:text-is('VPN and proxy')" },
      { reach: "a[href='#/control/settings/p2p-port']", by: "Tab" },
      ENTER,
      { see: "#setting-p2p-port" },
      { gone: "#setting-dht" },
    ],
  },
  {
    name: "a setting with a bad value is refused with the words of its flag",
    device: "keys",
    at: "control/settings/download-limit",
    steps: [
      { reach: "#setting-download-limit", by: "Tab" },
      { type: "much" },
      { reach: "button:text-is('Save')", by: "Tab" },
      ENTER,
      { see: ".settings-state.problem:text('expected bytes per second')" },
    ],
  },
  {
    name: "arrow keys lead from Watch to the Control room",
    device: "tv",
    at: "watch",
    steps: [
      { reach: "#places a[data-place=watch]", by: "Shift+Tab" },
      RIGHT,
      RIGHT,
      { focused: "#places a[data-place=control]" },
      ENTER,
      { see: "#control .verdict h2" },
    ],
  },
  {
    name: "arrow keys reach a channel, Enter plays it, Escape leads back to the list",
    device: "tv",
    at: "watch",
    steps: [
      { reach: ".item .item-play", by: "ArrowDown" },
      ENTER,
      { see: "#stage video" },
      { press: "Escape" },
      { click: "#stop" },
      { gone: "#stage" },
    ],
  },
  {
    name: "arrow keys walk through the pages of the Control room",
    device: "tv",
    at: "control/overview",
    steps: [
      { reach: ".pages a[data-page=overview]", by: "Shift+Tab" },
      RIGHT,
      { focused: ".pages a[data-page=downloads]" },
      RIGHT,
      { focused: ".pages a[data-page=network]" },
      ENTER,
      { see: "#control h2:text-is('Reachability')" },
    ],
  },
  {
    name: "the TV guide opens and closes with the remote control",
    device: "tv",
    at: "watch",
    steps: [
      { reach: "#guide-grid", by: "Shift+Tab" },
      ENTER,
      { see: "dialog.guide-grid" },
      { press: "Escape" },
      { gone: "dialog.guide-grid" },
      { focused: "#guide-grid" },
    ],
  },
  {
    name: "a broadcast of the test pattern is started, shared and stopped",
    device: "touch",
    at: "studio",
    steps: [
      { click: "button:text-is('Start a broadcast')" },
      { see: "dialog select" },
      { press: "Tab" },
      { click: dialog("Cancel") },
      { gone: "dialog" },
      { call: "broadcast_start", with: { test_pattern: "1", name: "journey", title: "Journey" } },
      { see: ".broadcast:has-text('Journey')" },
      { click: ".broadcast button:text-is('Link, QR and embed')" },
      { see: "dialog .qr svg path" },
      { press: "Escape" },
      { click: ".broadcast button:text-is('Stop')" },
      { click: dialog("Stop broadcasting") },
      { gone: ".broadcast" },
    ],
  },
  {
    name: "the filter of the log finds nothing and says so by an empty list",
    device: "touch",
    at: "control/logs",
    steps: [{ click: "#control input" }, { type: "no such line in any log" }, { gone: ".log li" }],
  },
  {
    name: "an item is deleted and restored from the trash",
    device: "touch",
    at: "watch",
    steps: [
      { click: "#playlist-search" },
      { type: "channel 9" },
      { see: "#playlist-count:text-is('1 item')" },
      { click: ".item-more" },
      { click: "dialog button:text('Move to trash')" },
      { see: "#playlist-not-found, #playlist-nothing" },
      { click: "[data-tab=trash]" },
      { click: "button:text('Restore')" },
      { call: "playlist_get", with: { search: "channel 9" }, has: "Channel 9" },
    ],
  },
];
