import type { PeerFinder, ReachSettings } from "../../src/net/contract.ts";

/** Only trackers and TCP: tests do not contact the Internet or discover each other. */
export const NO_REACH: ReachSettings = {
  dht: false,
  dhtNodes: [],
  lsd: false,
  encryption: "off",
  utp: false,
  webrtc: false,
  iceServers: [],
  portMapping: false,
  bind: "",
  proxy: "",
  proxyStrict: true,
  limitLan: true,
  scheduled: undefined,
  ipFilter: "",
  portFile: "",
  portCommand: "",
  tracker: "off",
};

/** The same settings as environment variables of a child process. */
export const NO_REACH_ENVIRONMENT = {
  SLUICE_DHT: "off",
  SLUICE_LSD: "off",
  SLUICE_UTP: "off",
  SLUICE_PORT_MAPPING: "off",
} as const;

/** A peer finder that finds no peers. */
export const NO_FINDER: PeerFinder = { join: () => () => {} };
