import { addressScope } from "../../base/address.ts";
import type { Announcer } from "../announcer.ts";

/**
 * The same announcer, which tells trackers the port at which others reach us: not always the one that we listen on. A tracker
 * that is named by an address of our own networks is told ours: those whom it tells of us are in here, too.
 */
export function tellingPort(announcer: Announcer, externalPort: () => number): Announcer {
  return {
    announce(request, options) {
      const port = request.port > 0 && !isAtHome(request.url) ? externalPort() : request.port;
      return announcer.announce({ ...request, port }, options);
    },
    scrape: (url, infohash, options) => announcer.scrape(url, infohash, options),
    close: () => announcer.close(),
  };
}

function isAtHome(url: string): boolean {
  // Only the URLs of http are read to the end everywhere; what is a host in them is one in the others.
  const asHttp = url.replace(/^[a-z]+:/i, "http:");
  if (!URL.canParse(asHttp)) return false;
  const host = new URL(asHttp).hostname.replace(/^\[|\]$/g, "");
  if (host === "localhost") return true;
  return /^[\d.]+$|:/.test(host) && addressScope(host) !== "global";
}
