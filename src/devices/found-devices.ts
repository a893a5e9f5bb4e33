import { resolvesWithin } from "../async/sleep.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after, type Instant } from "../base/time.ts";
import { castDevice } from "./chromecast.ts";
import type { Device, DeviceRuntime } from "./contract.ts";
import { deviceNetworks } from "./device-networks.ts";
import { MDNS_TYPES, type Sighting, searchDevices } from "./device-search.ts";
import { describeRenderer } from "./dlna-renderer.ts";
import { kodiDevice } from "./kodi.ts";

/** More devices than a home has; anyone in the network can announce devices. */
const MAX_DEVICES = 64;
/** Descriptions that are fetched at the same time; an address that announces more devices must wait for the next search. */
const MAX_FETCHES = 16;
const MAX_FETCHES_PER_HOST = 4;
const MAX_PER_HOST = 8;
/** A client that asks again within this time gets the devices that are known. */
const SEARCH_EVERY_MS = 10_000;
/** The first answer waits this long for a search, so that it lists what answers at once. */
const FIRST_WAIT_MS = 2_000;
/** A device that did not answer for this long, through several searches, has vanished. */
const GONE_MS = 35_000;

interface Entry {
  readonly device: Device;
  /** Its address and port, or the URL of its description: a device that changes it is another object. */
  readonly place: string;
  seenAt: Instant;
}

/**
 * The devices of the local network. It sends nothing until a client asks for the devices; then it searches at most once in ten
 * seconds.
 */
export class FoundDevices {
  readonly #runtime: DeviceRuntime;
  readonly #interfaces: string;
  readonly #log: Log;
  readonly #entries = new Map<string, Entry>();
  /** Descriptions that are being fetched, by their URL. */
  readonly #fetches = new Map<string, { readonly host: string }>();
  /** The device of a description URL, so that an announcement seen again costs no request. */
  readonly #described = new Map<string, string>();
  readonly #closing = new AbortController();
  #search: Promise<void> | undefined;
  #searchedAt: Instant | undefined;

  constructor(runtime: DeviceRuntime, interfaces: string, log: Log) {
    this.#runtime = runtime;
    this.#interfaces = interfaces;
    this.#log = log;
  }

  /**
   * Lists the devices, by name, and searches in the background. `waits`: while none is known, waits up to 2 s for answers; default true.
   */
  async list({ waits = true } = {}): Promise<readonly Device[]> {
    const { clock } = this.#runtime;
    const known = this.#alive();
    const isDue = this.#searchedAt === undefined || after(this.#searchedAt, SEARCH_EVERY_MS) <= clock.now();
    if (isDue && this.#search === undefined && !this.#closing.signal.aborted) this.#search = this.#run();
    if (waits && this.#search !== undefined && known.length === 0)
      await resolvesWithin(this.#search, clock, FIRST_WAIT_MS);
    const devices = this.#alive();
    const kodis = new Set(devices.filter(({ kind }) => kind === "kodi").map(({ host }) => host));
    // Kodi is a DLNA renderer as well; its own protocol reports more.
    const shown = devices.filter(
      ({ kind, model, host }) => kind !== "dlna" || model !== "Kodi" || !kodis.has(host),
    );
    return shown.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Returns a listed device; undefined if it was never found or has vanished. */
  find(id: string): Device | undefined {
    return this.#alive().find((device) => device.id === id);
  }

  /** Ends the search; the devices stay as they are. */
  close(): void {
    this.#closing.abort();
  }

  async #run(): Promise<void> {
    const { clock, surroundings } = this.#runtime;
    this.#searchedAt = clock.now();
    const networks = deviceNetworks(surroundings.networks(), this.#interfaces);
    try {
      await searchDevices(
        this.#runtime,
        networks,
        (sighting) => this.#saw(sighting),
        this.#log,
        this.#closing.signal,
      );
    } finally {
      this.#search = undefined;
    }
  }

  #alive(): Device[] {
    const now = this.#runtime.clock.now();
    for (const [id, { seenAt }] of this.#entries) if (after(seenAt, GONE_MS) <= now) this.#entries.delete(id);
    return [...this.#entries.values()].map(({ device }) => device);
  }

  #saw(sighting: Sighting): void {
    if (sighting.kind === "mdns") {
      const { type, port } = sighting.service;
      const device = (type === MDNS_TYPES[2] ? castDevice : kodiDevice)(this.#runtime, sighting);
      const known = device && this.#entries.get(device.id);
      const place = `${sighting.host}:${port}`;
      // Kodi announces its TCP interface and its web server, which may ask for a password.
      if (known && (known.place === place || type === MDNS_TYPES[1]))
        known.seenAt = this.#runtime.clock.now();
      else if (device) this.#add(device, place);
      return;
    }
    const url = sighting.location.href;
    const known = this.#entries.get(this.#described.get(url) ?? "");
    if (known) known.seenAt = this.#runtime.clock.now();
    else void this.#describe(sighting, url);
  }

  async #describe(sighting: Extract<Sighting, { kind: "upnp" }>, url: string): Promise<void> {
    if (this.#fetches.has(url) || this.#fetches.size >= MAX_FETCHES) return;
    const { host } = sighting;
    const ofHost = [...this.#fetches.values()].filter((fetch) => fetch.host === host);
    if (ofHost.length >= MAX_FETCHES_PER_HOST) return;
    this.#fetches.set(url, { host });
    try {
      const device = await describeRenderer(this.#runtime, sighting, this.#closing.signal);
      if (!this.#add(device, url)) return;
      if (this.#described.size >= 2 * MAX_DEVICES) this.#described.clear();
      this.#described.set(url, device.id);
    } catch (thrown) {
      this.#log.debug("a device cannot be used", { host: sighting.host, reason: messageOf(thrown) });
    } finally {
      this.#fetches.delete(url);
    }
  }

  /**
   * Adds a device, or replaces it if its port or kind of control has changed. Returns false if there are too many, or if another address
   * has announced the same device: one that moves is listed when the old entry has vanished, so that no other machine takes its place.
   */
  #add(device: Device, place: string): boolean {
    const entries = [...this.#entries.values()];
    const known = this.#entries.get(device.id);
    if (known && known.device.host !== device.host) return false;
    const atHost = entries.filter((entry) => entry.device.host === device.host).length;
    if (!known && (entries.length >= MAX_DEVICES || atHost >= MAX_PER_HOST)) return false;
    this.#entries.set(device.id, { device, place, seenAt: this.#runtime.clock.now() });
    return true;
  }
}
