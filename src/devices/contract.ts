import type { OwnNetwork, Runtime } from "../runtime/contract.ts";

/** How a device is controlled. */
export type DeviceKind = "dlna" | "kodi" | "chromecast";

/** A device of the local network that plays content. */
export interface Device {
  /** Stays the same as long as the device keeps its identity, such as `dlna:uuid:…`. */
  readonly id: string;
  readonly kind: DeviceKind;
  readonly name: string;
  readonly model: string;
  /** The URL of a picture at the device itself; undefined if it has none. */
  readonly iconUrl: string | undefined;
  /** The canonical address that announced the device. */
  readonly host: string;
  /** This machine's network in which the device was found. */
  readonly network: OwnNetwork;
  /** Opens a control of the device. Rejects if it does not answer. */
  connect(): Promise<DeviceControl>;
}

/** What a device plays. The URLs are those of this engine at its address in the network of the device. */
export interface DeviceMedia {
  readonly url: string;
  readonly mime: string;
  readonly title: string;
  readonly isLive: boolean;
  /** In bytes; undefined if unknown or endless. */
  readonly bytes: number | undefined;
  readonly pictureUrl: string | undefined;
  readonly subtitles: readonly DeviceSubtitles[];
}

/** A text subtitle track in two formats. */
export interface DeviceSubtitles {
  readonly language: string;
  readonly title: string;
  readonly vttUrl: string;
  readonly srtUrl: string;
}

/** What a device does at present. */
export interface DeviceStatus {
  readonly state: "playing" | "paused" | "buffering" | "idle";
  /** 0 to 1; undefined if the device does not report it. */
  readonly volume: number | undefined;
  readonly positionSeconds: number | undefined;
  /** Undefined for live streams. */
  readonly durationSeconds: number | undefined;
}

/**
 * Controls the playback of one device. Every call rejects if the device refuses or does not answer; the next one opens a lost connection
 * again.
 */
export interface DeviceControl {
  /** Returns true if the device declares that it plays this MIME type. */
  plays(mime: string): boolean;
  play(media: DeviceMedia): Promise<void>;
  resume(): Promise<void>;
  pause(): Promise<void>;
  stop(): Promise<void>;
  /** Seeks to a time in the film, in seconds. */
  seek(seconds: number): Promise<void>;
  /** `volume` is 0 to 1. */
  setVolume(volume: number): Promise<void>;
  status(): Promise<DeviceStatus>;
  /** Closes the connection; the device continues to play. */
  close(): void;
}

/** Parts of the runtime that devices need. */
export type DeviceRuntime = Pick<Runtime, "net" | "connectTls" | "clock" | "http" | "surroundings">;
