import type { BroadcastWish } from "../library/contract.ts";
import type { Arguments } from "./args.ts";
import { defaultName } from "./broadcast-request.ts";
import { parseBitRate } from "./units.ts";
import { usageError } from "./usage.ts";

/** What a command line wishes to be broadcast; `uploadLimit` is the setting, 0 for none. Throws a usage error. */
export function broadcastWish(args: Arguments, uploadLimit: number): BroadcastWish {
  const named = args.operands[0];
  const isPattern = args.flags.has("test-pattern");
  if (isPattern && named !== undefined)
    throw usageError(`broadcast: --test-pattern is a source itself; leave out "${named}", or the flag`);
  if (!isPattern && named === undefined)
    throw usageError("broadcast: name a source: a file of MPEG-TS, a URL, udp://…, - or --test-pattern");
  const source = named ?? null;
  const value = (name: string) => {
    const text = args.flags.get(name);
    return typeof text === "string" && text.trim() !== "" ? text.trim() : null;
  };
  const values = (name: string) => args.lists.get(name) ?? [];
  // An empty variable of a script would begin another stream than was meant.
  if (args.flags.has("name") && value("name") === null)
    throw usageError("--name: expected a name, but it is empty");
  return {
    name: value("name") ?? defaultName(source),
    source,
    isLooped: args.flags.has("loop"),
    ...(args.flags.has("standby") && { isStandby: true }),
    title: value("title"),
    description: value("description"),
    categories: values("category"),
    languages: values("language"),
    countries: values("country"),
    logo: value("logo"),
    trackers: values("tracker"),
    relays: values("relay"),
    isPrivate: args.flags.has("private"),
    uploadLimit: uploadLimit > 0 ? uploadLimit : null,
    bitsPerSecond: bitRate(value("bitrate")),
    manifests: values("hls"),
    addresses: values("address"),
  };
}

function bitRate(written: string | null): number | null {
  if (written === null) return null;
  const bits = parseBitRate(written);
  if (bits !== undefined) return bits;
  throw usageError(`--bitrate: expected bits a second such as 8Mbit or 2500kbit, but it is "${written}"`);
}
