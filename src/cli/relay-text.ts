import type { LiveFigures } from "../swarm/live/contract.ts";
import { printable } from "./log.ts";
import { STILL_MS } from "./progress.ts";
import { bitsText } from "./units.ts";

/** What the source of the stream has to know: where the relay can be called. */
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

/** As shells take it: to some, brackets are a pattern. */
function quoted(address: string): string {
  return address.startsWith("[") ? `'${address}'` : address;
}

/** What a relay is doing. */
export type RelayFigures = Pick<
  LiveFigures,
  "peers" | "children" | "lagMs" | "lastSeq" | "firstTsMs" | "lastTsMs" | "skippedPieces" | "hasEnded"
> & {
  readonly bytesPerSecondDown: number;
  readonly bytesPerSecondUp: number;
  readonly isForked: boolean;
};

/** `News · 3 fed from here, 12 peers · 0.8 s behind · 8.0 Mbit/s · upload 24.3 Mbit/s`. */
export function relayStatus(name: string, figures: RelayFigures): string {
  const { peers, children, lagMs, lastSeq, skippedPieces } = figures;
  const parts = [printable(name)];
  const state = relayState(figures);
  if (state !== "") parts.push(state);
  parts.push(`${children} fed from here, ${peers} ${peers === 1 ? "peer" : "peers"}`);
  if (lastSeq !== undefined) parts.push(`${(lagMs / 1000).toFixed(1)} s behind`);
  parts.push(bitsText(figures.bytesPerSecondDown), `upload ${bitsText(figures.bytesPerSecondUp)}`);
  if (skippedPieces > 0) parts.push(`${skippedPieces} pieces missed`);
  return parts.join(" · ");
}

/** What there is to say of a relay besides figures; empty where it does what it is for. */
export function relayState({ isForked, hasEnded, lastSeq, lagMs }: RelayFigures): string {
  if (isForked) return "refused: two pieces of one number are signed; its key is in other hands";
  if (hasEnded) return "has ended";
  if (lastSeq === undefined) return "waiting for the stream";
  return lagMs > STILL_MS ? "nothing new comes" : "";
}
