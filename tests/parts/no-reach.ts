import type { PeerFinder, ReachSettings } from "../../src/engine/reach/contract.ts";

/** Trackers and TCP alone: tests neither look for the Internet nor hear of each other. */
export const NO_REACH: ReachSettings = {
  dht: false,
  dhtNodes: [],
  lsd: false,
  encryption: "off",
  utp: false,
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

/** The same for a program that is started, as variables. */
export const NO_REACH_ENVIRONMENT = {
  SLUICE_DHT: "off",
  SLUICE_LSD: "off",
  SLUICE_UTP: "off",
  SLUICE_PORT_MAPPING: "off",
} as const;

/** Finds nobody. */
export const NO_FINDER: PeerFinder = { join: () => () => {} };
