import { addressScope, type PeerAddress } from "../base/address.ts";

/** A link names no more addresses of this machine than this. */
const MAX_ADDRESSES = 4;

/**
 * Where other machines of this network reach a P2P port that listens on `host`: at `lanAddresses`, where it listens
 * everywhere. A machine without a network has itself.
 */
export function ownAddresses(host: string, port: number, lanAddresses: readonly string[]): PeerAddress[] {
  if (addressScope(host) !== "unspecified") return [{ host, port }];
  const reached = lanAddresses.filter((address) => host === "::" || !address.includes(":"));
  const hosts = reached.length > 0 ? reached.slice(0, MAX_ADDRESSES) : ["127.0.0.1"];
  return hosts.map((each) => ({ host: each, port }));
}
