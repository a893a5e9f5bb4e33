import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { RelayEntry, RelayService, RouteDependencies } from "../http/dependencies.ts";
import { attachment } from "../http/responses.ts";
import { infohashOf } from "./activity.ts";
import { controlMethod, okResult, PRIVATE, PRIVATE_LOCAL } from "./method.ts";
import { clipped, required, text } from "./params.ts";

const relayResult = z.object({
  infohash: z.string(),
  link: z.string(),
  name: z.string().nullable().describe("null until the stream is joined"),
  status: z.enum(["joining", "relaying", "failed"]),
  remark: z.string().describe("What is wrong; empty if nothing is"),
  has_pass: z.boolean(),
  peers: z.int(),
  children: z.int().describe("Peers that receive the stream from this engine"),
  behind_ms: z.int().nullable().describe("Milliseconds behind the source; null before the first piece"),
  speed_down: z.int().describe("Bytes per second"),
  speed_up: z.int().describe("Bytes per second"),
});

/** Streams that this engine passes on. The same clients may start and stop them as broadcasts. */
export const relayMethods = [
  controlMethod({
    name: "relay_start",
    summary: "Relays a live stream to its viewers; restarts with the engine",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: z.object({
      link: required(text).describe(
        "The link of a live stream, a magnet link with an infohash, or an infohash",
      ),
      pass: text.describe(
        "The content of a relay pass of the broadcaster, with which viewers prefer the relay",
      ),
    }),
    result: relayResult,
    async run({ link, pass }, { dependencies }) {
      return presentRelay(await relaysOf(dependencies).start(link, pass || undefined));
    },
  }),
  controlMethod({
    name: "relay_stop",
    summary: "Ends a relay",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: z.object({ infohash: required(text).describe("An infohash from relay_list") }),
    result: okResult,
    async run({ infohash }, { dependencies }) {
      await relaysOf(dependencies).stop(infohashOf(infohash));
      return "ok";
    },
  }),
  controlMethod({
    name: "relay_list",
    summary: "Lists the streams that this engine relays",
    ...PRIVATE,
    isExtra: true,
    params: z.object({}),
    result: z.object({ relays: z.array(relayResult) }),
    run: async (_, { dependencies }) => ({ relays: (dependencies.relays?.list() ?? []).map(presentRelay) }),
  }),
  controlMethod({
    name: "broadcast_get_relay_pass",
    summary: "Downloads a new pass for a relay of a broadcast, valid for a year",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: z.object({ name: required(text).describe("A name from broadcast_list") }),
    result: z.unknown().meta({
      type: "string",
      format: "binary",
      contentMediaType: "application/octet-stream",
      description: "The pass, for the operator of one relay; an error as JSON if there is no such broadcast",
    }),
    async run({ name }, { dependencies, context }) {
      const { broadcasts } = dependencies;
      if (broadcasts === undefined) throw new SluiceError("unknown_broadcast", clipped(name));
      return context.body(await broadcasts.relayPass(name), 200, {
        "content-type": "application/octet-stream",
        "cache-control": "no-store",
        ...attachment(`${name}.relay-pass.json`),
      });
    },
  }),
];

function relaysOf({ relays }: RouteDependencies): RelayService {
  if (relays) return relays;
  throw new SluiceError("bad_configuration", "relays are not available in this engine");
}

/** Converts a relay to JSON. */
export function presentRelay(relay: RelayEntry): z.output<typeof relayResult> {
  return {
    infohash: relay.infohash,
    link: relay.link,
    name: relay.name ?? null,
    status: relay.isFailed ? "failed" : relay.behindMs === undefined ? "joining" : "relaying",
    remark: relay.problem,
    has_pass: relay.hasPass,
    peers: relay.peers,
    children: relay.children,
    behind_ms: relay.behindMs === undefined ? null : Math.round(relay.behindMs),
    speed_down: Math.round(relay.bytesPerSecondDown),
    speed_up: Math.round(relay.bytesPerSecondUp),
  };
}
