import type { LiveFigures } from "../protocol/live/contract.ts";
import { printable } from "./log.ts";
import { STILL_MS } from "./progress.ts";
import { bitsText } from "./units.ts";

/** Returns the start-up text of a relay: the addresses to give to the source. */
export function relayText(addresses: readonly string[], p2pPort: number): string {
  return [
    `Relay on port ${p2pPort}`,
    "",
    ...addresses.map((address) => `  Address  ${address}`),
    `  Source   sluice broadcast … ${addresses.map((address) => `--relay ${quoted(address)}`).join(" ")}`,
    `           (from the Internet: this machine's public address, with port ${p2pPort} forwarded to it)`,
    "  Stop     Ctrl-C",
    "",
  ].join("\n");
}

/** Quotes an IPv6 address: brackets are a pattern in some shells. */
function quoted(address: string): string {
  return address.startsWith("[") ? `'${address}'` : address;
}

/** Values of the status line of a relay. */
export type RelayFigures = Pick<
  LiveFigures,
  "peers" | "children" | "lagMs" | "lastSeq" | "firstTsMs" | "lastTsMs" | "skippedPieces" | "hasEnded"
> & {
  readonly bytesPerSecondDown: number;
  readonly bytesPerSecondUp: number;
  readonly isForked: boolean;
};

/** Returns the status line: `News · 3 direct viewers, 12 peers · 0.8 s behind · 8.0 Mbit/s · upload 24.3 Mbit/s`. */
export function relayStatus(name: string, figures: RelayFigures): string {
  const { peers, children, lagMs, lastSeq, skippedPieces } = figures;
  const parts = [printable(name)];
  const state = relayState(figures);
  if (state !== "") parts.push(state);
  parts.push(
    `${children} direct ${children === 1 ? "viewer" : "viewers"}, ${peers} ${peers === 1 ? "peer" : "peers"}`,
  );
  if (lastSeq !== undefined) parts.push(`${(lagMs / 1000).toFixed(1)} s behind`);
  parts.push(bitsText(figures.bytesPerSecondDown), `upload ${bitsText(figures.bytesPerSecondUp)}`);
  if (skippedPieces > 0) parts.push(`${skippedPieces} pieces missed`);
  return parts.join(" · ");
}

/** Returns the problem of a relay; empty if it works. */
export function relayState({
  isForked,
  hasEnded,
  lastSeq,
  lagMs,
}: Pick<RelayFigures, "isForked" | "hasEnded" | "lastSeq" | "lagMs">): string {
  if (isForked)
    return "refused: the source signed two different pieces with one number; its key may be stolen";
  if (hasEnded) return "ended";
  if (lastSeq === undefined) return "waiting for the stream";
  return lagMs > STILL_MS ? "no new data" : "";
}
