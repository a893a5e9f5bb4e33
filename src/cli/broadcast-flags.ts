import type { BroadcastOptions } from "../library/contract.ts";
import { type Arguments, usageError } from "./args.ts";
import { defaultName } from "./broadcast-request.ts";
import { parseBitRate } from "./units.ts";

/** Returns the broadcast that a command line asks for. `uploadLimit` is in bytes per second, 0 for no limit. Throws a usage error. */
export function broadcastOptions(args: Arguments, uploadLimit: number): BroadcastOptions {
  const named = args.operands[0];
  const isPattern = args.flags.has("test-pattern");
  if (isPattern && named !== undefined)
    throw usageError(`broadcast: --test-pattern is a source; remove "${named}" or the flag`);
  if (!isPattern && named === undefined)
    throw usageError(
      "broadcast: expected a source: an MPEG-TS file, a URL, udp://…, rtmp://…, srt://…, - or --test-pattern",
    );
  const source = named ?? null;
  const value = (name: string) => {
    const text = args.flags.get(name);
    return typeof text === "string" && text.trim() !== "" ? text.trim() : null;
  };
  const values = (name: string) => args.lists.get(name) ?? [];
  // An empty variable in a script must not start a stream with another name.
  if (args.flags.has("name") && value("name") === null) throw usageError("--name: the name is empty");
  return {
    name: value("name") ?? defaultName(source),
    source,
    isLooped: args.flags.has("loop"),
    ...(args.flags.has("standby") && { isStandby: true }),
    ...(args.flags.has("rotate") && { isRotated: true }),
    ...present("successorPath", value("successor")),
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
    ...present("renditions", value("renditions")),
    ...(values("variant").length > 0 && { variants: values("variant") }),
    ...present("programmes", value("programmes")),
  };
}

function present<K extends string>(key: K, value: string | null): { [P in K]?: string } {
  return (value === null ? {} : { [key]: value }) as { [P in K]?: string };
}

function bitRate(written: string | null): number | null {
  if (written === null) return null;
  const bits = parseBitRate(written);
  if (bits !== undefined) return bits;
  throw usageError(`--bitrate: expected bits a second such as 8Mbit or 2500kbit, got "${written}"`);
}
