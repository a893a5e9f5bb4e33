import type { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { BroadcastOptions } from "../../src/library/contract.ts";
import { bool, integer, text, texts } from "./params.ts";

/** The parameters of `broadcast_start`, named like the options of `sluice broadcast`. */
export const broadcastParams = {
  source: text.describe(
    "An http or https URL, udp://address:port, rtmp://0.0.0.0:1935/live to receive from a program such as OBS, srt://0.0.0.0:9000 to receive and srt://address:port to fetch by SRT (with ffmpeg), or the absolute path of an MPEG-TS file",
  ),
  test_pattern: bool.describe("1: broadcasts a moving test picture with a clock instead of a source"),
  name: text.describe(
    "Selects the signing key: the same name continues the same stream. Default: derived from the source",
  ),
  title: text.describe("The title that viewers see; default: the name"),
  description: text,
  category: texts.describe("A category; repeatable, as all lists of this method"),
  language: texts.describe("A language code of three letters, such as eng"),
  country: texts.describe("A country code of two letters, such as us"),
  logo: text.describe("The URL of an image"),
  tracker: texts.describe("Announce URLs"),
  relay: texts.describe("host:port of relays, which viewers learn from the transport file"),
  private: bool.describe("1: only relays may connect to this engine"),
  upload_limit: integer.describe("The upload limit for all peers together, in bytes per second; 0: no limit"),
  bitrate: integer.describe("The maximum bit rate of the stream, in bits per second; default: measured"),
  loop: bool.describe("1: a file restarts at its end"),
  standby: bool.describe(
    "1: goes on air only while no other machine broadcasts with the same key; the key must exist",
  ),
  successor: text.describe(
    "The path of the transport file of the stream that replaces this one: viewers are sent there, and this key is revoked",
  ),
  rotate: bool.describe(
    "1: replaces the key of this name; viewers of the old stream are sent to the new one for 30 days",
  ),
  hls: texts.describe(
    "URLs of HLS manifests or MPEG-TS streams with the same content, for viewers whose peers are too slow",
  ),
  address: texts.describe("host:port at which viewers reach this engine; part of the link"),
  renditions: text.describe(
    "Further qualities that ffmpeg encodes: lines and bits a second, such as 720p:3M,480p:1M. Each is a stream of its own",
  ),
  variant: texts.describe("Sources of the same programme in other qualities, each like source"),
  programmes: text.describe(
    "Numbers of the programmes of a source with several, such as 1,2: the first is the stream, the others its other qualities",
  ),
} as const;

type Params = { readonly [Name in keyof typeof broadcastParams]?: z.output<(typeof broadcastParams)[Name]> };

/** Converts the parameters; a missing name becomes empty. Throws `missing_parameter` or `bad_parameter`. */
export function broadcastOptionsOf(params: Params): BroadcastOptions {
  const { source, test_pattern: isPattern = false } = params;
  if (isPattern && source !== undefined)
    throw new SluiceError("bad_parameter", "test_pattern: expected no source as well");
  if (!isPattern && source === undefined)
    throw new SluiceError(
      "missing_parameter",
      "source: expected a URL, udp://… or a file; or test_pattern=1",
    );
  return {
    name: params.name ?? "",
    source: source ?? null,
    isLooped: params.loop ?? false,
    ...(params.standby && { isStandby: true }),
    ...(params.rotate && { isRotated: true }),
    ...(params.successor && { successorPath: params.successor }),
    title: params.title ?? null,
    description: params.description ?? null,
    categories: params.category ?? [],
    languages: params.language ?? [],
    countries: params.country ?? [],
    logo: params.logo ?? null,
    trackers: params.tracker ?? [],
    relays: params.relay ?? [],
    isPrivate: params.private ?? false,
    uploadLimit: positive("upload_limit", params.upload_limit),
    bitsPerSecond: positive("bitrate", params.bitrate),
    manifests: params.hls ?? [],
    addresses: params.address ?? [],
    ...(params.renditions && { renditions: params.renditions }),
    ...(params.variant && params.variant.length > 0 && { variants: params.variant }),
    ...(params.programmes && { programmes: params.programmes }),
  };
}

function positive(name: string, value: number | undefined): number | null {
  if (value === undefined || value === 0) return null;
  if (value > 0) return value;
  throw new SluiceError("bad_parameter", `${name}: expected a number above 0, got ${value}`);
}
