import { Introductions } from "./introductions.ts";
import type { FromWorker, ToWorker } from "./messages.ts";
import { openRoom, type Room } from "./room.ts";

/** What the choice of the viewer depends on. */
interface SharingOptions {
  /** The broadcaster's choice: `on` and `ask` show the switch, on or off at first; `off` shows none. */
  readonly sharing: "ask" | "on" | "off";
  readonly iceServers: readonly string[];
  readonly infohash: string;
  /** WebSocket trackers that introduce pages of other engines. */
  readonly trackers: readonly string[];
  /** The number of connected pages. */
  readonly pages: () => number;
  /** The URL of the swarm at the engine. */
  readonly url: string;
  post(message: ToWorker, transfer?: Transferable[]): void;
}

/** The names under which the browser stores the viewer's choices. */
const STORED = "sluice-sharing";
const STORED_ALWAYS = "sluice-sharing-always";
/** After the engine has ended the room, the page joins again. */
const REJOIN_MS = 5_000;

/** The part of `NetworkInformation` that is used; not all browsers have it. */
interface Connection extends EventTarget {
  readonly saveData?: boolean;
  readonly type?: string;
}

/**
 * Whether this page exchanges the stream with others: the viewer's choice, or the broadcaster's until the viewer has chosen. Unless the
 * viewer allows it, a page does not upload while it is in the background, in data-saving mode or on a mobile network. It still receives
 * from other pages then, so that the engine does not have to send it everything.
 */
export class Sharing {
  readonly #options: SharingOptions;
  readonly #box = document.getElementById("sharing") as HTMLInputElement;
  readonly #always = document.getElementById("sharing-always") as HTMLInputElement;
  #room: Room | undefined;
  #introductions: Introductions | undefined;
  #uploads = false;
  #isOpening = false;

  constructor(options: SharingOptions) {
    this.#options = options;
  }

  /** Shows the switch, and joins the other pages if the viewer or the broadcaster chose it. */
  start(): void {
    const { sharing } = this.#options;
    const isPossible = sharing !== "off" && typeof RTCPeerConnection === "function";
    for (const id of ["sharing-choice", "sharing-always-choice", "hint"])
      document.getElementById(id)!.hidden = !isPossible;
    if (!isPossible) return;
    this.#box.checked = storedChoice(STORED) ?? sharing === "on";
    this.#always.checked = storedChoice(STORED_ALWAYS) ?? false;
    for (const [box, name] of [
      [this.#box, STORED],
      [this.#always, STORED_ALWAYS],
    ] as const)
      box.addEventListener("change", () => {
        storeChoice(name, box.checked);
        void this.#update();
      });
    document.addEventListener("visibilitychange", () => void this.#update());
    connectionOf()?.addEventListener("change", () => void this.#update());
    void this.#update();
  }

  /** Executes a command of the worker. */
  command(command: Extract<FromWorker, { readonly channel: number }>): void {
    if (this.#room) this.#room.command(command);
    else if (command.kind === "connect")
      this.#options.post({ kind: "closed", channel: command.channel, reason: "not sharing" });
  }

  /** Joins or leaves the other pages. */
  async #update(): Promise<void> {
    const { post, url } = this.#options;
    const iceServers = this.#options.iceServers.map(iceServerOf);
    const mayUpload = () => this.#always.checked || (!isMetered() && document.visibilityState === "visible");
    if (!this.#box.checked) {
      if (this.#room === undefined) return;
      this.#leave();
      return;
    }
    if (this.#room !== undefined && this.#uploads !== mayUpload()) {
      this.#uploads = mayUpload();
      post({ kind: "share", id: this.#room.id, uploads: this.#uploads });
    }
    if (this.#room !== undefined || this.#isOpening) return;
    this.#isOpening = true;
    try {
      const lost = () => {
        this.#leave();
        setTimeout(() => void this.#update(), REJOIN_MS);
      };
      const room = await openRoom({ url, iceServers, post, lost });
      this.#room = room;
      this.#uploads = mayUpload();
      post({ kind: "share", id: room.id, uploads: this.#uploads });
      this.#introductions = new Introductions({
        ...this.#options,
        iceServers,
        adopt: (connection, channel, isOurs) => room.adopt(connection, channel, isOurs),
      });
      this.#introductions.start();
    } catch {
      // The engine introduces no pages now, or the browser has no WebRTC: the engine sends everything.
      setTimeout(() => void this.#update(), REJOIN_MS);
    } finally {
      this.#isOpening = false;
    }
    // The choice may have changed meanwhile.
    if (!this.#box.checked) void this.#update();
  }

  #leave(): void {
    this.#introductions?.stop();
    this.#room?.leave();
    this.#room = undefined;
    this.#options.post({ kind: "share", id: undefined, uploads: false });
  }
}

/** Reads `stun:host:port` or `turn:user:password@host:port`. */
function iceServerOf(text: string): RTCIceServer {
  const [, scheme, username, credential, host] = /^(turns?:)([^:@]+):([^@]+)@(.+)$/.exec(text) ?? [];
  return username === undefined || credential === undefined
    ? { urls: text }
    : { urls: `${scheme}${host}`, username, credential };
}

function connectionOf(): Connection | undefined {
  return (navigator as { readonly connection?: Connection }).connection;
}

function isMetered(): boolean {
  const { saveData = false, type } = connectionOf() ?? {};
  return saveData || type === "cellular";
}

function storedChoice(name: string): boolean | undefined {
  try {
    const stored = localStorage.getItem(name);
    return stored === null ? undefined : stored === "yes";
  } catch {
    return undefined; // The browser forbids it.
  }
}

function storeChoice(name: string, isOn: boolean): void {
  try {
    localStorage.setItem(name, isOn ? "yes" : "no");
  } catch {
    // The choice is valid until the page is closed.
  }
}
